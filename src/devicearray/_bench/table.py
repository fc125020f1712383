"""What a stored comparison looks like as a line of a table, printed or on a page.

The command prints a line as soon as it is measured, and a page shows the same lines from a file, so
both read the stored form, and that is all this module knows. rich and tabulate align tables that
are complete, which these are not before the last line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

__all__ = ["Columns", "cells", "line", "more_cells", "more_titles", "result_title", "titles"]

#: What a table calls the first and the second, and what is to be seen in it: "ratio", the first
#: over the second, or "difference", the second less the first.
type Columns = tuple[str, str, str] | list[str]

#: Stands where nothing was measured.
_NONE: Final = "-"
_NAME_WIDTH: Final = 48
_WIDTHS: Final = {"quartiles": 18}
_WIDTH: Final = 12


def result_title(columns: Columns) -> str:
    """Return what the third column of a table is called."""
    first, second, result = columns
    return f"{first} / {second}" if result == "ratio" else "added"


def titles(columns: Columns) -> tuple[str, str, str, str]:
    """Return the titles of what `cells` returns."""
    first, second, _ = columns
    return f"{first}, us", f"{second}, us", result_title(columns), "quartiles"


def cells(stored: Mapping[str, Any], columns: Columns) -> tuple[str, str, str, str]:
    """Return both times in microseconds, the result, and its quartiles.

    Examples
    --------
    >>> from devicearray._bench.table import cells
    >>> stored = {"first": [3e-6, 2e-6], "second": [1e-6, 1e-6], "ratio": [2.25, 2.5, 2.75]}
    >>> cells(stored, ("JAX", "ours", "ratio"))
    ('2.50', '1.00', '2.50', '2.25 to 2.75')
    """
    is_ratio = columns[2] == "ratio"
    result = [_digits(value if is_ratio else 1e6 * value) for value in stored[columns[2]]]
    low, median, high = result or (_NONE,) * 3
    quartiles = f"{low} to {high}" if result else _NONE
    return _microseconds(stored["first"]), _microseconds(stored["second"]), median, quartiles


def more_titles(beside: Sequence[str], counts: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of what `more_cells` returns."""
    return (*(f"{name}, us" for name in beside), *counts)


def more_cells(
    stored: Mapping[str, Any], beside: Sequence[str], counts: Sequence[str]
) -> tuple[str, ...]:
    """Return the times of others in microseconds, and what was counted of both: ``"200, 0"``."""
    times = (_microseconds(stored["beside"].get(name, ())) for name in beside)
    return (*times, *(_pair(stored["counts"].get(name)) for name in counts))


def line(name: str, cells: Sequence[str], titles: Sequence[str]) -> str:
    """Return a printed line. How wide a column is, its title says."""
    widths = (max(_WIDTHS.get(title, _WIDTH), len(title)) for title in titles)
    shown = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join([name.ljust(_NAME_WIDTH), *shown]).rstrip()


def _microseconds(samples: Sequence[float]) -> str:
    return _digits(1e6 * float(np.median(samples))) if len(samples) else _NONE


def _digits(number: float) -> str:
    return f"{number:.2f}" if abs(number) < 1000 else f"{number:,.0f}"


def _pair(counted: Sequence[int | None] | None) -> str:
    if counted is None:
        return _NONE
    return ", ".join("unknown" if number is None else f"{number}" for number in counted)
