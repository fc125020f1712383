"""The historical ways to iterate, each against the JAX that is installed.

The measurements are those of jax#3821, which weighed the strategies: the time to the first row,
and to all of them, of a short array and of a long one, while nothing is compiled and when all is;
and the time of 1,000 times ``key, subkey = split(key)``. There each strategy was timed on its own,
after JAX had been edited, and the dispatches were estimated. Here all take turns, and compiles,
outputs and dispatches are counted in a recording.

As there, nothing waits for the rows: these are the times in which Python gets them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import jax

from devicearray._bench.interleaved import Call, Comparison, Contender, in_turns
from devicearray._bench.rows_cold import clear_all_caches
from devicearray._bench.side import JAX, OURS, Side, counts_in
from devicearray._bench.suite import Plan, Suite, paired
from devicearray._iteration import STRATEGIES, iterate

__all__ = ["BASE", "SUITE", "side_of"]

#: What all are compared with.
BASE: Final = "jax"


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    """Something that each strategy is made to do.

    Attributes
    ----------
    name : str
        How it is written.
    make : callable
        Given the name of a strategy, makes an array and returns a call that does it.
    calls, per : int
        As `Timing` has them.
    may_be_cold : bool
        Whether to measure it while nothing is compiled, too.
    """

    name: str
    make: Callable[[str], Call]
    calls: int = 1
    per: int = 1
    may_be_cold: bool = True


def side_of(strategy: str) -> Side:
    """Return the side on whose arrays the strategy is at home."""
    return OURS if strategy == "rows" else JAX


def _measurements(plan: Plan) -> Iterator[_Measurement]:
    big = plan.host_big()
    for name, host, calls in (("small", big[:10], 50), ("big", big, 1)):
        first, every = (functools.partial(_make, use, host) for use in (_first, _all))
        yield _Measurement(name=f"next(iter({name}))", make=first, calls=50)
        yield _Measurement(name=f"list({name})", make=every, calls=calls)
    split = functools.partial(_splitting, plan.splits)
    yield _Measurement(
        name="key, subkey = split(key)", make=split, per=plan.splits, may_be_cold=False
    )


def _make(use: Callable[[Any, str], Any], host: Any, strategy: str) -> Call:
    return functools.partial(use, side_of(strategy).array(host), strategy)


def _first(x: Any, strategy: str) -> Any:
    return next(iterate(x, strategy))


def _all(x: Any, strategy: str) -> Any:
    return list(iterate(x, strategy))


def _splitting(times: int, strategy: str) -> Call:
    start = jax.random.PRNGKey(0)

    def call() -> Any:
        key: Any = start
        for _ in range(times):
            key, _subkey = iterate(jax.random.split(key), strategy)
        return key

    return call


def _run(plan: Plan) -> Iterator[Comparison]:
    for one in _measurements(plan):
        yield from _compare_all(one, plan, cold=False)
        if one.may_be_cold:
            yield from _compare_all(one, plan, cold=True)


def _compare_all(one: _Measurement, plan: Plan, *, cold: bool) -> Iterator[Comparison]:
    """Compare all strategies; cold after warm, when what Python loads once is loaded."""
    timing = plan.timing(calls=one.calls, per=one.per)
    if cold:
        timing = plan.timing(calls=1, before=clear_all_caches, warm_up=False)
    contenders = [Contender(make=functools.partial(one.make, name)) for name in STRATEGIES]
    times = dict(zip(STRATEGIES, in_turns(contenders, timing), strict=True))
    counts = dict(zip(STRATEGIES, (counts_in(c, timing) for c in contenders), strict=True))
    for name in STRATEGIES:
        yield Comparison(
            name=f"{one.name}, {'cold' if cold else 'warm'}: {name}",
            first=times[BASE],
            second=times[name],
            counts=paired(counts[BASE], counts[name]),
            labels={"strategy": name, "pattern": one.name, "cold": cold},
        )


SUITE = Suite(
    name="strategies",
    title=(
        f"Ways to iterate: big has {Plan.big:,} scalars, small 10; "
        "cold: all caches cleared before each sample"
    ),
    columns=("JAX", "strategy", "ratio"),
    run=_run,
    counts=("compiles", "outputs", "dispatches", "host syncs"),
)
