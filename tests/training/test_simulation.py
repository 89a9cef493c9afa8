from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import ks_2samp

import scb
from scb.geometry import line_A, line_V, mu_inner, mu_norm, population_projection, trivial_V
from scb.task.sampling import step_keys
from scb.theory.expectations import population_loss
from scb.theory.gaussian import noise_scales, residual_square
from scb.theory.noise import GradientNoise
from scb.training.collapsed import leaking_direction
from scb.training.loop import train
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import ResolveSign, ThresholdProject
from scb.training.schedules import MeasuredNoise
from scb.training.simulation import simulate
from scb.training.sources.population import Gaussian, Population
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage
from scb.training.starts import GivenStart, UniformAttention
from scb.training.updates import precondition_A, precondition_V

TASK = scb.Task.random(3, 150, 2, seed=0)
RECIPES = {
    "sgd": lambda: scb.recipes.sgd(TASK, eta=(0.04, 0.04), steps=(75, 75)),
    "prox": lambda: scb.recipes.paper(TASK, eta=(0.04, 0.04, 0.04), steps=(75, 75, 0), lam=2e-3, projector="mu"),
    "rounded": lambda: scb.recipes.paper(TASK, eta=(0.04, 0.04, 0.04), steps=(75, 50, 25), lam=4e-3, threshold=0.02),
}


def projected_noise(count, projector):
    """Preconditioned noise (h_V, h_A) of the Gaussian source at a fixed point, and its scales."""
    V, A = line_V(TASK, 0.3), line_A(TASK, 0.4)
    mean = Population(TASK)(V, A, 0, np.uint64(0))
    p = population_projection(TASK, V, A)
    scales = noise_scales(TASK, p, 50)
    draws = [Gaussian(TASK)(V, A, 50, np.uint64(i)) for i in range(count)]
    return [(precondition_V(g.V - mean.V, TASK.mu, projector), precondition_A(g.A - mean.A, TASK.mu)) for g in draws], scales


def test_gaussian_noise_is_isotropic_with_the_projector_of_the_mu_geometry():
    noise, (scale_V, scale_A) = projected_noise(3000, "mu")
    rng = np.random.default_rng(1)
    for which, scale, degrees in ((0, scale_V, 4), (1, scale_A, 3 * 149)):
        squares = [mu_inner(h[which], h[which], TASK.mu) for h in noise]
        assert np.mean(squares) == pytest.approx(degrees * scale**2, rel=0.05)
        for _ in range(3):  # any direction that the constraints allow
            raw = rng.normal(size=noise[0][which].shape)
            direction = precondition_V(raw * TASK.mu, TASK.mu) if which == 0 else raw - raw.mean(axis=0)
            direction /= np.sqrt(mu_inner(direction, direction, TASK.mu))
            along = [mu_inner(h[which], direction, TASK.mu) for h in noise]
            assert np.std(along) == pytest.approx(scale, rel=0.06)


def test_the_euclidean_projector_leaves_noise_in_one_direction_of_the_rows():
    """Across û the noise is the isotropic one; along it, there is the common part of the gradients beside it."""
    noise, (scale_V, _) = projected_noise(3000, "euclidean")
    u, length = leaking_direction(TASK.mu)
    along = np.array([h @ (TASK.mu * u) for h, _ in noise])  # (draws, N)
    across = [mu_norm(h - np.outer(h @ (TASK.mu * u), u), TASK.mu) ** 2 for h, _ in noise]
    p = population_projection(TASK, line_V(TASK, 0.3), line_A(TASK, 0.4))
    leak = length**2 * residual_square(TASK, p) / 50
    assert np.mean(across) == pytest.approx(2 * scale_V**2, rel=0.05)
    assert np.square(along).sum(axis=1).mean() == pytest.approx(2 * scale_V**2 + leak, rel=0.05)
    assert leak > scale_V**2 / 2  # there is something to see
    np.testing.assert_allclose(length**2, np.sum(TASK.mu**3) / (TASK.mu @ TASK.mu) ** 2 - 1, atol=1e-12)
    for uniform in (np.full(4, 0.25), np.array([0.5, 0.5])):
        direction, length = leaking_direction(uniform)
        assert length < 1e-9
        np.testing.assert_allclose([direction @ uniform, direction**2 @ uniform], [0, 1], atol=1e-12)


@pytest.mark.parametrize("N", [3, 10])
@pytest.mark.parametrize("projector", ["euclidean", "mu"])
def test_the_gaussian_model_has_the_size_of_the_exact_noise(N, projector):
    """At the start E‖h_V‖_μ² is right to O(1/T); later r and m depend on each other, which it leaves out: much so where N = 3."""
    task = scb.Task.random(N, 2000, 2, seed=0)
    _, length = leaking_direction(task.mu)
    for alpha, apart in ((0.0, 0.002), (0.5, 0.5 if N == 3 else 0.05), (1.0, 0.5 if N == 3 else 0.05)):
        V, A = line_V(task, alpha), line_A(task, alpha)
        p = population_projection(task, V, A)
        exact = GradientNoise(task, V, A, projector)
        scale_V, scale_A = noise_scales(task, p, 1)
        leak = length**2 * residual_square(task, p) if projector == "euclidean" else 0.0
        assert (N - 1) ** 2 * scale_V**2 + leak == pytest.approx(exact.square_V(), rel=apart)
        if alpha:
            assert N * (task.T - 1) * scale_A**2 == pytest.approx(exact.square_A(), rel=0.1)


