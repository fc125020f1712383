"""DeviceArray beside the array that JAX gives: attributes, text, protocols, life and errors."""

import copy
import gc
import inspect
import pickle
import pydoc
import re
import subprocess
import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devicearray as da
from tests.conformance.harness import attempt, describe, differences, normalise_names
from tests.eight_devices import on_eight

RUNTIME = type(jnp.zeros(1))


def is_public(name):
    return not name.startswith("_")


def is_special(name):
    return name.startswith("__") and name.endswith("__")


PUBLIC = sorted({name for cls in (jax.Array, RUNTIME) for name in dir(cls) if is_public(name)})

#: What Python sets on every class, and what describes how a class is written, not what it does.
OF_THE_CLASS = {
    *("__annotations__", "__class__", "__dict__", "__doc__", "__firstlineno__", "__module__"),
    *("__static_attributes__", "__slots__", "__weakref__", "__new__", "__init__", "__getattr__"),
    *("__init_subclass__", "__subclasshook__", "__class_getitem__", "__annotate__"),
    *("__annotations_cache__", "__annotate_func__", "__abstractmethods__"),
}


ARRAYS = {
    "0-d": lambda: jnp.array(2.5),
    "1-d": lambda: jnp.arange(5.0),
    "2-d": lambda: jnp.arange(6.0).reshape(2, 3),
    "3-d": lambda: jnp.arange(24.0).reshape(2, 3, 4),
    "zero-size": lambda: jnp.zeros((0, 3)),
    "bool": lambda: jnp.array([True, False]),
    "int32": lambda: jnp.arange(4),
    "uint8": lambda: jnp.arange(4, dtype=jnp.uint8),
    "int4": lambda: jnp.arange(4, dtype=jnp.int4),
    "bfloat16": lambda: jnp.arange(4, dtype=jnp.bfloat16),
    "float8": lambda: jnp.arange(4, dtype=jnp.float8_e4m3fn),
    "complex": lambda: jnp.array([1 + 2j, -3j]),
    "nan and inf": lambda: jnp.array([jnp.nan, jnp.inf, -jnp.inf, -0.0]),
    "weak": lambda: jnp.asarray(3),
    "weak float": lambda: jnp.asarray(3.5),
    "committed": lambda: jax.device_put(jnp.arange(3.0), jax.devices()[2]),
    "sharded": lambda: on_eight(jnp.arange(16.0), "i"),
    "replicated": lambda: on_eight(jnp.arange(16.0)),
    "key": lambda: jax.random.key(7),
    "keys": lambda: jax.random.split(jax.random.key(7), 3),
    "sharded keys": lambda: on_eight(jax.random.split(jax.random.key(7), 8), "i"),
    "raw key": lambda: jax.random.PRNGKey(7),
}
NUMERIC = [name for name in ARRAYS if name not in ("key", "keys", "sharded keys")]

every_array = pytest.mark.parametrize("name", ARRAYS)
every_numeric_array = pytest.mark.parametrize("name", NUMERIC)


def pair(name):
    """Return an array of JAX's own, and another with the same value as a DeviceArray."""
    array = da.asarray(ARRAYS[name]())
    assert type(array) is da.DeviceArray
    return ARRAYS[name](), array


def comparable(value):
    """Turn what the harness does not know how to compare into what it does."""
    if isinstance(value, jax.core.ShapedArray):
        return [str(value), value.shape, str(value.dtype), value.weak_type]
    if type(value) is type(jax.random.key(0).dtype):
        return str(value)
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if hasattr(value, "replica_id"):
        return [value.device, value.index, value.replica_id, value.data]
    return value


def facts_of(value):
    """Describe `value`, with one name for all array types in what is said of them."""
    facts = describe(comparable(value))
    return {
        path: fact.replace("PRNGKeyArray", "Array") if path.endswith("message") else fact
        for path, fact in facts.items()
    }


def assert_agree(ours, theirs):
    assert differences(facts_of(theirs), facts_of(ours)) == []


def arrays_in(value):
    return [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]


# The names.


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_attribute_of_jax_arrays_is_on_the_class(name):
    assert hasattr(da.DeviceArray, name)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_attribute_has_a_doc_where_jax_has_one(name):
    theirs = getattr(RUNTIME, name, None)
    if theirs is not None and theirs.__doc__:
        assert getattr(da.DeviceArray, name).__doc__


