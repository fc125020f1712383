"""jit, ahead-of-time compilation, donation, export: how an argument enters a program."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from jax.extend.core import jaxpr_as_fun

from tests.conformance.cases._data import (
    EIGHT,
    MATRIX,
    VECTOR,
    devices,
    f32,
    indices,
    on_device,
    sharded,
    sharded_over_8,
)
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt


@case(name="jit")
def jit_once(make):
    return jax.jit(lambda x: x * 2)(make(VECTOR))


@case
def jit_twice(make):
    # A function of its own per call: three times the slow path.
    return [jax.jit(lambda x: x * 2 + 1)(make(VECTOR)) for _ in range(3)]


@case
def jit_fast_path(make):
    # One function for all calls: the second and third take the C++ fast path.
    double = jax.jit(lambda x: x * 2)
    return [double(make(VECTOR)) for _ in range(3)]


@case
def jit_traces_once_for_both_kinds(make):
    traces = []

    @jax.jit
    def double(x):
        traces.append(str(jax.typeof(x)))
        return x * 2

    results = [double(make(VECTOR)), double(jnp.asarray(VECTOR)), double(make(VECTOR))]
    return results, traces


@case
def jit_retraces_for_another_shape(make):
    traces = []

    @jax.jit
    def double(x):
        traces.append(str(jax.typeof(x)))
        return x * 2

    for value in (VECTOR, MATRIX, VECTOR, f32(1)):
        double(make(value))
    return traces


@case
def jit_sees_weak_type(make):
    describe_type = jax.jit(lambda x: x * jnp.int8(2))
    return describe_type(make(jnp.asarray(1))), describe_type(make(jnp.asarray(1, jnp.int32)))


@case(raises=ValueError)
def jit_static(make):
    scale = jax.jit(lambda x, y: x * 2, static_argnums=1)
    return scale(VECTOR, make(VECTOR))


@case(raises=ValueError)
def jit_static_by_name(make):
    scale = jax.jit(lambda x, y: x * 2, static_argnames="y")
    return scale(VECTOR, y=make(VECTOR))


@case
def jit_kw(make):
    return jax.jit(lambda x, *, y: x * y)(make(VECTOR), y=make(VECTOR))


@case
def jit_dictarg(make):
    add = jax.jit(lambda tree: tree["a"] + tree["b"][0])
    return add({"a": make(VECTOR), "b": [make(VECTOR)]})


@case
def jit_pytree_none(make):
    return jax.jit(lambda pair: pair[0])((make(VECTOR), None))


@case
def jit_closure(make):
    constant = make(VECTOR)
    return jax.jit(lambda x: x + constant)(VECTOR)


@case
def jit_closure_scalar(make):
    constant = make(f32(3))
    return jax.jit(lambda x: x + constant)(VECTOR)


@case
def jit_closure_weak_scalar(make):
    constant = make(jnp.asarray(3.0))
    return jax.jit(lambda x: x + constant)(VECTOR.astype(np.float16))


@case
def jit_closure_committed(make):
    constant = make(on_device(VECTOR, 1))
    return attempt(jax.jit(lambda x: x + constant), VECTOR)


@case
def jit_closure_sharded(make):
    constant = make(jax.device_put(EIGHT, sharded("a")))
    return jax.jit(lambda x: x + constant)(jax.device_put(EIGHT, sharded("a")))


@case
def jit_closure_large(make):
    # Large constants are lowered by another way than small ones.
    constant = make(np.arange(10_000, dtype=np.float32))
    return jax.jit(lambda x: (x + constant).sum())(f32(1))


@case
def jit_closure_every_dtype(make):
    constants = [make(np.ones(2, dtype)) for dtype in (np.bool_, np.int8, np.uint32, np.float16)]
    constants.append(make(jnp.ones(2, jnp.bfloat16)))
    constants.append(make(jnp.ones(2, jnp.complex64)))
    return jax.jit(lambda: [constant + constant for constant in constants])()


@case
def jit_returns_closure(make):
    constant = make(VECTOR)
    return jax.jit(lambda x: (x, constant))(VECTOR)


@case
def closed_call_consts(make):
    constant = make(VECTOR)

    @jax.jit
    def branch(x):
        return jax.lax.cond(x[0] > 0, lambda: constant, lambda: constant + 1)

    return branch(VECTOR)


@case
def jit_default_argument(make):
    constant = make(VECTOR)

    @jax.jit
    def add(x, y=constant):
        return x + y

    return add(make(VECTOR))


@case
def jit_identity(make):
    return jax.jit(lambda x: x)(make(VECTOR))


@case
def jit_identity_committed(make):
    return jax.jit(lambda x: x)(make(on_device(VECTOR, 1)))


@case
def jit_unused_argument(make):
    keep_neither = jax.jit(lambda x, y: x + 1)
    keep_both = jax.jit(lambda x, y: x + 1, keep_unused=True)
    return [keep_neither(VECTOR, make(VECTOR)), keep_both(VECTOR, make(VECTOR))]


@case
def jit_in_shardings(make):
    return jax.jit(lambda x: x * 2, in_shardings=sharded("a"))(make(VECTOR))


@case
def jit_in_shardings_over_8(make):
    double = jax.jit(lambda x: x * 2, in_shardings=sharded_over_8(("a", "b")))
    return double(make(EIGHT)), double(make(EIGHT))


@case
def jit_out_shardings(make):
    double = jax.jit(lambda x: x * 2, out_shardings=sharded_over_8("b", "a"))
    return double(make(EIGHT.reshape(2, 4)))


@case
def jit_sharded_argument(make):
    double = jax.jit(lambda x: (x * 2, x.sum()))
    argument = make(jax.device_put(EIGHT, sharded_over_8(("a", "b"))))
    return [double(argument) for _ in range(3)]


@case(raises=ValueError)
def jit_in_sh_committed_mismatch(make):
    double = jax.jit(lambda x: x * 2, in_shardings=sharded("a"))
    return double(make(on_device(VECTOR, 1)))


@case(raises=ValueError)
def jit_committed_conflict(make):
    add = jax.jit(lambda x, y: x + y)
    return add(make(on_device(VECTOR, 1)), on_device(VECTOR, 2))


@case(raises=ValueError)
def jit_committed_conflict_second(make):
    add = jax.jit(lambda x, y: x + y)
    return add(on_device(VECTOR, 1), make(on_device(VECTOR, 2)))


@case
def jit_committed_ok(make):
    return jax.jit(lambda x, y: x + y)(make(on_device(VECTOR, 1)), VECTOR).devices()


@case
def jit_committed_with_uncommitted(make):
    add = jax.jit(lambda x, y: x + y)
    return [add(make(on_device(VECTOR, 1)), make(VECTOR)) for _ in range(2)]


@case
def jit_same_function_two_devices(make):
    double = jax.jit(lambda x: x * 2)
    return [double(make(on_device(VECTOR, index))) for index in (0, 1, 2, 0, 1, 2)]


@case
def jit_inline(make):
    increment = jax.jit(lambda y: y + 1, inline=True)
    return jax.jit(lambda x: increment(x))(make(VECTOR))


@case
def jit_nested(make):
    increment = jax.jit(lambda y: y + 1)
    constant = make(VECTOR)
    return jax.jit(lambda x: increment(x) + increment(constant))(make(VECTOR))


@case
def jit_inside_makes_array(make):
    # The array is made while tracing.
    return jax.jit(lambda x: x + make(VECTOR))(VECTOR)


@case
def jit_method(make):
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.factor

    return Scale(make(f32(3)))(make(VECTOR))


@case
def jit_compiler_options(make):
    options = {"xla_embed_ir_in_executable": True}
    return jax.jit(lambda x: x * 2, compiler_options=options)(make(VECTOR))


@case
def jit_backend_result_aliases_argument(make):
    argument = make(VECTOR)
    result = jax.jit(lambda x: x)(argument)
    return result is argument


@case
def donate(make):
    increment = jax.jit(lambda x: x + 1, donate_argnums=0)
    argument = make(jnp.array(VECTOR))
    result = increment(argument)
    return result, argument.is_deleted(), attempt(lambda: argument + 1)


@case
def donate_fastpath(make):
    increment = jax.jit(lambda x: x + 1, donate_argnums=0)
    deleted = []
    for _ in range(3):
        argument = make(jnp.array(VECTOR))
        increment(argument)
        deleted.append(argument.is_deleted())
    return deleted


@case
def donate_by_name(make):
    increment = jax.jit(lambda *, x: x + 1, donate_argnames="x")
    argument = make(jnp.array(VECTOR))
    return increment(x=argument), argument.is_deleted()


@case
def donate_tree(make):
    increment = jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree), donate_argnums=0)
    tree = {"a": make(jnp.array(VECTOR)), "b": make(jnp.array(MATRIX))}
    return increment(tree), [leaf.is_deleted() for leaf in jax.tree.leaves(tree)]


@case
def donate_sharded(make):
    increment = jax.jit(lambda x: x + 1, donate_argnums=0)
    argument = make(jax.device_put(EIGHT, sharded_over_8(("a", "b"))))
    return increment(argument), argument.is_deleted()


@case
def donate_unusable(make):
    # No result has the argument's shape: JAX warns, and deletes it all the same.
    total = jax.jit(lambda x: x.sum(), donate_argnums=0)
    argument = make(jnp.array(VECTOR))
    return total(argument), argument.is_deleted()


@case
def donate_in_a_loop(make):
    increment = jax.jit(lambda x: x + 1, donate_argnums=0)
    state = make(jnp.array(VECTOR))
    for _ in range(5):
        state = increment(state)
    return state


@case(raises=jax.errors.JaxRuntimeError)
def donate_alias(make):
    add = jax.jit(lambda x, y: x + y, donate_argnums=0)
    argument = make(jnp.array(VECTOR))
    return add(argument, argument)


@case(raises=(RuntimeError, ValueError))  # A ValueError in JAX 0.10.
def donate_twice_error(make):
    increment = jax.jit(lambda x: x + 1, donate_argnums=0)
    argument = make(jnp.array(VECTOR))
    increment(argument)
    return increment(argument)


@case
def aot_call(make):
    return [jax.jit(lambda x: x * 2).lower(VECTOR).compile()(make(VECTOR)) for _ in range(2)]


@case
def aot_call3(make):
    compiled = jax.jit(lambda x: x * 2).lower(VECTOR).compile()
    return [compiled(make(VECTOR)) for _ in range(3)]


@case
def lower_with_arg(make):
    return jax.jit(lambda x: x * 2).lower(make(VECTOR)).compile()(VECTOR)


@case
def lower_with_closure(make):
    constant = make(VECTOR)
    compiled = jax.jit(lambda x: x * constant).lower(VECTOR).compile()
    return [compiled(make(VECTOR)) for _ in range(2)]


@case
def lower_text(make):
    return jax.jit(lambda x: x * 2).lower(make(VECTOR)).as_text()


@case
def lower_avals(make):
    lowered = jax.jit(lambda x: x * 2).lower(make(jnp.asarray(1.0)))
    return [str(aval) for aval in jax.tree.leaves(lowered.in_avals)]


@case
def trace_then_lower(make):
    traced = jax.jit(lambda x: x * 2).trace(make(VECTOR))
    return str(traced.jaxpr), traced.lower().compile()(make(VECTOR))


@case(raises=TypeError)
def aot_wrong_shape(make):
    compiled = jax.jit(lambda x: x * 2).lower(VECTOR).compile()
    return compiled(make(np.ones(5, dtype=np.float32)))


@case
def aot_wrong_dtype(make):
    compiled = jax.jit(lambda x: x * 2).lower(VECTOR).compile()
    return attempt(compiled, make(indices(1, 2, 3, 4)))


@case
def aot_wrong_device(make):
    compiled = jax.jit(lambda x: x * 2).lower(make(on_device(VECTOR, 1))).compile()
    return attempt(compiled, make(on_device(VECTOR, 2))), attempt(compiled, make(VECTOR))


@case
def aot_wrong_sharding(make):
    argument = jax.device_put(EIGHT, sharded("a"))
    compiled = jax.jit(lambda x: x * 2).lower(argument).compile()
    return attempt(compiled, make(jax.device_put(EIGHT, sharded()))), compiled(make(argument))


@case
def aot_donate(make):
    compiled = jax.jit(lambda x: x + 1, donate_argnums=0).lower(VECTOR).compile()
    arguments = [make(jnp.array(VECTOR)) for _ in range(3)]
    results = [compiled(argument) for argument in arguments]
    return results, [argument.is_deleted() for argument in arguments]


@case
def export(make):
    exported = jax_export.export(jax.jit(lambda x: x * 2))(make(VECTOR))
    return exported.call(make(VECTOR))


@case(requires="flatbuffers")
def export_serialized(make):
    exported = jax_export.export(jax.jit(lambda x: x * 2))(make(VECTOR))
    return jax_export.deserialize(exported.serialize()).call(make(VECTOR))


@case
def export_closure(make):
    constant = make(VECTOR)
    exported = jax_export.export(jax.jit(lambda x: x * constant))(VECTOR)
    return exported.call(VECTOR)


@case
def export_call_in_jit(make):
    exported = jax_export.export(jax.jit(lambda x: x * 2))(make(VECTOR))
    return jax.jit(lambda x: exported.call(x) + 1)(make(VECTOR))


@case
def export_wrong_shape(make):
    exported = jax_export.export(jax.jit(lambda x: x * 2))(make(VECTOR))
    return attempt(exported.call, make(MATRIX))


@case
def eval_shape(make):
    return jax.eval_shape(lambda x: x + 1, make(VECTOR))


@case
def eval_shape_closure(make):
    constant = make(MATRIX)
    return jax.eval_shape(lambda x: x + constant, make(VECTOR))


@case
def make_jaxpr(make):
    return str(jax.make_jaxpr(lambda x: x + 1)(make(VECTOR)))


@case
def make_jaxpr_closure(make):
    constant = make(VECTOR)
    return str(jax.make_jaxpr(lambda x: x + constant)(VECTOR))


@case
def make_jaxpr_closure0(make):
    constant = make(f32(3))
    return str(jax.make_jaxpr(lambda x: x + constant)(VECTOR))


@case
def make_jaxpr_consts(make):
    constant = make(VECTOR)
    closed = jax.make_jaxpr(lambda x: x + constant)(VECTOR)
    return list(closed.consts), jaxpr_as_fun(closed)(VECTOR)


@case
def make_jaxpr_return_shape(make):
    return jax.make_jaxpr(lambda x: x.sum(), return_shape=True)(make(MATRIX))[1]


@case(name="SDS_like")
def shape_dtype_struct_like(make):
    return jax.ShapeDtypeStruct.like(make(VECTOR))


@case(name="SDS_like_committed")
def shape_dtype_struct_like_committed(make):
    struct = jax.ShapeDtypeStruct.like(make(on_device(VECTOR, 1)))
    return struct, struct.sharding


@case
def shape_dtype_struct_like_sharded(make):
    struct = jax.ShapeDtypeStruct.like(make(jax.device_put(EIGHT, sharded("a"))))
    return struct, struct.sharding


@case
def shape_dtype_struct_like_weak(make):
    struct = jax.ShapeDtypeStruct.like(make(jnp.asarray(1.0)))
    return struct, struct.weak_type


@case
def ensure_compile_time_eval(make):
    constant = make(VECTOR)

    @jax.jit
    def scale(x):
        with jax.ensure_compile_time_eval():
            factor = (constant * 2).sum()
        return x * float(factor)

    return scale(VECTOR)


@case
def clear_caches_between_calls(make):
    double = jax.jit(lambda x: x * 2)
    argument = make(VECTOR)
    first = double(argument)
    double.clear_cache()
    return first, double(argument)


@case
def jit_on_default_device(make):
    with jax.default_device(devices()[2]):
        return jax.jit(lambda x: x * 2)(make(VECTOR))
