"""``jax.numpy``, with DeviceArrays out: the same names, one program a call.

Examples
--------
>>> from devicearray import numpy as jnp
>>> jnp.arange(3) + 1
DeviceArray([1, 2, 3], dtype=int32)
>>> jnp.linalg.norm(jnp.ones((3, 3)))
DeviceArray(3., dtype=float32)
"""

from typing import Any

import jax.numpy as _jnp

from devicearray._gather import OF_ROWS as _OF_ROWS
from devicearray._namespace import mirror as _mirror
from devicearray.numpy import fft as fft
from devicearray.numpy import linalg as linalg

globals().update(_mirror(_jnp, __name__))
globals().update({name: _of_rows(globals()[name]) for name, _of_rows in _OF_ROWS.items()})


def __getattr__(name: str) -> Any:
    """Mirror a name that JAX gives only when asked: a deprecated one, say."""
    return _mirror(_jnp, __name__, [name])[name]
