"""Transfer: Appendix H's lemmas, the recipe that follows from the noise, and whether a run knows that it has failed."""

import numpy as np
import pytest

import scb
from scb.geometry import line_A, line_V, mu_inner, mu_norm, population_projection, trivial_V
from scb.metrics import distance_A, distance_V
from scb.paper.experiments.transfer import PretrainedJob, family_task
from scb.theory.noise import GradientNoise
from scb.training.engine import Fused, step_keys
from scb.training.loop import train
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import ThresholdProject
from scb.training.sources.population import Population
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage
from scb.training.starts import GivenStart
from scb.training.verdict import GOOD, HeldOut, by_truth

TASK = scb.Task.random(3, 300, 2, seed=1)


@pytest.mark.parametrize(("N", "overlap", "theta"), [(3, 0.8, 0.3), (5, 0.2, 1.0), (10, 0.5, 0.5)])
def test_the_lemma_on_initialisation(N, overlap, theta):
    """α_V = θ·overlap·√(K_P̂/K_P), at least θ‖μ‖²/K_P where the paper's condition holds; and ‖Δ_V‖² ≤ θ²‖P̂ − P‖²."""
    task = scb.Task.random(N, 400, 2, seed=2)
    related = task.related(overlap, seed=3)
    recipe = scb.recipes.transfer(task, related.P, theta=theta)
    p = recipe.start.projection(task)
    assert p.alpha_V == pytest.approx(theta * overlap * np.sqrt(related.K_P / task.K_P), abs=1e-9)
    correlation = mu_inner(related.P, task.P, task.mu) - task.mu @ task.mu
    assert p.alpha_V == pytest.approx(theta * correlation / task.K_P, abs=1e-9)
    assert p.delta_V <= theta * mu_norm(related.P - task.P, task.mu) + 1e-12
    np.testing.assert_allclose(recipe.start.V @ task.mu, task.mu, atol=1e-12)
    assert (p.alpha_A, p.delta_A) == (0, 0)


def test_the_lemma_on_the_first_step():
    """Without noise α_A becomes α_V and Δ_A stays 0; with the recipe's samples rounding leaves the support and α_A ≈ α_V."""
    for seed in range(3):
        task = scb.Task.random(3, 2000, 2, seed=seed)
        recipe = scb.recipes.transfer(task, task.related(0.5, seed=1).P)
        first, start = recipe.stages[0], recipe.start
        alpha = start.projection(task).alpha_V
        exact = train(task, Recipe("x", start, task.mu, (first,)), source=Population(task))
        p = population_projection(task, exact.V, exact.A)
        assert p.alpha_A == pytest.approx(alpha, abs=1e-12)
        assert p.delta_A < 1e-9
        taken = Fused(task).take(start.V, start.A, task.mu, first, seed, range(1))
        rounded = ThresholdProject()(taken.V, taken.A, task.mu)[1]
        p = population_projection(task, taken.V, rounded)
        assert p.alpha_A == pytest.approx(alpha, rel=0.2)
        noise = GradientNoise(task, start.V, start.A).variances_A() * first.eta_A**2 / first.batch_size  # of one step
        on_support = noise[task.positions, np.arange(task.N)]
        assert p.delta_A**2 <= 4 * (task.mu @ on_support.sum(axis=0) + 1 / task.T)
        smallest = alpha * task.weights.min()
        assert smallest > 5 * np.sqrt(on_support.max())  # so weak positions stand out


def test_batches_come_from_the_noise_and_not_from_the_length():
    def batches(task, **options):
        return np.array([stage.batch_size for stage in scb.recipes.transfer(task, task.related(0.6).P, **options).stages])

    short, long = (batches(scb.Task.sparse(TASK.P, TASK.positions, TASK.weights, T)) for T in (300, 100_000))
    np.testing.assert_allclose(short, long, rtol=0.01)
    np.testing.assert_array_equal(batches(TASK), batches(TASK, theta=0.1))
    first, second, third, last = batches(TASK, least_overlap=0.25) / batches(TASK)
    assert first == pytest.approx(4, rel=1e-3)
    assert second == third == last == 1
    flat = batches(family_task("flat", 3, 300, 2, 0)) / batches(family_task("strong", 3, 300, 2, 0))
    np.testing.assert_allclose(flat[[0, 1, 3]], 1 / 0.35**2, rtol=0.01)


