"""Times and sizes have three digits and the unit in which they are easiest to read."""

import pytest

from devicearray._units import bytes_text, counted, seconds_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (4e-10, "0.4 ns"),
        (1e-9, "1 ns"),
        (2.5e-7, "250 ns"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1 us"),
        (1.5e-6, "1.5 us"),
        (0.00123456, "1.23 ms"),
        (0.99949, "999 ms"),
        (0.9996, "1 s"),
        (75.04, "75 s"),
        (1234.0, "1230 s"),
        (86400.0, "86400 s"),
    ],
)
def test_a_time_is_between_1_and_1000_of_its_unit(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (4096, "4.1 kB"),
        (999_499, "999 kB"),
        (999_600, "1 MB"),
        (2_500_000, "2.5 MB"),
        (8 * 10**9, "8 GB"),
        (3 * 10**12, "3 TB"),
    ],
)
def test_a_size_is_between_1_and_1000_of_its_unit(nbytes, text):
    assert bytes_text(nbytes) == text


def test_one_is_singular_and_all_other_numbers_are_plural():
    assert [counted(n, "transfer") for n in (0, 1, 2)] == [
        "0 transfers",
        "1 transfer",
        "2 transfers",
    ]
    assert counted(1, "dispatch", "dispatches") == "1 dispatch"
    assert counted(12345, "dispatch", "dispatches") == "12,345 dispatches"
