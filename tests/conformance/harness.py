"""Run a case on two kinds of array and say precisely where what happened differs.

A case is a function of one argument, ``make``, which turns a NumPy or JAX array into the kind of
array under test. Whatever the case returns or raises is *described*: flattened into facts, a
mapping from a path (``result['a'].dtype``) to a value that can be compared. Two runs agree when
their facts are equal. Nothing is compared by printing it and nothing is skipped: a result that
this module does not know how to describe is a ``TypeError``, not a pass.

Compared of a JAX array: value (bit for bit, any NaN equal to any other), shape, dtype, weak type,
JAX type (which holds the explicit sharding), committedness, sharding. Of a NumPy result: class,
shape, dtype, value. Of an error: its class and its message. Not compared: whether
a JAX array is a ``DeviceArray`` or a plain one, since both are ``jax.Array``, and the type's own
name where a message mentions it.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout

Make = Callable[[Any], jax.Array]
Facts = dict[str, object]

#: What a fact is compared with when the other run does not have it.
ABSENT = "(absent)"

#: Values that are equal when ``==`` says so, and that print well.
_VALUES = (
    np.dtype,
    slice,
    enum.Enum,
    type(Ellipsis),
    jax.Device,
    jax.ShapeDtypeStruct,
    jax.sharding.Sharding,
    jax.sharding.PartitionSpec,
    jax.sharding.Mesh,
    jax.tree_util.PyTreeDef,
    jax.tree_util.DictKey,
    jax.tree_util.SequenceKey,
    Format,
    Layout,
)

_TYPE_NAME = re.compile(r"\b(?:[A-Za-z_]\w*\.)*(?:DeviceArray|ArrayImpl|PRNGKeyArray)\b")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b|(?<=object id )[0-9]+")


class Exact:
    """The value of an array, equal to another when every bit is (NaNs aside)."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.array(array, order="C")

    def _bits(self) -> bytes:
        array = self.array.copy()
        if jnp.issubdtype(array.dtype, np.complexfloating):
            array = np.stack([array.real, array.imag])
        if jnp.issubdtype(array.dtype, np.floating):
            array[np.isnan(array)] = np.nan
        if array.dtype == object:
            raise TypeError("An object array has no bits to compare: return its elements instead.")
        return array.tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Exact):
            return NotImplemented
        same_form = self.array.shape == other.array.shape and self.array.dtype == other.array.dtype
        return same_form and self._bits() == other._bits()

    __hash__ = None

    def __repr__(self) -> str:
        return np.array2string(self.array, threshold=20, separator=", ").replace("\n", "")


@dataclasses.dataclass(frozen=True)
class Raised:
    """An error that a case caught on purpose, to go on and to compare it with the rest."""

    error: Exception


