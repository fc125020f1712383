"""x[i] in all its forms, arrays as indices, x.at[i], iteration."""

from __future__ import annotations

import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.cases._data import (
    EIGHT,
    MATRIX,
    VECTOR,
    f32,
    i32,
    indices,
    on_device,
    sharded,
    sharded_over_8,
)
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case
def getitem_forms(make):
    return [
        make(MATRIX)[1],
        make(MATRIX)[-1],
        make(MATRIX)[1:],
        make(MATRIX)[:, 1],
        make(MATRIX)[None],
        make(MATRIX)[..., 0],
        make(MATRIX)[True],
        make(MATRIX)[np.int64(1)],
    ]


@case
def getitem_more_forms(make):
    matrix = make(MATRIX)
    return [
        matrix[()],
        matrix[...],
        matrix[:],
        matrix[1, 2],
        matrix[1][2],
        matrix[::-1],
        matrix[0:0],
        matrix[::2, 1:3],
        matrix[5:9],
        matrix[False],
        matrix[None, 1, None],
        matrix[[0, 2], [1, 3]],
        matrix[np.array([0, 2])],
        matrix[np.array([True, False, True])],
        matrix[MATRIX > 3],
        matrix[jnp.asarray(1)],
        matrix[np.uint8(2)],
        matrix[slice(np.int32(0), np.int32(2))],
        matrix[[True, False, True], 1],
        attempt(operator.getitem, matrix, [0, 2]),
    ]


@case
def getitem_integer_like(make):
    class Index:
        def __index__(self):
            return 1

    matrix = make(MATRIX)
    return attempt(lambda: matrix[Index()]), matrix[np.array(1)], matrix[True, 1]


@case
def getitem_every_row(make):
    matrix = make(MATRIX)
    return [matrix[index] for index in range(-3, 3)]


@case
def getitem_committed(make):
    return make(on_device(MATRIX, 1))[1], make(on_device(MATRIX, 1))[1:]


@case
def getitem_weak(make):
    weak = make(jax.lax.broadcast(jnp.asarray(1.0), (3,)))
    return weak, weak[1], weak[1:], weak[np.array([0, 1])]


@case
def getitem_zero_size(make):
    empty = make(np.zeros((0, 3), np.float32))
    return empty[:, 1], empty[1:], attempt(operator.getitem, empty, 0)


@case
def getitem_every_dtype(make):
    rows = []
    for dtype in (bool, jnp.int8, jnp.uint8, jnp.uint32, jnp.float16, jnp.bfloat16, jnp.complex64):
        rows.append(make(jnp.arange(3).astype(dtype))[1])
    return rows


@case
def getitem_oob(make):
    return make(MATRIX)[7]


@case
def getitem_neg_oob(make):
    return make(MATRIX)[-7]


@case(raises=TypeError)
def getitem_float(make):
    return make(MATRIX)[1.5]


@case(raises=TypeError)
def getitem_str(make):
    return make(MATRIX)["a"]


@case(raises=IndexError)
def getitem_0d(make):
    return make(f32(1))[0]


@case
def getitem_errors(make):
    matrix = make(MATRIX)
    return [
        attempt(operator.getitem, matrix, index)
        for index in (
            (0, 0, 0),
            (..., ...),
            object(),
            np.array([1.0]),
            np.array(["a"]),
            [True, False],
            {"a": 1},
            1j,
            slice(None, 1.5),
        )
    ]


@case
def getitem_in_jit(make):
    matrix = make(MATRIX)
    return jax.jit(lambda i: matrix[i])(i32(1)), jax.jit(lambda m: m[1])(matrix)


@case
def take_idx(make):
    return jnp.asarray(MATRIX)[make(np.array([0, 2]))]


@case
def idx_scalar(make):
    return jnp.asarray(MATRIX)[make(i32(1))]


@case
def idx_bool(make):
    return jnp.asarray(MATRIX)[make(np.array([True, False, True]))]


@case
def idx_by_own_kind(make):
    matrix = make(MATRIX)
    return [
        matrix[make(i32(1))],
        matrix[make(i32(-1))],
        matrix[make(i32(7))],
        matrix[make(indices(0, 2))],
        matrix[make(MATRIX > 3)],
        matrix[make(i32(0)), make(i32(1))],
        matrix[make(indices(0, 1)), make(indices(2, 3))],
        matrix[make(i32(0)) : make(i32(2))],
        matrix[:, make(indices(0, 2))],
        matrix[make(np.uint8(1))],
        matrix[make(np.bool_(True))],
    ]


@case
def idx_by_own_kind_errors(make):
    matrix = make(MATRIX)
    return [
        attempt(operator.getitem, matrix, make(f32(1))),
        attempt(operator.getitem, matrix, slice(make(f32(1)))),
        attempt(operator.getitem, matrix, make(np.ones(5, bool))),
        attempt(operator.getitem, matrix, slice(make(VECTOR))),
    ]


