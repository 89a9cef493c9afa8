"""The CUDA kernels, compiled for the processor: against the NumPy twins, and the engine against the processor's own."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import scb
from cuda_host import COMPILER, KERNELS, Host
from scb.geometry import line_A, line_V
from scb.inputs import InputError
from scb.kernels.cuda.device import Gpu
from scb.kernels.cuda.layout import FIXED, Layout, device_sampler
from scb.kernels.cuda.step import DeviceSteps
from scb.kernels.random import token_sampler
from scb.kernels.step.batch import TaskSampler
from scb.training.cuda import Cuda, FreshOnGpu
from scb.training.engine import Composed, Fused
from scb.training.roundings import noise_of
from scb.training.schedules import MeasuredNoise
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage
from scb.training.verdict import HeldOut
from truth import twins

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler: the source of the CUDA kernels is NOT exercised")

KEY = np.uint64(0x1234_5678_9ABC_DEF1)
SIZES = [
    (2, 70),
    (3, 600),
    (FIXED.FEW, 90),
    (FIXED.FEW + 1, 130),
    (12, 300),
    (FIXED.SOME, 60),
    (FIXED.SOME + 1, 140),
    (FIXED.MATRIX + 6, 50),
    (130, 200),
    (260, 60),
]
"""(N, T): every way of every pass."""


def point(N, T, **rest):
    task = scb.Task.random(N, T, 2, seed=1, **rest)
    rng = np.random.default_rng(N)
    return task, line_V(task, 0.3), line_A(task, 0.4) + rng.normal(size=(T, N)) * 0.1 / T


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def differentiated(device, sampler, V, A, B, **rest):
    steps = DeviceSteps(device, [sampler], len(A), **rest)
    steps.put(0, V, A)
    work = steps.differentiate([0], np.array([KEY]), B)
    return work.losses[0], work.gV[0], work.g[0, :, : len(A)].T


@pytest.mark.parametrize("bits", [16, 9])
@pytest.mark.parametrize("N", [2, 3, FIXED.FEW + 1, 20, 300])
def test_tokens_are_those_of_the_stream(N, bits):
    """With 9 bits, most draws come near a threshold and take the exact path."""
    task = scb.Task.random(N, 50, 2, seed=1)
    sampler = Fresh(task).sampler._replace(tokens=token_sampler(task.mu, bits))
    steps = DeviceSteps(Host(), [sampler], 50)
    tokens = np.empty((20, 50), np.uint16)
    steps._launch("draw_tokens", (3,), 64, 0, KEY, 64, 7, 20, 50, *steps._sampler, tokens)
    streams = twins.words(KEY, 3 * 64 + 7, 20)
    expected = np.array([twins.draw_tokens(stream, sampler.tokens, 50) for stream in streams])
    np.testing.assert_array_equal(tokens, expected)


@pytest.mark.parametrize("bits", [16, 11])
@pytest.mark.parametrize(("N", "T"), SIZES)
def test_gradients_equal_their_twin(N, T, bits):
    task, V, A = point(N, T)
    sampler = Fresh(task).sampler._replace(tokens=token_sampler(task.mu, bits))
    losses, gV, g = differentiated(Host(), sampler, V, A, 40)
    loss, expected_V, expected_A = twins.mini_batch_gradient(KEY, sampler, 40, V, A)
    assert losses.sum() == pytest.approx(loss, rel=1e-7)
    assert relative(gV, expected_V) < 1e-6
    assert relative(g, expected_A) < 1e-6


def test_a_distribution_with_thresholds_side_by_side():
    """Several thresholds in one cell of the table, and equal ones: it then has one cell for each 16 bits."""
    mu = np.array([0.3, 1e-6, 1e-6, 2e-5, 0.2, 1e-4, 0.5 - 1.22e-4])
    sampler = token_sampler(mu)
    assert device_sampler(sampler).shift == 0
    T = 40_000
    streams = TaskSampler(sampler, Fresh(scb.Task.random(7, T, 2)).sampler.labels)
    steps = DeviceSteps(Host(), [streams], T)
    tokens = np.empty((4, T), np.uint16)
    steps._launch("draw_tokens", (3,), 64, 0, KEY, 4, 0, 4, T, *steps._sampler, tokens)
    expected = np.array([twins.draw_tokens(stream, sampler, T) for stream in twins.words(KEY, 12, 4)])
    np.testing.assert_array_equal(tokens, expected)
    assert {0, 3, 4, 5, 6} <= set(tokens.ravel().tolist())
    task, V, A = point(7, 300)
    sampler = TaskSampler(token_sampler(mu, 11), Fresh(task).sampler.labels)
    found = differentiated(Host(), sampler, V, A, 30)
    expected = twins.mini_batch_gradient(KEY, sampler, 30, V, A)
    assert relative(found[1], expected[1]) < 1e-6
    assert relative(found[2], expected[2]) < 1e-6


@pytest.mark.parametrize("N", [3, 12, 60])
def test_bits_depend_on_nothing_but_the_numbers(N):
    """Groups of a batch, sizes of blocks, and the order of threads and blocks."""
    T, B = 40, FIXED.UNIT + 300
    task, V, A = point(N, T)
    sampler = Fresh(task).sampler
    usual = differentiated(Host(), sampler, V, A, B)
    variants = {
        "groups": differentiated(Host(), sampler, V, A, B, memory=1),
        "blocks": differentiated(Host(), sampler, V, A, B, sizes=Layout(mass_threads=64, gradient_threads=128, stage=8)),
        "order": differentiated(Host(descending=True), sampler, V, A, B),
    }
    for name, found in variants.items():
        for x, y in zip(found, usual, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=name)


@pytest.mark.parametrize(("N", "T", "B"), [(3, 300, 64), (12, 130, 40)])
@pytest.mark.parametrize(
    "stage",
    [
        Stage("1", 6, 0.02, 0.02),
        Stage("2", 6, 0.02, 0.02, 1e-3, centred=True, projector="mu"),
        Stage("2", 6, 0.02, 0.02, MeasuredNoise(1.5)),
        Stage("v", 6, 0.02, 0.1, rule="vanilla"),
        Stage("A", 6, 0.0, 0.02, 2e-3),
    ],
    ids=["λ = 0", "centred, mu", "measured λ", "vanilla", "V frozen"],
)
def test_the_engine_takes_the_processors_steps(N, T, B, stage):
    task, V, A = point(N, T)
    A /= A.sum(axis=0)
    stage = replace(stage, batch_size=B)
    found = Cuda(task, device=Host()).take(V, A, task.mu, stage, 3, range(5, 11))
    expected = Fused(task).take(V, A, task.mu, stage, 3, range(5, 11))
    np.testing.assert_allclose(found.V, expected.V, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.A, expected.A, rtol=0, atol=1e-7)
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    assert (found.steps, found.samples) == (expected.steps, expected.samples) == (6, 6 * B)
    assert np.abs(np.asarray(found.A) - A).max() > 1e-4


@pytest.mark.parametrize(("N", "T"), [(3, 600), (12, 41), (3, 5001), (2, 1)])
def test_what_is_measured_on_the_device_equals_its_twins(N, T):
    """Sums of columns, entries on the support, and the mass that stands out of the noise."""
    tasks = [scb.Task.random(N, T, min(2, T), seed=seed) for seed in (1, 2, 3)]
    steps = DeviceSteps(Host(), [Fresh(task).sampler for task in tasks], T)
    rng = np.random.default_rng(N)
    As = [line_A(task, 0.4) + rng.normal(size=(T, N)) * 0.1 / T for task in tasks]
    for run, A in enumerate(As):
        steps.put(run, tasks[run].P, A)
    steps.keep_above([0.1, 0.15, 0.2])
    chosen = [0, 2]  # not side by side
    columns = steps.columns(chosen)
    moments, support = steps.moments(chosen, columns)
    mass = steps.mass_standing_out(columns, 3.0, 1e-12)
    for place, run in enumerate(chosen):
        A = As[run]
        np.testing.assert_allclose(moments[place], twins.column_moments(A, (0.1, 0.15, 0.2)[run]), rtol=1e-11, atol=1e-14)
        np.testing.assert_array_equal(support[place], A[tasks[run].positions, np.arange(N)])
        centre, spread = noise_of(A)
        np.testing.assert_allclose(mass[place], twins.mass_beyond(A, centre, spread * 3.0 + 1e-12), rtol=1e-11, atol=1e-14)


def test_two_takes_are_one_after_a_break():
    """What is handed out is what goes on: from the device's own copy, or from the arrays in another process."""
    task, V, A = point(3, 100)
    stage = Stage("2", 8, 0.05, 0.05, 1e-3)
    going = Cuda(task, device=Host())
    middle = going.take(V, A, task.mu, stage, 1, range(4))
    end = going.take(middle.V, middle.A, task.mu, stage, 1, range(4, 8))
    resumed = Cuda(task, device=Host()).take(middle.V.copy(), np.array(middle.A), task.mu, stage, 1, range(4, 8))
    np.testing.assert_array_equal(end.A, resumed.A)
    np.testing.assert_array_equal(end.V, resumed.V)


