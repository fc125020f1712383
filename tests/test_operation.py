"""One call of a function of JAX's is one program; where it cannot be, it is JAX's own call.

The table below holds a typical call of each function that needs special arguments. A function that
is not in it, one that JAX adds for example, is called with the first of `USUAL` that JAX takes.
"""

import functools
import inspect
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da
from devicearray._jax_calls import AS_JAX_DOES
from devicearray._namespace import public_names
from tests.comparison import assert_agree, assert_device_arrays
from tests.conformance.harness import attempt


class Arrays(NamedTuple):
    """The arguments, all of one kind of array."""

    m: jax.Array = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
    n: jax.Array = jnp.array([[1.0, -2.0, 0.0], [0.5, 1.5, 2.0], [3.0, 0.0, -1.0]])
    v: jax.Array = jnp.array([0.25, 0.5, 0.75])
    w: jax.Array = jnp.array([2.0, -1.0, 4.0])
    i: jax.Array = jnp.array([2, 0, 1])
    j: jax.Array = jnp.array([1, 1, 3])
    p: jax.Array = jnp.array([0.5, 0.25, 0.25])
    b: jax.Array = jnp.array([True, False, True])
    not_b: jax.Array = jnp.array([False, True, False])
    u: jax.Array = jnp.array([1, 2, 250], jnp.uint8)
    c: jax.Array = jnp.array([1 + 2j, -1j, 3])
    s: jax.Array = jnp.array(2.0)
    # Of the three kinds of key this one makes the programs that compile fastest.
    k: jax.Array = jax.random.key(7, impl="unsafe_rbg")


PLAIN = Arrays()
OURS = Arrays(*map(da.asarray, PLAIN))

USUAL = [
    lambda f, a: f(a.n),
    lambda f, a: f(a.v),
    lambda f, a: f(a.i),
    lambda f, a: f(a.n, a.m),
    lambda f, a: f(a.w, a.v),
    lambda f, a: f(a.i, a.j),
    lambda f, a: f([a.v, a.w]),
    lambda f, a: f(a.m, 1),
    lambda f, a: f(a.k),
    lambda f, a: f(a.k, (3,)),
    lambda f, a: f(a.k, a.v, (3,)),
    lambda f, a: f(a.k, a.v, a.s, (3,)),
]

