"""Views: the same elements as NumPy's basic indexing picks, on the host and as operands."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from devicearray._indices import BASE, digits, from_digits, number_of_digits
from devicearray._view import (
    Series,
    axis_of,
    narrowed,
    numpy_index,
    operand,
    row_of,
    shape_of,
    taken,
    whole,
)

DEVICE = jax.devices()[0]


def random_part(chance, size):
    if chance.random() < 0.4:
        return chance.randrange(-size, size) if size else slice(None)
    bound = lambda: chance.choice([None, *range(-size - 2, size + 3)])  # noqa: E731
    return slice(bound(), bound(), chance.choice([None, 1, 2, 3, -1, -2, size + 1]))


def random_index(chance, shape):
    parts = [random_part(chance, size) for size in shape[: chance.randint(0, len(shape))]]
    if chance.random() < 0.3:
        parts.insert(chance.randint(0, len(parts)), ...)
    return tuple(parts)


def fits(index, array):
    try:
        return array[index]
    except IndexError:
        return None


@pytest.mark.parametrize("seed", range(40))
def test_views_of_views_are_what_numpy_picks(seed):
    chance = random.Random(seed)
    array = np.arange(7 * 5 * 4).reshape(7, 5, 4)
    view, picked = whole(array.shape), array
    for _ in range(4):
        index = random_index(chance, picked.shape)
        further = fits(index, picked)
        if further is None:
            continue
        view, picked = narrowed(view, index), further
        assert shape_of(view) == picked.shape
        np.testing.assert_array_equal(array[numpy_index(view)], picked)


@pytest.mark.parametrize("seed", range(20))
def test_a_program_takes_of_an_operand_what_numpy_picks(seed):
    chance = random.Random(seed)
    array = np.arange(7 * 5 * 4).reshape(7, 5, 4)
    index = random_index(chance, array.shape)
    wanted = fits(index, array)
    if wanted is None:
        index, wanted = (), array
    part = operand(jnp.asarray(array), narrowed(whole(array.shape), index), DEVICE)
    np.testing.assert_array_equal(jax.jit(taken)(part), wanted)


@pytest.mark.parametrize("index", [None, True, np.True_, 1.0, "a", [0], np.array(1), (0, None)])
def test_an_index_that_is_not_basic_is_left_to_jax(index):
    assert narrowed(whole((3, 4)), index) is None


@pytest.mark.parametrize("index", [(0, 0, 0), (..., ...), (slice(None, None, 0),), (slice("a"),)])
def test_an_index_that_does_not_fit_is_left_to_jax(index):
    assert narrowed(whole((3, 4)), index) is None


def test_an_integer_into_no_elements_is_left_to_jax():
    assert narrowed(whole((0, 4)), 0) is None
    assert shape_of(narrowed(whole((0, 4)), slice(2))) == (0, 4)


@pytest.mark.parametrize(("index", "wanted"), [(5, 2), (-1, 2), (-9, 0), (np.int64(1), 1)])
def test_integers_are_clamped_as_jax_does(index, wanted):
    array = jnp.arange(3)
    assert int(array[index]) == wanted
    assert numpy_index(narrowed(whole((3,)), index)) == (wanted, ...)


def test_windows_of_one_length_are_one_program():
    array = jnp.arange(300)
    view = whole((300,))
    parts = [operand(array, narrowed(view, slice(i, i + 10)), DEVICE) for i in (0, 7, 290)]
    assert len({type(part) for part in parts}) == 1
    assert type(operand(array, narrowed(view, slice(11)), DEVICE)) is not type(parts[0])


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("index", [(), (slice(None, None, -1),), (slice(1, None, 2), slice(2))])
def test_a_series_gives_the_same_operands_one_by_one(index, axis, size):
    array = jnp.arange(7 * 5 * 4).reshape(7, 5, 4)
    view = narrowed(whole(array.shape), index)
    along = axis_of(view, axis)
    series = Series(array, view, along, DEVICE, size=size)
    for i in range(shape_of(view)[axis] - (size or 1) + 1):
        if size is None:
            one = row_of(view, i, along)
        else:
            one = narrowed(view, (slice(None),) * axis + (slice(i, i + size),))
        given, wanted = series(array, i), operand(array, one, DEVICE)
        assert type(given) is type(wanted)
        assert jax.tree.map(int, given.starts) == jax.tree.map(int, wanted.starts)


@pytest.mark.parametrize("length", [1, 2, BASE, BASE + 1, BASE**2, BASE**2 + 1, 10**9])
def test_digits_spell_the_index(length):
    for index in {0, length // 2, length - 1}:
        spelled = digits(DEVICE, index, length)
        assert len(spelled) == number_of_digits(length)
        assert int(jax.jit(from_digits)(spelled)) == index


def test_digits_are_made_without_a_transfer_and_are_the_same_arrays_again():
    with jax.transfer_guard("disallow_explicit"):
        first = digits(jax.devices()[5], 3, 10)
    assert digits(jax.devices()[5], 3, 10)[0] is first[0]
    assert first[0].devices() == {jax.devices()[5]}
    assert not first[0].committed
