import pickletools
import re
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from scb import Task
from scb.geometry import mu_inner
from scb.task.chains import sinkhorn, staircase, stationary
from scb.task.npz import write_npz

P3 = np.array([[0.5, 0.2, 0.3], [0.25, 0.5, 0.3], [0.25, 0.3, 0.4]])
Q3 = np.array([[0.5, 0, 0], [0.5, 1, 0.25], [0, 0, 0.75], [0, 0, 0]])


def test_attributes_follow_their_definitions():
    task = Task(P3, Q3)
    assert (task.N, task.T, task.sparsity) == (3, 4, 2)
    np.testing.assert_allclose(task.P @ task.mu, task.mu, atol=1e-15)
    np.testing.assert_array_equal(task.Q, Q3)
    np.testing.assert_allclose(task.K_P, np.sum(P3**2 * task.mu) - task.mu @ task.mu, atol=1e-15)
    np.testing.assert_allclose(task.K_Q, np.sum(Q3**2 * task.mu) - 1 / 4, atol=1e-15)
    assert [s.tolist() for s in task.support] == [[0, 1], [1], [1, 2]]
    A = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(task.inner_Q(A), mu_inner(A, Q3, task.mu), atol=1e-15)
    assert task.Q.flags.f_contiguous
    with pytest.raises(ValueError, match="read-only"):
        task.P[0, 0] = 1


def test_sparse_and_dense_input_give_the_same_task():
    assert (
        Task(P3, Q3)
        == Task(P3, scipy.sparse.csr_array(Q3))
        == Task.sparse(P3, [[1, 1, 2], [0, 0, 1]], [[0.5, 1, 0.75], [0.5, 0, 0.25]], T=4)
    )
    assert Task(P3, Q3) != Task(P3, Q3[::-1])


@pytest.mark.parametrize("N", [2, 3, 10, 50, 100, 500])
@pytest.mark.parametrize("T", [50, 5000, 100_000])
def test_random_meets_assumptions_a_to_c(N, T):
    for seed in range(3):
        task = Task.random(N, T, sparsity=5, seed=seed)
        report = task.check()
        assert all(report[name].holds for name in "abc"), str(report)
        assert np.abs(task.P @ task.mu - task.mu).max() < 1e-12
        assert all(len(s) == 5 for s in task.support)


def test_random_is_reproducible_and_varied():
    assert Task.random(4, 30, 2, seed=5) == Task.random(4, 30, 2, seed=5)
    assert Task.random(4, 30, 2, seed=5) != Task.random(4, 30, 2, seed=6)


def test_the_default_ensemble_draws_the_same_tasks_as_ever():
    """Seeds in papers, files and stored results name tasks, which may not move. The last digits of P come from the processor's
    linear algebra: two kinds of processors differ by 1e-15.
    """
    task = Task.random(3, 50, 2, seed=7)
    np.testing.assert_allclose(task.P[0], [0.07648219782237943, 0.00021519082311172172, 0.8449672928551529], rtol=1e-14)
    np.testing.assert_array_equal(task.positions, [[23, 25, 39], [25, 27, 49]])
    np.testing.assert_array_equal(task.weights[0], [0.5522588601046732, 0.4620744413614285, 0.5283556152475929])
    assert Task.random(3, 50, 2, seed=7, ensemble="strong") == task


@pytest.mark.parametrize(
    ("ensemble", "statistic", "mean"),
    [
        ("dirichlet", lambda P: np.square(P).mean(), 2 / (4 * 5)),  # E p² of a uniform point of the simplex is 2/(N(N + 1))
        ("softmax", lambda P: np.square(np.log(P[0] / P[1])).mean(), 2.0),  # a difference of two standard normal numbers
        ("uniform", lambda P: (P[0] / P[1] < 0.5).mean(), 0.25),  # a ratio of two uniform numbers is below r ≤ 1 with chance r/2
    ],
)
def test_ordinary_ensembles_have_the_laws_that_they_are_named_after(ensemble, statistic, mean):
    tasks = [Task.random(4, 9, 2, seed=seed, ensemble=ensemble) for seed in range(2000)]
    found = np.array([statistic(task.P) for task in tasks])
    assert abs(found.mean() - mean) <= 4 * found.std() / np.sqrt(len(found))
    assert max(np.abs(task.P @ task.mu - task.mu).max() for task in tasks) < 1e-12
    assert np.mean([task.check()["c"].holds for task in tasks]) < 0.02  # which "strong" always meets