@every_array
def test_every_public_attribute_of_this_array_is_on_the_instance(name):
    theirs, ours = pair(name)
    for attribute in PUBLIC:
        wanted, found = attempt(getattr, theirs, attribute), attempt(getattr, ours, attribute)
        if not hasattr(wanted, "error"):
            assert callable(wanted) == callable(found), attribute
        elif callable(found):
            # A method of the class that this array lacks in JAX: it is no use either.
            assert_agree(attempt(found), wanted)
        else:
            assert_agree(found, wanted)


def test_every_special_method_of_jax_arrays_is_on_the_class():
    wanted = {name for cls in (jax.Array, RUNTIME) for name in dir(cls) if is_special(name)}
    missing = {name for name in wanted - OF_THE_CLASS if not hasattr(da.DeviceArray, name)}
    # ``__del__`` frees the buffer, which the buffer does for itself; NumPy looks for no
    # ``__array_module__``; ``__release_buffer__`` belongs to the ``__buffer__`` of the buffer.
    assert missing <= {"__del__", "__array_module__", "__release_buffer__"}


def test_no_method_is_one_that_jax_left_abstract():
    abstract = "Cannot call abstract method"
    left = []
    for name in dir(jax.Array):
        ours = inspect.getattr_static(da.DeviceArray, name)
        if ours is not inspect.getattr_static(jax.Array, name):
            continue
        for code in (getattr(ours, "__code__", None), getattr(ours, "fget", None)):
            constants = getattr(getattr(code, "__code__", code), "co_consts", ())
            if any(isinstance(text, str) and abstract in text for text in constants):
                left.append(name)
    assert left == []


def test_dir_of_an_instance_is_that_of_a_jax_array_and_more():
    theirs, ours = pair("1-d")
    assert set(dir(theirs)) <= set(dir(ours))
    assert dir(ours) == sorted(set(dir(ours)))


@every_array
def test_each_name_of_dir_can_be_asked_for_where_jax_answers_it(name):
    theirs, ours = pair(name)
    for attribute in dir(theirs):
        if is_public(attribute) and hasattr(type(theirs), attribute):
            assert hasattr(attempt(getattr, ours, attribute), "error") == hasattr(
                attempt(getattr, theirs, attribute), "error"
            )


def test_help_of_the_class_can_be_rendered():
    assert "block_until_ready" in pydoc.render_doc(da.DeviceArray)


# Properties: whatever is no method.


def properties_of(array):
    skipped = {"at", "traceback"}  # `at` is in test_methods; a traceback says where, not what
    for name in PUBLIC:
        value = attempt(getattr, array, name)
        absent = isinstance(getattr(value, "error", None), AttributeError)
        if name not in skipped and not absent and not callable(value):
            yield name


@every_array
def test_properties_agree_with_jax(name):
    theirs, ours = pair(name)
    for attribute in properties_of(theirs):
        assert_agree(attempt(getattr, ours, attribute), attempt(getattr, theirs, attribute))


@every_numeric_array
def test_arrays_among_the_properties_are_device_arrays(name):
    _, ours = pair(name)
    for attribute in ("T", "mT", "real", "imag"):
        array = attempt(getattr, ours, attribute)
        assert type(array) is da.DeviceArray or hasattr(array, "error")


#: Methods that neither change nor end the array, called without arguments.
QUERIES = ("devices", "is_deleted", "on_device_size_in_bytes", "tolist", "tobytes", "item")


@every_array
@pytest.mark.parametrize("method", QUERIES)
def test_methods_without_arguments_agree_with_jax(name, method):
    theirs, ours = pair(name)
    wanted = attempt(lambda: getattr(theirs, method)())
    found = attempt(lambda: getattr(ours, method)())
    assert_agree(found, wanted)


@pytest.mark.parametrize("name", ["shape", "dtype", "sharding", "T", "aval", "at", "nbytes"])
def test_properties_cannot_be_assigned(name):
    theirs, ours = pair("1-d")
    with pytest.raises((AttributeError, TypeError)):
        setattr(theirs, name, None)
    with pytest.raises(AttributeError):
        setattr(ours, name, None)


def test_is_ready_holds_once_the_value_was_waited_for():
    _, ours = pair("2-d")
    assert ours.block_until_ready() is ours
    assert ours.is_ready() is True


