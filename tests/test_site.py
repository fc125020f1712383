"""Whose line it was: the site and the trigger, through libraries, prompts and odd formatting."""

import asyncio
import contextlib
import copy
import doctest
import functools
import importlib
import json
import logging
import operator
import pprint
import runpy
import statistics
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import asarray as aa

import devicearray as da
from devicearray import _site
from devicearray._site import Finder, Site, finder
from tests.eight_devices import on_eight

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


def test_of_libraries_that_call_each_other_the_innermost_that_is_not_skipped_is_named(library):
    inner = library("innerlab", "def report(loss):\n    return float(loss)\n")
    outer = library("outerlab", "import innerlab\ndef log(x):\n    innerlab.report(x)\n")
    for skip, file, trigger in (
        ((), inner.__file__, "float"),
        ("innerlab", outer.__file__, "innerlab.report"),
        ("outerlab", inner.__file__, "float"),
        (("innerlab", "outerlab"), __file__, "outerlab.log"),
    ):
        [sync] = syncs(lambda: outer.log(S), skip=skip)
        assert (sync.file, sync.trigger) == (file, trigger)


def test_generated_code_is_told_apart_by_the_module_it_is_run_in(library):
    library("genlab", "")
    code = compile("float(value)", "<string>", "exec")
    for module, file in (("genlab", __file__), ("__main__", "<string>"), ("genlab", __file__)):
        [sync] = syncs(lambda m=module: exec(code, {"__name__": m, "value": S}), skip="genlab")
        assert sync.file == file


def test_what_a_dataclass_or_attrs_generates_is_not_a_line_of_the_users(library, capsys):
    lab = library(
        "classlab",
        "from dataclasses import dataclass\n@dataclass\nclass Metrics:\n    loss: object\n",
    )
    assert [sync.source for sync in syncs(lambda: print(lab.Metrics(S)))] == [
        "assert [sync.source for sync in syncs(lambda: print(lab.Metrics(S)))] == ["
    ]
    names = {}
    text = "def __repr__(self):\n    return repr(self.loss)\n"
    exec(compile(text, "<attrs generated repr classlab.Metrics>", "exec"), names)
    Metrics = type("Metrics", (), {"__repr__": names["__repr__"], "loss": S})
    [sync] = syncs(lambda: print(Metrics()))
    assert (sync.file, sync.trigger) == (__file__, "print")


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
        (lambda: statistics.fmean([S]), "statistics.fmean"),
        (lambda: json.dumps({"loss": S}, default=float), "json.dumps"),
        (lambda: pprint.pformat([S]), "pprint.pformat"),
        (lambda: textwrap.shorten(str(S), 10), "str"),
        (lambda: functools.partial(float, S)(), "float"),
        (lambda: operator.methodcaller("item")(S), "item"),
        (lambda: operator.attrgetter("T")(S).item(), "item"),
        (lambda: sorted([S, S + 1]), "bool"),
        (lambda: SimpleNamespace(xp=np).xp.asarray(X), "np.asarray"),
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


def test_a_name_that_hides_a_builtin_is_not_taken_for_it(capsys):
    str = np.asarray  # noqa: A001
    print = repr  # noqa: A001
    assert [sync.trigger for sync in syncs(lambda: str(X))] == ["np.asarray"]
    assert [sync.trigger for sync in syncs(lambda: print(X))] == ["repr"]


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


def test_an_expression_over_several_lines_is_named_by_a_line_of_it():
    with da.record() as log:
        value = (
            X
            [0]
            .item()
        )  # fmt: skip
    [sync] = log.syncs
    assert (sync.trigger, sync.source, value) == ("item", ".item()", 0.0)


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


def test_a_lambda_in_a_comprehension_is_a_line_of_its_own():
    def read():
        readers = [
            lambda value: float(value) + 1  # the lambda
            for _ in range(2)
        ]
        return [reader(S) for reader in readers]

    found = syncs(read)
    assert [(sync.function, sync.source) for sync in found] == [
        ("<lambda>", "lambda value: float(value) + 1  # the lambda")
    ] * 2