@pytest.mark.parametrize(("family", "N", "T", "sparsity"), [("strong", 8, 200, 3), ("zipf", 6, 200, 2), ("flat", 3, 200, 2)])
def test_a_trained_value_matrix_transfers(family, N, T, sparsity):
    row = PretrainedJob(N=N, T=T, sparsity=sparsity, family=family).run()
    assert row["dist_hat"] <= 0.05
    assert row["learned"]
    assert row["says"]
    assert row["alpha_A"] == pytest.approx(row["alpha_V"], rel=0.15)


@pytest.mark.parametrize(("T", "sparsity"), [(1, 1), (2, 1), (2, 2), (5, 3)])
def test_short_contexts_do_no_harm(T, sparsity):
    task = scb.Task.random(3, T, sparsity, seed=1)
    run = train(task, scb.recipes.transfer(task, task.related(0.6).P), seed=1)
    assert run.diverged is None
    assert run.verdict == GOOD
    assert run.history["dist_V"][-1] <= 0.05
    assert run.history["dist_A"][-1] <= 0.05


# ----------------------------------------------------------------------------------------------------- verdicts


def missing(A):
    """A whose first column has lost its largest position."""
    A = A.copy()
    A[np.argmax(A[:, 0]), 0] = 0
    return A / A.sum(axis=0)


@pytest.mark.parametrize("source", [Population, Fresh])
@pytest.mark.parametrize(
    ("V", "A", "word"),
    [
        (TASK.P, TASK.Q, GOOD),
        (line_V(TASK, 0.97), TASK.Q, GOOD),
        (line_V(TASK, 0.8), TASK.Q, "learned up to normalisation: ‖A* − Q‖ is about"),
        (line_V(TASK, 0.3), line_A(TASK, 0.3), "learned up to normalisation: ‖A* − Q‖ is about"),
        (TASK.P, missing(TASK.Q), "too noisy: ‖"),
        (line_V(TASK, 0.05), line_A(TASK, 0.05), "too slow: the signal has come to 0.05, and V has 0.0025 of K_P"),
        (line_V(TASK, 1e-4), line_A(TASK, 0.0), "too slow: nothing in A stands out of the noise yet"),
        (trivial_V(TASK.mu), TASK.Q, "too slow: the signal has come to 1, and V has 0 of K_P"),
        (2 * trivial_V(TASK.mu) - TASK.P, 2 / TASK.T - TASK.Q, "sign unresolved: (V, A) is the mirror image"),
        (line_V(TASK, -0.2), line_A(TASK, -0.2), "sign unresolved: (V, A) is the mirror image"),
    ],
)
def test_held_out_samples_tell_what_the_truth_would(source, V, A, word):
    verdict = HeldOut(20_000, TASK.K_P, 2)(V, A, TASK.mu, source(TASK), step_keys(3, range(2)))
    assert verdict.verdict.startswith(word)
    if distance_V(TASK, V) < 0.999 * TASK.K_P**0.5 or word.startswith(
        "sign "
    ):  # from V = μ1ᵀ the gradient of A is nothing, whatever A is
        assert by_truth(scb.measure(TASK, V, A)).split(":")[0] == verdict.verdict.split(":")[0]
    if word == GOOD:
        assert verdict.dist_V == pytest.approx(distance_V(TASK, V), abs=0.03)
        assert verdict.dist_A == pytest.approx(distance_A(TASK, A), abs=0.03)
    assert verdict.samples == (0 if source is Population else 40_000)


def test_a_run_that_fails_says_so(tmp_path):
    recipe = scb.recipes.transfer(TASK, 2 * trivial_V(TASK.mu) - TASK.P)  # its overlap is −1
    with pytest.warns(UserWarning, match=r"recipe 'transfer' has failed\. (too|sign)"):
        run = train(TASK, recipe, seed=1, checkpoint=tmp_path)
    assert run.verdict is not None
    assert scb.Run.load(tmp_path).verdict == run.verdict
    assert train(TASK, recipe, seed=1, checkpoint=tmp_path, resume=True).verdict == run.verdict
    assert run.samples > sum(s.steps * s.batch_size for s in recipe.stages)


def test_a_run_that_diverges_says_so():
    stages = (Stage("1", 5, 1e5, 1e5),)
    recipe = Recipe("wild", GivenStart(TASK.P, TASK.Q), TASK.mu, stages, check=HeldOut(10, TASK.K_P, 2))
    with pytest.warns(UserWarning, match="diverged at step"):
        assert train(TASK, recipe).verdict.startswith("diverged at step")