def test_shards_are_those_of_the_array():
    theirs, ours = pair("sharded")
    assert_agree(ours.addressable_shards, theirs.addressable_shards)
    assert_agree(ours.global_shards, theirs.global_shards)
    for i in range(8):
        assert_agree(ours.addressable_data(i), theirs.addressable_data(i))


def test_the_pointer_is_that_of_the_array_it_was_made_of():
    theirs = jnp.arange(3.0)
    assert da.asarray(theirs).unsafe_buffer_pointer() == theirs.unsafe_buffer_pointer()


# The class.


def test_a_device_array_is_a_jax_array_and_the_name_says_where_it_lives():
    _, ours = pair("1-d")
    assert isinstance(ours, jax.Array)
    assert isinstance(ours, jax.typing.ArrayLike)
    assert (type(ours).__module__, type(ours).__qualname__) == ("devicearray", "DeviceArray")
    assert da.DeviceArray is type(ours)


@pytest.mark.parametrize("args", [(), ([1.0],), (np.zeros(3),)])
def test_direct_construction_names_the_ways_to_make_one(args):
    with pytest.raises(TypeError, match=r"not constructed directly.*devicearray\.asarray"):
        da.DeviceArray(*args)


def test_the_class_says_that_it_is_final():
    assert da.DeviceArray.__final__ is True


def test_a_subclass_is_refused_or_is_an_array_to_jax():
    try:
        sub = type("Sub", (da.DeviceArray,), {})
    except TypeError:
        return
    instance = object.__new__(sub)
    instance._buffer = jnp.arange(3.0)
    assert_agree(jnp.add(instance, 1), jnp.arange(3.0) + 1)


def test_unknown_attributes_raise_an_error_that_names_class_and_attribute():
    theirs, ours = pair("1-d")
    with pytest.raises(AttributeError, match="no_such_name") as wanted:
        _ = theirs.no_such_name
    with pytest.raises(AttributeError, match=r"DeviceArray.*no_such_name") as found:
        _ = ours.no_such_name
    assert normalise_names(str(found.value)) == normalise_names(str(wanted.value))
    assert found.value.name == "no_such_name"
    assert found.value.obj is ours


def test_an_instance_without_a_buffer_raises_attribute_error_and_does_not_recurse():
    empty = object.__new__(da.DeviceArray)
    with pytest.raises(AttributeError, match="_buffer"):
        _ = empty.anything


# Text.

LINE_WIDTHS = (20, 33, 75, 200)
SHAPES = ((), (0,), (1,), (7,), (40,), (3, 0), (2, 3), (5, 30), (2, 2, 2), (1200,), (40, 40))
DTYPES = ("float32", "int32", "bool", "complex64", "bfloat16")
NAME, JAX_NAME = "DeviceArray(", "Array("


def as_jax_writes(text):
    """Take the longer name, and the indentation that it makes, out of a representation."""
    assert text.startswith(NAME)
    first, *rest = text.removeprefix(NAME).split("\n")
    indented = [line for line in rest if line.startswith(" " * len(NAME))]
    assert len(indented) == len([line for line in rest if line.strip()])
    return "\n".join([JAX_NAME + first, *(line[len(NAME) - len(JAX_NAME) :] for line in rest)])


