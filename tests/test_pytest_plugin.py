"""The fixture and the marker `no_host_sync`, in sessions of pytest as a user starts them."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hatchling.builders.wheel import WheelBuilder

TESTS = """
import sys
import unittest

import pytest

IMPORTED_BY_PYTEST = {"jax", "devicearray"} & sys.modules.keys()


def test_nothing_is_imported_before_a_test_asks():
    assert IMPORTED_BY_PYTEST == set()


@pytest.fixture
def x():
    import jax.numpy as jnp
    x = jnp.ones(3)
    assert x[0] == 1
    return x


@pytest.fixture
def reads_afterwards(x):
    yield
    assert x[0] == 1


def test_passes(no_host_sync, x, reads_afterwards):
    y = x + 1
    assert y.shape == (3,)


def test_passes_twice(no_host_sync, x):
    y = x + 1


def test_passes_whatever_the_order(x, no_host_sync):
    y = x + 1


def test_fails(no_host_sync, x):
    y = x + 1
    def read():
        return float(y[0])  # here
    assert read() == 2


def test_fails_in_an_assertion(no_host_sync, x):
    y = x + 1
    assert y[0] == 2  # here


def test_passes_where_it_is_allowed(no_host_sync, x):
    y = x + 1
    with no_host_sync.allowed():
        assert y[0] == 2


def test_fails_after_the_region(no_host_sync, x):
    with no_host_sync.allowed():
        assert x[0] == 1
    x.tolist()  # here


@pytest.mark.no_host_sync
@pytest.mark.parametrize("read", [repr, type])
def test_parametrized(x, read):
    read(x)  # here


@pytest.mark.no_host_sync(allow=("block_until_ready",))
def test_passes_what_the_marker_allows(x):
    x.block_until_ready()


@pytest.mark.no_host_sync(allow=("block_until_ready",))
def test_fails_for_another(x, no_host_sync):
    x.block_until_ready()
    x.item(0)  # here


@pytest.fixture
def asks(no_host_sync):
    pass


@pytest.mark.usefixtures("asks")
def test_fails_if_a_fixture_asks(x):
    float(x[0])  # here


def test_passes_unasked(x):
    float(x[0])


@pytest.mark.no_host_sync
class TestCase(unittest.TestCase):
    def setUp(self):
        import jax.numpy as jnp
        self.x = jnp.ones(3)
        assert self.x[0] == 1

    def tearDown(self):
        assert self.x[0] == 1

    def test_method_passes(self):
        self.x + 1

    def test_method_fails(self):
        float(self.x[0])  # here

    @pytest.mark.no_host_sync(allow="float")
    def test_method_passes_what_the_closest_marker_allows(self):
        float(self.x[0])

    @pytest.mark.no_host_sync(allow="item")
    def test_method_fails_for_what_only_another_marker_allows(self):
        float(self.x[0])  # here


@pytest.mark.no_host_sync("float")
def test_wrong_argument(x):
    raise AssertionError("it ran")


@pytest.mark.no_host_sync(alow=("float",))
def test_wrong_name(x):
    raise AssertionError("it ran")


@pytest.mark.no_host_sync(allow=("flot",))
def test_wrong_trigger(x):
    raise AssertionError("it ran")


@pytest.mark.no_host_sync(allow=(1,))
def test_no_trigger(x):
    raise AssertionError("it ran")


@pytest.mark.no_host_sync
async def test_later(x):
    raise AssertionError("it ran")


def test_too_late(request, x):
    request.getfixturevalue("no_host_sync")
    raise AssertionError("it ran")
"""


# pytest-rerunfailures and its like run a test again in this way.
CONFTEST = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    if "twice" in item.name:
        runtestprotocol(item, nextitem=nextitem, log=False)
        item._initrequest()

def pytest_itemcollected(item):
    if item.name == "page.txt":
        item.add_marker("no_host_sync")
"""


