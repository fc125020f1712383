"""Devices, shardings, memories, layouts, transfers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.experimental.layout import Format, Layout, with_layout_constraint
from jax.sharding import PartitionSpec as P

from tests.conformance.cases._data import (
    EIGHT,
    MATRIX,
    VECTOR,
    devices,
    explicit_mesh,
    f32,
    i32,
    mesh,
    on_device,
    sharded,
    sharded_over_8,
)
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt

SIXTEEN = np.arange(16.0, dtype=np.float32)


@case
def device_put(make):
    return jax.device_put(make(VECTOR))


@case(name="device_put_dev")
def device_put_device(make):
    moved = jax.device_put(make(VECTOR), devices()[1])
    return moved, moved.devices(), moved.committed


@case(name="device_put_sh")
def device_put_sharding(make):
    moved = jax.device_put(make(EIGHT), sharded("a"))
    return moved, moved.sharding.spec


@case
def device_put_same_sh(make):
    return jax.device_put(make(on_device(VECTOR, 0)), devices()[0])


@case
def device_put_reshard(make):
    rows = jax.device_put(SIXTEEN.reshape(4, 4), sharded("a"))
    return jax.device_put(make(rows), sharded(None, "a"))


@case
def device_put_more(make):
    return [
        jax.device_put(make(on_device(VECTOR, 1)), devices()[2]),
        jax.device_put(make(jax.device_put(EIGHT, sharded("a"))), devices()[0]),
        jax.device_put(make(jax.device_put(EIGHT, sharded("a"))), sharded_over_8("b")),
        jax.device_put(make(VECTOR), jax.sharding.SingleDeviceSharding(devices()[3])),
        jax.device_put(make(f32(1)), sharded()),
        jax.device_put(make(jnp.asarray(1.0)), devices()[1]),
        jax.device_put(make(np.zeros((0, 4), np.float32)), devices()[1]),
    ]


@case
def device_put_nowhere_keeps_the_device(make):
    return jax.device_put(make(on_device(VECTOR, 1)))


@case
def device_put_nowhere_keeps_the_sharding(make):
    return jax.device_put(make(jax.device_put(EIGHT, sharded("a"))))


@case
def device_put_nowhere_is_the_same(make):
    argument = make(VECTOR)
    return jax.device_put(argument) is argument


@case
def device_put_pspec_under_mesh(make):
    with jax.set_mesh(mesh()):
        return jax.device_put(make(EIGHT), P("a"))


@case(isolated=True)
def device_put_donate(make):
    # Reading a donated array that had changed devices once ended the process.
    argument = make(on_device(VECTOR, 0))
    moved = jax.device_put(argument, devices()[1], donate=True)
    return moved, argument.is_deleted()


@case(isolated=True)
def device_put_donate_same_device(make):
    argument = make(jax.device_put(jnp.array(VECTOR), devices()[0]))
    moved = jax.device_put(argument, devices()[0], donate=True)
    return moved, argument.is_deleted()


@case(isolated=True)
def device_put_donate_reshard(make):
    argument = make(jax.device_put(EIGHT, sharded("a")))
    moved = jax.device_put(argument, sharded(), donate=True)
    return moved, argument.is_deleted()


@case(isolated=True)
def device_put_donate_then_read(make):
    argument = make(on_device(VECTOR, 0))
    jax.device_put(argument, devices()[1], donate=True)
    return attempt(np.asarray, argument), attempt(lambda: argument + 1)


@case
def device_put_alias(make):
    return jax.device_put(make(on_device(VECTOR, 0)), devices()[0], may_alias=True)


@case
def device_put_no_alias(make):
    argument = make(on_device(VECTOR, 0))
    copied = jax.device_put(argument, devices()[0], may_alias=False)
    argument.delete()
    return copied


@case
def device_put_src(make):
    return jax.device_put(make(VECTOR), devices()[1], src=devices()[0])


@case
def device_put_replicated(make):
    return jax.device_put(make(VECTOR), sharded())


@case(name="device_put_mem")
def device_put_memory(make):
    return jax.device_put(make(VECTOR), jax.memory.Space.Host).sharding.memory_kind


@case
def device_put_in_jit(make):
    return jax.jit(lambda x: jax.device_put(x, devices()[0]))(make(VECTOR))


@case
def device_put_closure_in_jit(make):
    constant = make(VECTOR)
    return jax.jit(lambda x: x + jax.device_put(constant, devices()[0]))(VECTOR)


@case
def device_put_tree(make):
    return jax.device_put({"a": make(VECTOR), "b": VECTOR}, devices()[1])


@case
def device_put_tree_of_shardings(make):
    tree = {"a": make(EIGHT), "b": make(VECTOR)}
    return jax.device_put(tree, {"a": sharded("a"), "b": devices()[1]})


@case
def device_put_layout(make):
    rows = Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(devices()[0]))
    moved = jax.device_put(make(MATRIX), rows)
    return moved, moved.format


@case
def device_put_errors(make):
    return [
        attempt(jax.device_put, make(np.ones(6, np.float32)), sharded("a")),
        attempt(jax.device_put, make(VECTOR), "nonsense"),
        attempt(jax.device_put, make(f32(1)), sharded("a")),
        attempt(jax.device_put, make(VECTOR), devices()[1], donate=True, may_alias=True),
    ]


@case
def device_put_grad(make):
    return jax.grad(lambda x: (jax.device_put(x, devices()[0]) ** 2).sum())(make(VECTOR))


@case
def device_get(make):
    return jax.device_get({"a": make(VECTOR)})


@case
def device_get_type(make):
    return type(jax.device_get(make(VECTOR))).__name__


@case
def device_get_more(make):
    return jax.device_get(
        [make(f32(1)), make(jax.device_put(EIGHT, sharded("a"))), 3, make(i32(1)), None]
    )


@case(name="bur")
def block_until_ready(make):
    return jax.block_until_ready([make(VECTOR), make(VECTOR), VECTOR])


@case
def copy_async(make):
    return jax.copy_to_host_async([make(VECTOR)])


@case(name="wsc")
def with_sharding_constraint(make):
    return jax.lax.with_sharding_constraint(make(EIGHT), sharded("a"))


@case
def with_sharding_constraint_in_jit(make):
    constant = make(EIGHT)

    @jax.jit
    def constrain(x):
        return jax.lax.with_sharding_constraint(x + constant, sharded("a"))

    return constrain(make(EIGHT))


@case
def layout_constraint(make):
    return with_layout_constraint(make(MATRIX), Layout((1, 0)))


@case
def shards(make):
    array = make(jax.device_put(EIGHT, sharded("a")))
    return [(shard.index, np.asarray(shard.data)) for shard in array.addressable_shards]


@case
def shards_more(make):
    array = make(jax.device_put(EIGHT.reshape(4, 2), sharded_over_8("a", "b")))
    return [
        (shard.index, shard.device, shard.replica_id, shard.data)
        for shard in array.addressable_shards
    ]


@case
def shards_of_one_device(make):
    array = make(VECTOR)
    return [(s.index, s.device, s.replica_id, s.data) for s in array.addressable_shards]


@case(name="mk_single")
def make_array_from_single_device_arrays(make):
    parts = [make(jax.device_put(VECTOR[:2] + i, device)) for i, device in enumerate(devices())]
    return jax.make_array_from_single_device_arrays((8,), sharded("a"), parts)


@case
def make_array_from_shards(make):
    whole = make(jax.device_put(EIGHT, sharded("a")))
    parts = [shard.data for shard in whole.addressable_shards]
    return jax.make_array_from_single_device_arrays((8,), sharded("a"), parts)


@case(name="mk_callback")
def make_array_from_callback(make):
    whole = make(EIGHT)
    return jax.make_array_from_callback((8,), sharded("a"), lambda index: whole[index])


@case
def make_array_from_callback_whole(make):
    return jax.make_array_from_callback((8,), sharded(), lambda index: make(EIGHT))


@case(name="mk_procdata")
def make_array_from_process_local_data(make):
    return jax.make_array_from_process_local_data(sharded("a"), make(EIGHT))


@case
def process_allgather(make):
    return multihost_utils.process_allgather(make(VECTOR))


@case
def multihost_more(make):
    return [
        multihost_utils.broadcast_one_to_all(make(VECTOR)),
        multihost_utils.assert_equal(make(VECTOR)),
    ]


@case
def host_local_array_to_global(make):
    return multihost_utils.host_local_array_to_global_array(make(EIGHT), mesh(), P("a"))


@case
def explicit(make):
    with jax.set_mesh(explicit_mesh()):
        array = make(jax.device_put(EIGHT.reshape(4, 2), P("a")))
        return [
            str(jax.typeof(array)),
            str(jax.typeof(array + array)),
            str(jax.typeof(jax.jit(lambda x: x * 2)(array))),
            str(jax.typeof(jnp.sin(array))),
        ]


@case
def explicit_row(make):
    with jax.set_mesh(explicit_mesh()):
        array = make(jax.device_put(EIGHT.reshape(2, 4), P(None, "a")))
        return str(jax.typeof(array[0])), str(jax.typeof(array[0] + 1))


@case(name="explicit_row_of_sharded_axis")
def explicit_row_sharded_axis(make):
    with jax.set_mesh(explicit_mesh()):
        array = make(jax.device_put(EIGHT.reshape(4, 2), P("a")))
        return attempt(lambda: array[1]), attempt(lambda: array.T), attempt(list, array)


@case
def explicit_reshard(make):
    with jax.set_mesh(explicit_mesh()):
        array = make(jax.device_put(EIGHT.reshape(4, 2), P("a")))
        other = make(jax.device_put(EIGHT.reshape(4, 2), P(None)))
        return [
            jax.sharding.reshard(array, P(None)),
            attempt(lambda: array + other),
            attempt(lambda: array @ other.T),
            array.at[0].set(1, out_sharding=P("a")),
        ]


@case
def explicit_closure(make):
    with jax.set_mesh(explicit_mesh()):
        constant = make(jax.device_put(EIGHT, P("a")))
        return jax.jit(lambda x: x + constant)(jax.device_put(EIGHT, P("a")))


@case
def set_mesh_uncommitted(make):
    with jax.set_mesh(explicit_mesh()):
        return jnp.sin(make(EIGHT)), make(EIGHT) + 1, make(EIGHT)[1]


@case
def default_device(make):
    with jax.default_device(devices()[2]):
        array = make(VECTOR)
        return [array, array + 1, array[1], jnp.sin(array), list(array), jnp.zeros_like(array)]


@case
def made_under_another_default_device(make):
    with jax.default_device(devices()[2]):
        array = make(jnp.array(VECTOR))
    return array, array + 1, array[1]


@case
def transfer_guard(make):
    array = make(jnp.array(VECTOR))
    add = jax.jit(lambda x: x + x)
    with jax.transfer_guard("disallow"):
        return add(array)


@case(name="transfer_guard_idx", raises=jax.errors.JaxRuntimeError)
def transfer_guard_index(make):
    array = make(jnp.array(MATRIX))
    with jax.transfer_guard("disallow"):
        return array[1]


@case
def transfer_guard_more(make):
    array = make(jnp.array(MATRIX))
    closure = jax.jit(lambda: array + array)
    with jax.transfer_guard("disallow"):
        return [
            attempt(lambda: array + array),
            attempt(lambda: array + 1),
            attempt(lambda: array.sum()),
            attempt(jnp.sin, array),
            attempt(lambda: jax.device_put(array, devices()[1])),
            attempt(lambda: array @ array.T),
            attempt(closure),
            attempt(lambda: array[:, :2]),
            attempt(lambda: +array),
        ]


@case
def transfer_guard_device_to_device(make):
    array = make(jnp.array(EIGHT))
    with jax.transfer_guard_device_to_device("disallow"):
        return attempt(jax.jit(lambda x: x + 1, in_shardings=sharded("a")), array)


@case
def transfer_guard_device_to_host(make):
    array = make(jnp.array(EIGHT))
    with jax.transfer_guard_device_to_host("disallow"):
        return attempt(np.asarray, array), attempt(array.tolist)


@case
def memory_kinds(make):
    array = make(VECTOR)
    host = jax.sharding.SingleDeviceSharding(devices()[0], memory_kind="unpinned_host")
    moved = attempt(jax.device_put, array, host)
    return moved, array.sharding.memory_kind


@case
def jit_resharding_closure_over_8(make):
    constant = make(jax.device_put(EIGHT, sharded_over_8(("a", "b"))))
    return jax.jit(lambda x: x * constant)(jax.device_put(EIGHT, sharded_over_8("a")))


@case
def sharding_queries(make):
    array = make(jax.device_put(EIGHT.reshape(4, 2), sharded_over_8("a", "b")))
    return [
        array.sharding.is_equivalent_to(sharded_over_8("a", "b"), 2),
        array.sharding.shard_shape(array.shape),
        sorted(map(str, array.sharding.devices_indices_map(array.shape).values())),
        array.sharding.is_fully_replicated,
    ]


@case
def visualize_sharding(make):
    # Prints a table; the case is that it accepts the array.
    array = make(jax.device_put(EIGHT.reshape(4, 2), sharded_over_8("a", "b")))
    return attempt(jax.debug.inspect_array_sharding, array, callback=lambda sharding: None)
