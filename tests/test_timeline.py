"""A timeline is what the log says: as numbers, as a picture, and as a file for Perfetto."""

import collections
import itertools
import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib import colors, pyplot
from matplotlib.figure import Figure

import devicearray as da
from devicearray import _timeline
from tests.eight_devices import on_eight

SITE = da.Site(file="train.py", line=7, function="train", source='print("ü", loss)  # → here')


def dispatch(end, start=None, thread=1, name="f", site=None):
    return da.Dispatch(
        start=start, end=end, thread=thread, site=site, name=name, host_arguments=2, host_bytes=9
    )


def run(start, finish, number=None, device="cpu:0", program="jit_f"):
    return da.Run(program=program, device=device, start=start, finish=finish, dispatch=number)


def sync(start, end, was_ready=False, thread=1):
    return da.HostSync(
        start=start,
        end=end,
        thread=thread,
        site=SITE,
        trigger="float",
        was_ready=was_ready,
        nbytes=4,
        copied=True,
    )


def compiled(start, end, thread=1):
    return da.Compile(
        start=start,
        end=end,
        thread=thread,
        site=SITE,
        name="f",
        outputs=None,
        persistent_cache_hit=False,
    )


def transfer(start, end, thread=1):
    return da.Transfer(
        start=start,
        end=end,
        thread=thread,
        site=None,
        direction="host to device",
        trigger="device_put",
        arrays=8,
        nbytes=64,
    )


def log_of(*events, runs=None, **facts):
    facts = {"began": 1.7e9, "seconds": 0.01, "threads": {1: "MainThread", 2: "loader"}} | facts
    return da.Log(events=events, runs=runs, **facts)


#: A log with something of everything, and with what is difficult: a run that began before the
#: recording, overlapping runs on one device, a run within its dispatch, one on two devices, a
#: dispatch without a run, and transfers within a dispatch.
WHOLE = log_of(
    compiled(0.0001, 0.001),
    dispatch(0.002, start=0.0012, site=SITE),
    transfer(0.0013, 0.0015),
    dispatch(0.00250025, name="g"),
    transfer(0.0011, 0.003, thread=2),
    dispatch(0.0031, thread=2),
    dispatch(0.0032, thread=2, name="unseen"),
    sync(0.0035, 0.0036, was_ready=True),
    sync(0.004, 0.0061),
    sync(0.007, 0.0071, was_ready=None, thread=3),
    runs=[
        run(-0.0005, 0.0004, program="jit_before"),
        run(0.0015, 0.0035, 0),
        run(0.0017, 0.003, 0, "cpu:10"),
        run(0.002, 0.0025, 1, program="jit_g"),
        run(0.0028, 0.006, 2, "cpu:2"),
        run(0.0033, 0.0034, None, "cpu:2", program="jit_other"),
    ],
    versions={"jax": "0.12.0"},
)
WITHOUT_PROFILE = log_of(*WHOLE.events)


# The run-ahead.


@pytest.mark.parametrize(
    ("dispatches", "runs", "steps"),
    [
        ([], [], []),
        ([dispatch(1.0)], [], []),
        ([dispatch(1.0)], [run(1.5, 2.0, 0)], [(1.0, 1), (2.0, 0)]),
        ([dispatch(1.0)], [run(0.5, 2.0, 0)], [(1.0, 1), (2.0, 0)]),
        ([dispatch(1.0)], [run(0.5, 0.9, 0)], []),
        ([dispatch(1.0)], [run(0.5, 1.0, 0)], []),
        (
            [dispatch(1.0), dispatch(2.0), dispatch(3.0)],
            [run(1, 4.0, 0), run(4, 5.0, 1), run(5, 6.0, 2)],
            [(1.0, 1), (2.0, 2), (3.0, 3), (4.0, 2), (5.0, 1), (6.0, 0)],
        ),
        (
            [dispatch(1.0), dispatch(2.0)],
            [run(1, 2.0, 0), run(2, 3.0, 1)],
            [(1.0, 1), (3.0, 0)],
        ),
        (
            [dispatch(1.0), dispatch(1.5)],
            [run(1, 2.0, 0), run(1, 4.0, 0, "cpu:1"), run(1, 3.0, 0, "cpu:2"), run(1, 2.0)],
            [(1.0, 1), (4.0, 0)],
        ),
        ([dispatch(0.0)], [run(0, 2.0, 0)], [(0.0, 1), (2.0, 0)]),
        (
            [dispatch(1.0, thread=2), dispatch(0.5)],
            [run(1, 3.0, 1), run(2, 2.0, 0)],
            [(0.5, 1), (1.0, 2), (2.0, 1), (3.0, 0)],
        ),
    ],
)
def test_the_run_ahead_counts_what_returned_and_is_not_finished(dispatches, runs, steps):
    timeline = log_of(*dispatches, runs=runs).timeline()
    beginning = [] if steps and steps[0][0] == 0 else [(0.0, 0)]
    assert timeline.run_ahead == (*beginning, *steps)


