"""Rules of one's own, what they remember, and step sizes and λ that change from step to step."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import scb
from scb.geometry import trivial_V
from scb.task.sampling import step_keys
from scb.training.engine import Composed
from scb.training.fingerprint import fingerprints
from scb.training.loop import train
from scb.training.recipes.recipe import Recipe
from scb.training.run import Run
from scb.training.simulation import simulate
from scb.training.sources.population import Population
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage, proximal_step
from scb.training.starts import GivenStart, UniformAttention
from scb.training.updates import precondition_V
from training.test_training import same

TASK = scb.Task.random(3, 40, 2, seed=1)


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba's Algorithm 1, on V and A; its state are four arrays and a number."""

    def start(self, V, A):
        return {"t": np.zeros(()), "mV": 0 * V, "vV": 0 * V, "mA": 0 * A, "vA": 0 * A}

    def __call__(self, V, A, gV, gA, mu, stage, state):
        t = state["t"] + 1
        after = {"t": t}
        for name, g in (("V", gV), ("A", gA)):
            after["m" + name] = 0.9 * state["m" + name] + 0.1 * g
            after["v" + name] = 0.99 * state["v" + name] + 0.01 * g**2
        scaled = {x: after["m" + x] / (1 - 0.9**t) / (np.sqrt(after["v" + x] / (1 - 0.99**t)) + 1e-8) for x in "VA"}
        return V - stage.eta_V * scaled["V"], A - stage.eta_A * scaled["A"], after


def recipe(*stages):
    return Recipe("mine", UniformAttention(trivial_V(TASK.mu), TASK.T), TASK.mu, stages)


ADAM = recipe(
    Stage("a", 9, 0.01, 0.001, rule=Adam()),
    Stage("b", 5, 0.01, 0.001, lam=1e-5),
    Stage("c", 9, 0.02, 0.001, rule=Adam(), batch_size=8),
)


def test_a_rule_that_remembers_takes_the_steps_of_its_equations():
    """Against Adam as a plain loop; it begins anew in each stage, and stages of other rules go on as ever."""
    run = train(TASK, ADAM, seed=3)
    V, A = trivial_V(TASK.mu), np.full((TASK.T, 3), 1 / TASK.T)
    keys = step_keys(3, range(23))
    for stage, steps in zip(ADAM.stages, (range(9), range(9, 14), range(14, 23)), strict=True):
        mV = vV = mA = vA = 0.0
        for t, step in enumerate(steps, start=1):
            g = Fresh(TASK)(V, A, stage.batch_size, keys[step])
            if stage.rule == "proximal":
                V, A = proximal_step(V, A, g.V, g.A, TASK.mu, stage)
                continue
            mV, mA = 0.9 * mV + 0.1 * g.V, 0.9 * mA + 0.1 * g.A
            vV, vA = 0.99 * vV + 0.01 * g.V**2, 0.99 * vA + 0.01 * g.A**2
            V = V - stage.eta_V * (mV / (1 - 0.9**t)) / (np.sqrt(vV / (1 - 0.99**t)) + 1e-8)
            A = A - stage.eta_A * (mA / (1 - 0.9**t)) / (np.sqrt(vA / (1 - 0.99**t)) + 1e-8)
    np.testing.assert_allclose(run.V, V, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.A, A, rtol=0, atol=1e-12)


@pytest.mark.parametrize("stop", [2, 8, 9, 10, 14, 15, 22])
def test_what_a_rule_remembers_survives_a_break(tmp_path, stop):
    class BreakError(Exception):
        pass

    kept = {}

    def break_off(run):
        if run.step == stop + 1:
            raise BreakError
        kept.update(run=run)

    whole = train(TASK, ADAM, seed=3, every=1)
    with pytest.raises(BreakError):
        train(TASK, ADAM, seed=3, every=1, callbacks=[break_off], checkpoint=tmp_path, checkpoint_every=1)
    stopped = Run.load(tmp_path)
    assert stopped.step == stop
    assert bool(stopped.state) == (stop not in (9, 10, 14))  # between stages, and in one without a state, there is nothing to keep
    if stopped.state:
        assert stopped.state["t"].shape == ()
        assert stopped.state["t"] == (stop if stop < 9 else stop - 14)
    for name, array in kept["run"].state.items():
        np.testing.assert_array_equal(stopped.state[name], array)
        assert stopped.state[name].flags.c_contiguous == array.flags.c_contiguous  # sums over it go the same way
    same(train(TASK, ADAM, seed=3, every=1, checkpoint=tmp_path, checkpoint_every=1, resume=True), whole)


def test_a_rule_is_any_function_and_another_one_cannot_be_resumed(tmp_path):
    def only_V(V, A, gV, gA, mu, stage):
        return V - stage.eta_V * precondition_V(gV, mu, "mu"), A

    def other(V, A, gV, gA, mu, stage):
        return V, A

    run = train(TASK, recipe(Stage("1", 6, 0.1, 0.1, rule=only_V)), seed=1, checkpoint=tmp_path)
    assert np.abs(run.V - trivial_V(TASK.mu)).max() > 1e-6
    np.testing.assert_array_equal(run.A, 1 / TASK.T)
    assert run.verdict is not None
    with pytest.raises(ValueError, match="was made with a different recipe"):
        train(TASK, recipe(Stage("1", 6, 0.1, 0.1, rule=other)), seed=1, checkpoint=tmp_path, resume=True)


