"""What the devices ran is known, when, and for which dispatch; what is not known is not claimed."""

import collections
import dataclasses
import functools
import itertools
import subprocess
import sys
import threading
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import devicearray as da
from devicearray import _boundary, _jax, _profile
from devicearray._profile import Profile, module_name
from tests.eight_devices import on_eight, over_eight
from tests.profiled import profiled

X = jnp.ones(16)
MATRIX = jnp.full((300, 300), 1e-3)


@jax.jit
def step(x):
    return x @ x


@jax.jit
def tiny(x):
    return x + 1


step(MATRIX), tiny(X)


def runs_by_dispatch(log):
    """Return the runs of each dispatch, by its number; those of none by None."""
    runs = collections.defaultdict(list)
    for run in log.runs:
        runs[run.dispatch].append(run)
    return dict(runs)


def programs_by_dispatch(log):
    """Return the name of each dispatch, and the program and devices that it is said to have run."""
    runs = runs_by_dispatch(log)
    return [
        (dispatch.name, {run.program for run in runs[i]}, sorted(run.device for run in runs[i]))
        for i, dispatch in enumerate(log.dispatches)
    ]


def on_devices(number):
    return sorted(f"cpu:{i}" for i in range(number))


# Names.


def called(name, number=3):
    def function(x):
        return x @ x * number if x.ndim > 1 else x * number

    function.__name__ = name
    return function


@pytest.mark.parametrize(
    "name",
    [
        "f",
        "a.b",
        "a b",
        "schön",
        "f__",
        "_f",
        "<x>",
        "f(x)",
        "a-b",
        "a:b/c",
        "",
        "123",
        "f😀",
        "n" * 300,
    ],
)
def test_a_run_has_the_name_of_its_module_and_is_found_for_its_dispatch(name):
    with da.record(profile=True) as log:
        jax.jit(called(name))(X).block_until_ready()
    assert programs_by_dispatch(log) == [(name, {module_name(name)}, ["cpu:0"])]


# Programs of every kind.


class Callable:
    def __call__(self, x):
        return x + 1


def sharded(function):
    mesh = over_eight("i").mesh
    return jax.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P("i"))


def opened(x):
    gate = da.Gate()
    gate.open()
    return gate(x)


PROGRAMS = {
    "lambda": jax.jit(lambda x: x * 2),
    "identity": jax.jit(lambda x: x),
    "constant": jax.jit(lambda _: 3.0),
    "partial": jax.jit(functools.partial(jnp.add, 2.0)),
    "callable": jax.jit(Callable()),
    "compiled ahead": jax.jit(lambda x: x - 1).lower(X).compile(),
    "eager": lambda x: (x + 1) * x.sum() - x[3],
    "jax.numpy": lambda x: jnp.cumsum(jnp.sin(x)),
    "random": lambda _: jax.random.normal(jax.random.key(0), (3,)),
    "vmap": jax.vmap(lambda x: x * 2),
    "grad": jax.grad(lambda x: (x**2).sum()),
    "value and grad": jax.jit(jax.value_and_grad(lambda x: (x**2).sum())),
    "scan": lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x),
    "while": lambda _: jax.lax.while_loop(lambda c: c < 9, lambda c: c + 1, 0),
    "cond": lambda x: jax.lax.cond(x[0] > 1, lambda x: x, lambda x: x + 1, x),
    "donated": lambda x: jax.jit(lambda y: y + 1, donate_argnums=0)(x.copy()),
    "callback": jax.jit(lambda x: jax.pure_callback(np.sin, x, x)),
    "DeviceArray": lambda x: [row + 1 for row in da.asarray(x)],
    "devicearray.numpy": lambda x: da.numpy.dot(da.asarray(x), x),
    "devicearray.jit": da.jit(lambda x: x + 1),
    "gate": opened,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_dispatch_of_a_program_has_a_run_and_each_run_a_dispatch(name):
    program = PROGRAMS[name]
    with da.record(profile=True) as log:
        jax.block_until_ready([program(X), program(X)])
    assert len(log.dispatches) >= 2
    assert programs_by_dispatch(log) == [
        (dispatch.name, {module_name(dispatch.name)}, ["cpu:0"]) for dispatch in log.dispatches
    ]
    assert None not in runs_by_dispatch(log)


