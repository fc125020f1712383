"""The harness notices each kind of difference, and accepts none by silence."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conformance.cases import CASES, _registry
from tests.conformance.cases._data import EIGHT, VECTOR, devices, sharded, sharded_over_8
from tests.conformance.harness import (
    Exact,
    attempt,
    describe,
    differences,
    normalise_names,
    normalise_repr,
    observe,
)
from tests.conformance.makers import plain


def changed_paths(expected: object, actual: object) -> list[str]:
    """The paths at which two results differ."""
    lines = differences(describe(expected), describe(actual))
    return [line.partition(": ")[0] for line in lines]


def raising(error: Exception):
    def function(make):
        make(VECTOR)
        raise error

    return function


def test_equal_results_do_not_differ() -> None:
    array = jnp.asarray(VECTOR)
    result = [array, {"a": (1, None)}, np.ones(3), np.float32(np.nan), float("nan"), "text"]
    assert changed_paths(result, result) == []


def test_wrong_value() -> None:
    assert changed_paths(jnp.arange(3), jnp.arange(3).at[1].set(7)) == ["result.value"]


def test_wrong_last_bit() -> None:
    one = np.float32(1)
    assert changed_paths(jnp.asarray(one), jnp.asarray(np.nextafter(one, 2))) == ["result.value"]


def test_wrong_sign_of_zero() -> None:
    assert changed_paths(jnp.float32(0), jnp.float32(-0.0)) == ["result.value"]


def test_nan_equals_nan_only() -> None:
    values = jnp.asarray([np.nan, 1], np.float32)
    negative = -values
    assert changed_paths(values, values) == []
    assert changed_paths(values[:1], negative[:1]) == []
    assert changed_paths(values, jnp.asarray([1, np.nan], np.float32)) == ["result.value"]
    assert Exact(np.array([complex(np.nan, 1)])) == Exact(np.array([complex(-np.nan, 1)]))
    assert Exact(np.array([complex(np.nan, 1)])) != Exact(np.array([complex(np.nan, 2)]))


def test_wrong_bfloat16() -> None:
    values = jnp.asarray([1, np.nan], jnp.bfloat16)
    assert changed_paths(values, values) == []
    assert changed_paths(values, values * 2) == ["result.value"]


def test_wrong_dtype() -> None:
    paths = changed_paths(jnp.zeros(2, np.int32), jnp.zeros(2, np.float32))
    assert paths == ["result.dtype", "result.type", "result.value"]


def test_wrong_shape() -> None:
    paths = changed_paths(jnp.zeros(2), jnp.zeros((1, 2)))
    assert paths == ["result.shape", "result.type", "result.value"]


def test_wrong_weak_type() -> None:
    weak, strong = jnp.asarray(1.0), jnp.asarray(np.float32(1))
    assert weak.weak_type
    assert "result.weak_type" in changed_paths(weak, strong)


def test_wrong_committed_flag() -> None:
    free = jnp.asarray(VECTOR)
    bound = jax.device_put(free, devices()[0])
    assert changed_paths(free, bound) == ["result.committed"]


def test_wrong_device() -> None:
    paths = changed_paths(
        jax.device_put(VECTOR, devices()[0]), jax.device_put(VECTOR, devices()[1])
    )
    assert paths == ["result.sharding"]


def test_wrong_sharding() -> None:
    split = jax.device_put(EIGHT, sharded("a"))
    assert changed_paths(split, jax.device_put(EIGHT, sharded())) == ["result.sharding"]
    wide = jax.device_put(EIGHT, sharded_over_8(("a", "b")))
    assert changed_paths(split, wide) == ["result.sharding"]


def test_wrong_key() -> None:
    zero, one = jax.random.key(0), jax.random.key(1)
    assert changed_paths(zero, zero) == []
    assert changed_paths(zero, one) == ["result.value"]
    assert "result.dtype" in changed_paths(zero, jax.random.key(0, impl="rbg"))


def test_deleted_array() -> None:
    array = jnp.array(VECTOR)
    deleted = jnp.array(VECTOR)
    deleted.delete()
    assert changed_paths(array, deleted) == ["result.value"]


def test_jax_array_is_no_numpy_array() -> None:
    assert "result" in changed_paths(jnp.ones(3), np.ones(3, np.float32))


def test_wrong_numpy_result() -> None:
    assert changed_paths(np.ones(2), np.ones(2, np.float32)) == ["result.dtype", "result.value"]
    assert "result" in changed_paths(np.float32(1), np.ones((), np.float32))
    assert "result" in changed_paths(np.float64(1), 1.0)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("a", "b"),
        (b"a", "a"),
        (None, 0),
        ([1], (1,)),
        ([1], [1, 1]),
        ({"a": 1}, {"b": 1}),
        ({1}, {2}),
        (slice(1), slice(2)),
        (np.dtype("int8"), np.dtype("int16")),
    ],
)
def test_wrong_python_object(expected: object, actual: object) -> None:
    assert changed_paths(expected, actual)


def test_difference_deep_inside() -> None:
    expected = {"a": [jnp.ones(2), (jnp.zeros(2), 1)]}
    actual = {"a": [jnp.ones(2), (jnp.zeros(2) + 1, 1)]}
    assert changed_paths(expected, actual) == ["result['a'][1][0].value"]


def test_wrong_error_type() -> None:
    expected = observe(raising(TypeError("no")), plain)
    actual = observe(raising(ValueError("no")), plain)
    assert [line.split(":")[0] for line in differences(expected, actual)] == ["error"]


def test_wrong_error_message() -> None:
    expected = observe(raising(TypeError("no")), plain)
    actual = observe(raising(TypeError("yes")), plain)
    assert [line.split(":")[0] for line in differences(expected, actual)] == ["error.message"]


def test_error_is_no_result() -> None:
    expected = observe(raising(TypeError("no")), plain)
    actual = observe(lambda make: make(VECTOR), plain)
    assert differences(expected, actual)
    assert differences(actual, expected)


def test_attempted_error_is_compared() -> None:
    expected = attempt(int, "a")
    assert changed_paths(expected, attempt(int, "b")) == ["result.message"]
    assert changed_paths(expected, attempt(int, None)) == ["result.error", "result.message"]
    assert "result" in changed_paths(expected, attempt(int, "1"))


def test_only_the_types_name_is_normalised() -> None:
    jax_says = "unsupported operand: 'jaxlib._jax.ArrayImpl' and 'str'"
    assert normalise_names(jax_says) == "unsupported operand: 'Array' and 'str'"
    assert normalise_names("<class 'devicearray.DeviceArray'>") == "<class 'Array'>"
    assert normalise_names("MyDeviceArrays at 0x7f00aa00") == "MyDeviceArrays at 0x..."


def test_repr_is_normalised_with_its_indentation() -> None:
    ours = "DeviceArray([[1, 2],\n             [3, 4]], dtype=int32)"
    theirs = "Array([[1, 2],\n       [3, 4]], dtype=int32)"
    assert normalise_repr(ours) == theirs
    assert normalise_repr(theirs) == theirs
    assert normalise_repr(ours.replace(" [3", "[3")) != theirs


def test_unknown_result_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot compare"):
        describe(object())


def test_tracer_is_refused() -> None:
    escaped = []
    jax.jit(escaped.append)(VECTOR)
    with pytest.raises(TypeError, match="tracer"):
        describe(escaped)


def test_case_without_an_array_is_refused() -> None:
    with pytest.raises(AssertionError, match="compares nothing"):
        observe(lambda make: 1, plain)


def test_interrupts_are_not_caught() -> None:
    def function(make):
        make(VECTOR)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observe(function, plain)


def test_two_cases_with_one_name_are_refused() -> None:
    name = next(iter(CASES))
    with pytest.raises(ValueError, match="Two cases"):
        _registry.case(lambda make: make(VECTOR), name=name)
