"""``make test-gpu``: the engine on a real GPU against the processor's, token by token, and whole runs; no part of ``make test``."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import scb
from scb.geometry import line_A, line_V
from scb.kernels.cuda.device import Gpu
from scb.kernels.cuda.step import DeviceSteps
from scb.kernels.random import draw_tokens, fill_words, token_sampler, token_scratch
from scb.kernels.step.fused import mini_batch_gradient
from scb.metrics import distance_A, distance_V
from scb.training.cuda import Cuda
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage

KEY = np.uint64(0x0123_4567_89AB_CDEF)
SIZES = [(2, 5000), (3, 5000), (4, 5000), (10, 5000), (20, 5000), (50, 5000), (100, 100_000), (500, 100_000)]
KEPT = Path(__file__).parents[1] / "benchmarks" / "gpu" / "checks.jsonl"
KINDS = {"tokens", "gradients", "run", "side by side", "jobs", "killed"}


@pytest.fixture(scope="module")
def keep():
    """Takes what a check has measured; if all were run, the rows replace those that docs/explanation/gpu.md shows."""
    rows = []

    def take(what, **row):
        rows.append({"what": what, **row})
        print(rows[-1])

    yield take
    if {row["what"] for row in rows} == KINDS:
        KEPT.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def gpu():
    numba.set_num_threads(min(4, numba.get_num_threads()))
    return Gpu()


def sampler_of(task, bits):
    return Fresh(task).sampler._replace(tokens=token_sampler(task.mu, bits))


@pytest.mark.parametrize("bits", [16, 12, 9])
@pytest.mark.parametrize(("N", "T"), SIZES)
def test_tokens_are_the_processors(gpu, keep, N, T, bits):
    """Every one of 5·10⁷ draws, also where 9 or 12 bits force up to all of them onto the exact path."""
    task = scb.Task.random(N, T, 2, seed=1)
    sampler = sampler_of(task, bits)
    steps = DeviceSteps(gpu, [sampler], T)
    samples = 50_000_000 // T
    found = gpu.xp.empty((samples, T), np.uint16)
    steps._launch("draw_tokens", (4096,), 256, 0, KEY, samples, 0, samples, T, *steps._sampler, found)
    found = found.get()
    keys = np.empty(samples, np.uint64)
    fill_words(KEY, 3 * samples, np.uint64(2**64 - 1), keys)
    scratch = token_scratch()
    tokens = np.empty(T, sampler.tokens.table.dtype)
    different = 0
    for i, key in enumerate(keys):
        draw_tokens(key, sampler.tokens, scratch, tokens)
        different += int((found[i] != tokens).sum())
    keep("tokens", N=N, bits=bits, different=different, tokens=found.size)
    assert different == 0


@pytest.mark.parametrize("bits", [16, 12])
@pytest.mark.parametrize(("N", "T"), SIZES)
def test_gradients_are_the_processors(gpu, keep, N, T, bits):
    """A single wrong token among some 10⁸ would move g[t] by about |u|, 10⁵ times what rounding does."""
    task = scb.Task.random(N, T, 2, seed=1)
    sampler = sampler_of(task, bits)
    rng = np.random.default_rng(0)
    V = np.ascontiguousarray(line_V(task, 0.3))
    A = np.asfortranarray(line_A(task, 0.3) + rng.normal(size=(T, N)) / T)
    B = 200_000_000 // T
    steps = DeviceSteps(gpu, [sampler], T)
    steps.put(0, V, A)
    work = steps.differentiate([0], np.array([KEY]), B)
    gA = np.zeros((T, N), order="F")
    loss, gV = mini_batch_gradient(KEY, sampler, B, V, A, np.zeros(N), gA)
    g = work.g[0].get()[:, :T].T
    errors = {
        "loss": abs(float(work.losses.sum()) / loss - 1),
        "gV": float(np.linalg.norm(work.gV[0].get() - gV) / np.linalg.norm(gV)),
        "gA": float(np.linalg.norm(g - gA) / np.linalg.norm(gA)),
    }
    worst = float(np.abs(g - gA).max())
    keep("gradients", N=N, T=T, B=B, bits=bits, **errors, worst=worst)
    assert max(errors.values()) < 1e-6
    assert worst < 1e-3


@pytest.mark.parametrize("N", [3, 10, 20])
def test_a_tuned_run_ends_where_the_processors_does(gpu, keep, N):
    task = scb.Task.random(N, 2000, 2, seed=0)
    recipe = scb.recipes.tuned(task)
    runs = {device: scb.train(task, recipe, seed=1, device=device) for device in ("cpu", "cuda")}
    cpu, cuda = runs["cpu"], runs["cuda"]
    mu = np.sqrt(task.mu)
    apart = {name: float(np.linalg.norm((getattr(cpu, name) - getattr(cuda, name)) * mu)) for name in "VA"}
    ends = {"steps": cuda.step, "dist_V": distance_V(task, cuda.V), "dist_A": distance_A(task, cuda.A)}
    keep("run", N=N, apart_V=apart["V"], apart_A=apart["A"], **ends)
    assert cpu.step == cuda.step
    assert max(apart.values()) < 1e-4


@pytest.mark.parametrize(("N", "T", "B"), [(3, 5000, 20_000), (20, 5000, 20_000), (100, 20_000, 20_000)])
def test_the_same_bits_every_time(gpu, N, T, B):
    """Twice, and with a batch divided into groups."""
    task = scb.Task.random(N, T, 2, seed=1)
    stage = Stage("2", 4, 0.1 / N, 0.1 / N, 1e-4, B)
    point = line_V(task, 0.3), line_A(task, 0.3)
    engines = [Cuda(task, device=gpu), Cuda(task, device=gpu), Cuda(task, device=gpu, memory=1)]
    taken = [engine.take(*point, task.mu, stage, 1, range(4)) for engine in engines]
    for other in taken[1:]:
        np.testing.assert_array_equal(other.A, taken[0].A)
        np.testing.assert_array_equal(other.V, taken[0].V)
        assert other.loss == taken[0].loss


def test_runs_side_by_side_are_those_alone(gpu, keep):
    """64 runs with two batch sizes: every one is the same to the last bit as alone, its history and verdict too."""
    tasks = [scb.Task.random(3, 2000, 2, seed=seed) for seed in range(64)]
    recipes = [scb.recipes.paper(task, steps=(40, 40, 0), batch_size=64 + 64 * (seed % 2)) for seed, task in enumerate(tasks)]
    together = scb.train_many(tasks, recipes, range(64), device="cuda")
    for seed in (0, 1, 40, 63):
        alone = scb.train(tasks[seed], recipes[seed], seed, device="cuda")
        np.testing.assert_array_equal(together[seed].A, alone.A)
        np.testing.assert_array_equal(together[seed].V, alone.V)
        np.testing.assert_equal(together[seed].history, alone.history)
        assert together[seed].verdict == alone.verdict
    keep("side by side", runs=64)


def test_a_dask_worker_has_the_gpu(tmp_path, keep):
    """Jobs of a sweep, on a scheduler and a worker started as docs/howto/gpu.md says: the rows are those of this process."""
    pytest.importorskip("distributed")
    from scb.jobs.dask import connected
    from scb.sweeps.kinds import TrainJob

    where = "tcp://127.0.0.1:8786"
    dask = [sys.executable, "-m", "dask"]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "0"}
    options = {"N": 3, "T": 2000, "sparsity": 2, "recipe": "paper", "batch_size": 256, "device": "cuda"}
    jobs = [TrainJob(options, replicate) for replicate in range(3)]
    started = [subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--no-dashboard"])]
    started.append(subprocess.Popen([*dask, "worker", where, "--nthreads", "1", "--no-dashboard"], env=environment, cwd=tmp_path))
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with connected(where, print) as pool:
                    for job in jobs:
                        pool.submit([job])
                    answers = []
                    while len(answers) < len(jobs):
                        answers += pool.collect()
                break
            except ConnectionError:  # the scheduler is not there yet
                assert time.monotonic() < deadline
                time.sleep(0.5)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
    for (job,), answer in answers:
        assert answer.failures == {}
        np.testing.assert_equal(answer.results[job.key].rows, job.run())
    keep("jobs", jobs=len(jobs))


SCRIPT = """
import sys, numba, scb
task = scb.Task.random(3, 5000, 2, seed=0)
recipe = scb.recipes.paper(task, steps=(300, 300, 0), batch_size=4096)
run = scb.train(task, recipe, seed=1, device="cuda", checkpoint=sys.argv[1], checkpoint_every=20, resume=True)
"""


def test_a_killed_run_resumes_to_the_same_bits(tmp_path, keep):
    command = [sys.executable, "-c", SCRIPT]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    victim = subprocess.Popen([*command, str(tmp_path / "killed")])
    file = tmp_path / "killed" / "run.safetensors"
    while not file.exists() or scb.Run.load(file.parent).step < 100:
        assert victim.poll() is None
        time.sleep(0.01)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    stopped = scb.Run.load(file.parent).step
    assert 0 < stopped < 600
    subprocess.run([*command, str(file.parent)], check=True)
    whole, resumed = (scb.Run.load(tmp_path / name) for name in ("whole", "killed"))
    keep("killed", step=stopped, steps=whole.step)
    np.testing.assert_array_equal(whole.A, resumed.A)
    np.testing.assert_array_equal(whole.V, resumed.V)
