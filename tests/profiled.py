"""What JAX's profiler saw of the runtime: an independent count, for recordings to agree with."""

import warnings
from dataclasses import dataclass, field

import jax

from devicearray._jax import start_profile

#: What the runtime calls a dispatch, to one device and to several.
_EXECUTABLE = "CommonPjRtLoadedExecutable::"
_DISPATCHES = (f"{_EXECUTABLE}ExecuteHelperOnSingleDevice", f"{_EXECUTABLE}Execute (")


@dataclass
class Profiled:
    """What a function returned, and what the runtime did meanwhile."""

    result: object = None
    dispatches: int = 0
    #: The names of the XLA modules that ran, one for each run.
    modules: list[str] = field(default_factory=list)


def profiled(function):
    """Call `function`, wait for all that it dispatched, and return what the profiler saw."""
    stop = start_profile()
    seen = Profiled()
    try:
        seen.result = jax.block_until_ready(function())
        jax.effects_barrier()
    finally:
        data = stop()
    modules = {}
    for event in _events(data):
        seen.dispatches += event.name.startswith(_DISPATCHES)
        statistics = _statistics(event)
        if "run_id" in statistics and "hlo_module" in statistics:
            modules[statistics["run_id"]] = statistics["hlo_module"]
    seen.modules = list(modules.values())
    return seen


def _events(data):
    return (event for plane in data.planes for line in plane.lines for event in line.events)


def _statistics(event):
    # Python warns of the type that C++ makes for them, and as an error that ends the process.
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return dict(event.stats)
