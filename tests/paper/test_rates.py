"""Rates and what stands beside them: the search for the least batch, exponents, jobs at tiny sizes, claims for and against."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from scb.geometry import line_A
from scb.jobs.job import random_task
from scb.paper.claims import rates as claims
from scb.paper.experiments.rates import BASE, LARGEST_BATCH, SETTINGS, Point, RateJob, least_batch, separates
from scb.paper.experiments.regulariser import StageTwoErrorJob
from scb.paper.experiments.softmax import AttentionJob, OneStepJob
from scb.paper.experiments.theorem import LONG, AssumptionsJob
from scb.paper.experiments.windows import MarginalJob, WindowsJob, windows
from scb.paper.numbers import Number
from scb.paper.outcome import Verdict
from scb.paper.slopes import compared, log_log_slope, printed_exponent, varied
from scb.task.sampling import generate

RUNNER = Path(__file__).parents[2] / "benchmarks" / "full_run.py"
HOLDS, UNSURE, FAILS = Verdict.HOLDS, Verdict.UNSURE, Verdict.FAILS


# ------------------------------------------------------------------------------------------------- the search


def points(count):
    task = random_task(3, 10, 1, 0)
    return [Point(task, task.P, task.Q, 0)] * count


@pytest.mark.parametrize("together", [1, 20])
@pytest.mark.parametrize("enough", [1, 2, 3, 7, 100, 5000])
def test_the_least_batch_is_found_to_a_factor_of_root_two(enough, together):
    def attempt(points, batch, runs):
        return [point._replace(steps=batch) if batch >= enough else None for point in points]

    found = least_batch(attempt, points(20), together=together)
    assert enough <= found.batch_size <= max(enough * np.sqrt(2) + 0.5, enough)
    assert found.steps == found.batch_size
    assert found.samples == found.batch_size**2
    assert len(found.points) == 20


@pytest.mark.parametrize(("together", "last"), [(1, 3), (3, 5), (20, 19)])
def test_fifteen_per_cent_may_fail_and_the_others_go_on(together, last):
    def fewer(points, batch, runs):
        return [None if run < 3 else point for run, point in zip(runs, points, strict=True)]

    allowed = least_batch(fewer, points(20), together=together)
    assert allowed.batch_size == 1
    assert len(allowed.points) == 17
    tried = []

    def attempt(points, batch, runs):
        tried.extend((batch, run) for run in runs)
        return [None if run < 4 else point for run, point in zip(runs, points, strict=True)]

    assert least_batch(attempt, points(20), together=together).batch_size == np.inf
    assert max(run for _, run in tried) == last  # as soon as it is too many, no further run is made
    assert max(batch for batch, _ in tried) == LARGEST_BATCH
    assert least_batch(attempt, []).batch_size == np.inf


def test_separation_is_by_rank_in_every_column():
    task = random_task(4, 30, 2, 0)
    A = line_A(task, 0.3)
    assert separates(task, A)
    outside = np.flatnonzero(task.Q[:, 2] == 0)[0]
    A[outside, 2] = A[task.support[2], 2].min() + 1e-9
    assert not separates(task, A)


def test_every_axis_of_the_rates_has_four_values_for_both_projectors():
    columns = np.array([size[:-1] for size in SETTINGS]).T
    table = dict(zip(BASE, columns, strict=True)) | {"projector": np.array([size[-1] for size in SETTINGS])}
    for axis in BASE:
        for projector in ("euclidean", "mu"):
            mine = {name: column[table["projector"] == projector] for name, column in table.items()}
            assert len(np.unique(varied(mine, axis)[axis])) >= 4


# ------------------------------------------------------------------------------------------------- exponents


def test_a_power_law_has_its_exponent_and_infinite_values_leave_an_end_open():
    x = np.array([1.0, 2, 4, 8, 16])
    assert_allclose(log_log_slope(x, 7 * x**1.75)[:3], 1.75, atol=1e-9)
    y = 7 * x**-0.5
    assert_allclose(log_log_slope(np.append(x, 32), np.append(y, np.nan))[:3], -0.5, atol=1e-9)
    for place, ends in ((32, (-0.5, np.inf)), (0.5, (-np.inf, -0.5))):
        found = log_log_slope(np.append(x, place), np.append(y, np.inf))
        assert_allclose(found[:3], (-0.5, *ends), atol=1e-9)
    assert np.isnan(log_log_slope(np.ones(3), np.ones(3)).estimate)


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    x = np.repeat([1.0, 2, 4, 8], 5)
    found = [log_log_slope(x, x**0.8 * np.exp(rng.normal(scale=0.3, size=x.size))) for _ in range(1000)]
    assert 0.93 < np.mean([slope.low <= 0.8 <= slope.high for slope in found]) < 0.97


@pytest.mark.parametrize(("low", "high", "word"), [(1.5, 2.5, "met"), (0.5, 1.5, "beaten"), (2.5, 3.5, "missed")])
def test_an_upper_bound_is_met_beaten_or_missed(low, high, word):
    middle = (low + high) / 2
    assert compared(Number(middle, low, high), 2.0) == word
    assert compared(Number(-middle, -high, -low), -2.0, "epsilon") == word  # samples grow where ε falls


def rates_table(exponents, projectors=("euclidean", "mu")):
    """A table of rates with these exponents of each stage's samples: stage → axis → exponent."""
    sizes: list = [size[:-1] for size in SETTINGS if size[-1] == "mu"]
    columns = dict(zip(BASE, np.array(sizes).T, strict=True))
    table = {name: np.tile(column, len(projectors)) for name, column in columns.items()}
    for name in ("N", "T", "sparsity"):
        table[name] = table[name].astype(int)
    table |= {"projector": np.repeat(projectors, len(sizes)), "eta": np.full(len(table["N"]), 0.02), "K_Q": 1 / table["sparsity"]}
    for stage in (1, 2, 3):
        powers = [(table[axis] / BASE[axis]) ** x for axis, x in exponents.get(stage, {}).items()]
        table[f"samples_{stage}"] = 100 * np.prod(powers, axis=0) * np.ones(len(table["N"]))
    return table


