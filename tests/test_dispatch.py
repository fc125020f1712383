"""One call is one dispatch; `jit` is `jax.jit` in all but the class of what it returns."""

import contextlib
import functools
import gc
import inspect
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import devicearray as da
from tests.comparison import assert_agree, assert_device_arrays
from tests.conformance.harness import attempt
from tests.eight_devices import on_eight, over_eight
from tests.profiled import profiled

M = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
V = jnp.array([0.25, 0.5, 0.75])
KEY = jax.random.key(7)


@pytest.fixture(autouse=True)
def _no_programs():
    da.clear_caches()


def assert_same(function, *args, **options):
    """Compile with `jax.jit` and with `da.jit`; the outcomes of a first and a second call agree."""
    theirs, ours = jax.jit(function, **options), da.jit(function, **options)
    wanted = attempt(theirs, *args)
    for _ in range(2):
        found = attempt(ours, *jax.tree.map(ours_of, args))
        assert_agree(found, wanted)
        assert_device_arrays(found)
    return found


def ours_of(value):
    return da.asarray(value) if isinstance(value, jax.Array) else value


# One call is one dispatch. The profiler counts what reaches the runtime.


m, v, key = da.asarray(M), da.asarray(V), da.asarray(KEY)
f = da.jit(lambda x, y: (jnp.tanh(x @ y), {"sum": x.sum()}))

ONE_DISPATCH = {
    "operator": lambda: v + v,
    "operator of two": lambda: m @ v,
    "operator with a number": lambda: v * 2,
    "reflected": lambda: 1 - v,
    "divmod": lambda: divmod(v, v),
    "power": lambda: v**3,
    "method": lambda: m.sum(axis=0),
    "method of several steps": lambda: m.var(axis=0),
    "function": lambda: da.numpy.dot(m, v),
    "function of several steps": lambda: da.numpy.linalg.norm(m),
    "function with names": lambda: da.numpy.std(m, axis=1, ddof=1),
    "function of a list": lambda: da.numpy.stack([v, v, v]),
    "function with many results": lambda: da.numpy.split(v, 3),
    "solver": lambda: da.numpy.linalg.solve(m, v),
    "transform": lambda: da.numpy.fft.fft(v),
    "ufunc method": lambda: da.numpy.add.reduce(v),
    "random numbers": lambda: da.random.normal(key, (3,)),
    "split": lambda: da.random.split(key),
    "choice": lambda: da.random.choice(key, v),
    "jit": lambda: f(m, v),
}


@pytest.mark.parametrize("call", ONE_DISPATCH)
def test_one_call_is_one_dispatch(call):
    ONE_DISPATCH[call]()
    assert profiled(ONE_DISPATCH[call]).dispatches == 1


def test_the_count_sees_every_dispatch():
    _ = v + v, v * v
    assert profiled(lambda: (v + v, v * v, v + v)).dispatches == 3
    assert profiled(lambda: v).dispatches == 0


def test_a_call_on_eight_devices_is_one_dispatch():
    x = da.asarray(on_eight(jnp.arange(16.0), "i"))
    _ = x + x
    assert profiled(lambda: x + x).dispatches == 1


def test_what_answers_from_the_buffer_dispatches_nothing():
    def ask():
        return v.shape, v.dtype, v.sharding, len(v), v.is_ready(), da.asarray(v), repr(v.aval)

    ask()
    assert profiled(lambda: [ask()] and v).dispatches == 0


# jit is jax.jit.


@pytest.mark.parametrize(
    "args",
    [
        (M,),
        (1,),
        (2.5,),
        (True,),
        (1 + 2j,),
        (np.arange(3),),
        (np.float16(2),),
        (jnp.asarray(3),),
        (jnp.zeros((0, 2)),),
        (jnp.arange(3, dtype=jnp.bfloat16),),
    ],
    ids=repr,
)
def test_arguments_of_every_kind_agree_with_jax(args):
    assert_same(lambda x: (x + 1, x), *args)


@pytest.mark.parametrize(
    "tree",
    [
        {"a": V, "b": [V, (M, None)]},
        [V, 1.0, np.arange(3.0)],
        (),
        {},
        None,
        [[], {"empty": ()}],
    ],
    ids=["nested", "mixed", "tuple", "dict", "none", "empties"],
)
def test_trees_in_and_out_agree_with_jax(tree):
    assert_same(lambda x: x, tree)
    assert_same(lambda x: {"again": x, "n": jnp.float32(3)}, tree)


