"""A log prints as a table: lines that waited, the worst first, and what else the program did."""

import pytest

import devicearray as da

LOSS = da.Site("/a/fit.py", 7, "fit", "float(x)")
SHOW = da.Site("/a/fit.py", 9, "fit", "print(x)")
MODEL = da.Site("/a/model.py", 120, "<module>", "")


def sync(seconds, site=LOSS, trigger="float", ready=False, nbytes=4):
    return da.HostSync(
        start=1.0,
        end=1.0 + seconds,
        thread=1,
        site=site,
        trigger=trigger,
        was_ready=ready,
        nbytes=nbytes,
        copied=False,
    )


def compile_(seconds, name="step", site=LOSS, outputs=1, hit=False):
    return da.Compile(
        start=1.0,
        end=1.0 + seconds,
        thread=1,
        site=site,
        name=name,
        outputs=outputs,
        persistent_cache_hit=hit,
    )


def dispatch(name="step", site=LOSS, arguments=0, nbytes=0):
    return da.Dispatch(
        start=None,
        end=1.0,
        thread=1,
        site=site,
        name=name,
        host_arguments=arguments,
        host_bytes=nbytes,
    )


def transfer(nbytes, arrays=1, site=LOSS, direction="host to device", trigger="device_put"):
    return da.Transfer(
        start=1.0,
        end=1.1,
        thread=1,
        site=site,
        direction=direction,
        trigger=trigger,
        arrays=arrays,
        nbytes=nbytes,
    )


def table(*events, **facts):
    return str(da.Log(**({"began": 0.0, "seconds": 2.0, "events": events} | facts)))


def part(*events):
    """Return the lines after the heading."""
    heading, empty, *lines = table(*events).splitlines()
    assert heading.endswith("in 2 s")
    assert empty == ""
    return lines


def test_the_whole_table():
    log = da.Log(
        began=0.0,
        seconds=2.0,
        events=[
            compile_(0.5),
            dispatch(),
            dispatch(arguments=1, nbytes=4096),
            transfer(64, arrays=8),
            sync(0.25),
        ],
        not_recorded={"device times": "some.name"},
    )
    assert str(log) == (
        "1 host sync (250 ms), 1 compile (500 ms), 2 dispatches, 1 transfer, in 2 s\n"
        "\n"
        "Host syncs, the longest wait first\n"
        "  waited  times  not ready  read  by     line\n"
        "  250 ms      1          1   4 B  float  /a/fit.py:7 in fit: float(x)\n"
        "\n"
        "Compiles\n"
        "    took  outputs  program  line\n"
        "  500 ms        1  step     /a/fit.py:7 in fit: float(x)\n"
        "\n"
        "Dispatches\n"
        "  times  host arguments   moved  program  line\n"
        "      2               1  4.1 kB  step     /a/fit.py:7 in fit: float(x)\n"
        "\n"
        "Transfers\n"
        "  moved  arrays  direction       by          line\n"
        "   64 B       8  host to device  device_put  /a/fit.py:7 in fit: float(x)\n"
        "\n"
        "Not recorded: device times (no some.name)"
    )


def test_a_log_without_events_is_its_heading():
    assert table() == "0 host syncs, 0 compiles, 0 dispatches, 0 transfers, in 2 s"


def test_a_recording_that_goes_on_is_so_far():
    assert table(seconds=None).endswith(", 0 transfers, so far")


def test_the_line_that_waited_longest_comes_first():
    # Five short waits on one line are longer than the longest one on another.
    events = [sync(0.002, SHOW, "print"), *[sync(0.001)] * 5, sync(0.003, MODEL)]
    assert part(*events) == [
        "Host syncs, the longest wait first",
        "  waited  times  not ready  read  by     line",
        "    5 ms      5          5  20 B  float  /a/fit.py:7 in fit: float(x)",
        "    3 ms      1          1   4 B  float  /a/model.py:120 in <module>",
        "    2 ms      1          1   4 B  print  /a/fit.py:9 in fit: print(x)",
    ]


def test_one_line_that_waits_in_two_ways_is_two_rows():
    rows = part(sync(0.001), sync(0.002, trigger="print"), sync(0.004))[2:]
    assert [row.split()[:2] + row.split()[6:7] for row in rows] == [
        ["5", "ms", "float"],
        ["2", "ms", "print"],
    ]


@pytest.mark.parametrize(
    ("ready", "text"),
    [
        ([True, True], "0"),
        ([True, False, False], "2"),
        ([False, None, None], "1 (+2?)"),
        ([True, None], "0 (+1?)"),
        ([None, None], "not recorded"),
    ],
)
def test_what_could_not_be_told_ready_is_no_zero(ready, text):
    row = part(*[sync(0.001, ready=one, nbytes=0) for one in ready])[2]
    assert row.split("ms", 1)[1].split("0 B")[0].split(maxsplit=1)[1].strip() == text


def test_a_host_sync_without_a_line_says_so():
    row = part(sync(1e-6, None, "effects_barrier", None, 0))[2]
    assert row == "    1 us      1  not recorded   0 B  effects_barrier  (no line of yours)"


