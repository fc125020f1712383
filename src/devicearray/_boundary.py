"""The boundary between a program and the runtime, watched from outside.

JAX has no place where it says "I wait now". It has a bottom: a dozen functions through which every
wait, dispatch, transfer and compile must pass, whatever the user called to get there. While
somebody listens, those are replaced by functions that tell the listeners and do what was asked.
When the last listener leaves, the originals are put back, so that a program which nobody records
runs the very code that it would run without this package.

Prior art: trio's instruments, which cost nothing when nobody listens; coverage and pyinstrument,
which ask the interpreter instead of the library; wrapt, which patches for good. Hooking the names
that users call was refused: ``float``, ``item``, ``tolist``, ``__array__``, ``__reduce__`` and
forty more come down to one property, and ``np.asarray`` passes all of them by, through the buffer
protocol.

Two facts shape the code. A wait may pass through several of the hooks (a sharded array waits for
each shard), so the outermost one counts and the inner ones are silent. And a listener is told
*before* the wait, when it may still refuse it, or open the gate that the wait is for.
"""

from __future__ import annotations

import functools
import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np

from devicearray import _jax

__all__ = ["Listener", "join", "leave"]

_now = time.perf_counter_ns
_HERE: Final = str(Path(__file__).parent)

# A C++ function's ``__qualname__`` may be no string, and a Python function insists on one.
_like = functools.partial(functools.wraps, assigned=("__name__", "__doc__"), updated=())


class Listener:
    """What is told of events at the boundary. All times are of `time.perf_counter_ns`.

    The methods run on the thread of the event, with the user's line among the frames above.
    """

    #: Whether only waits are of interest: the rest is then not hooked for this listener.
    only_waits = False

    def before_wait(self, hook: str, was_ready: bool | None, subject: Any) -> None:
        """Learn that the host is about to wait for `subject`. What is raised here prevents it."""

    def after_wait(
        self,
        hook: str,
        was_ready: bool | None,
        given: Any,
        copied: bool,
        start: int,
        end: int,
        error: str | None,
    ) -> None:
        """Learn that the host has waited.

        `given` is the abstract value of the array whose value the host has now, None if it only
        waited: to ask an array for its size would take as long as all the rest.
        """

    def dispatched(
        self, name: str, host_arguments: int, host_bytes: int, start: int | None, end: int
    ) -> None:
        """Learn that a program was handed to the runtime."""

    def transferred(
        self, hook: str, direction: str, arrays: int, nbytes: int, start: int, end: int
    ) -> None:
        """Learn that values began to move."""

    def compiled(self, name: str, outputs: int | None, hit: bool, start: int, end: int) -> None:
        """Learn that XLA compiled a program."""


class _Thread(threading.local):
    """What goes on on this thread."""

    waiting = False
    moving = False
    handed_over = False
    outputs: int | None = None  # of the module that is being compiled
    cache_hit = False


_thread = _Thread()

#: Those who listen. The tuple is replaced, never changed, so that a hook may walk it unlocked.
_listeners: tuple[Listener, ...] = ()
_lock = threading.RLock()


def join(listener: Listener) -> None:
    """Tell `listener` of all events from now on."""
    global _listeners
    with _lock:
        # Who only looks at waits may refuse one, and is asked before others act on it.
        everyone = (*_listeners, listener)
        _listeners = tuple(sorted(everyone, key=lambda one: not one.only_waits))
        _hook_what_is_needed()


def leave(listener: Listener) -> None:
    """Tell `listener` no more. The last one to leave takes the hooks along."""
    global _listeners
    with _lock:
        _listeners = tuple(one for one in _listeners if one is not listener)
        _hook_what_is_needed()


# Waits.


