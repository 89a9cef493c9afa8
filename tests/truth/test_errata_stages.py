"""docs/paper/errata.md, rows 22 to 38: the proofs of the stages and of transfer. What is printed fails, what holds passes."""

from itertools import pairwise

import numpy as np
import pytest

from scb import Task
from scb.geometry import deviations, line_A, line_V, mu_inner, mu_norm, population_projection
from scb.geometry.lines import projection_by_norms
from scb.theory.dynamics import StepNoise, signal_step
from scb.theory.expectations import expected_gradients, expected_preconditioned_gradients
from scb.training.stages import Stage, proximal_step
from truth.enumeration import WORLDS, constrained_direction, constrained_point, precondition

T = 400
ETA = 0.05


@pytest.fixture(params=[0, 1], ids=lambda seed: f"seed{seed}")
def task(request):
    return Task.random(3, T, 2, seed=request.param)


def stage_2_point(task, seed=3):
    """(V, A) as Stage 2 has them: V near its line; A with any weights on the support and one common value off it."""
    rng = np.random.default_rng(seed)
    V = line_V(task, 0.6) + 0.05 * constrained_direction(task, rng)[0]
    on = np.where(task.Q > 0, task.Q * rng.uniform(0.5, 0.7, task.Q.shape), 0.0)
    return V, np.where(task.Q > 0, on, (1 - on.sum(axis=0)) / (task.T - task.sparsity))


def off_support_terms(task, V, A):
    """b, the mass of each column on the support; K_V; ‖V‖_μ² − ⟨V, P⟩_μ: what the off-support gradient is made of."""
    b = np.where(task.Q > 0, A, 0.0).sum(axis=0)
    p = population_projection(task, V, A)
    return b, p.K_V, mu_inner(V, V - task.P, task.mu)


def entries(task, per_column):
    """A row of N values as one value for each entry off the support, column by column."""
    return np.broadcast_to(per_column, (task.T, task.N))[task.Q == 0]


def test_e22_the_expected_gradient_off_the_support_has_a_minus(task):
    V, A = stage_2_point(task)
    b, K_V, gap = off_support_terms(task, V, A)
    truth = expected_preconditioned_gradients(task, V, A)[1][task.Q == 0]
    first = K_V * (1 - b) / (task.T - task.sparsity)
    np.testing.assert_allclose(truth, entries(task, first - gap / task.T), atol=1e-14)
    assert np.abs(truth - entries(task, first + gap / task.T)).max() > 1e-5


def test_e23_the_bias_of_the_proximal_gradient_off_the_support(task):
    """(2*): ([Q(1−b+Qλ) − QλT − ηT K_V(1−b)]/(ηT(T−Q)) − Σ_q ∂l/(μ_k T) + (‖V‖² − ⟨V,P⟩)/T) on q^c."""
    V, A = stage_2_point(task)
    lam, Q = 2e-3, task.sparsity
    noise = 1e-3 * np.random.default_rng(5).normal(size=A.shape)
    gradient = expected_gradients(task, V, A)[1] + noise * task.mu
    stage = Stage("2", steps=1, eta_V=0.0, eta_A=ETA, lam=lam)
    after = proximal_step(V, A, 0 * V, gradient, task.mu, stage)[1]
    off = task.Q == 0
    assert all(np.ptp(after[off[:, k], k]) == 0 for k in range(task.N))  # the proximal step removed all that is off the support
    bias = ((A - after) / ETA - expected_preconditioned_gradients(task, V, A)[1])[off]
    b, K_V, gap = off_support_terms(task, V, A)
    on_sum = np.where(off, 0.0, gradient).sum(axis=0) / (task.mu * task.T)
    scale = ETA * task.T * (task.T - Q)
    right = (Q * (1 - b + Q * lam) - Q * lam * task.T - ETA * task.T * K_V * (1 - b)) / scale - on_sum + gap / task.T
    printed = (Q * (1 - b - Q * lam) - Q * lam * task.T - ETA * task.T * K_V) / scale - on_sum - gap / task.T
    np.testing.assert_allclose(bias, entries(task, right), atol=1e-13)
    assert np.abs(bias - entries(task, printed)).max() > 1e-5


