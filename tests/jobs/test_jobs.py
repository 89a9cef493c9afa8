"""Jobs, their seeds, where their tables lie, which code these depend on, and the pools that run them."""

import shutil
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from architecture import graph, modules
from deadly import Deadly
from scb.files import write_json
from scb.jobs.job import seed_of
from scb.jobs.pool import InProcess, run_jobs
from scb.jobs.processes import processes
from scb.jobs.store import FAILURE, Cache, JobFailed, Result
from scb.jobs.table import at, concatenate, pick, quartiles
from scb.jobs.table_file import ENDINGS, read_table, write_table
from scb.paper.entries import Experiment
from scb.paper.experiments.noise import RoundingJob
from scb.paper.experiments.population import StageOneJob
from scb.paper.experiments.simulation import GaussianJob, PredictionJob
from scb.paper.experiments.training import TrainingJob
from scb.paper.registry import CLAIMS, ELSEWHERE, FIGURES, needed, tables
from scb.provenance import ROOT, code_digest


def run(experiment):
    """The table of an experiment, without a pool and without a disk."""
    return concatenate([job.table(job.run()) for job in experiment.jobs()])


def test_seeds_are_hashes_of_what_they_are_for():
    assert seed_of(use="x", n=1) == seed_of(n=1, use="x") == 2224442210553500512
    seeds = [job.seed for experiment in tables().values() for job in experiment.jobs()]
    identities = [str(job.identity) for experiment in tables().values() for job in experiment.jobs()]
    assert 0.9 < len(set(seeds)) / len(set(identities)) <= 1  # two tables may share a task on purpose
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_methods_share_stage_one():
    """Methods of one replicate differ in Stage 2 only."""
    table = run(Experiment(TrainingJob, {"T": (200,), "steps": (450,), "every": (50,)}, seeds=2))
    ours, theirs = (pick(table, method=method) for method in ("proximal", "SGD"))
    early = ours["step"] < 400
    assert_array_equal(ours["alpha_A"][early], theirs["alpha_A"][early])
    assert (ours["alpha_A"][ours["step"] == 450] != theirs["alpha_A"][theirs["step"] == 450]).all()
    assert len(np.unique(ours["seed"])) == 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_comes_back_as_it_was_written(tmp_path, ending):
    further = {"word": np.array(["a", "bc", "a", "d"]), "x": np.array([np.nan, np.inf, 0.1, -0.0])}
    table = run(Experiment(RoundingJob, {"T": (50, 100)}, seeds=2)) | further
    path = tmp_path / "x" / f"t{ending}"
    write_table(path, table, {"setting": [1, "two"]})
    back, facts = read_table(path)
    assert facts == {"setting": [1, "two"]}
    assert list(back) == list(table)
    for name in table:
        assert back[name].dtype == (object if name == "word" else table[name].dtype)
        assert_array_equal(back[name].astype(table[name].dtype), table[name])
    assert list(read_table(path, ["word"])[0]) == ["word"]
    first = path.read_bytes()
    write_table(path, table, {"setting": [1, "two"]})
    assert path.read_bytes() == first