CALLS = {
    "numpy.all": lambda f, a: f(a.n, axis=0),
    "numpy.append": lambda f, a: f(a.v, a.w),
    "numpy.apply_along_axis": lambda f, a: f(lambda row: row.sum(), 0, a.m),
    "numpy.apply_over_axes": lambda f, a: f(jnp.sum, a.m, [0]),
    "numpy.argmax": lambda f, a: f(a.n, axis=1, keepdims=True),
    "numpy.argpartition": lambda f, a: f(a.w, 1),
    "numpy.argsort": lambda f, a: f(a.n, axis=0, descending=True),
    "numpy.array_split": lambda f, a: f(a.w, 2),
    "numpy.astype": lambda f, a: f(a.w, jnp.int32),
    "numpy.average": lambda f, a: f(a.w, weights=a.v),
    "numpy.bincount": lambda f, a: f(a.i),
    "numpy.block": lambda f, a: f([[a.m, a.n], [a.n, a.m]]),
    "numpy.broadcast_to": lambda f, a: f(a.w, (2, 3)),
    "numpy.can_cast": lambda f, a: f(jnp.int32, jnp.float32),
    "numpy.choose": lambda f, a: f(a.i, [a.v, a.w, a.v], mode="clip"),
    "numpy.clip": lambda f, a: f(a.w, 0, a.v),
    "numpy.compress": lambda f, a: f(a.b, a.w),
    "numpy.concat": lambda f, a: f([a.m, a.n], axis=1),
    "numpy.concatenate": lambda f, a: f((a.v, a.w)),
    "numpy.cumsum": lambda f, a: f(a.n, axis=1),
    "numpy.delete": lambda f, a: f(a.w, 1),
    "numpy.diag": lambda f, a: f(a.w, k=1),
    "numpy.diff": lambda f, a: f(a.n, n=2, axis=0),
    "numpy.digitize": lambda f, a: f(a.w, a.v),
    "numpy.dsplit": lambda f, a: f(a.m[None], 3),
    "numpy.einsum": lambda f, a: f("ij,jk->ik", a.m, a.n),
    "numpy.expand_dims": lambda f, a: f(a.w, 0),
    "numpy.extract": lambda f, a: f(a.b, a.w),
    "numpy.fill_diagonal": lambda f, a: f(a.m, 1.0, inplace=False),
    "numpy.flip": lambda f, a: f(a.m, axis=1),
    "numpy.full_like": lambda f, a: f(a.m, 7),
    "numpy.histogram": lambda f, a: f(a.w, bins=4),
    "numpy.histogram2d": lambda f, a: f(a.w, a.v, bins=3),
    "numpy.histogram_bin_edges": lambda f, a: f(a.w, bins=4),
    "numpy.histogramdd": lambda f, a: f(a.m, bins=2),
    "numpy.hsplit": lambda f, a: f(a.m, 3),
    "numpy.insert": lambda f, a: f(a.w, 1, 5.0),
    "numpy.interp": lambda f, a: f(a.w, a.v, a.v),
    "numpy.isin": lambda f, a: f(a.i, a.j),
    "numpy.issubdtype": lambda f, a: f(a.w.dtype, jnp.floating),
    "numpy.isdtype": lambda f, a: f(a.w.dtype, "integral"),
    "numpy.ix_": lambda f, a: f(a.i, a.j),
    "numpy.ldexp": lambda f, a: f(a.w, a.i),
    "numpy.lexsort": lambda f, a: f((a.i, a.j)),
    "numpy.linspace": lambda f, a: f(a.s, 5.0, 4),
    "numpy.mask_indices": lambda f, a: f(3, jnp.triu),
    "numpy.max": lambda f, a: f(a.n, axis=(0, 1)),
    "numpy.mean": lambda f, a: f(a.n, axis=0, keepdims=True),
    "numpy.meshgrid": lambda f, a: f(a.v, a.w),
    "numpy.moveaxis": lambda f, a: f(a.m, 0, 1),
    "numpy.nanpercentile": lambda f, a: f(a.n, 30.0, axis=0),
    "numpy.nanquantile": lambda f, a: f(a.n, a.v, axis=0),
    "numpy.pad": lambda f, a: f(a.w, (1, 2), constant_values=7),
    "numpy.partition": lambda f, a: f(a.w, 1),
    "numpy.percentile": lambda f, a: f(a.n, 30.0),
    "numpy.permute_dims": lambda f, a: f(a.m, (1, 0)),
    "numpy.piecewise": lambda f, a: f(a.w, [a.b, a.not_b], [-1.0, 1.0]),
    "numpy.place": lambda f, a: f(a.w, a.b, a.v, inplace=False),
    "numpy.polyfit": lambda f, a: f(a.v, a.w, 1),
    "numpy.polyint": lambda f, a: f(a.w, m=2),
    "numpy.pow": lambda f, a: f(a.w, 3),
    "numpy.power": lambda f, a: f(a.w, a.i),
    "numpy.promote_types": lambda f, a: f("int32", "float32"),
    "numpy.put": lambda f, a: f(a.w, a.i, a.v, inplace=False),
    "numpy.put_along_axis": lambda f, a: f(a.w, a.i, a.v, axis=0, inplace=False),
    "numpy.quantile": lambda f, a: f(a.n, a.v, axis=1),
    "numpy.ravel_multi_index": lambda f, a: f((a.i, a.i), (3, 3), mode="clip"),
    "numpy.repeat": lambda f, a: f(a.w, 2),
    "numpy.reshape": lambda f, a: f(a.m, (9,)),
    "numpy.resize": lambda f, a: f(a.w, (5,)),
    "numpy.roll": lambda f, a: f(a.m, 1, axis=0),
    "numpy.rot90": lambda f, a: f(a.m, k=3),
    "numpy.round": lambda f, a: f(a.w, 1),
    "numpy.searchsorted": lambda f, a: f(a.v, a.w, side="right"),
    "numpy.select": lambda f, a: f([a.b, a.not_b], [a.v, a.w], 0.0),
    "numpy.sort": lambda f, a: f(a.n, axis=0),
    "numpy.split": lambda f, a: f(a.w, 3),
    "numpy.squeeze": lambda f, a: f(a.w[None], 0),
    "numpy.stack": lambda f, a: f([a.v, a.w], axis=1),
    "numpy.std": lambda f, a: f(a.n, axis=0, ddof=1),
    "numpy.sum": lambda f, a: f(a.n, axis=0, dtype=jnp.bfloat16, where=a.b),
    "numpy.swapaxes": lambda f, a: f(a.m, 0, 1),
    "numpy.take": lambda f, a: f(a.w, a.i, mode="clip"),
    "numpy.take_along_axis": lambda f, a: f(a.w, a.i, axis=0),
    "numpy.tensordot": lambda f, a: f(a.m, a.n, axes=1),
    "numpy.tile": lambda f, a: f(a.w, (2, 1)),
    "numpy.transpose": lambda f, a: f(a.m, (1, 0)),
    "numpy.tri": lambda f, a: f(3),
    "numpy.unpackbits": lambda f, a: f(a.u),
    "numpy.unravel_index": lambda f, a: f(a.j, (3, 3)),
    "numpy.unstack": lambda f, a: f(a.m, axis=1),
    "numpy.vander": lambda f, a: f(a.w, 2),
    "numpy.vsplit": lambda f, a: f(a.m, 3),
    "numpy.where": lambda f, a: f(a.b, a.v, 0.0),
    "linalg.matrix_power": lambda f, a: f(a.m, 3),
    "linalg.norm": lambda f, a: f(a.m, ord="fro", axis=(0, 1)),
    "linalg.qr": lambda f, a: f(a.m, mode="complete"),
    "linalg.svd": lambda f, a: f(a.m, full_matrices=False),
    "linalg.multi_dot": lambda f, a: f([a.m, a.n, a.m]),
    "linalg.tensordot": lambda f, a: f(a.m, a.n, axes=1),
    "linalg.tensorsolve": lambda f, a: f(a.m, a.v),
    "linalg.tensorinv": lambda f, a: f(a.m.reshape(3, 1, 3), ind=2),
    "fft.fft": lambda f, a: f(a.c, n=4, norm="ortho"),
    "fft.irfft": lambda f, a: f(a.c, n=4),
    "fft.fftshift": lambda f, a: f(a.w, axes=0),
    "random.ball": lambda f, a: f(a.k, 2),
    "random.bernoulli": lambda f, a: f(a.k, a.v),
    "random.beta": lambda f, a: f(a.k, a.v, 2.0),
    "random.binomial": lambda f, a: f(a.k, 5.0, a.v),
    "random.bits": lambda f, a: f(a.k, (3,), "uint8"),
    "random.categorical": lambda f, a: f(a.k, a.m, axis=0),
    "random.choice": lambda f, a: f(a.k, a.w, (2,), replace=False),
    "random.dirichlet": lambda f, a: f(a.k, a.v),
    "random.f": lambda f, a: f(a.k, 2.0, 3.0, (3,)),
    "random.fold_in": lambda f, a: f(a.k, 7),
    "random.generalized_normal": lambda f, a: f(a.k, 2.0, (3,)),
    "random.key_data": lambda f, a: f(a.k),
    "random.loggamma": lambda f, a: f(a.k, a.v),
    "random.multinomial": lambda f, a: f(a.k, 5.0, a.p),
    "random.multivariate_normal": lambda f, a: f(a.k, a.v, a.m),
    "random.orthogonal": lambda f, a: f(a.k, 3),
    "random.permutation": lambda f, a: f(a.k, a.w, axis=0, independent=True),
    "random.poisson": lambda f, a: f(jax.random.key(7), 3.0, (3,)),  # threefry only
    "random.randint": lambda f, a: f(a.k, (3,), 0, a.j),
    "random.random_gamma_p": lambda f, a: f(a.k, a.v),
    "random.split": lambda f, a: f(a.k, 3),
    "random.t": lambda f, a: f(a.k, 3.0, (3,)),
    "random.triangular": lambda f, a: f(a.k, 0.0, 0.5, 1.0, (3,)),
    "random.truncated_normal": lambda f, a: f(a.k, -1.0, a.s, (3,)),
    "random.uniform": lambda f, a: f(a.k, (3,), minval=-1.0, maxval=a.s),
    "random.wald": lambda f, a: f(a.k, 1.0, (3,)),
    "random.weibull_min": lambda f, a: f(a.k, 1.0, 2.0, (3,)),
}

