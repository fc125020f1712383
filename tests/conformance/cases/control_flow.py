"""Loops, branches, and the solvers built on them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint as integrate
from jax.scipy.optimize import minimize as minimise
from jax.scipy.sparse.linalg import cg as conjugate_gradient
from jax.scipy.sparse.linalg import gmres

from tests.conformance.cases._data import EIGHT, MATRIX, VECTOR, f32, i32, sharded
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case
def scan_xs(make):
    return lax.scan(lambda carry, row: (carry + row.sum(), row * 2), 0.0, make(MATRIX))


@case
def scan_carry(make):
    return lax.scan(lambda carry, row: (carry + row, carry), make(VECTOR), MATRIX)


@case
def scan_closure(make):
    constant = make(VECTOR)
    return lax.scan(lambda carry, row: (carry + constant, carry), VECTOR, MATRIX)


@case
def scan_all_three(make):
    constant = make(VECTOR)

    def step(carry, row):
        return carry + row * constant, carry.sum()

    return lax.scan(step, make(VECTOR), make(MATRIX))


@case
def scan_returns_closure(make):
    constant = make(VECTOR)
    return lax.scan(lambda carry, row: (carry, constant), 0.0, MATRIX)


@case
def scan_weak_carry(make):
    return lax.scan(lambda carry, x: (carry + x, x), make(jnp.asarray(0.0)), make(VECTOR))


@case
def scan_carry_type_error(make):
    return attempt(lax.scan, lambda carry, x: (carry + x, x), make(i32(0)), make(VECTOR))


@case
def scan_length_mismatch(make):
    return attempt(lax.scan, lambda carry, x: (carry, x), 0, (make(VECTOR), make(MATRIX)))


@case
def scan_reverse_unroll(make):
    return lax.scan(lambda c, x: (c + x, c), f32(0), make(VECTOR), reverse=True, unroll=2)


@case
def scan_sharded(make):
    xs = make(jax.device_put(EIGHT.reshape(2, 4), sharded(None, "a")))
    return lax.scan(lambda carry, x: (carry + x, x * 2), jnp.zeros(4), xs)


@case
def scan_in_jit(make):
    constant = make(VECTOR)

    @jax.jit
    def run(xs):
        return lax.scan(lambda carry, row: (carry + constant, row), constant, xs)

    return run(make(MATRIX))


@case
def scan_grad(make):
    constant = make(VECTOR)

    def loss(start):
        carry, _ = lax.scan(lambda carry, row: (carry * row * constant, None), start, MATRIX)
        return carry.sum()

    return jax.grad(loss)(make(VECTOR))


@case
def scan_disable_jit(make):
    with jax.disable_jit():
        return lax.scan(lambda carry, row: (carry + row, row), make(VECTOR), make(MATRIX))


@case(name="while")
def while_loop(make):
    return lax.while_loop(lambda x: x[0] < 10, lambda x: x + 1, make(VECTOR))


@case
def while_closure(make):
    limit, step = make(f32(10)), make(f32(3))
    return lax.while_loop(lambda x: x < limit, lambda x: x + step, f32(0))


@case
def fori(make):
    return lax.fori_loop(0, 3, lambda i, x: x + i, make(VECTOR))


@case
def fori_bound(make):
    return lax.fori_loop(0, make(i32(3)), lambda i, x: x + i, VECTOR)


@case
def fori_both_bounds(make):
    return lax.fori_loop(make(i32(1)), make(i32(3)), lambda i, x: x + i, make(VECTOR))


@case
def fori_index_closure(make):
    table = make(MATRIX)
    return lax.fori_loop(0, 3, lambda i, x: x + table[i], make(VECTOR))


@case
def cond(make):
    return lax.cond(make(np.bool_(True)), lambda x: x, lambda x: x + 1, make(VECTOR))


@case
def cond_number(make):
    return lax.cond(make(i32(2)), lambda x: x, lambda x: x + 1, make(VECTOR))


@case
def cond_closure(make):
    constant = make(VECTOR)
    return lax.cond(make(np.bool_(False)), lambda: constant, lambda: constant + 1)


@case
def cond_vector_error(make):
    return attempt(lax.cond, make(VECTOR > 1), lambda x: x, lambda x: x + 1, make(VECTOR))


@case
def cond_branch_mismatch(make):
    one, other = make(VECTOR), make(MATRIX)
    return attempt(lax.cond, make(np.bool_(True)), lambda: one, lambda: other)


@case
def cond_vmap(make):
    choose = jax.vmap(lambda flag, x: lax.cond(flag, lambda x: x, lambda x: -x, x))
    return choose(make(VECTOR > 1), make(VECTOR))


@case
def cond_disable_jit(make):
    with jax.disable_jit():
        return lax.cond(make(np.bool_(True)), lambda x: x, lambda x: x + 1, make(VECTOR))


@case
def switch(make):
    return lax.switch(make(i32(1)), [lambda x: x, lambda x: x + 1], make(VECTOR))


@case
def switch_clamps(make):
    branches = [lambda x: x, lambda x: x + 1]
    return lax.switch(make(i32(7)), branches, make(VECTOR))


@case
def switch_float_error(make):
    return attempt(lax.switch, make(f32(1)), [lambda x: x, lambda x: x + 1], make(VECTOR))


@case
def lax_map(make):
    return lax.map(lambda row: row * 2, make(MATRIX))


@case
def lax_map_batched(make):
    return lax.map(lambda row: row * 2, make(MATRIX), batch_size=2)


@case(name="assoc_scan")
def associative_scan(make):
    return lax.associative_scan(jnp.add, make(MATRIX))


@case
def lax_reduce(make):
    return lax.reduce(make(MATRIX), make(f32(0)), lax.add, (0,))


@case
def python_while_on_array(make):
    x = make(f32(0))
    while x < 3:
        x = x + 1
    return x


@case
def python_if_on_array(make):
    return ["yes" if make(np.bool_(flag)) else "no" for flag in (True, False)]


@case
def jax_jit_cond_on_py(make):
    return 1 if make(np.bool_(True)) else 2


@case
def python_match_on_array(make):
    match make(i32(2)):
        case 1:
            return "one"
        case 2:
            return "two"
    return "neither"


@case
def custom_root(make):
    target = make(VECTOR)

    def solve(function, start):
        return start - function(start)

    def tangent_solve(function, y):
        return y / function(jnp.ones_like(y))

    return lax.custom_root(lambda x: x - target, VECTOR, solve, tangent_solve)


@case
def custom_linear_solve(make):
    diagonal = make(VECTOR + 1)

    def solve(matvec, b):
        return b / diagonal

    return lax.custom_linear_solve(lambda x: x * diagonal, make(VECTOR), solve, symmetric=True)


@case
def cg(make):
    return conjugate_gradient(lambda x: x * 2, make(VECTOR))[0]


@case
def cg_matrix(make):
    return conjugate_gradient(make(np.eye(4, dtype=np.float32) * 2), make(VECTOR))[0]


@case
def gmres_solve(make):
    matrix = np.eye(4, dtype=np.float32) * 2
    return gmres(make(matrix), make(VECTOR))[0]


@case
def odeint(make):
    times = make(np.array([0.0, 1.0], dtype=np.float32))
    return integrate(lambda y, t: -y, make(VECTOR), times)


@case
def odeint_parameters(make):
    times = make(np.array([0.0, 1.0], dtype=np.float32))
    return integrate(lambda y, t, rate: -rate * y, make(VECTOR), times, make(f32(2)))


@case
def minimize(make):
    return minimise(lambda x: ((x - 1) ** 2).sum(), make(VECTOR), method="BFGS").x


@case
def minimize_args(make):
    def loss(x, centre):
        return ((x - centre) ** 2).sum()

    return minimise(loss, make(VECTOR), args=(make(VECTOR),), method="BFGS").x