def test_registered_classes_in_and_out_agree_with_jax():
    @functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
    class Layer:
        def __init__(self, w, name):
            self.w, self.name = w, name

    ours = da.jit(lambda layer: Layer(layer.w * 2, layer.name + "!"))(Layer(v, "a"))
    assert type(ours) is Layer
    assert ours.name == "a!"
    assert type(ours.w) is da.DeviceArray
    assert_agree(ours.w, V * 2)


def test_keyword_arguments_agree_with_jax():
    def function(x, *, y, z=2):
        return x * y + z

    theirs, ours = jax.jit(function), da.jit(function)
    for kwargs in ({"y": V}, {"y": V, "z": 3}, {"z": 3.0, "y": 1}, {"y": V, "z": V}):
        named = {name: ours_of(value) for name, value in kwargs.items()}
        assert_agree(ours(v, **named), theirs(V, **kwargs))
        assert_agree(ours(v, **named), theirs(V, **kwargs))
    assert_agree(attempt(ours, v), attempt(theirs, V))
    assert_agree(attempt(ours, v, nonsense=1), attempt(theirs, V, nonsense=1))


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1},
        {"static_argnums": (1,)},
        {"static_argnums": -1},
        {"static_argnames": "n"},
        {"static_argnames": ("n",)},
        {"static_argnums": (1,), "static_argnames": ("n",)},
    ],
    ids=repr,
)
def test_static_arguments_agree_with_jax(options):
    def power(x, n):
        return x**n if isinstance(n, int) else x + len(n)

    theirs, ours = jax.jit(power, **options), da.jit(power, **options)
    for n in (2, 3, True, "text", (1, 2)):
        assert_agree(ours(v, n), theirs(V, n))
        assert_agree(attempt(lambda n=n: ours(v, n=n)), attempt(lambda n=n: theirs(V, n=n)))
    unhashable = [1, 2]
    wanted, found = attempt(theirs, V, unhashable), attempt(ours, v, unhashable)
    assert type(found.error) is type(wanted.error)


def test_a_static_argument_that_compares_by_identity_is_compiled_for_each():
    class Config:
        def __init__(self, scale):
            self.scale = scale

    ours = da.jit(lambda x, c: x * c.scale, static_argnums=1)
    one, two = Config(1.0), Config(2.0)
    for config in (one, two, one):
        assert_agree(ours(v, config), V * config.scale)
    assert len(da.programs()) == 2


def test_a_function_can_be_a_static_argument():
    ours = da.jit(lambda g, x: g(x), static_argnums=0)
    for g in (jnp.sin, jnp.cos, da.numpy.sin):
        assert_agree(ours(g, v), jax.jit(g)(V))


@pytest.mark.parametrize("by", ["number", "name"])
def test_donated_arguments_are_deleted_as_jax_deletes_them(by):
    options = {"donate_argnums": 0} if by == "number" else {"donate_argnames": "x"}

    def function(x, y):
        return x + y

    theirs, ours = jax.jit(function, **options), da.jit(function, **options)
    for _ in range(2):
        plain, mine = jnp.arange(3.0), da.asarray(jnp.arange(3.0))
        wanted, found = theirs(plain, V), ours(mine, v)
        assert_agree(found, wanted)
        assert mine.is_deleted() == plain.is_deleted() is True
        assert not v.is_deleted()
        with pytest.raises(RuntimeError, match="deleted") as error:
            mine + 1
        assert "donate" in "".join(error.value.__notes__)


def test_an_argument_donated_and_used_again_is_jaxs_error():
    def function(x, y):
        return x + y

    theirs = jax.jit(function, donate_argnums=0)
    ours = da.jit(function, donate_argnums=0)
    plain, mine = jnp.arange(3.0), da.asarray(jnp.arange(3.0))
    assert_agree(attempt(ours, mine, mine), attempt(theirs, plain, plain))


def test_in_and_out_shardings_agree_with_jax():
    def function(x):
        return x * 2, x.sum()

    for options in (
        {"in_shardings": over_eight("i")},
        {"out_shardings": (over_eight("i"), over_eight())},
        {"in_shardings": over_eight(), "out_shardings": over_eight()},
    ):
        assert_same(function, jnp.arange(16.0), **options)
    assert_same(function, on_eight(jnp.arange(16.0), "i"), in_shardings=over_eight())


def test_an_argument_on_one_device_goes_where_in_shardings_says_as_with_jax():
    there = jax.device_put(jnp.arange(16.0), jax.devices()[1])
    for axes in ((), ("i",)):
        assert_same(lambda x: x * 2, there, in_shardings=over_eight(*axes))


