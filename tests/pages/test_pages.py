"""Every page, README.md and every docstring, each alone in a fresh process."""

from pathlib import Path

import pytest

from sphinxext import examples

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _site(reader_environment):
    examples.read_site(ROOT, reader_environment)


@pytest.mark.parametrize("file", examples.find_files(ROOT), ids=str)
def test_every_example_is_executed_and_shows_its_true_output(file, reader_environment):
    outcome = examples.run(ROOT, file, reader_environment)
    assert outcome.ok, outcome.problems
