"""What all tests share: eight devices, and the environment as it was without them.

XLA reads its flags once, when the first backend starts, so they are set here, before any test
imports JAX. ``jax.config.update("jax_num_cpu_devices", 8)`` was refused: it would fail in whatever
imports JAX and uses it earlier, a plugin for example, and would not reach the processes that tests
start.
"""

import os

import pytest

_ENVIRONMENT = dict(os.environ)
_DEVICES = "--xla_force_host_platform_device_count=8"
# A worker of pytest-xdist inherits the flag.
_FLAGS = dict.fromkeys([*os.environ.get("XLA_FLAGS", "").split(), _DEVICES])
os.environ["XLA_FLAGS"] = " ".join(_FLAGS)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker of pytest-xdist what the environment was before this process changed it."""
    node.workerinput["environment"] = _ENVIRONMENT


@pytest.fixture(scope="session")
def reader_environment(request) -> dict[str, str]:
    """Return the environment that a reader has, for processes that stand for one."""
    return dict(getattr(request.config, "workerinput", {}).get("environment", _ENVIRONMENT))