@pytest.mark.parametrize("axes", [("i",), (), (None, "i")])
def test_sharded_arguments_agree_with_jax(axes):
    x = on_eight(jnp.arange(64.0).reshape(8, 8), *axes)
    assert_same(lambda x: (x * 2, x.sum(), x.sum(0), x.T, x @ x, x[0]), x)


@pytest.mark.parametrize("options", [{"keep_unused": True}, {"inline": True}, {"device": None}])
def test_other_options_are_those_of_jax(options):
    assert_same(lambda x, y: x, V, M, **options)


@pytest.mark.parametrize(
    "options", [{"nonsense": 1}, {"static_argnums": 7}, {"static_argnames": "q"}], ids=repr
)
def test_wrong_options_are_jaxs_errors(options):
    def function(x):
        return x

    wanted, found = attempt(jax.jit, function, **options), attempt(da.jit, function, **options)
    assert hasattr(wanted, "error") == hasattr(found, "error")
    if hasattr(wanted, "error"):
        assert_agree(found, wanted)


@pytest.mark.parametrize("what", [1, "text", [1]], ids=repr)
def test_what_is_not_callable_is_refused_as_by_jax(what):
    assert_agree(attempt(da.jit, what), attempt(jax.jit, what))


def test_it_is_a_decorator_with_and_without_arguments():
    @da.jit
    def plain(x):
        """Say what it does."""
        return x + 1

    @da.jit(static_argnames="n")
    def with_arguments(x, n):
        return x * n

    @functools.partial(da.jit, static_argnums=1)
    def by_partial(x, n):
        return x * n

    assert_agree(plain(v), V + 1)
    assert_agree(with_arguments(v, n=2), V * 2)
    assert_agree(by_partial(v, 2), V * 2)
    assert (plain.__name__, plain.__doc__) == ("plain", "Say what it does.")
    assert list(inspect.signature(with_arguments).parameters) == ["x", "n"]
    assert plain.__wrapped__(1) == 2


def test_methods_static_methods_and_class_methods_can_be_compiled():
    class Model:
        scale = 3.0

        @functools.partial(da.jit, static_argnums=0)
        def method(self, x):
            return x * self.scale

        @staticmethod
        @da.jit
        def static(x):
            return x + 1

        @classmethod
        @functools.partial(da.jit, static_argnums=0)
        def of_class(cls, x):
            return x * cls.scale

    model = Model()
    assert_agree(model.method(v), V * 3)
    assert_agree(model.static(v), V + 1)
    assert_agree(Model.of_class(v), V * 3)


class Scaled:
    @functools.partial(da.jit, static_argnums=0)
    def times(self, x, n=2.0):
        return x * n


@pytest.mark.parametrize("outer", [da.jit, jax.jit], ids=["da.jit", "jax.jit"])
def test_what_compiles_a_compiled_function_keeps_its_own_options(outer):
    method = outer(Scaled().times)
    assert_agree(method(v), V * 2)
    assert_agree(method.lower(v).compile()(v), V * 2)
    assert method.eval_shape(v) == jax.eval_shape(lambda x: x * 2, V)

    donated = outer(da.jit(lambda x: x + 1), donate_argnums=0).lower(v)
    assert jax.tree.leaves(donated.args_info)[0].donated


def test_callables_of_every_kind_can_be_compiled():
    class Callable:
        def __call__(self, x):
            return x + 1

    for function in (Callable(), functools.partial(jnp.add, 1), jnp.sin, jax.jit(jnp.cos), abs):
        assert_agree(da.jit(function)(v), jax.jit(function)(V))


def test_the_name_of_a_function_is_that_of_its_program():
    def step(x):
        return x + 1

    da.jit(step)(v)
    da.jit(functools.partial(step))(v)
    assert da.programs()[-1].name == "step"


def test_a_device_array_that_the_function_closes_over_is_a_constant():
    held = da.asarray(M)
    assert_agree(da.jit(lambda x: held @ x)(v), jax.jit(lambda x: M @ x)(V))
    assert_agree(jax.jit(lambda x: held @ x)(V), jax.jit(lambda x: M @ x)(V))
    assert_agree(da.jit(lambda: held)(), jax.jit(lambda: M)())


def test_an_argument_handed_back_is_a_device_array():
    found = da.jit(lambda x: (x, x, {"a": x}))(v)
    assert_agree(found, jax.jit(lambda x: (x, x, {"a": x}))(V))
    assert_device_arrays(found)


