"""`python -m devicearray record` runs a program as Python would, and reports where it waited."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import devicearray as da
from devicearray._command import interpreter_options, main

NOTHING = "The program did not import JAX: nothing to record.\n"


@pytest.fixture
def run(tmp_path, monkeypatch, reader_environment):
    """Return what runs a command in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    environment = {**reader_environment}
    environment.pop("PYTHONUNBUFFERED", None)

    def run(*command, **options):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.run(command, text=True, env=environment, **pipes | options)

    return run


@pytest.fixture
def record(run, monkeypatch):
    """Return what runs the process that ``python -m devicearray record`` becomes."""

    def become(_executable, command, _environment):
        commands.append(command)

    monkeypatch.setattr(os, "execve", become)
    commands = []

    def record(*arguments, interpreter=(), **options):
        main(["record", *arguments], interpreter)
        return run(*commands.pop(), **options)

    return record


def recorded(process):
    """Return the log that the process wrote to its stdout."""
    return da.Log.from_json(process.stdout)


def sync_lines(log):
    return [(sync.trigger, Path(sync.file).name, sync.source) for sync in log.syncs]


# As Python would run it.

FACTS = '''
"""What a program can see of how it is run."""
import json, sys
seen = dict(globals())
names = "__name__", "__doc__", "__package__", "__file__", "__cached__", "__builtins__"
print(json.dumps({name: repr(seen[name]) for name in names}, indent=1))
print(type(__loader__), getattr(__spec__, "name", None), getattr(__spec__, "origin", None))
print(sys.argv, sys.path, sys.flags, sys._getframe().f_code.co_filename, sep="\\n")
print(globals() is vars(sys.modules["__main__"]), "jax" in sys.modules)
'''


