"""Every case, on a plain JAX array and on a DeviceArray: the same results and the same errors."""

from __future__ import annotations

import importlib.util

import jax
import numpy as np
import pytest

import devicearray as da
from tests.conformance.cases import CASES, Case
from tests.conformance.deviations import DEVIATIONS
from tests.conformance.harness import Facts, differences, observe
from tests.conformance.isolated import compare_isolated
from tests.conformance.makers import ours, plain


def observe_jax(case: Case) -> Facts:
    """Run a case on plain arrays; fail if JAX does not do what the case says it does."""
    facts = observe(case.function, plain)
    error = facts.get("error")
    if case.raises is None:
        assert error is None, f"JAX itself fails: {facts}"
    else:
        assert isinstance(error, type), f"JAX raises no {case.raises}: {facts}"
        assert issubclass(error, case.raises), facts
    return facts


def compare(case: Case) -> list[str]:
    """Where the two kinds of array differ; fail if plain arrays differ among themselves."""
    if case.isolated:
        return compare_isolated(case.name)
    expected = observe_jax(case)
    lines = differences(expected, observe(case.function, ours))
    if lines:
        again = differences(expected, observe_jax(case))
        assert not again, f"The case does not repeat itself on plain arrays: {again}"
    return lines


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    if case.requires is not None and importlib.util.find_spec(case.requires) is None:
        pytest.skip(f"JAX needs {case.requires} for this")
    lines = compare(case)
    reason = DEVIATIONS.get(case.name)
    if reason is None:
        assert not lines, "\n".join(lines)
    else:
        assert lines, f"{case.name} agrees with JAX now: take it off the list ({reason})"


def test_every_case_is_there() -> None:
    assert len(CASES) >= 285
    assert all(name == case.name for name, case in CASES.items())


def test_deviations_are_cases_and_give_a_reason() -> None:
    assert DEVIATIONS.keys() <= CASES.keys()
    assert all(reason.endswith(".") and len(reason.split()) > 4 for reason in DEVIATIONS.values())


def test_the_two_makers_make_two_kinds() -> None:
    made = ours(np.ones(3))
    assert type(made) is da.DeviceArray
    assert type(plain(np.ones(3))) is not da.DeviceArray
    assert isinstance(made, jax.Array)
