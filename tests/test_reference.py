"""The reference documents every public name."""

import re
from pathlib import Path

import pytest

import devicearray

PAGE = Path(__file__).parents[1] / "notes" / "reference" / "index.rst"


@pytest.mark.parametrize("name", devicearray.__all__)
def test_a_public_name_is_documented(name):
    directive = rf"^\.\. (auto\w+:: {name}|module:: devicearray\.{name})$"
    assert re.search(directive, PAGE.read_text("utf-8"), re.MULTILINE)
