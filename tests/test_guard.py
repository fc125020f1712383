"""The guard: modes, what it admits, whose thread it guards, and what it leaves behind.

That it refuses every way to wait, before the wait, is in ``test_record_waits.py``.
"""

import asyncio
import contextlib
import io
import logging
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure

import devicearray as da
from devicearray import _jax
from tests import test_record_programs
from tests.test_record_programs import BATCH, HIDDEN, new_state, update

X = jnp.float32(2.0)


@pytest.fixture(autouse=True)
def _leaves_nothing():
    before = {name: hook.get() for name, hook in _jax.HOOKS.items()}
    yield
    assert {name: hook.get() for name, hook in _jax.HOOKS.items()} == before


def refused(wait=lambda: float(X)):
    try:
        wait()
    except da.HostSyncError:
        return True
    return False


def test_a_value_that_is_ready_is_refused_as_well():
    assert X.is_ready()
    with da.sync_guard("error"):
        assert refused()
    assert not refused()


def test_dispatches_are_let_pass_and_a_refused_wait_is_not_recorded():
    with da.record() as log, da.sync_guard("error"):
        y = X + 1
        assert refused(lambda: float(y))
    assert [one.name for one in log.dispatches] == ["add"]
    assert log.syncs == ()


def test_the_message_names_the_line_the_value_and_the_way_out():
    with da.sync_guard("error"), pytest.raises(da.HostSyncError) as caught:
        float(X)  # the line
    message = str(caught.value)
    site = caught.value.site
    assert (site.file, site.function) == (
        __file__,
        "test_the_message_names_the_line_the_value_and_the_way_out",
    )
    assert site.source == "float(X)  # the line"
    for part in ("float waits for", "float32[]", f":{site.line} in", "allow=('float',)", "loop"):
        assert part in message


def test_several_arrays_are_counted():
    with da.sync_guard("error"), pytest.raises(da.HostSyncError, match="2 device values"):
        jax.block_until_ready((X, X + 1))


def test_an_error_can_be_sent_to_another_process():
    with da.sync_guard("error"), pytest.raises(da.HostSyncError) as caught:
        float(X)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.trigger, again.site) == (
        str(caught.value),
        caught.value.trigger,
        caught.value.site,
    )


def test_warn_warns_at_the_line_and_goes_on():
    with da.sync_guard("warn"), pytest.warns(da.HostSyncWarning, match="float waits") as caught:
        assert float(X) == 2.0
    [warning] = caught
    assert warning.filename == __file__
    with open(__file__, encoding="utf-8") as file:
        assert "assert float(X) == 2.0" in file.read().splitlines()[warning.lineno - 1]


def test_a_warning_that_is_an_error_is_raised_before_the_wait():
    gate = da.Gate()
    held = gate(X)
    with da.sync_guard("warn"), pytest.raises(da.HostSyncWarning, match="float waits"):
        float(held)
    assert not gate.is_open
    gate.open()


def test_warn_shows_a_line_once_as_pythons_warnings_do():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        with da.sync_guard("warn"):
            for _ in range(3):
                float(X)
            float(X)
    assert len(caught) == 2


def test_log_writes_a_warning_to_the_logger_and_goes_on(caplog):
    with da.sync_guard("log"), caplog.at_level(logging.WARNING, "devicearray"):
        assert float(X) == 2.0
    [record] = caplog.records
    assert (record.name, record.levelname) == ("devicearray", "WARNING")
    assert "float waits for a device value" in record.message


def test_allow_admits_triggers_by_name():
    with da.sync_guard("error", allow=("float", "print")):
        assert not refused()
        assert refused(lambda: int(X))
    with da.sync_guard("error", allow="float"):
        assert not refused()
    with da.sync_guard("error", allow=["nonzero"]):
        jnp.nonzero(jnp.arange(3))


@pytest.mark.parametrize(
    "trigger",
    # NumPy's and JAX's functions that resemble others, and anybody's.
    ["np.unique", "np.asanyarray", "np.array_str", "flatnonzero", "device_put", "lab.report"],
)
def test_allow_takes_the_name_of_any_function(trigger):
    with da.sync_guard("error", allow=(trigger,)):
        assert refused()


