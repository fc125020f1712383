"""The mirrors: every name of JAX's namespaces, and DeviceArrays from all that make arrays."""

import importlib
import inspect
import io
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da
from devicearray._namespace import Ufunc, mirror, public_names
from tests.comparison import assert_agree, assert_device_arrays
from tests.conformance.harness import attempt
from tests.eight_devices import on_eight

MODULES = {
    "numpy": (jnp, da.numpy),
    "numpy.linalg": (jnp.linalg, da.numpy.linalg),
    "numpy.fft": (jnp.fft, da.numpy.fft),
    "random": (jax.random, da.random),
}
NAMES = [(module, name) for module, (theirs, _) in MODULES.items() for name in public_names(theirs)]
X = jnp.array([[3.0, -1.0, 2.5], [1.0, 1.0, -7.0]])
x = da.asarray(X)


def assert_same(call, *arrays):
    """Call with JAX's namespace and arrays, and with ours; the outcomes agree."""
    wanted = attempt(call, jnp, *arrays)
    found = attempt(call, da.numpy, *map(da.asarray, arrays))
    assert_agree(found, wanted)
    assert_device_arrays(found)
    return found


# The names.


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_mirrored_and_none_is_added(module):
    theirs, ours = MODULES[module]
    assert set(public_names(theirs)) - set(public_names(ours)) == set()
    assert set(public_names(ours)) - set(public_names(theirs)) <= {"Any"}


@pytest.mark.parametrize("module", MODULES)
def test_names_come_with_a_star_import(module):
    space = {}
    exec(f"from devicearray.{module} import *", space)
    assert set(public_names(MODULES[module][0])) <= set(space)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_is_of_the_kind_that_it_is_in_jax(module, name):
    theirs, ours = (getattr(namespace, name) for namespace in MODULES[module])
    assert callable(ours) == callable(theirs)
    assert inspect.isclass(ours) == inspect.isclass(theirs)
    if callable(theirs) and hasattr(theirs, "__name__"):
        assert ours.__name__ == theirs.__name__


def test_every_name_is_documented_as_in_jax():
    undocumented = [
        f"{module}.{name}"
        for module, name in NAMES
        if callable(getattr(MODULES[module][0], name))
        and getattr(MODULES[module][1], name).__doc__ != getattr(MODULES[module][0], name).__doc__
    ]
    assert undocumented == []


def test_constants_and_what_makes_no_array_are_the_same_objects():
    for name in ("pi", "e", "inf", "nan", "euler_gamma", "newaxis", "s_", "index_exp", "dtype"):
        assert getattr(da.numpy, name) is getattr(jnp, name)
    for name in ("ndarray", "finfo", "iinfo", "generic", "floating", "ufunc", "ComplexWarning"):
        assert getattr(da.numpy, name) is getattr(jnp, name)


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_does_not_exist_is_an_attribute_error_that_names_it(module):
    theirs, ours = MODULES[module]
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = theirs.no_such_name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = ours.no_such_name


@pytest.mark.parametrize("module", MODULES)
def test_names_that_jax_retired_are_its_errors(module):
    theirs, ours = MODULES[module]
    for name in ("in1d", "trapz", "fix", "round_", "PRNGKeyArray", "shuffle", "float128", "msort"):
        assert_agree(attempt(getattr, ours, name, 0), attempt(getattr, theirs, name, 0))


def test_a_name_that_jax_adds_is_there_at_once(monkeypatch):
    def double(x):
        """Twice `x`."""
        return x * 2

    monkeypatch.setattr(jnp, "double_it", double, raising=False)
    assert type(da.numpy.double_it(x)) is da.DeviceArray
    assert "double_it" in mirror(jnp, "somewhere")


def test_a_mirror_can_be_made_of_some_names():
    made = mirror(jnp, "somewhere", ["sin", "pi"])
    assert made.keys() == {"sin", "pi"}
    assert made["sin"].__module__ == "somewhere"
    assert jnp.sin.__module__ != "somewhere"