@pytest.mark.parametrize(("N", "T"), [(3, 500), (3, 50_000), (10, 500), (10, 5000)])
def test_the_exact_noise_is_that_of_real_gradients(N, T):
    """E‖h‖_μ² and the variances along P and Q, at the start and on the way, within sampling error; both projectors."""
    task = scb.Task.random(N, T, 2, seed=0)
    fresh = Fresh(task)
    B, count = 16, 200 if T == 50_000 else 500
    for alpha in (0.0, 0.4):
        V, A = line_V(task, alpha), line_A(task, alpha)
        mean = Population(task)(V, A, 0, np.uint64(0))
        draws = [fresh(V, A, B, key) for key in step_keys(5, range(count))]
        h_A = [precondition_A(g.A - mean.A, task.mu) for g in draws]
        for projector in ("euclidean", "mu"):
            exact = GradientNoise(task, V, A, projector)
            h_V = [precondition_V(g.V - mean.V, task.mu, projector) for g in draws]
            measured = {
                "square_V": ([mu_norm(h, task.mu) ** 2 for h in h_V], exact.square_V()),
                "square_A": ([mu_norm(h, task.mu) ** 2 for h in h_A], exact.square_A()),
                "along_P": ([mu_inner(h, task.P, task.mu) ** 2 for h in h_V], exact.variance_along_V(task.P)),
                "along_Q": ([task.inner_Q(h) ** 2 for h in h_A], exact.variance_along_A(task.Q)),
            }
            for name, (values, variance) in measured.items():
                error = np.std(values) / np.sqrt(count) + 1e-15
                assert abs(np.mean(values) - variance / B) < 4.5 * error, (alpha, projector, name)


def test_residual_square_is_twice_the_population_loss():
    V, A = line_V(TASK, 0.7), line_A(TASK, 0.2)
    p = population_projection(TASK, V, A)
    assert residual_square(TASK, p) == pytest.approx(2 * population_loss(TASK, V, A), abs=1e-12)


@pytest.mark.parametrize("name", RECIPES)
def test_collapsed_agrees_in_distribution_with_the_full_source(name):
    """Two-sample Kolmogorov-Smirnov on signals and errors at three steps; 12 tests a recipe, so 1e-3 each."""
    recipe = RECIPES[name]()
    full = [train(TASK, recipe, s, source=Gaussian(TASK), every=50).history for s in range(80)]
    fast = [simulate(TASK, recipe, s, every=50) for s in range(200)]
    for step in (50, 100, 150):
        for column in ("alpha_V", "alpha_A", "delta_V", "delta_A"):
            one, two = ([h[column][h["step"] == step][0] for h in runs] for runs in (full, fast))
            assert ks_2samp(one, two).pvalue > 1e-3, (step, column)


def test_the_two_sample_test_can_fail():
    one = [simulate(TASK, RECIPES["sgd"](), s)["delta_A"][-1] for s in range(80)]
    other = scb.recipes.sgd(TASK, eta=(0.04, 0.04), steps=(75, 75), batch_size=32)
    two = [simulate(TASK, other, s)["delta_A"][-1] for s in range(80)]
    assert ks_2samp(one, two).pvalue < 1e-3


def test_huge_sizes_take_little():
    """N = 500, T = 100,000: a dense A alone would take 400 MB."""
    task = scb.Task.random(500, 100_000, 2)
    rates = 0.02 / task.K_Q, 0.02 / task.K_P
    one = Stage("1", 500, *rates, 0.0, 200_000)
    two = Stage("2", 100, *rates, MeasuredNoise(4.0), 200_000, enter=(ResolveSign(), ThresholdProject()))
    history = simulate(task, Recipe("large", UniformAttention(trivial_V(task.mu), task.T), task.mu, (one, two)))
    measured = ("alpha_V", "alpha_A", "delta_V", "delta_A", "dist_V", "dist_A")
    assert tuple(history) == ("step", "stage", "samples", "loss", *measured, "explicit")
    assert history["alpha_A"][-1] > 0.1
    assert history["explicit"].max() < 20_000  # of 50,000,000


def test_uniform_attention_stands_where_the_same_arrays_stand():
    V = scb.recipes.transfer(TASK, TASK.related(0.5).P).start.V
    short, written = UniformAttention(V, TASK.T), GivenStart(V, np.full((TASK.T, TASK.N), 1 / TASK.T))
    np.testing.assert_array_equal(short.A, written.A)
    np.testing.assert_allclose(astuple(short.projection(TASK)), astuple(written.projection(TASK)), atol=1e-12)


def test_a_rounding_of_ones_own_can_be_simulated():
    """It needs ``on_collapsed``, and nothing in the simulation has to know it."""

    class Restart:
        def __call__(self, V, A, mu):
            return V, np.full_like(A, 1 / len(A))

        def on_collapsed(self, state):
            state.place(state.p.alpha_V, state.p.delta_V, K_A=0.0, K_AQ=0.0)

    stage = Stage("1", 1, 0.0, 0.0, leave=(Restart(),))
    history = simulate(TASK, Recipe("x", GivenStart(line_V(TASK, 0.3), TASK.Q), TASK.mu, (stage,)))
    np.testing.assert_allclose(history["alpha_A"], [1, 0], atol=1e-12)
    np.testing.assert_allclose(history["alpha_V"], 0.3, atol=1e-12)


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(ValueError, match="only 'proximal' stages"):
        simulate(TASK, scb.recipes.softmax(TASK, steps=3))
    with pytest.raises(ValueError, match="rule = 'vanilla' in stage '1': only 'proximal' stages"):
        simulate(TASK, scb.recipes.sgd(TASK, preconditioned=False))
    stage = Stage("1", 1, 0.1, 0.1, enter=(lambda V, A, mu: (V, A),))
    with pytest.raises(ValueError, match="cannot be simulated"):
        simulate(TASK, Recipe("x", GivenStart(TASK.P, TASK.Q), TASK.mu, (stage,)))
