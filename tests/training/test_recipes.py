import re

import numpy as np
import pytest

import scb
from scb.cli import main
from scb.geometry import centred_square, line_A, line_V
from scb.metrics import similarity_A
from scb.sweeps.kinds import complete_train
from scb.task.sampling import Batch, sample
from scb.training.loop import train
from scb.training.recipe_options import recipe_options
from scb.training.recipes import RECIPES
from scb.training.recipes.knowledge import estimate
from scb.training.roundings import (
    SignalAbove,
    ThresholdNormalize,
    ThresholdProject,
    estimated_signal,
    noise_threshold,
)
from scb.training.schedules import MeasuredNoise
from scb.training.sources.population import Population
from scb.training.stages import Stage, proximal_step

TASK = scb.Task.random(3, 300, 2, seed=1)
PROMISING = {
    "paper": lambda task: scb.recipes.paper(task, steps=(60, 40, 20), threshold=0.001, lam=1e-3),
    "spectral": lambda task: scb.recipes.paper(task, steps=(60, 40, 20), start="spectral"),
    "literal": lambda task: scb.recipes.paper(task, steps=(60, 40, 20), resolve_sign=False),
    "tuned": lambda task: scb.recipes.tuned(task, eta=0.1),
    "sgd": lambda task: scb.recipes.sgd(task, steps=(60, 40)),
    "transfer": lambda task: scb.recipes.transfer(task, task.related(0.6).P),
    "unknown": lambda task: scb.recipes.tuned(task, eta=0.1, known=False),
}


@pytest.mark.parametrize("name", PROMISING)
def test_constraints_hold_at_every_step(name):
    """1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ and Vμ = μ to 1e-9 (μ as the recipe knows it)."""
    recipe = PROMISING[name](TASK)
    seen = []

    def look(run):
        np.testing.assert_allclose(run.V.sum(axis=0), 1, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run.A.sum(axis=0), 1, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run.V @ recipe.mu, recipe.mu, rtol=0, atol=1e-9)
        seen.append(run.stage)

    train(TASK, recipe, seed=1, every=1, callbacks=[look])
    assert len(seen) > 20


def test_a_step_is_the_three_lines_of_the_paper():
    """a' = a − (η_A/μ_k)∇; a'' = soft(a', λ); a = a'' + (1 − 1ᵀa'')1/T; written out by hand."""
    rng = np.random.default_rng(0)
    V, A = line_V(TASK, 0.2), line_A(TASK, 0.1)
    gV, gA = rng.normal(size=V.shape), rng.normal(size=A.shape)
    stage = Stage("2", 1, 0.3, 0.02, 0.01)
    _, got = proximal_step(V, A, gV, gA, TASK.mu, stage)
    for k in range(3):
        a = A[:, k] - 0.02 / TASK.mu[k] * gA[:, k]
        a = np.where(a > 0.01, a - 0.01, np.where(a < -0.01, a + 0.01, 0.0))
        np.testing.assert_allclose(got[:, k], a + (1 - a.sum()) / TASK.T, atol=1e-15)
    frozen_V, frozen_A = proximal_step(V, A, gV, gA, TASK.mu, Stage("x", 1, 0.0, 0.0, 0.01))
    assert frozen_V is V
    assert frozen_A is A


def test_centring_matters_with_lambda_only():
    rng = np.random.default_rng(0)
    V, A = line_V(TASK, 0.2), line_A(TASK, 0.1)
    gA = rng.normal(size=A.shape) + 5.0
    plain, centred = (
        [proximal_step(V, A, V, gA, TASK.mu, Stage("x", 1, 0.0, 0.01, lam, centred=c))[1] for c in (False, True)]
        for lam in (0.0, 0.02)
    )
    np.testing.assert_allclose(*plain, atol=1e-12)
    assert np.abs(centred[0] - centred[1]).max() > 1e-3