def test_events_other_than_dispatches_have_no_number():
    events = [compiled(0.1, 0.2), dispatch(1.0), sync(1.0, 1.2), dispatch(2.0)]
    timeline = log_of(*events, runs=[run(1.0, 3.0, 1)]).timeline()
    assert timeline.run_ahead == ((0.0, 0), (2.0, 1), (3.0, 0))


def test_dispatches_that_were_not_seen_to_run_are_told():
    assert WHOLE.timeline().unmatched == 1
    assert log_of(dispatch(1.0), dispatch(2.0), runs=[]).timeline().unmatched == 2
    assert log_of(runs=[]).timeline().unmatched == 0


@pytest.mark.parametrize("attribute", ["run_ahead", "unmatched"])
def test_without_a_profile_the_run_ahead_is_an_error_that_says_how_to_get_it(attribute):
    with pytest.raises(RuntimeError, match=r"record\(profile=True\)"):
        getattr(WITHOUT_PROFILE.timeline(), attribute)
    with da.record(profile=True) as log, pytest.raises(RuntimeError, match="recording is over"):
        getattr(log.timeline(), attribute)


@pytest.mark.parametrize("attribute", ["run_ahead", "unmatched"])
def test_without_all_dispatches_there_is_no_run_ahead(attribute):
    lost = {"dispatches on JAX's fast path": "a.b"}
    timeline = log_of(dispatch(1.0), runs=[run(1, 2, 0)], not_recorded=lost).timeline()
    with pytest.raises(RuntimeError, match="not recorded: dispatches on JAX's fast path"):
        getattr(timeline, attribute)


@jax.jit
def step(x):
    return x @ x


MATRIX = jnp.full((100, 100), 1e-2)
step(MATRIX)


def test_behind_a_gate_the_host_runs_ahead_by_all_that_it_dispatches():
    gate = da.Gate()
    with da.record(profile=True, on_wait=gate.open) as log:
        y = gate(MATRIX)
        for _ in range(20):
            y = step(y)
        y.block_until_ready()
    timeline = log.timeline()
    assert timeline.unmatched == 0
    assert [depth for _, depth in timeline.run_ahead] == [*range(22), *reversed(range(21))]
    rises = [moment for moment, _ in timeline.run_ahead[1:22]]
    assert rises == [one.returned for one in log.dispatches]
    assert [moment for moment, _ in timeline.run_ahead[22:]] == [one.finish for one in log.runs]


def test_a_loop_that_waits_for_each_step_is_never_ahead_by_more_than_one():
    with da.record(profile=True) as log:
        y = MATRIX
        for _ in range(10):
            y = step(y)
            y.block_until_ready()
    timeline = log.timeline()
    assert timeline.unmatched == 0
    assert {depth for _, depth in timeline.run_ahead} <= {0, 1}


def test_a_log_that_was_stored_has_the_same_timeline(tmp_path):
    with da.record(profile=True) as recorded:
        step(on_eight(MATRIX[:96], "i")[:, :96]).block_until_ready()
    for log in (WHOLE, recorded):
        again = da.Log.from_json(log.to_json())
        assert again.timeline().run_ahead == log.timeline().run_ahead
        assert again.timeline().unmatched == log.timeline().unmatched
        for name, one in (("log", log), ("again", again)):
            one.timeline().to_perfetto(tmp_path / name)
        assert (tmp_path / "log").read_bytes() == (tmp_path / "again").read_bytes()