@pytest.mark.parametrize("width", LINE_WIDTHS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_repr_is_jaxs_with_the_name_replaced_and_the_lines_aligned(shape, width):
    for dtype in DTYPES:
        theirs = jnp.asarray(np.arange(np.prod(shape)).reshape(shape) * 1.5).astype(dtype)
        with np.printoptions(linewidth=width):
            wanted = repr(theirs)
        with np.printoptions(linewidth=width + len(NAME) - len(JAX_NAME)):
            assert as_jax_writes(repr(da.asarray(theirs))) == wanted


@settings(deadline=None, max_examples=60)
@given(
    shape=st.lists(st.integers(0, 12), max_size=3).map(tuple),
    width=st.integers(25, 120),
    precision=st.integers(1, 8),
)
def test_no_line_of_a_repr_is_longer_than_the_line_width_where_jaxs_is_not(shape, width, precision):
    theirs = jnp.asarray(np.linspace(-3, 1000, int(np.prod(shape))).reshape(shape), jnp.float32)
    with np.printoptions(linewidth=width, precision=precision):
        ours = repr(da.asarray(theirs)).split("\n")
    with np.printoptions(linewidth=width - len(NAME) + len(JAX_NAME), precision=precision):
        longest = max(map(len, repr(theirs).split("\n")))
    if longest <= width - len(NAME) + len(JAX_NAME):
        assert max(map(len, ours)) <= width


def test_a_narrow_line_width_is_no_error():
    theirs = jnp.arange(6.0).reshape(2, 3)
    for width in (1, 3, 6, 7, 10):
        with np.printoptions(linewidth=width):
            wanted, found = repr(theirs), repr(da.asarray(theirs))
        assert found.split() == wanted.replace(JAX_NAME, NAME).split()


@every_array
def test_repr_agrees_with_jax(name):
    theirs, ours = pair(name)
    wanted = repr(theirs)
    if wanted.startswith(JAX_NAME):
        with np.printoptions(linewidth=np.get_printoptions()["linewidth"] + 6):
            assert repr(ours).replace(NAME, JAX_NAME).split() == wanted.split()
    else:
        assert normalise_names(repr(ours)) == wanted


@every_array
def test_str_agrees_with_jax(name):
    theirs, ours = pair(name)
    if str(theirs).startswith(JAX_NAME):
        assert str(ours).replace(NAME, JAX_NAME).split() == str(theirs).split()
    else:
        assert str(ours) == str(theirs)


@pytest.mark.parametrize("shape", [(1 << 18,), (512, 512), (2, 1 << 18)], ids=str)
def test_arrays_of_a_mebibyte_and_more_are_written_as_jax_writes_them(shape):
    theirs = jnp.ones(shape)
    assert theirs.nbytes >= 1 << 20
    ours = da.asarray(theirs)
    assert str(ours).replace(NAME, JAX_NAME).split() == str(theirs).split()
    assert as_jax_writes(repr(ours)) == repr(theirs)


@pytest.mark.parametrize(
    "options", [{"threshold": 3}, {"precision": 2}, {"suppress": True}, {"sign": "+"}]
)
def test_numpys_print_options_reach_the_text(options):
    theirs, ours = jnp.linspace(1e-9, 2, 7), da.asarray(jnp.linspace(1e-9, 2, 7))
    with np.printoptions(**options):
        assert str(ours) == str(theirs)
        assert repr(ours).replace(NAME, JAX_NAME).split() == repr(theirs).split()


@every_array
@pytest.mark.parametrize("spec", ["", ".2f", "10.3e", "d", "x", ">12", "nonsense"])
def test_format_agrees_with_jax(name, spec):
    theirs, ours = pair(name)
    wanted, found = attempt(format, theirs, spec), attempt(format, ours, spec)
    if isinstance(wanted, str):
        wanted, found = wanted.replace(JAX_NAME, NAME).split(), found.split()
    assert_agree(found, wanted)


def test_text_of_a_deleted_array_is_jaxs_with_the_name_replaced():
    theirs, ours = jnp.arange(3.0), da.asarray(jnp.arange(3.0))
    theirs.delete()
    ours.delete()
    for text in (repr, str, format):
        wanted, found = attempt(text, theirs), attempt(text, ours)
        assert_agree(
            normalise_names(found) if isinstance(found, str) else found,
            normalise_names(wanted) if isinstance(wanted, str) else wanted,
        )


# Reads by the host.

READS = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": lambda x: list(range(10))[x],
    "hex": hex,
    "oct": oct,
    "len": len,
    "round": round,
    "contains": lambda x: 2 in x,
    "hash": hash,
    "asarray": np.asarray,
    "asarray with dtype": lambda x: np.asarray(x, dtype=np.float64),
    "asarray without copy": lambda x: np.asarray(x, copy=False),
    "array with copy": lambda x: np.array(x, copy=True),
    "memoryview": lambda x: memoryview(x).tobytes(),
    "item of 1": lambda x: x.item(1),
    "item of 9": lambda x: x.item(9),
    "tobytes F": lambda x: x.tobytes("F"),
    "device_get": jax.device_get,
}


@every_array
@pytest.mark.parametrize("read", READS)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_reads_by_the_host_agree_with_jax(name, read):
    theirs, ours = pair(name)
    if read == "index" and jax.dtypes.issubdtype(theirs.dtype, jax.dtypes.prng_key):
        pytest.skip("the words differ: key_list_index in tests/conformance/deviations.csv")
    assert_agree(attempt(READS[read], ours), attempt(READS[read], theirs))


