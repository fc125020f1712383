"""Callbacks, printing, mutable references."""

from __future__ import annotations

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify as checking
from jax.experimental import io_callback as call_host

from tests.conformance.cases._data import EIGHT, MATRIX, VECTOR, f32, i32, indices, sharded
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt

FOUR = jax.ShapeDtypeStruct((4,), np.float32)
SCALAR = jax.ShapeDtypeStruct((), np.float32)


@case
def pure_callback(make):
    return jax.pure_callback(lambda x: np.asarray(x) * 2, FOUR, make(VECTOR))


@case
def pure_callback_returns(make):
    return jax.pure_callback(lambda x: make(VECTOR), FOUR, VECTOR)


@case
def pure_callback_in_jit(make):
    constant = make(VECTOR)
    run = jax.jit(lambda x: jax.pure_callback(lambda x, c: np.asarray(x) + c, FOUR, x, constant))
    return run(make(VECTOR))


@case
def pure_callback_vmap(make):
    def host(x):
        return np.asarray(x) * 2

    batched = jax.vmap(lambda x: jax.pure_callback(host, SCALAR, x, vmap_method="sequential"))
    return batched(make(VECTOR))


@case
def pure_callback_wrong_shape(make):
    # The program fails at run time: only that it does is compared, the text has addresses in it.
    def run():
        return jax.pure_callback(lambda x: make(MATRIX), FOUR, VECTOR).block_until_ready()

    return type(attempt(run)).__name__


@case
def io_callback(make):
    return call_host(lambda x: np.asarray(x) * 2, FOUR, make(VECTOR))


@case
def io_ordered(make):
    return call_host(lambda x: f32(1), SCALAR, make(VECTOR), ordered=True)


@case
def debug_print(make):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        jax.debug.print("{x}", x=make(VECTOR))
        jax.effects_barrier()
    return printed.getvalue()


@case
def debug_print_in_jit(make):
    constant = make(f32(3))
    printed = io.StringIO()

    @jax.jit
    def show(x):
        jax.debug.print("{} and {y}", x, y=constant)
        return x

    with contextlib.redirect_stdout(printed):
        show(make(VECTOR)).block_until_ready()
        jax.effects_barrier()
    return printed.getvalue()


@case
def debug_callback(make):
    seen = []
    jax.debug.callback(lambda x: seen.append(np.asarray(x)), make(VECTOR))
    jax.effects_barrier()
    return seen


@case
def debug_callback_sharded(make):
    seen = []
    array = make(jax.device_put(EIGHT, sharded("a")))
    jax.debug.callback(lambda x: seen.append(np.asarray(x)), array)
    jax.effects_barrier()
    return seen


@case
def ref(make):
    reference = jax.new_ref(make(VECTOR))
    reference[...] = make(VECTOR) + 1

    @jax.jit
    def accumulate(reference, x):
        reference[...] += x

    accumulate(reference, make(VECTOR))
    return reference[...]


@case
def ref_set(make):
    reference = jax.new_ref(jnp.zeros(4))
    reference[make(i32(1))] = make(f32(5))
    jax.jit(lambda reference: reference[...])(reference)
    return reference[...], jax.freeze(reference)


@case
def ref_leaves_source(make):
    source = make(jnp.array(VECTOR))
    reference = jax.new_ref(source)
    reference[0] = f32(9)
    return source, source.is_deleted(), reference[...]


@case
def ref_indexing(make):
    reference = jax.new_ref(make(MATRIX))
    reference[make(i32(1)), :] = make(VECTOR)
    reference[make(indices(0, 2)), 0] = make(VECTOR[:2])
    return reference[make(i32(1))], reference[...], reference.shape


@case
def ref_errors(make):
    reference = jax.new_ref(make(VECTOR))

    def store_wrong_shape():
        reference[...] = make(MATRIX)

    return [
        attempt(store_wrong_shape),
        attempt(lambda: reference["a"]),
    ]


@case
def ref_in_scan(make):
    reference = jax.new_ref(make(f32(0)))

    def step(carry, x):
        reference[...] += x
        return carry, reference[...]

    @jax.jit
    def run(xs):
        return jax.lax.scan(step, 0.0, xs)[1]

    return run(make(VECTOR)), reference[...]


@case
def ref_grad(make):
    @jax.jit
    def loss(x):
        reference = jax.new_ref(x)
        reference[0] *= 3
        return (reference[...] ** 2).sum()

    return jax.grad(loss)(make(VECTOR))


@case
def checkify(make):
    check = checking.checkify(lambda x: jnp.log(x), errors=checking.float_checks)
    return check(make(VECTOR))[1]


@case
def checkify_messages(make):
    limit = make(f32(2))

    def checked(x):
        checking.check(jnp.all(x < limit), "too large: {x}", x=x.max())
        return x[make(i32(9))]

    run = checking.checkify(checked, errors=checking.user_checks | checking.index_checks)
    error, _ = run(make(VECTOR))
    return str(error.get()).splitlines()[0]


@case
def checkify_in_jit(make):
    run = jax.jit(checking.checkify(lambda x: 1 / x, errors=checking.div_checks))
    error, value = run(make(VECTOR))
    return (error.get() or "").split(".")[0], value, attempt(error.throw) is not None


@case
def profiler(make):
    return jax.profiler.annotate_function(lambda x: x)(make(VECTOR))


@case
def effects_barrier(make):
    array = make(VECTOR) + 1
    jax.effects_barrier()
    return array
