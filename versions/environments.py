"""Which releases of JAX install here, and an environment with each of them.

All but JAX is as in requirements.txt, so that what differs between two environments is JAX. An
environment that is there and was made for the same releases and requirements is used again.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_READY = "ready"


@dataclass(frozen=True)
class Release:
    """A release of JAX, with the jaxlib that pip installs beside it."""

    jax: str
    jaxlib: str

    @property
    def minor(self) -> str:
        """The first two numbers of the version."""
        return ".".join(self.jax.split(".")[:2])


def newest(count: int) -> list[Release]:
    """Return the newest release of each of the newest `count` minor versions, newest first."""
    releases: list[Release] = []
    below = ""
    for _ in range(count):
        releases.append(_resolve(f"jax{below}"))
        below = f"<{releases[-1].minor}"
    return releases


def newest_of(version: str) -> Release:
    """Return the newest release whose version begins with `version`."""
    return _resolve(f"jax=={version}.*")


def _resolve(requirement: str) -> Release:
    """Ask pip what it would install for `requirement`, with this Python on this machine."""
    options = ("--dry-run", "--ignore-installed", "--quiet", "--report", "-")
    process = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SystemExit(
            f"{process.stderr}pip finds no release for {requirement!r}. It needs a package index, "
            "so a network, and a release that is built for this Python and this machine."
        )
    packages = [item["metadata"] for item in json.loads(process.stdout)["install"]]
    versions = {package["name"]: package["version"] for package in packages}
    return Release(versions["jax"], versions["jaxlib"])


def environment(release: Release) -> Path:
    """Return the Python of an environment with `release`, made first if it is not there."""
    folder = ROOT / ".venv" / f"jax-{release.minor}"
    python = folder / "bin" / "python"
    pins, names = list(_pins()), list(_names())
    state = json.dumps(
        [str(ROOT), platform.python_version(), release.jax, release.jaxlib, pins, names]
    )
    ready = folder / _READY
    install = (str(python), "-m", "pip", "install", "--quiet")
    if not ready.exists() or ready.read_text("utf-8") != state:
        print(f"Setting up {folder.relative_to(ROOT)}, once; this takes a minute.", flush=True)
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(pins), "utf-8")
        jax = (f"jax=={release.jax}", f"jaxlib=={release.jaxlib}")
        _run(*install, "--constraint", str(constraints), *jax, *names)
        ready.write_text(state, "utf-8")
    # Each time: the package's entry points may have changed.
    _run(*install, "--no-build-isolation", "--no-deps", "--editable", str(ROOT))
    return python


def _run(*command: str) -> None:
    """Run a command; its failure ends the program, after what it printed."""
    if subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit(f"Failed: {' '.join(command)}")


def _pins() -> Iterator[str]:
    """Yield the pins of requirements.txt but for JAX's own."""
    for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines():
        if "==" in line and line.partition("==")[0] not in ("jax", "jaxlib"):
            yield line


def _names() -> Iterator[str]:
    """Yield what pyproject.toml says the package and its tests need, without versions."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings: dict[str, Any] = tomllib.load(file)
    project, groups = settings["project"], settings["dependency-groups"]
    lists = (*project["optional-dependencies"].values(), groups["build"], groups["test"])
    for needed in lists:
        yield from needed
    yield from (one for one in project["dependencies"] if not one.startswith("jax"))