def test_results_that_are_no_arrays_are_jaxs_error():
    assert_same(lambda x: "text", V)
    assert_same(lambda x: object, V)
    assert_same(lambda x: None, V)
    assert_same(lambda x: (x, 1, 2.0, np.arange(2)), V)


# What goes on around it.


def test_it_nests_in_itself_and_in_transformations():
    inner = da.jit(lambda x: jnp.sin(x).sum())
    plain = jax.jit(lambda x: jnp.sin(x).sum())
    for transform in (
        da.jit,
        jax.jit,
        jax.grad,
        jax.value_and_grad,
        jax.hessian,
        jax.checkpoint,
        lambda g: jax.vmap(lambda x: g(x)),
        lambda g: jax.jit(jax.grad(g)),
        lambda g: da.jit(jax.grad(da.jit(g))),
        lambda g: lambda x: jax.jvp(g, (x,), (x,)),
        lambda g: lambda x: jax.lax.map(g, x),
        lambda g: lambda x: jax.eval_shape(g, x),
    ):
        assert_agree(transform(inner)(v), transform(plain)(V))
        assert_agree(transform(inner)(V), transform(plain)(V))


def test_of_transformed_functions_it_agrees_with_jax():
    def function(x):
        return jnp.sum(jnp.sin(x) ** 2)

    for transform in (jax.grad, jax.hessian, jax.vmap, jax.value_and_grad, jax.jacfwd):
        assert_same(transform(function), V)


def test_its_jaxpr_is_jaxs():
    def function(x):
        return jnp.sin(x) + x.sum()

    assert str(jax.make_jaxpr(da.jit(function))(v)) == str(jax.make_jaxpr(jax.jit(function))(V))


def test_custom_derivatives_are_kept():
    @jax.custom_vjp
    def twice(x):
        return 2 * x

    twice.defvjp(lambda x: (2 * x, None), lambda _, g: (g * 100,))
    wanted = jax.grad(lambda x: jax.jit(twice)(x).sum())(V)
    assert_agree(jax.grad(lambda x: da.jit(twice)(x).sum())(v), wanted)
    assert float(wanted[0]) == 100


def test_lower_trace_and_eval_shape_are_those_of_jax():
    def function(x, n):
        return {"a": x * n}

    ours = da.jit(function, static_argnames="n")
    theirs = jax.jit(function, static_argnames="n")
    assert ours.lower(v, n=2).as_text() == theirs.lower(V, n=2).as_text()
    assert str(ours.trace(v, n=2).jaxpr) == str(theirs.trace(V, n=2).jaxpr)
    assert ours.eval_shape(v, n=2) == theirs.eval_shape(V, n=2)
    assert_agree(ours.lower(v, n=2).compile()(v), theirs.lower(V, n=2).compile()(V))


def test_clear_cache_forgets_the_programs_of_one_function():
    one, other = da.jit(lambda x: x + 1), da.jit(lambda x: x + 2)
    one(v), other(v)
    assert len(da.programs()) == 2
    one.clear_cache()
    assert len(da.programs()) == 1
    assert_agree(one(v), V + 1)
    assert len(da.programs()) == 2


def test_side_effects_of_tracing_happen_once():
    traced = []

    @da.jit
    def function(x):
        traced.append(type(x))
        return x + 1

    for _ in range(3):
        function(v)
    assert len(traced) == 1
    assert issubclass(traced[0], jax.core.Tracer)


def test_printing_from_the_device_happens_at_every_call(capsys):
    @da.jit
    def function(x):
        jax.debug.print("sum {}", x.sum())
        return x + 1

    for _ in range(3):
        assert_agree(function(v), V + 1)
    jax.effects_barrier()
    assert capsys.readouterr().out == "sum 1.5\n" * 3


@pytest.mark.parametrize("ordered", [False, True])
def test_host_callbacks_happen_at_every_call(ordered):
    seen = []

    @da.jit
    def function(x):
        return io_callback(
            lambda y: seen.append(np.asarray(y).sum()) or np.float32(len(seen)),
            jax.ShapeDtypeStruct((), jnp.float32),
            x,
            ordered=ordered,
        )

    results = [function(v) for _ in range(3)]
    jax.effects_barrier()
    assert [float(result) for result in results] == [1.0, 2.0, 3.0]
    assert len(seen) == 3
    assert_device_arrays(results)


