"""The suites by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from devicearray._bench import (
    growth,
    overhead,
    recording,
    rows,
    rows_cold,
    rows_devices,
    strategies,
)
from devicearray._bench.suite import Suite

__all__ = ["SUITES"]

_MODULES: Final = (rows, rows_devices, rows_cold, strategies, growth, overhead, recording)

#: All suites by name.
SUITES: Final[Mapping[str, Suite]] = MappingProxyType(
    {module.SUITE.name: module.SUITE for module in _MODULES}
)
