"""The suites by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from devicearray._bench import overhead, recording
from devicearray._bench.suite import Suite

__all__ = ["SUITES"]

#: All suites by name.
SUITES: Final[Mapping[str, Suite]] = MappingProxyType(
    {suite.name: suite for suite in (overhead.SUITE, recording.SUITE)}
)
