"""The sides that are compared: a pattern is written once, and run with what each side has.

The same function, on a plain array and on a DeviceArray, is what a reader would have after changing
an import. Two versions of each pattern, one for each side, were refused: they would differ one
day in more than the array.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import devicearray as da
from devicearray._bench.interleaved import Call, Comparison, Contender, Timing, in_turns
from devicearray._bench.suite import Counts, Plan, counts_of, is_installed, paired

__all__ = [
    "JAX",
    "OTHERS",
    "OURS",
    "Pattern",
    "Side",
    "add_one",
    "compare_sides",
    "counts_in",
    "first_of",
    "on",
    "use_each",
]


def add_one(v: Any) -> Any:
    """Do something that takes no time."""
    return v + 1


def first_of(x: Any) -> Any:
    """Take the first row."""
    return next(iter(x))


def use_each(f: Callable[[Any], Any], rows: Iterable[Any]) -> Any:
    """Call `f` on each row; return the last result."""
    for row in rows:
        result = f(row)
    return result


@dataclass(frozen=True, kw_only=True)
class Side:
    """What one side has.

    Attributes
    ----------
    array : callable
        Makes an array, ready, of a NumPy array or of one of JAX's.
    numpy, random : module or None
        Its functions. None: the side has no such patterns.
    f : callable or None
        A function that is compiled by this side's ``jit``.
    """

    array: Callable[[Any], Any]
    numpy: Any = None
    random: Any = None
    f: Any = None


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """Something that both sides do.

    Attributes
    ----------
    name : str
        How it is written.
    make : callable
        Given a side, makes an array and returns a call that uses it.
    timing : mapping
        What differs from a plan's `Timing`.
    others : mapping
        Sides that are timed as well, for scale, by their names.
    """

    name: str
    make: Callable[[Side], Call]
    timing: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Side] = field(default_factory=dict)


def on(use: Callable[[Any], Any], host: Any) -> Callable[[Side], Call]:
    """Return what makes an array of the host's values, and a call that uses it."""
    return lambda side: functools.partial(use, side.array(host))


def compare_sides(pattern: Pattern, plan: Plan) -> Comparison:
    """Time what both sides do, and count it; time others beside them."""
    timing = plan.timing(**pattern.timing)
    sides = (JAX, OURS, *pattern.others.values())
    contenders = [Contender(make=functools.partial(pattern.make, side)) for side in sides]
    first, second, *beside = in_turns(contenders, timing)
    return Comparison(
        name=pattern.name,
        first=first,
        second=second,
        beside=dict(zip(pattern.others, beside, strict=True)),
        counts=paired(*(counts_in(one, timing) for one in contenders[:2])),
    )


def counts_in(contender: Contender, timing: Timing) -> Counts:
    """Record a call as it is timed: on an array of its own, after what comes before a batch."""
    timing.before()
    return counts_of(contender.make())


def _plain(value: Any) -> Any:
    return jnp.asarray(value).block_until_ready()


JAX: Final = Side(array=_plain, numpy=jnp, random=jax.random, f=jax.jit(add_one))
OURS: Final = Side(
    array=lambda value: da.asarray(_plain(value)),
    numpy=da.numpy,
    random=da.random,
    f=da.jit(add_one),
)


def _others() -> dict[str, Side]:
    found = {"NumPy": Side(array=np.asarray)}
    if is_installed("torch"):
        found["PyTorch"] = Side(array=_tensor)
    return found


def _tensor(host: Any) -> Any:
    # PyTorch takes seconds to import: not before it is timed.
    return importlib.import_module("torch").from_numpy(host)


#: Those that are timed beside the two, for scale, by their names.
OTHERS: Final = _others()
