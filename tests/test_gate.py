"""A gate holds the device, gives back what it got, and leaves nothing hanging.

Nothing here sleeps or measures time. A timeout (`PATIENCE`) is only how long a broken gate may
take to fail a test. "Not ready" is asserted after programs that were dispatched later, by another
thread, have run to their end on the same device: a gate that does not hold was given every chance.
That needs threads of the runtime that are free. There are eight, for the eight devices that
tests have, so at most four programs stand at gates at once.
"""

import gc
import math
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref

import hypothesis
import jax
import jax.monitoring
import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import numpy as jnp

import devicearray as da
from devicearray import _gate
from devicearray._gate import Gate

PATIENCE = 60.0
FOREVER = 1e6

step = jax.jit(lambda x: x * 2 + 1)
work = jax.jit(lambda x: x @ x)


@pytest.fixture
def gate():
    with Gate(PATIENCE) as gate:
        yield gate
    assert not gate.timed_out


def in_thread(function, *args):
    """Return what `function` returns in a thread of its own."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert results, "the thread did not come back"
    return results[0]


def let_others_run(device=None):
    """Run other programs on a device, from start to end, while the gate holds this thread's."""

    def run_one():
        with jax.default_device(device):
            work(np.ones((64, 64), np.float32)).block_until_ready()

    for _ in range(3):
        in_thread(run_one)


def held(*arrays, by=None):
    """Return whether none of `arrays` gets ready while others run on the device `by`."""
    let_others_run(by)
    return not any(array.is_ready() for array in arrays)


