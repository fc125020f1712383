"""When the devices ran what: the profiler's trace, read for what a timeline needs.

The hooks of `_boundary` see the host. What a device did, and when, only the profiler knows: it
writes an XPlane, a tree of planes (the host, each device), lines (a thread, a stream) and events
with statistics. This module reads from it one `Run` for each execution of a program, and matches
runs with dispatches.

Prior art: TensorBoard's and Perfetto's views of the same trace, which show all events of the
runtime and leave it to the reader to find the program among them. JAX writes the trace to files;
here it stays in memory.

The trace does not say which dispatch a run belongs to. A run has the name of its XLA module, and so
of the function that was dispatched; which of the dispatches of that name it was, is found so:

- Where the launch itself is in the trace, it belongs to the first dispatch that returned after it.
  On a CPU that is so for launches on several devices, and for programs that ran inside their
  dispatch.
- The others have a number, ``run_id``. jaxlib counts the launches of equal code, whatever the
  thread and the device (``GetBaseLaunchId`` in jaxlib's ``py_executable.cc``). If one code has the
  name, the k-th dispatch is the launch with the k-th number.
- If several codes share a name (``add`` of two shapes) and one thread dispatched them to one
  device, the k-th dispatch is the k-th run, since a device runs in order what one thread gives it.
- If several threads did, or there are several devices, nothing decides, and these runs are given
  no dispatch.

What was in flight when the profile began runs within it, but was dispatched before. If something
was, dispatches are counted from the end, and if something is in flight at the end as well, not at
all. A run that turns out to precede its dispatch shows that some of this does not hold, and no run
of that name is given a dispatch. Dispatches of one name that several threads make at the same
moment may be exchanged for one another. (The refused alternative, to match by time alone, always
has an answer, and is wrong as soon as the host is ahead of the device.)

The two clocks, the profiler's and `time.perf_counter`, are set against each other by reading both
when the profile begins and when it ends.
"""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax

from devicearray import _jax
from devicearray._events import Dispatch, Event, Run

__all__ = ["Profile", "module_name"]

_HERE: Final = str(Path(__file__).parent)


class Profile:
    """A running profile, from construction to `stop`.

    Raises
    ------
    RuntimeError
        If the process is being profiled already.
    """

    def __init__(self) -> None:
        self._began_idle = _is_idle()
        self._began = _Moment.now()
        try:
            self._stop: Callable[[], Any] = _jax.start_profile()
        except RuntimeError as error:
            raise RuntimeError(
                "record(profile=True): this process is being profiled already, by another "
                "recording or by jax.profiler, and JAX has only one profiler. End that first, or "
                "record without profile=True."
            ) from error

    def stop(self, origin: int, events: Iterable[Event]) -> tuple[Run, ...] | None:
        """End the profile; return what the devices ran, in seconds after `origin`.

        Parameters
        ----------
        origin : int
            A moment of `time.perf_counter_ns`.
        events : iterable of Event
            What was recorded meanwhile, for the dispatches in it.

        Returns
        -------
        tuple of Run or None
            In the order in which they began, without those that began when the recording was over.
            None, with a warning, if the times are lost.
        """
        idle = _Idle(self._began_idle, _is_idle(0.0 if self._began_idle else _PATIENCE))
        ended = _Moment.now()
        data = self._stop()
        # Python warns of the type that is made when the statistics of an event are first read. As
        # an error, that would end the process.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            limits = _limits(data)
            executions = list(_executions(data))
        if _was_set(self._began, ended):
            _warn_of_loss("the system's clock was set")
            return None
        if limits is None or limits.stop < ended.epoch:
            _warn_of_loss("something else stopped the profiler")
            return None
        clock = _Clock(self._began, ended, limits.start, origin)
        start, end = ((moment.ours - origin) * _NANO for moment in (self._began, ended))
        on_clock = [execution.on(clock) for execution in executions]
        launches = _launches(execution for execution in on_clock if execution.start < end)
        dispatches = _dispatches(events, since=start)
        return tuple(_runs(launches, _matched(dispatches, launches, idle)))


def _warn_of_loss(reason: str) -> None:
    warnings.warn(
        f"record(profile=True): the device times are lost, because {reason} meanwhile.",
        RuntimeWarning,
        skip_file_prefixes=(_HERE,),
    )


# JAX does not annotate it.
_live_arrays: Callable[[], list[Any]] = jax.live_arrays