# Tracks.


@pytest.mark.parametrize("nests", [True, False])
def test_on_no_track_two_spans_overlap(nests):
    random = np.random.default_rng(0)
    for _ in range(50):
        begins, lengths = random.integers(0, 40, 20), random.integers(0, 9, 20)
        spans = list(zip(begins.tolist(), (begins + lengths).tolist(), strict=True))
        tracks = _timeline._tracks(spans, nests)
        assert min(tracks) == 0
        placed = zip(spans, tracks, strict=True)
        for (one, its), (other, others) in itertools.combinations(placed, 2):
            first, second = sorted([one, other], key=lambda span: (span[0], -span[1]))
            apart = first[1] <= second[0] or second[1] <= first[0]
            within = nests and second[1] <= first[1]
            assert its != others or apart or within


def test_as_few_tracks_as_possible_are_used():
    assert _timeline._tracks([(0, 2), (2, 4), (1, 3), (3, 5)], nests=False) == [0, 0, 1, 1]
    assert _timeline._tracks([(0, 9), (1, 3), (3, 5), (4, 6)], nests=True) == [0, 0, 0, 1]
    assert _timeline._tracks([(0, 3), (0, 9)], nests=True) == [0, 0]


# The picture.


@pytest.fixture
def draw():
    """Return what draws a timeline into axes of their own."""
    figures = []

    def draw(log):
        figures.append(Figure(layout="constrained"))
        ax = figures[-1].subplots()
        assert log.timeline().plot(ax) is ax
        figures[-1].canvas.draw()
        return ax

    return draw


def bars_of(ax):
    """Return the horizontal extents of all bars, by the lane that they are in."""
    labels = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
    lanes = {y: label.get_text() for y, label in labels}
    bars = collections.defaultdict(list)
    for collection in ax.collections:
        for path in collection.get_paths():
            box = path.get_extents()
            lane = lanes[min(lanes, key=lambda y: abs(y - (box.y0 + box.y1) / 2))]
            bars[lane].append((box.x0, box.x1))
    return {lane: sorted(ends) for lane, ends in bars.items()}


def milliseconds(*spans):
    return pytest.approx(np.array(sorted(spans)) * 1e3, abs=1e-9)


def test_each_thread_and_each_device_is_a_lane_and_the_run_ahead_lies_beneath(draw):
    ax = draw(WHOLE)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [
        *("MainThread", "loader", "thread 3", "cpu:0", "cpu:2", "cpu:10"),
        "run-ahead",
    ]
    assert list(ax.get_yticks()) == sorted(ax.get_yticks(), reverse=True)
    assert ax.get_xlabel() == "time (ms)\n1 dispatch not seen to run"
    # From the run that began before the recording to the recording's end.
    assert ax.get_xlim() == pytest.approx((-0.5, 10.0))


def test_bars_are_as_long_as_what_they_stand_for(draw):
    bars = {lane: np.array(ends) for lane, ends in bars_of(draw(WHOLE)).items()}
    assert bars["cpu:0"] == milliseconds((-0.0005, 0.0004), (0.0015, 0.0035), (0.002, 0.0025))
    assert bars["cpu:2"] == milliseconds((0.0028, 0.006), (0.0033, 0.0034))
    assert bars["cpu:10"] == milliseconds((0.0017, 0.003))
    assert bars["loader"] == milliseconds((0.0011, 0.003), (0.0031,) * 2, (0.0032,) * 2)
    assert bars["thread 3"] == milliseconds((0.007, 0.0071))
    assert bars["MainThread"] == milliseconds(
        (0.0001, 0.001),
        (0.0013, 0.0015),
        (0.002,) * 2,
        (0.00250025,) * 2,
        (0.0035, 0.0036),
        (0.004, 0.0061),
    )


