"""NumPy and SciPy given a JAX array: conversion, indexing, ufuncs, the buffer protocol, DLPack."""

from __future__ import annotations

import io
import operator

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

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
def np_array_scalars(make):
    return np.array([make(f32(1)), make(f32(2))])


@case
def np_array_list(make):
    return np.array([make(VECTOR), make(VECTOR)])


@case
def np_stack(make):
    return np.stack([make(VECTOR), make(VECTOR)])


@case
def np_concatenate_mixed(make):
    return np.concatenate([make(VECTOR), VECTOR, make(VECTOR)])


@case
def np_idx(make):
    return MATRIX[make(i32(1))]


@case
def np_idx_arr(make):
    return MATRIX[make(np.array([0, 2]))]


@case
def np_idx_bool(make):
    return MATRIX[make(np.array([True, False, True]))]


@case
def np_idx_slice(make):
    return VECTOR[make(i32(1)) : make(i32(3))]


@case
def np_setitem(make):
    target = np.zeros((3, 4), np.float32)
    target[1] = make(VECTOR)
    target[2, 0] = make(f32(7))
    return target


@case
def np_add(make):
    return MATRIX + make(VECTOR)


@case
def np_iadd(make):
    return operator.iadd(MATRIX.copy(), make(VECTOR))


@case
def np_radd_scalar(make):
    return f32(2) * make(VECTOR)


@case
def np_sin(make):
    return np.sin(make(VECTOR))


@case
def np_ufunc_out(make):
    out = np.zeros(4, np.float32)
    result = np.add(make(VECTOR), VECTOR, out=out)
    return result, out, attempt(np.add, VECTOR, VECTOR, out=make(VECTOR))


@case
def np_mean(make):
    return np.mean(make(VECTOR))


@case
def np_functions_that_call_methods(make):
    # NumPy hands these to a method of the argument, when it has one.
    functions = {
        "sum": np.sum,
        "max": np.max,
        "argmax": np.argmax,
        "cumsum": np.cumsum,
        "transpose": np.transpose,
        "ravel": np.ravel,
        "squeeze": np.squeeze,
        "sort": np.sort,
        "std": np.std,
        "diagonal": np.diagonal,
        "copy": np.copy,
        "real": np.real,
        "nonzero": np.nonzero,
    }
    matrix = make(MATRIX)
    return {name: attempt(function, matrix) for name, function in functions.items()}


@case
def np_functions_that_call_methods_with_arguments(make):
    matrix = make(MATRIX)
    return [
        np.sum(matrix, axis=0),
        np.reshape(matrix, (4, 3)),
        np.repeat(matrix, 2),
        np.clip(matrix, 1, 2),
        np.round(matrix, 1),
        np.swapaxes(matrix, 0, 1),
        attempt(np.take, matrix, 0),
    ]


@case
def np_dot(make):
    return np.dot(MATRIX, make(VECTOR))


@case
def np_where(make):
    return np.where(make(VECTOR > 1), make(VECTOR), 0)


@case
def np_asarray(make):
    return [np.asarray(make(value)) for value in (VECTOR, MATRIX, f32(1), i32(1), np.bool_(True))]


@case
def np_asarray_dtype(make):
    return np.asarray(make(VECTOR), dtype=np.float64)


@case
def np_asarray_bfloat16(make):
    return np.asarray(make(jnp.asarray(VECTOR, jnp.bfloat16)))


@case
def np_asarray_sharded(make):
    return np.asarray(make(jax.device_put(EIGHT, sharded_over_8(("a", "b")))))


@case(name="np_array_copyFalse")
def np_array_copy_false(make):
    return np.array(make(VECTOR), copy=False)


@case
def np_array_copy_forms(make):
    vector = make(VECTOR)
    return [
        np.array(vector, copy=True),
        np.array(vector, copy=None),
        attempt(np.array, vector, dtype=np.float64, copy=False),
        attempt(np.asarray, make(jax.device_put(EIGHT, sharded("a"))), copy=False),
    ]


@case
def np_array_keywords(make):
    return np.array(make(VECTOR), ndmin=2), np.array(make(MATRIX), order="F").flags.f_contiguous


@case
def np_array_shares_memory(make):
    array = make(jnp.array(VECTOR))
    first, second = np.asarray(array), np.asarray(array)
    return np.shares_memory(first, second), np.shares_memory(first, np.array(array))


@case
def np_asarray_survives_delete(make):
    array = make(jnp.array(VECTOR))
    host = np.asarray(array)
    array.delete()
    return host


@case
def np_writeable(make):
    return np.asarray(make(VECTOR)).flags.writeable, np.array(make(VECTOR)).flags.writeable


@case
def dunder_array(make):
    vector = make(VECTOR)
    return [
        vector.__array__(),
        vector.__array__(np.int32),
        vector.__array__(dtype=np.float64, copy=True),
        vector.__array__(copy=None),
        attempt(vector.__array__, copy=False),
    ]


@case(name="memoryview")
def memory_view(make):
    view = memoryview(make(VECTOR))
    return view.format, view.shape, bytes(view)