@pytest.mark.parametrize(
    "program",
    [
        jax.jit(lambda x: x * 2),
        lambda x: x + 1,
        jax.jit(lambda x: x.sum() + x),
        jax.jit(sharded(lambda x: x * 2)),
        opened,
    ],
    ids=["lambda", "eager", "sum", "shard_map", "gate"],
)
def test_a_dispatch_to_eight_devices_has_eight_runs(program):
    x = on_eight(X, "i")
    with da.record(profile=True) as log:
        jax.block_until_ready([program(x), program(x)])
    eight = on_devices(8)
    assert len(log.dispatches) == 2
    assert [devices for _, _, devices in programs_by_dispatch(log)] == [eight, eight]
    assert len(log.runs) == 16


@pytest.mark.parametrize("name", ["lambda", "eager", "scan", "donated"])
def test_the_runs_are_those_that_an_independent_profile_counts(name):
    program = PROGRAMS[name]

    def work():
        return [program(X) for _ in range(3)]

    work()
    expected = profiled(work).modules
    with da.record(profile=True) as log:
        jax.block_until_ready(work())
    assert expected
    assert collections.Counter(run.program for run in log.runs) == collections.Counter(expected)


# Times.


def test_a_program_that_runs_inside_its_dispatch_runs_between_two_returns():
    with da.record(profile=True) as log:
        for _ in range(200):
            tiny(X)
    assert [run.dispatch for run in log.runs] == list(range(200))
    returns = [0.0, *(dispatch.returned for dispatch in log.dispatches)]
    for run, (before, returned) in zip(log.runs, itertools.pairwise(returns), strict=True):
        assert before < run.start < run.finish < returned


def test_what_the_host_waited_for_was_finished_when_the_wait_was_over():
    for _ in range(20):
        with da.record(profile=True) as log:
            y = MATRIX
            for _ in range(3):
                y = step(y)
            float(y[0, 0])
        runs, dispatches = runs_by_dispatch(log), log.dispatches
        assert list(runs) == list(range(len(dispatches)))
        for i, dispatch in enumerate(dispatches):
            # A dispatch on the fast path began after the one before it had returned.
            begin = dispatch.start or (dispatches[i - 1].returned if i else 0.0)
            assert begin < runs[i][0].start < runs[i][0].finish < log.syncs[-1].end
        for earlier, later in itertools.pairwise(log.runs):
            assert earlier.finish <= later.start


def test_a_run_lasts_from_its_gate_to_its_end():
    gate = da.Gate()
    with da.record(profile=True, on_wait=gate.open) as log:
        step(gate(MATRIX)).block_until_ready()
    held, after = log.runs
    [sync] = log.syncs
    # It stood there while the host dispatched the rest, and was let go by the wait.
    assert log.dispatches[1].returned < held.finish <= after.start
    assert after.finish < sync.end
    assert sync.start < after.finish


# Which dispatch a run belongs to.


def matched_under_one_name(monkeypatch, work):
    """Record `work`; return the dispatches of its launches, and those if all had one name."""
    match, calls = _profile._matched, []
    monkeypatch.setattr(_profile, "_matched", lambda *args: calls.append(args) or match(*args))
    with da.record(profile=True):
        jax.block_until_ready(work())
    [(dispatches, launches, idle)] = calls
    renamed = [
        [dataclasses.replace(part, module="jit_f") for part in launch] for launch in launches
    ]
    dispatches_renamed = [(i, dataclasses.replace(one, name="f")) for i, one in dispatches]
    found = match(dispatches, launches, idle)
    assert sorted(found.values()) == list(range(len(dispatches)))
    return found, match(dispatches_renamed, renamed, idle)


def names_by_size(*sizes):
    """Return functions of different names, each for one size only, and their arguments."""
    return [
        (jax.jit(called(f"f_{i}_{size}", i)), jnp.full((size, size), 1e-3))
        for i in range(2)
        for size in sizes
    ]


