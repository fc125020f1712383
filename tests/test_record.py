"""Recordings nest, overlap and end exactly, and leave JAX as it was."""

import asyncio
import collections
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import api, monitoring

import devicearray as da
from devicearray import _boundary, _jax

X = jnp.ones(4)


@jax.jit
def step(x):
    return x * 2 + 1


@jax.jit
def other(x):
    return x - 1


step(X), other(X)

#: JAX as it is when nobody records.
ORIGINALS = {key: hook.get() for key, hook in _jax.HOOKS.items()}


def names(log):
    return [event.name for event in log.dispatches]


def amiss():
    """Return what is not as it was when nobody recorded."""
    found = [key for key, hook in _jax.HOOKS.items() if hook.get() is not ORIGINALS[key]]
    found += list(_boundary._in_place) + list(_boundary._listeners) + list(_boundary._jitted)
    listeners = monitoring.get_event_listeners() + monitoring.get_event_duration_listeners()
    found += [one for one in listeners if one.__module__.startswith("devicearray")]
    if _jax._hook_state.value is not None or api._post_hook_state.value is not None:
        found.append("the hook of dispatches")
    return found


@pytest.fixture(autouse=True)
def _all_is_as_it_was():
    assert amiss() == []
    yield
    assert amiss() == []


# Lives.


def test_while_a_recording_goes_on_jax_is_watched_and_afterwards_it_is_not():
    with da.record():
        assert set(_boundary._in_place) == set(_jax.HOOKS)
        assert set(_jax.HOOKS) < set(amiss())
    assert amiss() == []


def test_nested_recordings_see_each_what_happens_while_they_go_on():
    with da.record() as outer:
        step(X)
        with da.record() as inner:
            other(X)
            X.block_until_ready()
        step(X)
    assert names(outer) == ["step", "other", "step"]
    assert names(inner) == ["other"]
    assert len(inner.syncs) == len(outer.syncs) == 1


def test_recordings_that_overlap_see_each_what_happens_while_they_go_on():
    first, second = da.record(), da.record()
    one = first.start()
    step(X)
    two = second.start()
    other(X)
    first.stop()
    step(X)
    second.stop()
    assert names(one) == ["step", "other"]
    assert names(two) == ["other", "step"]


def test_an_exception_passes_and_ends_the_recording():
    with pytest.raises(ZeroDivisionError), da.record() as log:
        step(X)
        1 / 0  # noqa: B018
    step(X)
    assert names(log) == ["step"]
    assert log.seconds > 0


def test_a_recording_begins_in_one_thread_and_ends_in_another():
    recording = da.record()
    with ThreadPoolExecutor(1) as pool:
        log = pool.submit(recording.start).result()
    step(X)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(recording.stop).result()
    step(X)
    assert names(log) == ["step"]


def test_a_recording_that_goes_on_is_not_begun_again():
    recording = da.record()
    with recording as log:
        with pytest.raises(RuntimeError, match="goes on already"), recording:
            pass
        step(X)
    assert names(log) == ["step"]


def test_a_recording_that_ended_can_be_begun_again_with_a_new_log():
    recording = da.record()
    with recording as first:
        step(X)
    with recording as second:
        other(X)
    assert (names(first), names(second)) == (["step"], ["other"])


def test_to_end_what_does_not_go_on_does_nothing():
    recording = da.record()
    recording.stop()
    log = recording.start()
    recording.stop()
    seconds = log.seconds
    recording.stop()
    assert log.seconds == seconds


def test_a_log_fills_while_the_recording_goes_on():
    with da.record() as log:
        assert (log.events, log.seconds) == ((), None)
        step(X)
        assert names(log) == ["step"]
        other(X)
        assert names(log) == ["step", "other"]
        assert log.seconds is None
    assert names(log) == ["step", "other"]
    assert log.events[-1].end < log.seconds


def test_events_are_within_the_recording_and_in_the_order_in_which_they_ended():
    with da.record() as log:
        y = step(jax.device_put(np.ones(4)))
        float(y[0])
        jax.jit(lambda x: x + 1)(y)
    ends = [event.end for event in log.events]
    assert ends == sorted(ends)
    assert all(0 < event.start <= event.end for event in log.events if event.start is not None)
    assert ends[-1] < log.seconds


# Threads.


