"""The one place where this package touches a private name of JAX.

A native array type needs more of JAX than its public interface offers: the registries that
tell JAX what a type is, the tables from which JAX builds the methods of its own arrays, and
the C++ dispatcher behind ``jax.jit``. Libraries that reach for such names usually do so where
they need them, and break one by one, far from the cause, when JAX moves them. Here every
private name is taken once, at import, and one message lists all that are missing. (The refused
alternative: a ``try`` at each use, which turns a missing name into a feature that silently
does something else.) The rest of the package imports from this module, never from
``jax._src`` or ``jaxlib``.

Each function below says what it does in terms of arrays and programs, so that the modules that
call it can be read without knowing JAX's internals.

The instrument's names, at the end, are the one exception to "all or nothing": a program can be
recorded in part. A name that is missing there takes one fact away, and `LOST` says which, so
that the recording can say "not recorded" instead of a zero that nobody counted.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import jax
from jax.extend import source_info_util
from jaxlib import version as _jaxlib_version

__all__ = [
    "ARRAY_METHODS",
    "ARRAY_OPERATORS",
    "ARRAY_TYPES",
    "HOOKS",
    "HOST_OPERANDS",
    "LOST",
    "ArrayImpl",
    "Hook",
    "KeyArray",
    "Surroundings",
    "abstract_array",
    "at_top_level",
    "checks_values",
    "default_device",
    "dispatch_hook_of_jax",
    "donated_arguments",
    "has_static_arguments",
    "is_here",
    "is_in_charge",
    "is_on_host",
    "key_array",
    "library_folders",
    "mesh_of",
    "moves_arguments",
    "native_call",
    "no_mesh",
    "outputs_of_module",
    "outside_of_traces",
    "program_name",
    "raw_key_data",
    "recipe_for",
    "register_array_type",
    "set_dispatch_hook",
    "start_profile",
    "static_arguments",
    "surroundings",
    "tokens_of",
    "trace_context",
    "traced_arguments",
    "traced_keys",
    "unwrap_before_eager_rules",
    "within",
]

#: The newest JAX whose private names were found where this module looks for them. (The oldest is
#: in pyproject.toml; ``make versions`` tries the newest three.)
_JAX_VERSION = "0.12"

_missing: list[str] = []


def _private(module: str, name: str, *, or_in: str | None = None) -> Any:
    """Return ``module.name``, or note that it is missing.

    `or_in` is another module, for a name that JAX has moved.
    """
    for place in filter(None, (module, or_in)):
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(place), name)
    _missing.append(f"{module}.{name}")
    return None


ArrayImpl: Any = _private("jax._src.array", "ArrayImpl")
_aval_of_type = _private("jax._src.core", "pytype_aval_mappings")
_register_canonicalizer = _private("jax._src.dtypes", "register_canonicalize_value_handler")
_shard_arg_handlers = _private("jax._src.interpreters.pxla", "shard_arg_handlers")
_shard_args = _private("jax._src.interpreters.pxla", "shard_args")
_shard_arg_fallback = _private("jax._src.interpreters.pxla", "cc_shard_arg")
_CallKeys = _private("jax._src.interpreters.pxla", "JitGlobalCppCacheKeys")
_register_constant = _private("jax._src.interpreters.mlir", "register_constant_handler")
_get_constant_handler = _private("jax._src.interpreters.mlir", "get_constant_handler")
_cotangent_adders = _private("jax._src.ad_util", "raw_jaxval_adders")
_add_arrays = _private("jax._src.lax.lax", "_add_arrays")
_dispatch_registry = _private("jax._src.tree_util", "dispatch_registry")
_device_put_module = _private("jax._src", "dispatch")
_device_put = _private("jax._src.dispatch", "_batched_device_put_impl")
_layout_constraint = _private("jax._src.pjit", "layout_constraint_p")
_fastpath_data = _private("jax._src.pjit", "_get_fastpath_data")
_cpp_call = _private("jaxlib._jax", "pjit")

#: ``{"add": function, ...}``: what each operator of a JAX array calls, by the bare name.
ARRAY_OPERATORS: Mapping[str, Callable[..., Any]] = _private(
    "jax._src.numpy.array_methods", "_array_operators"
)

#: ``{"sum": function, ...}``: what each method of a JAX array calls.
ARRAY_METHODS: Mapping[str, Callable[..., Any]] = _private(
    "jax._src.numpy.array_methods", "_array_methods"
)

#: The types with which a JAX array agrees to be added, compared and so on.
HOST_OPERANDS: tuple[type, ...] = _private("jax._src.numpy.array_methods", "_accepted_binop_types")

#: Everything besides the arguments that decides what a function compiles to: precision, x64,
#: default device, mesh and so on, as one hashable tuple.
trace_context: Callable[[], tuple[Any, ...]] = _private("jax._src.config", "trace_context")

#: Whether no transformation (``jit``, ``grad``, ``vmap``, ...) is tracing on this thread.
at_top_level: Callable[[], bool] = _private("jax._src.core", "trace_state_clean")

_ShapedArray = _private("jax._src.core", "ShapedArray")
_default_device = _private("jax._src.config", "default_device")
_mesh = _private("jax._src.mesh", "device_context", or_in="jax._src.config")
_abstract_mesh = _private("jax._src.mesh", "abstract_mesh_context_manager", or_in="jax._src.config")
_empty_mesh = _private("jax._src.mesh", "empty_concrete_mesh")
_empty_abstract_mesh = _private("jax._src.mesh", "empty_abstract_mesh")

#: The type of arrays of typed keys, which JAX writes in Python, around an array of raw keys.
KeyArray: Any = _private("jax._src.random.prng", "PRNGKeyArray", or_in="jax._src.prng")
_random_wrap = _private("jax._src.random.prng", "random_wrap", or_in="jax._src.prng")

for _slot in ("_executable", "_params"):
    if not hasattr(jax.stages.Compiled, _slot):
        _missing.append(f"jax.stages.Compiled.{_slot}")

# In JAX's messages "from line ..." is the user's line, not one of this package.
source_info_util.register_exclusion(str(Path(__file__).parent))

if _missing:
    raise ImportError(
        f"devicearray builds on names that JAX does not promise to keep, and this JAX "
        f"(jax {jax.__version__}, jaxlib {_jaxlib_version.__version__}) lacks:\n  "
        + "\n  ".join(_missing)
        + f"\ndevicearray knows jax up to {_JAX_VERSION}. Install a version of the two that "
        "fit each other: pip install --upgrade devicearray, or "
        f"pip install 'jax=={_JAX_VERSION}.*'."
    )


def register_array_type(
    cls: type,
    take_apart: Callable[[Any], tuple[tuple[Any], None]],
    rebuild: Callable[[None, tuple[Any]], Any],
    aval_of: Callable[[Any], Any],
) -> None:
    """Make JAX take instances of `cls` wherever it takes an array.

    Parameters
    ----------
    cls : type
        A subclass of ``jax.Array``.
    take_apart : callable
        Returns, of an instance, ``((buffer,), None)``: its runtime buffer is an array that JAX
        made itself. Runs for each argument of each call.
    rebuild : callable
        Given ``None, (buffer,)``, returns an instance. Runs for each output of each call.
    aval_of : callable
        Returns the abstract value of an instance, which need have no buffer for that.
    """

    def buffer_of(array: Any) -> Any:
        return take_apart(array)[0][0]

    # Each of the six is needed: (1) what an instance is to a trace; (2) its canonical form, which
    # the runtime takes: the buffer; (3) how it becomes an argument of a program; (4) how it
    # becomes a constant in one; (5) how reverse-mode differentiation adds two cotangents; (6) how
    # the C++ dispatcher takes it apart, without which every call would take the slow path, and
    # makes one.
    _aval_of_type[cls] = aval_of
    _register_canonicalizer(cls, buffer_of)
    _shard_arg_handlers[cls] = lambda arrays, shardings, layouts, copy_semantics: _shard_args(
        shardings, layouts, copy_semantics, [buffer_of(array) for array in arrays]
    )

    def constant(array: Any, aval: Any) -> Any:
        buffer = buffer_of(array)
        return _get_constant_handler(type(buffer))(buffer, aval)

    _register_constant(cls, constant)
    _cotangent_adders[cls] = _add_arrays
    _dispatch_registry.register_node(cls, take_apart, rebuild)
    ARRAY_TYPES.add(cls)


def abstract_array(shape: tuple[int, ...], dtype: Any, *, weak_type: bool) -> Any:
    """Return the abstract value of an array on one device."""
    return _ShapedArray(shape, dtype, weak_type=weak_type)


def raw_key_data(keys: Any) -> tuple[Any, Any]:
    """Return the array of raw keys inside an array of typed ones, and their kind."""
    return keys._base_array, keys._impl


def key_array(kind: Any, raw: Any) -> Any:
    """Return raw keys as typed ones of a kind that `raw_key_data` returned."""
    return KeyArray(kind, raw)


def traced_keys(kind: Any, raw: Any) -> Any:
    """Return the same inside a program."""
    return _random_wrap(raw, impl=kind)


def donated_arguments(jitted: Any) -> tuple[frozenset[int], frozenset[str]]:
    """Return the positions and the names of the arguments that `jitted` donates."""
    info = jitted._jit_info
    return frozenset(info.donate_argnums), frozenset(info.donate_argnames)


# What the surroundings of an operation decide: where its result lies.

#: A default device, a mesh and an abstract mesh: what ``with jax.default_device(...)`` and
#: ``with jax.set_mesh(...)`` set. Equal ones are the same objects, mostly.
type Surroundings = tuple[Any, Any, Any]


def surroundings() -> Surroundings:
    """Return what surrounds an operation, here and now."""
    return _default_device.value, _mesh.value, _abstract_mesh.value


def no_mesh(device: jax.Device) -> Surroundings:
    """Return surroundings without a mesh, in which `device` is the default."""
    return device, _empty_mesh, _empty_abstract_mesh


def mesh_of(these: Surroundings) -> Any:
    """Return the mesh, which may be an abstract one; None if there is none."""
    _, mesh, abstract_mesh = these
    return next((one for one in (mesh, abstract_mesh) if not one.empty), None)


def default_device(these: Surroundings) -> jax.Device:
    """Return where an array is put that nobody puts anywhere."""
    device = these[0]
    if isinstance(device, str):
        return jax.local_devices(backend=device)[0]
    return jax.local_devices()[0] if device is None else device


def is_here(these: Surroundings) -> bool:
    """Tell whether these are the surroundings of an operation now, and no trace is going on."""
    return at_top_level() and surroundings() == these


@contextlib.contextmanager
def within(these: Surroundings) -> Iterator[None]:
    """Be in other surroundings for a while, and outside of the trace that may be going on."""
    device, mesh, abstract_mesh = these
    previous = _mesh.swap_local(mesh), _abstract_mesh.swap_local(abstract_mesh)
    try:
        with _default_device(device), outside_of_traces():
            yield
    finally:
        _mesh.set_local(previous[0])
        _abstract_mesh.set_local(previous[1])


def outside_of_traces() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which JAX computes values, whatever trace is going on around it."""
    return contextlib.nullcontext() if at_top_level() else jax.ensure_compile_time_eval()


