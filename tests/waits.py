"""Ways to wait for a value, and ways that only look like it: one list for all tests of them.

Each way is an action on a value that may not be there yet, and what the instrument is to call it.
"""

import copy
import json
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

#: What a gate is given, by kind. Each is made anew: some ways delete or donate it.
KINDS: dict[str, Callable[[], Any]] = {
    "scalar": lambda: jnp.float32(3.0),
    "integer": lambda: jnp.int32(2),
    "vector": lambda: jnp.arange(4.0),
    "bfloat16": lambda: jnp.ones(3, jnp.bfloat16),
    "int4": lambda: jnp.ones(3, jnp.int4),
    "mask": lambda: jnp.array([True, False, True, False]),
    "pair": lambda: (jnp.arange(4.0), 2 * jnp.arange(4.0)),
    "key": lambda: jax.random.key(0),
}

X = jnp.arange(4.0)
Y = 2 * X
donate = jax.jit(lambda v: v * 2, donate_argnums=0)
static = jax.jit(lambda n, y: y * n, static_argnums=0)


class Way(NamedTuple):
    """An action on a value of a kind; the trigger is None if it does not wait."""

    kind: str
    act: Callable[[Any], Any]
    trigger: str | None
    #: What a guard refuses in the end, where NumPy swallows the first refusal and asks again.
    refused: str | None = None


def choose(a):
    return "large" if a > 0 else "small"


def count_large(a):
    return [1 for v in a if v > 1]


WAYS = {
    "block_until_ready": Way("vector", lambda a: a.block_until_ready(), "block_until_ready"),
    "jax.block_until_ready": Way("vector", lambda a: jax.block_until_ready(a), "block_until_ready"),
    "jax.block_until_ready of two": Way(
        "pair", lambda a: jax.block_until_ready(a), "block_until_ready"
    ),
    "np.asarray": Way("vector", lambda a: np.asarray(a), "np.asarray"),
    "np.array": Way("vector", lambda a: np.array(a), "np.array"),
    "np.asarray bfloat16": Way("bfloat16", lambda a: np.asarray(a), "np.asarray"),
    "np.asarray int4": Way("int4", lambda a: np.asarray(a), "np.asarray"),
    "__array__": Way("vector", lambda a: a.__array__(), "np.asarray"),
    "float": Way("scalar", lambda a: float(a), "float"),
    "int": Way("integer", lambda a: int(a), "int"),
    "bool": Way("scalar", lambda a: bool(a), "bool"),
    "if a > 0": Way("scalar", choose, "bool"),
    "complex": Way("scalar", lambda a: complex(a), "complex"),
    "item": Way("scalar", lambda a: a.item(), "item"),
    "tolist": Way("vector", lambda a: a.tolist(), "tolist"),
    "tobytes": Way("vector", lambda a: a.tobytes(), "tobytes"),
    "list[a]": Way("integer", lambda a: [1, 2, 3][a], "index"),
    "range(a)": Way("integer", lambda a: range(a), "index"),
    "hex": Way("integer", lambda a: hex(a), "index"),
    "math.sqrt": Way("scalar", lambda a: math.sqrt(a), "float"),
    "round(float)": Way("scalar", lambda a: round(float(a)), "float"),
    "str": Way("vector", lambda a: str(a), "str"),
    "repr": Way("vector", lambda a: repr(a), "repr"),
    "print": Way("vector", lambda a: print(a), "print"),
    "f-string": Way("scalar", lambda a: f"{a:.2f}", "format"),
    "%-format": Way("scalar", lambda a: "%.2f" % a, "float"),  # noqa: UP031
    "jax.device_get": Way("vector", lambda a: jax.device_get(a), "device_get"),
    "jax.device_get of a tree": Way("pair", lambda a: jax.device_get({"a": a}), "device_get"),
    "np.sin": Way("vector", lambda a: np.sin(a), "np.sin"),
    "float(np.mean)": Way("vector", lambda a: float(np.mean(a)), "float"),
    "np.allclose": Way("vector", lambda a: np.allclose(a, 1), "np.allclose"),
    "np.testing": Way("vector", lambda a: np.testing.assert_allclose(a, a), "np.assert_allclose"),
    "array += a": Way("vector", lambda a: operator.iadd(np.ones(4), a), None),
    "array[:] = a": Way("vector", lambda a: np.ones(4).__setitem__(slice(None), a), "np.asarray"),
    "array[a]": Way("integer", lambda a: np.arange(5)[a], "index", refused="np.asarray"),
    "memoryview": Way("vector", lambda a: memoryview(a), "memoryview"),
    "bytes": Way("vector", lambda a: bytes(a), "bytes"),
    "np.from_dlpack": Way("vector", lambda a: np.from_dlpack(a), "dlpack"),
    "pickle": Way("vector", lambda a: pickle.dumps(a), "pickle"),
    "max": Way("pair", lambda a: max(a[0][0], a[1][0]), "bool"),
    "bool((a == a).all())": Way("vector", lambda a: bool((a == a).all()), "bool"),
    "[float(v) for v in a]": Way("vector", lambda a: [float(v) for v in a], "float"),
    "for v in a: if v > 1": Way("vector", count_large, "bool"),
    "jnp.nonzero": Way("vector", lambda a: jnp.nonzero(a), "nonzero"),
    "x[mask]": Way("mask", lambda a: X[a], "indexing"),
    "jnp.unique": Way("vector", lambda a: jnp.unique(a), "unique"),
    "jnp.where of one argument": Way("mask", lambda a: jnp.where(a), "where"),
    "repr of a key": Way("key", lambda a: repr(a), "repr"),
    "block a key": Way("key", lambda a: jax.block_until_ready(a), "block_until_ready"),
    "addressable_data": Way("vector", lambda a: np.asarray(a.addressable_data(0)), "np.asarray"),
    "copy.deepcopy": Way("vector", lambda a: copy.deepcopy(a), None),
    "a in list": Way("scalar", lambda a: a in [1.0, 3.0], "bool"),
    "dict[int(a)]": Way("integer", lambda a: {2: 1}[int(a)], "int"),
    "jnp.arange(a)": Way("integer", lambda a: jnp.arange(a), "arange"),
    "jnp.full((int(a),), 1)": Way("integer", lambda a: jnp.full((int(a),), 1), "int"),
    "np.float32": Way("scalar", lambda a: np.float32(a), "np.float32"),
    "json": Way("scalar", lambda a: json.dumps(float(a)), "float"),
    "assert (a > -1).all()": Way("vector", lambda a: (a > -1).all() or 1 / 0, "bool"),
    "not a > 100": Way("scalar", lambda a: None if not (a > 100) else 0, "bool"),
    "[0] * int(a)": Way("integer", lambda a: [0] * int(a), "int"),
    "x[:a]": Way("integer", lambda a: X[:a], "indexing"),
    "a static argument": Way("integer", lambda a: static(int(a), X), "int"),
    "copy_to_host_async": Way("vector", lambda a: a.copy_to_host_async(), None),
    "is_ready": Way("vector", lambda a: a.is_ready(), None),
    "a + 1": Way("vector", lambda a: a + 1, None),
    "len, shape, nbytes": Way("vector", lambda a: (len(a), a.shape, a.nbytes), None),
    "delete": Way("vector", lambda a: a.delete(), None),
    "jnp.array": Way("vector", lambda a: jnp.array(a), None),
    "jax.device_put": Way("vector", lambda a: jax.device_put(a), None),
    "donate": Way("vector", lambda a: donate(a), None),
    "sum(a)": Way("vector", lambda a: sum(a), None),
}
