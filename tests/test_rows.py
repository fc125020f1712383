"""Rows: what they are, what taking and using them costs, and how long they live."""

import contextlib
import functools
import gc
import sys
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

import devicearray as da
from devicearray import numpy as dnp
from devicearray._rows import CHUNK
from tests.comparison import assert_agree, assert_device_arrays
from tests.conformance.harness import attempt, normalise_repr
from tests.eight_devices import on_eight, on_explicit, over_eight, uncommitted_elsewhere

LONG = 2 * CHUNK + 7


def in_pinned_memory():
    device = jax.devices()[0]
    sharding = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    return jax.device_put(jnp.arange(6.0).reshape(3, 2), sharding)


ON_ONE_DEVICE = {
    "vector": lambda: jnp.arange(float(LONG)),
    "matrix": lambda: jnp.arange(30.0).reshape(10, 3),
    "3-d": lambda: jnp.arange(24).reshape(2, 3, 4),
    "one row": lambda: jnp.ones((1, 2)),
    "as long as a chunk": lambda: jnp.arange(CHUNK),
    "one row more than a chunk": lambda: jnp.arange(CHUNK + 1),
    "rows of nothing": lambda: jnp.zeros((3, 0)),
    "rows of a MiB": lambda: jnp.zeros((3, 1 << 18)),
    "bool": lambda: jnp.arange(6) > 3,
    "complex64": lambda: jnp.arange(6.0).reshape(3, 2) * 1j,
    "bfloat16": lambda: jnp.arange(14, dtype=jnp.bfloat16).reshape(7, 2),
    "int4": lambda: jnp.arange(7).astype(jnp.int4),
    "weakly typed": lambda: jnp.full(5, 1.5),
    "committed": lambda: jax.device_put(jnp.arange(7.0), jax.devices()[3]),
    "keys": lambda: jax.random.split(jax.random.key(0), LONG),
    "matrix of keys": lambda: jax.random.split(jax.random.key(0), (5, 2)),
    "raw keys": lambda: jax.random.split(jax.random.PRNGKey(0), 5),
}
ELSEWHERE = {
    "uncommitted elsewhere": uncommitted_elsewhere,
    "in pinned memory": in_pinned_memory,
    "split on axis 0": lambda: on_eight(jnp.arange(16.0), "i"),
    "long, split on axis 0": lambda: on_eight(jnp.arange(2.0 * 8 * CHUNK).reshape(-1, 2), "i"),
    "split on axis 1": lambda: on_eight(jnp.arange(40.0).reshape(5, 8), None, "i"),
    "replicated": lambda: on_eight(jnp.arange(10.0).reshape(5, 2)),
    "keys split on axis 0": lambda: on_eight(jax.random.split(jax.random.key(0), 16), "i"),
    "explicit, split on axis 1": lambda: on_explicit(jnp.ones((5, 8)), None, "i"),
    "explicit, replicated": lambda: on_explicit(jnp.ones((5, 2))),
}
KINDS = ON_ONE_DEVICE | ELSEWHERE
every_kind = pytest.mark.parametrize("kind", KINDS)
every_kind_on_one_device = pytest.mark.parametrize("kind", ON_ONE_DEVICE)


def rows_by_jax(x):
    return [x[i] for i in range(len(x))]


def dispatched(log):
    return [dispatch.name for dispatch in log.dispatches]


# What a row is.

WAYS = {
    "list": list,
    "reversed": lambda x: list(reversed(x))[::-1],
    "index": lambda x: [x[i] for i in range(len(x))],
    "index from the end": lambda x: [x[i - len(x)] for i in range(len(x))],
    "numpy index": lambda x: [x[np.int16(i)] for i in range(len(x))],
    "unstack": lambda x: list(da.unstack(x)),
}


@every_kind
@pytest.mark.parametrize("way", WAYS)
def test_a_row_is_the_element_by_index(kind, way):
    x = KINDS[kind]()
    rows = WAYS[way](da.asarray(x))
    assert_device_arrays(rows)
    assert_agree(rows, rows_by_jax(x))


