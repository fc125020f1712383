"""A log is read while it fills, stored and read again; what is no log is refused by name."""

import copy
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da

SITE = da.Site(file="train.py", line=7, function="train", source='print("ü", loss)  # → here')

#: An event of every kind, with and without what may be missing.
EVENTS = (
    da.Compile(
        start=0.1, end=0.35, thread=1, site=SITE, name="f", outputs=3, persistent_cache_hit=False
    ),
    da.Compile(
        start=1 / 3, end=0.4, thread=2, site=None, name="g", outputs=None, persistent_cache_hit=True
    ),
    da.Dispatch(start=None, end=0.5, thread=1, site=SITE, name="f", host_arguments=0, host_bytes=0),
    da.Dispatch(start=0.5, end=0.6, thread=1, site=SITE, name="f", host_arguments=2, host_bytes=9),
    da.HostSync(
        start=0.7,
        end=0.9,
        thread=1,
        site=SITE,
        trigger="print",
        was_ready=None,
        nbytes=4,
        copied=True,
    ),
    da.HostSync(
        start=0.91,
        end=0.92,
        thread=2,
        site=SITE,
        trigger="float",
        was_ready=False,
        nbytes=0,
        copied=False,
        allowed=True,
        error="RuntimeError",
    ),
    da.Transfer(
        start=0.93,
        end=0.94,
        thread=1,
        site=SITE,
        direction="host to device",
        trigger="device_put",
        arrays=8,
        nbytes=64,
    ),
)
RUNS = (
    da.Run(program="jit_f", device="cpu:0", start=0.5, finish=0.75, dispatch=0),
    da.Run(program="jit_g", device="cpu:1", start=-0.1, finish=0.1),
)


def whole_log(**changes):
    facts = {
        "began": 1700000000.25,
        "seconds": 1.5,
        "events": EVENTS,
        "threads": {1: "MainThread", 2: 'worker, "2"'},
        "not_recorded": {"device times": "jax._src.profiler._profile_state"},
        "runs": RUNS,
        "versions": {"jax": "0.12.0"},
    }
    return da.Log(**(facts | changes))


def facts_of(log):
    names = "began", "seconds", "events", "threads", "not_recorded", "runs", "versions"
    return {name: getattr(log, name) for name in names}


# Reading.


def test_events_are_found_by_kind():
    log = whole_log(not_recorded={})
    assert log.events == EVENTS
    assert log.compiles == EVENTS[:2]
    assert log.dispatches == EVENTS[2:4]
    assert log.syncs == EVENTS[4:6]
    assert log.transfers == EVENTS[6:]


def test_an_empty_log_has_nothing():
    log = da.Log(began=0.0)
    assert log.events == log.compiles == log.dispatches == log.syncs == log.transfers == ()
    assert (log.runs, log.seconds, log.threads, log.not_recorded) == (None, None, {}, {})


@pytest.mark.parametrize(
    ("fact", "attribute"),
    [
        ("dispatches on JAX's fast path", "dispatches"),
        ("host syncs by DLPack", "syncs"),
        ("transfers between devices", "transfers"),
    ],
)
def test_a_number_that_would_be_too_small_is_refused(fact, attribute):
    log = whole_log(not_recorded={"the outputs of compiles": "a.b", fact: "c.d"})
    with pytest.raises(RuntimeError, match=f"not recorded: {fact}, because this JAX has no c.d"):
        getattr(log, attribute)
    for other in {"compiles", "dispatches", "syncs", "transfers"} - {attribute}:
        assert getattr(log, other)
    assert log.events == EVENTS


def test_a_log_has_what_recorded_it():
    with da.record() as log:
        pass
    assert log.versions == {
        "jax": jax.__version__,
        "jaxlib": jax.lib.__version__,
        "devicearray": da.__version__,
    }


def test_a_log_that_fills_can_be_read_and_stored_by_several_threads():
    step = jax.jit(lambda x: x + 1)
    x = step(jnp.ones(4))
    writers, readers, dispatches = 4, 4, 300
    together, done = threading.Barrier(writers + readers), threading.Event()

    def write(_):
        together.wait()
        for _ in range(dispatches):
            step(x)

    def read(_):
        together.wait()
        snapshots = []
        while not done.is_set():
            snapshots.append(log.events)
            da.Log.from_json(log.to_json())
        return snapshots

    with da.record() as log, ThreadPoolExecutor(writers + readers) as pool:
        read_by = [pool.submit(read, i) for i in range(readers)]
        written = [pool.submit(write, i) for i in range(writers)]
        for one in written:
            one.result()
        done.set()
        snapshots = [snapshot for one in read_by for snapshot in one.result()]
    assert len(log.events) == len(set(log.events)) == writers * dispatches
    assert all(snapshot == log.events[: len(snapshot)] for snapshot in snapshots)


# Files.


