"""The pages notice a DeviceArray that is broken: an example that cannot fail shows nothing.

Each sabotage is Python that runs before the page does, in the page's process. Unbroken, the same
page passes (``make doctest``).
"""

import os
from pathlib import Path

import pytest

from sphinxext import examples

ROOT = Path(__file__).parents[1]
PAGE = Path("notes/async_dispatch.rst")

PREAMBLE = """
import devicearray as da
from devicearray import DeviceArray
da.Gate.__init__.__defaults__ = (0.5,)  # a gate that the sabotage waits for gives up sooner
"""

SABOTAGES = {
    "block_until_ready does not wait": "DeviceArray.block_until_ready = lambda self: self",
    "shape waits": """
DeviceArray.shape = property(lambda self: self._buffer.block_until_ready().shape)
""",
    "addition waits": """
add = DeviceArray.__add__
DeviceArray.__add__ = lambda self, other: add(self, other).block_until_ready()
""",
    "a jitted function waits": """
jit = da.jit
def waiting_jit(f):
    compiled = jit(f)
    return lambda *args: compiled(*args).block_until_ready()
da.jit = waiting_jit
""",
    "print reads a large array": """
import numpy
DeviceArray.__repr__ = lambda self: f"DeviceArray({numpy.asarray(self._buffer)!r})"
""",
    "is_ready says yes": "DeviceArray.is_ready = lambda self: True",
    "a wrong sum": "DeviceArray.sum = lambda self, axis=None: self",
}


@pytest.fixture(scope="module")
def site(reader_environment, tmp_path_factory):
    """Return where the site was read to: a folder that no other process uses."""
    folder = tmp_path_factory.mktemp("site")
    examples.read_site(ROOT, reader_environment, folder)
    return folder


@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_the_page_fails_when(sabotage, tmp_path, reader_environment, site):
    (tmp_path / "sitecustomize.py").write_text(PREAMBLE + SABOTAGES[sabotage], "utf-8")
    path = os.pathsep.join([str(tmp_path), reader_environment.get("PYTHONPATH", "")])
    outcome = examples.run(ROOT, PAGE, {**reader_environment, "PYTHONPATH": path}, site)
    assert "Failed example" in outcome.problems
