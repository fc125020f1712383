"""The first time: rows while nothing is compiled, JAX's plain array against a DeviceArray.

Before each sample all caches are cleared, those of JAX with ``jax.clear_caches`` and those of this
package with ``devicearray.clear_caches``. A fresh process for each sample was refused: it would be
colder than any user's, whose program has long used the device, and most of what is measured would
be imports.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import jax

import devicearray as da
from devicearray._bench.interleaved import Comparison
from devicearray._bench.side import JAX, Pattern, compare_sides, first_of, on
from devicearray._bench.suite import Plan, Suite

__all__ = ["SUITE", "clear_all_caches"]

_clear: Callable[[], Any] = jax.clear_caches  # JAX does not annotate this.


def clear_all_caches() -> None:
    """Forget all programs, and let go of what they were."""
    _clear()
    da.clear_caches()
    gc.collect()


_f: Any = JAX.f


def _patterns(big: Any) -> Iterator[Pattern]:
    cold = {"calls": 1, "before": clear_all_caches}
    used = {**cold, "until_ready": True}
    yield Pattern(name="list(big)", make=on(list, big), timing=cold)
    yield Pattern(name="next(iter(big))", make=on(first_of, big), timing=cold)
    yield Pattern(name="f(next(iter(big)))", make=on(lambda x: _f(first_of(x)), big), timing=used)
    yield Pattern(name="f(big[0])", make=on(lambda x: _f(x[0]), big), timing=used)


def _run(plan: Plan) -> Iterator[Comparison]:
    for pattern in _patterns(plan.host_big()):
        yield compare_sides(pattern, plan)


SUITE = Suite(
    name="rows_cold",
    title=(
        "Rows while nothing is compiled (all caches cleared before each sample): "
        f"big has {Plan.big:,} scalars"
    ),
    columns=("JAX", "ours", "ratio"),
    run=_run,
    counts=("compiles", "outputs", "dispatches"),
)
