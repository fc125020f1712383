"""What ``python -m devicearray record`` records, and what it says of it afterwards."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from devicearray import _boundary
from devicearray._log import Log
from devicearray._profile import Profile
from devicearray._record import record
from devicearray._site import Site
from devicearray._units import counted

if TYPE_CHECKING:
    from devicearray._command.launch import Options

__all__ = ["Recording"]

_NO_SITE: Final = "(no line of yours)"


class Recording:
    """A recording of the whole program, from construction to `report`.

    Parameters
    ----------
    options : Options
        What was asked for on the command line.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._record = record(skip=options.skip)
        self._began = time.perf_counter_ns()
        self._log = self._record.start()
        self._profile = _ProfileFromFirstUse() if options.perfetto else None

    def report(self, stdout: int | None) -> None:
        """End the recording, and write what was asked for.

        Parameters
        ----------
        stdout : int or None
            The descriptor to which the log goes as JSON. None: a table goes to stderr.
        """
        log, options = self._log, self._options
        self._record.stop()
        if self._profile is not None:
            self._profile.stop(log, self._began)
        if stdout is None:
            _say(f"\n{log}")
        else:
            # Whoever reads has had enough: "| head".
            with contextlib.suppress(BrokenPipeError), open(stdout, "w", encoding="utf-8") as file:
                file.write(log.to_json())
        if options.perfetto:
            log.timeline().to_perfetto(options.perfetto)

    def complains(self) -> bool:
        """Tell whether there were host syncs that are not allowed, and say which."""
        complaint = _complaint(self._log, frozenset(self._options.allow))
        if complaint:
            _say(f"\n--fail-on-sync: {complaint}")
        return bool(complaint)


def _complaint(log: Log, allow: frozenset[str]) -> str:
    """Say which host syncs were not allowed; nothing if there were none."""
    try:
        syncs = [one for one in log.syncs if not one.allowed and one.trigger not in allow]
    except RuntimeError as error:
        return str(error)
    if not syncs:
        return ""
    lines = Counter((one.trigger, one.site) for one in syncs)
    told = [_line(trigger, site, times) for (trigger, site), times in lines.items()]
    heading = f"{counted(len(syncs), 'host sync')} not allowed:"
    remedy = (
        "To allow one: `with devicearray.sync_allowed():` around the line, or "
        f"--allow {syncs[0].trigger}"
    )
    return "\n".join([heading, *told, remedy])


def _line(trigger: str, site: Site | None, times: int) -> str:
    source = f": {site.source}" if site and site.source else ""
    return f"  {trigger} at {site or _NO_SITE}, {counted(times, 'time')}{source}"


def _say(text: str) -> None:
    # Not sys.stderr, which the program may have replaced.
    print(text, file=sys.__stderr__)


class _ProfileFromFirstUse(_boundary.Listener):
    """Profiles the devices from the moment when the program first uses one.

    The profiler needs JAX's devices, and until it uses one a program may still say which there are
    (``jax_platforms``, ``jax.distributed.initialize``): a profile from the beginning would come
    too early. The first event is a compile or a transfer, before anything has run on a device.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._profile: Profile | None = None
        self._began = False
        _boundary.join(self)

    def before_wait(self, hook: str, was_ready: bool | None, subject: Any) -> None:
        self._begin()

    def dispatched(
        self, name: str, host_arguments: int, host_bytes: int, start: int | None, end: int
    ) -> None:
        self._begin()

    def transferred(
        self, hook: str, direction: str, arrays: int, nbytes: int, start: int, end: int
    ) -> None:
        self._begin()

    def compiled(self, name: str, outputs: int | None, hit: bool, start: int, end: int) -> None:
        self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._began:
                return
            self._began = True
        _boundary.leave(self)
        try:
            self._profile = Profile()
        except RuntimeError:
            _say(
                "--perfetto: the program uses JAX's profiler itself, and there is only one. The "
                "timeline will be without the devices."
            )

    def stop(self, log: Log, began: int) -> None:
        """End the profile, and give the log what the devices ran."""
        _boundary.leave(self)
        if self._profile is not None:
            log.runs = self._profile.stop(began, log.events)
