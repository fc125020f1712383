"""Decorators for the time of a call refuse functions that do their work after it.

A generator function, or a coroutine function, returns at once; a context that is left by then would
have covered nothing, and its report would be empty and look fine. `contextlib.ContextDecorator`
lets that pass.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

__all__ = ["refuse_what_runs_later"]

_LATER: Final = {
    "a generator function": inspect.isgeneratorfunction,
    "a coroutine function": inspect.iscoroutinefunction,
    "an asynchronous generator function": inspect.isasyncgenfunction,
}


def refuse_what_runs_later(decorator: str, function: Any) -> None:
    """Raise `TypeError` unless `function` does its work before a call of it returns."""
    if not callable(function):
        raise TypeError(f"{decorator}: expected a function, not {function!r}.")
    for kind, is_kind in _LATER.items():
        if is_kind(function):
            raise TypeError(
                f"{decorator}: {function.__qualname__} is {kind}, which does its work after the "
                f"call has returned. Did you mean `with {decorator}(...):` inside of it?"
            )
