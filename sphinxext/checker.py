"""How the printed result of an example is compared with what the page shows.

Every runner of examples (the pages', README.md's, the docstrings') uses this one checker and this
one configuration, so an output that passes in one place passes in all.

Prior art: Python's `doctest` compares text, so a result that differs in the last digit on another
processor fails. scipy-doctest reads both texts as values and compares numbers within a tolerance;
this checker is a subclass of its `DTChecker`. As it comes, `DTChecker` also accepts what a page
must not show: an array of another shape that broadcasts, ``[]`` where an element is expected, any
text in which an address occurs, and any result that is said to be a comment. Setting its options
cannot close those holes, so here values must agree in type, structure, shape, dtype and weak type,
and only then may the numbers differ, and only within `CONFIG.rtol`.
"""

from __future__ import annotations

import doctest
from typing import Any

import ml_dtypes
import numpy as np
from scipy_doctest.impl import DTChecker, DTConfig, try_convert_printed_array

MAY_VARY = "# may vary"

# Sphinx's default flags include IGNORE_EXCEPTION_DETAIL, with which a wrong message passes.
OPTION_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class _Printed(np.ndarray[Any, Any]):
    """An array read back from its printed form: its numbers, and whether it was printed as weak."""

    weak_type = False


class Array(_Printed):
    """What ``Array(...)`` reads as."""


class DeviceArray(_Printed):
    """What ``DeviceArray(...)`` reads as."""


def _reader(kind: type[_Printed]) -> Any:
    def read(values: Any, dtype: Any = None, weak_type: bool = False) -> _Printed:
        array = np.array(values, dtype=dtype).view(kind)
        array.weak_type = weak_type
        return array

    return read


def _names() -> dict[str, Any]:
    """Return the names that a printed result may use, and nothing else (no builtins)."""
    numpy_dtypes = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 float32 float64 complex64 complex128"
    )
    ml_dtypes_names = "bfloat16 float8_e4m3fn float8_e5m2 int4 uint4"
    return {
        "__builtins__": {},
        "np": np,
        "array": np.array,
        "dtype": np.dtype,
        "nan": np.nan,
        "inf": np.inf,
        "Array": _reader(Array),
        "DeviceArray": _reader(DeviceArray),
        **{name: getattr(np, name) for name in numpy_dtypes.split()},
        **{name: getattr(ml_dtypes, name) for name in ml_dtypes_names.split()},
    }


class Checker(DTChecker):  # type: ignore[misc]  # scipy-doctest has no types
    """Compare the output an example shows with the output it printed."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether the texts agree, or else the values that they denote."""
        if any(marker in want for marker in self.rndm_markers):
            return True
        # Without it, `doctest` takes True for 1, as in the days before `bool`.
        optionflags |= doctest.DONT_ACCEPT_TRUE_FOR_1
        if doctest.OutputChecker.check_output(self, want, got, optionflags):
            return True
        try:
            want_value, got_value = self._read(want, got)
        except Exception:
            # The texts differ, and at least one of them denotes no value.
            return False
        return self._do_check(want_value, got_value, self.config.strict_check)

    def _read(self, *texts: str) -> list[Any]:
        """Return the values that `texts` denote."""
        try:
            return [self._evaluate(text.strip()) for text in texts]
        except SyntaxError:
            # `print(array)` leaves the commas out; a list, which has them, is not read as an array.
            return [self._evaluate(try_convert_printed_array(text.strip())) for text in texts]

    def _evaluate(self, text: str) -> Any:
        return eval(text, dict(self.config.check_namespace))

    def _do_check(self, want: Any, got: Any, strict_check: bool) -> bool:
        """Return whether two values have the same form, and numbers within the tolerance."""
        if type(want) is not type(got):
            return False
        if isinstance(want, list | tuple):
            return len(want) == len(got) and all(
                self._do_check(w, g, strict_check) for w, g in zip(want, got, strict=True)
            )
        if isinstance(want, dict):
            # Insertion order is part of what a dict prints, so it is part of the comparison.
            return self._do_check(list(want.items()), list(got.items()), strict_check)
        if isinstance(want, _Printed) and want.weak_type != got.weak_type:
            return False
        if isinstance(want, np.ndarray | np.generic):
            if want.shape != got.shape or want.dtype != got.dtype:
                return False
            if want.dtype.kind in "biuSU":
                return bool(np.array_equal(want, got))
        elif not isinstance(want, float | complex):
            return bool(want == got)
        return bool(super()._do_check(want, got, strict_check))


# float32 results agree to about six digits between processors; a reader compares about four.
CONFIG = DTConfig(
    CheckerKlass=Checker,
    rndm_markers={MAY_VARY},
    rtol=1e-4,
    atol=1e-7,
    strict_check=True,
    optionflags=OPTION_FLAGS,
    # Every example is run: no word in a source or an object's name takes it out.
    stopwords=set(),
    skiplist=set(),
    parse_namedtuples=False,
)
# scipy-doctest 2.2 does not keep a namespace that its constructor is given.
CONFIG.check_namespace = _names()
