"""What to do about an error: JAX's own exception, with one line added.

Where a DeviceArray fails, it fails as a plain array does: same type, same message, since a
program that catches JAX's error must catch ours. JAX's messages name the thing; for the common
mistakes they do not always name the way out. It is added as a note (PEP 678, as pandas and
hypothesis do), which a traceback shows under the message. The refused alternative, an exception
type of our own, would break ``except`` clauses and read as a different fault.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import TracebackType
from typing import Final

__all__ = ["advise", "advised", "did_you_mean"]

_DELETED: Final = (
    "The array was deleted with .delete(), or donated to a function (donate_argnums). To use it "
    "again, keep a copy (x.copy()) or do not donate it."
)

#: Part of JAX's message, and what to do about it.
_ADVICE: Final = (
    ("has been deleted", _DELETED),
    ("on deleted or donated buffer", _DELETED),
    (
        "of unsized object",
        (
            "The array is 0-d: it has one element and no length. Did you mean x.size, or "
            "x.reshape(1)?"
        ),
    ),
    (
        "over a 0-d array",
        "The array is 0-d: it has one element. Did you mean x.item(), or x.reshape(1)?",
    ),
    (
        "incompatible devices for jitted computation",
        (
            "The operands are committed to different devices. Move one to the other: "
            "jax.device_put(x, y.sharding)."
        ),
    ),
    (
        "ambiguous",
        "The array has several elements. Did you mean x.any(), x.all() or x.size?",
    ),
)


class _Advised:
    """A context that adds advice to the exceptions that leave it. It costs nothing else."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            advise(error)


def advise(error: BaseException) -> None:
    """Add to `error` the way out, where the mistake is a common one."""
    message = str(error)
    for fault, remedy in _ADVICE:
        if fault in message and remedy not in getattr(error, "__notes__", ()):
            error.add_note(remedy)


def did_you_mean(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return the question that ends a message about an unknown name; nothing if none is like it.

    Examples
    --------
    >>> from devicearray._advice import did_you_mean
    >>> did_you_mean("eror", ["error", "warn"])
    " Did you mean 'error'?"
    """
    similar = difflib.get_close_matches(name, list(known), 1, likeness)
    return f" Did you mean {similar[0]!r}?" if similar else ""


#: The one instance: it keeps no state.
advised: Final = _Advised()
