"""Run the examples of one file that is not a page: a Markdown file's, or a module's docstrings'.

``python -m sphinxext.plain_doctest FILE EXECUTED`` runs FILE's examples and writes what was
executed to EXECUTED. A Markdown file is one program, as its reader would type it; each docstring is
a program of its own, with an empty namespace, so that it can be pasted.

Prior art: `doctest.DocTestFinder` imports a module and walks its objects, so it misses what it
cannot reach and takes in docstrings that were copied from elsewhere; and `doctest.testfile` reads a
code fence's end as output. Here docstrings come from the module's syntax tree and code fences from
a Markdown parser, which also gives their exact lines.
"""

from __future__ import annotations

import ast
import doctest
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from .runner import CheckedRunner

_PARSER = doctest.DocTestParser()
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def main(file: str, executed: str) -> int:
    """Run the examples of a file; return how many failed."""
    runner = CheckedRunner()
    for test in _doctests(Path(file)):
        runner.run(test, clear_globs=False)
    blocks = [asdict(block) for block in runner.executed]
    Path(executed).write_text(json.dumps(blocks), "utf-8")
    return runner.summarize().failed


def _doctests(path: Path) -> Iterator[doctest.DocTest]:
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        for name, docstring, line in _docstrings(ast.parse(text)):
            yield _PARSER.get_doctest(docstring, _namespace(), name, str(path), line - 1)
    else:
        namespace = _namespace()
        for token in MarkdownIt().parse(text):
            if token.type == "fence" and token.map:
                start = token.map[0] + 1
                test = _PARSER.get_doctest(token.content, {}, path.name, str(path), start)
                # `DocTest` copies the namespace it is given; the blocks of a file share theirs.
                test.globs = namespace
                yield test


def _namespace() -> dict[str, Any]:
    return {"__name__": "__main__"}


def _docstrings(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Yield the name, the text and the first line of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
            yield getattr(node, "name", "the module"), text, node.body[0].lineno


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) != 0)