@pytest.fixture(scope="module", params=["-p no:xdist", "-n 1"], ids=["", "xdist"])
def failures(request, tmp_path_factory, reader_environment):
    """Return what a session of pytest reported: of each test how it failed, or None."""
    folder = tmp_path_factory.mktemp("session")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_training.py").write_text(TESTS)
    (folder / "page.txt").write_text(">>> 1 + 1\n2\n")
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers -W error --doctest-glob=page.txt\n"
    )
    options = ["-p", "no:cacheprovider", "--junitxml", "report.xml", *request.param.split()]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=reader_environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == pytest.ExitCode.TESTS_FAILED, process.stdout + process.stderr
    cases = ElementTree.parse(folder / "report.xml").findall(".//testcase")
    assert not [case.get("name") for case in cases if case.find("error") is not None]
    return {case.get("name"): case.findtext("failure") for case in cases}


def named(word):
    """Return the names of the tests whose names have this word."""
    names = [line.partition("def ")[2].partition("(")[0] for line in TESTS.splitlines()]
    return [name for name in names if word in name.split("_") and name.startswith("test")]


PASSING = [*named("passes"), *named("nothing"), "test_parametrized[type]"]
FAILING = [*named("fails"), "test_parametrized[repr]"]


@pytest.mark.parametrize("test", PASSING)
def test_what_does_not_wait_passes(test, failures):
    assert failures[test] is None


@pytest.mark.parametrize("test", FAILING)
def test_a_host_sync_fails_the_test_at_its_line(test, failures):
    lines = TESTS.splitlines()
    begin = next(n for n, line in enumerate(lines) if f"def {test.partition('[')[0]}(" in line)
    here = next(n for n in range(begin, len(lines)) if lines[n].endswith("# here"))
    report = failures[test].splitlines()
    # The last frame that is shown is the user's, and nothing of JAX or of the guard is below it.
    assert report[-1] == f"test_training.py:{here + 1}: HostSyncError"
    assert [line for line in report if line.startswith(">")][-1][1:].strip() == lines[here].strip()
    assert "devicearray/_" not in failures[test]
    assert any("HostSyncError: " in line and "waits for a device value" in line for line in report)


ARGUMENT = "no_host_sync: @pytest.mark.no_host_sync takes allow= and nothing else, not "
INSTEAD = ' Did you mean @pytest.mark.no_host_sync(allow=("float",))?'
REASONS = {
    "page.txt": "no_host_sync: guards test functions, and this is a DoctestItem.",
    "test_wrong_argument": f"{ARGUMENT}'float'.{INSTEAD}",
    "test_wrong_name": f"{ARGUMENT}alow=.{INSTEAD}",
    "test_wrong_trigger": "no_host_sync: allow: there is no trigger 'flot'. Did you mean 'float'?",
    "test_no_trigger": (
        "no_host_sync: sync_guard: a trigger is named by a string, and 1 is not one."
    ),
    "test_later": (
        "no_host_sync: sync_guard: test_later is a coroutine function, which does its work after "
        "the call has returned. Did you mean `with sync_guard(...):` inside of it?"
    ),
    "test_too_late": (
        "no_host_sync: asked for within the test, which runs unguarded. Make it an argument of "
        "the test."
    ),
}


@pytest.mark.parametrize("test", REASONS)
def test_what_cannot_be_guarded_fails_with_a_reason(test, failures):
    assert failures[test] == REASONS[test]


def test_every_test_of_the_session_was_looked_at(failures):
    assert failures.keys() == {*PASSING, *FAILING, *REASONS}


def test_the_installed_package_and_the_wheel_have_the_plugin():
    declared = importlib.metadata.entry_points(group="pytest11", name="devicearray")
    assert [one.value for one in declared] == ["pytest_devicearray"]
    wheel = WheelBuilder(str(Path(__file__).parents[1]))
    packed = {file.distribution_path for file in wheel.recurse_included_files()}
    assert {"pytest_devicearray.py", "devicearray/__main__.py"} <= packed
