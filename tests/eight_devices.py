"""Arrays on all eight devices that the tests have."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def over_eight(*axes):
    """Return a sharding over eight devices: give "i" for the axis that is split."""
    mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    return NamedSharding(mesh, P(*axes))


def on_explicit(array, *axes):
    """Put `array` on eight devices of a mesh whose axis is a part of its type."""
    mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    return jax.device_put(array, NamedSharding(mesh, P(*axes)))


def uncommitted_elsewhere():
    """Return an array on another device than the default one, to which it is not committed."""
    with jax.default_device(jax.devices()[3]):
        return jnp.arange(7.0)


def on_eight(array, *axes):
    """Put `array` on eight devices."""
    return jax.device_put(array, over_eight(*axes))
