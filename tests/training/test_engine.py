import multiprocessing
import subprocess
import sys
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scb
from scb import metrics
from scb.geometry import line_A, line_V, population_projection, project, threshold_normalize
from scb.kernels.step.frozen import FrozenDraws, frozen_gradient
from scb.kernels.step.fused import take_steps
from scb.kernels.step.lazy_columns import column_moments, mass_beyond, prox_steps, prox_steps_on_survivors
from scb.training.engine import Composed, Fused, Request, freeze
from scb.training.schedules import MeasuredNoise
from scb.training.sources.sampled import Fresh, Reference
from scb.training.stages import Stage
from truth import twins as reference

apply_prox_steps = numba.njit(lambda raw, offset, lams: prox_steps(raw, offset, lams))  # it is inlined: Python cannot call it
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(("centred", "projector"), [(False, "euclidean"), (True, "mu")])
@pytest.mark.parametrize("lam", [0.0, 1e-4, 0.02, MeasuredNoise(1.5)])
@pytest.mark.parametrize(("N", "T", "B"), [(2, 50, 16), (3, 1500, 64), (12, 300, 64), (60, 200, 40), (300, 40, 60)])
def test_fused_steps_equal_the_composed_path(N, T, B, lam, centred, projector):
    """25 steps from the same random numbers: drawing, gradient, precondition, prox, projection, and idle columns."""
    task = scb.Task.random(N, T, 2, seed=1)
    V, A = line_V(task, 0.3), line_A(task, 0.4)
    stage = Stage("2", 25, 0.02, 0.002 / task.K_P, lam, B, centred=centred, projector=projector)
    fast = Fused(task).take(V, A, task.mu, stage, 7, range(100, 125))
    plain = Composed(Fresh(task)).take(V, A, task.mu, stage, 7, range(100, 125))
    np.testing.assert_allclose(fast.V, plain.V, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.A, plain.A, rtol=0, atol=1e-12)
    assert fast.loss == pytest.approx(plain.loss, abs=1e-12)
    assert (fast.steps, fast.samples) == (plain.steps, plain.samples) == (25, 25 * B)
    assert np.abs(fast.A - A).max() > 1e-4  # it has moved


@pytest.mark.parametrize(("N", "T"), [(3, 300), (12, 200)])
def test_the_default_engine_takes_the_samples_of_fresh(N, T):
    """The recipe of the paper, all three stages with their roundings: both engines walk the same path.

    Only frozen steps differ: there the fast engine draws no more than the tokens that matter, so its random numbers are others by
    design. Stage 3 therefore trains A too here.
    """
    task = scb.Task.random(N, T, 2, seed=1)
    recipe = scb.recipes.paper(task, steps=(60, 60, 30), lam=1e-4, threshold=0.01)
    first, second, third = recipe.stages
    recipe = replace(recipe, stages=(first, second, replace(third, eta_A=second.eta_A, lam=second.lam)))
    fast = scb.train(task, recipe, seed=5)
    plain = scb.train(task, recipe, seed=5, source=Fresh(task))
    assert fast.step == plain.step == 150
    np.testing.assert_allclose(fast.V, plain.V, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.A, plain.A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.history["batch_loss"], plain.history["batch_loss"], rtol=0, atol=1e-12)
    assert not np.allclose(scb.train(task, recipe, seed=6).V, fast.V, rtol=0, atol=1e-4)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 300), st.integers(1, 12), st.floats(-4, 1), st.floats(-1, 1), seeds)