def test_importing_again_gives_the_same_module():
    assert importlib.import_module("devicearray.numpy.linalg") is da.numpy.linalg
    assert da.numpy.linalg.norm is importlib.import_module("devicearray.numpy").linalg.norm


@pytest.mark.parametrize("name", ["sum", "ravel", "sin", "r_", "float32"])
def test_a_mirrored_name_can_be_found_by_its_module(name):
    value = getattr(da.numpy, name)
    if hasattr(value, "__module__") and inspect.isroutine(value):
        assert pickle.loads(pickle.dumps(value)) is value


# Types of elements.

SCALARS = [name for name in public_names(jnp) if isinstance(getattr(jnp, name), type(jnp.float32))]


@pytest.mark.parametrize("name", SCALARS)
def test_a_scalar_type_is_a_dtype_equal_to_jaxs(name):
    theirs, ours = getattr(jnp, name), getattr(da.numpy, name)
    assert np.dtype(ours) == np.dtype(theirs) == ours.dtype
    assert ours == theirs
    assert theirs == ours
    assert hash(ours) == hash(theirs)
    assert jnp.issubdtype(ours, jnp.generic)
    assert jnp.promote_types(ours, ours) == jnp.promote_types(theirs, theirs)
    assert {theirs: 1}[ours] == 1


@pytest.mark.parametrize("name", ["bool_", "int8", "int32", "uint4", "float32", "bfloat16"])
@pytest.mark.parametrize("value", [1, 0.0, True, np.float32(1), [1, 0], X, "a", None])
@pytest.mark.filterwarnings("ignore")
def test_calling_a_scalar_type_makes_a_device_array(name, value):
    wanted = attempt(getattr(jnp, name), value)
    found = attempt(getattr(da.numpy, name), value)
    assert_agree(found, wanted)
    assert_device_arrays(found)


def test_a_scalar_type_can_be_used_wherever_a_dtype_can():
    assert_same(lambda f, x: x.astype(f.bfloat16), X)
    assert_same(lambda f, x: f.sum(x, dtype=f.int32), X)
    assert_same(lambda f, x: f.zeros(2, f.int8))
    assert_same(lambda f, x=None: f.arange(3, dtype=f.float16))
    assert jnp.zeros(2, da.numpy.int8).dtype == np.zeros(2, da.numpy.int8).dtype
    assert x.dtype == da.numpy.float32
    assert jax.random.bits(jax.random.key(0), dtype=da.numpy.uint8).dtype == jnp.uint8
    assert isinstance(np.float32(1), da.numpy.float32) == isinstance(np.float32(1), jnp.float32)


# Functions without an array among their arguments.

