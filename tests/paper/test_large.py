"""Experiments that ask for a GPU, on a machine without one: their jobs at small sizes, their claims, and who makes their tables."""

import numpy as np
import pytest

from scb.cli.reproduce import reproduce
from scb.inputs import InputError
from scb.paper import stage_one
from scb.paper.claims import large, projector
from scb.paper.experiments.large import KEPT, LARGE_AXES, LARGE_BASE, LARGE_SETTINGS, PlanJob, RealJob
from scb.paper.experiments.projector import SignJob
from scb.paper.experiments.rates import LARGEST_ON_GPU, RateJob
from scb.paper.outcome import Verdict
from scb.paper.registry import TABLES, tables
from scb.sweeps.kinds import TrainJob, kind_of
from scb.task import Task

HOLDS, UNSURE, FAILS = Verdict.HOLDS, Verdict.UNSURE, Verdict.FAILS
GPU = [name for name, experiment in TABLES.items() if experiment.gpu]


def test_they_are_made_where_a_gpu_is_asked_for_and_nowhere_else():
    assert GPU == ["real gradients", "long signs", "large rates", "plan", "long ends"]
    for options in ({}, {"full": True}, {"quick": True, "full": True}):
        assert not set(GPU) & set(tables(**options))
        assert set(GPU) <= set(tables(**options, gpu=True))
    for name in GPU:
        assert {job.device for job in TABLES[name].jobs()} == {"cuda"}
        assert TABLES[name].command == "scb reproduce --device cuda"


def test_without_a_gpu_reproduce_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(InputError, match="needs CuPy"):
        reproduce(tmp_path / "out", only="F22", device="cuda")
    with pytest.raises(InputError, match=r"'F22', which needs tables of a GPU: add --device cuda, or --shipped docs/tables"):
        reproduce(tmp_path / "out", only="F22")
    assert not (tmp_path / "out").exists()


def test_a_device_changes_the_key_and_not_the_samples():
    """Old seeds stay, too: this one was made before there was a device."""
    assert SignJob(T=500).seed == SignJob(T=500, device="cuda").seed == 8206469748087172129
    assert SignJob(T=500).key != SignJob(T=500, device="cuda").key
    assert RateJob(device="cuda").seed == RateJob().seed
    assert TrainJob({"T": 100, "device": "cuda"}, 0).seed == TrainJob({"T": 100}, 0).seed
    assert "device" not in SignJob(T=500).columns


def test_a_sweep_of_an_experiment_may_name_a_device():
    kind = kind_of("wrong signs", SignJob)
    assert kind.make(kind.complete({"T": 100, "device": "cuda"}), 0).device == "cuda"
    assert kind.make(kind.complete({"T": 100}), 0).device is None
    with pytest.raises(InputError, match="device = 'tpu': it must be one of 'cpu', 'cuda'"):
        kind.complete({"T": 100, "device": "tpu"})


def test_the_processor_named_is_the_processor_by_default():
    rows = [SignJob(T=100, batch_size=16, eta=0.05, device=device).run() for device in (None, "cpu")]
    assert rows[0] == rows[1]
    assert rows[0]["samples"] > 0


@pytest.mark.parametrize("method", ["proximal", "SGD"])
def test_real_and_simulated_runs_have_the_same_steps(method):
    size = {"N": 5, "T": 400, "batch_size": 256, "method": method, "every": 200}
    found = {gradients: RealJob(**size, gradients=gradients).run() for gradients in ("real", "simulated")}
    for rows in found.values():
        assert list(rows) == list(KEPT)
        assert rows["step"].tolist() == [0, 200, 400, 600, 800, 900, 1000] or rows["step"].tolist() == [0, 200, 400, 600, 800, 1000]
    assert found["real"]["alpha_A"][-1] > 0.5
    assert found["simulated"]["alpha_A"][-1] > 0.5


def test_the_plan_is_run_by_its_letter():
    job = PlanJob()
    task = Task.random(job.N, job.T, job.sparsity, seed=0)
    for stage, asked in zip(job.recipe(task).stages, job.plan(task).stages, strict=True):
        assert (stage.steps, stage.batch_size, stage.lam) == (asked.steps, int(asked.batch_size), asked.lam)
        assert stage.eta_V == pytest.approx(asked.eta / task.K_Q)
    assert [len(stage.enter) for stage in job.recipe(task).stages] == [0, 1, 1]


def test_large_rates_vary_one_size_at_a_time():
    base = (*LARGE_BASE.values(), "mu")
    for setting in LARGE_SETTINGS:
        if setting[-1] == "mu":
            assert sum(x != y for x, y in zip(setting, base, strict=True)) <= 1
    assert {setting[1] for setting in LARGE_SETTINGS} >= set(LARGE_AXES["T"])
    assert LARGEST_ON_GPU > 1 << 14


# ------------------------------------------------------------------------------------------------------ claims


def large_runs(factor):
    """Forty real runs that are ``factor`` times the middle one of five simulated ones."""
    parts = [*(("real", i, factor) for i in range(40)), *(("simulated", i, 0.9 + 0.05 * i) for i in range(5))]
    step = np.tile(np.arange(0, 1001, 100.0), len(parts))
    size = np.repeat([scale for *_, scale in parts], 11)
    table = {name: size * (1 + step) for name in ("alpha_V", "alpha_A", "delta_A")}
    table |= {"step": step, "N": np.full(495, 100), "method": np.full(495, "SGD")}
    table |= {"gradients": np.repeat([kind for kind, *_ in parts], 11), "trial": np.repeat([i for _, i, _ in parts], 11)}
    return table