def test_codes_of_one_name_are_told_apart_by_the_order_on_their_device(monkeypatch):
    calls = names_by_size(4, 64, 200)
    jax.block_until_ready([function(x) for function, x in calls])

    def work():
        for function, x in 6 * [*calls, *reversed(calls)]:
            y = function(x)
            yield y if x.size > 16 else function(y)

    expected, found = matched_under_one_name(monkeypatch, lambda: list(work()))
    assert found == expected


def test_codes_of_one_name_on_one_device_and_on_several_are_told_apart(monkeypatch):
    calls = names_by_size(8, 64, 200)
    # Element by element: programs that talk to each other would wait for those of one device.
    calls += [
        (jax.jit(called(f"g_{size}")), on_eight(jnp.ones(size), "i")) for size in (8, 64, 200)
    ]
    jax.block_until_ready([function(x) for function, x in calls])
    expected, found = matched_under_one_name(
        monkeypatch, lambda: [function(x) for function, x in 3 * [*calls, *reversed(calls)]]
    )
    assert found == expected


def test_one_function_on_each_of_eight_devices_ran_where_it_was_dispatched():
    arrays = [jax.device_put(MATRIX, device) for device in reversed(jax.devices())]
    jax.block_until_ready([step(array) for array in arrays])
    with da.record(profile=True) as log:
        jax.block_until_ready([step(array) for _ in range(2) for array in arrays])
    assert [devices for _, _, devices in programs_by_dispatch(log)] == 2 * [
        [f"cpu:{i}"] for i in reversed(range(8))
    ]


def test_what_was_dispatched_before_the_recording_belongs_to_no_dispatch_of_it():
    gate = da.Gate()
    early = step(step(gate(MATRIX)))
    with da.record(profile=True, on_wait=gate.open) as log:
        late = step(step(step(early)))
        late.block_until_ready()
    runs = [run for run in log.runs if run.program == "jit_step"]
    assert [run.dispatch for run in runs] == [None, None, 0, 1, 2]


def test_what_is_in_flight_when_the_recording_ends_has_no_run():
    gate = da.Gate()
    with da.record(profile=True) as log:
        step(step(MATRIX)).block_until_ready()
        held = gate(MATRIX)
        held = step(held)
    gate.open()
    held.block_until_ready()
    assert [run.dispatch for run in log.runs] == [0, 1]
    assert [dispatch.name for dispatch in log.dispatches] == ["step", "step", "gate", "step"]


def test_between_what_was_in_flight_before_and_what_still_is_nothing_is_claimed():
    before, after = da.Gate(), da.Gate()
    early = step(before(MATRIX))
    with da.record(profile=True) as log:
        y = step(step(early))
        held = step(after(y))
        before.open()
        y.block_until_ready()
    after.open()
    held.block_until_ready()
    runs = [run for run in log.runs if run.program == "jit_step"]
    assert [run.dispatch for run in runs] == [None, None, None]


def test_dispatches_before_the_profile_are_not_taken_for_those_within_it():
    with da.record() as log:
        origin = _boundary._listeners[-1].origin
        step(MATRIX).block_until_ready()
        profile = Profile()
        step(MATRIX).block_until_ready()
        runs = profile.stop(origin, log.events)
    assert [run.dispatch for run in runs] == [1]
    assert log.dispatches[0].returned < runs[0].start < log.syncs[1].end


def test_what_another_thread_dispatches_when_the_recording_is_over_is_not_part_of_it(monkeypatch):
    recording = da.record(profile=True)
    log = recording.start()
    step(MATRIX).block_until_ready()
    profile = recording._running[2]
    stop = profile._stop

    def dispatch_and_stop():
        step(MATRIX).block_until_ready()
        return stop()

    monkeypatch.setattr(profile, "_stop", dispatch_and_stop)
    recording.stop()
    assert [run.dispatch for run in log.runs] == [0]


