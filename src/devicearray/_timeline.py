"""Timeline: a log as lanes of the host's threads and of the devices, to be looked at.

A table says where a program waits. Whether that matters is seen in time: a device that has work
while the host waits loses nothing. So each thread and each device is a lane, and the number of
programs that are dispatched and not finished, the *run-ahead*, is a line beneath them: where it is
zero the device has nothing to do.

Prior art: the profiler's own trace viewer, Perfetto, which can show and search anything that is in
its format; the plots of critical paths in papers, which can be read at a glance. Both are made
here from the same lanes, a picture and a file. A viewer of its own was refused: Perfetto is one.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devicearray._events import Compile, Dispatch, Event, HostSync, Run, Transfer
from devicearray._units import counted

if TYPE_CHECKING:
    from devicearray._log import Log

__all__ = ["Timeline"]

_Steps = tuple[tuple[float, int], ...]


class Timeline:
    """A recording as lanes of the host's threads and of the devices.

    `Log.timeline` makes one. What the devices did is in it if the recording was made with
    ``record(profile=True)``.

    Parameters
    ----------
    log : Log
        The recording.

    Attributes
    ----------
    log : Log
        The recording.

    Notes
    -----
    *Wait before the recording ends.* What is in flight when it ends is not seen to finish.

    *Runs are told apart by name and order.* JAX's profiler does not say which dispatch a run
    belongs to. The k-th dispatch of a program is its k-th launch; dispatches that several threads
    make at the same moment may be exchanged for one another. Where several threads dispatch
    different programs of one name, or one thread does so to several devices, a run may belong to no
    dispatch: `unmatched` counts the dispatches that are left without one.

    *On a GPU or a TPU this was not tried.* None was at hand: how their profiles are read was
    written from the source of XLA.

    Examples
    --------
    A gate holds the device back, so that the host runs ahead by all that it dispatches:

    >>> import devicearray as da
    >>> from devicearray import numpy as jnp
    >>> gate, x = da.Gate(), jnp.ones(3)
    >>> with da.record(profile=True, on_wait=gate.open) as log:
    ...     y = gate(x)
    ...     for _ in range(4):
    ...         y = y + 1
    ...     _ = y.block_until_ready()
    >>> timeline = log.timeline()
    >>> max(depth for _, depth in timeline.run_ahead)
    5
    >>> [sync.was_ready for sync in log.syncs]
    [False]
    """

    def __init__(self, log: Log) -> None:
        self.log = log

    @property
    def run_ahead(self) -> _Steps:
        """How far the host was ahead of the devices, in steps.

        Each step is a moment, in seconds from the beginning of the recording, and the number of
        dispatches from then on that had returned and were not finished. A dispatch to several
        devices is finished when the last of them is. One that ran before it returned never counts,
        and neither does one whose run was not seen: `unmatched` says how many those are.

        Raises
        ------
        RuntimeError
            If the log has no device times, or not all dispatches.
        """
        dispatches, finishes = self.log.dispatches, self._finishes()
        changes: dict[float, int] = defaultdict(int)
        for number, finish in finishes.items():
            returned = dispatches[number].returned
            changes[returned] += 1
            changes[max(returned, finish)] -= 1
        steps, depth = [(0.0, 0)], 0
        for moment, change in sorted(changes.items()):
            depth += change
            if moment <= 0:
                steps[0] = 0.0, depth
            elif change:
                steps.append((moment, depth))
        return tuple(steps)

    @property
    def unmatched(self) -> int:
        """How many dispatches there are whose run was not seen, or could not be told from others.

        Raises
        ------
        RuntimeError
            If the log has no device times, or not all dispatches.
        """
        return len(self.log.dispatches) - len(self._finishes())

    def _known_run_ahead(self) -> _Steps | None:
        with contextlib.suppress(RuntimeError):
            return self.run_ahead
        return None

    def _finishes(self) -> dict[int, float]:
        """Return when each dispatch was finished, by its number, if that is known."""
        if self.log.runs is None:
            raise RuntimeError(
                "Timeline: the log has no device times. Record with record(profile=True), and ask "
                "when the recording is over."
            )
        finishes: dict[int, float] = {}
        for run in self.log.runs:
            if run.dispatch is not None:
                finishes[run.dispatch] = max(run.finish, finishes.get(run.dispatch, run.finish))
        return finishes

    def plot(self, ax: Any = None) -> Any:
        """Draw the lanes, and the run-ahead beneath them, with matplotlib.

        Everything is drawn in colours that can be seen on white and on black, and told apart by
        those who see few, on a transparent ground.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Without it, in a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import devicearray as da
        >>> from matplotlib.figure import Figure
        >>> with da.record(profile=True) as log:
        ...     y = da.asarray([1.0, 2.0]) + 1.0
        >>> ax = log.timeline().plot(Figure().subplots())
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['MainThread', 'cpu:0', 'run-ahead']
        """
        if ax is None:
            ax = _new_axes(self)
        _Picture(self, ax).draw()
        return ax

    def to_perfetto(self, path: str | PathLike[str]) -> None:
        """Write a file that https://ui.perfetto.dev opens.

        It is in Chrome's trace event format, which chrome://tracing and other viewers read as well.
        The host and each device are a process, and each thread is a track. An arrow leads from a
        dispatch to each of its runs that was not over when it returned. The run-ahead is a counter.
        What the log knows of an event is among its arguments; ``dispatch`` is the number of a
        dispatch, and of that of a run.

        Parameters
        ----------
        path : path
            The file, which is replaced.

        Notes
        -----
        Perfetto's trace processor was not at hand. The tests read the file by the rules of its
        importer, as they are in ``src/trace_processor/importers`` of google/perfetto: by
        ``json/json_trace_parser_impl.cc``, ``common/slice_tracker.cc`` and
        ``common/flow_tracker.cc``.

        Examples
        --------
        >>> import json
        >>> import tempfile
        >>> from pathlib import Path
        >>> import devicearray as da
        >>> x = da.asarray([1.0, 2.0])
        >>> with da.record(profile=True) as log:
        ...     y = x + 1.0
        >>> path = Path(tempfile.mkdtemp(), "trace.json")
        >>> log.timeline().to_perfetto(path)
        >>> entries = json.loads(path.read_text())["traceEvents"]
        >>> sorted(entry["name"] for entry in entries if entry.get("cat") in ("dispatch", "run"))
        ['add', 'jit_add']
        """
        trace = {
            "displayTimeUnit": "ms",
            "otherData": {"began": self.log.began, **self.log.versions},
            "traceEvents": _Trace(self).entries(),
        }
        Path(path).write_text(json.dumps(trace) + "\n", encoding="utf-8")


# Lanes.


@dataclass(frozen=True, slots=True)
class _Lane[T: (Event, Run)]:
    """What one thread or one device did."""

    name: str
    contents: Sequence[T]


def _threads(log: Log) -> list[_Lane[Event]]:
    """Return a lane for each thread, in the order of their first events."""
    events: dict[int, list[Event]] = defaultdict(list)
    for event in log.events:
        events[event.thread].append(event)
    return [
        _Lane(log.threads.get(thread, f"thread {thread}"), contents)
        for thread, contents in events.items()
    ]


def _devices(log: Log) -> list[_Lane[Run]]:
    """Return a lane for each device, in the order of their names."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in log.runs or ():
        runs[run.device].append(run)
    # "cpu:2" comes before "cpu:10".
    return [_Lane(device, runs[device]) for device in sorted(runs, key=lambda one: (len(one), one))]