def test_threads_that_work_and_record_at_once_are_counted_exactly():
    together, recorders, workers = threading.Barrier(12), 4, 8
    working = threading.Event()

    def work(_):
        together.wait()
        for i in range(200):
            y = step(X)
            if i % 5 == 0:
                y.block_until_ready()

    def record_again_and_again(_):
        mine = threading.get_ident()
        together.wait()
        rounds = 0
        while not working.is_set() or rounds < 10:
            with da.record() as log:
                other(X)
            assert [event.name for event in log.dispatches if event.thread == mine] == ["other"]
            rounds += 1
        return rounds

    with da.record() as log, ThreadPoolExecutor(recorders + workers) as pool:
        recorded = [pool.submit(record_again_and_again, i) for i in range(recorders)]
        worked = [pool.submit(work, i) for i in range(workers)]
        for one in worked:
            one.result()
        working.set()
        rounds = sum(one.result() for one in recorded)
    assert collections.Counter(names(log)) == {"step": workers * 200, "other": rounds}
    assert len(log.syncs) == workers * 40
    assert {event.thread for event in log.events} <= log.threads.keys()


def test_events_are_of_the_thread_in_which_they_happened():
    def work():
        step(X).block_until_ready()
        return threading.get_ident()

    with da.record() as log, ThreadPoolExecutor(1, "worker") as pool:
        number = pool.submit(work).result()
        other(X)
    assert [(event.name, event.thread) for event in log.dispatches] == [
        ("step", number),
        ("other", threading.get_ident()),
    ]
    assert [event.thread for event in log.syncs] == [number]
    assert log.threads[number].startswith("worker")
    assert log.threads[threading.get_ident()] == threading.current_thread().name


def test_tasks_are_recorded_as_they_run():
    async def task(function, times):
        for _ in range(times):
            function(X)
            await asyncio.sleep(0)

    async def main():
        with da.record() as log:
            await asyncio.gather(task(step, 3), task(other, 2))
        return log

    assert names(asyncio.run(main())) == ["step", "other", "step", "other", "step"]


# As a decorator.


def test_each_call_of_a_decorated_function_is_recorded():
    @da.record()
    def train(n):
        """Train."""
        for _ in range(n):
            step(X)
        return n

    assert (train.__name__, train.__doc__) == ("train", "Train.")
    assert not hasattr(train, "log")
    for n in (2, 3):
        assert train(n) == n
        assert names(train.log) == ["step"] * n


def test_the_log_of_a_decorated_function_is_that_of_the_last_call_that_ended():
    inner_logs = []

    @da.record()
    def descend(depth):
        step(X)
        if depth:
            descend(depth - 1)
            inner_logs.append(names(descend.log))

    descend(2)
    assert inner_logs == [["step"], ["step"] * 2]
    assert names(descend.log) == ["step"] * 3


def test_a_decorated_function_that_raises_has_a_log():
    @da.record()
    def train():
        step(X)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert names(train.log) == ["step"]
    assert train.log.seconds > 0


def test_a_method_can_be_decorated():
    class Model:
        @da.record()
        def train(self, function):
            return function(X), self

    model = Model()
    assert model.train(step)[1] is model
    assert names(model.train.log) == ["step"]


def test_a_decorator_keeps_its_options():
    opened = []

    @da.record(on_wait=lambda: opened.append(1) or gate.open(), skip=__name__)
    def wait():
        return float(gate(X)[0])

    gate = da.Gate()
    assert wait() == 1.0
    assert opened == [1]
    assert {event.file for event in wait.log.syncs} != {__file__}


async def coroutine():
    pass


async def asynchronous_generator():
    yield


def generator():
    yield


@pytest.mark.parametrize("function", [generator, coroutine, asynchronous_generator])
def test_a_function_that_works_after_its_call_is_refused(function):
    with pytest.raises(TypeError, match=f"{function.__name__} is .*does its work after"):
        da.record()(function)


def test_the_parentheses_of_the_decorator_are_asked_for():
    with pytest.raises(TypeError, match=r"Did you mean @record\(\)"):

        @da.record
        def train():
            pass


# Options.


def test_on_wait_must_be_callable():
    with pytest.raises(TypeError, match="on_wait must be callable, and 'open' is not"):
        da.record(on_wait="open")


