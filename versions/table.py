"""The results as the Markdown that stands in README.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

BEGIN: Final = "<!-- Made by `make versions`; do not edit. -->"
END: Final = "<!-- The end of what `make versions` made. -->"


def replace_table(text: str, releases: Sequence[Mapping[str, Any]]) -> str:
    """Return `text` with the table of `releases` between the two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"README.md has lost its marks: {BEGIN} and {END}")
    return f"{before}{begin}\n{table(releases)}\n{end}{after}"


def table(releases: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, with what does not hold and what was not tested below it."""
    areas = dict.fromkeys(area for release in releases for area in release["areas"])
    rows = [
        ["What holds", *(f"JAX {release['jax']}" for release in releases)],
        ["---"] * (len(releases) + 1),
        *([area, *(_cell(release["areas"].get(area)) for release in releases)] for area in areas),
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", *map(_tested, releases), *_footnotes(releases)])


def _cell(area: Mapping[str, Any] | None) -> str:
    passed, failed = (area["passed"], len(area["failed"])) if area else (0, 0)
    if not passed + failed:
        return "not tested"
    return f"{passed} of {passed + failed}" if failed else f"yes ({passed})"


def _tested(release: Mapping[str, Any]) -> str:
    return (
        f"- JAX {release['jax']}: with jaxlib {release['jaxlib']}, NumPy {release['numpy']} and "
        f"Python {release['python']}, on {release['date']} ({release['machine']})."
    )


def _footnotes(releases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    everywhere = set.intersection(*(set(_reasons(release)) for release in releases))
    for release in releases:
        for fact in release["lost"]:
            yield f"- JAX {release['jax']} does not record {fact}."
        for area in release["areas"].values():
            for test, reason in area["failed"].items():
                yield f"- JAX {release['jax']} fails `{test}`: `{reason}`"
        for reason, count in _reasons(release).items():
            if reason not in everywhere:
                yield f"- JAX {release['jax']} skips {count}: {reason}."


def _reasons(release: Mapping[str, Any]) -> Counter[str]:
    """Count the tests that `release` skips, by their reason."""
    return Counter(
        reason for area in release["areas"].values() for reason in area["skipped"].values()
    )
