"""The committed inventories are what their script makes."""

import pytest
from sphobjinv import Inventory

from sphinxext.inventories import make


@pytest.mark.parametrize("project", make.NAMES)
def test_an_inventory_is_up_to_date(project):
    committed = Inventory(make.HERE / f"{project}.inv")
    assert committed.data_file(contract=True) == make.inventory(project).data_file(contract=True)
