"""Dispatch: one call, one program, one dispatch.

Between a Python call and the runtime lies a look-up: which program serves these arguments? JAX
answers it for ``jax.jit`` in C++, from the arguments' abstract values, their placement and the
static arguments. This module puts that same C++ dispatcher in front of programs of our own
(`_program.Program`), compiled ahead of time, and tells it to build DeviceArrays of their outputs.
Python runs when a call meets a new kind of argument (a *miss*); every later call of that kind
goes from C++ to the runtime.

Two kinds of function are dispatched:

* a user's, by `jit`: it is compiled or its error is raised, as with `jax.jit`;
* one of JAX's (an operator, a function of ``jax.numpy``), by `operation`. Run eagerly, such a
  function is one dispatch or several; compiled whole, it is one. Where it cannot be compiled
  whole, since the shape of its result depends on values or its result is no array, JAX's own
  call is made instead, so that results and errors are JAX's there.

Prior art: ``torch.library``'s dispatcher and JAX's ``xla_primitive_callable`` of 2019 key on
types and shapes in the same way. Refused: a key computed in Python at each call. It was built
and measured first, and cost about as much again as the whole of JAX's look-up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, Final, overload

import jax

from devicearray import _jax
from devicearray._advice import advise, advised
from devicearray._array import DeviceArray, keep_parts, operand_of, unwrap, wrap, wrap_tree
from devicearray._program import Key, Program, ProgramCache, abstract, compile_program
from devicearray._view import Operand, taken, with_taken

__all__ = [
    "as_jax",
    "as_they_are",
    "bare_array",
    "bare_name",
    "dispatcher",
    "jit",
    "program_of",
]


def as_jax(
    function: Callable[..., Any], form: Callable[[Any], Any] = wrap_tree
) -> Callable[..., Any]:
    """Return `function` called as JAX calls it, its arrays as DeviceArrays or in another form.

    For functions that one program cannot serve: those whose result's shape depends on values,
    that may hand an operand back, that place arrays, or that return no arrays.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with advised:
            named = {name: unwrap(arg) for name, arg in kwargs.items()}
            return form(function(*map(unwrap, args), **named))

    return call


class _NotOneProgramError(Exception):
    """A function of JAX's that cannot be compiled whole: its result is no array, or no news."""


