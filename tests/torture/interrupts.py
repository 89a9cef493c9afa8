"""A KeyboardInterrupt at any instant of a call of the API: the next call gives the right answer.

It comes from a timer's signal, or from another thread (as notebooks and servers do it). Afterwards
no lock is held, no handle is open and no half-written file is there, and files are old or new.
"""

import ctypes
import gc
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import scb
from torture.things import THINGS, told

TASK = scb.Task.random(3, 12, 2)
RECIPE = scb.recipes.paper(TASK, steps=(60, 40, 10))
SAVED = ("run", "task", "model")


class Work(NamedTuple):
    """A call that writes or reads in a folder, its answer as text, and what it begins with."""

    call: Callable[[Path], Any]
    answer: Callable[[Any, Path], str]
    begin: Callable[[Path], Any] = lambda folder: None


def _train(folder: Path) -> Any:
    begun = (folder / "run.safetensors").exists()
    return scb.train(TASK, RECIPE, every=5, checkpoint=folder, resume=begun)


def _fit(folder: Path) -> Any:
    return scb.SparseContextualBigram(4).fit(list("abacabadabacaba" * 8))


def _recover(folder: Path) -> Any:
    return scb.recover(scb.sample(TASK, 300), N=3)


def _told_model(model: Any, folder: Path) -> str:
    return told(model.attention_.toarray(), model.transition_, model.loglik_, model.criterion_)


def _save(name: str) -> Work:
    thing = THINGS[name]
    return Work(
        lambda folder: [thing.write(folder, 1) for _ in range(3)],
        lambda _, folder: thing.read(folder),
        lambda folder: thing.write(folder, 0),
    )


def _load(name: str) -> Work:
    thing = THINGS[name]
    return Work(lambda folder: thing.read(folder), lambda text, _: text, lambda f: thing.write(f, 0))


WORK = {
    "train": Work(_train, lambda run, folder: told(run.V, run.parameters) + THINGS["run"].read(folder)),
    "fit": Work(_fit, _told_model),
    "recover": Work(_recover, lambda found, _: told(found.V, found.A)),
}
WORK |= {f"save {name}": _save(name) for name in SAVED} | {f"load {name}": _load(name) for name in SAVED}


# ---------------------------------------------------------------------------------------- interrupts


@contextmanager
def by_timer(seconds: float) -> Iterator[None]:
    """A signal after some seconds, whose handler raises."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def by_thread(seconds: float) -> Iterator[None]:
    """An exception that another thread sets after some seconds."""
    over = threading.Event()
    target = ctypes.c_ulong(threading.get_ident())

    def interrupt() -> None:
        if not over.wait(seconds):
            error = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, error)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def interrupted(work: Work, folder: Path, how: Any, seconds: float) -> str:
    """Call, and be interrupted; what is wrong with how it ended, or empty."""
    try:
        try:
            with how(seconds):
                work.call(folder)
        finally:
            for _ in range(100):  # a late one is raised here, and not in what comes next
                time.sleep(0)
    except KeyboardInterrupt:
        return ""
    except Exception as error:
        return f"FOREIGN {type(error).__name__}: {error}"
    return ""


def held() -> list[str]:
    """Locks that this process holds, and handles that it has open."""
    mine = f" {os.getpid()} "
    locks = [line for line in Path("/proc/locks").read_text().splitlines() if mine in line]
    handles = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them is gone
            handles.append(f"{path.name} {os.readlink(path)}")
    return sorted(locks + [one for one in handles if "/proc/" not in one])


@cache
def truth(name: str) -> tuple[str, str, float]:
    """What can be read before the work, the answer after it, and the seconds it takes."""
    work = WORK[name]
    for _ in range(2):  # the first time, kernels are loaded
        with tempfile.TemporaryDirectory(prefix="scb-interrupts-") as text:
            folder = Path(text)
            work.begin(folder)
            old = _old(name, folder)
            begin = time.perf_counter()
            answer = work.call(folder)
            seconds = time.perf_counter() - begin
            new = work.answer(answer, folder)
    return old, new, seconds


def _old(name: str, folder: Path) -> str:
    return WORK[name].answer(None, folder) if name.startswith("save") else ""


def case(seed: int) -> str:
    """One to three interrupts of a call, and the call once more: "right" is fine."""
    rng = random.Random(f"interrupts {seed}")
    name = rng.choice(list(WORK))
    old, new, seconds = truth(name)
    with tempfile.TemporaryDirectory(prefix="scb-interrupts-") as text:
        folder = Path(text)
        WORK[name].begin(folder)
        before = held()
        words = [name]
        for _ in range(rng.randint(1, 3)):
            how, moment = rng.choice((by_timer, by_thread)), rng.uniform(1e-5, 1.1 * seconds)
            words.append(f"{how.__name__} after {moment:.4f} s")
            if found := interrupted(WORK[name], folder, how, moment):
                return f"{found}: {', '.join(words)}"
            if name.startswith("save") and THINGS[name[5:]].read(folder) not in (old, new):
                return f"NEITHER OLD NOR NEW: {', '.join(words)}"
        return f"{_afterwards(name, folder, before, new)}: {', '.join(words)}"


def _afterwards(name: str, folder: Path, before: list[str], new: str) -> str:
    """What is wrong after the next call; "right" if nothing is."""
    work = WORK[name]
    try:
        found = work.answer(work.call(folder), folder)
    except Exception as error:
        return f"DOES NOT GO ON: {type(error).__name__}: {error}"
    gc.collect()
    if found != new:
        return "ANOTHER ANSWER"
    if left := [path.name for path in folder.rglob("*.partial")]:
        return f"LEFT-OVERS ({left[0]})"
    if more := [one for one in held() if one not in before]:
        return f"HELD ({more[0]})"
    return "right"


clean = truth.cache_clear
