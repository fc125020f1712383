"""`asarray`: what JAX makes of a value, or an error that says why it is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da
from tests.conformance.harness import describe


class WithArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=dtype or np.float32)


class WithJaxArray:
    def __jax_array__(self):
        return jnp.arange(3)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        2j,
        True,
        [],
        [1, 2],
        [[1.0], [2.0]],
        (1, 2.5),
        np.float16(2),
        np.arange(3),
        np.ones((0, 2)),
        range(3),
        pytest.param(memoryview(b"abc"), id="memoryview"),
        pytest.param(WithArray(), id="WithArray"),
        pytest.param(WithJaxArray(), id="WithJaxArray"),
        jnp.asarray(1.0),
        [jnp.float32(1), 2],
    ],
    ids=repr,
)
def test_the_result_is_jaxs(value):
    made = da.asarray(value)
    assert type(made) is da.DeviceArray
    assert describe(made) == describe(jnp.asarray(value))


def test_an_array_is_taken_as_it_is():
    plain = jnp.arange(3)
    ours = da.asarray(plain)
    assert ours.unsafe_buffer_pointer() == plain.unsafe_buffer_pointer()
    assert da.asarray(ours) is ours


def test_dtype_device_and_copy_are_jaxs():
    device = jax.devices()[3]
    plain = jnp.arange(3)
    made = da.asarray(da.asarray(plain), np.float16, device=device)
    assert describe(made) == describe(jnp.asarray(plain, np.float16, device=device))
    copied = da.asarray(da.asarray(plain), copy=True)
    assert copied.unsafe_buffer_pointer() != plain.unsafe_buffer_pointer()


def test_a_tracer_passes_through():
    seen = []
    jax.jit(lambda x: seen.append(type(da.asarray(x))))(1.0)
    assert issubclass(seen[0], jax.core.Tracer)


def test_a_leaked_tracer_is_an_error_of_jaxs():
    leaked = []
    jax.jit(leaked.append)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        da.asarray(leaked[0]) + 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1, 2], [3]], "element 0 has length 2 and element 1 has length 1"),
        ([[[1], [2]], [[3], [4, 5]]], "element 1, 0 has length 1 and element 1, 1 has length 2"),
        ([1, [2]], "element 0 is a number and element 1 has length 1"),
        ([np.ones(2), np.ones(3)], "element 0 has length 2 and element 1 has length 3"),
    ],
)
def test_a_ragged_list_is_described(value, message):
    with pytest.raises(ValueError, match=message):
        da.asarray(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3", r"asarray\(float\(x\)\)"),
        (b"3", "frombuffer"),
        ({1, 2}, "sorted"),
        (frozenset({1}), "sorted"),
        ({"a": 1}, "jax.tree.map"),
        (["1", "2"], r"element \[0\] is '1', of type str"),
        ([[1], [object()]], r"element \[1\]\[0\] is <object"),
        (np.array(["a"]), "it has dtype <U1"),
        (np.array([object()]), "it has dtype object"),
        (object(), "of type object"),
    ],
)
def test_what_is_no_number_is_named(value, message):
    with pytest.raises(TypeError, match=message):
        da.asarray(value)


def test_an_unknown_dtype_is_jaxs_error_and_names_the_value():
    with pytest.raises(TypeError) as caught:
        da.asarray([1, 2], dtype="no such dtype")
    assert "[1, 2]" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, None],
        [[1], [None]],
        [jnp.ones(2), jnp.ones(3)],
        [jnp.float32(1), [2.0]],
        [[1, 2], [3]],
        [np.ones((2, 2)), np.ones((2, 3))],
        ["text"],
        ["text", ["more"]],
        [{1}],
        pytest.param(object(), id="object"),
        np.array(["2020"], "M8[Y]"),
        np.zeros(2, "i4,f4"),
        [jax.random.key(0), 1],
        1 << 70,
        int,
    ],
    ids=lambda value: repr(value)[:30],
)
def test_the_class_of_an_error_is_that_of_jaxs(value):
    with pytest.raises((TypeError, ValueError, OverflowError)) as wanted:
        jnp.asarray(value)
    with pytest.raises(wanted.type):
        da.asarray(value)


def test_text_in_a_ragged_list_is_not_called_a_number():
    with pytest.raises((TypeError, ValueError)) as error:
        da.asarray(["text", ["more"]])
    assert "is a number" not in str(error.value)


def test_none_is_jaxs_value_error_and_asks_where_it_comes_from():
    with pytest.raises(ValueError, match="return nothing"):
        da.asarray(None)
