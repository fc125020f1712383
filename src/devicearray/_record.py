"""record(): see every compile, dispatch, transfer and host sync of any JAX program.

"Where does my program wait, and what did it dispatch?" JAX answers neither. ``transfer_guard`` sees
transfers, not waits, and on CPU no read by the host at all; ``log_compiles`` sees compiles; the
profiler sees everything a device did and not the line that made it. `record` listens at the
boundary to the runtime (`_boundary`), where all four pass, finds the user's line for each (`_site`)
and keeps them in a `Log`.

Prior art: PyTorch's profiler and its ``set_sync_debug_mode``, of which the first has lines without
waits and the second waits without times; pyinstrument's context manager, after which the interface
is made. A wrapper around the user's arrays was refused: it would see only what is done to them, and
the program would no longer be the one that runs without it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from types import TracebackType
from typing import Any, Final

from devicearray import _boundary, _jax, _profile
from devicearray._events import Compile, Dispatch, Event, HostSync, Transfer
from devicearray._guard import in_allowed_region
from devicearray._later import refuse_what_runs_later
from devicearray._log import Log
from devicearray._site import Finder, Found, finder

__all__ = ["record"]

_now = time.perf_counter_ns
_get_ident = threading.get_ident
_NANO: Final = 1e-9
_VERSIONS: Final = {name: version(name) for name in ("jax", "jaxlib", "devicearray")}

#: A raw fact: what makes an event of it, when it began (or None) and ended in nanoseconds, the
#: thread, the line, and what else this kind of event has. One flat tuple costs least.
_Raw = tuple[Any, ...]


class _Thread(threading.local):
    """Whether this thread is inside `on_wait`, which is not told of the waits it makes itself."""

    in_on_wait = False


_thread = _Thread()


class _Recorder(_boundary.Listener):
    """Keeps what happens at the boundary, as cheaply as it can."""

    def __init__(self, find: Finder, on_wait: Callable[[], Any] | None) -> None:
        self._find = find.find
        self._on_wait = on_wait
        self._raw: list[_Raw] = []
        self.origin = _now()
        self.threads: dict[int, str] = {}

    def before_wait(self, hook: str, was_ready: bool | None, subject: Any) -> None:
        if self._on_wait is None or was_ready or _thread.in_on_wait:
            return
        _thread.in_on_wait = True
        try:
            self._on_wait()
        finally:
            _thread.in_on_wait = False

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
        # Refused, and left to another protocol: nothing was waited for.
        if error == "BufferError":
            return
        found, allowed = self._find(hook), in_allowed_region()
        self._raw.append(
            (
                _host_sync,
                start,
                end,
                self._thread(),
                found,
                was_ready,
                given,
                copied,
                allowed,
                error,
            )
        )

    def dispatched(
        self, name: str, host_arguments: int, host_bytes: int, start: int | None, end: int
    ) -> None:
        found = self._find(name)
        self._raw.append(
            (_dispatch, start, end, self._thread(), found, name, host_arguments, host_bytes)
        )

    def transferred(
        self, hook: str, direction: str, arrays: int, nbytes: int, start: int, end: int
    ) -> None:
        found = self._find(hook)
        self._raw.append((_transfer, start, end, self._thread(), found, direction, arrays, nbytes))

    def compiled(self, name: str, outputs: int | None, hit: bool, start: int, end: int) -> None:
        found = self._find(name)
        self._raw.append((_compile, start, end, self._thread(), found, name, outputs, hit))

    def _thread(self) -> int:
        thread = _get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread

    def take(self) -> list[Event]:
        """Return the events that were not taken yet."""
        raw = self._raw[:]
        del self._raw[: len(raw)]  # Others may have appended since.
        return [self._event(*one) for one in raw]

    def _event(self, make: Callable[..., Event], start: int | None, end: int, *rest: Any) -> Event:
        return make(None if start is None else self.seconds(start), self.seconds(end), *rest)

    def seconds(self, moment: int) -> float:
        """Return how long after the beginning a moment was."""
        return (moment - self.origin) * _NANO


def _host_sync(
    start: float,
    end: float,
    thread: int,
    found: Found,
    was_ready: bool | None,
    given: Any,
    copied: bool,
    allowed: bool,
    error: str | None,
) -> HostSync:
    return HostSync(
        start=start,
        end=end,
        thread=thread,
        site=found.site,
        trigger=found.trigger,
        was_ready=was_ready,
        nbytes=0 if given is None else given.size * given.dtype.itemsize,
        copied=copied,
        allowed=allowed,
        error=error,
    )


def _dispatch(
    start: float | None,
    end: float,
    thread: int,
    found: Found,
    name: str,
    host_arguments: int,
    host_bytes: int,
) -> Dispatch:
    return Dispatch(
        start=start,
        end=end,
        thread=thread,
        site=found.site,
        name=name,
        host_arguments=host_arguments,
        host_bytes=host_bytes,
    )


def _transfer(
    start: float,
    end: float,
    thread: int,
    found: Found,
    direction: str,
    arrays: int,
    nbytes: int,
) -> Transfer:
    return Transfer(
        start=start,
        end=end,
        thread=thread,
        site=found.site,
        trigger=found.trigger,
        direction=direction,
        arrays=arrays,
        nbytes=nbytes,
    )


def _compile(
    start: float,
    end: float,
    thread: int,
    found: Found,
    name: str,
    outputs: int | None,
    hit: bool,
) -> Compile:
    return Compile(
        start=start,
        end=end,
        thread=thread,
        site=found.site,
        name=name,
        outputs=outputs,
        persistent_cache_hit=hit,
    )


class record:
    """Record what a program compiles, dispatches, transfers and waits for.

    Use it in a ``with`` statement, which gives the `Log`; around a function, whose calls are
    recorded one by one, with the `Log` of the last that ended as its attribute ``log``; or with
    `start` and `stop`, across the cells of a notebook. The program is any JAX program, as it is.
    Recordings may be nested, overlap, and run in several threads; each sees the events of all
    threads. While none goes on, nothing is installed in JAX.

    Parameters
    ----------
    profile : bool, default False
        Record as well when the devices began and finished each program, with JAX's profiler, for
        `Log.timeline`. JAX has one profiler, so such recordings cannot be nested.
    on_wait : callable, optional
        Called without arguments when the host is about to wait for a value that is not ready, or
        of which that cannot be told. ``on_wait=gate.open`` makes a wait happen, and end, without
        a timer.
    skip : iterable of str
        Modules whose lines are not yours, such as ``("optax", "flax")``: the line that is named
        is the one that called them. Those of JAX, NumPy, Python's standard library, IPython and
        pytest never are.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type, or `skip` names a module that does not exist.
    RuntimeError
        On entering: if this recording goes on already, or the profiler does.

    See Also
    --------
    devicearray.sync_guard : makes a host sync an error.

    Notes
    -----
    A recorded event costs a few microseconds, entering and leaving some tens
    (``benchmarks/results/recording.json``). What it cannot see: waits inside a dispatch, for one
    of the 32 places in flight on a CPU device or for a host callback; and waits by code that is
    not Python.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import devicearray as da
    >>> @jax.jit
    ... def step(x):
    ...     return jnp.tanh(x)
    >>> x = step(jnp.ones(3))
    >>> with da.record() as log:
    ...     for _ in range(3):
    ...         x = step(x)
    ...     if x[0] > 1:
    ...         print("never")
    >>> [dispatch.name for dispatch in log.dispatches].count("step")
    3
    >>> [(sync.trigger, sync.source) for sync in log.syncs]
    [('bool', 'if x[0] > 1:')]
    """

    def __init__(
        self,
        profile: bool = False,
        on_wait: Callable[[], Any] | None = None,
        skip: Iterable[str] = (),
    ) -> None:
        if callable(profile):
            raise TypeError(
                "record takes options, not a function. Did you mean @record() with parentheses?"
            )
        if on_wait is not None and not callable(on_wait):
            raise TypeError(
                f"record: on_wait must be callable, and {on_wait!r} is not. Did you mean "
                "on_wait=gate.open, without parentheses?"
            )
        self._profile = profile
        self._on_wait = on_wait
        self._finder = finder((skip,) if isinstance(skip, str) else tuple(skip))
        self._running: tuple[_Recorder, Log, _profile.Profile | None] | None = None
        self._lock = threading.Lock()

    def start(self) -> Log:
        """Begin to record; return the log, which fills while the program runs.

        Examples
        --------
        >>> import devicearray as da
        >>> x = da.asarray([1.0, 2.0])
        >>> recording = da.record()
        >>> log = recording.start()
        >>> y = x + 1.0
        >>> recording.stop()
        >>> [dispatch.name for dispatch in log.dispatches]
        ['add']
        """
        with self._lock:
            if self._running is not None:
                raise RuntimeError(
                    "record: this recording goes on already. Make another one: each record(...) "
                    "records once at a time."
                )
            profiles = self._profile and "device times" not in _jax.LOST
            profile = _profile.Profile() if profiles else None
            began = time.time()
            recorder = _Recorder(self._finder, self._on_wait)
            log = Log(
                began=began,
                threads=recorder.threads,
                not_recorded=_jax.LOST,
                versions=_VERSIONS,
                incoming=recorder.take,
            )
            self._running = recorder, log, profile
        _boundary.join(recorder)
        return log

    def stop(self) -> None:
        """End the recording; do nothing if it does not go on."""
        with self._lock:
            running, self._running = self._running, None
        if running is None:
            return
        recorder, log, profile = running
        try:
            _boundary.leave(recorder)
        finally:
            log.seconds = recorder.seconds(_now())
            if profile is not None:
                log.runs = profile.stop(recorder.origin, log.events)

    def __enter__(self) -> Log:
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__[**P, T](self, function: Callable[P, T]) -> Callable[P, T]:
        """Return `function` with each of its calls recorded."""
        refuse_what_runs_later("record", function)

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
            call = record(self._profile, self._on_wait)
            call._finder = self._finder
            log = call.start()
            try:
                return function(*args, **kwargs)
            finally:
                recorded.log = log  # type: ignore[attr-defined]
                call.stop()

        return recorded