def test_e24_lambda_carries_the_step_size_and_one_factor_N_less():
    """λ = Θ(εK_P/(Q²N³)) leaves a bias of λ√Q/η_A, which no constant covers as η falls; λ ∝ η_A does not."""
    eps = 1e-3
    big = Task.random(3, 1_000_000, 2, seed=1)
    V, A = line_V(big, 0.6), line_A(big, 0.6)
    size = eps * big.K_P / (big.sparsity**2 * big.N**2)
    printed, right = [], []
    for eta in (0.1, 0.01, 0.001):
        for lam, found in ((size / big.N, printed), (eta / big.K_P * size, right)):
            stage = Stage("2", steps=1, eta_V=0.0, eta_A=eta / big.K_P, lam=lam)
            after = proximal_step(V, A, 0 * V, expected_gradients(big, V, A)[1], big.mu, stage)[1]
            bias = (A - after) / stage.eta_A - expected_preconditioned_gradients(big, V, A)[1]
            found.append(mu_norm(bias, big.mu) / (eps / (big.sparsity * big.N**2)))
    assert all(later > 5 * earlier for earlier, later in pairwise(printed))
    assert max(right) < 1
    # Off the support the lemma on denoising allows ∂l = εK_P/(N³Q²); the step takes η_A/μ_k of it, which λ has to cover.
    for N in (3, 10, 30):
        task = Task.random(N, 100, 2, seed=N)
        size = eps * task.K_P / (task.sparsity**2 * N**2)
        moved = size / N / task.mu
        assert moved.max() > N / 2 * (size / N)
        assert moved.max() <= 2 * size * (1 + 1e-9)


def test_e25_the_bound_on_the_support_loses_K_V_minus_K_VP(task):
    """−E∂l = μ_k K_VP(q − a) − μ_k(K_V − K_VP)a: with + the printed "≥" is wrong wherever K_V > K_VP."""
    V, A = line_V(task, 1.3), line_A(task, 0.6)
    p = population_projection(task, V, A)
    truth = -expected_gradients(task, V, A)[1] / task.mu
    right = p.K_VP * (task.Q - A) - (p.K_V - p.K_VP) * A
    printed = p.K_VP * (task.Q - A) + (p.K_V - p.K_VP) * A
    np.testing.assert_allclose(truth, right, atol=1e-12)
    assert (truth < printed - 1e-3)[task.Q > 0].all()


@pytest.mark.parametrize(("alpha_V", "alpha_A", "ratio"), [(0.6, 1.2, 0.70), (0.9, 1.08, 0.28), (0.6, 0.9, 1.15)])
def test_e25_the_line_after_it_needs_alpha_A_at_most_1(alpha_V, alpha_A, ratio):
    """On the lines −E∂l is μ_k α_V K_P(1 − α_V α_A)q up to 1/T, and the bound has 1 − α_V in place of 1 − α_V α_A."""
    task = Task.random(3, 100_000, 2, seed=1)
    on = task.Q > 0
    truth = -expected_gradients(task, line_V(task, alpha_V), line_A(task, alpha_A))[1]
    bound = task.mu * alpha_V * (1 - alpha_V) * task.K_P * task.Q
    np.testing.assert_allclose(truth[on] / bound[on], ratio, rtol=1e-3)
    assert ratio == pytest.approx((1 - alpha_V * alpha_A) / (1 - alpha_V))


def test_e26_the_expected_gradient_is_negative_on_the_support(task):
    V, A = line_V(task, 0.3), line_A(task, 0.3)
    on = expected_gradients(task, V, A)[1][task.Q > 0]
    size = 0.3 * task.K_P / (task.N * task.sparsity)
    assert (on < 0).all()  # printed: ≥ Θ(α_V K_P/(NQ))
    assert (-on > 0.2 * size).all()


def test_e27_the_signal_of_the_gradient_vanishes_with_1_minus_alpha():
    """On the line, −E∂l = μ_k α_V K_P((1 − α_V α_A)q − α_V(1 − α_A)/T): no constant makes it ≥ c·α_V K_P/(NQ) in Stage 2.2."""
    big = Task.random(3, 100_000, 2, seed=1)
    over_printed, over_right = [], []
    for alpha in (0.5, 0.9, 0.99, 0.999):
        on = -expected_gradients(big, line_V(big, alpha), line_A(big, alpha))[1][big.Q > 0]
        size = alpha * big.K_P / (big.N * big.sparsity)
        over_printed.append(on.min() / size)
        over_right.append(on.min() / (size * (1 - alpha)))
    assert over_printed[-1] < 0.01 < over_printed[0]
    assert min(over_right) > 0.25


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_e28_the_errors_stay_where_they_are_if_the_noise_is_below_a_product(alpha):
    """δ² ← e^{−2ηα²}δ² + 3η(δ + η·Err)Err, started at δ₀²: Err = δ₀α²/2 keeps it, Err = δ₀/α² does not."""
    start, eta = 0.05, 0.1

    def largest(err):
        square = start**2
        most = square
        for _ in range(20_000):
            square = np.exp(-2 * eta * alpha**2) * square + 3 * eta * (np.sqrt(square) + eta * err) * err
            most = max(most, square)
        return most

    assert largest(0.5 * start * alpha**2) <= start**2
    assert largest(start / alpha**2) > 100 * start**2


