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
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_DEVICES}".strip()


@pytest.fixture(scope="session")
def reader_environment() -> dict[str, str]:
    """Return the environment that a reader has, for processes that stand for one."""
    return dict(_ENVIRONMENT)