@pytest.mark.parametrize(
    ("skip", "error"), [("no_such_module", ValueError), ((1,), TypeError), (["opta x"], ValueError)]
)
def test_skip_must_name_modules_that_exist(skip, error):
    with pytest.raises(error, match="skip: "):
        da.record(skip=skip)


def test_only_one_recording_at_a_time_has_the_profiler():
    with da.record(profile=True) as outer:
        with pytest.raises(RuntimeError, match="only one profiler"), da.record(profile=True):
            pass
        with da.record() as inner:
            step(X).block_until_ready()
    assert inner.runs is None
    assert [run.program for run in outer.runs] == ["jit_step"]


# on_wait.


def test_on_wait_is_called_before_the_host_waits_for_what_is_not_ready():
    gate, calls = da.Gate(), []

    def open_gate():
        calls.append((threading.get_ident(), y.is_ready()))
        gate.open()

    with da.record(on_wait=open_gate) as log:
        y = step(gate(X))
        y.block_until_ready()
        y.block_until_ready()
        np.asarray(y)
    assert calls == [(threading.get_ident(), False)]
    assert [sync.was_ready for sync in log.syncs] == [False, True, True]


def test_an_error_of_on_wait_is_raised_before_the_host_waits():
    gate, refusing = da.Gate(), [True]

    def refuse():
        if refusing:
            raise ZeroDivisionError
        gate.open()

    with da.record(on_wait=refuse) as log:
        y = step(gate(X))
        for read in (np.asarray, jax.block_until_ready, jax.device_get, str):
            with pytest.raises(ZeroDivisionError):
                read(y)
            assert log.syncs == ()
        assert not y.is_ready()
        refusing.clear()
        np.asarray(y)
    assert [(sync.was_ready, sync.error) for sync in log.syncs] == [(False, None)]


def test_on_wait_may_dispatch_and_wait_itself():
    gate, calls = da.Gate(), []

    def wait_too():
        calls.append(1)
        held = other(gate(X))
        gate.open()
        held.block_until_ready()

    with da.record(on_wait=wait_too) as log:
        step(gate(X)).block_until_ready()
    assert calls == [1]
    assert names(log) == ["gate", "step", "gate", "other"]
    assert [sync.function for sync in log.syncs] == ["wait_too", log.syncs[1].function]
    assert len(log.syncs) == 2


def test_each_of_several_recordings_is_asked_once():
    gate, calls = da.Gate(), []

    with (
        da.record(on_wait=lambda: calls.append("outer")) as outer,
        da.record(on_wait=lambda: calls.append("inner") or gate.open()) as inner,
    ):
        gate(X).block_until_ready()
    assert calls == ["outer", "inner"]
    assert len(outer.syncs) == len(inner.syncs) == 1


def run_ahead(start):
    y, held = start(X), []
    for _ in range(28):
        y = step(y)
        held.append(y)
    ready = [one.is_ready() for one in held]
    return ready, float(y[0])


def test_what_a_gate_holds_back_is_recorded_the_same_each_time():
    gate = da.Gate()
    gate.open()
    with da.record() as log:
        _, expected = run_ahead(gate)
    dispatches = names(log)
    for _ in range(60):
        gate.close()
        with da.record(on_wait=gate.open) as log:
            ready, value = run_ahead(gate)
        assert not any(ready)
        assert value == expected
        assert names(log) == dispatches
        (sync,) = log.syncs
        assert (sync.trigger, sync.was_ready, sync.error) == ("float", False, None)
        assert (sync.file, sync.function) == (__file__, "run_ahead")
        assert log.compiles == log.transfers == ()
        assert not gate.timed_out


# Somebody else replaces what is watched.


class Foreign:
    """Replaces an attribute of JAX's by a function that calls what was there."""

    def __init__(self, key):
        self.hook = _jax.HOOKS[key]
        self.found = self.hook.get()

        def call(*args, **kwargs):
            self.calls += 1
            return function(*args, **kwargs)

        self.calls = 0
        is_property = isinstance(self.found, property)
        function = self.found.fget if is_property else self.found
        self.hook.set(property(call) if is_property else call)

    def put_back(self):
        self.hook.set(self.found)


def fresh():
    return jax.jit(lambda x: x + 1)


