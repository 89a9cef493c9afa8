"""Fisher information and the Cramér–Rao bound against enumeration, differences and the distributions of estimators."""

import numpy as np
import pytest

from scb import Task
from scb.kernels import mixture
from scb.theory.fisher import Information
from scb.theory.information import cramer_rao, fisher_information
from truth import twins as reference
from truth.enumeration import WORLDS


def constraints(task):
    """One row a constraint on (P.ravel(), weights.T.ravel()): column sums of P, row sums of q; padded slots are fixed at 0."""
    N, s = task.N, task.sparsity
    rows = []
    for m in range(N):
        row = np.zeros((N, N))
        row[:, m] = 1
        rows.append(np.r_[row.ravel(), np.zeros(N * s)])
    for k in range(N):
        row = np.zeros((N, s))
        row[k] = 1
        rows.append(np.r_[np.zeros(N * N), row.ravel()])
    for k, j in np.argwhere(task.weights.T == 0):
        row = np.zeros((N, s))
        row[k, j] = 1
        rows.append(np.r_[np.zeros(N * N), row.ravel()])
    return np.array(rows)


def bound_by_pseudo_inverse(task, J):
    """The definition: the pseudo-inverse of J on the tangent space, its diagonal."""
    _, size, basis = np.linalg.svd(constraints(task))
    basis = basis[np.sum(size > 1e-9) :].T
    return np.diag(basis @ np.linalg.inv(basis.T @ J @ basis) @ basis.T)


def enumerated_information(world):
    """E[∇ log f ∇ log fᵀ] over every outcome of a tiny world, with the gradient by its definition."""
    task = world.task
    N, s = task.N, task.sparsity
    J = np.zeros((N * N + N * s,) * 2)
    for x, k, o, p in zip(world.context, world.last, world.label, world.probability, strict=True):
        f = sum(task.weights[j, k] * task.P[o, x[task.positions[j, k]]] for j in range(s))
        d_P, d_q = np.zeros((N, N)), np.zeros((N, s))
        for j in np.flatnonzero(task.weights[:, k]):
            token = x[task.positions[j, k]]
            d_P[o, token] += task.weights[j, k] / f
            d_q[k, j] += task.P[o, token] / f
        d = np.r_[d_P.ravel(), d_q.ravel()]
        J += p * np.outer(d, d)
    return J


def dense(information):
    """The blocks as one matrix."""
    N, s = information.free_q.shape
    J = np.zeros((N * N + N * s,) * 2)
    for o in range(N):
        at = slice(o * N, (o + 1) * N)
        J[at, at] = information.PP[o]
        J[at, N * N :] = information.Pq[o].reshape(N, -1)
        J[N * N :, at] = information.Pq[o].reshape(N, -1).T
    for k in range(N):
        at = slice(N * N + k * s, N * N + (k + 1) * s)
        J[at, at] = information.qq[k]
    return J


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_information_equals_enumeration(world):
    J = enumerated_information(world)
    np.testing.assert_allclose(dense(fisher_information(world.task)), J, atol=1e-12)


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_bound_is_the_pseudo_inverse_on_the_tangent_space(world):
    task = world.task
    bound = cramer_rao(task, n=50)
    exact = bound_by_pseudo_inverse(task, enumerated_information(world)) / 50
    np.testing.assert_allclose(np.r_[bound.P.ravel(), bound.Q.T.ravel()], exact, rtol=1e-7, atol=1e-12)
    assert bound.P.sum() == pytest.approx(exact[: task.N**2].sum())
    assert bound.Q.sum() == pytest.approx(exact[task.N**2 :].sum())


def test_information_is_minus_the_second_derivative_of_the_expected_log_likelihood():
    world = WORLDS[7]
    task, h = world.task, 1e-4
    N, s = task.N, task.sparsity
    rng = np.random.default_rng(0)
    J = dense(fisher_information(task))

    def expected(theta):
        P, q = theta[: N * N].reshape(N, N), theta[N * N :].reshape(N, s)
        mass = q[world.last][:, :, None] * np.eye(N)[world.context[np.arange(len(world))[:, None], task.positions.T[world.last]]]
        return world.mean(np.log(np.einsum("im,im->i", mass.sum(axis=1), P[world.label])))

    at = np.r_[task.P.ravel(), task.weights.T.ravel()]
    _, size, basis = np.linalg.svd(constraints(task))
    basis = basis[np.sum(size > 1e-9) :]
    for _ in range(5):
        d = rng.normal(size=len(basis)) @ basis * 0.3
        second = (expected(at + h * d) - 2 * expected(at) + expected(at - h * d)) / h**2
        assert second == pytest.approx(-d @ J @ d, rel=1e-5)