@every_kind
def test_rows_that_were_made_in_any_order_are_the_elements_by_index(kind):
    x = KINDS[kind]()
    rows = list(da.asarray(x))
    for i in np.random.default_rng(0).permutation(len(rows)):
        _ = rows[i]._buffer
    assert_agree(rows, rows_by_jax(x))


@every_kind_on_one_device
def test_what_is_known_of_a_row_is_known_without_a_dispatch(kind):
    x = KINDS[kind]()
    theirs, ours = x[0], da.asarray(x)[0]
    with da.record() as log:
        known = [
            ours.shape, ours.dtype, ours.ndim, ours.size, ours.weak_type, ours.sharding,
            ours.committed, ours.devices(), ours.is_deleted(), jax.typeof(ours),
            ours.is_fully_replicated, attempt(len, ours),
        ]  # fmt: skip
    assert log.events == ()
    wanted = [
        theirs.shape, theirs.dtype, theirs.ndim, theirs.size, theirs.aval.weak_type,
        theirs.sharding, theirs.committed, theirs.devices(), False, jax.typeof(theirs),
        theirs.is_fully_replicated,
    ]  # fmt: skip
    assert known[:-1] == wanted
    assert_agree(known[-1], attempt(len, theirs))


INDICES = [
    1, -1, 99, -99, (1, 2), (1, -1), (0, slice(1)), slice(1, 3), slice(None, None, -1),
    slice(None, None, 2), (slice(None), 1), (..., 0), (slice(2, 0),),
    (slice(1, None), slice(2, 0, -1)), None, (None, 1), slice(None), ..., (), np.array([2, 0]),
    (np.array([0, 1]), 1), True,
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize(
    "kind", ["matrix", "3-d", "split on axis 1", "replicated", "matrix of keys"]
)
def test_every_index_gives_what_it_gives_jax(kind, index):
    x = KINDS[kind]()
    assert_agree(attempt(lambda: da.asarray(x)[index]), attempt(lambda: x[index]))
    row_of_ours, row_of_theirs = da.asarray(x)[1], x[1]
    assert_agree(attempt(lambda: row_of_ours[index]), attempt(lambda: row_of_theirs[index]))


@pytest.mark.parametrize("index", [1, -1, 99, [3, 1]])
def test_an_index_on_the_device_is_one_program(index):
    x, i = jnp.arange(30.0).reshape(10, 3), jnp.array(index)
    ours = da.asarray(x)
    _ = ours[i]
    with da.record() as log:
        row = ours[i]
    assert dispatched(log) == ["getitem"]
    assert_agree(row, x[i])


def test_where_an_explicit_axis_splits_the_rows_taking_one_raises_as_in_jax():
    x = on_explicit(jnp.ones((16, 2)), "i")
    assert_agree(attempt(lambda: da.asarray(x)[0]), attempt(lambda: x[0]))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)])
def test_there_are_no_rows_where_jax_has_none(shape):
    x = jnp.zeros(shape)
    for use in (lambda x: x[0], list, lambda x: list(reversed(x)), da.unstack):
        ours, theirs = attempt(use, da.asarray(x)), attempt(use, x)
        if use is not da.unstack:
            assert_agree(ours, theirs)
    assert_agree(attempt(da.unstack, da.asarray(x)), attempt(jnp.unstack, x))


# What taking rows costs.


@every_kind
def test_taking_rows_dispatches_compiles_transfers_and_waits_for_nothing(kind):
    x = da.asarray(KINDS[kind]())
    jax.clear_caches()
    with da.record() as log:
        first, *_ = x
        taken = [first, *x, *reversed(x), *(row for row, _ in zip(x, x, strict=True))]
        taken += [x[0], x[-1], *da.unstack(x), *dict(enumerate(x)).values()]
    assert log.events == ()
    assert len(taken) == 5 * len(x) + 3


def test_slices_and_elements_are_not_dispatched_either():
    x = dnp.arange(30.0).reshape(10, 3)
    with da.record() as log:
        taken = [x[1, 2], x[1:3], x[::-1], x[..., 0], x[1][2], x[2:][1][:2], *da.unstack(x, axis=1)]
        for a, b, c in x:
            taken += [a, b, c]
    assert log.events == ()
    assert len(taken) == 9 + 30


