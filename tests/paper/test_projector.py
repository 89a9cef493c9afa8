"""The projector as an experiment: its jobs beside closed forms, and the fit of what Stage 1 needs."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from scb.geometry import uniform_start
from scb.jobs.table import concatenate
from scb.paper.experiments.projector import GOAL, LADDER, SignJob, StartNoiseJob, same_chain, sign_batch
from scb.paper.stage_one import least_batches, stage_one_slopes
from scb.theory.noise import GradientNoise
from scb.training.recipes import sgd
from scb.training.simulation import simulate


@pytest.mark.parametrize("N", [3, 10])
def test_the_leak_is_what_is_left_for_long_contexts(N):
    """E‖h_V‖_μ² at the start: the closed form of the leak plus O(1/T) with the paper's projector, O(1/T) alone with the other."""
    for replicate in range(3):
        found = {}
        for T in (1000, 10_000):
            task = same_chain(N, T, replicate)
            start = uniform_start(task.mu, T)
            for projector in ("euclidean", "mu"):
                found[T, projector] = GradientNoise(task, *start, projector).square_V()
        leak = (1 - task.mu @ task.mu) * (np.sum(task.mu**3) / (task.mu @ task.mu) ** 2 - 1)
        assert found[1000, "mu"] / found[10_000, "mu"] == pytest.approx(10, rel=0.01)
        assert found[1000, "mu"] == pytest.approx((1 - task.mu @ task.mu) * (N - 1) / 1000, rel=0.01)
        for T in (1000, 10_000):
            assert found[T, "euclidean"] - found[T, "mu"] == pytest.approx(leak, rel=20 / T)


def test_start_noise_is_measured_and_exact():
    for projector in ("euclidean", "mu"):
        rows = [StartNoiseJob(T=500, projector=projector, replicate=i, batches=40).run() for i in range(3)]
        assert np.mean([r["square"] / r["exact"] for r in rows]) == pytest.approx(1, abs=0.25)
        assert all((r["limit"] > 0) == (projector == "euclidean") for r in rows)


def test_the_same_chain_for_every_length():
    one, two = same_chain(3, 200, 5), same_chain(3, 12_800, 5)
    np.testing.assert_array_equal(one.P, two.P)
    assert {point[0] for point in LADDER} == {200, 400, 800, 1600, 3200, 6400, 12_800}


@pytest.mark.parametrize("projector", ["euclidean", "mu"])
def test_the_batch_that_the_drift_asks_for_finds_the_sign(projector):
    """Simulated Stage 1 with the batch of the formula, and with a quarter of it."""
    right = {1.0: [], 0.25: []}
    for share, found in right.items():
        for i in range(60):
            task = same_chain(3, 2000, i)
            batch = max(round(share * sign_batch(task, 0.05, projector)), 1)
            recipe = sgd(task, eta=(0.05, 0.05), steps=(140, 0), batch_size=batch, resolve_sign=False, projector=projector)
            found.append(simulate(task, recipe, i, every=140)["alpha_A"][-1] > 0)
    assert np.mean(right[1.0]) == pytest.approx(GOAL, abs=0.14)
    assert np.mean(right[0.25]) == pytest.approx(ndtr(ndtri(GOAL) / 2), abs=0.2)


def test_a_run_of_stage_one_says_which_sign_it_found():
    row = SignJob(T=100, batch_size=256, projector="mu", eta=0.1).run()
    assert row["right"] == (row["alpha_A"] > 0)
    assert row["samples"] % 256 == 0


def test_the_fit_finds_exponents_that_were_put_in():
    rng = np.random.default_rng(0)
    tables = []
    for projector, exponent in (("euclidean", 2.0), ("mu", 1.0)):
        for T in (200, 400, 800, 1600):
            least = 10 * (T / 200) ** exponent
            for factor in (0.5, 1, 2):
                count = 200
                chance = ndtr(ndtri(GOAL) * np.sqrt(factor))
                rows = {"T": T, "batch_size": least * factor, "projector": projector}
                table = {name: np.full(count, value) for name, value in rows.items()}
                tables.append(table | {"right": rng.random(count) < chance, "replicate": np.arange(count)})
    table = concatenate(tables)
    slopes = stage_one_slopes(table, draws=40)
    for projector, exponent in (("euclidean", 2.0), ("mu", 1.0)):
        slope, low, high = slopes[projector]
        assert low < exponent < high
        assert slope == pytest.approx(exponent, abs=0.3)
        T, least = least_batches({name: column[table["projector"] == projector] for name, column in table.items()})
        np.testing.assert_allclose(np.log(least / (10 * (T / 200) ** exponent)), 0, atol=0.6)
