"""Mirrors of JAX's namespaces: the same names, the same results, as DeviceArrays.

`devicearray.numpy` and `devicearray.random` are not lists of wrappers written by hand but what
`mirror` makes of ``jax.numpy`` and ``jax.random`` at import: every public name, by what it is.
A name that JAX adds is there at once; the refused alternative, 400 definitions, would be late.
For type checkers and editors the stub files beside the mirrors say the same, statically.

======================================  ====================================================
in JAX                                  here
======================================  ====================================================
a function                              one program a call (`_operation.operation`)
a function in `_jax_calls`              JAX's own call, its arrays as DeviceArrays
a ufunc, such as ``jnp.add``            `Ufunc`: call and methods as above
a scalar type, such as ``jnp.float32``  the same dtype, whose call makes a DeviceArray
``r_``, ``mgrid`` and their like        the same, indexed to a DeviceArray
a constant, class or dtype              the same object
======================================  ====================================================
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

import jax.numpy as jnp

from devicearray._array import wrap_tree
from devicearray._dispatch import as_jax
from devicearray._operation import mirror_of, operation

__all__ = ["Ufunc", "mirror", "public_names"]

_ScalarMeta: Any = type(jnp.float32)
_INDEXERS: Final = tuple(type(getattr(jnp, name)) for name in ("r_", "c_", "mgrid", "ogrid"))


class _ScalarType(_ScalarMeta):  # type: ignore[misc]
    """``jnp.float32`` and its like: equal to JAX's in every use as a dtype."""

    def __call__(cls, x: Any) -> Any:
        return wrap_tree(super().__call__(x))


class Ufunc:
    """A ufunc of ``jax.numpy``, such as ``add``, that gives DeviceArrays."""

    def __init__(self, ufunc: Any) -> None:
        self._ufunc = ufunc
        self.__name__ = ufunc.__name__
        self.__doc__ = ufunc.__doc__
        self._call = operation(_named(ufunc.__call__, ufunc.__name__))
        for method in ("reduce", "accumulate", "outer"):
            named = _named(getattr(ufunc, method), f"{ufunc.__name__}_{method}")
            setattr(self, method, operation(named))
        for method in ("at", "reduceat"):
            setattr(self, method, as_jax(getattr(ufunc, method)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __repr__(self) -> str:
        return repr(self._ufunc)


class _Indexer:
    """``r_``, ``c_``, ``mgrid`` and ``ogrid``: objects that make arrays when indexed."""

    def __init__(self, indexer: Any) -> None:
        self._indexer = indexer

    def __getitem__(self, index: Any) -> Any:
        return wrap_tree(self._indexer[index])

    def __repr__(self) -> str:
        return repr(self._indexer)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = name
    return call


def _function_maker(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Mirror a function that returns a function: ``vectorize`` and ``frompyfunc``."""

    @functools.wraps(maker)
    def make(*args: Any, **kwargs: Any) -> Any:
        made = maker(*args, **kwargs)
        return Ufunc(made) if isinstance(made, jnp.ufunc) else as_jax(made)

    return make


_FUNCTION_MAKERS: Final = frozenset({"frompyfunc", "vectorize"})


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module that are not modules."""
    return [
        name
        for name in dir(module)
        if not name.startswith("_") and not inspect.ismodule(getattr(module, name))
    ]


def _mirrored(name: str, value: Any) -> Any:
    if isinstance(value, _ScalarMeta):
        attributes = {"dtype": value.dtype, "__doc__": value.__doc__}
        return _ScalarType(value.__name__, (object,), attributes)
    if isinstance(value, jnp.ufunc):
        return Ufunc(value)
    if isinstance(value, _INDEXERS):
        return _Indexer(value)
    # What ``jit`` returns is no routine to `inspect`, but has ``lower``.
    if not inspect.isroutine(value) and not hasattr(value, "lower"):
        return value
    if name in _FUNCTION_MAKERS:
        return _function_maker(value)
    return mirror_of(name, value)


def mirror(module: ModuleType, into: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the public names of a JAX module, each as its mirror.

    Parameters
    ----------
    module : module
        A namespace of JAX.
    into : str
        The name of the module that will hold them.
    names : iterable of str, optional
        Which; by default all.
    """
    mirrored = {}
    for name in public_names(module) if names is None else names:
        value = mirrored[name] = _mirrored(name, getattr(module, name))
        if value is not getattr(module, name) and hasattr(value, "__module__"):
            value.__module__ = into
    return mirrored
