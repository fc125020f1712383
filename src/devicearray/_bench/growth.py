"""How the cost of iterating grows with the length of the array, for each strategy.

Points for a plot: the number of rows from 10 to 1,000,000 in powers of ten, a list of all rows, and
a loop that uses each. What is linear stays a straight line of slope 1; what has a constant part
starts flat. A strategy that would take too long at the next length is cut off there, and its line
says so by having no time.

At great lengths a sample takes seconds, and is one of a few or the only one: what is asked is the
slope over five powers of ten, not a per cent.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from devicearray._bench.interleaved import Call, Comparison, Contender, in_turns
from devicearray._bench.side import JAX, use_each
from devicearray._bench.strategies import BASE, side_of
from devicearray._bench.suite import Plan, Suite
from devicearray._iteration import STRATEGIES, iterate

__all__ = ["SUITE"]

#: A batch is of as many calls as make about so many rows.
_ROWS_IN_A_BATCH: Final = 1_000
#: How long a comparison may take, as a multiple of the plan's: all strategies take part in it.
_SECONDS: Final = 2.5

#: So many rows are of several chunks.
_FIRST_ROWS: Final = 300

type _Use = Callable[[Iterable[Any]], Any]


#: What is done with the rows.
_PATTERNS: Final[Mapping[str, _Use]] = {
    "list(x)": list,
    "for v in x: f(v)": functools.partial(use_each, JAX.f),
}


def _run(plan: Plan) -> Iterator[Comparison]:
    for pattern, use in _PATTERNS.items():
        expected = dict.fromkeys(STRATEGIES, 0.0)
        for length in _lengths(plan.longest):
            names = [name for name, seconds in expected.items() if seconds <= plan.limit]
            samples = _measure(use, length, names, plan)
            yield from _comparisons(pattern, length, samples)
            expected = {name: 10 * float(np.median(times)) for name, times in samples.items()}


def _comparisons(
    pattern: str, length: int, samples: Mapping[str, tuple[float, ...]]
) -> Iterator[Comparison]:
    for name in STRATEGIES:
        yield Comparison(
            name=f"{pattern}, {length:,} rows: {name}{'' if name in samples else ' (cut off)'}",
            first=samples.get(BASE, ()),
            second=samples.get(name, ()),
            labels={"strategy": name, "pattern": pattern, "n": length},
        )


def _lengths(longest: int) -> Iterator[int]:
    length = 10
    while length <= longest:
        yield length
        length *= 10


def _measure(
    use: _Use, length: int, names: Iterable[str], plan: Plan
) -> dict[str, tuple[float, ...]]:
    """Return the samples of each strategy that is not cut off yet."""
    makes = {name: functools.partial(_make, use, length, name) for name in names}
    for name in makes:
        _compile(use, length, name)
    timing = plan.timing(
        calls=max(1, _ROWS_IN_A_BATCH // length),
        until_ready=use is not list,
        fewest=1,
        seconds=_SECONDS * plan.seconds,
        warm_up=False,
    )
    contenders = [Contender(make=make) for make in makes.values()]
    return dict(zip(makes, in_turns(contenders, timing), strict=True))


def _make(use: _Use, length: int, strategy: str) -> Call:
    x = _array(length, strategy)
    return lambda: use(iterate(x, strategy))


def _compile(use: _Use, length: int, strategy: str) -> None:
    """Compile what is needed, by the first rows: a warm-up on all takes as long as a sample."""
    use(itertools.islice(iterate(_array(length, strategy), strategy), _FIRST_ROWS))


def _array(length: int, strategy: str) -> Any:
    return side_of(strategy).array(np.arange(length, dtype=np.int32))


SUITE = Suite(
    name="growth",
    title=f"How the cost of iterating grows, from 10 to {Plan.longest:,} rows",
    columns=("JAX", "strategy", "ratio"),
    run=_run,
)
