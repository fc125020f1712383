"""The table of what holds on which JAX is what the tests gave, and pip says which JAX that is."""

import json
import os
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from versions import __main__ as command
from versions import environments
from versions.areas import AREAS, ELSEWHERE, area_of, files
from versions.environments import ROOT, Release, newest, newest_of
from versions.table import BEGIN, END, replace_table, table

RESULTS = json.loads(command.RESULTS.read_text("utf-8"))


def release(jax, *, passed=2, failed=(), skipped=(), lost=()):
    area = {"passed": passed, "failed": dict(failed), "skipped": dict(skipped)}
    about = {"jaxlib": jax, "numpy": "2.5", "python": "3.13.0", "date": "2026-12-01"}
    return {"jax": jax, **about, "machine": "m", "lost": list(lost), "areas": {"Gates": area}}


# The table.


def test_the_readme_has_the_table_of_the_results():
    text = command.README.read_text("utf-8")
    assert replace_table(text, RESULTS) == text


def test_only_what_stands_between_the_marks_is_replaced():
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    new = replace_table(text, [release("0.12.0")])
    assert new == f"before\n{BEGIN}\n{table([release('0.12.0')])}\n{END}\nafter\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END} {BEGIN}"])
def test_a_text_without_the_two_marks_is_refused(text):
    with pytest.raises(ValueError, match="lost its marks"):
        replace_table(text, [release("0.12.0")])


def test_a_row_says_how_many_tests_pass_and_how_many_there_are_where_one_fails():
    lines = table(
        [release("0.12.1", passed=5), release("0.11.2", passed=3, failed={"test_x": "why"})]
    ).splitlines()
    assert lines[:3] == [
        "| What holds | JAX 0.12.1 | JAX 0.11.2 |",
        "| --- | --- | --- |",
        "| Gates | yes (5) | 3 of 4 |",
    ]
    assert lines[-1] == "- JAX 0.11.2 fails `test_x`: `why`"


def test_an_area_that_a_release_was_not_asked_is_no_pass():
    old = release("0.10.2")
    old["areas"] = {}
    lines = table([release("0.12.1"), release("0.11.2", passed=0, skipped={"a": "b"}), old])
    assert "| Gates | yes (2) | not tested | not tested |" in lines


def test_what_is_skipped_on_every_release_is_of_no_release():
    always = {"test_a": "never here"}
    text = table(
        [
            release("0.12.1", skipped=always),
            release("0.11.2", skipped={**always, "test_b": "not in JAX", "test_c": "not in JAX"}),
        ]
    )
    assert "never here" not in text
    assert text.endswith("- JAX 0.11.2 skips 2: not in JAX.")


def test_a_fact_that_a_release_cannot_give_is_named():
    text = table([release("0.12.1"), release("0.11.2", lost=["device times"])])
    assert text.endswith("- JAX 0.11.2 does not record device times.")


# The areas.


