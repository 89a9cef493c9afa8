"""Experiments of the paper at tiny sizes: what their rows say against what they are said to be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from scb.jobs.job import random_task
from scb.jobs.table import pick
from scb.paper.experiments.checks import ErrorDecayJob, NegativeJob, PlannedJob, StageOneEndJob
from scb.paper.experiments.noise import SeparationJob
from scb.paper.experiments.population import StageOneJob
from scb.paper.experiments.training import LATE, LastStageJob, LateJob, PreconditionerJob, TrainingJob
from scb.training.loop import train
from scb.training.recipes import paper


def table_of(job):
    return job.table(job.run())


def test_the_literal_method_is_the_recipe_of_the_paper():
    """400 + 600 steps become 400 + 20 here; a batch and a multiple of the step sizes change these and nothing else."""
    job = TrainingJob(T=30, methods=("proximal",), steps=420, batch_size=8, rate=2.0, ensemble="uniform", K_P=0.2, replicate=3)
    rows = table_of(job)
    task = random_task(3, 30, 2, 3, "uniform", 0.2)
    recipe = paper(task, eta=(0.02, 0.01, 0.01), steps=(400, 20, 0), batch_size=8, resolve_sign=False)
    run = train(task, recipe, job.seed, every=20)
    for name in ("step", "alpha_A", "dist_V", "dist_A_star"):
        assert_allclose(rows[name], run.history[name], rtol=1e-12)
    assert set(rows["ensemble"]) == {"uniform"}
    assert_allclose(rows["K_P"], 0.2)


def test_runs_at_default_settings_keep_their_seeds_and_others_have_their_own():
    plain = TrainingJob(replicate=1)
    assert TrainingJob(replicate=1, summary=(400,), methods=("SGD",)).seed == plain.seed  # the same samples in all tables
    changed = [{"ensemble": "uniform"}, {"K_P": 0.1}, {"batch_size": 32}, {"rate": 2.0}, {"N": 10}]
    assert len({TrainingJob(replicate=1, **fields).seed for fields in changed} | {plain.seed}) == 6
    assert "ensemble" not in plain.identity


def test_a_summary_has_the_rows_of_the_history():
    whole = table_of(TrainingJob(T=30, steps=420, every=10))
    short = table_of(TrainingJob(T=30, steps=420, every=10, summary=(400, 410)))
    chosen = np.isin(whole["step"], (400, 410, 420))
    assert short["step"].tolist() == [400, 410, 420] * 2
    for name in ("alpha_V", "delta_A", "sim_A_star"):
        assert_allclose(short[name], whole[name][chosen], rtol=1e-5)
    first = whole["method"] == "proximal"
    assert short["delta_V_worst"][2] == pytest.approx(whole["delta_V"][first].max(), rel=1e-5)


def test_late_rows_are_those_of_long_runs():
    late = table_of(LateJob(replicate=0, steps=450, T=30))
    whole = table_of(TrainingJob(T=30, steps=450, methods=LATE, every=50))
    assert late["method"].tolist() == list(LATE)
    for i, method in enumerate(LATE):
        run = pick(whole, method=method)
        assert_allclose(late["dist_A"][i], run["dist_A"][-1], rtol=1e-5)
        assert_allclose(late["loss_least"][i], run["loss"].min(), rtol=1e-5)
        assert_allclose(late["loss_nearest"][i], run["loss"][np.argmin(run["dist_A"])], rtol=1e-5)


def test_both_last_stages_begin_with_the_same_run():
    one, other = (LastStageJob(last, replicate=2, T=30).run() for last in ("normalised", "not normalised"))
    for name in ("dist_V", "dist_A", "alpha_V", "alpha_A"):
        assert one[f"{name}_before"] == other[f"{name}_before"]
    assert one["dist_A_after"] != other["dist_A_after"]


@pytest.mark.parametrize("margin", [1.0, 8.0])
def test_the_worst_error_has_the_size_that_the_lemma_allows(margin):
    job = SeparationJob(margin, replicate=1)
    found = job.run()
    condition = 2 / job.T + 2 * np.sqrt(job.N) * found["delta_A"]  # Q/T + Q√N‖Δ_A‖, with Q = 2
    assert condition * margin <= job.alpha * 1.001  # the part of it along the line counts as signal
    assert condition * margin >= job.alpha * 0.6
    assert found["separated"] is (margin == 8)


def test_far_from_uniform_the_preconditioner_is_another():
    near, far = (PreconditionerJob(T=50, first=0.0, replicate=0, spread=s).run()["uniform"] for s in (0.01, 1.0))
    assert near < 0.03 < 0.3 < far


def test_without_the_drift_nothing_grows():
    found = StageOneJob(T=1000).run()
    assert found["undrifted"] == 0
    assert min(found["alpha_V"], found["alpha_A"]) > 0.09


def test_entries_below_lambda_are_those_of_the_gradient_step():
    """With λ far above the noise there is none; with a tiny one about half of the entries are there."""
    large, small = (NegativeJob(450, T=60, lam=lam).run() for lam in (1.0, 1e-12))
    assert large["below"] == 0
    assert small["entries"] == 180
    assert 30 < small["below"] < 150
    assert small["least"] * 1e-12 < 0


def test_stage_one_ends_where_one_signal_is_one_over_QN():
    found = StageOneEndJob(T=300, replicate=1).run()
    before = found["sum"] / 6 - max(found["alpha_V"], found["alpha_A"])
    assert max(found["alpha_V"], found["alpha_A"]) >= 1 / 6
    assert before == pytest.approx(min(found["alpha_V"], found["alpha_A"]))
    assert found["gap"] == pytest.approx(abs(found["alpha_V"] - found["alpha_A"]))
    assert found["batch_size"] > 300**2


def test_the_error_near_one_falls_at_the_rate_of_the_lemma():
    """(1 − ηα_A²)^τ for V and (1 − ηα_V²)^τ for A, and the signals go from 0.9 to 1."""
    for replicate in range(3):
        found = ErrorDecayJob(replicate, T=50, steps=200).run()
        assert 0.7 < found["rate_V"] < 1.3
        assert 0.7 < found["rate_A"] < 1.3


def test_the_plan_is_simulated_inside_all_assumptions():
    found = PlannedJob(0).run()
    assert found["inside"].all()
    assert found["stage"].tolist() == [1, 2, 3]
    assert found["delta_V"][0] > 0  # at N = 2 it could not be
    assert not PlannedJob(0, T=1000).run()["inside"].any()
