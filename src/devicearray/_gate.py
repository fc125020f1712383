"""Gate: a device that stands still until the host opens it.

Asynchronous dispatch can be seen only while the device is behind the host, and a device that is
behind by luck (a large matrix, a ``sleep``) makes a page or a test that holds only by luck. A
gate puts the device behind on purpose: a program dispatched through it does not finish before
the host calls ``open()``, so "not ready yet" is a fact, on any machine and under any load.

Prior art: ``threading.Event`` is this object for threads, and is what the interface follows;
CUDA has it for streams, as ``cuStreamWaitValue32`` and ``cudaLaunchHostFunc``. In JAX one would
reach for ``pure_callback`` or ``io_callback``. They are refused here: a program with a host
callback is run synchronously, so its dispatch would wait at the gate together with the device,
and nobody would be left to open it. The choice made is a handler of XLA's foreign function
interface, which the runtime takes for ordinary work of the device. ``jax.ffi`` is public, and
``ctypes`` can write the handler, so there is no compiler and no binary. Refused as well is a
timer that opens the gate: it would bring luck back.

The device enters Python to wait, and that shapes two things below. The wait is a
``queue.SimpleQueue``, whose ``put`` may be called from a destructor, because a forgotten gate
opens in its own. And when Python ends, every gate is opened and what stood there is waited for:
a thread of the device that asks for an interpreter which is gone is never heard of again, and
the process hangs.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import queue
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from devicearray._array import DeviceArray, wrap

__all__ = ["Gate"]

_PLATFORM: Final = "cpu"
_TARGET: Final = "devicearray_gate"

#: The ticket of a program is a square matrix of this size, filled with the number of the closing
#: it belongs to. Its square costs 2 * 16**3 operations; XLA runs a program of fewer than 1,000
#: inside the dispatch, where the host would wait for itself.
_TICKET_SIZE: Final = 16


# The handler's side of XLA's foreign function interface: `xla/ffi/api/c_api.h`, which jaxlib
# ships in `jax.ffi.include_dir()`. Each class is the struct named in its docstring, up to the
# last field that is read here.

_EXTENSION_METADATA: Final = 1  # XLA_FFI_Extension_Metadata
_STAGE_EXECUTE: Final = 3  # XLA_FFI_ExecutionStage_EXECUTE

#: The oldest version of the interface, which has every field below. XLA accepts a handler that
#: names any version from its oldest supported one to its own.
_API_VERSION: Final = (0, 1)


class _Extension(ctypes.Structure):
    """XLA_FFI_InternalExtension, a linked list."""


_Extension._fields_ = (
    ("struct_size", ctypes.c_size_t),
    ("type", ctypes.c_int),
    ("next", ctypes.POINTER(_Extension)),
)


class _ApiVersion(ctypes.Structure):
    """XLA_FFI_Api_Version."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("major_version", ctypes.c_int),
        ("minor_version", ctypes.c_int),
    )


class _Metadata(ctypes.Structure):
    """XLA_FFI_Metadata."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("api_version", _ApiVersion),
    )


class _MetadataExtension(ctypes.Structure):
    """XLA_FFI_Metadata_Extension."""

    _fields_ = (
        ("extension_base", _Extension),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


class _Buffer(ctypes.Structure):
    """XLA_FFI_Buffer."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
    )


