"""The methods and attributes of an array."""

from __future__ import annotations

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
def astype_same(make):
    return make(VECTOR).astype("float32")


@case
def astype_more(make):
    vector = make(VECTOR)
    return [
        vector.astype(np.int8),
        vector.astype(bool),
        vector.astype(jnp.bfloat16),
        vector.astype(complex),
        vector.astype(int),
        vector.astype(None),
        vector.astype(jnp.float16, copy=True),
        vector.astype(np.float32, device=sharded("a")),
        make(jnp.asarray(1.0)).astype(np.float32),
        make(np.array([1 + 2j], np.complex64)).astype(np.float32),
        attempt(vector.astype, "nonsense"),
        attempt(vector.astype, jax.random.key(0).dtype),
    ]


@case(name="T1d")
def transpose_1d(make):
    return make(VECTOR).T


@case(name="T2d")
def transpose_2d(make):
    return make(MATRIX).T


@case
def matrix_transpose(make):
    return make(MATRIX).mT, attempt(lambda: make(VECTOR).mT)


@case
def reshape_same(make):
    return make(VECTOR).reshape(4)


@case
def reshape_more(make):
    matrix = make(MATRIX)
    return [
        matrix.reshape(4, 3),
        matrix.reshape((2, -1)),
        matrix.reshape(-1),
        matrix.reshape(4, 3, order="F"),
        matrix.reshape(make(i32(12))),
        make(f32(1)).reshape(()),
        attempt(matrix.reshape, 5, 5),
        attempt(matrix.reshape, -1, -1),
        attempt(matrix.reshape, 4, 3, order="A"),
        attempt(matrix.reshape),
    ]


@case
def real(make):
    return make(VECTOR).real


@case
def real_imag_conj(make):
    values = make(np.array([1 + 2j, 3 - 4j], np.complex64))
    vector = make(VECTOR)
    return [
        values.real,
        values.imag,
        values.conj(),
        values.conjugate(),
        vector.imag,
        vector.conj(),
    ]


@case
def ravel_same(make):
    return make(VECTOR).ravel()


@case
def ravel_more(make):
    matrix = make(MATRIX)
    return matrix.ravel(), matrix.ravel(order="F"), matrix.flatten(), make(f32(1)).ravel()


@case(name="copy_m")
def copy_method(make):
    return make(VECTOR).copy()


@case
def copy_is_independent(make):
    original = make(jnp.array(VECTOR))
    copied = original.copy()
    original.delete()
    return copied


@case
def clone_method(make):
    return attempt(make(VECTOR).clone)


@case
def reductions_of_a_matrix(make):
    matrix = make(MATRIX)
    names = ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "ptp"]
    names += ["argmax", "argmin", "cumsum", "cumprod"]
    results = {}
    for name in names:
        method = getattr(matrix, name)
        results[name] = [method(), method(axis=1), attempt(method, axis=5)]
    return results


@case
def reductions_with_keywords(make):
    matrix, keep = make(MATRIX), make(MATRIX > 3)
    return [
        matrix.sum(axis=0, keepdims=True),
        matrix.sum(axis=(0, 1)),
        matrix.sum(where=keep),
        matrix.sum(initial=make(f32(5))),
        matrix.sum(dtype=np.int32),
        matrix.sum(promote_integers=False),
        matrix.max(where=keep, initial=-1),
        matrix.min(axis=-1, where=keep, initial=np.inf),
        matrix.mean(axis=1, where=keep),
        matrix.std(ddof=1),
        matrix.var(axis=0, ddof=1, keepdims=True),
        matrix.prod(0),
        matrix.any(where=keep),
        matrix.argmax(axis=1, keepdims=True),
        matrix.cumsum(axis=1, dtype=np.float16),
        attempt(matrix.max, where=keep),
        attempt(matrix.sum, out=matrix),
        attempt(matrix.sum, nonsense=1),
        attempt(matrix.sum, axis=make(i32(0))),
    ]


@case
def reductions_of_other_dtypes(make):
    return [
        make(indices(1, 2)).sum(),
        make(np.array([1, 2], np.int8)).sum(),
        make(VECTOR > 1).sum(),
        make(VECTOR > 1).mean(),
        make(jnp.asarray(VECTOR, jnp.bfloat16)).mean(),
        make(VECTOR.astype(np.float16)).sum(),
        make(np.array([1 + 1j], np.complex64)).prod(),
        make(np.zeros((0,), np.float32)).sum(),
        attempt(make(np.zeros((0,), np.float32)).max),
        attempt(make(np.zeros((0,), np.float32)).argmax),
        make(f32(3)).sum(),
    ]


