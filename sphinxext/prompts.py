"""Find the prompts of a file, and those that no runner executed.

Sphinx ignores a prompt in a ``code-block``, in a literal block and in a page that conf.py excludes;
a docstring's prompt is ignored if the object is not found. What is ignored is not tested, and
nothing says so. Here the text of the file is the authority: each line that begins with a prompt
must have been executed. Counting alone was refused: a number does not say which line to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .runner import Executed

_PROMPT = re.compile(r"^\s*>>>(?:\s+(.*))?$")


def find_prompts(path: Path) -> dict[int, str]:
    """Return what stands behind each prompt of a file, by line number from 1."""
    matches = enumerate(map(_PROMPT.match, path.read_text("utf-8").splitlines()), start=1)
    return {line: (match[1] or "").strip() for line, match in matches if match}


def executed_lines(prompts: dict[int, str], blocks: Iterable[Executed]) -> set[int]:
    """Return the lines of the prompts that the blocks hold.

    A runner knows a block's text exactly, but its place only roughly: docutils is a few lines off,
    not by the same number for each kind of node. So a block is looked for by its text, and the
    place only decides between blocks of the same text.
    """
    lines: set[int] = set()
    for block in blocks:
        places = [
            shift
            for shift in _shifts(prompts, block)
            if all(prompts.get(offset + shift) == source for offset, source in block.examples)
            and not any(offset + shift in lines for offset, _ in block.examples)
        ]
        if places:
            shift = min(places, key=lambda shift: abs(shift - block.line))
            lines.update(offset + shift for offset, _ in block.examples)
    return lines


def _shifts(prompts: dict[int, str], block: Executed) -> list[int]:
    if not block.examples:
        return []
    offset = block.examples[0][0]
    return [line - offset for line in prompts]
