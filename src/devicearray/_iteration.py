"""iterate(): the ways in which JAX has iterated over arrays, by name, each runnable today.

Three demands have shaped them (jax#3821): the elements are device arrays, taking them does not wait
for the device, and a long array costs few compiles and few dispatches. At first each element was a
slice of its own. From 2019 the array was copied to the host and the copy iterated (jax#965): fast,
but it waits, and the elements are NumPy's (jax#1583, jax#3330). In 2020 two remedies were weighed:
to put each element back on the device, or to take the array apart there in chunks, with a dynamic
slice and a static unstack for each. In 2021 the chunks were merged (jax#8043), and JAX iterates so
to this day. That both steps can be one program is here for comparison. Prior art for the
comparison is the benchmark in jax#3821, which timed one strategy, edited JAX, and timed the next.

The strategies that stay on the device differ in their programs, so each is a generator of a few
lines around jitted functions of this module, compiled once for all arrays of a kind. Where a slice
begins is an operand: as a static argument it would be a compile for each slice, and as a number
of the host's a transfer with each dispatch, which ``jax.transfer_guard("disallow")`` rejects.
Refused as well was to put each index on the device explicitly: ``device_put`` takes several times
as long as the dispatch that it is for. So the first index is put there, and each program that
slices returns, next to its rows, where the next slice begins. That is one transfer for an
iteration of any length, and one more output for these programs. (The indices are 32-bit: longer
arrays cannot be iterated over by these strategies.)
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from devicearray._advice import advised, did_you_mean
from devicearray._array import DeviceArray, unwrap, wrap_tree
from devicearray._asarray import asarray
from devicearray._rows import apart, rows_along

__all__ = ["STRATEGIES", "Strategy", "iterate", "unstack"]

# JAX does not annotate these.
_partition: Callable[..., PartitionSpec] = PartitionSpec
_dynamic_row: Callable[..., Any] = functools.partial(
    lax.dynamic_index_in_dim, axis=0, keepdims=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to iterate over an array.

    Attributes
    ----------
    name : str
        What `iterate` knows it by.
    years : str
        When JAX did it, or when it was proposed; ours are those of this package.
    summary : str
        What it does, in one line.
    references : tuple of str
        JAX's pull requests and issues about it: ``"jax#965"``.
    function : callable
        Given an array that is no tracer and not 0-d, and the length of a chunk, returns the
        iterator.
    """

    name: str
    years: str
    summary: str
    references: tuple[str, ...]
    function: Callable[[DeviceArray, int], Iterator[Any]]


# The programs. What a recording calls them is the name of the function.


