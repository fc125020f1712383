"""Programs: what makes two calls share one, how they are listed, and how they are forgotten."""

import copy
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da
from devicearray._program import Abstract, Key, Program, ProgramCache, abstract
from tests.comparison import assert_agree
from tests.eight_devices import on_eight


@pytest.fixture(autouse=True)
def _no_programs():
    da.clear_caches()


# What a program depends on.

KINDS = {
    "float32[8]": lambda: jnp.arange(8.0),
    "another shape": lambda: jnp.arange(16.0),
    "another rank": lambda: jnp.arange(8.0).reshape(8, 1),
    "another dtype": lambda: jnp.arange(8),
    "weak type": lambda: jnp.full(8, 1.0) * 0 + jnp.asarray(1.0),
    "committed": lambda: jax.device_put(jnp.arange(8.0), jax.devices()[0]),
    "another device": lambda: jax.device_put(jnp.arange(8.0), jax.devices()[1]),
    "sharded": lambda: on_eight(jnp.arange(8.0), "i"),
    "replicated": lambda: on_eight(jnp.arange(8.0)),
}


def weak(value):
    return jax.lax.broadcast(jnp.asarray(value), (8,))


KINDS["weak type"] = lambda: weak(1.0)


@pytest.mark.parametrize("first", KINDS)
def test_arrays_of_another_kind_get_another_program_and_the_right_result(first):
    @da.jit
    def double(x):
        return x * 2

    theirs = jax.jit(lambda x: x * 2)
    for kind in (first, *KINDS):
        assert_agree(double(da.asarray(KINDS[kind]())), theirs(KINDS[kind]()))
    assert len(da.programs()) == len(KINDS)
    for kind in KINDS:
        double(da.asarray(KINDS[kind]()))
    assert len(da.programs()) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_of_arrays_of_every_kind_agree_with_jax(kind):
    for _ in range(2):
        for other in KINDS.values():
            x, y = KINDS[kind](), other()
            if x.shape == y.shape and x.devices() == y.devices():
                assert_agree(da.asarray(x) + da.asarray(y), x + y)


CONTEXTS = {
    "x64": lambda: jax.enable_x64(True),
    "precision": lambda: jax.default_matmul_precision("float32"),
    "device": lambda: jax.default_device(jax.devices()[3]),
    "rank promotion": lambda: jax.numpy_rank_promotion("warn"),
    "dtype promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "mesh": lambda: jax.set_mesh(
        jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    ),
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_setting_that_changes_what_is_compiled_makes_another_program(context):
    theirs = jax.jit(lambda x: x @ x + jnp.zeros(8).sum())
    ours = da.jit(lambda x: x @ x + jnp.zeros(8).sum())
    x = np.arange(8.0, dtype=np.float32)
    assert_agree(ours(x), theirs(x))
    with CONTEXTS[context]():
        assert_agree(ours(x), theirs(x))
        assert_agree(ours(x), theirs(x))
    assert_agree(ours(x), theirs(x))
    assert len(da.programs()) == 2


def test_results_under_x64_are_64_bits_wide_and_narrow_again_after():
    x = da.asarray(np.arange(3.0, dtype=np.float32))
    for width in (False, True, False):
        with jax.enable_x64(width):
            assert_agree(x.astype(float) + 1, jnp.arange(3.0, dtype="f4").astype(float) + 1)
            assert_agree(da.numpy.sum(x > 0), jnp.sum(jnp.arange(3.0, dtype="f4") > 0))


def test_an_uncommitted_array_goes_where_the_default_device_says():
    x = jnp.arange(3.0)
    with jax.default_device(jax.devices()[3]):
        assert_agree(da.asarray(x) + 1, x + 1)
        assert_agree(da.numpy.zeros(3) + 1, jnp.zeros(3) + 1)
        assert_agree(da.jit(lambda y: y + 1)(1.0), jax.jit(lambda y: y + 1)(1.0))


