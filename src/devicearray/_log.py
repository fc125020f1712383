"""Log: what was recorded, to be read, counted, printed, stored and drawn.

A recording is made of raw facts, appended while the program runs, and turned into events when
somebody asks: the program is not made to wait for the building of objects that may never be read.
From the events come the table (`_table`) and the timeline (`_timeline`). Data flows one way, as in
pyinstrument: record, transform, render.

The file format is JSON, and versioned, so that a recording made on one machine can be read on
another; a pickle was refused, since a log is a thing that people send to each other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from devicearray import _table
from devicearray._events import (
    Compile,
    Dispatch,
    Event,
    HostSync,
    Run,
    Transfer,
    from_json,
    missing,
    to_json,
)

if TYPE_CHECKING:
    from devicearray._timeline import Timeline

__all__ = ["Log"]

_FORMAT: Final = "devicearray.Log"
_VERSION: Final = 1

#: Held while a log takes in what was recorded. One for all: reading is rare, and a log with a lock
#: of its own could not be copied.
_reading = threading.Lock()


class Log:
    """What a program compiled, dispatched, transferred and waited for.

    `devicearray.record` makes one, and `Log.from_json` reads one.

    Attributes
    ----------
    events : tuple of Compile, Dispatch, HostSync and Transfer
        All events, in the order in which they ended. While the recording goes on, those so far.
    seconds : float or None
        How long the recording took. None: it goes on.
    began : float
        When it began, in seconds since the epoch.
    threads : dict
        The names of the threads, by the number that the events have.
    not_recorded : dict
        What this JAX could not tell, and the name that it lacks. Usually empty.
    runs : tuple of Run or None
        What the devices executed, and when. None: not recorded; ``record(profile=True)`` does.

    Examples
    --------
    >>> import devicearray as da
    >>> x = da.asarray([1.0, 2.0])
    >>> with da.record() as log:
    ...     y = float(x[0])
    >>> [sync.trigger for sync in log.syncs]
    ['float']
    >>> log.syncs[0].source
    'y = float(x[0])'
    """

    def __init__(
        self,
        *,
        began: float,
        seconds: float | None = None,
        events: Iterable[Event] = (),
        threads: dict[int, str] | None = None,
        not_recorded: Mapping[str, str] | None = None,
        runs: Iterable[Run] | None = None,
        versions: Mapping[str, str] | None = None,
        incoming: Callable[[], list[Event]] | None = None,
    ) -> None:
        self.began = began
        self.seconds = seconds
        self.threads = {} if threads is None else threads
        self.not_recorded = dict(not_recorded or {})
        self.runs = None if runs is None else tuple(runs)
        self.versions = dict(versions or {})
        self._events = list(events)
        self._incoming = incoming

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far, in the order in which they ended."""
        with _reading:
            if self._incoming is not None:
                self._events += self._incoming()
            return tuple(self._events)

    @property
    def compiles(self) -> tuple[Compile, ...]:
        """What XLA compiled, or took from the persistent cache."""
        return tuple(event for event in self.events if isinstance(event, Compile))

    @property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """What was handed to the runtime.

        Raises
        ------
        RuntimeError
            If this JAX does not let all dispatches be seen: a number would be too small.
        """
        self._refuse_lost("dispatches")
        return tuple(event for event in self.events if isinstance(event, Dispatch))

    @property
    def syncs(self) -> tuple[HostSync, ...]:
        """Where the host needed a value, and waited until it was ready.

        Raises
        ------
        RuntimeError
            If this JAX does not let all host syncs be seen: a number would be too small.
        """
        self._refuse_lost("host syncs")
        return tuple(event for event in self.events if isinstance(event, HostSync))

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """What moved between the host and the devices, but for arguments of dispatches.

        Raises
        ------
        RuntimeError
            If this JAX does not let all transfers be seen: a number would be too small.
        """
        self._refuse_lost("transfers")
        return tuple(event for event in self.events if isinstance(event, Transfer))

    def _refuse_lost(self, facts: str) -> None:
        lost = missing(facts, self.not_recorded)
        if lost is not None:
            raise RuntimeError(
                f"not recorded: {lost}, because this JAX has no {self.not_recorded[lost]}. The "
                "others are in log.events."
            )

    def timeline(self) -> Timeline:
        """Return the recording as lanes of the host's threads and of the devices."""
        from devicearray._timeline import Timeline

        return Timeline(self)

    def __getstate__(self) -> dict[str, Any]:
        # A copy of a log is what it is now; it does not fill.
        events = list(self.events)
        threads = dict(self.threads)
        return vars(self) | {"_events": events, "threads": threads, "_incoming": None}

    # For people.

    def __str__(self) -> str:
        return _table.render(self)

    def __repr__(self) -> str:
        return f"<Log: {_table.summary(self)}>"

    # For files.

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Write the log to a file, and return what was written.

        Parameters
        ----------
        path : path, optional
            The file. Without one, the text is only returned.

        Examples
        --------
        >>> import devicearray as da
        >>> with da.record() as log:
        ...     y = da.asarray([1.0]) + 1.0
        >>> again = da.Log.from_json(log.to_json())
        >>> again.events == log.events
        True
        """
        stored = {
            "format": _FORMAT,
            "version": _VERSION,
            "versions": self.versions,
            "began": self.began,
            "seconds": self.seconds,
            "threads": {str(number): name for number, name in dict(self.threads).items()},
            "not_recorded": self.not_recorded,
            "events": [to_json(event) for event in self.events],
            "runs": None if self.runs is None else [run.to_json() for run in self.runs],
        }
        text = json.dumps(stored, indent=1) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Self:
        """Read what `to_json` wrote.

        Parameters
        ----------
        source : path or str
            The file; or the text itself, which begins with a brace.

        Raises
        ------
        ValueError
            If it is not a log, or damaged, or of a later version of devicearray.
        """
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        name = "the text" if is_text else str(source)
        text = str(source).encode() if is_text else Path(source).read_bytes()
        try:
            stored: dict[str, Any] = json.loads(text)
            kind, version = stored["format"], stored["version"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name} is not a log that Log.to_json wrote.") from error
        if kind != _FORMAT or version != _VERSION:
            raise ValueError(
                f"{name} is a {kind} of version {version}, and this devicearray reads "
                f"{_FORMAT} of version {_VERSION}."
            )
        try:
            return cls(**_arguments(stored))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name} is a damaged log: {error!r}") from error


def _arguments(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the `Log` that was stored."""
    runs = stored["runs"]
    return {
        "began": stored["began"],
        "seconds": stored["seconds"],
        "events": [from_json(event) for event in stored["events"]],
        "threads": {int(number): name for number, name in stored["threads"].items()},
        "not_recorded": stored["not_recorded"],
        "runs": None if runs is None else [Run(**run) for run in runs],
        "versions": stored["versions"],
    }