def test_functions_of_one_name_are_told_apart():
    """By what they use of the function around them, and lambdas by their code; and not by the process that they live in."""

    def scaled(factor):
        def rule(V, A, gV, gA, mu, stage):
            return V - factor * gV, A

        return rule

    same_rule, other = fingerprints(a=scaled(1.0))["a"], fingerprints(a=scaled(2.0))["a"]
    assert fingerprints(a=scaled(1.0))["a"] == same_rule != other
    assert fingerprints(a=lambda V, A: (V, A))["a"] != fingerprints(a=lambda V, A: (V + 1, A))["a"]
    assert fingerprints(a=lambda V, A: (V + 2, A))["a"] != fingerprints(a=lambda V, A: (V + 1, A))["a"]


def test_schedules_are_the_numbers_that_they_stand_for():
    """A function, an array, and one stage for each value take the same steps; with our engine and with samples of NumPy."""
    values = [0.1, 0.05, 0.0, 0.2, 0.01]
    lam = [0.0, 1e-3, 2e-3, 0.0, 1e-3]
    table = recipe(Stage("1", 5, values, 0.03, lam=np.array(lam)))
    function = recipe(Stage("1", 5, values.__getitem__, 0.03, lam=lam.__getitem__))
    stages = recipe(*(Stage("1", 1, eta, 0.03, lam=one) for eta, one in zip(values, lam, strict=True)))
    for source in (None, Fresh(TASK), Population(TASK)):
        runs = [train(TASK, made, seed=2, source=source) for made in (table, function, stages)]
        for run in runs[:2]:
            np.testing.assert_array_equal(run.V, runs[2].V)
            np.testing.assert_array_equal(run.A, runs[2].A)
    simulated = [simulate(TASK, made, seed=2, every=1)["delta_A"] for made in (table, stages)]
    np.testing.assert_array_equal(*simulated)


def test_a_schedule_is_a_part_of_what_is_resumed(tmp_path):
    slow = recipe(Stage("1", 20, lambda step: 0.1 / (1 + step), 0.03))
    train(TASK, slow, seed=2, checkpoint=tmp_path)
    train(TASK, recipe(Stage("1", 20, 0.1 / np.arange(1, 21), 0.03)), seed=2, checkpoint=tmp_path, resume=True)
    with pytest.raises(ValueError, match="was made with a different recipe"):
        train(TASK, recipe(Stage("1", 20, lambda step: 0.2 / (1 + step), 0.03)), seed=2, checkpoint=tmp_path, resume=True)


def test_recipes_take_functions_of_the_step():
    made = scb.recipes.paper(TASK, eta=(0.1, lambda step: 0.1 / (1 + step), 0.1), steps=(3, 4, 0), lam=lambda step: 1e-3 * step)
    one, two = made.stages
    np.testing.assert_allclose(two.eta_A * TASK.K_P, 0.1 / np.arange(1, 5))
    np.testing.assert_allclose(two.lam, 1e-3 * np.arange(4))
    assert one.eta_V == pytest.approx(0.1 / TASK.K_Q)
    assert scb.recipes.sgd(TASK, eta=lambda step: 0.1, steps=2).stages[1].eta_V.tolist() == [0.1 / TASK.K_Q] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Stage("1", 3, [0.1, 0.2], 0.1),
            r"eta_V has shape \(2,\) in stage '1': a schedule must have one value for each of",
        ),
        (lambda: Stage("1", 2, [0.1, -0.2], 0.1), "eta_V of step 1 = -0.2 in stage '1': it must be at least 0"),
        (lambda: Stage("1", 2, 0.1, lambda step: np.nan), "eta_A of step 0 = nan in stage '1'"),
        (lambda: Stage("1", 2, 0.1, 0.1, lam="x"), "lam = 'x' in stage '1': it must be a number"),
        (lambda: Stage("1", 2, 0.1, 0.1, rule="x"), "rule = 'x': it must be one of 'proximal', 'vanilla'"),
        (lambda: Stage("1", 2, 0.1, 0.1, rule=3), "rule = 3: it must be one of"),
        (
            lambda: train(TASK, recipe(Stage("1", 2, 0.1, 0.1, rule=lambda V, A, *rest: (V, A[1:])))),
            r"the A that the rule .*<lambda> of stage '1' returns has shape \(39, 3\): it must be \(40, 3\)",
        ),
        (lambda: simulate(TASK, recipe(Stage("1", 2, 0.1, 0.1, rule=Adam()))), "only 'proximal' stages"),
    ],
)
def test_what_is_no_rule_and_no_schedule_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_state_beyond_the_limit_is_not_taken():
    def wild(V, A, gV, gA, mu, stage):
        return V * 1e9, A

    run = train(TASK, Recipe("wild", GivenStart(TASK.P, TASK.Q), TASK.mu, (Stage("1", 3, 0.1, 0.1, rule=wild),)))
    assert run.verdict.startswith("diverged at step 1")
    np.testing.assert_array_equal(run.V, TASK.P)


def test_composed_takes_any_number_of_steps_at_a_time():
    """In pieces, with what the rule remembers handed on, as in one go."""
    stage = replace(ADAM.stages[0], steps=8)
    engine = Composed(Fresh(TASK))
    V, A = trivial_V(TASK.mu), np.full((TASK.T, 3), 1 / TASK.T, order="F")
    whole = engine.take(V, A, TASK.mu, stage, 1, range(8))
    first = engine.take(V, A, TASK.mu, stage, 1, range(3))
    rest = engine.take(first.V, first.A, TASK.mu, stage, 1, range(3, 8), state=first.state)
    np.testing.assert_array_equal(rest.A, whole.A)
    np.testing.assert_array_equal(rest.state["vA"], whole.state["vA"])
