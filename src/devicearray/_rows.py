"""Rows: parts of an array that are not dispatched until they are used.

``x[i]`` names a value, and so do ``for v in x`` and ``a, b = x``. JAX dispatches a program for
each such name. Here taking a row makes a Python object that knows its source and its index, and
nothing else happens: no dispatch, no compile, no wait, also while the source is still being
computed. What happens at the first *use* depends on who uses the row:

* A program of this package takes the source and the index, and slices inside: one dispatch, not
  two. The row still has no buffer then; a second use gives it one.
* Code of JAX's takes a buffer, which must be made. A row alone is one small program. Rows that are
  used in order, or near each other, are made by the *chunk*: one program slices some fifty rows,
  a second takes them apart. Each is compiled once for all chunks of an array.
* The host reads a row from a copy of the source, which all its rows share. Where that copy is no
  mere view of the device's memory, and the source is large, the first reads are of single rows.

So an array has a `Source`, `Rows` that know how a row is had from it, and rows: DeviceArrays of
the `Rows` and an int. A slice, or an element by several indices, is a `Slice` of its own.

Prior art: views in NumPy and PyTorch are as cheap to take, and keep their base alive for good; a
row here lets go of its source once it has a buffer. Lazy tensors and Dask defer all operations,
and compile each new graph anew; here the slice alone is deferred, and its programs are the same
few for all rows. Refused: a program that takes the whole array apart. Compile time grows faster
than the number of outputs: 50 take a quarter of a second, 1,000 take 14.
"""

from __future__ import annotations

import functools
import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from devicearray import _jax
from devicearray._advice import advise, advised
from devicearray._array import DeviceArray, Part, keep_parts, unwrap, wrap, wrap_tree
from devicearray._dispatch import as_they_are, dispatcher, program_of
from devicearray._indices import LONGEST
from devicearray._view import (
    Operand,
    Series,
    View,
    as_integer,
    axis_of,
    clamped,
    narrowed,
    numpy_index,
    operand,
    row_of,
    shape_of,
    taken,
    whole,
)

__all__ = [
    "CHUNK",
    "Rows",
    "Source",
    "abstract",
    "apart",
    "install",
    "joined",
    "new_part",
    "parts_in_order",
    "rows_along",
    "rows_of",
]

#: How many rows a chunk has at most. Twice as many compile in more than twice the time, and save
#: little: of the 1 us that a row of a chunk takes, the two dispatches are a fifth.
CHUNK: Final = 50

#: How many bytes a chunk has at most, and all the chunks together that an array keeps.
_CHUNK_BYTES: Final = 1 << 20

#: How many chunks an array keeps at most, and of how many it remembers that they were used.
_KEPT: Final = 20
_REMEMBERED: Final = 64

#: To read anything from a device takes about as long as to copy so many bytes more.
_READ_OVERHEAD: Final = 1 << 16

_new: Callable[[type[DeviceArray]], DeviceArray] = object.__new__
_static_row: Callable[..., Any] = functools.partial(lax.index_in_dim, keepdims=False)
_partition: Callable[..., PartitionSpec] = PartitionSpec


# The programs. Their outputs are buffers.


def _program(name: str, function: Callable[..., Any], **options: Any) -> Any:
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    call.__name__ = call.__qualname__ = name
    return dispatcher(jax.jit(call, **options), name, form=as_they_are)


def apart(array: Any, axis: int = 0) -> list[Any]:
    """Return all rows along an axis. For use inside a program."""
    return [_static_row(array, i, axis) for i in range(array.shape[axis])]


def _picked(part: Any, numbers: Any) -> Any:
    return taken(part)[numbers]


_take_row = _program("row", taken)
_take_slice = _program("slice", taken)
_take_chunk = _program("chunk", taken)
_unstack = _program("unstack", apart, static_argnums=1)
_pick_rows = _program("gather", _picked)


