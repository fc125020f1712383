"""Run every example of the site, each file's alone in a fresh process.

``python -m sphinxext.examples [FILE ...]`` runs the examples of the given files, or of all: pages,
README.md and the package's docstrings. It prints how many each file has, and fails if one fails or
if a prompt was not executed.

Prior art: ``sphinx-build -b doctest`` tests all pages in one process, where a page can live on what
an earlier one imported, configured or compiled. A reader has one page and a fresh interpreter, so
each file gets the same here. The site is read once, in a process of its own, since reading imports
the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .checked_doctest import EXECUTED_FILE
from .prompts import executed_lines, find_prompts
from .runner import Executed

_PATTERNS = ("*.md", "*.rst", "notes/**/*.md", "notes/**/*.rst", "src/**/*.py")
_BUILD = Path("_build", "doctest")


@dataclass(frozen=True)
class Outcome:
    """What came of one file's examples."""

    file: Path
    prompts: int
    executed: int
    seconds: float
    problems: str

    @property
    def ok(self) -> bool:
        """Whether every example was executed and none failed."""
        return not self.problems


def find_files(root: Path) -> list[Path]:
    """Return the files under `root` that have examples, relative to it, in order."""
    files = {file for pattern in _PATTERNS for file in root.glob(pattern)}
    return sorted(file.relative_to(root) for file in files if find_prompts(file))


def read_site(root: Path, env: Mapping[str, str] = os.environ, build: Path = _BUILD) -> None:
    """Let Sphinx read the pages, as `run` needs it; raise `RuntimeError` if it cannot."""
    process = _python(root, env, "sphinx", *_sphinx_options("dummy", build))
    if process.returncode:
        raise RuntimeError(f"Sphinx could not read the site:\n{process.stdout}")


def run(
    root: Path, file: Path, env: Mapping[str, str] = os.environ, build: Path = _BUILD
) -> Outcome:
    """Run the examples of one file in a fresh process.

    Parameters
    ----------
    root : Path
        Sphinx's source directory.
    file : Path
        The file, relative to `root`.
    env : mapping
        The environment of the process.
    build : Path
        Where `read_site` put what it read, relative to `root` or not. Only one file's examples
        run there at a time.
    """
    start = time.perf_counter()
    out = root / build / "out"
    out.mkdir(parents=True, exist_ok=True)
    ledger = out / EXECUTED_FILE
    ledger.unlink(missing_ok=True)
    if _is_page(file):
        page = f"checked_doctest_page={file.with_suffix('').as_posix()}"
        process = _python(root, env, "sphinx", *_sphinx_options("doctest", build), "-D", page)
    else:
        process = _python(root, env, "sphinxext.plain_doctest", str(file), str(ledger))

    blocks = json.loads(ledger.read_text("utf-8")) if ledger.exists() else []
    prompts = find_prompts(root / file)
    executed = executed_lines(
        prompts, (Executed(**block) for block in blocks if Path(block["filename"]) == file)
    )
    problems = process.stdout if process.returncode else ""
    for line in sorted(prompts.keys() - executed):
        problems += f"{file}:{line}: no runner executed this prompt: >>> {prompts[line]}\n"
    return Outcome(file, len(prompts), len(executed), time.perf_counter() - start, problems)


def _is_page(file: Path) -> bool:
    """Return whether Sphinx runs the file: at the root, Markdown is not part of the site."""
    return file.suffix == ".rst" or (file.suffix == ".md" and file.parts[0] == "notes")


def _sphinx_options(builder: str, build: Path) -> Iterator[str]:
    doctrees, out = str(build / "doctrees"), str(build / "out")
    # The tag tells conf.py that notebooks need not be executed.
    yield from ("-q", "-t", "doctest", "-b", builder, "-d", doctrees, ".", out)


def _python(
    root: Path, env: Mapping[str, str], module: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of this interpreter's in `root`, where it also finds this package."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=root,
        env={**env, "PYTHONPATH": path.strip(os.pathsep)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def main(*names: str) -> int:
    """Run the examples of the named files, or of all; return 1 if anything is wrong, else 0."""
    root = Path.cwd()
    files = [Path(name) for name in names] or find_files(root)
    if any(map(_is_page, files)):
        read_site(root)
    print("executed  prompts  seconds  file")
    outcomes = []
    for file in files:
        outcome = run(root, file)
        outcomes.append(outcome)
        print(
            f"{outcome.executed:8}  {outcome.prompts:7}  {outcome.seconds:7.1f}  {file}", flush=True
        )
        if not outcome.ok:
            print(outcome.problems, flush=True)
    executed = sum(outcome.executed for outcome in outcomes)
    prompts = sum(outcome.prompts for outcome in outcomes)
    failed = [str(outcome.file) for outcome in outcomes if not outcome.ok]
    print(f"{executed} of {prompts} prompts executed, in {len(outcomes)} files.")
    if failed:
        print("Problems in: " + ", ".join(failed))
    return 1 if failed or executed != prompts else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
