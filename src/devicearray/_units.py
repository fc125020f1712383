"""Times and sizes as a person reads them: three digits and a unit.

pint and humanize do this and a hundred things more; a table needs these two.
"""

from __future__ import annotations

__all__ = ["bytes_text", "counted", "seconds_text"]


def seconds_text(seconds: float) -> str:
    """Return a time with the unit in which it is between 1 and 1000.

    Examples
    --------
    >>> from devicearray._units import seconds_text
    >>> [seconds_text(s) for s in (0, 2.5e-7, 0.00123456, 0.9999, 75.0)]
    ['0 s', '250 ns', '1.23 ms', '1 s', '75 s']
    """
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")), "s")


def bytes_text(nbytes: int) -> str:
    """Return a size with the unit in which it is between 1 and 1000.

    Examples
    --------
    >>> from devicearray._units import bytes_text
    >>> [bytes_text(n) for n in (0, 4, 4096, 2_500_000)]
    ['0 B', '4 B', '4.1 kB', '2.5 MB']
    """
    return _scaled(nbytes, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")), "B")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun.

    Examples
    --------
    >>> from devicearray._units import counted
    >>> counted(1, "compile"), counted(2, "dispatch", "dispatches")
    ('1 compile', '2 dispatches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _scaled(value: float, units: tuple[tuple[float, str], ...], base: str) -> str:
    rounded = float(f"{value:.3g}")
    for scale, unit in units:
        if abs(rounded) >= scale * 0.9995:
            return f"{_digits(value / scale)} {unit}"
    return f"0 {base}" if value == 0 else f"{_digits(value / units[-1][0])} {units[-1][1]}"


def _digits(number: float) -> str:
    text = f"{number:.3g}"
    return f"{float(text):.0f}" if "e" in text else text
