"""`python -m devicearray bench` prints tables, writes files where told to, and refuses the rest."""

import json
import os
import re
import subprocess
import sys
from types import MappingProxyType

import pytest

from devicearray._bench.interleaved import Comparison
from devicearray._bench.suite import Suite
from devicearray._bench.suites import SUITES
from devicearray._command import bench, main

RATIO = ("JAX", "ours", "ratio")


def suites(*names, **options):
    """Return suites that measure nothing, and what was asked of them."""
    asked = []

    def suite(name):
        def run(plan):
            asked.append((name, plan.rounds))
            for letter in "ab":
                yield Comparison(
                    name=f"{name} {letter}",
                    first=(3e-6,) * plan.rounds,
                    second=(2e-6,) * plan.rounds,
                    beside={"NumPy": (4e-6,)},
                    counts={"dispatches": (200, 0)},
                )

        return Suite(name=name, title=f"On {name}", columns=RATIO, run=run, **options)

    return MappingProxyType({name: suite(name) for name in names}), asked


@pytest.fixture
def known(monkeypatch):
    """Replace the suites; return what is asked of the new ones."""
    replaced, asked = suites("rows", "strategies", beside=("NumPy",), counts=("dispatches",))
    monkeypatch.setattr(bench, "SUITES", replaced)
    return asked


def refusal(capsys, *arguments):
    """Return the message with which the command refuses."""
    with pytest.raises(SystemExit) as caught:
        main(["bench", *arguments])
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1].removeprefix("python -m devicearray bench: error: ")


def test_without_a_name_all_suites_run_once_in_order(known):
    main(["bench"])
    assert known == [("rows", 401), ("strategies", 401)]


def test_the_suites_that_are_named_run_and_no_others(known):
    main(["bench", "strategies", "--rounds", "3"])
    assert known == [("strategies", 3)]


def test_the_table_says_on_what_and_how_and_has_a_line_for_each_comparison(known, capsys):
    main(["bench", "rows", "--rounds", "2"])
    title, on, how, _, head, *lines = capsys.readouterr().out.splitlines()[1:]
    assert title == "On rows"
    assert re.fullmatch(
        r"On 20..-..-.. with jax [\d.]+ on 8 devices of kind cpu \(.+\), Python [\d.]+", on
    )
    assert how == "In turns, up to 2 rounds; medians; numbers of dispatches: JAX, ours"
    cells = [re.split("  +", line.strip()) for line in (head, *lines)]
    assert cells == [
        ["JAX, us", "ours, us", "JAX / ours", "quartiles", "NumPy, us", "dispatches"],
        ["rows a", "3.00", "2.00", "1.50", "1.50 to 1.50", "4.00", "200, 0"],
        ["rows b", "3.00", "2.00", "1.50", "1.50 to 1.50", "4.00", "200, 0"],
    ]


def test_a_line_is_printed_before_the_next_is_measured(monkeypatch, capsys):
    seen = []

    def run(_plan):
        for letter in "ab":
            seen.append(capsys.readouterr().out)
            yield Comparison(name=f"line {letter}")

    suite = Suite(name="mine", title="Mine", columns=RATIO, run=run)
    monkeypatch.setattr(bench, "SUITES", {"mine": suite})
    main(["bench"])
    assert ["line a" in text for text in seen] == [False, True]


def test_nothing_is_written_unless_asked(known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["bench"])
    assert list(tmp_path.iterdir()) == []


def test_what_was_measured_is_written_where_asked(known, tmp_path, capsys):
    main(["bench", "--rounds", "2", "--output", str(tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.json", "strategies.json"]
    stored = json.loads((tmp_path / "rows.json").read_text("utf-8"))
    assert (stored["title"], stored["beside"], stored["counts"]) == (
        "On rows",
        ["NumPy"],
        ["dispatches"],
    )
    assert [one["name"] for one in stored["comparisons"]] == ["rows a", "rows b"]
    assert [one["first"] for one in stored["comparisons"]] == [[3e-6] * 2] * 2
    assert stored["environment"]["devices"] == 8
    assert f"Written: {tmp_path / 'rows.json'}" in capsys.readouterr().out


def test_a_list_has_all_suites_with_their_titles_and_runs_none(known, capsys):
    main(["bench", "--list"])
    assert capsys.readouterr().out == "rows        On rows\nstrategies  On strategies\n"
    assert known == []


def test_the_list_is_that_of_the_suites(capsys):
    main(["bench", "--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SUITES)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rwos", "there is no suite 'rwos', only rows, strategies. Did you mean 'rows'?"),
        (
            "strategy",
            "there is no suite 'strategy', only rows, strategies. Did you mean 'strategies'?",
        ),
        ("xyz", "there is no suite 'xyz', only rows, strategies."),
        ("", "there is no suite '', only rows, strategies."),
    ],
)
def test_an_unknown_suite_is_refused_with_the_names_and_the_nearest(known, capsys, name, message):
    assert refusal(capsys, "rows", name) == f"argument NAME: {message}"
    assert known == []


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ("0", "there must be at least 1, not 0"),
        ("-3", "there must be at least 1, not -3"),
        ("many", "a whole number is needed, not 'many'"),
        ("1.5", "a whole number is needed, not '1.5'"),
    ],
)
def test_rounds_that_are_none_are_refused(known, capsys, rounds, message):
    assert refusal(capsys, f"--rounds={rounds}") == f"argument --rounds: {message}"


