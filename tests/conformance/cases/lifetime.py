"""What an array is to Python: identity, hash, weak references, attributes, deletion."""

from __future__ import annotations

import abc
import collections.abc
import functools
import gc
import numbers
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core

from tests.conformance.cases._data import EIGHT, MATRIX, VECTOR, f32, i32, sharded
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case(name="hash", raises=TypeError)
def hash_array(make):
    return hash(make(VECTOR))


@case
def hash_more(make):
    return [
        attempt(hash, make(f32(1))),
        attempt(hash, make(jax.random.key(0))),
        attempt(lambda: {make(VECTOR)}),
        attempt(lambda: {make(VECTOR): 1}),
        isinstance(make(VECTOR), collections.abc.Hashable),
    ]


@case(raises=TypeError)
def memoize_lru(make):
    return functools.lru_cache(lambda x: 1)(make(VECTOR))


@case(name="weakref")
def weak_reference(make):
    return weakref.ref(make(VECTOR)) is not None


@case
def weakref_dies(make):
    array = make(jnp.array(VECTOR))
    reference = weakref.ref(array)
    alive = reference() is array
    del array
    gc.collect()
    return alive, reference() is None


@case
def buffer_dies_with_the_array(make):
    # No cache of ours may keep the buffer alive.
    array = make(jnp.array(VECTOR * 11))
    before = sum(bool(a.shape == (4,) and (a == VECTOR * 11).all()) for a in jax.live_arrays())
    del array
    gc.collect()
    after = sum(bool(a.shape == (4,) and (a == VECTOR * 11).all()) for a in jax.live_arrays())
    return before, after


@case(name="setattr")
def set_attribute(make):
    return setattr(make(VECTOR), "foo", 1)


@case
def set_attribute_is_kept(make):
    array = make(VECTOR)
    array.foo = 1
    value = array.foo
    del array.foo
    return value, attempt(getattr, array, "foo")


@case
def missing_attribute(make):
    return attempt(getattr, make(VECTOR), "no_such_attribute")


@case(name="isinst")
def is_instance(make):
    return isinstance(make(VECTOR), jax.Array), isinstance(make(VECTOR), jax.typing.ArrayLike)


@case
def is_instance_more(make):
    classes = [
        np.ndarray,
        np.generic,
        collections.abc.Iterable,
        collections.abc.Sized,
        collections.abc.Container,
        collections.abc.Collection,
        collections.abc.Sequence,
        collections.abc.Buffer,
        numbers.Number,
        core.Tracer,
        float,
    ]
    if hasattr(
        jnp.zeros(1), "__reversed__"
    ):  # Not in JAX 0.11, where `reversed` works all the same.
        classes.append(collections.abc.Reversible)
    return [isinstance(make(VECTOR), class_) for class_ in classes]


@case
def is_subclass(make):
    array_type = type(make(VECTOR))
    return issubclass(array_type, jax.Array), isinstance(array_type, abc.ABCMeta)


@case
def is_core_concrete(make):
    return core.is_concrete(make(VECTOR)), isinstance(make(VECTOR), core.Tracer)


@case(name="match")
def match_args(make):
    return getattr(make(VECTOR), "__match_args__", 0)


@case
def match_class(make):
    def kind(value):
        match value:
            case np.ndarray():
                return "numpy"
            case jax.Array(shape=(4,)):
                return "four"
            case jax.Array():
                return "array"
        return "other"

    return kind(make(VECTOR)), kind(make(MATRIX))


@case
def match_sequence(make):
    match make(VECTOR):
        case [_, *_]:
            return "sequence"
        case _:
            return "not a sequence"


@case
def hasattrs(make):
    names = [
        "addressable_shards",
        "__jax_array__",
        "__array_interface__",
        "__cuda_array_interface__",
        "at",
        "_npy_value",
        "device_buffer",
    ]
    return {name: hasattr(make(VECTOR), name) for name in names}


@case
def is_itself(make):
    array = make(VECTOR)
    return array is array, [array].index(array), array in [array]


@case
def dir_is_sorted_strings(make):
    names = dir(make(VECTOR))
    return names == sorted(names), all(isinstance(name, str) for name in names)


@case(raises=RuntimeError)
def is_deleted_use(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    return array + 1


@case(raises=RuntimeError)
def deleted_jit(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    return jax.jit(lambda x: x + 1)(array)


@case
def deleted_attributes(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    array.delete()
    return [
        array.is_deleted(),
        array.shape,
        array.dtype,
        array.ndim,
        len(array),
        array.weak_type,
        array.sharding,
        array.committed,
        attempt(lambda: array.device),
        attempt(array.devices),
    ]


@case(isolated=True)
def deleted_is_ready(make):
    array = make(VECTOR)
    array.delete()
    return attempt(array.is_ready)


@case
def deleted_uses(make):
    array = make(jnp.array(VECTOR))
    array.delete()
    fast = jax.jit(lambda x: x + 1)
    fast(make(VECTOR))
    closure = jax.jit(lambda: array + 1)
    return [
        attempt(np.asarray, array),
        attempt(float, array),
        attempt(lambda: array[0]),
        attempt(list, array),
        attempt(array.sum),
        attempt(array.tolist),
        attempt(array.tobytes),
        attempt(array.block_until_ready),
        attempt(array.copy_to_host_async),
        attempt(array.unsafe_buffer_pointer),
        attempt(array.on_device_size_in_bytes),
        attempt(lambda: array.addressable_shards),
        attempt(array.addressable_data, 0),
        attempt(array.__dlpack__),
        attempt(jnp.sin, array),
        attempt(fast, array),
        attempt(closure),
        attempt(jax.device_put, array, jax.devices()[1]),
        attempt(jax.block_until_ready, array),
        attempt(jax.device_get, array),
        attempt(array.copy),
        attempt(array.__array__),
        str(jax.typeof(array)),
    ]


@case
def deleted_device_put(make):
    # JAX has nothing to do here, and does not look.
    array = make(jnp.array(VECTOR))
    array.delete()
    return attempt(jax.device_put, array)


@case
def deleted_after_read(make):
    # The host's copy of the value goes with the array.
    array = make(jnp.array(VECTOR))
    np.asarray(array)
    array.delete()
    return attempt(np.asarray, array), attempt(array.tolist)


@case
def deleted_shards(make):
    array = make(jax.device_put(EIGHT, sharded("a")))
    shard = array.addressable_shards[0].data
    array.delete()
    return array.is_deleted(), attempt(np.asarray, shard)


@case(name="live_arrays_is")
def live_arrays(make):
    array = make(jnp.array(VECTOR * 7))
    jax.block_until_ready(array)
    return any(live is array for live in jax.live_arrays())


@case
def live_arrays_has_the_buffer(make):
    array = make(jnp.array(VECTOR * 13))
    found = [a for a in jax.live_arrays() if a.shape == (4,) and (a == array).all()]
    return len(found)


@case
def subclass_registration(make):
    # functools.singledispatch finds the implementation for jax.Array.
    @functools.singledispatch
    def kind(value):
        return "other"

    kind.register(jax.Array, lambda value: "array")
    return kind(make(VECTOR)), kind(make(i32(1)))


@case
def class_facts(make):
    array_type = type(make(VECTOR))
    return [
        array_type.__hash__ is None,
        array_type.__array_priority__,
        callable(array_type.__iter__),
        isinstance(array_type.shape, property),
    ]