def log_NT(table):
    """For N and for T: their values, and those of 2NT."""
    for axis in ("N", "T"):
        x = np.unique(table[axis])
        yield axis, x, 2 * x * BASE["T" if axis == "N" else "N"]


def test_printed_exponents_are_those_of_the_lemmas():
    table = rates_table({})
    printed = {stage: {axis: printed_exponent(table, axis, stage) for axis in BASE} for stage in (1, 2, 3)}
    assert printed[1] == pytest.approx({"N": 5, "T": 2, "sparsity": printed[1]["sparsity"], "epsilon": 0, "K_P": -3}, abs=1e-9)
    assert 4 < printed[1]["sparsity"] < 7  # Q⁴, and K_Q⁻³ where that is below K_P
    logarithm = {axis: log_log_slope(x, np.log(y)).estimate for axis, x, y in log_NT(table)}
    assert printed[2] == pytest.approx({"N": 6.5 + logarithm["N"], "T": logarithm["T"], "sparsity": 6, "epsilon": -1, "K_P": -4})
    assert 0.1 < logarithm["T"] < 0.15
    assert printed[3] == pytest.approx({"N": 3, "T": 0, "sparsity": 2, "epsilon": -2, "K_P": -1}, abs=1e-9)


@pytest.mark.parametrize(
    ("judge", "stage", "axis", "small", "large"),
    [
        (claims.stage_one_rate, 1, "T", 1.7, 4.0),
        (claims.stage_two_rate, 2, "N", 2.0, 30.0),
        (claims.stage_three_rate, 3, "epsilon", -1.0, -9.0),
    ],
)
def test_rates_of_the_stages(judge, stage, axis, small, large):
    modest = {"K_P": -1.0, "sparsity": 1.0, "N": 1.0}
    if stage > 1:
        modest["epsilon"] = -1.0
    assert judge(rates_table({stage: modest | {axis: small}})).verdict is HOLDS
    wrong = judge(rates_table({stage: modest | {axis: large}}))
    assert wrong.verdict is FAILS
    assert "missed: " in judge.note(wrong)
    noisy = rates_table({stage: modest | {axis: small}})
    doublings = np.round([np.log2(noisy[name] / base) for name, base in BASE.items()]).sum(axis=0)
    noisy[f"samples_{stage}"] *= np.exp(6 * (-1) ** doublings)
    assert judge(noisy).verdict is UNSURE


def test_stage_one_is_judged_where_it_has_a_law():
    """Below T = 800 the positions have to be seen: what happens there says nothing about the exponent."""
    table = rates_table({1: {"T": 1.7, "K_P": -1.0, "sparsity": 1.0, "N": 1.0}})
    table["samples_1"][table["T"] < 400] /= 1e6
    assert claims.stage_one_rate(table).verdict is HOLDS


def test_searches_without_a_batch_are_counted():
    table = rates_table({3: {"epsilon": -1.0}})
    assert claims.stage_three_rate(table).verdict is HOLDS
    table["samples_3"][np.flatnonzero(table["sparsity"] == 16)[0]] = np.inf
    outcome = claims.stage_three_rate(table)
    assert outcome.verdict is UNSURE  # how many samples it would have taken is not known
    assert f"1 of {len(table['T'])} searches found no batch" in claims.stage_three_rate.measured(outcome)[-1]