class _Buffers(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets, which have one layout."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )


class _CallFrame(ctypes.Structure):
    """XLA_FFI_CallFrame."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("api", ctypes.c_void_p),
        ("ctx", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("args", _Buffers),
        ("rets", _Buffers),
    )


def _handle(frame_pointer: ctypes._Pointer[_CallFrame]) -> None:
    """Answer one call from XLA: say which interface this is, or stand at the gate."""
    # An exception cannot cross into C. What is caught here is a defect, or the warning of a gate
    # that nobody opened where warnings are errors: it is shown, and the program goes on.
    try:
        frame = frame_pointer.contents
        metadata = _asked_metadata(frame)
        if metadata is not None:
            metadata.api_version.major_version, metadata.api_version.minor_version = _API_VERSION
        elif frame.stage == _STAGE_EXECUTE:
            _int32_at(frame.rets.buffers[0])[0] = 0
            _stand_at(_int32_at(frame.args.buffers[0])[0])
    except BaseException:
        traceback.print_exc()


def _asked_metadata(frame: _CallFrame) -> _Metadata | None:
    """Return what XLA wants filled in when it registers the handler, None in other calls."""
    extension = frame.extension_start
    while extension:
        if extension.contents.type == _EXTENSION_METADATA:
            asked = ctypes.cast(extension, ctypes.POINTER(_MetadataExtension))
            found: _Metadata = asked.contents.metadata.contents
            return found
        extension = extension.contents.next
    return None


def _int32_at(buffer: ctypes._Pointer[_Buffer]) -> ctypes._Pointer[ctypes.c_int32]:
    return ctypes.cast(buffer.contents.data, ctypes.POINTER(ctypes.c_int32))


#: XLA_FFI_Handler. What it returns is an XLA_FFI_Error, and None is no error.
_handler: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_CallFrame))(_handle)

# JAX does not annotate these.
_pycapsule: Callable[[Any], Any] = jax.ffi.pycapsule
_result_type: Callable[..., Any] = jax.ShapeDtypeStruct
_barrier: Callable[[Any], Any] = jax.lax.optimization_barrier
_partition: Callable[[], PartitionSpec] = PartitionSpec

jax.ffi.register_ffi_target(
    _TARGET, _pycapsule(ctypes.cast(_handler, ctypes.c_void_p)), platform=_PLATFORM
)


def gate(ticket: jax.Array, leaves: list[Any]) -> tuple[jax.Array, list[Any]]:
    """Return `leaves` as they are, once the closing named by `ticket` is over.

    The first result is what the handler returns. As a result of the program it cannot be removed
    as unused; declaring a side effect would keep it too, and cost the fast path of dispatch.
    """
    work = ticket @ ticket
    wait: Callable[..., Any] = jax.ffi.ffi_call(_TARGET, _result_type((), np.int32))
    passed, leaves = _barrier((wait(ticket, work), leaves))
    return passed, leaves


#: One program for all gates: which gate it is comes with the ticket.
_program: Callable[..., Any] = jax.jit(gate)


class _HostThread(threading.local):
    """What a thread of the host is doing. A thread of the device sees the values below."""

    dispatching = False
    ran_inside_dispatch = False


class _NotForGates(ValueError):
    """An array is where no gate stands."""


class _Closing:
    """One closing of a gate, from ``close()`` to the ``open()`` that ends it.

    It ends once and for good. A program is bound to the closing in which it was dispatched, so
    the ``open()`` that follows the dispatch lets it go, however soon a ``close()`` follows that.
    """

    _numbers = itertools.count(1)

    def __init__(self, timeout: float) -> None:
        self.number = next(self._numbers)
        self.timeout = timeout
        self.is_open = False
        self.timed_out = False
        self.timeout_reported = False
        # Holds one item once the gate is open: each program takes it and puts it back.
        self._key: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._tickets: dict[Any, jax.Array] = {}
        _closings[self.number] = self

    def open(self) -> None:
        if not self.is_open:
            self.is_open = True
            self._key.put(None)

    def wait(self) -> None:
        """Stand still until the gate opens, or until the patience of this closing is at an end."""
        with contextlib.suppress(queue.Empty):
            self._key.get(timeout=self.timeout)
            self._key.put(None)
        if not self.is_open:
            self._give_way()

    def _give_way(self) -> None:
        self.timed_out = True
        self.open()
        warnings.warn(_describe_timeout(self.timeout), RuntimeWarning, stacklevel=2)

    def prepare(self) -> None:
        """Put the usual ticket in its place now, so that a dispatch is a dispatch and no more."""
        # Where the default device is no CPU, arrays that were put on one are welcome still.
        with contextlib.suppress(_NotForGates):
            self.ticket_for([])

    def ticket_for(self, leaves: list[Any]) -> jax.Array:
        """Return the ticket, on the devices where a program on `leaves` will run.

        It is put there once, and explicitly: a ticket that came with each dispatch from the host,
        or from another device, would be a transfer that `jax.transfer_guard` rejects.
        """
        placement = _placement(leaves)
        key = jax.config.jax_default_device if placement is None else placement
        ticket = self._tickets.get(key)
        if ticket is None:
            shape = (_TICKET_SIZE, _TICKET_SIZE)
            ticket = jax.device_put(np.full(shape, self.number, np.int32), placement)
            _refuse_tracers([ticket])
            _refuse_other_platforms(ticket)
            self._tickets[key] = ticket
        return ticket


#: The closings that a program may name. One that is not here is over: the gate was opened and
#: closed again, or is gone.
_closings: weakref.WeakValueDictionary[int, _Closing] = weakref.WeakValueDictionary()

_host_thread = _HostThread()

#: The results of programs that may still stand at a gate, for the end of the process.
_in_flight: list[Any] = []
_in_flight_lock = threading.Lock()


def _stand_at(number: int) -> None:
    """Be the program: wait for the closing to end."""
    if _host_thread.dispatching:
        # The thread that would wait here is the one that would open the gate.
        _host_thread.ran_inside_dispatch = True
        return
    closing = _closings.get(number)
    if closing is not None:
        closing.wait()


def _dispatch(ticket: jax.Array, leaves: list[Any]) -> list[Any]:
    """Dispatch the program, and make sure that the device runs it apart from this thread."""
    _host_thread.dispatching = True
    _host_thread.ran_inside_dispatch = False
    try:
        # Without jit each operation would be a dispatch of its own, and run inside it.
        with jax.disable_jit(False):
            passed, values = _program(ticket, leaves)
    finally:
        _host_thread.dispatching = False
    # Inside a trace even a call on an array that is known is recorded, not dispatched.
    _refuse_tracers([passed])
    if _host_thread.ran_inside_dispatch:
        raise RuntimeError(
            "Gate: the program ran inside its own dispatch, in the thread that would have to open "
            "the gate, so it was not held. Asynchronous dispatch is off. Turn it on before JAX is "
            "first used: jax.config.update('jax_cpu_enable_async_dispatch', True)"
        )
    with _in_flight_lock:
        _in_flight[:] = [result for result in _in_flight if not result.is_ready()]
        _in_flight.append(passed)
    return list(values)


@atexit.register
def _leave_nobody_behind() -> None:
    """Open every gate and wait for what stood there, while there still is an interpreter.

    JAX's own function for the end of the process, which waits for effects such as
    ``jax.debug.print``, was registered earlier and so runs later.
    """
    for closing in list(_closings.values()):
        closing.open()
    for result in _in_flight:
        # A program whose inputs failed has failed at the gate as well: it is over.
        with contextlib.suppress(Exception):
            result.block_until_ready()


def _own(leaf: Any) -> Any:
    """Return a copy of a NumPy array, which its owner may write to while the program is held.

    JAX lets a program read some NumPy arrays where they are, after the dispatch has returned.
    """
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _placement(leaves: list[Any]) -> jax.Device | NamedSharding | None:
    """Return where `jax.jit` will run a program on `leaves`, None for the default device.

    As in `jax.jit`, committed arrays decide.
    """
    committed = [leaf for leaf in leaves if isinstance(leaf, jax.Array) and leaf.committed]
    if not committed:
        return None
    for leaf in committed:
        _refuse_other_places(leaf, committed[0])
    sharding = committed[0].sharding
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, _partition())
    return next(iter(sharding.device_set))


def _refuse_other_places(leaf: jax.Array, first: jax.Array) -> None:
    if not leaf.is_fully_addressable:
        raise _NotForGates(
            f"Gate: {_name(leaf)} has shards in other processes, whose gates this process cannot "
            "open. Pass arrays of this process only"
        )
    if leaf.sharding.device_set != first.sharding.device_set:
        raise _NotForGates(
            f"Gate: {_name(first)} and {_name(leaf)} are on different devices, and one dispatch "
            "is for one set of devices. Dispatch them one by one: [gate(x) for x in arrays]"
        )


def _refuse_other_platforms(ticket: jax.Array) -> None:
    for device in ticket.devices():
        if device.platform != _PLATFORM:
            raise _NotForGates(
                f"Gate: a gate stands before CPU devices only, and this program would run on "
                f"{device}. Put the arrays on a CPU device first: "
                "gate(jax.device_put(x, jax.devices('cpu')[0]))"
            )


def _refuse_tracers(leaves: list[Any]) -> None:
    for leaf in leaves:
        if isinstance(leaf, jax.core.Tracer):
            raise TypeError(
                "Gate: a gate was called inside a transformation (jit, grad, vmap, scan, ...). It "
                "holds a program back when the host dispatches it, and in here nothing is being "
                "dispatched. Call it outside, on what the transformed function takes or returns: "
                "f(gate(x)) or gate(f(x))"
            )


def _refuse_nan_checks() -> None:
    for option in ("jax_debug_nans", "jax_debug_infs"):
        if getattr(jax.config, option):
            raise RuntimeError(
                f"Gate: {option} is on. With it the host waits for the result of every dispatch, "
                "so a dispatch through a closed gate would never return. Turn it off: "
                f"jax.config.update('{option}', False)"
            )


def _name(leaf: jax.Array) -> str:
    return f"the array {leaf.dtype}{list(leaf.shape)}"


def _describe_timeout(timeout: float) -> str:
    return (
        f"Gate: nobody opened the gate within {timeout} seconds, so it opened by itself, and "
        "programs ran that were meant to be held. Open it before the host waits for a value from "
        "behind it, or allow more time: Gate(timeout=...)"
    )


class Gate:
    """A device that stands still until the host opens it.

    ``gate(x)`` returns at once the same values as `x`, as arrays that become ready only after
    `open`. What uses them can be dispatched meanwhile, and is not ready either. A gate is closed
    when it is made, and may be closed and opened any number of times, by any thread.

    Parameters
    ----------
    timeout : float, default 20.0
        How long the device waits at the closed gate, in seconds, counted from when it gets
        there. After that the gate opens by itself, so that a mistake does not hang the process;
        a `RuntimeWarning` says so at once, and the next use of the gate raises `TimeoutError`.

    Raises
    ------
    ValueError
        If `timeout` is not a positive number that a lock accepts (`threading.TIMEOUT_MAX`).

    See Also
    --------
    threading.Event : the same for threads.

    Notes
    -----
    *At most 31 dispatches behind a closed gate.* 32 programs may be in flight on a CPU device,
    and the one at the gate is the first of them. The next dispatch to that device, by any thread,
    waits until a program has finished, which is after `open`: a thread that has yet to open the
    gate would wait for itself, until `timeout`.

    *A closed gate holds a thread's work on a device.* Programs that one thread dispatches to one
    CPU device run in the order of their dispatch, so what it dispatches there after ``gate(x)``
    waits too, whether or not it uses the result. What other threads dispatch, or what runs on
    other devices, goes on as long as the runtime has a thread for it: it has as many as the
    machine has processors, or as there are devices if those are more, and on each device a
    program at a closed gate keeps one. (Before JAX 0.12, the next dispatch to all devices waits
    while a gate stands on each of them.)

    *Keep the gate.* A gate that is no longer referred to opens, as does every gate when Python
    ends, so that nothing is left hanging. (A thread that is not a daemon and waits behind a gate
    is joined before that: it holds the end up until `timeout`.)

    *Do not ask for the address of a value behind a closed gate.* ``unsafe_buffer_pointer`` waits
    until the program begins and holds Python's lock while it waits, so that no thread can open the
    gate, nor can its timeout.

    A process made by ``os.fork`` cannot use a gate, as it cannot use JAX.

    Examples
    --------
    >>> from jax import numpy as jnp
    >>> from devicearray import Gate

    >>> gate = Gate()
    >>> y = gate(jnp.arange(3.0))      # returns at once
    >>> z = y + 1                      # so does this
    >>> y.shape, y.is_ready(), z.is_ready()
    ((3,), False, False)

    >>> gate.open()
    >>> z.block_until_ready()
    Array([1., 2., 3.], dtype=float32)

    As a context manager a gate opens at the end of the block, whatever happens in it:

    >>> with Gate() as gate:
    ...     y = gate({"weights": jnp.ones(3), "step": 7})
    ...     print(y["step"].is_ready())
    False
    >>> int(y["step"])
    7
    """

    def __init__(self, timeout: float = 20.0) -> None:
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ValueError(
                f"Gate: timeout must be a number of seconds between 0 and {threading.TIMEOUT_MAX}, "
                f"not {timeout!r}"
            )
        self._closing = _Closing(timeout)
        self._closing_lock = threading.Lock()
        self._closing.prepare()

    @property
    def is_open(self) -> bool:
        """Whether programs pass at once."""
        return self._closing.is_open

    @property
    def timed_out(self) -> bool:
        """Whether the gate, since it was last closed, opened by itself after its timeout."""
        return self._closing.timed_out

    def __call__(self, x: Any) -> Any:
        """Return the values of `x`, as arrays that are not ready before the gate is open.

        This is one dispatch, compiled once for all gates and arrays of the same shapes and
        dtypes.

        Parameters
        ----------
        x : pytree
            Arrays of any dtype, NumPy arrays and Python numbers, on one CPU device or spread over
            several.

        Returns
        -------
        pytree
            The same structure with the same values, bit for bit. Shape, dtype, weak type and
            placement are those that `jax.jit` gives to results computed from `x`. A leaf is a
            `DeviceArray` where that of `x` is one, and a plain `jax.Array` elsewhere.

        Raises
        ------
        TypeError
            If the gate is called inside a transformation such as `jax.jit`.
        ValueError
            If an array is not on CPU devices of this process, or two arrays are committed to
            different devices.
        RuntimeError
            If programs would run inside their dispatch (``jax_cpu_enable_async_dispatch`` is
            off) or be waited for by it (``jax_debug_nans`` or ``jax_debug_infs`` is on): such a
            dispatch would wait for the thread that makes it.
        TimeoutError
            If the gate opened by itself since it was last closed, and nothing said so yet.

        Examples
        --------
        >>> import devicearray as da
        >>> with da.Gate() as gate:
        ...     y = gate([da.numpy.ones(2), 1.5])
        >>> y
        [DeviceArray([1., 1.], dtype=float32), Array(1.5, dtype=float32, weak_type=True)]
        """
        closing = self._closing
        _report_timeout(closing)
        _refuse_nan_checks()
        leaves, structure = jax.tree.flatten(x)
        _refuse_tracers(leaves)
        leaves = [_own(leaf) for leaf in leaves]
        values = _dispatch(closing.ticket_for(leaves), leaves)
        results = [
            wrap(value) if isinstance(leaf, DeviceArray) else value
            for leaf, value in zip(leaves, values, strict=True)
        ]
        return jax.tree.unflatten(structure, results)

    def open(self) -> None:
        """Let the device go on: what was dispatched through the gate, and what will be.

        Opening an open gate does nothing. The gate can be opened by whatever waits, at the very
        moment it begins to wait, which is what ``record(on_wait=gate.open)`` does.

        Raises
        ------
        TimeoutError
            If the gate opened by itself since it was last closed, and nothing said so yet: what
            was seen behind it says nothing. The gate is open nevertheless.

        Examples
        --------
        >>> import warnings
        >>> from devicearray import Gate
        >>> gate = Gate(timeout=0.01)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     print(float(gate(1.5)))          # waits, and nobody opens
        1.5
        >>> [warning.category.__name__ for warning in caught], gate.timed_out
        (['RuntimeWarning'], True)
        >>> gate.open()
        Traceback (most recent call last):
        ...
        TimeoutError: Gate: nobody opened the gate within 0.01 seconds, so it opened by itself, \
and programs ran that were meant to be held. Open it before the host waits for a value from \
behind it, or allow more time: Gate(timeout=...)
        """
        closing = self._closing
        closing.open()
        _report_timeout(closing)

    def close(self) -> None:
        """Hold what is dispatched through the gate from now on.

        What was dispatched earlier keeps going. Closing a closed gate does nothing.

        Raises
        ------
        TimeoutError
            If the gate opened by itself since it was last closed, and nothing said so yet. The
            gate is closed nevertheless.

        Examples
        --------
        >>> from devicearray import Gate
        >>> gate = Gate()
        >>> gate.open()
        >>> early = gate(1)
        >>> gate.close()
        >>> late = gate(2)
        >>> int(early), late.is_ready()
        (1, False)
        >>> gate.open()
        >>> int(late)
        2
        """
        with self._closing_lock:
            closing = self._closing
            if closing.is_open:
                self._closing = _Closing(closing.timeout)
                self._closing.prepare()
        _report_timeout(closing)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        exception_traceback: TracebackType | None,
    ) -> None:
        try:
            self.open()
        except TimeoutError as timeout:
            if exception is None:
                raise
            # The exception on its way is why the gate was not opened, or what came of it.
            exception.add_note(str(timeout))

    def __del__(self) -> None:
        # There is no closing if the constructor refused its arguments.
        if hasattr(self, "_closing"):
            self._closing.open()

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        cause = " by its timeout" if self.timed_out else ""
        return f"<Gate: {state}{cause}, timeout {self._closing.timeout} s>"


def _report_timeout(closing: _Closing) -> None:
    """Raise, once, if the closing came to its end by itself."""
    if closing.timed_out and not closing.timeout_reported:
        closing.timeout_reported = True
        raise TimeoutError(_describe_timeout(closing.timeout))
