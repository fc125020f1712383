"""The runner of examples: it enforces the site's rules and remembers what it executed.

Prior art: `doctest.DocTestRunner`, which Sphinx subclasses for its own reports. Both honour
``+SKIP`` and neither says which examples it executed, so a page can look tested and not be. This
runner is a mixin over either. It refuses directives that hide something by putting a failing
example in their place, so that a broken rule is reported where it stands, like any other failure. A
separate linter was refused: it would have to find and parse the examples a second time, and could
disagree with the runner.
"""

from __future__ import annotations

import doctest
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from .checker import CONFIG, MAY_VARY

_FORBIDDEN = {
    doctest.SKIP: "+SKIP hides an example",
    doctest.IGNORE_EXCEPTION_DETAIL: "+IGNORE_EXCEPTION_DETAIL lets a wrong message pass",
}


@dataclass(frozen=True)
class Executed:
    """The examples of one block that were executed, and where the block is said to be."""

    filename: str
    line: int
    examples: list[tuple[int, str]]  # the offset in the block, and the first line of the source


class CheckedRunner(doctest.DocTestRunner):
    """A runner with this site's checker and rules.

    Attributes
    ----------
    executed : list of Executed
        What was executed so far, block by block.
    """

    def __init__(self, verbose: bool | None = False, optionflags: int = CONFIG.optionflags) -> None:
        super().__init__(CONFIG.CheckerKlass(CONFIG), verbose, optionflags)
        self.executed: list[Executed] = []

    def run(
        self,
        test: doctest.DocTest,
        compileflags: int | None = None,
        out: Callable[[str], Any] | None = None,
        clear_globs: bool = True,
    ) -> doctest.TestResults:
        """Run the examples of `test`, each that breaks a rule replaced by one that says so."""
        test.examples = list(_within_rules(test.examples))
        test.name = f"{test.name}, block {len(self.executed) + 1}"
        _keep_sources(test)
        self.executed.append(Executed(test.filename or "", test.lineno or 0, []))
        return super().run(test, compileflags, out, clear_globs)

    def report_start(
        self, out: Callable[[str], Any], test: doctest.DocTest, example: doctest.Example
    ) -> None:
        """Note an example that is about to be executed; `doctest` calls this for no other."""
        self.executed[-1].examples.append((example.lineno, _first_line(test, example)))
        super().report_start(out, test, example)


def _keep_sources(test: doctest.DocTest) -> None:
    """Let a later block read the source of a function that this one defines.

    `doctest` knows the source of the block that is running only. What it executes is named after
    the block, so each needs a name of its own.
    """
    for number, example in enumerate(test.examples):
        name = f"<doctest {test.name}[{number}]>"
        lines = example.source.splitlines(keepends=True)
        linecache.cache[name] = len(example.source), None, lines, name


def _first_line(test: doctest.DocTest, example: doctest.Example) -> str:
    # The block's own text: an example that breaks a rule no longer has its source.
    lines = (test.docstring or "").splitlines()
    line = lines[example.lineno] if example.lineno < len(lines) else ""
    return line.strip().removeprefix(">>>").strip()


def _within_rules(examples: list[doctest.Example]) -> Iterator[doctest.Example]:
    for example, following in zip_longest(examples, examples[1:]):
        if problem := _broken_rule(example, following):
            yield doctest.Example(
                f"raise SyntaxError({problem!r})",
                example.want,
                None,
                example.lineno,
                example.indent,
            )
        else:
            yield example


def _broken_rule(example: doctest.Example, following: doctest.Example | None) -> str | None:
    for flag, why in _FORBIDDEN.items():
        if example.options.get(flag):
            return f"{why}, and this site hides nothing"
    if MAY_VARY in example.source:
        return f"'{MAY_VARY}' belongs to the output, not to the source"
    if MAY_VARY in example.want and not _asserts(following):
        return f"'{MAY_VARY}' needs an assert, or a comparison that prints True, right after it"
    return None


def _asserts(example: doctest.Example | None) -> bool:
    if example is None:
        return False
    return example.source.startswith("assert ") or example.want == "True\n"