def test_sync_allowed_admits_a_region_and_nests():
    with da.sync_guard("error"):
        with da.sync_allowed():
            with da.sync_allowed():
                assert not refused()
            assert not refused()
        assert refused()


def test_sync_allowed_ends_with_an_exception():
    with da.sync_guard("error"):
        with pytest.raises(ValueError, match="out"), da.sync_allowed():
            raise ValueError("out")
        assert refused()


def test_sync_allowed_admits_nothing_in_other_threads():
    def guarded():
        with da.sync_guard("error"):
            return refused()

    with ThreadPoolExecutor(1) as pool, da.sync_allowed():
        assert pool.submit(guarded).result() is True


def test_a_recording_marks_what_was_allowed():
    with da.record() as log:
        float(X)
        with da.sync_allowed():
            float(X)
    assert [sync.allowed for sync in log.syncs] == [False, True]


def test_both_are_decorators():
    @da.sync_guard("error")
    def guarded():
        return float(X)

    @da.sync_allowed()
    def allowed():
        return float(X)

    with pytest.raises(da.HostSyncError):
        guarded()
    with da.sync_guard("error"):
        assert allowed() == 2.0
    assert guarded.__name__ == "guarded"


@pytest.mark.parametrize("decorator", [da.sync_guard("error"), da.sync_allowed()])
def test_what_runs_after_the_call_is_refused_as_a_function(decorator):
    def generator():
        yield float(X)

    async def coroutine():
        return float(X)

    async def asynchronous_generator():
        yield float(X)

    for function in (generator, coroutine, asynchronous_generator):
        with pytest.raises(TypeError, match="after the call has returned"):
            decorator(function)
    with pytest.raises(TypeError, match="expected a function"):
        decorator(3)


def test_the_innermost_guard_decides():
    with da.sync_guard("error"):
        with da.sync_guard("error", allow="float"):
            assert not refused()
        assert refused()
    with da.sync_guard("error", allow="float"), da.sync_guard("error"):
        assert refused()


def test_a_guard_ends_with_an_exception():
    with pytest.raises(ValueError, match="out"), da.sync_guard("error"):
        raise ValueError("out")
    assert not refused()


def test_one_guard_may_be_entered_again():
    guard = da.sync_guard("error")
    with guard:
        with guard:
            assert refused()
        assert refused()
    with guard:
        assert refused()


def test_guards_may_end_out_of_order():
    first, second = da.sync_guard("error"), da.sync_guard("error", allow="float")
    first.start()
    second.start()
    first.stop()
    assert not refused()
    assert refused(lambda: int(X))
    second.stop()
    assert not refused(lambda: int(X))


def test_a_guard_that_was_not_started_cannot_be_stopped():
    with pytest.raises(RuntimeError, match="has not started"):
        da.sync_guard("error").stop()


def test_only_the_thread_that_asked_is_guarded():
    with ThreadPoolExecutor(1) as pool:
        with da.sync_guard("error"):
            assert pool.submit(refused).result() is False
            assert refused()
        guard = da.sync_guard("error")
        pool.submit(guard.start).result()
        assert not refused()
        assert pool.submit(refused).result() is True
        with pytest.raises(RuntimeError, match="has not started"):
            guard.stop()
        pool.submit(guard.stop).result()
        assert pool.submit(refused).result() is False


def test_the_coroutines_of_the_thread_are_guarded():
    async def train():
        await asyncio.sleep(0)
        return float(X)

    with da.sync_guard("error"), pytest.raises(da.HostSyncError, match="float waits"):
        asyncio.run(train())
    assert asyncio.run(train()) == 2.0


def test_a_refusal_is_not_taken_for_an_error_of_the_program():
    def robust():
        try:
            return float(X)
        except Exception:
            return 0.0

    with da.sync_guard("error"):
        assert refused(robust)
        assert refused(lambda: np.array_equal([2.0], X))  # to which any exception means: no
        assert refused(lambda: logging.getLogger("tests").error("%s", X))


# Programs.


def train(read, steps=3):
    state = new_state()
    for _ in range(steps):
        state, metrics = update(state, BATCH)
        read(state, metrics)
    return state