def test_the_innermost_function_is_named_and_not_what_decorates_or_calls_it():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @contextlib.contextmanager
    def reading(value):
        yield float(value)

    class Model:
        def __repr__(self):
            return f"loss {S:.1f}"

        @property
        def loss(self):
            return S.item()

    @logged
    @functools.lru_cache
    @logged
    def loss():
        return float(S)

    async def later():
        await asyncio.sleep(0)
        return int(S)

    def enter():
        with reading(S):
            pass

    for wait, function, trigger in (
        (loss, "loss", "float"),
        (lambda: repr(Model()), "__repr__", "format"),
        (lambda: Model().loss, "loss", "item"),
        (enter, "reading", "float"),
        (lambda: asyncio.run(later()), "later", "int"),
    ):
        [sync] = syncs(wait)
        assert (sync.file, sync.function, sync.trigger) == (__file__, function, trigger)


def test_an_assertion_that_pytest_rewrites_is_its_line():
    with da.record() as log:
        assert S > 1
    assert [(sync.trigger, sync.source) for sync in log.syncs] == [("bool", "assert S > 1")]


def test_a_script_and_an_example_in_a_docstring_are_lines_of_the_users(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("import jax.numpy as jnp\nprint(jnp.float32(2.0))\n", "utf-8")
    [sync] = syncs(lambda: runpy.run_path(str(script)))
    assert (sync.file, sync.line, sync.trigger) == (str(script), 2, "print")

    test = doctest.DocTestParser().get_doctest(">>> print(S)\n2.0\n", {"S": S}, "page", None, 0)
    [sync] = syncs(lambda: doctest.DocTestRunner().run(test))
    assert (sync.file, sync.line, sync.trigger) == ("<doctest page[0]>", 1, "print")
    assert sync.source == "print(S)"


def test_a_thread_of_the_runtime_has_no_line(capfd):
    @jax.jit
    def show(x):
        jax.debug.print("{}", x)
        return x

    x = on_eight(jnp.arange(16.0))
    show(x)
    jax.effects_barrier()
    with da.record() as log:
        show(x)
        jax.effects_barrier()
    callback, barrier = log.syncs
    assert (callback.trigger, callback.site) == ("callback", None)
    assert (callback.file, callback.line, callback.function, callback.source) == (None,) * 3 + ("",)
    assert barrier.function == "test_a_thread_of_the_runtime_has_no_line"


def run(text, file, **names):
    """Run code that is gone afterwards, so that Python gives its address to the next."""
    exec(compile(text, file, "exec"), names)
    return names


def hook_of(finder):
    """Return a hook without an array: what reads one may keep the caller's code for a while."""

    def hook():
        return finder.find("hook")

    return hook


def test_code_that_took_the_address_of_other_code_is_not_taken_for_it():
    hook = hook_of(Finder())
    for number in range(20):
        file = f"<code {number}>"
        site = run("\n" * number + "found = hook()", file, hook=hook)["found"].site
        assert (site.file, site.line) == (file, number + 1)


def test_a_function_that_took_the_address_of_another_is_not_taken_for_what_the_line_calls():
    hook = hook_of(Finder())
    for number in range(20):
        text = f"def call{number}():\n    return hook()\n"
        names = run(text, "<attrs generated calls>", hook=hook, __name__="lab")
        call = names.pop(f"call{number}")
        assert call().trigger == f"lab.call{number}"


def test_the_number_of_sites_that_are_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(_site, "_MOST_SITES", 5)
    one = Finder()
    hook = hook_of(one)
    kept = []
    for number in range(12):
        found = run("found = hook()", f"<code {number}>", hook=hook)["found"]
        assert found.site.file == f"<code {number}>"
        kept.append(len(one._known))
    assert kept == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]


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
