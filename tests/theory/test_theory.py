import numpy as np
import pytest

from scb import Task, plan
from scb.geometry import line_A, line_V, mu_norm, population_projection, threshold_normalize, uniform_start
from scb.metrics import COLUMNS, measure, star
from scb.theory.constants import attention_error
from scb.theory.dynamics import population_recursion, population_step
from scb.theory.expectations import best_value, population_loss
from scb.theory.planner import Constants
from scb.training.sources.population import Population
from scb.training.updates import precondition_A, precondition_V
from truth.checks import population_flow


@pytest.mark.parametrize("N", [2, 3, 10])
@pytest.mark.parametrize("T", [50, 1000])
def test_2000_population_steps_stay_on_the_lines_and_follow_the_recursion(N, T):
    """Two ways of stepping: the closed form of E∇̂l, and the Population source with the preconditioners."""
    task = Task.random(N, T, 2, seed=1)
    eta_V, eta_A = 0.02 / task.K_Q, 0.02 / task.K_P
    path = population_recursion(task.K_P, task.K_Q, T, eta_V, eta_A, 2000)
    V, A = uniform_start(task.mu, T)
    V2, A2 = V, A
    source = Population(task)
    for alpha in path[1:]:
        V, A = population_step(task, V, A, eta_V, eta_A)
        g = source(V2, A2, 0, np.uint64(0))
        V2, A2 = V2 - eta_V * precondition_V(g.V, task.mu), A2 - eta_A * precondition_A(g.A, task.mu)
        for at in ((V, A), (V2, A2)):
            np.testing.assert_allclose(at[0], line_V(task, alpha[0]), rtol=0, atol=1e-10)
            np.testing.assert_allclose(at[1], line_A(task, alpha[1]), rtol=0, atol=1e-10)
    assert (path[-1] > 0.9).all()  # it has learned


def test_euler_approaches_the_flow_at_order_one():
    K_P, K_Q, T, end = 0.4, 0.5, 1000, 12.0
    limit = population_flow(K_P, K_Q, T, end)
    sizes = np.array([0.1, 0.05, 0.025, 0.0125])
    errors = [np.abs(population_recursion(K_P, K_Q, T, eta / K_Q, eta / K_P, round(end / eta))[-1] - limit).max() for eta in sizes]
    assert 0.9 < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < 1.1


def test_stage_1_lasts_log_T_steps():
    """Steps until α = 0.1 grow by log(10)/η for each factor 10 in T."""
    eta, lengths = 0.01, []
    for T in (10**3, 10**4, 10**5, 10**6):
        path = population_recursion(0.4, 0.5, T, eta / 0.5, eta / 0.4, 3000)
        lengths.append(np.argmax(path.max(axis=1) > 0.1))
    np.testing.assert_allclose(np.diff(lengths), np.log(10) / eta, rtol=0.02)


def test_metrics_at_the_truth_and_at_the_start():
    task = Task.random(3, 100, 2, seed=1)
    at_truth = measure(task, task.P, task.Q)
    assert set(at_truth) == set(COLUMNS)
    for name in ("delta_V", "delta_A", "dist_V", "dist_A", "dist_V_star", "dist_A_star"):
        assert at_truth[name] == pytest.approx(0, abs=1e-7)
    for name in ("alpha_V", "alpha_A", "sim_V", "sim_A", "sim_V_star", "sim_A_star"):
        assert at_truth[name] == pytest.approx(1)
    start = measure(task, *uniform_start(task.mu, 100))
    assert start["dist_V"] == pytest.approx(np.sqrt(task.K_P))
    assert start["dist_A"] == pytest.approx(np.sqrt(task.K_Q))
    assert start["alpha_A"] == pytest.approx(0, abs=1e-12)


def test_distances_split_into_signal_and_error():
    """Pythagoras: ‖A − Q‖² = (1 − α_A)²K_Q + ‖Δ_A‖², and the same for V."""
    task = Task.random(4, 60, 2, seed=1)
    rng = np.random.default_rng(0)
    V = line_V(task, 0.6) + precondition_V(rng.normal(size=(4, 4)) * 0.01, task.mu)
    A = line_A(task, 0.7) + precondition_A(rng.normal(size=(60, 4)) * 0.01, task.mu)
    m = measure(task, V, A)
    assert m["dist_V"] ** 2 == pytest.approx((1 - m["alpha_V"]) ** 2 * task.K_P + m["delta_V"] ** 2)
    assert m["dist_A"] ** 2 == pytest.approx((1 - m["alpha_A"]) ** 2 * task.K_Q + m["delta_A"] ** 2)


def test_star_recovers_the_truth_from_a_scaled_and_noisy_attention():
    task = Task.random(3, 2000, 2, seed=1)
    A = line_A(task, 0.6) + np.random.default_rng(0).normal(scale=0.003, size=(2000, 3))
    V_star, A_star = star(task, A)
    assert ((A_star > 0) == (task.Q > 0)).all()
    assert measure(task, V_star, A_star)["dist_A"] < 0.02
    assert measure(task, V_star, A_star)["dist_V"] < 0.02
    assert population_loss(task, V_star, A_star) <= population_loss(task, task.P, A_star)
    np.testing.assert_allclose(best_value(task, task.Q), task.P, atol=1e-12)


