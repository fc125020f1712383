"""What is seen of whole programs: training loops, shards, callbacks, displays, failures."""

import contextlib
import io
import json
import logging
import pickle
import statistics
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import devicearray as da
from tests.eight_devices import on_eight


def record_until(wait, *values):
    """Record `wait(*held)`, with the values held back until the host begins to wait for one."""
    gate = da.Gate()
    held = gate(values)
    with da.record(on_wait=gate.open) as log:
        wait(*held)
    gate.open()
    return log


def triggers(log):
    return [sync.trigger for sync in log.syncs]


# A training loop as optax and flax have one: a tree of parameters, and metrics.


@jax.jit
def update(state, batch):
    def loss_of(params):
        hidden = jnp.tanh(batch @ params["dense"]["kernel"] + params["dense"]["bias"])
        return (hidden**2).mean()

    loss, gradient = jax.value_and_grad(loss_of)(state["params"])
    params = jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], gradient)
    return {"params": params, "step": state["step"] + 1}, {"loss": loss}


BATCH = jnp.ones((16, 16))


def new_state():
    dense = {"kernel": jnp.ones((16, 16)) / 16, "bias": jnp.zeros(16)}
    return {"params": {"dense": dense}, "step": jnp.int32(0)}


class Bar:
    """What shows progress: tqdm's ``set_postfix`` formats what it is given."""

    def set_postfix(self, **values):
        self.text = ", ".join(f"{name}={value}" for name, value in values.items())


logger = logging.getLogger("tests.training")

