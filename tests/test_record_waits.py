"""Every way to wait is seen, at its line, and nothing else is.

The value is held by a gate, which `on_wait` opens: it opens if, and only if, the host is about to
wait. No test here depends on time.
"""

import inspect

import jax
import pytest

import devicearray as da
from tests import waits
from tests.waits import KINDS, WAYS

THAT_WAIT = [name for name, way in WAYS.items() if way.trigger is not None]
THAT_DO_NOT = [name for name, way in WAYS.items() if way.trigger is None]

as_jax_array = pytest.param(lambda value: value, id="jax.Array")
as_device_array = pytest.param(lambda value: jax.tree.map(da.asarray, value), id="DeviceArray")
both = pytest.mark.parametrize("made", [as_jax_array, as_device_array])


def a_value(name, made):
    """Return a value for the way, ready, and see to it that the way compiles nothing later."""
    make = KINDS[WAYS[name].kind]
    WAYS[name].act(made(make()))
    return jax.block_until_ready(made(make()))


def lines_of(function):
    lines, first = inspect.getsourcelines(function)
    return range(first, first + len(lines))


@both
@pytest.mark.parametrize("name", THAT_WAIT)
def test_a_wait_is_seen_at_its_line(name, made, capsys):
    way, value = WAYS[name], a_value(name, made)
    gate = da.Gate()
    held = gate(value)
    with da.record(on_wait=gate.open) as log:
        way.act(held)
    assert gate.is_open
    waited = [sync for sync in log.syncs if sync.was_ready is False]
    assert {sync.trigger for sync in waited} == {way.trigger}
    for sync in log.syncs:
        assert sync.file == waits.__file__
        assert sync.line in lines_of(way.act)
        assert sync.function == way.act.__name__
        assert 0 <= sync.start < sync.end <= log.seconds
        assert not sync.copied or not way.kind.startswith(("scalar", "integer"))


@both
@pytest.mark.parametrize("name", THAT_DO_NOT)
def test_what_does_not_wait_is_not_taken_for_a_wait(name, made):
    value = a_value(name, made)
    gate = da.Gate()
    held = gate(value)
    with da.record(on_wait=gate.open) as log:
        WAYS[name].act(held)
    assert not gate.is_open
    assert log.syncs == ()
    gate.open()


@both
@pytest.mark.parametrize("name", THAT_WAIT)
def test_the_guard_refuses_before_the_wait(name, made, capsys):
    way, value = WAYS[name], a_value(name, made)
    gate = da.Gate()
    held = gate(value)
    with da.sync_guard("error"), pytest.raises(da.HostSyncError) as caught:
        way.act(held)
    assert not gate.is_open
    assert caught.value.trigger == (way.refused or way.trigger)
    assert caught.value.site.file == waits.__file__
    assert caught.value.site.line in lines_of(way.act)
    gate.open()
    way.act(held)  # The refused wait left everything in order.


@pytest.mark.parametrize("name", THAT_DO_NOT)
def test_the_guard_lets_pass_what_does_not_wait(name):
    value = a_value(name, lambda value: value)
    gate = da.Gate()
    held = gate(value)
    with da.sync_guard("error"):
        WAYS[name].act(held)
    gate.open()


def test_sixty_ways_wait_and_eleven_do_not():
    assert (len(THAT_WAIT), len(THAT_DO_NOT)) == (60, 11)
