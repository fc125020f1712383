"""The numbers on a page are those of the results file, and say on what they were measured."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

RESULTS = {
    "title": "A benchmark",
    "columns": ["JAX", "ours", "ratio"],
    "environment": {
        "date": "2026-01-02",
        "machine": "x86_64, 2 cores, Linux",
        "device": "cpu",
        "python": "3.13.0",
        "jax": "0.12.0",
    },
    "comparisons": [
        {
            "name": "x + x",
            "first": [8e-6, 6e-6, 7e-6],
            "second": [4e-6, 5e-6, 5.5e-6],
            "ratio": [1.2, 1.4321, 1.6],
            "difference": [-2.2e-6, -2.1e-6, -1.5e-6],
        }
    ],
}


def build(site: Path, name: str, **changed: object) -> subprocess.CompletedProcess[str]:
    (site / "conf.py").write_text('extensions = ["sphinxext.measured"]\n', "utf-8")
    (site / "index.rst").write_text(f"Index\n=====\n\n.. measured:: {name}\n", "utf-8")
    (site / "benchmarks" / "results").mkdir(parents=True)
    results = site / "benchmarks" / "results" / "known.json"
    results.write_text(json.dumps(RESULTS | changed), "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-b", "text", str(site), str(site / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_table_shows_medians_ratio_and_environment(tmp_path):
    process = build(tmp_path, "known")
    assert process.returncode == 0, process.stderr
    text = (tmp_path / "out" / "index.txt").read_text("utf-8")
    for shown in ("x + x", "7.00", "5.00", "1.43", "1.20 to 1.60", "2026-01-02", "jax 0.12.0"):
        assert shown in text


def test_a_difference_is_shown_in_microseconds_where_it_is_what_counts(tmp_path):
    process = build(tmp_path, "known", columns=["without", "with", "difference"])
    assert process.returncode == 0, process.stderr
    text = (tmp_path / "out" / "index.txt").read_text("utf-8")
    for shown in ("without", "added", "-2.10", "-2.20 to -1.50"):
        assert shown in text


def test_missing_results_are_an_error_that_says_what_to_run(tmp_path):
    process = build(tmp_path, "unknown")
    assert process.returncode != 0
    assert "unknown.json" in process.stderr
    assert "make bench" in process.stderr
