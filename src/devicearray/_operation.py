"""Operations: JAX's functions, each call of which is one program and gives DeviceArrays.

`operation` turns a function such as ``jnp.dot`` into one with the same name, signature and
results, dispatched as one program. What it adds to `_dispatch` is the choice of the program's
*form*: which arguments of this call are static (`_signature`). For one set of static arguments
there is one dispatcher, made when first needed.

The order of the tests below is the order of how often they hold: all arguments are DeviceArrays
and nothing is named; then the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

from devicearray import _jax
from devicearray._advice import advise, advised
from devicearray._array import DeviceArray, operand_of, wrap_tree
from devicearray._dispatch import as_jax, bare_name, program_of
from devicearray._jax_calls import AS_JAX_DOES, POWERS
from devicearray._signature import holds_array, is_static, read_signature

__all__ = ["mirror_of", "operation", "power", "square_of"]


class _Forms:
    """The dispatchers of one function, one for each set of static arguments."""

    __slots__ = ("_as_jax_does", "_by_statics", "_function", "_signature", "known")

    def __init__(self, function: Callable[..., Any], as_jax_does: Callable[..., Any]) -> None:
        self._function = function
        self._as_jax_does = as_jax_does
        self._signature = read_signature(function)
        self._by_statics: dict[Any, Callable[..., Any]] = {}
        self.known: dict[tuple[Any, ...], Callable[..., Any]] = {}
        """The dispatcher by the types of a call's arguments, where those decide it."""

    def choose(
        self, kinds: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Return the dispatcher for this call; None if no argument is an array.

        `kinds` is the key under which to remember the answer.
        """
        values = (*args, *kwargs.values())
        if not any(map(holds_array, values)):
            return None
        signature = self._signature
        places = [i for i, arg in enumerate(args) if is_static(signature.at(i), arg)]
        names = [name for name, arg in kwargs.items() if is_static(signature.named(name), arg)]
        form = self.with_static(tuple(places), tuple(names))
        # Whether a list holds an array is not decided by its type.
        if not any(isinstance(value, list | tuple | dict) for value in values):
            self.known[kinds] = form
        return form

    def with_static(self, places: tuple[int, ...], names: tuple[str, ...]) -> Callable[..., Any]:
        """Return the dispatcher with these static arguments."""
        form = self._by_statics.get((places, names))
        if form is None:
            form = program_of(
                self._function, self._as_jax_does, static_argnums=places, static_argnames=names
            )
            # Two threads may both come here: the first one's dispatcher is kept.
            form = self._by_statics.setdefault((places, names), form)
        return form


def square_of(
    function: Callable[..., Any], as_jax_does: Callable[..., Any], both: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the dispatcher of ``function(x, x)``: one operand, passed to the runtime once.

    For other functions than those of `_SAME_OPERAND` that is `both`, the dispatcher for two.
    """
    name = bare_name(function)
    if name not in _SAME_OPERAND:
        return lambda x: both(x, x)

    def same_operand(x: Any) -> Any:
        return function(x, x)

    def jax_call(x: Any) -> Any:
        return as_jax_does(x, x)

    same_operand.__name__ = name
    return program_of(same_operand, jax_call)


#: Functions for which ``f(x, x)`` may be compiled as a function of one operand. XLA simplifies
#: what it knows to be equal: ``x // x`` would become 1 where JAX's answer to ``0 // 0`` is -1.
_SAME_OPERAND: Final = frozenset({
    "add", "dot", "inner", "matmul", "mul", "multiply", "outer", "sub", "subtract", "vdot",
})  # fmt: skip


def operation(
    function: Callable[..., Any], as_jax_does: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return `function`, one of JAX's, as a call that is one program and gives DeviceArrays.

    Parameters
    ----------
    function : callable
        A function that takes arrays, and other arguments that its annotations tell apart.
    as_jax_does : callable, optional
        What JAX itself would call, if that is not `function`.

    Returns
    -------
    callable
        With the name, signature and documentation of `function`. A call without arrays, and a
        call that cannot be one program, behaves as `function` itself.
    """
    otherwise = as_jax(as_jax_does or function)
    forms = _Forms(function, as_jax_does or function)
    known = forms.known
    whole = forms.with_static((), ())
    square = square_of(function, as_jax_does or function, whole)
    new, ArrayImpl, device_array = object.__new__, _jax.ArrayImpl, DeviceArray

    # The first lines run at every call of the commonest kind, where each costs some hundredth of
    # the whole; hence the two named places instead of a tuple, and `wrap` written out.
    @functools.wraps(function)
    def call(x: Any = _ABSENT, y: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
        try:
            if type(x) is device_array and not rest and not kwargs:
                this = x._buffer if x._source is None else operand_of(x)
                if y is x:
                    output = square(this)
                elif type(y) is device_array:
                    output = whole(this, y._buffer if y._source is None else operand_of(y))
                elif y is _ABSENT:
                    output = whole(this)
                else:
                    output = general((x, y), kwargs)
            else:
                output = general(_present(x, y, rest), kwargs)
        except Exception as error:
            advise(error)
            raise
        if type(output) is ArrayImpl:
            array = new(device_array)
            array._buffer = output
            array._source = None
            return array
        return output

    def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kinds = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        form = known.get(kinds) or forms.choose(kinds, args, kwargs)
        if form is None:
            return otherwise(*args, **kwargs)
        operands = [operand_of(arg) if type(arg) is DeviceArray else arg for arg in args]
        try:
            return form(*operands, **kwargs)
        except ValueError as error:
            if _NOT_HASHABLE not in str(error):
                raise
        return otherwise(*args, **kwargs)

    return call


def power(
    function: Callable[..., Any], as_jax_does: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return ``x ** y`` as an operation.

    For an exponent that is an integer and known, JAX compiles multiplications; to know it, it
    reads a 0-d array, and waits. So ``x ** 2`` is compiled for its exponent, other integer
    scalars are left to JAX's own call, and the rest is an operation like any.
    """
    general = operation(function, as_jax_does)
    known = as_jax(as_jax_does or function)
    of_int = program_of(function, as_jax_does, static_argnums=(1,))

    @functools.wraps(function)
    def call(x: Any, y: Any, /, *modulus: Any) -> Any:
        if modulus:
            return known(x, y, *modulus)
        if type(y) is int and type(x) is DeviceArray:
            with advised:
                return wrap_tree(of_int(operand_of(x), y))
        return known(x, y) if _is_integer_scalar(y) else general(x, y)

    return call


def mirror_of(
    name: str, function: Callable[..., Any], as_jax_does: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return what stands for JAX's `function`, a function or a method called `name`.

    It is an operation, unless `_jax_calls` says that one program cannot serve.
    """
    if name in POWERS:
        return power(function, as_jax_does)
    if name in AS_JAX_DOES:
        return as_jax(as_jax_does or function)
    return operation(function, as_jax_does)


def _is_integer_scalar(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, int)
    kinds = (jnp.integer, jnp.bool_)
    return np.shape(x) == () and any(jnp.issubdtype(dtype, kind) for kind in kinds)


def _present(x: Any, y: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    if y is _ABSENT:
        return () if x is _ABSENT else (x,)
    return (x, y, *rest)


#: Stands for an argument that was not given.
_ABSENT: Any = object()

#: What C++ says of a static argument that cannot be part of a key, such as ``axis=[0, 1]``.
_NOT_HASHABLE = "Non-hashable static arguments"
