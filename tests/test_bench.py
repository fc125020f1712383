"""Benchmarks time in turns, and count from recordings; what they find can be stored and shown.

No test asserts a time that a machine took: the clock here is moved by the calls that are timed.
"""

import dataclasses
import importlib.machinery
import json
import math
import sys
import types
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import devicearray as da
from devicearray._bench import growth, interleaved, rows, side, suite, table
from devicearray._bench.interleaved import Comparison, Contender, Timing, compare, in_turns
from devicearray._bench.side import JAX, OURS, Pattern, compare_sides, on
from devicearray._bench.suite import Plan, Suite, counts_of, environment, paired, write
from devicearray._bench.suites import SUITES
from devicearray._iteration import STRATEGIES

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
RATIO = ("JAX", "ours", "ratio")
DIFFERENCE = ("without", "with", "difference")

#: Every suite as it is, on arrays that take no time.
SMALL = Plan(rounds=1, big=24, rows=16, columns=8, splits=3, longest=100, patience=1.0)


class Clock:
    """A clock that stands still until somebody moves it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def taking(self, *seconds):
        """Return a call that takes so long: each time the next of `seconds`, then the last."""
        left = list(seconds)

        def call():
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock():
    return Clock()


def contender(call, **options):
    return Contender(make=lambda: call, **options)


# In turns.


def test_a_sample_is_the_time_of_one_call(clock):
    timing = Timing(rounds=3, calls=4, clock=clock)
    one = compare("a", clock.taking(6.0), clock.taking(3.0), timing)
    assert one == Comparison(name="a", first=(6.0,) * 3, second=(3.0,) * 3)


def test_a_call_that_does_it_several_times_is_divided(clock):
    timing = Timing(rounds=1, calls=2, per=1000, clock=clock)
    assert in_turns([contender(clock.taking(5.0))], timing) == [(0.005,)]


def test_samples_are_rounded_to_a_tenth_of_a_nanosecond(clock):
    timing = Timing(rounds=1, calls=3, clock=clock)
    assert in_turns([contender(clock.taking(1e-6, 0.0))], timing) == [(0.0,)]
    timing = dataclasses.replace(timing, warm_up=False)
    assert in_turns([contender(clock.taking(1e-6, 0.0))], timing) == [(3.333e-07,)]


def test_which_goes_first_alternates():
    order = []
    contenders = [contender(lambda name=name: order.append(name)) for name in "abc"]
    in_turns(contenders, Timing(rounds=3, calls=1))
    assert "".join(order) == "abc" + "cba" + "abc" + "cba"


def test_warming_up_makes_a_batch_of_each_that_does_not_count(clock):
    timing = Timing(rounds=2, calls=2, clock=clock)
    slow_at_first = contender(clock.taking(100.0, 100.0, 1.0))
    assert in_turns([slow_at_first], timing) == [(1.0, 1.0)]


def test_without_warming_up_all_batches_count(clock):
    timing = Timing(rounds=2, calls=1, warm_up=False, clock=clock)
    assert in_turns([contender(clock.taking(9.0, 1.0))], timing) == [(9.0, 1.0)]


@pytest.mark.parametrize(
    ("rounds", "fewest", "seconds", "made"),
    [
        (50, 5, 60.0, 10),  # a round takes 6 seconds
        (50, 5, 59.9, 10),
        (50, 5, 60.1, 11),
        (50, 12, 60.0, 12),
        (3, 5, 0.0, 3),
        (50, 5, 0.0, 5),
        (50, 1, 1.0, 1),
        (7, 5, math.inf, 7),
    ],
)
def test_no_round_begins_after_the_time_is_up_but_for_the_fewest(
    clock, rounds, fewest, seconds, made
):
    contenders = [contender(clock.taking(4.0)), contender(clock.taking(2.0))]
    timing = Timing(rounds=rounds, fewest=fewest, seconds=seconds, calls=1, clock=clock)
    assert [len(samples) for samples in in_turns(contenders, timing)] == [made] * 2


def test_what_comes_before_a_batch_is_not_timed(clock):
    happened = []

    def happen(name, seconds):
        happened.append(name)
        clock.now += seconds

    @contextmanager
    def within():
        happen("enter", 20.0)
        yield
        happen("leave", 30.0)

    def make():
        happen("make", 10.0)
        return lambda: happen("call", 1.0)

    timing = Timing(
        rounds=1, calls=2, before=lambda: happen("before", 5.0), warm_up=False, clock=clock
    )
    assert in_turns([Contender(make=make, within=within)], timing) == [(1.0,)]
    assert happened == ["before", "make", "enter", "call", "call", "leave"]


def test_only_the_second_of_a_comparison_is_within_the_context(clock):
    entered = []

    @contextmanager
    def within():
        entered.append(True)
        yield
        entered.append(False)

    first, second = [], []
    timing = Timing(rounds=2, calls=1)
    compare(
        "a", lambda: first.append(entered[-1:]), lambda: second.append(entered[-1:]), timing,
        within=within,
    )  # fmt: skip
    assert [True] not in first
    assert second == [[True]] * 3


@pytest.mark.parametrize("until_ready", [True, False])
def test_a_batch_may_last_until_the_last_result_is_ready(clock, until_ready):
    class Result:
        def block_until_ready(self):
            clock.now += 7.0

    def call():
        clock.now += 1.0
        return Result()

    timing = Timing(rounds=1, calls=3, until_ready=until_ready, clock=clock)
    [[sample]] = in_turns([contender(call)], timing)
    assert sample == pytest.approx((3.0 + 7.0 * until_ready) / 3)


def test_letting_go_of_the_results_is_timed(clock):
    class Result:
        def __del__(self):
            clock.now += 2.0

    [[sample]] = in_turns([contender(Result)], Timing(rounds=1, calls=4, clock=clock))
    assert sample == 2.0


def test_a_batch_begins_when_earlier_work_is_over():
    gates, pending, ready = [], [], []

    def call():
        ready.extend(x.is_ready() for x in pending)
        # In flight until somebody waits.
        gates.append(da.Gate())
        pending.append(gates[-1](jnp.ones(3)))

    with da.record(on_wait=lambda: [gate.open() for gate in gates]):
        in_turns([contender(call)], Timing(rounds=3, calls=1))
    assert ready == [True] * (1 + 2 + 3)


# A comparison.


def test_the_result_is_the_median_of_neighbours_with_quartiles():
    one = Comparison(name="a", first=(8.0, 6.0, 7.0), second=(4.0, 2.0, 7.0))
    assert one.ratios.tolist() == [2.0, 3.0, 1.0]
    assert one.differences.tolist() == [-4.0, -4.0, 0.0]
    stored = one.to_json()
    assert stored["ratio"] == [1.5, 2.0, 2.5]
    assert stored["difference"] == [-4.0, -4.0, -2.0]


@pytest.mark.parametrize("measured", [{}, {"first": (1.0,)}, {"second": (1.0,)}])
def test_of_what_was_not_measured_there_is_no_ratio(measured):
    stored = Comparison(name="a", **measured).to_json()
    assert (stored["ratio"], stored["difference"]) == ([], [])


def test_a_comparison_survives_json():
    one = Comparison(
        name="a",
        first=(1e-6, 2e-6),
        second=(3e-6, 4e-6),
        beside={"NumPy": (5e-6,)},
        counts={"dispatches": (200, 0), "host syncs": (None, 1)},
        labels={"strategy": "chunked", "n": 1000, "cold": False},
    )
    stored = json.loads(json.dumps(one.to_json()))
    names = [field.name for field in dataclasses.fields(Comparison)]
    assert {name: stored[name] for name in names} == {
        "name": "a",
        "first": [1e-6, 2e-6],
        "second": [3e-6, 4e-6],
        "beside": {"NumPy": [5e-6]},
        "counts": {"dispatches": [200, 0], "host syncs": [None, 1]},
        "labels": {"strategy": "chunked", "n": 1000, "cold": False},
    }


# The table.


def test_a_line_shows_medians_ratio_and_quartiles():
    stored = Comparison(name="a", first=(8e-6, 6e-6, 7e-6), second=(4e-6, 5e-6, 5e-6)).to_json()
    assert table.cells(stored, RATIO) == ("7.00", "5.00", "1.40", "1.30 to 1.70")
    assert table.titles(RATIO) == ("JAX, us", "ours, us", "JAX / ours", "quartiles")


def test_a_difference_is_shown_in_microseconds():
    stored = Comparison(name="a", first=(1e-6, 2e-6), second=(3e-6, 4e-6)).to_json()
    assert table.cells(stored, DIFFERENCE) == ("1.50", "3.50", "2.00", "2.00 to 2.00")
    assert table.titles(DIFFERENCE) == ("without, us", "with, us", "added", "quartiles")


def test_large_numbers_have_no_fraction():
    stored = Comparison(name="a", first=(0.0412345,), second=(0.0000123,)).to_json()
    assert table.cells(stored, RATIO) == ("41,234", "12.30", "3,352", "3,352 to 3,352")


def test_what_was_not_measured_is_shown_as_that():
    stored = Comparison(name="a", second=(1e-6,)).to_json()
    assert table.cells(stored, RATIO) == ("-", "1.00", "-", "-")
    assert table.more_cells(stored, ["NumPy"], ["dispatches"]) == ("-", "-")


def test_others_and_counts_have_columns():
    one = Comparison(
        name="a", beside={"NumPy": (2e-6, 3e-6)}, counts={"dispatches": (9, 0), "waits": (None, 1)}
    )
    asked = ["NumPy"], ["waits", "dispatches"]
    assert table.more_titles(*asked) == ("NumPy, us", "waits", "dispatches")
    assert table.more_cells(one.to_json(), *asked) == ("2.50", "unknown, 1", "9, 0")


def test_lines_are_aligned():
    titles = ("JAX, us", "quartiles", "a title that is a long one")
    lines = [
        table.line("", titles, titles),
        table.line("x + x", ("1.00", "1.00 to 1.00", "0, 0"), titles),
        table.line("for v in big: f(v)", ("123,456", "100.00 to 123,456", "-"), titles),
    ]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("name", [n for n in SUITES if (RESULTS / f"{n}.json").exists()])
def test_what_was_stored_can_be_shown(name):
    results = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    for stored in results["comparisons"]:
        assert all(table.cells(stored, results["columns"]))


# Counts.


def test_counts_are_those_of_a_recording():
    x = jnp.arange(250.0)
    fresh = da.jit(lambda v: (v + 1, v * 2))
    assert counts_of(lambda: fresh(x)) == {
        "dispatches": 1, "compiles": 1, "outputs": 2, "host syncs": 0, "transfers": 0,
    }  # fmt: skip
    assert counts_of(lambda: float(fresh(x)[0][3])) == {
        "dispatches": 1, "compiles": 0, "outputs": 0, "host syncs": 1, "transfers": 0,
    }  # fmt: skip
    assert counts_of(lambda: jax.device_put(np.ones(3)))["transfers"] == 1


def test_what_this_jax_cannot_tell_is_no_number(monkeypatch):
    monkeypatch.setattr(da.Log, "_refuse_lost", _refuse)
    counts = counts_of(lambda: jnp.ones(3) + 1)
    assert (counts["dispatches"], counts["host syncs"]) == (None, None)


def _refuse(_log, facts):
    raise RuntimeError(f"not recorded: {facts}")


def test_counts_are_paired_by_name():
    assert paired({"dispatches": 200, "waits": None}, {"dispatches": 0, "waits": 1}) == {
        "dispatches": (200, 0),
        "waits": (None, 1),
    }


def test_both_sides_do_the_same_on_arrays_of_their_own():
    seen = []
    pattern = Pattern(
        name="a",
        make=on(seen.append, np.arange(3.0)),
        timing={"calls": 1},
        others={"NumPy": side.OTHERS["NumPy"]},
    )
    one = compare_sides(pattern, Plan(rounds=2))
    kinds = [type(x) for x in seen]
    # To warm up, in two rounds, and in the recording.
    assert kinds.count(da.DeviceArray) == 4
    assert kinds.count(type(jnp.ones(3))) == 4
    assert kinds.count(np.ndarray) == 3
    assert len({id(x) for x in seen if not isinstance(x, np.ndarray)}) == 8
    assert [len(one.first), len(one.second), len(one.beside["NumPy"])] == [2, 2, 2]
    assert one.counts["dispatches"] == (0, 0)


# The suites.


@pytest.fixture(scope="module")
def measured():
    """Return what measures a suite, once."""
    known = {}

    def measured(name):
        if name not in known:
            known[name] = {one.name: one for one in SUITES[name].run(SMALL)}
        return known[name]

    return measured


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_runs_and_gives_what_its_columns_say(measured, name, tmp_path):
    one, comparisons = SUITES[name], measured(name)
    assert (one.name, len({*comparisons})) == (name, len(comparisons))
    assert comparisons
    path = write(one, comparisons.values(), tmp_path)
    assert path == tmp_path / f"{name}.json"
    stored = json.loads(path.read_text("utf-8"))
    assert stored["title"] == one.title
    assert stored["columns"] == list(one.columns)
    assert stored["environment"] == environment()
    for line in stored["comparisons"]:
        # All have one sample of each, but for what is counted and not timed.
        assert len(line["first"]) == len(line["second"]) == ("pending" not in line["name"])
        assert table.cells(line, stored["columns"])
        assert all(samples for samples in line["beside"].values())
        assert set(one.counts) <= set(line["counts"])
    for beside in stored["beside"]:
        assert any(beside in line["beside"] for line in stored["comparisons"])


def test_the_environment_names_what_a_result_depends_on():
    assert {"date", "machine", "device", "devices", "python", "jax", "jaxlib", "numpy"} <= set(
        environment()
    )


def test_taking_rows_dispatches_nothing_and_waits_for_nothing(measured):
    taking = ("list(", "next(", "a, b, c", "big[i]")
    found = {n: one.counts for n, one in measured("rows").items() if n.startswith(taking)}
    assert len(found) == 10
    for name, counts in found.items():
        assert (counts["dispatches"][1], counts["waits"][1]) == (0, 0), name


def test_jax_waits_to_list_an_array_that_is_pending_and_a_device_array_does_not(measured):
    [counts] = [one.counts for n, one in measured("rows").items() if "pending" in n]
    assert counts["waits"] == (1, 0)
    assert counts["host syncs"] == (0, 0)  # JAX waits inside a dispatch.


def test_the_host_reads_the_rows_of_a_device_array_once(measured):
    assert measured("rows")["[float(v) for v in big]"].counts["waits"] == (SMALL.big, 1)


def test_an_array_on_eight_devices_goes_through_the_host_in_jax_only(measured):
    counts = measured("rows_devices")["list(big), split on axis 0"].counts
    assert counts["host syncs"] == (1, 0)
    assert counts["transfers"][1] == 0


def test_uncompiled_rows_are_counted_with_their_compiles(measured):
    counts = measured("rows_cold")["list(big)"].counts
    assert counts["compiles"][0] > 0
    assert counts["compiles"][1] == 0
    assert counts["outputs"][0] == SMALL.big


#: Dispatches of a list of all rows, and compiles and outputs of the largest.
COSTS = {
    "per_row": (SMALL.big, 1, 2),
    "host": (0, 0, 0),
    "device_put": (0, 0, 0),
    "chunked": (2, 2, SMALL.big),
    "fused_chunks": (1, 1, SMALL.big + 1),
    "rows": (0, 0, 0),
}


@pytest.mark.parametrize("strategy", COSTS)
def test_a_strategy_is_counted_cold_and_warm(measured, strategy):
    dispatches, compiles, outputs = COSTS[strategy]
    lines = measured("strategies")
    cold = lines[f"list(big), cold: {strategy}"].counts
    warm = lines[f"list(big), warm: {strategy}"].counts
    assert [cold[fact][1] for fact in ("dispatches", "compiles", "outputs")] == [
        dispatches, compiles, outputs,
    ]  # fmt: skip
    assert [warm[fact][1] for fact in ("dispatches", "compiles")] == [dispatches, 0]
    through_numpy = strategy in ("host", "device_put")
    assert warm["host syncs"][1] == cold["host syncs"][1] == through_numpy


def test_each_strategy_is_measured_in_each_way(measured):
    labels = [one.labels for one in measured("strategies").values()]
    found = {(one["pattern"], one["cold"], one["strategy"]) for one in labels}
    assert len(found) == len(labels) == (4 + 4 + 1) * len(STRATEGIES)


def test_the_base_is_compared_with_itself(measured):
    for suite_name in ("strategies", "growth"):
        for name, one in measured(suite_name).items():
            if one.labels["strategy"] == "jax":
                assert one.first == one.second, name


def test_an_array_grows_in_powers_of_ten(measured):
    found = {
        (one.labels["pattern"], one.labels["n"], one.labels["strategy"])
        for one in measured("growth").values()
    }
    assert {n for _, n, _ in found} == {10, 100}
    assert len(found) == 2 * 2 * len(STRATEGIES)


def test_what_would_take_too_long_is_cut_off_and_says_so():
    plan = dataclasses.replace(SMALL, limit=0.0)
    lines = [one for one in growth.SUITE.run(plan) if one.labels["n"] == 100]
    assert all(one.name.endswith("(cut off)") for one in lines)
    assert all((one.first, one.second) == ((), ()) for one in lines)


def test_pytorch_is_timed_beside_where_it_is_installed(monkeypatch):
    torch = types.ModuleType("torch")
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    torch.from_numpy = lambda host: ("a tensor of", host)
    monkeypatch.setitem(sys.modules, "torch", torch)
    others = side._others()
    assert list(others) == ["NumPy", "PyTorch"]
    assert others["PyTorch"].array(1) == ("a tensor of", 1)


def test_where_there_is_no_gate_the_line_says_so(monkeypatch):
    monkeypatch.setattr(rows.jax, "default_backend", lambda: "gpu")
    one = rows._pending(SMALL)
    assert one.name.endswith("no Gate on this device")
    assert one.counts == {}


def test_the_sides_have_what_the_patterns_use():
    for one in (JAX, OURS):
        assert one.numpy.stack
        assert one.random.split
        assert float(one.f(one.array(np.float32(1.0)))) == 2.0


def test_a_plan_changes_what_it_is_told_to():
    timing = Plan(rounds=7, seconds=3.0).timing(calls=1, rounds=2)
    assert (timing.rounds, timing.seconds, timing.calls) == (2, 3.0, 1)


def test_a_suite_of_anybodys_is_written_like_ours(tmp_path):
    mine = Suite(name="mine", title="Mine", columns=RATIO, run=lambda _plan: iter(()))
    stored = json.loads(write(mine, [], tmp_path).read_text("utf-8"))
    assert stored["comparisons"] == []
    assert interleaved.Timing().rounds == suite.Plan().rounds == 401