def unwrap_before_eager_rules(unwrap: Callable[[Any], Any]) -> None:
    """Let the two eager rules that ask for JAX's own array class have the buffer.

    ``device_put`` and ``with_layout_constraint``, called outside of a trace, treat an array that
    is not of the C++ class as data from the host: they would forget where it is committed, and
    donating it would free memory still in use. ``device_put`` has no registry for this: its rule
    is replaced by one that unwraps first, which changes nothing for other arrays.
    """
    _device_put_module._batched_device_put_impl = _unwrapping(_device_put, unwrap)
    _layout_constraint.def_impl(_unwrapping(_layout_constraint.impl, unwrap))


def _unwrapping(rule: Callable[..., Any], unwrap: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def impl(*arrays: Any, **parameters: Any) -> Any:
        buffers = [*map(unwrap, arrays)]
        outputs = rule(*buffers, **parameters)
        if not isinstance(outputs, list):
            return outputs
        # An array that is where it should be comes back itself.
        asked = zip(arrays, buffers, outputs, strict=True)
        return [array if output is buffer else output for array, buffer, output in asked]

    return impl


def checks_values() -> bool:
    """Tell whether JAX must look at what each program computes, or at each key that is used."""
    config: Any = jax.config
    return bool(config.jax_debug_nans or config.jax_debug_infs or config.jax_debug_key_reuse)


def is_in_charge() -> bool:
    """Tell whether JAX's own call must be made: a trace is going on, or values are checked."""
    return not at_top_level() or checks_values()


def native_call(
    name: str,
    on_miss: Callable[..., tuple[Any, Any]],
    jitted: Any,
    uncompiled: Callable[..., Any],
) -> Any:
    """Return a C++ dispatcher: a call that finds its program without entering Python.

    It is the object behind ``jax.jit``: it looks the program up by the abstract values and the
    placement of the arguments, by the static arguments' values and by `trace_context`.

    Parameters
    ----------
    name : str
        The name that profilers show.
    on_miss : callable
        Called with the arguments when no program is known for them (and whenever an argument
        is a tracer, or a trace is going on). Returns the outputs, and a *recipe* from
        `recipe_for` with which later calls of the same kind need no Python, or None.
    jitted : object
        What ``jax.jit`` returned for the same function: says which arguments are static, and
        gives the dispatcher its ``lower``, ``trace`` and ``eval_shape``.
    uncompiled : callable
        What to call instead under ``jax.disable_jit``.
    """

    def cache_miss(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        outputs, recipe = on_miss(*args, **kwargs)
        return outputs, recipe, False

    info = jitted._jit_info
    call = _cpp_call(
        name,
        uncompiled,
        cache_miss,
        info.static_argnums,
        info.static_argnames,
        _CallKeys(),
        _dispatch_registry,
        _shard_arg_fallback,
    )
    call._fun = jitted._fun
    call._jit_info = info
    return call


def static_arguments(jitted: Any) -> tuple[frozenset[int], frozenset[str]]:
    """Return the positions and the names of the arguments that `jitted` takes as static."""
    info = jitted._jit_info
    return frozenset(info.static_argnums), frozenset(info.static_argnames)


def recipe_for(
    compiled: jax.stages.Compiled,
    effects: Any,
    arguments: Sequence[Any],
    out_tree: Any,
    outputs: Sequence[Any],
    output_form: Any,
) -> Any:
    """Return what the C++ dispatcher must know to run `compiled` itself, or None.

    None means that the program cannot run without Python: it has side effects, say.

    Parameters
    ----------
    compiled : jax.stages.Compiled
        The program.
    effects : object
        The side effects of its jaxpr.
    arguments, outputs : sequence
        The leaves of one call's arguments and of its outputs.
    out_tree : PyTreeDef
        The structure of the outputs.
    output_form : object
        The outputs as the dispatcher is to give them: arrays, or instances of a type that
        `register_array_type` knows.
    """
    internals: Any = compiled
    data = _fastpath_data(
        internals._executable,
        out_tree,
        arguments,
        outputs,
        effects,
        [],
        None,
        internals._params.const_args,
    )
    if data is None:
        return None
    return data._replace(out_pytree_def=_dispatch_registry.flatten(output_form, None)[1])


# The instrument: where a program meets the runtime.


@dataclass(frozen=True)
class Hook:
    """An attribute of JAX's that the instrument replaces by one that watches, and puts back."""

    owner: Any
    name: str

    def get(self) -> Any:
        """Return what stands there now."""
        return vars(self.owner)[self.name]

    def set(self, value: Any) -> None:
        """Put `value` there."""
        setattr(self.owner, self.name, value)


#: What cannot be recorded with this JAX, and the private name that is missing.
LOST: dict[str, str] = {}


#: The types of what is on a device: neither moved nor looked into when a program takes it.
ARRAY_TYPES: set[type] = {ArrayImpl}


def _optional(lost: str, module: str, *path: str) -> Any:
    """Return what `path` leads to in `module`; note `lost` in `LOST` if there is no such thing."""
    try:
        value: Any = importlib.import_module(module)
        for name in path:
            value = getattr(value, name)
    except (ImportError, AttributeError):
        if lost:
            LOST[lost] = ".".join((module, *path))
        return None
    return value


#: What is watched, by a name of our own; and what is lost without it. A place of no loss is one
#: that another covers, or that came or went with a version.
_PLACES: dict[str, tuple[str, str, str, str]] = {
    "block_until_ready": (
        "host syncs by block_until_ready",
        "jax._src.array",
        "ArrayImpl",
        "block_until_ready",
    ),
    "block_several": (
        "host syncs by jax.block_until_ready of several arrays",
        "jaxlib.xla_client",
        "",
        "batched_block_until_ready",
    ),
    "tokens": (
        "host syncs by jax.effects_barrier",
        "jax._src.dispatch",
        "RuntimeTokenSet",
        "block_until_ready",
    ),
    "value": ("host syncs by float, print, np.asarray", "jax._src.array", "ArrayImpl", "_value"),
    "shard_value": (
        "",
        "jax._src.array",
        "ArrayImpl",
        "_single_device_array_to_np_array_did_copy",
    ),
    "whole_value": ("", "jax._src.array", "ArrayImpl", "_to_np_array_did_copy"),
    "buffer": (
        "host syncs by np.asarray through the buffer protocol",
        "jax._src.array",
        "ArrayImpl",
        "__buffer__",
    ),
    "dlpack": ("host syncs by DLPack", "jax._src.array", "ArrayImpl", "__dlpack__"),
    "pointer": (
        "host syncs by unsafe_buffer_pointer",
        "jax._src.array",
        "ArrayImpl",
        "unsafe_buffer_pointer",
    ),
    "execute": (
        "dispatches that enter Python",
        "jax._src.interpreters.pxla",
        "ExecuteReplicated",
        "__call__",
    ),
    "hand_over": (
        "dispatches that enter Python",
        "jaxlib._jax",
        "LoadedExecutable",
        "execute_sharded",
    ),
    "put": ("transfers by device_put", "jaxlib.xla_client", "", "batched_device_put"),
    "put_host_values": ("", "jaxlib._jax", "", "shard_args"),
    "copy_to_devices": (
        "transfers between devices",
        "jaxlib.xla_client",
        "",
        "batched_copy_array_to_devices_with_sharding",
    ),
    "copy_to_host": (
        "transfers by copy_to_host_async",
        "jax._src.array",
        "ArrayImpl",
        "copy_to_host_async",
    ),
    "compile": ("the outputs of compiles", "jax._src.compiler", "", "compile_or_get_cached"),
}


def _find_hooks() -> dict[str, Hook]:
    hooks = {}
    for key, (lost, module, holder, name) in _PLACES.items():
        path = [step for step in (holder, name) if step]
        if _optional(lost, module, *path) is not None:
            owner = _optional(lost, module, *path[:-1])
            hooks[key] = Hook(owner, name)
    return hooks


#: The code of what moves the arguments of a dispatch, on the fast path and in Python.
_ARGUMENT_MOVERS: Final = {
    _optional("transfers apart from arguments", "jax._src.interpreters.pxla", *path, "__code__")
    for path in (("cc_shard_arg",), ("InputsHandler", "__call__"))
}

#: The places to watch, by the names of `_PLACES`, that this JAX has.
HOOKS: Mapping[str, Hook] = _find_hooks()

_FAST_DISPATCHES = "dispatches on JAX's fast path"
_Config = _optional(_FAST_DISPATCHES, "jaxlib._jax", "config", "Config")
_set_hook_state = _optional(_FAST_DISPATCHES, "jaxlib._jax", "jax_jit", "set_post_hook_state")
_jax_hook_state = _optional(_FAST_DISPATCHES, "jax._src.api", "_post_hook_state")

# JAX keeps its hook in a state that `debug_nans` sets for one thread at a time, and a thread on
# which it was once set and unset has None of its own. So a state of ours takes the place of
# JAX's, and JAX's hook is called from ours; setting JAX's would go deaf on such a thread.
_hook_state: Any = None
if _FAST_DISPATCHES not in LOST:
    _hook_state = _Config("devicearray_dispatch_hook", None, include_in_jit_key=False)


def set_dispatch_hook(hook: Callable[..., Any] | None) -> None:
    """Have `hook` called after each dispatch that C++ makes without entering Python.

    Parameters
    ----------
    hook : callable or None
        Called with the jitted function, its arguments as a tuple and a dict, and its output, on
        the dispatching thread. It must call `dispatch_hook_of_jax`. None: no longer.
    """
    if _hook_state is None:
        return
    _hook_state.set_global(hook)
    _set_hook_state(_jax_hook_state if hook is None else _hook_state)


def dispatch_hook_of_jax() -> Callable[..., Any] | None:
    """Return the hook that JAX set for this thread itself (it checks for NaNs), or None."""
    hook: Callable[..., Any] | None = _jax_hook_state.value
    return hook


def program_name(jitted: Any) -> str:
    """Return the name of the function that a C++ dispatcher calls."""
    name: str | None = getattr(jitted, "__name__", None)
    if name is None:
        name = str(jitted.__getstate__()["function_name"])
    return name


def has_static_arguments(jitted: Any) -> bool:
    """Tell whether some arguments of a jitted function are static."""
    info = getattr(jitted, "_jit_info", None)  # What `jax.stages.Compiled` calls has none.
    return info is not None and bool(info.static_argnums or info.static_argnames)


def traced_arguments(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments of a call without those that are static."""
    info = jitted._jit_info
    places, names, n = info.static_argnums, info.static_argnames, len(args)
    traced = [arg for i, arg in enumerate(args) if i not in places and i - n not in places]
    return traced + [arg for name, arg in kwargs.items() if name not in names]


def moves_arguments() -> bool:
    """Tell whether the caller was called in order to move the arguments of a dispatch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _ARGUMENT_MOVERS:
            return True
        frame = frame.f_back
    return False


def is_on_host(array: Any) -> bool:
    """Tell whether JAX keeps the value of `array` on the host, where it is read without a wait."""
    return array._npy_value is not None


def tokens_of(token_set: Any) -> tuple[list[Any], bool]:
    """Return the arrays by which JAX waits for side effects, and whether there is nothing else.

    Else there are tokens of the runtime, which cannot be asked whether they are ready.
    """
    arrays = [token._buf for token in token_set.current_tokens.values()]
    return arrays, not token_set.output_runtime_tokens


_TOKEN: Final = "!stablehlo.token"


def outputs_of_module(module: Any) -> int | None:
    """Return how many outputs the ``main`` function of an MLIR module has, if it can be told.

    The tokens that order side effects are none.
    """
    for operation in module.body.operations:
        with contextlib.suppress(AttributeError, KeyError, ValueError):
            if str(operation.name).strip('"') == "main":
                return sum(str(result) != _TOKEN for result in operation.type.results)
    return None


def library_folders() -> tuple[str, ...]:
    """Return the folders of JAX's own code."""
    folders = [Path(jax.__file__).parent]
    folders += [Path(path) for path in importlib.import_module("jaxlib").__path__]
    return tuple(f"{folder}/" for folder in folders)


_ProfilerSession = _optional("device times", "jax._src.lib", "_profiler", "ProfilerSession")
_profile_state = _optional("device times", "jax._src.profiler", "_profile_state")
#: Where JAX keeps the session that is running; the name is another from JAX 0.12 on.
_SESSION = "session" if hasattr(_profile_state, "session") else "profile_session"


def start_profile() -> Callable[[], Any]:
    """Start the profiler in memory; return what stops it and gives the ``ProfileData``.

    Raises
    ------
    RuntimeError
        If the process is being profiled already. JAX has one profiler.
    """
    jax.devices()  # The profiler sees only the backends that were started before it.
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 1
    options.enable_hlo_proto = False
    with _profile_state.lock:
        if getattr(_profile_state, _SESSION) is not None:
            raise RuntimeError("the profiler is running already, and JAX has only one")
        # The runtime does not refuse a second session: it gives it nothing. JAX refuses one by
        # what it keeps here, so that is where ours is kept as well.
        session = _ProfilerSession(options)
        setattr(_profile_state, _SESSION, session)

    def stop() -> Any:
        with _profile_state.lock:
            # Somebody may have stopped ours and started another.
            if getattr(_profile_state, _SESSION) is session:
                setattr(_profile_state, _SESSION, None)
            return session.stop_and_get_profile_data()

    return stop
