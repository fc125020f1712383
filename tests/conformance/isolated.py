"""Run one case in a process of its own: ``python -m tests.conformance.isolated NAME``.

Prints, as JSON, what JAX did and where ours differs. A process that dies says so by its status.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conformance.cases import CASES
from tests.conformance.harness import differences, observe
from tests.conformance.makers import ours, plain

ROOT = Path(__file__).parents[2]


def compare_isolated(name: str) -> list[str]:
    """Run the case called `name` in a new process; its death is a difference like any other."""
    command = [sys.executable, "-m", "tests.conformance.isolated", name]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
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
    actual = observe(case.function, ours)
    print(json.dumps(differences(expected, actual)))


if __name__ == "__main__":
    main(sys.argv[1])
