"""The command line: ``python -m devicearray``, one subcommand to a module of this package.

Each has a function ``add_to``, which adds its parser, and sets as defaults that parser
(``subparser``) and the function that runs the command (``run``). Prior art: git and pip, whose
subcommands have options and help of their own. Refused: click and typer, a dependency for what
argparse does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from devicearray._command import bench, record

__all__ = ["interpreter_options", "main"]

_SUBCOMMANDS: Final = (record.add_to, bench.add_to)


def main(arguments: Sequence[str], interpreter: Sequence[str] = ()) -> None:
    """Run the subcommand that the arguments name; without one, print the help.

    Parameters
    ----------
    arguments : sequence of str
        What follows ``python -m devicearray``.
    interpreter : sequence of str
        Options of Python itself, for a subcommand that starts it anew.
    """
    parser = argparse.ArgumentParser(
        prog="python -m devicearray",
        description="Tools for asynchronous dispatch in JAX.",
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add_to in _SUBCOMMANDS:
        add_to(subparsers)
    parsed, unknown = parser.parse_known_args(arguments)
    subparser = getattr(parsed, "subparser", parser)
    if unknown:
        subparser.error(f"there is no option {unknown[0]}")
    if subparser is parser:
        parser.print_help()
    else:
        parsed.run(parsed, interpreter)


def interpreter_options(command: Sequence[str], arguments: int) -> list[str]:
    """Return the options of Python itself in a command such as ``python -X dev -m devicearray``.

    Parameters
    ----------
    command : sequence of str
        The whole command: `sys.orig_argv`.
    arguments : int
        How many arguments it has after the name of the module.

    Examples
    --------
    >>> from devicearray._command import interpreter_options
    >>> interpreter_options(["python", "-X", "dev", "-um", "devicearray", "record", "x.py"], 2)
    ['-X', 'dev', '-u']
    """
    options = list(command[1 : len(command) - arguments])
    last = options.pop()
    if not last.startswith("-"):
        last = options.pop()
    # What comes before m in "-um" are options of one letter.
    letters = last.partition("m")[0]
    return options if letters == "-" else [*options, letters]