class _Idle(NamedTuple):
    """Whether nothing was in flight."""

    at_beginning: bool
    at_end: bool


#: An array that was asked before whether it is ready learns of it about 100 us late. In seconds.
_PATIENCE: Final = 0.02


def _is_idle(patience: float = 0.0) -> bool:
    """Tell whether all arrays are ready. Results that nobody kept cannot be asked."""
    until = time.perf_counter() + patience
    while not all(_is_ready(array) for array in _live_arrays()):
        if time.perf_counter() >= until:
            return False
        time.sleep(0)
    return True


def _is_ready(array: Any) -> bool:
    with contextlib.suppress(RuntimeError):  # It was deleted meanwhile.
        return bool(array.is_ready())
    return True


# Clocks.

_NANO: Final = 1e-9
_ATTEMPTS: Final = 4

#: By how much the epoch's clock may go faster or slower than the other before it is taken to have
#: been set, as a part of the time passed and in nanoseconds. Its rate is corrected by half of that
#: part at most.
_DRIFT: Final = 1e-3
_DRIFT_NS: Final = 1_000_000


class _Moment(NamedTuple):
    """One moment on two clocks, in nanoseconds."""

    ours: int  # time.perf_counter_ns
    epoch: int  # time.time_ns

    @classmethod
    def now(cls) -> _Moment:
        # The best of several attempts: anything may come in between.
        attempts = [
            (time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns())
            for _ in range(_ATTEMPTS)
        ]
        before, epoch, after = min(attempts, key=lambda attempt: attempt[2] - attempt[0])
        return cls((before + after) // 2, epoch)


def _was_set(began: _Moment, ended: _Moment) -> bool:
    """Tell whether somebody set the epoch's clock in between."""
    passed = ended.ours - began.ours
    return abs(ended.epoch - began.epoch - passed) > _DRIFT_NS + _DRIFT * passed


class _Clock:
    """From the profile's nanoseconds to seconds of the recording."""

    def __init__(self, began: _Moment, ended: _Moment, profile_start: int, origin: int) -> None:
        self._rate = (ended.ours - began.ours) / max(ended.epoch - began.epoch, 1)
        self._lead = profile_start - began.epoch
        self._began = began.ours - origin

    def seconds(self, moment: float) -> float:
        """Return the time of a moment that the profile gives."""
        return (self._began + (self._lead + moment) * self._rate) * _NANO


class _Limits(NamedTuple):
    """When a profile began and ended, in nanoseconds since the epoch."""

    start: int
    stop: int


def _limits(data: Any) -> _Limits | None:
    """Return the limits of a profile; None if it does not say them."""
    for plane in data.planes:
        if plane.name == "Task Environment":
            stats = dict(plane.stats)
            with contextlib.suppress(KeyError):
                return _Limits(stats["profile_start_time"], stats["profile_stop_time"])
    return None


# What the profile says.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """What one device did for one dispatch.

    Attributes
    ----------
    module : str
        The name of the XLA module.
    program : int
        The number of the compiled program.
    number : int or None
        Which launch of its code it was. None: not given.
    device : str
        The device: ``"cpu:0"``.
    start, finish : float
        In the profile's nanoseconds, and in seconds of the recording once it is `on` a clock.
    devices : int
        How many devices of this process do the same for that dispatch.
    launched : float or None
        When the host was done with the launch. None: not seen, or not known to be this one's.
    is_certain : bool
        Whether the profile says that this is one execution.
    """

    module: str
    program: int
    number: int | None
    device: str
    start: float
    finish: float
    devices: int = 1
    launched: float | None = None
    is_certain: bool = True

    def on(self, clock: _Clock) -> _Execution:
        launched = None if self.launched is None else clock.seconds(self.launched)
        start, finish = clock.seconds(self.start), clock.seconds(self.finish)
        return replace(self, start=start, finish=finish, launched=launched)


_HOST: Final = "/host:CPU"
_ACCELERATOR: Final = re.compile(r"/device:((?:GPU|TPU):\d+)$")


def _executions(data: Any) -> Iterator[_Execution]:
    for plane in data.planes:
        accelerator = _ACCELERATOR.match(plane.name)
        if plane.name == _HOST:
            yield from _executions_on_cpu(plane)
        elif accelerator:
            yield from _executions_on_accelerator(plane, accelerator[1].lower())


#: What the CPU client does last in each run: ``xla/pjrt/cpu/cpu_client.cc``.
_END_OF_RUN: Final = "ThunkExecutor::Execute (wait for completion)"
#: What it calls a launch on one device, and on several: ``xla/pjrt/common_pjrt_client.cc``.
_LAUNCH_ON_ONE: Final = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
_LAUNCH_ON_SEVERAL: Final = "CommonPjRtLoadedExecutable::Execute ("
#: What the runtime's own events have in their names, and XLA's names of operations have not. An
#: event is quickly asked for its name, and slowly for its statistics.
_NO_OPERATION: Final = re.compile(r"[^\w.-]")


def _executions_on_cpu(plane: Any) -> Iterator[_Execution]:
    """Read the host's plane, where the operations of a CPU program carry the number of its launch.

    A run that was not over when the profile ended has no end here, and is left out.
    """
    spans: dict[tuple[str, int, int, int], list[float]] = {}
    ends: dict[tuple[int, int], float] = {}
    inside: dict[tuple[int, int], float] = {}
    several: dict[int, tuple[int, float]] = {}
    for line in plane.lines:
        launched = -1.0
        for event in line.events:
            name = event.name
            if name == _LAUNCH_ON_ONE:
                launched = event.end_ns
            elif name == _END_OF_RUN:
                stats = dict(event.stats)
                run = stats["run_id"], stats["device_ordinal"]
                ends[run] = event.end_ns
                if event.start_ns < launched:
                    inside[run] = launched
            elif name.startswith(_LAUNCH_ON_SEVERAL):
                stats = dict(event.stats)
                several[stats["run_id"]] = stats["num_addressable_devices"], event.end_ns
            elif not _NO_OPERATION.search(name):
                stats = dict(event.stats)
                if "hlo_module" in stats:
                    program = stats["hlo_module"], stats["program_id"]
                    _extend(spans, (*program, stats["run_id"], stats["device_ordinal"]), event)
    for (module, number_of_program, number, device), (start, finish) in spans.items():
        if (number, device) not in ends:
            continue
        devices, launched_at = several.get(number, (1, inside.get((number, device))))
        yield _Execution(
            module=module,
            program=number_of_program,
            number=number,
            device=f"cpu:{device}",
            start=start,
            finish=max(finish, ends[number, device]),
            devices=devices,
            launched=launched_at,
        )


def _extend[K](spans: dict[K, list[float]], key: K, event: Any) -> None:
    span = spans.setdefault(key, [event.start_ns, event.end_ns])
    span[0], span[1] = min(span[0], event.start_ns), max(span[1], event.end_ns)


#: The line of a TPU's plane that has one event for each execution of a program.
_MODULES: Final = "XLA Modules"
_MODULE: Final = re.compile(r"(.*)\((\d+)\)$")


def _executions_on_accelerator(plane: Any, device: str) -> Iterator[_Execution]:
    """Read the plane of a GPU or a TPU.

    **It was not run on either: none was at hand.** It was written from the source of XLA and of
    xprof, the reader of these traces:

    - A plane is called ``/device:GPU:0`` or ``/device:TPU:0``, and the line that has an event for
      each execution of a program "XLA Modules" (``xla/tsl/profiler/utils/xplane_schema.cc``).
    - A TPU writes that line itself. Its events are called ``jit_f(1234)``, after the module and the
      program, and have the statistic ``run_id``.
    - A GPU does not; xprof derives it afterwards. The lines are streams, ``Stream #13(Kernel)``.
      The kernels on them have the statistics ``correlation_id``, which counts the launches of
      kernels, and ``hlo_module``, ``program_id`` and ``hlo_op``, but no number of the run
      (``xla/backends/profiler/gpu/cupti_collector.cc``, and ``annotation.cc`` for the rest).
    """
    lines = list(plane.lines)
    modules = [line for line in lines if line.name == _MODULES]
    if modules:
        for line in modules:
            yield from _executions_of_modules(line, device)
    else:
        yield from _executions_of_kernels(lines, device)


def _executions_of_modules(line: Any, device: str) -> Iterator[_Execution]:
    for event in line.events:
        name = _MODULE.match(event.name)
        if name:
            yield _Execution(
                module=name[1],
                program=int(name[2]),
                number=dict(event.stats).get("run_id"),
                device=device,
                start=event.start_ns,
                finish=event.end_ns,
            )


def _executions_of_kernels(lines: Iterable[Any], device: str) -> Iterator[_Execution]:
    """Put kernels together: a run begins where the first operation of its program comes again.

    A program that begins with a loop comes out in pieces, which are more than its dispatches. So if
    there are not as many as there are dispatches, they are given none.
    """
    kernels: dict[tuple[str, int], list[tuple[int, str, Any]]] = defaultdict(list)
    for line in lines:
        for event in line.events:
            stats = dict(event.stats)
            if "hlo_module" in stats and "correlation_id" in stats:
                program = stats["hlo_module"], int(stats.get("program_id", 0))
                kernel = int(stats["correlation_id"]), str(stats.get("hlo_op", "")), event
                kernels[program].append(kernel)
    for (module, number), launched in kernels.items():
        launched.sort(key=lambda kernel: (kernel[0], kernel[2].start_ns))
        _, first, _ = launched[0]
        spans: dict[int, list[float]] = {}
        run = 0
        for _, operation, event in launched:
            run += operation == first
            _extend(spans, run, event)
        for run, (start, finish) in spans.items():
            yield _Execution(
                module=module,
                program=number,
                number=run,
                device=device,
                start=start,
                finish=finish,
                is_certain=False,
            )


# What belongs together.

_Launch = Sequence[_Execution]
_Numbered = tuple[int, Dispatch]


def _launches(executions: Iterable[_Execution]) -> list[_Launch]:
    """Put together what several devices did for one dispatch."""
    several: dict[tuple[str, int, int], list[_Execution]] = defaultdict(list)
    alone: list[_Launch] = []
    for execution in executions:
        if execution.number is None:
            alone.append([execution])
        else:
            several[execution.module, execution.program, execution.number].append(execution)
    return [*several.values(), *alone]


def _dispatches(events: Iterable[Event], since: float) -> list[_Numbered]:
    """Return the dispatches with their numbers, without those that came before the profile."""
    dispatches = (event for event in events if isinstance(event, Dispatch))
    return [(number, one) for number, one in enumerate(dispatches) if one.end >= since]


def _runs(launches: Sequence[_Launch], dispatch_of: Mapping[int, int]) -> list[Run]:
    """Return the runs in the order in which they began."""
    runs = [
        Run(
            program=execution.module,
            device=execution.device,
            start=execution.start,
            finish=execution.finish,
            dispatch=dispatch_of.get(number),
        )
        for number, launch in enumerate(launches)
        for execution in launch
    ]
    return sorted(runs, key=lambda run: (run.start, run.finish))


def module_name(function: str) -> str:
    """Return the name that XLA's module of a jitted function has.

    Examples
    --------
    >>> from devicearray._profile import module_name
    >>> [module_name(name) for name in ("step", "<lambda>", "a b.c", "schön")]
    ['jit_step', 'jit__lambda', 'jit_a_b.c', 'jit_sch__n']
    """
    # What JAX leaves, and of that what XLA leaves, which looks at bytes.
    by_jax = re.sub(r"[^\w.-]", "_", f"jit({function})").rstrip("_")
    return re.sub(rb"[^\w.-]", b"_", by_jax.encode()).decode()


#: How much a run may seem to precede its dispatch, in seconds, before it must be another's. The
#: clocks agree to less than a microsecond.
_TOLERANCE: Final = 20e-6

#: The numbers of launches have 32 bits.
_HALF: Final = 1 << 31


def _matched(
    dispatches: Sequence[_Numbered], launches: Sequence[_Launch], idle: _Idle
) -> dict[int, int]:
    """Return the number of the dispatch of each launch for which it can be told."""
    dispatches_of: dict[str, list[_Numbered]] = defaultdict(list)
    for dispatch in sorted(dispatches, key=lambda one: one[1].end):
        dispatches_of[module_name(dispatch[1].name)].append(dispatch)
    launches_of: dict[str, dict[int, _Launch]] = defaultdict(dict)
    for number, launch in enumerate(launches):
        launches_of[launch[0].module][number] = launch
    earliest = _earliest_starts(dispatches)
    found: dict[int, int] = {}
    for module, candidates in launches_of.items():
        wanted = dispatches_of[module]
        pairs = _pairs(wanted, candidates, idle)
        possible = {
            launch: dispatch
            for launch, dispatch in pairs.items()
            if _start(candidates[launch]) + _TOLERANCE > earliest[dispatch]
        }
        # One thread's dispatches are in order, so that one mistake means more.
        if len(possible) == len(pairs) or len(_threads(wanted)) > 1:
            found |= possible
    # Of a launch that is not over on all of its devices it is not known when it will be.
    devices = _devices(launches)
    return {
        number: dispatch
        for number, dispatch in found.items()
        if len(launches[number]) >= devices[launches[number][0].program]
    }


def _devices(launches: Iterable[_Launch]) -> dict[int, int]:
    """Return how many devices each program runs on, by the program's number."""
    devices: dict[int, int] = defaultdict(int)
    for launch in launches:
        program = launch[0].program
        devices[program] = max(devices[program], launch[0].devices, len(launch))
    return devices


def _threads(dispatches: Iterable[_Numbered]) -> set[int]:
    return {dispatch.thread for _, dispatch in dispatches}


def _start(launch: _Launch) -> float:
    return min(execution.start for execution in launch)


def _earliest_starts(dispatches: Iterable[_Numbered]) -> dict[int, float]:
    """Return when each dispatch began, or the one before it in its thread returned."""
    earliest: dict[int, float] = {}
    before: dict[int, float] = defaultdict(lambda: -float("inf"))
    for number, dispatch in dispatches:
        earliest[number] = before[dispatch.thread] if dispatch.start is None else dispatch.start
        before[dispatch.thread] = dispatch.end
    return earliest


def _pairs(
    dispatches: Sequence[_Numbered], launches: Mapping[int, _Launch], idle: _Idle
) -> dict[int, int]:
    """Match launches with dispatches of one name."""
    are_certain = all(execution.is_certain for launch in launches.values() for execution in launch)
    if not are_certain and len(launches) != len(dispatches):
        return {}
    pairs = _by_return(dispatches, launches)
    matched = set(pairs.values())
    left = [(number, dispatch) for number, dispatch in dispatches if number not in matched]
    ordered = _by_number(launches, most=len(dispatches) + len(launches))
    if ordered is None and len(_threads(left)) == 1:
        ordered = _by_start({number: launches[number] for number in launches.keys() - pairs.keys()})
    rest = [number for number in ordered or () if number is None or number not in pairs]
    return pairs | _aligned([number for number, _ in left], rest, idle)


def _by_return(dispatches: Sequence[_Numbered], launches: Mapping[int, _Launch]) -> dict[int, int]:
    """Match the launches that were seen with the first dispatch that returned after each."""
    seen = [
        (launch[0].launched, number)
        for number, launch in launches.items()
        if launch[0].launched is not None
    ]
    pairs = {}
    waiting = iter(dispatches)
    for launched, number in sorted(seen):
        for dispatch, event in waiting:
            if event.end >= launched:
                pairs[number] = dispatch
                break
    return pairs


def _by_number(launches: Mapping[int, _Launch], most: int) -> list[int | None] | None:
    """Return launches of one code in order, None for one that is missing.

    Nothing, if they are of several codes, whose numbers are hashes and lie far apart.
    """
    numbers = [launch[0].number for launch in launches.values()]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    # They are counted in 32 bits, and may pass the last one.
    after_first = [(number - known[0] + _HALF) % (2 * _HALF) - _HALF for number in known]
    first = min(after_first)
    if len(set(after_first)) < len(known) or max(after_first) - first >= most:
        return None
    ordered: list[int | None] = [None] * (max(after_first) - first + 1)
    for place, number in zip(after_first, launches, strict=True):
        ordered[place - first] = number
    return ordered


def _by_start(launches: Mapping[int, _Launch]) -> list[int | None] | None:
    """Return launches in the order in which their device ran them; nothing, if there are several.

    Several devices need not begin in the order in which one thread gave them something to do.
    """
    if len({execution.device for launch in launches.values() for execution in launch}) > 1:
        return None
    return [*sorted(launches, key=lambda number: _start(launches[number]))]


def _aligned(
    dispatches: Sequence[int], launches: Sequence[int | None], idle: _Idle
) -> dict[int, int]:
    """Match in order: from the beginning if nothing was in flight then, or from the end."""
    if idle.at_beginning and len(launches) <= len(dispatches):
        pairs = zip(launches, dispatches, strict=False)
    elif idle.at_end and len(launches) >= len(dispatches):
        pairs = zip(reversed(launches), reversed(dispatches), strict=False)
    else:
        return {}
    return {launch: dispatch for launch, dispatch in pairs if launch is not None}
