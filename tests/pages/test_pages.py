"""Every page, README.md and every docstring, each alone in a fresh process."""

from pathlib import Path

import pytest

from sphinxext import examples

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(reader_environment, tmp_path_factory):
    """Return where the site was read to: a folder that no other process uses."""
    folder = tmp_path_factory.mktemp("site")
    examples.read_site(ROOT, reader_environment, folder)
    return folder


@pytest.mark.parametrize("file", examples.find_files(ROOT), ids=str)
def test_every_example_is_executed_and_shows_its_true_output(file, reader_environment, site):
    outcome = examples.run(ROOT, file, reader_environment, site)
    assert outcome.ok, outcome.problems
