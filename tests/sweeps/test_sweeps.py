"""Sweeps without a cluster: what may be asked for, what a row is, what is on disk, and what the diagrams show."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from numpy.testing import assert_allclose, assert_array_equal

import scb
from commands import forked
from scb.files import read_json, write_json
from scb.jobs.job import Job, task_seed
from scb.jobs.pool import BATCH_SECONDS, InProcess, Pace, run_batch, run_jobs
from scb.jobs.table import wilson
from scb.jobs.table_file import read_table
from scb.paper.experiments.noise import NoiseJob
from scb.paper.registry import EXPERIMENTS
from scb.sweeps.grid import Sweep, succeeded
from scb.sweeps.kinds import KINDS, RecoverJob, kind_of, swept_hints
from scb.sweeps.phase import phase, phases
from scb.sweeps.store import SweepStore
from scb.training.recipes import RECIPES

SCB = Path(sys.executable).with_name("scb")
NARROW = {"COLUMNS": "80", "TERM": "dumb", "PATH": "/usr/bin"}
SHIPPED = sorted(Path(scb.sweeps.__path__[0]).glob("*.toml"))
SMALL = """
kind = "recover"
seeds = 3
[fixed]
method = "spectral"
[grid]
T = [20, 40]
samples = [100, 300]
[figure]
x = "samples"
y = "T"
"""
TRAIN = """
kind = "train"
seeds = 2
[fixed]
T = 60
steps = [40, 40, 0]
[grid]
lam = [0, 1e-4]
batch_size = [8, 16]
[figure]
x = "lam"
y = "batch_size"
"""


ALL_KINDS = {**KINDS} | {name: kind_of(name, job) for name, job in EXPERIMENTS.items()}


def command(*arguments):
    return subprocess.run([forked(), "sweep", *arguments], capture_output=True, text=True, timeout=120, env=NARROW)


def on_disk(directory, sweep):
    """All rows, each once, in the order of the grid."""
    store = SweepStore(directory)
    parts = [read_table(path)[0]["key"] for path in store.folder.glob("*.parquet")]
    keys = np.concatenate(parts)
    assert len(set(keys)) == len(keys), "a row is there twice"
    table = store.table(sweep)
    assert table is not None
    assert_array_equal(table["key"], [run.key for run in sweep.jobs()])
    return table


def do(sweep, directory, retry=False):
    store = SweepStore(directory)
    missing = store.missing(sweep.jobs(), retry)
    store.begin(sweep, missing)
    run_jobs(missing, InProcess(), store)
    return len(missing)


# ------------------------------------------------------------------------------------------------- what may be asked for


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = ", "not TOML"),
        ('kind = "fit"', "kind = 'fit': it must be one of 'recover', 'train'"),
        ('kind = "recover"\nsedes = 3', "the file has 'sedes', which means nothing: it may have kind, seeds"),
        ('kind = "recover"\nseeds = 0', "seeds = 0: it must be at least 1"),
        ('kind = "recover"\nseeds = true', "seeds = True: it must be an integer"),
        ('kind = "recover"\nseeds = 9999999999', "seeds = 9999999999: it must be at most 1,000,000"),
        ('kind = "recover"\nfixed = 3', r"fixed = 3: it must be a table, \[fixed\]"),
        ('kind = "recover"\n[grid]\nT = []', r"T = \[\] in \[grid\]: an axis must have at least one value"),
        ('kind = "recover"\n[grid]\nT = 5', r"T = 5 in \[grid\]: it must be a list of values"),
        ('kind = "recover"\n[grid]\nT = [5]\nT = [6]', "not TOML: Cannot overwrite a value"),
        ('kind = "recover"\n[grid]\nT = [5, 5]', "has the same point twice"),
        ('kind = "recover"\n[fixed]\nT = 5\n[grid]\nT = [5]', r"'T' is in \[fixed\] and in \[grid\]"),
        ('kind = "recover"\n[grid]\nM = [5]', "'M' means nothing to kind = 'recover': it has K_P, N, T"),
        ('kind = "recover"\n[grid]\nT = [5.0]', "T = 5.0: it must be an integer"),
        ('kind = "recover"\n[grid]\nT = ["a"]', "T = 'a': it must be an integer"),
        ('kind = "recover"\n[grid]\nN = [3, 1]', "N = 1: it must be between 2 and 4096"),
        ('kind = "recover"\n[grid]\nT = [9, 1]', "sparsity = 2: it must be at most T = 1"),
        ('kind = "recover"\n[fixed]\nmethod = "em"', "method = 'em': it must be one of 'likelihood', 'spectral'"),
        ('kind = "recover"\n[fixed]\nfalse_positions = 1', "false_positions = 1.0: it must lie between 0 and 1"),
        ('kind = "recover"\n[fixed]\nseed = 1', "'seed' is chosen by the sweep"),
        ('kind = "recover"\n[success]\nloss = 1', r"\[success\] has 'loss', which means nothing: it may have exact"),
        ('kind = "recover"\n[success]\nexact = 1', "exact = 1: it must be true or false"),
        ('kind = "recover"\n[grid]\nT = [9]\n[figure]\nx = "T"', r"\[figure\] lacks 'y'"),
        (
            'kind = "recover"\n[grid]\nT = [9]\n[figure]\nx = "T"\ny = "N"',
            r"\[figure\] has 'N': it must be one of the axes, T",
        ),
        ('kind = "recover"\n[grid]\nT = [9]\n[figure]\nx = "T"\ny = "T"', "uses an axis twice"),
        (
            'kind = "recover"\n[grid]\nT = [9]\nN = [3]\nsamples = [5, 6]\n[figure]\nx = "T"\ny = "N"',
            "leaves out the axis 'samples'",
        ),
        ('kind = "train"\n[grid]\nlam = [1, -1]', "lam = -1.0 in stage '2': it must be at least 0"),
        ('kind = "train"\n[grid]\nlam = ["a"]', "lam = 'a': it must be a number"),
        (
            'kind = "train"\n[fixed]\nsteps = [1, 2]',
            r"steps = \[1, 2\]: it must be an integer, or a list of 3 values, each an integer",
        ),
        ('kind = "train"\n[fixed]\nrecipe = "x"', "recipe = 'x': it must be one of 'paper'"),
        (
            'kind = "train"\n[fixed]\nrecipe = "sgd"\nlam = 1',
            "'lam' means nothing to kind = 'train' with recipe = 'sgd'",
        ),
        ('kind = "train"\n[fixed]\nrecipe = "tuned"\naccuracy = 0', "accuracy = 0: it must be between 0.0001 and 1"),
        ('kind = "train"\n[fixed]\nrecipe = "transfer"\noverlap = 1.5', "overlap = 1.5: it must be between 0 and 1"),
    ],
)
def test_bad_grids_are_refused_by_name(text, message):
    with pytest.raises(ValueError, match=message):
        Sweep.parse(text, ALL_KINDS)


def test_a_bad_grid_is_one_line_and_nothing_is_written(tmp_path):
    (tmp_path / "bad.toml").write_text('kind = "recover"\n[grid]\nM = [5]')
    answer = command(tmp_path / "bad.toml", "--out", tmp_path / "out")
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"scb: {tmp_path / 'bad.toml'}: 'M' means nothing")
    assert answer.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_sweeps_are_valid(path):
    assert Sweep.read(path, ALL_KINDS).figure is not None


def test_no_metric_hides_a_parameter():
    for recipe in RECIPES:
        assert not {"N", "T", "sparsity", "recipe", *swept_hints(recipe)} & KINDS["train"].metrics.keys()
        assert "seed" in signature(getattr(scb.recipes, recipe)).parameters  # given by the sweep
    assert not KINDS["recover"].complete({}).keys() & KINDS["recover"].metrics.keys()


# ------------------------------------------------------------------------------------------------- what a row is


def test_a_run_is_named_by_what_it_is():
    """Not by the order of axes, other points, the number of seeds, or whether a default is written down."""
    one = {run.key: run for run in Sweep.parse(SMALL, ALL_KINDS).jobs()}
    other = Sweep.parse(
        'kind = "recover"\nseeds = 5\n[fixed]\nN = 3\nsparsity = 2\n'
        '[grid]\nmethod = ["spectral", "likelihood"]\nsamples = [300, 100]\nT = [40, 10, 20]',
        ALL_KINDS,
    )
    found = {run.key: run for run in other.jobs()}
    assert len(one) == 12
    assert all(found[key] == run for key, run in one.items())
    assert len(found) == 2 * 2 * 3 * 5
    text = TRAIN.replace("lam = [0,", "lam = [0.0,")
    assert [run.key for run in Sweep.parse(TRAIN, ALL_KINDS).jobs()] == [run.key for run in Sweep.parse(text, ALL_KINDS).jobs()]


def test_rows_are_what_the_library_gives():
    run = Sweep.parse(SMALL, ALL_KINDS).jobs()[7]
    p, row = run.parameters, run.run()
    task = scb.Task.random(p["N"], p["T"], p["sparsity"], task_seed(p["N"], p["T"], p["sparsity"], run.replicate))
    fit = scb.recover(scb.sample(task, p["samples"], run.seed, compiled=True), N=p["N"], method="spectral")
    wanted = {(int(t), k) for k, s in enumerate(task.support) for t in s}
    got = {(int(t), k) for k, s in enumerate(fit.support) for t in s}
    assert (row["missed"], row["false"], row["exact"]) == (len(wanted - got), len(got - wanted), wanted == got)
    assert_allclose(row["dist_A"], np.sqrt(np.square(fit.A - task.Q).sum(axis=0) @ task.mu))
    assert row.keys() == KINDS["recover"].metrics.keys()

    run = Sweep.parse(TRAIN, ALL_KINDS).jobs()[-1]
    row = run.run()
    task = scb.Task.random(3, 60, 2, task_seed(3, 60, 2, run.replicate))
    recipe = scb.recipes.paper(task, steps=(40, 40, 0), lam=1e-4, batch_size=16)
    trained = scb.train(task, recipe, run.seed, every=100)
    assert row == {"step": 80, "samples": 80 * 16, "diverged": False} | {
        name: trained.history[name][-1] for name in scb.metrics.COLUMNS
    }
    assert {name: type(value) for name, value in row.items()} == dict(KINDS["train"].metrics)


@pytest.mark.parametrize("kind", ["recover", "train"])
def test_the_distribution_of_P_can_be_swept_and_the_default_names_the_same_runs(kind):
    sizes = "T = 30\nsteps = [10, 10, 0]" if kind == "train" else "T = 30\nsamples = 50"
    plain = Sweep.parse(f'kind = "{kind}"\nseeds = 1\n[fixed]\n{sizes}', ALL_KINDS).jobs()
    grid = '[grid]\nensemble = ["strong", "dirichlet", "uniform", "softmax"]'
    named = Sweep.parse(f'kind = "{kind}"\nseeds = 1\n[fixed]\n{sizes}\n{grid}', ALL_KINDS).jobs()
    assert named[0].key == plain[0].key
    assert named[0].run() == plain[0].run()
    assert len({str(job.run()) for job in named}) == 4
    moved = Sweep.parse(f'kind = "{kind}"\nseeds = 1\n[fixed]\n{sizes}\nensemble = "uniform"\nK_P = 0.3', ALL_KINDS).jobs()
    assert moved[0].run() != named[2].run()
    with pytest.raises(ValueError, match="ensemble = 'weak': it must be one of 'strong', 'dirichlet', 'uniform', 'softmax'"):
        Sweep.parse(f'kind = "{kind}"\n[fixed]\nensemble = "weak"', ALL_KINDS)


@pytest.mark.parametrize(
    "parameters",
    [
        {"recipe": "tuned", "accuracy": 0.1},
        {"recipe": "transfer", "overlap": 0.5},
        {"recipe": "softmax", "steps": 20},
        {"recipe": "paper", "known": False, "start": "spectral", "steps": [0, 20, 0]},
        {"recipe": "sgd", "preconditioned": False, "eta": [50, 50]},
    ],
    ids=lambda parameters: parameters["recipe"],
)
def test_every_recipe_can_be_swept(parameters):
    fixed = "".join(f"{name} = {json.dumps(value)}\n" for name, value in parameters.items())
    (run,) = Sweep.parse(f'kind = "train"\nseeds = 1\n[fixed]\nT = 30\n{fixed}', ALL_KINDS).jobs()
    row = run.run()
    assert row == run.run()
    assert row["diverged"] == (parameters["recipe"] == "sgd")


def test_any_experiment_of_the_paper_can_be_swept(tmp_path):
    """A row is the last row of the table of the experiment's own job, with its samples; parameters are the job's fields."""
    file, out = tmp_path / "noise.toml", tmp_path / "out"
    file.write_text(
        'kind = "noise"\nseeds = 2\n[fixed]\nN = 4\n[grid]\nT = [30, 60]\n[success]\nlargest = 2.0\n[figure]\nx = "T"\ny = "T2"\n'
    )
    assert "[figure] has 'T2'" in command(file, "--out", out).stderr
    file.write_text(file.read_text().partition("[figure]")[0])
    answer = command(file, "--out", out, "--jobs", "1")
    assert answer.returncode == 0, answer.stderr
    assert "noise: 4 of 4 runs done, 0 failed, 0 left\nsuccess (largest ≤ 2.0)" in answer.stdout
    table, _ = read_table(out / "table.parquet")
    jobs = [NoiseJob(T, replicate=i, N=4) for T in (30, 60) for i in range(2)]
    assert table["key"].tolist() == [job.key for job in jobs]
    for name in ("square", "largest", "entry"):
        assert table[name].tolist() == [job.run()[name] for job in jobs]
    assert table["success"].tolist() == (table["largest"] <= 2.0).tolist()
    for name in ("T", "N", "replicate", "seed"):
        assert table[name].tolist() == [job.columns[name] for job in jobs]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "noise"', r"kind = 'noise' needs 'T': it must be in \[fixed\] or in \[grid\]"),
        ('kind = "noise"\n[fixed]\nT = 0', "T = 0: it must be at least 1"),
        ('kind = "noise"\n[fixed]\nT = 9\n[grid]\nsteps = [5]', "'steps' means nothing to kind = 'noise': it has N, T"),
        ('kind = "softmax"\n[grid]\nmodel = ["x"]', "model = 'x': it must be one of 'softmax', 'linear'"),
        ('kind = "convergence"\n[fixed]\nmethods = "SGD"', "methods = 'SGD': it must be a list of values, each text"),
    ],
)
def test_bad_experiments_are_refused_by_name(text, message):
    with pytest.raises(ValueError, match=message):
        Sweep.parse(text, ALL_KINDS)


def test_rows_of_an_experiment_are_the_last_of_its_table_and_what_is_not_random_runs_once(tmp_path):
    sweep = Sweep.parse('kind = "near one"\nseeds = 3\n[fixed]\nsteps = 40\n[grid]\ndirection = ["sum"]', ALL_KINDS)
    assert do(sweep, tmp_path) == 1
    table = on_disk(tmp_path, sweep)
    assert table["step"].tolist() == [40]
    assert table["success"].tolist() == [True]
    training = Sweep.parse(
        'kind = "convergence"\nseeds = 1\n[fixed]\nT = 50\nsteps = 420\n[grid]\nmethods = [["SGD"], ["proximal", "SGD"]]',
        ALL_KINDS,
    )
    do(training, tmp_path / "training")
    table = on_disk(tmp_path / "training", training)
    assert table["methods"].tolist() == ['["SGD"]', '["proximal", "SGD"]']
    assert table["alpha_A"][0] == table["alpha_A"][1]  # of the last method
    asked = replace(training, success={"nonsense": 1.0})
    with pytest.raises(ValueError, match=r"\[success\] has 'nonsense', which means nothing: it may have key, N"):
        SweepStore(tmp_path / "training").table(asked)


def test_success_is_at_most_for_distances_and_at_least_for_signals():
    table = {
        "key": np.array(["a", "b", "c"]),
        "dist_A": np.array([0.1, 0.2, np.nan]),
        "alpha_A": np.array([0.9, 0.8, 0.9]),
        "diverged": np.array([False, True, False]),
    }
    assert succeeded(table, {"dist_A": 0.1}).tolist() == [True, False, False]
    assert succeeded(table, {"dist_A": 0.2, "alpha_A": 0.8}).tolist() == [True, True, False]
    assert succeeded(table, {"alpha_A": 0.9}).tolist() == [True, False, True]
    assert succeeded(table, {"diverged": False}).tolist() == [True, False, True]


def test_rows_do_not_depend_on_threads_or_batches():
    for text in (SMALL, TRAIN):
        sweep = Sweep.parse(text, ALL_KINDS)
        runs = sweep.jobs()
        at_once = run_batch(runs, threads=2)
        assert not at_once.failures
        for run in reversed(runs):
            alone = run_batch([run], threads=1).results
            assert alone.keys() == {run.key}
            assert alone[run.key].rows == at_once.results[run.key].rows


class UnitJob(RecoverJob):
    cost = 1.0


def test_batches_grow_to_a_second_and_shrink_at_the_end():
    def size(left, slots):
        jobs = deque(UnitJob(replicate=i) for i in range(left))
        return len(pace.take(jobs, left, slots))

    pace = Pace()
    assert size(10_000, 4) == 1
    for _ in range(3):
        pace.note(1, 2.0)  # kernels are loaded
    assert size(10_000, 4) == 1
    for _ in range(4):
        pace.note(16, 0.125)
    assert size(10_000, 4) == BATCH_SECONDS * 128  # that is forgotten
    assert size(100, 4) == 13
    assert size(1, 4) == 1


# ------------------------------------------------------------------------------------------------- what is on disk


def test_a_larger_file_adds_what_is_missing(tmp_path):
    sweep = Sweep.parse(SMALL, ALL_KINDS)
    assert do(sweep, tmp_path) == 12
    before = on_disk(tmp_path, sweep)
    assert do(sweep, tmp_path) == 0
    larger = Sweep.parse(SMALL.replace("seeds = 3", "seeds = 5").replace("[20, 40]", "[20, 40, 60]"), ALL_KINDS)
    assert do(larger, tmp_path) == 3 * 2 * 5 - 12
    on_disk(tmp_path, larger)
    after = SweepStore(tmp_path).table(sweep)
    for name, column in before.items():
        assert_array_equal(column, after[name], strict=True)


def test_another_sweep_or_code_is_refused(tmp_path):
    do(Sweep.parse(SMALL, ALL_KINDS), tmp_path)
    with pytest.raises(ValueError, match="holds a sweep with kind recover, this one has train: take another --out"):
        do(Sweep.parse(TRAIN, ALL_KINDS), tmp_path)
    write_json(tmp_path / "facts.json", read_json(tmp_path / "facts.json") | {"code": "older"})
    with pytest.raises(ValueError, match="begun by another version of scb"):
        do(Sweep.parse(SMALL.replace("seeds = 3", "seeds = 4"), ALL_KINDS), tmp_path)
    assert do(Sweep.parse(SMALL, ALL_KINDS), tmp_path) == 0  # nothing is left to run: it can be drawn again
    on_disk(tmp_path, Sweep.parse(SMALL, ALL_KINDS))


def test_failures_are_listed_with_config_and_traceback_and_others_go_on(tmp_path):
    """Two tokens leave no choice of P̂: half of this grid cannot be run."""
    (tmp_path / "some.toml").write_text(
        'kind = "train"\nseeds = 2\n[fixed]\nT = 20\nrecipe = "transfer"\noverlap = 0.5\n[grid]\nN = [2, 3]\n'
    )
    out = tmp_path / "out"
    answer = command(tmp_path / "some.toml", "--out", out, "--jobs", "1")
    assert answer.returncode == 0, answer.stderr
    assert "train: 2 of 4 runs done, 2 failed, 0 left" in answer.stdout
    answer = command("--status", out)
    for text in ("2 × InputError: overlap = 0.5 with N = 2", "N = 2, replicate 1", "Traceback", "--retry"):
        assert text in answer.stdout
    sweep, time_written = Sweep.read(tmp_path / "some.toml", ALL_KINDS), (out / "failures.json").stat().st_mtime_ns
    assert do(sweep, out) == 0
    assert "2 failed" in command(tmp_path / "some.toml", "--out", out, "--jobs", "1", "--retry").stdout
    assert (out / "failures.json").stat().st_mtime_ns > time_written
    assert len(read_json(out / "failures.json")) == 2


def test_a_failure_that_is_mended_becomes_a_row(tmp_path):
    switch = tmp_path / "switch"

    @dataclass(frozen=True)
    class Own(Job):
        label: ClassVar = {"sweep": "own"}
        a: int = 1
        replicate: int = 0

        def run(self):
            if not switch.exists() and self.replicate % 2:
                raise RuntimeError("not yet")
            return {"value": self.replicate}

    kind = kind_of("own", Own, {"value": int}, {"value": 1})
    sweep = Sweep.parse('kind = "own"\nseeds = 6', {"own": kind})
    assert do(sweep, tmp_path) == 6
    assert len(SweepStore(tmp_path).failures) == 3
    switch.touch()
    assert do(sweep, tmp_path) == 0
    assert do(sweep, tmp_path, retry=True) == 3
    assert SweepStore(tmp_path).failures == {}
    assert on_disk(tmp_path, sweep)["value"].tolist() == list(range(6))


def test_report_fits_a_terminal(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    answer = command(tmp_path / "small.toml", "--out", tmp_path / "out", "--jobs", "1")
    assert answer.returncode == 0, answer.stderr
    shown = [line for line in answer.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, shown)) <= 80
    table = SweepStore(tmp_path / "out").table(Sweep.parse(SMALL, ALL_KINDS))
    ((_, part),) = phases(table, "samples", "T")
    rates = part.rate
    assert [line.split()[1:] for line in shown if line.split()[:1] in (["20"], ["40"])] == [
        [f"{100 * rate:.0f}" for rate in row] for row in rates
    ]
    assert (tmp_path / "out" / "phase.png").stat().st_size > 10_000
    written, facts = read_table(tmp_path / "out" / "table.parquet")
    assert_array_equal(written["success"], table["exact"])
    assert facts["success"] == {"exact": True}


PLAIN = SMALL.partition("[figure]")[0]
LONG = PLAIN.replace("seeds = 3", "seeds = 50")


def wait_for_rows(directory, process):
    """Until there are rows, and the sweep is not through."""
    deadline = time.time() + 60
    while not list(directory.glob("rows/*.parquet")):
        assert process.poll() is None, "the sweep was over before it could be killed"
        assert time.time() < deadline
        time.sleep(0.01)


def test_a_sweep_killed_in_this_process_goes_on(tmp_path):
    (tmp_path / "long.toml").write_text(LONG)
    sweep, out = Sweep.parse(LONG, ALL_KINDS), tmp_path / "out"
    process = subprocess.Popen([SCB, "sweep", tmp_path / "long.toml", "--out", out, "--jobs", "1"])
    wait_for_rows(out, process)
    process.send_signal(signal.SIGSTOP)  # it must not come to its end while another is tried
    other = command(tmp_path / "long.toml", "--out", out, "--jobs", "1")
    assert other.returncode == 2
    assert "another process is running the sweep" in other.stderr
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = len(SweepStore(out).done())
    assert 0 < kept < len(sweep.jobs())
    answer = command(tmp_path / "long.toml", "--out", out, "--jobs", "1")
    assert answer.returncode == 0, answer.stderr
    table = on_disk(out, sweep)
    assert do(sweep, tmp_path / "whole") == 200
    for name, column in on_disk(tmp_path / "whole", sweep).items():
        assert_array_equal(column, table[name], strict=True)


def test_a_full_disk_is_said_at_once_and_nothing_is_lost(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        not shutil.which("mount")
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", disk], capture_output=True).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    try:
        (tmp_path / "small.toml").write_text(PLAIN)
        (tmp_path / "long.toml").write_text(LONG)
        out = disk / "out"
        assert command(tmp_path / "small.toml", "--out", out, "--jobs", "1").returncode == 0
        before = SweepStore(out).done()
        (disk / "ballast").write_bytes(b"0" * (free(disk) - 8192))
        answer = command(tmp_path / "long.toml", "--out", out, "--jobs", "1")
        assert answer.returncode == 2
        assert re.match(f"scb: cannot write {out}/.*: No space left on device; what is done is kept", answer.stderr)
        assert answer.stderr.endswith(f"go on with: scb sweep {tmp_path}/long.toml --out {out} --jobs 1\n")
        assert answer.stderr.count("\n") == 1
        assert len(before) == 12
        assert before <= SweepStore(out).done()
        assert not list(out.rglob("*.partial"))
        (disk / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)
        do(Sweep.parse(LONG, ALL_KINDS), out)
        on_disk(out, Sweep.parse(LONG, ALL_KINDS))
    finally:
        subprocess.run(["umount", disk], check=True)


def free(disk):
    facts = os.statvfs(disk)
    return facts.f_bavail * facts.f_frsize


# ------------------------------------------------------------------------------------------------- diagrams


def test_wilson_is_where_the_normal_test_rejects():
    """The ends p solve |successes/n − p| = z √(p(1 − p)/n)."""
    k, n = np.array([0, 3, 10, 20]), np.array([20, 20, 20, 20])
    for end in wilson(k, n):
        assert_allclose(np.abs(k / n - end), 1.96 * np.sqrt(end * (1 - end) / n), atol=1e-12)
    low, high = wilson(np.array([0]), np.array([0]))
    assert (low[0], high[0]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "x", "y"),
    [
        (SMALL, "samples", "T"),
        (
            SMALL.replace("T = [20, 40]", "N = [3, 5]").replace('"T"', '"N"').replace("[fixed]", "[fixed]\nT = 20"),
            "samples",
            "N",
        ),
        (TRAIN, "lam", "batch_size"),
    ],
    ids=["T and samples", "N and samples", "λ and B"],
)
def test_diagrams_show_the_rates(tmp_path, text, x, y):
    sweep = Sweep.parse(text, ALL_KINDS)
    do(sweep, tmp_path)
    table = on_disk(tmp_path, sweep)
    table["success"] = np.arange(len(table["key"])) % 5 < 2  # whatever came out, some of both
    figure = phase(table, **sweep.figure)
    (mesh,) = (part for part in figure.axes[0].collections if isinstance(part, QuadMesh))
    expected = [[table["success"][(table[x] == a) & (table[y] == b)].mean() for a in sweep.grid[x]] for b in sweep.grid[y]]
    assert_allclose(mesh.get_array(), expected)
    assert f"({sweep.seeds} seeds per cell)" in figure.get_suptitle()
    figure.draw_without_rendering()


def test_a_third_axis_makes_panels_and_gaps_stay_grey():
    count = 24
    table = {
        "T": np.tile([10, 100], count // 2),
        "samples": np.repeat([1, 2, 3], count // 3),
        "method": np.array(["likelihood", "spectral"] * (count // 4) + ["spectral", "likelihood"] * (count // 4)),
        "success": np.arange(count) % 2 == 0,
    }
    table = {name: column[:-1] for name, column in table.items()}
    figure = phase(table, "samples", "T", panel="method")
    assert [ax.get_title() for ax in figure.axes[:2]] == ["method = likelihood", "method = spectral"]
    corner = {name: c[(table["T"] == 10) | (table["samples"] == 1)] for name, c in table.items()}
    ((_, part),) = phases(corner, "samples", "T")
    assert_array_equal(np.isnan(part.rate), [[False] * 3, [False, True, True]])
    figure.draw_without_rendering()


def test_sweeps_that_come_with_scb_have_names(tmp_path, monkeypatch):
    """A file of that name comes first; what is neither is left as it is."""
    from scb.cli.sweep import _shipped

    monkeypatch.chdir(tmp_path)
    assert _shipped(Path("support")) in SHIPPED
    assert _shipped(Path("nowhere")) == Path("nowhere")
    assert _shipped(Path("folder/support")) == Path("folder/support")
    Path("support").write_text("")
    assert _shipped(Path("support")) == Path("support")
