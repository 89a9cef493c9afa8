"""The attacks of tests/torture, bounded in time; ``make torture`` runs them long."""

import hashlib
import os
import shutil
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

HERE = Path(__file__).parents[1]
# What is not entered on small data, by the tests that compare it with its twin.
TWINS = (
    "tests/sequences/test_estimator.py::test_kernels_equal_their_twins",
    "tests/mixture/test_recovery.py::test_curvature_equals_its_twin_and_the_differences_of_the_gradient",
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
    scb.files.sync_directory(path.parent)


@pytest.mark.parametrize(
    ("name", "careless", "found"),
    [
        ("scb.files.write_atomically", in_place, "HALF"),
        ("scb.files.sync_directory", lambda directory: None, "LOST WITHOUT A WORD"),
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
    # Nobody makes a Recovery by hand; the others are not called with odd arguments yet.
    assert functions - known == {"Recovery", "Experts", "rotate_heads", "train_many"}


# A few cases of the parts that fork commands, in one process; then faults that are planted, which each part must notice.
FORKED = """
import os, subprocess, sys, time
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from socket import create_server
from tempfile import mkdtemp
from torture import crafted, foreign, forks, kills, lockless, signals, users

def orphan():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)

def through_the_link():
    Path("out/notes.txt").write_text("ours")

def listen():
    with create_server(("localhost", 0)):
        time.sleep(20)

@contextmanager
def folder():  # no TemporaryDirectory, which a forked process would remove at its end
    made = Path(mkdtemp())
    yield made
    rmtree(made)

def attacked(work, judge):
    with folder() as place:
        child = forks.start(work, place)
        found = judge(child)
        for pid in forks.session(child.pid):
            os.kill(pid, 9)
        return found

def orphans(child):
    child.wait(60)
    return kills.processes_left([child])

def planted(kind):
    with folder() as place:
        return foreign.attack("careless", "notes.txt", kind, place)

def crafty(work):
    with folder() as place:
        return crafted.attempt(work, place)

def unlocked():
    made = kills.furnished("lab")
    found = lockless._judged("lab", made, 37, False)
    rmtree(made)
    return found

crafted.SECONDS = 1
foreign.CALLS["careless"] = ("notes.txt", through_the_link)
for name, seed in (("train", 3), ("train", 12), ("sweep", 6), ("fit", 5)):
    print("kills", kills.case(seed, (name,)))
print("signals", signals.case(8, ("sample",)))
kills.GRACE = 1
print("orphan", attacked(orphan, orphans))
print("foreign", foreign.case(2, ("Task.save",)))
print("link", planted("symbolic link"))
print("file", planted("file"))
print("lockless", unlocked())
lockless.READERS.clear()
print("unlocked", unlocked())
print("crafted", crafted.case(1, ("model",)))
print("gigabytes", crafty(lambda: bytearray(8 << 30)))
print("traceback", crafty(lambda: {}["x"]))
print("hangs", crafty(lambda: [None for _ in iter(int, 1)]))
if os.geteuid() == 0:
    print("listens", attacked(listen, users.attempt_to_connect))
for part in (crafted, foreign, lockless):
    part.clean()
"""
VERDICTS = {
    "kills": "same",
    "signals": "same",
    "orphan": "PROCESSES LEFT",
    "foreign": "fine",
    "link": "WROTE ELSEWHERE",
    "file": "LOST",
    "lockless": "same",
    "unlocked": "UNLOCKED",
    "crafted": "refused",
    "gigabytes": "GIGABYTES",
    "traceback": "TRACEBACK",
    "hangs": "HANGS",
    "listens": "ANOTHER USER CONNECTS",
}


@pytest.mark.slow
def test_parts_that_fork_pass_what_is_right_and_notice_planted_faults():
    environment = os.environ | ENVIRONMENT
    line = [sys.executable, "-c", FORKED]
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = [text.partition(" ")[::2] for text in done.stdout.splitlines()]
    assert {name for name, _ in found} >= VERDICTS.keys() - {"listens"}
    wrong = [(name, verdict) for name, verdict in found if not verdict.startswith(VERDICTS[name])]
    assert not wrong
    assert not any(verdict.endswith(" 0 kills") for _, verdict in found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can be two users")
def test_without_a_second_user_the_part_says_so(capsys):
    from torture import users

    assert users.case(0).startswith("skipped")
    assert "only root" in capsys.readouterr().err


# A file that an interrupt finds between its opening and its "with" is closed when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", range(1, 12))
def test_after_an_interrupt_the_next_call_is_right(number):
    assert interrupts.case(number).startswith("right")


@pytest.mark.parametrize(
    ("careless", "found"),
    [
        (lambda folder: (folder / ".x.partial").touch(), "LEFT-OVERS"),
        (lambda folder: os.open(folder / "x", os.O_CREAT), "HELD"),
        (lambda folder: 1 / 0, "FOREIGN ZeroDivisionError"),
    ],
)
def test_what_an_interrupt_would_leave_is_noticed(monkeypatch, careless, found):
    work = interrupts.Work(careless, lambda answer, folder: "")
    monkeypatch.setattr(interrupts, "WORK", {"careless": work})
    monkeypatch.setattr(interrupts, "truth", lambda name: ("", "", 1.0))
    assert interrupts.case(0).startswith(found)
    for handle in interrupts.held():
        if "scb-interrupts-" in handle:
            os.close(int(handle.split()[0]))


@pytest.mark.parametrize("number", [4, 11, 13, 17, 18, 20, 24])
def test_short_sequences_are_fitted_or_refused(number):
    assert short.case(number).startswith(("right", "refused"))


def test_an_infinite_criterion_is_noticed(monkeypatch):
    fit = scb.SparseContextualBigram.fit

    def infinite(self, X):
        fit(self, X).criterion_["shared"] = float("inf")
        return self

    monkeypatch.setattr(scb.SparseContextualBigram, "fit", infinite)
    given = {"max_lag": 2, "transition": "shared"}
    assert short.through_api([list("abab")] * 3, given).startswith("NOT FINITE")


def bounds_cache():
    """A folder of the environment for kernels that check their bounds, named by their sources and this test; others are removed."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted((Path(scb.__file__).parent / "kernels").rglob("*.py")):
        digest.update(path.read_bytes())
    folder = Path(sys.prefix) / "scb-bounds" / digest.hexdigest()[:16]
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    return folder


@pytest.mark.slow
def test_kernels_stay_inside_their_arrays():
    """Every kernel on small arrays, with Numba's bounds checking on, in a process of its own and with a cache of its own.

    The cache is kept in the environment for as long as no kernel is edited; it also tells which kernels ran inside others that
    are no longer compiled. That each has been run, and that an index outside is seen, is said at the end.
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
        "from scb.training.roundings import standing_out\n"
        "standing_out(task.Q, task.mu)\n"
        "import pytest, sys\n"
        "pytest.main(['-o', 'filterwarnings=ignore', '-p', 'no:cacheprovider', *sys.argv[1:]])\n"
        "import importlib, numba, numpy, pathlib, pkgutil, scb.kernels\n"
        "from numba.core.dispatcher import Dispatcher\n"
        "names = [module.name for module in pkgutil.walk_packages(scb.kernels.__path__, 'scb.kernels.')]\n"
        "modules = [importlib.import_module(name) for name in names if not name.endswith('__main__')]\n"
        "kernels = {thing for module in modules for thing in vars(module).values() if isinstance(thing, Dispatcher)}\n"
        "kept = {path.name.split('-')[0].split('.')[-1] for path in pathlib.Path(numba.config.CACHE_DIR).rglob('*.nbi')}\n"
        "print('not run:', sorted({kernel.__name__ for kernel in kernels if not kernel.signatures} - kept))\n"
        "try:\n"
        "    numba.njit(lambda a: a[2])(numpy.zeros(2))\n"
        "except IndexError:\n"
        "    print('inside')\n"
    )
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_NUM_THREADS": "1",
        "NUMBA_OPT": "1",  # without any, Numba keeps nothing
        "NUMBA_CACHE_DIR": str(bounds_cache()),
    }
    result = subprocess.run([sys.executable, "-c", code, *TWINS], capture_output=True, text=True, env=environment, cwd=HERE.parent)
    assert result.stdout.startswith("." * len(TWINS)), result.stdout[-2000:]
    assert result.stdout.endswith("not run: []\ninside\n"), result.stdout[-300:] + result.stderr[-2000:]
