"""Two ways of doing one thing, or more of them, timed in turns.

A time on its own says as much about the machine's other work as about the code. Here A and B
take turns in one process, and what is kept is the ratio of neighbours: whatever slows the machine
slows both. The median of the ratios is the result, and its quartiles say how far to trust it.
pyperf, the standard tool for microbenchmarks, isolates runs in fresh processes instead, which
gives better absolute times and worse comparisons: two processes differ in memory layout by more
than the few per cent of interest here.

Calls are made in batches because one call is shorter than the clock can time. What a call
returns is let go of within the timed part, as in a loop, and the garbage collector stays on: both
are part of what an array costs, and ``timeit``, which turns it off, would hide that. Before a
batch begins, the devices have finished what was dispatched to them before.
"""

from __future__ import annotations

import functools
import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import jax
import numpy as np

__all__ = [
    "Call",
    "Comparison",
    "Contender",
    "Timing",
    "block",
    "compare",
    "in_turns",
]

type Call = Callable[[], Any]

#: The places of a second that are kept: a tenth of a nanosecond.
_PLACES: Final = 10

#: JAX's function, which JAX does not annotate.
block: Callable[[Any], Any] = jax.block_until_ready


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way of doing it.

    Attributes
    ----------
    make : callable
        Called before each batch, and not timed: returns the call of which the batch consists. A
        call on an array that an earlier batch used might profit from what the array remembers.
    within : callable
        Returns a context for the batch. Entering and leaving is not timed.
    """

    make: Callable[[], Call]
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How often to time a call, and what belongs to it.

    Attributes
    ----------
    rounds : int
        How many batches of each way to time, at most.
    seconds : float
        After so long no further round begins, once there were `fewest`.
    fewest : int
        How many rounds there are in any case, if `rounds` allows.
    calls : int
        How many calls a batch has.
    per : int
        How often a call does what is measured: a loop over 1,000 rows does it 1,000 times.
    until_ready : bool
        Whether the batch ends when the last result is ready, or when the last call returns.
    before : callable
        Called before each batch, and not timed.
    warm_up : bool
        Whether to begin with a batch of each that does not count: it compiles.
    clock : callable
        Returns the time in seconds.
    """

    rounds: int = 401
    seconds: float = math.inf
    fewest: int = 5
    calls: int = 50
    per: int = 1
    until_ready: bool = False
    before: Callable[[], Any] = lambda: None
    warm_up: bool = True
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A line of a table. Times are seconds, to a tenth of a nanosecond.

    Attributes
    ----------
    name : str
        What was measured.
    first, second : tuple of float
        The samples: neighbours were measured one after the other. Empty: not measured.
    beside : mapping
        The samples of others that took turns with the two, by their names.
    counts : mapping
        What a recording of one call of each counted: ``{"dispatches": (200, 0)}``. None: this JAX
        could not tell.
    labels : mapping
        What the name says, in parts, for those who draw: ``{"strategy": "chunked", "n": 1000}``.
    """

    name: str
    first: tuple[float, ...] = ()
    second: tuple[float, ...] = ()
    beside: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    counts: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    labels: Mapping[str, str | int | bool] = field(default_factory=dict)

    @property
    def ratios(self) -> np.ndarray[Any, Any]:
        """The first time over the second, for each pair of neighbours."""
        return np.divide(*self._pairs())

    @property
    def differences(self) -> np.ndarray[Any, Any]:
        """The second time less the first, for each pair of neighbours."""
        first, second = self._pairs()
        return np.subtract(second, first)

    def _pairs(self) -> tuple[Sequence[float], Sequence[float]]:
        return (self.first, self.second) if self.first and self.second else ((), ())

    def to_json(self) -> dict[str, Any]:
        """Return everything, raw samples included, as JSON takes it."""
        return asdict(self) | {
            "ratio": _with_quartiles(self.ratios),
            "difference": _with_quartiles(self.differences),
        }


def _with_quartiles(values: np.ndarray[Any, Any]) -> list[float]:
    """Return the lower quartile, the median and the upper quartile; nothing of nothing."""
    if not len(values):
        return []
    return [float(value) for value in np.percentile(values, (25, 50, 75))]


def compare(
    name: str,
    first: Call,
    second: Call,
    timing: Timing,
    *,
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Comparison:
    """Time two calls in turns, each batch of the second within a context.

    Examples
    --------
    >>> from devicearray._bench.interleaved import Timing, compare
    >>> ticks = iter([0.0, 4.0, 10.0, 12.0])
    >>> timing = Timing(rounds=1, calls=2, warm_up=False, clock=lambda: next(ticks))
    >>> one = compare("all and nothing", int, float, timing)
    >>> one.second, one.first          # the second begins
    ((2.0,), (1.0,))
    """
    contenders = (
        Contender(make=lambda: first),
        Contender(make=lambda: second, within=within),
    )
    first_times, second_times = in_turns(contenders, timing)
    return Comparison(name=name, first=first_times, second=second_times)


def in_turns(contenders: Sequence[Contender], timing: Timing) -> list[tuple[float, ...]]:
    """Time the contenders in turns; return the samples of each, seconds for what is measured.

    Which goes first alternates, so that none always follows the same one.
    """
    if timing.warm_up:
        for one in contenders:
            _batch(one, timing)
    samples: list[list[float]] = [[] for _ in contenders]
    lanes = list(zip(contenders, samples, strict=True))
    gc.collect()  # What is garbage by now is nobody's cost.
    began = timing.clock() if timing.seconds < math.inf else 0.0
    for turn in range(timing.rounds):
        if turn >= timing.fewest and timing.clock() - began >= timing.seconds:
            break
        for one, times in lanes if turn % 2 else reversed(lanes):
            times.append(_batch(one, timing))
    return [tuple(times) for times in samples]


def _batch(contender: Contender, timing: Timing) -> float:
    timing.before()
    call = contender.make()
    _finish_earlier_work()
    with contender.within():
        start = timing.clock()
        for _ in range(timing.calls):
            result = call()
        if timing.until_ready:
            block(result)
        del result
        seconds = timing.clock() - start
    return round(seconds / (timing.calls * timing.per), _PLACES)


def _finish_earlier_work() -> None:
    """Wait for a program that each device begins after those that were dispatched earlier."""
    block([program(x) for program, x in _last_programs()])


@functools.cache
def _last_programs() -> list[tuple[Callable[[Any], Any], Any]]:
    """Return a program for each device, and what to call it with.

    They are compiled ahead of time, so that they are there still when all caches are cleared.
    """
    inputs = [jax.device_put(np.float32(0), device) for device in jax.local_devices()]
    return [(jax.jit(_next).lower(x).compile(), x) for x in inputs]


def _next(x: Any) -> Any:
    return x + 1
