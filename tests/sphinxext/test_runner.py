"""The runner of examples keeps the source of what it executes."""

import doctest
import inspect

from sphinxext.runner import CheckedRunner


def test_a_later_block_reads_the_source_of_an_earlier_one():
    runner = CheckedRunner()
    names = {"inspect": inspect}
    for text in (">>> def f():\n...     return 1", ">>> 0\n0\n>>> inspect.getsource(f)"):
        test = doctest.DocTestParser().get_doctest(text, {}, "default", "page.rst", 0)
        test.globs = names
        printed: list[str] = []
        runner.run(test, out=printed.append, clear_globs=False)
    assert repr("def f():\n    return 1\n") in "".join(printed)