def test_each_thread_has_its_own_runs():
    functions = [jax.jit(called(f"of_{i}")) for i in range(4)]
    for function in functions:
        function(X)
    together = threading.Barrier(4)

    def work(function):
        together.wait()
        jax.block_until_ready([function(X) for _ in range(50)])

    with da.record(profile=True) as log:
        threads = [threading.Thread(target=work, args=(one,)) for one in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(log.runs) == len(log.dispatches) == 200
    for run in log.runs:
        dispatch = log.dispatches[run.dispatch]
        assert module_name(dispatch.name) == run.program
        assert run.finish < dispatch.returned


def test_many_dispatches_are_all_found():
    with da.record(profile=True) as log:
        for _ in range(5_000):
            tiny(X)
    assert [run.dispatch for run in log.runs] == list(range(5_000))


# The same, with launches made by hand.


def dispatch(end, name="f", thread=1, start=None):
    return da.Dispatch(
        start=start, end=end, thread=thread, site=None, name=name, host_arguments=0, host_bytes=0
    )


def launch(start, number=None, program=1, device="cpu:0", launched=None, devices=1):
    return [
        _profile._Execution(
            module="jit_f",
            program=program,
            number=number,
            device=device,
            start=start,
            finish=start + 0.5,
            devices=devices,
            launched=launched,
        )
    ]


def matched(dispatches, launches, at_beginning=True, at_end=True):
    """Return the dispatch of each launch."""
    found = _profile._matched(
        list(enumerate(dispatches)), launches, _profile._Idle(at_beginning, at_end)
    )
    return [found.get(i) for i in range(len(launches))]


THREE = [dispatch(1.0), dispatch(2.0), dispatch(3.0)]


def test_launches_of_one_code_are_counted():
    launches = [launch(12, 8), launch(10, 7, device="cpu:1"), launch(11, 9, program=2)]
    assert matched(THREE, launches) == [1, 0, 2]


def test_dispatches_are_taken_in_the_order_of_their_return():
    dispatches = [dispatch(2.0, thread=2), dispatch(1.0)]
    assert matched(dispatches, [launch(10, 7), launch(11, 8)]) == [1, 0]


def test_a_launch_that_was_not_seen_leaves_a_place():
    assert matched(THREE, [launch(10, 7), launch(11, 9)]) == [0, 2]


def test_the_counting_of_launches_passes_the_last_number():
    last = 2**31 - 1
    launches = [launch(12, last - 1), launch(10, -(2**31)), launch(11, last)]
    assert matched(THREE, launches) == [0, 2, 1]


def test_launches_of_several_codes_are_in_the_order_of_their_device():
    launches = [launch(12, 7), launch(10, 70_000), launch(11, 8)]
    assert matched(THREE, launches) == [2, 0, 1]


@pytest.mark.parametrize(
    ("dispatches", "launches"),
    [
        (
            [dispatch(1.0), dispatch(2.0, thread=2)],
            [launch(10, 7), launch(11, 70_000)],
        ),
        (THREE[:2], [launch(10, 7), launch(11, 70_000, device="cpu:1")]),
        (THREE[:2], [launch(10, 7), launch(11, 7, program=2)]),
    ],
    ids=["threads", "devices", "one number twice"],
)
def test_where_no_order_decides_nothing_is_claimed(dispatches, launches):
    expected = [0, 1] if launches[1][0].program == 2 else [None, None]
    assert matched(dispatches, launches) == expected


def test_a_launch_that_was_seen_belongs_to_the_dispatch_that_returned_next():
    dispatches = [dispatch(1.0), dispatch(2.0, thread=2), dispatch(3.0), dispatch(4.0, thread=2)]
    launches = [
        launch(1.1, 7, launched=1.5),
        launch(3.1, 70_000, launched=3.5),
        launch(2.1, 8, launched=2.5),
        launch(0.1, 900_000, launched=0.5),
    ]
    for idle in itertools.product((True, False), repeat=2):
        assert matched(dispatches, launches, *idle) == [1, 3, 2, 0]


def test_launches_that_were_seen_are_not_counted_again():
    launches = [launch(10, 7), launch(1.6, 8, launched=1.7), launch(11, 9)]
    assert matched(THREE, launches) == [0, 1, 2]


@pytest.mark.parametrize(
    ("idle", "expected"),
    [
        ((True, True), [None, None, 0, 1, 2]),
        ((False, True), [None, None, 0, 1, 2]),
        ((True, False), [None] * 5),
        ((False, False), [None] * 5),
    ],
)
def test_more_launches_than_dispatches_are_counted_from_the_end(idle, expected):
    assert matched(THREE, [launch(10 + i, i) for i in range(5)], *idle) == expected


@pytest.mark.parametrize(
    ("idle", "expected"),
    [
        ((True, True), [0, 1]),
        ((False, True), [None] * 2),
        ((True, False), [0, 1]),
        ((False, False), [None] * 2),
    ],
)
def test_fewer_launches_than_dispatches_are_counted_from_the_beginning(idle, expected):
    assert matched(THREE, [launch(10 + i, i) for i in range(2)], *idle) == expected


@pytest.mark.parametrize(
    "dispatches", [THREE, [dispatch(1.0), dispatch(3.0, start=2.0), dispatch(3.0)]]
)
def test_a_run_before_its_dispatch_makes_all_of_that_name_doubtful(dispatches):
    assert matched(dispatches, [launch(0.5, 7), launch(0.9, 8), launch(9, 9)]) == [None] * 3


def test_a_run_before_its_dispatch_makes_only_itself_doubtful_if_threads_overlap():
    dispatches = [dispatch(1.0), dispatch(2.0, thread=2, start=1.5), dispatch(3.0)]
    assert matched(dispatches, [launch(0.5, 7), launch(0.9, 8), launch(9, 9)]) == [0, None, 2]


def test_other_names_are_not_affected():
    other = [dataclasses.replace(launch(0.5, 3)[0], module="jit_g")]
    dispatches = [*THREE, dispatch(4.0, "g")]
    assert matched(dispatches, [launch(0.5, 7), launch(0.9, 8), other]) == [None, None, None]
    assert matched([*THREE[:2], dispatch(2.5, "g")], [launch(0.5, 7), launch(0.9, 8), launch(9)])


def test_a_launch_that_is_not_over_everywhere_is_not_finished():
    half = launch(10, 7, devices=2, launched=1.5)
    whole = half + launch(10, 7, device="cpu:1", devices=2, launched=1.5)
    assert matched(THREE, [half]) == [None]
    assert matched(THREE, [whole]) == [1]


def test_a_launch_is_for_as_many_devices_as_others_of_its_program():
    whole = launch(10, 7) + launch(10, 7, device="cpu:1")
    assert matched(THREE, [whole, launch(11, 8), launch(12, 9, program=2)]) == [0, None, 2]


# The profiler belongs to somebody else, or does not answer.


def test_a_recording_within_a_trace_is_refused_and_leaves_nothing_behind(tmp_path):
    originals = {key: hook.get() for key, hook in _jax.HOOKS.items()}
    jax.profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="being profiled already"), da.record(profile=True):
            pass
        assert not _boundary._listeners
        assert {key: hook.get() for key, hook in _jax.HOOKS.items()} == originals
        recording = da.record(profile=True)
        with pytest.raises(RuntimeError, match="being profiled already"):
            recording.start()
    finally:
        jax.profiler.stop_trace()
    assert list(tmp_path.rglob("*.xplane.pb"))
    log = recording.start()
    tiny(X)
    recording.stop()
    assert [run.dispatch for run in log.runs] == [0]