def test_the_line_of_the_run_ahead_goes_through_its_steps(draw):
    ax = draw(WHOLE)
    [line] = ax.lines
    steps = WHOLE.timeline().run_ahead
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xdata() == pytest.approx([moment * 1e3 for moment, _ in steps] + [10.0])
    heights = line.get_ydata()
    depths = [depth for _, depth in (*steps, steps[-1])]
    unit = (max(heights) - min(heights)) / max(depths)
    assert heights == pytest.approx([ax.get_ylim()[0] + unit * depth for depth in depths])
    assert [text.get_text().strip() for text in ax.texts] == [str(max(depths))]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_legend_names_what_is_there(draw):
    assert legend_of(draw(WHOLE)) == [
        *("compile", "transfer", "host sync", "host sync, was ready", "dispatch", "run")
    ]
    assert legend_of(draw(log_of(sync(0.001, 0.002)))) == ["host sync"]
    assert draw(log_of()).get_legend() is None


def test_without_a_profile_the_host_is_drawn_and_the_rest_is_said(draw):
    ax = draw(WITHOUT_PROFILE)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        *("MainThread", "loader", "thread 3", "")
    ]
    assert [text.get_text() for text in ax.texts] == ["device times: not recorded"]
    assert not ax.lines
    assert bars_of(ax)["MainThread"] == bars_of(draw(WHOLE))["MainThread"]


def test_what_this_jax_cannot_tell_is_said(draw):
    lost = {"dispatches on JAX's fast path": "a.b", "host syncs by DLPack": "c.d"}
    ax = draw(log_of(dispatch(0.001), runs=[run(0.001, 0.002, 0)], not_recorded=lost))
    assert ax.get_xlabel().splitlines()[1:] == [f"not recorded: {fact}" for fact in lost]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["MainThread", "cpu:0"]


@pytest.mark.parametrize(
    ("seconds", "unit"), [(300.0, "s"), (2.5, "s"), (1.5, "ms"), (0.0025, "ms"), (0.0015, "us")]
)
def test_the_unit_of_the_time_is_one_of_which_there_are_many(draw, seconds, unit):
    ax = draw(log_of(sync(0.0, seconds), seconds=seconds))
    assert ax.get_xlabel() == f"time ({unit})"
    scale = {"s": 1, "ms": 1e3, "us": 1e6}[unit]
    assert ax.get_xlim() == pytest.approx((0, seconds * scale))


def test_an_empty_log_can_be_drawn(draw):
    for log in (log_of(), log_of(runs=[]), da.Log(began=0.0)):
        assert draw(log).get_xlabel().startswith("time")


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("ground", ["white", "#121212"])
def test_all_that_is_drawn_can_be_seen_on_light_and_on_dark(draw, ground):
    ax = draw(WHOLE)
    assert ax.patch.get_alpha() == 0
    seen = []
    for collection in ax.collections:
        seen += [*collection.get_facecolor(), *collection.get_edgecolor()]
    seen += [line.get_color() for line in ax.lines]
    texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), *ax.get_legend().get_texts()]
    seen += [text.get_color() for text in (*texts, ax.xaxis.label)]
    seen.append(ax.spines["bottom"].get_edgecolor())
    opaque = [color[:3] for color in map(colors.to_rgba, seen) if color[3] == 1]
    # What is not opaque is the area under the line of the run-ahead, which is.
    assert len(seen) - len(opaque) == 2
    assert len(set(opaque)) >= 6
    assert min(contrast(color, colors.to_rgb(ground)) for color in opaque) > 3


def test_neighbouring_runs_differ_however_short_those_between_them_are(draw):
    runs = []
    for i in range(6):
        runs += [run(i * 1e-3, (i + 0.9) * 1e-3), run((i + 0.9) * 1e-3, (i + 0.9001) * 1e-3)]
    ax = draw(log_of(runs=runs))
    shades = {}
    for collection in ax.collections[:2]:
        for path in collection.get_paths():
            box = path.get_extents()
            if box.width > 0.1:
                shades[round(box.x0)] = tuple(collection.get_facecolor()[0])
    assert len(shades) == 6
    assert all(shades[i] != shades[i + 1] for i in range(5))


