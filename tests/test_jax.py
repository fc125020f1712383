"""One module touches JAX's private names, and says clearly when one is missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "devicearray"


def test_only_one_module_names_what_is_private_to_jax():
    private = re.compile(r"jax\._src\b|(?:from|import) jaxlib\b")
    code = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    names = {file.name for file in code if private.search(file.read_text("utf-8"))}
    assert names == {"_jax.py"}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("jax._src.core", "pytype_aval_mappings"),
        ("jax._src.numpy.array_methods", "_array_methods"),
        ("jaxlib._jax", "pjit"),
    ],
)
def test_a_missing_name_is_an_import_error_that_names_it(module, name):
    program = f"import jax, {module} as m; del m.{name}; import devicearray"
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert process.returncode != 0
    assert "ImportError: devicearray builds on names" in process.stderr
    assert f"{module}.{name}" in process.stderr


def test_importing_the_package_starts_no_device():
    program = "import devicearray, jax._src.xla_bridge as b; assert not b._backends"
    subprocess.run([sys.executable, "-c", program], check=True)
