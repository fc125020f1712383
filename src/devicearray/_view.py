"""Views: which elements of an array a row, an element or a slice of it consists of.

Basic indexing, by integers and slices, picks along each axis an arithmetic progression. A `View`
writes that down: for each axis of the array where it starts, how many elements it has and how far
they lie apart. A view of a view is a view, so that ``x[2:][i][j]`` is one step from ``x``.

A program that takes a view as an operand is given an `Operand`: the whole array, and on the device
the numbers where the view starts. What is left of the view, its *form*, is what the program is
compiled for. So all rows of an array are one program, and all windows ``x[i:i + 10]``.

Prior art: NumPy's strides, which are a view without an array; ``lax.dynamic_slice``, which splits
a slice into what is compiled and what is given, as is done here. The form could have been the
auxiliary data of a pytree node, whose class Python code takes apart at each call. Refused for
speed: a form is a subclass of a named tuple, which the C++ dispatcher takes apart by itself and
tells from others by its type.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jax import lax

from devicearray import _indices, _jax

__all__ = [
    "Operand",
    "Series",
    "View",
    "as_integer",
    "axis_of",
    "clamped",
    "narrowed",
    "numpy_index",
    "operand",
    "row_of",
    "shape_of",
    "taken",
    "whole",
    "whole_operand",
    "with_taken",
]


class Axis(NamedTuple):
    """The elements ``start, start + step, ...`` of an axis."""

    length: int
    """Of the array's axis."""
    start: int
    size: int
    """How many elements."""
    step: int
    """Negative where they are in reverse order."""
    kept: bool
    """False for an axis that an integer has taken away."""


type View = tuple[Axis, ...]


def whole(shape: Sequence[int]) -> View:
    """Return the view of all elements."""
    return tuple(Axis(length, 0, length, 1, True) for length in shape)


def shape_of(view: View) -> tuple[int, ...]:
    """Return the shape of what a view shows."""
    return tuple(axis.size for axis in view if axis.kept)


def row_of(view: View, i: int, along: int) -> View:
    """Return the view of row `i`, from 0 to the number of rows less 1, along an axis."""
    return (*view[:along], _at(view[along], i), *view[along + 1 :])


def axis_of(view: View, axis: int) -> int:
    """Return which axis of the array an axis of a view is."""
    return [place for place, axis in enumerate(view) if axis.kept][axis]


def narrowed(view: View, index: Any) -> View | None:
    """Return the view that a basic index picks from a view.

    Parameters
    ----------
    view : View
        What is indexed.
    index : object
        What stands between the brackets.

    Returns
    -------
    View or None
        None where the index is not made of integers, slices and one ellipsis, where it has too
        many of them, or where it picks from an axis without elements: JAX's own call decides.
    """
    parts = _filled(index if isinstance(index, tuple) else (index,), len(shape_of(view)))
    if parts is None:
        return None
    axes, rest = [], iter(parts)
    for axis in view:
        narrowed_axis = _narrowed(axis, next(rest)) if axis.kept else axis
        if narrowed_axis is None:
            return None
        axes.append(narrowed_axis)
    return tuple(axes)


def _filled(parts: tuple[Any, ...], ndim: int) -> list[Any] | None:
    """Return an index of `ndim` parts, its ellipsis or its end filled with whole slices."""
    ellipses = [place for place, part in enumerate(parts) if isinstance(part, EllipsisType)]
    missing = ndim - len(parts) + len(ellipses)
    if len(ellipses) > 1 or missing < 0:
        return None
    fill = [slice(None)] * missing
    place = ellipses[0] if ellipses else len(parts)
    return [*parts[:place], *fill, *parts[place + len(ellipses) :]]


def _narrowed(axis: Axis, part: Any) -> Axis | None:
    if isinstance(part, slice):
        return _sliced(axis, part)
    i = as_integer(part)
    if i is None or axis.size == 0:
        return None
    return _at(axis, clamped(i, axis.size))


def as_integer(index: Any) -> int | None:
    """Return an index as an int; None if it is no integer that the host knows."""
    if type(index) is int:
        return index
    if isinstance(index, bool | np.bool) or not isinstance(index, int | np.integer):
        return None
    return operator.index(index)


def clamped(i: int, size: int) -> int:
    """Return an index as JAX takes it: from the end if negative, and never out of bounds."""
    return max(0, min(i + size if i < 0 else i, size - 1))


def _at(axis: Axis, i: int) -> Axis:
    return Axis(axis.length, axis.start + i * axis.step, 1, 1, False)


def _sliced(axis: Axis, part: slice) -> Axis | None:
    bounds = part.start, part.stop, part.step
    ends = [None if bound is None else as_integer(bound) for bound in bounds]
    unknown = any(end is None is not bound for end, bound in zip(ends, bounds, strict=True))
    if unknown or ends[2] == 0:
        return None
    start, stop, step = slice(*ends).indices(axis.size)
    return _progression(axis, start, len(range(start, stop, step)), step)


def _progression(axis: Axis, start: int, size: int, step: int) -> Axis:
    """Return the elements ``start, start + step, ...`` of what an axis shows."""
    first = axis.start + start * axis.step if size else 0
    return Axis(axis.length, first, size, axis.step * step if size > 1 else 1, True)


def numpy_index(view: View) -> tuple[Any, ...]:
    """Return the index that picks a view from the NumPy copy of the array.

    With the ellipsis what it picks is an array, even if it has no axes.
    """
    return (*(_numpy_part(axis) for axis in view), ...)


def _numpy_part(axis: Axis) -> int | slice:
    if not axis.kept:
        return axis.start
    stop = axis.start + axis.size * axis.step
    return slice(axis.start, stop if stop >= 0 else None, axis.step)


