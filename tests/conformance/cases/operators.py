"""Every operator, on every kind of other operand, from both sides."""

from __future__ import annotations

import functools
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

BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "divmod": divmod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

IN_PLACE = {
    "iadd": operator.iadd,
    "isub": operator.isub,
    "imul": operator.imul,
    "itruediv": operator.itruediv,
    "ifloordiv": operator.ifloordiv,
    "imod": operator.imod,
    "ipow": operator.ipow,
    "imatmul": operator.imatmul,
    "iand": operator.iand,
    "ior": operator.ior,
    "ixor": operator.ixor,
    "ilshift": operator.ilshift,
    "irshift": operator.irshift,
}

UNARY = {
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": operator.abs,
    "invert": operator.invert,
    "not": operator.not_,
}

PYTHON_SCALARS = {"int": 2, "float": 2.5, "bool": True, "complex": 1 + 2j}

NUMPY_OPERANDS = {
    "float32": np.float32(2),
    "int8": np.int8(2),
    "bool_": np.bool_(True),
    "array": VECTOR + 1,
    "int array": np.arange(1, 5),
    "matrix": MATRIX,
}

FOREIGN = {
    "None": None,
    "str": "a",
    "list": [1, 2, 3, 4],
    "tuple": (1, 2, 3, 4),
    "object": object(),
}


def both_orders(function, array, other):
    return attempt(function, array, other), attempt(function, other, array)


def with_python_scalars(function, make):
    operands = {"float": make(VECTOR), "int": make(indices(1, 2, 3))}
    return {
        f"{kind} array, {name}": both_orders(function, array, scalar)
        for kind, array in operands.items()
        for name, scalar in PYTHON_SCALARS.items()
    }


def with_numpy(function, make):
    operands = {"float": make(VECTOR), "int": make(indices(1, 2, 3, 4))}
    return {
        f"{kind} array, {name}": both_orders(function, array, other)
        for kind, array in operands.items()
        for name, other in NUMPY_OPERANDS.items()
    }


def with_arrays(function, make):
    # Ours with ours, and ours with a plain array, from both sides.
    floats, integers, flags = VECTOR + 1, indices(1, 2, 3, 4), VECTOR > 1
    pairs = {"floats": floats, "integers": integers, "flags": flags}
    results = {}
    for name, value in pairs.items():
        results[f"{name}, same kind"] = attempt(function, make(value), make(value))
        results[f"{name}, plain"] = both_orders(function, make(value), jnp.asarray(value))
    results["float and int"] = both_orders(function, make(floats), make(integers))
    results["weak"] = both_orders(function, make(jnp.asarray(2)), make(f32(3)))
    results["broadcast"] = both_orders(function, make(MATRIX), make(floats))
    results["shapes"] = both_orders(function, make(floats), make(np.ones(3, np.float32)))
    return results


def with_foreign(function, make):
    vector = make(VECTOR)
    return {name: both_orders(function, vector, other) for name, other in FOREIGN.items()}


FAMILIES = {
    "python_scalars": with_python_scalars,
    "numpy": with_numpy,
    "arrays": with_arrays,
    "foreign": with_foreign,
}

for _name, _function in BINARY.items():
    for _family_name, _family in FAMILIES.items():
        case(functools.partial(_family, _function), name=f"operator_{_name}_{_family_name}")


def in_place(function, make):
    # Immutable: an in-place operator makes a new array and leaves the old one.
    results = {}
    for name, value in {"float": VECTOR, "int": indices(1, 2, 3, 4)}.items():
        array = make(value)
        results[name] = [
            attempt(function, array, 2),
            attempt(function, array, make(value)),
            attempt(function, array, jnp.asarray(value)),
            attempt(function, value.copy(), make(value)),
            array,
        ]
    return results


for _name, _function in IN_PLACE.items():
    case(functools.partial(in_place, _function), name=f"operator_{_name}")


def unary(function, make):
    values = [VECTOR, f32(-2), i32(3), indices(1, -2), np.bool_(True), VECTOR > 1]
    values.append(np.complex64(1 - 2j))
    values.append(jnp.asarray(-2.0))
    values.append(np.zeros((0,), np.float32))
    return [attempt(function, make(value)) for value in values]


for _name, _function in UNARY.items():
    case(functools.partial(unary, _function), name=f"operator_{_name}")


@case
def pos(make):
    return +make(VECTOR)


@case
def pow_forms(make):
    vector = make(VECTOR)
    return [
        vector**2,
        vector**-1,
        vector**0.5,
        2**vector,
        vector ** make(i32(2)),
        make(indices(1, 2)) ** 3,
        attempt(operator.pow, make(indices(1, 2)), -1),
        attempt(pow, vector, 2, 3),
        make(jnp.asarray(2)) ** 2,
        make(jnp.asarray(2.0)) ** make(jnp.asarray(3)),
    ]