@jax.jit
def row(x: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return row `i`, and the index of the next."""
    return _dynamic_row(x, i), i + 1


def _slice(x: jax.Array, start: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    chunk: jax.Array = lax.dynamic_slice_in_dim(x, start, length)
    return chunk, start + length


@functools.partial(jax.jit, static_argnames="length")
def slice_chunk(x: jax.Array, start: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    """Return `length` rows as one array, and where the next chunk begins."""
    return _slice(x, start, length)


@jax.jit
def unstack_chunk(chunk: jax.Array) -> list[jax.Array]:
    """Return the rows of a chunk."""
    return apart(chunk)


@functools.partial(jax.jit, static_argnames="length")
def chunk_of_rows(x: jax.Array, start: jax.Array, length: int) -> tuple[list[jax.Array], jax.Array]:
    """Return `length` rows, and where the next chunk begins."""
    chunk, end = _slice(x, start, length)
    return apart(chunk), end


# The strategies.


def _host(x: DeviceArray, _chunk: int) -> Iterator[Any]:
    return iter(_numpy_copy(x, "host"))


def _device_put(x: DeviceArray, _chunk: int) -> Iterator[Any]:
    host, placement = _numpy_copy(x, "device_put"), _placement(x, _after_axis_0)
    # With the ellipsis a row of a vector is a NumPy array too, and no scalar.
    return (jax.device_put(host[i, ...], placement) for i in range(len(host)))


def _per_row(x: DeviceArray, _chunk: int) -> Iterator[Any]:
    buffer, i = unwrap(x), _first_index(x)
    for _ in range(len(buffer)):
        element, i = row(buffer, i)
        yield element


def _chunked(x: DeviceArray, chunk: int) -> Iterator[Any]:
    buffer, start = unwrap(x), _first_index(x)
    for length in _lengths(len(buffer), chunk):
        rows, start = slice_chunk(buffer, start, length)
        yield from unstack_chunk(rows)


def _fused_chunks(x: DeviceArray, chunk: int) -> Iterator[Any]:
    buffer, start = unwrap(x), _first_index(x)
    for length in _lengths(len(buffer), chunk):
        rows, start = chunk_of_rows(buffer, start, length)
        yield from rows


def _jax(x: DeviceArray, _chunk: int) -> Iterator[Any]:
    return iter(unwrap(x))


def _rows(x: DeviceArray, _chunk: int) -> Iterator[Any]:
    return iter(x)


def _lengths(total: int, chunk: int) -> Iterator[int]:
    return (min(chunk, total - start) for start in range(0, total, chunk))


def _numpy_copy(x: DeviceArray, strategy: str) -> np.ndarray[Any, Any]:
    """Return the value, for which the host waits."""
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"iterate: the strategy {strategy!r} iterates over a NumPy copy, and an array of typed "
            f"keys ({x.dtype}) has none. Iterate over jax.random.key_data(x), or take a strategy "
            "that stays on the device, such as 'rows'."
        )
    return np.asarray(x)


def _first_index(x: DeviceArray) -> jax.Array:
    """Return 0, where a program on `x` will run: from there on nothing moves."""
    index: jax.Array = jax.device_put(np.int32(0), _placement(x, _everywhere))
    return index


def _placement(
    x: DeviceArray, spec_for: Callable[[NamedSharding], PartitionSpec]
) -> jax.Device | NamedSharding | None:
    """Return what puts a value where `x` is; None where JAX decides, as it does for `x`."""
    sharding = x.sharding
    if not x.committed:
        return None
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, spec_for(sharding))
    return next(iter(sharding.device_set)) if len(sharding.device_set) == 1 else None


def _everywhere(_sharding: NamedSharding) -> PartitionSpec:
    return _partition()


def _after_axis_0(sharding: NamedSharding) -> PartitionSpec:
    return _partition(*sharding.spec[1:])


#: The strategies by name, in the order of their years.
STRATEGIES: Final[Mapping[str, Strategy]] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy(
                name="per_row",
                years="until 2019",
                summary="dispatches a slice for each row",
                references=("jax#946", "jax#965"),
                function=_per_row,
            ),
            Strategy(
                name="host",
                years="2019 to 2021",
                summary="copies the array to the host, and iterates over the NumPy copy",
                references=("jax#965", "jax#1583", "jax#3330"),
                function=_host,
            ),
            Strategy(
                name="device_put",
                years="2020",
                summary="slices a NumPy copy, and puts each row back on the device",
                references=("jax#3821",),
                function=_device_put,
            ),
            Strategy(
                name="chunked",
                years="2021",
                summary="dispatches a slice and an unstack for each chunk",
                references=("jax#3821", "jax#8043"),
                function=_chunked,
            ),
            Strategy(
                name="jax",
                years="2021 to today",
                summary="what the installed JAX does with a plain array",
                references=("jax#8043",),
                function=_jax,
            ),
            Strategy(
                name="fused_chunks",
                years="2026",
                summary="dispatches one program for each chunk, which slices and unstacks",
                references=(),
                function=_fused_chunks,
            ),
            Strategy(
                name="rows",
                years="2026",
                summary="makes rows that are not dispatched until they are used",
                references=(),
                function=_rows,
            ),
        )
    }
)


def iterate(x: Any, strategy: str = "rows", *, chunk: int = 100) -> Iterator[Any]:
    """Iterate over axis 0 of an array by one of the historical strategies.

    Parameters
    ----------
    x : array_like
        The array: a plain `jax.Array`, a `DeviceArray`, or what `devicearray.asarray` takes.
    strategy : str, default "rows"
        A name in ``STRATEGIES``:

        - ``"per_row"`` (until 2019): one dispatch for each row.
        - ``"host"`` (2019): the rows of a NumPy copy. The call waits for the value.
        - ``"device_put"`` (2020): the same, each row put back on the device.
        - ``"chunked"`` (2021): two dispatches for each chunk, a slice and an unstack.
        - ``"jax"`` (today): ``iter`` of the plain array, by the JAX that is installed.
        - ``"fused_chunks"`` (2026): one dispatch for each chunk.
        - ``"rows"`` (2026): ``iter(devicearray.asarray(x))``.
    chunk : int, default 100
        How many rows a chunk has, for the two strategies that have a choice. The time to compile
        grows faster than in proportion to it.

    Returns
    -------
    iterator
        Of NumPy values (``"host"``), of DeviceArrays (``"rows"``) or of plain JAX arrays. What is
        dispatched is dispatched as the iterator gets there, a row or a chunk at a time. For a
        tracer, JAX's own iterator.

    Raises
    ------
    TypeError
        If `x` is 0-d, or `chunk` is no integer. If the strategy needs a NumPy copy and `x` is an
        array of typed keys, which has none.
    ValueError
        If there is no such strategy, or `chunk` is less than 1.

    Notes
    -----
    The rows are ``x[i]`` in value, dtype, weak type, sharding and committedness, with these
    exceptions. NumPy does not know of weak types, so those of ``"device_put"`` are not weak.
    Where an explicit mesh axis splits axis 0, ``x[i]`` raises: ``"host"``, ``"device_put"`` and
    ``"jax"``, which go through the host, give rows all the same, and the device strategies what
    their programs say to it. The rows of ``"jax"`` are on the default device if any axis of `x`
    is split.

    Examples
    --------
    >>> import jax
    >>> from jax import numpy as jnp
    >>> import devicearray as da
    >>> x = jnp.arange(250.0)
    >>> next(da.iterate(x, "per_row"))
    Array(0., dtype=float32)

    A slice and an unstack for each chunk, each compiled once, and once more for the last, shorter
    chunk:

    >>> jax.clear_caches()
    >>> with da.record() as log:
    ...     rows = list(da.iterate(x, "chunked"))
    >>> [dispatch.name for dispatch in log.dispatches]
    ['slice_chunk', 'unstack_chunk', 'slice_chunk', 'unstack_chunk', 'slice_chunk', 'unstack_chunk']
    >>> [(compiled.name, compiled.outputs) for compiled in log.compiles]
    [('slice_chunk', 2), ('unstack_chunk', 100), ('slice_chunk', 2), ('unstack_chunk', 50)]
    >>> len(log.syncs)
    0

    >>> da.iterate(x, "chunky")
    Traceback (most recent call last):
    ...
    ValueError: iterate: there is no strategy 'chunky', only per_row, host, device_put, chunked, \
jax, fused_chunks, rows. Did you mean 'chunked'?
    """
    chosen, length = _strategy(strategy), _chunk_length(chunk)
    array = asarray(x)
    with advised:
        if isinstance(array, jax.core.Tracer):
            return iter(array)
        if array.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return chosen.function(array, length)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Return the rows of an array along an axis. None is dispatched before it is used.

    Parameters
    ----------
    x : array_like
        With at least one axis.
    axis : int, default: 0
        The axis to take apart. Negative ones count from the last.

    Returns
    -------
    tuple of DeviceArray
        Of the shape of `x` without that axis. Inside a trace, JAX's tracers.

    Raises
    ------
    ValueError
        If `x` is 0-d, or has no such axis.

    See Also
    --------
    jax.numpy.unstack : the same in one program with as many outputs as there are rows.

    Examples
    --------
    >>> import devicearray as da
    >>> from devicearray import numpy as jnp
    >>> left, middle, right = da.unstack(jnp.arange(6).reshape(2, 3), axis=1)
    >>> right
    DeviceArray([2, 5], dtype=int32)
    """
    array = asarray(x)
    axis = operator.index(axis)
    if isinstance(array, jax.core.Tracer) or not -array.ndim <= axis < array.ndim:
        with advised:
            return tuple(jnp.unstack(unwrap(array), axis=axis))
    axis %= array.ndim
    rows = rows_along(array, axis)
    if rows is not None:
        return tuple(rows.in_order())
    return tuple(wrap_tree(jnp.unstack(unwrap(array), axis=axis))) if axis else tuple(array)


def _strategy(name: Any) -> Strategy:
    if name not in tuple(STRATEGIES):
        raise ValueError(
            f"iterate: there is no strategy {name!r}, only {', '.join(STRATEGIES)}.{_hint(name)}"
        )
    return STRATEGIES[name]


def _hint(name: Any) -> str:
    if isinstance(name, int):
        return f" Did you mean chunk={name}?"
    return did_you_mean(name, STRATEGIES, 0.5) if isinstance(name, str) else ""


def _chunk_length(chunk: Any) -> int:
    if isinstance(chunk, bool) or not isinstance(chunk, int | np.integer):
        raise TypeError(
            f"iterate: chunk is a number of rows, an int, and {chunk!r} is of type "
            f"{type(chunk).__name__}."
        )
    if chunk < 1:
        raise ValueError(f"iterate: a chunk has at least 1 row, not {chunk}.")
    return int(chunk)