def test_frozen_steps_are_the_processors():
    task, V, _ = point(3, 100)
    stage = Stage("3", 5, 0.1, 0.0)
    A = task.Q
    found = Cuda(task, device=Host()).take(V, A, task.mu, stage, 1, range(5))
    expected = Fused(task).take(V, A, task.mu, stage, 1, range(5))
    np.testing.assert_array_equal(found.V, expected.V)
    assert found.A is A


@pytest.mark.parametrize(("name", "N", "B"), [("sparse", 5, FIXED.UNIT), ("dense", 5, FIXED.UNIT), ("sparse", 60, 300)])
def test_large_frozen_steps_take_the_tokens_of_whole_contexts(name, N, B):
    """Large by their samples, or by their samples times N²."""
    task, V, A = point(N, 60)
    A = {"sparse": task.Q, "dense": A}[name]
    stage = Stage("3", 2, 0.1, 0.0, batch_size=B)
    found = Cuda(task, device=Host()).take(V, A, task.mu, stage, 1, range(2))
    expected = Composed(Fresh(task)).take(V, A, task.mu, stage, 1, range(2))
    np.testing.assert_allclose(found.V, expected.V, rtol=0, atol=1e-8)
    assert found.loss == pytest.approx(expected.loss, rel=1e-7)
    assert found.A is A
    assert np.abs(found.V - V).max() > 1e-4


