"""Element types, weak types, 64 bits, promotion."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tests.conformance.cases._data import VECTOR, f32, i32, indices
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
]

SMALL_DTYPES = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"]


def of_dtype(dtype):
    return jnp.arange(4).astype(dtype)


@case
def typeof(make):
    return str(jax.typeof(make(VECTOR)))


@case
def weak(make):
    array = make(jnp.asarray(1.0))
    return array.weak_type, (array + np.float16(1)).dtype


@case
def weak_arithmetic(make):
    array = make(jnp.asarray(1.0))
    integer = make(jnp.asarray(1))
    return [
        array + 1,
        array + integer,
        integer + 1.5,
        integer / 2,
        array + make(VECTOR.astype(np.float16)),
        make(jnp.asarray(VECTOR, jnp.bfloat16)) * array,
        integer + make(np.array([1], np.int8)),
        -array,
        jnp.sin(array),
        array.reshape(1),
        array[None],
        array.sum(),
        array == 1,
        abs(integer),
        jnp.asarray(array),
        jnp.where(True, array, 0),
        jax.jit(lambda x: x)(array),
        array.astype(float),
        array.real,
        array.copy(),
    ]


@case
def result_type(make):
    return [
        jnp.result_type(make(jnp.asarray(1.0)), jnp.int8),
        jnp.result_type(make(VECTOR), np.float64),
        np.result_type(make(VECTOR).dtype, np.float64),
        jnp.promote_types(make(VECTOR).dtype, np.int8),
        jax.dtypes.result_type(make(jnp.asarray(1.0)), jnp.int8, return_weak_type_flag=True),
    ]


@case
def promotion_table(make):
    # Promotion is symmetric in JAX: half of the table, with either kind of array on the right.
    pairs = itertools.combinations_with_replacement(DTYPES, 2)
    return {
        f"{left} and {right}": [
            make(of_dtype(left)) + make(of_dtype(right)),
            make(of_dtype(left)) + of_dtype(right),
        ]
        for left, right in pairs
    }


@case
def promote_helpers(make):
    return [
        jnp.promote_types(make(VECTOR).dtype, make(indices(1)).dtype),
        jnp.issubdtype(make(VECTOR).dtype, np.floating),
        jnp.can_cast(make(VECTOR).dtype, np.float16),
        jnp.finfo(make(VECTOR).dtype).bits,
        attempt(jnp.finfo, make(VECTOR)) is not None,
        jnp.isdtype(make(VECTOR).dtype, "real floating"),
        jax.dtypes.canonicalize_dtype(make(VECTOR).dtype),
        jnp.float32(make(f32(1))),
        jnp.int8(make(i32(3))),
        jnp.bool_(make(i32(3))),
        attempt(np.float32, make(f32(1))),
        attempt(np.int64, make(i32(3))),
    ]


def dtype_round_trip(dtype):
    def one_dtype(make):
        array = make(of_dtype(dtype))
        return [
            array,
            array[1],
            list(array),
            array == array,
            array.astype(np.float32),
            jnp.stack([array, array]),
            jax.jit(lambda x: x)(array),
            np.asarray(array),
            array.reshape(2, 2),
            attempt(lambda: array + array),
            attempt(lambda: array.sum()),
            attempt(lambda: -array),
            attempt(lambda: array.tolist()),
            attempt(lambda: bytes(memoryview(array))),
            str(array),
            array.nbytes,
            array.itemsize,
        ]

    return one_dtype


for _dtype in [*DTYPES, *SMALL_DTYPES]:
    case(dtype_round_trip(_dtype), name=f"dtype_{_dtype}")


@case
def x64(make):
    with jax.enable_x64(True):
        return make(np.arange(3.0)) + 1, jnp.sin(make(np.arange(3.0)))


@case
def x64_dtypes(make):
    with jax.enable_x64(True):
        results = []
        for dtype in (np.int64, np.uint64, np.float64, np.complex128):
            array = make(np.arange(3).astype(dtype))
            mixed = array + VECTOR[:3]
            results.append([array, array + 1, array[1], array.sum(), list(array), mixed])
        return results


@case
def x64_left_behind(make):
    # Made with 64 bits, used without.
    with jax.enable_x64(True):
        array = make(np.arange(3.0))
    return [
        array,
        attempt(lambda: array + 1),
        attempt(lambda: jnp.sin(array)),
        attempt(lambda: array[1]),
        attempt(jax.jit(lambda x: x * 2), array),
        np.asarray(array),
        attempt(list, array),
        array.sum(),
        attempt(jnp.asarray, array),
        attempt(jax.device_put, array),
        attempt(lambda: jax.jit(lambda: array + 1)()),
    ]


@case
def x64_taken_along(make):
    # Made without, used with.
    array = make(VECTOR)
    with jax.enable_x64(True):
        return array + 1, array + np.float64(1), array[1], array.astype(np.float64), array.sum()


@case
def numpy_64_bit_operand(make):
    return [
        make(VECTOR) + np.arange(4.0),
        make(indices(1, 2)) + np.arange(2),
        np.arange(4.0) + make(VECTOR),
    ]


@case
def ml_dtypes_operand(make):
    scalar = ml_dtypes.bfloat16(1)
    return make(VECTOR) + scalar, scalar + make(VECTOR.astype(np.float16))


@case
def complex_arithmetic(make):
    values = make(np.array([1 + 2j, 3 - 4j], np.complex64))
    return [
        values * values,
        values / 2,
        abs(values),
        values + 1j,
        values == values,
        values.conj(),
        attempt(lambda: values < values),
        attempt(lambda: values // 2),
        make(VECTOR) * 1j,
        values.real.dtype,
        values**2,
    ]


@case
def integer_arithmetic(make):
    small = make(np.array([127, -128, 5], np.int8))
    unsigned = make(np.array([0, 255, 5], np.uint8))
    return [
        small + 1,
        -small,
        abs(small),
        small * 2,
        small // 2,
        small % 3,
        small / 2,
        attempt(lambda: small + 1000),
        unsigned - 1,
        unsigned >> 1,
        ~unsigned,
        small + unsigned,
        small & 3,
        make(i32(7)) // 0,
        make(i32(7)) % 0,
    ]


@case
def bool_arithmetic(make):
    flags = make(VECTOR > 1)
    return [
        flags & flags,
        flags | True,
        ~flags,
        flags ^ flags,
        flags + flags,
        flags * 2,
        flags.sum(),
        attempt(lambda: -flags),
        attempt(lambda: flags - flags),
        flags == True,  # noqa: E712
    ]


@case
def special_values(make):
    odd = make(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32))
    return [
        odd,
        odd + 1,
        odd == odd,
        odd.max(),
        odd.min(),
        jnp.sort(odd),
        odd[0],
        odd[3],
        1 / odd,
        odd.tolist()[1:],
        str(odd),
        jnp.isnan(odd),
        odd.astype(np.int32),
    ]


@case
def zero_size(make):
    empty = make(np.zeros((0, 3), np.float32))
    return [
        empty,
        empty + 1,
        empty.sum(),
        empty.T,
        empty.reshape(3, 0),
        len(empty),
        list(empty),
        jnp.concatenate([empty, make(np.ones((1, 3), np.float32))]),
        empty.tolist(),
        np.asarray(empty),
        jax.jit(lambda x: x)(empty),
        attempt(bool, empty),
        empty @ make(np.ones(3, np.float32)),
    ]


@case
def zero_dimensions(make):
    scalar = make(f32(2))
    return [
        scalar,
        scalar + scalar,
        scalar[()],
        scalar[...],
        scalar[None],
        scalar.reshape(1, 1),
        scalar.T,
        scalar.sum(),
        scalar.tolist(),
        scalar.at[()].set(3),
        np.asarray(scalar),
        attempt(len, scalar),
        attempt(list, scalar),
        attempt(reversed, scalar),
        scalar * VECTOR,
        scalar.astype(int),
        bool(scalar),
    ]


@case
def float0(make):
    zeros = np.zeros((4,), jax.dtypes.float0)
    return attempt(jnp.add, make(VECTOR), zeros), attempt(lambda: make(VECTOR) * zeros)


@case
def legacy_canonical_handler(make):
    # Values are canonicalised on the way into a program.
    return jax.jit(lambda x: x.dtype.itemsize * x)(make(np.arange(3, dtype=np.int64)))
