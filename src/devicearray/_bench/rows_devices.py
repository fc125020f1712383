"""Rows of arrays that are spread over eight devices: JAX's plain array against a DeviceArray.

JAX fetches such an array to the host and iterates there, so its list of rows costs host syncs, and
the rows are on one device. They are counted next to the times. Where there are fewer than eight
devices, the command runs this suite on a CPU that passes for eight, in a process of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from devicearray._bench.interleaved import Call, Comparison
from devicearray._bench.side import Pattern, Side, compare_sides
from devicearray._bench.suite import Plan, Suite

__all__ = ["SUITE"]

_DEVICES: Final = 8

# JAX does not annotate this.
_partition: Callable[..., PartitionSpec] = PartitionSpec


def _sharded(host: Any, *axes: str | None) -> Any:
    """Return an array on eight devices: "i" for the axis that is split."""
    devices = jax.devices()[:_DEVICES]
    mesh = jax.make_mesh((_DEVICES,), ("i",), axis_types=(AxisType.Auto,), devices=devices)
    return jax.device_put(host, NamedSharding(mesh, _partition(*axes)))


def _list_of(host: Any, axes: tuple[str | None, ...], side: Side) -> Call:
    return functools.partial(list, side.array(_sharded(host, *axes)))


def _run(plan: Plan) -> Iterator[Comparison]:
    big = plan.host_big()[: plan.big // _DEVICES * _DEVICES]
    matrix = plan.host_matrix()
    rows = matrix[: plan.rows // _DEVICES * _DEVICES]
    columns = matrix[:, : plan.columns // _DEVICES * _DEVICES]
    arrays: dict[str, tuple[Any, tuple[str | None, ...]]] = {
        "list(big), split on axis 0": (big, ("i",)),
        "list(M), split on axis 0": (rows, ("i",)),
        "list(M), split on axis 1": (columns, (None, "i")),
        "list(M), on each device": (matrix, ()),
    }
    for name, (host, axes) in arrays.items():
        make = functools.partial(_list_of, host, axes)
        yield compare_sides(Pattern(name=name, make=make, timing={"calls": 1}), plan)


SUITE = Suite(
    name="rows_devices",
    title=(
        f"Rows of arrays on {_DEVICES} devices: big has {Plan.big:,} scalars, "
        f"M {Plan.rows:,} rows of {Plan.columns}"
    ),
    columns=("JAX", "ours", "ratio"),
    run=_run,
    counts=("dispatches", "host syncs", "transfers"),
    devices=_DEVICES,
)