def test_a_figure_is_made_if_there_is_none():
    ax = WHOLE.timeline().plot()
    try:
        assert ax.figure.patch.get_alpha() == 0
        assert ax.figure in map(pyplot.figure, pyplot.get_fignums())
        more = log_of(runs=[run(0, 1, None, f"cpu:{i}") for i in range(20)]).timeline().plot()
        assert more.figure.get_figheight() > ax.figure.get_figheight()
        assert more.figure.get_figwidth() == ax.figure.get_figwidth()
    finally:
        pyplot.close("all")


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'devicearray[plots]'")):
        WHOLE.timeline().plot()


# The file for Perfetto.


class Importer:
    """Reads a trace as Perfetto's trace processor does, and refuses what that drops.

    The rules are those of google/perfetto, src/trace_processor/importers: entries are taken in the
    order of time, and of the file; times are cut off to nanoseconds; a slice that overlaps another
    of its track is dropped; an arrow is bound to the topmost slice of its track.
    """

    def __init__(self, path):
        entries = json.loads(path.read_text("utf-8"))["traceEvents"]
        self.processes, self.threads, self.order = {}, {}, {}
        self.slices, self.arrows, self.counters = [], [], []
        self._stacks = collections.defaultdict(list)
        self._open_arrows = {}
        for entry in sorted(entries, key=lambda entry: self._nanoseconds(entry.get("ts", 0))):
            getattr(self, f"_read_{entry['ph']}")(entry)
        assert not self._open_arrows

    @staticmethod
    def _nanoseconds(microseconds):
        assert microseconds >= 0
        return int(microseconds * 1000)

    @staticmethod
    def _track(entry):
        assert 0 < entry["pid"] < 2**32
        assert 0 < entry["tid"] < 2**32
        return entry["pid"], entry["tid"]

    def _read_M(self, entry):
        about, key = entry["name"], entry["args"]
        if about == "process_name":
            self.processes[entry["pid"]] = key["name"]
        elif about == "thread_name":
            self.threads[self._track(entry)] = key["name"]
        else:
            assert about in ("process_sort_index", "thread_sort_index")
            self.order[about, entry["pid"], entry.get("tid")] = key["sort_index"]

    def _read_X(self, entry):
        start = self._nanoseconds(entry["ts"])
        end = start + self._nanoseconds(entry["dur"])
        stack = self._stacks[self._track(entry)]
        while stack:
            _, top_start, top_end = stack[-1]
            if top_end < start or (top_end == start and not top_start == top_end == end):
                stack.pop()
                continue
            assert end <= top_end, "overlapping slices"
            break
        stack.append((entry, start, end))
        self.slices.append(entry)

    def _read_s(self, entry):
        assert entry["id"] not in self._open_arrows
        self._open_arrows[entry["id"]] = self._bound_to(entry), entry["name"], entry["cat"]

    def _read_f(self, entry):
        assert entry["bp"] == "e"
        source, *same = self._open_arrows.pop(entry["id"])
        assert same == [entry["name"], entry["cat"]]
        self.arrows.append((source, self._bound_to(entry)))

    def _bound_to(self, entry):
        slice_, start, end = self._stacks[self._track(entry)][-1]
        # What Chrome's own viewer asks for as well: that the slice is there at that time.
        assert start <= self._nanoseconds(entry["ts"]) <= end
        return slice_

    def _read_C(self, entry):
        [value] = entry["args"].values()
        self.counters.append((entry["name"], entry["pid"], entry["ts"], value))

    def where(self, slice_):
        return self.processes[slice_["pid"]], self.threads[self._track(slice_)]

    def span(self, slice_):
        return slice_["ts"] * 1e-6, (slice_["ts"] + slice_["dur"]) * 1e-6


@pytest.fixture
def perfetto(tmp_path):
    """Return what writes a timeline and reads it as Perfetto does."""

    def read(log):
        path = tmp_path / "trace.json"
        log.timeline().to_perfetto(path)
        return Importer(path)

    return read


#: Times are written in eighths of a microsecond.
def rounded(*spans, shift=0.0):
    return pytest.approx(np.array(spans) + shift, abs=0.0626e-6)


