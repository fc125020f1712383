"""Ways to wait for a value, and ways that only look like it: one list for all tests of them.

Each way is an action on a value that may not be there yet, with what the instrument is to say of
it: what to call it, how often the host waits or reads, and how much it reads.
"""

import bisect
import contextlib
import copy
import csv
import functools
import hashlib
import inspect
import io
import itertools
import json
import logging
import math
import operator
import pickle
import pprint
import random
import reprlib
import string
import struct
import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import devicearray as da
from tests.eight_devices import on_eight, over_eight

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
    "split": lambda: on_eight(jnp.arange(16.0), "i"),
    "replicated": lambda: on_eight(jnp.arange(16.0)),
    "square": lambda: on_eight(jnp.arange(64.0).reshape(8, 8), "i"),
    "keys": lambda: on_eight(jax.random.split(jax.random.key(0), 8), "i"),
}

X, N = jnp.arange(4.0), jnp.arange(4)
ONES = np.ones(4)
KEY = jax.random.key(0)
HERE, THERE = jax.devices()[:2]
BLOCKS = jax.NamedSharding(
    jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2), P("b", "a")
)
donate = jax.jit(lambda v: v * 2, donate_argnums=0)
static = jax.jit(lambda n, y: y * n, static_argnums=0)
double = jax.jit(lambda v: v * 2)
logger = logging.Logger("tests.waits", logging.INFO)  # apart, from pytest's handlers for one
logger.addHandler(logging.StreamHandler(io.StringIO()))

#: That all of the value is read, as the host has it.
WHOLE = "whole"


class Way(NamedTuple):
    """An action on a value of a kind; the trigger is None if it does not wait."""

    kind: str
    act: Callable[[Any], Any]
    trigger: str | None
    #: What the host is given: the whole value, numbers of a type, or nothing.
    reads: Any = WHOLE
    #: How many host syncs it is.
    times: int = 1
    #: What a guard refuses in the end, where NumPy swallows the first refusal and asks again; or
    #: the error that the caller makes of the refusal.
    refused: str | type[Exception] | None = None


@dataclass(order=True)
class Metrics:
    loss: Any
    step: int = 1


Pair = namedtuple("Pair", "loss step")


def choose(a):
    return "large" if a > 0 else "small"  # waits


def count_large(a):
    return [1 for v in a if v > 1]  # waits


def match(a):
    match a:
        case 2:  # waits
            return "two"


def repeat_while(a):
    while a > 2:  # waits
        a = a - 1


def in_several_lines(a):
    return str(  # waits
        a
    )


def attributes(a):
    known = a.shape, a.dtype, a.ndim, a.size, a.nbytes, a.itemsize, a.weak_type, a.aval, len(a)
    where = a.sharding, a.devices(), a.device, a.committed, a.format, a.is_fully_replicated
    return known, where


def line_of(act: Callable[..., Any]) -> int:
    """Return the line on which an action waits: its only one, or the one that says so."""
    if act.__name__ == "<lambda>":
        return act.__code__.co_firstlineno
    lines, first = inspect.getsourcelines(act)
    return first + next(place for place, line in enumerate(lines) if "# waits" in line)


def refuses(error: type[Exception], act: Callable[[], Any]) -> None:
    with contextlib.suppress(error):
        act()
        raise AssertionError(f"it raises no {error.__name__}")