class Source:
    """An array of which parts are taken, and what its parts share."""

    __slots__ = (
        "__weakref__", "_bytes_read", "array", "buffer", "host", "is_on_one_device", "kind",
        "place",
    )  # fmt: skip

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.array, self.kind = _raw(buffer)
        """An array that the runtime made, and what makes keys of it if the buffer is of keys."""
        sharding = self.array.sharding
        self.is_on_one_device = isinstance(sharding, SingleDeviceSharding)
        self.place = _place_for_indices(sharding)
        """Where the indices lie that go into a program together with the array."""
        self.host: Any = None
        """The value as NumPy has it, once the host has read the whole."""
        self._bytes_read = 0

    def is_plain(self, here: _jax.Surroundings) -> bool:
        """Tell whether programs on this array run where it lies, if they are dispatched here."""
        place, mesh = self.place, _jax.mesh_of(here)
        if place is None:
            return False
        if isinstance(place, NamedSharding):
            return mesh is None or bool(mesh == place.mesh)
        return mesh is None and (self.array.committed or place == _jax.default_device(here))

    def finished(self, part: Any) -> Any:
        """Return a part that a program took of `array` as a part of `buffer`."""
        return part if self.kind is None else _jax.key_array(self.kind, part)

    def on_host(self, nbytes: int) -> Any:
        """Return the value as NumPy has it; None if a part of so many bytes is to be read alone."""
        if self.host is None and self._is_worth_reading(nbytes):
            host = np.asarray(self.array)
            # NumPy does not know what to do with the rest on its own.
            self.host = host if host.dtype.kind in "biufc" else None
        return self.host

    def _is_worth_reading(self, nbytes: int) -> bool:
        """Tell whether to copy the whole, given how much the host has read of it by parts."""
        if self.kind is not None or not self.array.is_fully_addressable:
            return False
        self._bytes_read += nbytes + _READ_OVERHEAD
        shares_memory = self.is_on_one_device and self.array.platform() == "cpu"
        return shares_memory or bool(self._bytes_read >= self.array.nbytes)

    def replace(self) -> None:
        """Go on with a copy: the array is about to be deleted or donated."""
        self.host = None
        device = next(iter(self.array.sharding.device_set))
        with _jax.within(_jax.no_mesh(device)):
            self.buffer = self.buffer.copy()
        self.array = _raw(self.buffer)[0]


def _raw(buffer: Any) -> tuple[Any, Any]:
    return _jax.raw_key_data(buffer) if type(buffer) is _jax.KeyArray else (buffer, None)


@functools.lru_cache(maxsize=1024)
def _place_for_indices(sharding: Any) -> jax.Device | NamedSharding | None:
    """Return where the indices for an array lie; None if no program can take the two together."""
    device = next(iter(sharding.device_set))
    if sharding.memory_kind != device.default_memory().kind:
        return None
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, _partition())
    return device if isinstance(sharding, SingleDeviceSharding) else None


class OnHost:
    """What JAX's own reads need of an array; here, of one whose value the host has already.

    JAX's methods are called on it, so that results, messages and warnings are JAX's.
    """

    __slots__ = ("_source", "_value", "aval")

    def __init__(self, value: Any, aval: Any, source: Source) -> None:
        self._value = value
        self._source = source
        self.aval = aval

    @property
    def sharding(self) -> Any:
        """A sharding that is as addressable as that of the array."""
        return self._source.array.sharding

    def __buffer__(self, _flags: int, /) -> memoryview:
        # The buffer protocol is defined for arrays on one device. For others JAX says so.
        is_on_one_device = self._source.is_on_one_device
        return memoryview(self._value if is_on_one_device else self._source.array)


for _name in (
    "shape", "dtype", "ndim", "size", "nbytes", "itemsize", "is_fully_addressable",
    "is_fully_replicated", "__array__", "__bool__", "__int__", "__float__", "__complex__",
    "__index__", "__hex__", "__oct__", "item", "tolist", "tobytes", "__repr__", "__str__",
    "__format__",
):  # fmt: skip
    setattr(OnHost, _name, getattr(_jax.ArrayImpl, _name))


