"""DeviceArray: what an array is before, while and after its value exists.

A JAX array is a *future*. The program that computes it has been dispatched, its shape, dtype
and placement are known, and its value appears on the device some time later. ``DeviceArray`` is
that idea as a Python class: a native JAX type (``isinstance(x, jax.Array)`` holds and every JAX
function takes one as it is) that holds a *runtime buffer*, the array object of JAX's own C++
runtime. What can be known without the value is answered from the buffer at once; what needs the
value on the host waits for it, in the buffer's own code, exactly where a plain array would.

Prior art: JAX's first ``DeviceArray`` (2018 to 2022) was such a class, in Python, until speed
moved it into C++; equinox and quax build array-likes around a buffer, but as pytrees or through
``__jax_array__``, so that they are not arrays to the rest of JAX. The choice made here is
registration (``_jax.register_array_type``), by which an instance *is* an array to a trace, to a
program and to differentiation. The one refused is a subclass of the C++ class: it cannot be
subclassed, and would leave no room for a value that has no buffer yet.

What the names of this class do comes in three kinds:

* names answered by the buffer (``shape``, ``devices()``, ``is_ready()``, ...): this module;
* reads by the host (``float(x)``, ``print(x)``, ``np.asarray(x)``): this module, through the
  buffer, so that they wait where JAX's wait;
* operators and methods that compute (``x + y``, ``x.sum()``): ``_methods``, through dispatch.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import Any, Protocol, final

import jax
import numpy as np

from devicearray import _jax
from devicearray._advice import advised

__all__ = [
    "DeviceArray",
    "from_buffer",
    "keep_parts",
    "named_as_jax_does",
    "operand_of",
    "unwrap",
    "wrap",
    "wrap_tree",
]

#: What JAX writes before the elements of an array, and what a DeviceArray writes.
_JAX_PREFIX = "Array("
_PREFIX = "DeviceArray("


def from_buffer(name: str, doc: str | None) -> property:
    """Return a property that the buffer answers. It never waits."""

    def ask(self: DeviceArray) -> Any:
        return getattr(self._buffer, name)

    return named_as_jax_does(name, ask, doc)


def from_type(name: str, doc: str | None) -> property:
    """Return a property that the abstract value answers, where there is no buffer."""

    def ask(self: DeviceArray) -> Any:
        part = self._source
        return getattr(self._buffer if part is None else part.aval, name)

    return named_as_jax_does(name, ask, doc)


def from_place(name: str, doc: str | None) -> property:
    """Return a property that the source answers, where there is no buffer and it lies alike."""

    def ask(self: DeviceArray) -> Any:
        return getattr(at_its_place(self), name)

    return named_as_jax_does(name, ask, doc)


class Part(Protocol):
    """What a DeviceArray without a buffer is a part of (`_rows`). The index says which part."""

    @property
    def aval(self) -> Any:
        """The abstract value of the part."""

    @property
    def has_parts_with_rows(self) -> bool:
        """Whether a part of this kind has rows of its own, which go on from its buffer."""

    @property
    def scalar(self) -> Callable[[Any], Any] | None:
        """Returns the part as a Python scalar, if it is one and the host has it already."""

    def rows_at_hand(self) -> Any:
        """Return the rows of the part, if they have been made already."""

    def buffer_at(self, index: Any) -> Any:
        """Return the part as a buffer: dispatch the programs that make it."""

    def operand_at(self, index: Any) -> Any:
        """Return what a program of ours takes in place of the buffer; None if the buffer."""

    def place_at(self, index: Any) -> Any:
        """Return an array that lies where the part will and is as ready; None if the buffer."""

    def readable_at(self, index: Any) -> Any:
        """Return what the host reads in place of the buffer; None if the buffer."""


def named_as_jax_does(name: str, getter: Callable[[Any], Any], doc: str | None) -> property:
    """Return a property. Python names its getter to those who try to assign to it."""
    jax_getter = getattr(getattr(_jax.ArrayImpl, name), "fget", None)
    getter.__name__ = getattr(jax_getter, "__name__", name)
    return property(getter, doc=doc)


@final
class DeviceArray(jax.Array):
    """An array on a device: a value that may not exist yet.

    Make one with `devicearray.asarray`, with a function of `devicearray.numpy` or
    `devicearray.random`, or as the result of a function wrapped in `devicearray.jit`. It has
    every public attribute of `jax.Array`, and each behaves as JAX's does.

    Examples
    --------
    >>> import devicearray as da
    >>> x = da.asarray([1.0, 2.0, 3.0])
    >>> x + x
    DeviceArray([2., 4., 6.], dtype=float32)
    >>> x.shape, x.dtype
    ((3,), dtype('float32'))
    """

    # No `__dict__`, which would make every row larger: attributes cannot be set.
    __slots__ = ("__weakref__", "_buffer", "_index", "_rows", "_source")

    _buffer: Any
    """The runtime buffer. Asking for it makes it, if there is none yet: see `__getattr__`."""
    _source: Any
    """The `Part` that this array is a part of; None as soon as it has a buffer."""
    _index: Any
    """Which part. It never changes."""
    _rows: Any
    """What the rows of this array are parts of, if some were taken; see `_rows`."""

    # Equality is elementwise, so that no hash can agree with it (jax#7347).
    __hash__ = None  # type: ignore[assignment]

    # NumPy must hand ``ndarray + DeviceArray`` to this class rather than loop over elements.
    __array_priority__ = 100

    __module__ = "devicearray"

    def __new__(cls, *args: Any, **kwargs: Any) -> DeviceArray:
        raise TypeError(
            "DeviceArray is not constructed directly: its buffer comes from the runtime. "
            "Did you mean devicearray.asarray(...), or a function of devicearray.numpy such as "
            "zeros or arange?"
        )

    # What is known before the value is.

    shape = from_type("shape", "The lengths of the axes.")
    dtype = from_type("dtype", "The type of the elements.")
    ndim = from_type("ndim", "The number of axes.")
    size = from_type("size", "The number of elements.")
    nbytes = from_buffer("nbytes", "The size of the elements in bytes.")
    itemsize = from_buffer("itemsize", "The size of one element in bytes.")
    weak_type = from_type("weak_type", "Whether the dtype gives way to that of an operand.")

    # Where it is.

    sharding = from_place("sharding", "How the array lies on its devices.")
    committed = from_place("committed", "Whether the array insists on its devices.")
    device = from_place("device", "The device, or the sharding if there are several.")
    format = from_buffer("format", "The sharding together with the memory layout.")
    is_fully_addressable = from_place(
        "is_fully_addressable", "Whether this process can reach every device of the array."
    )
    is_fully_replicated = from_place(
        "is_fully_replicated", "Whether every device holds the whole array."
    )
    addressable_shards = from_buffer(
        "addressable_shards", "The shards that this process can reach."
    )
    global_shards = from_buffer("global_shards", "All shards, those of other processes too.")
    traceback = from_buffer("traceback", "Where the buffer was made, if JAX recorded it.")

    __cuda_array_interface__ = from_buffer(
        "__cuda_array_interface__", "Where the memory is, for libraries of CUDA."
    )

    def __getattr__(self, name: str) -> Any:
        """Ask the buffer: for JAX's private names, on which its own functions rely.

        Python calls this for what it does not find, and so for a slot that is not set.
        """
        if name == "_buffer":
            return _make_buffer(self)
        if name in ("_rows", "_source"):
            return None
        try:
            return getattr(self._buffer, name)
        except AttributeError as error:
            # Where JAX says why, as of ``device_buffer``, its own words are the better ones.
            if "object has no attribute" not in str(error):
                raise
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=self) from None

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)) | set(dir(self._buffer)))

    @property
    def aval(self) -> Any:
        """The abstract value: what a trace knows of this array."""
        part = self._source
        return self._buffer.aval if part is None else part.aval

    def addressable_data(self, index: int) -> Any:
        """Return the shard `index` of this process: a plain array, as the shards' ``data`` are."""
        return self._buffer.addressable_data(index)

    def clone(self) -> DeviceArray:
        """Return a new array of the same buffer."""
        return wrap(self._buffer.clone())

    # Its life.

    def block_until_ready(self) -> DeviceArray:
        """Wait until the value exists. It stays on the device.

        Returns
        -------
        DeviceArray
            This array, so that ``f(x).block_until_ready()`` can be written.

        Raises
        ------
        RuntimeError
            If the array was deleted or donated, or if the program that computes it failed.
        """
        with advised:
            at_its_place(self).block_until_ready()
        return self

    def is_ready(self) -> bool:
        """Tell whether the value exists, without waiting for it.

        A row that was not used yet can be when its source is.
        """
        with advised:
            return bool(at_its_place(self).is_ready())

    def is_deleted(self) -> bool:
        """Tell whether the array was deleted or donated."""
        return bool(at_its_place(self).is_deleted())

    def devices(self) -> set[jax.Device]:
        """Return the devices that the array lies on."""
        with advised:
            devices: set[jax.Device] = at_its_place(self).devices()
        return devices

    def copy_to_host_async(self) -> None:
        """Begin to copy the value to the host, and do not wait."""
        with advised:
            self._buffer.copy_to_host_async()

    def __len__(self) -> int:
        with advised:
            part = self._source
            if part is None:
                return len(self._buffer)
            if not part.aval.shape:
                raise TypeError("len() of unsized object")
            return int(part.aval.shape[0])

    # Reads by the host: each waits for the value.

    def __array__(
        self, dtype: Any = None, context: None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        with advised:
            array: np.ndarray[Any, Any] = _readable(self).__array__(dtype, context, copy)
        return array

    def __buffer__(self, _flags: int, /) -> memoryview:
        with advised:
            return memoryview(_readable(self))

    # Properties, because an array of keys must not seem to have them.
    __dlpack__ = from_buffer("__dlpack__", "Hand the memory to another library.")
    __dlpack_device__ = from_buffer("__dlpack_device__", "The device, as DLPack numbers it.")

    # The commonest reads of rows, in a loop over them, begin with the quick way: the host has the
    # source, and Python makes a scalar of an element of it.

    def __bool__(self) -> bool:
        part = self._source
        if part is not None and part.scalar is not None:
            return bool(part.scalar(self._index))
        with advised:
            return bool(_readable(self))

    def __int__(self) -> int:
        part = self._source
        if part is not None and part.scalar is not None:
            return int(part.scalar(self._index))
        with advised:
            return int(_readable(self))

    def __float__(self) -> float:
        part = self._source
        if part is not None and part.scalar is not None:
            return float(part.scalar(self._index))
        with advised:
            return float(_readable(self))

    def __complex__(self) -> complex:
        with advised:
            return complex(_readable(self))

    def __index__(self) -> int:
        with advised:
            return operator.index(_readable(self))

    def __hex__(self) -> str:
        return _readable(self).__hex__()  # type: ignore[no-any-return]

    def __oct__(self) -> str:
        return _readable(self).__oct__()  # type: ignore[no-any-return]

    def item(self, *args: Any) -> Any:
        """Return one element as a Python scalar."""
        part = self._source
        if part is not None and part.scalar is not None and not args:
            return part.scalar(self._index)
        with advised:
            return _readable(self).item(*args)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars."""
        with advised:
            return _readable(self).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the elements as bytes."""
        with advised:
            data: bytes = _readable(self).tobytes(order)
        return data

    def __repr__(self) -> str:
        with advised:
            return _represent(_readable(self))

    def __str__(self) -> str:
        with advised:
            text = str(_readable(self))
        # What JAX does not read for str() it writes as repr() does.
        return repr(self) if text.startswith(_JAX_PREFIX) else text

    def __format__(self, spec: str) -> str:
        with advised:
            text = format(_readable(self), spec)
        return repr(self) if text.startswith(_JAX_PREFIX) else text

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._buffer,)