def test_taking_rows_of_a_pending_array_does_not_wait():
    gate = da.Gate()
    with da.record(on_wait=gate.open) as log:
        held = da.asarray(gate(jnp.arange(10_000.0)))
        rows = list(held)
        window = held[3:5]
        sums = [rows[3] + 1, jnp.add(rows[4], 1), window.sum()]
        assert not gate.is_open
        assert not any(array.is_ready() for array in [rows[0], window, *sums])
    assert log.syncs == ()
    gate.open()
    assert [float(one) for one in sums] == [4, 5, 7]


def test_a_million_rows_are_small_and_cost_no_event():
    x = da.asarray(jnp.zeros(1_000_000))
    with da.record() as log:
        rows = list(x)
    assert (len(rows), log.events) == (1_000_000, ())
    assert sys.getsizeof(rows[0]) <= 80


# What using them costs.


@pytest.mark.parametrize(
    "use",
    [
        lambda row: row + 1,
        lambda row: 1 - row,
        lambda row: row * row,
        dnp.sin,
        lambda row: row.sum(),
        lambda row: dnp.multiply(row, row),
        da.jit(lambda row: 3 * row),
        lambda row: row**2,
    ],
)
@pytest.mark.parametrize(
    "take", [lambda x: x[3], lambda x: x[3, 1], lambda x: x[2:4], lambda x: x[7][::-1]]
)
def test_the_first_use_by_a_program_of_ours_is_one_dispatch(use, take):
    x = jnp.arange(40.0).reshape(10, 4)
    jax.block_until_ready(use(take(da.asarray(x))))
    ours = da.asarray(x)
    with da.record() as log:
        result = use(take(ours))
    assert len(log.dispatches) == 1
    assert len(log.syncs) == 0
    np.testing.assert_allclose(result, use(take(x)), rtol=1e-6)


def test_a_program_of_two_rows_takes_both():
    x = jnp.arange(400.0).reshape(200, 2)
    ours = da.asarray(x)
    with da.record() as log:
        result = ours[3] + ours[150]
    assert dispatched(log) == ["add"]
    assert_agree(result, x[3] + x[150])


def test_all_rows_are_one_program():
    x = dnp.arange(400.0).reshape(200, 2)
    _ = x[0] + 1
    with da.record() as log:
        _ = x[120] + 1
    assert len(log.dispatches) == 1
    assert log.compiles == ()


def test_a_row_that_is_used_again_gets_a_buffer_and_lets_go_of_its_source():
    x = dnp.arange(400.0).reshape(200, 2)
    row, source = x[120], weakref.ref(x._buffer)
    del x
    _ = row + 1
    assert source() is not None
    _ = row + 1
    assert source() is None
    assert_agree(row + 1, jnp.array([241.0, 242.0]))


@pytest.mark.parametrize("backwards", [False, True])
def test_rows_in_order_are_made_by_the_chunk(backwards):
    x = jnp.arange(float(LONG))
    double = jax.jit(lambda v: 2 * v)
    use = lambda x: [double(v) for v in (reversed(x) if backwards else x)]  # noqa: E731
    use(da.asarray(x))
    ours = da.asarray(x)
    with da.record() as log:
        doubled = use(ours)
    names = dispatched(log)
    assert names.count("chunk") == names.count("unstack") == 3
    assert len(names) == LONG + 6
    assert log.syncs == log.transfers == log.compiles == ()
    assert not any(dispatch.host_arguments for dispatch in log.dispatches)
    assert_agree(doubled[:: -1 if backwards else 1], [double(x[i]) for i in range(LONG)])


def test_the_programs_of_chunks_are_two_whatever_the_length():
    for length in (1_001, 10_003):
        x = da.asarray(jnp.zeros((length, 3), jnp.int16))
        da.clear_caches()
        with da.record() as log:
            for row in x:
                jax.block_until_ready(row._buffer)
        assert sorted((one.name, one.outputs) for one in log.compiles) == [
            ("chunk", 1),
            ("unstack", CHUNK),
        ]


