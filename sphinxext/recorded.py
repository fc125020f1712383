"""Timelines on a page: drawn from recordings in ``benchmarks/results``.

``.. recorded:: loop_ahead`` draws the timeline of ``benchmarks/results/loop_ahead.json``, which
``Log.to_json`` wrote, and says under it on what it was recorded. matplotlib's ``plot`` directive
would run the program again whenever the site is built, on a machine that does other things as well,
and its picture would be of that; a picture file in the repository could be of anything.

The picture is put into the page as SVG, so that its text takes the page's colour in light and dark.
"""

from __future__ import annotations

import datetime
import io
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from devicearray import Log

_RESULTS = Path("benchmarks", "results")
_INCHES = (8.0, 3.2)


class Recorded(SphinxDirective):
    """The timeline of one recording."""

    required_arguments = 1
    has_content = False
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return the picture, and the line that says on what it was recorded."""
        path = Path(self.env.srcdir, _RESULTS, f"{self.arguments[0]}.json")
        self.env.note_dependency(str(path))
        if "alt" not in self.options:
            raise self.error("A timeline needs :alt: text, for those who cannot see it.")
        if not path.exists():
            raise self.error(f"{path.name} is not in {_RESULTS}: run `make bench`.")
        log = Log.from_json(path)
        picture = (
            f'<div class="timeline" role="img" aria-label="{escape(self.options["alt"])}">'
            f"{_svg(log)}</div>"
        )
        return [
            nodes.raw("", picture, format="html"),
            nodes.paragraph("", "", nodes.Text(_recorded_on(log)), classes=["recorded-on"]),
        ]


def _svg(log: Log) -> str:
    figure = Figure(figsize=_INCHES, layout="constrained")
    log.timeline().plot(figure.subplots())
    text = io.StringIO()
    # Without a date, the same recording gives the same page.
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]


def _recorded_on(log: Log) -> str:
    day = datetime.datetime.fromtimestamp(log.began, datetime.UTC).date().isoformat()
    devices = ", ".join(sorted({run.device for run in log.runs or ()}))
    return f"Recorded on {day} with jax {log.versions['jax']}, on {devices}."


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("recorded", Recorded)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
