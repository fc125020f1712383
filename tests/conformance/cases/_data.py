"""The small arrays, meshes and devices that the cases share."""

from __future__ import annotations

import functools

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

VECTOR = np.arange(4.0, dtype=np.float32)
MATRIX = np.arange(12.0, dtype=np.float32).reshape(3, 4) + 1
EIGHT = np.arange(8.0, dtype=np.float32)

for _array in (VECTOR, MATRIX, EIGHT):
    _array.setflags(write=False)


def f32(value: float) -> np.float32:
    """A 0-d float32."""
    return np.float32(value)


def i32(value: int) -> np.int32:
    """A 0-d int32."""
    return np.int32(value)


def indices(*values: int) -> np.ndarray:
    """A vector of int32 indices."""
    return np.array(values, dtype=np.int32)


@functools.cache
def devices() -> tuple[jax.Device, ...]:
    """The first four devices; most cases with a mesh need no more."""
    available = jax.devices()
    if len(available) < 8:
        raise RuntimeError(
            f"The conformance cases need 8 devices and JAX found {len(available)}: "
            "set XLA_FLAGS=--xla_force_host_platform_device_count=8 before jax is imported."
        )
    return tuple(available[:4])


@functools.cache
def mesh() -> Mesh:
    """Four devices on one axis named ``a``."""
    return Mesh(np.array(devices()), ("a",))


@functools.cache
def explicit_mesh() -> Mesh:
    """Four devices on one axis named ``a``, whose sharding is part of an array's type."""
    return jax.make_mesh((4,), ("a",), axis_types=(AxisType.Explicit,), devices=devices())


@functools.cache
def mesh_of_8() -> Mesh:
    """All eight devices, as 4 by 2, on axes ``a`` and ``b``."""
    devices()
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))


def sharded(*axes: str | None) -> NamedSharding:
    """A sharding over the mesh of four devices."""
    return NamedSharding(mesh(), P(*axes))


def sharded_over_8(*axes: str | tuple[str, ...] | None) -> NamedSharding:
    """A sharding over the mesh of eight devices."""
    return NamedSharding(mesh_of_8(), P(*axes))


def on_device(value: np.ndarray, index: int) -> jax.Array:
    """A plain array committed to one device."""
    return jax.device_put(value, devices()[index])
