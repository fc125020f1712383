"""``python -m devicearray bench``: how fast this package is, on the reader's own device.

It prints each line of a table as soon as it is measured, and writes files only where it is told to:
who asks for a table has not asked for files. Prior art: ``python -m timeit`` and ``python -m
pyperf``, which time what they are given; this command has its suites, and their names are all that
it takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import jax

from devicearray._advice import did_you_mean
from devicearray._bench import table
from devicearray._bench.interleaved import Comparison
from devicearray._bench.suite import Plan, Suite, environment, write
from devicearray._bench.suites import SUITES
from devicearray._units import counted

__all__ = ["add_to"]

_DESCRIPTION: Final = """\
Time JAX's call on a plain array against this package's, in turns and in one process, and print
the times and the ratios of neighbours: more than 1 means that this package is faster."""
_EXAMPLES: Final = """\
examples:
  python -m devicearray bench --list
  python -m devicearray bench rows
  python -m devicearray bench rows strategies --rounds 20 --output results"""
_SIMULATED: Final = "--xla_force_host_platform_device_count"


def add_to(subparsers: Any) -> None:
    """Add the subcommand to a parser."""
    parser = subparsers.add_parser(
        "bench",
        help="time this package against JAX, on your device",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        type=_suite,
        help="a suite; without one, all of them, which takes some minutes",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_rounds,
        default=Plan.rounds,
        help="how often to time each way, at most (default: %(default)s); what takes long is "
        "timed less often",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=_folder,
        help="a folder to which each suite writes NAME.json, with all samples and what they were "
        "measured on",
    )
    parser.add_argument("--list", action="store_true", help="print the suites, and run none")
    parser.set_defaults(subparser=parser, run=_run)


def _run(parsed: argparse.Namespace, interpreter: Sequence[str]) -> None:
    if parsed.list:
        _list()
        return
    plan = Plan(rounds=parsed.rounds)
    for suite in parsed.names or SUITES.values():
        if jax.device_count() < suite.devices:
            _run_on_simulated_devices(suite, parsed, interpreter)
        else:
            _measure(suite, plan, parsed.output)


def _list() -> None:
    width = max(map(len, SUITES))
    for suite in SUITES.values():
        print(f"{suite.name.ljust(width)}  {suite.title}")


def _measure(suite: Suite, plan: Plan, folder: Path | None) -> None:
    on = environment()
    print(f"\n{suite.title}\n{_described(on)}\n{_explained(suite, plan)}\n", flush=True)
    comparisons = list(_printed(suite.run(plan), suite))
    if folder is not None:
        print(f"\nWritten: {write(suite, comparisons, folder)}", flush=True)


def _described(on: dict[str, Any]) -> str:
    return (
        f"On {on['date']} with jax {on['jax']} on {counted(on['devices'], 'device')} of kind "
        f"{on['device']} ({on['machine']}), Python {on['python']}"
    )


def _explained(suite: Suite, plan: Plan) -> str:
    first, second, _ = suite.columns
    numbers = f"; numbers of {', '.join(suite.counts)}: {first}, {second}" if suite.counts else ""
    return f"In turns, up to {counted(plan.rounds, 'round')}; medians{numbers}"


def _printed(comparisons: Iterable[Comparison], suite: Suite) -> Iterator[Comparison]:
    """Print a line for each comparison as it comes: the table is its own progress."""
    columns, beside, counts = suite.columns, suite.beside, suite.counts
    titles = (*table.titles(columns), *table.more_titles(beside, counts))
    print(table.line("", titles, titles), flush=True)
    for one in comparisons:
        stored = one.to_json()
        cells = (*table.cells(stored, columns), *table.more_cells(stored, beside, counts))
        print(table.line(one.name, cells, titles), flush=True)
        yield one


def _run_on_simulated_devices(
    suite: Suite, parsed: argparse.Namespace, interpreter: Sequence[str]
) -> None:
    """Run a suite in a fresh process, in which the CPU passes for several devices.

    XLA reads its flags when the first backend starts, and in this process one has.
    """
    if _SIMULATED in os.environ.get("XLA_FLAGS", "") and jax.default_backend() == "cpu":
        parsed.subparser.error(
            f"{suite.name} needs {suite.devices} devices, and {_SIMULATED} in XLA_FLAGS makes "
            f"{jax.device_count()}"
        )
    flags = f"{os.environ.get('XLA_FLAGS', '')} {_SIMULATED}={suite.devices}".strip()
    command = [sys.executable, *interpreter, "-m", "devicearray", "bench", suite.name]
    command += ["--rounds", f"{parsed.rounds}"]
    if parsed.output is not None:
        command += ["--output", f"{parsed.output}"]
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    status = subprocess.run(command, env=environment, check=False).returncode
    if status:
        sys.exit(status)


# What the command line may say.


def _suite(name: str) -> Suite:
    if name not in SUITES:
        raise argparse.ArgumentTypeError(
            f"there is no suite {name!r}, only {', '.join(SUITES)}.{did_you_mean(name, SUITES)}"
        )
    return SUITES[name]


def _rounds(text: str) -> int:
    try:
        rounds = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a whole number is needed, not {text!r}") from None
    if rounds < 1:
        raise argparse.ArgumentTypeError(f"there must be at least 1, not {rounds}")
    return rounds


def _folder(name: str) -> Path:
    path = Path(name)
    if not path.exists():
        parent = path.absolute().parent
        near = [one.name for one in parent.iterdir() if one.is_dir()] if parent.is_dir() else []
        raise argparse.ArgumentTypeError(
            f"there is no folder {name}.{did_you_mean(path.name, near)}"
        )
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{name} is a file, and a folder is needed")
    if not os.access(path, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{name} cannot be written to")
    return path
