"""The first time: rows while nothing is compiled, JAX's plain array against a DeviceArray.

Before each sample all caches are cleared, those of JAX with ``jax.clear_caches`` and those of this
package with ``devicearray.clear_caches``. A fresh process for each sample was refused: it would be
colder than any user's, whose program has long used the device, and most of what is measured would
be imports.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import jax

import devicearray as da
from devicearray._bench.interleaved import Call, Comparison
from devicearray._bench.side import Side, add_one, compare_sides
from devicearray._bench.suite import Plan, Suite

__all__ = ["SUITE", "clear_all_caches"]

_clear: Callable[[], Any] = jax.clear_caches  # JAX does not annotate this.


def clear_all_caches() -> None:
    """Forget all programs, and let go of what they were."""
    _clear()
    da.clear_caches()
    gc.collect()


_f: Any = jax.jit(add_one)


@dataclass(frozen=True, kw_only=True)
class _Pattern:
    use: Callable[[Any], Any]
    waits: bool = False


_PATTERNS: Final = {
    "list(big)": _Pattern(use=list),
    "next(iter(big))": _Pattern(use=lambda big: next(iter(big))),
    "f(next(iter(big)))": _Pattern(use=lambda big: _f(next(iter(big))), waits=True),
    "f(big[0])": _Pattern(use=lambda big: _f(big[0]), waits=True),
}


def _run(plan: Plan) -> Iterator[Comparison]:
    big = plan.host_big()
    for name, pattern in _PATTERNS.items():
        make = functools.partial(_make, pattern, big)
        timing = plan.timing(calls=1, waits=pattern.waits, before=clear_all_caches)
        yield compare_sides(name, make, timing)


def _make(pattern: _Pattern, host: Any, side: Side) -> Call:
    return functools.partial(pattern.use, side.array(host))


SUITE = Suite(
    name="rows_cold",
    title=(
        f"Rows while nothing is compiled (all caches cleared before each sample): "
        f"big has {Plan.big:,} scalars"
    ),
    columns=("JAX", "ours", "ratio"),
    run=_run,
    counts=("compiles", "outputs", "dispatches"),
)
