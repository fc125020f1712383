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

from collections.abc import Callable
from typing import Any

import jax

from devicearray import _jax
from devicearray._advice import advise, advised
from devicearray._array import DeviceArray, unwrap, wrap_tree
from devicearray._dispatch import program_of
from devicearray._operation import as_jax_does, operation, square_of

__all__ = ["install"]

#: Operators of two operands, by JAX's bare names, without the reflected ones.
_BINARY = (
    "eq", "ne", "lt", "le", "gt", "ge",
    "add", "sub", "mul", "truediv", "floordiv", "divmod", "mod", "matmul",
    "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip
_REFLECTED = (
    "radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rdivmod", "rmod", "rpow", "rmatmul",
    "rand", "ror", "rxor", "rlshift", "rrshift",
)  # fmt: skip

#: Methods whose result's shape depends on values, that may hand the array itself back, that
#: place it, or that return no array: JAX's own call is made, and its arrays are wrapped.
_AS_JAX_DOES = frozenset({
    "setitem", "copy", "contains", "deepcopy", "pos", "nonzero", "compress", "repeat",
    "astype", "reshape", "flatten", "ravel", "squeeze", "transpose", "view", "conj", "conjugate",
    "to_device", "__array_namespace__",
})  # fmt: skip

_PROPERTIES = ("T", "mT", "real", "imag", "flat")

#: The types of operand that the quick path below takes as they are.
_QUICK = frozenset({DeviceArray, _jax.ArrayImpl, float, int, bool, complex})


def _binary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator `name` as a method: one program for each kind of operand."""
    dunder = f"__{name}__"
    both = program_of(function)
    square = square_of(function)
    new, ArrayImpl = object.__new__, _jax.ArrayImpl

    def operator(self: DeviceArray, other: Any) -> Any:
        try:
            kind = type(other)
            if other is self:
                output = square(self._buffer)
            elif kind is DeviceArray:
                output = both(self._buffer, other._buffer)
            elif kind in _QUICK or isinstance(other, _jax.HOST_OPERANDS):
                output = both(self._buffer, other)
            else:
                # Not an operand that JAX knows: it may answer for itself, or it is an error.
                output = getattr(self._buffer, dunder)(other)
        except Exception as error:
            advise(error)
            raise
        # `wrap_tree`, its first lines written out: see `_operation`.
        if type(output) is ArrayImpl:
            array: DeviceArray = new(DeviceArray)
            array._buffer = output
            return array
        return wrap_tree(output)

    return _as_method(operator, dunder, function)


def _power(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``x ** y``: compiled for an exponent that is an int, as JAX compiles it."""
    general = _binary("pow", function)
    of_int = program_of(function, static_argnums=(1,))

    def operator(self: DeviceArray, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return wrap_tree(pow(self._buffer, unwrap(other), modulus))
        if type(other) is int:
            with advised:
                return wrap_tree(of_int(self._buffer, other))
        return general(self, other)

    return _as_method(operator, "__pow__", function)


def _as_method(
    method: Callable[..., Any], name: str, function: Callable[..., Any]
) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f"DeviceArray.{name}"
    method.__module__ = DeviceArray.__module__
    method.__doc__ = function.__doc__
    return method


def _property(name: str) -> property:
    def ask(self: DeviceArray) -> Any:
        with advised:
            return wrap_tree(getattr(self._buffer, name))

    return property(ask, doc=getattr(jax.Array, name).__doc__)


class _At:
    """``x.at``: updates of a part of an array, each of which returns a new array."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def __getitem__(self, index: Any) -> _AtIndex:
        return _AtIndex(self._buffer.at[index])

    def __repr__(self) -> str:
        return f"_At({wrap_tree(self._buffer)!r})"


class _AtIndex:
    """``x.at[index]``: JAX's own object for it, whose methods return DeviceArrays here."""

    __slots__ = ("_reference",)

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reference, name)
        return as_jax_does(method) if callable(method) else method

    def __repr__(self) -> str:
        return repr(self._reference)


def _at(self: DeviceArray) -> _At:
    return _At(self._buffer)


def install() -> None:
    """Give `DeviceArray` the operators, methods and properties of JAX's arrays."""
    for name, function in _jax.ARRAY_OPERATORS.items():
        if f"__{name}__" not in DeviceArray.__dict__:
            _set(f"__{name}__", _operator(name, function))
    for name, function in _jax.ARRAY_METHODS.items():
        if name not in DeviceArray.__dict__:
            _set(name, _method(name, function))
    for name in _PROPERTIES:
        _set(name, _property(name))
    _set("at", property(_at, doc=jax.Array.at.__doc__))


def _set(name: str, attribute: Any) -> None:
    setattr(DeviceArray, name, attribute)


def _operator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if name == "pow":
        return _power(function)
    if name in _BINARY or name in _REFLECTED:
        return _binary(name, function)
    return _method(name, function)


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if name in _AS_JAX_DOES or name.startswith("_"):
        return as_jax_does(function)
    return operation(function)