@case
def memory_view_facts(make):
    facts = []
    for value in (MATRIX, f32(1), indices(1, 2), VECTOR > 1, np.zeros((0, 3), np.float32)):
        view = memoryview(make(value))
        facts.append([view.format, view.shape, view.strides, view.readonly, view.nbytes])
    return facts


@case
def memory_view_bfloat16(make):
    return attempt(lambda: memoryview(make(jnp.asarray(VECTOR, jnp.bfloat16))).format)


@case
def memory_view_deleted(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    return attempt(memoryview, array)


@case
def memory_view_sharded(make):
    return attempt(lambda: bytes(memoryview(make(jax.device_put(EIGHT, sharded("a"))))))


@case
def memory_view_release(make):
    array = make(jnp.array(VECTOR))
    with memoryview(array) as view:
        held = bytes(view)
    return held, array


@case
def bytes_of_array(make):
    return bytes(make(VECTOR)), bytes(bytearray(make(VECTOR)))


@case
def np_frombuffer(make):
    return np.frombuffer(make(VECTOR), dtype=np.float32)


@case
def jnp_save(make):
    file = io.BytesIO()
    jnp.save(file, make(VECTOR))
    file.seek(0)
    return np.load(file)


@case
def np_savez(make):
    file = io.BytesIO()
    np.savez(file, a=make(VECTOR))
    file.seek(0)
    return np.load(file)["a"]


@case
def np_dlpack(make):
    return np.from_dlpack(make(VECTOR))


@case
def jnp_dlpack(make):
    return jnp.from_dlpack(make(VECTOR))


@case
def dlpack_fn(make):
    # jax.dlpack.to_dlpack is gone; the capsule comes from the array's own method.
    return type(make(VECTOR).__dlpack__()).__name__


@case
def dlpack_device(make):
    return [int(part) for part in make(VECTOR).__dlpack_device__()]


@case
def dlpack_keywords(make):
    vector = make(VECTOR)
    return [
        type(vector.__dlpack__(copy=True)).__name__,
        type(vector.__dlpack__(max_version=(1, 0))).__name__,
        attempt(vector.__dlpack__, stream=1),
        jnp.from_dlpack(vector, copy=True),
        np.from_dlpack(vector, copy=True),
    ]


@case
def dlpack_errors(make):
    return [
        attempt(np.from_dlpack, make(jax.device_put(EIGHT, sharded("a")))),
        attempt(jnp.from_dlpack, make(jax.device_put(EIGHT, sharded("a")))),
        attempt(np.from_dlpack, make(jnp.asarray(VECTOR, jnp.bfloat16))),
    ]


@case
def dlpack_other_device(make):
    return jnp.from_dlpack(make(on_device(VECTOR, 1)))


@case
def no_array_interfaces(make):
    vector = make(VECTOR)
    return [
        attempt(lambda: vector.__cuda_array_interface__),
        attempt(lambda: vector.__array_interface__),
        attempt(lambda: vector.__array_struct__),
    ]


@case
def array_priority(make):
    return make(VECTOR).__array_priority__


@case
def array_namespace(make):
    return make(VECTOR).__array_namespace__() is jnp, attempt(
        make(VECTOR).__array_namespace__, api_version="1900.01"
    )


@case
def array_module(make):
    return attempt(lambda: make(VECTOR).__array_module__((jax.Array,)) is jnp)


@case
def np_dtype(make):
    return np.dtype(make(VECTOR).dtype)


@case
def np_can_cast(make):
    return np.can_cast(make(VECTOR).dtype, np.float64), np.result_type(make(VECTOR).dtype, np.int8)


@case
def dtype_as_dtype(make):
    return jnp.zeros(2, dtype=make(VECTOR).dtype)


@case
def array_as_dtype(make):
    return np.dtype(make(VECTOR)), attempt(jnp.zeros, 2, dtype=make(VECTOR))


@case
def numpy_array_equal(make):
    return np.testing.assert_allclose(make(VECTOR), VECTOR)


@case
def numpy_testing(make):
    np.testing.assert_array_equal(make(VECTOR), VECTOR)
    np.testing.assert_array_almost_equal(make(VECTOR), make(VECTOR))
    return attempt(np.testing.assert_allclose, make(VECTOR), VECTOR + 1)


@case
def scipy_interop(make):
    return scipy.linalg.norm(make(VECTOR))


@case
def scipy_solve(make):
    return scipy.linalg.solve(make(np.eye(3, dtype=np.float32) * 2), make(VECTOR[:3]))


@case
def np_random_choice(make):
    return np.random.default_rng(0).permutation(make(VECTOR))


@case
def np_iterates(make):
    return list(np.nditer(make(VECTOR))), np.fromiter(make(VECTOR), np.float32)


@case
def np_asarray_key_error(make):
    return attempt(np.asarray, make(jax.random.key(0)))


@case
def np_object_array(make):
    holder = np.empty(2, dtype=object)
    holder[0] = make(f32(1))
    holder[1] = make(i32(2))
    return holder


@case
def np_array_object_dtype(make):
    return np.array(make(VECTOR), dtype=object)


@case
def np_is_checks(make):
    return [
        isinstance(make(VECTOR), np.ndarray),
        np.isscalar(make(f32(1))),
        np.iterable(make(VECTOR)),
        np.iterable(make(f32(1))),
    ]
