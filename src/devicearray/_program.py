"""Program: one compiled XLA executable, and the cache that keeps it.

``jax.jit`` compiles when a function meets arguments of a new kind, and keeps the executable out
of sight: nothing public lists what a process has compiled, or tells that the second call was
served by the first call's program. Here a program is a value. It is compiled ahead of time
(``jax.jit(f).trace(...).lower().compile()``), has a name, outputs and a compile time, and lives
in the cache of the function that it belongs to, under a key that holds all that its
compilation depended on.

Prior art: JAX's own ``weakref_lru_cache`` around lowering, and ``torch._dynamo``'s guards. A
guard is code that decides whether a program still fits; a key is a value that two calls share
or do not, and can be read. The choice is a key. The refused alternative, one global dictionary
of all functions, would keep every function and the arrays it closes over alive.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax

__all__ = ["Key", "Program", "ProgramCache", "clear_caches", "programs"]


class Key(NamedTuple):
    """All that decides which program a call runs, besides the function itself."""

    statics: tuple[Any, ...]
    """The static arguments: place, type and value of each (``1 == True``, so the type too)."""
    structure: Any
    """How the array arguments nest."""
    arrays: tuple[Any, ...]
    """For each array argument what `abstract` says of it."""
    context: tuple[Any, ...]
    """JAX's settings (`_jax.trace_context`)."""


class Abstract(NamedTuple):
    """What a compilation must know of an argument, and what it may not know: its value."""

    aval: Any
    sharding: Any
    committed: bool
    format: Any


def abstract(leaf: Any) -> Abstract:
    """Return what the program for `leaf` depends on: shape, dtype, weak type and placement.

    Raises
    ------
    TypeError, OverflowError
        If `leaf` is nothing that JAX takes as an array.
    """
    if not isinstance(leaf, jax.Array):
        return Abstract(jax.typeof(leaf), None, False, None)
    return Abstract(jax.typeof(leaf), leaf.sharding, leaf.committed, getattr(leaf, "format", None))


@dataclass(eq=False, slots=True, weakref_slot=True)
class Program:
    """A compiled XLA executable, as `devicearray.programs` lists it.

    It does not count its calls: they go from C++ to the runtime without passing here, and a
    count kept by the implementation could flatter it.

    Examples
    --------
    >>> import devicearray as da
    >>> da.clear_caches()
    >>> x = da.asarray([1.0, 2.0])
    >>> y = x + x
    >>> z = y + y
    >>> [program] = da.programs()
    >>> program.name, program.outputs
    ('add', ('float32[2]',))
    """

    name: str
    """The function's name."""
    compile_seconds: float
    """How long tracing, lowering and compiling took."""
    compiled: jax.stages.Compiled = field(repr=False)
    """JAX's own object for the executable: ``as_text()``, ``cost_analysis()`` and so on."""
    effects: Any = field(repr=False)
    """The side effects of the jaxpr."""
    out_tree: Any = field(repr=False)
    """How the outputs nest."""
    outputs: tuple[str, ...] = ()
    """The abstract values of the outputs, such as ``float32[2]``."""


class _Entry:
    """A place in a cache: the first thread to come compiles, the others wait for it."""

    __slots__ = ("lock", "program")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.program: Program | _Unset | None = UNSET


class _Unset:
    """Not compiled yet: told apart from None, which is *cannot be compiled*."""


UNSET = _Unset()


class ProgramCache:
    """The programs of one function: compile once, run many. Threads may share it."""

    __slots__ = ("__weakref__", "_entries", "_lock", "forget")

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        self._lock = threading.Lock()
        self.forget: Callable[[], None] | None = None
        """Called by `clear`: empties what the C++ dispatcher remembers."""
        with _registry_lock:
            _caches.add(self)

    def get(self, key: Key, compile_program: Callable[[], Program | None]) -> Program | None:
        """Return the program for `key`, compiled by `compile_program` if it is new.

        None, which `compile_program` may return, is kept too: the call is not one program.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            if isinstance(entry.program, _Unset):
                entry.program = compile_program()
            return entry.program

    def programs(self) -> list[Program]:
        """Return the programs, oldest first."""
        with self._lock:
            entries = list(self._entries.values())
        return [entry.program for entry in entries if isinstance(entry.program, Program)]

    def clear(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._entries.clear()
        if self.forget is not None:
            self.forget()


_registry_lock = threading.Lock()
_caches: weakref.WeakSet[ProgramCache] = weakref.WeakSet()


def _all_caches() -> list[ProgramCache]:
    with _registry_lock:
        return list(_caches)


def programs() -> list[Program]:
    """Return the programs that this package has compiled and keeps.

    Returns
    -------
    list of Program
        Sorted by name. The programs of JAX's own functions are not among them.
    """
    found = [program for cache in _all_caches() for program in cache.programs()]
    return sorted(found, key=lambda program: program.name)


def clear_caches() -> None:
    """Forget all programs that this package has compiled.

    JAX's own caches stay; `jax.clear_caches` empties those.
    """
    for cache in _all_caches():
        cache.clear()


def compile_program(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    """Trace, lower and compile what `jax.jit` returned, for arguments of this kind."""
    start = time.perf_counter()
    traced = jitted.trace(*args, **kwargs)
    compiled = traced.lower().compile()
    seconds = time.perf_counter() - start
    return Program(
        name=traced.fun_name,
        compile_seconds=seconds,
        compiled=compiled,
        effects=traced.jaxpr.effects,
        out_tree=jax.tree.structure(traced.out_info),
        outputs=tuple(str(aval) for aval in traced.jaxpr.out_avals),
    )