def test_after_a_recording_a_trace_can_be_made(tmp_path):
    with pytest.raises(ZeroDivisionError), da.record(profile=True):
        raise ZeroDivisionError
    with jax.profiler.trace(tmp_path):
        tiny(X).block_until_ready()
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_a_profile_that_somebody_else_stops_gives_no_times_rather_than_some(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # JAX writes what it stops to a folder, here one named None.
    recording = da.record(profile=True)
    log = recording.start()
    tiny(X)
    jax.profiler.stop_trace()
    tiny(X)
    with pytest.warns(RuntimeWarning, match="something else stopped the profiler") as caught:
        recording.stop()
    assert caught[0].filename == __file__
    assert log.runs is None
    assert len(log.dispatches) == 2
    with da.record(profile=True) as log:
        tiny(X)
    assert len(log.runs) == 1


@pytest.mark.parametrize("seconds", [60, -1, 0.01])
def test_a_clock_that_is_set_meanwhile_gives_no_times_rather_than_wrong_ones(monkeypatch, seconds):
    now = _profile._Moment.now
    recording = da.record(profile=True)
    log = recording.start()
    tiny(X)
    jump = round(seconds * 1e9)
    monkeypatch.setattr(_profile._Moment, "now", lambda: now()._replace(epoch=now().epoch + jump))
    with pytest.warns(RuntimeWarning, match="clock was set"):
        recording.stop()
    assert log.runs is None


def test_a_clock_that_goes_faster_is_corrected():
    began = _profile._Moment(ours=5_000, epoch=1_000_000)
    ended = _profile._Moment(ours=5_000 + 10**9, epoch=1_000_000 + 10**9 + 500_000)
    clock = _profile._Clock(began, ended, profile_start=1_000_000 + 1_000_500, origin=4_000)
    assert not _profile._was_set(began, ended)
    # A thousandth of the second had passed, and the origin was a millionth before the beginning.
    assert clock.seconds(0) == pytest.approx(1e-3 + 1e-6, rel=1e-12)
    assert clock.seconds(10**9 - 500_500) == pytest.approx(1 + 1e-6, rel=1e-12)


def test_a_warning_that_is_an_error_does_not_end_the_process():
    script = (
        "import jax.numpy as jnp, devicearray as da\n"
        "with da.record(profile=True) as log: jnp.sin(1.0)\n"
        "print(len(log.runs) == len(log.dispatches) > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("True\n", 0)


# Profiles made by hand, after the format's description.


def event(name, start, end, **stats):
    return SimpleNamespace(name=name, start_ns=start, end_ns=end, stats=list(stats.items()))


def plane(name, **lines):
    return SimpleNamespace(
        name=name,
        lines=[SimpleNamespace(name=key, events=events) for key, events in lines.items()],
    )


def executions(*planes):
    """Return what a profile of these planes says, without what is the same in all."""
    found = list(_profile._executions(SimpleNamespace(planes=planes)))
    return [
        (one.module, one.program, one.number, one.device, one.start, one.finish) for one in found
    ]


def thunk(name, start, end, module="jit_f", run=7, device=0, program=3):
    stats = {"hlo_module": module, "program_id": program, "run_id": run, "device_ordinal": device}
    return event(name, start, end, hlo_op=name, **stats)


def end_of_run(time, run=7, device=0):
    name = "ThunkExecutor::Execute (wait for completion)"
    return event(name, time, time + 1, run_id=run, device_ordinal=device)


def test_a_run_on_a_cpu_lasts_from_its_first_operation_to_its_end():
    worker = [thunk("dot.1", 10, 20), event("end: dot.1", 21, 25), thunk("add.2", 30, 40)]
    other = [thunk("reduce-window", 12, 50)]
    assert executions(plane("/host:CPU", worker=[*worker, end_of_run(60)], other=other)) == [
        ("jit_f", 3, 7, "cpu:0", 10, 61)
    ]


def test_a_run_on_a_cpu_that_has_no_end_is_left_out():
    worker = [thunk("dot", 10, 20), end_of_run(21), thunk("dot", 30, 40, run=8)]
    assert executions(plane("/host:CPU", worker=worker)) == [("jit_f", 3, 7, "cpu:0", 10, 22)]


def test_how_many_devices_a_launch_is_for_is_read_where_it_is_launched():
    name = "CommonPjRtLoadedExecutable::Execute (jit_f)"
    host = [event(name, 1, 5, run_id=7, num_addressable_devices=2)]
    worker = [thunk("dot", 10, 20, device=1), end_of_run(21, device=1)]
    [found] = _profile._executions(
        SimpleNamespace(planes=[plane("/host:CPU", worker=worker, host=host)])
    )
    assert (found.devices, found.launched, found.device) == (2, 5, "cpu:1")


def test_a_run_inside_its_dispatch_is_known_by_the_line_that_it_is_on():
    name = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    host = [event(name, 1, 50), thunk("dot", 10, 20), end_of_run(21), event(name, 60, 70)]
    worker = [thunk("dot", 30, 40, run=8), end_of_run(41, run=8)]
    found = _profile._executions(
        SimpleNamespace(planes=[plane("/host:CPU", host=host, worker=worker)])
    )
    assert [one.launched for one in found] == [50, None]


def test_the_modules_of_a_tpu_are_its_runs():
    modules = [
        event("jit_f(1234)", 10, 20, run_id=5, queue_id=0),
        event("jit_f(1234)", 20, 30, run_id=6),
        event("not a module", 30, 40),
    ]
    operations = [event("fusion.1", 11, 12, hlo_module="jit_f", correlation_id=1)]
    tpu = plane("/device:TPU:3", **{"XLA Modules": modules, "XLA Ops": operations})
    core = plane("/device:TPU:3 SparseCore 0", **{"XLA Modules": modules})
    custom = plane("/device:CUSTOM:MOSAIC:1", **{"XLA Modules": modules})
    assert executions(tpu, core, custom) == [
        ("jit_f", 1234, 5, "tpu:3", 10, 20),
        ("jit_f", 1234, 6, "tpu:3", 20, 30),
    ]


def kernel(operation, launch, start, end, module="jit_f", program=3):
    stats = {"hlo_op": operation, "hlo_module": module, "program_id": program}
    return event(f"{operation}_kernel", start, end, correlation_id=launch, **stats)


def test_the_kernels_of_a_gpu_are_put_together_to_runs():
    first = [
        kernel("dot", 1, 10, 20),
        kernel("add", 3, 25, 30),
        kernel("dot", 5, 40, 50),
        kernel("add", 7, 50, 65),
        kernel("dot", 4, 32, 35, module="jit_g", program=9),
        event("Memcpy", 70, 80, correlation_id=8),
    ]
    # On a stream of its own an operation may overlap the run before, and begin its own.
    second = [kernel("copy", 2, 12, 45), kernel("copy", 6, 38, 70)]
    gpu = plane("/device:GPU:1", **{"Stream #13(Kernel)": first, "Stream #20(Kernel)": second})
    assert executions(gpu) == [
        ("jit_f", 3, 1, "gpu:1", 10, 45),
        ("jit_f", 3, 2, "gpu:1", 38, 70),
        ("jit_g", 9, 1, "gpu:1", 32, 35),
    ]


def test_runs_without_numbers_are_matched_in_order():
    assert matched(THREE, [launch(12), launch(10), launch(11)]) == [2, 0, 1]


@pytest.mark.parametrize("idle", list(itertools.product((True, False), repeat=2)))
@pytest.mark.parametrize("pieces", [1, 2, 4, 9])
def test_kernels_that_come_out_in_pieces_are_matched_with_no_dispatch(pieces, idle):
    launches = [
        [dataclasses.replace(part, is_certain=False) for part in launch(10 + i, i)]
        for i in range(pieces)
    ]
    assert matched(THREE, launches, *idle) == [None] * pieces


def test_kernels_of_several_gpus_that_are_as_many_as_dispatches_are_matched():
    gpus = [
        plane(
            f"/device:GPU:{i}",
            **{"Stream #1(Kernel)": [kernel("dot", k, 10 + 9 * k, 15 + 9 * k) for k in range(3)]},
        )
        for i in range(2)
    ]
    found = list(_profile._executions(SimpleNamespace(planes=gpus)))
    launches = _profile._launches(found)
    assert [[part.device for part in launch] for launch in launches] == 3 * [["gpu:0", "gpu:1"]]
    assert matched(THREE, launches) == [0, 1, 2]
    # On one of them the last is missing.
    assert matched(THREE, _profile._launches(found[:-1])) == [0, 1, None]