class _Base:
    """A source and a view of it, and what takes rows and chunks of rows out of that."""

    __slots__ = ("_chunks", "_operands", "_rows", "along", "source", "view")

    def __init__(self, source: Source, view: View, axis: int = 0) -> None:
        self.source = source
        self.view = view
        self.along = axis_of(view, axis) if shape_of(view) else 0
        """Which axis of the source the rows are numbered along."""
        self._rows: Series | None = None
        self._operands: Series | None = None
        self._chunks: Series | None = None

    @property
    def axis(self) -> int:
        """Which axis of the view the rows are numbered along."""
        return sum(axis.kept for axis in self.view[: self.along])

    def is_whole(self) -> bool:
        """Tell whether the view is of all the source."""
        return self.view == whole(self.source.buffer.shape)

    def row(self, i: int) -> Operand:
        """Return a row as the operand of `_take_row`: of keys, a raw one."""
        source = self.source
        if self._rows is None:
            self._rows = Series(source.array, self.view, self.along, source.place)
        return self._rows(source.array, i)

    def operand(self, i: int) -> Operand:
        """Return a row as the operand of a program."""
        source = self.source
        if self._operands is None:
            self._operands = Series(
                source.array, self.view, self.along, source.place, kind=source.kind
            )
        return self._operands(source.array, i)

    def chunk(self, start: int, size: int) -> Operand:
        """Return a chunk of rows as the operand of `_take_chunk`. It always has the same size."""
        source = self.source
        if self._chunks is None:
            self._chunks = Series(source.array, self.view, self.along, source.place, size=size)
        return self._chunks(source.array, start)


class _Part:
    """A part of a source, or all its parts of one kind, taken in some surroundings.

    A DeviceArray without a buffer has one of these, and an index that says which part it is: in
    `Rows` that of the row. A `Slice` needs none.
    """

    __slots__ = ("__weakref__", "aval", "base", "has_parts_with_rows", "surroundings")

    #: Returns the element at an index as a Python scalar, once the host has the source.
    scalar: Callable[[int], Any] | None = None

    def __init__(self, base: _Base, here: _jax.Surroundings, aval: Any) -> None:
        # One attribute, so that whoever reads it gets a source and a view of that source.
        self.base = base
        self.surroundings = here
        self.aval = aval
        self.has_parts_with_rows = False

    def view_at(self, index: Any, base: _Base) -> View:
        """Return the part as a view of the source."""
        raise NotImplementedError

    def rebase(self, buffer: Any) -> None:
        """Go on from `buffer`: the whole of this, on its own."""
        self.base = _Base(Source(buffer), whole(buffer.shape), self.base.axis)

    def rows_at_hand(self) -> None:
        """Return the rows that there are already: none."""
        return

    def keeper(self) -> Callable[[], None]:
        """Return what lets parts outlive the source, if there are any when this is gone."""
        outstanding = weakref.ref(self.base.source)

        def keep() -> None:
            source = outstanding()
            if source is not None and not source.array.is_deleted():
                source.replace()

        return keep

    def operand_at(self, index: Any) -> Operand | None:
        """Return the part as the operand of a program; None if it should have a buffer."""
        raise NotImplementedError

    def buffer_at(self, index: Any) -> Any:
        """Return the part as a buffer."""
        raise NotImplementedError

    def place_at(self, _index: Any) -> Any:
        """Return an array that lies where the part will and is as ready; None if there is none."""
        source = self.base.source
        return source.buffer if source.is_on_one_device else None

    def readable_at(self, index: Any) -> OnHost | None:
        """Return what the host can read the part from; None if the part needs a buffer."""
        base = self.base
        self._refuse_if_deleted(base)
        host = base.source.on_host(_nbytes(self.aval))
        if host is None:
            return None
        return OnHost(host[numpy_index(self.view_at(index, base))], self.aval, base.source)

    def _run(self, program: Any, *arguments: Any) -> Any:
        """Run a program as if here were where the part was taken."""
        if _jax.is_here(self.surroundings):
            return program(*arguments)
        with _jax.within(self.surroundings):
            return program(*arguments)

    def _refuse_if_deleted(self, base: _Base) -> None:
        if base.source.array.is_deleted():
            raise RuntimeError(
                f"This {self.aval.str_short()} is a part of an array that was deleted or donated, "
                "by other code than devicearray's, before the part was used: its value went with "
                "the array. Use the part first, or donate the array to a function of "
                "devicearray.jit, under which the parts that are still around keep their values."
            )