def test_a_single_position_has_the_multinomial_bound():
    """With one position a token, column m of P is a multinomial with n·μ_m draws: variance P(1 − P)/(n μ_m)."""
    rng = np.random.default_rng(1)
    task = Task.sparse(rng.dirichlet(np.ones(5), 5).T, np.array([[3, 1, 4, 1, 0]]), np.ones((1, 5)), 6)
    bound = cramer_rao(task, n=1000)
    np.testing.assert_allclose(bound.P, task.P * (1 - task.P) / (1000 * task.mu), rtol=1e-9)
    assert (bound.Q == 0).all()


def test_zeros_of_P_count_as_known():
    task = Task.random(2, 20, 2, seed=1)  # the swap of two tokens: each column has one entry, which the constraint fixes
    bound = cramer_rao(task, n=100)
    assert (bound.P == 0).all()
    assert (bound.Q > 0).all()


def test_drawn_contexts_approach_the_enumerated_ones():
    task = Task.random(3, 100, 2, seed=3)
    exact = fisher_information(task).variances()
    drawn = fisher_information(task, draws=200_000, enumerated=1).variances()
    for one, other in zip(drawn, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.05)
    assert not np.array_equal(drawn[0], exact[0])


def test_kernels_equal_their_twins():
    rng = np.random.default_rng(0)
    N, s, n = 5, 3, 200
    P = np.ascontiguousarray(rng.dirichlet(np.ones(N), N).T)
    q = rng.dirichlet(np.ones(s), N)
    q[2, 1] = 0.0
    tokens, last, label = rng.integers(N + 1, size=(n, s)), rng.integers(N, size=n), rng.integers(N, size=n)
    weight = rng.random(n)
    gq, gP = np.ones_like(q), np.ones_like(P)
    g = rng.random(n)  # the background of each sample
    total = mixture.likelihood_gradient(tokens, last, label, weight, g, q, P, gq, gP)
    twin = reference.likelihood_gradient(tokens, last, label, weight, g, q, P)
    assert total == pytest.approx(twin[0])
    for fast, plain in zip((gq, gP), twin[1:], strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-12)
    inside = np.minimum(tokens, N - 1)
    blocks = Information.from_contexts(inside, last, weight, q, P[:, :N])
    np.testing.assert_allclose(
        dense(blocks), reference.likelihood_information(inside, last, weight, q, P[:, :N]), rtol=1e-10, atol=1e-12
    )
    distributions, state = rng.dirichlet(np.ones(N), 7), rng.integers(7, size=n)
    PP, Pq, qq = np.zeros((N, N, N)), np.zeros((N, N, N, s)), np.zeros((N, s, s))
    mixture.likelihood_information(tokens, last, weight, state, distributions, q, P, PP, Pq, qq)
    whole = dense(Information(PP, Pq, qq, np.ones((N, N), bool), np.ones((N, s), bool)))
    np.testing.assert_allclose(
        whole, reference.likelihood_information(tokens, last, weight, q, P, distributions[state]), rtol=1e-10, atol=1e-12
    )
    out = np.zeros((n, N))
    mixture.add_distributions(tokens, last, state, distributions, q, P.T.copy(), out)
    np.testing.assert_allclose(out, reference.distributions(tokens, last, q, P, distributions[state]), rtol=1e-12)


def test_what_cannot_be_known_is_nan():
    """Two positions that always hold the same token: their weights cannot be told apart, but P is as if there were one."""
    rng = np.random.default_rng(0)
    x, last, P = rng.integers(3, size=400), rng.integers(3, size=400), rng.dirichlet(np.ones(3), 3).T
    of_P, of_q = Information.from_contexts(np.c_[x, x], last, np.ones(400), np.full((3, 2), 0.5), P).variances()
    one, _ = Information.from_contexts(x[:, None], last, np.ones(400), np.ones((3, 1)), P).variances()
    np.testing.assert_allclose(of_P, one, rtol=1e-8)
    assert np.isnan(of_q).all()


def test_variances_are_the_same_whether_taken_by_blocks_or_as_a_whole(monkeypatch):
    task = Task.random(3, 10, 2, seed=2)
    information = fisher_information(task)
    by_blocks = information.variances()
    monkeypatch.setattr(Information, "inverse", lambda self: None)
    for a, b in zip(information.variances(), by_blocks, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-14)


def test_bad_n_is_named():
    with pytest.raises(ValueError, match="n = 0"):
        cramer_rao(Task.random(3, 10, 2), 0)
