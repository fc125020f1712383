"""The list of cases, and the decorator that adds to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tests.conformance.harness import Make

CaseFunction = Callable[[Make], object]


@dataclasses.dataclass(frozen=True)
class Case:
    """One small program to run on both kinds of array."""

    name: str
    function: CaseFunction
    #: The error that JAX raises here, or those of its versions: said by the case, so that an
    #: accidental one is noticed.
    raises: type[Exception] | tuple[type[Exception], ...] | None = None
    #: Run in a process of its own, because a fault may end it.
    isolated: bool = False
    #: An optional module without which JAX itself cannot run the case.
    requires: str | None = None


CASES: dict[str, Case] = {}


def case(function: CaseFunction | None = None, *, name: str | None = None, **options: Any) -> Any:
    """Register a function of ``make`` as a case, under its own name unless ``name`` is given."""

    def register(function: CaseFunction) -> CaseFunction:
        case_name = function.__name__ if name is None else name
        if case_name in CASES:
            raise ValueError(f"Two cases are called {case_name!r}.")
        CASES[case_name] = Case(case_name, function, **options)
        return function

    return register if function is None else register(function)