#: Called with an array for its dtype or shape alone, or without one: no program, as in JAX.
NO_ARRAY_IN = frozenset({
    "numpy.bartlett", "numpy.blackman", "numpy.diag_indices",
    "numpy.hamming", "numpy.hanning", "numpy.indices", "numpy.kaiser", "numpy.tri",
    "numpy.tril_indices", "numpy.triu_indices", "fft.fftfreq", "fft.rfftfreq", "random.key_dtype",
})  # fmt: skip

MODULES = {
    "numpy": (jnp, da.numpy),
    "linalg": (jnp.linalg, da.numpy.linalg),
    "fft": (jnp.fft, da.numpy.fft),
    "random": (jax.random, da.random),
}
#: Not functions of arrays: they make functions, use files, or set options.
OTHER = frozenset({
    "frompyfunc", "vectorize", "load", "einsum_path", "save", "savez", "fromfile", "printoptions",
    "Key", "get_printoptions", "set_printoptions", "fromfunction", "fromiter", "fromstring",
    "frombuffer",
    "from_dlpack", "PRNGKey", "key", "wrap_key_data", "array_repr", "array_str", "broadcast_shapes",
    "arange", "empty", "eye", "full", "geomspace", "identity", "logspace", "ones", "zeros",
})  # fmt: skip


