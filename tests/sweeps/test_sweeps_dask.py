"""Sweeps in processes and on real clusters: the same rows as in one process, and all of them, whatever is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import psutil
import pytest

from commands import forked
from scb.files import read_json
from scb.jobs.dask import compute, modules_of
from scb.jobs.table_file import read_table
from scb.provenance import code_digest
from scb.sweeps.grid import Sweep
from scb.sweeps.kinds import KINDS, RecoverJob

pytestmark = pytest.mark.slow

SCB, DASK = (Path(sys.executable).with_name(name) for name in ("scb", "dask"))
ENVIRONMENT = os.environ | {"COLUMNS": "80", "TERM": "dumb"}
ENVIRONMENT.pop("NUMBA_NUM_THREADS", None)
TEXT = """
kind = "recover"
seeds = 40
[fixed]
method = "spectral"
[grid]
T = [20, 40]
samples = [100, 300]
"""
RUNS = 160


def arguments(file, out, *options, program=SCB):
    return [program, "sweep", file, "--out", out, *options]


def finish(*command, status=0):
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert answer.returncode == status, answer.stderr
    assert "Traceback" not in answer.stderr
    return answer


def start(*command):
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
    )


def wait_until(condition, process=None):
    deadline = time.time() + 60
    while not condition():
        assert process is None or process.poll() is None, "it was over too early"
        assert time.time() < deadline, "it did not happen"
        time.sleep(0.01)


def has_rows(out):
    return lambda: bool(list(out.glob("rows/*.parquet")))


def keys(out):
    return [key for path in out.glob("rows/*.parquet") for key in read_table(path)[0]["key"]]


def workers_of(process):
    """The processes of a sweep on this machine."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


@contextmanager
def cluster(directory, *threads, tls=()):
    """A scheduler and workers as a user would start them; (address, scheduler, workers)."""
    file = directory / "scheduler.json"
    here = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file), *tls)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": ENVIRONMENT, "cwd": directory}
    scheduler = subprocess.Popen([DASK, "scheduler", "--port", "0", *here], **quiet)
    processes = [scheduler]
    try:
        for count in threads:
            options = ("--no-nanny", "--nthreads", str(count))
            processes.append(subprocess.Popen([DASK, "worker", *here, *options], **quiet))
        # It exists before it is written.
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), scheduler)
        yield json.loads(file.read_text())["address"], scheduler, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "sweep.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def expected(file):
    """The table as one process makes it."""
    finish(*arguments(file, file.parent / "one", "--jobs", "1", program=forked()))
    table = read_table(file.parent / "one" / "table.parquet")[0]
    assert table["key"].tolist() == [run.key for run in Sweep.read(file, KINDS).jobs()]
    assert 0 < table["success"].mean() < 1
    return (file.parent / "one" / "table.parquet").read_bytes()


def calm(errors, killed=1):
    """Nothing but how far it is, and that a worker has gone, for no more than were killed."""
    gone = ("has gone; what it was running goes to another one", "worker process died (Killed); another one takes its place")
    known = (" runs: ", "has no workers: waiting for some", *gone)
    lines = errors.splitlines()
    return all(any(text in line for text in known) for line in lines) and sum(map(errors.count, gone)) <= killed


def assert_complete(out, expected):
    """Every row once, and the same table to the last byte."""
    found = keys(out)
    assert len(found) == len(set(found)) == RUNS
    assert (out / "table.parquet").read_bytes() == expected


def test_two_local_processes_give_the_same_rows_and_a_killed_worker_costs_none(file, expected, tmp_path):
    """And nobody else can give them something to run: none of them listens."""
    process = start(*arguments(file, tmp_path, "--jobs", "2"))
    wait_until(has_rows(tmp_path), process)
    workers = workers_of(process)
    assert len(workers) == 2
    for one in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
        assert [link for link in one.net_connections("inet") if link.status == psutil.CONN_LISTEN] == []
    workers[0].kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert calm(errors)
    assert_complete(tmp_path, expected)


