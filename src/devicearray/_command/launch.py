"""Run a program as Python itself would, and record it from the moment when it imports JAX.

JAX reads its environment (``JAX_PLATFORMS``, ``JAX_ENABLE_X64`` and some dozens more) when it is
imported, and a program may set it before. So a process that has imported JAX, as that of
``python -m devicearray`` has, cannot run every program unmodified. This file is the script of a
fresh one, executed by its path: it imports neither JAX nor this package until the program does, and
the program does not see it.

Prior art: coverage and pdb, which replace ``__main__`` as is done here; runpy, which puts the old
one back when the program's last line has run, while its threads may still need it. Refused was a
``sitecustomize`` on the path, as opentelemetry-instrument and ddtrace-run have it: Python itself
would run the program, and nobody could change its exit status.
"""

from __future__ import annotations

import builtins
import contextlib
import difflib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from devicearray._command.report import Recording

__all__ = ["Options"]

_COMMAND: Final = "python -m devicearray record"
_MISUSED: Final = 2  # the exit status of argparse, and of most commands


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line.

    Attributes
    ----------
    module : bool
        Whether the program is named as a module, not as a file.
    skip : sequence of str
        Modules whose lines are not the user's.
    json : bool
        Whether to write the log to stdout, as JSON.
    perfetto : str or None
        Where to write the timeline.
    fail_on_sync : bool
        Whether a host sync makes the command fail.
    allow : sequence of str
        The triggers that do not.
    """

    module: bool
    skip: Sequence[str]
    json: bool
    perfetto: str | None
    fail_on_sync: bool
    allow: Sequence[str]


class _NoSuchProgram(Exception):
    """There is nothing to run by that name."""


def _main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    sys.argv[:] = sys.argv[2:]
    stdout = _take_stdout() if options.json else None
    watch = _Watch(options)
    process = os.getpid()
    try:
        failure = _outcome(lambda: _run(options.module))
    except _NoSuchProgram as error:
        print(f"{_COMMAND}: error: {error}", file=sys.__stderr__)
        sys.exit(_MISUSED)
    if os.getpid() == process:  # else it is the program's child, by os.fork
        # As Python does before it runs the atexit functions. multiprocessing calls this, too.
        failure = _outcome(threading._shutdown) or failure  # type: ignore[attr-defined]
        with contextlib.suppress(AttributeError, OSError, ValueError):  # none, broken, closed
            sys.stdout.flush()
        failure = watch.report(stdout, failure)
    if failure is not None:
        # Raised, it makes Python end as it should; it has been shown.
        sys.excepthook = lambda *_: None
        raise failure


def _take_stdout() -> int:
    """Return a descriptor of stdout; make what is written to descriptor 1 go to stderr."""
    stdout = os.dup(1)  # Not inherited by the processes that the program starts.
    os.dup2(2, 1)
    return stdout


# The program.


def _run(is_module: bool) -> None:
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    name = sys.argv[0]
    if is_module:
        code = _read_module(main, name)
    elif (importer := pkgutil.get_importer(os.path.abspath(name))) is not None:
        code = _read_folder(main, name, importer)
    else:
        code = _read_script(main, name)
    exec(code, vars(main))


def _search_first(folder: str) -> None:
    """Put `folder` where Python put that of this file, unless it was told to put none."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _read_module(main: ModuleType, name: str) -> CodeType:
    _search_first(os.getcwd())
    sys.argv[0] = "-m"  # as Python has it while it imports the packages around the module
    code = _adopt(main, _find_module(name))
    sys.argv[0] = main.__file__ or ""
    return code


def _read_folder(main: ModuleType, name: str, importer: Any) -> CodeType:
    """Read ``__main__.py`` in a folder or a zip file, which Python searches in any case."""
    sys.path[: 0 if sys.flags.safe_path else 1] = [os.path.abspath(name)]
    spec = importer.find_spec("__main__")
    if spec is None:
        raise _NoSuchProgram(f"{name} has no __main__.py that could be run.")
    return _adopt(main, spec)


def _read_script(main: ModuleType, name: str) -> CodeType:
    _search_first(os.path.dirname(os.path.realpath(name)))
    file = os.path.abspath(name)
    if not os.path.exists(file):
        raise _NoSuchProgram(f"no such script: {name}.{_similar_script(name)}")
    main.__file__ = file
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    vars(main)["__cached__"] = None
    with io.open_code(file) as opened:
        return compile(opened.read(), file, "exec", dont_inherit=True)