def _of[E: Event](events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def _start(event: Event) -> float:
    """Return when an event began; of one whose beginning is not known, when it was over."""
    return event.end if event.start is None else event.start


def _span(what: Event | Run) -> tuple[float, float]:
    return (what.start, what.finish) if isinstance(what, Run) else (_start(what), what.end)


def _extent(log: Log) -> tuple[float, float]:
    """Return the beginning and the end of all that is in the log."""
    spans = [*map(_span, log.events), *map(_span, log.runs or ())]
    begin = min((start for start, _ in spans), default=0.0)
    end = max((end for _, end in spans), default=0.0)
    return min(0.0, begin), max(end, log.seconds or 0.0, 1e-6)


def _place(span: tuple[float, float], nests: bool) -> tuple[float, float]:
    """Return by what to order spans, so that each comes after those that it may lie within."""
    start, end = span
    return start, -end if nests else end


def _tracks(spans: Sequence[tuple[float, float]], nests: bool) -> list[int]:
    """Return a track for each span, such that on no track two overlap.

    Parameters
    ----------
    spans : sequence of (float, float)
        Beginnings and ends.
    nests : bool
        Whether one span may lie within another.
    """
    tracks = [0] * len(spans)
    open_until: list[list[float]] = []
    for i in sorted(range(len(spans)), key=lambda i: _place(spans[i], nests)):
        start, end = spans[i]
        for ends in open_until:
            while ends and ends[-1] <= start:
                ends.pop()
        fits = [not ends or (nests and end <= ends[-1]) for ends in open_until]
        tracks[i] = fits.index(True) if True in fits else len(fits)
        if tracks[i] == len(fits):
            open_until.append([])
        open_until[tracks[i]].append(end)
    return tracks


# The picture.

# Of Okabe and Ito's colours, those with a contrast of at least 3 to white and to #121212; and the
# grey that has the same contrast to both.
_BLUE: Final = "#0072B2"
_LIGHT_BLUE: Final = "#4799CB"
_VERMILION: Final = "#D55E00"
_GREEN: Final = "#009E73"
_PURPLE: Final = "#CC79A7"
_GREY: Final = "#7A7A7A"

_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_INCHES: Final = 9.0
_LANE_INCHES: Final = 0.5
#: The run-ahead is as high as so many lanes.
_RUN_AHEAD_LANES: Final = 1.5
#: An entry of the legend is about so wide, in inches.
_LEGEND_INCHES: Final = 1.5
#: The part of the picture's width that can be seen.
_SEEN: Final = 1e-3
#: What lasts no longer than a pixel is drawn with the width of this line, in points.
_LEAST: Final = 0.6

_NOT_RECORDED: Final = "device times: not recorded"


def _new_axes(timeline: Timeline) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Timeline.plot draws with matplotlib, which is not installed: "
            "pip install 'devicearray[plots]'"
        ) from error
    lanes = len(_threads(timeline.log)) + len(_devices(timeline.log)) + _RUN_AHEAD_LANES
    figure, ax = pyplot.subplots(
        figsize=(_INCHES, 1 + _LANE_INCHES * max(lanes, 4)), layout="constrained"
    )
    figure.patch.set_alpha(0)
    return ax


