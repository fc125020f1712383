"""A suite of benchmarks: what it is called, how large it is made, and what came of it.

A suite yields its comparisons one by one, so that they are printed while the next is measured. Its
sizes are a value, `Plan`, and not constants of a module: the tests run each suite as it is, on
arrays that take no time. pytest-benchmark, which makes benchmarks tests, was refused: it needs
pytest where the package is installed, and compares runs, not neighbours.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

import devicearray as da
from devicearray._bench.interleaved import Comparison, Timing
from devicearray._bench.table import Columns

__all__ = [
    "Counts",
    "Plan",
    "Suite",
    "counts_of",
    "environment",
    "is_installed",
    "paired",
    "write",
]

type Counts = dict[str, int | None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to measure. The defaults are those of design and page.

    Attributes
    ----------
    rounds : int
        How many batches of each way to time, at most.
    seconds : float
        About how long a comparison may take, warming up not included.
    big : int
        The length of the long array.
    rows : int
        How many rows the matrix has.
    columns : int
        How long they are.
    splits : int
        How often a key is split.
    pending : int
        How many rows an array has that is not computed yet.
    longest : int
        Up to which length an array grows.
    limit : float
        How long a call may take, in seconds, as an array grows.
    patience : float
        How long a device stands at a gate before the host is taken to wait, in seconds.
    """

    rounds: int = 401
    seconds: float = 4.0
    big: int = 10_000
    rows: int = 1_000
    columns: int = 100
    splits: int = 1_000
    pending: int = 3_000
    longest: int = 1_000_000
    limit: float = 20.0
    patience: float = 2.0

    def host_big(self) -> np.ndarray[Any, Any]:
        """Return the values of the long array."""
        return np.arange(1, self.big + 1, dtype=np.int32)

    def host_matrix(self) -> np.ndarray[Any, Any]:
        """Return the values of the matrix."""
        return np.ones((self.rows, self.columns), np.float32)

    def timing(self, **changed: Any) -> Timing:
        """Return the timing of a comparison; what is given takes the place of the defaults."""
        return Timing(**{"rounds": self.rounds, "seconds": self.seconds} | changed)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A table of comparisons.

    Attributes
    ----------
    name : str
        What the command line calls it.
    title : str
        What it shows.
    columns : tuple of str
        What the table calls the first and the second, and which result it shows.
    run : callable
        Given a `Plan`, yields the comparisons.
    beside : tuple of str
        Others that were timed, for scale.
    counts : tuple of str
        What was counted.
    devices : int
        How many devices it needs.
    """

    name: str
    title: str
    columns: Columns
    run: Callable[[Plan], Iterator[Comparison]]
    beside: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    devices: int = 1


def counts_of(call: Callable[[], Any], on_wait: Callable[[], Any] | None = None) -> Counts:
    """Record one call; return what it did. None: this JAX cannot tell.

    Examples
    --------
    >>> import devicearray as da
    >>> from devicearray._bench.suite import counts_of
    >>> x = da.numpy.arange(3.0)
    >>> counted = counts_of(lambda: float(x.sum()))
    >>> counted["dispatches"], counted["host syncs"]
    (1, 1)
    """
    with da.record(on_wait=on_wait) as log:
        call()
    return {
        "dispatches": _number(lambda: log.dispatches),
        "compiles": len(log.compiles),
        "outputs": max((one.outputs or 0 for one in log.compiles), default=0),
        "host syncs": _number(lambda: log.syncs),
        "transfers": _number(lambda: log.transfers),
    }


def paired(first: Counts, second: Counts) -> dict[str, tuple[int | None, int | None]]:
    """Return what was counted of both, as a `Comparison` has it."""
    return {name: (number, second[name]) for name, number in first.items()}


def _number(events: Callable[[], tuple[Any, ...]]) -> int | None:
    try:
        return len(events())
    except RuntimeError:
        return None


def environment() -> dict[str, Any]:
    """Return on what a suite is run."""
    optional = {name: version(name) for name in ("torch",) if is_installed(name)}
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "device": jax.devices()[0].device_kind,
        "devices": jax.device_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": version("numpy"),
        "devicearray": da.__version__,
    } | optional


def is_installed(name: str) -> bool:
    """Tell whether a package can be imported, without importing it."""
    return importlib.util.find_spec(name) is not None


def write(suite: Suite, comparisons: Iterable[Comparison], folder: Path) -> Path:
    """Write the results to a file in `folder`; return the file."""
    results = {
        "title": suite.title,
        "columns": suite.columns,
        "beside": suite.beside,
        "counts": suite.counts,
        "environment": environment(),
        "comparisons": [one.to_json() for one in comparisons],
    }
    path = folder / f"{suite.name}.json"
    path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    return path
