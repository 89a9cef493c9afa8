"""A claim that cannot fail says nothing: each of these is fed data for it and data against it."""

from statistics import NormalDist

import numpy as np
import pytest

from claim_tables import runs
from scb.paper.claims import models, preconditioner, projector, samples, theory
from scb.paper.outcome import Answer, Verdict

HOLDS, CHANGED, SOME, UNSURE, FAILS = Verdict.HOLDS, Verdict.CHANGED, Verdict.SOME, Verdict.UNSURE, Verdict.FAILS
YES, NO = Answer.YES, Answer.NO
T = np.array([100, 1000, 10_000, 100_000])


# ------------------------------------------------------------------------------------------------------ the population


@pytest.mark.parametrize(("off", "expected"), [(1e-15, HOLDS), (1e-3, FAILS)])
def test_on_the_line(off, expected):
    assert theory.on_the_line({"off_line": np.array([0.0, off])}).verdict is expected


@pytest.mark.parametrize(("sign", "recursion", "expected"), [(1, 1, HOLDS), (-1, 1, FAILS), (1, -1, FAILS)])
def test_drift_points_right(sign, recursion, expected):
    line = {"alpha_V": np.array([0.1, 0.2]), "alpha_A": sign * np.array([0.1, 0.2]), "step": np.array([50, 100])}
    stage_1 = {"alpha_V": np.ones(4), "alpha_A": recursion * np.ones(4), "T": T, "undrifted": np.zeros(4)}
    assert theory.drift_points_right(line, stage_1).verdict is expected


@pytest.mark.parametrize(("printed", "recursion", "expected"), [(0, 0, HOLDS), (1, 0, HOLDS), (0, 1, FAILS)])
def test_two_dimensions(printed, recursion, expected):
    table = {"alpha_V": np.zeros(2), "alpha_A": np.zeros(2)}
    table |= {f"printed_{x}": np.full(2, printed) for x in "VA"} | {f"recursion_{x}": np.full(2, recursion) for x in "VA"}
    assert theory.two_dimensions(table).verdict is expected


@pytest.mark.parametrize(("factor", "expected"), [(1.0, HOLDS), (2.0, FAILS), (0.0, FAILS)])
def test_stage_one_length(factor, expected):
    table = {"T": T, "eta": np.full(4, 0.01), "steps": 100 * factor * np.log(T) + 50}
    assert theory.stage_one_length(table).verdict is expected


@pytest.mark.parametrize(
    ("factor", "power", "size", "expected"),
    [(1, -1, 2, HOLDS), (1, -0.5, 2, FAILS), (5, -1, 2, FAILS), (1, -1, 9, FAILS), ((1, 1, 1, 1, 1, 1, 1, 5), -1, 2, UNSURE)],
)
def test_signals_meet(factor, power, size, expected):
    lengths = np.repeat(T, 10)
    gap = np.resize(factor, 40) * lengths ** float(power)
    table = {"T": lengths, "K_Q": np.full(40, 0.5), "gap": gap, "sum": np.full(40, size)}
    assert theory.signals_meet(table, {"T": T, "gap": 1 / T}).verdict is expected


@pytest.mark.parametrize(("rate", "error", "expected"), [(0.01, 1.0, HOLDS), (1.0, 1.0, FAILS), (0.01, 0.1, FAILS)])
def test_slow_difference(rate, error, expected):
    step = np.arange(0, 200, 20)
    eta = 0.005
    parts = [("sum", 1 - np.exp(-2 * eta * step), 1 - np.exp(-2 * eta * step))]
    parts.append(("difference", np.exp(-rate * eta * step), -np.exp(-rate * eta * step)))
    columns = {"direction": np.repeat([name for name, *_ in parts], len(step)), "step": np.tile(step, 2)}
    columns |= {"alpha_V": np.concatenate([V for _, V, _ in parts]), "alpha_A": np.concatenate([A for *_, A in parts])}
    near_one = columns | {"eta": np.full(2 * len(step), eta)}
    assert theory.slow_difference(near_one, {f"rate_{x}": np.full(40, error) for x in "VA"}).verdict is expected
    few = theory.slow_difference(near_one, {f"rate_{x}": np.full(4, error) for x in "VA"})
    assert few.verdict is (UNSURE if expected is HOLDS else FAILS)


