"""The cases, by theme: each module here is one. Importing a module registers its cases."""

import importlib
import pkgutil

from tests.conformance.cases._registry import CASES, Case

__all__ = ["CASES", "Case"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
