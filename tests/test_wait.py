"""`block_until_ready`: no array of a tree is passed over in silence."""

import collections
import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("inner", "unset")

    def __init__(self, inner):
        self.inner = inner


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Registered:
    weights: jax.Array


State = collections.namedtuple("State", "step params")


@pytest.mark.parametrize("make", [jnp.asarray, da.asarray])
def test_all_arrays_of_a_tree_are_ready_after_it(make):
    gate = da.Gate()
    held = gate({"a": make(np.ones(3)), "b": [make(2.0), (make(3),)]})
    tree = State(7, [held, Registered(held["a"]), None, "text", np.ones(2), jax.random.key(0)])
    arrays = [leaf for leaf in jax.tree.leaves(held) if isinstance(leaf, jax.Array)]
    assert not any(array.is_ready() for array in arrays)
    gate.open()
    assert da.block_until_ready(tree) is tree
    assert all(array.is_ready() for array in arrays)


@pytest.mark.parametrize(
    ("hide", "path"),
    [
        (lambda x: Holder(weights=x), r"\.weights"),
        (lambda x: Holder(layers=[1, {"w": x}]), r"\.layers\[1\]\['w'\]"),
        (lambda x: Holder(inner=Slotted(Holder(w=x))), r"\.inner\.inner\.w"),
        (lambda x: Holder(inner=(1, Registered(x))), r"\.inner\[1\]\.weights"),
    ],
)
def test_a_hidden_array_is_named_and_nothing_is_waited_for(hide, path):
    gate = da.Gate()
    seen, hidden = gate([jnp.ones(2), jnp.ones(3)])
    tree = {"seen": seen, "model": hide(hidden)}
    with pytest.raises(TypeError, match=rf"x\['model'\] is a Holder.*{path} \(float32\[3\]\)"):
        da.block_until_ready(tree)
    assert not seen.is_ready()
    gate.open()


@pytest.mark.parametrize("iterator", [iter([1]), map(abs, [1]), (i for i in [1]), zip([1])])
def test_an_iterator_is_refused(iterator):
    with pytest.raises(TypeError, match="is an iterator"):
        da.block_until_ready([iterator])


def test_what_refers_to_arrays_without_holding_them_is_no_false_alarm():
    x = jnp.ones(2)
    holder = Holder(step=1, name="n", data=np.ones(2))
    holder.itself = holder
    for harmless in (lambda: x, np, Holder, functools.partial, np.float32, ..., holder, {1, 2}):
        assert da.block_until_ready([harmless])[0] is harmless


def test_an_object_that_can_wait_is_asked_to():
    class Waits:
        waited = False

        def block_until_ready(self):
            self.waited = True

    leaf = Waits()
    da.block_until_ready([leaf])
    assert leaf.waited


def test_a_deleted_array_is_jaxs_error_with_the_way_out():
    x = da.asarray(np.ones(3)).copy()
    x.delete()
    with pytest.raises(RuntimeError, match="deleted or donated") as caught:
        da.block_until_ready([x])
    assert "keep a copy" in "".join(caught.value.__notes__)


def test_inside_a_trace_there_is_nothing_to_wait_for():
    result = jax.jit(lambda x: da.block_until_ready([x])[0] + 1)(jnp.ones(2))
    np.testing.assert_array_equal(result, 2 * np.ones(2))


class Private:
    __slots__ = ("__weights",)

    def __init__(self, weights):
        self.__weights = weights


def array_of_objects(x):
    objects = np.empty(1, object)
    objects[0] = x
    return objects


@pytest.mark.parametrize(
    "hide",
    [
        lambda x: {"w": x}.values(),
        lambda x: {"w": x}.items(),
        lambda x: types.MappingProxyType({"w": x}),
        Private,
        array_of_objects,
        lambda x: Holder(weights=array_of_objects(x)),
        lambda x: Holder(values={"w": x}.values()),
    ],
    ids=["values", "items", "proxy", "private", "objects", "inner objects", "inner values"],
)
def test_no_container_of_python_or_numpy_hides_an_array(hide):
    with pytest.raises(TypeError, match="would not be waited for"):
        da.block_until_ready([hide(jnp.ones(3))])