class _Picture:
    """Draws a timeline into axes, one lane below the other."""

    def __init__(self, timeline: Timeline, ax: Any) -> None:
        self._timeline = timeline
        self._log = timeline.log
        self._ax = ax
        self._begin, self._end = _extent(self._log)
        length = self._end - self._begin
        self._unit, self._unit_name = next(
            ((unit, name) for unit, name in _UNITS if length >= 2 * unit), _UNITS[-1]
        )
        self._bottom = 0.0
        self._labels: list[tuple[float, str]] = []
        self._legend: dict[str, Any] = {}

    def draw(self) -> None:
        for thread in _threads(self._log):
            self._draw_thread(thread)
        if self._log.runs is None:
            self._say(_NOT_RECORDED)
        else:
            for device in _devices(self._log):
                self._draw_device(device)
        steps = self._timeline._known_run_ahead()
        if steps is not None:
            self._draw_run_ahead(steps)
        self._dress()

    def _lane(self, name: str, height: float = 1.0) -> float:
        """Begin a lane below what there is; return its lower edge."""
        self._bottom -= height
        self._labels.append((self._bottom + 0.45 * height, name))
        return self._bottom

    def _scaled(self, seconds: float) -> float:
        return seconds / self._unit

    def _draw_thread(self, thread: _Lane[Event]) -> None:
        bottom = self._lane(thread.name)
        events = thread.contents
        syncs, dispatches = _of(events, HostSync), _of(events, Dispatch)
        waited = [sync for sync in syncs if not sync.was_ready]
        did_not = [sync for sync in syncs if sync.was_ready]
        self._draw_bars(_of(events, Compile), "compile", (bottom + 0.4, 0.45), _PURPLE)
        self._draw_bars(_of(events, Transfer), "transfer", (bottom + 0.4, 0.45), _GREEN)
        self._draw_bars(waited, "host sync", (bottom + 0.4, 0.45), _VERMILION)
        self._draw_bars(did_not, "host sync, was ready", (bottom + 0.4, 0.2), "none", _VERMILION)
        if dispatches:
            self._legend["dispatch"] = self._ax.vlines(
                [self._scaled(dispatch.end) for dispatch in dispatches],
                bottom + 0.05,
                bottom + 0.35,
                colors=_BLUE,
                linewidth=1,
            )

    def _draw_device(self, device: _Lane[Run]) -> None:
        bottom = self._lane(device.name)
        runs = sorted(device.contents, key=lambda run: run.start)
        tracks = _tracks([(run.start, run.finish) for run in runs], nests=False)
        height = 0.8 / (max(tracks) + 1)
        # Neighbours that can be told apart differ in colour, since one begins where the other ends.
        seen = 0
        colors = []
        for run in runs:
            seen += run.seconds > _SEEN * (self._end - self._begin)
            colors.append((_BLUE, _LIGHT_BLUE)[seen % 2])
        for track in range(max(tracks) + 1):
            for color in (_BLUE, _LIGHT_BLUE):
                chosen = [
                    run
                    for run, *its in zip(runs, tracks, colors, strict=True)
                    if its == [track, color]
                ]
                place = bottom + 0.85 - height * (track + 1), height
                self._draw_bars(chosen, "run", place, color)

    def _draw_bars(
        self,
        spans: Iterable[Event | Run],
        name: str,
        place: tuple[float, float],
        color: str,
        edge: str = "",
    ) -> None:
        xranges = [
            (self._scaled(start), self._scaled(end) - self._scaled(start))
            for start, end in map(_span, spans)
        ]
        if xranges:
            bars = self._ax.broken_barh(
                xranges, place, facecolors=color, edgecolors=edge or color, linewidth=_LEAST
            )
            self._legend.setdefault(name, bars)

    def _draw_run_ahead(self, steps: _Steps) -> None:
        bottom = self._lane("run-ahead", _RUN_AHEAD_LANES)
        most = max(depth for _, depth in steps)
        height = 0.8 * _RUN_AHEAD_LANES / max(most, 1)
        times = [self._scaled(moment) for moment, _ in steps] + [self._scaled(self._end)]
        depths = [bottom + height * depth for _, depth in (*steps, steps[-1])]
        self._ax.fill_between(times, bottom, depths, step="post", color=_GREY, alpha=0.25, lw=0)
        self._ax.step(times, depths, where="post", color=_GREY, linewidth=1.2)
        peak = next(moment for moment, depth in steps if depth == most)
        self._write(peak, bottom + height * most, f" {most:,}", "bottom")

    def _say(self, text: str) -> None:
        bottom = self._lane("")
        self._write((self._begin + self._end) / 2, bottom + 0.45, text, "center", "center")

    def _write(
        self, moment: float, y: float, text: str, vertical: str, horizontal: str = "left"
    ) -> None:
        self._ax.text(
            self._scaled(moment),
            y,
            text,
            color=_GREY,
            fontsize="small",
            va=vertical,
            ha=horizontal,
        )

    def _notes(self) -> Iterator[str]:
        for fact in self._log.not_recorded:
            yield f"not recorded: {fact}"
        with contextlib.suppress(RuntimeError):
            missing = self._timeline.unmatched
            if missing:
                yield f"{counted(missing, 'dispatch', 'dispatches')} not seen to run"

    def _dress(self) -> None:
        ax = self._ax
        ax.patch.set_alpha(0)
        for side, spine in ax.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(_GREY)
        ax.set_xlim(self._scaled(self._begin), self._scaled(self._end))
        ax.set_ylim(self._bottom, 0)
        ax.set_yticks([y for y, _ in self._labels], [name for _, name in self._labels])
        ax.tick_params(colors=_GREY, labelcolor=_GREY)
        ax.tick_params(axis="y", length=0)
        label = "\n".join([f"time ({self._unit_name})", *self._notes()])
        ax.set_xlabel(label, color=_GREY, wrap=True)
        if self._legend:
            width = ax.get_window_extent().width / ax.figure.dpi
            ax.legend(
                self._legend.values(),
                self._legend.keys(),
                loc="lower left",
                bbox_to_anchor=(0, 1),
                borderaxespad=0.2,
                ncols=max(1, int(width / _LEGEND_INCHES)),
                frameon=False,
                fontsize="small",
                labelcolor=_GREY,
                handlelength=1.2,
            )


