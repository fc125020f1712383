"""Out of JAX: Python scalars, text, copies, pickles."""

from __future__ import annotations

import copy as copying
import math
import operator
import pickle
import statistics

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
from tests.conformance.harness import attempt, normalise_repr


@case(raises=ValueError)
def bool_err(make):
    return bool(make(VECTOR))


@case(raises=TypeError)
def float_err(make):
    return float(make(VECTOR))


@case
def index(make):
    return operator.index(make(i32(2)))


@case(raises=TypeError)
def index_err(make):
    return operator.index(make(f32(2)))


@case(name="complex")
def to_complex(make):
    return complex(make(f32(2)))


@case
def hexoct(make):
    return hex(make(i32(12))), oct(make(i32(12)))


@case
def python_scalars_of_everything(make):
    values = {
        "float": f32(1.5),
        "int": i32(3),
        "bool": np.bool_(True),
        "complex": np.complex64(1 + 2j),
        "half": np.float16(1.5),
        "int8": np.int8(-3),
        "uint32": np.uint32(7),
        "nan": f32(np.nan),
        "one element": np.array([2], np.int32),
        "one by one": np.array([[2.5]], np.float32),
        "empty": np.zeros((0,), np.float32),
        "vector": VECTOR,
    }
    converters = [bool, int, float, complex, operator.index, bin, hex, oct, chr, math.floor]
    converters += [math.ceil, math.trunc, math.sin, math.isnan, str, round]
    return {
        name: [attempt(converter, make(value)) for converter in converters]
        for name, value in values.items()
    }


@case
def python_scalars_of_bfloat16(make):
    value = make(jnp.asarray(1.5, jnp.bfloat16))
    return float(value), int(value), bool(value), value.item(), value.tolist()


@case
def python_scalars_of_placed(make):
    return [
        float(make(on_device(f32(1), 1))),
        int(make(jax.device_put(i32(3), sharded()))),
        attempt(float, make(jax.device_put(EIGHT, sharded("a")))),
    ]


@case
def truth_of_arrays(make):
    return [
        bool(make(np.array([1]))),
        attempt(bool, make(np.zeros((0,)))),
        attempt(bool, make(MATRIX)),
        make(f32(0)) or "fallback",
        make(f32(1)) and "second",
        not make(f32(0)),
    ]


@case
def python_arithmetic_functions(make):
    return [
        math.sqrt(make(f32(4))),
        attempt(math.sqrt, make(VECTOR)),
        math.prod([make(f32(2)), make(f32(3))]),
        statistics.mean([float(v) for v in make(VECTOR)]),
        abs(make(f32(-2))),
        divmod(make(i32(7)), 2),
    ]


@case
def item(make):
    return make(f32(1)).item()


@case
def item_i(make):
    return make(VECTOR).item(2)


@case
def item_more(make):
    matrix = make(MATRIX)
    return [
        matrix.item(1, 2),
        matrix.item(-1),
        make(i32(3)).item(),
        make(np.bool_(True)).item(),
        make(np.complex64(1j)).item(),
        make(np.array([[7]])).item(),
        attempt(matrix.item),
        attempt(matrix.item, 99),
        attempt(matrix.item, 1, 2, 3),
        attempt(matrix.item, 1.5),
    ]


@case
def tolist(make):
    return make(MATRIX).tolist()


@case
def tolist_more(make):
    values = [f32(1), i32(2), np.bool_(True), indices(1, 2), VECTOR > 1, np.ones(1, np.complex64)]
    return [make(value).tolist() for value in [*values, np.zeros((0, 2)), np.zeros((2, 0))]]


@case
def tobytes(make):
    return make(VECTOR).tobytes()


@case
def tobytes_order(make):
    matrix = make(MATRIX)
    return matrix.tobytes(), matrix.tobytes("F"), matrix.tobytes(order="C")


@case(name="format")
def format_string(make):
    return [f"{make(f32(1.5)):.2f}", f"{make(VECTOR)}", str(make(VECTOR))]