@every_array
def test_iterating_gives_device_arrays_that_agree_with_the_elements_by_index(name):
    theirs, ours = pair(name)
    if theirs.ndim:
        assert_agree(list(ours), [theirs[i] for i in range(len(theirs))])
        assert_agree(list(reversed(ours)), [theirs[i] for i in reversed(range(len(theirs)))])
        assert all(type(row) is da.DeviceArray for row in ours)
    else:
        assert_agree(attempt(iter, ours), attempt(iter, theirs))
        assert_agree(attempt(reversed, ours), attempt(reversed, theirs))


INDICES = {
    "int": 1,
    "negative int": -1,
    "slice": slice(1, None),
    "step": slice(None, None, 2),
    "ellipsis": ...,
    "newaxis": None,
    "tuple": (0, slice(0, 1)),
    "list": (np.array([0, 1]),),
    "mask": np.array([True, False]),
    "numpy int": np.int32(1),
    "out of bounds": 7,
    "float": 1.0,
    "string": "a",
    "too many": (0, 0, 0),
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", ["1-d", "2-d", "sharded", "keys"])
def test_indexing_agrees_with_jax(name, index):
    theirs, ours = pair(name)
    if index == "mask":
        theirs, ours = theirs[:2], ours[:2]
    wanted = attempt(lambda: theirs[INDICES[index]])
    found = attempt(lambda: ours[INDICES[index]])
    assert_agree(found, wanted)
    assert all(type(array) is da.DeviceArray for array in arrays_in(found))


def test_indexing_with_device_arrays_agrees_with_jax():
    theirs, ours = pair("2-d")
    index = jnp.array([1, 0])
    assert_agree(ours[da.asarray(index)], theirs[index])
    assert_agree(ours[da.asarray(index), da.asarray(index)], theirs[index, index])
    assert_agree(theirs[da.asarray(index)], theirs[index])
    assert_agree(ours[ours > 2], theirs[theirs > 2])
    assert_agree(ours[da.asarray(1)], theirs[jnp.asarray(1)])


def test_assigning_to_an_element_is_jaxs_error():
    theirs, ours = pair("1-d")

    def assign(array):
        array[0] = 1.0

    assert_agree(attempt(assign, ours), attempt(assign, theirs))


def test_the_buffer_cannot_be_written_to():
    _, ours = pair("1-d")
    assert memoryview(ours).readonly
    assert not np.asarray(ours).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(ours)[0] = 7


def test_the_host_reads_the_same_memory_as_of_the_plain_array():
    theirs = jnp.arange(1000.0)
    ours = da.asarray(theirs)
    assert np.asarray(ours).ctypes.data == np.asarray(theirs).ctypes.data


@pytest.mark.parametrize("name", ["0-d", "1-d", "2-d", "zero-size", "int32", "bool", "bfloat16"])
def test_dlpack_gives_the_same_array(name):
    theirs, ours = pair(name)
    assert ours.__dlpack_device__() == theirs.__dlpack_device__()
    assert_agree(jnp.from_dlpack(ours), jnp.from_dlpack(theirs))
    assert_agree(attempt(np.from_dlpack, ours), attempt(np.from_dlpack, theirs))


def test_dlpack_errors_are_jaxs():
    for name in ("sharded", "key", "keys"):
        theirs, ours = pair(name)
        assert_agree(attempt(jnp.from_dlpack, ours), attempt(jnp.from_dlpack, theirs))


# Hash, copies, references.


@every_array
def test_no_array_can_be_hashed(name):
    theirs, ours = pair(name)
    assert_agree(attempt(hash, ours), attempt(hash, theirs))
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours)


@every_array
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: x.copy()])
def test_copies_are_equal_device_arrays_in_memory_of_their_own(name, duplicate):
    theirs, ours = pair(name)
    found = duplicate(ours)
    assert_agree(found, duplicate(theirs))
    assert type(found) is da.DeviceArray
    ours.delete()
    assert not found.is_deleted()


@every_array
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_agrees_with_jax(name, protocol):
    theirs, ours = pair(name)

    def there_and_back(array):
        return pickle.loads(pickle.dumps(array, protocol))

    wanted, found = attempt(there_and_back, theirs), attempt(there_and_back, ours)
    assert_agree(found, wanted)
    assert all(type(array) is da.DeviceArray for array in arrays_in(found))


