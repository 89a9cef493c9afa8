"""The attacks of tests/torture, bounded in time; ``make torture`` runs them long."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import scb
import scb.files
from torture import faults, flips, fuzz, interrupts, short
from torture.__main__ import ENVIRONMENT
from torture.targets import TARGETS
from torture.things import THINGS

HERE = Path(__file__).parent
# What is not entered on small data, by the tests that compare it with its twin.
TWINS = (
    "tests/test_estimator.py::test_kernels_equal_their_twins",
    "tests/test_recovery.py::test_curvature_equals_its_twin_and_the_differences_of_the_gradient",
)


@pytest.fixture(scope="module", autouse=True)
def _clean():
    yield
    flips.clean()


@pytest.mark.parametrize("name", list(THINGS))
def test_flipped_bytes_are_seen(name):
    """At forty places of each kind of file, among them the ends, where formats keep their own lengths and marks."""
    folder, file, content, truth = flips.written(name)
    places = {*range(0, len(content), max(1, len(content) // 30)), *range(5), *range(len(content) - 5, len(content))}
    found = {flips.flip(name, folder, file, content, truth, place, 1 << place % 8) for place in places}
    assert found <= {"right", "refused"}
    assert "refused" in found


@pytest.mark.parametrize("number", range(40))
def test_after_a_fault_there_is_the_old_or_the_new(number):
    assert faults.case(number) in ("old", "new", "refused")


def in_place(path, content):
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(handle, content[: len(content) // 2])
    os.write(handle, content[len(content) // 2 :])
    os.close(handle)


def unsynced(path, content):
    handle, partial = tempfile.mkstemp(dir=path.parent)
    os.write(handle, content)
    os.close(handle)
    os.replace(partial, path)
    scb.files._sync_directory(path.parent)


@pytest.mark.parametrize(
    ("name", "careless", "found"),
    [
        ("scb.files.write_atomically", in_place, "HALF"),
        ("scb.files._sync_directory", lambda directory: None, "LOST WITHOUT A WORD"),
        ("scb.files.write_atomically", unsynced, "HALF"),
    ],
)
def test_carelessness_is_noticed(monkeypatch, name, careless, found):
    """Were files written in place, renames not synced, or bytes not, some fault would leave neither the old nor the new."""
    faults.case(0)  # what is cached is right
    monkeypatch.setattr(name, careless)
    assert any(faults.case(number).startswith(found) for number in range(150))


def test_odd_arguments_end_right_or_with_an_error_of_ours():
    assert fuzz.case(0, examples=120).startswith("fine")


def test_the_fuzzer_knows_every_public_function():
    known = {name.partition(".")[0] for name in TARGETS}
    functions = {name for name in scb.__all__ if callable(getattr(scb, name)) and not name.endswith("Error")}
    assert functions - known == {"Recovery"}  # which nobody makes by hand


@pytest.mark.parametrize(("name", "seed"), [("train", 3), ("train", 12), ("sweep", 6), ("fit", 5)])
def test_a_killed_command_goes_on_to_the_same_end(name, seed):
    """In a process of its own, from which commands can be forked."""
    code = f"from torture import kills\nprint(kills.case({seed}, ({name!r},)))\nkills.clean()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert done.stdout.startswith("same"), done.stdout + done.stderr
    assert not done.stdout.endswith(" 0 kills\n")


def in_a_process(code):
    """What a script prints: in a process of its own, from which commands can be forked."""
    environment = os.environ | ENVIRONMENT
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# Cases of each part that end in seconds, and a planted fault with the verdicts that it must get.
LINKED = "def linked(path, content):\n    with open(path, 'wb') as file:\n        file.write(content)\n"
FORKED = f"""
import os, socket, subprocess, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock
import scb.files, scb.cli.show, scb.inputs
from torture import crafted, foreign, forks, kills, lockless, signals, users

def folder():
    return Path(folders.enter_context(TemporaryDirectory()))

def tell(part, verdict):
    print(part, verdict, flush=True)

{LINKED}
def nowhere():
    pass

def orphan():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    raise KeyboardInterrupt

def open_port():
    with socket.create_server(("localhost", 0)):
        __import__("time").sleep(20)
"""


def test_signals_and_orphans():
    code = FORKED + (
        "tell('fine', signals.case(4, ('train',)))\n"
        "tell('fine', signals.case(8, ('sample',)))\n"
        "kills.GRACE = 1\n"
        "child = forks.start(orphan, folders_of := Path(__import__('tempfile').mkdtemp()))\n"
        "child.wait(60)\n"
        "tell('planted', kills.processes_left([child]))\n"
        "[os.kill(pid, 9) for pid in forks.session(child.pid)]\n"
        "signals.clean()\n"
    )
    fine, other, planted = in_a_process(code)
    assert fine.startswith("fine same")
    assert other.startswith("fine same")
    assert planted.startswith("planted PROCESSES LEFT")


def test_kernels_stay_inside_their_arrays(tmp_path):
    """Every kernel on small arrays, with Numba's bounds checking on, in a process of its own and without its cache.

    That each has been run, and that an index outside is seen, is said at the end.
    """
    code = (
        "import scb\n"
        "task = scb.Task.random(3, 9, 2)\n"
        "scb.train(task, scb.recipes.paper(task, steps=(3, 2, 2), batch_size=5))\n"
        "tokens = scb.generate(task, 80)\n"
        "scb.recover(scb.sample(task, 30, compiled=True), N=3)\n"
        "for transition in ('shared', 'per_lag'):\n"
        "    scb.SparseContextualBigram(3, transition=transition).fit(tokens).sample(20)\n"
        "known = scb.SparseContextualBigram(3, transition='shared').fit(tokens)\n"
        "scb.SparseContextualBigram(50, transition='shared').fit(tokens, init=known)\n"
        "from scb.training.sources.sampled import Fresh\n"
        "scb.train(task, scb.recipes.paper(task, steps=(2, 0, 0), batch_size=5), source=Fresh(task))\n"
        "next(scb.stream(task, 5))\n"
        "import pytest, sys\n"
        "pytest.main(['-o', 'filterwarnings=ignore', '-p', 'no:cacheprovider', *sys.argv[1:]])\n"
        "import importlib, numba, numpy, pkgutil, scb.kernels\n"
        "from numba.core.dispatcher import Dispatcher\n"
        "names = [module.name for module in pkgutil.walk_packages(scb.kernels.__path__, 'scb.kernels.')]\n"
        "modules = [importlib.import_module(name) for name in names if not name.endswith('__main__')]\n"
        "kernels = {thing for module in modules for thing in vars(module).values() if isinstance(thing, Dispatcher)}\n"
        "print('not run:', sorted(kernel.__name__ for kernel in kernels if not kernel.signatures))\n"
        "try:\n"
        "    numba.njit(lambda a: a[2])(numpy.zeros(2))\n"
        "except IndexError:\n"
        "    print('inside')\n"
    )
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_NUM_THREADS": "1",
        "NUMBA_OPT": "0",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    result = subprocess.run([sys.executable, "-c", code, *TWINS], capture_output=True, text=True, env=environment, cwd=HERE.parent)
    assert result.stdout.startswith("." * len(TWINS)), result.stdout[-2000:]
    assert result.stdout.endswith("not run: []\ninside\n"), result.stdout[-300:] + result.stderr[-2000:]