def test_a_row_alone_is_one_small_program():
    x = da.asarray(jnp.arange(1000.0))
    _ = jnp.sin(x[3])
    with da.record() as log:
        _ = jnp.sin(x[503])
    assert dispatched(log) == ["row", "sin"]
    assert log.compiles == log.transfers == ()


def test_the_same_row_by_index_twice_is_two_arrays():
    x = da.asarray(jnp.arange(float(LONG)))
    for _ in range(4):
        first, second = x[3], x[3]
        assert [float(jnp.add(row, 0)) for row in (first, second)] == [3, 3]
        first.delete()
        assert float(jnp.add(second, 0)) == 3


def test_rows_that_are_read_by_the_host_are_one_host_sync():
    x = jnp.arange(float(LONG)).reshape(-1)
    ours = da.asarray(x)
    with da.record() as log:
        values = [float(v) for v in ours] + [v.item() for v in ours] + [int(v) for v in ours]
        values += [bool(v) for v in ours] + ours[3:5].tolist() + [str(ours[2]), f"{ours[1]:.1f}"]
    assert log.dispatches == ()
    assert len(log.syncs) == 1
    listed = x.tolist()
    wanted = listed + listed + [int(v) for v in listed] + [bool(v) for v in listed]
    assert values == [*wanted, 3.0, 4.0, "2.0", "1.0"]


