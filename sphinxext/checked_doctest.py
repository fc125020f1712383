"""Sphinx's doctest builder with this site's checker and rules.

Prior art: `sphinx.ext.doctest` finds, groups and runs the examples of a page, and has no option for
the checker or the runner; both are named by one module global, which this extension rebinds. A copy
of the builder was refused. The builder's subclass adds three things: it can be told to run one page
only, it leaves docstrings to their own runner (a page shows them next to each other, yet each must
work alone), and it writes down what was executed.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import asdict
from typing import Any

import sphinx.ext.doctest
from docutils.nodes import Element, Node
from sphinx.application import Sphinx
from sphinx.ext.doctest import DocTestBuilder, SphinxDocTestRunner
from sphinx.util.typing import ExtensionMetadata

from .checker import OPTION_FLAGS
from .runner import CheckedRunner, Executed

EXECUTED_FILE = "executed.json"


class CheckedSphinxRunner(CheckedRunner, SphinxDocTestRunner):
    """Sphinx's runner, with this site's checker and rules."""


class CheckedDocTestBuilder(DocTestBuilder):
    """Sphinx's doctest builder, which writes down what it executed."""

    def init(self) -> None:
        """Begin with nothing executed."""
        super().init()
        self.executed: list[Executed] = []

    def write_documents(self, docnames: Set[str]) -> None:
        """Test the pages, or the one page that was asked for."""
        page = self.config.checked_doctest_page
        super().write_documents({page} & self.env.found_docs if page else docnames)

    def skipped(self, node: Element) -> bool:
        """Return whether a block is left out: so is one that came from a docstring."""
        return ":docstring of " in (node.source or "") or super().skipped(node)

    def test_doc(self, docname: str, doctree: Node) -> bool:
        """Test one page, and keep what its runner executed."""
        success = super().test_doc(docname, doctree)
        assert isinstance(self.test_runner, CheckedSphinxRunner)
        self.executed += self.test_runner.executed
        return success

    def finish(self) -> None:
        """Write the summary, and what was executed."""
        super().finish()
        executed: list[dict[str, Any]] = [asdict(block) for block in self.executed]
        self.outdir.joinpath(EXECUTED_FILE).write_text(json.dumps(executed), "utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Put the checked runner and builder in the place of Sphinx's."""
    app.setup_extension("sphinx.ext.doctest")
    sphinx.ext.doctest.SphinxDocTestRunner = CheckedSphinxRunner  # type: ignore[assignment, misc]
    app.add_builder(CheckedDocTestBuilder, override=True)
    app.add_config_value("checked_doctest_page", "", "", frozenset({str}))
    app.connect("config-inited", _set_flags)
    return {"version": "1", "parallel_read_safe": True}


def _set_flags(_app: Sphinx, config: Any) -> None:
    config.doctest_default_flags = OPTION_FLAGS