@case
def sort_methods(make):
    matrix = make(-MATRIX)
    return [
        matrix.sort(),
        matrix.sort(axis=0),
        matrix.sort(descending=True),
        matrix.sort(stable=True),
        matrix.argsort(axis=-1),
        matrix.argsort(descending=True),
        matrix.argpartition(1),
        make(VECTOR).searchsorted(make(f32(1.5))),
        make(VECTOR).searchsorted(make(VECTOR), side="right"),
        attempt(matrix.sort, axis=4),
    ]


@case
def clip_method(make):
    vector = make(VECTOR)
    return [
        vector.clip(1, 2),
        vector.clip(min=1),
        vector.clip(max=make(f32(2))),
        vector.clip(make(f32(1)), make(f32(2))),
        vector.clip(),
    ]


@case
def take_and_choose(make):
    matrix = make(MATRIX)
    return [
        matrix.take(make(indices(0, 5))),
        matrix.take(make(indices(0, 2)), axis=0),
        matrix.take(np.array([7]), axis=0, mode="clip"),
        matrix.take(make(indices(7)), axis=0, mode="fill", fill_value=0),
        matrix.take(1),
        make(indices(0, 1)).choose([make(VECTOR[:2]), make(VECTOR[2:])]),
        matrix.compress(np.array([True, False, True]), axis=0),
        attempt(matrix.take, make(f32(1))),
        attempt(matrix.take, make(indices(0)), mode="raise"),
    ]


@case
def shape_methods(make):
    matrix = make(MATRIX)
    return [
        matrix.transpose(),
        matrix.transpose(1, 0),
        matrix.transpose((1, 0)),
        matrix.swapaxes(0, 1),
        matrix[None].squeeze(),
        matrix[None].squeeze(0),
        matrix.repeat(2, axis=1),
        matrix.repeat(make(indices(1, 0, 2)), axis=0),
        matrix.diagonal(),
        matrix.diagonal(offset=1),
        matrix.trace(),
        matrix.trace(offset=1, dtype=np.int32),
        matrix.nonzero(),
        matrix.nonzero(size=2),
        matrix.round(1),
        matrix.dot(make(VECTOR)),
        matrix.dot(VECTOR, precision="highest"),
        attempt(matrix.squeeze, 0),
        attempt(matrix.transpose, 0, 0),
        attempt(matrix.swapaxes, 0, 9),
    ]


@case
def view_method(make):
    vector = make(VECTOR)
    return [
        vector.view(np.int32),
        vector.view("uint32"),
        vector.view(jnp.int8),
        vector.view(),
        make(np.array([1, 2], np.int8)).view(np.uint8),
        make(VECTOR > 1).view(np.uint8),
        make(np.array([1 + 2j], np.complex64)).view(np.float32),
        attempt(make(f32(1)).view, np.int8),
        attempt(vector.view, type=np.ndarray),
    ]


@case
def byteswap_method(make):
    return make(VECTOR).byteswap(), attempt(make(VECTOR).byteswap, inplace=True)


@case
def methods_that_arrays_lack(make):
    vector = make(VECTOR)
    names = ["fill", "put", "resize", "partition", "itemset", "setflags", "flags", "strides"]
    names += ["base", "ctypes", "data", "dump", "newbyteorder", "setfield", "getfield"]
    return {name: attempt(getattr, vector, name) for name in names}


@case
def flat_attribute(make):
    return attempt(lambda: make(MATRIX).flat)


@case
def method_on_class(make):
    # Methods taken from jax.Array and from the array's own class.
    vector = make(VECTOR)
    own = type(vector)
    return own.sum(vector), own.__add__(vector, 1), own.reshape(vector, 2, 2)


@case
def arithmetic_dunders(make):
    vector = make(VECTOR)
    return [
        vector.__add__(1),
        vector.__radd__(1),
        vector.__add__("a") is NotImplemented,
        vector.__eq__(object()) is NotImplemented,
        vector.__getitem__(1),
        vector.__len__(),
        vector.__contains__(1.0),
        vector.__matmul__(vector),
        vector.__rmatmul__(VECTOR),
        vector.__divmod__(2),
    ]


