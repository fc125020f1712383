"""A plugin of pytest: write to a file what came of each test.

``pytest -p versions.plugin --outcomes FILE``. pytest's own ``--junitxml`` names a test by its class
and its function; a file that could not be collected, or the end of a worker, has neither.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from versions.environments import ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--outcomes``."""
    parser.addoption("--outcomes", type=Path, help="where to write what came of each test")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to write, in the process that gathers what the workers report."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes(config.getoption("outcomes")))


class _Outcomes:
    def __init__(self, path: Path) -> None:
        self.path = path
        #: By the test's name, its outcome and why.
        self.outcomes: dict[str, tuple[str, str]] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        collected = isinstance(report, pytest.CollectReport) and report.passed
        if not collected and self.outcomes.get(report.nodeid, ("",))[0] != "failed":
            self.outcomes[report.nodeid] = (report.outcome, _reason(report.longrepr))

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.outcomes), "utf-8")


def _reason(report: Any) -> str:
    """Return why a test failed or was skipped, in one line and without the path of this folder."""
    if report is None:
        return ""
    if isinstance(report, tuple):
        text = str(report[-1]).removeprefix("Skipped: ")
    elif crash := getattr(report, "reprcrash", None):
        text = crash.message
    else:  # The traceback of a file that cannot be imported, or what ended a worker.
        text = str(report).splitlines()[-1].removeprefix("E ").strip()
    return text.partition("\n")[0].replace(str(ROOT), ".")
