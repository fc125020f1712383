"""JAX's switches: debugging, promotion, disabled jit, leak checks."""

from __future__ import annotations

import contextlib
import io
import operator
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.cases._data import MATRIX, VECTOR, f32, i32, indices
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case(raises=FloatingPointError)
def debug_nans(make):
    with jax.debug_nans(True):
        return jax.jit(lambda x: x / x)(make(np.zeros(3, np.float32)))


@case
def debug_nans_ok(make):
    with jax.debug_nans(True):
        return jnp.sin(make(VECTOR))


@case
def debug_nans_eager(make):
    zeros = make(np.zeros(3, np.float32))
    holds_nan = make(np.array([1, np.nan], np.float32))
    with jax.debug_nans(True):
        return [
            attempt(lambda: zeros / zeros),
            attempt(jnp.log, make(f32(-1))),
            attempt(lambda: zeros + 1),
            attempt(lambda: holds_nan + 1),
            attempt(lambda: holds_nan[1]),
            attempt(jax.grad(lambda x: jnp.sqrt(x).sum() * 0), zeros),
            attempt(jax.jit(lambda x: x + zeros / zeros), zeros),
        ]


@case
def debug_infs(make):
    zeros = make(np.zeros(3, np.float32))
    with jax.debug_infs(True):
        return attempt(lambda: 1 / zeros), attempt(jnp.exp, zeros)


@case(raises=ValueError)
def rank_promotion(make):
    with jax.numpy_rank_promotion("raise"):
        return make(MATRIX) + make(VECTOR)


@case
def rank_promotion_more(make):
    with jax.numpy_rank_promotion("raise"):
        return [
            attempt(operator.add, make(MATRIX), 1),
            attempt(operator.add, make(MATRIX), make(f32(1))),
            attempt(operator.add, make(MATRIX), VECTOR),
            attempt(operator.add, VECTOR, make(MATRIX)),
            attempt(jnp.where, make(MATRIX > 3), make(VECTOR), 0),
        ]


def warned(function):
    """The categories and first lines of the warnings that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [(w.category.__name__, str(w.message).splitlines()[0]) for w in caught]


@case
def warnings_given(make):
    values = make(np.array([1 + 2j], np.complex64))
    return [
        warned(lambda: values.astype(np.float32)),
        warned(lambda: make(VECTOR).astype(np.float64)),
        warned(lambda: jnp.asarray(make(VECTOR), dtype=np.float64)),
        warned(lambda: make(VECTOR).at[0].set(make(values)[0])),
        warned(lambda: make(np.array([1], np.int8)).at[0].set(make(f32(1.5)))),
        warned(lambda: make(VECTOR) + 1),
    ]


@case
def warning_names_the_callers_file(make):
    # stacklevel: the warning points here, not into a library.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(VECTOR).astype(np.float64)
    return [warning.filename == __file__ for warning in caught]


@case
def disable_jit(make):
    with jax.disable_jit():
        return jax.jit(lambda x: x + 1)(make(VECTOR))


@case
def disable_jit_more(make):
    array = make(MATRIX)
    with jax.disable_jit():
        return [
            array + array,
            array[1],
            array[1:],
            array.sum(axis=0),
            list(array),
            jnp.sin(array),
            jnp.stack([array, array]),
            jax.vmap(lambda row: row.sum())(array),
            jax.grad(lambda x: (x**2).sum())(array),
            array.at[0].set(make(VECTOR)),
            array @ make(VECTOR),
            jax.lax.while_loop(lambda x: x < 3, lambda x: x + 1, make(f32(0))),
            jax.lax.fori_loop(0, make(i32(2)), lambda i, x: x + i, make(f32(0))),
            jax.jit(lambda x: float(x[0, 0]))(array),
        ]


@case
def disable_jit_identity(make):
    array = make(VECTOR)
    with jax.disable_jit():
        return jax.jit(lambda x: x)(array) is array


@case
def leaks(make):
    with jax.check_tracer_leaks(True):
        return jax.jit(lambda x: x + 1)(make(VECTOR))


@case
def leaks_with_closure(make):
    constant = make(VECTOR)
    with jax.check_tracer_leaks(True):
        return jax.jit(lambda x: (x + constant)[1])(make(VECTOR))


@case(raises=ValueError)
def strict_promo(make):
    with jax.numpy_dtype_promotion("strict"):
        return make(VECTOR) + make(np.arange(4))


@case
def strict_promotion_more(make):
    with jax.numpy_dtype_promotion("strict"):
        return [
            attempt(operator.add, make(VECTOR), 1),
            attempt(operator.add, make(VECTOR), make(jnp.asarray(1.0))),
            attempt(operator.add, make(VECTOR), make(VECTOR)),
            attempt(operator.add, make(VECTOR), indices(1, 2, 3, 4)),
            attempt(operator.add, indices(1, 2, 3, 4), make(VECTOR)),
            attempt(operator.add, make(indices(1)), True),
            attempt(jnp.stack, [make(VECTOR), make(indices(1, 2, 3, 4))]),
        ]


@case
def enable_checks(make):
    with jax.enable_checks(True):
        array = make(VECTOR)
        return [array + 1, array[1], jax.jit(lambda x: x * array)(array), list(array)]


@case
def default_matmul_precision(make):
    with jax.default_matmul_precision("highest"):
        return make(MATRIX) @ make(VECTOR)


@case
def log_compiles(make):
    with jax.log_compiles(True), contextlib.redirect_stderr(io.StringIO()):
        return jax.jit(lambda x: x + 1)(make(VECTOR))


@case
def no_tracing(make):
    add = jax.jit(lambda x: x + 1)
    first = add(make(VECTOR))
    with jax.no_tracing():
        return first, add(make(VECTOR))


@case
def no_execution(make):
    array = make(VECTOR)
    with jax.no_execution():
        return attempt(lambda: array + 1), attempt(jnp.sin, array), attempt(lambda: array[1])


@case
def threefry_partitionable(make):
    with jax.threefry_partitionable(False):
        return jax.random.normal(make(jax.random.key(0)), (3,))


@case
def legacy_prng_key_error(make):
    with jax.legacy_prng_key("error"):
        return attempt(jax.random.normal, make(np.array([0, 0], np.uint32)))


@case
def array_garbage_collection_guard(make):
    with jax.array_garbage_collection_guard("log"):
        return make(VECTOR) + 1