@case
def idx_tuple_mixed(make):
    return jnp.asarray(MATRIX)[make(i32(1)), 1:], jnp.asarray(MATRIX)[..., make(indices(0, 2))]


@case
def list_idx(make):
    return [10, 20, 30][make(i32(1))]


@case
def list_idx_errors(make):
    numbers = [10, 20, 30]
    return [
        attempt(operator.getitem, numbers, make(f32(1))),
        attempt(operator.getitem, numbers, make(indices(1))),
        attempt(operator.getitem, numbers, make(np.bool_(True))),
        attempt(operator.getitem, numbers, make(i32(9))),
    ]


@case
def slice_idx(make):
    return list(range(10))[make(i32(1)) : make(i32(4))]


@case
def jnp_slice_idx(make):
    return jnp.asarray(VECTOR)[make(i32(1)) : 3]


@case(name="range")
def range_of_array(make):
    return list(range(make(i32(3))))


@case
def sequence_repeat(make):
    return [1] * 2, attempt(operator.mul, "ab", make(i32(2)))


@case(raises=TypeError)
def setitem(make):
    operator.setitem(make(VECTOR), 0, 1)


@case
def setitem_and_delitem_errors(make):
    vector = make(VECTOR)
    return [
        attempt(operator.setitem, vector, slice(None), 1),
        attempt(operator.delitem, vector, 0),
    ]


@case
def at_set(make):
    return make(MATRIX).at[0].set(make(VECTOR))


@case
def at_add_idx(make):
    return jnp.zeros(4).at[make(np.array([1, 2]))].add(make(f32(1)))


@case
def at_every_method(make):
    vector, index, value = make(VECTOR), make(indices(1, 1)), make(f32(3))
    return [
        vector.at[index].set(value),
        vector.at[index].add(value),
        vector.at[index].subtract(value),
        vector.at[index].multiply(value),
        vector.at[index].mul(value),
        vector.at[index].divide(value),
        vector.at[index].power(value),
        vector.at[index].min(value),
        vector.at[index].max(value),
        vector.at[index].apply(jnp.sin),
        vector.at[index].get(),
    ]


@case
def at_modes(make):
    vector = make(VECTOR)
    far = make(indices(9))
    return [
        vector.at[9].get(mode="fill", fill_value=-1),
        attempt(vector.at[9].get, mode="fill", fill_value=make(f32(-1))),
        vector.at[9].get(mode="fill"),
        vector.at[9].get(mode="clip"),
        attempt(vector.at[9].get, mode="wrap"),
        vector.at[far].set(1.0, mode="drop"),
        vector.at[far].set(1.0, mode="clip"),
        vector.at[far].add(1.0, mode="fill"),
        attempt(vector.at[0].get, mode="nonsense"),
    ]


@case
def at_keywords(make):
    vector = make(VECTOR)
    return [
        vector.at[make(indices(0, 2))].add(1.0, indices_are_sorted=True, unique_indices=True),
        vector.at[1:3].get(indices_are_sorted=True),
    ]


@case
def at_forms(make):
    matrix = make(MATRIX)
    return [
        matrix.at[1, 2].set(9),
        matrix.at[:, 1].set(make(f32(9))),
        matrix.at[..., 0].add(1),
        matrix.at[MATRIX > 3].set(0),
        matrix.at[make(MATRIX > 3)].multiply(2),
        matrix.at[()].set(1),
        matrix.at[np.array([0, 2])].set(make(VECTOR)),
    ]


@case
def at_value_promotion(make):
    return [
        make(indices(1, 2)).at[0].set(3),
        make(indices(1, 2)).at[0].set(make(f32(3))),
        make(VECTOR.astype(np.float16)).at[0].add(make(f32(1))),
        make(jnp.asarray(VECTOR, jnp.bfloat16)).at[0].add(1),
        make(VECTOR).at[0].set(make(jnp.asarray(1.0))),
    ]


@case
def at_errors(make):
    vector = make(VECTOR)
    return [
        attempt(vector.at[0].set, make(MATRIX)),
        attempt(vector.at[0].set, "a"),
        attempt(lambda: vector.at["a"].set(1)),
        attempt(lambda: vector.at[0, 0].set(1)),
    ]


@case
def at_helper_names(make):
    # The names of the helper classes show in these messages.
    vector = make(VECTOR)
    return attempt(lambda: vector.at(0)), attempt(lambda: vector.at[0] + 1)


@case
def at_in_jit(make):
    table = make(MATRIX)
    return jax.jit(lambda i, row: table.at[i].set(row))(make(i32(1)), make(VECTOR))