def test_weak_references_do_not_keep_an_array():
    ours = da.asarray(jnp.arange(3.0))
    reference = weakref.ref(ours)
    assert reference() is ours
    del ours
    gc.collect()
    assert reference() is None


def test_an_array_that_is_gone_frees_its_buffer():
    buffer = jnp.arange(3.0)
    reference = weakref.ref(buffer)
    ours = da.asarray(buffer)
    del buffer
    gc.collect()
    assert reference() is not None
    del ours
    gc.collect()
    assert reference() is None


def test_rebinding_in_a_loop_by_name_lets_the_old_array_go():
    ours = da.asarray(jnp.arange(3.0))
    reference = weakref.ref(ours)
    ours += 1
    gc.collect()
    assert reference() is None


# Faults, and the way out of them.


def notes_of(error):
    return "\n".join(getattr(error.value, "__notes__", ()))


USES = {
    "add": lambda x: x + 1,
    "add itself": lambda x: x + x,
    "reflected": lambda x: 1 - x,
    "power": lambda x: x**2,
    "negative": lambda x: -x,
    "sum": lambda x: x.sum(),
    "method with arguments": lambda x: x.reshape(3, 1),
    "index": lambda x: x[0],
    "at": lambda x: x.at[0].set(1.0),
    "float": lambda x: float(x[0]),
    "asarray": np.asarray,
    "memoryview": memoryview,
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "item": lambda x: x.item(0),
    "iter": list,
    "reversed": lambda x: list(reversed(x)),
    "block_until_ready": lambda x: x.block_until_ready(),
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "copy": lambda x: x.copy(),
    "real": lambda x: x.real,
    "T": lambda x: x.T,
    "numpy function": lambda x: da.numpy.sin(x),
    "numpy function as jax does": lambda x: da.numpy.ravel(x),
    "numpy function of two": lambda x: da.numpy.dot(x, x),
    "numpy function with a name": lambda x: da.numpy.sum(a=x),
    "list of arrays": lambda x: da.numpy.stack([x, x]),
    "jit": lambda x: da.jit(lambda y: y + 1)(x),
    "asarray with a dtype": lambda x: da.asarray(x, dtype=jnp.int32),
    "wait": lambda x: da.block_until_ready({"a": x}),
    "unsafe_buffer_pointer": lambda x: x.unsafe_buffer_pointer(),
    "is_ready": lambda x: x.is_ready(),
    "repr": repr,
}


def jax_ends_the_process_at(use):
    """Tell whether JAX's own array, deleted and then used so, ends the process by a signal."""
    program = f"import jax.numpy as jnp; x = jnp.arange(3.0); x.delete(); x.{use}()"
    return subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE).returncode < 0


@pytest.mark.parametrize("use", USES)
def test_a_deleted_array_raises_jaxs_error_with_the_way_out_as_a_note(use):
    if use == "is_ready" and jax_ends_the_process_at(use):
        pytest.skip("JAX itself ends the process")
    theirs, ours = jnp.arange(3.0), da.asarray(jnp.arange(3.0))
    theirs.delete()
    ours.delete()
    jax_use = {
        "jit": lambda x: jax.jit(lambda y: y + 1)(x),
        "numpy function": jnp.sin,
        "numpy function as jax does": jnp.ravel,
        "numpy function of two": lambda x: jnp.dot(x, x),
        "numpy function with a name": lambda x: jnp.sum(a=x),
        "list of arrays": lambda x: jnp.stack([x, x]),
        "asarray with a dtype": lambda x: jnp.asarray(x, dtype=jnp.int32),
        "wait": lambda x: jax.block_until_ready({"a": x}),
    }.get(use, USES[use])
    wanted = attempt(jax_use, theirs)
    if not hasattr(wanted, "error"):
        assert not hasattr(attempt(USES[use], ours), "error")
        return
    with pytest.raises(type(wanted.error)) as error:
        USES[use](ours)
    assert_agree(type(wanted)(error.value), wanted)
    if "has been deleted" in str(error.value):
        assert "keep a copy" in notes_of(error)
        assert notes_of(error).count("keep a copy") == 1


