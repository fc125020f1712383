"""The tests have eight devices; the processes that stand for a reader have what he has."""

import jax


def test_there_are_eight_devices():
    assert len(jax.devices("cpu")) == 8


def test_a_reader_has_nothing_that_the_tests_set_up(reader_environment):
    ours = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER")
    assert not [name for name in ours if name in reader_environment]
    assert "device_count=8" not in reader_environment.get("XLA_FLAGS", "")