def is_function(value):
    return inspect.isroutine(value) or hasattr(value, "lower") or isinstance(value, jnp.ufunc)


FUNCTIONS = [
    f"{module}.{name}"
    for module, (theirs, _) in MODULES.items()
    for name in public_names(theirs)
    if is_function(getattr(theirs, name)) and name not in OTHER
]


def find(qualified_name):
    module, name = qualified_name.split(".")
    return tuple(getattr(namespace, name) for namespace in MODULES[module])


def call_of(name, function):
    """Return the call in the table, or else the first of the usual ones that JAX takes."""
    if name in CALLS:
        return CALLS[name]
    for call in USUAL:
        if not hasattr(attempt(call, function, PLAIN), "error"):
            return call
    return None


#: JAX runs these as several programs. Whole, the last bits may be others, as under ``jax.jit``,
#: which is the oracle for them then.
SEVERAL_PROGRAMS_IN_JAX = frozenset({"numpy.std", "numpy.var"})


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.usefixtures("no_warnings")
def test_one_call_is_one_program_and_gives_what_jax_gives(name):
    theirs, ours = find(name)
    call = call_of(name, theirs)
    if call is None:
        assert name in NO_ARRAY_IN
        return
    wanted = call(theirs, PLAIN)
    da.clear_caches()
    found = call(ours, OURS)
    compiled = da.programs()
    again = call(ours, OURS)

    expected = 0 if name.split(".")[1] in AS_JAX_DOES or name in NO_ARRAY_IN else 1
    assert len(compiled) == expected
    assert da.programs() == compiled
    assert_device_arrays(found)
    if name in SEVERAL_PROGRAMS_IN_JAX:
        wanted = jax.jit(functools.partial(call, theirs))(PLAIN)
    assert_agree(found, wanted)
    assert_agree(again, found)


