"""sync_guard: a host sync is an error, a warning or a line in the log, before it waits.

A recording finds the hidden ``float(loss)`` once; a guard keeps the next one out. It listens at the
same boundary as `devicearray.record` and answers before the wait begins, so that what it reports
has cost nothing yet, and the exception rises through JAX from a function that had done nothing.

Prior art: PyTorch's ``torch.cuda.set_sync_debug_mode``, which is a switch of the whole process, so
that one thread's check breaks another's; ``jax.transfer_guard``, which is set per thread and sees
no wait, and on CPU no read at all. Taken from the first are the words (error, warn), from the
second the thread. What counts is *whether* the host asks, not whether it would have had to wait: a
guard that passes on a fast machine and fails on a slow one would be luck.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import threading
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, Literal, Self, get_args

import jax
import jax.numpy as jnp
import numpy as np

from devicearray import _boundary, _jax
from devicearray._advice import did_you_mean
from devicearray._later import refuse_what_runs_later
from devicearray._site import Found, Site, finder, in_host_callback

__all__ = ["HostSyncError", "HostSyncWarning", "in_allowed_region", "sync_allowed", "sync_guard"]

_Mode = Literal["error", "warn", "log"]
_MODES: Final[tuple[str, ...]] = get_args(_Mode)

_logger = logging.getLogger("devicearray")


class HostSyncError(BaseException):
    """The host was about to wait for a device value, where `devicearray.sync_guard` forbids it.

    It is no `Exception`, as pytest's and trio's own are not: ``np.array_equal`` takes any
    `Exception` for "not equal", and `logging` prints it and goes on. ``except HostSyncError``
    catches it.

    Attributes
    ----------
    trigger : str
        What the line called: ``float``, ``print``, ``np.asarray``.
    site : Site or None
        The line.
    """

    __module__ = "devicearray"

    def __init__(self, message: str, trigger: str = "", site: Site | None = None) -> None:
        super().__init__(message)
        self.trigger = trigger
        self.site = site

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.trigger, self.site)


class HostSyncWarning(UserWarning):
    """The host is about to wait for a device value, where ``sync_guard("warn")`` looks."""

    __module__ = "devicearray"


#: What to do instead, by trigger.
_ON_DEVICE: Final = (
    "Keep the value on the device: collect it, and read it after the loop or every some steps."
)
_REMEDIES: Final = {
    "float": _ON_DEVICE,
    "int": _ON_DEVICE,
    "complex": _ON_DEVICE,
    "item": _ON_DEVICE,
    "tolist": "Read after the loop, once: jax.device_get of all that is needed.",
    "device_get": "Read after the loop, once: jax.device_get of all that is needed.",
    "print": "Print after the loop, or use jax.debug.print inside the jitted function.",
    "debug_print": "Call it inside a jitted function: outside of one it prints at once.",
    "str": "Format after the loop, or use jax.debug.print inside the jitted function.",
    "display": "Display it after the loop: what a cell or a prompt shows has to be read.",
    "repr": "Format after the loop, or use jax.debug.print inside the jitted function.",
    "format": "Format after the loop, or use jax.debug.print inside the jitted function.",
    "bool": "Choose on the device: jnp.where, jax.lax.cond, jax.lax.while_loop.",
    "index": "Index on the device: x[i] takes an array; or keep the index a Python number.",
    "indexing": "A boolean mask has a shape that depends on values: jnp.where(mask, x, 0).",
    "nonzero": "The shape depends on values: give size=...",
    "unique": "The shape depends on values: give size=...",
    "jit": "Give it arrays as arguments, not in a closure; and do not order side effects.",
    "np.asarray": "Use jax.numpy, which stays on the device.",
    "np.array": "Use jax.numpy, which stays on the device.",
    "block_until_ready": "Only a timing needs it: a value is waited for when it is read.",
    "effects_barrier": "Only the end of the program needs it.",
}
_OTHERWISE: Final = "Do it after the loop, or with a function of jax.numpy."


class _Thread(threading.local):
    """The guards of this thread, the innermost last, and how many regions allow host syncs."""

    guards: tuple[_Guarding, ...] = ()
    allowed = 0


_thread = _Thread()


def in_allowed_region() -> bool:
    """Tell whether this thread is within ``sync_allowed()``."""
    return _thread.allowed > 0


class _Guarding(_boundary.Listener):
    """One guard, in force on one thread."""

    only_waits = True

    def __init__(self, guard: sync_guard) -> None:
        self.guard = guard

    def before_wait(self, hook: str, was_ready: bool | None, subject: Any) -> None:
        guards = _thread.guards
        if not guards or guards[-1] is not self or _thread.allowed:
            return
        self.guard._meet(hook, was_ready, subject)


class sync_guard(contextlib.ContextDecorator):
    """Report each host sync of this thread before it waits.

    Use it in a ``with`` statement, around a function, or with `start` for the rest of the program.
    Of nested guards the innermost decides. Other threads are not guarded.

    Parameters
    ----------
    mode : {"error", "warn", "log"}
        Raise `HostSyncError` and do not wait; or issue a `HostSyncWarning`; or write a warning to
        the logger ``devicearray``; and wait then.
    allow : iterable of str
        Triggers that are not reported: ``allow=("block_until_ready", "print")``. `HostSyncError`
        and `devicearray.record` name them.
    skip : iterable of str
        Modules whose lines are not yours: see `devicearray.record`.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type, or there is no such mode or module.
    RuntimeError
        On entering: if this JAX lacks a name without which some host syncs would not be seen.

    See Also
    --------
    sync_allowed : admits host syncs in a region.
    jax.transfer_guard : for transfers; it does not see waits.

    Notes
    -----
    A value that happens to be ready is reported as well: whether it is ready is luck. What the
    host has read and kept already is not a host sync.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import devicearray as da
    >>> loss = jnp.float32(0.5)
    >>> with da.sync_guard("error"):
    ...     loss = loss * 2          # dispatched
    ...     history = [float(loss)]
    Traceback (most recent call last):
    ...
    devicearray.HostSyncError: float waits for a device value (float32[]) at ...:3 in <module>:
        history = [float(loss)]
    Keep the value on the device: collect it, and read it after the loop or every some steps.
    To allow it: sync_guard(allow=('float',)), or `with sync_allowed():` around it.
    """

    def __init__(
        self, mode: _Mode = "error", *, allow: Iterable[str] = (), skip: Iterable[str] = ()
    ) -> None:
        if callable(mode):
            raise TypeError(
                "sync_guard takes a mode, not a function. Did you mean @sync_guard() with "
                "parentheses?"
            )
        if mode not in _MODES:
            hint = did_you_mean(str(mode), _MODES, 0.3)
            raise ValueError(f"sync_guard: there is no mode {mode!r}, only {_MODES}.{hint}")
        self._mode = mode
        self._allow = frozenset(_triggers(allow))
        self._finder = finder((skip,) if isinstance(skip, str) else tuple(skip))
        self._shown: dict[Any, Any] = {}  # what Python's warnings keep to show each line once

    def start(self) -> Self:
        """Guard this thread from now on, until `stop` or the end of the program.

        Returns
        -------
        sync_guard
            This guard.
        """
        _refuse_if_blind()
        guarding = _Guarding(self)
        _boundary.join(guarding)
        _thread.guards = (*_thread.guards, guarding)
        return self

    def stop(self) -> None:
        """End the guard that this thread started last with this object.

        Raises
        ------
        RuntimeError
            If this thread has not started it.
        """
        mine = [one for one in _thread.guards if one.guard is self]
        if not mine:
            raise RuntimeError("sync_guard: this thread has not started this guard.")
        _thread.guards = tuple(one for one in _thread.guards if one is not mine[-1])
        _boundary.leave(mine[-1])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__[F: Callable[..., Any]](self, function: F) -> F:
        """Return `function` with its calls guarded."""
        refuse_what_runs_later("sync_guard", function)
        return super().__call__(function)

    def _meet(self, hook: str, was_ready: bool | None, subject: Any) -> None:
        found = self._finder.find(hook)
        if found.trigger in self._allow:
            return
        # A host callback reads what its program gave to it, on CPU within the dispatch. There is
        # nothing to wait for, and a refusal would be a failure of the program.
        if was_ready and in_host_callback():
            return
        message = _describe(found, subject)
        if self._mode == "error":
            raise HostSyncError(message, found.trigger, found.site)
        if self._mode == "log":
            _logger.warning("%s", message)
            return
        file, line = (found.site.file, found.site.line) if found.site else ("<unknown>", 0)
        warnings.warn_explicit(message, HostSyncWarning, file, line, registry=self._shown)


class sync_allowed(contextlib.ContextDecorator):
    """Admit host syncs of this thread, whatever guard is in force.

    Use it in a ``with`` statement or around a function. A recording marks such host syncs as
    ``allowed``.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import devicearray as da
    >>> total = jnp.float32(0.0)
    >>> with da.sync_guard("error"):
    ...     for step in range(4):
    ...         total = total + step
    ...     with da.sync_allowed():          # once, at the end
    ...         print(float(total))
    6.0
    """

    def __enter__(self) -> Self:
        _thread.allowed += 1
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        _thread.allowed -= 1

    def __call__[F: Callable[..., Any]](self, function: F) -> F:
        """Return `function` with host syncs admitted in its calls."""
        refuse_what_runs_later("sync_allowed", function)
        return super().__call__(function)


def _triggers(allow: Iterable[str]) -> tuple[str, ...]:
    names = (allow,) if isinstance(allow, str) else tuple(allow)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"sync_guard: a trigger is named by a string, and {name!r} is not one.")
        plain = name.strip("_").removesuffix("()")
        similar = difflib.get_close_matches(plain, _REMEDIES, 1, 0.75)
        if name not in _REMEDIES and similar and not _is_a_function(name):
            raise ValueError(f"allow: there is no trigger {name!r}. Did you mean {similar[0]!r}?")
    return names


def _is_a_function(trigger: str) -> bool:
    """Tell whether NumPy or JAX has it, so that it is no slip: ``np.unique``, ``flatnonzero``."""
    if trigger.startswith("np."):
        return hasattr(np, trigger.removeprefix("np."))
    return any(hasattr(owner, trigger) for owner in (jnp, jax, jax.lax))


def _refuse_if_blind() -> None:
    for lost, name in _jax.LOST.items():
        if lost.startswith("host syncs"):
            raise RuntimeError(
                f"sync_guard: {lost} cannot be seen, because this JAX has no {name}. A guard that "
                "overlooks some would be worse than none."
            )


def _describe(found: Found, subject: Any) -> str:
    site, trigger = found
    where, source = "", ""
    if site is not None:
        where = f" at {site}"
        source = f":\n    {site.source}" if site.source else ""
    return (
        f"{trigger} waits for {_name(subject)}{where}{source}\n"
        f"{_REMEDIES.get(trigger, _OTHERWISE)}\n"
        f"To allow it: sync_guard(allow=({trigger!r},)), or `with sync_allowed():` around it."
    )


def _name(subject: Any) -> str:
    if isinstance(subject, jax.Array):
        return f"a device value ({jax.typeof(subject)})"
    if isinstance(subject, list | tuple):
        return f"{len(subject)} device values"
    return "the side effects of programs"