@pytest.mark.parametrize(("first", "second", "expected"), [(1.5, 0.0, HOLDS), (1.5, 0.5, FAILS), (0.2, 0.0, FAILS)])
def test_after_stage_one(first, second, expected):
    assert claims.after_stage_one(rates_table({1: {"T": first}, 2: {"T": second}, 3: {"T": second}})).verdict is expected


# ------------------------------------------------------------------------------------------------- jobs


def test_a_job_of_the_rates_goes_through_all_stages():
    row = RateJob(T=40, runs=3, eta=0.1, epsilon=0.04, projector="mu").run()
    for stage in (1, 2, 3):
        assert row[f"samples_{stage}"] == row[f"batch_{stage}"] * row[f"steps_{stage}"]
    assert row["samples"] == sum(row[f"samples_{stage}"] for stage in (1, 2, 3))
    assert row["succeeded"] == 1.0  # of three runs none may fail


def test_the_proximal_step_lowers_the_error_of_stage_two():
    jobs = {multiple: StageTwoErrorJob(T=400, multiple=multiple, replicate=0, batch_size=512) for multiple in (0.0, 2.0)}
    square = {multiple: job.run()["square_A"] for multiple, job in jobs.items()}
    assert square[2.0] < square[0.0] / 5


def test_one_step_of_softmax_differs_by_the_square_of_the_step():
    """Relative to the step, the difference is of first order in its size: a measured slope of 1, over five mini-batches."""
    sizes = np.array([0.01, 0.1, 1.0])
    errors = np.array([np.mean([OneStepJob(T=100, size=size, replicate=i).run()["error"] for i in range(5)]) for size in sizes])
    assert log_log_slope(sizes, errors).estimate == pytest.approx(1, abs=0.1)


def test_samples_until_a_level_ascend():
    row = AttentionJob(T=50, method="proximal", replicate=0, steps=1500).run()
    assert row["samples_10"] < row["samples_50"] < np.inf


def test_the_long_task_is_inside_all_assumptions():
    assert all(assumption.holds for assumption in random_task(3, LONG, 1, 0).check().values())
    rows = AssumptionsJob(T=200, batch_size=32).run()
    assert not rows["inside"].any()  # T is too small for (d)
    assert len(rows["step"]) == len(rows["inside"])


def test_windows_are_the_samples_of_a_sequence():
    task = random_task(3, 5, 2, 0)
    tokens = generate(task, 40, 0)
    batch = windows(tokens, 5)
    assert len(batch) == 40 - 6
    assert_array_equal(batch.context[3], tokens[3:8])
    assert batch.last[3] == tokens[8]
    assert batch.label[3] == tokens[9]


def test_windows_and_marginals_run():
    row = WindowsJob(length=1500, data="sequence", law="frequencies", replicate=0).run()
    assert np.isfinite([row["dist_V"], row["dist_A"]]).all()
    row = MarginalJob(replicate=0, length=100_000).run()
    assert 0.02 < row["distance"] < 0.5


def test_the_runner_for_other_machines_gives_the_rows_of_the_job(tmp_path):
    spec = importlib.util.spec_from_file_location("full_run", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    full_run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(full_run)
    full_run.list_jobs(tmp_path / "jobs.json", "one step")
    entry = json.loads((tmp_path / "jobs.json").read_text().splitlines()[0])
    line = full_run.do(entry)
    (tmp_path / "rows.jsonl").write_text(json.dumps(line) + '\n{"key": "cut o')
    done = full_run.read_lines(tmp_path / "rows.jsonl")
    job = full_run.build(entry)
    assert done[job.key]["rows"]["error"] == [job.run()["error"]]
    assert "failed" in full_run.do(entry | {"fields": entry["fields"] | {"T": -1}})


def test_the_runner_gives_up_a_job_that_does_not_end(tmp_path):
    (tmp_path / "sleeper.py").write_text("import time\n\n\nclass Sleeper:\n    def run(self):\n        time.sleep(600)\n")
    entry = {"key": "0", "table": "sleep", "cost": 1.0, "module": "sleeper", "job": "Sleeper", "fields": {}}
    (tmp_path / "jobs.json").write_text(json.dumps(entry) + "\n")
    command = (sys.executable, RUNNER, "run", tmp_path / "jobs.json", tmp_path / "rows.jsonl", "--seconds", "1", "--grace", "1")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert "given up: sleep" in done.stdout
    assert "0 through, 1 left" in done.stdout
