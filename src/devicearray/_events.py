"""What a recording consists of: compiles, dispatches, host syncs and transfers, as facts.

Each is a frozen dataclass, so that it can be compared, counted, put into a set and written to a
file. Times are seconds from the beginning of the recording, on the clock of `time.perf_counter`.
What this JAX cannot tell is None, never a number: a fast dispatch, for example, is seen when it
returns, and its beginning is not recorded.

Prior art: the profiler's XPlane has the same facts as strings in an untyped tree; OpenTelemetry
makes all of them spans. Four small classes say what each fact has and what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from devicearray._site import Site

__all__ = [
    "Compile",
    "Dispatch",
    "Event",
    "HostSync",
    "Run",
    "Transfer",
    "from_json",
    "missing",
    "to_json",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events have.

    Attributes
    ----------
    start : float or None
        When it began, in seconds from the beginning of the recording. None: not recorded.
    end : float
        When it was over, or returned, in seconds from the beginning of the recording.
    thread : int
        The thread, as `threading.get_ident` numbers it; ``Log.threads`` has the names.
    site : Site or None
        The user's line. None if no line of the user's led to it.
    """

    start: float | None
    end: float
    thread: int
    site: Site | None

    @property
    def file(self) -> str | None:
        """The file of the user's line."""
        return self.site.file if self.site else None

    @property
    def line(self) -> int | None:
        """The number of the user's line."""
        return self.site.line if self.site else None

    @property
    def function(self) -> str | None:
        """The function of the user's line."""
        return self.site.function if self.site else None

    @property
    def source(self) -> str:
        """The text of the user's line; empty if it is unknown."""
        return self.site.source if self.site else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile(Event):
    """XLA compiled a program, or took it from the persistent cache.

    Attributes
    ----------
    name : str
        The name of the function.
    outputs : int or None
        How many outputs the program has; a reference that it updates is one. None: not recorded.
    persistent_cache_hit : bool
        Whether the program came from the persistent compilation cache.
    """

    start: float
    name: str
    outputs: int | None
    persistent_cache_hit: bool

    @property
    def seconds(self) -> float:
        """How long XLA took. Tracing and lowering, which come before, are not in it."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch(Event):
    """The host handed a program to the runtime.

    Attributes
    ----------
    name : str
        The name of the program's function.
    host_arguments : int
        How many NumPy arrays and Python numbers it was given. They are moved to the device, but
        for those that the program does not use; which these are cannot be seen.
    host_bytes : int
        Their size on the device, in bytes. What several devices get a copy of counts once.
    """

    name: str
    host_arguments: int
    host_bytes: int

    @property
    def returned(self) -> float:
        """When the dispatch returned, in seconds from the beginning of the recording."""
        return self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSync(Event):
    """The host needed a device value, and waited until it was ready.

    Attributes
    ----------
    trigger : str
        What the user's line called: ``float``, ``print``, ``np.asarray``, ``block_until_ready``.
    was_ready : bool or None
        Whether the value was ready already. None: not recorded.
    nbytes : int
        The size of the value that the host was given; 0 if it only waited.
    copied : bool
        Whether JAX made a copy for the host.
    allowed : bool
        Whether it happened within ``sync_allowed()``.
    error : str or None
        The type of the exception that ended the wait.
    """

    start: float
    trigger: str
    was_ready: bool | None
    nbytes: int
    copied: bool
    allowed: bool = False
    error: str | None = None

    @property
    def waited(self) -> float:
        """How long the host waited, copying included, in seconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Event):
    """Values began to move between the host and a device, or between devices.

    The host's values that are arguments of a dispatch belong to the `Dispatch`, and a copy that a
    host sync makes to the `HostSync`: neither is counted here again. Arguments that a dispatch
    fetches from other devices are here.

    Attributes
    ----------
    direction : str
        ``"host to device"``, ``"device to device"`` or ``"device to host"``.
    trigger : str
        What the user's line called: ``device_put``, ``asarray``.
    arrays : int
        How many arrays, one for each device that was given one.
    nbytes : int
        Their size in bytes.
    """

    start: float
    direction: str
    trigger: str
    arrays: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A device executed a program, as the profiler saw it.

    Attributes
    ----------
    program : str
        The name of XLA's module: ``jit_`` and the name of the function.
    device : str
        The device: ``"cpu:0"``.
    start, finish : float
        Seconds from the beginning of the recording.
    dispatch : int or None
        Which of ``Log.dispatches`` it belongs to. None: not among them.
    """

    program: str
    device: str
    start: float
    finish: float
    dispatch: int | None = None

    @property
    def seconds(self) -> float:
        """How long the device was busy with it."""
        return self.finish - self.start

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON takes it."""
        return asdict(self)


_KINDS: Final[dict[str, type[Event]]] = {
    "compile": Compile,
    "dispatch": Dispatch,
    "host sync": HostSync,
    "transfer": Transfer,
}
_NAMES: Final = {cls: name for name, cls in _KINDS.items()}


def missing(facts: str, not_recorded: Mapping[str, str]) -> str | None:
    """Return which of these facts ("dispatches", say) was not recorded; None if all were."""
    return next((lost for lost in not_recorded if lost.startswith(facts)), None)


def to_json(event: Event) -> dict[str, Any]:
    """Return the event as JSON takes it."""
    return {"kind": _NAMES[type(event)]} | asdict(event)


def from_json(stored: dict[str, Any]) -> Event:
    """Return the event that `to_json` stored."""
    values = dict(stored)
    cls = _KINDS[values.pop("kind")]
    site = values.get("site")
    values["site"] = None if site is None else Site(**site)
    unknown = values.keys() - {field.name for field in fields(cls)}
    if unknown:
        raise ValueError(f"{cls.__name__} has no field {min(unknown)!r}")
    return cls(**values)