# The file for Perfetto.

#: Microseconds are written in eighths, which are binary fractions: what does not overlap here does
#: not overlap either in a reader that goes over to nanoseconds and cuts off the rest.
_EIGHTHS: Final = 8
_MICRO: Final = 1e-6

_HOST: Final = 1
#: The first track of a device has the number of its process, as a main thread has.
_DEVICES: Final = 1_000

_CATEGORIES: Final[dict[type[Event], str]] = {
    Compile: "compile",
    Dispatch: "dispatch",
    HostSync: "host sync",
    Transfer: "transfer",
}
#: What a slice says elsewhere than among its arguments.
_ELSEWHERE: Final = frozenset(
    {"start", "end", "finish", "thread", "site", "name", "trigger", "program", "device"}
)

_Entry = dict[str, Any]


class _Trace:
    """The entries of a trace, as they are made."""

    def __init__(self, timeline: Timeline) -> None:
        self._log = timeline.log
        self._begin, _ = _extent(self._log)
        self._names: list[_Entry] = []
        self._entries: list[_Entry] = []
        self._dispatches = _of(self._log.events, Dispatch)
        self._slices: dict[int, _Entry] = {}  # of dispatches, by their number
        self._add_host()
        for number, device in enumerate(_devices(self._log), start=1):
            self._add_device(device, number)
        self._add_run_ahead(timeline._known_run_ahead() or ())

    def entries(self) -> list[_Entry]:
        """Return the names, and after them the rest in the order of time.

        What is at one moment keeps its order: an arrow is bound to the slice before it.
        """
        return self._names + sorted(self._entries, key=lambda entry: float(entry["ts"]))

    def _add_host(self) -> None:
        self._add_names("process", "host", 0, pid=_HOST)
        numbers = {id(dispatch): number for number, dispatch in enumerate(self._dispatches)}
        place = _HOST
        for thread in _threads(self._log):
            for name, events in self._on_tracks(thread, nests=True):
                self._add_names("thread", name, place, pid=_HOST, tid=place)
                for event in events:
                    slice_ = self._add_slice(event, _HOST, place)
                    if isinstance(event, Dispatch):
                        number = numbers[id(event)]
                        slice_["args"]["dispatch"] = number
                        self._slices[number] = slice_
                place += 1

    def _add_device(self, device: _Lane[Run], number: int) -> None:
        process = place = _DEVICES * number
        self._add_names("process", device.name, number, pid=process)
        for _, runs in self._on_tracks(device, nests=False):
            self._add_names("thread", "runs", place, pid=process, tid=place)
            for run in runs:
                slice_ = self._add_slice(run, process, place)
                if run.dispatch is not None:
                    slice_["args"] |= _site(self._dispatches[run.dispatch])
                    self._add_arrow(self._slices[run.dispatch], slice_)
            place += 1

    def _add_run_ahead(self, steps: _Steps) -> None:
        self._entries += [
            {
                "ph": "C",
                "name": "run-ahead",
                "pid": _HOST,
                "tid": _HOST,
                "ts": self._microseconds(moment),
                "args": {"dispatches": depth},
            }
            for moment, depth in steps
        ]

    def _on_tracks[T: (Event, Run)](
        self, lane: _Lane[T], nests: bool
    ) -> Iterator[tuple[str, list[T]]]:
        """Yield the name and the contents of each track that a lane needs."""
        spans = [
            (self._microseconds(a), self._microseconds(b)) for a, b in map(_span, lane.contents)
        ]
        placed = list(zip(lane.contents, spans, _tracks(spans, nests), strict=True))
        placed.sort(key=lambda one: _place(one[1], nests))
        for track in range(max(track for *_, track in placed) + 1):
            name = f"{lane.name} ({track + 1})" if track else lane.name
            yield name, [one for one, _, its in placed if its == track]

    def _microseconds(self, seconds: float) -> float:
        return round((seconds - self._begin) / _MICRO * _EIGHTHS) / _EIGHTHS

    def _add_names(self, kind: str, name: str, order: int, **place: int) -> None:
        for about, args in (("name", {"name": name}), ("sort_index", {"sort_index": order})):
            self._names.append({"ph": "M", "name": f"{kind}_{about}", **place, "args": args})

    def _add_slice(self, what: Event | Run, process: int, track: int) -> _Entry:
        start, end = map(self._microseconds, _span(what))
        category = "run" if isinstance(what, Run) else _CATEGORIES[type(what)]
        place = {"pid": process, "tid": track, "ts": start, "dur": end - start}
        entry = {"ph": "X", "name": _title(what), "cat": category, **place}
        self._entries.append(entry | {"args": _arguments(what)})
        return self._entries[-1]

    def _add_arrow(self, dispatch: _Entry, run: _Entry) -> None:
        """Lead from a dispatch to its run, unless that was over before the dispatch returned."""
        begin = dispatch["ts"]
        end = max(begin, run["ts"])
        if end > run["ts"] and end >= run["ts"] + run["dur"]:
            return
        number = len(self._entries)
        for slice_, entry in (
            (dispatch, {"ph": "s", "ts": begin}),
            (run, {"ph": "f", "ts": end, "bp": "e"}),
        ):
            same = {"name": "run", "cat": "run", "id": number}
            self._entries.append(entry | same | {"pid": slice_["pid"], "tid": slice_["tid"]})


def _title(what: Event | Run) -> str:
    match what:
        case Run():
            return what.program
        case Compile() | Dispatch():
            return what.name
        case HostSync() | Transfer():
            return what.trigger
        case _:
            return ""


def _arguments(what: Event | Run) -> _Entry:
    """Return what a log knows of an event, but for what is told elsewhere."""
    known = {
        field.name: getattr(what, field.name)
        for field in fields(what)
        if field.name not in _ELSEWHERE
    }
    known = {name: value for name, value in known.items() if value is not None}
    return known | (_site(what) if isinstance(what, Event) else {})


def _site(event: Event) -> _Entry:
    return {} if event.site is None else asdict(event.site)