def test_the_papers_defaults_are_its_experiment():
    one, two = scb.recipes.paper(TASK).stages
    assert (one.steps, two.steps, one.batch_size, two.lam, one.lam) == (400, 600, 64, 1e-5, 0.0)
    assert one.eta_V == pytest.approx(0.01 / TASK.K_Q)
    assert two.eta_A == pytest.approx(0.005 / TASK.K_P)
    assert one.enter == ()
    assert two.stop is None
    assert scb.recipes.paper(TASK, resolve_sign=False).stages[1].enter == ()


def test_the_spectral_start_replaces_stage_1():
    """4,000 samples at T = 3,000: Stage 2 begins at the truth up to noise, on the right side of the mirror, and stays there."""
    task = scb.Task.random(3, 3000, 2, seed=1)
    recipe = scb.recipes.paper(task, start="spectral", steps=(400, 100, 0))
    assert [stage.name for stage in recipe.stages] == ["2"]
    assert recipe.stages[0].enter == recipe.stages[0].leave == ()
    assert recipe.samples == 4000
    np.testing.assert_array_equal(recipe.start.A > 0, task.Q > 0)
    run = train(task, recipe, seed=1)
    assert run.history["alpha_A"][0] == pytest.approx(1, abs=0.05)
    assert run.history["dist_A"][0] < 0.1
    assert run.history["dist_A_star"][-1] < 0.05
    assert run.history["samples"][-1] == 4000 + 100 * 64
    estimated = scb.recipes.paper(task, start="spectral", known=False)
    assert estimated.samples == 8000
    with pytest.raises(ValueError, match="start = 'warm'"):
        scb.recipes.paper(task, start="warm")


def test_population_gradients_learn_by_every_stage_of_the_paper():
    """With exact gradients, all three stages end near the truth; Stage 3 repairs what α_V ≠ α_A leaves."""
    recipe = scb.recipes.paper(TASK, eta=(0.1, 0.1, 0.2), steps=(100, 60, 60), lam=1e-5, threshold=0.01)
    run = train(TASK, recipe, source=Population(TASK))
    assert run.history["dist_A"][-1] < 0.01
    assert run.history["dist_V"][-1] < 0.01


def test_stage_1_ends_when_the_estimated_signal_crosses():
    recipe = scb.recipes.paper(TASK, eta=(0.1, 0.1, 0.1), steps=(500, 10, 0), signal=(0.1, None))
    run = train(TASK, recipe, source=Population(TASK), every=10)
    h = run.history
    end = np.flatnonzero(h["stage"] == 1)[-1]
    assert h["step"][end] < 500
    assert h["alpha_A"][end] >= 0.1 > h["alpha_A"][end - 1]


def test_estimated_signal_needs_no_truth_and_is_close_to_it():
    task = scb.Task.random(3, 5000, 2, seed=1)
    noise = np.random.default_rng(0).normal(scale=0.002, size=(5000, 3))
    for alpha in (0.1, 0.5, 1.0):
        A = line_A(task, alpha) + noise
        assert estimated_signal(A, task.mu) == pytest.approx(alpha, abs=0.02)
        assert estimated_signal(2 / 5000 - A, task.mu) == pytest.approx(alpha, abs=0.02)  # the mirror image too
        assert SignalAbove(alpha - 0.05)(task.P, A, task.mu)
        assert not SignalAbove(alpha + 0.05)(task.P, A, task.mu)
    assert estimated_signal(line_A(task, 0.0) + noise, task.mu) < 0.01


def test_noise_threshold_lets_few_false_positions_through():
    rng = np.random.default_rng(0)
    false = [(A - np.median(A, axis=0) > noise_threshold(A, 0.05)).sum() for A in rng.normal(size=(200, 1000, 3))]
    assert 2 <= np.sum(false) <= 20  # 0.05 on average in each of 200 matrices: Poisson with mean 10


def test_roundings_at_measured_noise_find_the_support():
    task = scb.Task.random(3, 5000, 2, seed=1)
    A = line_A(task, 0.3) + np.random.default_rng(0).normal(scale=0.005, size=(5000, 3))
    _, rounded = ThresholdProject()(task.P, A, task.mu)
    np.testing.assert_array_equal(rounded > rounded.min(axis=0) + 1e-9, task.Q > 0)
    _, normal = ThresholdNormalize(0.05)(task.P, A, task.mu)
    np.testing.assert_array_equal(normal > 0, task.Q > 0)


