"""The pytest plugin of devicearray: a test fails where the host waits for a device.

A hidden ``float(loss)`` in a training step changes no result, so no assertion finds it. A test that
asks for `no_host_sync` runs under ``devicearray.sync_guard("error")``, and fails at the line.

Prior art: pytest-socket and pytest-django, which forbid the network and the database by fixture or
by marker. Guarded is the call of the test's function and not its fixtures, which may well wait.
Refused was a fixture that begins to guard when it is set up: it would guard as well the fixtures
that happen to come after it.

pytest loads this module when it starts, before a ``conftest.py`` can set ``XLA_FLAGS``. So it lies
outside of the package, and imports it, and JAX with it, only in a test that asks.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from devicearray import HostSyncError, sync_allowed

__all__ = ["NoHostSync"]

_NAME: Final = "no_host_sync"
_asked = pytest.StashKey[bool]()
_running = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{_NAME}(allow=()): fail the test at the line where it waits for a device value. "
        'allow names triggers that may, such as "block_until_ready".',
    )


class NoHostSync:
    """What the fixture `no_host_sync` gives to the test."""

    def allowed(self) -> sync_allowed:
        """Return a context in which the test may wait: ``devicearray.sync_allowed()``."""
        from devicearray import sync_allowed

        return sync_allowed()


@pytest.fixture
def no_host_sync(request: pytest.FixtureRequest) -> NoHostSync:
    """Fail the test at the line where it waits for a device value.

    ``with no_host_sync.allowed():`` admits it, for the assertions, say. The marker of the same name
    needs no argument, and takes triggers that may wait: ``allow=("block_until_ready",)``. The
    closest marker decides. Other fixtures and other threads are not guarded.
    """
    if request.node.stash.get(_running, False):
        _fail("asked for within the test, which runs unguarded. Make it an argument of the test.")
    request.node.stash[_asked] = True
    return NoHostSync()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Guard the function of a test that asks for it, while it is called."""
    item.stash[_running] = True
    try:
        with _guard(item):
            return (yield)
    finally:
        item.stash[_running] = False  # It may be run again.


@contextlib.contextmanager
def _guard(item: pytest.Item) -> Iterator[None]:
    marker = item.get_closest_marker(_NAME)
    if marker is None and not item.stash.get(_asked, False):
        yield
        return
    if not isinstance(item, pytest.Function):
        _fail(f"guards test functions, and this is a {type(item).__name__}.")
    function = item.obj
    item.obj = _guarded(function, _allow(marker))
    try:
        yield
    finally:
        item.obj = function


def _allow(marker: pytest.Mark | None) -> Iterable[str]:
    if marker is None:
        return ()
    unknown = [*map(repr, marker.args), *(f"{name}=" for name in marker.kwargs if name != "allow")]
    if unknown:
        _fail(
            f"@pytest.mark.{_NAME} takes allow= and nothing else, not {unknown[0]}. "
            f'Did you mean @pytest.mark.{_NAME}(allow=("float",))?'
        )
    allow: Iterable[str] = marker.kwargs.get("allow", ())
    return allow


def _guarded(function: Callable[..., Any], allow: Iterable[str]) -> Callable[..., Any]:
    from devicearray import HostSyncError, sync_guard

    try:
        call = sync_guard("error", allow=allow)(function)
    except (TypeError, ValueError) as error:
        _fail(str(error))

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except HostSyncError as error:
            _end_at_the_line(error)
            raise

    return guarded


def _end_at_the_line(error: HostSyncError) -> None:
    """Take from the traceback what lies below the user's line: JAX, and the guard."""
    traceback = error.__traceback__
    while traceback is not None and error.site is not None:
        at = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        if at == (error.site.file, error.site.line):
            traceback.tb_next = None
        traceback = traceback.tb_next


def _fail(message: str) -> NoReturn:
    raise pytest.fail.Exception(f"{_NAME}: {message}", pytrace=False) from None