MAKERS = [
    lambda f: f.arange(5),
    lambda f: f.arange(1, 6, 2.0),
    lambda f: f.arange(3, dtype=f.int8),
    lambda f: f.zeros((2, 3)),
    lambda f: f.zeros(()),
    lambda f: f.ones(3, dtype="bfloat16"),
    lambda f: f.empty((0, 2)),
    lambda f: f.full((2,), 7),
    lambda f: f.full((2,), 7.5, f.int32),
    lambda f: f.eye(3),
    lambda f: f.eye(2, 3, k=1),
    lambda f: f.identity(2),
    lambda f: f.tri(3),
    lambda f: f.linspace(0, 1, 5),
    lambda f: f.linspace(0, 1, 5, retstep=True),
    lambda f: f.logspace(0, 1, 3),
    lambda f: f.geomspace(1, 8, 4),
    lambda f: f.array([[1, 2], [3, 4]]),
    lambda f: f.array(3),
    lambda f: f.array(3.5, copy=True),
    lambda f: f.array([1, 2.5, True]),
    lambda f: f.array(np.arange(3), dtype=f.float32),
    lambda f: f.asarray(range(3)),
    lambda f: f.indices((2, 2)),
    lambda f: f.meshgrid(np.arange(2), np.arange(3)),
    lambda f: f.diag_indices(2),
    lambda f: f.tril_indices(3),
    lambda f: f.triu_indices(3, k=1),
    lambda f: f.mask_indices(3, f.triu),
    lambda f: f.bartlett(4),
    lambda f: f.blackman(4),
    lambda f: f.hamming(4),
    lambda f: f.hanning(4),
    lambda f: f.kaiser(4, 14.0),
    lambda f: f.fft.fftfreq(4),
    lambda f: f.fft.rfftfreq(4, d=0.5),
    lambda f: f.fromfunction(lambda i, j: i + j, (2, 2)),
    lambda f: f.fromiter([1, 2, 3], int),
    lambda f: f.fromstring("1 2 3", sep=" "),
    lambda f: f.frombuffer(b"\x01\x02", dtype=np.uint8),
    lambda f: f.from_dlpack(np.arange(3.0, dtype=np.float32)),
    lambda f: f.sin(0.5),
    lambda f: f.add(1, 2),
    lambda f: f.add(1, 2.5),
    lambda f: f.maximum(np.float32(1), 2),
    lambda f: f.sum(5),
    lambda f: f.where(True, 1, 2.0),
    lambda f: f.stack([1, 2]),
    lambda f: f.concatenate([np.arange(2), np.arange(3)]),
    lambda f: f.sort(np.array([3, 1, 2])),
    lambda f: f.dot(np.ones(2), np.ones(2)),
    lambda f: f.reshape(np.arange(4), (2, 2)),
    lambda f: f.r_[0:3, 5],
    lambda f: f.r_["0,2", [1, 2], [3, 4]],
    lambda f: f.c_[[1, 2], [3, 4]],
    lambda f: f.mgrid[0:2, 0:3],
    lambda f: f.mgrid[0:1:3j],
    lambda f: f.ogrid[0:2, 0:3],
    lambda f: f.vander([1, 2, 3]),
    lambda f: f.poly([1.0, 2.0]),
    lambda f: f.broadcast_to(1, (2, 2)),
    lambda f: f.tile([1, 2], 2),
    lambda f: f.result_type(1, 2.0),
    lambda f: f.promote_types("int8", "uint8"),
    lambda f: f.can_cast("int8", "int16"),
    lambda f: f.broadcast_shapes((2, 1), (3,)),
    lambda f: f.isscalar(1.0),
    lambda f: f.ndim([[1]]),
    lambda f: f.shape([[1, 2]]),
    lambda f: f.s_[1:2, ...],
    lambda f: f.dtype("int32"),
    lambda f: f.zeros((2,), device=jax.devices()[3]),
    lambda f: f.arange(3, device=jax.devices()[3]),
    lambda f: f.zeros(-1),
    lambda f: f.zeros("a"),
    lambda f: f.arange(),
    lambda f: f.arange("a"),
    lambda f: f.array("text"),
    lambda f: f.array([[1, 2], [3]]),
    lambda f: f.array(None),
    lambda f: f.linspace(0, 1, -1),
    lambda f: f.eye(-1),
    lambda f: f.frombuffer(3),
]


