"""The operators and methods of DeviceArray that compute: ``x + y``, ``x.sum()``, ``x.at[i]``.

JAX defines the methods of its arrays in two tables, name to function, and sets them on its own
class and on its tracers. This module sets the same functions on `DeviceArray`, each dispatched
as one program, so that a method that JAX adds is here as soon as JAX has it, and none is written
twice. It is separate from `_array` because dispatch needs the class before the class can have
its methods.

The refused alternative is to forward every name to the buffer and to wrap the result: simple,
and a second Python layer on JAX's own, where the aim is to be no slower than JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from devicearray import _jax
from devicearray._advice import advise, advised
from devicearray._array import (
    DeviceArray,
    from_buffer,
    named_as_jax_does,
    operand_of,
    wrap_tree,
)
from devicearray._dispatch import as_jax, program_of
from devicearray._operation import mirror_of, square_of

__all__ = ["install"]

#: Operators of two operands, by JAX's bare names. (``pow`` is compiled in its own way.)
_OPERATORS = (
    "eq", "ne", "lt", "le", "gt", "ge",
    "add", "sub", "mul", "truediv", "floordiv", "divmod", "mod", "matmul",
    "and", "or", "xor", "lshift", "rshift",
    "radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rdivmod", "rmod", "rpow", "rmatmul",
    "rand", "ror", "rxor", "rlshift", "rrshift",
)  # fmt: skip

_PROPERTIES = ("T", "mT", "real", "imag", "flat")

#: The types of operand that the quick path below takes as they are.
_QUICK = frozenset({_jax.ArrayImpl, float, int, bool, complex})


def _binary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator `name` as a method: one program for each kind of operand."""
    jax_method = _jax_method(name, function)
    both = program_of(function, jax_method)
    square = square_of(function, jax_method, both)
    new, ArrayImpl = object.__new__, _jax.ArrayImpl

    def method(self: DeviceArray, other: Any) -> Any:
        try:
            kind = type(other)
            this = self._buffer if self._source is None else operand_of(self)
            if other is self:
                output = square(this)
            elif kind is DeviceArray:
                that = other._buffer if other._source is None else operand_of(other)
                output = both(this, that)
            elif kind in _QUICK or isinstance(other, _jax.HOST_OPERANDS):
                output = both(this, other)
            else:
                # Not an operand that JAX knows: it may answer for itself, or it is an error.
                output = jax_method(self._buffer, other)
        except Exception as error:
            advise(error)
            raise
        # `wrap_tree`, its first lines written out: see `_operation`.
        if type(output) is ArrayImpl:
            array: DeviceArray = new(DeviceArray)
            array._buffer = output
            array._source = None
            return array
        return wrap_tree(output)

    return method


def _jax_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what JAX calls for the method `name`: the buffer's own, which typed keys override."""

    @functools.wraps(function)
    def call(buffer: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(buffer, name)(*args, **kwargs)

    return call


def _as_method(
    method: Callable[..., Any], name: str, function: Callable[..., Any]
) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f"DeviceArray.{name}"
    method.__module__ = DeviceArray.__module__
    method.__doc__ = function.__doc__
    return method


def _forwarded(name: str) -> Any:
    """Return the attribute `name` that the buffer answers: ``is_ready``, ``delete``, ``devices``.

    These neither compute nor read. As methods of the class they have their documentation.
    """
    attribute = getattr(_jax.ArrayImpl, name)
    if not callable(attribute):
        return from_buffer(name, attribute.__doc__)

    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        with advised:
            return getattr(self._buffer, name)(*args, **kwargs)

    return _as_method(method, name, attribute)


def _property(name: str) -> property:
    def ask(self: DeviceArray) -> Any:
        with advised:
            return wrap_tree(getattr(self._buffer, name))

    return named_as_jax_does(name, ask, getattr(jax.Array, name).__doc__)


class _IndexUpdateHelper:
    """``x.at``: updates of a part of an array, each of which returns a new array.

    It and the next are named as JAX's are, since Python's messages show the names.
    """

    __slots__ = ("_buffer",)

    def __init__(self, array: DeviceArray) -> None:
        self._buffer = array._buffer

    def __getitem__(self, index: Any) -> _IndexUpdateRef:
        return _IndexUpdateRef(self._buffer.at[index])

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({wrap_tree(self._buffer)!r})"


class _IndexUpdateRef:
    """``x.at[index]``: JAX's own object for it, whose methods return DeviceArrays here."""

    __slots__ = ("_reference",)

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reference, name)
        return as_jax(method) if callable(method) else method

    def __repr__(self) -> str:
        return repr(self._reference)


def install() -> None:
    """Give `DeviceArray` the operators, methods and properties of JAX's arrays."""
    operators = {f"__{name}__": function for name, function in _jax.ARRAY_OPERATORS.items()}
    for name, function in (operators | dict(_jax.ARRAY_METHODS)).items():
        if name not in DeviceArray.__dict__:
            setattr(DeviceArray, name, _method(name, function))
    properties = {name: _property(name) for name in _PROPERTIES}
    properties["at"] = property(_IndexUpdateHelper, doc=jax.Array.at.__doc__)
    for name, attribute in properties.items():
        setattr(DeviceArray, name, attribute)
    for name in dir(_jax.ArrayImpl):
        if not name.startswith("_") and name not in DeviceArray.__dict__:
            setattr(DeviceArray, name, _forwarded(name))


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # ``__add__`` is "add" to JAX's table; ``_split`` is a method of another kind than ``split``.
    bare = name.strip("_") if name.startswith("__") else name
    if bare != name and bare in _OPERATORS:
        method = _binary(name, function)
    else:
        method = mirror_of(bare, function, _jax_method(name, function))
    return _as_method(method, name, function)
