"""Every way to wait is seen, at its line, and nothing else is.

The value is held by a gate, which `on_wait` opens: it opens if, and only if, the host is about to
wait. No test here depends on time.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import dispatch
from jax.experimental import io_callback

import devicearray as da
from devicearray import _jax
from tests import waits
from tests.eight_devices import on_eight
from tests.waits import KINDS, THERE, WAYS, WHOLE, X, line_of

THAT_WAIT = [name for name, way in WAYS.items() if way.trigger is not None]
THAT_DO_NOT = [name for name, way in WAYS.items() if way.trigger is None]

#: How often the host waits for DeviceArrays, where that is not as often as for JAX's. JAX waits for
#: arrays of other classes than its own one by one, and a DeviceArray reads a key for ``str`` to see
#: that JAX writes it as for ``repr``.
TIMES_FOR_DEVICE_ARRAYS = {
    "jax.block_until_ready of two": 2,
    "jax.block_until_ready of shards": 2,
    "str of a key": 2,
}


#: The ways that read the rows of an array. For a DeviceArray they share one read of the array.
READ_BY_ROWS = {
    "a[0].item()", "math.fsum", "[float(v) for v in a]", "map(float, a)", "sorted by float", "any",
    "filter", "np.fromiter",
}  # fmt: skip

#: JAX iterates over shards by way of the host. The rows of a DeviceArray are not even dispatched.
NOT_FOR_DEVICE_ARRAYS = {"list of shards"}


def of_jax(value):
    return value


def of_ours(value):
    return jax.tree.map(da.asarray, value)


both = pytest.mark.parametrize("made", [of_jax, of_ours], ids=["jax.Array", "DeviceArray"])


def a_value(name, made):
    """Return a value for the way, ready, and what the way makes of such a value.

    What has run once compiles nothing later.
    """
    way = WAYS[name]
    make = KINDS[way.kind]
    result = way.act(made(make()))
    return jax.block_until_ready(made(make())), result


def plain(result):
    """Return a result in terms that Python compares."""
    if isinstance(result, dict):
        return {key: plain(value) for key, value in result.items()}
    if isinstance(result, tuple | list):
        return [plain(value) for value in result]
    if isinstance(result, jax.Array | np.ndarray | np.generic | memoryview):
        return np.asarray(bits(result)).tolist()
    is_plain = isinstance(result, str | bytes | bytearray | int | float | complex | range)
    return result if is_plain or result is None else type(result)


def bits(value):
    """Return an array as it is, and of keys the numbers that they consist of."""
    is_key = isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(value) if is_key else value


def is_copied(array):
    """Tell whether the host cannot read the value where it is."""
    places = {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}
    return np.asarray(array).ctypes.data not in places


def what_is_read(way, value):
    """Return what the syncs of a way read: their bytes, and whether they are copied."""
    if way.reads is None:
        return {(0, False)}
    if way.reads is WHOLE:
        arrays = [bits(leaf) for leaf in jax.tree.leaves(value)]
        return {(np.asarray(array).nbytes, is_copied(array)) for array in arrays}
    types = way.reads if isinstance(way.reads, tuple) else (way.reads,)
    return {(np.dtype(kind).itemsize, False) for kind in types}


def each_way(of_plain_arrays, of_device_arrays):
    """Parametrize a test with ways, and with the kind of array that they are tried on."""
    ways = [(name, of_jax) for name in of_plain_arrays]
    ways += [(name, of_ours) for name in of_device_arrays]
    kinds = {of_jax: "jax.Array", of_ours: "DeviceArray"}
    ids = [f"{name}-{kinds[made]}" for name, made in ways]
    return pytest.mark.parametrize(("name", "made"), ways, ids=ids)


ways_that_wait = each_way(
    THAT_WAIT, [name for name in THAT_WAIT if name not in NOT_FOR_DEVICE_ARRAYS]
)
ways_that_do_not = each_way(THAT_DO_NOT, [*THAT_DO_NOT, *sorted(NOT_FOR_DEVICE_ARRAYS)])


@ways_that_wait
def test_a_wait_is_seen_at_its_line(name, made, capsys):
    way = WAYS[name]
    if made is of_ours and name in READ_BY_ROWS:
        way = way._replace(reads=WHOLE, times=1)
    value, result = a_value(name, made)
    expected = plain(result)
    written = capsys.readouterr().out
    gate = da.Gate()
    held = gate(value)
    with da.record(on_wait=gate.open) as log:
        result = way.act(held)
    # The gate was closed until the host began to wait, and then the host had the value.
    assert gate.is_open
    assert plain(result) == expected
    assert capsys.readouterr().out == written

    times = TIMES_FOR_DEVICE_ARRAYS if made is of_ours else {}
    assert len(log.syncs) == times.get(name, way.times)
    assert log.syncs[0].was_ready is False
    assert {sync.trigger for sync in log.syncs} == {way.trigger}
    assert {(sync.nbytes, sync.copied) for sync in log.syncs} == what_is_read(way, value)
    for sync in log.syncs:
        assert (sync.file, sync.line) == (waits.__file__, line_of(way.act))
        assert sync.function == way.act.__name__
        assert 0 <= sync.start < sync.end <= log.seconds
        assert (sync.error, sync.allowed) == (None, False)


@ways_that_do_not
def test_what_does_not_wait_is_not_taken_for_a_wait(name, made):
    value, _ = a_value(name, made)
    gate = da.Gate()
    held = gate(value)
    with da.record(on_wait=gate.open) as log:
        WAYS[name].act(held)
    assert not gate.is_open
    assert log.syncs == ()
    gate.open()


@ways_that_wait
def test_the_guard_refuses_before_the_wait(name, made, capsys):
    way = WAYS[name]
    value, result = a_value(name, made)
    expected = plain(result)
    gate = da.Gate()
    held = gate(value)
    made_of_it = isinstance(way.refused, type)
    with (
        da.record(on_wait=gate.open) as log,
        da.sync_guard("error"),
        pytest.raises(way.refused if made_of_it else da.HostSyncError) as caught,
    ):
        way.act(held)
    # Nobody began to wait.
    assert not gate.is_open
    assert log.syncs == ()
    gate.open()
    # And the refusal left everything in order.
    assert plain(way.act(held)) == expected
    if not made_of_it:
        check_refusal(caught.value, way)
        with da.sync_guard("error", allow=caught.value.trigger):
            result = way.act(gate(value))
        assert plain(result) == expected


def check_refusal(error, way):
    trigger, line = way.refused or way.trigger, line_of(way.act)
    assert error.trigger == trigger
    assert (error.site.file, error.site.line) == (waits.__file__, line)
    what, source, _, advice = str(error).splitlines()
    assert what.startswith(f"{trigger} waits for ")
    assert what.endswith(f"waits.py:{line} in {way.act.__name__}:")
    assert source.strip() == error.site.source
    assert f"sync_guard(allow=({trigger!r},))" in advice


@ways_that_do_not
def test_the_guard_lets_pass_what_does_not_wait(name, made):
    value, _ = a_value(name, made)
    gate = da.Gate()
    held = gate(value)
    with da.sync_guard("error"):
        WAYS[name].act(held)
    assert not gate.is_open
    gate.open()


@pytest.mark.parametrize("name", THAT_WAIT)
def test_the_guard_warns_of_each_wait_at_its_line_and_lets_it_be(name, capsys):
    way = WAYS[name]
    value, result = a_value(name, of_jax)
    expected = plain(result)
    with warnings.catch_warnings(record=True) as caught, da.sync_guard("warn"):
        warnings.simplefilter("always")
        result = way.act(value)
    assert plain(result) == expected
    assert [warning.category for warning in caught] == [da.HostSyncWarning] * way.times
    assert {(warning.filename, warning.lineno) for warning in caught} == {
        (waits.__file__, line_of(way.act))
    }


@pytest.mark.parametrize("name", sorted(_jax.HOOKS.keys() & {"shard_value", "whole_value"}))
def test_what_jax_reads_by_is_watched_for_those_who_call_it_themselves(name):
    gate = da.Gate()
    held = gate(X)
    with da.record(on_wait=gate.open) as log:
        value, _ = getattr(held, _jax.HOOKS[name].name)()
    assert plain(value) == plain(X)
    [sync] = log.syncs
    assert (sync.trigger, sync.was_ready, sync.nbytes) == ("value", False, X.nbytes)


# Values that the host has.


@both
@pytest.mark.parametrize("kind", ["scalar", "vector", "bfloat16", "int4", "split", "replicated"])
@pytest.mark.parametrize("read", [np.asarray, str, lambda value: value.tolist()])
def test_a_value_is_read_once_if_jax_keeps_a_copy_and_each_time_if_not(kind, made, read):
    value = made(KINDS[kind]())
    with da.record() as log:
        for _ in range(3):
            read(value)
    assert [sync.copied for sync in log.syncs] == ([True] if is_copied(value) else [False] * 3)


def test_a_guard_lets_pass_what_the_host_has_already():
    value = KINDS["split"]()
    np.asarray(value)
    with da.sync_guard("error"):
        assert value.tolist() == [*range(16)]


# Values that will never be there.


def deleted():
    value = jnp.arange(4.0)
    value.delete()
    return value


def donated():
    value = jnp.arange(4.0)
    waits.donate(value)
    return value


def error_of(read, value):
    """Return the type of the error and its message."""
    with pytest.raises((RuntimeError, BufferError)) as caught:
        read(value)
    return caught.type, str(caught.value)


@pytest.mark.parametrize("gone", [deleted, donated])
@pytest.mark.parametrize(
    ("read", "trigger"),
    [
        (np.asarray, "np.asarray"),
        (str, "str"),
        (jax.block_until_ready, "block_until_ready"),
        (lambda v: jax.block_until_ready([v, v]), "block_until_ready"),
        (lambda v: v.tolist(), "tolist"),
        (np.from_dlpack, "dlpack"),
        (lambda v: v.unsafe_buffer_pointer(), "unsafe_buffer_pointer"),
        # JAX refuses these before it asks the runtime for the value.
        (jax.device_get, None),
        (memoryview, None),
    ],
)
def test_a_value_that_is_gone_raises_jaxs_own_error(gone, read, trigger):
    value = gone()
    kind, message = error_of(read, value)
    with da.record() as log:
        assert error_of(read, value) == (kind, message)
        float(X[0])
    failed = [(trigger, None, kind.__name__)] if trigger else []
    found = [(sync.trigger, sync.was_ready, sync.error) for sync in log.syncs]
    assert found == [*failed, ("float", True, None)]  # What comes after it is seen as ever.


def shape_of(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def fail(_):
    raise ValueError("on purpose")


#: Its callback runs later if its argument is not there yet.
failing = jax.jit(lambda x: jax.pure_callback(fail, shape_of(x), x))


@pytest.fixture
def no_failure_is_remembered():
    yield
    # JAX would raise it again when somebody waits for side effects, or when the process ends.
    dispatch.runtime_tokens.clear()


@pytest.mark.usefixtures("no_failure_is_remembered")
@pytest.mark.parametrize(
    ("read", "trigger"),
    [
        (str, "str"),
        (repr, "repr"),
        (lambda v: v.tolist(), "tolist"),
        (jax.device_get, "device_get"),
        (jax.block_until_ready, "block_until_ready"),
    ],
)
def test_a_program_that_fails_raises_at_the_wait_which_is_recorded_with_the_error(read, trigger):
    gate = da.Gate()
    held = failing(gate(X))
    with da.record(on_wait=gate.open) as log:
        for _ in range(2):
            with pytest.raises(jax.errors.JaxRuntimeError, match="on purpose"):
                read(held)
        float(X[0])
    assert gate.is_open
    assert [(sync.trigger, sync.was_ready, sync.error) for sync in log.syncs] == [
        (trigger, False, "JaxRuntimeError"),
        (trigger, True, "JaxRuntimeError"),
        ("float", True, None),
    ]
    assert {(sync.nbytes, sync.copied) for sync in log.syncs[:2]} == {(0, False)}


@pytest.mark.usefixtures("no_failure_is_remembered")
def test_a_failure_is_waited_for_with_the_side_effects_too():
    program = jax.jit(lambda x: io_callback(fail, shape_of(x), x))
    gate = da.Gate()
    program(gate(X))
    with (
        da.record(on_wait=gate.open) as log,
        pytest.raises(jax.errors.JaxRuntimeError, match="on purpose"),
    ):
        jax.effects_barrier()
    [sync] = log.syncs
    assert (sync.trigger, sync.was_ready, sync.error) == (
        "effects_barrier",
        None,
        "JaxRuntimeError",
    )


# Host callbacks.


def add_one(v):
    return np.asarray(v) + 1


@jax.jit
def with_pure_callback(x):
    return jax.pure_callback(add_one, shape_of(x), x)


@jax.jit
def with_io_callback(x):
    return io_callback(add_one, shape_of(x), x)


@jax.jit
def with_ordered_io_callback(x):
    return io_callback(add_one, shape_of(x), x, ordered=True)


@jax.jit
def with_debug_callback(x):
    jax.debug.callback(add_one, x)
    return x + 1


@jax.jit
def with_debug_print(x):
    jax.debug.print("{}", x)
    return x + 1


PROGRAMS = [with_pure_callback, with_io_callback, with_debug_callback, with_debug_print]


def one_device():
    return jnp.arange(16.0)


def eight_devices():
    return on_eight(jnp.arange(16.0))


@pytest.mark.parametrize("place", [one_device, eight_devices])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_callback_reads_its_arguments_whatever_guard_is_in_force(program, place, capfd):
    value = place()
    program(value).block_until_ready()
    jax.effects_barrier()
    with da.record() as log:
        with da.sync_guard("error"):
            result = program(value)
        assert plain(result) == plain(value + 1)
        jax.effects_barrier()
    mine = ("plain", "effects_barrier")
    [sync] = [one for one in log.syncs if one.function not in mine and one.trigger not in mine]
    by = "callback" if program is with_debug_print else "np.asarray"
    assert (sync.trigger, sync.was_ready, sync.nbytes) == (by, True, value.nbytes)


def test_a_callback_that_waits_for_another_value_is_refused(capfd):
    gate = da.Gate()
    held = gate(jax.device_put(jnp.float32(1.0), THERE))

    @jax.jit
    def program(x):
        return jax.pure_callback(lambda v: np.asarray(v) + float(held), shape_of(x), x)

    with (
        da.sync_guard("error"),
        pytest.raises(jax.errors.JaxRuntimeError, match="HostSyncError: float waits"),
    ):
        program(X)
    assert not gate.is_open
    gate.open()
    assert plain(program(X)) == [1.0, 2.0, 3.0, 4.0]


def test_an_ordered_callback_waits_for_the_one_before():
    jax.effects_barrier()
    with da.record() as log:
        for _ in range(2):
            with_ordered_io_callback(X)
    assert [(sync.trigger, sync.nbytes) for sync in log.syncs] == [
        ("np.asarray", X.nbytes),
        ("jit", 0),  # for the token of the first
        ("np.asarray", X.nbytes),
    ]
    with da.sync_guard("error"), pytest.raises(da.HostSyncError, match="jit waits for"):
        with_ordered_io_callback(X)
    assert plain(with_ordered_io_callback(X)) == [1.0, 2.0, 3.0, 4.0]


def test_a_callback_on_a_ready_value_runs_inside_the_dispatch_which_is_a_wait_that_is_not_seen():
    with_pure_callback(X)
    with da.record() as log:
        assert with_pure_callback(X).is_ready()
    assert [event.name for event in log.dispatches] == ["with_pure_callback"]
    [sync] = log.syncs
    assert (sync.function, sync.was_ready) == ("add_one", True)
    assert sync.thread == log.dispatches[0].thread


def test_a_callback_on_a_pending_value_runs_in_a_thread_of_the_runtime():
    with_pure_callback(X)
    gate = da.Gate()
    held = gate(X)
    with da.record(on_wait=gate.open) as log:
        result = with_pure_callback(held)
        assert not gate.is_open
        result.block_until_ready()
    [dispatched] = log.dispatches
    found = {(sync.trigger, sync.was_ready, sync.thread == dispatched.thread) for sync in log.syncs}
    assert found == {("block_until_ready", False, True), ("np.asarray", True, False)}


def test_side_effects_are_waited_for_by_name(capfd):
    with_debug_print(X)
    with (
        da.sync_guard("error"),
        pytest.raises(da.HostSyncError, match="effects_barrier waits for the side effects of"),
    ):
        jax.effects_barrier()
    jax.effects_barrier()
    with da.sync_guard("error"):  # There are none any more.
        jax.effects_barrier()
