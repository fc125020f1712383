"""What passes the boundary is counted exactly: as the profiler, JAX's monitoring and C++ count it.

Each case is a call. It is made three times: cold, when nothing is compiled and JAX goes through
Python, and twice warm, when most calls stay in C++. Meanwhile it is recorded, profiled and
monitored, and the tests compare.
"""

import collections
import dataclasses
import enum
import functools
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import literals
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax as jaxlib_jax

import devicearray as da
from devicearray import _jax
from devicearray._profile import module_name
from tests.eight_devices import on_eight, over_eight
from tests.profiled import profiled

X = jnp.ones((64, 64))
Y = jnp.ones(4)
KEY = jax.random.key(3)
NP = np.ones(4, np.float32)
SIXTEEN = np.arange(16, dtype=np.float32)
STRINGS = np.array(["a", "bc"], dtype=np.dtypes.StringDType())
EIGHT = on_eight(jnp.arange(16.0), "i")
EIGHT_ROWS = on_eight(jnp.ones((16, 16)), "i")
OTHER = jax.devices()[1]
OURS = da.asarray([1.0, 2.0, 3.0])
OUR_KEY = da.asarray(jax.random.key(0))


# The calls.


@jax.jit
def step(x):
    return jnp.tanh(x @ x)


@jax.jit
def inner(x):
    return x * 2


@jax.jit
def outer(x):
    return inner(x) + inner(x + 1)


@jax.jit
def times_one(*args, **kwargs):
    return jax.tree.map(lambda value: value * 1, (args, kwargs))


@functools.partial(jax.jit, donate_argnums=0)
def donating(x):
    return x + 1


@functools.partial(jax.jit, static_argnums=0)
def static(n, x):
    return x * n


@functools.partial(jax.jit, static_argnums=-1)
def last_static(*args):
    return args[0] * args[-1]


@functools.partial(jax.jit, static_argnames="n")
def static_by_name(x, n=None):
    return x * n


@functools.partial(jax.jit, out_shardings=over_eight("i"))
def to_eight(x):
    return x + 1


@functools.partial(jax.jit, in_shardings=over_eight("i"))
def from_eight(x):
    return x + 1


@jax.jit
def add(x, y):
    return x + y


@jax.jit
def three_outputs(x):
    return x, [x + 1, {"a": x * 2}]


@jax.jit
def no_output(x):
    return None


@jax.jit
def with_pure_callback(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda value: np.asarray(value) + 1, shape, x)


@jax.jit
def with_debug_callback(x):
    jax.debug.callback(lambda value: None, x)
    return x + 1


@jax.jit
def with_debug_print(x):
    jax.debug.print("{}", x, ordered=True)
    return x + 1


def io(ordered):
    def with_io_callback(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return io_callback(np.asarray, shape, x, ordered=ordered)

    return jax.jit(with_io_callback)


ordered_io, unordered_io = io(True), io(False)
reference = jax.new_ref(Y)


@jax.jit
def update(ref):
    ref[...] += 1.0
    return ref[0]


@jax.jit
def update_by(x):
    reference[...] += x


def use_a_reference():
    ref = jax.new_ref(Y)
    ref[0] = 1.0
    return jax.freeze(ref)


@jax.custom_vjp
def twice(x):
    return 2 * x


twice.defvjp(lambda x: (2 * x, None), lambda _, g: (g * 100,))


def psum(x):
    return x + jax.lax.psum(x, "i")


over_mesh = {"mesh": EIGHT.sharding.mesh, "in_specs": P("i"), "out_specs": P("i")}
exported = jax.export.export(jax.jit(lambda x: x * 3))(jax.ShapeDtypeStruct((4,), jnp.float32))
compiled = jax.jit(lambda x: x @ x).lower(X).compile()
compiled_add = jax.jit(lambda x, y: x + y).lower(NP, 1.0).compile()
grad_of_step = jax.grad(lambda x: step(x).sum())
jitted_grad = jax.jit(grad_of_step)
jitted_custom = jax.jit(jax.grad(lambda x: twice(x).sum()))
jitted_shard_map = jax.jit(jax.shard_map(psum, **over_mesh))
plus_one = jax.pmap(lambda x: x + 1)
SPREAD = plus_one(jnp.ones((8, 2)))
ours = da.jit(lambda x: jnp.sin(x) + 1)
ours_add = da.jit(lambda x, y: x + y)


def in_threads():
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: step(X), range(8)))


def under(context, function):
    def call():
        with context():
            return function()

    return call


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["weights", "bias"], meta_fields=["name"]
)
@dataclasses.dataclass
class Layer:
    weights: Any
    bias: Any
    name: str = "layer"


@jax.tree_util.register_pytree_node_class
class Node:
    def __init__(self, *children):
        self.children = children

    def tree_flatten(self):
        return self.children, None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Marked(np.ndarray):
    pass


Pair = collections.namedtuple("Pair", "first second")
Level = enum.IntEnum("Level", "LOW HIGH")

