"""What a call costs before anything is computed: DeviceArray's dispatch against JAX's.

The arrays are so small that the time is all overhead. The claim is that ``x + x``, ``x + 1.``
and ``dot(x, x)`` are no slower than JAX's own eager calls; the other lines show where the one
Python layer that is left can be seen: in calls that JAX enters through C++ at once.

A batch does not wait for its results. On CPU such programs run in the dispatch itself, and
elsewhere the dispatch is what is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

import devicearray as da
from devicearray import numpy as da_jnp
from devicearray._bench.interleaved import Call, Comparison, compare
from devicearray._bench.suite import Plan, Suite

__all__ = ["SUITE"]


def _pairs() -> dict[str, tuple[Call, Call]]:
    x = jnp.ones(4)
    y = jnp.full(4, 2.0)
    m = jnp.ones((16, 16))
    our_x, our_y, our_m = da.asarray(x), da.asarray(y), da.asarray(m)
    f, our_f = jax.jit(_total), da.jit(_total)
    return {
        "x + x": (lambda: x + x, lambda: our_x + our_x),
        "x + 1.": (lambda: x + 1.0, lambda: our_x + 1.0),
        "dot(x, x)": (lambda: jnp.dot(x, x), lambda: da_jnp.dot(our_x, our_x)),
        "dot(m, m)": (lambda: jnp.dot(m, m), lambda: da_jnp.dot(our_m, our_m)),
        "x + y": (lambda: x + y, lambda: our_x + our_y),
        "dot(x, y)": (lambda: jnp.dot(x, y), lambda: da_jnp.dot(our_x, our_y)),
        "x ** 2": (lambda: x**2, lambda: our_x**2),
        "sin(x)": (lambda: jnp.sin(x), lambda: da_jnp.sin(our_x)),
        "x.sum()": (lambda: x.sum(), lambda: our_x.sum()),
        "sum(x, axis=0)": (lambda: jnp.sum(x, axis=0), lambda: da_jnp.sum(our_x, axis=0)),
        "stack([x, y])": (lambda: jnp.stack([x, y]), lambda: da_jnp.stack([our_x, our_y])),
        "jit(f)(x, y)": (lambda: f(x, y), lambda: our_f(our_x, our_y)),
    }


def _total(x: Any, y: Any) -> Any:
    return (x * y).sum()


def _run(plan: Plan) -> Iterator[Comparison]:
    for name, (jax_call, our_call) in _pairs().items():
        yield compare(name, jax_call, our_call, plan.timing())


SUITE = Suite(
    name="overhead",
    title="Overhead of a call on small arrays",
    columns=("JAX", "ours", "ratio"),
    run=_run,
)
