"""devicearray: the executable reference for asynchronous dispatch in JAX.

Examples
--------
>>> import devicearray as da
>>> from devicearray import numpy as jnp, random
>>> x = random.uniform(random.key(0), (1000, 1000))
>>> y = jnp.dot(x, x)          # dispatched: `y` is a future
>>> y.shape, y.dtype           # known at once
((1000, 1000), dtype('float32'))
>>> total = float(y.sum())     # the host needs the value, and waits
"""

from devicearray import numpy, random
from devicearray._array import DeviceArray
from devicearray._asarray import asarray
from devicearray._dispatch import jit
from devicearray._events import Compile, Dispatch, HostSync, Run, Transfer
from devicearray._gate import Gate
from devicearray._guard import HostSyncError, HostSyncWarning, sync_allowed, sync_guard
from devicearray._iteration import STRATEGIES, iterate, unstack
from devicearray._log import Log
from devicearray._methods import install as _install_methods
from devicearray._program import Program, clear_caches, programs
from devicearray._record import record
from devicearray._rows import install as _install_rows
from devicearray._site import Site
from devicearray._timeline import Timeline
from devicearray._wait import block_until_ready

__all__ = [
    "STRATEGIES",
    "Compile",
    "DeviceArray",
    "Dispatch",
    "Gate",
    "HostSync",
    "HostSyncError",
    "HostSyncWarning",
    "Log",
    "Program",
    "Run",
    "Site",
    "Timeline",
    "Transfer",
    "asarray",
    "block_until_ready",
    "clear_caches",
    "iterate",
    "jit",
    "numpy",
    "programs",
    "random",
    "record",
    "sync_allowed",
    "sync_guard",
    "unstack",
]

__version__ = "0.1.0"

_install_methods()
_install_rows()