# As operands of programs.


class _Cut(NamedTuple):
    """What a program is compiled for, of one axis."""

    span: int
    """How many neighbouring elements hold those that are wanted."""
    step: int
    kept: bool
    given: bool
    """Whether the start is an operand; else the span is the whole axis."""


class Operand(NamedTuple):
    """A view as the operand of a program."""

    array: Any
    """The whole array; of keys, the raw ones."""
    starts: tuple[tuple[Any, ...], ...]
    """For each axis whose start is given, its digits (`_indices`)."""


class _Formed(Operand):
    """An operand of some form. There is a subclass for each."""

    __slots__ = ()

    form: ClassVar[tuple[_Cut, ...]]
    kind: ClassVar[Any]
    """Of the keys (`_jax.raw_key_data`); None for other arrays."""


@functools.cache
def _operand_type(form: tuple[_Cut, ...], kind: Any) -> type[_Formed]:
    return type("Operand", (_Formed,), {"form": form, "kind": kind, "__slots__": ()})


@functools.lru_cache(maxsize=4096)
def _cut(axis: Axis) -> tuple[_Cut, int]:
    """Return what an axis is compiled for, and where its span starts."""
    span = abs(axis.step) * (axis.size - 1) + 1 if axis.size else 0
    start = axis.start if axis.step > 0 else axis.start + 1 - span
    return _Cut(span, axis.step, axis.kept, given=0 < span < axis.length), start


def operand(array: Any, view: View, place: _indices.Place, kind: Any = None) -> Operand:
    """Return a view of an array as an operand.

    Parameters
    ----------
    array : jax.Array
        The array; of keys, the raw ones, which have more axes than the view.
    view : View
        Of the array.
    place : jax.Device or jax.sharding.NamedSharding
        Where the starts are to lie, with which a program takes the array.
    kind : object, optional
        Of the keys that programs are to take from raw ones.
    """
    cuts, starts = _cuts_and_starts((*view, *whole(array.shape[len(view) :])), place)
    return _operand_type(cuts, kind)(array, starts)


def whole_operand(array: Any, kind: Any) -> Operand:
    """Return all of an array as an operand: raw keys, of which programs take typed ones."""
    return _whole_type(array.shape, kind)(array, ())


@functools.lru_cache(maxsize=4096)
def _whole_type(shape: tuple[int, ...], kind: Any) -> type[Operand]:
    return _operand_type(tuple(_cut(axis)[0] for axis in whole(shape)), kind)


def _cuts_and_starts(
    view: View, place: _indices.Place
) -> tuple[tuple[_Cut, ...], tuple[tuple[Any, ...], ...]]:
    cuts, starts = [], []
    for axis in view:
        cut, start = _cut(axis)
        cuts.append(cut)
        if cut.given:
            starts.append(_indices.digits(place, start, axis.length))
    return tuple(cuts), tuple(starts)


class Series:
    """Operands that differ in where they start along one axis: rows, or chunks of rows.

    The same as `operand` gives, sooner: all but the start is found out once.

    Parameters
    ----------
    array : jax.Array
        An array like those to come.
    view : View
        Whose rows.
    along : int
        Which axis of the array the rows are numbered along.
    place : jax.Device or jax.sharding.NamedSharding
        Where the starts are to lie.
    size : int, optional
        Of a chunk. Without it, the series is one of rows.
    kind : object, optional
        Of keys.
    """

    __slots__ = ("_after", "_axis", "_before", "_is_given", "_offset", "_place", "_type")

    def __init__(
        self,
        array: Any,
        view: View,
        along: int,
        place: _indices.Place,
        *,
        size: int | None = None,
        kind: Any = None,
    ) -> None:
        self._axis = view[along]
        self._place = place
        rest = whole(array.shape[len(view) :])
        before, self._before = _cuts_and_starts(view[:along], place)
        after, self._after = _cuts_and_starts((*view[along + 1 :], *rest), place)
        first = _at(self._axis, 0) if size is None else _progression(self._axis, 0, size, 1)
        cut, start = _cut(first)
        self._offset = start - first.start
        self._is_given = cut.given
        self._type = _operand_type((*before, cut, *after), kind)

    def __call__(self, array: Any, i: int) -> Operand:
        """Return row `i`, or the chunk that begins with it."""
        if not self._is_given:
            return self._type(array, (*self._before, *self._after))
        axis = self._axis
        start = axis.start + i * axis.step + self._offset
        digits = _indices.digits(self._place, start, axis.length)
        return self._type(array, (*self._before, digits, *self._after))


def taken(operand: Any) -> Any:
    """Return what an operand is a view of. For use inside a program."""
    array, form = operand.array, operand.form
    given = iter(operand.starts)
    starts = [_indices.from_digits(next(given)) if cut.given else 0 for cut in form]
    spans = [cut.span for cut in form]
    if any(cut.given for cut in form) or spans != list(array.shape):
        array = lax.dynamic_slice(array, starts, spans)
    if any(abs(cut.step) > 1 for cut in form):
        array = lax.slice(array, [0] * len(form), spans, [abs(cut.step) for cut in form])
    reverse: Callable[..., Any] = lax.rev
    backwards = [place for place, cut in enumerate(form) if cut.step < 0]
    if backwards:
        array = reverse(array, backwards)
    array = lax.squeeze(array, [place for place, cut in enumerate(form) if not cut.kept])
    return array if operand.kind is None else _jax.traced_keys(operand.kind, array)


def with_taken(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` as one whose arguments may be operands. For use inside a program."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(
            *(taken(arg) if isinstance(arg, Operand) else arg for arg in args), **kwargs
        )

    return call
