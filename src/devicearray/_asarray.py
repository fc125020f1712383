"""asarray: a DeviceArray of anything that can be one, or an error that says why it cannot.

The conversion is ``jnp.asarray``'s, in value, dtype, weak type and placement. What is added is
the refusal: most first contacts with an array library fail here (a ragged list, a list of
strings, an object that only looks like an array), with a message about the library's internals.
The model is array-api-strict, whose errors name the thing and the right constructor. JAX's
exception types are kept, so that code that catches them goes on working.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from devicearray import _jax
from devicearray._advice import advise
from devicearray._array import DeviceArray, wrap, wrap_tree
from devicearray._rows import joined

__all__ = ["asarray"]


def asarray(x: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return `x` as a DeviceArray.

    Parameters
    ----------
    x : array_like
        A number, a nested list of numbers, a NumPy or JAX array, or anything with
        ``__jax_array__``, ``__array__``, ``__dlpack__`` or the buffer protocol. An array of JAX is
        taken as it is: nothing is copied, dispatched or waited for.
    dtype : dtype, optional
        The type of the elements; by default what JAX makes of `x`.
    device : jax.Device or jax.sharding.Sharding, optional
        Where to put the array; by default where `x` is, or JAX's default device.
    copy : bool, optional
        Whether to copy; by default only if needed.

    Returns
    -------
    DeviceArray
        Or the tracer itself, if `x` is one: inside ``jit``, ``grad`` and so on.

    Raises
    ------
    TypeError
        If `x` holds something that is no number, or is a string or a set.
    ValueError
        If `x` is None, or the lists in it have different lengths. (Where JAX raises the one of
        these two for the other's reason, so does this.)
    jax.errors.UnexpectedTracerError
        If `x` is a tracer whose transformation is over.

    See Also
    --------
    jax.numpy.asarray : the same, as a plain array.

    Examples
    --------
    >>> import devicearray as da
    >>> da.asarray([[1, 2], [3, 4]])
    DeviceArray([[1, 2],
                 [3, 4]], dtype=int32)
    >>> da.asarray([[1, 2], [3]])
    Traceback (most recent call last):
    ...
    ValueError: asarray: the list is ragged: element 0 has length 2 and element 1 has length 1. \
An array is rectangular: pad the shorter ones, or keep a list of arrays.
    """
    if dtype is None and device is None and not copy:
        # JAX returns such an array as it is, too, after a while.
        if type(x) is DeviceArray:
            return x
        if type(x) is _jax.ArrayImpl:
            return wrap(x)
        rows = joined(x) if type(x) in (list, tuple) else None
        if rows is not None:
            return rows
    if isinstance(x, set | frozenset | dict | str | bytes) or x is None:
        _refuse(x)
    try:
        array = jnp.asarray(x, dtype=dtype, device=device, copy=copy)
    except (TypeError, ValueError) as error:
        _explain(x, error)
        raise
    except RuntimeError as error:
        advise(error)
        raise
    return wrap_tree(array)


def _refuse(x: Any) -> NoReturn:
    remedies: dict[type, str] = {
        set: "A set has no order. Did you mean asarray(sorted(x))?",
        frozenset: "A frozenset has no order. Did you mean asarray(sorted(x))?",
        dict: "Did you mean jax.tree.map(asarray, x), or asarray(list(x.values()))?",
        str: "Text is no array of numbers. Did you mean asarray(float(x))?",
        bytes: "Did you mean asarray(numpy.frombuffer(x, dtype))?",
        type(None): "Did the function that made it return nothing?",
    }
    remedy = next(text for kind, text in remedies.items() if isinstance(x, kind))
    # JAX's exception for None is another than for the rest.
    error = ValueError if x is None else TypeError
    raise error(f"asarray: {_short(x)} is of type {type(x).__name__}. {remedy}")


def _explain(x: Any, error: Exception) -> None:
    """Raise a clearer error than `error` about `x`, if there is one."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    stranger = _stranger(x)
    if stranger is not None:
        raise kind(
            f"asarray: {stranger}, and JAX has no dtype for that. Convert it to numbers first."
        ) from None
    raggedness = _raggedness(x)
    if raggedness is not None:
        raise kind(
            f"asarray: the list is ragged: {raggedness}. An array is rectangular: pad the "
            "shorter ones, or keep a list of arrays."
        ) from None
    error.add_note(f"asarray was given {_short(x)}, of type {type(x).__name__}.")


def _length(x: Any) -> int | None:
    """Return the length of a list-like element, None for a number."""
    if isinstance(x, Sequence) and not isinstance(x, str | bytes):
        return len(x)
    shape = getattr(x, "shape", ())
    return int(shape[0]) if shape else None


def _raggedness(x: Any, path: str = "element ") -> str | None:
    """Say where the nested list `x` is ragged; None if it is not."""
    if not isinstance(x, list | tuple):
        return None
    lengths = [_length(element) for element in x]
    for place, length in enumerate(lengths):
        if length != lengths[0]:
            return f"{path}0 {_has(lengths[0])} and {path}{place} {_has(length)}"
    inner = (_raggedness(element, f"{path}{i}, ") for i, element in enumerate(x))
    return next((found for found in inner if found is not None), None)


def _has(length: int | None) -> str:
    return "is a number" if length is None else f"has length {length}"


def _stranger(x: Any, path: str = "") -> str | None:
    """Name the first element of `x` that is no number; None if all are."""
    if isinstance(x, list | tuple):
        inner = (_stranger(element, f"{path}[{i}]") for i, element in enumerate(x))
        return next((found for found in inner if found is not None), None)
    where = f"element {path}" if path else "it"
    dtype = getattr(x, "dtype", None)
    if isinstance(x, np.ndarray | np.generic) and dtype is not None and dtype.kind in "USOMmV":
        return f"{where} has dtype {dtype}"
    if isinstance(x, bool | int | float | complex | jax.Array | np.ndarray | np.generic):
        return None
    protocols = ("__jax_array__", "__array__", "__dlpack__", "__array_interface__")
    if any(hasattr(x, name) for name in protocols):
        return None
    return f"{where} is {_short(x)}, of type {type(x).__name__}"


def _short(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else f"{text[:37]}..."
