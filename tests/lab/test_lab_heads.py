"""Two heads in the lab are those of Python: the task, its samples, gradients, steps, singular values; and turning them works."""

import numpy as np
import pytest

from labtools import ask
from scb import Task, metrics
from scb.geometry import function_distance, function_singular_values
from scb.model import batch_gradient
from scb.task.sampling import Batch, sample
from scb.theory.heads import factorisation_loss
from scb.training.engine import step_keys
from scb.training.recipes.knowledge import Knowledge
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage, proximal_step
from scb.training.starts import random_start

EXACT = {"rtol": 0, "atol": 1e-12}
SETTINGS = {"N": 3, "T": 23, "sparsity": 4, "seed": 9, "ensemble": "strong"}


def the_task() -> Task:
    return Task.random(3, 23, 4, seed=9, heads=2)


def for_lab(A: np.ndarray) -> np.ndarray:
    """(H, T, N) as the lab has it: a column for each last token, with the positions of head 0, then of head 1."""
    return A.transpose(2, 0, 1).ravel()


def from_lab(values: list[float], N: int) -> np.ndarray:
    return np.reshape(values, (N, 2, -1)).transpose(1, 2, 0)


def a_point(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Any heads that keep the constraints, near the true ones."""
    start = random_start(task.mu, task.T, 2, seed=3, size=0.3)
    rng = np.random.default_rng(1)
    A = start.A + 0.4 * task.Q + 0.01 * rng.normal(size=start.A.shape)
    return start.V, A + (1 - A.sum(axis=(0, 1))) / (2 * task.T)


def test_the_task_is_that_of_python():
    task, found = the_task(), ask("headTask", **SETTINGS)
    np.testing.assert_allclose(np.reshape(found["P"], task.P.shape), task.P, **EXACT)
    assert found["positions"] == task.positions.T.ravel().tolist()
    assert found["owners"] == task.owners.T.ravel().tolist()
    np.testing.assert_allclose(found["weights"], task.weights.T.ravel(), **EXACT)
    np.testing.assert_allclose(found["constants"]["singular"], task.singular_values, **EXACT)
    known = Knowledge.from_task(task)
    assert (found["K_P"], found["K_Q"]) == pytest.approx((known.K_P, known.K_Q), abs=1e-12)


def test_samples_are_those_of_python():
    task = the_task()
    found = ask("headDraw", settings=SETTINGS, seed=11, batchSize=37, step=7)
    batch = Batch(np.reshape(found["context"], (37, task.T)).astype(np.uint8), np.array(found["last"]), np.array(found["label"]))
    V, A = a_point(task)
    mine, truth = batch_gradient(V, A, batch), Fresh(task)(V, A, 37, step_keys(11, range(7, 8))[0])
    assert mine.loss == pytest.approx(truth.loss, abs=1e-12)
    np.testing.assert_allclose(mine.A, truth.A, **EXACT)


@pytest.mark.parametrize("lam", [0.0, 0.003])
def test_a_step_is_that_of_python(lam):
    task = the_task()
    batch = sample(task, 29, seed=1)
    V, A = a_point(task)
    g = batch_gradient(V, A, batch)
    stage = Stage("2", 1, eta_V=0.1, eta_A=0.2, lam=lam, centred=True, projector="mu")
    truth_V, truth_A = proximal_step(V, A, g.V, g.A, task.mu, stage)
    settings = {"eta_V": 0.1, "eta_A": 0.2, "lam": lam, "centred": True, "projector": "mu", "batchSize": 29}
    given = {"context": batch.context.ravel(), "last": batch.last, "label": batch.label}
    found = ask("headStep", V=V.ravel(), A=for_lab(A), batch=given, mu=task.mu, stage=settings)
    assert found["loss"] == pytest.approx(g.loss, abs=1e-12)
    np.testing.assert_allclose(np.reshape(found["gV"], V.shape), g.V, **EXACT)
    np.testing.assert_allclose(from_lab(found["gA"], task.N), g.A, **EXACT)
    np.testing.assert_allclose(np.reshape(found["V"], V.shape), truth_V, **EXACT)
    np.testing.assert_allclose(from_lab(found["A"], task.N), truth_A, **EXACT)


def test_what_is_measured_is_what_python_measures():
    task = the_task()
    V, A = a_point(task)
    found = ask("headMeasure", settings=SETTINGS, V=V.ravel(), A=for_lab(A))
    values = function_singular_values(V, A, task.mu)
    assert (found["sigma_1"], found["sigma_2"]) == pytest.approx(values, abs=1e-12)
    assert found["loss"] == pytest.approx(factorisation_loss(task, V, A), abs=1e-12)
    assert found["function"] == pytest.approx(function_distance((V, A), (task.P, task.Q), task.mu), abs=1e-9)


def test_the_start_is_that_of_python():
    mu = the_task().mu
    truth = random_start(mu, 23, 2, seed=5).V
    np.testing.assert_allclose(np.reshape(ask("headStart", mu=mu, seed=5), truth.shape), truth, **EXACT)


@pytest.mark.parametrize("seed", range(8))
def test_turning_finds_the_true_heads_behind_any_mixture(seed):
    """Heads that compute the right function and share the patterns are the true ones after turning, in some order."""
    task = the_task()
    R = np.random.default_rng(seed).normal(size=(2, 2)) + 1.5 * np.eye(2)
    mu = task.mu[:, None]
    V = mu + np.tensordot(R, task.P - mu, axes=1)
    A = np.tensordot(np.linalg.inv(R).T, task.Q, axes=1)
    assert metrics.match_heads(V, A, task).overlap.min() < 0.99
    size = np.sqrt(np.mean([((P - mu) ** 2 * task.mu).sum() for P in task.P]))
    found = ask("turnHeads", V=V.ravel(), A=for_lab(A), mu=task.mu, size=size)
    turned = np.reshape(found["V"], V.shape), from_lab(found["A"], task.N)
    assert metrics.match_heads(*turned, task).overlap.min() > 0.98