WAYS = {
    # What only waits.
    "block_until_ready": Way("vector", lambda a: a.block_until_ready(), "block_until_ready", None),
    "jax.block_until_ready": Way(
        "vector", lambda a: jax.block_until_ready(a), "block_until_ready", None
    ),
    "jax.block_until_ready of two": Way(
        "pair", lambda a: jax.block_until_ready(a), "block_until_ready", None
    ),
    "da.block_until_ready": Way(
        "pair", lambda a: da.block_until_ready(a), "block_until_ready", None
    ),
    "block a key": Way("key", lambda a: jax.block_until_ready(a), "block_until_ready", None),
    # Python's numbers.
    "float": Way("scalar", lambda a: float(a), "float"),
    "int": Way("integer", lambda a: int(a), "int"),
    "bool": Way("scalar", lambda a: bool(a), "bool"),
    "complex": Way("scalar", lambda a: complex(a), "complex"),
    "item": Way("scalar", lambda a: a.item(), "item"),
    "item(1)": Way("vector", lambda a: a.item(1), "item"),
    "a[0].item()": Way("vector", lambda a: a[0].item(), "item", np.float32),
    "tolist": Way("vector", lambda a: a.tolist(), "tolist"),
    "tobytes": Way("vector", lambda a: a.tobytes(), "tobytes"),
    "int(a.sum())": Way("vector", lambda a: int(a.sum()), "int", np.float32),
    "round(float)": Way("scalar", lambda a: round(float(a)), "float"),
    "math.sqrt": Way("scalar", lambda a: math.sqrt(a), "float"),
    "math.isnan": Way("scalar", lambda a: math.isnan(a), "float"),
    "math.fsum": Way("vector", lambda a: math.fsum(a), "float", np.float32, 4),
    "struct.pack": Way("scalar", lambda a: struct.pack("f", a), "float", refused=struct.error),
    "[float(v) for v in a]": Way("vector", lambda a: [float(v) for v in a], "float", np.float32, 4),
    "map(float, a)": Way("vector", lambda a: list(map(float, a)), "float", np.float32, 4),
    "sorted by float": Way(
        "vector", lambda a: sorted([3, 1], key=lambda i: float(a[i])), "float", np.float32, 2
    ),
    "float(np.mean)": Way("vector", lambda a: float(np.mean(a)), "float", np.float32),
    # Numbers that index, count and name.
    "list[a]": Way("integer", lambda a: [1, 2, 3][a], "index"),
    "list[:a]": Way("integer", lambda a: [1, 2, 3][:a], "index"),
    "range(a)": Way("integer", lambda a: range(a), "index"),
    "hex": Way("integer", lambda a: hex(a), "index"),
    "chr": Way("integer", lambda a: chr(a), "index"),
    "text * a": Way("integer", lambda a: "-" * a, "index"),
    "bytes of a length": Way("integer", lambda a: bytes(a), "index"),
    "operator.index": Way("integer", lambda a: operator.index(a), "index"),
    "math.comb": Way("integer", lambda a: math.comb(4, a), "index"),
    "random.randrange": Way("integer", lambda a: random.Random(0).randrange(a), "random.randrange"),
    "itertools.islice": Way(
        "integer", lambda a: [*itertools.islice("abc", a)], "index", refused=ValueError
    ),
    "array[a]": Way("integer", lambda a: np.arange(5)[a], "index", refused="np.asarray"),
    "array[:a]": Way("integer", lambda a: ONES[:a], "index"),
    "np.zeros(a)": Way("integer", lambda a: np.zeros(a), "index"),
    "dict[int(a)]": Way("integer", lambda a: {2: 1}[int(a)], "int"),
    "[0] * int(a)": Way("integer", lambda a: [0] * int(a), "int"),
    "a static argument": Way("integer", lambda a: static(int(a), X), "int"),
    # Decisions.
    "if a > 0": Way("scalar", choose, "bool", np.bool_),
    "while a > 2": Way("scalar", repeat_while, "bool", np.bool_, 2),
    "match a": Way("integer", match, "bool", np.bool_),
    "a and b": Way("scalar", lambda a: a and 1, "bool"),
    "not a > 100": Way("scalar", lambda a: None if not (a > 100) else 0, "bool", np.bool_),
    "assert (a > -1).all()": Way("vector", lambda a: (a > -1).all() or 1 / 0, "bool", np.bool_),
    "bool((a == a).all())": Way("vector", lambda a: bool((a == a).all()), "bool", np.bool_),
    "if jnp.isnan(a)": Way("scalar", lambda a: 1 if jnp.isnan(a) else 0, "bool", np.bool_),
    "for v in a: if v > 1": Way("vector", count_large, "bool", np.bool_, 4),
    "any": Way("vector", lambda a: any(a), "bool", np.float32, 2),
    "filter": Way("vector", lambda a: len([*filter(None, a)]), "bool", np.float32, 4),
    "max": Way("pair", lambda a: max(a[0][0], a[1][0]), "bool", np.bool_),
    "sorted": Way("vector", lambda a: sorted(a), "bool", np.bool_, 3),
    "bisect": Way("scalar", lambda a: bisect.bisect([1.0], a), "bool", np.bool_),
    "a in list": Way("scalar", lambda a: a in [1.0, 3.0], "bool", np.bool_, 2),
    "3.0 in a": Way("vector", lambda a: 3.0 in a, "bool", np.bool_),
    "list.index": Way("scalar", lambda a: [1.0, 3.0].index(a), "bool", np.bool_, 2),
    "a namedtuple == another": Way(
        "scalar", lambda a: Pair(a, 1) == Pair(3.0, 1), "bool", np.bool_
    ),
    "a dataclass == another": Way("scalar", lambda a: Metrics(a) == Metrics(1.0), "eq", np.bool_),
    "a key == another": Way("key", lambda a: bool(a == a), "bool", np.bool_),
    # Text.
    "str": Way("vector", lambda a: str(a), "str"),
    "repr": Way("vector", lambda a: repr(a), "repr"),
    "print": Way("vector", lambda a: print(a), "print"),
    "print a list": Way("vector", lambda a: print([a]), "print"),
    "print a dataclass": Way("scalar", lambda a: print(Metrics(a)), "print"),
    "repr of a dataclass": Way("scalar", lambda a: repr(Metrics(a)), "repr"),
    "str of a list": Way("vector", lambda a: str([a]), "str"),
    "str in several lines": Way("vector", in_several_lines, "str"),
    "format": Way("scalar", lambda a: format(a, ".2f"), "format"),
    "str.format": Way("scalar", lambda a: "{:.2f}".format(a), "format"),  # noqa: UP032
    "f-string": Way("scalar", lambda a: f"{a:.2f}", "format"),
    "print an f-string": Way("scalar", lambda a: print(f"{a:.2f}"), "format"),
    "f-string with !r": Way("scalar", lambda a: f"{a!r}", "repr"),
    "%-format": Way("scalar", lambda a: "%.2f" % a, "float"),  # noqa: UP031
    "%s-format": Way("scalar", lambda a: "%s" % a, "str"),  # noqa: UP031
    "join": Way("scalar", lambda a: ", ".join(map(str, [a])), "str"),
    "repr of a key": Way("key", lambda a: repr(a), "repr"),
    "str of a key": Way("key", lambda a: str(a), "str"),
    "str of an error": Way("scalar", lambda a: str(ValueError(a)), "str"),
    "string.Template": Way(
        "scalar", lambda a: string.Template("$a").substitute(a=a), "string.substitute"
    ),
    "pprint": Way("vector", lambda a: pprint.pformat(a), "pprint.pformat"),
    "reprlib": Way("vector", lambda a: reprlib.repr(a), "reprlib.repr"),
    "csv": Way("scalar", lambda a: csv.writer(io.StringIO()).writerow([a]), "str"),
    "json": Way("scalar", lambda a: json.dumps(float(a)), "float"),
    "json of item()": Way("scalar", lambda a: json.dumps({"loss": a.item()}), "item"),
    "json with a default": Way(
        "scalar", lambda a: json.dumps({"a": a}, default=float), "json.dumps"
    ),
    "logging": Way("scalar", lambda a: logger.error("%s", a), "logging.error"),
    "print the shards": Way("vector", lambda a: print(a.addressable_shards), "print"),
    "jax.debug.print": Way("vector", lambda a: jax.debug.print("{}", a), "debug_print"),
    # NumPy's arrays.
    "np.asarray": Way("vector", lambda a: np.asarray(a), "np.asarray"),
    "np.asarray of a dtype": Way("vector", lambda a: np.asarray(a, np.float64), "np.asarray"),
    "np.asarray with a copy": Way("vector", lambda a: np.asarray(a, copy=True), "np.asarray"),
    "np.asarray bfloat16": Way("bfloat16", lambda a: np.asarray(a), "np.asarray"),
    "np.asarray int4": Way("int4", lambda a: np.asarray(a), "np.asarray"),
    "np.asarray of key_data": Way(
        "key", lambda a: np.asarray(jax.random.key_data(a)), "np.asarray"
    ),
    "np.asarray of a shard": Way(
        "vector", lambda a: np.asarray(a.addressable_shards[0].data), "np.asarray"
    ),
    "addressable_data": Way("vector", lambda a: np.asarray(a.addressable_data(0)), "np.asarray"),
    "np.array": Way("vector", lambda a: np.array(a), "np.array"),
    "np.array of a dtype": Way("vector", lambda a: np.array(a, np.int32), "np.array"),
    "np.array of a list": Way("pair", lambda a: np.array([*a]), "np.array", times=2),
    "np.asanyarray": Way("vector", lambda a: np.asanyarray(a), "np.asanyarray"),
    "__array__": Way("vector", lambda a: a.__array__(), "np.asarray"),
    "np.float32": Way("scalar", lambda a: np.float32(a), "np.float32"),
    "np.float64": Way("scalar", lambda a: np.float64(a), "float", refused="np.float64"),
    "np.sin": Way("vector", lambda a: np.sin(a), "np.sin"),
    "np.add": Way("vector", lambda a: np.add(ONES, a), "np.add"),
    "np.mean of a list": Way("scalar", lambda a: np.mean([a, a]), "np.mean", times=4),
    "np.allclose": Way("vector", lambda a: np.allclose(a, 1), "np.allclose"),
    "np.array_equal": Way("vector", lambda a: np.array_equal(a, a), "np.array_equal", times=2),
    "np.testing": Way(
        "vector", lambda a: np.testing.assert_allclose(a, a), "np.assert_allclose", times=2
    ),
    "np.linalg.norm": Way("vector", lambda a: np.linalg.norm(a), "np.norm"),
    "np.unique": Way("vector", lambda a: np.unique(a), "np.unique"),
    "np.where": Way("mask", lambda a: np.where(a), "np.where"),
    "np.concatenate": Way("pair", lambda a: np.concatenate(a), "np.concatenate", times=2),
    "np.copyto": Way("vector", lambda a: np.copyto(np.ones(4), a), "np.copyto"),
    "np.fromiter": Way(
        "vector", lambda a: np.fromiter(a, float), "float", np.float32, 4, refused=ValueError
    ),
    "array.dot": Way("vector", lambda a: ONES.dot(a), "np.asarray", times=2),
    "array[mask]": Way("mask", lambda a: ONES[a], "np.asarray"),
    "array[:] = a": Way("vector", lambda a: np.ones(4).__setitem__(slice(None), a), "np.asarray"),
    "np.save": Way("vector", lambda a: np.save(io.BytesIO(), a), "np.save"),
    "np.savez": Way("pair", lambda a: np.savez(io.BytesIO(), *a), "np.savez", times=2),
    # Memory, as it is.
    "memoryview": Way("vector", lambda a: memoryview(a), "memoryview"),
    "bytes": Way("vector", lambda a: bytes(a), "bytes"),
    "bytearray": Way("vector", lambda a: bytearray(a), "bytearray"),
    "write": Way("vector", lambda a: io.BytesIO().write(a), "np.asarray"),
    "hashlib": Way("vector", lambda a: hashlib.sha256(a).hexdigest(), "np.asarray"),
    "join bytes": Way("vector", lambda a: b"".join([a]), "np.asarray", refused=TypeError),
    "np.from_dlpack": Way("vector", lambda a: np.from_dlpack(a), "dlpack"),
    "jnp.from_dlpack": Way("vector", lambda a: jnp.from_dlpack(a), "from_dlpack"),
    "pickle": Way("vector", lambda a: pickle.dumps(a), "pickle"),
    "pickle a tree": Way("pair", lambda a: pickle.dumps({"a": a}), "pickle", times=2),
    # Trees.
    "jax.device_get": Way("vector", lambda a: jax.device_get(a), "device_get"),
    "jax.device_get of a tree": Way(
        "pair", lambda a: jax.device_get({"a": [*a]}), "device_get", times=2
    ),
    "jax.tree.map(np.asarray)": Way("pair", lambda a: jax.tree.map(np.asarray, a), "map", times=2),
    "jax.tree.all": Way("scalar", lambda a: jax.tree.all({"a": a}), "all"),
    # Shapes that depend on values.
    "jnp.nonzero": Way("vector", lambda a: jnp.nonzero(a), "nonzero", np.int32),
    "jnp.flatnonzero": Way("mask", lambda a: jnp.flatnonzero(a), "flatnonzero", np.int32),
    "jnp.unique": Way("vector", lambda a: jnp.unique(a), "unique", np.int32),
    "jnp.where of one argument": Way("mask", lambda a: jnp.where(a), "where", np.int32),
    "jnp.bincount": Way(
        "vector", lambda a: jnp.bincount(a.astype(int)), "bincount", (np.bool_, np.int32), 2
    ),
    "a.nonzero()": Way("vector", lambda a: a.nonzero(), "nonzero", np.int32),
    "da.numpy.nonzero": Way("vector", lambda a: da.numpy.nonzero(a), "nonzero", np.int32),
    "da.numpy.where": Way("mask", lambda a: da.numpy.where(a), "where", np.int32),
    "x[mask]": Way("mask", lambda a: X[a], "indexing", np.int32),
    "x.at[mask].set(v)": Way("mask", lambda a: X.at[a].set(1), "set", np.int32),
    "x[:a]": Way("integer", lambda a: X[:a], "indexing"),
    "jnp.arange(a)": Way("integer", lambda a: jnp.arange(a), "arange"),
    "jnp.zeros((a,))": Way("integer", lambda a: jnp.zeros((a,)), "zeros"),
    "jnp.full((int(a),), 1)": Way("integer", lambda a: jnp.full((int(a),), 1), "int"),
    "jnp.linspace": Way("integer", lambda a: jnp.linspace(0, 1, a), "linspace"),
    "jnp.repeat": Way("integer", lambda a: jnp.repeat(X, a), "repeat", times=4, refused=TypeError),
    "jnp.tile": Way("integer", lambda a: jnp.tile(X, a), "tile", times=2, refused=TypeError),
    "jax.nn.one_hot": Way("integer", lambda a: jax.nn.one_hot(N, a), "one_hot"),
    "x.reshape(a, -1)": Way("integer", lambda a: X.reshape(a, -1), "reshape"),
    "x ** a": Way("integer", lambda a: X**a, "pow"),
    "jax.lax.fori_loop": Way(
        "integer", lambda a: jax.lax.fori_loop(0, a, lambda i, c: c + 1, 0), "fori_loop"
    ),
    # Constants of a program that is being compiled.
    "jax.jit of a closure": Way("vector", lambda a: jax.jit(lambda y: y + a)(X), "jit"),
    "da.jit of a closure": Way("vector", lambda a: da.jit(lambda y: y + a)(X), "jit"),
    "lower a closure": Way("vector", lambda a: jax.jit(lambda y: y + a).lower(X), "lower"),
    "jax.vmap of a closure": Way(
        "vector", lambda a: jax.vmap(jax.jit(lambda y: y + a[0]))(X), "vmap"
    ),
    # Eight devices.
    "np.asarray of shards": Way("split", lambda a: np.asarray(a), "np.asarray"),
    "np.asarray of copies": Way("replicated", lambda a: np.asarray(a), "np.asarray"),
    "np.sin of shards": Way("split", lambda a: np.sin(a), "np.sin"),
    "print shards": Way("split", lambda a: print(a), "print"),
    "tolist of shards": Way("split", lambda a: a.tolist(), "tolist"),
    "pickle shards": Way("split", lambda a: pickle.dumps(a), "pickle"),
    "jax.device_get of shards": Way("split", lambda a: jax.device_get(a), "device_get"),
    "block shards": Way("split", lambda a: a.block_until_ready(), "block_until_ready", None),
    "jax.block_until_ready of shards": Way(
        "split", lambda a: jax.block_until_ready([a, a]), "block_until_ready", None
    ),
    "list of shards": Way("split", lambda a: list(a), "iteration"),
    "float of a sum of shards": Way("split", lambda a: float(a.sum()), "float", np.float32),
    "repr of sharded keys": Way("keys", lambda a: repr(a), "repr"),
    "block sharded keys": Way(
        "keys", lambda a: jax.block_until_ready(a), "block_until_ready", None
    ),
    "gather shards": Way("split", lambda a: jax.device_put(a, HERE), "device_put"),
    "replicate shards": Way("split", lambda a: jax.device_put(a, over_eight()), "device_put"),
    "split copies": Way("replicated", lambda a: jax.device_put(a, over_eight("i")), "device_put"),
    "shard anew": Way("square", lambda a: jax.device_put(a, BLOCKS), "device_put"),
    # What does not wait. Python:
    "len, shape, nbytes": Way("vector", lambda a: (len(a), a.shape, a.nbytes), None),
    "all that is known": Way("vector", attributes, None),
    "a is None": Way("vector", lambda a: a is None, None),
    "isinstance": Way("vector", lambda a: isinstance(a, jax.Array), None),
    "hasattr": Way("vector", lambda a: hasattr(a, "loss"), None),
    "dir": Way("vector", lambda a: dir(a), None),
    "sys.getsizeof": Way("vector", lambda a: sys.getsizeof(a), None),
    "hash": Way("scalar", lambda a: refuses(TypeError, lambda: hash(a)), None),
    "float of a vector": Way("vector", lambda a: refuses(TypeError, lambda: float(a)), None),
    "bool of a vector": Way("vector", lambda a: refuses(ValueError, lambda: bool(a)), None),
    "[0] * a": Way("integer", lambda a: refuses(TypeError, lambda: [0] * a), None),
    "json of an array": Way("scalar", lambda a: refuses(TypeError, lambda: json.dumps(a)), None),
    "a + 1": Way("vector", lambda a: a + 1, None),
    "abs, round, divmod": Way("scalar", lambda a: (abs(a), round(a), divmod(a, 2)), None),
    "sum(a)": Way("vector", lambda a: sum(a), None),
    "math.prod(a)": Way("vector", lambda a: math.prod(a), None),
    "functools.reduce": Way("vector", lambda a: functools.reduce(operator.mul, a), None),
    "[*a]": Way("vector", lambda a: [*a], None),
    "reversed": Way("vector", lambda a: list(reversed(a)), None),
    "zip": Way("pair", lambda a: list(zip(*a, strict=True)), None),
    "copy.copy": Way("vector", lambda a: copy.copy(a), None),
    "copy.deepcopy": Way("vector", lambda a: copy.deepcopy({"a": a}), None),
    "dataclasses.asdict": Way("scalar", lambda a: asdict(Metrics(a)), None),
    "logging that is off": Way("scalar", lambda a: logger.debug("%s", a), None),
    # NumPy:
    "array += a": Way("vector", lambda a: operator.iadd(np.ones(4), a), None),
    "array + a": Way("vector", lambda a: ONES + a, None),
    "array @ a": Way("vector", lambda a: ONES @ a, None),
    "array == a": Way("vector", lambda a: ONES == a, None),  # noqa: SIM300
    "np.float64(2) * a": Way("vector", lambda a: np.float64(2) * a, None),
    "np.shape": Way("vector", lambda a: (np.shape(a), np.ndim(a), np.size(a)), None),
    "np.sum, np.mean, np.max": Way("vector", lambda a: (np.sum(a), np.mean(a), np.max(a)), None),
    "np.asarray of a key": Way("key", lambda a: refuses(TypeError, lambda: np.asarray(a)), None),
    # JAX:
    "copy_to_host_async": Way("vector", lambda a: a.copy_to_host_async(), None),
    "is_ready": Way("vector", lambda a: a.is_ready(), None),
    "delete": Way("vector", lambda a: a.delete(), None),
    "donate": Way("vector", lambda a: donate(a), None),
    "jnp.array": Way("vector", lambda a: jnp.array(a), None),
    "jnp.asarray": Way("vector", lambda a: jnp.asarray(a), None),
    "da.asarray": Way("vector", lambda a: da.asarray(a), None),
    "jax.device_put": Way("vector", lambda a: jax.device_put(a), None),
    "jax.device_put elsewhere": Way("vector", lambda a: jax.device_put(a, THERE), None),
    "addressable_shards": Way("vector", lambda a: a.addressable_shards[0].data, None),
    "__dlpack_device__": Way("vector", lambda a: a.__dlpack_device__(), None),
    "a[0], a[1:]": Way("vector", lambda a: (a[0], a[1:], a[None]), None),
    "a.at[0].set(1)": Way("vector", lambda a: a.at[0].set(1), None),
    "x[a]": Way("integer", lambda a: X[a], None),
    "jnp.where of three": Way("mask", lambda a: jnp.where(a, X, 0), None),
    "jnp.nonzero of a size": Way("vector", lambda a: jnp.nonzero(a, size=3), None),
    "jnp.allclose": Way("vector", lambda a: jnp.allclose(a, 1), None),
    "jit": Way("vector", lambda a: double(a), None),
    "vmap": Way("vector", lambda a: jax.vmap(jnp.sin)(a), None),
    "grad": Way("scalar", lambda a: jax.grad(jnp.sin)(a), None),
    "make_jaxpr": Way("vector", lambda a: str(jax.make_jaxpr(lambda y: y + a)(X)), None),
    "eval_shape": Way("vector", lambda a: jax.eval_shape(jnp.sin, a), None),
    "scan": Way("vector", lambda a: jax.lax.scan(lambda c, v: (c + v, v), 0.0, a), None),
    "cond": Way("scalar", lambda a: jax.lax.cond(a > 0, jnp.sin, jnp.cos, a), None),
    "while_loop": Way("scalar", lambda a: jax.lax.while_loop(lambda c: c > 1, jnp.log, a), None),
    "jax.random": Way("key", lambda a: jax.random.normal(jax.random.split(a)[0]), None),
    "fold_in": Way("integer", lambda a: jax.random.fold_in(KEY, a), None),
    "jax.random.key": Way("integer", lambda a: jax.random.key(a), None),
    "key_data": Way("key", lambda a: jax.random.key_data(a), None),
    "jax.tree.leaves": Way("pair", lambda a: jax.tree.leaves({"a": a}), None),
    "make_array_from_callback": Way(
        "vector", lambda a: jax.make_array_from_callback((4,), X.sharding, lambda i: a[i]), None
    ),
    "jax.live_arrays": Way("vector", lambda a: jax.live_arrays(), None),
    "jax.debug.callback": Way("vector", lambda a: jax.debug.callback(lambda v: None, a), None),
    # Eight devices:
    "jnp.sin of shards": Way("split", lambda a: jnp.sin(a), None),
    "shards to the same places": Way("split", lambda a: jax.device_put(a, over_eight("i")), None),
    "one of the copies": Way("replicated", lambda a: jax.device_put(a, HERE), None),
    "list of copies": Way("replicated", lambda a: list(a), None),
    "copy_to_host_async of shards": Way("split", lambda a: a.copy_to_host_async(), None),
    "memoryview of shards": Way(
        "split", lambda a: refuses(BufferError, lambda: memoryview(a)), None
    ),
    "dlpack of shards": Way(
        "split", lambda a: refuses(BufferError, lambda: np.from_dlpack(a)), None
    ),
    "address of shards": Way(
        "split", lambda a: refuses(jax.errors.JaxRuntimeError, a.unsafe_buffer_pointer), None
    ),
}

if jax.__version_info__ < (0, 12):
    # There the next dispatch to all devices waits while a gate stands on each, in C++ and unseen.
    for name in [name for name, way in WAYS.items() if way.kind in ("split", "replicated")]:
        if WAYS[name].trigger is None or name == "float of a sum of shards":
            del WAYS[name]
