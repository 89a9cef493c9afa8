"""Worker processes that die, and jobs that raise, in real commands: one line, exit status 2, and the same command goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCB = Path(sys.executable).with_name("scb")
REPRODUCE = ("reproduce", "--quick", "--only", "F11", "--seeds", "1", "--jobs", "1", "--out", "out")
SWEEP = ("sweep", "sweep.toml", "--jobs", "2", "--out", "out")
GRID = 'kind = "recover"\nseeds = 2\n[fixed]\nT = 12\nsamples = 60\n[grid]\nN = [2, 3]\n'
IN_A_WORKER = "import os, signal, sys\nif '--multiprocessing-fork' in sys.orig_argv:\n"
DIES_AT_ONCE = IN_A_WORKER + "    os.kill(os.getpid(), signal.SIGKILL)\n"
DIES_WHEN_IT_RUNS = IN_A_WORKER + (
    "    from scb.paper.experiments.recovery import BoundJob\n    BoundJob.run = lambda job: os.kill(os.getpid(), signal.SIGKILL)\n"
)
RAISES = IN_A_WORKER + (
    "    from scb.paper.experiments.recovery import BoundJob\n    BoundJob.run = lambda job: {}['no such number']\n"
)


def command(folder, line, startup=""):
    """A command in a folder; ``startup`` is what every Python process that it starts runs first."""
    (folder / "sweep.toml").write_text(GRID)
    (folder / "sitecustomize.py").write_text(startup)
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "80", "TERM": "dumb", "NUMBA_NUM_THREADS": "1"}
    return subprocess.run([SCB, *line], cwd=folder, capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.parametrize(
    ("line", "startup", "message"),
    [
        (
            REPRODUCE,
            DIES_AT_ONCE,
            "a process died, out of memory perhaps. Finished runs are kept; the same command goes on from them",
        ),
        (REPRODUCE, DIES_WHEN_IT_RUNS, "a process died, out of memory perhaps"),
        (
            REPRODUCE,
            RAISES,
            "failed: KeyError: 'no such number'. Its traceback is in out/cache/failure.txt; finished runs are kept",
        ),
        (SWEEP, DIES_AT_ONCE, "the 2 worker processes did not start"),
    ],
    ids=["reproduce, at once", "reproduce, when it runs", "reproduce, a job raises", "sweep, at once"],
)
def test_a_dead_worker_is_one_line(tmp_path, line, startup, message):
    answer = command(tmp_path, line, startup)
    assert answer.returncode == 2, answer.stderr
    assert answer.stderr.startswith("scb: ")
    assert message in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert "Traceback" not in answer.stdout
    if startup == RAISES:
        assert "KeyError" in (tmp_path / "out/cache/failure.txt").read_text()


def test_the_same_command_goes_on(tmp_path):
    assert command(tmp_path, SWEEP, DIES_AT_ONCE).returncode == 2
    again = command(tmp_path, (*SWEEP[:2], "--jobs", "1", *SWEEP[4:]))
    assert again.returncode == 0, again.stderr
    assert "4 of 4 runs done" in again.stdout