#: Programs on one device and on many.
PROGRAMS = {
    "jit": lambda: step(X),
    "jit of an operator's result": lambda: step(X) + X,
    "nested jit": lambda: outer(Y),
    "jit without inputs": lambda: jax.jit(lambda: jnp.ones(3))(),
    "jit of a partial": lambda: jax.jit(functools.partial(jnp.add, 1.0))(Y),
    "identity": lambda: times_one(Y),
    "many outputs": lambda: three_outputs(Y),
    "no output": lambda: no_output(Y),
    "operator": lambda: Y * Y,
    "operator with a number": lambda: Y * 2,
    "function": lambda: jnp.sin(Y),
    "method": lambda: Y.sum(),
    "reshape": lambda: Y.reshape(2, 2),
    "astype": lambda: Y.astype(jnp.int32),
    "matmul": lambda: X @ X,
    "lax": lambda: jax.lax.add(Y, Y),
    "index": lambda: Y[1],
    "slice": lambda: Y[1:3],
    "at": lambda: Y.at[0].set(1.0),
    "mask": lambda: Y[Y > 0],
    "nonzero": lambda: jnp.nonzero(Y),
    "iteration": lambda: list(Y),
    "unstack": lambda: jnp.unstack(Y),
    "concatenate": lambda: jnp.concatenate([Y, Y]),
    "ones": lambda: jnp.ones((3, 3)),
    "zeros": lambda: jnp.zeros(7),
    "arange": lambda: jnp.arange(5),
    "linspace": lambda: jnp.linspace(0, 1, 5),
    "eye": lambda: jnp.eye(3),
    "copy": lambda: jnp.copy(Y),
    "solve": lambda: jnp.linalg.solve(X + jnp.eye(64), X),
    "grad": lambda: grad_of_step(X),
    "jit of grad": lambda: jitted_grad(X),
    "vjp": lambda: jax.vjp(step, X)[1](X),
    "linearize": lambda: jax.linearize(step, X)[1](X),
    "vmap": lambda: jax.vmap(lambda row: jnp.dot(row, row))(X),
    "vmap of jit": lambda: jax.vmap(step)(jnp.ones((2, 3, 3))),
    "custom_jvp": lambda: jax.nn.relu(Y),
    "custom_vjp": lambda: jax.grad(lambda x: twice(x).sum())(Y),
    "jit of custom_vjp": lambda: jitted_custom(Y),
    "checkpoint": lambda: jax.grad(lambda x: jax.checkpoint(jnp.sin)(x).sum())(Y),
    "scan": lambda: jax.lax.scan(lambda c, x: (c + x, c), 0.0, Y),
    "fori_loop": lambda: jax.lax.fori_loop(0, 3, lambda i, c: c + 1, Y),
    "while_loop": lambda: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, Y),
    "cond": lambda: jax.lax.cond(Y[0] > 0, lambda x: x + 1, lambda x: x, Y),
    "compiled ahead": lambda: compiled(X),
    "export": lambda: exported.call(Y),
    "eval_shape": lambda: (jax.eval_shape(step, X), None)[1],
    "donated": lambda: donating(jnp.ones(5)),
    "random": lambda: jax.random.normal(KEY, (3,)),
    "key": lambda: jax.random.key(2),
    "split": lambda: jax.random.split(KEY),
    "fold_in": lambda: jax.random.fold_in(KEY, 3),
    "pure_callback": lambda: with_pure_callback(Y),
    "debug.callback": lambda: with_debug_callback(Y),
    "debug.print": lambda: with_debug_print(Y),
    "io_callback, ordered": lambda: ordered_io(Y),
    "io_callback": lambda: unordered_io(Y),
    "reference in a program": lambda: update(reference),
    "reference": use_a_reference,
    "threads": in_threads,
    "disable_jit": under(jax.disable_jit, lambda: step(X)),
    "debug_nans": under(lambda: jax.debug_nans(True), lambda: step(X)),
    "on eight devices": lambda: step(EIGHT_ROWS),
    "operator on eight devices": lambda: EIGHT + EIGHT,
    "sum over eight devices": lambda: EIGHT.sum(),
    "iteration on eight devices": lambda: list(EIGHT),
    "shard_map": lambda: jax.shard_map(psum, **over_mesh)(EIGHT),
    "jit of shard_map": lambda: jitted_shard_map(EIGHT),
    "pmap": lambda: plus_one(SPREAD),
    "pmap of an array elsewhere": lambda: plus_one(jnp.ones((8, 2))),
    "pmap on one device": lambda: jax.pmap(lambda x: x + 1)(Y[None]),
    "DeviceArray, operator": lambda: OURS + OURS,
    "DeviceArray, method": lambda: OURS.sum(),
    "DeviceArray, index": lambda: OURS[0],
    "DeviceArray, iteration": lambda: list(OURS),
    "DeviceArray in jax.jit": lambda: inner(OURS),
    "DeviceArray in jax.numpy": lambda: jnp.sin(OURS),
    "da.jit": lambda: ours(OURS),
    "da.numpy": lambda: da.numpy.linalg.norm(OURS),
    "da.random": lambda: da.random.normal(OUR_KEY, (3,)),
    "da.random.split": lambda: da.random.split(OUR_KEY),
}

