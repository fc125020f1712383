"""Two ways of doing one thing, timed in turns.

A time on its own says as much about the machine's other work as about the code. Here A and B
take turns in one process, a few dozen calls each, and what is kept is the ratio of
neighbours: whatever slows the machine slows both. The median of the ratios is the result, and
its quartiles say how far to trust it. pyperf, the standard tool for microbenchmarks, isolates
runs in fresh processes instead, which gives better absolute times and worse comparisons: two
processes differ in memory layout by more than the few per cent of interest here.

Calls are made in batches because one call is shorter than the clock can time. A batch of tiny
programs needs no wait inside: on CPU they run in the dispatch itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Columns", "Comparison", "cells", "compare", "result_title"]

#: What a table calls the first and the second, and what is to be seen in it: "ratio", the first
#: over the second, or "difference", the second less the first.
type Columns = tuple[str, str, str] | list[str]


@dataclass(frozen=True)
class Comparison:
    """What `compare` measured. Times are seconds per call, to a tenth of a nanosecond."""

    name: str
    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def ratios(self) -> np.ndarray[Any, Any]:
        """The first time over the second, for each pair of neighbours."""
        return np.divide(self.first, self.second)

    @property
    def differences(self) -> np.ndarray[Any, Any]:
        """The second time less the first, in seconds per call, for each pair of neighbours."""
        return np.subtract(self.second, self.first)

    def to_json(self) -> dict[str, Any]:
        """Return everything, raw samples included, as JSON takes it."""
        return asdict(self) | {
            "ratio": _with_quartiles(self.ratios),
            "difference": _with_quartiles(self.differences),
        }


def _with_quartiles(values: np.ndarray[Any, Any]) -> list[float]:
    """Return the lower quartile, the median and the upper quartile."""
    return [float(value) for value in np.percentile(values, (25, 50, 75))]


def compare(
    name: str,
    first: Callable[[], Any],
    second: Callable[[], Any],
    *,
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
    rounds: int = 401,
    calls: int = 50,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time two calls in turns, `rounds` times `calls` calls of each.

    Which of the two goes first alternates, so that neither always follows the other. Each batch
    of the second is made within a context, `within()`; entering and leaving is not timed.
    """

    def batch(call: Callable[[], Any], context: Callable[[], Any]) -> float:
        with context():
            start = clock()
            for _ in range(calls):
                call()
            return round((clock() - start) / calls, 10)

    def first_batch() -> None:
        first_times.append(batch(first, nullcontext))

    def second_batch() -> None:
        second_times.append(batch(second, within))

    first_times: list[float] = []
    second_times: list[float] = []
    both = first_batch, second_batch
    for one in both:
        one()  # compile, and fill the caches
    first_times.clear()
    second_times.clear()
    for turn in range(rounds):
        for one in both if turn % 2 else reversed(both):
            one()
    return Comparison(name, tuple(first_times), tuple(second_times))


def result_title(columns: Columns) -> str:
    """Return what the third column of a table is called."""
    first, second, result = columns
    return f"{first} / {second}" if result == "ratio" else "added"


def cells(stored: dict[str, Any], columns: Columns) -> tuple[str, str, str, str]:
    """Return a row of the table: both times in microseconds, the result, and its quartiles."""
    low, median, high = (
        value if columns[2] == "ratio" else 1e6 * value for value in stored[columns[2]]
    )
    first, second = (1e6 * float(np.median(stored[which])) for which in ("first", "second"))
    return f"{first:.2f}", f"{second:.2f}", f"{median:.2f}", f"{low:.2f} to {high:.2f}"