# Which program serves a call.


def programs_made(function):
    """Return the programs that `function` makes, starting from none."""
    da.clear_caches()
    function()
    return da.programs()


STATICS = {
    "axis": lambda x: (da.numpy.sum(x, axis=0), da.numpy.sum(x, axis=1)),
    "axis by place": lambda x: (da.numpy.sum(x, 0), da.numpy.sum(x, 1)),
    "flag": lambda x: (x.sum(keepdims=True), x.sum(keepdims=False)),
    "dtype": lambda x: (x.sum(dtype=jnp.int32), x.sum(dtype=jnp.float32)),
    "string": lambda x: (da.numpy.einsum("ij->i", x), da.numpy.einsum("ij->j", x)),
    "shape": lambda x: (da.numpy.resize(x, (2, 2)), da.numpy.resize(x, (4,))),
    "place and name": lambda x: (x.sum(0), x.sum(axis=0)),
    "exponent": lambda x: (x**2, x**3),
    "1 and True": lambda x: (x.sum(axis=1), x.argsort(1, stable=True)),
}


@pytest.mark.parametrize("statics", STATICS)
def test_each_static_value_has_a_program_of_its_own(statics):
    assert len(programs_made(lambda: STATICS[statics](OURS.m))) == 2


ONE_PROGRAM = {
    "other values": lambda: (OURS.v + OURS.w, OURS.w + OURS.v),
    "other numbers": lambda: (OURS.v + 1.0, OURS.v + 2.0),
    "method and method": lambda: (OURS.m.sum(axis=0), OURS.n.sum(axis=0)),
    "results": lambda: (OURS.v + OURS.w) + OURS.w,
    "plain arrays among them": lambda: (
        da.numpy.dot(OURS.v, OURS.w),
        da.numpy.dot(OURS.v, PLAIN.w),
    ),
    "other key": lambda: [da.random.normal(key, (3,)) for key in (OURS.k, da.random.clone(OURS.k))],
}


@pytest.mark.parametrize("calls", ONE_PROGRAM)
def test_calls_of_one_kind_share_a_program(calls):
    assert len(programs_made(ONE_PROGRAM[calls])) == 1


def test_an_array_with_itself_has_a_program_of_one_operand():
    [program] = programs_made(lambda: OURS.v * OURS.v)
    assert len(jax.tree.leaves(program.compiled.in_avals)) == 1


@pytest.mark.parametrize("name", ["maximum", "dot", "subtract", "arctan2", "floor_divide", "power"])
def test_a_function_of_an_array_with_itself_is_jaxs_bit_for_bit(name):
    theirs, ours = getattr(jnp, name), getattr(da.numpy, name)
    for array in (PLAIN.w, PLAIN.i, PLAIN.u, jnp.array([jnp.nan, jnp.inf, 0.0])):
        mine = da.asarray(array)
        assert_agree(ours(mine, mine), theirs(array, array))


def test_the_name_of_a_program_is_that_of_the_function():
    calls = {
        "add": lambda: OURS.v + OURS.w,
        "matmul": lambda: OURS.m @ OURS.n,
        "sum": lambda: OURS.m.sum(),
        "dot": lambda: da.numpy.dot(OURS.v, OURS.w),
        "sin": lambda: da.numpy.sin(OURS.v),
        "maximum_reduce": lambda: da.numpy.maximum.reduce(OURS.v),
        "solve": lambda: da.numpy.linalg.solve(OURS.m, OURS.v),
        "uniform": lambda: da.random.uniform(OURS.k, (3,)),
    }
    for name, call in calls.items():
        [program] = programs_made(call)
        assert program.name.strip("_") == name


# Arguments of every sort.