def test_a_missing_folder_is_refused_before_anything_is_measured(known, capsys, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "result").write_text("a file is no folder that could be meant")
    missing = tmp_path / "resluts"
    assert refusal(capsys, "--output", str(missing)) == (
        f"argument --output: there is no folder {missing}. Did you mean 'results'?"
    )
    assert refusal(capsys, "--output", str(tmp_path / "no" / "where")) == (
        f"argument --output: there is no folder {tmp_path / 'no' / 'where'}."
    )
    assert known == []


def test_a_file_is_no_folder(known, capsys, tmp_path):
    file = tmp_path / "results.json"
    file.touch()
    assert refusal(capsys, "--output", str(file)) == (
        f"argument --output: {file} is a file, and a folder is needed"
    )


def test_a_folder_that_cannot_be_written_to_is_refused(known, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK | os.X_OK)
    assert refusal(capsys, "--output", str(tmp_path)) == (
        f"argument --output: {tmp_path} cannot be written to"
    )


def test_an_unknown_option_is_refused(known, capsys):
    assert refusal(capsys, "--fast") == "there is no option --fast"


# Devices.


def test_a_suite_for_more_devices_runs_in_a_process_that_has_them(monkeypatch, tmp_path):
    commands = []

    def run(command, env, check):
        commands.append((command, env))
        return subprocess.CompletedProcess(command, 0)

    replaced, asked = suites("wide", devices=9)
    monkeypatch.setattr(bench, "SUITES", replaced)
    monkeypatch.setattr(bench.subprocess, "run", run)
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1")
    main(["bench", "wide", "--rounds", "2", "--output", str(tmp_path)], ["-X", "dev"])
    [(command, env)] = commands
    expected = ["-m", "devicearray", "bench", "wide", "--rounds", "2", "--output", str(tmp_path)]
    assert command == [sys.executable, "-X", "dev", *expected]
    assert env["XLA_FLAGS"] == "--xla_a=1 --xla_force_host_platform_device_count=9"
    assert env["JAX_PLATFORMS"] == "cpu"
    assert asked == []


def test_what_comes_of_that_process_comes_of_the_command(monkeypatch):
    monkeypatch.setattr(bench, "SUITES", suites("wide", devices=9)[0])
    monkeypatch.delenv("XLA_FLAGS")
    failed = subprocess.CompletedProcess([], 3)
    monkeypatch.setattr(bench.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit) as caught:
        main(["bench"])
    assert caught.value.code == 3


def test_devices_that_are_too_few_by_the_users_own_choice_are_an_error(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SUITES", suites("wide", devices=9)[0])
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    assert refusal(capsys) == (
        "wide needs 9 devices, and --xla_force_host_platform_device_count in XLA_FLAGS makes 8"
    )


# As a reader runs it.


def test_it_runs_outside_of_the_repository_on_one_device_and_on_eight(tmp_path, reader_environment):
    (tmp_path / "out").mkdir()
    command = ["bench", "rows_devices", "overhead", "--rounds", "1", "--output", "out"]
    process = subprocess.run(
        [sys.executable, "-m", "devicearray", *command],
        cwd=tmp_path,
        env=reader_environment,
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (0, "")
    stored = {
        name: json.loads((tmp_path / "out" / f"{name}.json").read_text("utf-8"))
        for name in ("rows_devices", "overhead")
    }
    devices = [one["environment"]["devices"] for one in stored.values()]
    assert devices == [8, 1]
    for name, one in stored.items():
        assert SUITES[name].title in process.stdout
        for line in one["comparisons"]:
            assert line["name"] in process.stdout


def test_importing_the_package_does_not_import_the_benchmarks(reader_environment):
    code = "import sys, devicearray; print([n for n in sys.modules if '_bench' in n])"
    process = subprocess.run(
        [sys.executable, "-c", code], env=reader_environment, capture_output=True, text=True
    )
    assert process.stdout == "[]\n"