def dispatcher(
    jitted: Any,
    name: str,
    as_jax_does: Callable[..., Any] | None = None,
    *,
    form: Callable[[Any], Any] = wrap_tree,
) -> Any:
    """Return a call that runs `jitted` as one program and gives DeviceArrays.

    Parameters
    ----------
    jitted : object
        What ``jax.jit`` returned.
    name : str
        The name that profilers show.
    as_jax_does : callable, optional
        What to call where no program can be made. Without it the error is raised.
    form : callable
        In which form the outputs come: ``wrap_tree``, as DeviceArrays, which C++ makes;
        `bare_array`, one array as its buffer, so that the caller wraps it, which is quicker; or
        `as_they_are`.

    Returns
    -------
    callable
        A C++ dispatcher. It takes DeviceArrays, and a little faster their buffers.
    """
    cache = ProgramCache()
    split = _Splitter(jitted)
    uncompiled = as_jax(jitted, form)
    if as_jax_does is not None:
        # A function of JAX's knows nothing of operands, which `jitted` takes apart.
        uncompiled = _of_arrays(as_jax(as_jax_does, form))

    def on_miss(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        # JAX's checks of values live in its own calls, and so do its traces.
        if _jax.is_in_charge() or _holds_tracer((args, kwargs)):
            return uncompiled(*args, **kwargs), None
        statics, arrays, named = split(args, kwargs)
        try:
            key = _key(statics, arrays, named)
        except Exception:
            # No argument for any program. JAX's own call says so in its own words.
            return uncompiled(*args, **kwargs), None
        program = cache.get(key, lambda: compile_or_none(args, kwargs))
        if program is None:
            return uncompiled(*args, **kwargs), None
        try:
            outputs = program.compiled(*arrays, **named)
        except (TypeError, ValueError):
            # The program refuses arguments before it runs. Some of them JAX's own call would
            # move, and what it refuses it refuses in its own words.
            return uncompiled(*args, **kwargs), None
        formed = form(outputs)
        return formed, _recipe(program, (arrays, named), outputs, formed)

    def compile_or_none(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program | None:
        if as_jax_does is None:
            return compile_program(jitted, args, kwargs)
        try:
            return compile_program(jitted, args, kwargs)
        except Exception:
            # Whatever is wrong, JAX's own call says it in JAX's own words, or can do it.
            return None

    call: Any = _jax.native_call(name, on_miss, jitted, uncompiled)
    cache.forget, call.clear_cache = call.clear_cache, cache.clear
    return call


def bare_array(outputs: Any) -> Any:
    """Return an output that is one array as it is, and several as DeviceArrays."""
    return outputs if type(outputs) is _jax.ArrayImpl else wrap_tree(outputs)


def as_they_are(outputs: Any) -> Any:
    """Return the outputs as the runtime made them."""
    return outputs


_taken = jax.jit(taken)


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays as one whose arguments may be operands."""

    def made(argument: Any) -> Any:
        if not isinstance(argument, Operand):
            return argument
        with _jax.outside_of_traces():
            return _taken(argument)

    return lambda *args, **kwargs: function(*map(made, args), **kwargs)


def _holds_tracer(tree: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


class _Splitter:
    """Takes the arguments of a call apart into static ones and arrays."""

    __slots__ = ("_names", "_places")

    def __init__(self, jitted: Any) -> None:
        self._places, self._names = _jax.static_arguments(jitted)

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any]]:
        places = {place % len(args) for place in self._places if -len(args) <= place < len(args)}
        statics: list[tuple[Any, Any]] = [(place, args[place]) for place in sorted(places)]
        statics += [(name, kwargs[name]) for name in sorted(self._names & kwargs.keys())]
        arrays = tuple(arg for place, arg in enumerate(args) if place not in places)
        named = {name: arg for name, arg in kwargs.items() if name not in self._names}
        return tuple(statics), arrays, named


def _key(statics: Iterable[tuple[Any, Any]], arrays: Any, named: Any) -> Key:
    leaves, structure = jax.tree.flatten((arrays, named))
    return Key(
        statics=tuple((place, type(value), value) for place, value in statics),
        structure=structure,
        arrays=tuple(abstract(unwrap(leaf)) for leaf in leaves),
        context=_jax.trace_context(),
    )


def _recipe(program: Program, arguments: Any, outputs: Any, form: Any) -> Any:
    """Return what C++ needs to run `program` by itself and give outputs like `form`."""
    return _jax.recipe_for(
        program.compiled,
        program.effects,
        jax.tree.leaves(arguments),
        program.out_tree,
        jax.tree.leaves(outputs),
        form,
    )


def bare_name(function: Callable[..., Any]) -> str:
    """Return the name of a function of JAX's without the marks of where it stands."""
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("_").removeprefix("operator_")


def program_of(
    function: Callable[..., Any],
    as_jax_does: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return `function`, one of JAX's own, as a call that is one program where it can be.

    A single array comes bare (see `dispatcher`).

    Parameters
    ----------
    function : callable
        A function of JAX that takes and returns arrays.
    as_jax_does : callable, optional
        What JAX itself would call, if that is not `function`.
    **options
        ``static_argnums`` and ``static_argnames``, as in `jax.jit`.
    """
    name = bare_name(function)

    def only_arrays(*args: Any, **kwargs: Any) -> Any:
        outputs = function(*args, **kwargs)
        leaves = jax.tree.leaves(outputs)
        inputs = {id(leaf) for leaf in jax.tree.leaves((args, kwargs))}
        if not leaves or not all(isinstance(leaf, jax.Array) for leaf in leaves):
            raise _NotOneProgramError
        if all(id(leaf) in inputs for leaf in leaves):
            # JAX would hand the operand back: a copy of it is no improvement.
            raise _NotOneProgramError
        return outputs

    only_arrays.__name__ = only_arrays.__qualname__ = name
    call: Callable[..., Any]
    jitted = jax.jit(with_taken(only_arrays), **options)
    call = dispatcher(jitted, name, as_jax_does or function, form=bare_array)
    return call


@overload
def jit[**P, R](fun: Callable[P, R], /, **options: Any) -> Callable[P, R]: ...
@overload
def jit[**P, R](**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def jit(fun: Any = None, /, **options: Any) -> Any:
    """Compile a function, as `jax.jit` does, and return DeviceArrays from it.

    Each kind of argument makes one `Program`, listed by `devicearray.programs`; each call is one
    dispatch.

    Parameters
    ----------
    fun : callable, optional
        The function. Without it `jit` returns a decorator.
    **options
        Those of `jax.jit`: ``static_argnums``, ``static_argnames``, ``donate_argnums``,
        ``donate_argnames``, ``in_shardings``, ``out_shardings`` and so on.

    Returns
    -------
    callable
        The compiled function, with ``lower``, ``trace``, ``eval_shape`` and ``clear_cache`` as
        `jax.jit` gives them.

    Raises
    ------
    TypeError
        If `fun` is not callable.

    Examples
    --------
    >>> import devicearray as da
    >>> from devicearray import numpy as jnp
    >>> @da.jit
    ... def scaled(x, factor):
    ...     return factor * x / jnp.sum(x)
    >>> scaled(jnp.arange(1.0, 5.0), 10.0)
    DeviceArray([1., 2., 3., 4.], dtype=float32)
    """
    if fun is None:
        return functools.partial(jit, **options)
    return _JitFunction(fun, options)


#: The options of a function that can be given a part of an array in place of a whole one.
_OF_WHOLE_ARRAYS: Final = frozenset({"inline", "keep_unused", "static_argnames", "static_argnums"})


class _JitFunction:
    """What `jit` returns: a function, with the methods that `jax.jit` gives to one."""

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        jitted = jax.jit(fun, **options)
        # The methods below are the class's: in its dictionary, whatever wraps this function
        # would take them over for its own.
        functools.update_wrapper(self, fun)
        name = getattr(fun, "__name__", type(fun).__name__)
        self._call = dispatcher(jitted, name, form=bare_array)
        self._donated = _jax.donated_arguments(jitted)
        self._donates = any(self._donated)
        self._call_on_parts: Any = None
        if options.keys() <= _OF_WHOLE_ARRAYS:
            with_parts = jax.jit(with_taken(fun), **options)
            self._call_on_parts = dispatcher(with_parts, name, form=bare_array)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call
        operands = []
        if self._donates:
            self._keep_parts(args, kwargs)
        try:
            for arg in args:
                if type(arg) is DeviceArray:
                    if arg._source is not None and self._call_on_parts is not None:
                        arg = operand_of(arg)
                        if isinstance(arg, Operand):
                            call = self._call_on_parts
                    else:
                        arg = arg._buffer
                operands.append(arg)
            output = call(*operands, **kwargs)
        except Exception as error:
            advise(error)
            raise
        return wrap(output) if type(output) is _jax.ArrayImpl else output

    def _keep_parts(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let parts of the arrays that a call donates keep their values."""
        places, names = self._donated
        donated = [arg for place, arg in enumerate(args) if place in places]
        donated += [arg for name, arg in kwargs.items() if name in names]
        for leaf in jax.tree.leaves(donated):
            if type(leaf) is DeviceArray:
                keep_parts(leaf)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the function for these arguments, as `jax.jit` does."""
        return self._call.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the function for these arguments, as `jax.jit` does."""
        return self._call.trace(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of the outputs."""
        return self._call.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forget this function's programs."""
        self._call.clear_cache()
        if self._call_on_parts is not None:
            self._call_on_parts.clear_cache()

    def __repr__(self) -> str:
        return f"<devicearray.jit of {self.__wrapped__!r}>"  # type: ignore[attr-defined]
