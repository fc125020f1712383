"""Random keys, typed and raw."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from tests.conformance.cases._data import VECTOR, devices, f32, i32, indices, on_device, sharded
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt, normalise_repr


def key():
    return random.key(0)


def keys(count=3):
    return random.split(random.key(0), count)


@case
def key_typed(make):
    return random.uniform(make(key()), (3,))


@case
def key_raw(make):
    return random.uniform(make(random.PRNGKey(0)), (3,))


@case
def key_split(make):
    return random.split(make(key()))


@case
def key_split_raw(make):
    return random.split(make(random.PRNGKey(0)))


@case
def key_split_unpack(make):
    first, second = random.split(make(key()))
    return first, second, random.normal(second, (2,))


@case
def key_split_shape(make):
    return random.split(make(key()), (2, 3)), random.split(make(random.PRNGKey(0)), 5)


@case
def key_split_count_from_array(make):
    return attempt(random.split, make(key()), make(i32(3)))


@case
def key_fold(make):
    return random.fold_in(make(key()), make(i32(3)))


@case
def key_data(make):
    return random.key_data(make(key()))


@case
def key_clone(make):
    return random.clone(make(key()))


@case
def key_impl(make):
    return str(random.key_impl(make(key()))), str(random.key_impl(make(random.PRNGKey(0))))


@case
def key_wrap(make):
    return random.wrap_key_data(make(random.PRNGKey(0)))


@case
def key_wrap_round_trip(make):
    data = random.key_data(make(keys()))
    return random.wrap_key_data(make(data)), random.wrap_key_data(data)


@case
def key_jit(make):
    # A function of its own per call, as the prototype had it.
    return [jax.jit(lambda k: random.normal(k, (2,)))(make(key())) for _ in range(3)]


@case
def key_jit_fast_path(make):
    draw = jax.jit(lambda k: random.normal(k, (2,)))
    return [draw(make(key())) for _ in range(3)]


@case
def key_jit_returns_key(make):
    constant = make(key())
    return jax.jit(lambda k: (k, constant, random.split(k)))(make(key()))


@case
def key_vmap(make):
    return jax.vmap(lambda k: random.normal(k, (2,)))(make(keys()))


@case
def key_scan(make):
    return jax.lax.scan(lambda carry, k: (carry, random.normal(k, (2,))), 0, make(keys()))


@case
def key_scan_carry(make):
    def step(carry, _):
        carry, sub = random.split(carry)
        return carry, random.normal(sub)

    return jax.lax.scan(step, make(key()), None, length=3)


@case
def key_fori_and_cond(make):
    loop = jax.lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), make(key()))
    branch = jax.lax.cond(True, lambda k: k, lambda k: random.split(k)[0], make(key()))
    return loop, branch


@case
def key_closure(make):
    constant = make(key())
    return jax.jit(lambda x: x + random.normal(constant, (4,)))(VECTOR)


@case
def key_raw_closure(make):
    constant = make(random.PRNGKey(0))
    return jax.jit(lambda x: x + random.normal(constant, (4,)))(VECTOR)


@case
def key_stack(make):
    return jnp.stack([make(random.key(0)), make(random.key(1))])


@case
def key_concatenate(make):
    return jnp.concatenate([make(keys()), make(keys())])


@case
def key_eq(make):
    return make(key()) == make(key())


@case
def key_operators(make):
    return [
        make(key()) != make(random.key(1)),
        make(keys()) == make(key()),
        make(key()) == key(),
        key() == make(key()),
        attempt(lambda: make(key()) + 1),
        attempt(lambda: 1 + make(key())),
        attempt(lambda: make(key()) < make(key())),
        attempt(lambda: -make(key())),
        attempt(lambda: make(key()) == 1),
        attempt(lambda: make(key()) @ make(key())),
        attempt(bool, make(key())),
        attempt(int, make(key())),
        attempt(float, make(key())),
    ]


@case
def key_idx(make):
    return make(keys())[1]


@case
def key_idx_forms(make):
    array = make(keys())
    return [
        array[-1],
        array[1:],
        array[None],
        array[...],
        array[np.array([0, 2])],
        array[make(i32(1))],
        array[make(indices(0, 2))],
        attempt(lambda: make(key())[0]),
        attempt(lambda: array[1.5]),
        attempt(lambda: array[7]),
    ]


@case
def key_at(make):
    array = make(keys())
    return [
        array.at[0].set(make(random.key(7))),
        array.at[1].get(),
        attempt(array.at[0].add, make(key())),
        attempt(array.at[0].set, 1),
    ]


@case
def key_iter(make):
    return [random.bits(k) for k in make(keys())]


@case
def key_iter_keys(make):
    return list(make(keys())), list(reversed(make(keys())))


@case
def key_iter_0d(make):
    return attempt(iter, make(key())), attempt(len, make(key())), len(make(keys()))


@case
def key_put(make):
    return jax.device_put(make(key()), devices()[1])


@case
def key_put_sharded(make):
    return jax.device_put(make(keys(4)), sharded("a")), jax.device_put(make(keys(4)))


@case
def key_put_then_use(make):
    moved = make(jax.device_put(key(), devices()[1]))
    return moved, random.split(moved), random.normal(moved, (2,))


@case(raises=TypeError)
def key_np(make):
    return np.asarray(make(key()))


@case
def key_host_errors(make):
    return [
        attempt(np.array, make(keys())),
        attempt(lambda: make(key()).item()),
        attempt(lambda: make(key()).tolist()),
        attempt(lambda: make(key()).__array__()),
        attempt(jax.device_get, make(key())),
        attempt(jnp.sin, make(key())),
        attempt(jnp.asarray, make(key()), dtype=np.float32),
    ]


@case
def key_memoryview(make):
    return attempt(memoryview, make(key()))


@case
def key_bytes(make):
    return attempt(bytes, make(keys()))


@case
def key_index(make):
    return attempt(hex, make(key())), attempt(range, make(key()))


@case
def key_list_index(make):
    return attempt(lambda: [1, 2][make(key())])


@case
def key_numeric_methods(make):
    # JAX's key type has none of these: they are abstract there.
    methods = {
        "sum": lambda array: array.sum(),
        "max": lambda array: array.max(),
        "sort": lambda array: array.sort(),
        "astype": lambda array: array.astype(np.float32),
        "view": lambda array: array.view(np.uint32),
        "clip": lambda array: array.clip(0, 1),
    }
    return {name: attempt(method, make(keys())) for name, method in methods.items()}


@case
def key_permutation(make):
    return random.permutation(make(key()), make(VECTOR))


@case
def key_choice(make):
    return random.choice(make(key()), make(VECTOR), (2,))


@case
def key_categorical(make):
    return random.categorical(make(key()), make(VECTOR))


@case
def key_distributions(make):
    source = make(key())
    return [
        random.bits(source, (2,)),
        random.bernoulli(source, make(f32(0.5)), (3,)),
        random.randint(source, (3,), make(i32(0)), make(i32(9))),
        random.uniform(source, (2,), minval=make(f32(1)), maxval=make(f32(2))),
        random.normal(source, (2,), jnp.bfloat16),
        random.gamma(source, make(f32(2))),
        random.poisson(source, make(f32(2)), (2,)),
        random.truncated_normal(source, make(f32(-1)), make(f32(1)), (2,)),
        random.multivariate_normal(source, make(VECTOR[:2]), make(np.eye(2, dtype=np.float32))),
        random.exponential(source, (2,)),
        random.dirichlet(source, make(VECTOR + 1)),
        random.rademacher(source, (2,)),
    ]


@case
def key_distribution_errors(make):
    return [
        attempt(random.normal, make(VECTOR)),
        attempt(random.normal, make(keys())),
        attempt(random.split, make(indices(1, 2, 3))),
        attempt(random.key, make(VECTOR)),
        attempt(random.key_data, make(VECTOR)),
        attempt(random.wrap_key_data, make(VECTOR)),
    ]


@case
def key_seed(make):
    return random.key(make(i32(7))), random.PRNGKey(make(i32(7)))


@case
def key_other_implementations(make):
    results = []
    for implementation in ("threefry2x32", "rbg", "unsafe_rbg"):
        other = make(random.key(0, impl=implementation))
        results.append([other, random.split(other), random.bits(other, (2,)), str(other.dtype)])
    return results


@case
def key_normal_disable_jit(make):
    with jax.disable_jit():
        return random.uniform(make(key()), (3,))


@case
def key_ckpt(make):
    return jax.eval_shape(lambda k: random.split(k), make(key()))


@case
def key_attributes(make):
    one, many = make(key()), make(keys())
    return [
        [one.shape, many.shape],
        [str(one.dtype), many.ndim, many.size, many.nbytes, many.itemsize],
        [one.sharding, one.committed, one.device, one.devices()],
        [one.is_fully_addressable, one.is_fully_replicated, one.is_deleted()],
        str(one.aval),
        attempt(lambda: one.weak_type),
        many.T,
        many.reshape(3, 1),
        many.ravel(),
        many.squeeze(),
        many.copy(),
        many.addressable_data(0),
        [shard.index for shard in many.addressable_shards],
        attempt(lambda: many.real),
        one.block_until_ready() is one,
        attempt(lambda: one.is_ready() in (True, False)),
        attempt(lambda: type(one.unsafe_buffer_pointer()).__name__),
        hasattr(one, "_base_array"),
    ]


@case
def key_text(make):
    return [
        normalise_repr(repr(make(key()))),
        normalise_repr(repr(make(keys()))),
        normalise_repr(str(make(key()))),
        normalise_repr(f"{make(keys())}"),
    ]


@case
def key_delete(make):
    array = make(random.key(5))
    array.delete()
    return array.is_deleted(), attempt(random.split, array), attempt(random.key_data, array)


@case
def key_donate(make):
    array = make(random.key(5))
    result = jax.jit(lambda k: random.fold_in(k, 1), donate_argnums=0)(array)
    return result, array.is_deleted()


@case
def key_jnp_functions(make):
    array = make(keys())
    return [
        jnp.asarray(array),
        jnp.array(array),
        jnp.array([make(key()), make(key())]),
        jnp.where(np.array([True, False, True]), array, make(random.key(9))),
        jnp.ones_like(make(VECTOR)),
        jnp.zeros_like(array),
        jnp.take(array, make(i32(1))),
        jnp.shape(array),
        jnp.expand_dims(array, 0),
        jnp.broadcast_to(make(key()), (2,)),
        jnp.unstack(array),
        jax.lax.dynamic_slice(array, (make(i32(1)),), (2,)),
    ]


@case
def key_pytree(make):
    tree = {"key": make(key()), "x": make(VECTOR)}
    return jax.tree.map(lambda leaf: leaf.shape, tree), jax.jit(lambda tree: tree)(tree)


@case
def key_eval_and_jaxpr(make):
    return str(jax.make_jaxpr(lambda k: random.fold_in(k, 1))(make(key()))), str(
        jax.typeof(make(key()))
    )


@case
def key_aot(make):
    compiled = jax.jit(lambda k: random.normal(k, (2,))).lower(make(key())).compile()
    return [compiled(make(key())) for _ in range(3)]


@case
def key_issubdtype(make):
    dtype = make(key()).dtype
    return jnp.issubdtype(dtype, jax.dtypes.prng_key), dtype == key().dtype


@case
def key_committed_raw(make):
    return random.split(make(on_device(np.asarray(random.PRNGKey(0)), 1)))


@case
def key_reuse_checker(make):
    with jax.debug_key_reuse(True):
        source = make(random.key(3))
        first = random.uniform(source)
        return first, attempt(random.uniform, source)


@case
def key_reuse_checker_split_first(make):
    with jax.debug_key_reuse(True):
        source = make(random.key(3))
        first, second = random.split(source)
        return random.uniform(first), random.uniform(second)


@case
def key_reuse_checker_clone(make):
    with jax.debug_key_reuse(True):
        source = make(random.key(3))
        return random.uniform(random.clone(source)), random.uniform(source)
