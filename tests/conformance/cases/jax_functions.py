"""jax.numpy, jax.lax, jax.scipy, jax.nn and friends, given arrays of either kind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import sparse

from tests.conformance.cases._data import (
    EIGHT,
    MATRIX,
    VECTOR,
    f32,
    i32,
    indices,
    on_device,
    sharded,
    sharded_over_8,
)
from tests.conformance.cases._registry import case
from tests.conformance.harness import attempt

SQUARE = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], dtype=np.float32)


@case
def where(make):
    return jnp.where(make(VECTOR) > 1, make(VECTOR), 0)


@case
def where_condition(make):
    return jnp.where(make(VECTOR > 1), VECTOR, make(f32(9)))


@case
def where_one_argument(make):
    return jnp.where(make(VECTOR > 1))


@case
def concatenate(make):
    return jnp.concatenate([make(VECTOR), VECTOR, make(VECTOR)])


@case
def concatenate_arr(make):
    return jnp.concatenate(make(MATRIX))


@case
def concatenate_0d_error(make):
    return attempt(jnp.concatenate, make(f32(1))), attempt(jnp.concatenate, make(VECTOR))


@case
def stack(make):
    return jnp.stack([make(VECTOR), make(VECTOR)])


@case
def stack_arr(make):
    return jnp.stack(make(MATRIX))


@case
def stack_mixed(make):
    return jnp.stack([make(VECTOR), jnp.asarray(VECTOR), VECTOR], axis=1)


@case
def stack_unequal_error(make):
    return attempt(jnp.stack, [make(VECTOR), make(MATRIX)])


@case
def stack_committed(make):
    return jnp.stack([make(on_device(VECTOR, 1)), make(VECTOR)])


@case
def stack_sharded(make):
    part = make(jax.device_put(EIGHT, sharded_over_8(("a", "b"))))
    return jnp.stack([part, part])


@case
def vstack(make):
    return jnp.vstack([make(VECTOR), make(VECTOR)])


@case
def hstack_dstack_column_stack(make):
    pair = [make(VECTOR), make(VECTOR)]
    return jnp.hstack(pair), jnp.dstack(pair), jnp.column_stack(pair)


@case
def block(make):
    return jnp.block([[make(MATRIX), make(MATRIX)], [make(MATRIX), MATRIX]])


@case
def jnp_array_list(make):
    return jnp.array([make(VECTOR), make(VECTOR)])


@case
def jnp_array_scalars(make):
    return jnp.array([make(f32(1)), make(f32(2)), 3.0])


@case
def jnp_array_nested(make):
    return jnp.array([[make(f32(1)), 2.0], [make(f32(3)), make(i32(4))]])


@case
def jnp_array_weak_scalars(make):
    weak = make(jnp.asarray(1.0))
    return jnp.array([weak, weak]), jnp.array(weak), jnp.asarray(weak)


@case
def jnp_array_keywords(make):
    argument = make(VECTOR)
    return [
        jnp.array(argument, dtype=jnp.int8),
        jnp.array(argument, ndmin=3),
        jnp.array(argument, copy=False),
        jnp.asarray(argument, copy=True),
        attempt(jnp.array, argument, order="F"),
    ]


@case
def asarray(make):
    return jnp.asarray(make(VECTOR))


@case(name="asarray_dt")
def asarray_dtype(make):
    return jnp.asarray(make(VECTOR), dtype=jnp.int32)


@case
def asarray_device(make):
    return jnp.asarray(make(VECTOR), device=sharded("a"))


@case
def array_copy(make):
    return jnp.array(make(VECTOR))


@case
def array_copy_is_a_copy(make):
    original = make(jnp.array(VECTOR))
    copied = jnp.array(original)
    original.delete()
    return copied, copied.is_deleted()


@case
def jnp_copy(make):
    return jnp.copy(make(MATRIX))


@case
def einsum(make):
    return jnp.einsum("ij,j->i", make(MATRIX), make(VECTOR))


@case
def dot_family(make):
    matrix, vector = make(MATRIX), make(VECTOR)
    return [
        jnp.dot(matrix, vector),
        jnp.matmul(matrix, vector),
        jnp.vdot(vector, vector),
        jnp.inner(matrix, vector),
        jnp.outer(vector, vector),
        jnp.tensordot(matrix, vector, axes=1),
        jnp.kron(vector, vector),
        jnp.cross(make(VECTOR[:3]), make(VECTOR[1:])),
    ]


@case
def matmul_precision(make):
    return jnp.matmul(make(MATRIX), make(VECTOR), precision=lax.Precision.HIGHEST)


@case
def preferred_element_type(make):
    halves = make(MATRIX.astype(np.float16))
    return jnp.matmul(halves, halves.T, preferred_element_type=jnp.float32)


@case
def take(make):
    return jnp.take(make(MATRIX), make(np.array([0, 2])), axis=0)


@case
def take_along_axis(make):
    order = make(np.argsort(-MATRIX, axis=1))
    return jnp.take_along_axis(make(MATRIX), order, axis=1)


@case
def linalg(make):
    return [
        jnp.linalg.norm(make(VECTOR)),
        jnp.linalg.inv(make(np.eye(3, dtype=np.float32) * 2)),
        jnp.linalg.qr(make(MATRIX))[1],
    ]


@case
def linalg_more(make):
    square = make(SQUARE)
    return [
        jnp.linalg.cholesky(square),
        jnp.linalg.solve(square, make(VECTOR[:3])),
        jnp.linalg.det(square),
        jnp.linalg.slogdet(square),
        jnp.linalg.eigvalsh(square),
        jnp.linalg.matrix_power(square, 2),
        jnp.linalg.svd(square, compute_uv=False),
        jnp.linalg.lstsq(square, make(VECTOR[:3]))[0],
    ]


@case
def jax_scipy_linalg(make):
    square = make(SQUARE)
    factor = jax.scipy.linalg.cho_factor(square)
    return [
        jax.scipy.linalg.lu(square),
        jax.scipy.linalg.cho_solve(factor, make(VECTOR[:3])),
        jax.scipy.linalg.solve_triangular(square, make(VECTOR[:3]), lower=True),
        jax.scipy.linalg.expm(make(np.zeros((3, 3), np.float32))),
    ]


@case
def fft(make):
    return jnp.fft.fft(make(VECTOR))


@case
def fft_more(make):
    return jnp.fft.rfft(make(VECTOR)), jnp.fft.fft2(make(MATRIX)), jnp.fft.fftshift(make(VECTOR))


@case
def sort(make):
    return [jnp.sort(make(VECTOR)), make(VECTOR).sort(), jnp.argsort(make(VECTOR))]


@case
def sort_more(make):
    matrix = make(MATRIX)
    return [
        jnp.sort(matrix, axis=0, descending=True),
        jnp.lexsort((make(VECTOR), make(VECTOR[::-1].copy()))),
        jnp.partition(matrix, 1),
        jnp.searchsorted(make(VECTOR), make(f32(1.5))),
        jnp.digitize(make(VECTOR), make(VECTOR)),
    ]


@case
def unique(make):
    return jnp.unique(make(VECTOR))


@case
def unique_more(make):
    values = make(indices(3, 1, 3, 2))
    return [
        jnp.unique(values, return_inverse=True, return_counts=True),
        jnp.unique(values, size=2, fill_value=0),
        jnp.isin(values, make(indices(1, 2))),
        jnp.union1d(values, make(indices(9))),
        jnp.setdiff1d(values, make(indices(1))),
        jnp.bincount(values),
    ]


@case
def nonzero(make):
    return jnp.nonzero(make(VECTOR))


@case
def nonzero_more(make):
    return [
        jnp.flatnonzero(make(VECTOR)),
        jnp.argwhere(make(VECTOR)),
        jnp.count_nonzero(make(VECTOR)),
        jnp.nonzero(make(VECTOR), size=2),
    ]


@case
def split(make):
    return jnp.split(make(VECTOR), 2)


@case
def split_more(make):
    return [
        jnp.array_split(make(VECTOR), 3),
        jnp.split(make(MATRIX), [1], axis=1),
        attempt(jnp.split, make(VECTOR), 3),
        jnp.unstack(make(MATRIX)),
    ]


@case
def split_at_array(make):
    return jnp.split(make(VECTOR), make(indices(1, 3)))


@case
def linspace(make):
    return jnp.linspace(make(f32(0)), make(f32(1)), 3)


@case
def linspace_num(make):
    return attempt(jnp.linspace, 0, 1, make(i32(3)))


@case
def arange(make):
    return jnp.arange(make(i32(3)))


@case
def arange_more(make):
    return [
        jnp.arange(make(i32(1)), make(i32(7)), make(i32(2))),
        jnp.arange(make(f32(2.5))),
        attempt(jnp.arange, make(VECTOR)),
    ]


@case
def full(make):
    return jnp.full((2, 2), make(f32(3)))


@case
def full_more(make):
    return [
        jnp.full((2,), make(jnp.asarray(3.0))),
        jnp.full((2, 4), make(VECTOR)),
        jnp.full((2,), make(f32(3)), dtype=jnp.int8),
        jnp.full(make(i32(2)), 1.0),
        jnp.full_like(make(MATRIX), make(f32(3))),
        jnp.full((2,), make(on_device(f32(3), 1))),
    ]


@case
def full_sharded(make):
    return jnp.full((4, 2), make(f32(3)), device=sharded("a"))


@case
def full_like_sharded(make):
    return jnp.full_like(make(jax.device_put(EIGHT, sharded("a"))), make(f32(3)))


@case
def ones_like(make):
    return jnp.ones_like(make(VECTOR))


@case
def like_family(make):
    weak = make(jnp.asarray(1.0))
    sharded_array = make(jax.device_put(EIGHT, sharded("a")))
    return [
        jnp.zeros_like(weak),
        jnp.empty_like(make(MATRIX)).shape,
        jnp.ones_like(make(VECTOR), dtype=jnp.int8, shape=(2,)),
        jnp.zeros_like(sharded_array),
    ]


@case
def zeros_like_committed(make):
    return jnp.zeros_like(make(on_device(VECTOR, 1))).devices()


@case
def shape_from_arrays(make):
    return jnp.zeros((make(i32(2)), 3)), jnp.reshape(make(VECTOR), (make(i32(2)), 2))


@case
def lax_same(make):
    # Operations that have nothing to do, and may give back what they were given.
    return [
        lax.convert_element_type(make(VECTOR), np.float32),
        lax.stop_gradient(make(VECTOR)),
        lax.reshape(make(VECTOR), (4,)),
        lax.broadcast(make(VECTOR), ()),
        lax.slice(make(VECTOR), (0,), (4,)),
        lax.squeeze(make(VECTOR), ()),
        lax.transpose(make(VECTOR), (0,)),
        lax.real(make(VECTOR.astype(np.complex64))),
    ]


@case
def lax_same_weak(make):
    weak = make(jnp.asarray(2.0))
    return [
        lax.convert_element_type(weak, np.float32),
        lax.stop_gradient(weak),
        lax.reshape(weak, ()),
        lax.squeeze(weak, ()),
        lax.broadcast_in_dim(weak, (), ()),
    ]


@case
def lax_ops(make):
    return [
        lax.add(make(VECTOR), make(VECTOR)),
        lax.dot(make(MATRIX), make(VECTOR)),
        lax.dynamic_slice(make(VECTOR), (make(i32(1)),), (2,)),
        lax.reduce(make(VECTOR), 0.0, lax.add, (0,)),
        lax.top_k(make(VECTOR), 2),
        lax.cumsum(make(VECTOR)),
        lax.pad(make(VECTOR), make(f32(0)), [(1, 1, 0)]),
    ]


@case
def lax_more(make):
    vector, matrix = make(VECTOR), make(MATRIX)
    return [
        lax.select(make(VECTOR > 1), vector, make(VECTOR * 2)),
        lax.clamp(make(f32(1)), vector, make(f32(2))),
        lax.dynamic_update_slice(vector, make(f32(9)[None]), (make(i32(1)),)),
        lax.dynamic_index_in_dim(matrix, make(i32(1)), 0),
        lax.dynamic_slice_in_dim(matrix, make(i32(1)), 2),
        lax.index_take(matrix, (make(indices(0, 2)),), (0,)),
        lax.index_in_dim(matrix, 1, 0, keepdims=False),
        lax.slice_in_dim(matrix, 0, 2),
        lax.concatenate([vector, vector], 0),
        lax.rev(vector, (0,)),
        lax.sort(vector),
        lax.argmax(vector, 0, np.int32),
        lax.iota(np.int32, 3) + make(i32(1)),
        lax.bitcast_convert_type(vector, np.int32),
        lax.expand_dims(vector, (0,)),
        lax.broadcast_in_dim(vector, (2, 4), (1,)),
        lax.integer_pow(vector, 2),
        lax.rsqrt(matrix),
        lax.erf(vector),
        lax.reduce_sum(vector, (0,)),
    ]


@case
def lax_strictness(make):
    # Unlike jnp, lax promotes nothing and broadcasts nothing.
    return [
        attempt(lax.add, make(VECTOR), make(indices(1, 2, 3, 4))),
        attempt(lax.add, make(VECTOR), make(f32(1))),
        attempt(lax.add, make(VECTOR), make(MATRIX)),
        attempt(lax.add, make(VECTOR), 1.0),
        attempt(lax.dot, make(VECTOR), make(MATRIX)),
    ]


@case
def lax_conv(make):
    image = make(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    kernel = make(np.ones((1, 1, 2, 2), np.float32))
    return lax.conv(image, kernel, (1, 1), "VALID"), jnp.convolve(make(VECTOR), make(VECTOR))


@case
def lax_tie(make):
    return lax.optimization_barrier((make(VECTOR), make(VECTOR)))


@case
def primitive_bind(make):
    return lax.add_p.bind(make(VECTOR), make(VECTOR)), lax.sin_p.bind(make(VECTOR), accuracy=None)


@case(name="squeeze_same")
def squeeze_nothing(make):
    return jnp.squeeze(make(VECTOR))


@case
def shape_functions(make):
    matrix = make(MATRIX)
    return [
        jnp.reshape(matrix, (4, 3)),
        jnp.ravel(matrix, order="F"),
        jnp.transpose(matrix),
        jnp.swapaxes(matrix, 0, 1),
        jnp.moveaxis(matrix, 0, 1),
        jnp.expand_dims(matrix, 0),
        jnp.broadcast_to(make(VECTOR), (3, 4)),
        jnp.broadcast_arrays(matrix, make(VECTOR)),
        jnp.flip(matrix),
        jnp.roll(matrix, 1),
        jnp.rot90(matrix),
        jnp.tile(make(VECTOR), 2),
        jnp.repeat(make(VECTOR), 2),
        jnp.pad(make(VECTOR), 1),
        jnp.atleast_2d(make(VECTOR)),
        jnp.meshgrid(make(VECTOR), make(VECTOR[:2])),
        jnp.diag(make(VECTOR)),
        jnp.tril(matrix),
        jnp.delete(make(VECTOR), 1),
        jnp.insert(make(VECTOR), 1, 9),
        jnp.append(make(VECTOR), make(VECTOR)),
    ]


@case
def repeat_by_array(make):
    counts = make(indices(1, 0, 2, 1))
    return jnp.repeat(make(VECTOR), counts), jnp.repeat(VECTOR, counts, total_repeat_length=4)


@case
def reductions(make):
    matrix = make(MATRIX)
    return [
        jnp.sum(matrix),
        jnp.mean(matrix, axis=0),
        jnp.var(matrix, ddof=1),
        jnp.median(matrix),
        jnp.quantile(matrix, make(f32(0.25))),
        jnp.percentile(matrix, 25, axis=1),
        jnp.average(matrix, weights=make(MATRIX)),
        jnp.argmax(matrix, axis=1),
        jnp.nanmean(make(np.array([1, np.nan], np.float32))),
        jnp.cumsum(matrix, axis=1),
        jnp.diff(make(VECTOR)),
        jnp.trapezoid(make(VECTOR)),
        jnp.cov(matrix),
        jnp.histogram(make(VECTOR), bins=2),
    ]


@case
def reduction_keywords(make):
    matrix, keep = make(MATRIX), make(MATRIX > 3)
    return [
        jnp.sum(matrix, where=keep),
        jnp.max(matrix, where=keep, initial=make(f32(-1))),
        jnp.prod(matrix, axis=(0, 1), keepdims=True),
        jnp.sum(matrix, dtype=jnp.int32),
        attempt(jnp.sum, matrix, out=matrix),
        attempt(jnp.sum, matrix, axis=5),
    ]


@case
def elementwise(make):
    vector = make(VECTOR)
    return [
        jnp.sin(vector),
        jnp.exp(vector),
        jnp.logaddexp(vector, vector),
        jnp.arctan2(vector, 2),
        jnp.power(vector, make(f32(2))),
        jnp.maximum(vector, make(f32(2))),
        jnp.clip(vector, make(f32(1)), make(f32(2))),
        jnp.round(vector, 1),
        jnp.sign(vector),
        jnp.isfinite(vector),
        jnp.isclose(vector, vector),
        jnp.allclose(vector, vector),
        jnp.array_equal(vector, vector),
        jnp.nan_to_num(vector / 0),
        jnp.interp(make(f32(1.5)), vector, vector),
        jnp.polyval(vector, make(f32(2))),
        jnp.hypot(vector, vector),
        jnp.frexp(vector),
        jnp.divmod(vector, 2),
        jnp.select([make(VECTOR > 1)], [vector]),
        jnp.piecewise(vector, [make(VECTOR > 1)], [1, 2]),
    ]


@case
def elementwise_integers(make):
    numbers = make(indices(1, 2, 12))
    return [
        jnp.bitwise_and(numbers, 3),
        jnp.left_shift(numbers, make(i32(2))),
        jnp.gcd(numbers, make(indices(2, 4, 8))),
        jnp.bitwise_count(numbers),
        jnp.unpackbits(make(np.array([3], np.uint8))),
        jnp.invert(numbers),
    ]


@case
def logic(make):
    flags = make(VECTOR > 1)
    return [jnp.any(flags), jnp.all(flags), jnp.logical_not(flags), jnp.logical_xor(flags, True)]


@case
def complex_functions(make):
    values = make(np.array([1 + 2j, 3 - 4j], np.complex64))
    return [jnp.abs(values), jnp.angle(values), jnp.conj(values), jnp.real(values), values.imag]


@case
def ufunc(make):
    return jnp.add.reduce(make(VECTOR))


@case
def ufunc_more(make):
    return [
        jnp.add.accumulate(make(VECTOR)),
        jnp.multiply.outer(make(VECTOR), make(VECTOR)),
        jnp.add.at(make(VECTOR), make(indices(0, 0)), make(f32(5)), inplace=False),
        jnp.add.reduceat(make(VECTOR), make(indices(0, 2))),
    ]


@case
def apply_over_axes(make):
    return jnp.apply_over_axes(jnp.sum, make(MATRIX), [0, 1])


@case
def fromfunction(make):
    offset = make(f32(1))
    return jnp.fromfunction(lambda i, j: i + j + offset, (2, 2))


@case
def jnp_shape(make):
    return (
        jnp.shape(make(MATRIX)),
        np.shape(make(MATRIX)),
        np.ndim(make(MATRIX)),
        np.size(make(MATRIX)),
        jnp.iscomplexobj(make(VECTOR)),
        jnp.isscalar(make(f32(1))),
    )


@case(raises=TypeError)
def check_arraylike(make):
    return jnp.add(make(VECTOR), [1, 2, 3, 4])


@case
def not_arraylike_errors(make):
    vector = make(VECTOR)
    return [
        attempt(jnp.add, vector, None),
        attempt(jnp.add, "a", vector),
        attempt(jnp.add, vector, object),
        attempt(jnp.sin, [vector]),
        attempt(jnp.stack, vector, axis=3),
        attempt(lax.sin, [vector]),
    ]


@case
def jsp(make):
    return [
        jax.scipy.special.logsumexp(make(VECTOR)),
        jax.nn.softmax(make(VECTOR)),
        jax.nn.one_hot(make(np.array([0, 1])), 3),
        jax.nn.relu(make(VECTOR)),
        jax.image.resize(make(MATRIX), (6, 8), "linear"),
    ]


@case
def jax_nn(make):
    vector = make(VECTOR)
    return [
        jax.nn.gelu(vector),
        jax.nn.silu(vector),
        jax.nn.log_softmax(vector),
        jax.nn.standardize(vector),
        jax.nn.logsumexp(vector, b=make(VECTOR + 1)),
        jax.nn.softmax(vector, where=make(VECTOR > 1)),
        jax.nn.dot_product_attention(*[make(np.ones((1, 2, 1, 4), np.float32))] * 3),
    ]


@case
def jax_nn_initializers(make):
    key = make(jax.random.key(0))
    return jax.nn.initializers.glorot_normal()(key, (3, 4), jnp.float32)


@case
def jax_scipy_special_stats(make):
    vector = make(VECTOR)
    return [
        jax.scipy.special.gammaln(vector + 1),
        jax.scipy.special.xlogy(vector, vector),
        jax.scipy.stats.norm.logpdf(vector, make(f32(0)), 1),
        jax.scipy.stats.rankdata(vector),
    ]


@case
def jax_scipy_signal_ndimage(make):
    return [
        jax.scipy.signal.convolve(make(VECTOR), make(VECTOR)),
        jax.scipy.ndimage.map_coordinates(make(MATRIX), [make(VECTOR[:2]), make(VECTOR[:2])], 1),
    ]


@case
def jax_ops_segment_sum(make):
    return jax.ops.segment_sum(make(VECTOR), make(indices(0, 0, 1, 1)), num_segments=2)


@case
def segment_sum_count_from_array(make):
    return attempt(jax.ops.segment_sum, make(VECTOR), make(indices(0, 0, 1, 1)))


@case
def bcoo(make):
    return sparse.BCOO.fromdense(make(MATRIX)).todense()


@case
def bcoo_matmul(make):
    return sparse.BCOO.fromdense(make(MATRIX)) @ make(VECTOR)


@case
def bcoo_from_parts(make):
    data, where_ = make(VECTOR[:2]), make(np.array([[0, 1], [2, 3]], np.int32))
    return sparse.BCOO((data, where_), shape=(3, 4)).todense()


@case
def random_ops_on_sharded(make):
    x = make(jax.device_put(EIGHT.reshape(4, 2), sharded_over_8("a", "b")))
    return [jnp.sin(x), x.sum(), x.T, x @ x.T, jnp.sort(x, axis=0), x.reshape(8), x.astype(np.int8)]


@case
def ffi(make):
    # A foreign function of jaxlib's own: the LU factorisation of LAPACK.
    jnp.linalg.inv(jnp.asarray(SQUARE)).block_until_ready()
    factorise = jax.ffi.ffi_call(
        "lapack_sgetrf_ffi",
        (
            jax.ShapeDtypeStruct((3, 3), np.float32),
            jax.ShapeDtypeStruct((3,), np.int32),
            jax.ShapeDtypeStruct((), np.int32),
        ),
        input_layouts=[(0, 1)],
        output_layouts=[(0, 1), None, None],
        input_output_aliases={0: 0},
    )
    return factorise(make(SQUARE))
