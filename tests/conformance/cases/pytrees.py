"""An array as a leaf of a pytree."""

from __future__ import annotations

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import flatten_util
from jax import tree_util as jtu

from tests.conformance.cases._data import MATRIX, VECTOR, f32, i32
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case(name="tree_flat")
def tree_leaves(make):
    return jtu.tree_leaves(make(VECTOR))


@case
def tree_struct(make):
    return str(jtu.tree_structure([make(VECTOR)]))


@case
def tree_map(make):
    return jtu.tree_map(lambda x: x + 1, {"a": make(VECTOR)})


@case
def tree_map_two_trees(make):
    tree = {"a": make(VECTOR), "b": (make(MATRIX), None)}
    plain = {"a": VECTOR, "b": (jnp.asarray(MATRIX), None)}
    return jax.tree.map(lambda x, y: x + y, tree, plain)


@case
def tree_map_mismatch(make):
    return attempt(jax.tree.map, lambda x, y: x, {"a": make(VECTOR)}, {"b": make(VECTOR)})


@case
def tree_eq(make):
    return jtu.tree_structure(make(VECTOR)) == jtu.tree_structure(VECTOR)


@case
def tree_all_leaves(make):
    return jtu.all_leaves([make(VECTOR)])


@case
def tree_leaf_id(make):
    leaf = make(VECTOR)
    return jtu.tree_leaves([leaf])[0] is leaf


@case
def tree_round_trip_id(make):
    leaf = make(VECTOR)
    leaves, structure = jax.tree.flatten({"a": [leaf, None]})
    return jax.tree.unflatten(structure, leaves)["a"][0] is leaf


@case
def tree_path(make):
    return jtu.tree_flatten_with_path({"a": make(VECTOR)})[0]


@case
def tree_path_text(make):
    leaves = jtu.tree_leaves_with_path({"a": [make(VECTOR)], "b": (make(f32(1)),)})
    return [jtu.keystr(path) for path, _ in leaves]


@case
def tree_transpose(make):
    outer = jtu.tree_structure([0, 0])
    inner = jtu.tree_structure((0, 0))
    return jtu.tree_transpose(outer, inner, [(make(VECTOR), VECTOR), (VECTOR, VECTOR)])


@case
def tree_reduce(make):
    tree = [make(VECTOR), {"a": make(VECTOR)}]
    return [
        jax.tree.reduce(lambda x, y: x + y, tree),
        jax.tree.all([make(np.bool_(True)), True]),
        jax.tree.map(jnp.shape, tree),
        jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, dict)),
    ]


@case
def tree_broadcast(make):
    return jax.tree.broadcast(make(f32(1)), {"a": 0, "b": [0, 0]})


@case
def ravel_pytree(make):
    return flatten_util.ravel_pytree({"a": make(VECTOR), "b": make(MATRIX)})[0]


@case
def ravel_pytree_back(make):
    flat, back = flatten_util.ravel_pytree({"a": make(VECTOR), "b": make(i32(3))})
    return flat, back(flat)


@case
def partial_tree(make):
    apply = jax.jit(lambda function, x: function(x))
    return apply(jtu.Partial(jnp.add, make(VECTOR)), VECTOR)


Pair = collections.namedtuple("Pair", "left right")


@case
def namedtuple_through_jit(make):
    return jax.jit(lambda pair: Pair(pair.right, pair.left))(Pair(make(VECTOR), make(MATRIX)))


@jtu.register_dataclass
@dataclasses.dataclass
class Layer:
    """A registered dataclass with one static field."""

    weight: jax.Array
    name: str = dataclasses.field(metadata={"static": True}, default="layer")


@case
def dataclass_through_jit(make):
    return jax.jit(lambda layer: layer)(Layer(make(MATRIX)))


@case
def dataclass_grad(make):
    return jax.grad(lambda layer: (layer.weight**2).sum())(Layer(make(MATRIX)))


@case
def ordered_and_default_dicts(make):
    ordered = collections.OrderedDict(b=make(VECTOR), a=make(f32(1)))
    default = collections.defaultdict(list, a=[make(VECTOR)])
    return jax.tree.leaves(ordered), jax.tree.map(lambda x: x * 2, default)


@case
def none_is_not_a_leaf(make):
    return jax.tree.leaves([None, make(VECTOR), None])


@case
def dispatch_registry(make):
    # The C++ fast path flattens with a registry of its own.
    identity = jax.jit(lambda *trees: trees)
    argument = [make(VECTOR), {"a": (make(f32(1)), None)}]
    return [identity(argument, make(VECTOR)) for _ in range(2)]


@case
def prefix_errors(make):
    batched = jax.vmap(lambda tree: tree["a"], in_axes=({"a": 0, "c": 0},))
    return attempt(batched, {"a": make(VECTOR)})


@case
def serialization_of_structure(make):
    structure = jax.tree.structure({"a": make(VECTOR), "b": [make(f32(1))]})
    return structure, structure.num_leaves, jax.tree.unflatten(structure, [1, 2])