def test_pure_callbacks_agree_with_jax():
    def function(x):
        return jax.pure_callback(
            lambda y: np.asarray(y) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x
        )

    assert_same(function, V)


def test_mutable_references_are_updated():
    def add(ref, x):
        ref[...] += x

    theirs, ours = jax.jit(add), da.jit(add)
    ref, mine = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.zeros(3))
    for _ in range(3):
        theirs(ref, V)
        ours(mine, v)
        assert_agree(mine[...], ref[...])


def test_disable_jit_runs_the_function_itself():
    kinds = []

    @da.jit
    def function(x):
        kinds.append(isinstance(x, jax.core.Tracer))
        return {"a": x + 1}

    function(v)
    with jax.disable_jit():
        found = function(v)
        assert_agree(found, {"a": V + 1})
        assert_device_arrays(found)
    function(v)
    assert kinds == [True, False]


def test_disable_jit_leaves_the_results_of_operators_and_functions():
    with jax.disable_jit():
        for found, wanted in (
            (v + v, V + V),
            (m.sum(axis=0), M.sum(axis=0)),
            (da.numpy.linalg.norm(m), jnp.linalg.norm(M)),
            (da.random.normal(key, (3,)), jax.random.normal(KEY, (3,))),
        ):
            assert_agree(found, wanted)
            assert_device_arrays(found)


@pytest.mark.parametrize("warm", [False, True], ids=["new", "known"])
def test_debug_nans_raises_jaxs_error(warm):
    def log(x):
        return jnp.log(x)

    theirs, ours, zero = jax.jit(log), da.jit(log), da.asarray(jnp.array(-1.0))
    if warm:
        _ = ours(zero), da.numpy.log(zero), zero / 0 * 0
    with jax.debug_nans(True):
        wanted = attempt(theirs, jnp.array(-1.0))
        assert isinstance(wanted.error, FloatingPointError)
        for call in (lambda: ours(zero), lambda: da.numpy.log(zero), lambda: (zero * 0) / 0):
            assert isinstance(attempt(call).error, FloatingPointError)
        assert_agree(ours(da.asarray(jnp.array(1.0))), jnp.array(0.0))
    assert np.isnan(ours(zero))


def test_debug_infs_raises_jaxs_error():
    one = da.asarray(jnp.array(1.0))
    _ = one / 0
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        one / 0


def test_transfer_guard_sees_what_it_sees_of_jax():
    def attempts(x, f):
        return [hasattr(attempt(f, x), "error"), hasattr(attempt(lambda: x + x), "error")]

    theirs, ours = jax.jit(lambda x: x + 1), da.jit(lambda x: x + 1)
    theirs(V), ours(v)
    _ = v + v, V + V
    with jax.transfer_guard("disallow"):
        assert attempts(v, ours) == attempts(V, theirs)
        assert hasattr(attempt(ours, np.ones(3)), "error") == hasattr(
            attempt(theirs, np.ones(3)), "error"
        )


# Errors.


class MyError(Exception):
    pass


def test_an_error_of_the_function_is_raised_as_it_is_and_again():
    calls = []

    @da.jit
    def function(x):
        calls.append(1)
        raise MyError("mine")

    for _ in range(2):
        with pytest.raises(MyError, match="mine"):
            function(v)
    assert len(calls) == 2
    assert da.programs() == []


def test_a_function_that_failed_once_can_succeed_later():
    fail = True

    @da.jit
    def function(x):
        if fail:
            raise MyError
        return x + 1

    with pytest.raises(MyError):
        function(v)
    fail = False
    assert_agree(function(v), V + 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bool(x.sum()),
        lambda x: float(x[0]),
        lambda x: x[x > 0],
        lambda x: np.asarray(x),
        lambda x: jnp.zeros(x[0]),
        lambda x: jnp.dot(x, jnp.zeros(7)),
        lambda x: {x: 1},
        lambda x: [1][x[0].astype(int)],
        lambda x: x.nonsense,
        lambda x: x + "a",
        lambda x: da.numpy.dot(x, da.numpy.zeros(7)),
    ],
)
def test_errors_in_tracing_are_jaxs(function):
    wanted = attempt(jax.jit(function), V)
    assert hasattr(wanted, "error")
    assert_agree(attempt(da.jit(function), v), wanted)


@pytest.mark.parametrize("argument", ["text", object, {1, 2}, 1 << 40, {"a": "text"}, [object]])
def test_arguments_that_are_no_arrays_are_jaxs_errors(argument):
    def function(x):
        return x

    wanted, found = attempt(jax.jit(function), argument), attempt(da.jit(function), argument)
    assert hasattr(wanted, "error")
    assert_agree(found, wanted)