def _watch_wait(
    hook: str,
    concerns: Callable[[Any], bool],
    is_ready: Callable[[Any], bool | None],
    outcome: Callable[[Any, Any], tuple[Any, bool]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what wraps a function that waits.

    Parameters
    ----------
    hook : str
        What to call it, if the user's line calls it directly.
    concerns : callable
        Whether it will wait for this first argument at all.
    is_ready : callable
        Whether that is ready.
    outcome : callable
        Given the argument and the result: the abstract value that the host was given, or None,
        and whether it was copied.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @_like(original)
        def watched(subject: Any, *args: Any, **kwargs: Any) -> Any:
            listeners = _listeners
            if not listeners or _thread.waiting or not concerns(subject):
                return original(subject, *args, **kwargs)
            was_ready = is_ready(subject)
            for listener in listeners:
                listener.before_wait(hook, was_ready, subject)
            _thread.waiting = True
            error, given, copied = None, None, False
            start = _now()
            try:
                result = original(subject, *args, **kwargs)
                end = _now()
                given, copied = outcome(subject, result)
            except BaseException as exception:
                end, error = _now(), type(exception).__name__
                raise
            finally:
                _thread.waiting = False
                for listener in listeners:
                    listener.after_wait(hook, was_ready, given, copied, start, end, error)
            return result

        return watched

    return wrap


def _watch_property(
    watch: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[[property], property]:
    def wrap(original: property) -> property:
        assert original.fget is not None
        return property(watch(original.fget), doc=original.__doc__)

    return wrap


def _always(_subject: Any) -> bool:
    return True


def _array_is_ready(array: Any) -> bool | None:
    try:
        # JAX 0.10 ends the process when it is asked whether a deleted array is ready.
        ready: bool | None = None if array.is_deleted() else array.is_ready()
    except Exception:  # It was deleted, and the wait itself will say so.
        return None
    return ready


def _all_are_ready(arrays: Any) -> bool | None:
    ready = [_array_is_ready(array) for array in arrays]
    return False if False in ready else None if None in ready else True


def _tokens_are_ready(token_set: Any) -> bool | None:
    arrays, all_known = _jax.tokens_of(token_set)
    return _all_are_ready(arrays) if all_known else None


def _has_tokens(token_set: Any) -> bool:
    arrays, all_known = _jax.tokens_of(token_set)
    return bool(arrays) or not all_known


def _is_not_on_host(array: Any) -> bool:
    return not _jax.is_on_host(array)


def _has_buffer(array: Any) -> bool:
    """Tell whether the buffer protocol serves this array; where not, it refuses at once."""
    # bfloat16, int4 and their kind have no name in that protocol.
    return array.dtype.kind in "biufc" and len(array.sharding.device_set) == 1


def _is_on_one_device(array: Any) -> bool:
    """Tell whether there is one memory to hand out; where not, JAX refuses at once."""
    return len(array.sharding.device_set) == 1


def _nothing(_subject: Any, _result: Any) -> tuple[Any, bool]:
    return None, False


def _value_given(array: Any, _result: Any) -> tuple[Any, bool]:
    # JAX keeps a value that it had to copy.
    return array.aval, _jax.is_on_host(array)


def _value_and_copied(array: Any, result: Any) -> tuple[Any, bool]:
    return array.aval, bool(result[1])


def _memory_given(array: Any, _result: Any) -> tuple[Any, bool]:
    return array.aval, False


_block = _watch_wait("block_until_ready", _always, _array_is_ready, _nothing)
_block_several = _watch_wait("block_until_ready", _always, _all_are_ready, _nothing)
_tokens = _watch_wait("effects_barrier", _has_tokens, _tokens_are_ready, _nothing)
_value = _watch_wait("value", _is_not_on_host, _array_is_ready, _value_given)
_shard_value = _watch_wait("value", _always, _array_is_ready, _value_and_copied)
_buffer = _watch_wait("np.asarray", _has_buffer, _array_is_ready, _memory_given)
_dlpack = _watch_wait("dlpack", _is_on_one_device, _array_is_ready, _memory_given)
# The memory of a value is there when its program begins, so its address is waited for until then.
_pointer = _watch_wait("unsafe_buffer_pointer", _is_on_one_device, _array_is_ready, _nothing)


# Dispatches.

_PYTHON_SCALARS: Final[dict[type, Any]] = {
    bool: np.dtype(bool),
    int: np.dtype(int),
    float: np.dtype(float),
    complex: np.dtype(complex),
}
_ARRAY_TYPES: Final = _jax.ARRAY_TYPES
_HOST_TYPES: Final = (np.ndarray, int, float, complex)
#: Whether JAX is in 64 or in 32 bits makes no difference to types of fewer bytes than this.
_WIDE: Final = 8


def _host_values(values: Any) -> tuple[int, int]:
    """Return how many of the leaves of `values` are the host's, and their bytes on a device."""
    count = nbytes = 0
    for value in values:
        kind = type(value)
        if kind in _ARRAY_TYPES or value is None:
            continue
        if kind is dict:
            more, size = _host_values(value.values())
        elif kind is tuple or kind is list:
            more, size = _host_values(value)
        elif kind is np.ndarray or isinstance(value, np.generic):
            more, size = 1, _device_bytes(value.dtype, value.size)
        elif kind in _PYTHON_SCALARS:
            more, size = 1, _device_bytes(_PYTHON_SCALARS[kind], 1)
        elif isinstance(value, jax.Array):
            _ARRAY_TYPES.add(kind)  # typed keys, the first time
            continue
        else:
            leaves = jax.tree.leaves(value)
            is_leaf = len(leaves) == 1 and leaves[0] is value
            more, size = _host_leaf(value) if is_leaf else _host_values(leaves)
        count += more
        nbytes += size
    return count, nbytes


def _host_leaf(value: Any) -> tuple[int, int]:
    # JAX's own kinds of NumPy array and number, a member of an IntEnum; no reference.
    return (1, _size_on_device(value)) if isinstance(value, _HOST_TYPES) else (0, 0)


def _size_on_device(value: Any) -> int:
    aval = getattr(value, "aval", None)  # JAX's own kinds have one.
    if aval is not None:
        return int(aval.size * aval.dtype.itemsize)
    return _device_bytes(np.result_type(value), np.size(value))


def _device_bytes(dtype: Any, size: int) -> int:
    itemsize: int = dtype.itemsize
    if itemsize >= _WIDE:
        itemsize = jax.dtypes.canonicalize_dtype(dtype).itemsize
    return itemsize * size


#: What is known of a jitted function: its name, and whether all its arguments are traced. The
#: functions themselves are the keys, so the table is emptied when nobody listens any more.
_jitted: dict[Any, tuple[str, bool]] = {}
_MOST_JITTED: Final = 1_000


def _about(jitted: Any) -> tuple[str, bool]:
    if len(_jitted) >= _MOST_JITTED:
        _jitted.clear()
    name = _function_name(_jax.program_name(jitted))
    known = _jitted[jitted] = name, not _jax.has_static_arguments(jitted)
    return known


def _after_fast_dispatch(
    jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> None:
    end = _now()
    name, all_traced = _jitted.get(jitted) or _about(jitted)
    given: Sequence[Any] = args
    if not all_traced:
        given = _jax.traced_arguments(jitted, args, kwargs)
    elif kwargs:
        given = (*args, *kwargs.values())
    count, nbytes = _host_values(given)
    for listener in _listeners:
        listener.dispatched(name, count, nbytes, None, end)
    hook = _jax.dispatch_hook_of_jax()
    if hook is not None:
        hook(jitted, args, kwargs, output)


def _execute(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the dispatch of programs that need Python: first calls, callbacks, effects."""

    @_like(original)
    def watched(program: Any, *args: Any) -> Any:
        listeners = _listeners
        if not listeners or not _is_in_place("execute", watched):
            return original(program, *args)
        # All that are given, used by the program or not: the fast path cannot tell which are.
        count, nbytes = _host_values(args)
        name = _function_name(program.name)
        outer, _thread.handed_over = _thread.handed_over, False
        start = _now()
        try:
            return original(program, *args)
        finally:
            end = _now()
            handed_over, _thread.handed_over = _thread.handed_over, outer
            if handed_over:
                for listener in listeners:
                    listener.dispatched(name, count, nbytes, start, end)

    return watched


def _hand_over(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what gives a program to the runtime, which is not reached if the arguments are wrong."""

    @_like(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        _thread.handed_over = True
        return original(*args, **kwargs)

    return watched


def _function_name(program: str) -> str:
    return program.removeprefix("jit(").removesuffix(")") if program.startswith("jit(") else program


# Transfers.

_TO_DEVICE: Final = "host to device"
_BETWEEN_DEVICES: Final = "device to device"
_TO_HOST: Final = "device to host"


def _watch_transfer(
    hook: str, moves: Callable[..., dict[str, list[int]]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what wraps a function that moves values.

    `moves` gives, of the function's arguments, the sizes in bytes of what will move, by direction.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @_like(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            listeners = _listeners
            if not listeners or _thread.moving:
                return original(*args, **kwargs)
            moving = moves(*args, **kwargs)
            if _TO_DEVICE in moving and _jax.moves_arguments():
                del moving[_TO_DEVICE]  # They are the dispatch's.
            _thread.moving = True
            start = _now()
            try:
                result = original(*args, **kwargs)
            finally:
                _thread.moving = False
            end = _now()
            for direction, sizes in moving.items():
                for listener in listeners:
                    listener.transferred(hook, direction, len(sizes), sum(sizes), start, end)
            return result

        return watched

    return wrap


def _put_moves(aval: Any, sharding: Any, xs: Any, devices: Any, *_: Any, **_options: Any) -> Any:
    moving: dict[str, list[int]] = {}
    for x, device in zip(xs, devices, strict=True):
        if not isinstance(x, jax.Array):
            moving.setdefault(_TO_DEVICE, []).append(np.size(x) * aval.dtype.itemsize)
        elif x.sharding.device_set != {device}:
            moving.setdefault(_BETWEEN_DEVICES, []).append(x.nbytes)
    return moving


def _host_values_move(
    shardings: Any, _layouts: Any, _copies: Any, values: Any, **_options: Any
) -> Any:
    sizes = []
    for sharding, value in zip(shardings, values, strict=True):
        size = _shard_size(sharding, np.shape(value), _size_on_device(value))
        sizes += [size] * len(sharding.addressable_devices)
    return {_TO_DEVICE: sizes}


def _copies_move(arrays: Any, device_lists: Any, *_: Any) -> Any:
    sizes = []
    for array, devices in zip(arrays, device_lists, strict=True):
        size = _shard_size(array.sharding, array.shape, array.nbytes)
        here = array.sharding.addressable_devices_indices_map(array.shape)
        sizes += [size for old, new in zip(here, devices, strict=True) if old != new]
    return {_BETWEEN_DEVICES: sizes} if sizes else {}


def _shard_size(sharding: Any, shape: tuple[int, ...], nbytes: int) -> int:
    """Return the bytes of what one device has of an array of so many bytes."""
    size = math.prod(shape)
    return nbytes * math.prod(sharding.shard_shape(shape)) // size if size else 0


def _array_moves_to_host(array: Any) -> Any:
    # A CPU device's memory is the host's.
    devices = array.sharding.device_set
    away = not _jax.is_on_host(array) and any(device.platform != "cpu" for device in devices)
    return {_TO_HOST: [array.nbytes]} if away else {}


# Compiles.

_COMPILED = "/jax/core/compile/backend_compile_duration"
_CACHE_HIT = "/jax/compilation_cache/cache_hits"


def _compile(original: Callable[..., Any]) -> Callable[..., Any]:
    @_like(original)
    def watched(backend: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if not _listeners:
            return original(backend, module, *args, **kwargs)
        _thread.outputs = _jax.outputs_of_module(module)
        _thread.cache_hit = False
        return original(backend, module, *args, **kwargs)

    return watched


def _on_event(event: str, **_kwargs: Any) -> None:
    if event == _CACHE_HIT:
        _thread.cache_hit = True


def _on_duration(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event != _COMPILED:
        return
    end = _now()
    outputs, hit = _thread.outputs, _thread.cache_hit
    _thread.outputs, _thread.cache_hit = None, False
    for listener in _listeners:
        start = end - round(duration_secs * 1e9)
        listener.compiled(_function_name(str(kwargs.get("fun_name", ""))), outputs, hit, start, end)


# Hooks: in place while they are needed.

_WAITS: Final[dict[str, Callable[[Any], Any]]] = {
    "block_until_ready": _block,
    "block_several": _block_several,
    "tokens": _tokens,
    "value": _watch_property(_value),
    "shard_value": _shard_value,
    "whole_value": _shard_value,
    "buffer": _buffer,
    "dlpack": _dlpack,
    "pointer": _pointer,
}
_THE_REST: Final[dict[str, Callable[[Any], Any]]] = {
    "execute": _execute,
    "hand_over": _hand_over,
    "put": _watch_transfer("device_put", _put_moves),
    "put_host_values": _watch_transfer("device_put", _host_values_move),
    "copy_to_devices": _watch_transfer("device_put", _copies_move),
    "copy_to_host": _watch_transfer("copy_to_host_async", _array_moves_to_host),
    "compile": _compile,
}

#: What was put in place: by name, the original and what replaces it.
_in_place: dict[str, tuple[Any, Any]] = {}
#: What is in place beneath somebody else's replacement, idle, and the original of each.
_beneath: dict[Any, Any] = {}
_rest_in_place = False


def _hook_what_is_needed() -> None:
    rest = any(not listener.only_waits for listener in _listeners)
    amiss = [
        *_put_in_place(_WAITS, bool(_listeners)),
        *_put_in_place(_THE_REST, rest),
        _listen_to_jax(rest),
    ]
    # Only now that all is done, since a warning may be an exception.
    for message in filter(None, amiss):
        warnings.warn(message, RuntimeWarning, skip_file_prefixes=(_HERE,))


def _put_in_place(wrappers: dict[str, Callable[[Any], Any]], needed: bool) -> list[str | None]:
    names = wrappers.keys() & _jax.HOOKS.keys()
    if needed:
        for name in names:
            _install(name, wrappers[name])
        return []
    return [_remove(name) for name in names & _in_place.keys()]


def _install(name: str, wrapper: Callable[[Any], Any]) -> None:
    hook = _jax.HOOKS[name]
    current = hook.get()
    if name in _in_place and current is not _in_place[name][0]:
        return
    while current in _beneath:
        current = _beneath.pop(current)
    _in_place[name] = current, wrapper(current)
    hook.set(_in_place[name][1])


def _is_in_place(name: str, replacement: Any) -> bool:
    # In one step: another thread may be about to take it out.
    return _in_place.get(name, (None, None))[1] is replacement


def _remove(name: str) -> str | None:
    hook = _jax.HOOKS[name]
    original, replacement = _in_place.pop(name)
    current = hook.get()
    if current is replacement:
        hook.set(original)
    elif current is not original:
        # Whoever replaced ours calls it still. The next to listen goes on top.
        _beneath[replacement] = original
        return (
            f"{hook.owner.__name__}.{hook.name} was replaced by something else while devicearray "
            "watched it, and not put back. The hook stays beneath, idle."
        )
    return None


def _listen_to_jax(needed: bool) -> str | None:
    """Set the hooks that JAX itself offers: for fast dispatches, and for compiles."""
    global _rest_in_place
    if needed == _rest_in_place:
        return None
    _rest_in_place = needed
    _jax.set_dispatch_hook(_after_fast_dispatch if needed else None)
    if needed:
        jax.monitoring.register_event_listener(_on_event)
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
        return None
    _jitted.clear()
    try:
        jax.monitoring.unregister_event_duration_listener(_on_duration)
        jax.monitoring.unregister_event_listener(_on_event)
    except (AssertionError, ValueError):
        return (
            "The listeners of jax.monitoring were cleared while devicearray was one of them: the "
            "compiles since then were not recorded."
        )
    return None