READ = """
import os, sys
from pathlib import Path
import numpy
from scb.jobs.table_file import read_table, write_table

table = Path(sys.argv[1])
write_table(table, {"symbol": numpy.array(["a", "b"] * 50)}, {})
before = os.listdir("/proc/self/task")
read_table(table)
assert os.listdir("/proc/self/task") == before
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_table_is_read_without_threads(tmp_path):
    """A thread of Arrow that frees the bytes of a table while Python ends aborts the process."""
    subprocess.run([sys.executable, "-c", READ, tmp_path / "t.parquet"], check=True)


@pytest.mark.parametrize(
    "content",
    [
        {"columns": {}},
        {"columns": {"x": ["<f8", [1.0]], "y": ["<f8", []]}, "facts": {}},
        {"columns": {"x": ["V1000000000", [1.0]]}, "facts": {}},
        {"columns": {"x": ["O", [[1.0]]]}, "facts": {}},
        {"columns": {"x": ["<i8", ["a"]]}, "facts": {}},
    ],
)
def test_what_is_no_table_in_json_is_refused(tmp_path, content):
    write_json(tmp_path / "t.json", content)
    with pytest.raises(ValueError, match=r"t\.json is damaged, or no table of scb"):
        read_table(tmp_path / "t.json")


def test_jobs_are_run_once_and_found_again(tmp_path):
    jobs, cache, seen = Experiment(RoundingJob, {"T": (50,)}, seeds=3).jobs(), Cache(tmp_path), []
    assert len(cache.missing(jobs)) == 3
    with processes(2) as pool:
        run_jobs(cache.missing(jobs), pool, cache, lambda done, share: seen.append((done, share)))
    assert seen[0] == (0, 0)
    assert seen[-1] == (3, pytest.approx(1))
    assert cache.missing(jobs) == []
    cache.path(jobs[1]).unlink()
    assert cache.missing([*jobs, *jobs]) == [jobs[1]]  # equal jobs are one job
    run_jobs([jobs[1]], InProcess(), cache)
    loaded, seconds = cache.load(jobs)
    expected = run(Experiment(RoundingJob, {"T": (50,)}, seeds=3))
    assert seconds > 0
    for name in expected:
        assert_array_equal(loaded[name], expected[name])


def test_what_a_job_depends_on_is_part_of_its_key(tmp_path, monkeypatch):
    cache, job = Cache(tmp_path), RoundingJob(50, 0)
    assert cache.path(job) != cache.path(RoundingJob(50, 1))
    assert cache.path(job) != cache.path(RoundingJob(50, 0, alpha=0.2))
    before = cache.path(job)
    monkeypatch.setattr("scb.jobs.store.code_digest", lambda module: "other code")
    assert cache.path(job) != before


def test_a_broken_file_is_named(tmp_path):
    cache, job = Cache(tmp_path), RoundingJob(50, 0)
    cache.add(job, Result(job.run(), 0.1))
    path = cache.path(job)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"parquet is damaged"):
        cache.load([job])


@pytest.mark.parametrize("pool", [lambda: nullcontext(InProcess()), lambda: processes(1)], ids=["here", "processes"])
def test_a_failing_job_is_not_kept_and_says_why(tmp_path, pool):
    cache, job = Cache(tmp_path), TrainingJob(3, 50, ("no such method",), 0, 450, 50)
    with pytest.raises(JobFailed, match=r"KeyError: 'no such method'\. Its traceback is in"), pool() as open_pool:
        run_jobs([job], open_pool, cache)
    assert "Traceback" in (tmp_path / FAILURE).read_text()
    assert cache.missing([job]) == [job]


def test_a_process_that_dies_is_said_and_what_was_done_stays(tmp_path):
    cache, jobs = Cache(tmp_path), [Deadly(i) for i in range(3)]
    with processes(1) as pool:
        run_jobs(jobs[:2], pool, cache)
    with (
        pytest.raises(JobFailed, match=r"failed: its process died, out of memory perhaps\."),
        processes(1) as pool,
    ):
        run_jobs(cache.missing(jobs), pool, cache)
    assert cache.missing(jobs) == jobs[2:]
    assert cache.load(jobs[:2])[0]["value"].tolist() == [0, 1]


# ------------------------------------------------------------------------------------------------- code


@pytest.fixture
def sources(tmp_path):
    """A copy of the sources, to be changed."""
    shutil.copytree(ROOT, tmp_path / "scb", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "scb"


def discarding(sources, paths):
    """Those of the files in which another line changes the digest; each gets one, and keeps it."""
    found = []
    last = code_digest()
    for path in paths:
        with (sources / path).open("ab") as file:
            file.write(b"\nX = 1\n")
        digest = code_digest.__wrapped__(root=sources)
        if digest != last:
            found.append(path)
        last = digest
    return found


def test_a_change_of_what_is_only_shown_discards_nothing(sources):
    """Captions, figures, claims, commands, the report. No job imports any of them, so that no result can depend on them."""
    files = sorted(sources.rglob("*.py"))
    shown = set(files) - set(discarding(sources, files))
    names = {str(path.relative_to(sources)) for path in shown}
    assert {"cli/bench.py", "paper/report.py", "paper/figures/rates.py", "paper/claims/rates.py"} <= names
    hidden = {name for name, path in modules(sources).items() if path in shown}
    edges = graph(sources)
    assert {name for name in edges.keys() - hidden if edges[name] & hidden} == {"scb.__main__"}


def test_a_change_of_what_computes_discards_everything(sources):
    computing = ["kernels/step/batch.py", "kernels/cuda/step.py", "jobs/job.py", "mixture/em.py", "paper/experiments/noise.py"]
    computing += [str(path.relative_to(sources)) for path in (sources / "kernels" / "cuda").glob("*.cu*")]
    assert len(computing) > 5
    assert discarding(sources, computing) == computing


def test_a_module_of_another_package_counts_and_a_script_does_not(monkeypatch, tmp_path):
    assert code_digest() == code_digest("__main__") == code_digest("scb.sweeps.kinds")
    digests = set()
    for text in ("X = 1\n", "X = 2\n"):
        (tmp_path / "of_somebody_else.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        import_module("of_somebody_else")
        code_digest.cache_clear()
        digests.add(code_digest("of_somebody_else"))
    assert len(digests | {code_digest()}) == 3


# ------------------------------------------------------------------------------------------------- tables and experiments


def test_tables_are_read_as_meant():
    table = {"replicate": np.array([0, 0, 1, 1]), "step": np.array([1, 2, 1, 3]), "y": np.array([1.0, 2.0, 3.0, 4.0])}
    assert at(table)["y"].tolist() == [2.0, 4.0]
    assert at(table, 2)["y"].tolist() == [2.0, 3.0]
    assert pick(table, replicate=1, step=3)["y"].tolist() == [4.0]
    xs, low, middle, high = quartiles(concatenate([table, table]), "step", "y")
    assert xs.tolist() == [1, 2, 3]
    assert (low[0], middle[0], high[0]) == (1.0, 2.0, 3.0)


def test_the_simulation_starts_where_the_recipe_does():
    for gradients in ("real", "simulated"):
        table = PredictionJob(5, 200, 0.0, gradients, 0, 64, 1e-3, 10).run()
        assert table["alpha_V"][0] == pytest.approx(0.3)
        assert table["alpha_A"][0] == pytest.approx(0.3)
        assert table["delta_A"][0] == pytest.approx(0, abs=1e-7)


def test_diverging_simulations_are_kept_as_nan():
    table = GaussianJob(100, 100_000, "SGD", 64, 0).run()
    assert np.isnan(table["dist_A"][-1])


def test_every_figure_and_claim_has_its_tables():
    names = set(tables(full=True, gpu=True))
    assert set(needed(FIGURES)) - set(ELSEWHERE) == names == set(tables(quick=True, full=True, gpu=True))
    assert len(CLAIMS) >= 20
    assert {claim.figure for claim in CLAIMS} <= set(FIGURES)
    stochastic = {name: c for name, c in tables().items() if name not in ("patterns", "line", "stage 1", "near one")}
    assert all(experiment.seeds >= 10 for name, experiment in stochastic.items() if name != "preconditioner")


def test_stage_one_counts_steps():
    assert StageOneJob(1000).run()["steps"] == pytest.approx(465, abs=5)