def both(call, *arrays):
    """Call with JAX's namespace and arrays, and with ours; the outcomes agree."""
    wanted = attempt(call, jnp, *arrays)
    found = attempt(call, da.numpy, *map(da.asarray, arrays))
    assert_agree(found, wanted)
    assert_device_arrays(found)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.sum(x, axis=[0, 1]),
        lambda f, x: f.sum(x, axis=np.int32(1)),
        lambda f, x: f.sum(x, axis=jnp.int32(1)),
        lambda f, x: f.sum(x, axis=np.array(1)),
        lambda f, x: f.sum(a=x, axis=0),
        lambda f, x: f.sum(x, None, keepdims=True),
        lambda f, x: f.sum(x, where=np.array([True, False, True])),
        lambda f, x: f.sum(x, initial=np.float32(2)),
        lambda f, x: f.dot(x, np.ones(3, np.float32)),
        lambda f, x: f.dot(np.ones(3, np.float32), x),
        lambda f, x: f.dot(b=x, a=np.ones(3, np.float32)),
        lambda f, x: f.add(x, 1),
        lambda f, x: f.add(1.5, x),
        lambda f, x: f.add(x, 1, where=None),
        lambda f, x: f.where(x > 0, x, 0),
        lambda f, x: f.where(x > 0),
        lambda f, x: f.stack([x, np.ones((3, 3), np.float32)]),
        lambda f, x: f.stack([x[0], 1.0]),
        lambda f, x: f.concatenate([x, x], axis=-1),
        lambda f, x: f.concatenate(x),
        lambda f, x: f.block([[x, x], [x, x]]),
        lambda f, x: f.einsum("ij,kj", x, x),
        lambda f, x: f.einsum(x, [0, 1], x, [1, 2]),
        lambda f, x: f.pad(x, ((1, 0), (0, 2)), mode="edge"),
        lambda f, x: f.pad(x, [(1, 0), (0, 2)]),
        lambda f, x: f.clip(x, max=f.mean(x)),
        lambda f, x: f.clip(arr=x, min=0),
        lambda f, x: f.power(x, 2),
        lambda f, x: f.power(x, -1),
        lambda f, x: f.power(x, np.int32(-1)),
        lambda f, x: f.power(x.astype(int), -1),
        lambda f, x: f.power(x.astype(int), np.int32(-1)),
        lambda f, x: f.pow(x.astype(int), 3),
        lambda f, x: f.roll(x, f.argmax(x[0])),
        lambda f, x: f.take(x, x.argmax(), axis=0, mode="wrap"),
        lambda f, x: f.tile(x, 2),
        lambda f, x: f.repeat(x, np.array([1, 2, 0]), axis=0),
        lambda f, x: f.repeat(x, x.astype(int)[0] * 0 + 1, axis=0, total_repeat_length=4),
        lambda f, x: f.linspace(x[0], x[1], 3),
        lambda f, x: f.arange(x[0, 0]),
        lambda f, x: f.full((2,), x[0, 0]),
        lambda f, x: f.full_like(x, 2, dtype=int),
        lambda f, x: f.array([x[0], x[1]]),
        lambda f, x: f.array([x[0, 0], 2.0]),
        lambda f, x: f.percentile(x, f.asarray([10, 50]), axis=0, method="nearest"),
        lambda f, x: f.tensordot(x, x, axes=((0, 1), (1, 0))),
        lambda f, x: f.tensordot(x, x, axes=[[0], [1]]),
        lambda f, x: f.cross(x, x[::-1], axis=0),
        lambda f, x: f.select([x > 1, x < 0], [x, -x], default=5),
        lambda f, x: f.piecewise(x, [x > 1], [lambda y: y + 1, 0]),
        lambda f, x: f.searchsorted(x[0], 1),
        lambda f, x: f.split(x, [1, 2]),
        lambda f, x: f.split(x, np.array([1])),
        lambda f, x: f.unravel_index(x.astype(int), (5, 5)),
        lambda f, x: f.linalg.norm(x, ord=np.inf),
        lambda f, x: f.linalg.norm(x, "nuc"),
        lambda f, x: f.fft.fft(x, axis=0),
        lambda f, x: f.histogram(x, bins=np.array([0.0, 1.0, 5.0])),
        lambda f, x: f.histogram(x, range=(0, 3)),
        lambda f, x: f.unique(x, size=4, fill_value=0),
        lambda f, x: f.unique(x, return_counts=True),
        lambda f, x: f.nonzero(x, size=2),
        lambda f, x: f.array_equal(x, x),
        lambda f, x: f.allclose(x, x + 1),
        lambda f, x: f.result_type(x, 1),
        lambda f, x: f.shape(x),
        lambda f, x: f.size(x, axis=0),
        lambda f, x: f.cov(x, x, rowvar=False),
        lambda f, x: f.broadcast_arrays(x, x[0]),
        lambda f, x: f.sort(x, axis=None),
        lambda f, x: f.argsort(x, descending=True, axis=0),
        lambda f, x: f.top_k(x, 2),
        lambda f, x: f.trapezoid(x, dx=2.0),
        lambda f, x: f.gradient(x),
        lambda f, x: f.modf(x),
        lambda f, x: f.frexp(x),
        lambda f, x: f.unstack(x),
    ],
)
@pytest.mark.usefixtures("no_warnings")
def test_calls_with_arguments_of_every_sort_agree_with_jax(call):
    both(call, PLAIN.m)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.sum(x, axis=9),
        lambda f, x: f.sum(x, axis="a"),
        lambda f, x: f.sum(x, axis=1.5),
        lambda f, x: f.sum(x, nonsense=1),
        lambda f, x: f.sum(),
        lambda f, x: f.sum(x, 0, 0, 0, 0, 0, 0, 0, 0),
        lambda f, x: f.sum("text"),
        lambda f, x: f.sum(None),
        lambda f, x: f.dot(x, x[:2, :2]),
        lambda f, x: f.dot(x),
        lambda f, x: f.dot(x, None),
        lambda f, x: f.dot(x, "a"),
        lambda f, x: f.dot(x, [1.0, 2.0, 3.0]),
        lambda f, x: f.sin([1.0]),
        lambda f, x: f.sin(x, x),
        lambda f, x: f.sin(),
        lambda f, x: f.sin(nonsense=x),
        lambda f, x: f.add(x, object()),
        lambda f, x: f.add(x, f.zeros(5)),
        lambda f, x: f.concatenate([x, x[0]]),
        lambda f, x: f.concatenate([]),
        lambda f, x: f.stack([x, x[0]]),
        lambda f, x: f.reshape(x, (7,)),
        lambda f, x: f.einsum("ij,jk,kl", x, x),
        lambda f, x: f.linalg.solve(x, f.zeros(7)),
        lambda f, x: f.linalg.cholesky(x[0]),
        lambda f, x: f.bitwise_and(x, x),
        lambda f, x: f.left_shift(x, 1),
        lambda f, x: f.take(x, 1.5),
        lambda f, x: f.pad(x, "a"),
        lambda f, x: f.ravel_multi_index((x, x), (3, 3)),
        lambda f, x: f.choose(x.astype(int), [x, x]),
        lambda f, x: f.arange(x),
        lambda f, x: f.zeros(x),
        lambda f, x: f.ones((2, x[0, 0])),
        lambda f, x: f.put(x, 0, 1.0),
        lambda f, x: f.broadcast_to(x, (2, 2)),
        lambda f, x: f.add(x.astype(int), 1 << 40),
        lambda f, x: f.where(x > 0, x),
    ],
)
@pytest.mark.usefixtures("no_warnings")
def test_errors_are_jaxs(call):
    wanted = attempt(call, jnp, PLAIN.m)
    assert hasattr(wanted, "error")
    both(call, PLAIN.m)