@case
def format_more(make):
    return [
        f"{make(i32(12)):05d}",
        f"{make(i32(12)):x}",
        f"{make(f32(1.5)):>10}",
        f"{make(f32(1.5)):e}",
        f"{make(f32(1.5))}",
        f"{make(np.bool_(True))}",
        format(make(f32(1.5)), ".3"),
        "%d" % make(i32(3)),  # noqa: UP031
        "%.1f" % make(f32(3)),  # noqa: UP031
        "%s" % make(f32(3)),  # noqa: UP031
        f"{make(np.array([1.5], np.float32))}",
        attempt(format, make(VECTOR), ".2f"),
        attempt(format, make(f32(1)), "nonsense"),
        attempt(format, make(np.array([1.5], np.float32)), ".2f"),
        f"{make(MATRIX)!s}",
    ]


@case(name="repr")
def representation(make):
    return normalise_repr(repr(make(VECTOR)))


@case
def repr_more(make):
    values = [
        MATRIX,
        f32(1),
        i32(1),
        np.bool_(True),
        np.zeros((0, 3), np.float32),
        np.arange(2000, dtype=np.float32),
        np.ones(3, np.complex64),
        jnp.asarray(VECTOR, jnp.bfloat16),
        jnp.asarray(1.0),
        jax.device_put(EIGHT, sharded("a")),
        on_device(VECTOR, 1),
        np.arange(8, dtype=np.float32).reshape(2, 2, 2),
    ]
    return [normalise_repr(repr(make(value))) for value in values]


@case
def repr_print_options(make):
    with jnp.printoptions(precision=2, suppress=True):
        return normalise_repr(repr(make(VECTOR / 3))), str(make(VECTOR / 3))


@case
def repr_of_container(make):
    return repr([make(f32(1)), {"a": make(i32(2))}]).replace("DeviceArray(", "Array(")


@case
def str_of_everything(make):
    values = [MATRIX, f32(1), i32(1), np.bool_(True), np.zeros((0, 3)), np.arange(2000)]
    return [str(make(value)) for value in values]


@case
def repr_deleted(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    return attempt(repr, array), attempt(str, array), attempt(format, array, "")


@case(name="pickle")
def pickle_array(make):
    return pickle.loads(pickle.dumps(make(VECTOR)))


@case
def pickle_key(make):
    return pickle.loads(pickle.dumps(make(jax.random.key(0))))


@case
def pickle_more(make):
    values = [
        f32(1),
        np.zeros((0, 3), np.int8),
        jnp.asarray(1.0),
        jnp.asarray(VECTOR, jnp.bfloat16),
        on_device(VECTOR, 1),
        jax.device_put(EIGHT, sharded("a")),
    ]
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    return [
        pickle.loads(pickle.dumps(make(value), protocol))
        for value in values
        for protocol in protocols
    ]


@case
def pickle_shares(make):
    array = make(VECTOR)
    first, second = pickle.loads(pickle.dumps([array, array]))
    return first is second


@case
def pickle_deleted(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    return attempt(pickle.dumps, array)


@case(name="copy")
def copy_module(make):
    return copying.copy(make(VECTOR))


@case
def deepcopy(make):
    return copying.deepcopy({"a": make(VECTOR)})


@case
def copies_more(make):
    split = make(jax.device_put(EIGHT, sharded_over_8(("a", "b"))))
    weak = make(jnp.asarray(1.0))
    key = make(jax.random.key(0))
    return [
        copying.copy(split),
        copying.deepcopy(split),
        copying.copy(weak),
        copying.deepcopy(weak),
        copying.copy(key),
        copying.deepcopy(key),
        copying.deepcopy(make(on_device(VECTOR, 1))),
    ]


@case
def deepcopy_is_independent(make):
    original = make(jnp.array(VECTOR))
    copied, shallow = copying.deepcopy(original), copying.copy(original)
    original.delete()
    return copied.is_deleted(), shallow.is_deleted(), copied


@case
def deepcopy_keeps_sharing(make):
    array = make(VECTOR)
    first, second = copying.deepcopy([array, array])
    return first is second
