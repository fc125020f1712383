"""``python -m devicearray record``: where a program waits, without a change to it.

This module reads the options and checks all that can be checked before the program runs, so that a
mistyped one costs a second and not an hour. Then the process becomes a fresh Python that runs
`launch`, which says why it must be fresh. Prior art: ``coverage run``, ``python -m cProfile``,
``py-spy record``, after which the form of the command is made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from devicearray._command import launch
from devicearray._guard import sync_guard
from devicearray._site import finder

__all__ = ["add_to"]

_USAGE: Final = "%(prog)s [options] (script.py | -m module) [arguments of the program]"
_DESCRIPTION: Final = """\
Run a program as `python script.py` or `python -m module` would, unmodified, and print to
stderr where it waited for values of the devices, the longest wait first, and what it compiled,
dispatched and transferred. The program's exit status is kept. The recording begins when the
program imports JAX and ends with its last thread; other processes that it starts are not
recorded."""
_EXAMPLES: Final = """\
examples:
  python -m devicearray record train.py --steps 100
  python -m devicearray record --json -m mylab.train > log.json
  python -m devicearray record --fail-on-sync --allow print train.py"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand to a parser."""
    parser = subparsers.add_parser(
        "record",
        help="run a program, and print where it waited",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-m",
        dest="module",
        action="store_true",
        help="what to run is a module or a package, not a file",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="write the log as JSON to stdout, for devicearray.Log.from_json, instead of the "
        "table to stderr; what the program writes to stdout goes to stderr",
    )
    parser.add_argument(
        "--perfetto",
        metavar="FILE",
        type=_writable,
        help="profile the devices as well, and write host and devices as a timeline that "
        "https://ui.perfetto.dev opens",
    )
    parser.add_argument(
        "--fail-on-sync",
        action="store_true",
        help="exit with status 1 if there was a host sync outside of devicearray.sync_allowed()",
    )
    parser.add_argument(
        "--allow",
        metavar="TRIGGER",
        action="append",
        default=[],
        help="what --fail-on-sync lets pass, as the table names it: print, block_until_ready, "
        "... (repeatable)",
    )
    parser.add_argument(
        "--skip",
        metavar="MODULE",
        action="append",
        default=[],
        help="a library whose lines are not yours, such as optax: the line that called it is "
        "named (repeatable)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(subparser=parser, run=_run)


def _run(parsed: argparse.Namespace, interpreter: Sequence[str]) -> None:
    parser = parsed.subparser
    if not parsed.program:
        parser.error("name what to run: a script, or -m and a module")
    if parsed.allow and not parsed.fail_on_sync:
        parser.error("--allow says what --fail-on-sync lets pass: give that as well")
    options = launch.Options(
        module=parsed.module,
        skip=tuple(parsed.skip),
        json=parsed.json,
        perfetto=parsed.perfetto,
        fail_on_sync=parsed.fail_on_sync,
        allow=tuple(parsed.allow),
    )
    try:
        sync_guard(allow=options.allow)
        with _searched_first(_folder(parsed.program[0], options.module)):
            finder(tuple(options.skip))
    except ValueError as error:
        parser.error(f"--{error}")
    command = [sys.executable, *interpreter, launch.__file__, json.dumps(asdict(options))]
    os.execve(sys.executable, [*command, *parsed.program], _environment())


def _environment() -> Mapping[bytes, bytes] | Mapping[str, str]:
    """Return the environment that this process was given, where the system can tell.

    JAX adds variables when it is imported, and the program is to be asked as if it had not been.
    """
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return os.environ
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def _writable(path: str) -> str:
    """Return where `path` is, wherever the program may change to, if one can write there."""
    exists = os.path.exists(path)
    try:
        with open(path, "ab"):
            pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {path}: {error.strerror}") from None
    if not exists:
        os.unlink(path)
    return os.path.abspath(path)


def _folder(program: str, is_module: bool) -> str:
    """Return where Python will look first for the modules that the program imports."""
    if is_module:
        return os.getcwd()
    path = Path(program).resolve()
    return str(path if path.is_dir() else path.parent)


@contextmanager
def _searched_first(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