HIDDEN = {
    "float(metrics)": (lambda state, metrics: float(metrics["loss"]), "float"),
    "item": (lambda state, metrics: metrics["loss"].item(), "item"),
    "isnan": (lambda state, metrics: 1 if jnp.isnan(metrics["loss"]) else 0, "bool"),
    "print": (lambda state, metrics: print("loss", metrics["loss"]), "print"),
    "f-string": (lambda state, metrics: f"loss {metrics['loss']:.3f}", "format"),
    "set_postfix": (lambda state, metrics: Bar().set_postfix(loss=metrics["loss"]), "format"),
    "early stop": (lambda state, metrics: metrics["loss"] < 0.1 and None, "bool"),
    "int(step)": (lambda state, metrics: int(state["step"]), "int"),
    "every 10 steps": (lambda state, metrics: state["step"] % 10 == 0 and None, "bool"),
    "logging": (lambda state, metrics: logger.error("%s", metrics["loss"]), "logging.error"),
    "json": (lambda state, metrics: json.dumps({"loss": metrics["loss"].item()}), "item"),
    "np.mean": (lambda state, metrics: np.mean([metrics["loss"]]), "np.mean"),
    "np.savez": (
        lambda state, metrics: np.savez(io.BytesIO(), **state["params"]["dense"]),
        "np.savez",
    ),
    "pickle": (lambda state, metrics: pickle.dumps(state["params"]), "pickle"),
    "tree.map": (lambda state, metrics: jax.tree.map(np.asarray, state["params"]), "map"),
    "allclose": (lambda state, metrics: jnp.allclose(metrics["loss"], 1) or None, "bool"),
    "device_get": (lambda state, metrics: jax.device_get(state), "device_get"),
    "statistics": (lambda state, metrics: statistics.fmean([metrics["loss"]]), "statistics.fmean"),
    "sorted": (lambda state, metrics: sorted([metrics["loss"], metrics["loss"]]), "bool"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_sync_in_a_training_loop_is_found(name, capsys, caplog):
    read, trigger = HIDDEN[name]
    state, metrics = update(new_state(), BATCH)
    read(state, metrics)

    def train(state, batch):
        for _ in range(3):
            state, metrics = update(state, batch)
            read(state, metrics)

    log = record_until(train, new_state(), BATCH)
    assert set(triggers(log)) == {trigger}
    first = log.syncs[0]
    assert (first.was_ready, first.file) == (False, __file__)
    assert [one.name for one in log.dispatches].count("update") == 3


def test_a_loop_that_reads_at_the_end_waits_once_after_all_dispatches():
    def train(state, batch):
        losses = []
        for _ in range(8):
            state, metrics = update(state, batch)
            losses.append(metrics["loss"])
        return jnp.stack(losses).tolist()

    train(new_state(), BATCH)
    log = record_until(train, new_state(), BATCH)
    [sync] = log.syncs
    assert (sync.trigger, sync.was_ready, sync.nbytes) == ("tolist", False, 8 * 4)
    assert max(one.returned for one in log.dispatches) < sync.start


@dataclass
class Metrics:
    loss: jax.Array
    accuracy: jax.Array


jax.tree_util.register_dataclass(Metrics, ["loss", "accuracy"], [])


def test_device_get_of_a_tree_reads_each_array_once():
    tree = {"a": [jnp.ones(2), jnp.ones(3)], "b": Metrics(jnp.ones(4), jnp.ones(5))}
    log = record_until(jax.device_get, tree)
    assert [sync.nbytes for sync in log.syncs] == [8, 12, 16, 20]
    assert set(triggers(log)) == {"device_get"}


# Shards.


@pytest.mark.parametrize("axes", [("i",), (None,)])
@pytest.mark.parametrize("read", [np.asarray, str, lambda x: x.tolist(), jax.device_get])
def test_a_read_of_a_sharded_array_is_one_host_sync(axes, read):
    x = on_eight(jnp.arange(16.0), *axes)
    with da.record() as log:
        read(x)
    [sync] = log.syncs
    assert sync.nbytes == 16 * 4
    assert sync.file == __file__


def test_a_value_that_was_copied_is_read_once():
    x = on_eight(jnp.arange(16.0), "i")
    with da.record() as log:
        for _ in range(3):
            np.asarray(x)
    assert [sync.copied for sync in log.syncs] == [True]


def test_block_until_ready_of_shards_is_one_host_sync():
    x, y = on_eight(jnp.arange(16.0), "i"), on_eight(jnp.arange(8.0))
    with da.record() as log:
        x.block_until_ready()
        jax.block_until_ready((x, y))
    assert triggers(log) == ["block_until_ready", "block_until_ready"]


def test_resharding_through_the_host_is_seen():
    # JAX fetches the whole array to the host where no device has the shard that is wanted.
    mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = on_eight(jnp.arange(64.0).reshape(8, 8), "i")
    other = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("b", "a"))
    with da.record() as log:
        y = jax.device_put(x, other)
    assert np.array_equal(x, y)
    assert [(sync.trigger, sync.nbytes) for sync in log.syncs] == [("device_put", x.nbytes)]
    assert [one.direction for one in log.transfers] == ["host to device"]


# Keys.


def test_a_typed_key_is_seen_as_other_arrays_are():
    key = jax.random.key(0)
    log = record_until(lambda k: jax.random.key_data(k).tolist(), key)
    assert triggers(log) == ["tolist"]


# Callbacks. On CPU they run within the dispatch, so that the host waits there, and unseen.


@jax.jit
def with_pure_callback(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda v: np.asarray(v) + 1, shape, x)


@jax.jit
def with_io_callback(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return io_callback(lambda v: np.asarray(v) + 1, shape, x, ordered=True)


@jax.jit
def with_debug_print(x):
    jax.debug.print("x is {}", x)
    return x + 1


@pytest.mark.parametrize("program", [with_pure_callback, with_io_callback, with_debug_print])
def test_a_callback_is_no_wait_of_the_program_that_calls_it(program, capsys):
    x = jnp.arange(4.0)
    jax.block_until_ready(program(x))
    jax.effects_barrier()
    with da.record() as log:
        program(x)
    assert [one.name for one in log.dispatches] == [program.__name__]
    # A read that is seen is the callback's own, of a value that it was given.
    assert all(sync.was_ready for sync in log.syncs)


def test_effects_barrier_is_a_wait_whose_readiness_cannot_be_told(capsys):
    with_debug_print(jnp.arange(4.0))
    with da.record() as log:
        jax.effects_barrier()
    assert [(sync.trigger, sync.was_ready) for sync in log.syncs] == [("effects_barrier", None)]
    with da.record() as log:
        jax.effects_barrier()
    assert log.syncs == ()


def test_debug_print_outside_of_jit_reads_at_its_line(capsys):
    log = record_until(lambda x: jax.debug.print("x is {}", x), jnp.arange(4.0))
    assert {sync.file for sync in log.syncs} == {__file__}
    assert all(one.file == __file__ for one in log.dispatches)


# Displays.


def test_an_array_at_the_end_of_a_cell_is_displayed_at_the_cells_line():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        gate = da.Gate()
        shell.user_ns["held"] = gate(jnp.arange(4.0))
        with da.record(on_wait=gate.open) as log, contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell("x = 1\nheld", store_history=True).raise_error()
        [sync] = log.syncs
        assert (sync.was_ready, sync.line, sync.source) == (False, 2, "held")
        assert (sync.function, sync.trigger) == ("<module>", "display")
        assert sync.file != __file__
        assert "IPython" not in sync.file.replace("ipython-input", "")
        gate.open()
    finally:
        InteractiveShell.clear_instance()


def test_an_array_at_a_prompt_is_displayed_by_repr(capsys):
    code = compile("held", "<stdin>", "single")
    log = record_until(lambda held: exec(code, {"held": held}), jnp.arange(4.0))
    assert [(sync.trigger, sync.file, sync.line) for sync in log.syncs] == [("repr", "<stdin>", 1)]


def test_matplotlib_reads_what_it_plots():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    log = record_until(lambda x: axes.plot(x), jnp.arange(4.0))
    assert log.syncs[0].was_ready is False


# Addresses.


def test_the_address_of_a_value_that_is_not_there_is_waited_for():
    # The runtime waits for the memory, and with Python's lock held: no gate can be opened then.
    gate = da.Gate()
    held = gate(jnp.arange(4.0)) + 1
    with da.sync_guard("error"), pytest.raises(da.HostSyncError, match="unsafe_buffer_pointer"):
        held.unsafe_buffer_pointer()
    assert not gate.is_open

    def let_it_finish():
        gate.open()
        held.block_until_ready()

    with da.record(on_wait=let_it_finish) as log:
        held.unsafe_buffer_pointer()
    assert log.syncs[-1].trigger == "unsafe_buffer_pointer"
    assert log.syncs[-1].was_ready is False


# Failures.


def test_a_deleted_array_raises_jaxs_own_error_and_leaves_no_trace():
    x = jnp.arange(4.0)
    x.delete()
    with pytest.raises(RuntimeError) as wanted:
        x.block_until_ready()
    with da.record() as log, pytest.raises(RuntimeError) as found:
        x.block_until_ready()
    assert str(found.value) == str(wanted.value)
    [sync] = log.syncs
    assert (sync.error, sync.was_ready) == (type(wanted.value).__name__, None)
    assert record_until(float, jnp.float32(1.0)).syncs  # Waits are seen as before.


def test_a_program_that_fails_raises_at_the_wait_and_is_recorded_with_the_error():
    def fail(_):
        raise ValueError("on purpose")

    @jax.jit
    def failing(x):
        return jax.pure_callback(fail, jax.ShapeDtypeStruct((), x.dtype), x)

    with da.record() as log, pytest.raises(Exception, match="on purpose"):
        failing(jnp.float32(1.0)).block_until_ready()
    assert [sync.error for sync in log.syncs if sync.error] in ([], ["JaxRuntimeError"])
    assert record_until(float, jnp.float32(1.0)).syncs


def test_an_array_given_to_another_thread_is_read_there():
    from concurrent.futures import ThreadPoolExecutor

    def read(value):
        return float(value)

    with ThreadPoolExecutor(1, thread_name_prefix="reader") as pool:
        log = record_until(lambda v: pool.submit(read, v).result(), jnp.float32(2.0))
    [sync] = log.syncs
    assert (sync.trigger, sync.function) == ("float", "read")
    assert log.threads[sync.thread].startswith("reader")