def attempt(function: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Call ``function``; return its result, or its error as a :class:`Raised`."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return Raised(error)


def message_of(error: BaseException) -> str:
    """The message of an error, with the array type's name and addresses normalised."""
    return normalise_names(str(error))


def normalise_names(text: str) -> str:
    """Call JAX's array type and ours ``Array``, and every memory address ``0x...``."""
    return _ADDRESS.sub("0x...", _TYPE_NAME.sub("Array", text))


def normalise_repr(text: str) -> str:
    """Turn the ``repr`` of a DeviceArray into what JAX prints for the same value.

    The longer name also indents the lines that follow the first.
    """
    name, jax_name = "DeviceArray(", "Array("
    if not text.startswith(name):
        return text
    first, *rest = text.removeprefix(name).split("\n")
    wide, narrow = " " * len(name), " " * len(jax_name)
    rest = [narrow + line.removeprefix(wide) if line.startswith(wide) else line for line in rest]
    return "\n".join([jax_name + first, *rest])


def describe(result: object, path: str = "result") -> Facts:
    """Flatten a result into facts; raise ``TypeError`` for one that cannot be compared."""
    facts: Facts = {}
    _describe(result, path, facts)
    return facts


def _describe(result: object, path: str, facts: Facts) -> None:
    if result is None or isinstance(result, bool | int | float | complex | str | bytes):
        _describe_python_scalar(result, path, facts)
    elif isinstance(result, jax.Array):
        _describe_jax_array(result, path, facts)
    elif isinstance(result, np.ndarray | np.generic):
        _describe_numpy(result, path, facts)
    elif isinstance(result, Raised):
        facts[path] = "raised"
        facts[f"{path}.error"] = type(result.error).__name__
        facts[f"{path}.message"] = message_of(result.error)
    elif isinstance(result, Mapping):
        facts[path] = f"{type(result).__name__} with keys {list(result)}"
        for key, value in result.items():
            _describe(value, f"{path}[{key!r}]", facts)
    elif isinstance(result, list | tuple):
        facts[path] = f"{type(result).__name__} of {len(result)}"
        for index, value in enumerate(result):
            _describe(value, f"{path}[{index}]", facts)
    elif isinstance(result, (set, frozenset, *_VALUES)):
        facts[path] = (type(result).__name__, result)
    elif not jax.tree_util.all_leaves([result]):
        leaves, structure = jax.tree_util.tree_flatten(result)
        facts[path] = (type(result).__name__, structure)
        for index, value in enumerate(leaves):
            _describe(value, f"{path}.leaves[{index}]", facts)
    else:
        raise TypeError(f"{path} is a {type(result).__name__}: the harness cannot compare it.")


def _describe_python_scalar(result: object, path: str, facts: Facts) -> None:
    # np.float64 is a float, np.str_ a str: the class tells them from Python's own.
    if isinstance(result, np.generic):
        _describe_numpy(result, path, facts)
    else:
        facts[path] = f"{type(result).__name__} {result!r}"


def _describe_jax_array(array: jax.Array, path: str, facts: Facts) -> None:
    if isinstance(array, jax.core.Tracer):
        raise TypeError(f"{path} is a tracer: it escaped from the case.")
    facts[path] = "jax.Array"
    facts[f"{path}.shape"] = tuple(array.shape)
    facts[f"{path}.dtype"] = str(array.dtype)
    facts[f"{path}.type"] = str(jax.typeof(array))
    facts[f"{path}.committed"] = array.committed
    facts[f"{path}.sharding"] = array.sharding
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        raw = jax.random.key_data(array)
    else:
        raw = array
        facts[f"{path}.weak_type"] = array.weak_type
    facts[f"{path}.value"] = "(deleted)" if array.is_deleted() else Exact(np.asarray(raw))


def _describe_numpy(array: np.ndarray | np.generic, path: str, facts: Facts) -> None:
    facts[path] = f"numpy.{type(array).__name__}"
    facts[f"{path}.shape"] = array.shape
    facts[f"{path}.dtype"] = str(array.dtype)
    if array.dtype == object:
        for index, value in enumerate(array.ravel().tolist()):
            _describe(value, f"{path}.objects[{index}]", facts)
    else:
        facts[f"{path}.value"] = Exact(np.asarray(array))


def observe(function: Callable[[Make], object], make: Make) -> Facts:
    """Run one case on one kind of array and describe what it returned or raised."""
    made = 0

    def counting_make(value: object) -> jax.Array:
        nonlocal made
        made += 1
        return make(value)

    error: Exception | None = None
    result = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(counting_make)
        except Exception as raised:
            error = raised
        if not made:
            raise AssertionError("The case never made an array, so it compares nothing.") from error
        if error is None:
            return describe(result)
    return {"error": type(error), "error.message": message_of(error)}


def differences(expected: Facts, actual: Facts) -> list[str]:
    """One line for each fact that the two runs do not share, the first run being JAX's."""
    paths = [*expected, *(path for path in actual if path not in expected)]
    lines = []
    for path in paths:
        theirs = expected.get(path, ABSENT)
        ours = actual.get(path, ABSENT)
        if type(theirs) is not type(ours) or theirs != ours:
            lines.append(f"{path}: JAX {theirs!r}, ours {ours!r}")
    return lines