#: Programs that are given the host's values: as many as C++ moves.
HOST_ARGUMENTS = {
    "NumPy array": lambda: times_one(NP),
    "float64 array": lambda: times_one(np.ones(3)),
    "small types": lambda: times_one(np.ones(3, np.float16), np.ones(3, jnp.bfloat16), np.True_),
    "int4": lambda: times_one(np.ones(3, jnp.int4)),
    "empty array": lambda: times_one(np.ones((0, 3), np.float32)),
    "a kind of array": lambda: times_one(NP.view(Marked)),
    "scalar array": lambda: times_one(np.array(2.0)),
    "NumPy's numbers": lambda: times_one(np.float32(2), np.float64(2), np.int64(3), np.uint8(1)),
    "Python's numbers": lambda: times_one(2.0, 2, True, 2j),
    "a member of an IntEnum": lambda: times_one(Level.HIGH),
    "the same array twice": lambda: times_one(NP, NP),
    "device arrays": lambda: times_one(Y, OURS, [Y, {"a": OURS}]),
    "typed key": lambda: jax.jit(jax.random.key_data)(KEY),
    "none": lambda: times_one(None, [], {}),
    "tree": lambda: times_one({"a": NP, "b": [1.0, (NP, None)]}),
    "ordered dict": lambda: times_one(collections.OrderedDict(a=NP)),
    "named tuple": lambda: times_one(Pair(NP, 1.0)),
    "dataclass": lambda: times_one(Layer(NP, Y)),
    "registered class": lambda: times_one([Node(NP, Y, 3.0), Node(Node(1.0))]),
    "keyword arguments": lambda: times_one(NP, q=2.0, r={"s": NP}),
    "static": lambda: static(3, NP),
    "static, the last of any number": lambda: last_static(NP, 3),
    "static by name": lambda: static_by_name(NP, n=3),
    "static by name, given by place": lambda: static_by_name(NP, 3),
    "kept though unused": lambda: jax.jit(lambda x, y: y, keep_unused=True)(NP, Y),
    "donated array": lambda: donating(NP),
    "compiled ahead, with host values": lambda: compiled_add(NP, 1.0),
    "da.jit of host values": lambda: ours_add(NP, 1.0),
    "DeviceArray and a number": lambda: OURS + 1.0,
    "DeviceArray and an array": lambda: OURS + np.ones(3, np.float32),
    "operator and an array": lambda: Y + NP,
    "index by a NumPy number": lambda: Y[np.int32(2)],
    "function of an array": lambda: jnp.sin(NP),
    "function of a number": lambda: jnp.sin(1.0),
    "lax of arrays": lambda: jax.lax.add(NP, NP),
    "stack": lambda: jnp.stack([NP, NP, Y]),
    "where": lambda: jnp.where(NP > 0, 1.0, 0.0),
    "full": lambda: jnp.full(3, 2.0),
    "asarray": lambda: jnp.asarray(NP),
    "asarray of float64": lambda: jnp.asarray(np.ones(3)),
    "asarray of a list": lambda: jnp.asarray([1.0, 2.0]),
    "asarray of a number": lambda: jnp.asarray(1.0),
    "asarray of a device array": lambda: jnp.asarray(Y),
    "jnp.array": lambda: jnp.array(NP),
    "frombuffer": lambda: jnp.frombuffer(b"1234", np.uint8),
    "da.asarray": lambda: da.asarray(NP),
    "da.asarray of a list": lambda: da.asarray([1.0, 2.0]),
    "new reference": lambda: jax.freeze(jax.new_ref(NP)),
    "vmap of an array": lambda: jax.vmap(lambda x: x + 1)(NP),
    "grad of an array": lambda: jax.grad(lambda x: (x**2).sum())(NP),
    "scan over an array": lambda: jax.lax.scan(lambda c, x: (c + x, c), 0.0, NP),
    "with debug.callback": lambda: with_debug_callback(NP),
    "on another device": under(lambda: jax.default_device(OTHER), lambda: times_one(NP)),
    "replicated to eight devices": lambda: add(EIGHT, 1.0),
    "sharded over eight devices": lambda: add(EIGHT, SIXTEEN),
    "sharded by in_shardings": lambda: from_eight(SIXTEEN),
    "sharded by out_shardings": lambda: to_eight(SIXTEEN),
    "pmap of an array": lambda: plus_one(np.ones((8, 2), np.float32)),
    "under debug_nans": under(lambda: jax.debug_nans(True), lambda: times_one(NP)),
}

