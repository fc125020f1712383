"""Measured numbers on a page: read from ``benchmarks/results``, never typed.

``.. measured:: overhead`` becomes a table of what ``benchmarks/results/overhead.json`` holds, with
the machine, the versions and the date under it. Sphinx has ``csv-table``, which would need a second
file of the same numbers, and substitutions, which name one number at a time; a table of
measurements that does not say on what they were made is worth nothing, so the two belong together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from devicearray._bench.table import Columns, cells, result_title

_RESULTS = Path("benchmarks", "results")


class Measured(SphinxDirective):
    """The table of one benchmark."""

    required_arguments = 1
    has_content = False
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the table, and the line that says on what it was measured."""
        path = Path(self.env.srcdir, _RESULTS, f"{self.arguments[0]}.json")
        self.env.note_dependency(str(path))
        try:
            results = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise self.error(f"{path.name} is not in {_RESULTS}: run `make bench`.") from None
        lines = [*_table(results), "", _measured_on(results["environment"])]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source=str(path)), 0, container)
        children: list[nodes.Node] = list(container.children)
        return children


def _table(results: dict[str, Any]) -> list[str]:
    columns = results["columns"]
    first, second, _ = columns
    unit = "" if columns[2] == "ratio" else " (μs)"
    result = f"{result_title(columns)}{unit}"
    header = ("", f"{first} (μs)", f"{second} (μs)", result, "quartiles")
    rows = [header, *(_row(one, columns) for one in results["comparisons"])]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return lines


def _row(one: dict[str, Any], columns: Columns) -> tuple[str, ...]:
    return (f"``{one['name']}``", *cells(one, columns))


def _measured_on(environment: dict[str, str]) -> str:
    return (
        f"Measured on {environment['date']} with jax {environment['jax']} on a device of kind "
        f"*{environment['device']}* ({environment['machine']}), Python {environment['python']}."
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