def bits(array):
    """Return the bytes of an array, of a key its data's."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array).tobytes()


def run(script, environment, *options):
    """Run `script` in a new process and return what it printed."""
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(script)],
        env={**environment, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# The device stands still, and goes on.


def test_result_is_not_ready_before_the_gate_opens(gate):
    y = gate(jnp.arange(3.0))
    assert held(y)
    gate.open()
    assert y.block_until_ready().tolist() == [0.0, 1.0, 2.0]
    assert y.is_ready()


def test_shape_and_dtype_are_known_while_the_gate_is_closed(gate):
    y = gate(jnp.zeros((2, 3), jnp.bfloat16))
    assert (y.shape, y.dtype, y.weak_type) == ((2, 3), jnp.bfloat16, False)
    assert held(y)


def test_a_gate_is_closed_when_it_is_made(gate):
    assert not gate.is_open
    gate.open()
    assert gate.is_open


def test_an_open_gate_lets_every_program_pass():
    with Gate(FOREVER) as gate:
        gate.open()
        assert in_thread(lambda: [int(gate(number)) for number in range(3)]) == [0, 1, 2]


def test_opening_twice_and_closing_twice_change_nothing(gate):
    gate.close()
    early = gate(1)
    gate.close()
    assert held(early)
    gate.open()
    gate.open()
    assert int(early) == 1
    gate.close()
    late = gate(2)
    assert held(late)
    gate.open()
    assert int(late) == 2


def test_31_dispatches_behind_a_closed_gate_return(gate):
    ahead = [gate(jnp.ones(4, jnp.uint32))]
    for _ in range(31):
        ahead.append(step(ahead[-1]))
    # The device is full: it would take no program of another thread either.
    assert held(*ahead, by=jax.devices()[7])
    gate.open()
    assert ahead[-1].tolist() == [2**32 - 1] * 4


def test_the_32nd_dispatch_behind_a_closed_gate_waits(gate):
    dispatched = threading.Semaphore(0)

    def run_ahead():
        y = gate(jnp.ones(4))
        for _ in range(32):
            y = step(y)
            dispatched.release()
        return y.block_until_ready()

    jax.block_until_ready(step(jnp.ones(4)))
    thread = threading.Thread(target=run_ahead, daemon=True)
    thread.start()
    assert all(dispatched.acquire(timeout=PATIENCE) for _ in range(31))
    let_others_run(jax.devices()[7])
    assert not dispatched.acquire(blocking=False)
    gate.open()
    assert dispatched.acquire(timeout=PATIENCE)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_later_program_of_this_thread_waits_and_one_of_another_thread_does_not(gate):
    x = jnp.ones(4)
    gate(x)
    mine = step(x)
    assert held(mine)
    assert in_thread(lambda: step(x).block_until_ready().is_ready())
    gate.open()
    assert mine.tolist() == [3.0] * 4


def test_host_waits_until_the_gate_opens(gate):
    y = gate(jnp.ones(3))
    about_to_wait, waited = threading.Event(), threading.Event()

    def wait():
        about_to_wait.set()
        y.block_until_ready()
        waited.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert about_to_wait.wait(PATIENCE)
    assert held(y)
    assert not waited.is_set()
    gate.open()
    assert waited.wait(PATIENCE)


def test_another_thread_may_open(gate):
    y = gate(jnp.ones(3))
    assert held(y)
    in_thread(gate.open)
    assert y.tolist() == [1.0] * 3


def test_pending_input_passes(gate):
    with Gate(PATIENCE) as first:
        pending = first(jnp.ones(3))
        y = gate(pending)
        gate.open()
        assert held(pending, y)
    assert y.tolist() == [1.0] * 3


def test_an_open_gate_lets_what_came_before_go_even_if_it_closes_at_once(gate):
    for _ in range(50):
        gate.close()
        y = gate(jnp.ones(3))
        gate.open()
        gate.close()
        assert y.tolist() == [1.0] * 3
    late = gate(jnp.ones(3))
    assert held(late)


def test_gates_are_independent(gate):
    with Gate(PATIENCE) as other:
        held_by_other = other(jnp.ones(3))
        gate.open()
        assert in_thread(lambda: gate(jnp.ones(3)).tolist()) == [1.0] * 3
        assert held(held_by_other)


def test_many_gates_in_one_chain(gate):
    gates = [Gate(PATIENCE) for _ in range(20)]
    y = gate(jnp.ones(3))
    for other in gates:
        y = other(y)
    for other in reversed(gates):
        assert not y.is_ready()
        other.open()
    assert held(y)
    gate.open()
    assert y.tolist() == [1.0] * 3


def test_threads_share_a_gate(gate):
    passed = []

    def pass_through(number):
        passed.append((number, int(gate(number))))

    threads = [threading.Thread(target=pass_through, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    let_others_run()
    assert passed == []
    gate.open()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(passed) == [(number, number) for number in range(4)]


def test_200_times(gate):
    x = jnp.ones(4, jnp.uint32)
    other = jnp.ones((64, 64))
    step(x).block_until_ready()
    go, gone = threading.Semaphore(0), threading.Semaphore(0)

    def run_others():
        for _ in range(200):
            go.acquire()
            work(other).block_until_ready()
            gone.release()

    threading.Thread(target=run_others, daemon=True).start()
    for _ in range(200):
        gate.close()
        ahead = [gate(x)]
        for _ in range(28):
            ahead.append(step(ahead[-1]))
        go.release()
        assert gone.acquire(timeout=PATIENCE)
        assert not any(array.is_ready() for array in ahead)
        gate.open()
        assert ahead[-1].tolist() == [2**29 - 1] * 4


# The values are those that were passed.

DTYPES = [
    *("bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"),
    *("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
    "complex64",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3)])
def test_every_dtype_and_shape(gate, dtype, shape):
    random = np.random.default_rng(0).integers(0, 2, shape)
    x = jnp.asarray(random).astype(dtype)
    y = gate(x)
    assert held(y)
    gate.open()
    assert (y.shape, y.dtype, y.weak_type) == (x.shape, x.dtype, x.weak_type)
    assert bits(y) == bits(x)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_64_bit_dtypes(gate, dtype):
    with jax.enable_x64(True):
        x = jnp.asarray([math.pi, -0.0, 2.0**52 + 1]).astype(dtype)
        y = gate(x)
        gate.open()
        assert y.dtype == dtype
        assert bits(y) == bits(x)


@hypothesis.given(st.lists(st.integers(0, 2**32 - 1), max_size=8))
@hypothesis.settings(max_examples=50, deadline=None)
def test_every_bit_pattern_of_a_float_survives(patterns):
    x = jnp.asarray(np.array(patterns, np.uint32).view(np.float32))
    with Gate(PATIENCE) as gate:
        y = gate(x)
    assert bits(y) == bits(x)


@pytest.mark.parametrize(
    ("dtype", "patterns"),
    [("float32", np.uint32), ("bfloat16", np.uint16), ("float16", np.uint16)],
)
def test_nan_payloads_subnormals_and_signed_zeros_survive(gate, dtype, patterns):
    width = np.dtype(patterns).itemsize * 8
    every = [0, 1 << (width - 1), 1, (1 << width) - 1, (1 << (width - 1)) - 2]
    x = jnp.asarray(np.array(every, patterns).view(getattr(ml_dtypes, dtype, dtype)))
    y = gate(x)
    gate.open()
    assert np.asarray(y).view(patterns).tolist() == every


@pytest.mark.parametrize("shape", [(), (3,), (0,)])
def test_typed_keys(gate, shape):
    keys = jax.random.split(jax.random.key(7), shape)
    y = gate(keys)
    assert y.dtype == keys.dtype
    assert held(jax.random.key_data(y))
    gate.open()
    assert bits(y) == bits(keys)


@pytest.mark.parametrize("number", [True, 7, -0.0, math.inf, 2 - 3j])
def test_python_numbers_become_what_jit_makes_of_them(gate, number):
    expected = jax.jit(jax.lax.optimization_barrier)(number)
    y = gate(number)
    assert held(y)
    gate.open()
    assert (y.dtype, y.weak_type) == (expected.dtype, expected.weak_type)
    assert bits(y) == bits(expected)


def test_weak_types_stay_weak(gate):
    x = jnp.asarray(1.5)
    assert x.weak_type
    assert gate(x).weak_type


def test_numpy_arrays_are_taken_as_they_are_at_the_call(gate):
    # JAX reads an array on a 64-byte boundary in place, and copies others.
    memory = np.zeros(1000 + 16, np.float32)
    x = memory[-memory.ctypes.data % 64 // 4 :][:1000]
    assert x.ctypes.data % 64 == 0
    y = gate(x)
    x[:] = 7
    assert held(y)
    gate.open()
    assert not np.asarray(y).any()


def test_structure_stays(gate):
    x = {"a": [jnp.ones(2), (1, np.zeros(3, np.int8))], "b": None, "c": ()}
    y = gate(x)
    assert held(*jax.tree.leaves(y))
    gate.open()
    assert jax.tree.structure(y) == jax.tree.structure(x)
    jax.tree.map(np.testing.assert_array_equal, y, x)


def test_device_arrays_come_back_as_device_arrays_and_others_as_they_are(gate):
    x = [da.asarray([1.0, 2.0]), jnp.ones(2), np.ones(2), 3]
    y = gate(x)
    assert [isinstance(leaf, da.DeviceArray) for leaf in y] == [True, False, False, False]
    assert held(*y)
    gate.open()
    assert y[0].tolist() == [1.0, 2.0]


def test_a_key_in_a_device_array(gate):
    key = da.random.key(3)
    y = gate(key)
    gate.open()
    assert isinstance(y, da.DeviceArray)
    assert bits(y) == bits(key)


def test_what_is_no_array_is_refused(gate):
    with pytest.raises(TypeError, match="str"):
        gate("x")


# Where it runs.


@pytest.mark.parametrize("committed", [True, False])
def test_placement_is_that_of_jit(gate, committed):
    device = jax.devices()[3]
    with jax.default_device(device):
        x = jax.device_put(jnp.ones(3), device if committed else None)
        expected = step(x)
        with jax.transfer_guard_device_to_device("disallow"):
            y = gate(x)
        assert (y.devices(), y.committed) == ({device}, committed)
        assert (expected.devices(), expected.committed) == ({device}, committed)
        assert held(y)


def test_a_device_is_held_and_the_others_are_not(gate):
    there, here = jax.device_put(jnp.ones(3), jax.devices()[3]), jnp.ones(3)
    y = gate(there)
    assert step(here).block_until_ready().is_ready()
    assert held(y)


@pytest.mark.parametrize("axes", [("a", None), (None, "a"), (("a", "b"), None), (None, None)])
def test_arrays_on_many_devices_keep_their_sharding(gate, axes):
    mesh = jax.make_mesh((2, 2), ("a", "b"), devices=jax.devices()[:4])
    x = jax.device_put(jnp.arange(64.0).reshape(8, 8), jax.NamedSharding(mesh, jax.P(*axes)))
    y, z = gate([x, 1.5])
    assert held(y, z)
    gate.open()
    assert y.sharding.is_equivalent_to(x.sharding, 2)
    assert bits(y) == bits(x)


def spread_over_four():
    """Return an array of eight elements, two on each of four devices."""
    mesh = jax.make_mesh((4,), ("a",), devices=jax.devices()[:4])
    return jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, jax.P("a")))


def test_all_devices_of_an_array_are_held(gate):
    y = gate(spread_over_four())
    assert held(*(shard.data for shard in y.addressable_shards))
    gate.open()
    assert y.tolist() == list(range(8))


def test_arrays_on_different_devices_are_refused(gate):
    x = [jax.device_put(jnp.ones(3), device) for device in jax.devices()[:2]]
    with pytest.raises(ValueError, match=r"different devices.*\[gate\(x\) for x in arrays\]"):
        gate(x)
    ys = [gate(leaf) for leaf in x]
    assert held(*ys)


@pytest.mark.parametrize("device", [None, 3])
def test_other_platforms_are_refused(monkeypatch, device):
    monkeypatch.setattr(_gate, "_PLATFORM", "of another kind")
    with Gate(PATIENCE) as gate:
        x = jnp.ones(3) if device is None else jax.device_put(jnp.ones(3), jax.devices()[device])
        with pytest.raises(ValueError, match=r"CPU devices only.*jax\.devices\('cpu'\)\[0\]"):
            gate(x)


@pytest.mark.parametrize("device", [0, 3])
def test_no_implicit_transfer(device):
    # A shape of its own: the guard misses what moves between devices in a call seen before.
    x = jax.device_put(jnp.ones(13), jax.devices()[device])
    with jax.transfer_guard("disallow"):
        with Gate(PATIENCE) as gate:
            y = gate(x)
        y.block_until_ready()


def test_no_implicit_transfer_on_many_devices(gate):
    x = spread_over_four()
    with jax.transfer_guard("disallow"):
        y = gate(x)
    assert held(y)


def test_a_call_transfers_nothing_at_all(gate):
    x = jnp.ones(3)
    with jax.transfer_guard("disallow_explicit"):
        y = gate(x)
    assert held(y)


def test_compiled_once_for_all_gates():
    compiled = []

    def note(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    x = [jnp.ones((3, 5, 7)), jnp.ones(11, jnp.int8)]
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        for _ in range(3):
            with Gate(PATIENCE) as gate:
                gate(x)
                gate.open()
                gate.close()
                gate(x)
        assert len(compiled) == 1
    finally:
        jax.monitoring.unregister_event_duration_listener(note)


def test_works_after_clear_caches(gate):
    x = jnp.ones(3)
    gate(x)
    jax.clear_caches()
    y = gate(x)
    assert held(y)
    gate.open()
    assert y.tolist() == [1.0] * 3


def test_works_without_jit(gate):
    with jax.disable_jit():
        y = gate(jnp.ones(3))
        assert held(y)
        gate.open()
        assert y.tolist() == [1.0] * 3


# Where it cannot be used.


@pytest.mark.parametrize(
    "transform",
    [jax.jit, jax.vmap, jax.grad, jax.make_jaxpr, lambda f: lambda x: jax.lax.map(f, x)],
)
def test_refused_inside_a_transformation(gate, transform):
    with pytest.raises(TypeError, match="inside a transformation"):
        transform(gate)(1.0 if transform is jax.grad else jnp.ones(3))


def test_refused_inside_a_trace_on_an_array_of_outside(gate):
    x = jnp.ones(3)
    with pytest.raises(TypeError, match="inside a transformation"):
        jax.jit(lambda y: y + gate(x))(x)
    y = gate(x)  # the refused call left nothing behind
    assert held(y)


def test_a_gate_on_other_devices_is_not_spoiled_by_a_trace(gate):
    x = jax.device_put(jnp.ones(3), jax.devices()[5])
    with pytest.raises(TypeError, match="inside a transformation"):
        jax.jit(lambda y: y + gate(x))(x)
    y = gate(x)
    assert held(y)


def test_making_a_gate_is_refused_inside_a_trace():
    with pytest.raises(TypeError, match="inside a transformation"):
        jax.jit(lambda x: Gate(PATIENCE)(1) + x)(1)


@pytest.mark.parametrize("option", ["jax_debug_nans", "jax_debug_infs"])
def test_refused_where_every_dispatch_is_waited_for(gate, option):
    jax.config.update(option, True)
    try:
        with pytest.raises(RuntimeError, match=f"{option} is on"):
            gate(jnp.ones(3))
    finally:
        jax.config.update(option, False)


def test_refused_where_programs_run_inside_their_dispatch(reader_environment):
    out, _ = run(
        """
        import jax
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        from devicearray._gate import Gate
        gate = Gate(1e6)
        for _ in range(2):
            try:
                gate(jax.numpy.ones(3))
            except RuntimeError as error:
                print(error)
        """,
        reader_environment,
    )
    assert out.count("jax.config.update('jax_cpu_enable_async_dispatch', True)") == 2


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan, math.inf, 1e300])
def test_timeouts_that_are_none(timeout):
    with pytest.raises(ValueError, match="timeout"):
        Gate(timeout)


# A gate that nobody opens.


def time_out(gate):
    """Let the timeout of a gate pass, and be told so."""
    with pytest.warns(RuntimeWarning, match=r"nobody opened the gate within 0\.01 seconds"):
        gate(1.5).block_until_ready()


def test_a_gate_that_nobody_opens_opens_and_says_so_once():
    gate = Gate(0.01)
    time_out(gate)
    assert gate.timed_out
    assert gate.is_open
    with pytest.raises(TimeoutError, match=r"within 0\.01 seconds"):
        gate.open()
    assert gate.timed_out
    gate.open()
    assert float(gate(2.5)) == 2.5


def test_every_use_says_that_the_gate_timed_out():
    for use in (
        Gate.open,
        Gate.close,
        lambda gate: gate(1),
        lambda gate: gate.__exit__(*[None] * 3),
    ):
        gate = Gate(0.01)
        time_out(gate)
        with pytest.raises(TimeoutError):
            use(gate)


def test_closing_after_a_timeout_closes_and_starts_afresh():
    gate = Gate(0.01)
    time_out(gate)
    with pytest.raises(TimeoutError):
        gate.close()
    assert not gate.is_open
    assert not gate.timed_out
    gate.open()


def test_programs_at_one_gate_time_out_together():
    gate = Gate(0.01)
    with Gate(PATIENCE) as first:
        y = first(1.5)
        for _ in range(10):
            y = gate(y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert float(y) == 1.5
    assert [warning.category for warning in caught] == [RuntimeWarning]
    with pytest.raises(TimeoutError):
        gate.open()


def test_the_warning_is_shown_where_warnings_are_errors(capfd):
    gate = Gate(0.01)
    assert float(gate(1.5)) == 1.5
    assert "RuntimeWarning: Gate: nobody opened the gate" in capfd.readouterr().err
    with pytest.raises(TimeoutError):
        gate.open()


def test_no_timeout_if_the_gate_was_opened_in_time():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(20):
            with Gate(PATIENCE) as gate:
                y = gate(1)
            y.block_until_ready()
            assert not gate.timed_out
    assert caught == []


def test_the_end_of_a_block_opens():
    with Gate(PATIENCE) as gate:
        y = gate(jnp.ones(3))
        assert held(y)
    assert gate.is_open
    assert y.tolist() == [1.0] * 3


def fail_behind(gate, *, after=lambda gate: None):
    with gate:
        after(gate)
        raise KeyError(None if gate.timed_out else gate(1.5))


def test_the_end_of_a_block_opens_after_an_exception_and_lets_it_through():
    with pytest.raises(KeyError) as caught:
        fail_behind(Gate(PATIENCE))
    assert float(caught.value.args[0]) == 1.5


def test_an_exception_is_not_hidden_by_a_timeout_but_tells_it():
    with pytest.raises(KeyError) as caught:
        fail_behind(Gate(0.01), after=time_out)
    assert "nobody opened the gate" in caught.value.__notes__[0]


def test_repr():
    gate = Gate(PATIENCE)
    assert repr(gate) == "<Gate: closed, timeout 60.0 s>"
    gate.open()
    assert repr(gate) == "<Gate: open, timeout 60.0 s>"
    gate = Gate(0.01)
    time_out(gate)
    assert repr(gate) == "<Gate: open by its timeout, timeout 0.01 s>"


# Nothing is left.


def test_a_forgotten_gate_opens():
    gate = Gate(FOREVER)
    y = gate(jnp.ones(3))
    assert held(y)
    gone = weakref.ref(gate)
    del gate
    gc.collect()
    assert gone() is None
    assert in_thread(lambda: y.tolist()) == [1.0] * 3


def test_a_forgotten_gate_opens_for_what_has_not_reached_it():
    with Gate(PATIENCE) as first:
        pending = first(jnp.ones(3))
        y = Gate(FOREVER)(pending)
        gc.collect()
        assert held(y)
    assert in_thread(lambda: y.tolist()) == [1.0] * 3


def test_the_registry_is_as_empty_as_before():
    gc.collect()
    before = set(_gate._closings)
    for _ in range(10):
        with Gate(PATIENCE) as gate:
            for _ in range(5):
                y = gate(jnp.ones(3))
                gate.open()
                gate.close()
        y.block_until_ready()
        # The thread of the device has a closing in its hands until it leaves the handler, which
        # is before the program finishes.
    del gate
    gc.collect()
    assert set(_gate._closings) <= before


def test_finished_programs_are_not_kept(gate):
    gate.open()
    for _ in range(100):
        gate(1).block_until_ready()
    assert sum(result.is_ready() for result in _gate._in_flight) <= 1


def test_open_does_not_pile_up(gate):
    for _ in range(1000):
        gate.open()
    assert gate._closing._key.qsize() <= 1


LEAVE = """
import sys
import jax
from jax import numpy as jnp
from devicearray._gate import Gate

gates = [Gate(1e6) for _ in range(25)]
y = jnp.ones(3)
for gate in gates:
    y = gate(y)
"""


@pytest.mark.parametrize("attempt", range(4))
def test_python_ends_with_closed_gates(reader_environment, attempt):
    _, errors = run(LEAVE, reader_environment)
    assert errors == ""


def test_python_ends_with_an_effect_behind_a_closed_gate(reader_environment):
    show = "jax.jit(lambda y: jax.debug.print('shown {}', y))(y)\n"
    out, _ = run(LEAVE + show, reader_environment)
    assert "shown [1. 1. 1.]" in out


def test_python_ends_with_a_failed_program_at_a_closed_gate(reader_environment):
    fail = """
    def fail(y):
        raise ValueError

    gates[0](jax.pure_callback(fail, y, y))
    """
    run(LEAVE + textwrap.dedent(fail), reader_environment)


def test_python_ends_with_an_uncaught_exception(reader_environment):
    script = "try:\n    raise KeyError\nfinally:\n    sys.exit()\n"
    run(LEAVE + script, reader_environment)
