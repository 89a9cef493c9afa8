"""Several heads: the loss as a low-rank factorisation, its gradients and its flow, against enumeration and training."""

import numpy as np
import pytest

import scb
from scb.geometry import function_distance
from scb.geometry.heads import function_singular_values, left_factor, right_factor
from scb.theory.expectations import _Moments, expected_gradients, expected_preconditioned_gradients, population_loss
from scb.theory.heads import factorisation_loss, least_loss, predicted_course, predicted_times, singular_value_flow
from scb.training.starts import random_start
from truth.enumeration import World, constrained_point, free_point, precondition, tiny_heads, tiny_task

WORLDS = [World.of(tiny_heads(N, T, heads, 0)) for heads in (1, 2, 3) for N in (2, 3) for T in (2, 3)]
IDS = [f"H={world.task.heads}, N={world.task.N}, T={world.task.T}" for world in WORLDS]
EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(params=WORLDS, ids=IDS)
def world(request):
    return request.param


def test_expected_loss_and_gradients_are_those_of_enumeration(world):
    rng = np.random.default_rng(0)
    for V, A in (free_point(world.task, rng), constrained_point(world.task, rng)):
        np.testing.assert_allclose(population_loss(world.task, V, A), world.mean(world.losses(V, A)), **EXACT)
        for ours, theirs in zip(expected_gradients(world.task, V, A), world.gradients(V, A), strict=True):
            np.testing.assert_allclose(ours, world.mean(theirs), **EXACT)


@pytest.mark.parametrize("projector", ["euclidean", "mu"])
def test_preconditioned_gradients_are_those_of_enumeration(world, projector):
    V, A = constrained_point(world.task, np.random.default_rng(1))
    truth = precondition(world.task, *(world.mean(g) for g in world.gradients(V, A)), projector)
    for ours, theirs in zip(expected_preconditioned_gradients(world.task, V, A), truth, strict=True):
        np.testing.assert_allclose(ours, theirs, **EXACT)


def test_the_loss_is_a_low_rank_factorisation(world):
    task = world.task
    V, A = constrained_point(task, np.random.default_rng(2))
    np.testing.assert_allclose(factorisation_loss(task, V, A), world.mean(world.losses(V, A)), **EXACT)
    np.testing.assert_allclose(least_loss(task), world.mean(world.losses(task.P, task.Q)), **EXACT)
    # M written out
    M = left_factor(task.Q, task.mu) @ right_factor(task.P, task.mu).T
    singular_values = np.linalg.svd(M, compute_uv=False)
    np.testing.assert_allclose(task.singular_values, np.append(singular_values, np.zeros(3))[: task.heads], **EXACT)
    # The formula of the issue, with sums written out
    V3, A3, P3, Q3 = (x if x.ndim == 3 else x[None] for x in (V, A, task.P, task.Q))
    error = np.einsum("htk,hnm->ktnm", A3, V3 - task.mu[:, None]) - np.einsum("htk,hnm->ktnm", Q3, P3 - task.mu[:, None])
    square = np.einsum("ktnm,k,m->", error**2, task.mu, task.mu)
    np.testing.assert_allclose(function_distance((V, A), (task.P, task.Q), task.mu) ** 2, square, **EXACT)


def test_the_flow_of_the_singular_values_is_that_of_enumeration(world):
    task = world.task
    V, A = constrained_point(task, np.random.default_rng(3))
    eta_V, eta_A = 0.3, 0.7
    values, changes = singular_value_flow(task, V, A, eta_V, eta_A)
    gV, gA = precondition(task, *(world.mean(g) for g in world.gradients(V, A)))
    # d/ds of the singular values of F(V − sη_V gV, A − sη_A gA): dσ² is an eigenvalue's derivative of FᵀF
    F = left_factor(A, task.mu) @ right_factor(V, task.mu).T
    dF = (
        -eta_A * left_factor(gA, task.mu) @ right_factor(V, task.mu).T
        - eta_V * left_factor(A, task.mu) @ left_factor(gV, task.mu).T
    )
    squares, W = np.linalg.eigh(F.T @ F)
    order = np.argsort(squares)[::-1][: np.linalg.matrix_rank(F)]
    np.testing.assert_allclose(values[: len(order)], np.sqrt(squares[order]), atol=1e-10)
    for i, j in enumerate(order):
        expected = W[:, j] @ (F.T @ dF) @ W[:, j] / np.sqrt(squares[j])
        np.testing.assert_allclose(changes[i], expected, **EXACT)


def test_one_head_is_the_paper():
    task = tiny_task(3, 3, 0)
    rng = np.random.default_rng(4)
    V, A = free_point(task, rng)
    moments = _Moments(task, V, A)
    np.testing.assert_allclose(moments.loss(), population_loss(task, V, A), **EXACT)
    for one, other in zip(moments.gradients(), expected_gradients(task, V, A), strict=True):
        np.testing.assert_allclose(one[0], other, **EXACT)
    np.testing.assert_allclose(task.singular_values, [np.sqrt((task.K_Q + 1 / task.T) * task.K_P)], **EXACT)


def _trained(task, V, A, eta, steps):
    """The singular values after each step of training without noise, and the last point."""
    values = []
    for _ in range(steps):
        values.append(function_singular_values(V, A, task.mu))
        gV, gA = expected_preconditioned_gradients(task, V, A)
        V, A = V - eta * gV, A - eta * gA
    return np.array(values), V, A


def test_singular_values_are_learned_one_after_another_as_predicted():
    task = scb.Task.random(4, 1000, 2, seed=1, heads=3)
    start = random_start(task.mu, task.T, 3, seed=2)
    eta = 0.05
    values, V, A = _trained(task, start.V, start.A, eta, 6000)
    predicted = predicted_times(task, start.V, start.A, eta, eta)
    measured = (values >= task.singular_values / 2).argmax(axis=0)
    np.testing.assert_allclose(measured, predicted, rtol=0.05)
    assert (np.diff(measured) > 0).all()
    course = predicted_course(task, start.V, start.A, eta, eta, 5999)
    assert np.abs(course - values).max() < 0.05 * task.singular_values[0]
    # What is left is slow: the columns of A must sum to 1, in a gauge that does not suit it
    assert function_distance((V, A), (task.P, task.Q), task.mu) < task.T**-0.5


def test_equal_heads_stay_equal_and_stop_at_the_best_single_head():
    task = scb.Task.random(4, 1000, 2, seed=1, heads=2)
    start = random_start(task.mu, task.T, 2, size=0.0)
    _, V, A = _trained(task, start.V, start.A, 0.2, 3000)
    assert np.abs(V[0] - V[1]).max() < 1e-12
    assert np.abs(A[0] - A[1]).max() < 1e-12
    excess = population_loss(task, V, A) - least_loss(task, heads=1)
    assert 0 < excess < 2 / task.T
    assert least_loss(task, heads=1) - least_loss(task) > 20 * excess
    assert np.isinf(predicted_times(task, start.V, start.A, 0.2, 0.2)[1])