@pytest.mark.parametrize("values", [(1, True, 1.0), (0, False, 0.0, -0.0), ("a", "b")], ids=repr)
def test_static_values_that_compare_equal_are_told_apart_by_type(values):
    def function(x, flag):
        return x, type(flag).__name__ == "bool", str(flag) == "1.0"

    ours = da.jit(function, static_argnums=1)
    theirs = jax.jit(function, static_argnums=1)
    for flag in (*values, *reversed(values)):
        assert_agree(ours(1.0, flag), theirs(1.0, flag))


@pytest.mark.parametrize(
    "leaf", [1, True, 1.0, 1j, np.float32(1), np.arange(3), jnp.arange(3), jax.random.key(0)]
)
def test_what_a_program_depends_on_is_no_value(leaf):
    kind = abstract(leaf)
    assert kind.aval == jax.typeof(leaf)
    assert kind == abstract(copy.copy(leaf))
    assert hash(kind) == hash(abstract(leaf))
    assert (kind.sharding is None) == (not isinstance(leaf, jax.Array))


def test_arrays_that_differ_in_placement_alone_are_different_to_a_program():
    avals = [abstract(KINDS[kind]()) for kind in ("float32[8]", "committed", "another device")]
    assert len(set(avals)) == 3
    assert len({kind.aval for kind in avals}) == 1


@pytest.mark.parametrize("leaf", [object(), "text", {1, 2}])
def test_what_jax_takes_for_no_array_is_refused(leaf):
    with pytest.raises(TypeError):
        abstract(leaf)


def test_a_key_can_be_read():
    key = Key((), jax.tree.structure(1), (Abstract(jax.typeof(1.0), None, False, None),), ())
    assert key == Key(*key)
    assert "float32[]" in repr(key)


# The cache.


def program(name="f"):
    return Program(name, 0.0, None, None, None)


def key(name):
    return Key((name,), None, (), ())


def test_a_cache_compiles_once_for_each_key():
    cache, made = ProgramCache(), []

    def compile_program():
        made.append(program())
        return made[-1]

    first = cache.get(key("a"), compile_program)
    assert cache.get(key("a"), compile_program) is first
    assert cache.get(key("b"), compile_program) is not first
    assert cache.programs() == made
    assert len(made) == 2


def test_that_a_call_is_no_program_is_remembered():
    cache, asked = ProgramCache(), []
    for _ in range(2):
        assert cache.get(key("a"), lambda: asked.append(1)) is None
    assert asked == [1]
    assert cache.programs() == []


def test_a_failed_compilation_is_tried_again():
    cache = ProgramCache()

    def fail():
        raise ValueError("once")

    with pytest.raises(ValueError, match="once"):
        cache.get(key("a"), fail)
    assert cache.get(key("a"), program).name == "f"


def test_a_cache_that_is_cleared_compiles_again_and_tells_the_dispatcher():
    cache, told = ProgramCache(), []
    cache.forget = lambda: told.append(1)
    first = cache.get(key("a"), program)
    cache.clear()
    assert told == [1]
    assert cache.programs() == []
    assert cache.get(key("a"), program) is not first


def test_threads_that_come_at_once_compile_once():
    cache, made, n = ProgramCache(), [], 16
    together = threading.Barrier(n)

    def compile_program():
        made.append(program())
        return made[-1]

    def get(_):
        together.wait()
        return cache.get(key("a"), compile_program)

    with ThreadPoolExecutor(n) as pool:
        found = list(pool.map(get, range(n)))
    assert len(made) == 1
    assert all(p is made[0] for p in found)


def test_a_thread_that_compiles_does_not_hold_up_another_key():
    cache = ProgramCache()
    compiling, release = threading.Event(), threading.Event()

    def slow():
        compiling.set()
        release.wait()
        return program("slow")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.get, key("slow"), slow)
        compiling.wait()
        try:
            assert cache.get(key("fast"), lambda: program("fast")).name == "fast"
            assert [p.name for p in cache.programs()] == ["fast"]
        finally:
            release.set()
        assert waiting.result().name == "slow"


# The list.


