"""Rows: each way to take them and to use them, JAX's plain array against a DeviceArray.

A pattern is one function, run on both. Each batch has an array of its own, because a DeviceArray
remembers what its rows were used for, and the host's copy of its value; a second loop over one
array may cost less than the first, and what is timed is the first. All programs are compiled by
then: `rows_cold` measures the other case.

A batch that leaves work on the device waits for the last result, on both sides. Taking rows
leaves none with a DeviceArray; with a plain array it does, and is timed until the call returns.
What could be left for later, such as joining rows, is used, so that none can put it off.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import jax
import numpy as np

import devicearray as da
from devicearray._bench.interleaved import Call, Comparison
from devicearray._bench.side import (
    JAX,
    OTHERS,
    OURS,
    Pattern,
    Side,
    add_one,
    compare_sides,
    first_of,
    on,
    use_each,
)
from devicearray._bench.suite import Counts, Plan, Suite, counts_of, paired

__all__ = ["SUITE"]

#: How many rows are taken one by one in a call, at most.
_CHOSEN: Final = 1_000
_NO_OTHERS: Final[Mapping[str, Side]] = MappingProxyType({})

_f: Any = JAX.f


@jax.jit
def _draw(key: Any) -> Any:
    return jax.random.normal(key, (4,))


# The patterns.


def _patterns(plan: Plan) -> Iterator[Pattern]:
    big, matrix = plan.host_big(), plan.host_matrix()
    yield from _taking(big, np.ones((plan.big, 1), np.float32))
    yield from _indexing(big, matrix)
    yield from _splitting(plan.splits)
    yield from _looping(big, matrix)


def _taking(big: Any, column: Any) -> Iterator[Pattern]:
    yield _once("list(big)", on(list, big), others=OTHERS)
    yield _once("list(column)", on(list, column), others=OTHERS)
    yield _tiny("list(small)", on(list, big[:10]))
    yield _once("list(reversed(big))", on(_reversed, big))
    yield _once("list(zip(big, big))", on(_zipped, big))
    yield _tiny("next(iter(big))", on(first_of, big))
    yield _tiny("a, b, c = x", on(_unpacked, big[:3]))
    yield _once("[float(v) for v in big]", on(_floats, big), others=OTHERS)


def _indexing(big: Any, matrix: Any) -> Iterator[Pattern]:
    for order, chosen in _orders(len(big)).items():
        make = on(functools.partial(_index, order=chosen), big)
        yield _once(f"big[i], i {order}", make, others=OTHERS, per=len(chosen))
    for order, chosen in _orders(len(matrix)).items():
        users = on(functools.partial(_use_by_index, _f, order=chosen), matrix)
        yield _once(f"f(M[i]), i {order}", users, per=len(chosen), until_ready=True)
        own = _with_own_jit(_use_by_index, matrix, order=chosen)
        yield _once(f"f(M[i]), i {order}, devicearray.jit", own, per=len(chosen), until_ready=True)


def _splitting(times: int) -> Iterator[Pattern]:
    for kind in ("PRNGKey", "key"):
        for use, make in (("", _split), (", f(sub)", _split_and_use), (", normal(sub)", _draw_own)):
            name = f"key, sub = split(key){use}: {kind}"
            yield _once(name, functools.partial(make, kind, times), per=times, until_ready=True)


def _looping(big: Any, matrix: Any) -> Iterator[Pattern]:
    for order, chosen in _orders(len(matrix)).items():
        stack = functools.partial(_stack, matrix, chosen)
        yield _once(f"f(stack(rows of M)), {order}", stack, until_ready=True)
    yield _once("for v in big: f(v)", on(functools.partial(use_each, _f), big), until_ready=True)
    yield _once("for r in M: f(r)", on(functools.partial(use_each, _f), matrix), until_ready=True)
    yield _once(
        "for v in big: v + 1", on(functools.partial(use_each, add_one), big), until_ready=True
    )
    yield _tiny("x + x", on(lambda x: x + x, big[:10]), until_ready=True)


def _once(
    name: str, make: Callable[[Side], Call], others: Mapping[str, Side] = _NO_OTHERS, **timing: Any
) -> Pattern:
    """Return a pattern that takes long enough for a batch of one call."""
    return Pattern(name=name, make=make, others=others, timing={"calls": 1, **timing})


def _tiny(name: str, make: Callable[[Side], Call], **timing: Any) -> Pattern:
    return Pattern(name=name, make=make, timing=timing)


def _with_own_jit(use: Callable[..., Any], host: Any, **how: Any) -> Callable[[Side], Call]:
    return lambda side: functools.partial(use, side.f, side.array(host), **how)


def _orders(length: int) -> dict[str, list[int]]:
    """Return rows to take, as Python numbers."""
    anywhere: list[int] = np.random.default_rng(0).permutation(length)[:_CHOSEN].tolist()
    return {"in order": list(range(min(length, _CHOSEN))), "random": anywhere}


def _reversed(x: Any) -> Any:
    return list(reversed(x))


def _zipped(x: Any) -> Any:
    return list(zip(x, x, strict=True))


def _unpacked(x: Any) -> Any:
    a, _b, _c = x
    return a


def _floats(x: Any) -> Any:
    return [float(v) for v in x]


def _index(x: Any, order: Iterable[int]) -> Any:
    for i in order:
        row = x[i]
    return row


def _use_by_index(f: Any, x: Any, order: Iterable[int]) -> Any:
    for i in order:
        result = f(x[i])
    return result


def _stack(host: Any, order: Iterable[int], side: Side) -> Call:
    x, stack = side.array(host), side.numpy.stack

    def call() -> Any:
        rows = list(x)
        return _f(stack([rows[i] for i in order]))

    return call


def _split(kind: str, times: int, side: Side) -> Call:
    start, split = getattr(side.random, kind)(0), side.random.split

    def call() -> Any:
        key = start
        for _ in range(times):
            key, _sub = split(key)
        return key

    return call


def _split_and_use(kind: str, times: int, side: Side) -> Call:
    return _split_for(_draw, kind, times, side)


def _draw_own(kind: str, times: int, side: Side) -> Call:
    return _split_for(lambda key: side.random.normal(key, (4,)), kind, times, side)


def _split_for(use: Callable[[Any], Any], kind: str, times: int, side: Side) -> Call:
    start, split = getattr(side.random, kind)(0), side.random.split

    def call() -> Any:
        key = start
        for _ in range(times):
            key, sub = split(key)
            result = use(sub)
        return key, result

    return call


# How they are measured.


def _run(plan: Plan) -> Iterator[Comparison]:
    for pattern in _patterns(plan):
        one = compare_sides(pattern, plan)
        waits = one.counts["host syncs"]
        yield dataclasses.replace(one, counts={**one.counts, "waits": waits})
    yield _pending(plan)


def _pending(plan: Plan) -> Comparison:
    """Count whether a list of rows waits for an array that is not computed yet.

    A time would be that of the gate. Where the host waits inside a dispatch, no recording sees it,
    but the gate does: nobody opens it.
    """
    name = f"list(x) of {plan.pending:,} rows, x pending"
    if jax.default_backend() != "cpu":
        return Comparison(name=f"{name}: no Gate on this device")
    return Comparison(name=name, counts=paired(*(_waits(side, plan) for side in (JAX, OURS))))


def _waits(side: Side, plan: Plan) -> Counts:
    x = side.array(np.arange(plan.pending, dtype=np.float32))
    list(x)  # Compiles.
    with warnings.catch_warnings():
        # That the gate has to open by itself is no mistake here, but the answer.
        warnings.simplefilter("ignore", RuntimeWarning)
        gate = da.Gate(timeout=plan.patience)
        pending = gate(x)
        counts = counts_of(lambda: list(pending), on_wait=gate.open)
        with contextlib.suppress(TimeoutError):
            gate.open()
    return counts | {"waits": (counts["host syncs"] or 0) + gate.timed_out}


SUITE = Suite(
    name="rows",
    title=(
        f"Rows: big has {Plan.big:,} scalars, column as many rows of one element, "
        f"small 10 scalars, M {Plan.rows:,} rows of {Plan.columns}"
    ),
    columns=("JAX", "ours", "ratio"),
    run=_run,
    beside=tuple(OTHERS),
    counts=("dispatches", "waits"),
)
