"""Whose line it was: the site and the trigger, through libraries, prompts and odd formatting."""

import copy
import importlib
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import asarray as aa

import devicearray as da
from devicearray import _site
from devicearray._site import Finder, Site, finder

X = jnp.arange(3.0)
S = jnp.float32(2.0)


def syncs(wait, **options):
    with da.record(**options) as log:
        wait()
    return log.syncs


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Return a function that makes a module of a library in another folder."""

    def make(name, text):
        path = tmp_path / Path(*name.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text, "utf-8")
        return importlib.import_module(name)

    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield make
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_librarys_line_is_named_unless_it_is_skipped(library):
    lab = library("mylab.training", "def report(loss):\n    return float(loss)\n")
    [sync] = syncs(lambda: lab.report(S))
    assert (sync.file, sync.line, sync.function) == (lab.__file__, 2, "report")
    for skip in ("mylab", ("mylab",), ["mylab.training"]):
        [sync] = syncs(lambda: lab.report(S), skip=skip)
        assert (sync.file, sync.trigger) == (__file__, "mylab.training.report")


def test_skipping_a_module_does_not_skip_one_with_a_longer_name(library):
    lab = library("mylab2", "def report(loss):\n    return float(loss)\n")
    library("mylab", "")
    [sync] = syncs(lambda: lab.report(S), skip="mylab")
    assert sync.file == lab.__file__


def test_a_module_that_was_run_has_its_own_name(library):
    lab = library("mylab4.train", "def report(loss):\n    return float(loss)\n")
    vars(lab)["__name__"] = "__main__"  # as ``python -m mylab4.train`` has it
    [sync] = syncs(lambda: lab.report(S), skip="mylab4")
    assert (sync.file, sync.trigger) == (__file__, "mylab4.train.report")


def test_recordings_that_skip_differently_name_different_lines(library):
    lab = library("mylab3", "def report(loss):\n    return float(loss)\n")
    with da.record() as all_lines, da.record(skip="mylab3") as mine:
        lab.report(S)
    assert all_lines.syncs[0].file == lab.__file__
    assert mine.syncs[0].file == __file__


def test_without_a_line_of_the_users_the_nearest_is_named():
    with ThreadPoolExecutor(1) as pool:
        [sync] = syncs(lambda: pool.submit(float, S).result())
    assert sync.trigger == "float"
    assert sync.file.endswith("thread.py")


@pytest.mark.parametrize(
    ("wait", "trigger"),
    [
        (lambda: logging.getLogger("tests").error("%s", S), "logging.error"),
        (lambda: copy.deepcopy([1, S]) and float(S), "float"),
        (lambda: "{:.2f}".format(S), "format"),  # noqa: UP032
        (lambda: print(S, end=""), "print"),
        (lambda: print([S]), "print"),
        (lambda: repr([S]), "repr"),
        (lambda: np.concatenate([np.ones(1), X]), "np.concatenate"),
        (lambda: aa(X), "np.asarray"),
    ],
)
def test_the_trigger_is_what_the_line_calls(wait, trigger, capsys, caplog):
    found = syncs(wait)
    assert {sync.trigger for sync in found} == {trigger}
    assert {sync.file for sync in found} == {__file__}


def test_a_name_is_followed_to_the_function_it_stands_for(capsys):
    p = print
    assert syncs(lambda: p(S))[0].trigger == "print"
    for function, trigger in ((np.sin, "np.sin"), (memoryview, "memoryview"), (np.sin, "np.sin")):
        assert [sync.trigger for sync in syncs(lambda f=function: f(X))] == [trigger]


def test_one_line_may_call_one_function_and_then_another():
    with da.record() as log:
        for function in (np.cos, np.sin, bytes, np.sin):
            function(X)
    assert [sync.trigger for sync in log.syncs] == ["np.cos", "np.sin", "bytes", "np.sin"]


def test_a_call_over_several_lines_is_read_whole(capsys):
    with da.record() as log:
        print(
            "é",
            S,
        )
    [sync] = log.syncs
    assert (sync.trigger, sync.source) == ("print", "print(")


def test_columns_are_counted_in_bytes(capsys):
    with da.record() as log:
        "é" and print(S)
    assert log.syncs[0].trigger == "print"


def test_code_without_source_is_named_by_file_and_line_only(capsys):
    code = compile("\nprint(value)\n", "<generated>", "exec")
    [sync] = syncs(lambda: exec(code, {"value": S}))
    assert (sync.file, sync.line, sync.source, sync.trigger) == ("<generated>", 2, "", "str")


def test_comprehensions_generators_and_classes_are_lines_of_their_own():
    [sync, _, _] = syncs(lambda: [float(v) for v in X])
    assert sync.file == __file__

    def generator():
        yield float(S)

    [sync] = syncs(lambda: next(generator()))
    assert sync.function == "generator"

    def define():
        class Config:
            scale = float(S)

        return Config

    [sync] = syncs(define)
    assert (sync.function, sync.source) == ("Config", "scale = float(S)")


def test_code_that_took_the_address_of_other_code_is_not_taken_for_it():
    with da.record() as log:
        for number in range(200):
            names = {"value": S}
            exec(compile("\n" * number + "float(value)", f"<code {number}>", "exec"), names)
    assert [(s.file, s.line) for s in log.syncs] == [
        (f"<code {number}>", number + 1) for number in range(200)
    ]


def test_the_number_of_sites_that_are_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(_site, "_MOST_SITES", 5)
    one = Finder()
    codes = [compile("find('x')", f"<code {number}>", "exec") for number in range(12)]
    for code in codes:
        exec(code, {"find": one.find})
    assert len(one._known) <= 5


def test_what_the_line_calls_is_not_kept_alive():
    import gc
    import weakref

    class Reader:
        def __call__(self, value):
            return np.asarray(value)

    reader = Reader()
    syncs(lambda reader=reader: reader(X))
    gone = weakref.ref(reader)
    del reader
    gc.collect()
    assert gone() is None


def test_finders_are_shared_by_what_they_skip():
    assert finder(()) is finder(())
    assert finder(("jax",)) is not finder(())


def test_a_module_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"no module named 'numpi'. Did you mean 'numpy'"):
        da.record(skip=("numpi",))
    with pytest.raises(ValueError, match="no module named ''"):
        da.record(skip="")
    with pytest.raises(TypeError, match="not one"):
        da.record(skip=(np,))


def test_a_site_is_shown_from_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert str(Site(str(tmp_path / "train.py"), 3, "f")) == "train.py:3 in f"
    assert str(Site("/elsewhere/train.py", 3, "f")) == "/elsewhere/train.py:3 in f"
    assert str(Site("<stdin>", 3, "<module>")) == "<stdin>:3 in <module>"


def test_every_event_has_the_line():
    f = jax.jit(lambda v: v - 7)
    with da.record() as log:
        f(np.ones(3, np.float32))
        jax.device_put(np.ones(3))
    assert [(type(event).__name__, event.source) for event in log.events] == [
        ("Compile", "f(np.ones(3, np.float32))"),
        ("Dispatch", "f(np.ones(3, np.float32))"),
        ("Transfer", "jax.device_put(np.ones(3))"),
    ]