def test_a_failed_call_does_not_spoil_the_next():
    da.clear_caches()
    for _ in range(2):
        assert hasattr(attempt(da.numpy.dot, OURS.m, da.numpy.zeros(7)), "error")
        assert_agree(da.numpy.dot(OURS.m, OURS.v), jnp.dot(PLAIN.m, PLAIN.v))


# Inside a trace.


def jaxpr(function, *args):
    return str(jax.make_jaxpr(function)(*args))


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.sin(x),
        lambda f, x: f.sum(x, axis=0),
        lambda f, x: f.dot(x, x),
        lambda f, x: x @ x,
        lambda f, x: x + 1,
        lambda f, x: x.sum(),
        lambda f, x: f.linalg.norm(x),
        lambda f, x: f.fft.fft(x),
        lambda f, x: f.stack([x, x]),
        lambda f, x: f.ravel(x),
        lambda f, x: f.where(x > 0, x, f.zeros_like(x)),
        lambda f, x: x + f.arange(3),
        lambda f, x: f.maximum.reduce(x),
        lambda f, x: f.add.outer(x, x),
        lambda f, x: f.einsum("...i->...", x),
        lambda f, x: f.asarray(x),
        lambda f, x: f.float32(x),
        lambda f, x: f.r_[x, x],
        lambda f, x: f.vectorize(lambda y: y * 2)(x),
        lambda f, x: x.at[0].add(f.ones(())),
    ],
)
def test_tracers_pass_straight_through(call):
    theirs, ours = functools.partial(call, jnp), functools.partial(call, da.numpy)
    assert jaxpr(ours, PLAIN.m) == jaxpr(theirs, PLAIN.m)
    assert jaxpr(ours, OURS.m) == jaxpr(theirs, PLAIN.m)
    assert jaxpr(jax.vmap(ours), PLAIN.m) == jaxpr(jax.vmap(theirs), PLAIN.m)