_new = object.__new__


def wrap(buffer: Any) -> DeviceArray:
    """Return a DeviceArray that holds `buffer`, an array that JAX made itself."""
    array: DeviceArray = _new(DeviceArray)
    array._buffer = buffer
    array._source = None
    return array


def _make_buffer(array: DeviceArray) -> Any:
    """Give an array that is a part of another a buffer of its own."""
    part = array._source
    if part is None:
        # Another thread has made one since Python looked for it; if not, the array is no array.
        with contextlib.suppress(AttributeError):
            return object.__getattribute__(array, "_buffer")
        raise AttributeError("_buffer")
    buffer = part.buffer_at(array._index)
    # In this order: whoever finds no source must find a buffer.
    array._buffer = buffer
    if part.has_parts_with_rows and array._rows is not None:
        array._rows.rebase(buffer)
    array._source = None
    return buffer


def keep_parts(array: DeviceArray) -> None:
    """Let the parts of an array that are around outlive it: it is about to be deleted."""
    # If it is a part of another itself, its rows go on from its buffer, and the other may stay.
    _ = array._buffer
    rows = array._rows
    if rows is None:
        return
    keep = rows.keeper()
    # If nobody else has these rows, there are no parts, and nothing is kept.
    array._rows = rows = None
    keep()