@pytest.mark.parametrize("ensemble", ["strong", "dirichlet", "uniform", "softmax"])
@pytest.mark.parametrize("N", [2, 3, 10])
def test_K_P_moves_P_along_a_line_and_keeps_its_stationary_distribution(ensemble, N):
    own = Task.random(N, 20, 2, seed=1, ensemble=ensemble)
    largest = 1 - own.mu @ own.mu
    for K_P in (0.3 * own.K_P, own.K_P + 0.5 * (largest - own.K_P)):
        if largest <= K_P:
            continue  # the swap of two tokens has the largest K_P there is
        moved = Task.random(N, 20, 2, seed=1, ensemble=ensemble, K_P=K_P)
        assert abs(moved.K_P - K_P) <= 1e-12
        np.testing.assert_allclose(moved.mu, own.mu, atol=1e-14)
        assert moved.support[0].tolist() == own.support[0].tolist()
        end = own.mu[:, None] if own.K_P > K_P else np.eye(N)
        step = moved.P - own.P
        whole = end - own.P
        np.testing.assert_allclose(step, whole * np.sum(step * whole) / np.sum(whole**2), atol=1e-12)


def test_check_reports_what_fails():
    flat = Task(np.full((3, 3), 1 / 3) + 0.01 * (np.eye(3) - 1 / 3), Q3).check()
    assert not flat["c"].holds
    assert not flat["d"].holds
    assert flat["c"].measured < 0.01
    skew = Task(P3, np.array([[0.99, 0.5, 0.5], [0.01, 0.5, 0.5], [0, 0, 0], [0, 0, 0]])).check()
    assert not skew["b"].holds
    assert "does not hold" in str(skew)
    assert Task(P3, np.eye(3)[:, [0, 1, 2]] * 0 + 1 / 3).check()["a"].holds is False


@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.3, 0.6, 0.95, 1.0])
@pytest.mark.parametrize("N", [3, 10, 50])
def test_related_keeps_mu_and_Q_and_meets_the_overlap(N, overlap):
    task = Task.random(N, 40, 2, seed=1)
    other = task.related(overlap, seed=2)
    np.testing.assert_allclose(other.mu, task.mu, atol=1e-12)
    np.testing.assert_array_equal(other.Q, task.Q)
    X, Y = other.P - other.mu[:, None], task.P - task.mu[:, None]
    np.testing.assert_allclose(mu_inner(X, Y, task.mu) / np.sqrt(other.K_P * task.K_P), overlap, atol=1e-9)
    assert 0.2 < other.K_P / task.K_P < 5


def test_save_and_load_round_trip_without_pickles(tmp_path):
    task = Task.random(7, 1000, 3, seed=1)
    task.save(tmp_path / "task.npz")
    assert Task.load(tmp_path / "task.npz") == task
    with zipfile.ZipFile(tmp_path / "task.npz") as archive:
        for name in archive.namelist():
            with pytest.raises(ValueError, match=r"opcode|unknown|no newline|argument"):
                list(pickletools.genops(archive.read(name)))
    write_npz(tmp_path / "other.npz", {"P": P3}, overwrite=False)
    with pytest.raises(ValueError, match="is not a task"):
        Task.load(tmp_path / "other.npz")


def test_large_Q_takes_kilobytes():
    task = Task.random(500, 100_000, 2)
    assert task.positions.nbytes + task.weights.nbytes < 20_000


