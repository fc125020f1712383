"""What `devicearray.record` and `devicearray.sync_guard` add to an event, in microseconds.

Each call is timed as it is, and within a recording. The values are ready and the programs tiny, so
that the difference is all instrument: the goals are 3 us for a dispatch and 4 us for a host sync.
While nobody records there is nothing to measure: ``tests/test_record.py`` shows that JAX's
functions are the same objects as before.

A recording looks for the user's line, and takes none of this package's for one, so it would search
in vain for as long as there are frames. The calls here pass for code of a user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import devicearray as da
from devicearray._bench.interleaved import Call, Comparison, block, compare
from devicearray._bench.suite import Plan, Suite

__all__ = ["SUITE"]

_USERS_FILE: Final = "<a user's file>"


def _calls() -> dict[str, Call]:
    x, y, scalar = jnp.ones(4), jnp.full(4, 2.0), jnp.float32(2.0)
    on_host = np.ones(4, np.float32)
    ours = da.asarray(x)
    f = jax.jit(lambda v: v + 1)
    calls: dict[str, Call] = {
        "jit(f)(x)": lambda: f(x),
        "jit(f)(NumPy array)": lambda: f(on_host),
        "x + y": lambda: x + y,
        "DeviceArray + 1": lambda: ours + 1,
        "x.block_until_ready()": lambda: x.block_until_ready(),
        "jax.block_until_ready((x, y))": lambda: block((x, y)),
        "np.asarray(x)": lambda: np.asarray(x),
        "float(scalar)": lambda: float(scalar),
        "scalar.item()": lambda: scalar.item(),
    }
    return {name: _as_the_users(call) for name, call in calls.items()}


def _as_the_users(call: Any) -> Call:
    call.__code__ = call.__code__.replace(co_filename=_USERS_FILE)
    users: Call = call
    return users


def _guarded() -> da.sync_guard:
    return da.sync_guard("error", allow=("float",))


def _run(plan: Plan) -> Iterator[Comparison]:
    """Measure each call in turn, and the entering and leaving of a recording."""
    for name, call in _calls().items():
        yield compare(name, call, call, plan.timing(), within=da.record)
    read = _calls()["float(scalar)"]
    yield compare("float(scalar), guarded", read, read, plan.timing(), within=_guarded)
    yield compare("with record(): pass", _nothing, _enter_and_leave, plan.timing())


def _nothing() -> None:
    pass


def _enter_and_leave() -> None:
    with da.record():
        pass


SUITE = Suite(
    name="recording",
    title="What recording adds to an event",
    columns=("without", "with", "difference"),
    run=_run,
)
