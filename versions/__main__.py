"""``python -m versions [VERSION ...]``: test releases of JAX, and write what holds on each.

Without a version: the newest three minor releases, and no others. With versions, as in ``python
-m versions 0.12 0.11``: these, and what is known of others stays.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from versions.areas import AREAS, area_of, files
from versions.environments import ROOT, Release, environment, newest, newest_of
from versions.table import replace_table, table

RESULTS: Final = ROOT / "versions" / "results.json"
README: Final = ROOT / "README.md"
_COUNT: Final = 3
_OPTIONS: Final = (
    *("-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider"),
    "--continue-on-collection-errors",
)
#: What an environment says of itself.
_ASK: Final = """
import json, jax, numpy, platform
from devicearray._jax import LOST
print(json.dumps({"jax": jax.__version__, "numpy": numpy.__version__,
                  "python": platform.python_version(), "lost": list(LOST)}))
"""


def main(versions: Sequence[str]) -> None:
    """Test `versions`, or the newest; write the results, and README.md's table of them."""
    releases = [newest_of(version) for version in versions] or newest(_COUNT)
    print("Testing on JAX " + ", ".join(release.jax for release in releases), flush=True)
    results = [_test(release) for release in releases]
    if versions and RESULTS.exists():
        tested = {release.minor for release in releases}
        known = json.loads(RESULTS.read_text("utf-8"))
        results += [one for one in known if Release(one["jax"], "").minor not in tested]
    results.sort(key=lambda one: [*map(int, one["jax"].split("."))], reverse=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    README.write_text(replace_table(README.read_text("utf-8"), results), "utf-8")
    print(f"\n{table(results)}\n\nWritten: versions/results.json, and the table in README.md")


def _test(release: Release) -> dict[str, Any]:
    """Run the tests with `release`; return what it is and what came of them."""
    print(f"\nJAX {release.jax}", flush=True)
    python = environment(release)
    # What a shell has set up for one environment is not for another.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run([python, "-c", _ASK], cwd=ROOT, env=env, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(f"The package does not start there:\n{answer.stderr}")
    facts = json.loads(answer.stdout)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outcomes.json")
        command = [str(python), "-m", "pytest", "-p", "versions.plugin", "--outcomes", str(path)]
        status = subprocess.run(
            [*command, *_OPTIONS, *files()], cwd=ROOT, env=env, stdin=subprocess.DEVNULL
        ).returncode
        if status not in (0, 1):
            raise SystemExit(f"pytest did not come to its end: exit status {status}.")
        outcomes = json.loads(path.read_text("utf-8"))
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, CPU",
        "jaxlib": release.jaxlib,
        **facts,
        "areas": by_area(outcomes),
    }


def by_area(outcomes: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Sort what came of each test, its outcome and why, by area."""
    areas: dict[str, dict[str, Any]] = {
        area: {"passed": 0, "failed": {}, "skipped": {}} for area in AREAS
    }
    for test, (outcome, reason) in sorted(outcomes.items()):
        area = areas[area_of(test)]
        if outcome == "passed":
            area["passed"] += 1
        else:
            area[outcome][test] = reason
    return areas


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="0.12, say")
    main(parser.parse_args().versions)