#: Values that are moved, with or without programs.
MOVES = {
    "array to a device": lambda: jax.device_put(NP),
    "float64 array to a device": lambda: jax.device_put(np.ones(3)),
    "number to a device": lambda: jax.device_put(1.0),
    "array to another device": lambda: jax.device_put(NP, OTHER),
    "tree to a device": lambda: jax.device_put({"a": NP, "b": 1.0, "c": Y}),
    "array to eight devices": lambda: jax.device_put(SIXTEEN, over_eight("i")),
    "array to each of eight devices": lambda: jax.device_put(SIXTEEN, over_eight()),
    "device array to another device": lambda: jax.device_put(Y, OTHER),
    "DeviceArray to another device": lambda: jax.device_put(OURS, OTHER),
    "device array to eight devices": lambda: jax.device_put(jnp.asarray(SIXTEEN), over_eight("i")),
    "device array to its own device": lambda: jax.device_put(Y, jax.devices()[0]),
    "device array to any device": lambda: jax.device_put(Y),
    "eight shards where they are": lambda: jax.device_put(EIGHT, over_eight("i")),
    "eight shards to one device": lambda: jax.device_put(EIGHT, OTHER),
    "eight shards to each": lambda: jax.device_put(EIGHT, over_eight()),
    "donated to another device": lambda: jax.device_put(jnp.ones(4), OTHER, donate=True),
    "make_array_from_callback": lambda: jax.make_array_from_callback(
        (16,), over_eight("i"), lambda index: SIXTEEN[index]
    ),
    "make_array_from_process_local_data": lambda: jax.make_array_from_process_local_data(
        over_eight("i"), SIXTEEN
    ),
    "copy_to_host_async": lambda: Y.copy_to_host_async(),
    "make_array_from_callback of device arrays": lambda: jax.make_array_from_callback(
        (16,), over_eight("i"), lambda index: jnp.asarray(SIXTEEN[index])
    ),
    "strings": lambda: jax.device_put(STRINGS, OTHER),
    "from_dlpack": lambda: jnp.from_dlpack(NP),
    "uncommitted device array spread by a program": lambda: add(EIGHT, jnp.asarray(SIXTEEN)),
    "device array spread by in_shardings": lambda: from_eight(jnp.asarray(SIXTEEN)),
}

#: Programs without an instruction, of which no device has anything to tell.
EMPTY = {"no output", "none"}

CASES = PROGRAMS | HOST_ARGUMENTS | MOVES


@dataclasses.dataclass
class Observed:
    """One call of a case, and what the others say of it."""

    state: str
    log: da.Log
    dispatches: int
    modules: list[str]
    compiles: list[str]
    moved: int


@functools.cache
def observed(case):
    """Return what was recorded and counted during three calls of a case."""
    jax.clear_caches()
    da.clear_caches()
    return [observe(state, CASES[case]) for state in ("cold", "warm", "warm again")]