def test_all_slices_are_where_they_belong_and_at_their_times(perfetto):
    trace = perfetto(WHOLE)
    spans = [(one.end if one.start is None else one.start, one.end) for one in WHOLE.events]
    spans += [(one.start, one.finish) for one in WHOLE.runs]
    slices = sorted(map(trace.span, trace.slices))
    # The run that began before the recording is the beginning of the file.
    assert np.array(slices) == rounded(*sorted(spans), shift=0.0005)
    assert collections.Counter(map(trace.where, trace.slices)) == {
        ("host", "MainThread"): 6,
        ("host", "loader"): 3,
        ("host", "thread 3"): 1,
        ("cpu:0", "runs"): 3,
        ("cpu:2", "runs"): 2,
        ("cpu:10", "runs"): 1,
    }


def test_slices_have_the_names_and_categories_of_what_they_stand_for(perfetto):
    found = collections.Counter((one["name"], one["cat"]) for one in perfetto(WHOLE).slices)
    assert found == {
        ("f", "compile"): 1,
        ("f", "dispatch"): 2,
        ("g", "dispatch"): 1,
        ("unseen", "dispatch"): 1,
        ("float", "host sync"): 3,
        ("device_put", "transfer"): 2,
        ("jit_before", "run"): 1,
        ("jit_f", "run"): 3,
        ("jit_g", "run"): 1,
        ("jit_other", "run"): 1,
    }


def test_slices_have_the_line_and_what_else_is_known_as_arguments(perfetto):
    trace = perfetto(WHOLE)
    site = {"file": "train.py", "line": 7, "function": "train", "source": SITE.source}
    args = {(one["cat"], one["name"]): one["args"] for one in reversed(trace.slices)}
    assert args["compile", "f"] == {"persistent_cache_hit": False} | site
    dispatch_args = {"host_arguments": 2, "host_bytes": 9}
    assert args["dispatch", "f"] == {"dispatch": 0} | dispatch_args | site
    assert args["dispatch", "g"] == {"dispatch": 1} | dispatch_args
    sync_args = {"was_ready": True, "nbytes": 4, "copied": True, "allowed": False}
    assert args["host sync", "float"] == sync_args | site
    transfer_args = {"direction": "host to device", "arrays": 8, "nbytes": 64}
    assert args["transfer", "device_put"] == transfer_args
    assert args["run", "jit_f"] == {"dispatch": 0} | site
    assert args["run", "jit_other"] == {}


def test_processes_and_threads_are_named_and_in_order(perfetto):
    trace = perfetto(WHOLE)
    process_order = sorted(
        trace.processes, key=lambda pid: trace.order["process_sort_index", pid, None]
    )
    assert [trace.processes[pid] for pid in process_order] == ["host", "cpu:0", "cpu:2", "cpu:10"]
    host, *_ = process_order
    tracks = sorted(
        (track for track in trace.threads if track[0] == host),
        key=lambda track: trace.order["thread_sort_index", *track],
    )
    assert [trace.threads[track] for track in tracks] == ["MainThread", "loader", "thread 3"]
    assert len({tid for _, tid in trace.threads}) == len(trace.threads)


def test_arrows_lead_from_dispatches_to_their_runs(perfetto):
    trace = perfetto(WHOLE)
    assert collections.Counter(
        (source["name"], *trace.where(source), target["name"], *trace.where(target))
        for source, target in trace.arrows
    ) == {
        ("f", "host", "MainThread", "jit_f", "cpu:0", "runs"): 1,
        ("f", "host", "MainThread", "jit_f", "cpu:10", "runs"): 1,
        ("f", "host", "loader", "jit_f", "cpu:2", "runs"): 1,
    }
    assert all(source["cat"] == "dispatch" for source, _ in trace.arrows)


def test_the_run_ahead_is_a_counter(perfetto):
    trace = perfetto(WHOLE)
    steps = WHOLE.timeline().run_ahead
    assert [value for *_, value in trace.counters] == [depth for _, depth in steps]
    assert {(name, pid) for name, pid, *_ in trace.counters} == {("run-ahead", 1)}
    times = [ts * 1e-6 for _, _, ts, _ in trace.counters]
    assert np.array(times) == rounded(*(moment for moment, _ in steps), shift=0.0005)