def _similar_script(name: str) -> str:
    folder, base = os.path.split(name)
    if folder and not os.path.isdir(folder):
        return f" There is no folder {folder}."
    return _did_you_mean(base, os.listdir(folder or "."), folder and f"{folder}/")


def _find_module(name: str) -> importlib.machinery.ModuleSpec:
    """Return what `name` is, or its ``__main__`` if that is a package."""
    if name.endswith(".py") and os.path.exists(name):
        raise _NoSuchProgram(f"no such module: {name}. It is a script: leave out -m.")
    if not all(name.split(".")):
        raise _NoSuchProgram(f"no such module: {name!r}. Give its full name.")
    parent, _, last = name.rpartition(".")
    spec = _spec_of(name, parent)
    if spec is None:
        raise _NoSuchProgram(f"no such module: {name}.{_similar_module(parent, last)}")
    if spec.submodule_search_locations is None:
        return spec
    main = _spec_of(f"{name}.__main__", name)
    if main is None:
        raise _NoSuchProgram(f"{name} is a package, and has no __main__.py that could be run.")
    return main


def _spec_of(name: str, parent: str) -> importlib.machinery.ModuleSpec | None:
    try:
        if parent:
            __import__(parent)
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # The package is there, and what it imports is not.
        return None


def _similar_module(parent: str, last: str) -> str:
    if not parent:
        return _did_you_mean(last, (one.name for one in pkgutil.iter_modules()), "")
    within = getattr(sys.modules.get(parent), "__path__", None)
    if within is None:
        return f" There is no package {parent}."
    names = (one.name for one in pkgutil.iter_modules(within))
    return _did_you_mean(last, names, f"{parent}.")


def _did_you_mean(name: str, known: Iterable[str], before: str) -> str:
    similar = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {before}{similar[0]}?" if similar else ""


def _adopt(main: ModuleType, spec: importlib.machinery.ModuleSpec) -> CodeType:
    """Make `main` the module that `spec` describes; return its code."""
    loader: Any = spec.loader
    code: CodeType | None = loader.get_code(spec.name)
    if code is None:
        raise _NoSuchProgram(f"{spec.name} has no Python code that could be run.")
    main.__spec__ = spec
    main.__loader__ = loader
    main.__package__ = spec.parent
    main.__file__ = spec.origin
    vars(main)["__cached__"] = spec.cached
    return code


# How it ends.


def _outcome(call: Callable[[], Any]) -> BaseException | None:
    """Call, show on stderr what goes wrong as Python does, and return it."""
    try:
        call()
    except _NoSuchProgram:
        raise
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error
        print(error.code, file=sys.stderr)
        return SystemExit(1)
    except BaseException as error:
        error.__traceback__ = _from_the_program_on(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return error
    return None


def _from_the_program_on(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and _is_ours(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


def _is_ours(file: str) -> bool:
    return file == __file__ or file.startswith("<frozen importlib")


# The recording.


class _Watch(importlib.abc.MetaPathFinder):
    """Starts the recording as soon as the program has imported JAX, or this package."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._recording: Recording | None = None
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find what the other finders find, and have the loader tell when it is done."""
        if name not in ("jax", "devicearray"):
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._start_after(spec.loader)
        return spec

    def _start_after(self, loader: Any) -> None:
        def exec_module(module: ModuleType) -> None:
            sys.meta_path.remove(self)
            del loader.exec_module  # The method of its class is there again.
            loader.exec_module(module)
            self._start()

        loader.exec_module = exec_module

    def _start(self) -> Recording:
        from devicearray._command.report import Recording

        self._recording = Recording(self._options)
        return self._recording

    def report(self, stdout: int | None, failure: BaseException | None) -> BaseException | None:
        """Report what was recorded; return how to end."""
        if self._recording is None:
            print("The program did not import JAX: nothing to record.", file=sys.__stderr__)
            if not self._options.json and not self._options.perfetto:
                return failure
        recording = self._recording or self._start()
        recording.report(stdout)
        succeeded = failure is None or (isinstance(failure, SystemExit) and not failure.code)
        if succeeded and self._options.fail_on_sync and recording.complains():
            return SystemExit(1)
        return failure


if __name__ == "__main__":
    _main()