@pytest.mark.parametrize(("dist", "after", "expected"), [(0.01, 0.9, HOLDS), (0.2, 0.9, FAILS), (0.01, 0.5, FAILS)])
def test_stage_three_repairs(dist, after, expected):
    rows = {"last": np.repeat(["normalised", "not normalised"], 40), "dist_V_after": np.full(80, dist)}
    rows |= {"alpha_V_before": np.full(80, 0.8), "alpha_V_after": np.full(80, after)}
    assert theory.stage_three_repairs(rows).verdict is expected


# ------------------------------------------------------------------------------------------------------ noise and rounding


@pytest.mark.parametrize(("power", "expected"), [(1.0, HOLDS), (0.5, FAILS), (0.0, FAILS)])
def test_variance_grows(power, expected):
    assert theory.variance_grows({"T": T, "square": 3.0 * T**power}).verdict is expected


@pytest.mark.parametrize("power", [0.0, 0.25])
def test_largest_entry(power):
    lengths = np.repeat(T, 5)
    table = {"T": lengths, "N": np.full(20, 3), "entry": np.ones(20), "largest": np.sqrt(2 * np.log(3 * lengths)) * lengths**power}
    assert theory.largest_entry(table).verdict is (FAILS if power else HOLDS)


@pytest.mark.parametrize(("far", "expected"), [(40, HOLDS), (38, UNSURE), (20, FAILS)])
def test_separation(far, expected):
    table = {"margin": np.repeat([1.0, 8.0], 40), "separated": np.concatenate([np.arange(40) < 20, np.arange(40) < far])}
    assert theory.separation(table).verdict is expected


@pytest.mark.parametrize(("change", "growth", "expected"), [(1, 0.0, HOLDS), (0.5, 0.0, FAILS), (1, 0.1, FAILS)])
def test_rounding_is_mild(change, growth, expected):
    zeros = np.zeros(40)
    lengths = np.repeat(T, 10)
    table = {"T": lengths, "alpha_before": zeros, "alpha_after": 1 / lengths**change, "square_before": zeros}
    assert theory.rounding_is_mild(table | {"square_after": zeros + growth}).verdict is expected


@pytest.mark.parametrize(("factor", "power", "expected"), [(2.0, 1.0, HOLDS), (9.0, 1.0, FAILS), (2.0, 0.5, FAILS)])
def test_near_uniform(factor, power, expected):
    s = np.array([0.01, 0.03, 0.1])
    table = {"first": np.zeros(3), "spread": s, "T": np.full(3, 50), "uniform": factor * s**power}
    assert preconditioner.near_uniform(table).verdict is expected


@pytest.mark.parametrize(("printed", "corrected", "expected"), [(0.01, 1.0, HOLDS), (3.0, 1.0, CHANGED), (3.0, 20.0, FAILS)])
def test_near_sparse(printed, corrected, expected):
    table = {"first": np.full(4, 0.3), "T": T, "printed": np.full(4, printed), "corrected": corrected / T}
    assert preconditioner.near_sparse(table).verdict is expected


# ------------------------------------------------------------------------------------------------------ softmax, simulation


@pytest.mark.parametrize(("cosine", "loss", "expected"), [(0.99, 0.2, HOLDS), (0.5, 0.2, FAILS), (0.99, 0.3, FAILS)])
def test_softmax_is_alike(cosine, loss, expected):
    table = runs(softmax={"sim_A": cosine, "sim_V": 0.99, "loss": loss}, linear={"sim_A": 0.99, "sim_V": 0.99, "loss": 0.2})
    table["model"] = table.pop("method")
    assert models.softmax_is_alike(table).verdict is expected


@pytest.mark.parametrize(("ours", "theirs", "expected"), [(0.01, 0.3, CHANGED), (0.2, 1.0, FAILS), (0.04, 0.1, FAILS)])
def test_simulation_recovers(ours, theirs, expected):
    both = lambda x: {"dist_A": x, "dist_V": 0.01, "delta_A": x, "delta_V": 0.01, "stage": 2}  # noqa: E731
    table = runs(facts={"N": 100, "batch_size": 1000}, proximal=both(ours), SGD=both(theirs))
    assert models.simulation_recovers(table).verdict is expected


@pytest.mark.parametrize(("factors", "expected"), [((1.02, 1.03), HOLDS), ((0.7, 1.3), UNSURE), ((1.5, 1.51), FAILS)])
def test_simulation_predicts(factors, expected):
    columns = {name: np.array([1.0, 1.0, *factors]) for name in ("alpha_A", "alpha_V", "delta_A", "delta_V")}
    facts = {
        "lam": np.zeros(4),
        "gradients": np.repeat(["real", "simulated"], 2),
        "replicate": np.tile([0, 1], 2),
        "step": np.ones(4),
    }
    assert models.simulation_predicts(facts | columns).verdict is expected