def test_programs_are_listed_by_name_with_their_outputs():
    x = da.asarray([1.0, 2.0])
    _ = x - 1, x + 1
    assert [(p.name, p.outputs) for p in da.programs()] == [
        ("add", ("float32[2]",)),
        ("sub", ("float32[2]",)),
    ]


def test_a_program_tells_its_outputs_and_shows_its_executable():
    @da.jit
    def pair(x):
        return {"a": x + 1, "b": (x > 0, x.sum())}

    pair(jnp.arange(3.0))
    [made] = da.programs()
    assert made.name == "pair"
    assert made.outputs == ("float32[3]", "bool[3]", "float32[]")
    assert made.compile_seconds > 0
    assert "HloModule" in made.compiled.as_text()
    assert "compiled=" not in repr(made)


def test_programs_of_jax_are_not_listed():
    jax.jit(lambda x: x + 1)(da.asarray([1.0]))
    jnp.sin(da.asarray([1.0]))
    assert da.programs() == []


def test_the_list_is_no_view():
    x = da.asarray([1.0])
    before = da.programs()
    _ = x + 1
    assert before == []


def test_programs_of_one_name_are_listed_each():
    x = da.asarray([1.0])
    _ = x + 1, x + 1.0, x + x
    assert len(da.programs()) == 3
    assert {p.name.strip("_") for p in da.programs()} == {"add"}


# Forgetting.


def test_forgotten_programs_are_compiled_again_and_give_the_same():
    x, f = da.asarray([1.0, 2.0]), da.jit(lambda x: x * 3)
    first = (x + x, x + 1, x.sum(), da.numpy.sin(x), f(x))
    names = [p.name for p in da.programs()]
    assert len(names) == 5
    da.clear_caches()
    assert da.programs() == []
    again = (x + x, x + 1, x.sum(), da.numpy.sin(x), f(x))
    assert_agree(again, first)
    assert [p.name for p in da.programs()] == names


def test_forgetting_really_compiles_again():
    traced = []

    @da.jit
    def f(x):
        traced.append(1)
        return x + 1

    f(1.0)
    f(2.0)
    assert len(traced) == 1
    da.clear_caches()
    before = da.programs()
    f(1.0)
    assert before == []
    assert len(da.programs()) == 1


def test_executables_are_freed_when_they_are_forgotten():
    x = da.asarray([1.0, 2.0])
    _ = x + 1
    executable = weakref.ref(da.programs()[0].compiled)
    da.clear_caches()
    gc.collect()
    assert executable() is None


def test_a_program_that_somebody_holds_outlives_the_forgetting():
    x = da.asarray([1.0, 2.0])
    _ = x + x
    [held] = da.programs()
    da.clear_caches()
    assert_agree(held.compiled(x), jnp.array([2.0, 4.0]))


def test_jaxs_own_forgetting_does_no_harm():
    x, f = da.asarray([1.0, 2.0]), da.jit(lambda x: x * 3)
    first = (x + x, f(x))
    jax.clear_caches()
    assert_agree((x + x, f(x)), first)
    da.clear_caches()
    assert_agree((x + x, f(x)), first)


def test_a_function_that_is_gone_takes_its_programs_with_it():
    def make():
        weights = jnp.arange(1000.0)

        def f(x):
            return x + weights

        return f, weakref.ref(f), weakref.ref(weights)

    f, function, kept = make()
    call = da.jit(f)
    call(1.0)
    assert [p.name for p in da.programs()] == ["f"]
    executable = weakref.ref(da.programs()[0].compiled)
    del f, call
    gc.collect()
    assert da.programs() == []
    assert (function(), executable(), kept()) == (None, None, None)


def test_forgetting_while_others_call_does_no_harm():
    x, stop = da.asarray([1.0, 2.0]), threading.Event()
    wanted = jnp.array([1.0, 2.0]) + 1

    def call():
        while not stop.is_set():
            assert_agree(x + 1, wanted)

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(call) for _ in range(2)]
        for _ in range(20):
            da.clear_caches()
            assert_agree(x + 1, wanted)
        stop.set()
        for thread in running:
            thread.result()
