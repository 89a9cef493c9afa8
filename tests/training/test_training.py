from dataclasses import replace

import numpy as np
import pytest

import scb
from scb.geometry import uniform_start
from scb.kernels.compiler import plain_interrupts
from scb.training.loop import train
from scb.training.run import COLUMNS, Run
from scb.training.sources import Gradient
from scb.training.sources.population import Gaussian, Population
from scb.training.sources.sampled import Dataset, Fresh, Reference

TASK = scb.Task.random(3, 60, 2, seed=1)
SOURCES = {
    "Dataset": Dataset(scb.sample(TASK, 200)),
    "Fresh": Fresh(TASK),
    "Gaussian": Gaussian(TASK),
    "Population": Population(TASK),
    "Reference": Reference(TASK),
}
"""Every gradient source; test_architecture refuses one that is not here."""


def recipe(**kwargs):
    return scb.recipes.paper(TASK, **({"steps": (15, 10, 5), "threshold": 0.001} | kwargs))


def same(one: Run, two: Run) -> None:
    assert (one.step, one.stage, one.stage_step, one.samples, one.diverged, one.finished) == (
        two.step,
        two.stage,
        two.stage_step,
        two.samples,
        two.diverged,
        two.finished,
    )
    np.testing.assert_array_equal(one.V, two.V)
    np.testing.assert_array_equal(one.A, two.A)
    for name in COLUMNS:
        np.testing.assert_array_equal(one.history[name], two.history[name])


@pytest.mark.parametrize("source", [None, *SOURCES.values()], ids=lambda source: type(source).__name__)
def test_history_has_its_columns_and_rows(source):
    run = train(TASK, recipe(), seed=3, source=source, every=10)
    assert tuple(run.history) == COLUMNS
    np.testing.assert_array_equal(run.history["step"], [0, 10, 15, 20, 25, 30])
    np.testing.assert_array_equal(run.history["stage"], [1, 1, 1, 2, 2, 3])
    assert run.finished
    assert run.diverged is None
    assert run.history["samples"][-1] == run.samples == (0 if isinstance(source, Population) else 30 * 64)
    assert np.isfinite([run.history[name][1:] for name in COLUMNS]).all()


def test_the_first_row_is_the_uniform_start_and_the_last_is_the_result():
    run = train(TASK, recipe(), seed=3)
    V, A = uniform_start(TASK.mu, TASK.T)
    for i, point in ((0, (V, A)), (-1, (run.V, run.A))):
        for name, value in scb.measure(TASK, *point).items():
            assert run.history[name][i] == pytest.approx(value, abs=1e-12)


def test_runs_depend_on_the_seed_and_on_nothing_else():
    same(train(TASK, recipe(), seed=3), train(TASK, recipe(), seed=3))
    assert not np.array_equal(train(TASK, recipe(), seed=3).V, train(TASK, recipe(), seed=4).V)


@pytest.mark.parametrize("stop", [1, 14, 15, 16, 29])
def test_a_run_broken_off_and_resumed_is_the_same(tmp_path, stop):
    class BreakError(Exception):
        pass

    def break_off(run):
        if run.step == stop:
            raise BreakError

    whole = train(TASK, recipe(), seed=3, every=1)
    with pytest.raises(BreakError):
        train(TASK, recipe(), seed=3, every=1, callbacks=[break_off], checkpoint=tmp_path, checkpoint_every=4)
    assert Run.load(tmp_path).step == stop - 1 - (stop - 1) % 4 if stop > 4 else not (tmp_path / "run.safetensors").exists()
    same(train(TASK, recipe(), seed=3, every=1, checkpoint=tmp_path, checkpoint_every=4, resume=True), whole)
    same(Run.load(tmp_path), whole)
    same(train(TASK, recipe(), seed=3, every=1, checkpoint=tmp_path, resume=True), whole)  # nothing is left to do


def test_save_and_load_round_trip(tmp_path):
    for made in (recipe(), scb.recipes.softmax(TASK, steps=5)):
        run = train(TASK, made, seed=1)
        run.save(tmp_path)
        same(Run.load(tmp_path), run)
        assert type(Run.load(tmp_path).model) is type(run.model)
    with pytest.raises(FileNotFoundError, match="is not there"):
        Run.load(tmp_path / "nowhere")


def test_divergence_is_reported_at_its_step_with_finite_parameters():
    run = train(TASK, scb.recipes.sgd(TASK, eta=(50.0, 50.0), preconditioned=False), seed=1, every=1)
    assert run.finished
    assert run.diverged == run.step < 400
    assert np.isfinite(run.V).all()
    assert np.isfinite(run.A).all()
    assert np.isfinite(run.history["dist_A"]).all()


def test_nan_gradients_count_as_divergence():
    def broken(V, A, batch_size, key):
        return Gradient(np.nan, np.full_like(V, np.nan), np.full_like(A, np.nan), batch_size)

    run = train(TASK, recipe(), seed=1, source=broken)
    assert run.diverged == 1
    assert np.isfinite(run.V).all()


def test_the_literal_vanilla_steps_diverge_and_preconditioned_ones_do_not():
    task = scb.Task.random(3, 5000, 2, seed=0)
    assert train(task, scb.recipes.sgd(task, preconditioned=False), seed=0, every=100).diverged is not None
    assert train(task, scb.recipes.sgd(task), seed=0, every=100).diverged is None


def test_going_on_from_the_first_stage_equals_one_go():
    task = scb.Task.random(3, 100, 2, seed=4)
    recipe = scb.recipes.paper(task, steps=(25, 30, 5))
    first = scb.train(task, replace(recipe, stages=recipe.stages[:1]), seed=3)
    assert first.finished
    on, whole = scb.train(task, recipe, seed=3, start=first), scb.train(task, recipe, seed=3)
    np.testing.assert_array_equal(on.V, whole.V)
    np.testing.assert_array_equal(on.A, whole.A)
    assert on.history.keys() == whole.history.keys()
    for name in on.history:
        np.testing.assert_array_equal(on.history[name], whole.history[name])


def test_an_interrupt_that_numba_disguises_is_raised_as_one():
    disguised = SystemError("returned a result with an exception set")
    disguised.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), plain_interrupts():
        raise disguised
    with pytest.raises(SystemError, match="another"), plain_interrupts():
        raise SystemError("another")