def test_every_file_of_tests_is_in_an_area_or_elsewhere_and_not_in_both():
    tests = ROOT / "tests"
    there = {path.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    asked = {file.removeprefix("tests/") for file in files()}
    elsewhere = {file for file in there if any(fnmatchcase(file, one) for one in ELSEWHERE)}
    assert asked | elsewhere == there
    assert not asked & elsewhere


@pytest.mark.parametrize("area", AREAS)
def test_a_pattern_of_an_area_names_tests_that_there_are(area):
    for pattern in AREAS[area]:
        file, _, function = pattern.partition("::")
        paths = list((ROOT / "tests").glob(file))
        assert paths, pattern
        code = "\n".join(path.read_text("utf-8") for path in paths)
        names = [line[4:].partition("(")[0] for line in code.splitlines() if line[:4] == "def "]
        assert any(fnmatchcase(name, function) for name in names), pattern


def test_a_test_is_of_the_first_area_that_has_its_function(monkeypatch):
    monkeypatch.setitem(AREAS, "all", ("a.py::test_all*", "b/*::*"))
    monkeypatch.setitem(AREAS, "some", ("a.py::*",))
    assert area_of("tests/a.py::test_all[x::y]") == "all"
    assert area_of("tests/b/c.py::test") == "all"
    assert area_of("tests/a.py::test_one[all]") == "some"
    assert area_of("tests/a.py") == "all"
    with pytest.raises(LookupError, match=r"c\.py::test"):
        area_of("tests/c.py::test")


# Which releases there are. pip is asked, of an index in a folder.


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Let pip know no packages but those that `publish` makes."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


def publish(index, name, version, *requirements):
    about = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
    with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{about}/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def test_the_newest_minors_are_those_that_install_each_at_its_newest(index):
    for version in ("0.9.9", "0.10.0", "0.10.2", "0.11.2", "0.12.0", "0.12.0.1", "0.13.0rc1"):
        publish(index, "jax", version, f"jaxlib<={version},>=0.9")
    for version in ("0.9.9", "0.10.1", "0.11.2", "0.12.0.1"):
        publish(index, "jaxlib", version)
    publish(index, "jax", "0.14.0", "jaxlib>=0.14")
    found = [Release("0.12.0.1", "0.12.0.1"), Release("0.11.2", "0.11.2")]
    assert newest(3) == [*found, Release("0.10.2", "0.10.1")]
    assert newest_of("0.12") == found[0]
    assert newest_of("0.12.0.1") == found[0]
    assert newest_of("0.9").minor == "0.9"


def test_where_pip_finds_nothing_the_command_says_what_it_needs(index):
    with pytest.raises(SystemExit, match=r"no release for 'jax'. It needs a package index") as end:
        newest(1)
    assert "No matching distribution found for jax" in str(end.value)


# An environment for each.


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Let a folder be the project, and return the commands that set environments up in it."""
    commands = []

    def run(*command):
        commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr(environments, "_run", run)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "requirements.txt").write_text(
        "# pins\njax==0.12.0\njaxlib==0.12.0\nnumpy==2.5.5\n"
    )
    return commands


def test_an_environment_has_the_release_and_the_pins_of_everything_else(tmp_path, project):
    python = environments.environment(Release("0.11.2", "0.11.1"))
    assert python.relative_to(tmp_path).as_posix() == ".venv/jax-0.11/bin/python"
    _, needed, package = project
    assert {"jax==0.11.2", "jaxlib==0.11.1", "numpy>=2", "pytest", "hatchling"} <= {*needed}
    assert not {"sphinx", "ruff"} & {*needed}
    assert [one for one in needed if one.startswith("jax")] == ["jax==0.11.2", "jaxlib==0.11.1"]
    assert Path(needed[needed.index("--constraint") + 1]).read_text() == "numpy==2.5.5"
    assert package[-2:] == ("--editable", str(tmp_path))


def test_an_environment_is_set_up_again_only_if_it_would_be_another(tmp_path, project):
    def commands_for(release):
        project.clear()
        environments.environment(release)
        return ["venv" in command for command in project]

    first, other = Release("0.11.1", "0.11.1"), Release("0.11.2", "0.11.1")
    anew, again = [True, False, False], [False]
    assert commands_for(first) == anew
    assert commands_for(first) == again
    assert commands_for(other) == anew
    (tmp_path / "requirements.txt").write_text("numpy==2.5.6\n")
    assert commands_for(other) == anew
    assert commands_for(other) == again


# What the command writes.


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Let every test of every release pass, and return the file of the results."""
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "README", tmp_path / "README.md")
    monkeypatch.setattr(command, "newest", lambda count: [Release("0.12.1", "")] * (count == 3))
    monkeypatch.setattr(command, "newest_of", lambda version: Release(f"{version}.9", ""))
    monkeypatch.setattr(command, "_test", lambda tested: release(tested.jax))
    command.README.write_text(f"{BEGIN}{END}")
    known = [release("0.12.0"), release("0.11.0"), release("0.9.0")]
    command.RESULTS.write_text(json.dumps(known))
    return command.RESULTS


