"""What `devicearray.record` and `devicearray.sync_guard` add to an event, in microseconds.

Each call is timed as it is, and within a recording. The values are ready and the programs tiny, so
that the difference is all instrument: the goals are 3 us for a dispatch and 4 us for a host sync.
While nobody records there is nothing to measure: ``tests/test_record.py`` shows that JAX's
functions are the same objects as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import devicearray as da
from benchmarks.interleaved import Comparison, compare

__all__ = ["COLUMNS", "TITLE", "run"]

TITLE = "What recording adds to an event"
COLUMNS = ("without", "with", "difference")


def _calls() -> dict[str, Callable[[], Any]]:
    x, y, scalar = jnp.ones(4), jnp.full(4, 2.0), jnp.float32(2.0)
    on_host = np.ones(4, np.float32)
    ours = da.asarray(x)
    f = jax.jit(lambda v: v + 1)
    return {
        "jit(f)(x)": lambda: f(x),
        "jit(f)(NumPy array)": lambda: f(on_host),
        "x + y": lambda: x + y,
        "DeviceArray + 1": lambda: ours + 1,
        "x.block_until_ready()": lambda: x.block_until_ready(),
        "jax.block_until_ready((x, y))": lambda: jax.block_until_ready((x, y)),
        "np.asarray(x)": lambda: np.asarray(x),
        "float(scalar)": lambda: float(scalar),
        "scalar.item()": lambda: scalar.item(),
    }


def _guarded() -> da.sync_guard:
    return da.sync_guard("error", allow=("float",))


def run(rounds: int) -> Iterator[Comparison]:
    """Measure each call in turn, and the entering and leaving of a recording."""
    for name, call in _calls().items():
        yield compare(name, call, call, within=da.record, rounds=rounds)
    read = _calls()["float(scalar)"]
    yield compare("float(scalar), guarded", read, read, within=_guarded, rounds=rounds)
    yield compare("with record(): pass", _nothing, _enter_and_leave, rounds=rounds)


def _nothing() -> None:
    pass


def _enter_and_leave() -> None:
    with da.record():
        pass
