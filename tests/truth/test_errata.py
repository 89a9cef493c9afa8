"""docs/paper/errata.md, rows 1 to 21, checked: for each misprint, what is printed fails and what holds passes.

The number of a test is the number of its row. Rows 22 to 38 are in ``test_errata_stages.py``, 42 to 51 in
``test_errata_proofs.py``.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from scb import Task
from scb.geometry import (
    deviations,
    line_A,
    line_V,
    mu_inner,
    mu_norm,
    population_projection,
    threshold_normalize,
    threshold_project,
)
from scb.theory.dynamics import population_recursion
from scb.theory.expectations import (
    constrained_expected_gradients,
    expected_gradients,
    expected_preconditioned_gradients,
)
from scb.theory.noise import GradientNoise
from truth.checks import noise_terms
from truth.enumeration import TASKS, WORLDS, constrained_direction, constrained_point, free_point, precondition

ETA = 0.3


def step(task, V, A, h_V, h_A, eta_V=ETA, eta_A=ETA):
    gV, gA = expected_preconditioned_gradients(task, V, A)
    return V - eta_V * (gV + h_V), A - eta_A * (gA + h_A)


@pytest.fixture(params=TASKS[-4:], ids=repr)
def task(request):
    return request.param


@pytest.fixture
def point(task):
    return constrained_point(task, np.random.default_rng(3))


def test_e1_thresholding_projection_keeps_the_constant(task, point):
    kept = np.where(point[1] >= 0.2, point[1], 0.0)
    printed = kept - kept.mean(axis=0)
    np.testing.assert_allclose(printed.sum(axis=0), 0, atol=1e-12)  # A would leave {1ᵀa = 1}
    np.testing.assert_allclose(threshold_project(point[1], 0.2).sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(threshold_project(point[1], 0.2), printed + 1 / task.T, atol=1e-12)


def test_e3_the_recursion_has_an_identity_term_and_drift_eta_over_T_K_Q(task):
    a_V, a_A = 0.2, 0.3
    V, A = step(task, line_V(task, a_V), line_A(task, a_A), 0, 0, ETA / task.K_Q, ETA / task.K_P)
    p = population_projection(task, V, A)
    printed = ETA * (1 - a_A * a_V) * np.array([a_A, a_V]) + ETA / task.K_Q * np.array([(1 - a_V) / task.T, 0])
    truth = [p.alpha_V, p.alpha_A]
    np.testing.assert_allclose(truth, printed + np.array([a_V, a_A]), atol=1e-12)
    assert np.abs(truth - printed).max() > 0.1
    first = population_recursion(task.K_P, task.K_Q, task.T, ETA / task.K_Q, ETA / task.K_P, 1)[1]
    np.testing.assert_allclose(first, [ETA / (task.T * task.K_Q), 0], atol=1e-12)  # not η·T/K_Q


def test_e4_the_cross_term_of_delta_V_is_negative(task, point):
    h = constrained_direction(task, np.random.default_rng(4))
    before, noise = population_projection(task, *point), noise_terms(task, *point, *h)
    after = population_projection(task, *step(task, *point, *h)).delta_V ** 2
    c = 1 - ETA * (before.alpha_A**2 * task.K_Q + 1 / task.T + before.delta_A**2)
    rest = c**2 * before.delta_V**2 + ETA**2 * (noise.square_V - noise.along_P**2 / task.K_P)
    np.testing.assert_allclose(after, rest - 2 * ETA * c * noise.along_V, atol=1e-12)
    assert abs(after - (rest + 2 * ETA * c * noise.along_V)) > 1e-6


def test_e5_the_projection_uses_alpha_A_times_Q(task, point):
    alpha = population_projection(task, *point).alpha_A
    printed = alpha * point[1] + (1 - alpha) / task.T  # Ã = α_A·A + …
    assert abs(mu_inner(point[1] - printed, task.Q, task.mu)) > 1e-6  # then Δ_A is not orthogonal to Q
    assert abs(mu_inner(point[1] - line_A(task, alpha), task.Q, task.mu)) < 1e-12


def test_e6_stage_3_grows_with_alpha_A(task):
    a_V, a_A = 0.4, 0.9
    p = population_projection(task, *step(task, line_V(task, a_V), line_A(task, a_A), 0, 0, ETA, 0))
    drift = ETA * (1 - a_V) / task.T
    np.testing.assert_allclose(p.alpha_V, a_V + ETA * task.K_Q * (1 - a_V * a_A) * a_A + drift, atol=1e-12)
    assert abs(p.alpha_V - (a_V + ETA * task.K_Q * (1 - a_V * a_A) * a_V + drift)) > 1e-3


def test_e7_the_error_of_A_contracts_with_delta_V(task, point):
    """Stage 2 prints (1 − ηα_V² − ηδ_A²)²δ_A²; the second δ_A² must be δ_V²."""
    p = population_projection(task, *point)
    after = population_projection(task, *step(task, *point, 0, 0, 0, ETA / task.K_P))
    delta_A, delta_V = p.delta_A**2 / task.K_Q, p.delta_V**2 / task.K_P
    truth = after.delta_A**2 / task.K_Q
    np.testing.assert_allclose(truth, (1 - ETA * p.alpha_V**2 - ETA * delta_V) ** 2 * delta_A, atol=1e-12)
    assert abs(truth - (1 - ETA * p.alpha_V**2 - ETA * delta_A) ** 2 * delta_A) > 1e-6


def test_e8_rounding_moves_the_signal_by_one_over_T_K_Q():
    big = Task.random(3, 500, 2, seed=1)
    A = line_A(big, 0.4)
    change = population_projection(big, big.P, threshold_project(A, 0.02)).alpha_A - 0.4
    printed = big.mu @ (1 - np.where(big.Q > 0, A, 0).sum(axis=0)) / big.T
    np.testing.assert_allclose(change, printed / big.K_Q, atol=1e-12)
    assert abs(change - printed) > 0.5 * printed


def test_e9_the_difference_of_signals_shrinks_without_changing_sign(task):
    """Stage 1, part III prints −(1 − η(1 − α_V α_A))(α_V − α_A)."""
    a_V, a_A = 0.3, 0.1
    p = population_projection(task, *step(task, line_V(task, a_V), line_A(task, a_A), 0, 0, ETA / task.K_Q, ETA / task.K_P))
    kept = (1 - ETA * (1 - a_V * a_A)) * (a_V - a_A)
    drift = ETA * (1 - a_V) / (task.T * task.K_Q)
    np.testing.assert_allclose(p.alpha_V - p.alpha_A, kept + drift, atol=1e-12)
    assert abs(p.alpha_V - p.alpha_A - (-kept + drift)) > 0.1


def test_e10_stage_3_measures_alpha_A_by_the_whole_difference(task, point):
    """⟨Δ_A, Q⟩_μ is 0 by construction; α_A = 1 + ⟨A − Q, Q⟩_μ / K_Q."""
    A = point[1]
    alpha = population_projection(task, *point).alpha_A
    np.testing.assert_allclose(alpha, 1 + mu_inner(A - task.Q, task.Q, task.mu) / task.K_Q, atol=1e-12)
    np.testing.assert_allclose(mu_inner(deviations(task, *point)[1], task.Q, task.mu), 0, atol=1e-12)
    assert abs(alpha - 1) > 1e-3


def test_e11_the_softmax_preconditioner_is_squared_near_sparse_attention():
    T, first = 10_000, 0.3
    a = np.full(T, (1 - first) / (T - 1))
    a[0] = first
    M_row = -first * a
    M_row[0] += first  # row 1 of diag(a) − aaᵀ
    corner = M_row @ M_row  # entry (1, 1) of its square
    assert abs(corner - (first * (1 - first)) ** 2) < 1e-4
    assert abs(corner - first * (1 - first)) > 0.1
    # near uniform attention the printed form holds
    small = np.full(50, 1 / 50)
    M = np.diag(small) - np.outer(small, small)
    np.testing.assert_allclose(M @ M, (np.eye(50) - 1 / 50) / 50**2, atol=1e-15)


def test_e12_rounding_keeps_the_error_of_A_up_to_a_constant():
    """‖A_* − Q‖_μ² ≤ O(Q²/T² + δ_A² N Q) makes ε/(NQ) of δ_A², not ε/√(NQ); and the factor NQ is not there at all."""
    eps = 1e-6
    for N, Q in ((3, 2), (10, 3), (30, 8)):
        task = Task.random(N, 2000, Q, seed=N)
        printed_bound = N * Q * np.array([eps / np.sqrt(N * Q), eps / (Q * np.sqrt(N)), eps / (N * Q)])
        assert printed_bound[0] > 2 * eps  # the lemma's own conclusion
        assert printed_bound[1] > 1.7 * eps  # what its corollary and the theorem take
        assert printed_bound[2] == pytest.approx(eps)
        delta_A = rounding_deviation(task, np.random.default_rng(N))
        A = line_A(task, 0.95) + 0.1 / (Q * np.sqrt(N)) * delta_A / mu_norm(delta_A, task.mu)
        left = mu_norm(threshold_normalize(A, task.weight_threshold) - task.Q, task.mu) ** 2
        square = population_projection(task, task.P, A).delta_A ** 2
        assert 0.1 < left / (square + Q / task.T**2) < 8  # whatever N and Q are


def rounding_deviation(task, rng):
    """A random Δ_A on the positions that count, with column sums 0 and orthogonal to Q."""
    on = task.Q > 0
    delta = np.where(on, rng.normal(size=task.Q.shape), 0.0)
    delta -= on * delta.sum(axis=0) / on.sum(axis=0)
    centred = np.where(on, task.Q - on / on.sum(axis=0), 0.0)
    return delta - centred * mu_inner(delta, centred, task.mu) / mu_inner(centred, centred, task.mu)


def test_e13_transfer_leaves_entries_of_size_alpha_over_Q():
    """After one step at η = 1 the entries are α_V·q, so a threshold at the size of α_V itself would remove them all."""
    big = Task.random(3, 5000, 4, seed=2)
    V, A = line_V(big, 0.3), line_A(big, 0.0)
    after = step(big, V, A, 0, 0, 0, 1 / big.K_P)[1]
    on = after[big.Q > 0]
    np.testing.assert_allclose(on, 0.3 * big.Q[big.Q > 0], atol=2 / big.T)
    assert on.max() < 0.3


def test_e14_the_expected_gradient_as_printed_needs_the_constraints():
    world = WORLDS[-1]
    rng = np.random.default_rng(0)
    V, A = rng.normal(size=(3, 3)), rng.normal(size=(world.task.T, 3))
    truth = [world.mean(g) for g in world.gradients(V, A)]
    for exact, printed, enumerated in zip(
        expected_gradients(world.task, V, A), constrained_expected_gradients(world.task, V, A), truth, strict=True
    ):
        np.testing.assert_allclose(exact, enumerated, atol=1e-10)
        assert np.abs(printed - enumerated).max() > 0.1


@pytest.mark.parametrize("free", [False, True], ids=["constrained", "free"])
def test_e14_so_do_the_expected_preconditioned_gradients(free):
    """E∇̂ as the lemma after it prints them, against a sum over all outcomes."""
    world = WORLDS[-1]
    task, rng = world.task, np.random.default_rng(0)
    V, A = free_point(task, rng) if free else constrained_point(task, rng)
    truth = precondition(task, *(world.mean(g) for g in world.gradients(V, A)))
    P, Q, mu = task.P - task.mu[:, None], task.Q - 1 / task.T, task.mu
    of_V = mu_inner(A, A, mu) * (V - mu[:, None]) - mu_inner(task.Q, A, mu) * P
    of_A = (mu_inner(V, V, mu) - mu @ mu) * (A - 1 / task.T) - (mu_inner(V, task.P, mu) - mu @ mu) * Q
    error = [np.abs(exact - printed).max() for exact, printed in zip(truth, (of_V, of_A), strict=True)]
    assert min(error) > 0.1 if free else max(error) < 1e-10


def test_e15_the_gradient_of_one_entry_needs_delta_V(task, point):
    """−E∂l = μ_k(K_VP q − K_V a); the main text has α_V² K_P for K_V, which drops ‖Δ_V‖_μ²."""
    V, A = point
    p = population_projection(task, V, A)
    centre = np.eye(task.T) - 1 / task.T
    truth = -precondition(task, 0 * V, expected_gradients(task, V, A)[1])[1]
    np.testing.assert_allclose(truth, centre @ (p.K_VP * task.Q - p.K_V * A), atol=1e-10)
    assert np.abs(truth - centre @ (p.alpha_V * task.K_P * (task.Q - p.alpha_V * A))).max() > 1e-3


def test_e16_the_batch_of_stage_1_makes_the_noise_fall_like_the_root_of_T():
    """B ∝ T² and E‖∇̂_A l‖_μ² ∝ T leave ‖h‖_μ ∝ 1/√T; for the printed 1/T the batch would have to grow like T³."""
    sizes = np.array([100, 400, 1600])
    squares = []
    for T in sizes:
        big = Task.random(3, int(T), 2, seed=1)
        squares.append(GradientNoise(big, line_V(big, 0.3), line_A(big, 0.3)).square_A())
    noise = np.sqrt(np.array(squares) / sizes**2.0)
    np.testing.assert_allclose(np.polyfit(np.log(sizes), np.log(noise), 1)[0], -0.5, atol=0.05)
    with_cube = np.sqrt(np.array(squares) / sizes**3.0)
    np.testing.assert_allclose(np.polyfit(np.log(sizes), np.log(with_cube), 1)[0], -1, atol=0.05)


def test_e17_the_first_noise_entry_of_stage_1_is_that_of_V(task):
    """On the line both errors are 0, so that the printed entry α_A‖Δ_V‖_μ²/(K_P K_Q) would leave no noise in α_V at all."""
    h = constrained_direction(task, np.random.default_rng(4))
    a_V, a_A = 0.02, 0.01
    V, A = line_V(task, a_V), line_A(task, a_A)
    quiet = population_projection(task, *step(task, V, A, 0, 0, ETA / task.K_Q, ETA / task.K_P)).alpha_V
    noisy = population_projection(task, *step(task, V, A, *h, ETA / task.K_Q, ETA / task.K_P)).alpha_V
    np.testing.assert_allclose(noisy - quiet, -ETA * mu_inner(h[0], task.P, task.mu) / (task.K_P * task.K_Q), atol=1e-12)
    printed = -ETA * a_A * population_projection(task, V, A).delta_V ** 2 / (task.K_P * task.K_Q)
    assert abs(noisy - quiet - printed) > 1e-3


def test_e18_the_entries_of_A_are_separated_by_alpha_A():
    """With α_V = 0.5 and α_A = 0 the printed condition on α_V holds, and no threshold finds the positions."""
    big = Task.random(3, 5000, 2, seed=2)
    for alpha_A, separated in ((0.0, False), (0.5, True)):
        A = line_A(big, alpha_A)
        assert bool(A[big.Q > 0].min() > A[big.Q == 0].max() + 1e-9) is separated


def test_e19_the_signals_are_centred(task, point):
    V, A = point
    p = population_projection(task, V, A)
    inner_V, inner_A = mu_inner(V, task.P, task.mu), mu_inner(A, task.Q, task.mu)
    np.testing.assert_allclose(p.alpha_V, (inner_V - task.mu @ task.mu) / task.K_P, atol=1e-12)
    np.testing.assert_allclose(p.alpha_A, (inner_A - 1 / task.T) / task.K_Q, atol=1e-12)
    assert min(abs(p.alpha_V - inner_V / task.K_P), abs(p.alpha_A - inner_A / task.K_Q)) > 0.1


def test_e20_it_is_the_mean_that_concentrates():
    """With B = G/(δε²) the mean of B samples is within ε with probability 1 − δ; a single sample hardly ever is."""
    world = WORLDS[-1]
    V, A = line_V(world.task, 0.3), line_A(world.task, 0.3)
    y = world.gradients(V, A)[0].reshape(len(world), -1)
    G, delta, eps = float(world.mean((y**2).sum(axis=1))), 0.2, 0.1
    rng = np.random.default_rng(0)
    draws = rng.choice(len(world), (500, int(np.ceil(G / (delta * eps**2)))), p=world.probability / world.probability.sum())
    assert np.mean(np.linalg.norm(y[draws].mean(axis=1) - world.mean(y), axis=1) <= eps) >= 1 - delta
    assert np.mean(np.linalg.norm(y[draws[:, 0]] - world.mean(y), axis=1) <= eps) < 0.1


def test_every_row_that_names_a_test_has_it():
    here = Path(__file__).parent
    page = (here.parents[1] / "docs" / "paper" / "errata.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| \d+ \| ", line)]
    named = [int(row[0]) for row in rows if re.match(r"test\b", row[-1])]
    code = "".join(file.read_text() for file in here.glob("test_errata*.py"))
    assert sorted(named) == sorted({int(number) for number in re.findall(r"^def test_e(\d+)_", code, flags=re.M)})
