"""``jax.numpy.fft``, with DeviceArrays out."""

import jax.numpy.fft as _fft

from devicearray._namespace import mirror as _mirror

globals().update(_mirror(_fft, __name__))