@pytest.mark.parametrize(
    "command",
    [
        "folder/script.py --json -m -- x",
        "link.py",
        "-m pack.inner.module --json -- x",
        "-m pack",
        "folder x",
        "program.zip",
        "-I folder/script.py",
        "-I folder",
        "-X dev -O -m pack",
    ],
)
def test_a_program_sees_what_python_would_show_it(command, run, record):
    for file in ("folder/script", "folder/__main__", "pack/__main__", "pack/inner/module"):
        path = Path(f"{file}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FACTS)
    Path("link.py").symlink_to("folder/script.py")
    with zipfile.ZipFile("program.zip", "w") as archive:
        archive.writestr("__main__.py", FACTS)
    words = command.split()
    interpreter = words[: {"-I": 1, "-X": 3}.get(words[0], 0)]
    wanted = run(sys.executable, *words)
    assert (wanted.returncode, wanted.stderr) == (0, "")
    found = record(*words[len(interpreter) :], interpreter=interpreter)
    assert (found.stdout, found.stderr) == (wanted.stdout, NOTHING)


PROGRAMS = {
    "it ends": "print('done')",
    "a status": "import sys; sys.exit(3)",
    "no status": "import sys; sys.exit()",
    "a message": "import sys; sys.exit('no data')",
    "an error": """
def f():
    return 1 / 0
try:
    f()
except ZeroDivisionError as error:
    raise ValueError("in vain") from error
""",
    "an error of its syntax": "x = = 1",
    "an interrupt": "import signal; signal.raise_signal(signal.SIGINT)",
    "its own hook for errors": """
import sys, traceback
def hook(kind, error, tb):
    print("hook:", kind, error, [frame.name for frame in traceback.extract_tb(tb)])
sys.excepthook = hook
def f():
    raise KeyError("x")
f()
""",
    "functions at exit": """
import atexit, pickle
class C:
    pass
atexit.register(lambda: print(pickle.loads(pickle.dumps(C()))is not None))
""",
    "a thread that outlives it": """
import threading
def late():
    threading.main_thread().join()
    print("late", C.__name__)
class C:
    pass
threading.Thread(target=late).start()
raise SystemExit(5)
""",
    "an idle pool": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
pool.submit(print, "in the pool")
""",
    "a fork": """
import os, sys
if os.fork() == 0:
    sys.exit(4)
print(os.waitstatus_to_exitcode(os.wait()[1]))
""",
    "a process that is spawned": """
import multiprocessing
def f(queue):
    queue.put(__name__)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=f, args=(queue,))
    process.start()
    print(queue.get(), process.join(), process.exitcode)
""",
    "its input": "print(input())",
    "annotations as they are": "def f(x: 1 + 1): pass\nprint(f.__annotations__)",
}


ALSO_AS_A_MODULE = ("an error", "functions at exit", "a process that is spawned")


@pytest.mark.parametrize(
    ("program", "arguments"),
    [(program, "script.py") for program in PROGRAMS]
    + [(program, "-m script") for program in ALSO_AS_A_MODULE],
)
def test_a_program_ends_as_python_would_end_it(program, arguments, run, record):
    Path("script.py").write_text(PROGRAMS[program])
    wanted = run(sys.executable, *arguments.split(), input="words\n")
    found = record(*arguments.split(), input="words\n")
    assert (found.returncode, found.stdout) == (wanted.returncode, wanted.stdout)
    assert found.stderr == without_runpy(wanted.stderr) + NOTHING


def without_runpy(text):
    """Take out the lines that Python's own ``-m`` has in tracebacks."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if "<frozen runpy>" not in line)


def test_a_module_that_python_cannot_read_is_the_programs_error(record):
    Path("script.py").write_text("x = = 1")
    found = record("-m", "script")
    assert found.returncode == 1
    assert found.stderr.startswith(f'  File "{Path("script.py").resolve()}", line 1\n')


def test_what_fails_in_a_package_is_the_programs_error(record):
    Path("pack").mkdir()
    Path("pack/__init__.py").write_text("import no_such_thing")
    Path("pack/module.py").write_text("")
    found = record("-m", "pack.module")
    assert found.returncode == 1
    assert found.stderr.startswith("Traceback (most recent call last):\n  File")
    assert "launch.py" not in found.stderr
    assert found.stderr.endswith(f"No module named 'no_such_thing'\n{NOTHING}")


# The report.

STEPS = """
import os
print(dict(os.environ))
os.environ["JAX_ENABLE_X64"] = "1"
import jax
import jax.numpy as jnp
x = jnp.ones(3)
for _ in range(2):
    x = jax.jit(jnp.tanh)(x)
    loss = float(x[0])
print(x.dtype)
"""


def test_an_unmodified_script_from_the_command_line(run):
    Path("train.py").write_text(STEPS)
    process = run(sys.executable, "-m", "devicearray", "record", "train.py")
    assert process.returncode == 0, process.stderr
    environment, dtype = process.stdout.splitlines()
    assert dtype == "float64"
    assert "2 host syncs" in process.stderr
    assert "float  train.py:10 in <module>: loss = float(x[0])" in process.stderr
    if Path("/proc/self/environ").exists():
        bare = run(sys.executable, "-c", "import os; print(dict(os.environ))")
        assert f"{environment}\n" == bare.stdout


def test_json_has_stdout_for_itself(record):
    Path("train.py").write_text(
        "import os, sys, jax.numpy as jnp\n"
        "x = jnp.ones(3)\n"
        "print('from Python', x)\n"
        "sys.stdout.flush()\n"
        "os.system('echo from the shell')\n"
        "os.write(1, b'from C\\n')\n"
    )
    process = record("--json", "train.py")
    assert process.stderr == "from Python [1. 1. 1.]\nfrom the shell\nfrom C\n"
    assert sync_lines(recorded(process)) == [("print", "train.py", "print('from Python', x)")]


def test_a_thread_that_outlives_the_last_line_is_recorded(record):
    Path("train.py").write_text(
        "import threading\n"
        "import devicearray\n"
        "import jax.numpy as jnp\n"
        "x = jnp.ones(3)\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    loss = x[0].item()\n"
        "threading.Thread(target=late).start()\n"
    )
    log = recorded(record("--json", "train.py"))
    assert sync_lines(log) == [("item", "train.py", "loss = x[0].item()")]


def test_a_module_is_run_and_the_lines_of_others_are_skipped(record):
    Path("pack").mkdir()
    for module in ("theirs", "mine"):
        Path(f"pack/{module}.py").write_text("def read(x):\n    return x.item()\n")
    Path("pack/train.py").write_text(
        "import jax.numpy as jnp\n"
        "from pack import theirs, mine\n"
        "x, y = jnp.ones(2)\n"
        "mine.read(x)\n"
        "theirs.read(y)\n"
    )
    log = recorded(record("--json", "--skip", "pack.theirs", "-m", "pack.train"))
    assert [line for _, *line in sync_lines(log)] == [
        ["mine.py", "return x.item()"],
        ["train.py", "theirs.read(y)"],
    ]


def test_a_program_that_fails_is_reported_after_its_traceback(record):
    Path("train.py").write_text(
        "import jax.numpy as jnp\nloss = float(jnp.float32(1))\nraise ValueError('diverged')\n"
    )
    process = record("--fail-on-sync", "train.py")
    assert process.returncode == 1
    traceback, table = process.stderr.split("ValueError: diverged\n")
    assert traceback.startswith("Traceback (most recent call last):\n  File")
    assert "launch.py" not in process.stderr
    assert "train.py:2 in <module>: loss = float(jnp.float32(1))" in table
    # It failed by itself.
    assert "--fail-on-sync" not in process.stderr


def test_the_report_follows_what_the_program_wrote(record):
    Path("train.py").write_text("print('done')")
    assert record("train.py", stderr=subprocess.STDOUT).stdout == f"done\n{NOTHING}"


def test_nobody_needs_to_read_all_of_the_json(record):
    Path("train.py").write_text("print('done')")
    reader, writer = os.pipe()
    os.close(reader)
    process = record("--json", "train.py", stdout=writer)
    os.close(writer)
    assert (process.returncode, process.stderr) == (0, f"done\n{NOTHING}")


def test_without_jax_the_log_is_empty(record):
    Path("train.py").write_text("print('done')")
    process = record("--json", "train.py")
    assert recorded(process).events == ()
    assert process.stderr == f"done\n{NOTHING}"


# --fail-on-sync.

TWO_SYNCS = """
import importlib.util, sys
assert importlib.util.find_spec("jax")
import jax.numpy as jnp
import devicearray as da
x = jnp.ones(3)
for _ in range(3):
    loss = float(x[0])
x.block_until_ready()
with da.sync_allowed():
    print(x)
sys.exit(int(sys.argv[1]))
"""


def test_fail_on_sync_names_the_lines(record):
    Path("train.py").write_text(TWO_SYNCS)
    process = record("--fail-on-sync", "train.py", "0")
    assert process.returncode == 1
    assert process.stdout == "[1. 1. 1.]\n"
    complaint = process.stderr.partition("\n--fail-on-sync: ")[2]
    assert complaint.splitlines() == [
        "4 host syncs not allowed:",
        "  float at train.py:8 in <module>, 3 times: loss = float(x[0])",
        "  block_until_ready at train.py:9 in <module>, 1 time: x.block_until_ready()",
        "To allow one: `with devicearray.sync_allowed():` around the line, or --allow float",
    ]


@pytest.mark.parametrize("status", [0, 3])
def test_fail_on_sync_leaves_a_status_that_has_its_own_reason(status, record):
    Path("train.py").write_text(TWO_SYNCS)
    allow = ["--allow", "block_until_ready", "--allow", "float"] if status == 0 else []
    process = record("--fail-on-sync", *allow, "train.py", str(status))
    assert process.returncode == status
    assert process.stderr.startswith("\n5 host syncs")
    assert "--fail-on-sync" not in process.stderr


# --perfetto.


def test_the_timeline_begins_with_the_first_use_of_a_device(record):
    # The profiler would start the devices, and the program has not said yet how many there are.
    Path("train.py").write_text(
        "import os, jax, jax.numpy as jnp\n"
        "os.chdir('/')\n"
        "jax.config.update('jax_num_cpu_devices', 2)\n"
        "@jax.jit\n"
        "def step(x):\n"
        "    return x @ x\n"
        "x = jax.device_put(jnp.ones((100, 100)), jax.devices()[1])\n"
        "for _ in range(3):\n"
        "    x = step(x)\n"
        "x.block_until_ready()\n"
    )
    process = record("--json", "--perfetto", "timeline", "train.py")
    assert (process.returncode, process.stderr) == (0, "")
    log = recorded(process)
    steps = [run for run in log.runs if run.program == "jit_step"]
    dispatches = [number for number, one in enumerate(log.dispatches) if one.name == "step"]
    assert [run.dispatch for run in steps] == dispatches
    assert {run.device for run in steps} == {"cpu:1"}
    assert dispatches[0] > 0
    assert {run.dispatch for run in log.runs} == set(range(len(log.dispatches)))
    log.timeline().to_perfetto("again")
    assert Path("timeline").read_bytes() == Path("again").read_bytes()


def test_a_program_may_keep_the_profiler_for_itself(record):
    Path("train.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "with jax.profiler.trace('profile'):\n"
        "    jnp.ones(3).block_until_ready()\n"
    )
    process = record("--perfetto", "timeline", "train.py")
    assert process.returncode == 0
    assert "--perfetto: the program uses JAX's profiler itself" in process.stderr
    assert "block_until_ready  train.py:3 in <module>" in process.stderr
    assert Path("timeline").stat().st_size


# Mistakes.


@pytest.fixture
def files():
    Path("train.py").write_text("raise SystemExit('it ran')")
    Path("pack/inner").mkdir(parents=True)
    Path("pack/inner/__init__.py").write_text("")
    Path("pack/inner/train.py").write_text("raise SystemExit('it ran')")
    Path("empty").mkdir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tran.py", "no such script: tran.py. Did you mean train.py?"),
        ("zzz", "no such script: zzz."),
        ("pack/inner/tran.py", "no such script: pack/inner/tran.py. Did you mean pack/inner/"),
        ("pak/train.py", "no such script: pak/train.py. There is no folder pak."),
        ("empty", "empty has no __main__.py that could be run."),
        ("-m tran", "no such module: tran. Did you mean train?"),
        ("-m pack.iner", "no such module: pack.iner. Did you mean pack.inner?"),
        ("-m pack.inner.tran", "no such module: pack.inner.tran. Did you mean pack.inner.train?"),
        ("-m pak.train", "no such module: pak.train. There is no package pak."),
        ("-m pack", "pack is a package, and has no __main__.py that could be run."),
        ("-m train.py", "no such module: train.py. It is a script: leave out -m."),
        ("-m .train", "no such module: '.train'. Give its full name."),
        ("-m sys", "sys has no Python code that could be run."),
    ],
)
def test_what_cannot_be_run_is_named(arguments, message, record, files):
    process = record(*arguments.split())
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith(f"python -m devicearray record: error: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "name what to run: a script, or -m and a module"),
        ("-m", "name what to run: a script, or -m and a module"),
        ("--jsn train.py", "there is no option --jsn"),
        ("--allow print train.py", "--allow says what --fail-on-sync lets pass"),
        ("--fail-on-sync --allow flot train.py", "--allow: there is no trigger 'flot'. Did you"),
        ("--skip no_such_module train.py", "--skip: there is no module named 'no_such_module'."),
        ("--perfetto none/x train.py", "--perfetto: cannot write none/x: No such file"),
        ("--perfetto pack train.py", "--perfetto: cannot write pack: Is a directory"),
    ],
)
def test_a_wrong_option_is_named_before_the_program_runs(arguments, message, record, files, capsys):
    with pytest.raises(SystemExit) as ended:
        record(*arguments.split())
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("usage: python -m devicearray record")
    assert f"python -m devicearray record: error: {message}" in error.replace("argument ", "")