def test_a_leaked_tracer_is_jaxs_error():
    leaked = []

    @da.jit
    def leak(x):
        leaked.append(x)
        return x

    leak(v)
    for call in (
        lambda: da.jit(lambda x: x + 1)(leaked[0]),
        lambda: v + leaked[0],
        lambda: leaked[0] + v,
        lambda: da.numpy.sin(leaked[0]),
        lambda: da.numpy.dot(v, leaked[0]),
    ):
        assert isinstance(attempt(call).error, jax.errors.UnexpectedTracerError)


def test_a_leaked_tracer_that_the_function_closes_over_is_jaxs_error():
    leaked = []
    jax.jit(leaked.append)(V)
    assert_same(lambda x: x + leaked[0], V)


# Threads.


def at_once(function, n=16):
    together = threading.Barrier(n)

    def call(i):
        together.wait()
        return function(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(call, range(n)))


def test_threads_that_call_a_new_function_at_once_compile_once():
    traced = []

    @da.jit
    def function(x):
        traced.append(threading.get_ident())
        return jnp.linalg.norm(x) + 1

    wanted = jax.jit(lambda x: jnp.linalg.norm(x) + 1)(M)
    for found in at_once(lambda _: function(m)):
        assert_agree(found, wanted)
    assert len(traced) == 1
    assert len(da.programs()) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x, f: x + 1,
        lambda x, f: x * x,
        lambda x, f: x.sum(axis=1),
        lambda x, f: f.linalg.slogdet(x),
        lambda x, f: f.maximum.reduce(x, axis=1),
        lambda x, f: f.nonzero(x),
    ],
)
def test_threads_that_use_a_new_operation_at_once_compile_once_and_agree(call):
    wanted = call(M, jnp)
    for found in at_once(lambda _: call(m, da.numpy)):
        assert_agree(found, wanted)
    assert len(da.programs()) <= 1


def test_threads_with_arguments_of_different_kinds_get_each_its_own_result():
    @da.jit
    def function(x):
        return x.sum(axis=0) * 2

    arrays = [jnp.arange(6.0 * (i % 4 + 1)).reshape(3, -1) for i in range(16)]
    results = at_once(lambda i: function(da.asarray(arrays[i])))
    for array, found in zip(arrays, results, strict=True):
        assert_agree(found, array.sum(axis=0) * 2)
    assert len(da.programs()) == 4


def test_settings_of_one_thread_do_not_reach_another():
    inside, leave = threading.Event(), threading.Event()

    def wide():
        with jax.enable_x64(True):
            inside.set()
            leave.wait()
            return (da.numpy.zeros(3) + 1).dtype

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(wide)
        inside.wait()
        narrow = (da.numpy.zeros(3) + 1).dtype
        leave.set()
        assert (narrow, other.result()) == (np.float32, np.float64)


def test_an_error_in_one_thread_is_every_threads_and_blocks_none():
    @da.jit
    def function(x):
        raise MyError

    found = at_once(lambda _: attempt(function, v))
    assert [type(outcome.error) for outcome in found] == [MyError] * 16


def test_a_function_may_call_itself_while_it_is_traced():
    @da.jit
    def factorial(x, n):
        return x if n == 0 else factorial(x * n, n - 1)

    factorial = da.jit(factorial.__wrapped__, static_argnums=1)
    assert_agree(factorial(v, 4), V * 4 * 3 * 2 * 1)


# Life.


def test_arguments_and_results_are_not_kept():
    function = da.jit(lambda x: x * 2)
    array = da.asarray(jnp.arange(3.0))
    result = function(array)
    references = [weakref.ref(array), weakref.ref(result)]
    del array, result
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize(
    "call", [lambda x: x + x, lambda x: x.sum(), da.numpy.sin, lambda x: da.numpy.ravel(x)]
)
def test_operands_of_operations_are_not_kept(call):
    buffer = jnp.arange(5.0)
    reference = weakref.ref(buffer)
    array = da.asarray(buffer)
    for _ in range(3):
        call(array)
    del array, buffer
    gc.collect()
    assert reference() is None


def test_a_context_manager_around_calls_is_left_as_it_was():
    with contextlib.suppress(MyError), jax.default_device(jax.devices()[2]):
        da.jit(lambda x: x)(v)
        raise MyError
    assert_agree(da.numpy.zeros(2) + 1, jnp.zeros(2) + 1)
