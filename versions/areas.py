"""What a release of JAX is asked, and the tests that answer.

Each area is a row of the table in README.md. A test belongs to the first area that has a pattern
for it: ``FILE::FUNCTION`` under ``tests/``, as a shell writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from versions.environments import ROOT

AREAS: Final[Mapping[str, tuple[str, ...]]] = {
    "`record()` sees every way to wait, and at which line": (
        "test_record_waits.py::*",
        "test_record_programs.py::*",
        "test_site.py::*",
    ),
    "`record()` sees every compile": (
        "test_boundary.py::*compile*",
        "test_boundary.py::*cache*",
    ),
    "`record()` sees every transfer": (
        "test_boundary.py::*transfer*",
        "test_boundary.py::*move*",
    ),
    "`record()` counts dispatches exactly": ("test_boundary.py::*",),
    "Recordings nest, overlap and end without a trace": ("test_record.py::*",),
    "`record(profile=True)` knows when the device ran what": (
        "test_profile.py::*",
        "test_timeline.py::*",
    ),
    "`sync_guard()` raises before the host waits": (
        "test_guard.py::*",
        "test_pytest_plugin.py::*",
    ),
    "A log prints, is stored, and comes from the command line": (
        "test_bench.py::*",
        "test_bench_command.py::*",
        "test_command.py::*",
        "test_events.py::*",
        "test_log.py::*",
        "test_table.py::*",
        "test_units.py::*",
    ),
    "Rows are taken without a dispatch, and are what JAX's are": (
        "test_iteration.py::*",
        "test_rows.py::*",
        "test_view.py::*",
    ),
    "`DeviceArray` agrees with JAX's arrays": (
        "conformance/test_*.py::*",
        "test_array.py::*",
        "test_asarray.py::*",
        "test_methods.py::*",
    ),
    "`numpy`, `random` and `jit` agree with JAX's, in one dispatch": (
        "test_dispatch.py::*",
        "test_namespace.py::*",
        "test_operation.py::*",
        "test_program.py::*",
        "test_signature.py::*",
    ),
    "`Gate` holds the device": ("test_gate.py::*",),
    "`block_until_ready` passes no array over": ("test_wait.py::*",),
    "Every private name of JAX's is found": ("test_jax.py::*",),
}

#: The site, its examples and this table: made with the one JAX of requirements.txt.
ELSEWHERE: Final = (
    "pages/*",
    "sphinxext/*",
    "test_environment.py",
    "test_pages_notice.py",
    "test_reference.py",
    "test_versions.py",
)


def files() -> list[str]:
    """Return the files of the tests that the areas ask for, relative to the root."""
    tests = ROOT / "tests"
    patterns = {one.partition("::")[0] for patterns in AREAS.values() for one in patterns}
    found = {path for pattern in patterns for path in tests.glob(pattern)}
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def area_of(test: str) -> str:
    """Return the area of a test by its name, which is its file's if the file cannot be read."""
    file, _, function = test.partition("[")[0].removeprefix("tests/").partition("::")
    for area, patterns in AREAS.items():
        for pattern in patterns:
            in_file, _, called = pattern.partition("::")
            if fnmatchcase(file, in_file) and (not function or fnmatchcase(function, called)):
                return area
    raise LookupError(f"{test} belongs to no area: add it in versions/areas.py.")
