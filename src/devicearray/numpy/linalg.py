"""``jax.numpy.linalg``, with DeviceArrays out."""

import jax.numpy.linalg as _linalg

from devicearray._namespace import mirror as _mirror

globals().update(_mirror(_linalg, __name__))