# ------------------------------------------------------------------------------------------------------ samples


@pytest.mark.parametrize(("power", "noise", "expected"), [(0.0, 1, HOLDS), (0.0, 30, UNSURE), (0.6, 1, FAILS)])
def test_transfer_is_flat(power, noise, expected):
    samples_needed = 1000.0 * T**power * np.array([1, noise, 1 / noise, 1])
    table = {"T": T, "overlap": np.full(4, 0.3), "reached": samples_needed}
    assert samples.transfer_is_flat(table).verdict is expected


@pytest.mark.parametrize(("scratch", "likelihood", "expected"), [(0.9, 0.9, "for"), (0.9, 0.1, "against"), (0.1, 0.9, "for")])
def test_no_run_decides_a_conjecture(scratch, likelihood, expected):
    transfer = {"T": T, "overlap": np.zeros(4), "reached": 10.0 * T**scratch}
    support = {"T": T, "likelihood": 10.0 * T**likelihood}
    found = samples.scratch_is_flat(transfer, support)
    assert found.verdict is UNSURE
    assert samples.scratch_is_flat.measured(found)[1].endswith(f"speaks {expected} it")


@pytest.mark.parametrize(("learned", "below", "expected"), [(40, 0, HOLDS), (40, 40, HOLDS), (37, 0, UNSURE), (0, 40, FAILS)])
def test_small_overlap(learned, below, expected):
    table = {"theta": np.full(80, 0.5), "overlap": np.repeat([0.8, 0.1], 40), "bound": np.full(80, 0.6)}
    hits = np.concatenate([np.arange(40) < learned, np.arange(40) < below])
    assert samples.small_overlap_transfers(table | {"learned": hits}).verdict is expected