def test_what_was_stored_is_read_again(tmp_path):
    path = tmp_path / "log.json"
    log = whole_log()
    text = log.to_json(path)
    for again in (
        da.Log.from_json(path),
        da.Log.from_json(str(path)),
        da.Log.from_json(text),
        da.Log.from_json("\n  " + text),
    ):
        assert facts_of(again) == facts_of(log)
        assert [type(event) for event in again.events] == [type(event) for event in EVENTS]
        assert again.to_json() == text
        assert str(again) == str(log)


@pytest.mark.parametrize("changes", [{"runs": None}, {"seconds": None}, {"events": ()}])
def test_what_is_missing_is_missing_again(changes):
    log = whole_log(**changes)
    assert facts_of(da.Log.from_json(log.to_json())) == facts_of(log)


def test_a_recording_is_stored_and_read_again(tmp_path):
    gate = da.Gate()
    with da.record(on_wait=gate.open) as log:
        y = jnp.sin(gate(jax.device_put(np.ones(4, np.float32))))
        jax.jit(lambda x: (x, x))(y)
        with da.sync_allowed():
            float(y[0])
        during = da.Log.from_json(log.to_json())
    kinds = {type(event) for event in log.events}
    assert kinds == {da.Compile, da.Dispatch, da.HostSync, da.Transfer}
    assert facts_of(during) == facts_of(log) | {"seconds": None}
    log.to_json(tmp_path / "log.json")
    assert facts_of(da.Log.from_json(tmp_path / "log.json")) == facts_of(log)


def test_the_runs_of_a_profiled_recording_are_stored(tmp_path):
    with da.record(profile=True) as log:
        jnp.sin(jnp.ones(4)).block_until_ready()
    assert log.runs
    assert da.Log.from_json(log.to_json()).runs == log.runs


def test_a_copy_of_a_log_is_what_the_log_was():
    with da.record() as log:
        jnp.sin(jnp.ones(4))
        copies = [copy.copy(log), copy.deepcopy(log), pickle.loads(pickle.dumps(log))]
        expected = facts_of(log)
        jnp.sin(jnp.ones(4))
    assert [facts_of(one) for one in copies] == [expected] * 3
    assert len(log.events) > len(expected["events"])
    for one in (log, whole_log()):
        assert facts_of(pickle.loads(pickle.dumps(one))) == facts_of(one)


def stored(**changes):
    """Return a stored log with other fields; one that is None is left out."""
    fields = json.loads(whole_log().to_json()) | changes
    return json.dumps({name: value for name, value in fields.items() if value is not ...})


EVENT = {"kind": "dispatch", "start": None, "end": 0.5, "thread": 1, "site": None, "name": "f"}
WHOLE_EVENT = EVENT | {"host_arguments": 0, "host_bytes": 0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a log"),
        ("no JSON", "is not a log"),
        ("[]", "is not a log"),
        ("7", "is not a log"),
        ('"devicearray.Log"', "is not a log"),
        ("{}", "is not a log"),
        ('{"format": "devicearray.Log"}', "is not a log"),
        (b"\xff\xfe\x00\x9f", "is not a log"),
        (stored(format="numpy"), "is a numpy of version 1, and this devicearray reads"),
        (
            stored(version=2),
            "is a devicearray.Log of version 2, and this devicearray reads .* of version 1",
        ),
        (stored(events=...), "is a damaged log.*events"),
        (stored(runs=...), "is a damaged log.*runs"),
        (stored(threads=...), "is a damaged log.*threads"),
        (stored(threads=[]), "is a damaged log"),
        (stored(threads={"one": "a"}), "is a damaged log.*one"),
        (stored(events=7), "is a damaged log"),
        (stored(events=[EVENT]), "is a damaged log.*host_arguments"),
        (stored(events=[WHOLE_EVENT | {"kind": "nap"}]), "is a damaged log.*nap"),
        (stored(events=[WHOLE_EVENT | {"colour": "red"}]), "is a damaged log.*colour"),
        (stored(events=[WHOLE_EVENT | {"site": {"file": "a.py"}}]), "is a damaged log.*line"),
        (stored(runs=[{"program": "jit_f"}]), "is a damaged log.*device"),
    ],
)
def test_a_file_that_is_no_log_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "results.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"results\.json {message}"):
        da.Log.from_json(path)
    if str(content).startswith("{"):
        with pytest.raises(ValueError, match=f"the text {message}"):
            da.Log.from_json(content)


def test_a_stored_event_that_is_whole_is_read():
    log = da.Log.from_json(stored(events=[WHOLE_EVENT]))
    assert log.events == (
        da.Dispatch(
            start=None, end=0.5, thread=1, site=None, name="f", host_arguments=0, host_bytes=0
        ),
    )


def test_a_file_that_is_not_there_is_pythons_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        da.Log.from_json(tmp_path / "nothing.json")


def test_a_file_is_not_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole_log().to_json()
    assert list(tmp_path.iterdir()) == []


# For people.


def test_the_representation_is_the_numbers():
    assert repr(whole_log()) == (
        "<Log: 2 host syncs (210 ms), 2 compiles (317 ms), 2 dispatches, 1 transfer>"
    )
    assert repr(da.Log(began=0.0)) == "<Log: 0 host syncs, 0 compiles, 0 dispatches, 0 transfers>"
