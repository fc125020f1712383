"""Indices that lie on the device: the numbers with which programs slice rows.

Which row a program takes is an operand of the program: as a static argument it would be a compile
for each row. An operand that is a number of the host's is a transfer at each dispatch, costs as
much again as the dispatch, and is what ``jax.transfer_guard("disallow")`` rejects. So the numbers
below `BASE` are made on each device once, by one program without operands, and a larger index is
given as its digits in that base, which the program puts together. An axis of up to 128 rows takes
one digit, of up to 16,384 two.

Prior art: JAX hands the index of ``x[i]`` over from the host, and its loop over chunks as well.
Refused: to put each index on the device when it is needed (``device_put`` takes several times as
long as the dispatch it is for), and a table of all indices (a million rows, a million arrays).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from devicearray import _jax

__all__ = ["BASE", "LONGEST", "Place", "digits", "from_digits", "number_of_digits"]

#: Where indices lie: on a device, or on each of a mesh.
type Place = jax.Device | NamedSharding

#: A program of so many constants compiles in some 20 ms.
BASE: Final = 128

#: How long an axis may be: its indices are 32-bit.
LONGEST: Final = 2**31 - 1


@functools.cache
def number_of_digits(length: int) -> int:
    """Return how many digits an index of an axis of this length has."""
    number, reach = 1, BASE
    while reach < length:
        number, reach = number + 1, reach * BASE
    return number


def digits(place: Place, index: int, length: int) -> tuple[jax.Array, ...]:
    """Return an index as its digits, the highest first, each a 0-d array.

    Parameters
    ----------
    place : jax.Device or jax.sharding.NamedSharding
        Where the program runs. On a mesh, each device has the index.
    index : int
        From 0 to ``length - 1``.
    length : int
        Of the axis. It decides how many digits there are, and so which program takes them.
    """
    numbers = _tables.get(place) or _numbers_at(place)
    if length <= BASE:
        return (numbers[index],)
    found: tuple[jax.Array, ...] = ()
    for _ in range(number_of_digits(length)):
        index, digit = divmod(index, BASE)
        found = (numbers[digit], *found)
    return found


def from_digits(digits: Sequence[Any]) -> Any:
    """Return the index that the digits spell, inside a program."""
    index = digits[0]
    for digit in digits[1:]:
        index = index * BASE + digit
    return index


_tables: dict[Place, list[jax.Array]] = {}


def indices() -> list[jax.Array]:
    """Return the numbers below `BASE`, as a program without operands."""
    return [jnp.int32(i) for i in range(BASE)]


def _numbers_at(place: Place) -> list[jax.Array]:
    is_mesh = isinstance(place, NamedSharding)
    device = place.mesh.devices.flat[0] if is_mesh else place
    with _jax.within(_jax.no_mesh(device)):
        numbers = jax.jit(indices, out_shardings=place if is_mesh else None)()
    return _tables.setdefault(place, numbers)