def letter_runs(learned, growth=1.0, power=0.0):
    """Runs of Theorem 4.1: of 40 that meet the printed condition, for each c, so many learn; 40 others do not meet it."""
    count = 80
    rows = {"T": np.tile(T, count // 2), "N": np.full(2 * count, 3), "chain": np.full(2 * count, "strong")}
    rows |= {"c": np.repeat([0.1, 1.0], count), "gradients": np.full(2 * count, "simulated")}
    rows |= {"condition": np.tile(np.repeat([1.5, 0.5], 40), 2), "norms": np.ones(2 * count), "ratio": np.full(2 * count, 3.0)}
    rows["learned"] = np.concatenate([np.arange(80) < n for n in learned])
    rows |= {"samples": 1000.0 * rows["T"] ** power, "influence": np.full(2 * count, 0.1), "growth": np.full(2 * count, growth)}
    return rows


@pytest.mark.parametrize(
    ("learned", "power", "expected"),
    [((40, 40), 0, HOLDS), ((0, 40), 0, CHANGED), ((37, 40), 0, UNSURE), ((0, 0), 0, FAILS), ((40, 40), 1, FAILS)],
)
def test_transfer_to_the_letter(learned, power, expected):
    assert samples.transfer_to_the_letter(letter_runs(learned, power=power)).verdict is expected


@pytest.mark.parametrize(("growth", "expected"), [(1.0, HOLDS), (1.5, FAILS)])
def test_error_is_harmless(growth, expected):
    table = letter_runs((40, 40), growth)
    assert samples.error_is_harmless(table).verdict is expected
    mixed_up = np.where(np.arange(160) % 20 == 0, 1.5, 1.0)
    assert samples.error_is_harmless(table | {"growth": mixed_up}).verdict is UNSURE


@pytest.mark.parametrize(("good", "expected"), [(50, HOLDS), (44, UNSURE), (30, FAILS)])
def test_trained_value_transfers(good, expected):
    learned = np.concatenate([np.ones(50, dtype=bool), np.arange(50) < good])
    sizes = {"N": np.repeat([3, 10], 50), "T": np.full(100, 500), "sparsity": np.full(100, 2), "family": np.full(100, "strong")}
    assert samples.trained_value_transfers(sizes | {"learned": learned, "samples": np.full(100, 1e4)}).verdict is expected


@pytest.mark.parametrize(("bad_says", "good_says", "expected"), [(False, True, HOLDS), (True, True, FAILS), (False, False, FAILS)])
def test_failures_are_said(bad_says, good_says, expected):
    def runs_at(distance, says):
        return {"dist_V": np.full(80, 0.01), "dist_A": np.full(80, distance), "says": np.full(80, says)}

    assert samples.failures_are_said(runs_at(0.3, bad_says), runs_at(0.02, good_says)).verdict is expected


@pytest.mark.parametrize(
    ("power", "trained", "expected"), [(0.0, 1e5, HOLDS), (0.5, 1e6, FAILS), (0.0, 500.0, FAILS), (0.0, (1e5, 500.0), UNSURE)]
)
def test_few_samples(power, trained, expected):
    tasks = {"T": np.repeat(T, 2), "replicate": np.tile([0, 1], 4)}
    found = tasks | {"likelihood": 100.0 * tasks["T"] ** power}
    theirs = tasks | {"overlap": np.zeros(8), "found": np.resize(trained, 8)}
    assert samples.few_samples(found, theirs).verdict is expected


@pytest.mark.parametrize(
    ("ratio", "covered", "fits", "expected"),
    [(1.0, 95, 80, HOLDS), (1.5, 95, 80, FAILS), (1.0, 80, 80, FAILS), (1.0, 95, 4, UNSURE)],
)
def test_bound(ratio, covered, fits, expected):
    table = {"N": np.full(fits, 3), "n": np.full(fits, 5000), "covered": np.full(fits, covered), "intervals": np.full(fits, 100)}
    table |= {f"square_{x}": np.full(fits, 0.1 * ratio) for x in "PQ"} | {f"bound_{x}": np.full(fits, 0.1) for x in "PQ"}
    assert samples.reaches_the_bound(table).verdict is expected


@pytest.mark.parametrize(("right", "expected"), [(40, HOLDS), (36, UNSURE), (10, FAILS)])
def test_sequences(right, expected):
    table = {
        "length": np.repeat([10, 20], 40),
        "likelihood": np.concatenate([np.zeros(40, bool), np.arange(40) < right]),
        "moments": np.zeros(80),
        "marked": np.ones(80),
    }
    assert samples.sequences_work(table).verdict is expected


# ------------------------------------------------------------------------------------------------------ the projector


def sign_runs(**powers):
    """Runs of Stage 1 in which the least B grows like T^power with each projector: signs are right as often as the model says."""
    rows = []
    for name, power in powers.items():
        for T, batch in ((T, round(100 * (T / 200) ** power * factor)) for T in (200, 800, 3200) for factor in (0.5, 1, 2)):
            chance = NormalDist().cdf(NormalDist().inv_cdf(0.85) + np.log(batch / (100 * (T / 200) ** power)))
            rows += [(name, T, batch, i, i < round(40 * chance)) for i in range(40)]
    names = ("projector", "T", "batch_size", "replicate", "right")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.mark.parametrize(
    ("ours", "theirs", "needs", "saves"), [(1.0, 2.0, HOLDS, HOLDS), (2.0, 2.0, HOLDS, UNSURE), (1.0, 0.0, FAILS, FAILS)]
)
def test_stage_one(ours, theirs, needs, saves, monkeypatch):
    monkeypatch.setattr(projector, "DRAWS", 10)  # 100 take their time
    table = sign_runs(euclidean=theirs, mu=ours)
    assert projector.stage_one_needs_poly_T(table).verdict is needs
    assert projector.projector_saves_a_power_of_T(table).verdict is saves


@pytest.mark.parametrize(
    ("leak", "falls", "ratio", "expected"), [(0, -1, 1, HOLDS), (-1, -1, 1, FAILS), (0, 0, 1, FAILS), (0, -1, 2, FAILS)]
)
def test_noise_at_the_start(leak, falls, ratio, expected):
    exact = np.concatenate([1e-3 * (T / 100.0) ** power for power in (leak, falls)])
    table = {
        "N": np.full(8, 3),
        "T": np.tile(T, 2),
        "projector": np.repeat(["euclidean", "mu"], 4),
        "exact": exact,
        "square": ratio * exact,
    }
    assert projector.noise_at_the_start(table).verdict is expected


@pytest.mark.parametrize(("wrong", "expected"), [(2, HOLDS), (45, UNSURE), (120, FAILS)])
def test_fewer_wrong_signs(wrong, expected):
    right = np.concatenate([np.arange(200) >= 50, np.arange(200) >= wrong])
    table = {"T": np.full(400, 5000), "projector": np.repeat(["euclidean", "mu"], 200), "right": right}
    assert projector.fewer_wrong_signs(table).verdict is expected