@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_sync_in_a_training_loop_is_refused(name, capsys, caplog):
    read, trigger = HIDDEN[name]
    train(read)
    with da.sync_guard("error"), pytest.raises(da.HostSyncError) as caught:
        train(read)
    assert (caught.value.trigger, caught.value.site.file) == (
        trigger,
        test_record_programs.__file__,
    )


def test_a_loop_without_a_hidden_sync_is_let_pass():
    losses = []
    with da.sync_guard("error"):
        state = train(lambda state, metrics: losses.append(metrics["loss"]))
        with da.sync_allowed():
            assert len(jnp.stack(losses).tolist()) == int(state["step"]) == 3


def test_a_cell_that_displays_an_array_ends_with_the_refusal():
    shell = InteractiveShell.instance()
    gate = da.Gate()
    shell.user_ns["held"] = gate(jnp.arange(4.0))
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, da.sync_guard("error"):
            error = shell.run_cell("x = 1\nheld").error_in_exec
            assert shell.run_cell("x + 1").result == 2
        assert not gate.is_open
        gate.open()
        assert isinstance(error, da.HostSyncError)
        assert (error.trigger, error.site.line, error.site.source) == ("display", 2, "held")
        assert "HostSyncError" in out.getvalue()
    finally:
        InteractiveShell.clear_instance()


def test_a_prompt_that_displays_an_array_is_refused(capsys):
    code = compile("held", "<stdin>", "single")
    with da.sync_guard("error"), pytest.raises(da.HostSyncError, match="repr waits for"):
        exec(code, {"held": X})
    assert capsys.readouterr().out == ""


def test_a_library_that_reads_is_named_or_the_line_that_called_it():
    axes = Figure().subplots()
    with da.sync_guard("error"), pytest.raises(da.HostSyncError, match=r"np\.asarray waits"):
        axes.plot(jnp.arange(4.0))
    with (
        da.sync_guard("error", skip="matplotlib"),
        pytest.raises(da.HostSyncError, match="plot waits") as caught,
    ):
        axes.plot(jnp.arange(4.0))  # mine
    assert caught.value.site.source == "axes.plot(jnp.arange(4.0))  # mine"
    axes.plot(jnp.arange(4.0))


def test_jax_is_in_order_after_a_refusal():
    f = jax.jit(lambda v: (v**2).sum())
    x = jnp.arange(3.0)
    with da.sync_guard("error"):
        for wait in (np.asarray, str, lambda v: v.tolist(), jax.block_until_ready):
            assert refused(lambda wait=wait: wait(x))
        y, gradient = f(x), jax.grad(f)(x)
    assert (float(y), gradient.tolist()) == (5.0, [0.0, 2.0, 4.0])


def test_a_refusal_inside_a_trace_leaves_the_trace_in_order():
    @jax.jit
    def closing_over(v):
        return v + float(X)

    with da.sync_guard("error"), pytest.raises(da.HostSyncError):
        closing_over(jnp.float32(1.0))
    assert float(closing_over(jnp.float32(1.0))) == 3.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: da.sync_guard("errr"), ValueError, "Did you mean 'error'"),
        (lambda: da.sync_guard("raise"), ValueError, "no mode 'raise'"),
        (lambda: da.sync_guard(float), TypeError, "with parentheses"),
        (lambda: da.sync_guard("error", allow=("__float__",)), ValueError, "'float'"),
        (lambda: da.sync_guard("error", allow=("print()",)), ValueError, "'print'"),
        (lambda: da.sync_guard("error", allow=("flaot",)), ValueError, "'float'"),
        (lambda: da.sync_guard("error", allow=(float,)), TypeError, "named by a string"),
        (lambda: da.sync_guard("error", skip=("nmpy",)), ValueError, "Did you mean 'numpy'"),
    ],
)
def test_bad_parameters_are_refused_with_what_was_meant(make, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        make()


def test_a_guard_that_would_overlook_some_refuses_to_begin(monkeypatch):
    monkeypatch.setitem(_jax.LOST, "host syncs by DLPack", "jax.gone")
    with pytest.raises(RuntimeError, match=r"DLPack.*jax\.gone"):
        da.sync_guard("error").start()
    monkeypatch.undo()
    assert not refused()
