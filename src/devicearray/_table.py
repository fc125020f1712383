"""A log as a table: where the program waited, worst line first, and what else it did.

A loop waits a thousand times on one line, so lines are what is listed, with the sum of their
waits; a list of events was refused, since its length says nothing and hides everything. The rest is
given by program, since a program is dispatched from many lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from devicearray._events import Compile, Dispatch, Event, HostSync, Transfer, missing
from devicearray._units import bytes_text, counted, seconds_text

if TYPE_CHECKING:
    from devicearray._log import Log

__all__ = ["render", "summary"]

#: Lines of one part of the table, before the rest is summed up.
_MOST_ROWS: Final = 20
#: Characters of a line of source.
_LONGEST_SOURCE: Final = 60
_NO_SITE: Final = "(no line of yours)"
_NOT_RECORDED: Final = "not recorded"

Row = tuple[str, ...]


def render(log: Log) -> str:
    """Return the table."""
    parts = [_heading(log), _syncs(log), _compiles(log), _dispatches(log), _transfers(log)]
    parts += [f"Not recorded: {lost} (no {name})" for lost, name in log.not_recorded.items()]
    return "\n\n".join(part for part in parts if part)


def summary(log: Log) -> str:
    """Return the numbers of events, in words."""
    syncs, compiles = _of(log, HostSync), _of(log, Compile)
    waited = sum(sync.waited for sync in syncs)
    compiling = sum(one.seconds for one in compiles)
    return ", ".join(
        [
            _number(log, len(syncs), "host sync", "host syncs")
            + (f" ({seconds_text(waited)})" if syncs else ""),
            counted(len(compiles), "compile")
            + (f" ({seconds_text(compiling)})" if compiles else ""),
            _number(log, len(_of(log, Dispatch)), "dispatch", "dispatches"),
            _number(log, len(_of(log, Transfer)), "transfer", "transfers"),
        ]
    )


def _number(log: Log, number: int, noun: str, plural: str) -> str:
    """Return the number of events of a kind, and say so if it may be too small."""
    if missing(plural, log.not_recorded) is None:
        return counted(number, noun, plural)
    return f"at least {counted(number, noun, plural)}" if number else f"{plural} {_NOT_RECORDED}"


def _of[E: Event](log: Log, kind: type[E]) -> list[E]:
    # Not log.syncs and its like: a table says itself what was not recorded.
    return [event for event in log.events if isinstance(event, kind)]


def _heading(log: Log) -> str:
    length = "so far" if log.seconds is None else f"in {seconds_text(log.seconds)}"
    return f"{summary(log)}, {length}"


def _syncs(log: Log) -> str:
    groups = _grouped(_of(log, HostSync), lambda sync: (sync.site, sync.trigger))
    worst = sorted(groups, key=lambda group: -sum(sync.waited for sync in group))
    rows = [
        (
            seconds_text(sum(sync.waited for sync in group)),
            f"{len(group):,}",
            _count_not_ready(group),
            bytes_text(sum(sync.nbytes for sync in group)),
            group[0].trigger,
            _where(group[0]),
        )
        for group in worst
    ]
    header = ("waited", "times", "not ready", "read", "by", "line")
    return _part("Host syncs, the longest wait first", header, rows, right=4)


def _count_not_ready(group: Sequence[HostSync]) -> str:
    unknown = sum(sync.was_ready is None for sync in group)
    if unknown == len(group):
        return _NOT_RECORDED
    count = f"{sum(sync.was_ready is False for sync in group):,}"
    return f"{count} (+{unknown:,}?)" if unknown else count


def _compiles(log: Log) -> str:
    rows = [
        (
            seconds_text(one.seconds) + (", from the cache" if one.persistent_cache_hit else ""),
            _NOT_RECORDED if one.outputs is None else f"{one.outputs:,}",
            one.name,
            _where(one),
        )
        for one in sorted(_of(log, Compile), key=lambda one: -one.seconds)
    ]
    return _part("Compiles", ("took", "outputs", "program", "line"), rows, right=2)


def _dispatches(log: Log) -> str:
    groups = _grouped(_of(log, Dispatch), lambda one: one.name)
    rows = [
        (
            f"{len(group):,}",
            f"{sum(one.host_arguments for one in group):,}",
            bytes_text(sum(one.host_bytes for one in group)),
            group[0].name,
            _lines(group),
        )
        for group in sorted(groups, key=lambda group: -len(group))
    ]
    header = ("times", "host arguments", "moved", "program", "line")
    return _part("Dispatches", header, rows, right=3)


def _transfers(log: Log) -> str:
    groups = _grouped(_of(log, Transfer), lambda one: (one.direction, one.site, one.trigger))
    rows = [
        (
            bytes_text(sum(one.nbytes for one in group)),
            f"{sum(one.arrays for one in group):,}",
            group[0].direction,
            group[0].trigger,
            _where(group[0]),
        )
        for group in sorted(groups, key=lambda group: -sum(one.nbytes for one in group))
    ]
    header = ("moved", "arrays", "direction", "by", "line")
    return _part("Transfers", header, rows, right=2)


def _grouped[E: Event](events: Iterable[E], key: Callable[[E], Hashable]) -> list[list[E]]:
    groups: dict[Hashable, list[E]] = defaultdict(list)
    for event in events:
        groups[key(event)].append(event)
    return list(groups.values())


def _where(event: Event) -> str:
    if event.site is None:
        return _NO_SITE
    source = event.site.source
    if len(source) > _LONGEST_SOURCE:
        source = source[: _LONGEST_SOURCE - 3] + "..."
    return f"{event.site}: {source}" if source else str(event.site)


def _lines(group: Sequence[Event]) -> str:
    sites = dict.fromkeys(event.site for event in group)
    more = f" and {counted(len(sites) - 1, 'other line')}" if len(sites) > 1 else ""
    return _where(group[0]) + more


def _part(title: str, header: Row, rows: Sequence[Row], right: int) -> str:
    """Return a titled table; its first `right` columns are aligned to the right."""
    if not rows:
        return ""
    shown = [header, *rows[:_MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [title, *("  " + _aligned(row, widths, right) for row in shown)]
    if len(rows) > _MOST_ROWS:
        lines.append(f"  ... and {counted(len(rows) - _MOST_ROWS, 'more line')}")
    return "\n".join(lines)


def _aligned(row: Row, widths: Sequence[int], right: int) -> str:
    def cells() -> Iterator[str]:
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            yield cell.rjust(width) if i < right else cell.ljust(width)

    return "  ".join(cells()).rstrip()
