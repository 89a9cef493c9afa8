"""The lab's engine is a third implementation: what it computes equals Python's to 1e-12, what it draws are Python's numbers."""

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import scb
from labtools import HARNESS, ask, ask_all, columns, numbers, task_for_lab
from scb import Task, geometry, metrics
from scb.model import batch_gradient
from scb.task.sampling import Batch, sample
from scb.theory.dynamics import population_recursion
from scb.training import roundings
from scb.training.engine import step_keys
from scb.training.schedules import MeasuredNoise
from scb.training.sources.sampled import Dataset, Fresh
from scb.training.stages import Stage, proximal_step
from scb.training.updates import precondition_V
from truth.enumeration import World, tiny_task
from truth.statistics import assert_distribution

# Tokens of 2, 4 and 8 bits, T with any rest.
SIZES = [
    (2, 7, 2),
    (3, 41, 2),
    (4, 64, 3),
    (5, 33, 1),
    (16, 50, 2),
    (17, 30, 2),
    (20, 203, 4),
]
EXACT = {"rtol": 0, "atol": 1e-12}


def point(N: int, T: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Any V and A."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, N)), np.asfortranarray(rng.normal(size=(T, N)) / T)


def given(batch: Batch) -> dict[str, np.ndarray]:
    return {"context": batch.context.ravel(), "last": batch.last, "label": batch.label}


@pytest.mark.parametrize(("N", "T", "Q"), SIZES)
def test_gradients_on_given_tokens(N, T, Q):
    task = Task.random(N, T, Q, seed=N)
    batch = sample(task, 29, seed=1)
    V, A = point(N, T)
    found = ask("gradient", V=V.ravel(), A=A.T.ravel(), batch=given(batch), N=N, T=T)
    truth = batch_gradient(V, A, batch)
    assert found["loss"] == pytest.approx(truth.loss, abs=1e-12)
    np.testing.assert_allclose(np.reshape(found["gV"], (N, N)), truth.V, **EXACT)
    np.testing.assert_allclose(columns(found["gA"], N), truth.A, **EXACT)


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**40 + 7])
def test_numbers_of_numpys_generator(seed):
    rng = np.random.default_rng(seed)
    draws = [
        ["random", 5],
        ["exponential", 2000],
        ["normal", 2000],
        ["permutation", 20],
        ["choice", 5000, 3],
        ["choice", 20000, 500],
        ["random", 3],
    ]
    found = ask("generator", seed=str(seed), draws=draws)
    np.testing.assert_array_equal(found[0], rng.random(5))
    np.testing.assert_allclose(found[1], rng.exponential(size=2000), rtol=1e-12)
    np.testing.assert_allclose(found[2], rng.normal(size=2000), rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(found[3], rng.permutation(20))
    np.testing.assert_array_equal(found[4], rng.choice(5000, 3, replace=False))
    np.testing.assert_array_equal(found[5], rng.choice(20000, 500, replace=False))
    np.testing.assert_array_equal(found[6], rng.random(3))
    words = np.random.SeedSequence(seed).generate_state(3, np.uint64)
    assert [int(word) for word in ask("seeds", entropy=str(seed), words=3)] == words.tolist()


@pytest.mark.parametrize(("N", "T", "Q"), [*SIZES, (3, 5000, 2), (10, 20000, 5)])
def test_tasks_are_those_of_python(N, T, Q):
    for seed in (0, 1, 5):
        task = Task.random(N, T, Q, seed=seed)
        found = ask("task", N=N, T=T, sparsity=Q, seed=seed)
        np.testing.assert_allclose(np.reshape(found["P"], (N, N)), task.P, **EXACT)
        np.testing.assert_allclose(found["mu"], task.mu, **EXACT)
        np.testing.assert_array_equal(np.reshape(found["positions"], (N, Q)).T, task.positions)
        np.testing.assert_allclose(np.reshape(found["weights"], (N, Q)).T, task.weights, **EXACT)
        assert found["K_P"] == pytest.approx(task.K_P, abs=1e-12)
        assert found["K_Q"] == pytest.approx(task.K_Q, abs=1e-12)


@pytest.mark.parametrize("ensemble", ["strong", "dirichlet", "uniform", "softmax"])
@pytest.mark.parametrize("K_P", [None, 0.02, 0.3])
def test_ensembles_and_contrasts_are_those_of_python(ensemble, K_P):
    for N in (3, 8):
        task = Task.random(N, 60, 2, seed=4, ensemble=ensemble, K_P=K_P)
        found = ask("task", N=N, T=60, sparsity=2, seed=4, ensemble=ensemble, K_P=K_P or 0)
        np.testing.assert_allclose(np.reshape(found["P"], (N, N)), task.P, **EXACT)
        np.testing.assert_array_equal(np.reshape(found["positions"], (N, 2)).T, task.positions)
        np.testing.assert_allclose(found["mu"], task.mu, **EXACT)


@pytest.mark.parametrize(("N", "T", "Q"), SIZES)
def test_samples_are_those_of_python(N, T, Q):
    """Python's gradient of the lab's tokens is the gradient that Python's engine finds with the same seed: the other direction."""
    task = Task.random(N, T, Q, seed=2)
    V, A = point(N, T)
    for step in (0, 7):
        found = ask("draw", task=task_for_lab(task), seed=11, batchSize=37, step=step)
        batch = Batch(np.reshape(found["context"], (37, T)).astype(np.uint8), np.array(found["last"]), np.array(found["label"]))
        mine = batch_gradient(V, A, batch)
        truth = Fresh(task)(V, A, 37, step_keys(11, range(step, step + 1))[0])
        assert mine.loss == pytest.approx(truth.loss, abs=1e-12)
        np.testing.assert_allclose(mine.V, truth.V, **EXACT)
        np.testing.assert_allclose(mine.A, truth.A, **EXACT)


def test_whole_outcomes_follow_the_enumerated_distribution():
    world = World.of(tiny_task(3, 3, seed=1))
    counts = ask("counts", task=task_for_lab(world.task), seed=1, batchSize=1000, steps=60)
    codes = np.zeros(len(world), dtype=int)
    for column in (*world.context.T, world.last, world.label):
        codes = codes * world.task.N + column
    assert_distribution([counts.get(str(code), 0) for code in codes], world.probability)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("lam", [0.0, 3e-3, MeasuredNoise(2.0)])
def test_updates(lam, centred):
    N, T = 4, 57
    task = Task.random(N, T, 2, seed=3)
    V, A = point(N, T, 1)
    gV, gA = point(N, T, 2)
    stage = Stage("2", 1, eta_V=0.3, eta_A=0.2, lam=lam, batch_size=40, centred=centred)
    plain = {"multiple": lam.multiple} if isinstance(lam, MeasuredNoise) else lam
    lab_stage = {"eta_V": 0.3, "eta_A": 0.2, "lam": plain, "batchSize": 40, "centred": centred, "projector": "euclidean"}
    found = ask("proximal", V=V.ravel(), A=A.T.ravel(), gV=gV.ravel(), gA=gA.T.ravel(), mu=task.mu, stage=lab_stage)
    new_V, new_A = proximal_step(V, A, gV, gA, task.mu, stage)
    np.testing.assert_allclose(np.reshape(found["V"], (N, N)), new_V, **EXACT)
    np.testing.assert_allclose(columns(found["A"], N), new_A, **EXACT)


def test_both_projectors():
    mu = Task.random(5, 10, 1, seed=4).mu
    G = np.random.default_rng(0).normal(size=(5, 5))
    euclidean = np.reshape(ask("precondition", G=G.ravel(), mu=mu, projector="euclidean"), (5, 5))
    np.testing.assert_allclose(euclidean, precondition_V(G, mu), **EXACT)
    found = np.reshape(ask("precondition", G=G.ravel(), mu=mu, projector="mu"), (5, 5))
    np.testing.assert_allclose(found, precondition_V(G, mu, "mu"), **EXACT)


def test_roundings_and_what_they_read():
    N, T = 3, 91
    mu = Task.random(N, T, 2, seed=5).mu
    rng = np.random.default_rng(1)
    V = rng.normal(size=(N, N))
    A = geometry.project(rng.normal(size=(T, N)) * 1e-3)
    A[[5, 40], :] += 0.2
    arrays = {"V": V.ravel(), "A": A.T.ravel(), "mu": mu}
    questions = [
        ("rounding", {"name": name, "threshold": level, **arrays})
        for name, level in (("mirror", 0), ("project", 0.01), ("project", None), ("normalize", 1 / 12))
    ]
    mirrored, projected, measured, normalized, readings = ask_all([*questions, ("readings", arrays)])
    truth_V, truth_A = roundings.mirror(V, A, mu)
    np.testing.assert_allclose(np.reshape(mirrored["V"], (N, N)), truth_V, **EXACT)
    np.testing.assert_allclose(columns(mirrored["A"], N), truth_A, **EXACT)
    np.testing.assert_allclose(columns(projected["A"], N), geometry.threshold_project(A, 0.01), **EXACT)
    np.testing.assert_allclose(columns(measured["A"], N), roundings.ThresholdProject()(V, A, mu)[1], **EXACT)
    np.testing.assert_allclose(columns(normalized["A"], N), geometry.threshold_normalize(A, 1 / 12), **EXACT)
    assert readings["skewness"] == pytest.approx(mu @ roundings.skewness(A), abs=1e-12)
    np.testing.assert_allclose(readings["noise"], roundings.noise_threshold(A), **EXACT)
    assert readings["signal"] == pytest.approx(roundings.estimated_signal(A, mu), abs=1e-12)


@pytest.mark.parametrize(("N", "T", "Q"), SIZES)
def test_measures(N, T, Q):
    task = Task.random(N, T, Q, seed=6)
    V, A = point(N, T, 3)
    A += 0.5 * task.Q
    points = ((V, A), geometry.uniform_start(task.mu, T), (task.P, task.Q))
    answers = ask_all([("measure", {"task": task_for_lab(task), "V": v.ravel(), "A": a.T.ravel()}) for v, a in points])
    for (values, attention), found in zip(points, answers, strict=True):
        truth = metrics.measure(task, values, attention)
        if values is task.P:  # distances are 0 there, and roots of rounding in both: their squares agree
            found, truth = ({name: value**2 for name, value in row.items()} for row in (found, truth))
        assert found == pytest.approx(truth, abs=1e-12)


PAPER = {
    "recipe": "paper",
    "eta": [0.05, 0.05, 0.05],
    "steps": [100, 60, 20],
    "batchSize": 64,
    "lam": 1e-4,
    "projector": "auto",
    "resolveSign": True,
}


def test_a_run_with_given_samples_ends_where_pythons_does():
    task = Task.random(3, 40, 2, seed=7)
    data = sample(task, 64, seed=1)
    recipe = scb.recipes.paper(task, eta=(0.05, 0.05, 0.05), steps=(60, 40, 0), lam=1e-4, batch_size=64)
    truth = scb.train(task, recipe, source=Dataset(data))
    settings = PAPER | {"steps": [60, 40, 0]}
    found = ask("runGiven", task=task_for_lab(task), settings=settings, batches=[given(data)])
    np.testing.assert_allclose(np.reshape(found["V"], (3, 3)), truth.V, **EXACT)
    np.testing.assert_allclose(columns(found["A"], 3), truth.A, **EXACT)


@pytest.mark.parametrize("name", ["paper", "tuned", "sgd"])
@pytest.mark.parametrize(("N", "T", "Q"), [(3, 300, 2), (6, 101, 1)])
def test_a_run_by_seed_is_pythons_run(name, N, T, Q):
    """Tasks, samples, roundings, stops, Stage 3 and history: the whole run, to rounding, from nothing but seeds."""
    task = Task.random(N, T, Q, seed=3)
    options = {
        "paper": {"eta": (0.05, 0.05, 0.05), "steps": (100, 60, 20), "lam": 1e-4},
        "sgd": {"eta": (0.05, 0.05), "steps": (100, 60)},
        "tuned": {},
    }
    truth = scb.train(task, getattr(scb.recipes, name)(task, **options[name]), seed=5)
    found = ask("run", task=task_for_lab(task), settings=PAPER | {"recipe": name, "accuracy": 0.02}, seed=5, every=10)
    np.testing.assert_allclose(np.reshape(found["V"], (N, N)), truth.V, **EXACT)
    np.testing.assert_allclose(columns(found["A"], N), truth.A, **EXACT)
    for column, values in truth.history.items():
        np.testing.assert_allclose(numbers(found["history"][column]), values, rtol=0, atol=1e-11, err_msg=column)


def test_the_thin_line_is_the_population_process():
    task = Task.random(3, 500, 2, seed=1)
    rows = ask("predict", task=task_for_lab(task), settings=PAPER | {"eta": [0.01] * 3, "steps": [400, 0, 0]}, every=10)
    truth = population_recursion(task.K_P, task.K_Q, task.T, 0.01 / task.K_Q, 0.01 / task.K_P, 400)[::10]
    np.testing.assert_allclose([[row["alpha_V"], row["alpha_A"]] for row in rows], truth, **EXACT)
    alpha_V, alpha_A = truth[-1]
    truth_row = metrics.measure(task, geometry.line_V(task, alpha_V), geometry.line_A(task, alpha_A))
    for name in ("dist_V", "dist_A", "loss"):
        assert rows[-1][name] == pytest.approx(truth_row[name], abs=1e-12)


BREAKAGES = {
    "the proximal step": ("engine.mjs", "a - Math.min(Math.max(a, -lam), lam)", "a - Math.min(Math.max(a, 0), lam)"),
    "the gradient of V": ("engine.mjs", "gV[n * N + m] += r * mass[m];", "gV[n * N + m] += r * mass[n];"),
    "the word of a stream": ("streams.mjs", "low ^= (low >>> 27) | (high << 5);", "low ^= (low >>> 27) | (high << 4);"),
}


@pytest.mark.parametrize("what", BREAKAGES)
def test_a_broken_engine_is_noticed(what, tmp_path):
    """Each of three small faults, put into a copy of the engine, moves the end of a run by far more than rounding."""
    file, right, wrong = BREAKAGES[what]
    modules = Path(scb.__file__).parent / "lab" / "modules"
    copytree(modules, tmp_path / "src/scb/lab/modules")
    broken = tmp_path / "src/scb/lab/modules" / file
    text = broken.read_text(encoding="utf-8")
    assert right in text
    broken.write_text(text.replace(right, wrong), encoding="utf-8")
    harness = tmp_path / "tests/lab/harness.mjs"
    harness.parent.mkdir(parents=True)
    harness.write_text(HARNESS.read_text(encoding="utf-8"), encoding="utf-8")
    task = Task.random(3, 50, 2, seed=3)
    question = ("run", {"task": task_for_lab(task), "settings": PAPER, "seed": 5, "every": 10})
    sound, faulty = ask_all([question])[0], ask_all([question], harness)[0]
    assert np.abs(np.subtract(sound["V"], faulty["V"])).max() + np.abs(np.subtract(sound["A"], faulty["A"])).max() > 1e-6


def test_a_softmax_run_is_that_of_python():
    task = Task.random(3, 40, 2, seed=3)
    settings = {**PAPER, "recipe": "softmax", "steps": [100, 200, 0], "batchSize": 32}
    found = ask("run", task=task_for_lab(task), settings=settings, seed=5, every=10)
    truth = scb.train(task, scb.recipes.softmax(task, steps=300, batch_size=32), seed=5, every=10)
    np.testing.assert_allclose(np.reshape(found["V"], (3, 3)), truth.V, rtol=0, atol=1e-11)
    np.testing.assert_allclose(columns(found["A"], 3), truth.model.attention, rtol=0, atol=1e-11)
    for name in ("loss", "dist_A", "sim_A"):
        np.testing.assert_allclose(numbers(found["history"][name]), truth.history[name], rtol=0, atol=1e-11, err_msg=name)


def test_a_sample_that_is_followed_is_one_of_the_run_and_goes_through_the_model():
    task = Task.random(3, 12, 2, seed=0)
    V, A = point(3, 12)
    drawn = ask("draw", task=task_for_lab(task), seed=4, batchSize=6, step=0)
    for i, found in enumerate(ask("follow", task=task_for_lab(task), V=V.ravel(), A=A.T.ravel(), seed=4)):
        sample_, seen = found["sample"], found["seen"]
        assert sample_["context"] == drawn["context"][12 * i : 12 * i + 12]
        assert (sample_["last"], sample_["label"]) == (drawn["last"][i], drawn["label"][i])
        assert sample_["position"] in task.support[sample_["last"]]
        assert task.P[sample_["label"], sample_["context"][sample_["position"]]] > 0
        batch = Batch(np.array([sample_["context"]]), np.array([sample_["last"]]), np.array([sample_["label"]]))
        g = batch_gradient(V, A, batch)
        assert seen["loss"] == pytest.approx(g.loss, abs=1e-12)
        np.testing.assert_allclose(seen["push"], -g.A[:, sample_["last"]], **EXACT)
        np.testing.assert_allclose(seen["prediction"], scb.LinearTransformer(V, A).predict(batch)[0], **EXACT)
        assert f"position {sample_['position']}." in found["said"][1]


def test_reasons_are_the_largest_parts_of_a_prediction():
    rng = np.random.default_rng(0)
    N, T = 3, 5
    tokens = rng.integers(0, N, 60)
    V, A = rng.random((N, N)), rng.normal(size=(T, N))
    found = ask("reasons", tokens=tokens.tolist(), V=V.ravel(), A=A.T.ravel(), N=N, T=T, count=30)
    assert len(found) == 30
    for at, reason in enumerate(found, T + 1):
        parts = A[:, tokens[at - 1]] * V[tokens[at], tokens[at - 1 - T : at - 1]]
        best = int(np.argmax(parts))
        assert reason["token"] == tokens[at]
        if parts[best] > 0:
            assert reason["lag"] == T + 1 - best
            assert reason["share"] == pytest.approx(parts[best] / np.maximum(parts, 0).sum(), abs=1e-12)
        assert reason["probability"] == pytest.approx(np.clip(parts.sum(), 0, 1), abs=1e-12)
