"""Jobs, their seeds, the store, and the pool that runs them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from scb.jobs.job import run, seed_of
from scb.jobs.runner import run_jobs
from scb.jobs.store import Store, read_table, write_table
from scb.jobs.table import at, concatenate, pick, quartiles
from scb.paper.experiments import gaussian, population, rounding, training
from scb.paper.registry import CLAIMS, FIGURES, datasets, needed


def test_seeds_are_hashes_of_what_they_are_for():
    assert seed_of(use="x", n=1) == seed_of(n=1, use="x") == 2224442210553500512
    seeds = [job.seed for config in datasets().values() for job in config.jobs()]
    identities = [str(job.identity) for config in datasets().values() for job in config.jobs()]
    assert 0.9 < len(set(seeds)) / len(set(identities)) <= 1  # two tables may share a task on purpose
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_methods_share_stage_one():
    """Methods of one replicate differ in Stage 2 only."""
    table = run(training.Config(T=200, methods=("proximal", "SGD"), steps=450, every=50, seeds=2))
    ours, theirs = (pick(table, method=method) for method in ("proximal", "SGD"))
    early = ours["step"] < 400
    assert_array_equal(ours["alpha_A"][early], theirs["alpha_A"][early])
    assert (ours["alpha_A"][ours["step"] == 450] != theirs["alpha_A"][theirs["step"] == 450]).all()
    assert len(np.unique(ours["seed"])) == 2


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = run(rounding.Config(T=(50, 100), seeds=2)) | {"word": np.array(["a", "bc", "a", "d"])}
    write_table(tmp_path / "x" / "t.parquet", table, {"setting": [1, "two"]})
    back, facts = read_table(tmp_path / "x" / "t.parquet")
    assert facts == {"setting": [1, "two"]}
    assert list(back) == list(table)
    for name in table:
        assert_array_equal(back[name].astype(table[name].dtype), table[name])
    first = (tmp_path / "x" / "t.parquet").read_bytes()
    write_table(tmp_path / "x" / "t.parquet", table, {"setting": [1, "two"]})
    assert (tmp_path / "x" / "t.parquet").read_bytes() == first


def test_jobs_are_run_once_and_found_again(tmp_path):
    config, store, seen = rounding.Config(T=(50,), seeds=3), Store(tmp_path), []
    assert run_jobs(config.jobs(), store, 2, lambda done, total: seen.append((done, total))) == 3
    assert seen[0][0] == 0
    assert seen[-1][0] == pytest.approx(seen[-1][1])
    assert run_jobs(config.jobs(), store, 1) == 0
    store.path(config.jobs()[1]).unlink()
    assert run_jobs([*config.jobs(), *config.jobs()], store, 1) == 1  # equal jobs are one job
    loaded, seconds = store.load(config)
    expected = run(config)
    assert seconds > 0
    for name in expected:
        assert_array_equal(loaded[name], expected[name])


def test_what_a_job_depends_on_is_part_of_its_key(tmp_path, monkeypatch):
    store, job = Store(tmp_path), rounding.Job(50, 0)
    assert store.path(job) != store.path(rounding.Job(50, 1))
    assert store.path(job) != store.path(rounding.Job(50, 0, alpha=0.2))
    before = store.path(job)
    monkeypatch.setattr("scb.jobs.store.code_digest", lambda: "other code")
    assert store.path(job) != before


def test_a_broken_file_is_named(tmp_path):
    config, store = rounding.Config(T=(50,), seeds=1), Store(tmp_path)
    store.compute(config.jobs()[0])
    path = store.path(config.jobs()[0])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"parquet cannot be read .* delete it"):
        store.load(config)


def test_a_failing_job_is_not_kept_and_says_why(tmp_path):
    store, job = Store(tmp_path), training.Job(3, 50, ("no such method",), 0, 450, 50)
    with pytest.raises(KeyError, match="no such method"):
        run_jobs([job], store, 1)
    assert not store.has(job)


def test_tables_are_read_as_meant():
    table = {"replicate": np.array([0, 0, 1, 1]), "step": np.array([1, 2, 1, 3]), "y": np.array([1.0, 2.0, 3.0, 4.0])}
    assert at(table)["y"].tolist() == [2.0, 4.0]
    assert at(table, 2)["y"].tolist() == [2.0, 3.0]
    assert pick(table, replicate=1, step=3)["y"].tolist() == [4.0]
    xs, low, middle, high = quartiles(concatenate([table, table]), "step", "y")
    assert xs.tolist() == [1, 2, 3]
    assert (low[0], middle[0], high[0]) == (1.0, 2.0, 3.0)


def test_the_simulation_starts_where_the_recipe_does():
    from scb.paper.experiments.prediction import Job

    for gradients in ("real", "simulated"):
        table = Job(5, 200, 0.0, gradients, 0, 64, 1e-3, 10).run()
        assert table["alpha_V"][0] == pytest.approx(0.3)
        assert table["alpha_A"][0] == pytest.approx(0.3)
        assert table["delta_A"][0] == pytest.approx(0, abs=1e-7)


def test_diverging_simulations_are_kept_as_nan():
    table = gaussian.Job(100, 100_000, "SGD", 64, 0).run()
    assert np.isnan(table["dist_A"][-1])


def test_every_figure_and_claim_has_its_tables():
    names = set(datasets())
    assert set(needed(FIGURES)) == names == set(datasets(quick=True))
    assert len(CLAIMS) >= 20
    assert {claim.figure for claim in CLAIMS} <= set(FIGURES)
    stochastic = {name: c for name, c in datasets().items() if name not in ("patterns", "line", "stage 1", "near one")}
    assert all(getattr(config, "seeds", 10) >= 10 for name, config in stochastic.items() if name != "preconditioner")


def test_stage_one_counts_steps():
    assert population.StageOneJob(1000).run()["steps"][0] == pytest.approx(465, abs=5)