#: By hook: what passes it, and the events of it.
PASSES = {
    "block_until_ready": (lambda: X.block_until_ready(), da.HostSync),
    "value": (lambda: float(jnp.sin(1.0)), da.HostSync),
    "execute": (lambda: fresh()(X), da.Dispatch),
    "put": (lambda: jax.device_put(np.ones(4)), da.Transfer),
    "compile": (lambda: fresh()(X), da.Compile),
}


def events_of(log, key):
    return [event for event in log.events if type(event) is PASSES[key][1]]


@pytest.mark.parametrize("key", PASSES)
def test_a_replacement_that_is_put_back_in_time_disturbs_nothing(key):
    call, _ = PASSES[key]
    call()
    with da.record() as undisturbed:
        call()
    with da.record() as log:
        foreign = Foreign(key)
        call()
        foreign.put_back()
        call()
    assert foreign.calls > 0
    assert len(events_of(log, key)) == 2 * len(events_of(undisturbed, key))


@pytest.mark.parametrize("key", PASSES)
def test_a_replacement_that_is_left_is_warned_of_and_works_and_nothing_is_counted_twice(key):
    call, _ = PASSES[key]
    call()
    with da.record() as undisturbed:
        call()
    expected = len(events_of(undisturbed, key))
    with pytest.warns(RuntimeWarning, match="was replaced by") as caught, da.record():
        foreign = Foreign(key)
    assert caught[0].filename == __file__
    call()
    for calls in (2, 3):
        with da.record() as log:
            call()
        assert len(events_of(log, key)) == expected
        assert {event.file for event in log.events} == {__file__}
        assert "call" not in {event.function for event in log.events}
        assert foreign.calls >= calls
    foreign.put_back()
    call()
    # Ours lies idle on top. The next recording clears it away.
    with da.record() as log:
        call()
    assert len(events_of(log, key)) == expected


@pytest.mark.parametrize("key", PASSES)
def test_a_replacement_that_is_undone_while_watched_leaves_the_next_recording_whole(key):
    call, _ = PASSES[key]
    call()
    with da.record() as undisturbed:
        call()
    foreign = Foreign(key)
    with pytest.warns(RuntimeWarning, match="was replaced by something else"), da.record():
        foreign.put_back()
    with da.record() as log:
        call()
    assert len(events_of(log, key)) == len(events_of(undisturbed, key))


def test_a_warning_that_is_an_error_leaves_nothing_behind():
    with pytest.raises(RuntimeWarning, match=r"ArrayImpl\.block_until"), da.record() as log:
        foreign = Foreign("block_until_ready")
    assert log.seconds > 0
    assert amiss() == ["block_until_ready"]
    foreign.put_back()
    with da.record():
        pass


def test_listeners_of_jax_that_are_cleared_are_warned_of():
    def clear():
        jax.monitoring.clear_event_listeners()
        fresh()(X)

    kept = monitoring.get_event_listeners(), monitoring.get_event_duration_listeners()
    with pytest.warns(RuntimeWarning, match="compiles since then"), da.record() as log:
        clear()
    assert amiss() == []
    assert (log.compiles, len(log.dispatches)) == ((), 1)
    for one in kept[0]:
        jax.monitoring.register_event_listener(one)
    for one in kept[1]:
        jax.monitoring.register_event_duration_secs_listener(one)
    with da.record() as log:
        fresh()(X)
    assert len(log.compiles) == 1


# Nothing is kept.


def test_a_recorder_goes_with_its_log():
    recording = da.record()
    log = recording.start()
    recorder = weakref.ref(_boundary._listeners[-1])
    step(X)
    recording.stop()
    assert names(log) == ["step"]
    del log
    gc.collect()
    assert recorder() is None


def test_a_log_keeps_no_array_no_function_and_no_frame():
    class Local:
        pass

    def work():
        local, function = Local(), fresh()
        argument, donated = jnp.arange(3.0), jnp.arange(5.0)
        donating = jax.jit(lambda x: x + 1, donate_argnums=0)
        result = function(argument), donating(donating(donated + 1)), donating(donated)
        values = np.ones(7)
        put = function(jax.device_put(values))
        float(result[0][0])
        with pytest.raises(RuntimeError):
            float(donated[0])
        things = (local, function, donating, argument, donated, values, put, *result)
        return [weakref.ref(thing) for thing in things]

    with da.record() as log:
        references = work()
        jax.clear_caches()
        gc.collect()
        events = log.events
    jax.clear_caches()
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
    assert len(events) > 5