def local_step(eps_V, eps_A, eta, noise=StepNoise()):  # noqa: B008
    """(ε_A + ε_V)² before and after a step from points of the lines, and the error E of the lemma."""
    task = Task.random(3, T, 2, seed=0)
    p = population_projection(task, line_V(task, 1 - eps_V), line_A(task, 1 - eps_A))
    after = signal_step(task, p, eta / task.K_Q, eta / task.K_P, noise)
    error = 1 / (task.K_Q * task.T) + np.sqrt(noise.square_V) / (np.sqrt(task.K_P) * task.K_Q)
    return (eps_A + eps_V) ** 2, (2 - sum(after)) ** 2, error


def test_e29_the_local_lemma_needs_its_last_square_and_an_absolute_value():
    """(ε_A + ε_V)² next to (1, 1): at ε = 0 the printed bound is 0, and for ε_A ε_V < 0 it can be negative."""
    task = Task.random(3, T, 2, seed=0)
    noise = StepNoise(along_P=-0.1 * np.sqrt(task.K_P), square_V=0.01)
    for eps_V, eps_A, with_noise in ((0.0, 0.0, noise), (0.5, -0.4, StepNoise())):
        before, after, error = local_step(eps_V, eps_A, 0.1, with_noise)
        product, total = eps_V * eps_A, abs(eps_V + eps_A)
        printed = np.exp(-0.2) * before + 0.8 * total * (product + error) + 0.16 * product**2
        right = np.exp(-0.2) * before + 0.8 * total * (abs(product) + error) + 0.16 * (abs(product) + error) ** 2
        assert after <= right
        assert after > printed


def test_e30_theta_meets_the_condition_on_the_square_of_delta():
    """δ_V = Θ(θ): with θ = √(1/log(1/ε)) it is δ², not δ as Stage 2's lemma prints it, that stays below O(1/log(1/ε))."""
    task = Task.random(5, 100, 2, seed=0)
    hat = task.related(0.5, seed=1).P
    plain, squared = [], []
    for eps in (1e-2, 1e-8, 1e-32, 1e-128):
        theta = 0.5 * np.sqrt(1 / np.log(1 / eps))
        V = theta * hat + (1 - theta) * task.mu[:, None]
        delta = population_projection(task, V, task.Q).delta_V / np.sqrt(task.K_P)
        plain.append(delta * np.log(1 / eps))
        squared.append(delta**2 * np.log(1 / eps))
    assert all(later > 1.9 * earlier for earlier, later in pairwise(plain))
    np.testing.assert_allclose(squared, squared[0], rtol=1e-9)


def test_e31_one_token_leaves_nothing_to_learn():
    """N = 1 makes P = V = 1 and X = 1ᵀ, and ∇_a l = X(1ᵀa − 1) = 0. One *last* token is meant, with N tokens in the context."""
    A = np.array([[0.7], [0.3], [0.0], [0.0]])
    X = np.ones((1, 4))
    np.testing.assert_allclose(X.T @ (X @ A - 1), 0, atol=1e-15)
    P = Task.random(3, 4, 1, seed=0).P
    meant = Task(P, np.outer(np.eye(4)[0], np.ones(3)))  # every last token attends to the first position
    assert np.abs(expected_preconditioned_gradients(meant, P, np.repeat(A, 3, axis=1))[1]).max() > 0.01


def test_e32_the_inner_products_have_their_weights():
    """Σ ∇̂_V[n, m] P[n, m] without μ_m is not ⟨∇̂_V, P⟩_μ, which is at most max|∇̂_V|: O(N), where N³ is printed.

    ⟨∇̂_A, Q⟩_μ has one column, in which μ_k cancels: at most 2·max|∇_a|, O(1), where QN² is printed.
    """
    world = WORLDS[-1]
    task = world.task
    V, A = constrained_point(task, np.random.default_rng(2))
    plain_V, plain_A = world.gradients(V, A)
    hat_V, hat_A = zip(*(precondition(task, gV, gA) for gV, gA in zip(plain_V, plain_A, strict=True)), strict=True)
    truth = np.array([mu_inner(g, task.P, task.mu) for g in hat_V])
    assert np.abs(truth - (np.array(hat_V) * task.P).sum(axis=(1, 2))).max() > 0.1
    assert (np.abs(truth) <= np.abs(hat_V).max(axis=(1, 2)) + 1e-12).all()
    along_Q = np.array([mu_inner(g, task.Q, task.mu) for g in hat_A])
    assert (np.abs(along_Q) <= 2 * np.abs(plain_A).max(axis=(1, 2)) + 1e-12).all()


