"""Run the benchmarks: ``python -m benchmarks [--rounds N] [name ...]``."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import devicearray as da
from benchmarks import loops, overhead, recording
from benchmarks.interleaved import Columns, Comparison, cells, result_title

_RESULTS = Path(__file__).parent / "results"
_SUITES: dict[str, ModuleType] = {"overhead": overhead, "recording": recording}
_ROW = "{:<28} {:>12} {:>12} {:>12}   {}"


def _environment() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "devicearray": da.__version__,
    }


def _shown(comparisons: Iterable[Comparison], columns: Columns) -> Iterator[Comparison]:
    """Print a row for each comparison as it comes: the table is its own progress."""
    first, second, _ = columns
    print(_ROW.format("", f"{first}, us", f"{second}, us", result_title(columns), "quartiles"))
    for one in comparisons:
        print(_ROW.format(one.name, *cells(one.to_json(), columns)), flush=True)
        yield one


def _run(name: str, rounds: int) -> None:
    suite = _SUITES[name]
    print(f"\n{suite.TITLE}: {rounds} rounds, interleaved\n")
    comparisons = [one.to_json() for one in _shown(suite.run(rounds), suite.COLUMNS)]
    results = {
        "title": suite.TITLE,
        "columns": suite.COLUMNS,
        "environment": _environment(),
        "comparisons": comparisons,
    }
    path = _RESULTS / f"{name}.json"
    path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(f"\nWritten: {path.relative_to(Path.cwd(), walk_up=True)}")


def _record_loops() -> None:
    print(f"\n{loops.TITLE}\n")
    for path in loops.write(_RESULTS):
        print(f"Written: {path.relative_to(Path.cwd(), walk_up=True)}")


def main() -> None:
    """Read the command line and run what it names."""
    names = [*_SUITES, "loops"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*names, []], help="which; default: all")
    parser.add_argument("--rounds", type=int, default=401, help="pairs of batches to time")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    for name in options.names or names:
        if name in _SUITES:
            _run(name, options.rounds)
        else:
            _record_loops()


main()