def test_without_a_version_only_the_newest_are_in_the_results(written):
    command.main([])
    assert json.loads(written.read_text()) == [release("0.12.1")]
    assert command.README.read_text() == f"{BEGIN}\n{table([release('0.12.1')])}\n{END}"


def test_versions_by_name_take_the_place_of_what_was_known_of_them(written):
    command.main(["0.9", "0.10", "0.11"])
    known = [one["jax"] for one in json.loads(written.read_text())]
    assert known == ["0.12.0", "0.11.9", "0.10.9", "0.9.9"]


def test_what_came_of_each_test_is_sorted_by_area():
    areas = command.by_area(
        {
            "tests/test_gate.py::test_a": ("passed", ""),
            "tests/test_gate.py::test_b[1]": ("passed", ""),
            "tests/test_gate.py::test_b[2]": ("failed", "why"),
            "tests/test_wait.py": ("skipped", "no"),
        }
    )
    assert areas.keys() == AREAS.keys()
    gate, wait = area_of("tests/test_gate.py"), area_of("tests/test_wait.py")
    failed = {"tests/test_gate.py::test_b[2]": "why"}
    assert areas.pop(gate) == {"passed": 2, "failed": failed, "skipped": {}}
    assert areas.pop(wait) == {"passed": 0, "failed": {}, "skipped": {"tests/test_wait.py": "no"}}
    assert all(area == {"passed": 0, "failed": {}, "skipped": {}} for area in areas.values())


# What came of each test.

TESTS = """
    import os
    import pytest
    from versions.environments import ROOT

    @pytest.fixture
    def broken():
        yield
        raise ValueError("afterwards\\nand more")

    def test_that_passes(): pass
    def test_that_fails(): raise ValueError(f"in {ROOT}/x")
    def test_that_ends_badly(broken): pass
    @pytest.mark.skip(reason="not today")
    def test_that_is_skipped(): pass
    def test_that_ends_the_process(): os._exit(1)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_the_plugin_writes_what_came_of_each_test(tmp_path, reader_environment, workers):
    tests = textwrap.dedent(TESTS)
    if not workers:
        tests = tests.replace("os._exit(1)", 'raise ValueError("worker crashed")')
    (tmp_path / "test_some.py").write_text(tests)
    (tmp_path / "test_none.py").write_text("import no_such_module")
    path = tmp_path / "outcomes.json"
    options = ("-p", "versions.plugin", "--outcomes", str(path), "-n", str(workers))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--continue-on-collection-errors"],
        cwd=tmp_path,
        env={**reader_environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout
    outcomes = json.loads(path.read_text("utf-8"))
    kinds = {test: kind for test, (kind, _) in outcomes.items()}
    assert kinds == {
        "test_none.py": "failed",
        "test_some.py::test_that_passes": "passed",
        "test_some.py::test_that_fails": "failed",
        "test_some.py::test_that_ends_badly": "failed",
        "test_some.py::test_that_is_skipped": "skipped",
        "test_some.py::test_that_ends_the_process": "failed",
    }
    reasons = {test: reason for test, (_, reason) in outcomes.items()}
    assert reasons["test_some.py::test_that_is_skipped"] == "not today"
    assert reasons["test_some.py::test_that_fails"] == "ValueError: in ./x"
    assert reasons["test_some.py::test_that_ends_badly"] == "ValueError: afterwards"
    assert "crashed" in reasons["test_some.py::test_that_ends_the_process"]
    assert "no_such_module" in reasons["test_none.py"]


# What the package says of itself.


def test_the_oldest_jax_that_the_package_asks_for_is_the_oldest_that_was_tested():
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    oldest = Release(RESULTS[-1]["jax"], "").minor
    assert [one for one in needed if one.startswith("jax")] == [
        f"jax>={oldest}",
        f"jaxlib>={oldest}",
    ]
