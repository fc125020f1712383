"""Write the inventories with which Sphinx links to other projects' documentation without a network.

Sphinx reads where a name is documented from an inventory, which it usually downloads on every
build. The whole inventories are megabytes, change daily, and make a build depend on three servers.
These hold the names that this site uses. To refer to another name, add it below and run::

    python sphinxext/inventories/make.py

The page of a name follows a rule in each project (one page for each function in NumPy's and JAX's,
one for each module in Python's); what departs from the rule gives its own address.
"""

from __future__ import annotations

from pathlib import Path

from sphobjinv import DataObjStr, Inventory, compress

HERE = Path(__file__).parent

# project -> the rule -> role -> names. In an address, ``$`` stands for the name.
NAMES: dict[str, dict[str, dict[str, str]]] = {
    "python": {
        "library/asyncio-task.html#$": {"function": "asyncio.sleep"},
        "library/collections.html#$": {"class": "collections.deque"},
        "library/collections.abc.html#$": {
            "class": "collections.abc.Callable collections.abc.Iterable collections.abc.Iterator "
            "collections.abc.Sequence",
        },
        "library/constants.html#$": {"data": "None True False"},
        "library/contextlib.html#$": {"function": "contextlib.contextmanager"},
        "library/exceptions.html#$": {
            "exception": "AttributeError DeprecationWarning ImportError IndexError KeyError "
            "NotImplementedError RuntimeError TypeError ValueError",
        },
        "library/functions.html#$": {
            "class": "bool float int object",
            "function": "hash id isinstance iter len next print repr reversed sum zip",
        },
        "library/gc.html#$": {"function": "gc.collect"},
        "library/pickle.html#module-$": {"module": "pickle"},
        "library/stdtypes.html#$": {"class": "bytes dict list memoryview range str tuple"},
        "library/threading.html#$": {
            "class": "threading.Event threading.Lock threading.Thread",
            "data": "threading.TIMEOUT_MAX",
        },
        "library/time.html#$": {"function": "time.perf_counter time.sleep"},
        "library/timeit.html#module-$": {"module": "timeit"},
        "library/warnings.html#$": {"function": "warnings.warn"},
    },
    "numpy": {
        "reference/generated/$.html#$": {
            "class": "numpy.ndarray numpy.dtype numpy.generic",
            "function": "numpy.array numpy.asarray numpy.allclose numpy.unstack",
            "method": "numpy.ndarray.tolist numpy.ndarray.item",
        },
        "reference/index.html#module-$": {"module": "numpy"},
    },
    "jax": {
        "_autosummary/$.html#$": {
            "class": "jax.Array jax.ShapeDtypeStruct",
            "function": "jax.block_until_ready jax.clear_caches jax.default_device jax.device_get "
            "jax.device_put jax.devices jax.disable_jit jax.eval_shape jax.ffi.ffi_call "
            "jax.ffi.register_ffi_target jax.grad jax.jit jax.lax.dynamic_slice jax.lax.fori_loop "
            "jax.lax.scan jax.live_arrays jax.make_array_from_single_device_arrays "
            "jax.numpy.arange jax.numpy.array jax.numpy.asarray jax.numpy.dot jax.numpy.stack "
            "jax.numpy.unstack jax.profiler.trace jax.pure_callback jax.random.key "
            "jax.random.normal jax.random.split jax.random.uniform jax.transfer_guard "
            "jax.value_and_grad jax.vjp jax.vmap",
            "method": "jax.Array.block_until_ready jax.Array.copy_to_host_async",
            "property": "jax.Array.at jax.Array.committed",
        },
        # These have no page of their own.
        "_autosummary/jax.Array.html#jax.Array": {
            "method": "jax.Array.delete jax.Array.is_deleted jax.Array.is_ready jax.Array.item "
            "jax.Array.tolist",
            "property": "jax.Array.sharding",
        },
        "jax.sharding.html#$": {
            "class": "jax.sharding.Mesh jax.sharding.NamedSharding jax.sharding.PartitionSpec "
            "jax.sharding.Sharding jax.sharding.SingleDeviceSharding",
        },
        "$.html#module-$": {
            "module": "jax jax.ffi jax.lax jax.numpy jax.profiler jax.random jax.sharding",
        },
    },
}

# Whole pages, for the `doc` role: the page, and its title.
PAGES: dict[str, dict[str, str]] = {
    "python": {},
    "numpy": {},
    "jax": {
        "async_dispatch": "Asynchronous dispatch",
        "benchmarking": "Benchmarking JAX code",
        "aot": "Ahead-of-time lowering and compilation",
        "buffer_donation": "Buffer donation",
    },
}


def inventory(project: str) -> Inventory:
    """Return a project's inventory."""
    result = Inventory()
    result.project, result.version = project, ""
    for uri, roles in NAMES[project].items():
        for role, names in roles.items():
            for name in sorted(names.split()):
                result.objects.append(
                    DataObjStr(
                        name=name,
                        domain="py",
                        role=role,
                        priority="1",
                        uri=uri.replace("$", name),
                        dispname="-",
                    )
                )
    for page, title in PAGES[project].items():
        result.objects.append(
            DataObjStr(
                name=page,
                domain="std",
                role="doc",
                priority="-1",
                uri=f"{page}.html",
                dispname=title,
            )
        )
    return result


def main() -> None:
    """Write the inventories next to this file."""
    for project in NAMES:
        data = compress(inventory(project).data_file(contract=True))
        HERE.joinpath(f"{project}.inv").write_bytes(data)


if __name__ == "__main__":
    main()
