"""Rows put together again: ``stack``, ``concatenate`` and ``asarray`` of rows of one source.

``jnp.stack(list(x))`` is a program with as many operands as there are rows, compiled for that
number. Rows that were not used yet still know where they come from. If that is one source for all,
they are a slice of it where their indices are regular, and one gather of it where they are not. A
slice is a part of the source like any other: nothing is dispatched until it is used.

Prior art: XLA makes the same slice of such a program, once it has compiled it with all operands.
Refused: the same for rows that have buffers by now. They do not need their source any more, and it
may be gone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax.numpy as jnp

from devicearray._array import operand_of, wrap_tree
from devicearray._dispatch import program_of
from devicearray._rows import joined

__all__ = ["OF_ROWS"]


def _merge_axes(x: Any) -> Any:
    return jnp.reshape(x, (-1, *x.shape[2:]))


_merge = program_of(_merge_axes)


def _stack_of_rows(stack: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``stack`` so that rows of one source are not stacked one by one."""

    @functools.wraps(stack)
    def call(arrays: Any, axis: Any = 0, *rest: Any, **kwargs: Any) -> Any:
        found = joined(arrays) if _are_alone(arrays, axis, rest, kwargs) else None
        return stack(arrays, axis, *rest, **kwargs) if found is None else found

    return call


def _concatenate_of_rows(concatenate: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``concatenate`` so that rows of one source are not joined one by one."""

    @functools.wraps(concatenate)
    def call(arrays: Any, *rest: Any, axis: Any = 0, **kwargs: Any) -> Any:
        # `concat` takes the axis by name alone.
        place, *others = rest or (axis,)
        found = None
        if _are_alone(arrays, place, others, kwargs) and len(getattr(arrays[0], "shape", ())):
            found = joined(arrays)
        if found is None:
            named = {} if rest else {"axis": axis}
            return concatenate(arrays, *rest, **named, **kwargs)
        return wrap_tree(_merge(operand_of(found)))

    return call


def _array_of_rows(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``asarray`` or ``array`` so that rows of one source are not stacked one by one."""

    @functools.wraps(make)
    def call(x: Any, *rest: Any, **kwargs: Any) -> Any:
        found = joined(x) if _are_alone(x, 0, rest, kwargs) else None
        return make(x, *rest, **kwargs) if found is None else found

    return call


def _are_alone(arrays: Any, axis: Any, rest: Any, kwargs: Any) -> bool:
    """Tell whether nothing is given but a list, to be joined along the first axis."""
    is_list = type(arrays) in (list, tuple) and len(arrays) > 0
    return is_list and type(axis) is int and axis == 0 and not (rest or kwargs)


#: How each of these functions of ``jax.numpy`` is changed, by its name.
OF_ROWS: Final[Mapping[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "array": _array_of_rows,
    "asarray": _array_of_rows,
    "concat": _concatenate_of_rows,
    "concatenate": _concatenate_of_rows,
    "stack": _stack_of_rows,
}
