"""The two kinds of array that every case runs on."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import devicearray as da


def plain(value: Any) -> jax.Array:
    """Make a plain JAX array, or give one back as it is."""
    return value if isinstance(value, jax.Array) else jnp.asarray(value)


def ours(value: Any) -> jax.Array:
    """Make a DeviceArray of what `plain` makes (a tracer stays one)."""
    return da.asarray(plain(value))
