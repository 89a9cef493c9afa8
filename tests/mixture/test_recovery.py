"""Recovery of (P, Q) from data: kernels against twins, statistics' distributions, estimates against independent optimisers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

import scb
from scb.kernels import em, mixture, windows
from scb.mixture.data import Here, Rows
from scb.mixture.em import climb_by_em, maximise
from scb.mixture.errors import standard_errors
from scb.mixture.levels import ScoreNoise, noise_levels
from scb.mixture.model import Mixture
from scb.mixture.rows import NO_POSITION, RowTable, Slots
from scb.mixture.samples_in import as_data
from scb.mixture.spectral import spectral
from scb.mixture.tuning import TUNING
from scb.mixture.weights import fit_weights
from scb.task.sampling import Batch
from scb.theory.fisher import Information
from scb.theory.information import cramer_rao
from truth import twins as reference


def score_level(terms, weight, mu, z):
    """The level of one score."""
    return noise_levels([ScoreNoise(terms, weight, mu)], z)[0]


def same_support(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def assert_valid(fit, N, T):
    """What every answer promises, degenerate or not."""
    assert fit.V.shape == (N, N)
    assert fit.A.shape == (T, N)
    assert fit.A.flags.f_contiguous
    for X in (fit.V, fit.A):
        assert np.isfinite(X).all()
        assert (X >= 0).all()
        np.testing.assert_allclose(X.sum(axis=0), 1, atol=1e-9)
    assert len(fit.support) == N
    for k, positions in enumerate(fit.support):
        assert np.array_equal(positions, np.flatnonzero(fit.A[:, k] > fit.unexplained[k] / T) if len(positions) else [])
        others = np.delete(fit.A[:, k], positions)
        np.testing.assert_allclose(others, fit.unexplained[k] / T)
        assert fit.unexplained[k] == 0 or fit.incomplete[k]
    assert (np.diff(fit.path) >= 0).all()
    assert all(np.isnan(e) | (e >= 0) for e in np.r_[fit.stderr.V.ravel(), fit.stderr.A.ravel()])
    assert f"N = {N} tokens" in fit.report()


# ------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize(("N", "T", "n"), [(3, 70, 200), (12, 130, 90), (300, 20, 60)])
def test_pair_kernels_equal_their_twins(N, T, n):
    """Whole batches and overlapping windows; tables of pairs smaller and larger than the samples in them."""
    rng = np.random.default_rng(N)
    tokens = rng.integers(N, size=n * T).astype(np.uint16 if N > 256 else np.uint8)
    last, label, weight = rng.integers(min(N, 7), size=n), rng.integers(N, size=n), rng.random(n)
    table, mu = rng.normal(size=(N, N)), rng.dirichlet(np.full(N, 5.0))
    order = np.argsort(last, kind="stable")
    bounds = np.searchsorted(last[order], np.arange(N + 1))
    for starts in (np.arange(n) * T, np.arange(n)):
        fast, plain = np.zeros((N, T)), np.zeros((N, T))
        windows.add_pair_scores(tokens, starts, last, label, weight, order, table, fast)
        reference.add_pair_scores(tokens, starts, last, label, weight, table, plain)
        np.testing.assert_allclose(fast, plain, atol=1e-12)
        chi = np.zeros((N, T))
        windows.pair_chi_squares(tokens, starts, label, order, bounds, mu, chi)
        plain = reference.pair_chi_squares(tokens, starts, last, label, mu, T)
        np.testing.assert_allclose(chi, plain, rtol=1e-9, atol=1e-9)
        positions = rng.integers(-1, T, size=(N, 4))
        out, codes = np.empty((n, 4), np.uint16), np.empty(n, np.int64)
        windows.gather_tokens(tokens, starts, last, positions, N, out)
        np.testing.assert_array_equal(out, reference.gathered(tokens, starts, last, positions, N))
        windows.encode_rows(tokens, starts, last, label, positions, N, codes)
        np.testing.assert_array_equal(codes, reference.row_codes(last, label, out.astype(np.int64), N))
    counts = np.ones(N)
    windows.count_tokens(tokens, counts)
    np.testing.assert_array_equal(counts, 1 + np.bincount(tokens, minlength=N))


def test_derivatives_in_the_weights_are_those_of_each_state():
    rows, P, q = random_rows(5, 3, 200, seed=2)
    q[0] = [0.4, 0.0, 0.6]
    g = np.random.default_rng(3).random(200)
    asked = np.array([True, False, True, True, True])
    logliks, gq, qq = np.ones(5), np.ones_like(q), np.ones((5, 3, 3))
    mixture.weight_curvature(*rows.samples, g, q, P, asked, logliks, gq, qq)
    H = reference.likelihood_curvature(*rows.samples, g, q, P)[-q.size :, -q.size :].reshape(5, 3, 5, 3)
    for k in range(5):
        mine = rows.last == k
        loglik, expected, _ = reference.likelihood_gradient(*(x[mine] for x in rows.samples), g[mine], q, P)
        assert logliks[k] == pytest.approx(loglik if asked[k] else 0.0, rel=1e-12)
        np.testing.assert_allclose(np.where(q[k] > 0, gq[k], 0.0), expected[k] if asked[k] else 0.0, rtol=1e-12)
        np.testing.assert_allclose(qq[k], H[k, :, k] if asked[k] else 0.0, rtol=1e-12)


def test_weights_of_states_side_by_side_are_those_of_each_alone():
    """With P fixed; against a general optimiser, and by EM alone."""
    table, P, q = random_rows(3, 3, 300, seed=4)
    start = Mixture(P, BACKGROUND, q)
    fit = fit_weights(together(table), start, tolerance=1e-7)
    np.testing.assert_allclose(fit.q.sum(axis=1), 1)
    by_em = climb_by_em(together(table), start, 500, constrain=lambda at: replace(at, P=P))
    assert by_em.loglik == pytest.approx(fit.logliks.sum(), abs=1e-5)
    np.testing.assert_array_equal(by_em.at.P, P)
    p = np.where(table.columns < 3, np.c_[P, BACKGROUND][table.label[:, None], table.columns], BACKGROUND[table.label][:, None])
    for k in range(3):
        mine = table.last == k

        def loss(theta, mine=mine):
            w = np.exp(theta - theta.max())
            return -float(table.weight[mine] @ np.log(p[mine] @ (w / w.sum())))

        best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000})
        assert fit.logliks[k] == pytest.approx(-best.fun, abs=1e-5)
    alone = fit_weights(together(table), start, tolerance=1e-7, asked=np.array([False, True, False]))
    np.testing.assert_array_equal(alone.q, np.where([[False], [True], [False]], fit.q, q))


BACKGROUND = np.array([0.2, 0.3, 0.5])  # of three labels


def random_rows(N, s, n, seed, background=True):
    rng = np.random.default_rng(seed)
    P = np.ascontiguousarray(rng.dirichlet(np.ones(N), N).T)
    q = rng.dirichlet(np.ones(s), N)
    tokens = rng.integers(N + background, size=(n, s))
    table = RowTable(tokens, rng.integers(N, size=n), rng.integers(N, size=n), rng.uniform(0.5, 2, size=n))
    return table, P, q


def together(table):
    """A table of rows as all rows of a fit."""
    return Rows(Here(), [table], table)


def at_positions(data, positions):
    """The rows of data at positions (K, s), with one matrix for all."""
    return data.rows(Slots(positions, np.zeros_like(positions)))


def test_curvature_equals_its_twin_and_the_differences_of_the_gradient():
    N, s = 4, 3
    rows, P, q = random_rows(N, s, 150, seed=1)
    PP, Pq, qq, mixed = np.zeros((N, N, N)), np.zeros((N, N, N, s)), np.zeros((N, s, s)), np.zeros((N, N, N, s))
    g = np.random.default_rng(3).random(150)  # the background of each sample
    mixture.likelihood_curvature(*rows.samples, g, q, P, PP, Pq, qq, mixed)
    Pq -= mixed
    H = np.zeros((N * N + N * s,) * 2)
    for o in range(N):
        at = slice(o * N, (o + 1) * N)
        H[at, at], H[at, N * N :] = PP[o], Pq[o].reshape(N, -1)
        H[N * N :, at] = H[at, N * N :].T
    for k in range(N):
        at = slice(N * N + k * s, N * N + (k + 1) * s)
        H[at, at] = qq[k]
    np.testing.assert_allclose(H, reference.likelihood_curvature(*rows.samples, g, q, P), rtol=1e-10, atol=1e-10)
    dP, dq = np.random.default_rng(4).normal(size=(N, N)), np.random.default_rng(5).normal(size=q.shape)
    hP, hq = np.ones_like(P), np.ones_like(q)
    mixture.likelihood_product(*rows.samples, g, q, P, dq, dP, hq, hP)
    np.testing.assert_allclose(np.r_[hP.ravel(), hq.ravel()], H @ np.r_[dP.ravel(), dq.ravel()], rtol=1e-10)
    # A slot without weight does not move: what the product has there is 0, and the rest is as if it were not there
    q[1, 2] = dq[1, 2] = 0.0
    mixture.likelihood_product(*rows.samples, g, q, P, dq, dP, hq, hP)
    twin = reference.likelihood_curvature(*rows.samples, g, q, P) @ np.r_[dP.ravel(), dq.ravel()]
    twin[N * N + s + 2] = 0.0
    np.testing.assert_allclose(np.r_[hP.ravel(), hq.ravel()], twin, rtol=1e-10, atol=1e-10)
    q = random_rows(N, s, 150, seed=1)[2]

    def gradient(theta):
        P_at, q_at = theta[: N * N].reshape(N, N), theta[N * N :].reshape(N, s)
        _, gq, gP = reference.likelihood_gradient(*rows.samples, g, q_at, P_at)
        return np.r_[gP.ravel(), gq.ravel()]

    theta, h = np.r_[P.ravel(), q.ravel()], 1e-6
    numeric = [(gradient(theta + h * e) - gradient(theta - h * e)) / (2 * h) for e in np.eye(theta.size)]
    np.testing.assert_allclose(H, -np.array(numeric), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 7, 8, 128, 129, 5_000])
def test_a_pairwise_sum_is_a_sum(n):
    x = np.random.default_rng(n).normal(size=n)
    assert em.pairwise_sum(x) == pytest.approx(x.sum(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("turns", [True, False])
def test_em_steps_and_jumps_equal_their_twins(turns):
    """Also where a column or a row is never used, and where three points lie on a line."""
    rng = np.random.default_rng(8)
    P, q = rng.dirichlet(np.ones(4), 10).T.copy(), rng.dirichlet(np.ones(3), 5)
    gP, gq = rng.random(P.shape), rng.random(q.shape)
    gP[:, 3] = 0.0
    gq[1] = 0.0
    new = np.ones_like(P), np.ones_like(q)
    em.em_update(P, q, gP, gq, *new)
    for ours, twin in zip(new, reference.em_update(P, q, gP, gq), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-13)
    np.testing.assert_array_equal(new[0][:, 3], P[:, 3])
    np.testing.assert_array_equal(new[1][1], q[1])
    last = rng.dirichlet(np.ones(4), 10).T.copy(), rng.dirichlet(np.ones(3), 5)
    points = [(P, q), new, last if turns else new]
    jump = np.ones_like(P), np.ones_like(q)
    em.squared_jump(*(x for point in points for x in point), 0.02, *jump)
    for ours, twin in zip(jump, reference.squared_jump(points, 0.02), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-12)


def test_newton_solves_on_the_tangent_space():
    """``Information.solve`` against the bordered system of the constraints, written out densely."""
    N, s = 3, 2
    rows, P, q = random_rows(N, s, 400, seed=2, background=False)
    information = Information.from_contexts(rows.columns, rows.last, np.ones(400), q, P)
    rng = np.random.default_rng(0)
    gP, gq = rng.normal(size=(N, N)), rng.normal(size=(N, s))
    J = reference.likelihood_information(rows.columns, rows.last, np.ones(400), q, P)
    border = np.zeros((2 * N, N * N + N * s))
    for m in range(N):
        border[m, : N * N].reshape(N, N)[:, m] = 1
        border[N + m, N * N :].reshape(N, s)[m] = 1
    system = np.block([[J, border.T], [border, np.zeros((2 * N, 2 * N))]])
    exact = np.linalg.lstsq(system, np.r_[gP.ravel(), gq.ravel(), np.zeros(2 * N)])[0][: N * N + N * s]
    step = information.solve(gP, gq)
    assert step is not None
    np.testing.assert_allclose(np.r_[step[0].ravel(), step[1].ravel()], exact, rtol=1e-7, atol=1e-10)


# ----------------------------------------------------------------------------------------------------- tails


def test_thresholds_hold_their_rate_where_the_gaussian_does_not():
    """Skewed sums of 60 terms, two million of them: 1e-3 lie above the level, as stated."""
    rng = np.random.default_rng(1)
    mu, N = np.array([0.02, 0.28, 0.7]), 3
    terms = rng.random((60, N)) * [10, 1, 0.3]
    terms -= (terms @ mu)[:, None]
    level = score_level(terms, np.ones(60), mu, 3.0902)
    total = np.zeros(2_000_000)
    for u in terms:
        total += rng.choice(u, p=mu, size=total.size)
    gaussian = 3.0902 * np.sqrt((terms**2 @ mu).sum())
    assert np.mean(total >= level) == pytest.approx(1e-3, rel=0.1)
    assert np.mean(total >= gaussian) > 3e-3


def test_too_few_samples_never_pass():
    terms, mu = np.array([[1.0, -1.0]]), np.full(2, 0.5)
    assert score_level(terms, np.ones(1), mu, 4.0) == np.inf
    assert score_level(terms, np.full(1, 100.0), mu, 4.0) == pytest.approx(40, abs=2)  # a walk of 100 steps
    for rows, weight in ((0 * terms, np.ones(1)), (terms, np.zeros(1)), (terms[:0], np.zeros(0))):
        assert score_level(rows, weight, mu, 4.0) == np.inf


# ------------------------------------------------------------------------------------------------ spectral


def test_the_spectral_estimate_approaches_the_truth_at_the_usual_rate():
    task = scb.Task.random(3, 60, 2, seed=4)
    sizes, errors = np.array([4000, 16_000, 64_000]), []
    for n in sizes:
        fits = [spectral(as_data(scb.sample(task, int(n), seed=s), 3), 1e-4) for s in range(6)]
        assert all(same_support(task.support, fit.positions) for fit in fits)
        errors.append(np.sqrt(np.mean([np.square(fit.P - task.P).sum() for fit in fits])))
    assert -0.7 < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < -0.3


def test_false_positions_come_at_the_stated_rate():
    """On independent labels nothing is there to find: a fit finds nothing there. And 40 fits at a rate of 0.5 on a task."""
    rng = np.random.default_rng(0)
    task = scb.Task.random(3, 300, 2, seed=1)
    false = 0
    for seed in range(40):
        fit = spectral(as_data(scb.sample(task, 3000, seed=seed), 3), false_positions=0.5)
        false += sum(np.setdiff1d(a, b).size for a, b in zip(fit.positions, task.support, strict=True))
    assert 8 <= false <= 34  # 20 on average; within three standard deviations
    noise = Batch(*(rng.integers(3, size=size).astype(np.uint8) for size in ((2000, 200), 2000, 2000)))
    assert all(len(p) == 0 for p in spectral(as_data(noise, 3)).positions)


def test_every_form_of_the_same_data_gives_the_same_answer():
    task = scb.Task.random(4, 50, 2, seed=2)
    batch = scb.sample(task, 6000, seed=1)
    pieces = [batch[:1000], batch[1000:1001], batch[1001:1001], batch[1001:]]
    whole = scb.recover(batch)
    wide = Batch(batch.context.astype(np.int64), batch.last.astype(int), batch.label.astype(int))
    for data in (
        pieces,
        tuple(pieces),
        lambda: iter(pieces),
        iter(pieces),
        wide,
        Batch(np.asfortranarray(batch.context), batch.last, batch.label),
    ):
        fit = scb.recover(data)
        assert same_support(fit.support, whole.support)
        np.testing.assert_allclose(fit.V, whole.V, atol=1e-6)
        np.testing.assert_allclose(fit.A, whole.A, atol=1e-6)
        assert fit.n_samples == 6000


def test_parts_of_any_size_give_the_same_sums(monkeypatch):
    task = scb.Task.random(4, 50, 2, seed=2)
    data = as_data(scb.sample(task, 500, seed=1), 4)
    (part,) = data.partitions
    table, weight = np.random.default_rng(0).normal(size=(4, 4)), np.linspace(0, 1, 500)
    whole = part.scores(data.shape, table, weight), part.gather(task.positions.T, 4)
    monkeypatch.setattr("scb.mixture.partition.TUNING", replace(TUNING, samples_at_once=37))
    np.testing.assert_allclose(part.scores(data.shape, table, weight), whole[0], atol=1e-10)
    np.testing.assert_array_equal(part.gather(task.positions.T, 4), whole[1])


def test_the_start_may_come_from_the_first_batches_only(monkeypatch):
    """A stream that does not fit into memory: χ² from its head, everything else from passes over all of it."""
    task = scb.Task.random(3, 50, 2, seed=2)
    monkeypatch.setattr("scb.mixture.partition.TUNING", replace(TUNING, start_tokens=50 * 1500))
    passes = []

    def stream():
        passes.append(1)
        return (scb.sample(task, 500, seed=s) for s in range(8))

    assert as_data(stream).partitions[0].head().n == 1500
    fit = scb.recover(stream)
    assert same_support(fit.support, task.support)
    assert fit.n_samples == 4000
    assert 3 < len(passes) < 40


def test_a_batch_is_not_copied():
    batch = scb.sample(scb.Task.random(3, 50, 2), 100)
    assert np.shares_memory(next(iter(as_data(batch).partitions[0].blocks)).tokens, batch.context)
    sequence = scb.generate(scb.Task.random(3, 50, 2), 300)
    assert np.shares_memory(next(iter(as_data(sequence, max_lag=20).partitions[0].blocks)).tokens, sequence)


# ------------------------------------------------------------------------------------------------ likelihood


@pytest.mark.parametrize("seed", range(4))
def test_maximum_likelihood_equals_a_general_optimiser(seed):
    """L-BFGS over softmax coordinates, from the same start, knows nothing of EM, Newton or simplices."""
    task = scb.Task.random(3, 10, 2, seed=seed)
    data = as_data(scb.sample(task, 1500, seed=seed), 3)
    rows = at_positions(data, task.positions.T)
    table = rows.counted
    P, q = 0.5 * task.P + 0.5 / 3, np.full((3, 2), 0.5)
    fit = maximise(rows, Mixture(P, np.full(3, 1 / 3), q), tolerance=1e-6)

    def negative(theta):
        P_at, q_at = softmax(theta[:9].reshape(3, 3), axis=0), softmax(theta[9:].reshape(3, 2), axis=1)
        f = (q_at[table.last] * P_at[table.label[:, None], table.columns]).sum(axis=1)
        return -table.weight @ np.log(f)

    other = minimize(
        negative,
        np.r_[np.log(P).ravel(), np.log(q).ravel()],
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    assert fit.loglik >= -other.fun - 1e-6
    assert fit.loglik == pytest.approx(-other.fun, abs=2e-3)
    assert fit.gap < 1e-5
    assert (np.diff(fit.path) >= 0).all()


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_the_likelihood_never_decreases_and_the_gap_bounds_what_is_left(N, s, n, seed):
    table, P, q = random_rows(N, s, n, seed)
    rows = together(table)
    fit = maximise(rows, Mixture(P, np.full(N, 1 / N), q), steps=60)
    assert (np.diff(fit.path) >= 0).all()
    assert fit.gap > -1e-9
    np.testing.assert_allclose(fit.mixture.P.sum(axis=0), 1, atol=1e-9)
    np.testing.assert_allclose(fit.mixture.q.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(fit.mixture.background, np.full(N, 1 / N))
    better = fit_weights(rows, fit.mixture, steps=200)  # a concave problem: its gain is within the gap
    assert better.logliks.sum() - fit.loglik <= fit.gap + 1e-9


def test_the_gap_is_positive_away_from_the_maximum():
    table, P, q = random_rows(3, 2, 300, seed=0)
    assert maximise(together(table), Mixture(P, BACKGROUND, q), steps=0).gap > 1
    assert maximise(together(table), Mixture(P, BACKGROUND, q), tolerance=1e-6).gap < 1e-6


def test_newton_gets_there_where_em_is_slow():
    """Entries of P at 0: the certificate is reached within a few dozen steps."""
    task = scb.Task.random(10, 20, 2, seed=3)
    data = as_data(scb.sample(task, 20_000, seed=3), 10)
    start = Mixture(task.P, data.label_distribution, task.weights.T.copy())
    fit = maximise(at_positions(data, task.positions.T), start.lifted(), tolerance=1e-4)
    assert fit.gap < 1e-4
    assert len(fit.path) < 60
    assert (fit.mixture.P == 0).any()


def test_standard_errors_approach_the_bound():
    task = scb.Task.random(3, 10, 2, seed=1)
    data = as_data(scb.sample(task, 200_000, seed=1), 3)
    rows = at_positions(data, np.c_[np.full(3, NO_POSITION), task.positions.T])  # slot 0 is the background
    of_P, of_q = standard_errors(rows, Mixture(task.P, task.mu, np.c_[np.zeros(3), task.weights.T]))
    bound = cramer_rao(task, 200_000)
    np.testing.assert_allclose(of_P, np.sqrt(bound.P), rtol=0.05)
    np.testing.assert_allclose(of_q[:, 1:], np.sqrt(bound.Q.T), rtol=0.02)


def test_errors_lie_at_the_bound_and_intervals_cover():
    square, bound, inside = np.zeros(2), np.zeros(2), []
    for seed in range(60):
        task = scb.Task.random(3, 10, 2, seed=seed)
        fit, least = scb.recover(scb.sample(task, 5000, seed=seed + 100), N=3), cramer_rao(task, 5000)
        on = task.Q > 0
        square += np.square(fit.V - task.P).sum(), np.square(fit.A - task.Q)[on].sum()
        bound += least.P.sum(), least.Q.sum()
        inside += [
            *(np.abs(fit.V - task.P) <= 1.96 * fit.stderr.V).ravel(),
            *(np.abs(fit.A - task.Q) <= 1.96 * fit.stderr.A)[on],
        ]
    assert (square / bound > 0.75).all()
    assert (square / bound < 1.3).all()
    assert 0.91 < np.mean(inside) < 0.98


# ------------------------------------------------------------------------------------------------ recover


@pytest.mark.parametrize(
    ("N", "T", "n", "sparsity"),
    [(3, 500, 2000, 2), (3, 5000, 1500, 1), (5, 300, 8000, 4), (10, 300, 10_000, 2), (2, 100, 2000, 2)],
)
def test_the_support_is_found(N, T, n, sparsity):
    for seed in range(3):
        task = scb.Task.random(N, T, sparsity, seed=seed)
        fit = scb.recover(scb.sample(task, n, seed=seed + 1), N=N)
        assert same_support(fit.support, task.support)
        assert_valid(fit, N, T)
        assert fit.gap <= 1e-3
        assert np.abs(fit.A - task.Q).max() < 5 * np.nanmax(fit.stderr.A) + 1e-12


def test_a_weak_position_that_the_moments_miss_is_grown():
    """Weights 0.9 and 0.1: at this n the moments see the strong positions, and the likelihood finds the weak ones."""
    base = scb.Task.random(3, 200, 2, seed=5)
    task = scb.Task.sparse(base.P, base.positions, np.repeat([[0.9], [0.1]], 3, axis=1), 200)
    missed = found = 0
    for seed in range(5):
        batch = scb.sample(task, 3000, seed=seed)
        missed += sum(len(p) < 2 for p in scb.recover(batch, method="spectral").support)
        found += same_support(scb.recover(batch).support, task.support)
    assert missed >= 5
    assert found >= 4


def test_sequences_are_recovered_and_the_moments_alone_are_not():
    task = scb.Task.random(4, 20, 2, seed=1)
    sequence = scb.generate(task, 40_000, seed=1)
    fit = scb.recover(sequence, max_lag=20)
    assert same_support(fit.support, task.support)
    assert fit.n_samples == 40_000 - 21
    assert_valid(fit, 4, 20)
    assert np.abs(fit.V - task.P).max() < 0.05
    moments = scb.recover(sequence, max_lag=20, method="spectral")
    assert sum(len(p) for p in moments.support) > 12  # 8 are true
    spectral_first = scb.recover([sequence[:25_000], sequence[25_000:]], max_lag=20, start="spectral")
    assert same_support(spectral_first.support, task.support)
    assert spectral_first.n_samples == 40_000 - 42


def test_a_longer_window_shifts_the_positions():
    """Position 0 is the oldest: with max_lag = T + 3, everything lies 3 positions later."""
    task = scb.Task.random(3, 12, 2, seed=2)
    fit = scb.recover(scb.generate(task, 30_000, seed=1), max_lag=15)
    assert same_support(fit.support, [s + 3 for s in task.support])


def test_scratch_works_on_batches_too():
    task = scb.Task.random(3, 40, 2, seed=2)
    fit = scb.recover(scb.sample(task, 4000, seed=1), start="scratch")
    assert same_support(fit.support, task.support)


def test_the_model_predicts():
    task = scb.Task.random(3, 40, 2, seed=2)
    fit, fresh = scb.recover(scb.sample(task, 20_000, seed=1)), scb.sample(task, 2000, seed=9)
    assert fit.model.loss(fresh) == pytest.approx(task.model().loss(fresh), abs=0.003)


# ------------------------------------------------------------------------------------- bad and degenerate data


GOOD = scb.sample(scb.Task.random(3, 10, 2), 50)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (GOOD, {"N": 1}, "N = 1"),
        (GOOD, {"N": 2}, "with N = 2, tokens must lie in \\[0, 1\\]"),
        (GOOD[:0], {}, "data is empty"),
        ([], {}, "data is empty"),
        ([GOOD, scb.sample(scb.Task.random(3, 11, 2), 5)], {}, "T = 10 and with T = 11"),
        (GOOD, {"max_lag": 5}, "leave max_lag out"),
        (GOOD, {"false_positions": 0.0}, "false_positions = 0.0"),
        (GOOD, {"method": "magic"}, "method = 'magic'"),
        (GOOD, {"start": "magic"}, "start = 'magic'"),
        (np.arange(5), {}, "max_lag"),
        ([np.arange(5)], {}, "max_lag"),
        (3, {}, "type int"),
        (np.zeros(5, int), {"max_lag": 4}, "at least 6 are needed"),
        (np.zeros(5, int), {"max_lag": 0}, "max_lag = 0"),
        (np.zeros((5, 5), int), {"max_lag": 2}, "shape \\(5, 5\\)"),
        (np.array([0.0, np.nan, 1.0, 1.0]), {"max_lag": 1}, "NaN"),
        (np.array([0.0, 0.5, 1.0, 1.0]), {"max_lag": 1}, "dtype float64"),
        (np.array(["a", "b", "a", "b"]), {"max_lag": 1}, "dtype <U1"),
        (np.array([0, -1, 1, 1]), {"max_lag": 1}, "holds -1"),
        (np.array([0, 70_000, 1, 1]), {"max_lag": 1}, "token 70000"),
        (np.array([0, 7, 1, 1]), {"max_lag": 1, "N": 4}, "with N = 4"),
        (np.array([0, 9000, 1, 1]), {"max_lag": 1}, "at most 4096"),
        (Batch(np.full((3, 2), np.nan), np.zeros(3, int), np.zeros(3, int)), {}, "context holds NaN"),
        (Batch(np.zeros((3, 2), int), np.full(3, -2), np.zeros(3, int)), {}, "last holds -2"),
        (Batch(np.zeros((3, 0), int), np.zeros(3, int), np.zeros(3, int)), {}, "at least 1 position"),
    ],
)  # fmt: skip
def test_bad_input_is_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        scb.recover(data, **options)


def test_a_token_that_never_occurs_has_no_information():
    task = scb.Task.random(3, 30, 2, seed=1)
    fit = scb.recover(scb.sample(task, 3000, seed=1), N=4)
    assert_valid(fit, 4, 30)
    assert same_support(fit.support[:3], task.support)
    assert len(fit.support[3]) == 0
    assert np.isnan(fit.stderr.V[:, 3]).all()
    assert np.isnan(fit.stderr.A[:, 3]).all()
    assert np.isfinite(fit.stderr.V[:3, :3]).all()
    assert "never occur in a context: 3" in fit.report()
    assert "no position that stands out" in fit.report()


@pytest.mark.parametrize("start", ["spectral", "scratch"])
def test_constant_sequences_say_nothing(start):
    fit = scb.recover(np.zeros(500, int), max_lag=10, start=start)
    assert_valid(fit, 2, 10)
    assert all(len(s) == 0 for s in fit.support)
    np.testing.assert_allclose(fit.V[:, 0], [1, 0], atol=1e-9)


def odd_tokens(rng, N, size):
    """Tokens of an odd kind: few of many, all alike, periodic, one of them rare, or plain."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.integers(min(2, N), size=size)
    if kind == 1:
        return np.full(size, rng.integers(N))
    if kind == 2:
        return np.arange(np.prod(size)).reshape(size) % rng.integers(1, N + 1)
    if kind == 3:
        return np.where(rng.random(size) < 0.02, N - 1, 0)
    return rng.integers(N, size=size)


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 7), st.sampled_from([1, 2, 3, 10, 60, 200]))
@example(6646, 6, 6, 200)  # the covariances of what is kept cancel out
def test_odd_batches_give_a_valid_answer(seed, T, N, n):
    rng = np.random.default_rng(seed)
    context, last, label = odd_tokens(rng, N, (n, T)), odd_tokens(rng, N, (n,)), odd_tokens(rng, N, (n,))
    if rng.random() < 0.3:  # labels that follow a position exactly
        label = context[:, rng.integers(T)]
    start = (None, "scratch")[rng.integers(2)]
    assert_valid(scb.recover(Batch(context, last, label), N=N, start=start), N, T)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 7), st.integers(1, 300))
def test_odd_sequences_give_a_valid_answer_or_a_clear_error(seed, max_lag, N, length):
    rng = np.random.default_rng(seed)
    sequences = [odd_tokens(rng, N, (length,)) for _ in range(rng.integers(1, 4))]
    start = (None, "spectral")[rng.integers(2)]
    if length < max_lag + 2:
        with pytest.raises(ValueError, match="are needed"):
            scb.recover(sequences, N=N, max_lag=max_lag)
    else:
        assert_valid(scb.recover(sequences, N=N, max_lag=max_lag, start=start), N, max_lag)
