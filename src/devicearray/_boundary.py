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

import contextlib
import functools
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import numpy as np

from devicearray import _jax

__all__ = ["Listener", "join", "leave"]

_now = time.perf_counter_ns

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
    dispatching = False
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
        _listeners = (*_listeners, listener)
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
        ready: bool = array.is_ready()
    except Exception:  # It was deleted, and the wait itself will say so.
        return None
    return ready


def _all_are_ready(arrays: Any) -> bool | None:
    ready = [_array_is_ready(array) for array in arrays]
    return False if False in ready else None if None in ready else True


def _tokens_are_ready(tokens: Any) -> bool | None:
    # The tokens that programs return to the runtime cannot be asked.
    if tokens.output_runtime_tokens:
        return None
    return _all_are_ready([token._buf for token in tokens.current_tokens.values()])


def _has_tokens(tokens: Any) -> bool:
    return bool(tokens.current_tokens or tokens.output_runtime_tokens)


def _is_not_on_host(array: Any) -> bool:
    return array._npy_value is None


def _has_buffer(array: Any) -> bool:
    """Tell whether the buffer protocol serves this array; where not, it refuses at once."""
    # bfloat16, int4 and their kind have no name in that protocol.
    return array.dtype.kind in "biufc" and len(array.sharding.device_set) == 1


def _nothing(_subject: Any, _result: Any) -> tuple[Any, bool]:
    return None, False


def _value_given(array: Any, _result: Any) -> tuple[Any, bool]:
    # JAX keeps a value that it had to copy.
    return array.aval, array._npy_value is not None


def _value_and_copied(array: Any, result: Any) -> tuple[Any, bool]:
    return array.aval, bool(result[1])


def _memory_given(array: Any, _result: Any) -> tuple[Any, bool]:
    return array.aval, False


_block = _watch_wait("block_until_ready", _always, _array_is_ready, _nothing)
_block_several = _watch_wait("block_until_ready", _always, _all_are_ready, _nothing)
_tokens = _watch_wait("effects_barrier", _has_tokens, _tokens_are_ready, _nothing)
_value = _watch_wait("value", _is_not_on_host, _array_is_ready, _value_given)
_shard_value = _watch_wait("value", _always, _array_is_ready, _value_and_copied)
_buffer = _watch_wait("buffer", _has_buffer, _array_is_ready, _memory_given)
_dlpack = _watch_wait("dlpack", _always, _array_is_ready, _memory_given)


# Dispatches.

_PYTHON_SCALARS: Final[dict[type, Any]] = {
    bool: np.dtype(bool),
    int: np.dtype(int),
    float: np.dtype(float),
    complex: np.dtype(complex),
}
_ARRAY_TYPES: Final = _jax.ARRAY_TYPES
_HOST_TYPES: Final = (np.ndarray, np.generic)


def _host_values(values: Any) -> tuple[int, int]:
    """Return how many of the leaves of `values` the host has to move, and their bytes."""
    count = nbytes = 0
    for value in values:
        kind = type(value)
        if kind in _ARRAY_TYPES:
            continue
        if kind in _PYTHON_SCALARS:
            inner = 1, _device_bytes(_PYTHON_SCALARS[kind], 1)
        elif isinstance(value, _HOST_TYPES):
            inner = 1, _device_bytes(value.dtype, value.size)
        elif isinstance(value, Mapping):
            inner = _host_values(value.values())
        elif kind in (tuple, list):
            inner = _host_values(value)
        else:
            leaves = jax.tree.leaves(value)
            inner = (0, 0) if leaves == [value] or not leaves else _host_values(leaves)
        count, nbytes = count + inner[0], nbytes + inner[1]
    return count, nbytes


def _device_bytes(dtype: Any, size: int) -> int:
    return int(jax.dtypes.canonicalize_dtype(dtype).itemsize) * size


#: What is known of a jitted function: its name, and whether all its arguments are traced. The
#: functions themselves are the keys, so the table is emptied when nobody listens any more.
_jitted: dict[Any, tuple[str, bool]] = {}
_MOST_JITTED: Final = 1_000


def _about(jitted: Any) -> tuple[str, bool]:
    if len(_jitted) >= _MOST_JITTED:
        _jitted.clear()
    known = _jitted[jitted] = _jax.program_name(jitted), not _jax.has_static_arguments(jitted)
    return known


