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
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """What `compare` measured. Times are seconds per call, to a tenth of a nanosecond."""

    name: str
    jax: tuple[float, ...]
    ours: tuple[float, ...]

    @property
    def ratios(self) -> np.ndarray[Any, Any]:
        """JAX's time over ours, for each pair of neighbours. Above 1, ours is faster."""
        return np.asarray(self.jax) / np.asarray(self.ours)

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return float(np.median(self.ratios))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The quartiles of the ratios."""
        low, high = np.percentile(self.ratios, (25, 75))
        return float(low), float(high)

    def to_json(self) -> dict[str, Any]:
        """Return everything, raw samples included, as JSON takes it."""
        return asdict(self) | {"ratio": self.ratio, "quartiles": self.quartiles}


def compare(
    name: str,
    jax_call: Callable[[], Any],
    our_call: Callable[[], Any],
    *,
    rounds: int = 401,
    calls: int = 50,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time two calls in turns, `rounds` times `calls` calls of each.

    Which of the two goes first alternates, so that neither always follows the other.
    """

    def batch(call: Callable[[], Any]) -> float:
        start = clock()
        for _ in range(calls):
            call()
        return round((clock() - start) / calls, 10)

    batch(jax_call), batch(our_call)  # compile, and fill the caches of both
    jax_times, our_times = [], []
    for turn in range(rounds):
        if turn % 2:
            our_times.append(batch(our_call))
            jax_times.append(batch(jax_call))
        else:
            jax_times.append(batch(jax_call))
            our_times.append(batch(our_call))
    return Comparison(name, tuple(jax_times), tuple(our_times))