def test_measured_lambda_is_the_noise_of_one_coordinate():
    """Against the spread of real gradients: the standard deviation of η_A ∇_A/μ_k, entry by entry, within 15 %."""
    from scb.training.sources.sampled import Fresh

    task = scb.Task.random(3, 2000, 2, seed=1)
    V, A = line_V(task, 0.3), line_A(task, 0.3)
    stage = Stage("2", 1, 0.1, 0.1, MeasuredNoise(1.0), 500)
    lam = stage.levels(centred_square(V, task.mu), task.mu)
    g = Fresh(task)(V, A, 500, np.uint64(0)).A / task.mu
    spread = 0.1 * 1.4826 * np.median(np.abs(g - np.median(g, axis=0)), axis=0)
    np.testing.assert_allclose(spread / lam, 1, atol=0.35)


def test_estimates_of_what_the_paper_takes_as_known():
    for seed in range(6):
        task = scb.Task.random(3, 2000, 2, seed=seed)
        k = estimate(sample(task, 6000, seed=seed), task.N)
        np.testing.assert_allclose(k.mu, task.mu, atol=0.002)
        assert pytest.approx(task.K_P, rel=0.25) == k.K_P
        assert pytest.approx(task.K_Q, rel=0.3) == k.K_Q
        assert k.samples == 6000


def test_estimates_refuse_or_survive_poor_data():
    with pytest.raises(ValueError, match="the batch is empty"):
        estimate(sample(TASK, 0), 3)
    few = Batch(np.zeros((4, 10), np.uint8), np.zeros(4, np.uint8), np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match="token 1 never occurs"):
        estimate(few, 2)
    poor = estimate(sample(TASK, 10), 3)
    assert 0 < poor.K_P <= 1
    assert 0 < poor.K_Q <= 1


def test_tuned_learns_from_fresh_samples():
    task = scb.Task.random(3, 1000, 2, seed=4)
    run = train(task, scb.recipes.tuned(task), seed=5)
    assert run.history["dist_A"][-1] <= 0.05
    assert run.history["dist_V"][-1] <= 0.05


def test_transfer_finds_the_support_in_one_step_whatever_T_is():
    for T in (300, 20_000):
        task = scb.Task.random(3, T, 2, seed=3)
        recipe = scb.recipes.transfer(task, task.related(0.6, seed=1).P)
        run = train(task, recipe, seed=2)
        assert run.samples == pytest.approx(90_000, rel=0.01)  # K_Q and K_P are those of a random task, which differ a little
        assert run.history["dist_A"][-1] <= 0.05
        assert run.history["dist_V"][-1] <= 0.05
        np.testing.assert_array_equal(run.A > 0, task.Q > 0)


def test_softmax_and_linear_attention_learn_the_same():
    task = scb.Task.random(10, 50, 2, seed=1)
    soft = train(task, scb.recipes.softmax(task), seed=1, every=500)
    linear = train(task, scb.recipes.tuned(task), seed=1, every=500)
    assert similarity_A(task, soft.A) > 0.95
    assert similarity_A(task, linear.A) > 0.95
    assert soft.history["loss"][-1] == pytest.approx(linear.history["loss"][-1], rel=0.05)


def test_a_recipe_that_is_listed_is_known_by_name_with_its_options(monkeypatch, capsys, tmp_path):
    """One entry in RECIPES, and ``scb train`` and sweeps have it: names, types and errors come from the signature."""

    def brief(task: scb.Task, *, steps: int = 3, seed: int = 0) -> scb.Recipe:
        return scb.recipes.softmax(task, steps=steps)

    with pytest.raises(SystemExit):
        main(["train", "--recipe", "brief", "--out", str(tmp_path)])
    assert "recipe = 'brief': it must be one of 'paper', 'tuned'" in capsys.readouterr().err
    monkeypatch.setitem(RECIPES, "brief", brief)
    main(["train", "--recipe", "brief", "--T", "20", "--set", "steps=2", "--out", str(tmp_path)])
    assert scb.Run.load(tmp_path).step == 2
    assert complete_train({"recipe": "brief", "steps": 2})["steps"] == 2
    with pytest.raises(ValueError, match="'seed' means nothing to kind = 'train' with recipe = 'brief'"):
        complete_train({"recipe": "brief", "seed": 2})