NOT_DISTRIBUTIONS = np.array([[0.5, 0.5], [0.6, 0.5]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Task([[1.2, 0.5], [-0.2, 0.5]], np.ones((1, 2))), "P holds the negative entry -0.2"),
        (lambda: Task(NOT_DISTRIBUTIONS, np.ones((1, 2))), "column 0 of P sums to 1.1"),
        (lambda: Task([[np.nan, 0.5], [0.5, 0.5]], np.ones((1, 2))), "P holds nan"),
        (lambda: Task([[np.inf, 0.5], [0.5, 0.5]], np.ones((1, 2))), "P holds inf"),
        (lambda: Task(np.ones((2, 3)) / 2, np.ones((1, 2))), "P has shape (2, 3): it must be square"),
        (lambda: Task([0.5, 0.5], np.ones((1, 2))), "P has shape (2,): it must be a matrix"),
        (lambda: Task([[1.0]], [[1.0]]), "P has N = 1 tokens: there must be at least 2"),
        (lambda: Task(P3, np.ones((1, 2))), "Q has shape (1, 2), but P has N = 3"),
        (lambda: Task(P3, np.ones(3)), "Q has shape (3,): it must be a matrix"),
        (lambda: Task(P3, np.ones((2, 3))), "column 0 of Q sums to 2"),
        (lambda: Task(P3, [[1.5, 1, 1], [-0.5, 0, 0]]), "Q holds the negative entry -0.5"),
        (lambda: Task(P3, [[np.nan, 1, 1]]), "Q holds nan"),
        (lambda: Task(P3, np.zeros((4, 3))), "column 0 of Q sums to 0"),
        (lambda: Task(np.eye(2), np.ones((1, 2))), "P is reducible: token(s) [1] cannot be reached from token 0"),
        (lambda: Task([[1, 0.5], [0, 0.5]], np.ones((1, 2))), "P is reducible: token(s) [1] cannot be reached"),
        (lambda: Task([[0.5, 0], [0.5, 1]], np.ones((1, 2))), "P is reducible: token(s) [1] cannot reach token 0"),
        (lambda: Task.random(1, 10, 2), "N = 1: there must be at least 2"),
        (lambda: Task.random(3, 0, 2), "T = 0: there must be at least 1"),
        (lambda: Task.random(3, 10, 11), "sparsity = 11: it must lie between 1 and T = 10"),
        (lambda: Task.random(3, 10, 0), "sparsity = 0: it must lie between 1 and T = 10"),
        (lambda: Task.random(3, 10, 2, ensemble="weak"), "ensemble = 'weak': it must be one of 'strong', 'dirichlet'"),  # type: ignore
        (lambda: Task.random(3, 10, 2, K_P=0.9), "K_P = 0.9: it must lie between 0 and 1 − ‖μ‖²"),
        (lambda: Task.random(3, 10, 2, K_P=0.0), "K_P = 0.0: it must lie between 0 and"),
        (lambda: Task.random(3, 10, 2).related(1.5), "overlap = 1.5: it must lie in [0, 1]"),
        (lambda: Task.random(2, 10, 2).related(0.5), "overlap = 0.5 with N = 2"),
        (
            lambda: Task.sparse(P3, [[0, 0, 9]], [[1, 1, 1]], T=4),
            "positions holds 9: each must lie in [0, T - 1] = [0, 3]",
        ),
        (lambda: Task.sparse(P3, [[0, 0, 1], [0, 1, 2]], np.full((2, 3), 0.5), T=4), "positions repeats a position"),
        (lambda: Task.sparse(P3, [[0.5, 0, 1]], [[1, 1, 1]], T=4), "positions has dtype float64"),
        (lambda: Task.sparse(P3, [[0, 1]], [[1, 1]], T=4), "positions has shape (1, 2)"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


# ----------------------------------------------------------------------------------------------------- couplings


def test_stationary_of_a_periodic_and_of_a_stiff_chain():
    np.testing.assert_allclose(stationary(np.roll(np.eye(5), 1, axis=0)), np.full(5, 0.2), atol=1e-15)
    eps = 1e-14  # two nearly closed halves: an eigenvector would be off by 1e-2
    P = np.array([[1 - eps, 3 * eps], [eps, 1 - 3 * eps]])
    np.testing.assert_allclose(stationary(P), [0.75, 0.25], rtol=2e-2)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_stationary_equals_a_linear_solve(N, seed):
    P = np.random.default_rng(seed).dirichlet(np.full(N, 0.5), N).T + 1e-9
    P /= P.sum(axis=0)
    system = np.vstack([P - np.eye(N), np.ones(N)])
    mu = np.linalg.lstsq(system, np.r_[np.zeros(N), 1.0], rcond=None)[0]
    np.testing.assert_allclose(stationary(P), mu, atol=1e-8)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_couplings_have_both_marginals(N, seed):
    rng = np.random.default_rng(seed)
    mu = rng.dirichlet(np.ones(N)) + 1e-3
    mu /= mu.sum()
    for J in (staircase(mu, rng), sinkhorn(rng.exponential(size=(N, N)) + 0.01, mu)):
        assert (J >= 0).all()
        np.testing.assert_allclose(J.sum(axis=0), mu, atol=1e-12)
        np.testing.assert_allclose(J.sum(axis=1), mu, atol=1e-12)
