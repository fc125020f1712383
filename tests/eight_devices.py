"""Arrays on all eight devices that the tests have."""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def over_eight(*axes):
    """Return a sharding over eight devices: give "i" for the axis that is split."""
    mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    return NamedSharding(mesh, P(*axes))


def on_eight(array, *axes):
    """Put `array` on eight devices."""
    return jax.device_put(array, over_eight(*axes))
