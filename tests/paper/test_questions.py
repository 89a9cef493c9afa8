"""The experiments behind F27 to F30 at tiny sizes: ℓ1 to the end, the spread of μ, transfer by its letter, the step of softmax."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose

from scb.geometry import deviations, mu_inner, mu_norm, population_projection
from scb.jobs.job import random_task
from scb.metrics import distance_A, distance_V
from scb.paper.experiments.letter import BATCHES, LetterJob, chain_task, partner
from scb.paper.experiments.softmax import POWERS, StepJob
from scb.paper.experiments.spread import SpreadJob, spread_task
from scb.paper.experiments.to_the_end import GOALS, EndJob, Ends, LeastEndJob, least, to_the_end
from scb.training.loop import train
from scb.training.recipes import sgd, softmax


def row_of(job):
    """The one row of a job, to the six digits that are kept."""
    return {name: np.atleast_1d(values)[0] for name, values in job.run().items()}


def test_ends_of_a_real_run_are_those_of_its_recipe():
    """Trained by hand, stage by stage; the entries off the support by a loop."""
    job = EndJob(T=60, multiple=0.0, batch_size=64, gradients="real", replicate=1)
    row = row_of(job)
    task = random_task(3, 60, 2, 1)
    recipe = to_the_end(task, 0.0, 64, 0.1)
    two = train(task, replace(recipe, stages=recipe.stages[:1]), job.seed, judge=False)
    end = train(task, recipe, job.seed, judge=False)
    off = [two.A[t, k] for k in range(3) for t in range(60) if t not in task.support[k]]
    _, delta_A = deviations(task, two.V, two.A)
    assert_allclose(row["largest"], max(off), rtol=1e-5)
    assert_allclose(row["square_A"], mu_norm(delta_A, task.mu) ** 2, rtol=1e-5)
    assert_allclose([row["stage_V"], row["end_A"]], [distance_V(task, two.V) ** 2, distance_A(task, end.A) ** 2], rtol=1e-5)


@pytest.mark.parametrize("multiple", [0.0, 3.0])
def test_simulated_ends_agree_with_real_ones(multiple):
    """Medians over 12 tasks within a third; without ℓ1 the largest entry is that of NT normal variables."""
    found = {}
    for gradients in ("real", "simulated"):
        jobs = [EndJob(T=400, multiple=multiple, batch_size=256, gradients=gradients, replicate=i) for i in range(12)]
        rows = [row_of(job) for job in jobs]
        found[gradients] = {name: np.median([row[name] for row in rows]) for name in ("square_A", "stage_A", "largest")}
    for name in ("square_A", "stage_A", *(("largest",) if multiple == 0 else ())):
        assert 0.67 < found["simulated"][name] / found["real"][name] < 1.5, name


def test_a_search_takes_the_least_batch_that_is_good_twice():
    good, bad = Ends(diverged=False, end_V=0.0, end_A=0.0), Ends(diverged=False, end_V=0.0, end_A=1.0)
    runs = [(16, good), (32, bad), (64, good), (128, good), (256, bad)]
    assert least(runs, lambda ends: ends.within("the end", 0.04)) == (64.0, good)
    assert least(runs[:3], lambda ends: ends.within("the end", 0.04))[0] == np.inf
    assert not Ends(diverged=True).within("the end", 0.04)
    assert not good.within("stage 2", 0.04)  # nothing is known of it


def test_least_batches_are_in_order():
    """More is asked for a smaller ε; without ℓ1 more as Stage 2 leaves it than at the end."""
    rows = LeastEndJob(N=3, T=400, multiple=0.0, eta=0.1, ensemble="strong", replicate=0).run()
    batch = dict(zip(zip(rows["ending"], rows["epsilon"], strict=True), rows["batch_size"], strict=True))
    assert list(batch) == list(GOALS)
    assert batch["stage 2", 0.04] < batch["stage 2", 0.0025]
    assert batch["the end", 0.0025] < batch["stage 2", 0.0025] / 10
    assert rows["square_A"][1] <= 0.0025 < rows["square_A"][3]


@pytest.mark.parametrize("chain", ["strong", "dense"])
def test_a_spread_is_what_it_says(chain):
    task = spread_task(4, 50, 1.5, chain, replicate=2)
    assert_allclose(task.mu.max() / task.mu.min(), 1.5, rtol=1e-9)
    assert (1.4 * task.mu @ task.mu * (1 - 1e-9) <= task.K_P) or chain == "dense"


def test_at_uniform_mu_both_projectors_are_one():
    """To rounding, step by step, on the same samples; not so where μ is spread."""

    def signals(spread, projector):
        task = spread_task(3, 100, spread, "strong", 0)
        recipe = sgd(task, steps=(50, 0), batch_size=16, resolve_sign=False, projector=projector)
        return train(task, recipe, 7, every=10, judge=False).history["alpha_V"]

    assert_allclose(signals(1.0, "euclidean"), signals(1.0, "mu"), atol=1e-13)
    assert np.abs(signals(2.0, "euclidean") - signals(2.0, "mu")).max() > 1e-4


def test_the_leak_is_the_length_that_the_projector_lets_through():
    job = SpreadJob(T=50, spread=2.0, chain="strong", projector="euclidean", gradients="real", factor=1.0, replicate=0)
    row = row_of(job)
    mu = spread_task(3, 50, 2.0, "strong", 0).mu
    assert_allclose(row["leak"], mu @ (1 - mu / (mu @ mu)) ** 2, rtol=1e-5)
    assert row["right"] == (row["alpha_A"] > 0)


@pytest.mark.parametrize("gradients", ["real", "simulated"])
def test_the_letter_of_transfer(gradients, monkeypatch):
    """What a row says of its pair and of Δ_V at the start and after the first step, from the definitions."""
    monkeypatch.setitem(BATCHES, 3, 2048)
    job = LetterJob(N=3, T=100, chain="strong", gradients=gradients, overlap=0.7, c=1.0, replicate=0)
    row = row_of(job)
    task = chain_task(3, 100, "strong", 0)
    mu = task.mu
    P_hat = partner(task, "strong", 0.7, 0)
    assert_allclose(row["theta"] ** 2, 1 / log(400), rtol=1e-5)
    assert_allclose(row["condition"], (mu_inner(P_hat, task.P, mu) - mu @ mu) / (mu @ mu), rtol=1e-5)
    V = job.theta * P_hat + (1 - job.theta) * mu[:, None]
    p = population_projection(task, V, np.full((100, 3), 0.01))
    assert_allclose([row["alpha_V_start"], row["delta_V_start"]], [p.alpha_V, p.delta_V], rtol=1e-5)
    assert_allclose(row["ratio"], p.delta_V / (p.alpha_V * sqrt(task.K_P)), rtol=1e-5)
    assert_allclose(row["alpha_A_first"], p.alpha_V, rtol=0.3)  # one step with η = 1
    share = p.delta_V**2 * row["alpha_A_first"] / (task.K_P * p.alpha_V)
    assert_allclose(row["influence_first"], share, rtol=1e-5)
    assert row["influence"] >= row["influence_first"]
    assert row["growth"] >= 1


def test_raised_chains_meet_the_condition_on_K_P():
    task = chain_task(10, 50, "raised", 3)
    assert_allclose(task.K_P, 1.4 * task.mu @ task.mu, rtol=1e-9)
    assert_allclose(task.mu, random_task(10, 50, 2, 3, "uniform").mu, rtol=1e-9)


@pytest.mark.parametrize("chain", ["strong", "sharp"])
def test_a_partner_has_the_overlap_and_the_stationary_distribution(chain):
    """And for a sharp P it is about as sharp, so that the printed condition is met at a small overlap."""
    task = chain_task(10, 50, chain, 0)
    P_hat = partner(task, chain, 0.3, 0)
    mu = task.mu[:, None]
    cross, square = mu_inner(P_hat - mu, task.P - mu, task.mu), mu_norm(P_hat - mu, task.mu)
    assert_allclose(cross / (square * sqrt(task.K_P)), 0.3, atol=2e-3)
    assert_allclose(P_hat @ task.mu, task.mu, atol=1e-12)
    assert_allclose(P_hat.sum(axis=0), 1)
    assert (cross >= task.mu @ task.mu) == (chain == "sharp")


def test_a_raised_chain_passes_over_mu_that_do_not_allow_it():
    """Of the tasks at N = 3, some have ‖μ‖² too large for K_P = 1.4‖μ‖²: they are drawn anew, the others stay."""
    squares = [random_task(3, 30, 2, i, "uniform").mu @ random_task(3, 30, 2, i, "uniform").mu for i in range(30)]
    refused = [i for i, square in enumerate(squares) if 2.4 * square >= 1]
    assert refused
    for i in (refused[0], next(i for i in range(30) if i not in refused)):
        task = chain_task(3, 30, "raised", i)
        assert_allclose(task.K_P, 1.4 * task.mu @ task.mu, rtol=1e-9)
        assert (abs(task.mu @ task.mu - squares[i]) < 1e-9) == (i not in refused)


def test_step_sizes_of_softmax():
    """All powers are the recipe's at T = 50; the equivalent one is T² times that of the linear model."""

    def used(T, step):
        return row_of(StepJob(T=T, step=step, steps=5, ensemble="dirichlet", replicate=1))["eta_W"]

    names = [name for name in POWERS if name != "equivalent"]
    assert_allclose([used(50, name) for name in names], softmax(random_task(3, 50, 2, 1)).stages[0].eta_A)
    assert_allclose([used(200, name) / used(50, name) for name in names], [4 ** POWERS[name] for name in names], rtol=1e-5)
    task = random_task(3, 80, 2, 1, "dirichlet")
    linear = sgd(task, eta=(0.01, 0.01)).stages[0].eta_A * 3  # over μ_k, which is about 1/N
    assert_allclose(used(80, "equivalent"), 80**2 * linear, rtol=1e-5)