def observe(state, call):
    compiles = []

    def listen(event, seconds, **facts):
        if event == "/jax/core/compile/backend_compile_duration":
            compiles.append(facts["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    moved_before = moved_by_the_runtime()
    try:
        with da.record() as log:
            seen = profiled(call)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    moved = moved_by_the_runtime() - moved_before
    return Observed(state, log, seen.dispatches, seen.modules, compiles, moved)


def moved_by_the_runtime():
    """Return how many of the host's values C++ moved to devices since the process began."""
    count = jaxlib_jax.get_internal_device_put_info()
    all_put = count["device_put_with_device"] + count["device_put_with_sharding"]
    return all_put - count["device_put_assembled"]  # These were on devices already.


# Dispatches.


@pytest.mark.parametrize("case", CASES)
def test_every_dispatch_that_the_profiler_saw_is_recorded_and_no_other(case):
    for one in observed(case):
        assert (one.state, len(one.log.dispatches)) == (one.state, one.dispatches)


@pytest.mark.parametrize("case", [case for case in CASES if case not in EMPTY])
def test_dispatches_have_the_names_of_the_programs_that_ran(case):
    for one in observed(case):
        # XLA has no place for the last sign of "<lambda>".
        names = sorted(module_name(event.name).rstrip("_") for event in one.log.dispatches)
        assert (one.state, names) == (one.state, sorted(name.rstrip("_") for name in one.modules))


@pytest.mark.parametrize("case", CASES)
def test_every_compile_that_jax_announces_is_recorded_and_no_other(case):
    for one in observed(case):
        names = [f"jit({event.name})" for event in one.log.compiles]
        assert (one.state, names) == (one.state, one.compiles)


@pytest.mark.parametrize("case", CASES)
def test_what_is_compiled_has_the_name_under_which_it_is_dispatched(case):
    for one in observed(case):
        dispatched = {event.name for event in one.log.dispatches}
        assert {event.name for event in one.log.compiles} <= dispatched


@pytest.mark.parametrize("case", CASES)
def test_the_values_that_c_plus_plus_moved_are_recorded_once(case):
    for one in observed(case):
        of_dispatches = sum(event.host_arguments for event in one.log.dispatches)
        to_devices = [one for one in one.log.transfers if one.direction == "host to device"]
        assert (one.state, of_dispatches + len(to_devices)) == (one.state, one.moved)


ONE_DISPATCH = [
    "nested jit",
    "many outputs",
    "on eight devices",
    "jit of shard_map",
    "pmap",
    "jit of grad",
    "scan",
    "io_callback, ordered",
    "da.jit",
    "da.numpy",
]


@pytest.mark.parametrize("case", ONE_DISPATCH)
def test_a_program_is_one_dispatch_however_much_it_does_on_however_many_devices(case):
    assert [len(one.log.dispatches) for one in observed(case)] == [1, 1, 1]


def test_without_jit_each_operation_is_a_dispatch():
    cold, *warm = observed("disable_jit")
    names = [event.name for event in cold.log.dispatches]
    assert "step" not in names
    assert len(names) > 1
    assert all([event.name for event in one.log.dispatches] == names for one in warm)


def fail(*_):
    raise ValueError("no")


@jax.jit
def with_failing_callback(x):
    return jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def use_a_donated_array():
    array = jnp.ones(5)
    donating(array)
    inner(array)


@pytest.mark.parametrize(
    ("call", "last"),
    [
        (lambda: with_failing_callback(Y), "with_failing_callback"),
        (use_a_donated_array, "donating"),
        (lambda: compiled(jnp.zeros(3)), "broadcast_in_dim"),
        (under(lambda: jax.transfer_guard("disallow"), lambda: update_by(jnp.sin(Y) + NP)), "sin"),
    ],
    ids=["in a callback", "donated before", "of another shape", "may not be moved"],
)
def test_a_dispatch_that_fails_counts_if_it_reached_the_runtime(call, last):
    def attempt():
        with pytest.raises((RuntimeError, TypeError)):
            call()

    with da.record() as log:
        seen = profiled(attempt)
    assert len(log.dispatches) == seen.dispatches
    assert log.dispatches[-1].name == last


def test_dispatches_and_checks_for_nans_do_not_disturb_each_other():
    during, after, bad = jax.jit(jnp.log), jax.jit(jnp.sqrt), -Y

    def check(function):
        for _ in range(3):
            function(Y)
        with pytest.raises(FloatingPointError):
            function(bad)

    with jax.debug_nans(True):
        with da.record() as log:
            seen = profiled(lambda: check(during))
        check(after)
    assert len(log.dispatches) == seen.dispatches
    # Those that JAX dispatched without Python are checked by a hook.
    assert [event.start is None for event in log.dispatches[:4]] == [False, True, True, True]


def test_what_a_callback_dispatches_is_recorded_and_what_it_fails_to_is_not():
    gone = jnp.ones(5)
    gone.delete()

    def call(x):
        inner(x)
        with pytest.raises(RuntimeError):
            inner(gone)
        return np.asarray(x)

    @jax.jit
    def calling(x):
        return io_callback(call, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)

    for _ in range(2):
        with da.record() as log:
            seen = profiled(lambda: calling(Y))
        assert [event.name for event in log.dispatches] == ["inner", "calling"]
        assert len(log.dispatches) == seen.dispatches


def test_a_thread_that_has_checked_for_nans_is_recorded_as_any_other():
    inner(Y)

    def work():
        with jax.debug_nans(True):
            inner(Y)
        with da.record() as log:
            inner(Y)
        return [event.name for event in log.dispatches]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == ["inner"]


def test_a_program_is_dispatched_by_the_line_that_calls_it():
    with da.record() as log:
        compiled(X)
        ours(OURS)
        with_pure_callback(Y)
    sources = [event.source for event in log.dispatches]
    assert sources == ["compiled(X)", "ours(OURS)", "with_pure_callback(Y)"]


# The host's arguments.

HOST_VALUES = [
    2.0,
    2,
    True,
    2j,
    Level.HIGH,
    np.float64(2),
    np.float32(2),
    np.int64(3),
    np.True_,
    np.ones(3),
    np.ones(3, np.complex128),
    np.ones(3, np.int8),
    np.ones(3, np.float16),
    np.ones(3, jnp.bfloat16),
    np.ones(3, jnp.int4),
    np.ones((0, 3)),
    np.ones(3).view(Marked),
    literals.TypedNdArray(np.ones(3)),
    None,
    Y,
    [NP, (1.0, {"a": 2, "b": Y, "c": None})],
    collections.OrderedDict(a=NP, b=1),
    Pair(NP, OURS),
    Layer(NP, 1.0),
    Node(Node(NP), [1, Node()], KEY),
]


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("value", HOST_VALUES, ids=lambda value: type(value).__name__)
def test_host_arguments_are_as_many_and_as_large_as_jax_makes_of_them(value, wide):
    identity = jax.jit(lambda x, *, y: (x, y))
    with jax.enable_x64(wide):
        hosts = [leaf for leaf in jax.tree.leaves(value) if not isinstance(leaf, jax.Array)]
        nbytes = sum(jax.jit(lambda x: x)(leaf).nbytes for leaf in hosts)
        with da.record() as log:
            for _ in range(3):
                identity(value, y=value)
    found = [(event.host_arguments, event.host_bytes) for event in log.dispatches]
    assert found == [(2 * len(hosts), 2 * nbytes)] * 3


@pytest.mark.parametrize("case", HOST_ARGUMENTS)
def test_the_first_call_and_later_ones_have_the_same_host_arguments(case):
    def counted(one):
        return [(event.host_arguments, event.host_bytes) for event in one.log.dispatches]

    cold, *warm = observed(case)
    assert [counted(one) for one in warm] == [counted(cold)] * 2


def test_an_argument_that_the_program_does_not_use_counts_as_given():
    second = jax.jit(lambda x, y, *, z: y + 1)
    moved = moved_by_the_runtime()
    with da.record() as log:
        for _ in range(3):
            second(NP, Y, z=1.0)
    assert moved_by_the_runtime() == moved
    found = [(event.host_arguments, event.host_bytes) for event in log.dispatches]
    assert found == [(2, NP.nbytes + 4)] * 3


def test_static_arguments_are_no_arguments_of_the_program():
    class Setting:
        array = NP

    setting = Setting()
    by_place = jax.jit(lambda setting, x: x * setting.array, static_argnums=0)
    by_name = jax.jit(lambda x, setting: x * setting.array, static_argnames="setting")
    with da.record() as log:
        for _ in range(2):
            by_place(setting, Y)
            by_name(Y, setting=setting)
            by_name(Y, setting)
            last_static(Y, 3)
    assert {event.host_arguments for event in log.dispatches} == {0}


# Transfers.


def moves(call):
    """Return what is transferred during a call: direction, arrays and bytes."""
    with da.record() as log:
        call()
    return [(event.direction, event.arrays, event.nbytes) for event in log.transfers]


TO_DEVICE, BETWEEN = "host to device", "device to device"


@pytest.mark.parametrize(
    ("case", "expected"),
    {
        "array to a device": [(TO_DEVICE, 1, NP.nbytes)],
        "float64 array to a device": [(TO_DEVICE, 1, 3 * 4)],
        "number to a device": [(TO_DEVICE, 1, 4)],
        "array to another device": [(TO_DEVICE, 1, NP.nbytes)],
        "tree to a device": [(TO_DEVICE, 1, NP.nbytes), (TO_DEVICE, 1, 4)],
        "array to eight devices": [(TO_DEVICE, 8, SIXTEEN.nbytes)],
        "array to each of eight devices": [(TO_DEVICE, 8, 8 * SIXTEEN.nbytes)],
        "device array to another device": [(BETWEEN, 1, Y.nbytes)],
        "DeviceArray to another device": [(BETWEEN, 1, OURS.nbytes)],
        "donated to another device": [(BETWEEN, 1, Y.nbytes)],
        "device array to eight devices": [(BETWEEN, 7, SIXTEEN.nbytes * 7 // 8)],
        "device array to its own device": [],
        "device array to any device": [],
        "eight shards where they are": [],
        "make_array_from_callback": [(TO_DEVICE, 8, SIXTEEN.nbytes)],
        "make_array_from_process_local_data": [(TO_DEVICE, 8, SIXTEEN.nbytes)],
        "make_array_from_callback of device arrays": [(BETWEEN, 7, SIXTEEN.nbytes * 7 // 8)],
        "strings": [(TO_DEVICE, 1, STRINGS.nbytes)],
        "copy_to_host_async": [],
        "copy": [],
        "from_dlpack": [],
        "asarray": [],
        "sharded over eight devices": [],
        "uncommitted device array spread by a program": [(BETWEEN, 7, SIXTEEN.nbytes * 7 // 8)],
        "device array spread by in_shardings": [(BETWEEN, 7, SIXTEEN.nbytes * 7 // 8)],
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_transfer_is_recorded_once_with_what_each_device_gets(case, expected):
    assert [moves(CASES[case]) for _ in range(3)] == [expected] * 3


def test_a_typed_key_moves_as_its_bits():
    data = jax.random.key_data(KEY)
    assert moves(lambda: jax.device_put(KEY, OTHER)) == [(BETWEEN, 1, data.nbytes)]


def test_shards_that_change_places_move():
    def over(devices, axis):
        return NamedSharding(Mesh(devices, "i"), P(axis))

    first, middle, last = jax.devices()[:4], jax.devices()[2:6], jax.devices()[4:]
    for source, target, bytes_moved in (
        (over(first, "i"), over(last, "i"), SIXTEEN.nbytes),
        (over(first, "i"), over(middle, "i"), SIXTEEN.nbytes),
        (over(first, None), over(last, None), 4 * SIXTEEN.nbytes),
    ):
        array = jax.device_put(SIXTEEN, source)
        move = functools.partial(jax.device_put, array, target)
        assert moves(move) == [(BETWEEN, 4, bytes_moved)]


def test_what_jax_moves_by_way_of_the_host_is_a_host_sync_and_a_transfer():
    eight = on_eight(SIXTEEN, "i")
    with da.record() as log:
        jax.device_put(eight, OTHER)
    assert [sync.nbytes for sync in log.syncs] == [SIXTEEN.nbytes]
    (transfer,) = log.transfers
    assert (transfer.direction, transfer.nbytes) == (TO_DEVICE, SIXTEEN.nbytes)


def test_a_transfer_has_its_line_and_what_the_line_called():
    with da.record() as log:
        jax.device_put(NP)
        jax.make_array_from_callback((16,), over_eight("i"), lambda index: SIXTEEN[index])
    assert [event.trigger for event in log.transfers] == ["device_put", "make_array_from_callback"]
    assert log.transfers[0].source == "jax.device_put(NP)"


def test_a_host_callback_transfers_as_any_other_code():
    def fetch(x):
        return np.asarray(jax.device_put(np.asarray(x), OTHER))

    @jax.jit
    def function(x):
        return io_callback(fetch, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    function(Y).block_until_ready()
    with da.record() as log:
        function(Y).block_until_ready()
    sources = [event.source for event in log.transfers]
    assert sources.count("return np.asarray(jax.device_put(np.asarray(x), OTHER))") == 1


@pytest.fixture
def arguments_moved_in_cpp():
    if not hasattr(jax.config, "jax_use_cpp_shard_args"):
        pytest.skip("this JAX has one way only")
    jax.config.update("jax_use_cpp_shard_args", True)
    yield
    jax.config.update("jax_use_cpp_shard_args", False)


@pytest.mark.usefixtures("arguments_moved_in_cpp")
def test_the_other_way_in_which_jax_moves_values_counts_the_same():
    for case, expected in (
        ("tree to a device", [(TO_DEVICE, 1, NP.nbytes), (TO_DEVICE, 1, 4)]),
        ("array to eight devices", [(TO_DEVICE, 8, SIXTEEN.nbytes)]),
        ("array to each of eight devices", [(TO_DEVICE, 8, 8 * SIXTEEN.nbytes)]),
        ("sharded over eight devices", []),
        ("replicated to eight devices", []),
        ("strings", [(TO_DEVICE, 1, STRINGS.nbytes)]),
    ):
        assert [moves(CASES[case]) for _ in range(3)] == [expected] * 3


# Compiles.


@jax.jit
def ordered_print_and_outputs(x):
    jax.debug.print("{}", x, ordered=True)
    return x, x


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (three_outputs, [Y]),
        (no_output, [Y]),
        (outer, [Y]),
        (jax.jit(lambda x: (x, x, x)), [Y]),
        (three_outputs, [EIGHT]),
        (jax.jit(jax.random.split), [KEY]),
        (donating, [Y]),
        (ordered_print_and_outputs, [Y]),
    ],
)
def test_a_compile_says_how_many_outputs_the_program_has(function, args):
    jax.clear_caches()
    with da.record() as log:
        function.lower(*args).compile()
    outputs = jax.tree.leaves(jax.eval_shape(function, *args))
    assert [event.outputs for event in log.compiles] == [len(outputs)]
    assert log.dispatches == ()


def test_a_reference_that_a_program_updates_is_an_output_of_it():
    ref = jax.new_ref(Y)
    with da.record() as log:
        jax.jit(lambda ref: ref.__setitem__(..., Y))(ref)
    assert [event.outputs for event in log.compiles if event.name == "<lambda>"] == [1]


def test_a_compile_takes_as_long_as_jax_says_and_is_the_line_that_caused_it():
    said = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            said.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        with da.record() as log:
            jax.jit(lambda x: x + 1)(Y)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    (event,) = log.compiles
    assert event.seconds == pytest.approx(said[0], abs=1e-8)
    assert 0 < event.start < event.end < log.dispatches[0].end
    assert event.source == "jax.jit(lambda x: x + 1)(Y)"
    assert not event.persistent_cache_hit


def test_recording_compiles_nothing_again():
    function = jax.jit(lambda x: x - 3)
    function(Y)
    size = function._cache_size()
    for _ in range(3):
        with da.record() as log:
            function(Y)
            function(Y)
        assert log.compiles == ()
        assert len(log.dispatches) == 2
    function(Y)
    assert function._cache_size() == size == 1


def test_a_compile_is_of_the_thread_that_made_it():
    with da.record() as log, ThreadPoolExecutor(1, "compiler") as pool:
        number = pool.submit(threading.get_ident).result()
        pool.submit(lambda: jax.jit(lambda x: x + 2)(Y)).result()
    (event,) = log.compiles
    assert event.thread == number
    assert log.threads[number].startswith("compiler")


def test_a_hit_of_the_cache_that_belongs_to_no_compile_is_no_hit_of_the_next():
    with da.record() as log:
        jax.monitoring.record_event("/jax/compilation_cache/cache_hits")
        jax.jit(lambda x: x + 1)(Y)
    assert [event.persistent_cache_hit for event in log.compiles] == [False]


def test_a_compile_that_fails_leaves_nothing_to_the_next():
    def unknown(x):
        return jax.ffi.ffi_call("no_such_target", [jax.ShapeDtypeStruct((), x.dtype)] * 5)(x)

    with da.record() as log:
        with pytest.raises(Exception, match="no_such_target"):
            jax.jit(unknown)(Y)
        jax.jit(lambda x: (x, x))(Y)
    assert [(event.name, event.outputs) for event in log.compiles] == [
        ("unknown", 5),
        ("<lambda>", 2),
    ]
    assert [event.name for event in log.dispatches] == ["<lambda>"]


def test_the_persistent_cache_is_missed_first_and_hit_later(tmp_path, reader_environment):
    script = """
        import sys
        import jax
        import jax.numpy as jnp
        import devicearray as da

        jax.config.update("jax_compilation_cache_dir", sys.argv[1])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        f, x = jax.jit(lambda x: (x * 7 + 1, x)), jnp.ones(3)
        for _ in range(3):
            jax.clear_caches()
            with da.record() as log:
                f(x)
            print([(one.name, one.outputs, one.persistent_cache_hit) for one in log.compiles])
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(
        command, env=reader_environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "[('<lambda>', 2, False)]",
        "[('<lambda>', 2, True)]",
        "[('<lambda>', 2, True)]",
    ]


# The places in flight.


def test_thirty_two_programs_are_in_flight_and_the_next_dispatch_waits():
    step_vector = jax.jit(lambda x: x * 2 + 1)
    elsewhere = jax.device_put(Y, OTHER)
    step_vector(Y), step_vector(elsewhere)
    gate, full = da.Gate(), threading.Event()

    def work():
        x = gate(Y)
        for n in range(2, 41):
            x = step_vector(x)
            if n == 32:
                full.set()

    with da.record() as log, gate:
        worker = threading.Thread(target=work)
        worker.start()
        full.wait()
        # Meanwhile another device runs 200 programs, and the host waits for each.
        for _ in range(200):
            elsewhere = step_vector(elsewhere)
            elsewhere.block_until_ready()
        gate.open()
        worker.join()
    by_worker = [event.thread == worker.ident for event in log.dispatches]
    assert by_worker == [True] * 32 + [False] * 200 + [True] * 8


# What this JAX cannot tell.

FACTS = {"dispatches": "dispatches", "host syncs": "syncs", "transfers": "transfers"}


def attribute_of(fact):
    """Return the attribute of a log that cannot be given without this fact, if there is one."""
    return next((name for start, name in FACTS.items() if fact.startswith(start)), None)


def lack(monkeypatch, fact, name, *hooks):
    """Let JAX have no such name."""
    monkeypatch.setitem(_jax.LOST, fact, name)
    left = {key: hook for key, hook in _jax.HOOKS.items() if key not in hooks}
    monkeypatch.setattr(_jax, "HOOKS", left)


def use_everything():
    inner(jax.device_put(NP))
    float(Y[0])
    jax.jit(lambda x: (x, x))(Y)


@pytest.mark.parametrize("hook", [hook for hook, place in _jax._PLACES.items() if place[0]])
def test_without_one_fact_the_others_are_recorded(monkeypatch, hook):
    fact, *path = _jax._PLACES[hook]
    name = ".".join(filter(None, path))
    lack(monkeypatch, fact, name, hook)
    with da.record() as log:
        use_everything()
    assert log.not_recorded == {fact: name}
    assert f"Not recorded: {fact} (no {name})" in str(log)
    for attribute in FACTS.values():
        if attribute == attribute_of(fact):
            with pytest.raises(RuntimeError, match=f"not recorded: {fact}, because.*{name}"):
                getattr(log, attribute)
        else:
            assert len(getattr(log, attribute)) > 0
    outputs = [event.outputs for event in log.compiles]
    assert outputs[-1] == (None if hook == "compile" else 2)


@pytest.mark.parametrize("hook", [hook for hook, place in _jax._PLACES.items() if place[0]])
def test_a_guard_that_would_overlook_host_syncs_is_refused(monkeypatch, hook):
    fact = _jax._PLACES[hook][0]
    lack(monkeypatch, fact, "such.name", hook)
    if fact.startswith("host syncs"):
        with pytest.raises(RuntimeError, match=r"no such\.name"), da.sync_guard():
            pass
    else:
        with pytest.raises(da.HostSyncError), da.sync_guard():
            float(Y[0])


def test_without_the_profiler_a_profiled_recording_says_so(monkeypatch):
    lack(monkeypatch, "device times", "such.name")
    monkeypatch.setattr(_jax, "_ProfilerSession", None)
    with da.record(profile=True) as log:
        inner(Y)
    assert log.runs is None
    assert len(log.dispatches) == 1
    assert "Not recorded: device times (no such.name)" in str(log)


def test_a_jax_without_the_names_can_be_imported_and_recorded_in_part(reader_environment):
    script = """
        import jax
        import jax.numpy as jnp
        from jax._src.dispatch import RuntimeTokenSet
        from jaxlib import _jax, xla_client

        absent = [
            (_jax.jax_jit, "set_post_hook_state"),
            (xla_client, "batched_device_put"),
            (RuntimeTokenSet, "block_until_ready"),
        ]
        kept = [getattr(owner, name) for owner, name in absent]
        for owner, name in absent:
            delattr(owner, name)
        import devicearray as da

        for (owner, name), value in zip(absent, kept):
            setattr(owner, name, value)
        with da.record() as log:
            y = jnp.sin(jax.device_put(1.0))
            for _ in range(3):
                y = jnp.sin(y)
            float(y)
        print(sorted(log.not_recorded))
        print([type(event).__name__ for event in log.events])
        for attribute in ("dispatches", "transfers", "syncs"):
            try:
                getattr(log, attribute)
            except RuntimeError as error:
                print(error)
        try:
            da.sync_guard().start()
        except RuntimeError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command, env=reader_environment, capture_output=True, text=True, check=True
    )
    lost, events, *errors = done.stdout.splitlines()
    facts = "dispatches on JAX's fast path", "host syncs by jax.effects_barrier"
    assert lost == str([*facts, "transfers by device_put"])
    assert events == str(["Compile", "Dispatch", "HostSync"])
    names = ["set_post_hook_state", "batched_device_put", "RuntimeTokenSet.block_until_ready"]
    for error, name in zip(errors, [*names, names[-1]], strict=True):
        assert name in error