@pytest.mark.parametrize("call", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_functions_without_an_array_agree_with_jax(call):
    assert_same(call)


# Functions whose result's shape depends on values.

BY_VALUE = [
    lambda f, a: f.nonzero(a),
    lambda f, a: f.flatnonzero(a > 1),
    lambda f, a: f.argwhere(a > 1),
    lambda f, a: f.where(a > 1),
    lambda f, a: f.unique(a),
    lambda f, a: f.unique(a, return_index=True, return_inverse=True, return_counts=True),
    lambda f, a: f.unique(a, size=3),
    lambda f, a: f.unique_all(a),
    lambda f, a: f.unique_counts(a).counts,
    lambda f, a: f.unique_values(a),
    lambda f, a: f.union1d(a, f.array([9.0])),
    lambda f, a: f.intersect1d(a, f.array([1.0, 3.0])),
    lambda f, a: f.setdiff1d(a, f.array([1.0])),
    lambda f, a: f.setxor1d(a, f.array([1.0])),
    lambda f, a: f.compress(f.array([True, False]), a, axis=0),
    lambda f, a: f.extract(a > 1, a),
    lambda f, a: f.trim_zeros(f.array([0, 1, 2, 0])),
    lambda f, a: f.bincount(f.abs(a).astype(int).ravel()),
    lambda f, a: f.bincount(f.abs(a).astype(int).ravel(), length=4),
    lambda f, a: f.delete(a, 1, axis=1),
    lambda f, a: f.insert(a, 0, 5.0, axis=0),
    lambda f, a: f.repeat(a, f.array([1, 2]), axis=0),
    lambda f, a: a[a > 1],
    lambda f, a: a[f.nonzero(a > 1)],
    lambda f, a: f.split(a, f.array([1])),
    lambda f, a: f.array_equal(a, a),
    lambda f, a: f.ix_(f.array([True, False]), f.array([0, 1])),
]


@pytest.mark.parametrize("call", BY_VALUE)
def test_functions_whose_shape_depends_on_values_agree_with_jax(call):
    assert_same(call, X)


def test_such_functions_raise_in_a_trace_what_jaxs_raise():
    def unique_of(namespace):
        return lambda a: namespace.unique(a)

    wanted = attempt(jax.jit(unique_of(jnp)), X)
    assert_agree(attempt(da.jit(unique_of(da.numpy)), x), wanted)


# Universal functions.


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_and", "bitwise_or"])
@pytest.mark.parametrize(
    "call",
    [
        lambda u, a: u(a, a),
        lambda u, a: u.reduce(a),
        lambda u, a: u.reduce(a, axis=1, keepdims=True),
        lambda u, a: u.reduce(a, axis=None),
        lambda u, a: u.accumulate(a, axis=1),
        lambda u, a: u.outer(a[0], a[1]),
        lambda u, a: u.at(a, 0, a[1], inplace=False),
        lambda u, a: u.reduceat(a[0], np.array([0, 2])),
        lambda u, a: u(a),
        lambda u, a: u.reduce(a, axis=9),
        lambda u, a: (u.nin, u.nout, u.nargs, u.identity),
        lambda u, a: repr(u),
        lambda u, a: u.nonsense,
    ],
)
def test_ufuncs_and_their_methods_agree_with_jax(name, call):
    array = X.astype(int) if name == "bitwise_or" else X
    assert_same(lambda f, a: call(getattr(f, name), a), array)


@pytest.mark.parametrize(
    "name", [n for n in public_names(jnp) if isinstance(getattr(jnp, n), jnp.ufunc)]
)
def test_a_ufunc_has_the_attributes_of_jaxs(name):
    theirs, ours = getattr(jnp, name), getattr(da.numpy, name)
    assert isinstance(ours, Ufunc)
    for attribute in ("nin", "nout", "nargs", "identity", "__name__", "__doc__"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    missing = {n for n in dir(theirs) if not n.startswith("_") and not hasattr(ours, n)}
    assert missing == set()


def test_ufuncs_and_functions_take_the_out_and_where_arguments_as_jaxs_do():
    assert_same(lambda f, a: f.add(a, a, where=True), X)
    assert_same(lambda f, a: f.add(a, a, out=a), X)
    assert_same(lambda f, a: f.sum(a, out=a), X)
    assert_same(lambda f, a: f.add.reduce(a, where=a > 0), X)


def test_frompyfunc_makes_ufuncs_that_give_device_arrays():
    def made(f, a):
        u = f.frompyfunc(lambda p, q: p * q + 1, nin=2, nout=1, identity=1)
        return u(a, a), u.reduce(a, axis=1), u.outer(a[0], a[1]), u.accumulate(a[0]), u.nin

    assert_same(made, X)


def test_vectorize_makes_functions_that_give_device_arrays():
    def made(f, a):
        scaled = f.vectorize(lambda row, s: row * s, signature="(n),()->(n)")
        return scaled(a, 2.0), scaled(a, a[:, 0]), f.vectorize(f.sin)(a)

    assert_same(made, X)

    @da.numpy.vectorize
    def decorated(p, q):
        """Say what it does."""
        return p + q

    assert (decorated.__name__, decorated.__doc__) == ("decorated", "Say what it does.")
    assert_agree(decorated(x, 1), X + 1)


def test_functions_given_to_functions_get_what_jax_gives_them():
    assert_same(lambda f, a: f.apply_along_axis(f.sort, 1, a), X)
    assert_same(lambda f, a: f.apply_over_axes(f.sum, a, [0, 1]), X)
    assert_same(lambda f, a: f.piecewise(a, [a < 0, a > 1], [f.negative, lambda b: b * 2, 0]), X)
    assert_same(lambda f, a: f.fromfunction(lambda i: i * a[0, 0], (3,)), X)


@pytest.mark.parametrize("name", ["r_", "c_", "mgrid", "ogrid", "s_", "index_exp"])
def test_objects_to_be_indexed_agree_with_jax(name):
    theirs, ours = getattr(jnp, name), getattr(da.numpy, name)
    assert repr(type(ours))
    for index in (np.s_[0:3], np.s_[0:2, 0:2], np.s_[0:1:5j], np.s_[::2], 3):
        wanted, found = attempt(lambda i=index: theirs[i]), attempt(lambda i=index: ours[i])
        assert_agree(found, wanted)
        assert_device_arrays(found)


def test_joining_by_index_takes_device_arrays():
    assert_same(lambda f, a: f.r_[a[0], 1.0, a[1]], X)
    assert_same(lambda f, a: f.c_[a[0], a[1]], X)


# Files and options.


def test_saved_arrays_are_loaded_as_device_arrays():
    file = io.BytesIO()
    da.numpy.save(file, x)
    file.seek(0)
    loaded = da.numpy.load(file)
    assert type(loaded) is da.DeviceArray
    assert_agree(loaded, X)


def test_print_options_are_jaxs():
    with da.numpy.printoptions(precision=2):
        assert da.numpy.get_printoptions() == jnp.get_printoptions()
        assert str(da.numpy.asarray([1 / 3])) == str(jnp.asarray([1 / 3]))


def test_text_functions_agree_with_jax():
    assert da.numpy.array_str(x) == jnp.array_str(X)
    assert da.numpy.array_repr(x).split() == jnp.array_repr(X).split()


# Placement.


SHARDED = [
    lambda f, a: f.sin(a),
    lambda f, a: f.add(a, a),
    lambda f, a: f.sum(a),
    lambda f, a: f.sum(a, axis=0),
    lambda f, a: f.max(a, axis=1),
    lambda f, a: f.dot(a, a),
    lambda f, a: f.matmul(a, a.T),
    lambda f, a: f.concatenate([a, a]),
    lambda f, a: f.stack([a, a]),
    lambda f, a: f.where(a > 3, a, 0),
    lambda f, a: f.sort(a, axis=0),
    lambda f, a: f.cumsum(a, axis=0),
    lambda f, a: f.reshape(a, (-1,)),
    lambda f, a: f.transpose(a),
    lambda f, a: f.zeros_like(a),
    lambda f, a: f.ones_like(a, dtype=int),
    lambda f, a: f.linalg.norm(a, axis=1),
    lambda f, a: f.fft.fft(a),
    lambda f, a: f.take(a, f.array([1, 3]), axis=0),
    lambda f, a: f.split(a, 2),
    lambda f, a: f.asarray(a),
    lambda f, a: f.argmax(a),
    lambda f, a: f.nonzero(a > 3),
    lambda f, a: a[3],
    lambda f, a: a[2:5],
    lambda f, a: a.at[0].set(1.0),
    lambda f, a: a.astype(int),
    lambda f, a: [a[i] for i in range(len(a))],
]


@pytest.mark.parametrize("axes", [("i",), (None, "i")], ids=str)
@pytest.mark.parametrize("call", SHARDED)
def test_arrays_on_eight_devices_stay_where_jaxs_stay(call, axes):
    assert_same(call, on_eight(jnp.arange(64.0).reshape(8, 8), *axes))


@pytest.mark.parametrize("name", ["sin", "sum", "ravel", "sort", "zeros_like", "cumsum", "unique"])
def test_committed_arrays_stay_on_their_device(name):
    assert_same(lambda f, a: getattr(f, name)(a), jax.device_put(X, jax.devices()[5]))


# Random numbers.

KEYS = {
    "threefry": lambda r: r.key(3),
    "unsafe_rbg": lambda r: r.key(3, impl="unsafe_rbg"),
    "raw": lambda r: r.PRNGKey(3),
    "wrapped": lambda r: r.wrap_key_data(r.key_data(r.key(3))),
}

DRAWS = [
    lambda r, k: r.split(k),
    lambda r, k: r.split(k, (2, 2)),
    lambda r, k: tuple(r.split(k, 3)),
    lambda r, k: r.fold_in(k, 5),
    lambda r, k: r.bits(k),
    lambda r, k: r.uniform(k, (3,), minval=-1.0),
    lambda r, k: r.normal(k, (2, 2), dtype="bfloat16"),
    lambda r, k: r.randint(k, (3,), 0, 9),
    lambda r, k: r.bernoulli(k),
    lambda r, k: r.permutation(k, 5),
    lambda r, k: r.choice(k, 5, (3,), replace=False),
    lambda r, k: r.clone(k),
    lambda r, k: r.key_impl(k) if hasattr(k, "dtype") else None,
    lambda r, k: r.key_data(k),
    lambda r, k: r.normal(r.split(k)[0]),
    lambda r, k: r.normal(k, "a"),
    lambda r, k: r.split(k, -1),
    lambda r, k: r.normal(k, (2,), dtype=int),
]


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_are_jaxs_for_every_kind_of_key(draw, kind):
    wanted = attempt(lambda: draw(jax.random, KEYS[kind](jax.random)))
    found = attempt(lambda: draw(da.random, KEYS[kind](da.random)))
    if isinstance(wanted, jax.Array | tuple) or hasattr(wanted, "error"):
        assert_agree(found, wanted)
        assert_device_arrays(found)
    else:
        assert str(found) == str(wanted)


@pytest.mark.parametrize("key", [7, 7.5, "a", None, np.zeros(3, np.uint32), jnp.zeros(2)], ids=repr)
def test_what_is_no_key_is_jaxs_error(key):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agree(attempt(da.random.normal, key), attempt(jax.random.normal, key))
        assert_agree(attempt(da.random.split, key), attempt(jax.random.split, key))


def test_a_seed_may_be_a_device_array():
    seed = jnp.int32(5)
    assert_agree(da.random.key(da.asarray(seed)), jax.random.key(seed))
    assert_agree(da.random.PRNGKey(da.asarray(seed)), jax.random.PRNGKey(seed))


def test_keys_are_device_arrays_to_jax_and_to_us():
    key = da.random.key(0)
    assert type(key) is da.DeviceArray
    assert_agree(jax.random.normal(key, (2,)), jax.random.normal(jax.random.key(0), (2,)))
    assert_agree(da.random.normal(jax.random.key(0), (2,)), jax.random.normal(key, (2,)))
    assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)


def test_a_key_that_is_used_twice_is_noticed_as_by_jax():
    def twice(random):
        key = random.key(0)
        return random.normal(key), random.normal(key)

    with jax.debug_key_reuse(True):
        wanted, found = attempt(twice, jax.random), attempt(twice, da.random)
    assert type(found.error) is type(wanted.error)


def test_keys_on_eight_devices_give_numbers_on_eight_devices():
    keys = on_eight(jax.random.split(jax.random.key(0), 8), "i")
    wanted = jax.vmap(jax.random.normal)(keys)
    assert_agree(jax.vmap(da.random.normal)(da.asarray(keys)), wanted)
    assert_agree(da.jit(jax.vmap(da.random.normal))(da.asarray(keys)), wanted)
