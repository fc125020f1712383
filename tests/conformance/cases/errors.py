"""Wrong programs: the error, not only the success, is JAX's."""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.cases._data import MATRIX, VECTOR, f32, i32, indices
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case
def shape_mismatches(make):
    three = make(np.ones(3, np.float32))
    vector, matrix = make(VECTOR), make(MATRIX)
    return [
        attempt(lambda: vector + three),
        attempt(lambda: matrix @ three),
        attempt(lambda: vector @ make(f32(1))),
        attempt(jnp.dot, matrix, matrix),
        attempt(jnp.concatenate, [vector, matrix]),
        attempt(jnp.einsum, "ij,jk->ik", vector, vector),
        attempt(jnp.broadcast_to, vector, (3,)),
        attempt(jnp.linalg.inv, matrix),
        attempt(jnp.where, make(VECTOR > 1), three, 0),
    ]


@case
def concretization_errors(make):
    constant = make(VECTOR)
    return [
        attempt(jax.jit(lambda x: 1 if x.sum() > 0 else 2), constant),
        attempt(jax.jit(lambda x: float(x[0])), constant),
        attempt(jax.jit(lambda x: np.asarray(x)), constant),
        attempt(jax.jit(lambda x: range(x)), make(i32(3))),
        attempt(jax.jit(lambda x: constant[x > 1]), constant),
        attempt(jax.jit(lambda x: jnp.nonzero(x)), constant),
        attempt(jax.jit(lambda x: x.tolist()), constant),
        attempt(jax.jit(lambda x: hash(x)), constant),
        attempt(jax.jit(lambda x: jnp.arange(x)), make(i32(3))),
        attempt(jax.vmap(lambda x: bool(x)), constant),
    ]


@case
def concrete_closure_in_trace(make):
    # A constant stays concrete inside a trace: its value may be asked for.
    constant = make(VECTOR)
    scalar = make(i32(3))

    @jax.jit
    def run(x):
        return x * float(constant[1]) + int(scalar) + (1 if constant[0] < 1 else 2)

    return attempt(run, make(VECTOR)), attempt(jax.jit(lambda x: x * float(scalar)), make(VECTOR))


@case
def concrete_closure_methods_in_trace(make):
    constant = make(VECTOR)

    @jax.jit
    def run(x):
        rows = list(constant)
        total = np.asarray(constant) + len(constant) + constant.item(1)
        return x + total + rows[1] + constant.max()

    return attempt(run, make(VECTOR))


@case
def leaked_tracer(make):
    kept = []
    jax.jit(lambda x: kept.append(x))(make(VECTOR))
    error = attempt(lambda: kept[0] + make(VECTOR))
    return type(error.error).__name__


@case
def bad_return_from_jit(make):
    return [
        attempt(jax.jit(lambda x: "a"), make(VECTOR)),
        attempt(jax.jit(lambda x: object()), make(VECTOR)),
        attempt(jax.grad(lambda x: "a"), make(f32(1))),
    ]


@case
def bad_argument_with_good_one(make):
    return [
        attempt(jax.jit(lambda x, y: x), make(VECTOR), "a"),
        attempt(jax.jit(lambda x, y: x), object(), make(VECTOR)),
        attempt(jax.jit(lambda x: x), make(VECTOR), make(VECTOR)),
        attempt(jax.vmap(lambda x, y: x), make(VECTOR), "a"),
        attempt(lambda: jax.jit(lambda x: x, static_argnums=5)(make(VECTOR))),
    ]


@case
def arrays_where_static_values_belong(make):
    vector = make(VECTOR)
    return [
        attempt(jnp.zeros, vector),
        attempt(jnp.sum, vector, axis=vector),
        attempt(jnp.reshape, vector, make(f32(4))),
        attempt(jnp.zeros, make(indices(2, 3))),
        attempt(jnp.eye, make(i32(2))),
        attempt(jnp.tile, vector, make(i32(2))),
        attempt(jnp.roll, vector, make(i32(1))),
        attempt(jnp.transpose, make(MATRIX), make(indices(1, 0))),
        attempt(jax.lax.top_k, vector, make(i32(2))),
        attempt(jnp.squeeze, vector, make(i32(0))),
    ]


@case
def errors_name_the_array(make):
    vector = make(VECTOR)
    return [
        attempt(lambda: vector()),
        attempt(lambda: vector.nonsense),
        attempt(lambda: vector["a"]),
        attempt(lambda: int("3") + vector + "a"),
        attempt(lambda: open(vector)),
        attempt(lambda: "".join([vector])),
        attempt(lambda: len(vector.item)),
        attempt(lambda: vector < "a"),
        attempt(lambda: vector @ "a"),
        attempt(lambda: divmod("a", vector)),
        attempt(lambda: vector ** "a"),
        attempt(operator.add, [], vector),
        attempt(operator.add, (1,), vector),
        attempt(lambda: {} | vector),
        attempt(isinstance, 1, vector),
        attempt(sorted, [vector, vector]),
        attempt(sum, make(f32(1))),
        attempt(int, vector, 3),
    ]


@case
def iteration_errors(make):
    return [
        attempt(lambda: [x + 1 for x in make(f32(1))]),
        attempt(lambda: dict(make(VECTOR))),
        attempt(lambda: next(make(VECTOR))),
        attempt(lambda: functools.reduce(lambda x, y: x + y, make(np.zeros((0,))))),
        attempt(max, make(MATRIX)),
        attempt(lambda: await_array(make(VECTOR))),
        attempt(lambda: use_as_context(make(VECTOR))),
    ]


def await_array(array):
    async def wait():
        return await array

    wait().send(None)


def use_as_context(array):
    with array:
        pass
