"""The historical strategies: what their rows are, and what each compiles, dispatches and waits for.

All claims are read from recordings. Chunks are short here, so that compiles are quick and no more
than 31 dispatches stand behind a gate.
"""

import dataclasses
import itertools
import math
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import devicearray as da
from devicearray._iteration import STRATEGIES, iterate
from tests.comparison import assert_agree, assert_device_arrays
from tests.conformance.harness import describe, differences
from tests.eight_devices import on_eight, on_explicit, uncommitted_elsewhere

CHUNK = 4
THROUGH_NUMPY = ("host", "device_put")
ON_DEVICE = ("per_row", "chunked", "fused_chunks")
#: Those whose elements are plain arrays and lie where `x[i]` does.
PLAIN_ROWS = ("device_put", *ON_DEVICE)


NUMBERS = {
    "float32": lambda: jnp.arange(10.0),
    "matrix": lambda: jnp.arange(30.0).reshape(10, 3),
    "as long as two chunks": lambda: jnp.arange(8),
    "shorter than a chunk": lambda: jnp.arange(3),
    "one row": lambda: jnp.ones((1, 2)),
    "no rows": lambda: jnp.zeros((0, 3)),
    "rows of nothing": lambda: jnp.zeros((3, 0)),
    "bool": lambda: jnp.arange(6) > 3,
    "complex64": lambda: jnp.arange(6.0).reshape(3, 2) * 1j,
    "bfloat16": lambda: jnp.arange(14, dtype=jnp.bfloat16).reshape(7, 2),
    "int4": lambda: jnp.arange(7).astype(jnp.int4),
    "committed": lambda: jax.device_put(jnp.arange(7.0), jax.devices()[3]),
    "split on axis 0": lambda: on_eight(jnp.arange(16.0), "i"),
    "matrix split on axis 0": lambda: on_eight(jnp.arange(32.0).reshape(16, 2), "i"),
    "split on axis 1": lambda: on_eight(jnp.arange(40.0).reshape(5, 8), None, "i"),
    "replicated": lambda: on_eight(jnp.arange(10.0).reshape(5, 2)),
    "explicit, split on axis 1": lambda: on_explicit(jnp.ones((5, 8)), None, "i"),
    "explicit, replicated": lambda: on_explicit(jnp.ones((5, 2))),
}
#: No NumPy array is one of these, or moves to the device alone.
OTHERS = {
    "weakly typed": lambda: jnp.full(5, 1.5),
    "uncommitted elsewhere": uncommitted_elsewhere,
    "keys": lambda: jax.random.split(jax.random.key(0), 7),
    "matrix of keys": lambda: jax.random.split(jax.random.key(0), (5, 2)),
    "keys split on axis 0": lambda: on_eight(jax.random.split(jax.random.key(0), 16), "i"),
}
KINDS = NUMBERS | OTHERS


def recorded(x, strategy):
    with da.record() as log:
        log.rows = list(iterate(x, strategy, chunk=CHUNK))
    return log


def chunks_of(x):
    return math.ceil(len(x) / CHUNK)


# The rows.


