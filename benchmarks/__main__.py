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
from benchmarks import overhead
from benchmarks.interleaved import Comparison

_RESULTS = Path(__file__).parent / "results"
_SUITES: dict[str, ModuleType] = {"overhead": overhead}
_ROW = "{:<16} {:>10} {:>10} {:>9}   {}"


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


def _shown(comparisons: Iterable[Comparison]) -> Iterator[Comparison]:
    """Print a row for each comparison as it comes: the table is its own progress."""
    print(_ROW.format("", "JAX, us", "ours, us", "JAX/ours", "quartiles"))
    for one in comparisons:
        low, high = one.quartiles
        jax_time, our_time = (1e6 * float(np.median(times)) for times in (one.jax, one.ours))
        numbers = f"{jax_time:.2f}", f"{our_time:.2f}", f"{one.ratio:.2f}"
        print(_ROW.format(one.name, *numbers, f"{low:.2f} to {high:.2f}"), flush=True)
        yield one


def _run(name: str, rounds: int) -> None:
    suite = _SUITES[name]
    print(f"\n{suite.TITLE}: {rounds} rounds, interleaved\n")
    comparisons = [one.to_json() for one in _shown(suite.run(rounds))]
    results = {"title": suite.TITLE, "environment": _environment(), "comparisons": comparisons}
    path = _RESULTS / f"{name}.json"
    path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(f"\nWritten: {path.relative_to(Path.cwd(), walk_up=True)}")


def main() -> None:
    """Read the command line and run what it names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*_SUITES, []], help="which; default: all")
    parser.add_argument("--rounds", type=int, default=401, help="pairs of batches to time")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    for name in options.names or _SUITES:
        _run(name, options.rounds)


main()
