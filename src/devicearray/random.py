"""``jax.random``, with DeviceArrays out: typed keys and raw ones.

Examples
--------
>>> from devicearray import random
>>> key, sub = random.split(random.key(0))
>>> random.uniform(sub, (2,)).shape
(2,)
"""

import jax.random as _random

from devicearray._namespace import mirror as _mirror
from devicearray._stack import split_into_rows as _split_into_rows

globals().update(_mirror(_random, __name__))
split = _split_into_rows(globals()["split"])
