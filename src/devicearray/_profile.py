"""When the devices ran what: the profiler's trace, read for what a timeline needs.

The hooks of `_boundary` see the host. What a device did, and when, only the profiler knows: it
writes an XPlane, a tree of planes (the host, each device), lines (a thread, a stream) and events
with statistics. This module reads from it one `Run` for each execution of a program, and matches
runs with dispatches: the k-th dispatch of a program is its k-th run, since a device runs what one
thread dispatches in order.

Prior art: TensorBoard's and Perfetto's views of the same trace, which show all events of the
runtime and leave it to the reader to find the program among them. JAX writes the trace to files;
here it stays in memory.

The two clocks, the profiler's and `time.perf_counter`, are set against each other by reading both
when the profile begins.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from devicearray import _jax
from devicearray._events import Dispatch, Event, Run

__all__ = ["Profile"]

_TASK: Final = "Task Environment"
_START: Final = "profile_start_time"
_HOST: Final = "/host:CPU"
_ACCELERATOR: Final = "/device:"
#: The line of an accelerator's plane that has one event for each execution of a program.
_MODULES: Final = "XLA Modules"


class Profile:
    """A running profile, from construction to `stop`.

    Raises
    ------
    RuntimeError
        If the process is being profiled already.
    """

    def __init__(self) -> None:
        try:
            self._stop: Callable[[], Any] = _jax.start_profile()
        except RuntimeError as error:
            raise RuntimeError(
                "record(profile=True): this process is being profiled already, by another "
                "recording or by jax.profiler, and JAX has only one profiler. End that first, or "
                "record without profile=True."
            ) from error
        # The epoch's clock minus ours: the profiler gives times since the epoch.
        self._ahead = time.time_ns() - time.perf_counter_ns()

    def stop(self, origin: int, events: Iterable[Event]) -> tuple[Run, ...]:
        """End the profile; return what the devices ran, in seconds after `origin`.

        Parameters
        ----------
        origin : int
            A moment of `time.perf_counter_ns`.
        events : iterable of Event
            What was recorded meanwhile, for the dispatches in it.
        """
        data = self._stop()
        runs = sorted(_runs(data), key=lambda run: run.start)
        shift = _profile_start(data) - self._ahead - origin
        dispatches = [event for event in events if isinstance(event, Dispatch)]
        return tuple(_matched(dispatches, [run.after(shift) for run in runs]))


@dataclass(frozen=True, slots=True)
class _Execution:
    """A run as the profiler has it, in nanoseconds since the profile began."""

    module: str
    device: str
    start: float
    finish: float

    def after(self, shift: int) -> Run:
        start, finish = (self.start + shift) * 1e-9, (self.finish + shift) * 1e-9
        return Run(program=self.module, device=self.device, start=start, finish=finish)


def _profile_start(data: Any) -> int:
    for plane in data.planes:
        if plane.name == _TASK:
            return int(dict(plane.stats)[_START])
    return 0


def _runs(data: Any) -> Iterator[_Execution]:
    for plane in data.planes:
        if plane.name == _HOST:
            yield from _runs_on_cpu(plane)
        elif plane.name.startswith(_ACCELERATOR):
            yield from _runs_on_accelerator(plane)


def _runs_on_cpu(plane: Any) -> Iterator[_Execution]:
    """Read the host's plane, where the thunks of a CPU program carry the number of its run."""
    spans: dict[tuple[int, int], list[float]] = {}
    modules: dict[tuple[int, int], str] = {}
    for line in plane.lines:
        for event in line.events:
            stats = _stats_of_run(event)
            if stats is None:
                continue
            key = stats["run_id"], stats.get("device_ordinal", 0)
            end = event.start_ns + event.duration_ns
            span = spans.setdefault(key, [event.start_ns, end])
            span[0], span[1] = min(span[0], event.start_ns), max(span[1], end)
            if "hlo_module" in stats:
                modules[key] = stats["hlo_module"]
    for key, (start, end) in spans.items():
        if key in modules:
            yield _Execution(modules[key], f"cpu:{key[1]}", start, end)


def _stats_of_run(event: Any) -> dict[str, Any] | None:
    if event.name.startswith("end: "):
        return None
    if not any(name == "run_id" for name, _ in event.stats):
        return None
    return dict(event.stats)


def _runs_on_accelerator(plane: Any) -> Iterator[_Execution]:
    """Read the plane of a GPU or a TPU.

    Written from the format's description, and not run on such a device yet: a plane is named
    ``/device:GPU:0``, its line "XLA Modules" has one event for each execution of a program,
    named ``jit_f(1234)`` after the module and its fingerprint. Where that line is missing, the
    kernels on the streams' lines say which module and which run they belong to.
    """
    device = plane.name.removeprefix(_ACCELERATOR).lower()
    lines = list(plane.lines)
    modules = [line for line in lines if line.name == _MODULES]
    if modules:
        for line in modules:
            for event in line.events:
                name = event.name.partition("(")[0]
                end = event.start_ns + event.duration_ns
                yield _Execution(name, device, event.start_ns, end)
    else:
        yield from _runs_of_kernels(lines, device)


def _runs_of_kernels(lines: Sequence[Any], device: str) -> Iterator[_Execution]:
    spans: dict[tuple[str, Any], list[float]] = {}
    for line in lines:
        for event in line.events:
            stats = dict(event.stats)
            if "hlo_module" not in stats:
                continue
            key = stats["hlo_module"], stats.get("run_id", stats.get("group_id"))
            end = event.start_ns + event.duration_ns
            span = spans.setdefault(key, [event.start_ns, end])
            span[0], span[1] = min(span[0], event.start_ns), max(span[1], end)
    for (module, _), (start, end) in spans.items():
        yield _Execution(module, device, start, end)


def module_name(function: str) -> str:
    """Return the name that XLA's module of a jitted function has."""
    plain = "".join(one if one.isalnum() or one in "_.-" else "_" for one in function)
    return f"jit_{plain}"


def _matched(dispatches: Sequence[Dispatch], runs: Sequence[Run]) -> Iterator[Run]:
    """Give each run the dispatch that it belongs to, in order, on each device."""
    by_module: dict[str, list[int]] = defaultdict(list)
    for number, dispatch in enumerate(dispatches):
        by_module[module_name(dispatch.name)].append(number)
        # XLA writes a lambda as jit__lambda, and some versions as jit__lambda_.
        by_module[module_name(dispatch.name).rstrip("_")] = by_module[module_name(dispatch.name)]
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for run in runs:
        numbers = by_module.get(run.program) or by_module.get(run.program.rstrip("_"), [])
        k = seen[run.program, run.device]
        seen[run.program, run.device] += 1
        yield replace(run, dispatch=numbers[k]) if k < len(numbers) else run