@case
def at_repr(make):
    text = repr(make(VECTOR).at[1])
    return text.replace("DeviceArray(", "Array(")


@case
def at_leaves_original(make):
    vector = make(VECTOR)
    changed = vector.at[0].set(9)
    return vector, changed


@case
def at_sharded(make):
    vector = make(jax.device_put(EIGHT, sharded("a")))
    return vector.at[3].set(9), vector.at[1:3].add(1)


@case
def at_committed(make):
    return make(on_device(VECTOR, 1)).at[0].set(1)


@case(name="iter")
def iterate(make):
    return list(make(MATRIX))


@case
def iterate_vector(make):
    return list(make(VECTOR)), list(make(indices(1, 2)))


@case
def iterate_long(make):
    # More rows than JAX's chunk of 100.
    total = list(make(np.arange(250, dtype=np.float32)))
    return total[0], total[99], total[100], total[249], len(total)


@case
def iterate_weak(make):
    return list(make(jax.lax.broadcast(jnp.asarray(1.0), (3,))))


@case
def iterate_zero_rows(make):
    return list(make(np.zeros((0, 3), np.float32))), list(make(np.zeros((2, 0), np.float32)))


@case
def iterate_committed(make):
    return list(make(on_device(MATRIX, 1)))


@case
def iterate_twice_and_partly(make):
    matrix = make(MATRIX)
    first = iter(matrix)
    second = iter(matrix)
    return next(first), next(first), next(second), list(first), list(second), next(first, None)


@case
def iterator_protocol(make):
    rows = iter(make(MATRIX))
    return iter(rows) is rows, hasattr(rows, "__len__"), hasattr(rows, "__next__")


@case(name="reversed")
def reverse(make):
    return list(reversed(make(MATRIX)))


@case
def reversed_0d(make):
    return attempt(reversed, make(f32(1)))


@case
def unpack(make):
    first, _, last = make(MATRIX)
    return first, last


@case
def unpack_star(make):
    first, *rest = make(VECTOR)
    return first, rest


@case
def unpack_errors(make):
    def too_many():
        first, second = make(MATRIX)
        return first, second

    def too_few():
        a, b, c, d = make(MATRIX)
        return a, b, c, d

    return attempt(too_many), attempt(too_few)


@case
def jnp_copyto_iter(make):
    return dict(zip("abc", make(VECTOR), strict=False))["b"]


@case
def python_builtins_iterate(make):
    vector = make(VECTOR)
    return [
        list(enumerate(vector)),
        list(zip(vector, make(VECTOR), strict=True)),
        list(map(float, vector)),
        sorted(make(np.array([2, 0, 1], np.float32))),
        [*vector],
        tuple(vector),
        max(vector),
        min(vector),
        any(vector),
        all(vector),
        list(filter(None, vector)),
        list(itertools.islice(vector, 2)),
        list(itertools.chain.from_iterable(make(MATRIX[:, :2]))),
    ]


@case
def sorted_min_max_sum(make):
    return sum([make(VECTOR), make(VECTOR)]), max(make(f32(1)), make(f32(2)))


@case
def sum_rows(make):
    return sum(make(MATRIX)), sum(make(VECTOR))


@case(raises=TypeError)
def len0(make):
    return len(make(f32(1)))


@case(name="len")
def length(make):
    return [len(make(value)) for value in (VECTOR, MATRIX, np.zeros((0, 3)), np.zeros((2, 0)))]


@case(raises=TypeError)
def iter0(make):
    return iter(make(f32(1)))


@case(name="in")
def contains(make):
    return make(f32(1)) in make(VECTOR), 1.0 in make(VECTOR)


@case
def contains_more(make):
    vector = make(VECTOR)
    return [
        7.0 in vector,
        make(f32(7)) in vector,
        attempt(operator.contains, vector, "a"),
        attempt(operator.contains, make(f32(1)), 1.0),
        attempt(operator.contains, make(MATRIX), VECTOR),
        attempt(operator.contains, [make(VECTOR)], make(VECTOR + 1)),
    ]


@case
def sharded_idx(make):
    return make(jax.device_put(EIGHT.repeat(2).reshape(8, 2), sharded("a")))[3]


@case
def sharded_idx_over_8(make):
    x = make(jax.device_put(EIGHT.repeat(4).reshape(8, 4), sharded_over_8("a", "b")))
    return x[3], x[-1], x[2:4], x[:, 1], x[1, 2], x[np.array([0, 5])]


@case
def sharded_iter(make):
    return list(make(jax.device_put(EIGHT.repeat(2).reshape(8, 2), sharded("a"))))


@case
def sharded_iter_axis_1(make):
    return list(make(jax.device_put(EIGHT.reshape(2, 4), sharded(None, "a"))))


@case
def replicated_iter(make):
    return list(make(jax.device_put(MATRIX, sharded())))