@functools.lru_cache(maxsize=4096)
def abstract(shape: tuple[int, ...], dtype: Any, weak_type: bool) -> Any:
    """Return the abstract value of an array on one device."""
    return _jax.abstract_array(shape, dtype, weak_type=weak_type)


def _like(buffer: Any, shape: tuple[int, ...]) -> Any:
    """Return the abstract value of a part of this shape."""
    aval = jax.typeof(buffer)
    return abstract(shape, aval.dtype, aval.weak_type)


def _nbytes(aval: Any) -> int:
    return int(aval.size * aval.dtype.itemsize)


class Slice(_Part):
    """A slice of an array, or an element by several indices."""

    __slots__ = ("_was_operand",)

    def __init__(self, base: _Base, here: _jax.Surroundings) -> None:
        super().__init__(base, here, _like(base.source.buffer, shape_of(base.view)))
        self._was_operand = False

    def view_at(self, _index: Any, base: _Base) -> View:
        return base.view

    def operand_at(self, _index: Any) -> Operand | None:
        if self._was_operand or not _jax.is_here(self.surroundings):
            return None
        self._was_operand = True
        return self._operand(self.base.source.kind)

    def buffer_at(self, _index: Any) -> Any:
        return self.base.source.finished(self._run(_take_slice, self._operand(None)))

    def _operand(self, kind: Any) -> Operand:
        base = self.base
        self._refuse_if_deleted(base)
        return operand(base.source.array, base.view, base.source.place, kind)


class _EachRow(_Part):
    """The rows of an array, or of a part of one, however they are made. The index is a row's."""

    __slots__ = ("length",)

    def __init__(self, base: _Base, here: _jax.Surroundings, aval: Any) -> None:
        super().__init__(base, here, aval)
        self.length = base.view[base.along].size

    def view_at(self, index: int, base: _Base) -> View:
        return row_of(base.view, index, base.along)