def test_slices_of_one_thread_that_overlap_are_put_on_tracks_of_their_own(perfetto):
    trace = perfetto(log_of(sync(0.001, 0.003), compiled(0.002, 0.004), sync(0.0025, 0.0029)))
    assert sorted((trace.threads[one["pid"], one["tid"]], one["name"]) for one in trace.slices) == [
        ("MainThread", "float"),
        ("MainThread", "float"),
        ("MainThread (2)", "f"),
    ]


def test_runs_on_one_device_never_lie_within_one_another(perfetto):
    trace = perfetto(log_of(runs=[run(0.001, 0.005), run(0.002, 0.003), run(0.005, 0.006)]))
    assert [one["tid"] - one["pid"] for one in trace.slices] == [0, 1, 0]


def test_slices_that_touch_do_not_overlap(perfetto):
    ends = 1_000 + np.cumsum(np.random.default_rng(0).uniform(0, 3e-6, 2_000))
    runs = [run(float(a), float(b)) for a, b in itertools.pairwise(ends)]
    trace = perfetto(log_of(runs=runs))
    assert len(trace.slices) == len(runs)
    assert {one["tid"] for one in trace.slices} == {1_000}


def test_slices_that_end_together_lie_within_one_another(perfetto):
    moments = 1_000 + np.cumsum(np.random.default_rng(0).uniform(0, 3e-6, 3_000))
    events = []
    for begin, middle, end in moments.reshape(-1, 3).tolist():
        events += [compiled(middle, end), sync(begin, end)]
    trace = perfetto(log_of(*events))
    assert len(trace.slices) == len(events)
    assert {one["tid"] for one in trace.slices} == {1}


@pytest.mark.parametrize("log", [WITHOUT_PROFILE, log_of(), log_of(runs=[]), da.Log(began=0.0)])
def test_what_was_not_recorded_is_not_in_the_file(perfetto, log):
    trace = perfetto(log)
    assert len(trace.slices) == len(log.events)
    assert not trace.arrows
    assert set(trace.processes.values()) == {"host"}
    assert len(trace.counters) == (log.runs is not None)


def test_without_all_dispatches_there_is_no_counter(perfetto):
    lost = {"dispatches on JAX's fast path": "a.b"}
    trace = perfetto(log_of(dispatch(0.001), runs=[run(0.001, 0.002)], not_recorded=lost))
    assert len(trace.slices) == 2
    assert not trace.counters


def test_the_file_is_in_the_order_of_time(tmp_path):
    WHOLE.timeline().to_perfetto(tmp_path / "trace.json")
    entries = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    times = [entry.get("ts", -1) for entry in entries]
    assert times == sorted(times)


def test_the_file_says_what_made_it(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("something else, and longer" * 1_000)
    WHOLE.timeline().to_perfetto(str(path))
    assert json.loads(path.read_text())["otherData"] == {"began": 1.7e9, "jax": "0.12.0"}


def test_a_recording_of_all_kinds_can_be_opened(perfetto):
    x, gate = on_eight(MATRIX[:96], "i"), da.Gate()
    with da.record(profile=True, on_wait=gate.open) as log:
        jax.jit(lambda x: x + 1)(x).block_until_ready()
        gate.close()
        y = gate(jax.device_put(np.ones((50, 50), np.float32)))
        for _ in range(5):
            y = step(y) + 1
        float(y[0, 0])
    trace = perfetto(log)
    assert {one["cat"] for one in trace.slices} == {
        *("compile", "dispatch", "host sync", "transfer", "run")
    }
    assert len(trace.slices) == len(log.events) + len(log.runs)
    assert log.timeline().unmatched == 0
    later = [one for one in log.runs if one.finish > log.dispatches[one.dispatch].returned]
    assert len(trace.arrows) >= len(later) > 8
    assert set(trace.processes.values()) == {"host", *(f"cpu:{i}" for i in range(8))}
