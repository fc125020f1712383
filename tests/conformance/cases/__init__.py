"""The cases, by theme. Importing a module registers its cases."""

from tests.conformance.cases import (
    compilation,
    configuration,
    control_flow,
    conversions,
    dtypes,
    effects,
    errors,
    indexing,
    jax_functions,
    keys,
    lifetime,
    methods,
    numpy_protocol,
    operators,
    placement,
    pytrees,
    transformations,
)
from tests.conformance.cases._registry import CASES, Case

__all__ = ["CASES", "Case"]

THEMES = (
    compilation,
    configuration,
    control_flow,
    conversions,
    dtypes,
    effects,
    errors,
    indexing,
    jax_functions,
    keys,
    lifetime,
    methods,
    numpy_protocol,
    operators,
    placement,
    pytrees,
    transformations,
)