@case
def round_forms(make):
    return [
        round(make(VECTOR)),
        round(make(f32(1.55)), 1),
        round(make(f32(1.5))),
        attempt(round, make(i32(15)), -1),
    ]


@case(name="round")
def round_vector(make):
    return round(make(VECTOR), 1)


@case
def matmul_mixed(make):
    matrix, vector = make(MATRIX), make(VECTOR)
    return [matrix @ vector, MATRIX @ vector, matrix @ VECTOR, jnp.asarray(MATRIX) @ vector]


@case
def chained_comparison(make):
    return 0 < make(f32(1)) < 2, attempt(lambda: 0 < make(VECTOR) < 2)


@case
def eq_none(make):
    return make(VECTOR) == None  # noqa: E711


@case
def eq_more(make):
    vector = make(VECTOR)
    return [
        vector == "a",
        vector != None,  # noqa: E711
        attempt(operator.eq, vector, [0, 1, 2, 3]),
        attempt(operator.eq, vector, make(np.ones(3, np.float32))),
        attempt(operator.lt, vector, None),
        bool(make(f32(1)) == make(f32(1))),
        [make(f32(1))] == [make(f32(1))],
        (make(f32(1)), 2) == (make(f32(2)), 2),
    ]


@case(raises=TypeError)
def jit_typeerr_str(make):
    return make(VECTOR) + "a"


class Other:
    """An operand of an unknown type that knows what to do with an array."""

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __eq__(self, other):
        return "eq"

    def __lt__(self, other):
        return "lt"

    __hash__ = None


@case
def defer_radd(make):
    return make(VECTOR) + Other()


@case
def defer_more(make):
    return [
        make(VECTOR) @ Other(),
        make(VECTOR) == Other(),
        make(VECTOR) > Other(),
        attempt(operator.sub, make(VECTOR), Other()),
    ]


class ArraySubclass(np.ndarray):
    """A NumPy subclass, which NumPy's rules let win."""


@case
def numpy_subclass_operand(make):
    other = VECTOR.copy().view(ArraySubclass)
    return [attempt(operator.add, make(VECTOR), other), attempt(operator.add, other, make(VECTOR))]


class HasJaxArray:
    """An object that JAX may convert through ``__jax_array__``."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


@case(raises=ValueError)
def jax_array_proto(make):
    return jnp.sin(HasJaxArray(make(VECTOR)))


@case
def jax_array_protocol_where_allowed(make):
    wrapped = HasJaxArray(make(VECTOR))
    return [
        jnp.asarray(wrapped),
        jax.jit(lambda x: x)(jnp.asarray(wrapped)),
        attempt(jnp.add, wrapped, make(VECTOR)),
        attempt(operator.add, make(VECTOR), wrapped),
        attempt(operator.mul, wrapped, make(VECTOR)),
        attempt(jnp.array, [wrapped, wrapped]),
    ]


@case
def operators_on_devices(make):
    one, two = make(on_device(VECTOR, 1)), make(on_device(VECTOR, 2))
    return [
        one + 1,
        1 + one,
        one + make(VECTOR),
        make(VECTOR) + one,
        one + VECTOR,
        attempt(operator.add, one, two),
        attempt(operator.add, one, on_device(VECTOR, 2)),
        attempt(operator.matmul, on_device(VECTOR, 1), two),
    ]


@case
def operators_on_shards(make):
    split = jax.device_put(EIGHT, sharded("a"))
    wide = jax.device_put(EIGHT, sharded_over_8(("a", "b")))
    return [
        make(split) + make(split),
        make(split) + 1,
        make(split) + split,
        split * make(split),
        make(split) + make(EIGHT),
        -make(wide),
        make(wide) @ make(wide),
        attempt(operator.add, make(split), make(wide)),
        attempt(operator.add, make(split), make(on_device(EIGHT, 1))),
    ]


@case
def sharded_add(make):
    split = jax.device_put(EIGHT, sharded("a"))
    return (make(split) + make(split)).sharding.spec


@case
def operators_in_jit_with_closure(make):
    constant = make(VECTOR)

    @jax.jit
    def all_of_them(x):
        return x + constant, constant - x, constant * 2, x @ constant, constant[1], -constant

    return all_of_them(VECTOR)


@case
def operators_with_tracers(make):
    # A tracer on the left, then on the right.
    constant = make(VECTOR)
    return jax.jit(lambda x: [x < constant, constant < x, x // (constant + 1)])(make(VECTOR))
