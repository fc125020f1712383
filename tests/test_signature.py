"""Which arguments are arrays and which are static, read from JAX's annotations."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da
from devicearray._signature import Kind, holds_array, is_static, read_signature

ARRAY, STATIC, EITHER = Kind.ARRAY, Kind.STATIC, Kind.EITHER


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (
            jnp.sum,
            {"a": ARRAY, "axis": STATIC, "dtype": STATIC, "keepdims": STATIC, "where": ARRAY},
        ),
        (jnp.dot, {"a": ARRAY, "b": ARRAY, "precision": STATIC}),
        (jnp.clip, {"arr": ARRAY, "min": ARRAY, "max": ARRAY}),
        (jnp.take, {"a": ARRAY, "indices": ARRAY, "axis": STATIC, "mode": STATIC}),
        (jnp.stack, {"axis": STATIC}),
        (jnp.linalg.norm, {"x": ARRAY, "ord": STATIC, "keepdims": STATIC}),
        (jax.random.uniform, {"shape": STATIC, "minval": ARRAY, "maxval": ARRAY}),
        (jnp.fft.fft, {"a": ARRAY, "norm": STATIC}),
        (jnp.einsum, {"optimize": STATIC, "precision": STATIC}),
    ],
)
def test_the_parameters_of_jaxs_functions_are_what_their_documentation_says(function, kinds):
    signature = read_signature(function)
    assert {name: signature.named(name) for name in kinds} == kinds


def annotated(annotation):
    def function(x: annotation):
        return x

    return read_signature(function).named("x")


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (jax.Array, ARRAY),
        ("ArrayLike", ARRAY),
        ("ArrayLike | None", ARRAY),
        (jax.typing.ArrayLike, ARRAY),
        (jax.typing.ArrayLike | None, ARRAY),
        ("Array | Sequence[Array]", ARRAY),
        ("np.ndarray", ARRAY),
        (int, STATIC),
        ("str | None", STATIC),
        ("bool", STATIC),
        (Sequence[int], STATIC),
        (Callable, STATIC),
        ("DTypeLike | None", STATIC),
        ("int | ArrayLike", EITHER),
        ("Array | int | Sequence[int]", EITHER),
    ],
)
def test_an_annotation_tells_what_a_parameter_takes(annotation, kind):
    assert annotated(annotation) is kind


def test_a_parameter_without_annotation_is_decided_by_its_value():
    signature = read_signature(lambda x: x)
    assert signature.at(0) is EITHER


def test_a_function_without_signature_takes_arrays():
    class Silent:
        __signature__ = "none"

        def __call__(self, *args):
            return args

    signature = read_signature(Silent())
    assert signature.at(0) is ARRAY
    assert signature.named("x") is STATIC


def test_positional_arguments_beyond_the_named_ones_are_of_the_kind_of_the_rest():
    def function(a: int, *rest: jax.Array, flag: bool = False):
        return a, rest, flag

    signature = read_signature(function)
    assert [signature.at(i) for i in range(4)] == [STATIC, ARRAY, ARRAY, ARRAY]
    assert signature.named("flag") is STATIC


@pytest.mark.parametrize(
    "value", [1, "a", None, True, 1.0, (1, 2), jnp.zeros(2), np.zeros(2)], ids=repr
)
def test_what_a_parameter_of_one_kind_takes_does_not_depend_on_the_value(value):
    assert is_static(STATIC, value)
    assert not is_static(ARRAY, value)


@pytest.mark.parametrize(
    ("value", "static"),
    [
        (2, True),
        (True, True),
        ((1, 2), True),
        (None, True),
        ("a", True),
        (2.0, False),
        (1j, False),
        (np.zeros(2), False),
        (jnp.zeros(2), False),
        ([jnp.zeros(2)], False),
    ],
    ids=repr,
)
def test_a_parameter_of_either_kind_is_static_for_what_a_program_is_compiled_for(value, static):
    assert is_static(EITHER, value) is static


@pytest.mark.parametrize(
    ("tree", "holds"),
    [
        (jnp.zeros(1), True),
        (da.asarray([1.0]), True),
        (np.zeros(1), True),
        (jax.random.key(0), True),
        ([1, [2, jnp.zeros(1)]], True),
        ({"a": (np.zeros(1),)}, True),
        ((da.asarray([1.0]), 1), True),
        ([], False),
        ([1, 2.0, None], False),
        (np.float32(1), False),
        (1.0, False),
        ("text", False),
        (None, False),
        pytest.param(object(), False, id="object"),
    ],
    ids=repr,
)
def test_arrays_are_found_in_trees_of_lists_tuples_and_dicts(tree, holds):
    assert holds_array(tree) is holds
