"""Worker processes that die, and jobs that raise, in real commands: one line, exit status 2, and the same command goes on."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

SCB = Path(sys.executable).with_name("scb")
REPRODUCE = ("reproduce", "--quick", "--only", "F11", "--seeds", "1", "--jobs", "1", "--out", "out")
SWEEP = ("sweep", "sweep.toml", "--jobs", "2", "--out", "out")
GRID = 'kind = "recover"\nseeds = 2\n[fixed]\nT = 12\nsamples = 60\n[grid]\nN = [2, 3]\n'
IN_A_WORKER = "import os, signal, sys\nif '--multiprocessing-fork' in sys.orig_argv:\n"
DIES_AT_ONCE = IN_A_WORKER + "    os.kill(os.getpid(), signal.SIGKILL)\n"
DIES_WHEN_IT_RUNS = IN_A_WORKER + (
    "    from scb.paper.experiments.recovery import BoundJob\n    BoundJob.run = lambda job: os.kill(os.getpid(), signal.SIGKILL)\n"
)
CANNOT_LOAD = IN_A_WORKER + (
    "    class Loader:\n        def find_spec(self, name, *rest):\n            if name == 'numba':\n"
    "                raise MemoryError('too much')\n    sys.meta_path.insert(0, Loader())\n"
)
RAISES = IN_A_WORKER + (
    "    from scb.paper.experiments.recovery import BoundJob\n    BoundJob.run = lambda job: {}['no such number']\n"
)


def command(folder, line, startup="", limit=""):
    """A command in a folder; ``startup`` is what every Python process that it starts runs first, ``limit`` goes to ulimit."""
    (folder / "sweep.toml").write_text(GRID)
    (folder / "sitecustomize.py").write_text(startup)
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "80", "TERM": "dumb", "NUMBA_NUM_THREADS": "1"}
    limited = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh"] if limit else []
    return subprocess.run([*limited, SCB, *line], cwd=folder, capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.parametrize(
    ("line", "startup", "message"),
    [
        (
            REPRODUCE,
            DIES_AT_ONCE,
            "worker processes do not start (Killed): try fewer of them (--jobs). "
            "Finished runs are kept; the same command goes on from them",
        ),
        (REPRODUCE, DIES_WHEN_IT_RUNS, "failed: its process died, out of memory perhaps"),
        (
            REPRODUCE,
            RAISES,
            "failed: KeyError: 'no such number'. Its traceback is in out/cache/failure.txt; finished runs are kept",
        ),
        (SWEEP, DIES_AT_ONCE, "worker processes do not start (Killed): try fewer of them (--jobs). Finished runs are kept"),
        (SWEEP, CANNOT_LOAD, "worker processes do not start (MemoryError: too much)"),
    ],
    ids=["reproduce, at once", "reproduce, when it runs", "reproduce, a job raises", "sweep, at once", "sweep, cannot load"],
)
def test_a_dead_worker_is_one_line(tmp_path, line, startup, message):
    answer = command(tmp_path, line, startup)
    assert answer.returncode == 2, answer.stderr
    *notes, line = answer.stderr.splitlines()
    assert line.startswith("scb: ")
    assert message in line
    said = [one for one in notes if not one.endswith(" left")]
    assert set(said) <= {"a worker process died (Killed); another one takes its place"}
    assert "Traceback" not in answer.stdout
    if startup == RAISES:
        assert "KeyError" in (tmp_path / "out/cache/failure.txt").read_text()


def test_the_same_command_goes_on(tmp_path):
    assert command(tmp_path, SWEEP, DIES_AT_ONCE).returncode == 2
    again = command(tmp_path, (*SWEEP[:2], "--jobs", "1", *SWEEP[4:]))
    assert again.returncode == 0, again.stderr
    assert "4 of 4 runs done" in again.stdout


@pytest.mark.parametrize("line", [SWEEP, REPRODUCE], ids=lambda line: line[0])
def test_too_few_open_files_are_one_line(tmp_path, line):
    answer = command(tmp_path, (*line, "--jobs", "20") if line == REPRODUCE else line, limit="-n 12")
    assert answer.returncode == 2, answer.stderr
    assert "Too many open files" in answer.stderr
    assert [one for one in answer.stderr.splitlines() if not one.endswith(" left")][1:] == []


@pytest.mark.parametrize("line", [SWEEP, REPRODUCE, ("train", "--out", "out")], ids=lambda line: line[0])
def test_too_little_memory_to_load_a_library_is_one_line(tmp_path, line):
    """Of NumPy itself, before anything of ours runs, the message is OpenBLAS's own."""
    answer = command(tmp_path, line, limit="-v 250000")
    assert answer.returncode == 2, answer.stderr
    *progress, last = answer.stderr.splitlines()
    assert last.startswith("scb: ")
    assert all(one.endswith(" left") for one in progress)


@pytest.mark.parametrize("line", [SWEEP, REPRODUCE], ids=lambda line: line[0])
def test_a_second_interrupt_changes_nothing(tmp_path, line):
    (tmp_path / "sweep.toml").write_text(GRID.replace("seeds = 2", "seeds = 400"))
    process = subprocess.Popen(
        [SCB, *line], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    while process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.01)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors.startswith(f"scb: interrupted; what is done is kept, go on with: scb {line[0]} ")
    assert errors.count("\n") == 1


INTERRUPTED_AT_ITS_END = """
import os, signal
from scb.jobs.processes import Worker, processes

if __name__ == "__main__":
    end = Worker.end

    def interrupted(worker):
        os.kill(os.getpid(), signal.SIGINT)
        return end(worker)

    Worker.end = interrupted
    try:
        with processes(2) as pool:
            print(sorted(pool.each(abs, [(-1,), (2,)])))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_an_interrupt_while_workers_are_ended_leaves_none(tmp_path):
    """Python waits for those that are left when it ends, and they would wait for Python."""
    (tmp_path / "script.py").write_text(INTERRUPTED_AT_ITS_END)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("[1, 2]\ninterrupted\n", "", 0)