def operand_of(array: DeviceArray) -> Any:
    """Return what a program of ours takes for an array: its buffer, or how to take a part."""
    part = array._source
    operand = None if part is None else part.operand_at(array._index)
    return array._buffer if operand is None else operand


def at_its_place(array: DeviceArray) -> Any:
    """Return an array of JAX's that lies where this one does, and is as ready."""
    part = array._source
    placed = None if part is None else part.place_at(array._index)
    return array._buffer if placed is None else placed


def _readable(array: DeviceArray) -> Any:
    """Return what the host reads: the buffer, or a part of a copy that the host has."""
    part = array._source
    readable = None if part is None else part.readable_at(array._index)
    return array._buffer if readable is None else readable


def unwrap(value: Any) -> Any:
    """Return the buffer of a DeviceArray, and anything else as it is."""
    return value._buffer if type(value) is DeviceArray else value


def _wrap_leaf(leaf: Any) -> Any:
    is_ours_to_wrap = isinstance(leaf, jax.Array) and not isinstance(
        leaf, jax.core.Tracer | DeviceArray
    )
    return wrap(leaf) if is_ours_to_wrap else leaf


def wrap_tree(tree: Any) -> Any:
    """Return `tree` with its arrays as DeviceArrays. Tracers and other leaves stay."""
    if type(tree) is _jax.ArrayImpl:
        return wrap(tree)
    return jax.tree.map(_wrap_leaf, tree)


def _represent(buffer: Any) -> str:
    """Return JAX's own representation with this class's name, its lines aligned again."""
    wider = len(_PREFIX) - len(_JAX_PREFIX)
    with np.printoptions(linewidth=np.get_printoptions()["linewidth"] - wider):
        text = repr(buffer)
    text = text.removeprefix(_JAX_PREFIX)
    return _PREFIX + text.replace("\n" + " " * len(_JAX_PREFIX), "\n" + " " * len(_PREFIX))


def _take_apart(array: DeviceArray) -> tuple[tuple[Any], None]:
    return (array._buffer if array._source is None else _make_buffer(array),), None


def _rebuild(_: None, buffers: tuple[Any]) -> DeviceArray:
    # `wrap`, written out: C++ calls this for each output of each call.
    array: DeviceArray = _new(DeviceArray)
    array._buffer = buffers[0]
    array._source = None
    return array


def _type_of(array: DeviceArray) -> Any:
    part = array._source
    return jax.typeof(array._buffer) if part is None else part.aval


_jax.register_array_type(DeviceArray, _take_apart, _rebuild, _type_of)
_jax.unwrap_before_eager_rules(unwrap)
