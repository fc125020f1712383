"""What the tests say of two results: that they agree, and that they are DeviceArrays.

The comparison is the conformance suite's: value, dtype, weak type, placement and error.
"""

import jax

import devicearray as da
from tests.conformance.harness import describe, differences


def assert_agree(ours, theirs):
    """Assert that our result, or error, is JAX's."""
    assert differences(describe(theirs), describe(ours)) == []


def assert_device_arrays(value):
    """Assert that all JAX arrays in a tree are DeviceArrays, and return them."""
    arrays = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]
    assert all(type(array) is da.DeviceArray for array in arrays)
    return arrays