@pytest.mark.parametrize("name", ["normal", "split", "bits", "permutation", "fold_in"])
def test_tracers_pass_straight_through_functions_of_keys(name):
    args = {"normal": ((2,),), "bits": (), "split": (), "permutation": (4,), "fold_in": (1,)}[name]
    theirs, ours = getattr(jax.random, name), getattr(da.random, name)
    wanted = jaxpr(lambda k: theirs(k, *args), PLAIN.k)
    assert jaxpr(lambda k: ours(k, *args), PLAIN.k) == wanted
    assert jaxpr(lambda k: ours(k, *args), OURS.k) == wanted


@pytest.mark.parametrize(
    "transform",
    [
        jax.jit,
        jax.grad,
        jax.value_and_grad,
        jax.hessian,
        jax.checkpoint,
        lambda f: jax.grad(jax.jit(f)),
        lambda f: jax.jit(jax.grad(f)),
        lambda f: jax.vmap(lambda x: f(x[None])),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: lambda x: jax.lax.scan(lambda c, r: (c + f(r[None]), c), 0.0, x),
        lambda f: lambda x: jax.linearize(f, x)[1](x),
    ],
)
def test_transformations_of_our_functions_agree_with_those_of_jaxs(transform):
    def function(f, x):
        return f.sum(f.sin(x) * f.dot(x, x.T).sum() + OURS.v[0])

    wanted = transform(functools.partial(function, jnp))(PLAIN.m)
    assert_agree(transform(functools.partial(function, da.numpy))(OURS.m), wanted)
    assert_agree(transform(functools.partial(function, da.numpy))(PLAIN.m), wanted)


def test_no_program_is_made_inside_a_trace():
    made = programs_made(lambda: jax.jit(lambda x: da.numpy.sin(x) + x)(OURS.m))
    assert made == []


def test_a_device_array_that_a_trace_closes_over_makes_no_program():
    made = programs_made(lambda: jax.jit(lambda x: da.numpy.dot(OURS.m, x) + OURS.m.sum())(PLAIN.m))
    assert [program.name for program in made] == []


# What a mirror looks like.


@pytest.mark.parametrize("name", ["sum", "dot", "sin", "einsum", "take", "ravel", "arange"])
def test_a_function_has_the_name_signature_and_documentation_of_jaxs(name):
    theirs, ours = getattr(jnp, name), getattr(da.numpy, name)
    assert ours.__name__ == theirs.__name__
    assert ours.__doc__ == theirs.__doc__
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__module__ == "devicearray.numpy"