def test_through_an_address_too(file, expected, tmp_path):
    """One worker with two threads, one with one; the second is killed in the middle, the first does the rest."""
    with cluster(tmp_path, 2, 1) as (address, _, workers):
        process = start(*arguments(file, tmp_path / "out", "--scheduler", address))
        wait_until(has_rows(tmp_path / "out"), process)
        assert len(keys(tmp_path / "out")) < RUNS
        workers[1].kill()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert calm(errors)
    assert_complete(tmp_path / "out", expected)


def test_the_driver_is_killed_and_then_interrupted_and_goes_on(file, expected, tmp_path):
    for kind, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        before = len(list(tmp_path.glob("rows/*.parquet")))
        process = start(*arguments(file, tmp_path, "--jobs", "2"))
        wait_until(lambda many=before: len(list(tmp_path.glob("rows/*.parquet"))) > many, process)
        workers = workers_of(process)
        if kind == signal.SIGINT:
            os.killpg(process.pid, kind)  # as a terminal does
        else:
            process.send_signal(kind)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == status
        assert "Traceback" not in errors
        gone, alive = psutil.wait_procs(workers, timeout=10)
        assert (len(gone), alive) == (2, [])
        assert 0 < len(keys(tmp_path)) < RUNS
    assert "scb: interrupted; what is done is kept, go on with: scb sweep " in errors  # lines of progress may stand before it
    finish(*arguments(file, tmp_path, "--jobs", "2"))
    assert_complete(tmp_path, expected)


def test_a_scheduler_that_goes_away_or_is_not_there(file, tmp_path):
    """Both are said in one line, and what was done stays."""
    out = tmp_path / "out"
    with cluster(tmp_path, 1) as (address, scheduler, _):
        process = start(*arguments(file, out, "--scheduler", address))
        wait_until(has_rows(out), process)
        scheduler.kill()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.startswith("scb: the connection to the Dask scheduler was lost. Finished rows are kept")
    assert errors.count("\n") == 1
    kept = keys(out)
    assert 0 < len(kept) < RUNS
    answer = finish(*arguments(file, out, "--scheduler", address, program=forked()), status=2)
    assert answer.stderr == f"scb: no Dask scheduler at {address}: nothing answered within 3 s\n"
    assert keys(out) == kept


NO_ADDRESSES = {
    "banana": "it must look like tcp://10.0.0.1:8786 (missing port number in address 'banana')",
    "nonsense://x:1": "it must look like tcp://10.0.0.1:8786 (unknown address scheme 'nonsense'",
    "tls://127.0.0.1:1": "TLS needs the certificates that DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ",
}
ONE_BY_ONE = """
import json, sys
from scb.cli import main
for line in json.loads(sys.argv[1]):
    try:
        main(line)
    except SystemExit as ended:
        assert ended.code == 2
"""


def test_what_is_no_address_is_one_line(file, tmp_path):
    """Before it is connected to: a client that cannot be made says more when it is collected."""
    commands = [["sweep", str(file)], ["reproduce", "--quick", "--only", "F11"]]
    lines = [[*words, "--out", str(tmp_path), "--scheduler", address] for address in NO_ADDRESSES for words in commands]
    answer = finish(sys.executable, "-c", ONE_BY_ONE, json.dumps(lines))
    told = answer.stderr.splitlines()
    assert len(told) == len(lines) == 6
    for line, (*_, address) in zip(told, lines, strict=True):
        assert line.startswith(f"scb: scheduler = '{address}': {NO_ADDRESSES[address]}")


def certificate(folder, name):
    """A certificate that only itself vouches for, and its key: their files."""
    key, made = folder / f"{name}.key", folder / f"{name}.pem"
    options = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}")
    subprocess.run(["openssl", "req", *options, "-keyout", key, "-out", made], check=True, capture_output=True)
    return made, key