def test_options_of_recipes_are_checked_and_converted():
    given = recipe_options("paper", {"lam": 0, "steps": (1, 2, 3), "signal": [0.1, None], "start": "spectral"})
    assert given == {"lam": 0.0, "steps": [1, 2, 3], "signal": [0.1, None], "start": "spectral"}
    assert isinstance(given["lam"], float)
    one = recipe_options("paper", {"eta": 0.02, "steps": 2000, "signal": 0.3})  # one value for as many equal ones
    assert one == {"eta": [0.02, 0.02, 0.02], "steps": [2000, 2000, 2000], "signal": [0.3, 0.3]}
    for recipe, options, message in (
        ("paper", {"eta": "x"}, "eta = 'x': it must be a number, or a list of 3 values, each a number"),
        ("sgd", {"lam": 1}, "recipe 'sgd' has no option 'lam': it has batch_size, eta"),
        ("transfer", {"V_hat": 1}, "recipe 'transfer' has no option 'V_hat': it has accuracy, eta"),
        ("paper", {"steps": [1, 2]}, "steps = [1, 2]: it must be an integer, or a list of 3 values, each an integer"),
        ("paper", {"known": 1}, "known = 1: it must be true or false"),
        ("tuned", {"projector": "l2"}, "projector = 'l2': it must be one of 'euclidean', 'mu'"),
        ("paper", {"start": "warm"}, "start = 'warm': it must be one of 'uniform', 'spectral'"),
        ("transfer", {"overlap": "x"}, "overlap = 'x': it must be a number"),
        ("paper", {"seed": "x"}, "seed = 'x': it must be an integer"),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            recipe_options(recipe, options)
    with pytest.raises(ValueError, match=r"^lam = array\(\[.{,60}….*it must be a number$"):  # not all of its entries
        scb.recipes.paper(TASK, lam=np.full(600, 1e-4))


@pytest.mark.parametrize("lam", [0.0, 0.02, MeasuredNoise(1.5)])
def test_levels_of_lambda_are_affine_in_the_spread_of_V(lam):
    """What a compiled step is told, (constant + per_spread·√K_V)·per_column, gives the levels at every K_V."""
    stage = Stage("2", 1, 0.1, 0.2, lam, batch_size=7)
    constant, per_spread, per_column = stage.affine_levels(TASK.mu)
    for K_V in (0.0, 0.3, 1.7):
        levels = stage.levels(K_V, TASK.mu)
        assert levels.shape == TASK.mu.shape
        np.testing.assert_allclose(levels, (constant + per_spread * np.sqrt(K_V)) * per_column)
    assert (lam != 0) == bool((stage.levels(1.0, TASK.mu) > 0).any())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stage("1", 1, 0.1, 0.1, MeasuredNoise(-2.0)), "lam = -2.0 in stage '1'"),
        (lambda: Stage("1", -1, 0.1, 0.1), "steps = -1 in stage '1'"),
        (lambda: Stage("1", 1, -0.1, 0.1), "eta_V = -0.1 in stage '1'"),
        (lambda: Stage("1", 1, 0.1, 0.1, float("nan")), "lam = nan in stage '1'"),
        (lambda: Stage("1", 1, 0.1, 0.1, batch_size=0), "batch_size = 0 in stage '1'"),
        (lambda: scb.recipes.transfer(TASK, np.eye(4)), "V_hat has shape (4, 4)"),
        (lambda: scb.recipes.transfer(TASK, TASK.P, theta=0.0), "theta = 0.0"),
        (lambda: scb.recipes.transfer(TASK, TASK.P, least_overlap=0), "least_overlap = 0.0: it must lie in (0, 1]"),
        (lambda: scb.recipes.paper(TASK, projector="l2"), "projector = 'l2': it must be one of 'euclidean', 'mu'"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