class Rows(_EachRow):
    """Rows that are taken by programs of ours.

    An array keeps one of these for its rows by index, and each iteration has one of its own.

    A row that a chunk has is given away once: two arrays with one buffer would be deleted
    together, and in a loop its memory is soon free for another.
    """

    __slots__ = ("_chunk", "_kept", "_lock", "_used", "scalar")

    def __init__(self, base: _Base, here: _jax.Surroundings, aval: Any) -> None:
        super().__init__(base, here, aval)
        self._chunk = max(1, min(CHUNK, self.length, _CHUNK_BYTES // max(1, _nbytes(aval))))
        self._kept: dict[int, dict[int, Any]] = {}
        self._used: dict[int, None] = {}
        self._lock = threading.Lock()
        self.scalar = None

    def operand_at(self, index: int) -> Operand | None:
        number = index // self._chunk
        chunk = self._kept.get(number)
        if chunk is None:
            is_at_hand = self._is_expected(index, number)
        else:
            is_at_hand = index in chunk or self._is_spent(chunk)
        if is_at_hand or not _jax.is_here(self.surroundings):
            return None
        self._remember(number)
        base = self.base
        self._refuse_if_deleted(base)
        return base.operand(index)

    def buffer_at(self, index: int) -> Any:
        number = index // self._chunk
        chunk = self._kept.get(number)
        row = None if chunk is None else chunk.pop(index, None)
        if row is not None:
            return row
        if self._is_spent(chunk) if chunk is not None else self._is_expected(index, number):
            row = self._make_chunk(number).pop(index, None)
        return self._make_row(index, number) if row is None else row

    def readable_at(self, index: int) -> OnHost | None:
        readable = super().readable_at(index)
        if readable is not None and self.scalar is None:
            base = self.base
            host = base.source.host
            is_of_scalars = host is not None and host.ndim == 1 and host.dtype.kind in "biuf"
            if is_of_scalars and base.is_whole():
                self.scalar = host.item
        return readable

    def keeper(self) -> Callable[[], None]:
        self.scalar = None
        return super().keeper()

    def in_order(self, *, backwards: bool = False) -> Iterator[DeviceArray]:
        """Return an iterator over the rows, which are expected to be used in its order."""
        rows = Rows(self.base, self.surroundings, self.aval)
        numbers = range(-(-self.length // self._chunk))
        rows._used[len(numbers) if backwards else -1] = None
        return rows._each(reversed(numbers) if backwards else numbers, -1 if backwards else 1)

    def _each(self, numbers: Iterable[int], step: int) -> Iterator[DeviceArray]:
        new, device_array, kept = _new, DeviceArray, self._kept
        for number in numbers:
            for index in self._indices(number)[::step]:
                row = new(device_array)
                # In a loop that uses each row, all but the first of a chunk have a buffer by now.
                chunk = kept.get(number) if kept else None
                buffer = chunk.pop(index, None) if chunk else None
                if buffer is None:
                    row._source = self
                    row._index = index
                else:
                    row._buffer = buffer
                    row._source = None
                yield row

    # Chunks, by their numbers.

    def _indices(self, number: int) -> range:
        return range(number * self._chunk, min((number + 1) * self._chunk, self.length))

    def _is_expected(self, index: int, number: int) -> bool:
        """Tell whether it is worth making a chunk in order to have a row of it.

        It is if a row of it was used before, or if the row is the next one after a chunk that was.
        """
        if self._chunk == 1:
            return False
        used = self._used
        if number in used:
            return True
        indices = self._indices(number)
        return (index == indices[0] and number - 1 in used) or (
            index == indices[-1] and number + 1 in used
        )

    def _make_row(self, index: int, number: int) -> Any:
        self._remember(number)
        base = self.base
        self._refuse_if_deleted(base)
        return base.source.finished(self._run(_take_row, base.row(index)))

    def _is_spent(self, chunk: dict[int, Any]) -> bool:
        """Tell whether a chunk is worth making again, for rows that it has given away."""
        return 2 * len(chunk) < self._chunk

    def _make_chunk(self, number: int) -> dict[int, Any]:
        """Make and keep a chunk: its rows by their indices."""
        base, length = self.base, self._chunk
        self._refuse_if_deleted(base)
        # The last chunk is as long as the others, so that the same programs serve: it overlaps.
        start = min(number * length, self.length - length)
        stacked = base.source.array
        if length < self.length or not base.is_whole():
            stacked = self._run(_take_chunk, base.chunk(start, length))
        rows = self._run(_unstack, stacked, base.axis)
        if base.source.kind is not None:
            rows = [base.source.finished(row) for row in rows]
        chunk = dict(zip(range(start, start + length), rows, strict=True))
        most = _CHUNK_BYTES // max(1, length * _nbytes(self.aval))
        with self._lock:
            _push(self._used, number, None, _REMEMBERED)
            _push(self._kept, number, chunk, max(1, min(_KEPT, most)))
        return chunk

    def _remember(self, number: int) -> None:
        with self._lock:
            _push(self._used, number, None, _REMEMBERED)


def _push(kept: dict[int, Any], number: int, value: Any, most: int) -> None:
    """Add to a dictionary that keeps the `most` that were added last."""
    kept.pop(number, None)
    kept[number] = value
    while len(kept) > most:
        del kept[next(iter(kept))]


class PlacedRows(_EachRow):
    """The rows of an array that JAX moves when it takes one, or that is in another memory.

    A row is made by JAX's own call, when it is used.
    """

    __slots__ = ()

    def operand_at(self, _index: int) -> Operand | None:
        return None

    def place_at(self, _index: int) -> Any:
        return None

    def buffer_at(self, index: int) -> Any:
        base = self.base
        self._refuse_if_deleted(base)
        return self._run(operator.itemgetter(index), base.source.buffer)

    def in_order(self, *, backwards: bool = False) -> Iterator[DeviceArray]:
        """Return an iterator over the rows."""
        return parts_in_order(self, self.length, backwards=backwards)


# From an array to its rows.


def rows_of(array: DeviceArray) -> Rows | PlacedRows | None:
    """Return the rows of an array, as taken here and now.

    None, if JAX's own call is to be made: inside a trace, under JAX's checks of values, and where
    no row can be taken, which JAX says in its own words.
    """
    if _jax.is_in_charge():
        return None
    here = _jax.surroundings()
    rows: Rows | PlacedRows | None = array._rows
    if rows is None or rows.surroundings != here or rows.base.source.array.is_deleted():
        rows = array._rows = _new_rows(array, here)
    return rows


def rows_along(array: DeviceArray, axis: int) -> Rows | PlacedRows | None:
    """Return the rows along another axis than the first; None if JAX is to take it apart."""
    rows = rows_of(array)
    if axis == 0:
        return rows
    if not isinstance(rows, Rows) or not _is_view(rows):
        return None
    base = _Base(rows.base.source, rows.base.view, axis)
    shape = array.shape[:axis] + array.shape[axis + 1 :]
    return Rows(base, rows.surroundings, _like(base.source.buffer, shape))


def joined(rows: Sequence[Any]) -> DeviceArray | None:
    """Return rows as one array; None if they are not all unused rows of one source.

    Rows at regular distances are a slice, and not dispatched until it is used.
    """
    part = rows[0]._source if rows and type(rows[0]) is DeviceArray else None
    if not isinstance(part, Rows) or not _is_view(part) or part.base.axis or part.aval.weak_type:
        return None
    base, here = part.base, part.surroundings
    if _jax.is_in_charge() or _jax.surroundings() != here:
        return None
    indices = []
    for row in rows:
        other = row._source if type(row) is DeviceArray else None
        if not isinstance(other, Rows) or other.base is not base or other.surroundings != here:
            return None
        indices.append(row._index)
    view = narrowed(base.view, _regular(indices))
    if view is not None:
        return new_part(Slice(_Base(base.source, view), here), None)
    source = base.source
    with jax.default_device(source.place):
        # So that it is not committed, and neither is what a program makes with it.
        numbers = jax.device_put(np.array(indices, np.int32))
    picked = _pick_rows(operand(source.array, base.view, source.place), numbers)
    return wrap(source.finished(picked))


def _regular(indices: list[int]) -> slice | None:
    """Return the slice that picks these indices, if one does."""
    first, last = indices[0], indices[-1]
    step = indices[1] - first if len(indices) > 1 else 1
    if step == 0 or any(b - a != step for a, b in itertools.pairwise(indices)):
        return None
    stop = last + (1 if step > 0 else -1)
    return slice(first, stop if stop >= 0 else None, step)


def _new_rows(array: DeviceArray, here: _jax.Surroundings) -> Rows | PlacedRows | None:
    base = _base_of(array, here)
    source, shape = base.source, shape_of(base.view)
    if not shape or shape[0] > LONGEST or source.array.is_deleted():
        return None
    plain = source.is_plain(here)
    if plain and source.is_on_one_device:
        return Rows(base, here, _like(source.buffer, shape[1:]))
    try:
        aval = _type_of_a_row(source.buffer)
    except Exception:
        # An axis of an explicit mesh splits the rows, say.
        return None
    return (Rows if plain else PlacedRows)(base, here, aval)


def _base_of(array: DeviceArray, here: _jax.Surroundings) -> _Base:
    """Return what the rows of an array are views of, and of which view of it they are rows."""
    part = array._source
    if part is not None and part.surroundings == here and _is_view(part):
        base: _Base = part.base
        part.has_parts_with_rows = True
        return _Base(base.source, part.view_at(array._index, base))
    buffer, rows = array._buffer, array._rows
    known = rows is not None and rows.base.source.buffer is buffer
    return _Base(rows.base.source if known else Source(buffer), whole(buffer.shape))


def _is_view(part: Any) -> bool:
    """Tell whether a part of this part can be taken as a part of the source."""
    return isinstance(part, Rows | Slice) and part.base.source.is_on_one_device


def _type_of_a_row(buffer: Any) -> Any:
    return jax.make_jaxpr(operator.itemgetter(0))(buffer).out_avals[0]


def new_part(part: Part, index: Any) -> DeviceArray:
    """Return a DeviceArray that is a part of another, and has no buffer yet."""
    array = _new(DeviceArray)
    array._source = part
    array._index = index
    return array


def parts_in_order(part: Part, number: int, *, backwards: bool) -> Iterator[DeviceArray]:
    """Return an iterator over the parts with the first indices."""
    order = range(number)
    return (new_part(part, index) for index in (reversed(order) if backwards else order))


# The methods of DeviceArray.


def _getitem(self: DeviceArray, index: Any, /) -> Any:
    """Return a row, an element, a slice or what else an index picks."""
    try:
        i = index if type(index) is int else as_integer(index)
        rows = None if i is None else rows_of(self)
        if i is None or rows is None or not rows.length:
            return _elements(self, index)
    except Exception as error:
        advise(error)
        raise
    length = rows.length
    return new_part(rows, i if 0 <= i < length else clamped(i, length))


def _elements(self: DeviceArray, index: Any) -> Any:
    """Return what an index picks that is no integer."""
    if isinstance(index, jax.Array):
        return wrap_tree(_pick(self._buffer, unwrap(index)))
    rows = rows_of(self)
    if isinstance(rows, Rows) and _is_view(rows):
        view = narrowed(rows.base.view, index)
        if view is not None and view != rows.base.view:
            return new_part(Slice(_Base(rows.base.source, view), rows.surroundings), None)
    buffer = self._buffer
    picked = buffer[index]
    return self if picked is buffer else wrap_tree(picked)


_pick = program_of(operator.getitem)


def _iter(self: DeviceArray) -> Iterator[Any]:
    """Return an iterator over the rows."""
    with advised:
        rows = _rows_to_iterate(self)
        if rows is None:
            return _wrapped(iter(self._buffer))
        in_order: Iterator[DeviceArray] = rows.in_order()
        return in_order


def _reversed(self: DeviceArray) -> Iterator[Any]:
    """Return an iterator over the rows, the last one first."""
    with advised:
        rows = _rows_to_iterate(self)
        if rows is None:
            return _wrapped(reversed(self._buffer))
        in_order: Iterator[DeviceArray] = rows.in_order(backwards=True)
        return in_order


def _rows_to_iterate(array: DeviceArray) -> Any:
    part = array._source
    rows = None if part is None else part.rows_at_hand()
    return rows_of(array) if rows is None else rows


def _wrapped(buffers: Iterator[Any]) -> Iterator[Any]:
    with advised:
        for buffer in buffers:
            yield wrap_tree(buffer)


def _delete(self: DeviceArray) -> None:
    """Free the memory of the array, which cannot be used any more. Its rows can."""
    keep_parts(self)
    with advised:
        self._buffer.delete()


def install() -> None:
    """Give `DeviceArray` the methods that take its rows, and the one that deletes it."""
    for name, method in {
        "__getitem__": _getitem,
        "__iter__": _iter,
        "__reversed__": _reversed,
        "delete": _delete,
    }.items():
        method.__name__ = name
        method.__qualname__ = f"DeviceArray.{name}"
        method.__module__ = DeviceArray.__module__
        setattr(DeviceArray, name, method)