@case
def simple_attributes(make):
    facts = []
    for value in (VECTOR, MATRIX, f32(1), np.zeros((0, 3), np.int8), np.ones(2, np.complex64)):
        array = make(value)
        facts.append(
            [
                array.shape,
                array.dtype,
                array.ndim,
                array.size,
                array.itemsize,
                array.nbytes,
                array.weak_type,
                array.is_fully_addressable,
                array.is_fully_replicated,
                array.committed,
                array.device,
                array.devices(),
                array.sharding,
                array.platform() if callable(array.platform) else array.platform,
                array.is_ready() in (True, False),
                array.is_deleted(),
                str(array.aval),
            ]
        )
    return facts


@case
def attributes_of_placed_arrays(make):
    facts = []
    for value in (
        on_device(VECTOR, 1),
        jax.device_put(EIGHT, sharded("a")),
        jax.device_put(EIGHT, sharded()),
        jax.device_put(EIGHT, sharded_over_8(("a", "b"))),
    ):
        array = make(value)
        facts.append(
            [
                array.device,
                array.devices(),
                array.sharding,
                array.committed,
                array.is_fully_replicated,
                array.is_fully_addressable,
                array.nbytes,
                array.on_device_size_in_bytes(),
                len(array.addressable_shards),
                len(array.global_shards),
            ]
        )
    return facts


@case
def array_format(make):
    return make(VECTOR).format, make(jax.device_put(EIGHT, sharded("a"))).format


@case
def read_only_attributes(make):
    vector = make(VECTOR)
    names = ["shape", "dtype", "ndim", "size", "sharding", "device", "weak_type"]
    return {name: attempt(setattr, vector, name, None) for name in names}


@case
def read_only_computed_attributes(make):
    # The message names the function behind the property.
    vector = make(VECTOR)
    names = ["T", "mT", "real", "imag", "at"]
    return {name: attempt(setattr, vector, name, None) for name in names}


@case
def read_only_sizes(make):
    return {name: attempt(setattr, make(VECTOR), name, None) for name in ("nbytes", "itemsize")}


@case
def public_names(make):
    """Every public name of JAX's own array class is there."""
    array = make(VECTOR)
    names = [name for name in dir(type(jnp.asarray(VECTOR))) if not name.startswith("_")]
    return {name: isinstance(attempt(getattr, array, name), Exception) for name in names}, dir_has(
        array, names
    )


def dir_has(array, names):
    listed = dir(array)
    return [name for name in names if name in listed]


@case
def special_names(make):
    """Every special name that JAX's array class defines is there."""
    array = make(VECTOR)
    plain = type(jnp.asarray(VECTOR))
    ignored = {"__del__", "__dict__", "__annotations__", "__weakref__", "__cuda_array_interface__"}
    names = {name for base in plain.__mro__[:2] for name in vars(base) if name.startswith("__")}
    return [name for name in sorted(names - ignored) if hasattr(array, name)]


@case
def unsafe_ptr(make):
    return type(make(VECTOR).unsafe_buffer_pointer()).__name__


@case
def unsafe_ptr_is_the_buffers(make):
    plain = jnp.array(VECTOR)
    return make(plain).unsafe_buffer_pointer() == plain.unsafe_buffer_pointer()


@case
def unsafe_ptr_sharded(make):
    return attempt(make(jax.device_put(EIGHT, sharded("a"))).unsafe_buffer_pointer)


@case
def on_dev_bytes(make):
    return make(VECTOR).on_device_size_in_bytes()


@case
def device_buffer_attributes(make):
    vector = make(VECTOR)
    return [
        attempt(lambda: vector.device_buffer),
        attempt(lambda: vector.device_buffers),
        attempt(lambda: type(vector.traceback).__name__),
    ]


@case
def addressable_data(make):
    array = make(jax.device_put(EIGHT, sharded_over_8(("a", "b"))))
    return array.addressable_data(3), make(VECTOR).addressable_data(0)


@case
def to_device(make):
    return make(VECTOR).to_device(jax.devices()[1]), make(EIGHT).to_device(sharded("a"))


@case
def to_device_stream(make):
    return attempt(make(VECTOR).to_device, jax.devices()[1], stream=1)


@case
def block_and_ready(make):
    array = make(VECTOR) + 1
    same = array.block_until_ready() is array
    array.copy_to_host_async()
    return same, array.is_ready(), array


@case
def block_until_ready_returns_self(make):
    array = make(VECTOR)
    return array.block_until_ready() is array