def test_deferred_steps_equal_one_step_after_the_other(T, steps, size, offset, seed):
    rng = np.random.default_rng(seed)
    survive = rng.random(T) < 0.5
    x = rng.normal(scale=10.0**size, size=T) * survive
    a = project(x[:, None])[:, 0]
    lams = 10 ** rng.uniform(-4, 0) * rng.random(steps)
    expected = reference.prox_steps(a, lams)
    raw = a - offset
    apply_prox_steps(raw, offset, lams)
    np.testing.assert_allclose(raw, expected, rtol=1e-10, atol=1e-12)
    common = prox_steps_on_survivors(x, (a - x).mean(), lams, np.flatnonzero(survive))
    np.testing.assert_allclose(x + common, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("lam", [0.0, 1e-3])
@pytest.mark.parametrize("N", [3, 80])
def test_the_number_of_threads_does_not_matter(N, lam):
    task = scb.Task.random(N, 6000, 2)
    stage = Stage("2", 5, 0.2, 0.1, lam, 100)
    taken = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        taken.append(Fused(task).take(line_V(task, 0.3), line_A(task, 0.3), task.mu, stage, 1, range(5)))
    numba.set_num_threads(1)
    np.testing.assert_array_equal(taken[0].A, taken[1].A)
    np.testing.assert_array_equal(taken[0].V, taken[1].V)


def test_integers_and_other_layouts_compile_nothing_anew():
    task = scb.Task.random(3, 60, 2)
    engines = (Fused(task), Composed(Fresh(task)))
    V, A = line_V(task, 0.3), line_A(task, 0.3)
    usual = Stage("2", 2, 0.1, 0.1, 0.1)
    frozen = replace(usual, eta_A=0.0)
    points = [(np.asfortranarray(V), np.ascontiguousarray(A)), (np.eye(3, dtype=int), A)]
    for array in (*points[0], *points[1]):
        array.setflags(write=False)

    def compiled_after(points, stages):
        for engine in engines:
            for point in points:
                for stage in stages:
                    engine.take(*point, task.mu, stage, 1, range(2))
        return len(take_steps.signatures), len(frozen_gradient.signatures)

    before = compiled_after([(V, A.copy(order="F"))], [usual, frozen])
    integers = [replace(stage, eta_V=1, eta_A=int(stage.eta_A > 0), lam=0, batch_size=np.int64(8)) for stage in (usual, frozen)]
    assert compiled_after(points, integers) == before


def test_an_answer_that_is_still_held_is_never_overwritten():
    task, stage = scb.Task.random(3, 60, 2), Stage("2", 3, 0.2, 0.1, 1e-3)
    engine, V, A = Fused(task), line_V(task, 0.3), line_A(task, 0.3)
    held, views, copies = [], [], []
    for i in range(4):
        V, A, *_ = engine.take(V, A, task.mu, stage, i, range(3))
        (held if i % 2 else views).append(A if i % 2 else A[5:, 1])
        copies.append(A.copy() if i % 2 else A[5:, 1].copy())
    for kept, copy in zip([views[0], held[0], views[1], held[1]], copies, strict=True):
        np.testing.assert_array_equal(kept, copy)
    del held, views, kept
    addresses = set()
    for i in range(6):
        V, A, *_ = engine.take(V, A, task.mu, stage, i, range(3))
        addresses.add(A.ctypes.data)
    assert len(addresses) <= 3  # memory goes round


def test_divergence_stops_at_the_same_step_and_leaves_the_point_before_it():
    task = scb.Task.random(3, 60, 2)
    stage = Stage("1", 50, 200.0, 200.0)
    point = line_V(task, 0.3), line_A(task, 0.3)
    fast = Fused(task).take(*point, task.mu, stage, 1, range(50))
    plain = Composed(Fresh(task)).take(*point, task.mu, stage, 1, range(50))
    assert fast.steps == plain.steps < 50
    np.testing.assert_allclose(fast.A, plain.A, rtol=1e-6)
    assert np.isfinite(fast.A).all()


@pytest.mark.parametrize("every", [1, 3, 10])
@pytest.mark.parametrize("options", [{}, {"eta": 0.8}, {"eta": 3.0}, {"signal": (1e-3, None)}, {"lam": 0.01}])
def test_steps_beyond_evaluations_are_those_between_them(options, every):
    """Who looks on gets a run from evaluation to evaluation, who does not a stage at a time: to the last bit it is the same run."""
    task = scb.Task.random(6, 50, 2, seed=1)
    recipe = scb.recipes.paper(task, steps=(23, 19, 8), batch_size=20, **options)
    alone = scb.train(task, recipe, 5, every=every)
    watched = scb.train(task, recipe, 5, every=every, callbacks=[lambda run: None])
    assert (alone.diverged is not None) == ("eta" in options)
    np.testing.assert_array_equal(watched.A, alone.A)
    np.testing.assert_array_equal(watched.V, alone.V)
    np.testing.assert_equal(watched.history, alone.history)
    assert (watched.verdict, watched.diverged, watched.samples) == (alone.verdict, alone.diverged, alone.samples)


def test_looks_are_at_multiples_of_every():
    task = scb.Task.random(3, 60, 2)
    stage = Stage("1", 50, 0.1, 0.1)
    request = Request(line_V(task, 0.3), line_A(task, 0.3), task.mu, stage, 1, range(7, 40))
    for one in (request, request._replace(stage=replace(stage, eta_A=0.0, batch_size=5))):
        taken = Fused(task).take_looking(one, 10)
        assert taken.looks is not None
        np.testing.assert_array_equal(taken.looks.steps, [3, 13, 23])
        before = Fused(task).take(*one._replace(steps=range(7, 10)))
        np.testing.assert_array_equal(taken.looks.V[0], before.V)
        np.testing.assert_array_equal(taken.looks.moments[0], metrics.column_sums(task, before.A)[0])
        assert taken.looks.losses[0] == before.loss


def child_trains(queue):
    task = scb.Task.random(3, 1000, 2)
    queue.put(scb.train(task, scb.recipes.paper(task, steps=(5, 5, 0))).A)


def test_a_forked_process_can_train_after_its_parent_has():
    """The parent's helper threads do not exist in the child, which starts its own."""
    code = """
import multiprocessing, sys
sys.path.insert(0, "tests")
import numba, numpy as np
from training import test_engine
class Queue(list):
    put = list.append
numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
mine = Queue(); test_engine.child_trains(mine)
context = multiprocessing.get_context("fork"); queue = context.Queue()
child = context.Process(target=test_engine.child_trains, args=(queue,)); child.start()
assert np.array_equal(queue.get(timeout=60), mine[0]); child.join(); assert child.exitcode == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    assert "fork" in multiprocessing.get_all_start_methods()


# ------------------------------------------------------------------------------------------------------- frozen


def frozen_points():
    task = scb.Task.random(4, 30, 3, seed=2)
    noisy = line_A(task, 0.5)
    noisy[3, 1] += 0.2
    return task, {
        "truth": task.Q,
        "rounded": threshold_normalize(line_A(task, 0.7), 0.1),
        "common value": project(noisy),  # positions outside the active set count, through their number
        "misses a source": np.where(np.arange(30)[:, None] == task.positions[0], 0.9, 0.1 / 29) * 1.0,
        "uniform": np.full((30, 4), 1 / 30),
    }


@pytest.mark.parametrize("projector", ["euclidean", "mu"])
@pytest.mark.parametrize("name", frozen_points()[1])
def test_frozen_steps_have_the_distribution_of_whole_contexts(name, projector):
    """One step of V from many seeds: mean and variance of each entry agree with those from whole contexts."""
    task, points = frozen_points()
    A, V, stage = project(points[name]), line_V(task, 0.4), Stage("3", 1, 1.0, 0.0, 0.0, 20, projector=projector)
    draws = {}
    for kind, engine in (("fast", Fused(task)), ("plain", Composed(Reference(task)))):
        taken = [engine.take(V, A, task.mu, stage, s, range(1)) for s in range(2000)]
        draws[kind] = np.array([np.append(t.V.ravel(), t.loss) for t in taken])
        assert all(t.A is A for t in taken)
    spread = draws["plain"].std(axis=0)
    error = np.abs(draws["fast"].mean(axis=0) - draws["plain"].mean(axis=0)) / (spread * np.sqrt(2 / 2000))
    assert error.max() < 4.5
    np.testing.assert_allclose(draws["fast"].std(axis=0), spread, rtol=0.1)


def test_frozen_columns_rebuild_A():
    task, points = frozen_points()
    for A in points.values():
        frozen = freeze(task, A)
        for k in range(task.N):
            rebuilt = np.sort(np.r_[frozen.value[: frozen.counts[k], k], np.full(task.T - frozen.counts[k], frozen.common[k])])
            np.testing.assert_array_equal(rebuilt, np.sort(A[:, k]))
            for j, t in enumerate(task.positions[:, k]):
                index = frozen.source[j, k]
                assert (A[t, k] == frozen.common[k]) if index < 0 else (frozen.value[index, k] == A[t, k])


def test_frozen_kernel_equals_its_twin():
    task, points = frozen_points()
    B, N = 50, 4
    frozen = freeze(task, points["common value"])
    rng = np.random.default_rng(0)
    draws = FrozenDraws(
        lasts=rng.integers(N, size=B),
        u_source=rng.random(B),
        u_label=rng.random(B),
        u_tokens=rng.random((B, len(frozen.value) + 1)),
        rest=rng.multinomial(20, task.mu, size=B),
    )
    sampler = Fresh(task).sampler.labels
    loss, gV, mass = frozen_gradient(draws, sampler, frozen, task.P)
    total, expected = 0.0, np.zeros((N, N))
    for i in range(B):
        m, source = reference.frozen_mass(draws, i, sampler, frozen)
        residual = task.P @ m - np.eye(N)[np.searchsorted(sampler.P[:, source], draws.u_label[i], side="right")]
        np.testing.assert_allclose(mass[i], m, atol=1e-14)
        total += 0.5 * residual @ residual
        expected += np.outer(residual, m)
    np.testing.assert_allclose(loss, total, atol=1e-12)
    np.testing.assert_allclose(gV, expected, atol=1e-12)


# ------------------------------------------------------------------------------------------------------ metrics


def test_moments_equal_their_twin():
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(777, 5)))
    np.testing.assert_allclose(column_moments(A, 0.3), reference.column_moments(A, 0.3), rtol=1e-12)


def test_mass_beyond_a_threshold_equals_its_twin():
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(777, 5)))
    bounds = np.linspace(-0.2, 0.2, 5), np.linspace(0.5, 4.0, 5)
    found = mass_beyond(A, *bounds)
    np.testing.assert_allclose(found, reference.mass_beyond(A, *bounds), rtol=1e-12, atol=1e-13)
    assert found[-1] == 0.0


def test_many_points_are_measured_as_each_alone():
    """To the last bit, in a history that is computed at once and in one that is computed row by row."""
    for N in (2, 3, 10, 37):
        task = scb.Task.random(N, 60, 2, seed=N)
        rng = np.random.default_rng(N)
        points = [(rng.normal(size=(N, N)), np.asfortranarray(rng.normal(size=(60, N)))) for _ in range(7)]
        sums = [scb.metrics.column_sums(task, A) for _, A in points]
        stacks = [np.stack(part) for part in ([V for V, _ in points], *zip(*sums, strict=True))]
        rows = scb.metrics.measure_all(task, *stacks)
        for i, (V, A) in enumerate(points):
            alone = scb.measure(task, V, A)
            assert {name: column[i] for name, column in rows.items()} == alone


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(3, 60), seeds)
def test_measure_in_one_pass_equals_the_definitions(N, T, seed):
    task, rng = scb.Task.random(N, T, 2, seed), np.random.default_rng(seed)
    V, A = (
        line_V(task, 0.4) + rng.normal(size=(N, N)) * 0.1,
        line_A(task, rng.random()) + rng.normal(size=(T, N)) * 0.03,
    )
    m, (V_star, A_star), p = metrics.measure(task, V, A), metrics.star(task, A), population_projection(task, V, A)
    expected = {
        "alpha_V": p.alpha_V,
        "alpha_A": p.alpha_A,
        "delta_V": p.delta_V,
        "delta_A": p.delta_A,
        "dist_V": metrics.distance_V(task, V),
        "dist_A": metrics.distance_A(task, A),
        "sim_V": metrics.similarity_V(task, V),
        "sim_A": metrics.similarity_A(task, A),
        "dist_V_star": metrics.distance_V(task, V_star),
        "dist_A_star": metrics.distance_A(task, A_star),
        "sim_V_star": metrics.similarity_V(task, V_star),
        "sim_A_star": metrics.similarity_A(task, A_star),
    }
    for name, value in expected.items():
        assert m[name] == pytest.approx(value, rel=1e-9, abs=1e-7), name
    assert m["loss"] == pytest.approx(scb.theory.expectations.population_loss(task, V, A), abs=1e-12)
