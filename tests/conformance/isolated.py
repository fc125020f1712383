"""Run one case in a process of its own: ``python -m tests.conformance.isolated NAME``.

Prints what JAX did, then, as JSON, where ours differs. A process that dies says so by its status;
where JAX itself ends it, there is nothing to compare with.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.cases import CASES
from tests.conformance.harness import differences, observe
from tests.conformance.makers import ours, plain

ROOT = Path(__file__).parents[2]


def compare_isolated(name: str) -> list[str]:
    """Run the case called `name` in a new process; if ours ends it, that is a difference."""
    command = [sys.executable, "-m", "tests.conformance.isolated", name]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    if run.returncode < 0 and not run.stdout:
        pytest.skip("JAX itself ends the process")
    if run.returncode < 0:
        return [f"the process ended by signal {-run.returncode}"]
    if run.returncode:
        raise AssertionError(f"The process of case {name!r} failed:\n{run.stderr}")
    answer: list[str] = json.loads(run.stdout.splitlines()[-1])
    return answer


def main(name: str) -> None:
    case = CASES[name]
    expected = observe(case.function, plain)
    if ("error" in expected) is not (case.raises is not None):
        raise AssertionError(f"On a plain array: {expected}")
    print(expected, flush=True)
    actual = observe(case.function, ours)
    print(json.dumps(differences(expected, actual)))


if __name__ == "__main__":
    main(sys.argv[1])
