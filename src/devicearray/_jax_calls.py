"""The functions and methods of JAX that one program cannot serve, by why that is so.

For these JAX's own call is made and its arrays are wrapped. The list saves time and decides no
result: a function that is missing here is found out when it is first called, since it cannot be
traced or returns no array, and JAX's own call is made then as well (`_dispatch.program_of`).
Without the list each such call would try.
"""

from __future__ import annotations

from typing import Final

__all__ = ["AS_JAX_DOES", "POWERS"]

_SHAPE_DEPENDS_ON_VALUES: Final = frozenset({
    "argwhere", "bincount", "compress", "delete", "extract", "flatnonzero", "insert",
    "intersect1d", "mask_indices", "nonzero", "poly", "repeat", "roots", "setdiff1d",
    "setxor1d", "trim_zeros", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
})  # fmt: skip
_MAY_RETURN_ITS_OPERAND: Final = frozenset({
    "asarray", "astype", "atleast_1d", "atleast_2d", "atleast_3d", "conj", "conjugate",
    "expand_dims", "moveaxis", "permute_dims", "positive", "ravel", "real", "reshape", "rollaxis",
    "squeeze", "swapaxes", "transpose", "matrix_transpose", "broadcast_to", "broadcast_arrays",
})  # fmt: skip
_PLACES_ARRAYS: Final = frozenset({
    "arange", "array", "copy", "empty", "empty_like", "eye", "from_dlpack", "frombuffer",
    "fromfile", "fromfunction", "fromiter", "fromstring", "full", "full_like", "geomspace",
    "identity", "linspace", "load", "logspace", "ones", "ones_like", "zeros", "zeros_like",
    "PRNGKey", "key", "wrap_key_data", "key_data", "clone",
})  # fmt: skip
_RETURNS_NO_ARRAY: Final = frozenset({
    "array_equal", "array_equiv", "array_repr", "array_str", "broadcast_shapes", "can_cast",
    "einsum_path", "get_printoptions", "iscomplexobj", "isdtype", "isrealobj", "isscalar",
    "issubdtype", "iterable", "key_impl", "ndim", "printoptions", "promote_types", "result_type",
    "save", "savez", "set_printoptions", "shape", "size",
})  # fmt: skip
_TAKES_FUNCTIONS: Final = frozenset({
    "apply_along_axis", "apply_over_axes", "piecewise",
})  # fmt: skip
#: Methods that no function of the namespaces is called after, for one or another of these reasons.
_METHODS: Final = frozenset({
    "_multi_slice", "_split", "array_namespace", "contains", "deepcopy", "flatten", "pos",
    "setitem", "to_device", "view",
})  # fmt: skip

AS_JAX_DOES: Final = (
    _SHAPE_DEPENDS_ON_VALUES
    | _MAY_RETURN_ITS_OPERAND
    | _PLACES_ARRAYS
    | _RETURNS_NO_ARRAY
    | _TAKES_FUNCTIONS
    | _METHODS
)

#: ``x ** y`` by its names: compiled for a known exponent (`_operation.power`).
POWERS: Final = frozenset({"pow", "power"})