def test_compiles_are_listed_one_by_one_and_the_cache_is_named():
    events = [compile_(0.5), compile_(0.75, "add", MODEL, 3, True), compile_(0.5, outputs=None)]
    assert part(*events) == [
        "Compiles",
        "                    took       outputs  program  line",
        "  750 ms, from the cache             3  add      /a/model.py:120 in <module>",
        "                  500 ms             1  step     /a/fit.py:7 in fit: float(x)",
        "                  500 ms  not recorded  step     /a/fit.py:7 in fit: float(x)",
    ]


def test_dispatches_are_summed_by_program_and_the_lines_are_counted():
    events = [
        dispatch("add", MODEL, 2, 8),
        *[dispatch()] * 3,
        dispatch(site=SHOW),
        dispatch(site=None),
        dispatch("add", SHOW, 1, 4000),
    ]
    assert part(*events) == [
        "Dispatches",
        "  times  host arguments    moved  program  line",
        "      5               0      0 B  step     /a/fit.py:7 in fit: float(x) and 2 other lines",
        "      2               3  4.01 kB  add      /a/model.py:120 in <module> and 1 other line",
    ]


def test_transfers_are_summed_by_direction_line_and_call():
    events = [
        transfer(64, 8),
        transfer(64, 8),
        transfer(4096, 1, MODEL, "device to device"),
        transfer(100, 1, None, trigger="asarray"),
    ]
    assert part(*events) == [
        "Transfers",
        "   moved  arrays  direction         by          line",
        "  4.1 kB       1  device to device  device_put  /a/model.py:120 in <module>",
        "   128 B      16  host to device    device_put  /a/fit.py:7 in fit: float(x)",
        "   100 B       1  host to device    asarray     (no line of yours)",
    ]


def test_large_numbers_have_separators():
    rows = part(*[dispatch(arguments=2)] * 1234)
    assert rows[2].split()[:2] == ["1,234", "2,468"]
    assert table(*[dispatch()] * 1234).startswith("0 host syncs, 0 compiles, 1,234 dispatches, ")


@pytest.mark.parametrize("length", [59, 60, 61, 200])
def test_a_long_line_of_source_is_cut(length):
    source = "".join(chr(ord("a") + i % 26) for i in range(length))
    row = part(sync(0.001, da.Site("a.py", 1, "f", source)))[2]
    shown = row.partition(" in f: ")[2]
    assert len(shown) == min(length, 60)
    if length <= 60:
        assert shown == source
    else:
        assert shown == source[:57] + "..."


@pytest.mark.parametrize(
    ("lines", "more"), [(20, None), (21, "1 more line"), (32, "12 more lines")]
)
def test_a_long_table_is_cut_after_the_worst_lines(lines, more):
    events = [sync(1e-3 * (i + 1), da.Site("a.py", i, "f", "x")) for i in range(lines)]
    rows = part(*events)[2:]
    assert [int(row.partition("a.py:")[2].split()[0]) for row in rows[:20]] == [
        *range(lines - 1, lines - 21, -1)
    ]
    assert rows[20:] == ([] if more is None else [f"  ... and {more}"])


def test_the_columns_are_as_wide_as_what_is_shown():
    # The last row, with the long trigger, is not shown.
    events = [sync(1.0, da.Site("a.py", i, "f", "x")) for i in range(20)]
    longest = "a_trigger_of_considerable_length"
    rows = part(*events, sync(0.001, MODEL, longest))
    assert rows[1] == "  waited  times  not ready  read  by     line"
    assert not any(longest in row for row in rows)
    assert all(row == row.rstrip() for row in rows)


def test_a_site_in_the_working_directory_is_short(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    here = da.Site(str(tmp_path / "pkg" / "train.py"), 3, "f", "x")
    assert part(sync(1.0, here))[2].endswith("float  pkg/train.py:3 in f: x")


@pytest.mark.parametrize(
    ("fact", "events", "heading"),
    [
        (
            "dispatches on JAX's fast path",
            [dispatch()],
            "0 host syncs, 0 compiles, at least 1 dispatch, 0 transfers, in 2 s",
        ),
        (
            "dispatches that enter Python",
            [],
            "0 host syncs, 0 compiles, dispatches not recorded, 0 transfers, in 2 s",
        ),
        (
            "host syncs by DLPack",
            [sync(0.5), sync(0.25)],
            "at least 2 host syncs (750 ms), 0 compiles, 0 dispatches, 0 transfers, in 2 s",
        ),
        (
            "transfers between devices",
            [],
            "0 host syncs, 0 compiles, 0 dispatches, transfers not recorded, in 2 s",
        ),
        (
            "device times",
            [],
            "0 host syncs, 0 compiles, 0 dispatches, 0 transfers, in 2 s",
        ),
    ],
)
def test_a_number_that_may_be_too_small_is_no_number(fact, events, heading):
    lines = table(*events, not_recorded={fact: "some.name"}).splitlines()
    assert lines[0] == heading
    assert lines[-1] == f"Not recorded: {fact} (no some.name)"