@every_kind
@pytest.mark.parametrize(
    "read",
    [float, int, bool, complex, repr, str, np.asarray, np.array, hex, format, lambda v: v.item(),
     lambda v: v.tolist(), lambda v: v.tobytes(), lambda v: np.asarray(v, np.float32),
     lambda v: memoryview(v).tobytes(), jax.device_get],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_reads_by_the_host_are_jaxs(kind, read):
    x = KINDS[kind]()
    ours = da.asarray(x)
    theirs = [attempt(read, x[0]), attempt(read, x[len(x) - 1])]
    mine = [attempt(read, ours[0]), attempt(read, ours[len(x) - 1])]
    if read in (repr, str, format):
        mine = [normalise_repr(text) for text in mine]
    if "keys" in kind:
        # JAX has a class of its own for keys, which refuses in other words.
        mine, theirs = ([one for one in ones if isinstance(one, str)] for ones in (mine, theirs))
        mine = [text.replace("DeviceArray(", "Array(") for text in mine]
    assert_agree(mine, theirs)


def test_under_jaxs_checks_of_values_a_row_is_made_at_once():
    x = da.asarray(jnp.array([1.0, jnp.nan]))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        _ = x[1]


# Put together again.


def test_rows_at_regular_distances_are_a_slice_and_not_dispatched():
    x = dnp.arange(30.0).reshape(10, 3)
    rows = list(x)
    with da.record() as log:
        results = [dnp.stack(rows), dnp.stack(rows[::-3]), da.asarray(rows[2:4]), dnp.array(rows)]
    assert log.events == ()
    y = x._buffer
    assert_agree(results, [y, y[::-3], y[2:4], y])


def test_other_rows_are_one_gather():
    x = dnp.arange(3000.0).reshape(1000, 3)
    rows = [x[i] for i in (5, 2, 900, 2)]
    _ = dnp.stack(rows)
    with da.record() as log:
        result = dnp.stack(rows)
    assert dispatched(log) == ["gather"]
    assert_agree(result, x._buffer[np.array([5, 2, 900, 2])])


@pytest.mark.parametrize("join", ["stack", "concatenate", "concat", "array", "asarray"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("kind", ["vector", "matrix", "3-d", "weakly typed", "replicated", "keys"])
def test_joining_rows_is_what_it_is_in_jax(kind, join, axis):
    x = KINDS[kind]()
    named = {} if axis is None else {"axis": axis}
    for pick in (slice(None), slice(None, None, 2), slice(0, 1)):
        theirs = attempt(getattr(jnp, join), rows_by_jax(x)[pick], **named)
        ours = attempt(getattr(dnp, join), list(da.asarray(x))[pick], **named)
        assert_agree(ours, theirs)


@pytest.mark.parametrize("kind", ["matrix", "matrix of keys"])
def test_rows_that_are_concatenated_are_one_array_of_jaxs(kind):
    x = KINDS[kind]()
    wanted = jnp.concatenate([x[1], x[2]])
    joined = dnp.concatenate(list(da.asarray(x))[1:3])
    with jax.disable_jit():
        without_jit = dnp.concatenate(list(da.asarray(x))[1:3])
    for array in (joined, without_jit):
        assert type(array._buffer) is type(wanted)
        assert_agree(array, wanted)


def test_joining_rows_of_which_some_were_used_is_what_it_is_in_jax():
    x = jnp.arange(30.0).reshape(10, 3)
    rows = list(da.asarray(x))
    _ = jnp.add(rows[2], 1)
    assert_agree(dnp.stack(rows), x)
    assert_agree(dnp.stack([*da.asarray(x), *da.asarray(x)]), jnp.concatenate([x, x]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, 3])
@pytest.mark.parametrize("make", [lambda x: x, da.asarray, np.asarray])
def test_unstack_is_jaxs_along_any_axis(axis, make):
    x = jnp.arange(24.0).reshape(2, 3, 4)
    ours = attempt(da.unstack, make(x), axis=axis)
    assert_agree(ours, attempt(jnp.unstack, x, axis=axis))


def test_unstacking_an_array_on_many_devices_is_jaxs():
    x = on_eight(jnp.arange(40.0).reshape(5, 8), None, "i")
    assert_agree(da.unstack(x, axis=1), jnp.unstack(x, axis=1))


# How long they live.


def live_bytes():
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


@pytest.mark.parametrize("use", [lambda row: jnp.add(row, 0), lambda row: row._buffer])
def test_one_row_of_a_large_array_does_not_keep_the_array(use):
    before = live_bytes()
    x = da.asarray(jnp.zeros((1 << 10, 1 << 14)))
    rows = list(x)
    kept = rows[700]
    use(kept)
    del x, rows
    assert live_bytes() - before <= 2 * kept.nbytes + (2 << 20)


def test_a_row_that_was_not_used_keeps_its_source():
    x = dnp.arange(30.0).reshape(10, 3)
    source = weakref.ref(x._buffer)
    row = x[3]
    del x
    assert source() is not None
    assert_agree(row, jnp.array([9.0, 10.0, 11.0]))


def test_a_row_of_a_row_goes_on_from_it():
    x = dnp.arange(60.0).reshape(10, 3, 2)
    source = weakref.ref(x._buffer)
    row = x[3]
    inner, again = row[1], row[1:]
    _ = row._buffer
    del x
    assert_agree([row[1], row[2]], [jnp.array([20.0, 21.0]), jnp.array([22.0, 23.0])])
    assert_agree(inner, jnp.array([20.0, 21.0]))
    assert_agree(again, jnp.array([[20.0, 21.0], [22.0, 23.0]]))
    _ = inner._buffer, again._buffer
    gc.collect()
    assert source() is None


DELETE = {
    "delete": lambda x: x.delete(),
    "donate": lambda x: da.jit(lambda y: y + 1, donate_argnums=0)(x),
    "donate in a tree": lambda x: da.jit(lambda t: t["a"] + 1, donate_argnums=0)({"a": x}),
    "donate by name": lambda x: da.jit(lambda y: y + 1, donate_argnames="y")(y=x),
}


@pytest.mark.parametrize("end", DELETE)
@pytest.mark.parametrize("kind", ["vector", "matrix", "committed", "replicated", "split on axis 0"])
def test_rows_outlive_a_source_that_is_deleted_or_donated(kind, end):
    x = KINDS[kind]() + 0
    wanted = rows_by_jax(x)
    ours = da.asarray(x)
    iterator = iter(ours)
    rows = [next(iterator), ours[1], *ours]
    float(rows[0].sum())
    DELETE[end](ours)
    assert ours.is_deleted()
    assert_agree([*rows, *iterator], [*wanted[:2], *wanted, *wanted[1:]])
    with pytest.raises(RuntimeError, match="deleted"):
        _ = ours[0]


def test_deleting_a_row_leaves_its_source_and_its_own_rows():
    x = dnp.arange(60.0).reshape(10, 3, 2)
    row = x[3]
    inner, other = list(row), x[4]
    buffer = x._buffer
    row.delete()
    assert row.is_deleted()
    assert x._buffer is buffer
    assert_agree([*inner, other], [*buffer[3], buffer[4]])


@pytest.mark.parametrize("are_kept", [True, False])
def test_rows_that_the_host_reads_hold_the_source_as_a_numpy_view_does(are_kept):
    x, read = jnp.arange(3.0) + 0, jnp.arange(3.0) + 0
    view, rows = np.asarray(x), list(da.asarray(read))
    values = [float(row) for row in rows]
    if not are_kept:
        del view, rows
    add = jax.jit(lambda y: y + 1, donate_argnums=0)
    assert_agree(add(read), add(x))
    assert read.is_deleted() == x.is_deleted()
    assert values == [0, 1, 2]
    if are_kept:
        assert [float(row) for row in rows] == view.tolist() == values


def test_nothing_is_copied_for_rows_that_are_gone():
    x = dnp.arange(30.0)
    _ = [float(v) for v in x]
    with da.record() as log:
        x.delete()
    assert log.dispatches == ()


@pytest.mark.parametrize("use", [float, lambda row: row + 1, jnp.sin, lambda row: row._buffer])
def test_a_source_that_jax_donated_is_named_in_the_error(use):
    x = jnp.arange(3.0) + 0
    row = da.asarray(x)[1]
    jax.jit(lambda y: y + 1, donate_argnums=0)(x)
    with pytest.raises(RuntimeError, match=r"part of an array.*donated.*devicearray\.jit"):
        use(row)


def test_an_error_in_the_source_comes_out_of_the_row():
    def fail(_):
        raise ValueError("out of order")

    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    failing = jax.jit(lambda x: jax.pure_callback(fail, shape, x))
    gate = da.Gate()
    rows = list(da.asarray(failing(gate(jnp.ones(3)))))
    with da.record(on_wait=gate.open):
        for use in (float, lambda row: jax.block_until_ready(row + 1), np.asarray):
            with pytest.raises(Exception, match="out of order"):
                use(rows.pop())
    # JAX waits for side effects when the process ends, and would raise the error then.
    with contextlib.suppress(Exception):
        jax.effects_barrier()


def test_threads_may_use_the_rows_of_one_source_at_once():
    x = da.asarray(jnp.arange(40.0 * CHUNK).reshape(-1, 2))
    rows, found = list(x), {}
    start = threading.Barrier(6)

    def use(offset, how):
        start.wait()
        for i in range(offset, len(rows), 2):
            found[how, i] = how(rows[i] if offset else x[i])

    hows = [functools.partial(jnp.add, 1), lambda row: row + 1, lambda row: np.asarray(row) + 1]
    threads = [threading.Thread(target=use, args=(k, how)) for k in (0, 1) for how in hows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 * len(rows)
    for (_, i), value in found.items():
        np.testing.assert_array_equal(value, [2 * i + 1, 2 * i + 2])


# Surroundings, and traces.


def test_a_row_is_taken_where_it_is_taken():
    x, other = jnp.arange(30.0).reshape(10, 3), jax.devices()[2]
    ours = da.asarray(x)
    with jax.default_device(other):
        theirs, rows = x[1], [ours[1], *ours, ours[2:4]]
    assert_agree([rows[0], rows[2]], [theirs, theirs])
    assert rows[-1].devices() == {other}
    here = ours[1]
    with jax.default_device(other):
        assert here._buffer.devices() == x.devices()


def test_a_row_that_is_taken_under_a_mesh_is_jaxs():
    x = jnp.arange(16.0).reshape(8, 2)
    mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
    split = jax.device_put(x, over_eight("i"))
    ours, ours_split = da.asarray(x), da.asarray(split)
    outside = ours[3]
    with jax.set_mesh(mesh):
        assert_agree(ours[3], x[3])
        kept = ours[4]
        used = jnp.copy(outside)
        theirs = x[4]
    assert_agree(kept, theirs)
    assert used.shape == (2,)
    assert_agree(outside, x[3])
    assert_agree(ours_split[3], split[3])


def looped(f):
    return lambda v: jax.lax.scan(lambda carry, _: (carry + f(v), None), 0.0, None, 3)[0]


@pytest.mark.parametrize("taken", ["before", "inside"])
@pytest.mark.parametrize(
    "transform",
    [jax.jit, jax.vmap, jax.grad, lambda f: jax.jit(jax.grad(f)), jax.checkpoint, looped],
    ids=["jit", "vmap", "grad", "jit of grad", "checkpoint", "scan"],
)
def test_a_row_that_is_first_used_in_a_trace_leaks_nothing(transform, taken):
    x = jnp.arange(float(LONG))
    ours = da.asarray(x)
    alone, rows, window = ours[3], list(ours), ours[2:5]
    argument = jnp.arange(3.0) if transform is jax.vmap else 2.0

    def of_ours(v):
        row = rows[5] if taken == "before" else ours[5]
        return v * row + window.sum() + alone

    wanted = transform(lambda v: v * x[5] + x[2:5].sum() + x[3])(argument)
    for _ in range(2):
        np.testing.assert_allclose(transform(of_ours)(argument), wanted)
    assert_agree([jnp.add(rows[5], 0), alone, window], [jnp.add(x[5], 0), x[3], x[2:5]])


def test_without_jit_rows_are_the_same():
    x = jnp.arange(30.0).reshape(10, 3)
    with jax.disable_jit():
        ours = da.asarray(x)
        rows = list(ours)
        assert_agree(
            [rows[1] + 1, jnp.sin(rows[2]), *rows], [x[1] + 1, jnp.sin(x[2]), *rows_by_jax(x)]
        )


# split.


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_unpacking_a_split_is_one_dispatch(make):
    theirs, ours = make(3), da.asarray(make(3))
    da.random.split(ours)
    with da.record() as log:
        for _ in range(5):
            ours, sub = da.random.split(ours)
    assert dispatched(log) == ["split"] * 5
    assert log.syncs == log.transfers == ()
    for _ in range(5):
        theirs, their_sub = jax.random.split(theirs)
    assert_agree([ours, sub], [theirs, their_sub])
    assert_agree(jax.random.normal(sub, (3,)), jax.random.normal(their_sub, (3,)))
    assert_agree(da.random.normal(ours, (3,)), jax.random.normal(theirs, (3,)))


@pytest.mark.parametrize("num", [1, 2, 5, 16, 17, 0, (2, 3), -1, True, "2", 1.0, np.int32(3)])
@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_split_is_jaxs(make, num):
    theirs = attempt(jax.random.split, make(3), num)
    assert_agree(attempt(da.random.split, make(3), num), theirs)
    assert_agree(attempt(da.random.split, da.asarray(make(3)), num=num), theirs)
    assert_agree(
        attempt(lambda: list(da.random.split(make(3), num))),
        attempt(lambda: list(jax.random.split(make(3), num))),
    )


@pytest.mark.parametrize("kind", ["keys", "raw keys", "matrix of keys", "vector", "replicated"])
def test_split_of_a_row_is_jaxs(kind):
    x = KINDS[kind]()
    ours, theirs = attempt(da.random.split, da.asarray(x)[1]), attempt(jax.random.split, x[1])
    assert_agree(ours, theirs)


def test_a_split_can_be_used_whole_and_unpacked_more_than_once():
    theirs = jax.random.split(jax.random.key(1), 3)
    ours = da.random.split(jax.random.key(1), 3)
    assert (ours.shape, ours.dtype, len(ours), jax.typeof(ours)) == (
        theirs.shape, theirs.dtype, 3, jax.typeof(theirs)
    )  # fmt: skip
    first, second = list(ours), list(reversed(ours))[::-1]
    assert_agree([first, second, ours], [list(theirs)] * 2 + [theirs])
    assert_agree(jax.vmap(jax.random.normal)(ours), jax.vmap(jax.random.normal)(theirs))
    assert_agree(ours[1:], theirs[1:])
