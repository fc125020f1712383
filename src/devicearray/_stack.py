"""Stacks: arrays whose rows were made one by one, and that are put together if they are asked for.

``key, sub = split(key)`` makes an array of two keys only to take it apart. So `split` here is a
program that returns the keys themselves. What the caller gets is the array that JAX would
return; unpacked, it hands the keys out, and nothing is dispatched; used in any other way, it is
put together first.

JAX writes arrays of typed keys in Python, as a shell around an array of raw keys, and to make and
to take one as an argument costs about as much as a dispatch. So a key of a stack stays a raw one.
A program of ours makes a typed key of it inside; code of JAX's gets a shell when it takes the key.

Prior art: ``jax.random.split`` itself, whose documentation unpacks its result, and whose authors
considered an "unpack" primitive for it (a comment in JAX's ``PRNGKeyArray.__iter__``). Refused: to
return a tuple, which is no array: ``keys.shape`` and ``jax.vmap(f)(keys)`` are used as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp

from devicearray import _jax
from devicearray._advice import advise
from devicearray._array import DeviceArray, wrap
from devicearray._dispatch import as_they_are, dispatcher
from devicearray._rows import Source, abstract, new_part, parts_in_order
from devicearray._view import Operand, whole_operand, with_taken

__all__ = ["split_into_rows"]

#: How many keys are made one by one at most. More are rather used by ``vmap``, or by a loop, for
#: both of which one array is the better form.
_MOST: Final = 16


class _Made:
    """What the parts below have in common: they were made here, and lie where their keys do."""

    __slots__ = ("_kind", "_raw", "aval", "surroundings")

    scalar = None
    has_parts_with_rows = False

    def __init__(self, raw: list[Any], kind: Any, aval: Any, here: _jax.Surroundings) -> None:
        self._raw = raw
        self._kind = kind
        self.aval = aval
        self.surroundings = here

    def readable_at(self, _index: Any) -> None:
        """Return nothing: the host reads the buffer."""
        return

    def rows_at_hand(self) -> Any:
        """Return the rows that have been made already."""
        return None


class _Keys(_Made):
    """Typed keys, each of which is still a raw one. The index says which."""

    __slots__ = ()

    def buffer_at(self, index: int) -> Any:
        """Return a key as an array of JAX's."""
        return _jax.key_array(self._kind, self._raw[index])

    def operand_at(self, index: int) -> Operand:
        """Return a key as the operand of a program, which makes it a typed one."""
        return whole_operand(self._raw[index], self._kind)

    def place_at(self, index: int) -> Any:
        """Return an array that lies where the key does, and is as ready."""
        return self._raw[index]

    def in_order(self, *, backwards: bool = False) -> Iterator[DeviceArray]:
        """Return an iterator over the keys."""
        return parts_in_order(self, len(self._raw), backwards=backwards)


class _Stack(_Made):
    """An array of keys, typed or raw, that have been made one by one."""

    __slots__ = ("_are_given",)

    def __init__(self, raw: list[Any], kind: Any, aval: Any, here: _jax.Surroundings) -> None:
        super().__init__(raw, kind, aval, here)
        self._are_given = False

    def buffer_at(self, _index: None) -> Any:
        """Return the array as one of JAX's."""
        with _jax.within(self.surroundings):
            stacked = _put_together(self._raw)
        return stacked if self._kind is None else _jax.key_array(self._kind, stacked)

    def operand_at(self, _index: None) -> None:
        """Return nothing: programs take the buffer."""
        return

    def place_at(self, _index: None) -> Any:
        """Return an array that lies where this will, and is as ready."""
        return self._raw[0]

    def rows_at_hand(self) -> Any:
        """Return the keys, once: two arrays of one buffer would be deleted together."""
        if self._are_given or not _jax.is_here(self.surroundings):
            return None
        self._are_given = True
        if self._kind is None:
            return _Buffers(self._raw)
        key = abstract((), self.aval.dtype, False)
        return _Keys(self._raw, self._kind, key, self.surroundings)


class _Buffers:
    """Rows that are arrays of JAX's, each on its own."""

    __slots__ = ("_buffers",)

    def __init__(self, buffers: list[Any]) -> None:
        self._buffers = buffers

    def in_order(self, *, backwards: bool = False) -> Iterator[DeviceArray]:
        """Return an iterator over the rows."""
        return map(wrap, reversed(self._buffers) if backwards else self._buffers)


def _stacked(rows: list[Any]) -> Any:
    return jnp.stack(rows)


def _split(key: Any, num: int) -> list[Any]:
    keys = jax.random.split(key, num)
    is_typed = jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    raw = jax.random.key_data(keys) if is_typed else keys
    return [raw[i] for i in range(num)]


_split.__name__ = "split"
_stacked.__name__ = "stack"
_put_together = dispatcher(jax.jit(_stacked), "stack", form=as_they_are)
_split_apart = dispatcher(jax.jit(with_taken(_split), static_argnums=1), "split", form=as_they_are)


def split_into_rows(split: Callable[..., Any]) -> Callable[..., Any]:
    """Return `split`, the mirror of ``jax.random.split``, so that it makes few keys one by one."""

    @functools.wraps(split)
    def call(key: Any, num: Any = 2) -> Any:
        try:
            parts = _parts(key, num) if type(num) is int and 0 < num <= _MOST else None
        except Exception as error:
            advise(error)
            raise
        return split(key, num) if parts is None else parts

    return call


def _parts(key: Any, num: int) -> DeviceArray | None:
    """Return the keys, not put together; None if that is not how they can be made."""
    if _jax.is_in_charge():
        return None
    here = _jax.surroundings()
    given = _given(key, here)
    if given is None:
        return None
    key_operand, kind, dtype = given
    raw = _split_apart(key_operand, num)
    shape = (num,) if kind is not None else (num, *raw[0].shape)
    aval = abstract(shape, dtype, False)
    return new_part(_Stack(raw, kind, aval, here), None)


def _given(key: Any, here: _jax.Surroundings) -> tuple[Any, Any, Any] | None:
    """Return one key as an operand, its kind and its dtype; None if it is something else."""
    if type(key) is DeviceArray:
        part = key._source
        if type(part) is _Keys and part.surroundings == here:
            return part.operand_at(key._index), part._kind, part.aval.dtype
        key = key._buffer
    if type(key) is _jax.KeyArray:
        if key.shape or not _is_plain(key, here):
            return None
        raw, kind = _jax.raw_key_data(key)
        return whole_operand(raw, kind), kind, key.dtype
    is_raw = type(key) is _jax.ArrayImpl and key.dtype == jnp.uint32 and key.ndim == 1
    return (key, None, key.dtype) if is_raw and _is_plain(key, here) else None


def _is_plain(key: Any, here: _jax.Surroundings) -> bool:
    source = Source(key)
    return source.is_on_one_device and source.is_plain(here)
