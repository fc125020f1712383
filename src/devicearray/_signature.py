"""Which arguments of a JAX function are arrays, and which are static.

A program is compiled for the *kinds* of its array arguments and for the *values* of its static
ones. ``jnp.sum(x, axis=0)`` must be compiled for each axis, ``jnp.add(x, 2.0)`` must not be
compiled for each number. JAX knows which is which inside each function, in the
``static_argnames`` of a ``jit`` that nothing public can ask. But it also writes it down, in the
annotations: what may be an array is an ``ArrayLike``; what may be an ``int`` or a shape is
static. This module reads them. The refused alternative, a table of 300 signatures, would be
wrong after the next release of JAX, silently.

Reading them wrong costs speed and never correctness: a static argument taken for an array fails
to trace and JAX's own call is made; an array taken for static is not hashable, likewise.
"""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

__all__ = ["Kind", "Signature", "read_signature"]


class Kind(enum.Enum):
    """What a parameter takes."""

    ARRAY = "an array, or a number that stands for one"
    STATIC = "a value that the program is compiled for"
    EITHER = "an array, or an int for which the program is compiled"


#: How annotations spell the types that are arrays. JAX resolves some of them when a function is
#: defined, so that ArrayLike can also appear as the union that it names, in either spelling.
_UNION = r"(?: \| |, )".join(
    re.escape(inspect.formatannotation(one)) for one in typing.get_args(jax.typing.ArrayLike)
)
_ARRAY_LIKE = re.compile(
    rf"{_UNION}|\b(?:jax\.Array|ArrayLike|RealArray|IntegerArray|Array|ndarray|Key)\b"
)
#: What makes the rest of an annotation static for some values.
_STATIC = re.compile(r"\b(?:int|str|DimSize|Shape|slice|Callable)\b")

#: Parameters whose annotation does not tell: an int given to one decides a shape.
_EXCEPTIONS: Mapping[tuple[str, str], Kind] = {
    ("histogram", "bins"): Kind.EITHER,
    ("histogram2d", "bins"): Kind.EITHER,
    ("histogram_bin_edges", "bins"): Kind.EITHER,
    ("histogramdd", "bins"): Kind.EITHER,
}


@dataclass(frozen=True)
class Signature:
    """The kinds of a function's parameters."""

    places: tuple[Kind, ...]
    """Of the positional parameters, in order."""
    rest: Kind | None
    """Of ``*args``, if there is one."""
    names: Mapping[str, Kind]
    """Of all parameters that can be given by name."""

    def at(self, place: int) -> Kind:
        """Return the kind of the positional argument at `place`."""
        if place < len(self.places):
            return self.places[place]
        return self.rest or Kind.ARRAY

    def named(self, name: str) -> Kind:
        """Return the kind of the argument called `name`."""
        return self.names.get(name, Kind.STATIC)


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read the kinds of `function`'s parameters from its annotations."""
    name = getattr(function, "__name__", "").strip("_")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = {parameter.name: _kind(name, parameter) for parameter in parameters}
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    return Signature(
        places=tuple(kinds[p.name] for p in parameters if p.kind in positional),
        rest=kinds[rest[0]] if rest else None,
        names=kinds,
    )


def _kind(function: str, parameter: inspect.Parameter) -> Kind:
    exception = _EXCEPTIONS.get((function, parameter.name))
    if exception is not None:
        return exception
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return Kind.EITHER
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    others, arrays = _ARRAY_LIKE.subn("", text)
    if not arrays:
        return Kind.STATIC
    return Kind.EITHER if _STATIC.search(others) else Kind.ARRAY


def is_static(kind: Kind, value: Any) -> bool:
    """Tell whether `value`, given to a parameter of this kind, is compiled for."""
    if kind is Kind.EITHER:
        return not holds_array(value) and not isinstance(value, float | complex)
    return kind is Kind.STATIC


def holds_array(tree: Any) -> bool:
    """Tell whether `tree` is an array or holds one."""
    if isinstance(tree, jax.Array | np.ndarray):
        return True
    if isinstance(tree, list | tuple | dict):
        return any(isinstance(leaf, jax.Array | np.ndarray) for leaf in jax.tree.leaves(tree))
    return False