def test_population_projection_needs_no_dense_Q():
    task = Task.random(50, 100_000, 2, seed=1)
    A = np.full((100_000, 50), 1 / 100_000, order="F")
    assert population_projection(task, task.P, A).alpha_A == pytest.approx(0, abs=1e-10)


# ------------------------------------------------------------------------------------------------------- planner


def test_a_plan_warns_where_no_accuracy_is_in_the_range_of_the_lemma():
    assert plan(3, 5000, 2).warning == "Lemma E.3 asks for ε between Q²N³/√T = 1.53 and 0.1: at these sizes there is none"
    assert plan(3, 10**8, 2, eps=0.05).warning == ""
    assert plan(3, 10**8, 2, eps=0.001).warning.endswith("0.001 is not")
    assert plan(3, 10**8, 2, eps=0.3).warning.endswith("0.3 is not")


def test_plan_scales_as_the_lemmas_say():
    base, longer = plan(3, 10**4, 2), plan(3, 10**8, 2)
    s1, s2, s3 = base.stages
    l1, l2, l3 = longer.stages
    assert l1.batch_size / s1.batch_size > 1e8  # T² and logs
    assert l1.steps / s1.steps == pytest.approx(np.log(10**8 / 2) / np.log(10**4 / 2), rel=0.05)
    assert 1 < l2.batch_size / s2.batch_size < 1.6  # log T only
    assert l3.batch_size == s3.batch_size
    for short, long in zip(base.transfer, longer.transfer, strict=True):
        assert 1 <= long.batch_size / short.batch_size < 2  # log T only
    coarse, fine = (plan(3, 10**12, 2, eps=eps).stages[1] for eps in (1e-3, 1e-4))
    assert fine.batch_size / coarse.batch_size == pytest.approx(100, rel=0.1)  # 1/ε²
    assert fine.lam / coarse.lam == pytest.approx(0.1)
    assert s2.threshold == pytest.approx(0.25 / (2**2 * 3))  # Θ(1/(Q²N))


def test_plan_asks_stage_2_for_the_error_that_stage_3_bears():
    """‖Δ_A‖_μ² = O(ε²/(NQ)), which rounding and the last lemma turn into ‖V − P‖_μ² ≤ ε."""
    for N, Q, eps in ((3, 2, 0.01), (10, 4, 1e-3)):
        target = attention_error(N, Q, eps)
        assert target == pytest.approx(attention_error(N, Q, 2 * eps) / 4)
        assert target == pytest.approx(attention_error(N, 2 * Q, eps) * 2)
        task = Task.random(N, 10**4, Q, seed=0)
        worst = np.zeros_like(task.Q)
        for k in range(N):
            worst[task.positions[:, k], k] = np.linalg.svd(np.eye(Q) - task.weights[:, [k]])[2][0]
        worst -= (task.Q == 0) * worst.sum(axis=0) / (task.T - Q)
        A = threshold_normalize(line_A(task, 0.95) + np.sqrt(target) * worst / mu_norm(worst, task.mu), task.weight_threshold)
        assert mu_norm(A - task.Q, task.mu) ** 2 < eps
        assert mu_norm(best_value(task, A) - task.P, task.mu) ** 2 < eps  # where Stage 3 ends without noise


def test_plan_keeps_lambda_in_step_with_eta():
    """λ is what a proximal step subtracts, so it carries η_A; and it covers what the noise moves an entry off the support by."""
    slow, fast = (plan(3, 10**6, 2, eta=eta).stages[1].lam for eta in (0.01, 0.1))
    assert fast / slow == pytest.approx(10)


def test_plan_uses_what_is_known_and_its_constants():
    known = plan(3, 10**4, 2, K_P=0.5, K_Q=0.25, eta=0.05)
    assert (known.K_P, known.K_Q, known.stages[0].eta) == (0.5, 0.25, 0.05)
    base = plan(3, 10**4, 2)
    twice = plan(3, 10**4, 2, constants=Constants(stage2_lambda=2 * Constants().stage2_lambda, square_A=2 * Constants().square_A))
    assert twice.stages[1].lam == pytest.approx(2 * base.stages[1].lam)
    assert twice.stages[0].samples == pytest.approx(2 * base.stages[0].samples)
    assert twice.samples > base.samples > base.transfer_samples


@pytest.mark.parametrize(
    ("kwargs", "name"), [({"eps": 0.5}, "eps"), ({"delta": 0}, "delta"), ({"sparsity": 0}, "sparsity"), ({"N": 1}, "N")]
)
def test_plan_names_bad_input(kwargs, name):
    with pytest.raises(ValueError, match=f"{name} = "):
        plan(**({"N": 3, "T": 100, "sparsity": 2} | kwargs))
