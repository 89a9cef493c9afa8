import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scb import Task
from scb.geometry import (
    line_A,
    line_V,
    population_projection,
    project,
    threshold_normalize,
    threshold_project,
)
from scb.geometry.columns import column_medians
from scb.training.roundings import mirror, noise_of, resolve_sign, skewness
from scb.training.updates import precondition_A, precondition_V, soft_threshold
from truth.enumeration import TASKS, precondition

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("projector", ["euclidean", "mu"])
def test_preconditioners_equal_the_printed_matrices_and_keep_the_constraints(task, projector):
    rng = np.random.default_rng(0)
    gV, gA = rng.normal(size=(task.N, task.N)), rng.normal(size=(task.T, task.N))
    expected_V, expected_A = precondition(task, gV, gA, projector)
    got_V, got_A = precondition_V(gV, task.mu, projector), precondition_A(gA, task.mu)
    np.testing.assert_allclose(got_V, expected_V, atol=1e-12)
    np.testing.assert_allclose(got_A, expected_A, atol=1e-12)
    for zero in (got_V.sum(axis=0), got_V @ task.mu, got_A.sum(axis=0)):
        np.testing.assert_allclose(zero, 0, atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(-3, 3), st.floats(0, 2))
def test_soft_threshold_minimises_its_objective(a, lam):
    grid = np.linspace(-4, 4, 8001)
    best = grid[np.argmin(0.5 * (grid - a) ** 2 + lam * np.abs(grid))]
    assert abs(float(soft_threshold(np.array(a), lam)) - best) <= 1e-3


def test_soft_threshold_has_both_branches():
    np.testing.assert_allclose(soft_threshold(np.array([-2.0, -0.5, 0.5, 2.0]), 1.0), [-1, 0, 0, 1])


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 50), st.integers(2, 6), seeds)
def test_projection_is_the_nearest_point(T, N, seed):
    rng = np.random.default_rng(seed)
    A, other = rng.normal(size=(T, N)), rng.normal(size=(T, N))
    near = project(A)
    np.testing.assert_allclose(near.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(project(near), near, atol=1e-12)
    other = project(other)  # any other point of the plane is at least as far
    assert (np.linalg.norm(A - near, axis=0) <= np.linalg.norm(A - other, axis=0) + 1e-12).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 50), st.integers(2, 6), seeds)
def test_roundings_keep_columns_summing_to_one(T, N, seed):
    A = np.random.default_rng(seed).normal(size=(T, N))
    for rounded in (threshold_project(A, 0.3), threshold_normalize(A, 0.3)):
        np.testing.assert_allclose(rounded.sum(axis=0), 1, atol=1e-9)
    kept = threshold_normalize(A, 0.3)
    assert (kept >= 0).all()
    empty = (A < 0.3).all(axis=0)
    np.testing.assert_allclose(kept[:, empty], 1 / T)
    assert ((kept > 0) == (A >= 0.3))[:, ~empty].all()


def test_thresholding_projection_makes_small_entries_equal_and_moves_the_signal_by_one_over_T():
    """The lemma on the effect of rounding: α_A changes by (1 − b)/(T·K_Q), b the kept mass; the paper omits the K_Q."""
    for T in (100, 1000):
        task = Task.random(3, T, 2, seed=1)
        A = line_A(task, 0.4)
        rounded = threshold_project(A, 0.02)
        off = task.Q == 0
        assert np.ptp(rounded[off[:, 0], 0]) < 1e-15
        V = line_V(task, 0.4)
        change = population_projection(task, V, rounded).alpha_A - 0.4
        kept = np.where(off, 0, A).sum(axis=0)
        np.testing.assert_allclose(change, task.mu @ (1 - kept) / (T * task.K_Q), atol=1e-12)


def test_mirror_negates_both_signals_and_keeps_the_constraints():
    task = Task.random(3, 50, 2, seed=1)
    V, A = mirror(line_V(task, 0.3), line_A(task, 0.2), task.mu)
    p = population_projection(task, V, A)
    np.testing.assert_allclose([p.alpha_V, p.alpha_A], [-0.3, -0.2], atol=1e-12)
    np.testing.assert_allclose([p.delta_V, p.delta_A], 0, atol=1e-7)
    np.testing.assert_allclose(V @ task.mu, task.mu, atol=1e-12)
    np.testing.assert_allclose(A.sum(axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("alpha", [-0.2, -0.02, 0.02, 0.2])
def test_sign_is_resolved_under_noise(alpha):
    for seed in range(20):
        task = Task.random(3, 5000, 2, seed=seed)
        noise = project(np.random.default_rng(seed).normal(scale=0.05 * abs(alpha), size=(5000, 3))) - 1 / 5000
        V, A, flipped = resolve_sign(line_V(task, alpha), line_A(task, alpha) + noise, task.mu)
        assert flipped == (alpha < 0)
        assert population_projection(task, V, A).alpha_A > 0


def test_skewness_of_a_constant_column_is_zero():
    np.testing.assert_array_equal(skewness(np.full((7, 2), 1 / 7)), 0)
    assert skewness(np.eye(7)[:, :1])[0] > 1


def test_normalising_at_a_threshold_that_keeps_negatives_is_refused():
    with pytest.raises(ValueError, match="threshold = 0"):
        threshold_normalize(np.eye(3), 0.0)


@pytest.mark.parametrize("shape", [(7, 3), (8, 3), (1, 2), (501, 4), (4, 6, 3), (2, 501, 3)])
def test_medians_have_the_bits_of_numpys(shape):
    rng = np.random.default_rng(0)
    mostly_equal = np.where(rng.random(shape) < 0.3, rng.normal(size=shape), 0.1)
    for A in (rng.normal(size=shape), rng.integers(0, 3, shape) / 7, mostly_equal):
        expected = np.median(A, axis=-2, keepdims=A.ndim == 3)
        np.testing.assert_array_equal(column_medians(A), expected)
        np.testing.assert_array_equal(column_medians(np.asfortranarray(A)), expected)
        spread = 1.4826 * np.median(np.abs(A - expected), axis=-2, keepdims=A.ndim == 3)
        np.testing.assert_array_equal(noise_of(A)[1], spread)
