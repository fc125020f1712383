"""Events are facts: frozen, comparable, and with their line at hand."""

import dataclasses

import pytest

import devicearray as da

SITE = da.Site(file="train.py", line=7, function="train", source="y = float(x)")
COMMON = {"end": 3.5, "thread": 1, "site": SITE}
EVENTS = [
    da.Compile(start=1.0, name="f", outputs=1, persistent_cache_hit=False, **COMMON),
    da.Dispatch(start=None, name="f", host_arguments=0, host_bytes=0, **COMMON),
    da.HostSync(start=1.0, trigger="float", was_ready=True, nbytes=4, copied=False, **COMMON),
    da.Transfer(start=1.0, direction="host to device", trigger="put", arrays=1, nbytes=4, **COMMON),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_a_fact(event):
    again = dataclasses.replace(event)
    assert event == again
    assert len({event, again}) == 1
    assert event != dataclasses.replace(event, end=4.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.end = 4.0
    with pytest.raises((AttributeError, TypeError)):
        event.note = "nothing else fits"


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_has_its_line_or_says_that_there_is_none(event):
    place = event.file, event.line, event.function, event.source
    assert place == ("train.py", 7, "train", "y = float(x)")
    nowhere = dataclasses.replace(event, site=None)
    place = nowhere.file, nowhere.line, nowhere.function, nowhere.source
    assert place == (None, None, None, "")


def test_what_took_time_says_how_long():
    compile_, dispatch, sync, _ = EVENTS
    assert (compile_.seconds, dispatch.returned, sync.waited) == (2.5, 3.5, 2.5)
    assert da.Run(program="jit_f", device="cpu:0", start=1.0, finish=1.25).seconds == 0.25


def test_events_of_different_kinds_are_never_equal():
    assert len(set(EVENTS)) == len(EVENTS)