@pytest.mark.parametrize(("factor", "expected"), [(1.0, HOLDS), (1.15, HOLDS), (1.5, FAILS), (0.5, FAILS)])
def test_simulation_is_right(factor, expected):
    outcome = large.simulation_is_right(large_runs(factor))
    assert outcome.verdict is expected
    few = large_runs(factor)
    few = {name: column[(few["gradients"] == "simulated") | (few["trial"] == 0)] for name, column in few.items()}
    assert large.simulation_is_right(few).verdict is (UNSURE if expected is HOLDS else FAILS)  # one run proves little
    assert ("outside between steps 100 and 1000" in "".join(large.simulation_is_right.measured(outcome))) is (expected is FAILS)


def sign_table(**powers):
    """Runs whose signs are right with the distribution's probability, the least B being 40·(T/500)^power."""
    rng = np.random.default_rng(1)
    rows = [
        (
            T,
            round(40 * (T / 500) ** power * ratio),
            projector,
            i,
            rng.random() < stage_one.share_by_power_law(ratio, large.RIGHT),
        )
        for projector, power in powers.items()
        for T in (500, 5000, 50_000)
        for ratio in (0.25, 0.5, 1.0, 2.0)
        for i in range(20)
    ]
    return {
        name: np.array([row[j] for row in rows]) for j, name in enumerate(("T", "batch_size", "projector", "replicate", "right"))
    }


def test_a_power_law_is_found_again():
    table = sign_table(mu=1.0)
    distribution = stage_one.power_law(table, large.RIGHT)
    assert distribution.exponent == pytest.approx(1.0, abs=0.15)
    assert distribution.least(np.array([5000.0]))[0] == pytest.approx(400, rel=0.5)
    T, each = stage_one.least_at_each(table, large.RIGHT)
    np.testing.assert_allclose(np.log(each), np.log(40 * T / 500), atol=1.0)


@pytest.mark.parametrize(("ours", "theirs", "expected"), [(1, 2, HOLDS), (2, 2, FAILS), (1, 1, FAILS)])
def test_sign_by_drift_alone(ours, theirs, expected, monkeypatch):
    monkeypatch.setattr(large, "DRAWS", 20)
    assert large.sign_by_drift_alone(sign_table(euclidean=theirs, mu=ours)).verdict is expected


@pytest.mark.parametrize(("even", "spread", "expected"), [(1, 2, HOLDS), (2, 2, FAILS), (1, 1, FAILS)])
def test_spread_decides(even, spread, expected, monkeypatch):
    """The exponents with the paper's projector at uniform μ and where it is spread; the μ-projector has 1."""
    monkeypatch.setattr(projector, "DRAWS", 20)
    parts = [(level, sign_table(euclidean=power, mu=1)) for level, power in ((1.0, even), (2.0, spread))]
    table = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
    count = len(table["T"])
    table |= {"spread": np.repeat([1.0, 2.0], count // 2), "chain": np.full(count, "strong")}
    table |= {"gradients": np.full(count, "simulated")}
    assert projector.spread_decides(table).verdict is expected
    few = {name: column[table["replicate"] < 3] for name, column in table.items()}
    assert projector.spread_decides(few).verdict is not HOLDS


def rate_table(power):
    """Least samples that grow with T at a power, and with nothing else."""
    rows = [dict(zip((*LARGE_BASE, "projector"), setting, strict=True)) for setting in LARGE_SETTINGS for _ in range(2)]
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    grown = 1000 * (table["T"] / 400) ** power * np.tile([0.98, 1.02], len(LARGE_SETTINGS))
    return (
        table
        | {f"samples_{stage}": grown for stage in (1, 2, 3)}
        | {"K_Q": np.full(len(rows), 0.5), "runs": np.full(len(rows), 10)}
    )


@pytest.mark.parametrize(("power", "expected"), [(0.0, HOLDS), (1.0, FAILS), (3.0, FAILS)])
def test_large_rates_hold(power, expected):
    """Stages 2 and 3 may not grow like a power of T."""
    outcome = large.large_rates_hold(rate_table(power))
    assert outcome.verdict is expected
    assert ("T, Stage 1, μ-projector" in large.large_rates_hold.note(outcome)) is (power > 2)
    assert ("T, Stage 3, μ-projector" in large.large_rates_hold.note(outcome)) is (power > 0)


@pytest.mark.parametrize(
    ("signal", "error", "distance", "expected"),
    [(0.6, 0.01, 0.1, HOLDS), (0.4, 0.01, 0.1, FAILS), (0.6, 0.3, 0.1, FAILS), (0.6, 0.01, 0.4, FAILS)],
)
def test_plan_keeps_its_promises(signal, error, distance, expected):
    """A few runs that keep them prove little; the real one that breaks them is enough."""

    def runs(count, signal, error, distance):
        table = {
            name: np.full(3 * count, value) for name, value in (("N", 2), ("sparsity", 1), ("epsilon", 0.1), ("samples", 1e10))
        }
        table |= {"stage": np.tile([1, 2, 3], count), "replicate": np.repeat(np.arange(count), 3), "inside": np.ones(3 * count)}
        table |= {"alpha_V": np.full(3 * count, signal), "alpha_A": np.zeros(3 * count), "delta_A": np.full(3 * count, error)}
        return table | {"dist_A": np.full(3 * count, 0.1), "dist_V": np.full(3 * count, distance)}

    many, few, one = (runs(count, signal, error, distance) for count in (40, 9, 1))
    good = runs(40, 0.6, 0.01, 0.1)
    assert large.plan_keeps_its_promises(many).verdict is expected
    assert large.plan_keeps_its_promises(few).verdict is (UNSURE if expected is HOLDS else FAILS)
    assert large.plan_keeps_its_promises(good, one).verdict is expected
    assert large.plan_keeps_its_promises(good | {"inside": np.zeros(120)}).verdict is FAILS