def test_a_module_next_to_the_script_can_be_skipped(record, files, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(tmp_path))])
    Path("pack/metrics_of_mine.py").write_text("")
    Path("pack/script.py").write_text("")
    with pytest.raises(SystemExit):
        record("--skip", "metrics_of_mine", "train.py")
    assert record("--skip", "metrics_of_mine", "pack/script.py").returncode == 0


def test_the_timelines_file_is_left_alone_until_there_is_a_timeline(record, files):
    Path("old").write_text("kept")
    for file in ("old", "new"):
        with pytest.raises(SystemExit):
            record("--perfetto", file, "--skip", "no_such_module", "train.py")
    assert Path("old").read_text() == "kept"
    assert not Path("new").exists()


def test_without_a_command_there_is_help(capsys):
    main([])
    help_text = capsys.readouterr().out
    assert help_text.startswith("usage: python -m devicearray")
    assert "record" in help_text


@pytest.mark.parametrize(
    ("options", "module"),
    [
        ([], ["-m", "devicearray"]),
        ([], ["-mdevicearray"]),
        (["-u"], ["-um", "devicearray"]),
        (["-Bu"], ["-Bumdevicearray"]),
        (["-X", "dev", "-W", "m"], ["-m", "devicearray"]),
    ],
)
def test_the_options_of_python_itself_are_kept(options, module):
    given = options if module[0].startswith("-m") else options[:-1]
    arguments = ["record", "-m", "devicearray"]
    assert interpreter_options(["python", *given, *module, *arguments], 3) == options