def test_deleting_twice_is_no_error_and_properties_stay():
    theirs, ours = jnp.arange(3.0), da.asarray(jnp.arange(3.0))
    for array in (theirs, ours):
        array.delete()
        array.delete()
    assert ours.is_deleted()
    for attribute in ("shape", "dtype", "ndim", "size", "sharding", "nbytes", "weak_type"):
        assert_agree(
            attempt(getattr, ours, attribute),
            attempt(getattr, theirs, attribute),
        )


def test_deleting_an_array_deletes_the_one_it_was_made_of():
    theirs = jnp.arange(3.0)
    da.asarray(theirs).delete()
    assert theirs.is_deleted()


@pytest.mark.parametrize(
    ("use", "note"), [(len, r"x\.size"), (iter, r"x\.item\(\)"), (list, r"x\.item\(\)")]
)
def test_a_0d_array_has_no_length_and_no_elements_and_the_note_says_what_it_has(use, note):
    theirs, ours = pair("0-d")
    with pytest.raises(TypeError) as wanted:
        use(theirs)
    with pytest.raises(TypeError) as error:
        use(ours)
    assert normalise_names(str(error.value)) == normalise_names(str(wanted.value))
    assert re.search(note, notes_of(error))


def test_reversing_a_0d_array_is_jaxs_error():
    theirs, ours = pair("0-d")
    assert_agree(
        attempt(lambda: list(reversed(ours))),
        attempt(lambda: list(reversed(theirs))),
    )


def test_the_truth_of_several_elements_is_refused_with_a_note():
    theirs, ours = pair("1-d")
    with pytest.raises(ValueError, match="ambiguous") as wanted:
        bool(theirs)
    with pytest.raises(ValueError, match="ambiguous") as error:
        bool(ours)
    assert str(error.value) == str(wanted.value)
    assert "x.any()" in notes_of(error)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, y: x + y,
        lambda x, y: da.numpy.dot(x, y),
        lambda x, y: da.jit(lambda a, b: a + b)(x, y),
        lambda x, y: x.dot(y),
    ],
    ids=["operator", "function", "jit", "method"],
)
def test_arrays_on_different_devices_are_refused_with_a_note(use):
    x, y = (jax.device_put(jnp.arange(3.0), device) for device in jax.devices()[:2])
    with pytest.raises(ValueError, match="incompatible devices"):
        jnp.add(x, y)
    with pytest.raises(ValueError, match="incompatible devices") as error:
        use(da.asarray(x), da.asarray(y))
    assert "jax.device_put(x, y.sharding)" in notes_of(error)


def test_a_note_is_added_once_however_many_calls_the_error_passes():
    ours = da.asarray(jnp.arange(3.0))
    ours.delete()

    @da.jit
    def inner(x):
        return x + 1

    with pytest.raises(RuntimeError) as error:
        da.block_until_ready(inner(ours))
    assert notes_of(error).count("keep a copy") == 1


# What JAX makes of one.


def test_a_device_array_is_one_leaf_of_a_tree():
    _, ours = pair("1-d")
    assert jax.tree.leaves({"a": ours}) == [ours] or jax.tree.leaves({"a": ours})[0] is ours
    assert jax.tree.structure(ours) == jax.tree.structure(jnp.zeros(1))


@every_array
def test_jax_sees_the_same_type_in_a_trace(name):
    theirs, ours = pair(name)
    identity = jax.make_jaxpr(lambda x: x)
    assert str(identity(ours)) == str(identity(theirs))
    assert jax.typeof(ours) == jax.typeof(theirs)


@every_array
def test_jax_takes_one_as_an_argument_and_as_a_constant(name):
    theirs, ours = pair(name)
    assert_agree(jax.jit(lambda x: x)(ours), jax.jit(lambda x: x)(theirs))
    assert_agree(jax.jit(lambda: ours)(), jax.jit(lambda: theirs)())
    assert_agree(jax.device_put(ours), jax.device_put(theirs))
    assert_agree(jax.device_put(ours, jax.devices()[1]), jax.device_put(theirs, jax.devices()[1]))


def test_reverse_mode_adds_cotangents_that_are_device_arrays():
    theirs, ours = pair("1-d")

    def pull_back(x):
        return jax.vjp(lambda a, b: (a * b, a + b), x, x)[1]((x, x))

    assert_agree(pull_back(ours), pull_back(theirs))
