"""The inequality lemmas hold with the constants of ``scb.theory.bounds``, and would not with half of them.

To see what is needed beside what is in use: ``PYTHONPATH=tests python -m truth.inequalities``.
"""

from math import sqrt
from pathlib import Path

import pytest

from scb import Task, plan
from scb.theory.bounds import BOUNDS
from scb.theory.constants import attention_error
from scb.theory.planner import Constants
from truth.adversary import adverse, move, state
from truth.bounds_stage2 import done
from truth.inequalities import measure

ROUNDING = 1e-6


@pytest.fixture(scope="module")
def measured():
    return measure()


@pytest.mark.parametrize("name", BOUNDS)
def test_the_constant_is_enough_and_needed(name, measured):
    bound = BOUNDS[name]
    slack = measured[name] / bound.constant if bound.largest else bound.constant / measured[name]
    assert 1 - ROUNDING <= slack <= 2, f"{bound.statement}: c = {measured[name]:.4g} was measured, {bound.constant} is in use"


@pytest.mark.parametrize("name", [name for name, bound in BOUNDS.items() if bound.printed is not None])
def test_the_printed_constant_is_enough(name, measured):
    bound = BOUNDS[name]
    assert bound.printed is not None
    enough = bound.printed <= measured[name] if bound.largest else measured[name] <= bound.printed
    assert enough or measured[name] == pytest.approx(bound.printed, rel=ROUNDING)


def test_the_page_has_the_constants_that_are_needed_and_in_use(measured):
    page = (Path(__file__).parents[2] / "docs" / "paper" / "constants.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    in_use = {name: f"{bound.constant:g}" for name, bound in BOUNDS.items()}
    assert {row[0].strip("`"): row[-1] for row in rows} == in_use
    assert {row[0].strip("`"): row[-2] for row in rows} == {name: f"{measured[name]:.2g}" for name in in_use}


@pytest.mark.parametrize(("N", "Q", "eps"), [(3, 2, 0.1), (3, 1, 1e-3), (10, 4, 0.01)])
@pytest.mark.parametrize("transfer", [False, True], ids=["scratch", "transfer"])
def test_a_plan_holds_with_its_noise_turned_against_it(N, Q, eps, transfer):
    """Through all stages, each with the noise that its batch size allows: they end in time, and where the plan says."""
    task = Task.random(N, 10**6, Q, seed=0)
    made = plan(N, task.T, Q, eps, K_P=task.K_P, K_Q=task.K_Q, overlap=0.6)
    first, second, third = made.transfer if transfer else made.stages
    if transfer:
        alpha = 0.6 * made.theta
        p = state(task, alpha, alpha, Constants().start_error * made.theta**2 * task.K_P, 1 / task.T)
    else:
        p = state(task, 0.0, 0.0, 0.0, 0.0)
        against = task.K_P / (4 * task.T)
        reached = lambda p: max(p.alpha_V, p.alpha_A) >= min(0.5, 1 / (Q * N))  # noqa: E731
        p = run(task, p, first, (against, against), reached)
    square = attention_error(N, Q, eps)
    against = (second.noise_V * sqrt(task.K_P / 2), second.noise_A * sqrt(task.K_Q / 2))
    p = run(task, p, second, against, lambda p: done(task, p, sqrt(square / task.K_Q)))
    assert p.delta_A**2 <= square
    left = sqrt(Constants().rounding_A * square / task.K_Q)  # all that rounding may leave, along the line of A
    assert left**2 * task.K_Q <= eps
    for side in (-1.0, 1.0):
        q = state(task, p.alpha_V, 1 - side * left, p.delta_V**2, 0.0)
        against = (-side * third.noise_V * sqrt(task.K_P), 0.0)
        for step in range(10 * third.steps):
            q = move(task, q, third.eta, adverse(task, q, third.noise_V, 0.0, against), eta_A=0.0)
            assert step < third.steps or (1 - q.alpha_V) ** 2 * task.K_P + q.delta_V**2 <= eps


def run(task, p, stage, against, over):
    """The steps of a stage until ``over``, which must come within the plan's number of steps."""
    for _ in range(stage.steps):
        if over(p):
            return p
        p = move(task, p, stage.eta, adverse(task, p, stage.noise_V, stage.noise_A, against))
    assert over(p), f"{stage.name} has not ended after {stage.steps} steps: {p}"
    return p
