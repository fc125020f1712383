"""The sides that are compared: a pattern is written once, and run with what each side has.

The same function, on a plain array and on a DeviceArray, is what a reader would have after changing
an import. Two versions of each pattern, one for each side, were refused: they would differ one
day in more than the array.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import devicearray as da
from devicearray._bench.interleaved import Call, Comparison, Contender, Timing, in_turns
from devicearray._bench.suite import Counts, counts_of, is_installed, paired

__all__ = ["JAX", "OTHERS", "OURS", "Side", "add_one", "compare_sides", "counts_in"]


def add_one(v: Any) -> Any:
    """Do something that takes no time."""
    return v + 1


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


def compare_sides(
    name: str,
    make: Callable[[Side], Call],
    timing: Timing,
    *,
    others: Mapping[str, Side] = MappingProxyType({}),
) -> Comparison:
    """Time what both sides do, and count it; time others beside them.

    Parameters
    ----------
    name : str
        What the comparison is called.
    make : callable
        Given a side, makes an array and returns a call that uses it.
    timing : Timing
        How to time it.
    others : mapping
        Sides that are timed for scale.
    """
    sides = (JAX, OURS, *others.values())
    contenders = [Contender(make=functools.partial(make, side)) for side in sides]
    first, second, *beside = in_turns(contenders, timing)
    return Comparison(
        name=name,
        first=first,
        second=second,
        beside=dict(zip(others, beside, strict=True)),
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
        found["PyTorch"] = Side(array=importlib.import_module("torch").from_numpy)
    return found


#: Those that are timed beside the two, for scale, by their names.
OTHERS: Final = _others()
