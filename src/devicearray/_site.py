"""Whose line it was: from a hook deep inside JAX to the user's file, line and function.

Between a hook and the line that caused it lie frames of JAX, of NumPy, of the standard library and
of whatever the user's own code is built on. The site of an event is the innermost frame that is
none of these, and the *trigger* is what that line called: ``float``, ``print``, ``np.asarray``,
``block_until_ready``.

Prior art: JAX's ``source_info_util.user_frame`` finds the innermost frame outside of JAX, which is
NumPy's or ``logging``'s as often as it is the user's; ``warnings.warn(skip_file_prefixes=...)``
skips by path; trio and pytest hide frames that are marked. Here frames are told apart by path, and
what an author calls "not mine" (``skip=("optax",)``) by module. C functions have no frame, so
``print(x)`` and ``np.asarray(x)`` look like ``x.__str__`` and ``x.__buffer__`` from below: only for
those is the expression read from the source, by the position that the instruction carries. (The
refused alternative, a ``sys.monitoring`` callback on every call, sees the C functions, and slows
all that it does not need to see.)

A site is found once and kept, by the code object and the instruction, so that the thousandth event
of a loop costs a walk of a few frames and one look-up.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import linecache
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from devicearray import _jax
from devicearray._advice import did_you_mean

__all__ = ["Finder", "Found", "Site", "finder", "in_host_callback"]


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the user's.

    Attributes
    ----------
    file : str
        The file, or what Python says instead of one: ``<stdin>``.
    line : int
        The number of the line, from 1.
    function : str
        The name of the function, ``<module>`` outside of any.
    source : str
        The text of the line, without its indentation. Empty where there is no source to read.
    """

    file: str
    line: int
    function: str
    source: str = ""

    def __str__(self) -> str:
        return f"{_short(self.file)}:{self.line} in {self.function}"


def _short(file: str) -> str:
    """Return `file` as seen from the working directory, if it lies there."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


class Found(NamedTuple):
    """A site, and what its line called. Without a frame that could be the user's, no site."""

    site: Site | None
    trigger: str


# What a frame is, by the file of its code. Plain numbers: they are compared for every frame of
# every event.
_USER: Final = 1
_ARRAYS: Final = 2  # JAX, NumPy and this package: what implements arrays
_LIBRARY: Final = 3  # the standard library, the programs that run the user's, and what is skipped
_INSTRUMENT: Final = 4  # the hooks, and what JAX and this package wrap around functions
_CALLBACK: Final = 5  # what calls a program's host callback

