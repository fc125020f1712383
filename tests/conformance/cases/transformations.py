"""Derivatives, batching, mapping over devices, custom rules."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from tests.conformance.cases._data import (
    EIGHT,
    MATRIX,
    VECTOR,
    devices,
    f32,
    indices,
    mesh,
    mesh_of_8,
    sharded,
)
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case
def grad(make):
    return jax.grad(lambda x: (x**2).sum())(make(VECTOR))


@case
def grad_closure(make):
    constant = make(VECTOR)
    return jax.grad(lambda x: (x * constant).sum())(VECTOR)


@case
def grad_scalar(make):
    return jax.grad(jnp.sin)(make(f32(2)))


@case
def grad_weak_scalar(make):
    return jax.grad(lambda x: x**2)(make(jnp.asarray(2.0)))


@case
def grad_of_jit(make):
    return jax.grad(jax.jit(lambda x: (x**3).sum()))(make(VECTOR))


@case
def jit_of_grad(make):
    return jax.jit(jax.grad(lambda x: (x**3).sum()))(make(VECTOR))


@case
def grad_of_grad(make):
    return jax.grad(jax.grad(lambda x: x**4))(make(f32(2)))


@case
def grad_argnums(make):
    product = jax.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))
    return product(make(VECTOR), make(VECTOR + 1))


@case
def grad_has_aux(make):
    aux = make(VECTOR)
    return jax.grad(lambda x: (x.sum(), (aux, x)), has_aux=True)(make(VECTOR))


@case
def grad_of_tree(make):
    tree = {"w": make(VECTOR), "b": make(f32(1))}
    return jax.grad(lambda tree: (tree["w"] * tree["b"]).sum())(tree)


@case
def grad_identity_returns_cotangent(make):
    return jax.grad(lambda x: x)(make(f32(2)))


@case
def grad_sharded(make):
    argument = make(jax.device_put(EIGHT, sharded("a")))
    return jax.grad(lambda x: (x**2).sum())(argument)


@case
def grad_complex_holomorphic(make):
    argument = make(np.complex64(1 + 2j))
    return jax.grad(lambda z: z**2, holomorphic=True)(argument)


@case
def grad_allow_int(make):
    gradient = jax.grad(lambda x: x.sum().astype(np.float32), allow_int=True)(make(indices(1, 2)))
    return np.asarray(gradient).dtype.names is None, gradient.shape


@case
def grad_constant_output(make):
    constant = make(f32(3))
    return jax.grad(lambda x: constant)(make(f32(2)))


@case
def grad_non_scalar_error(make):
    return attempt(jax.grad(lambda x: x * 2), make(VECTOR))


@case(name="vag")
def value_and_grad(make):
    return jax.value_and_grad(lambda x: (x**2).sum())(make(VECTOR))


@case(raises=TypeError)
def grad_int_err(make):
    return jax.grad(lambda x: x.sum())(make(np.arange(3)))


@case
def grad_fanout(make):
    # Two uses of x: the backward pass adds two cotangents.
    return jax.grad(lambda x: (x * make(VECTOR) + x * x).sum())(make(VECTOR))


@case
def jacfwd(make):
    return jax.jacfwd(lambda x: x**2)(make(VECTOR))


@case
def jacrev(make):
    return jax.jacrev(lambda x: x**2)(make(VECTOR))


@case
def hessian(make):
    return jax.hessian(lambda x: (x**3).sum())(make(VECTOR))


@case
def jvp(make):
    return jax.jvp(jnp.sin, (make(VECTOR),), (make(VECTOR),))


@case
def jvp_mixed(make):
    return jax.jvp(jnp.sin, (make(VECTOR),), (jnp.asarray(VECTOR),))


@case
def jvp_tangent_dtype_error(make):
    return attempt(jax.jvp, jnp.sin, (make(VECTOR),), (make(VECTOR.astype(np.int32)),))


@case
def jvp_closure(make):
    constant = make(VECTOR)
    return jax.jvp(lambda x: x * constant, (VECTOR,), (make(VECTOR),))


@case
def vjp(make):
    value, pull = jax.vjp(jnp.sin, make(VECTOR))
    return value, pull(make(VECTOR))


@case
def vjp_has_aux(make):
    value, pull, aux = jax.vjp(lambda x: (jnp.sin(x), x), make(VECTOR), has_aux=True)
    return value, pull(make(VECTOR)), aux


@case
def vjp_ct_twice(make):
    pull = jax.vjp(lambda x: (x, x), VECTOR)[1]
    return pull((make(VECTOR), make(VECTOR)))


@case
def vjp_ct_twice_mixed(make):
    pull = jax.vjp(lambda x: (x, x), VECTOR)[1]
    return pull((make(VECTOR), VECTOR)), pull((jnp.asarray(VECTOR), make(VECTOR)))


@case
def vjp_ct_wrong_shape(make):
    pull = jax.vjp(jnp.sin, make(VECTOR))[1]
    return attempt(pull, make(MATRIX))


@case
def vjp_in_jit(make):
    @jax.jit
    def both(x, cotangent):
        value, pull = jax.vjp(jnp.sin, x)
        return value, pull(cotangent)

    return both(make(VECTOR), make(VECTOR))


@case
def vjp_pull_is_a_pytree(make):
    pull = jax.vjp(lambda x, y: x * y, make(VECTOR), make(VECTOR + 1))[1]
    return jax.jit(lambda pull, cotangent: pull(cotangent))(pull, make(VECTOR))


@case
def linearize(make):
    value, push = jax.linearize(jnp.sin, make(VECTOR))
    return value, push(make(VECTOR))


@case
def linear_transpose(make):
    return jax.linear_transpose(lambda x: x * 2, make(VECTOR))(make(VECTOR))


@case
def closure_convert(make):
    constant = make(VECTOR)
    converted, constants = jax.closure_convert(lambda x: x * constant, make(VECTOR))
    return converted(make(VECTOR), *constants), constants


@case
def vmap(make):
    return jax.vmap(lambda row: row.sum())(make(MATRIX))


@case
def vmap_inaxes(make):
    return jax.vmap(lambda a, b: a + b, in_axes=(0, None))(make(MATRIX), make(VECTOR))


@case
def vmap_out_axes(make):
    return jax.vmap(lambda row: row * 2, out_axes=1)(make(MATRIX))


@case
def vmap_closure(make):
    constant = make(VECTOR)
    return jax.vmap(lambda row: row @ constant)(MATRIX)


@case
def vmap_returns_closure(make):
    constant = make(VECTOR)
    return jax.vmap(lambda row: constant)(MATRIX)


@case
def vmap_collective(make):
    return jax.vmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(make(VECTOR))


@case
def vmap_index_by_batched(make):
    table = make(VECTOR)
    return jax.vmap(lambda i: table[i])(make(indices(3, 1, 0)))


@case
def vmap_of_grad(make):
    return jax.vmap(jax.grad(lambda row: (row**2).sum()))(make(MATRIX))


@case
def vmap_size_mismatch(make):
    return attempt(jax.vmap(lambda a, b: (a, b)), make(MATRIX), make(VECTOR))


@case
def vmap_0d_error(make):
    return attempt(jax.vmap(lambda a: a), make(f32(1)))


@case
def jnp_vectorize(make):
    return jnp.vectorize(lambda a, b: a + b)(make(VECTOR), make(VECTOR))


@case
def vectorize_signature(make):
    dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    return dot(make(MATRIX), make(VECTOR))


@case
def apply_along(make):
    return jnp.apply_along_axis(jnp.sum, 0, make(MATRIX))


@case
def checkpoint(make):
    return jax.grad(jax.checkpoint(lambda x: jnp.sin(x).sum()))(make(VECTOR))


@case
def checkpoint_closure(make):
    constant = make(VECTOR)
    return jax.grad(jax.checkpoint(lambda x: jnp.sin(x * constant).sum()))(VECTOR)


@case
def remat_policy(make):
    policy = jax.checkpoint_policies.dots_saveable
    return jax.grad(jax.checkpoint(lambda x: jnp.sin(x).sum(), policy=policy))(make(VECTOR))


@case
def custom_vjp(make):
    @jax.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (double(x), x), lambda residual, cotangent: (cotangent * 3,))
    return double(make(VECTOR)), jax.grad(lambda x: double(x).sum())(make(VECTOR))


@case
def custom_vjp_bwd_returns(make):
    @jax.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (double(x), None), lambda residual, cotangent: (make(VECTOR),))
    return jax.grad(lambda x: double(x).sum())(VECTOR)


@case
def custom_vjp_residual(make):
    constant = make(VECTOR)

    @jax.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (double(x), constant), lambda residual, ct: (ct * residual,))
    return jax.grad(lambda x: double(x).sum())(make(VECTOR))


@case
def custom_vjp_nondiff(make):
    constant = make(f32(3))

    def double(scale, x):
        return x * scale()

    double = jax.custom_vjp(double, nondiff_argnums=(0,))
    double.defvjp(lambda scale, x: (double(scale, x), x), lambda scale, x, ct: (ct * scale(),))
    return jax.grad(lambda x: double(lambda: constant, x).sum())(make(VECTOR))


@case
def custom_vjp_wrong_cotangent(make):
    @jax.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (double(x), None), lambda residual, cotangent: (make(MATRIX),))
    return attempt(jax.grad(lambda x: double(x).sum()), make(VECTOR))


@case
def custom_jvp(make):
    @jax.custom_jvp
    def double(x):
        return x * 2

    @double.defjvp
    def double_jvp(primals, tangents):
        return double(primals[0]), tangents[0] * 3

    return double(make(VECTOR)), jax.grad(lambda x: double(x).sum())(make(VECTOR))


@case
def custom_gradient(make):
    @jax.custom_gradient
    def double(x):
        return x * 2, lambda cotangent: cotangent * make(VECTOR)

    return jax.grad(lambda x: double(x).sum())(make(VECTOR))


@case
def custom_batching(make):
    @jax.custom_batching.custom_vmap
    def double(x):
        return x * 2

    @double.def_vmap
    def double_vmap(axis_size, in_batched, x):
        return x * make(f32(3)), in_batched[0]

    return double(make(VECTOR)), jax.vmap(double)(make(VECTOR))


@case
def custom_batching_no_rule(make):
    return attempt(jax.custom_batching.custom_vmap(lambda x: x), make(VECTOR))


@case
def pmap(make):
    return jax.pmap(lambda x: x * 2)(make(EIGHT.reshape(4, 2)))


@case
def pmap_sharded(make):
    argument = jax.device_put(EIGHT.reshape(4, 2), sharded("a"))
    return jax.pmap(lambda x: x * 2)(make(argument))


@case
def pmap_over_8(make):
    double = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
    return double(make(EIGHT))


@case
def pmap_broadcast(make):
    add = jax.pmap(lambda x, y: x + y, in_axes=(0, None), devices=devices())
    return add(make(VECTOR), make(f32(1)))


@case
def shard_map(make):
    double = jax.shard_map(lambda x: x * 2, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    return jax.jit(double)(make(EIGHT))


@case
def shard_map_eager(make):
    double = jax.shard_map(lambda x: x * 2, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    return double(make(EIGHT))


@case
def shard_map_over_8(make):
    total = jax.shard_map(
        lambda x: jax.lax.psum(x, ("a", "b")),
        mesh=mesh_of_8(),
        in_specs=P("a", "b"),
        out_specs=P(),
    )
    return jax.jit(total)(make(EIGHT.reshape(4, 2)))


@case
def shard_map_closure(make):
    constant = make(f32(3))
    scale = jax.shard_map(lambda x: x * constant, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    return jax.jit(scale)(EIGHT)


@case
def shard_map_replicated(make):
    scale = jax.shard_map(lambda x, y: x * y, mesh=mesh(), in_specs=(P("a"), P()), out_specs=P("a"))
    return jax.jit(scale)(make(EIGHT), make(f32(3)))


@case
def shard_map_grad(make):
    double = jax.shard_map(lambda x: x**2, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    return jax.grad(lambda x: double(x).sum())(make(EIGHT))


@case
def shard_map_uneven_error(make):
    double = jax.shard_map(lambda x: x * 2, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    return attempt(double, make(np.ones(6, np.float32)))


@case
def named_call(make):
    return jax.named_call(lambda x: x + 1)(make(VECTOR))


@case
def named_scope(make):
    with jax.named_scope("scope"):
        return jnp.sin(make(VECTOR))