@pytest.mark.skipif(which("openssl") is None, reason="certificates are made with openssl")
def test_with_certificates_only_those_who_have_them_get_in(file, expected, tmp_path, monkeypatch):
    own = ours, key = certificate(tmp_path, "ours")
    tls = ("--protocol", "tls", "--tls-ca-file", ours, "--tls-cert", ours, "--tls-key", key)
    monkeypatch.setitem(ENVIRONMENT, "DASK_DISTRIBUTED__COMM__TLS__CA_FILE", str(ours))
    with cluster(tmp_path, 1, tls=tls) as (address, _, _):
        assert address.startswith("tls://")
        for name, status in (("another", 2), ("ours", 0)):
            made, key = own if name == "ours" else certificate(tmp_path, name)
            monkeypatch.setitem(ENVIRONMENT, "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT", str(made))
            monkeypatch.setitem(ENVIRONMENT, "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY", str(key))
            answer = finish(*arguments(file, tmp_path / name, "--scheduler", address), status=status)
            refused = "or it and we do not trust each other's certificates\n" in answer.stderr
            assert refused == (name == "another")
    assert_complete(tmp_path / "ours", expected)


POISON = """
import os, signal, sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from scb.sweeps.grid import Sweep
from scb.jobs.job import Job
from scb.sweeps.kinds import kind_of
from scb.jobs.pool import run_jobs
from scb.jobs.processes import processes
from scb.sweeps.store import SweepStore

@dataclass(frozen=True)
class Poison(Job):
    label: ClassVar = {"sweep": "poison"}
    a: int = 1
    replicate: int = 0

    def run(self):
        if self.replicate == 17:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"value": self.replicate}

if __name__ == "__main__":
    kind = kind_of("poison", Poison, {"value": int}, {"value": 50})
    sweep = Sweep.parse('kind = "poison"\\nseeds = 40', {"poison": kind})
    store = SweepStore(Path(sys.argv[1]))
    store.begin(sweep, sweep.jobs())
    with processes(2, lambda text: print(text, file=sys.stderr)) as pool:
        run_jobs(sweep.jobs(), pool, store)
"""


def test_a_run_that_kills_its_worker_is_a_failure_and_the_rest_is_there(tmp_path):
    script = tmp_path / "poison.py"
    script.write_text(POISON)
    answer = subprocess.run(
        [sys.executable, script, tmp_path / "out"], capture_output=True, text=True, timeout=120, env=ENVIRONMENT
    )
    assert answer.returncode == 0, answer.stderr
    assert calm(answer.stderr, killed=2)
    failures = read_json(tmp_path / "out" / "failures.json")
    assert [(one["replicate"], one["error"]) for one in failures.values()] == [(17, "its process died, out of memory perhaps")]
    assert len(keys(tmp_path / "out")) == len(set(keys(tmp_path / "out"))) == 39


def test_a_worker_with_another_scb_is_refused():
    assert modules_of([RecoverJob()]) == {"scb.sweeps.kinds"}
    assert compute([], code_digest(*modules_of([]))).results == {}
    with pytest.raises(ValueError, match="a worker has another version of scb"):
        compute([], "older")


def test_the_paper_is_reproduced_on_a_scheduler_too(tmp_path):
    """The same tables to the last bit as in local processes; a second call runs nothing."""
    command = ["reproduce", "--quick", "--seeds", "1", "--only", "F9"]
    finish(forked(), *command, "--out", tmp_path / "here", "--jobs", "1")
    with cluster(tmp_path, 2) as (address, _, _):
        there = (*command, "--out", tmp_path / "there", "--scheduler", address)
        finish(SCB, *there)
        assert "\n0 new runs" in finish(forked(), *there).stdout
    tables = sorted((tmp_path / "here" / "tables").glob("*.parquet"))
    assert len(tables) >= 5
    for path in tables:
        assert (tmp_path / "there" / "tables" / path.name).read_bytes() == path.read_bytes()


def test_without_dask_the_error_says_what_to_install(file, tmp_path):
    code = "import sys; sys.modules['distributed'] = None; from scb.cli import main; main(sys.argv[1:])"
    options = ("sweep", file, "--out", tmp_path)
    answer = finish(sys.executable, "-c", code, *options, "--scheduler", "tcp://127.0.0.1:1", status=2)
    assert answer.stderr == "scb: --scheduler needs Dask: pip install '.[dask]' in the clone\n"