_HERE: Final = Path(__file__).parent
_NUMPY: Final = f"{Path(np.__file__).parent}/"
_ARRAY_FOLDERS: Final = (*_jax.library_folders(), _NUMPY, f"{_HERE}/")
_STANDARD_LIBRARY: Final = tuple(
    {f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")}
)
_INSTALLED: Final = ("site-packages", "dist-packages")

#: Wrappers that are all named alike: what they call has the name that the user wrote.
_MIRRORS: Final = ("_dispatch", "_jax", "_jax_calls", "_methods", "_namespace", "_operation")

_INSTRUMENT_FILES: Final = frozenset(
    [f"{_HERE}/{name}.py" for name in ("_site", "_boundary", "_record", "_guard", *_MIRRORS)]
    + [f"{jax}_src/{name}.py" for jax in _ARRAY_FOLDERS for name in ("traceback_util", "profiler")]
)

_CALLBACK_FILES: Final = frozenset(
    f"{jax}_src/{name}.py" for jax in _ARRAY_FOLDERS for name in ("callback", "buffer_callback")
)
#: The functions there that the runtime calls. Others are called by the user's line.
_CALLED_BACK: Final = frozenset({"_wrapped_callback", "wrapped_callback"})

#: Programs that run the user's code: a prompt, a notebook, a test runner. Their frames lie
#: between the user's line and the display of its value.
_FRONT_ENDS: Final = frozenset({"IPython", "ipykernel", "traitlets", "_pytest", "pluggy", "pytest"})

#: Where ``exec``, ``eval`` and ``python -c`` say that code comes from, whoever's it is.
_ANYBODYS_FILE: Final = "<string>"
#: The function in which `dataclasses` makes ``__repr__``, ``__eq__`` and the like.
_DATACLASSES: Final = "__create_fn__."

#: Python's protocols, by what a user writes to invoke them.
_PROTOCOLS: Final = {
    "__array__": "np.asarray",
    "__buffer__": "np.asarray",
    "__deepcopy__": "copy",
    "__dlpack__": "dlpack",
    "__getitem__": "indexing",
    "__iter__": "iteration",
    "__next__": "iteration",
    "__reduce__": "pickle",
    # What C++ calls where a jitted function enters Python.
    "cache_miss": "jit",
    "cc_shard_arg": "jit",
    "_value": "value",
    # Functions of JAX and of this package that are not named as what the user wrote.
    "<genexpr>": "iteration",
    "_elements": "iteration",
    "_operator_pow": "pow",
    "jit_lower": "lower",
}

#: The same for functions whose name alone says too little, by their modules.
_FUNCTIONS: Final = {
    ("IPython.core.displayhook", "__call__"): "display",  # of the last line of a cell
    ("IPython.core.display_functions", "display"): "display",
    ("reprlib", "wrapper"): "repr",  # around the ``__repr__`` of a dataclass
    ("devicearray._program", "get"): "jit",  # of a program that is not compiled yet
}

#: Protocols that C functions invoke: which one did can be read from the source only.
_INVOKED_FROM_C: Final = frozenset({"str", "repr", "format", "np.asarray"})

_TEXT: Final = frozenset({"str", "repr", "format"})
#: The built-in functions that invoke those: ``str`` of a list is ``repr`` of what is in it.
_WRITERS: Final = ("print", *sorted(_TEXT))

#: Sites kept by one finder. A program has fewer lines that wait; a prompt makes new code for
#: each line that is typed.
_MOST_SITES: Final = 10_000


class _Callee(NamedTuple):
    """What the source calls: a name, and attributes of modules."""

    name: str
    attributes: tuple[str, ...]
    is_local: bool

    def function(self, frame: FrameType) -> Any:
        """Return what that is in `frame` now; None if it is not clear. Nothing is executed."""
        names = frame.f_locals if self.is_local else frame.f_globals
        value = names.get(self.name)
        if value is None:
            value = frame.f_builtins.get(self.name)
        for attribute in self.attributes:
            if not isinstance(value, ModuleType):
                return None
            value = vars(value).get(attribute)
        return value


class _Known(NamedTuple):
    """What was found at one instruction."""

    found: Found
    #: What the source calls there, if that decided the trigger, and which function it was then:
    #: of ``f(x)``, where `f` is ``np.sin`` once and ``memoryview`` another time.
    callee: _Callee | None
    function: int
    #: The code of both frames. They are kept because their addresses are the key.
    codes: tuple[CodeType, CodeType | None]

    def calls_another_now(self, frame: FrameType) -> bool:
        """Tell whether the source's name stands for another function than it did."""
        return self.callee is not None and id(self.callee.function(frame)) != self.function


class Finder:
    """Finds the user's line above a hook.

    Parameters
    ----------
    skip : iterable of str
        Modules whose lines are not the user's, with all that is in them: ``"optax"``,
        ``"mylab.training"``.
    """

    def __init__(self, skip: Iterable[str] = ()) -> None:
        self._skip = tuple(skip)
        self._kinds = dict.fromkeys(_INSTRUMENT_FILES, _INSTRUMENT)
        self._kinds |= dict.fromkeys(_CALLBACK_FILES, _CALLBACK)
        self._known: dict[tuple[int, int, int, str], _Known] = {}

    def find(self, hook: str) -> Found:
        """Return the user's line that led to the caller, and what it called.

        Parameters
        ----------
        hook : str
            What to call the trigger when the user's line called the hooked function itself.
        """
        kinds = self._kinds
        frame: FrameType | None = sys._getframe(2)  # the hook, or what it called
        below: FrameType | None = None  # the outermost library frame so far
        callback: FrameType | None = None
        outside: tuple[FrameType, FrameType | None] | None = None
        while frame is not None:
            kind = kinds.get(frame.f_code.co_filename) or self._classify(frame)
            if kind == _USER:
                break
            if kind == _LIBRARY and outside is None:
                outside = frame, below
            if kind == _CALLBACK:
                callback = frame
            elif kind != _INSTRUMENT:
                below = frame
            frame = frame.f_back
        else:
            # No line is the user's: a thread that runs ``float`` itself, say. The innermost frame
            # that is at least not of an array library is the next best.
            if outside is None:
                return Found(None, "callback" if callback else hook)
            frame, below = outside

        below = callback or below  # What led to the callback did not read.
        code, called = frame.f_code, below.f_code if below else None
        key = id(code), frame.f_lasti, id(called), hook
        known = self._known.get(key)
        if known is None or known.calls_another_now(frame):
            if len(self._known) >= _MOST_SITES:
                self._known.clear()
            known = self._known[key] = _look(frame, below, hook)
        return known.found

    def _classify(self, frame: FrameType) -> int:
        file = frame.f_code.co_filename
        if file == _ANYBODYS_FILE:
            generated = frame.f_code.co_qualname.startswith(_DATACLASSES)
            return _LIBRARY if generated else _kind(file, _module_of(frame), self._skip)
        kind = self._kinds[file] = _kind(file, _module_of(frame), self._skip)
        return kind


def _module_of(frame: FrameType) -> str:
    """Return the full name of the frame's module, also of one that was run with ``-m``."""
    name: str = frame.f_globals.get("__name__", "")
    spec = frame.f_globals.get("__spec__")
    return spec.name if name == "__main__" and spec is not None else name


def _kind(file: str, module: str, skip: tuple[str, ...]) -> int:
    if file.startswith(_ARRAY_FOLDERS):
        return _ARRAYS
    if file.startswith(("<frozen ", "<__array_function__", "<attrs generated ")):
        return _LIBRARY
    in_library = file.startswith(_STANDARD_LIBRARY)
    if in_library and not any(folder in file for folder in _INSTALLED):
        return _LIBRARY
    if module.partition(".")[0] in _FRONT_ENDS:
        return _LIBRARY
    if any(module == name or module.startswith(f"{name}.") for name in skip):
        return _LIBRARY
    return _USER


@functools.lru_cache(maxsize=16)
def finder(skip: tuple[str, ...] = ()) -> Finder:
    """Return the finder that skips these modules; sites that it found before are kept.

    Raises
    ------
    TypeError
        If `skip` holds something that is not a string.
    ValueError
        If there is no such module.
    """
    for name in skip:
        if not isinstance(name, str):
            raise TypeError(f"skip: a module is named by a string, and {name!r} is not one.")
        _refuse_unknown(name)
    return Finder(skip)


def _refuse_unknown(name: str) -> None:
    top = name.partition(".")[0]
    if name in sys.modules or top in sys.modules:
        return
    if not top.isidentifier() or importlib.util.find_spec(top) is None:
        hint = did_you_mean(top, {key.partition(".")[0] for key in sys.modules})
        raise ValueError(f"skip: there is no module named {name!r}.{hint}")


def in_host_callback() -> bool:
    """Tell whether the caller was called by a program, to which it is a host callback."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CALLED_BACK and code.co_filename in _CALLBACK_FILES:
            return True
        frame = frame.f_back
    return False


# What is read once for each site.


def _look(frame: FrameType, below: FrameType | None, hook: str) -> _Known:
    code = frame.f_code
    site = Site(code.co_filename, frame.f_lineno, code.co_name, _line(frame).strip())
    trigger = _trigger_of(below) if below else hook
    callee, function = None, None
    if trigger in _INVOKED_FROM_C:
        callee = _callee(frame)
        function = callee and callee.function(frame)
        trigger = _name_of(function, trigger) or trigger
    codes = code, below.f_code if below else None
    return _Known(Found(site, trigger), callee, id(function), codes)


def _line(frame: FrameType) -> str:
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)


def _trigger_of(frame: FrameType) -> str:
    """Return what a user would call the library function that runs in `frame`."""
    name, file, module = frame.f_code.co_name, frame.f_code.co_filename, _module_of(frame)
    if file in _CALLBACK_FILES:
        return "callback"
    known = _FUNCTIONS.get((module, name)) or _PROTOCOLS.get(name)
    if known is not None:
        return known
    if name.startswith("__") and name.endswith("__"):
        return name.strip("_")
    if file.startswith(_NUMPY):
        return f"np.{name}"
    if file.startswith(_ARRAY_FOLDERS):
        return name.lstrip("_").removesuffix("_f")  # what ``jax.vmap(f)`` returns is ``vmap_f``
    return f"{module}.{name}".lstrip(".")


def _name_of(function: Any, trigger: str) -> str | None:
    """Return what to call a C function that invoked the protocol `trigger`, if it is known."""
    if trigger in _TEXT:
        return next((name for name in _WRITERS if function is getattr(builtins, name)), None)
    if function in (memoryview, bytes, bytearray):
        return str(function.__name__)
    of_numpy = isinstance(function, np.ufunc) or (
        str(getattr(function, "__module__", "")).partition(".")[0] == "numpy"
    )
    return f"np.{function.__name__}" if of_numpy else None


def _callee(frame: FrameType) -> _Callee | None:
    """Return what the current instruction of `frame` calls, as the source has it."""
    try:
        node = ast.parse(_expression(frame).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.Call):
        return None
    attributes: list[str] = []
    called = node.func
    while isinstance(called, ast.Attribute):
        attributes.insert(0, called.attr)
        called = called.value
    if not isinstance(called, ast.Name):
        return None
    is_local = frame.f_locals is not frame.f_globals and called.id in frame.f_locals
    return _Callee(called.id, tuple(attributes), is_local)


def _expression(frame: FrameType) -> str:
    """Return the source text of the expression that `frame` is evaluating."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None:
        return ""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]
    if len(lines) < last - first + 1:
        return ""
    # Columns are counted in bytes of UTF-8.
    encoded = [line.encode() for line in lines]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][start:]
    return b"".join(encoded).decode(errors="replace")