@pytest.mark.parametrize("make", [lambda x: x, da.asarray], ids=["plain", "ours"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", ON_DEVICE)
def test_a_row_of_a_device_strategy_is_the_element_by_index(strategy, kind, make):
    x = KINDS[kind]()
    rows = list(iterate(make(x), strategy, chunk=CHUNK))
    assert_agree(rows, [x[i] for i in range(len(x))])
    assert not any(isinstance(row, da.DeviceArray) for row in rows)


def same_place(facts):
    """Return `facts` with the shardings spelled in one way: P(None) is P()."""
    return {
        path: value.update(spec=P(*(axis for axis in value.spec if axis)))
        if isinstance(value, NamedSharding)
        else value
        for path, value in facts.items()
    }


@pytest.mark.parametrize("kind", [*NUMBERS, "uncommitted elsewhere"])
def test_a_row_that_was_put_back_is_the_element_by_index(kind):
    x = KINDS[kind]()
    rows = list(iterate(x, "device_put"))
    wanted = describe([x[i] for i in range(len(x))])
    assert differences(same_place(wanted), same_place(describe(rows))) == []
    assert not any(isinstance(row, da.DeviceArray) for row in rows)


def test_a_row_that_was_put_back_has_no_weak_type():
    x = OTHERS["weakly typed"]()
    rows = list(iterate(x, "device_put"))
    assert [row.weak_type for row in rows] == [False] * 5
    assert x[0].weak_type
    assert_agree(rows, list(x.astype(np.float32)))


@pytest.mark.parametrize("kind", NUMBERS)
def test_the_rows_of_a_host_copy_are_numpys(kind):
    x = NUMBERS[kind]()
    rows = list(iterate(x, "host"))
    assert all(isinstance(row, np.ndarray | np.generic) for row in rows)
    assert_agree(rows, list(np.asarray(x)))


@pytest.mark.parametrize("kind", KINDS)
def test_jaxs_own_iteration_is_that_of_the_plain_array(kind):
    x = KINDS[kind]()
    for array in (x, da.asarray(x)):
        rows = list(iterate(array, "jax"))
        assert_agree(rows, list(x))
        assert not any(isinstance(row, da.DeviceArray) for row in rows)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_a_device_array(kind):
    x = KINDS[kind]()
    rows = list(iterate(x, "rows"))
    assert_device_arrays(rows)
    assert all(isinstance(row, da.DeviceArray) for row in rows)
    assert_agree(rows, [x[i] for i in range(len(x))])
    assert_agree(rows, list(iterate(x)))


@pytest.mark.parametrize("strategy", ["per_row", "chunked", "fused_chunks"])
def test_where_an_explicit_axis_splits_the_rows_their_programs_raise(strategy):
    x = on_explicit(jnp.ones((16, 2)), "i")
    for take in (lambda: x[0], lambda: next(iterate(x, strategy, chunk=CHUNK))):
        with pytest.raises(Exception, match="shard") as caught:
            take()
        assert caught.type.__name__ == "ShardingTypeError"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_no_array_yet_is_made_one(strategy):
    rows = list(iterate([[1, 2], [3, 4]], strategy))
    np.testing.assert_array_equal(rows, [[1, 2], [3, 4]])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_iterators_of_one_array_do_not_disturb_each_other(strategy):
    x = jnp.arange(10.0)
    first = iterate(x, strategy, chunk=CHUNK)
    head = [next(first) for _ in range(3)]
    pairs = list(zip(first, iterate(x, strategy, chunk=3), strict=False))
    assert [float(row) for row in head] == [0, 1, 2]
    assert [(float(a), float(b)) for a, b in pairs] == [(i + 3, i) for i in range(7)]


@pytest.mark.parametrize("chunk", [1, 2, 5, 10, 11, np.int32(3)])
@pytest.mark.parametrize("strategy", ["chunked", "fused_chunks"])
def test_the_length_of_a_chunk_does_not_change_the_rows(strategy, chunk):
    x = jnp.arange(20.0).reshape(10, 2)
    assert_agree(list(iterate(x, strategy, chunk=chunk)), list(x))


# What they wait for, and when.


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("strategy", THROUGH_NUMPY)
def test_through_numpy_is_one_host_sync(strategy, kind):
    (sync,) = recorded(NUMBERS[kind](), strategy).syncs
    assert sync.trigger == "iterate"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", ON_DEVICE)
def test_on_the_device_there_is_no_host_sync(strategy, kind):
    assert recorded(KINDS[kind](), strategy).syncs == ()


@pytest.mark.parametrize("strategy", THROUGH_NUMPY)
def test_through_numpy_the_call_waits_for_a_pending_array(strategy):
    x = jnp.arange(10.0)
    gate = da.Gate()
    with da.record(on_wait=gate.open) as log:
        held = gate(x)
        assert not gate.is_open
        iterator = iterate(held, strategy)
        assert gate.is_open
        rows = list(iterator)
    (sync,) = log.syncs
    assert sync.was_ready is False
    assert [float(row) for row in rows] == list(range(10))


@pytest.mark.parametrize("strategy", [*ON_DEVICE, "jax", "rows"])
@pytest.mark.parametrize("make", [jnp.arange, lambda n: da.asarray(jnp.arange(n))])
def test_on_the_device_nothing_waits_for_a_pending_array(strategy, make):
    x = make(10)
    gate = da.Gate()
    with da.record(on_wait=gate.open) as log:
        rows = list(iterate(gate(x), strategy, chunk=CHUNK))
        assert len(rows) == 10
        assert not gate.is_open
        assert not any(row.is_ready() for row in rows)
    assert log.syncs == ()
    gate.open()
    assert_agree(rows, [x[i] for i in range(10)])


@pytest.mark.parametrize("strategy", ON_DEVICE)
def test_a_program_is_dispatched_when_the_iterator_gets_there(strategy):
    x = jnp.arange(10)
    list(iterate(x, strategy, chunk=CHUNK))
    taken, seen = 0, []
    with da.record() as log:
        iterator = iterate(x, strategy, chunk=CHUNK)
        seen.append(len(log.dispatches))
        for _ in iterator:
            taken += 1
            seen.append(len(log.dispatches))
    each = {"per_row": 1, "chunked": 2, "fused_chunks": 1}[strategy]
    rows = 1 if strategy == "per_row" else CHUNK
    assert seen == [each * math.ceil(n / rows) for n in range(11)]


# What they transfer.


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("strategy", ["host", *PLAIN_ROWS])
def test_transfers_are_as_stated(strategy, kind):
    x = NUMBERS[kind]()
    log = recorded(x, strategy)
    number = {"host": 0, "device_put": len(x)}.get(strategy, 1)
    devices = len(x.sharding.device_set)
    moved = [(transfer.direction, transfer.arrays) for transfer in log.transfers]
    assert moved == [("host to device", devices)] * number
    assert not any(dispatch.host_arguments for dispatch in log.dispatches)


@pytest.mark.parametrize("kind", ["matrix", "keys", "committed", "replicated", "split on axis 0"])
@pytest.mark.parametrize("strategy", ON_DEVICE)
def test_nothing_is_transferred_implicitly(strategy, kind):
    x = KINDS[kind]()
    for _ in range(2):
        with jax.transfer_guard("disallow"):
            rows = list(iterate(x, strategy, chunk=CHUNK))
    assert len(rows) == len(x)


# Tracers, and errors.


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_inside_a_trace_it_is_jaxs_own_iteration(strategy):
    def unpacked(x, iteration):
        return [row * (i + 1) for i, row in enumerate(iteration(x))]

    x = jnp.arange(6.0).reshape(3, 2)
    ours = jax.make_jaxpr(lambda x: unpacked(x, lambda x: iterate(x, strategy)))(x)
    assert str(ours) == str(jax.make_jaxpr(lambda x: unpacked(x, iter))(x))
    slope = jax.grad(
        lambda x: sum(row.sum() for row in unpacked(x, lambda x: iterate(x, strategy)))
    )
    np.testing.assert_array_equal(slope(x), [[1, 1], [2, 2], [3, 3]])


@pytest.mark.parametrize("make", [lambda x: x, da.asarray], ids=["plain", "ours"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_0_d_array_is_refused_at_once_in_jaxs_words(strategy, make):
    scalar = make(jnp.float32(1))
    with pytest.raises(TypeError) as theirs:
        iter(jnp.float32(1))
    with pytest.raises(TypeError) as ours:
        iterate(scalar, strategy)
    assert str(ours.value) == str(theirs.value)
    assert any("reshape" in note for note in ours.value.__notes__)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_deleted_array_is_jaxs_error(strategy):
    x = jnp.arange(10.0) + 1
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        list(iterate(x, strategy))


@pytest.mark.parametrize("kind", ["keys", "matrix of keys", "keys split on axis 0"])
@pytest.mark.parametrize("strategy", THROUGH_NUMPY)
def test_keys_have_no_numpy_copy_and_the_error_says_what_to_do(strategy, kind):
    x = KINDS[kind]()
    with pytest.raises(
        TypeError, match=rf"'{strategy}' .* typed keys .*key_data\(x\), or .*'rows'"
    ):
        iterate(x, strategy)
    data = jax.random.key_data(x)
    np.testing.assert_array_equal(list(iterate(data, strategy)), data)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("chunk", [True, 2.0, "4", None, np.float32(3), np.True_, jnp.int32(4)])
def test_a_chunk_that_is_no_number_of_rows_is_a_type_error(strategy, chunk):
    with pytest.raises(TypeError, match=f"chunk is a number of rows.*{type(chunk).__name__}"):
        iterate(jnp.arange(3), strategy, chunk=chunk)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("chunk", [0, -1, np.int64(-100)])
def test_a_chunk_of_no_rows_is_a_value_error(strategy, chunk):
    with pytest.raises(ValueError, match=rf"at least 1 row, not {chunk}"):
        iterate(jnp.arange(3), strategy, chunk=chunk)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("chunks", "Did you mean 'chunked'?"),
        ("Rows", "Did you mean 'rows'?"),
        ("fused", "Did you mean 'fused_chunks'?"),
        ("device-put", "Did you mean 'device_put'?"),
        (50, "Did you mean chunk=50?"),
    ],
)
def test_an_unknown_strategy_is_refused_with_the_names_and_the_nearest(name, hint):
    with pytest.raises(ValueError, match="there is no strategy") as caught:
        iterate(jnp.arange(3), name)
    message = str(caught.value)
    assert repr(name) in message
    assert ", ".join(STRATEGIES) in message
    assert message.endswith(hint)


@pytest.mark.parametrize("name", ["", "zzzz", None, ["rows"], ("rows",)])
def test_an_unknown_strategy_that_is_like_no_other_gets_no_guess(name):
    with pytest.raises(ValueError, match="there is no strategy") as caught:
        iterate(jnp.arange(3), name)
    assert str(caught.value).endswith("rows.")


# What they compile and dispatch.


def stated_programs(strategy, rows):
    """Return what the strategy dispatches: of each program its name, outputs and chunk length."""
    full, rest = divmod(rows, CHUNK)
    lengths = [CHUNK] * full + [rest] * bool(rest)
    if strategy == "per_row":
        return [("row", 2, 1)] * rows
    if strategy == "fused_chunks":
        return [("chunk_of_rows", length + 1, length) for length in lengths]
    pairs = ((("slice_chunk", 2, n), ("unstack_chunk", n, n)) for n in lengths)
    return [*itertools.chain.from_iterable(pairs)]


PLACES = {
    "on one device": lambda n: jnp.arange(float(n)),
    "keys": lambda n: jax.random.split(jax.random.key(0), n),
    "replicated": lambda n: on_eight(jnp.ones((n, 2))),
    "split on axis 1": lambda n: on_eight(jnp.ones((n, 8)), None, "i"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rows", [0, 3, 8, 10])
@pytest.mark.parametrize("strategy", ON_DEVICE)
def test_dispatches_and_compiles_are_as_stated(strategy, rows, place):
    x = PLACES[place](rows)
    jax.clear_caches()
    cold, warm = recorded(x, strategy), recorded(x, strategy)
    stated = stated_programs(strategy, rows)
    for log in (cold, warm):
        assert [dispatch.name for dispatch in log.dispatches] == [name for name, *_ in stated]
    compiled = [(one.name, one.outputs) for one in cold.compiles]
    assert compiled == [(name, outputs) for name, outputs, _ in dict.fromkeys(stated)]
    assert warm.compiles == ()


@pytest.mark.parametrize(
    ("strategy", "dispatches", "compiles", "outputs"),
    [
        ("per_row", lambda n: n, 1, 2),
        ("chunked", lambda n: 2 * math.ceil(n / CHUNK), 4, CHUNK),
        ("fused_chunks", lambda n: math.ceil(n / CHUNK), 2, CHUNK + 1),
    ],
)
def test_a_longer_array_costs_dispatches_in_proportion_and_no_more_compiles(
    strategy, dispatches, compiles, outputs
):
    for n in (10, 102, 1002):
        x = jnp.zeros(n)
        jax.clear_caches()
        log = recorded(x, strategy)
        assert len(log.dispatches) == dispatches(n)
        assert len(log.compiles) == compiles
        assert max(one.outputs for one in log.compiles) == outputs


@pytest.mark.parametrize("strategy", THROUGH_NUMPY)
def test_through_numpy_nothing_is_compiled_or_dispatched(strategy):
    arrays = [make() for make in NUMBERS.values()]
    jax.clear_caches()
    for x in arrays:
        log = recorded(x, strategy)
        assert log.compiles == log.dispatches == ()


def test_jax_dispatches_what_it_does_for_the_plain_array():
    x = jnp.arange(250.0)
    with da.record() as plain:
        list(x)
    with da.record() as log:
        list(iterate(x, "jax"))
    assert log.dispatches
    names = [dispatch.name for dispatch in log.dispatches]
    assert names == [dispatch.name for dispatch in plain.dispatches]


@pytest.mark.parametrize("kind", KINDS)
def test_taking_rows_dispatches_compiles_transfers_and_waits_for_nothing(kind):
    x = KINDS[kind]()
    jax.clear_caches()
    log = recorded(x, "rows")
    assert len(log.rows) == len(x)
    assert log.events == ()


# The list of them.


def test_the_strategies_are_in_the_order_of_their_years():
    assert list(STRATEGIES) == [
        "per_row",
        "host",
        "device_put",
        "chunked",
        "jax",
        "fused_chunks",
        "rows",
    ]
    years = [re.search(r"\d{4}", one.years)[0] for one in STRATEGIES.values()]
    assert years == sorted(years)


def test_a_strategy_says_what_it_is_and_cannot_be_changed():
    assert isinstance(STRATEGIES, types.MappingProxyType)
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name
        assert strategy.summary
        assert all(reference.startswith("jax#") for reference in strategy.references)
        assert f'``"{name}"``' in iterate.__doc__
        with pytest.raises(dataclasses.FrozenInstanceError):
            strategy.name = "another"


def test_jax_may_be_cleared_between_two_elements():
    x = jnp.arange(10.0)
    for strategy in ON_DEVICE:
        iterator = iterate(x, strategy, chunk=CHUNK)
        head = [next(iterator) for _ in range(3)]
        jax.clear_caches()
        assert_agree([*head, *iterator], list(x))
