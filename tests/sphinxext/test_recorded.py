"""A timeline on a page is drawn from a recording, and says on what it was recorded."""

import subprocess
import sys
from pathlib import Path

import pytest

from devicearray import Compile, Log, Run

ROOT = Path(__file__).parents[2]

LOG = Log(
    began=1_767_312_000.0,  # 2026-01-02
    seconds=0.5,
    events=[
        Compile(
            start=0.1,
            end=0.2,
            thread=1,
            site=None,
            name="step",
            outputs=1,
            persistent_cache_hit=False,
        )
    ],
    threads={1: "MainThread"},
    runs=[Run(program="jit_step", device="cpu:0", start=0.3, finish=0.4)],
    versions={"jax": "0.12.0"},
)


def build(site: Path, directive: str) -> subprocess.CompletedProcess[str]:
    (site / "conf.py").write_text('extensions = ["sphinxext.recorded"]\n', "utf-8")
    (site / "index.rst").write_text(f"Index\n=====\n\n{directive}\n", "utf-8")
    (site / "benchmarks" / "results").mkdir(parents=True)
    LOG.to_json(site / "benchmarks" / "results" / "known.json")
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-b", "html", str(site), str(site / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_has_the_picture_its_text_and_where_it_was_recorded(tmp_path):
    process = build(tmp_path, '.. recorded:: known\n   :alt: A compile & a "run".')
    assert process.returncode == 0, process.stderr
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert 'aria-label="A compile &amp; a &quot;run&quot;."' in page
    assert "<svg" in page
    assert "Recorded on 2026-01-02 with jax 0.12.0, on cpu:0." in page


@pytest.mark.parametrize(
    ("directive", "complaint"),
    [
        (".. recorded:: known", "needs :alt: text"),
        (".. recorded:: unknown\n   :alt: x", "run `make bench`"),
    ],
)
def test_what_is_missing_is_an_error_that_says_what_to_do(tmp_path, directive, complaint):
    process = build(tmp_path, directive)
    assert process.returncode != 0
    assert complaint in process.stderr
