"""block_until_ready: wait for all arrays of a tree, and say so where one would be missed.

``jax.block_until_ready`` waits for the leaves of a pytree that are arrays and skips the rest. An
object that is no pytree is a leaf, so the arrays inside it are skipped as well, and a timing
that relies on the wait measures a dispatch. trio's rule is followed: a wait that did not happen
is an error, not a convenience. Looking into every leaf costs time, but only for leaves that are
neither arrays nor numbers, of which a tree of arrays has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, MappingView, Set, ValuesView
from io import IOBase
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import jax
import numpy as np

from devicearray._advice import advised
from devicearray._array import unwrap

__all__ = ["block_until_ready"]

# jax.block_until_ready is not annotated.
_block: Callable[[Any], Any] = jax.block_until_ready

#: Leaves that hold no array.
_PLAIN: Final = (
    bool, int, float, complex, str, bytes, type(None), type, np.ndarray, np.generic, np.dtype,
)  # fmt: skip

#: What refers to arrays without having them as its value.
_NOT_LOOKED_INTO: Final = (FunctionType, BuiltinFunctionType, MethodType, ModuleType)

#: How many objects are looked at inside one leaf before it is believed to hold no array.
_SEARCH_LIMIT: Final = 10_000


def block_until_ready[T](x: T) -> T:
    """Wait until every array in `x` is ready. The values stay on the device.

    Parameters
    ----------
    x : pytree
        An array, or arrays in lists, tuples, dicts and registered classes. Numbers, strings and
        NumPy arrays may be among them.

    Returns
    -------
    pytree
        `x` itself.

    Raises
    ------
    TypeError
        If a leaf is an object that is no pytree but holds an array, which would not be waited
        for, or an iterator, into which nothing can look. Nothing was waited for.
    RuntimeError
        If an array was deleted or donated.

    See Also
    --------
    jax.block_until_ready : passes over what is inside such objects.

    Examples
    --------
    >>> import devicearray as da
    >>> from devicearray import numpy as jnp
    >>> state = {"weights": jnp.ones((2, 2)), "step": 3}
    >>> da.block_until_ready(state) is state
    True

    >>> class Model:
    ...     def __init__(self):
    ...         self.weights = jnp.ones(3)
    >>> da.block_until_ready([Model()])
    Traceback (most recent call last):
    ...
    TypeError: block_until_ready: the leaf x[0] is a Model, which is not a pytree, so its array \
.weights (float32[3]) would not be waited for. Pass the array itself, or register the class, for \
example with jax.tree_util.register_dataclass.
    """
    leaves = jax.tree_util.tree_leaves_with_path(x, is_leaf=_is_no_pytree)
    arrays = []
    for path, leaf in leaves:
        if isinstance(leaf, jax.Array):
            arrays.append(unwrap(leaf))
        elif hasattr(leaf, "block_until_ready"):
            arrays.append(leaf)
        elif not _is_plain(leaf):
            _refuse_if_hiding(leaf, f"x{jax.tree_util.keystr(path)}")
    with advised:
        _block(arrays)
    return x


def _refuse_if_hiding(leaf: Any, name: str) -> None:
    kind = type(leaf).__name__
    if _is_iterator(leaf):
        raise TypeError(
            f"block_until_ready: {_leaf(name)} is an iterator ({kind}), and what it will give "
            "cannot be waited for. Make a list of it first: list(...)."
        )
    found = _hidden_array(leaf)
    if found is not None:
        where, array = found
        raise TypeError(
            f"block_until_ready: {_leaf(name)} is a {kind}, which is not a pytree, so its array "
            f"{where} ({jax.typeof(array)}) would not be waited for. Pass the array itself, or "
            "register the class, for example with jax.tree_util.register_dataclass."
        )


def _is_plain(value: Any) -> bool:
    objects = isinstance(value, np.ndarray) and value.dtype.hasobject
    return isinstance(value, _PLAIN) and not objects


def _is_iterator(leaf: Any) -> bool:
    # An open file is an iterator of its lines, and holds no array.
    return isinstance(leaf, Iterator) and not isinstance(leaf, IOBase)


def _is_no_pytree(leaf: Any) -> bool:
    """Tell what JAX takes for a leaf, and warns about, so that it need not."""
    return isinstance(leaf, Iterator | MappingView)


def _leaf(name: str) -> str:
    return "the argument" if name == "x" else f"the leaf {name}"


def _hidden_array(leaf: Any) -> tuple[str, jax.Array] | None:
    """Return the path to an array inside `leaf`, and the array; None if there is none."""
    seen = {id(leaf)}
    waiting = deque(_inside(leaf))
    while waiting and len(seen) < _SEARCH_LIMIT:
        path, value = waiting.popleft()
        if isinstance(value, jax.Array):
            return path, value
        if id(value) in seen or _is_plain(value):
            continue
        seen.add(id(value))
        waiting.extend((path + step, inner) for step, inner in _inside(value))
    return None


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what `value` holds, each with the step that leads to it.

    Functions and modules are not looked into: what they refer to is not their value.
    """
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{i}]", inner) for i, inner in enumerate(value))
    elif isinstance(value, Set | ValuesView):
        yield from (("{...}", inner) for inner in value)
    elif isinstance(value, np.ndarray):
        yield from ((f".flat[{i}]", inner) for i, inner in enumerate(value.flat))
    elif not isinstance(value, _NOT_LOOKED_INTO):
        yield from ((f".{name}", inner) for name, inner in _attributes(value))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            # A slot of two underscores is stored under its class's name.
            private = slot.startswith("__") and not slot.endswith("__")
            name = f"_{cls.__name__.lstrip('_')}{slot}" if private else slot
            if hasattr(value, name):
                yield name, getattr(value, name)