@pytest.mark.parametrize("large", [True, False])
def test_a_whole_run_is_the_processors(monkeypatch, large):
    """Roundings, signals, measures and the verdict of a run whose A stays on the device, or comes here if it is small."""
    monkeypatch.setattr("scb.training.cuda.Gpu", Host)
    monkeypatch.setattr("scb.training.cuda.OnGpu.large", large)
    task = scb.Task.random(3, 60, 2, seed=0)
    recipe = scb.recipes.paper(
        task, eta=0.1, steps=(60, 40, 10), signal=(0.2, 0.95), threshold=0.03, projector="mu", batch_size=400
    )
    seen = []
    runs = {}
    places = []
    judged = HeldOut.__call__
    monkeypatch.setattr(HeldOut, "__call__", lambda *given: places.append(type(given[4])) or judged(*given))
    for device in ("cpu", "cuda"):
        runs[device] = scb.train(
            task, recipe, seed=2, device=device, callbacks=[lambda run: seen.append(np.asarray(run.parameters).copy())]
        )
    cpu, cuda = runs["cpu"], runs["cuda"]
    assert (cpu.step, cpu.samples, cpu.mirrored) == (cuda.step, cuda.samples, cuda.mirrored)
    assert cpu.verdict.split(":")[0] == cuda.verdict.split(":")[0]
    np.testing.assert_array_equal(cpu.history["stage"], cuda.history["stage"])
    for name in ("loss", "alpha_A", "dist_A", "dist_A_star"):
        np.testing.assert_allclose(cuda.history[name], cpu.history[name], atol=1e-5)
    half = len(seen) // 2
    for one, other in zip(seen[:half], seen[half:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert type(cuda.parameters) is np.ndarray
    assert places == [Fresh, FreshOnGpu]  # held-out samples are drawn there, too
    assert cpu.step < 110


def test_runs_side_by_side_are_those_alone(monkeypatch):
    """Different tasks, one of them with a finer table, and different batches, stages and ends."""
    monkeypatch.setattr("scb.training.cuda.Gpu", Host)
    N, T = 6, 50
    tasks = [scb.Task.random(N, T, 2, seed=seed) for seed in range(3)]
    mu = np.array([0.3, 1e-4, 2e-4, 0.2, 0.2, 0.2997])
    tasks.append(scb.Task(np.tile(mu[:, None], N) * 0.5 + 0.5 * np.eye(N), tasks[0].Q))
    options = [{"batch_size": 20}, {"batch_size": 20, "signal": (1e-3, None)}, {"batch_size": 30, "eta": 300.0}, {"batch_size": 20}]
    recipes = [scb.recipes.paper(task, steps=(6, 4, 2), **rest) for task, rest in zip(tasks, options, strict=True)]
    together = scb.train_many(tasks, recipes, [5, 6, 7, 8], device="cuda", judge_samples=50)
    assert together[2].diverged is not None
    for i, run in enumerate(together):
        alone = scb.train(tasks[i], recipes[i], 5 + i, device="cuda", judge_samples=50)
        np.testing.assert_array_equal(run.A, alone.A)
        np.testing.assert_array_equal(run.V, alone.V)
        np.testing.assert_equal(run.history, alone.history)
        assert (run.verdict, run.made_by) == (alone.verdict, alone.made_by)


@pytest.mark.parametrize("every", [3, 10])
@pytest.mark.parametrize("options", [{}, {"eta": 0.8}, {"signal": (1e-3, None)}])
def test_steps_beyond_evaluations_are_those_between_them(monkeypatch, options, every):
    """Who looks on gets a run from evaluation to evaluation, who does not a stage at a time: to the last bit it is the same run."""
    monkeypatch.setattr("scb.training.cuda.Gpu", Host)
    task = scb.Task.random(6, 50, 2, seed=1)
    recipe = scb.recipes.paper(task, steps=(13, 9, 3), batch_size=20, **options)
    looks = []
    taken = Cuda.take_together
    monkeypatch.setattr(Cuda, "take_together", lambda *given: looks.append(taken(*given)) or looks[-1])
    alone = scb.train(task, recipe, 5, device="cuda", every=every, judge_samples=50)
    assert every > 3 or any(look[0].looks is not None for look in looks)
    assert (alone.diverged is not None) == ("eta" in options)
    looks.clear()
    watched = scb.train(task, recipe, 5, device="cuda", every=every, judge_samples=50, callbacks=[lambda run: None])
    assert not any(look[0].looks for look in looks)
    np.testing.assert_array_equal(watched.A, alone.A)
    np.testing.assert_array_equal(watched.V, alone.V)
    np.testing.assert_equal(watched.history, alone.history)
    assert (watched.verdict, watched.diverged, watched.samples) == (alone.verdict, alone.diverged, alone.samples)


def test_divergence_stops_at_the_same_step():
    task = scb.Task.random(3, 60, 2)
    stage = Stage("1", 50, 200.0, 200.0)
    V, A = line_V(task, 0.3), line_A(task, 0.3)
    found = Cuda(task, device=Host()).take(V, A, task.mu, stage, 1, range(50))
    expected = Composed(Fresh(task)).take(V, A, task.mu, stage, 1, range(50))
    assert found.steps == expected.steps < 50
    assert found.samples == expected.samples
    assert np.isfinite(np.asarray(found.A)).all()
    assert np.abs(found.V).max() < 1e6


LOAD = "        for (int p = threadIdx.x; p < TILE * TOKENS;"
TILE = "    int lane = threadIdx.x % 32;\n"
BROKEN = {
    "a tie that never rises": ("stream.cuh", "return u >= distribution.fraction[token];", "return 0;"),
    "a barrier": ("scores.cu", f"        __syncthreads();\n{LOAD}", LOAD),
    "the second segment": ("gradient.cu", "segment < columns[k + 1]; ++segment) s +=", "segment < columns[k] + 1; ++segment) s +="),
    "a shifted stream": ("mass.cu", "z += 4 * GOLDEN", "z += 3 * GOLDEN"),
    "a tie that pass 2 does not hear of": ("mass.cu", "((Token*)kept)[j] = token;", ""),
    "a warp that does not wait for its tile": ("mass.cu", f"{TILE}    __syncwarp();\n", TILE),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_kernel_is_noticed(what, tmp_path):
    """Each of six small faults, put into a copy of the source, moves the gradient by far more than rounding."""
    for path in KERNELS.glob("*.cu*"):
        shutil.copy(path, tmp_path)
    file, old, new = BROKEN[what]
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    task, V, A = point(12, 100)
    sampler = Fresh(task).sampler._replace(tokens=token_sampler(task.mu, 11))
    loss, *expected = twins.mini_batch_gradient(KEY, sampler, 600, V, A)
    errors = []
    for descending in (False, True):
        losses, *found = differentiated(Host(tmp_path, descending=descending), sampler, V, A, 600)
        errors += [abs(losses.sum() / loss - 1), *map(relative, found, expected)]
    assert max(errors) > 1e-3


def test_what_is_missing_is_said_in_one_line(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(InputError, match=r"needs CuPy: pip install '\.\[cuda13\]' in the clone"):
        Gpu()
    task = scb.Task.random(3, 60, 2)
    with pytest.raises(InputError, match="CuPy"):
        scb.train(task, scb.recipes.paper(task), device="cuda")
    with pytest.raises(InputError, match="leave device out"):
        scb.train(task, scb.recipes.paper(task), device="cuda", source=Fresh(task))
    with pytest.raises(InputError, match="device = 'tpu'"):
        scb.train(task, scb.recipes.paper(task), device="tpu")


def test_too_many_tokens_are_refused():
    with pytest.raises(InputError, match="2 to 4,095 tokens"):
        device_sampler(token_sampler(np.full(5000, 1 / 5000)))
