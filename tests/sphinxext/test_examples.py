"""A small site with one thing wrong must fail, and say where."""

import textwrap
from pathlib import Path

import pytest

from sphinxext import examples

CONF = 'extensions = ["sphinxext.checked_doctest"]\n'
PAGE = Path("notes", "page.rst")
README = Path("README.md")
MODULE = Path("src", "module.py")


def run(root, file, text, env):
    """Run the examples of `text`, written to `file` in a site of its own."""
    (root / "conf.py").write_text(CONF)
    (root / "index.rst").write_text("Index\n=====\n\n.. toctree::\n   :glob:\n\n   notes/*\n")
    (root / file).parent.mkdir(exist_ok=True)
    (root / file).write_text(text)
    if file == PAGE:
        examples.read_site(root, env)
    return examples.run(root, file, env)


def page(text):
    return "Page\n====\n\n" + textwrap.dedent(text)


def readme(text):
    return "# Title\n\n```pycon\n" + textwrap.dedent(text).strip("\n") + "\n```\n"


def module(text):
    return '"""A module.\n\n' + textwrap.dedent(text).strip("\n") + '\n"""\n'


FORMS = [
    pytest.param(PAGE, page, id="page"),
    pytest.param(README, readme, id="readme"),
    pytest.param(MODULE, module, id="docstring"),
]


@pytest.mark.parametrize(("file", "form"), FORMS)
def test_a_right_file_passes(tmp_path, reader_environment, file, form):
    text = form(
        """
        >>> import numpy as np
        >>> x = np.float32(1) / 3
        >>> x
        np.float32(0.33333)
        >>> for _ in range(2):
        ...     print(x.dtype)
        float32
        float32
        >>> int("one")
        Traceback (most recent call last):
        ValueError: invalid literal for int() with base 10: 'one'
        >>> float(x)
        0.1234  # may vary
        >>> assert x > 0
        """
    )
    outcome = run(tmp_path, file, text, reader_environment)
    assert outcome.problems == ""
    assert outcome.executed == outcome.prompts == 7


@pytest.mark.parametrize(("file", "form"), FORMS)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(">>> 1 / 3\n0.3343", "0.3343", id="a wrong float"),
        pytest.param(
            '>>> int("one")\nTraceback (most recent call last):\nValueError: no number',
            "ValueError: no number",
            id="a wrong message",
        ),
        pytest.param(">>> 1  # doctest: +SKIP\n1", "+SKIP hides an example", id="skipped"),
        pytest.param(
            '>>> int("one")  # doctest: +IGNORE_EXCEPTION_DETAIL\n'
            "Traceback (most recent call last):\nValueError: no number",
            "+IGNORE_EXCEPTION_DETAIL lets",
            id="a hidden message",
        ),
        pytest.param(">>> 2\n3  # may vary", "needs an assert", id="varies unchecked"),
        pytest.param(
            ">>> 2\n3  # may vary\n>>> x = 1\n>>> assert x", "needs an assert", id="checked late"
        ),
        pytest.param(">>> 2  # may vary\n2", "belongs to the output", id="varies at the source"),
    ],
)
def test_a_wrong_example_fails(tmp_path, reader_environment, file, form, text, says):
    outcome = run(tmp_path, file, form(text), reader_environment)
    assert says in outcome.problems
    assert not outcome.ok


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        pytest.param(PAGE, page(".. code-block:: pycon\n\n   >>> 1\n   2\n"), 6, id="code-block"),
        pytest.param(PAGE, page("Look::\n\n   >>> 1\n   2\n"), 6, id="literal block"),
        pytest.param(PAGE, page(".. comment\n   >>> 1\n   2\n"), 5, id="comment"),
        pytest.param(
            PAGE,
            page(">>> 1\n1\n\nAgain::\n\n   >>> 1\n   1\n\nAnd again\n\n>>> 1\n1\n"),
            9,
            id="between blocks of the same text",
        ),
        pytest.param(
            PAGE,
            page(".. doctest::\n   :skipif: True\n\n   >>> 1\n   2\n"),
            7,
            id="skipped by a condition",
        ),
        pytest.param(README, "Text\n\n>>> 1\n", 3, id="outside a fence"),
        pytest.param(MODULE, 'TEXT = """\n>>> 1\n"""\n', 2, id="in no docstring"),
    ],
)
def test_a_prompt_that_is_not_executed_is_named(tmp_path, reader_environment, file, text, line):
    outcome = run(tmp_path, file, text, reader_environment)
    assert not outcome.ok
    assert outcome.problems.startswith(f"{file}:{line}: no runner executed this prompt: >>> 1")
    assert outcome.problems.count("no runner executed") == 1


def test_a_page_outside_the_site_is_not_executed(tmp_path, reader_environment):
    (tmp_path / "conf.py").write_text(CONF)
    env = reader_environment
    assert run(tmp_path, PAGE, page(">>> 1\n1\n"), env).ok
    with (tmp_path / "conf.py").open("a") as conf:
        conf.write('exclude_patterns = ["notes"]\n')
    examples.read_site(tmp_path, env)
    assert "page.rst:4: no runner" in examples.run(tmp_path, PAGE, env).problems


def test_a_page_does_not_see_another(tmp_path, reader_environment):
    other = tmp_path / "notes" / "another.rst"
    other.parent.mkdir()
    other.write_text(page(">>> import builtins\n>>> builtins.leaked = 1\n"))
    outcome = run(tmp_path, PAGE, page(">>> leaked\n1\n"), reader_environment)
    assert "NameError: name 'leaked' is not defined" in outcome.problems


def test_a_docstring_does_not_see_another(tmp_path, reader_environment):
    text = 'def f():\n    """F.\n\n    >>> x = 1\n    """\n\n'
    text += 'class C:\n    """C.\n\n    >>> x\n    """\n'
    outcome = run(tmp_path, MODULE, text, reader_environment)
    assert "NameError: name 'x' is not defined" in outcome.problems
    assert outcome.executed == outcome.prompts == 2


def test_the_command_prints_each_file_and_the_sum(
    tmp_path, reader_environment, monkeypatch, capsys
):
    run(tmp_path, PAGE, page(">>> 1\n1\n\n>>> 2\n2\n"), reader_environment)
    monkeypatch.chdir(tmp_path)
    assert examples.main() == 0
    assert "2 of 2 prompts executed, in 1 files." in capsys.readouterr().out
    (tmp_path / PAGE).write_text(page(">>> 1\n2\n"))
    assert examples.main() == 1
    assert "Problems in: notes/page.rst" in capsys.readouterr().out