def test_e33_the_noise_of_part_I_carries_the_step_size():
    """Second line ≥ third line of part I: with 2·η/(4TK_Q) it is an equality, without the η it fails."""
    total, T_K_Q = 0.01, 1000.0
    for eta in (0.1, 0.01):
        second = (1 + 0.75 * eta) * total + eta * 0.75 / T_K_Q - 0.25 * eta * total
        third = (1 + 0.5 * eta) * total + eta * 0.25 / T_K_Q
        assert second - 2 * eta * 0.25 / T_K_Q == pytest.approx(third, abs=1e-15)
        assert second - 2 * 0.25 / T_K_Q < third


def test_e34_the_factor_of_delta_A_is_a_number(task):
    """Δ_A ← (1 − η_A K_P α_V² − η_A‖Δ_V‖²)Δ_A without noise; printed: … − η_A‖Δ_V‖² Δ_A inside the bracket."""
    V, A = constrained_point(task, np.random.default_rng(0))
    p = population_projection(task, V, A)
    delta_A = deviations(task, V, A)[1]
    after = deviations(task, V, A - ETA * expected_preconditioned_gradients(task, V, A)[1])[1]
    np.testing.assert_allclose(after, (1 - ETA * task.K_P * p.alpha_V**2 - ETA * p.delta_V**2) * delta_A, atol=1e-12)
    printed = (1 - ETA * task.K_P * p.alpha_V**2 - ETA * p.delta_V**2 * delta_A) * delta_A
    assert np.abs(after - printed).max() > 1e-3


def test_e35_stage_3_loses_the_root_of_Q():
    """α_A = 1 ± O(√Q δ_{A,*}) moves α_V by as much; the next line has O(δ_{A,*} α_V)."""
    over_printed, over_right = [], []
    for Q in (1, 4, 16, 64):
        task = Task.random(3, 100_000, Q, seed=Q)
        A = line_A(task, 0.99)
        distance = mu_norm(A - task.Q, task.mu)
        p = population_projection(task, task.P, A)
        alpha_V = signal_step(task, p, ETA / task.K_Q, 0.0, StepNoise())[0]
        moved = abs(alpha_V - 1) / ETA
        over_printed.append(moved / distance)
        over_right.append(moved / (distance * np.sqrt(Q)))
    assert all(later > 1.7 * earlier for earlier, later in pairwise(over_printed))
    assert 0.5 < min(over_right) < max(over_right) < 1.1


def test_e36_entries_of_order_one_do_not_bound_inner_products():
    """|V[n, m]| ≤ O(1), 1ᵀV = 1ᵀ and Vμ = μ leave ⟨V_s, V_t⟩ of order N; it is O(1) for columns with ‖V_s‖₁ ≤ O(1)."""
    largest = []
    for N in (4, 16, 64):
        sign = np.resize([1.0, -1.0], N)
        V = np.full((N, N), 1 / N) + np.outer(sign, sign)
        np.testing.assert_allclose(V.sum(axis=0), 1)
        np.testing.assert_allclose(V @ np.full(N, 1 / N), 1 / N)
        assert np.abs(V).max() <= 1.25
        largest.append(np.abs(V.T @ V).max() / N)
        P = Task.random(N, 10, 2, seed=N).P
        assert np.abs(P.T @ P).max() <= 1
    np.testing.assert_allclose(largest, 1, rtol=0.1)


def test_e37_the_lemma_on_the_sum_needs_signals_that_are_not_negative():
    """ "Both at most 1" is not enough: at α_V = −α_A the sum is 0, and the errors still move it."""
    task = Task.random(3, T, 2, seed=0)
    for a_V, a_A, holds in ((0.8, 0.8, True), (0.8, -0.8, False)):
        delta_A = 0.5 * np.sqrt(task.K_Q)
        p = projection_by_norms(task, a_V, 0.0, a_A**2 * task.K_Q + delta_A**2, a_A * task.K_Q)
        after = signal_step(task, p, ETA / task.K_Q, ETA / task.K_P, StepNoise())
        mean = (a_V + a_A) / 2
        bound = (1 - ETA * mean) * (1 - mean) + ETA * mean * delta_A**2 / task.K_Q
        assert bool(1 - sum(after) / 2 <= bound) is holds


def test_e38_the_gap_of_the_signals_settles_above_the_printed_value():
    """X ← e^{−2c_α η}X + 8ηE settles at 8ηE/(1 − e^{−2c_α η}): above the printed 4E/c_α, below the 12E/c_α of the lemma cited."""
    c_alpha, eta, error = 0.05, 0.1, 1e-3
    gap = 0.0
    for _ in range(5000):
        gap = np.exp(-2 * c_alpha * eta) * gap + 8 * eta * error
    assert 4 * error / c_alpha < gap < 12 * error / c_alpha