def _after_fast_dispatch(
    jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> None:
    end = _now()
    name, all_traced = _jitted.get(jitted) or _about(jitted)
    traced, traced_by_name = args, kwargs
    if not all_traced:
        traced, traced_by_name = _jax.traced_arguments(jitted, args, kwargs)
    count, nbytes = _host_values(traced)
    if traced_by_name:
        more = _host_values(traced_by_name.values())
        count, nbytes = count + more[0], nbytes + more[1]
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
        if not listeners:
            return original(program, *args)
        used = [arg for i, arg in enumerate(args) if i in program.kept_var_idx]
        count, nbytes = _host_values(used)
        name = _function_name(program.name)
        _thread.dispatching = True
        start = _now()
        try:
            result = original(program, *args)
        finally:
            _thread.dispatching = False
        end = _now()
        for listener in listeners:
            listener.dispatched(name, count, nbytes, start, end)
        return result

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
            if not listeners or _thread.dispatching:
                return original(*args, **kwargs)
            moving = moves(*args)
            start = _now()
            result = original(*args, **kwargs)
            end = _now()
            for direction, sizes in moving.items():
                for listener in listeners:
                    listener.transferred(hook, direction, len(sizes), sum(sizes), start, end)
            return result

        return watched

    return wrap


def _put_moves(_aval: Any, _sharding: Any, values: Any, devices: Any, *_: Any) -> Any:
    moving: dict[str, list[int]] = {}
    for value, device in zip(values, devices, strict=True):
        if type(value) not in _ARRAY_TYPES:
            moving.setdefault(_TO_DEVICE, []).append(_size_on_device(value))
        elif value.sharding.device_set != {device}:
            moving.setdefault(_BETWEEN_DEVICES, []).append(value.nbytes)
    return moving


def _host_values_move(_shardings: Any, _layouts: Any, _copies: Any, values: Any, *_: Any) -> Any:
    return {_TO_DEVICE: [_size_on_device(value) for value in values]}


def _copies_move(values: Any, device_lists: Any, *_: Any) -> Any:
    sizes = [
        value.nbytes
        for value, devices in zip(values, device_lists, strict=True)
        if value.sharding.device_set != set(devices)
    ]
    return {_BETWEEN_DEVICES: sizes} if sizes else {}


def _array_moves_to_host(array: Any) -> Any:
    # A CPU device's memory is the host's.
    devices = array.sharding.device_set
    away = array._npy_value is None and any(device.platform != "cpu" for device in devices)
    return {_TO_HOST: [array.nbytes]} if away else {}


def _size_on_device(value: Any) -> int:
    return _device_bytes(getattr(value, "dtype", np.result_type(value)), np.size(value))


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
}
_THE_REST: Final[dict[str, Callable[[Any], Any]]] = {
    "execute": _execute,
    "put": _watch_transfer("device_put", _put_moves),
    "put_host_values": _watch_transfer("device_put", _host_values_move),
    "copy_to_devices": _watch_transfer("device_put", _copies_move),
    "copy_to_host": _watch_transfer("copy_to_host_async", _array_moves_to_host),
    "compile": _compile,
}

#: What was put in place: by name, the original and what replaces it.
_in_place: dict[str, tuple[Any, Any]] = {}
_rest_in_place = False


def _hook_what_is_needed() -> None:
    _put_in_place(_WAITS, bool(_listeners))
    rest = any(not listener.only_waits for listener in _listeners)
    _put_in_place(_THE_REST, rest)
    _listen_to_jax(rest)


def _put_in_place(wrappers: dict[str, Callable[[Any], Any]], needed: bool) -> None:
    for name in wrappers.keys() & _jax.HOOKS.keys():
        if needed:
            _install(name, wrappers[name])
        else:
            _remove(name)


def _install(name: str, wrapper: Callable[[Any], Any]) -> None:
    hook = _jax.HOOKS[name]
    current = hook.get()
    if name in _in_place and current is not _in_place[name][0]:
        return
    _in_place[name] = current, wrapper(current)
    hook.set(_in_place[name][1])


def _remove(name: str) -> None:
    if name not in _in_place:
        return
    hook = _jax.HOOKS[name]
    original, replacement = _in_place[name]
    current = hook.get()
    if current is replacement:
        hook.set(original)
    elif current is not original:
        # Whoever replaced ours calls it still, and will for ever; with no listener it does
        # nothing but call the original. It is used again by whoever listens next.
        warnings.warn(
            f"{hook.owner.__name__}.{hook.name} was replaced by something else while devicearray "
            "watched it, and not put back. The hook stays beneath, idle.",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    del _in_place[name]


def _listen_to_jax(needed: bool) -> None:
    """Set the hooks that JAX itself offers: for fast dispatches, and for compiles."""
    global _rest_in_place
    if needed == _rest_in_place:
        return
    _rest_in_place = needed
    _jax.set_dispatch_hook(_after_fast_dispatch if needed else None)
    if needed:
        jax.monitoring.register_event_listener(_on_event)
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
    else:
        _jitted.clear()
        # Somebody may have cleared all listeners since.
        with contextlib.suppress(AssertionError):
            jax.monitoring.unregister_event_listener(_on_event)
        with contextlib.suppress(AssertionError):
            jax.monitoring.unregister_event_duration_listener(_on_duration)
