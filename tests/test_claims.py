"""A claim that cannot fail says nothing: each of these is fed data for it and data against it."""

import numpy as np
import pytest

from scb.paper.claims import samples, theory, training
from scb.paper.claims.claim import Verdict, log_slope, mostly, share, spread, verdict

HOLDS, CHANGED, FAILS = Verdict.HOLDS, Verdict.CHANGED, Verdict.FAILS
T = np.array([100, 1000, 10_000, 100_000])


def runs(steps=(400, 1000, 1600), replicates=5, **methods):
    """A table of runs: method → column → value, or one value a step."""
    rows = [
        (method.replace("_", " "), i, s, values) for method, values in methods.items() for i in range(replicates) for s in steps
    ]
    columns = {name for _, _, _, values in rows for name in values}
    table = {name: np.array([np.broadcast_to(v[name], len(steps))[steps.index(s)] for _, _, s, v in rows]) for name in columns}
    renamed = {"larger": "proximal, larger λ", "slow": "SGD, small η₂'"}
    return table | {
        "method": np.array([renamed.get(m, m) for m, _, _, _ in rows]),
        "replicate": np.array([i for _, i, _, _ in rows]),
        "step": np.array([s for _, _, s, _ in rows]),
    }


@pytest.mark.parametrize(("off", "expected"), [(1e-15, HOLDS), (1e-3, FAILS)])
def test_on_the_line(off, expected):
    assert theory.on_the_line({"off_line": np.array([0.0, off])}).verdict is expected


@pytest.mark.parametrize(("printed", "recursion", "expected"), [(0, 0, HOLDS), (1, 0, CHANGED), (1, 1, FAILS)])
def test_two_dimensions(printed, recursion, expected):
    table = {"alpha_V": np.zeros(2), "alpha_A": np.zeros(2)}
    table |= {f"printed_{x}": np.full(2, printed) for x in "VA"} | {f"recursion_{x}": np.full(2, recursion) for x in "VA"}
    assert theory.two_dimensions(table).verdict is expected


@pytest.mark.parametrize(("factor", "expected"), [(1.0, HOLDS), (2.0, FAILS), (0.0, FAILS)])
def test_stage_one_length(factor, expected):
    table = {"T": T, "eta": np.full(4, 0.01), "steps": 100 * factor * np.log(T) + 50}
    assert theory.stage_one_length(table).verdict is expected


@pytest.mark.parametrize(("power", "expected"), [(1.0, HOLDS), (0.5, FAILS), (0.0, FAILS)])
def test_variance_grows(power, expected):
    assert theory.variance_grows({"T": T, "square": 3.0 * T**power}).verdict is expected


@pytest.mark.parametrize("power", [0.0, 0.25])
def test_largest_entry(power):
    table = {"T": T, "N": np.full(4, 3), "entry": np.ones(4), "largest": np.sqrt(2 * np.log(3 * T)) * T**power}
    assert theory.largest_entry(table).verdict is (FAILS if power else HOLDS)


@pytest.mark.parametrize(("change", "growth", "expected"), [(1, 0.0, HOLDS), (0.5, 0.0, FAILS), (1, 0.1, FAILS)])
def test_rounding_is_mild(change, growth, expected):
    zeros = np.zeros(4)
    table = {"T": T, "alpha_before": zeros, "alpha_after": 1 / T**change, "square_before": zeros}
    assert theory.rounding_is_mild(table | {"square_after": zeros + growth}).verdict is expected


@pytest.mark.parametrize(("error", "expected"), [(0.01, HOLDS), (0.5, FAILS)])
def test_near_uniform(error, expected):
    assert theory.near_uniform({"first": np.zeros(2), "uniform": np.full(2, error)}).verdict is expected


@pytest.mark.parametrize(("proximal", "larger", "expected"), [(0.1, 0.1, HOLDS), (0.9, 0.1, CHANGED), (0.9, 0.9, FAILS)])
def test_proximal_beats_sgd(proximal, larger, expected):
    both = lambda x: {"dist_A": x, "dist_V": x}  # noqa: E731
    table = runs(proximal=both(proximal), larger=both(larger), SGD=both(0.5))
    assert training.proximal_beats_sgd(table).verdict is expected


@pytest.mark.parametrize(("literal", "settled", "expected"), [(0.3, 0.3, HOLDS), (-0.3, 0.3, CHANGED), (-0.3, -0.3, FAILS)])
def test_sign(literal, settled, expected):
    table = runs(literal={"alpha_A": literal}, proximal={"alpha_A": settled})
    assert training.sign_is_right(table).verdict is expected


@pytest.mark.parametrize(
    ("literal", "late", "expected"), [(0.01, 0.01, HOLDS), (0.7, (0.7, 0.7, 0.01), CHANGED), (0.7, 0.7, FAILS)]
)
def test_star(literal, late, expected):
    signs = runs(literal={"dist_A_star": literal}, proximal={"dist_A_star": literal})
    assert training.star_recovers(signs, runs(proximal={"dist_A_star": late})).verdict is expected


@pytest.mark.parametrize(("delta", "expected"), [(0.9, HOLDS), (0.1, FAILS)])
def test_sgd_error_dominates(delta, expected):
    table = runs(SGD={"delta_A": delta, "alpha_A": 0.5, "K_Q": 1.0})
    assert training.sgd_error_dominates(table).verdict is expected


@pytest.mark.parametrize(("path", "expected"), [((0.6, 0.2, 0.4), HOLDS), ((0.6, 0.4, 0.2), FAILS)])
def test_error_grows_late(path, expected):
    assert training.error_grows_late(runs(proximal={"dist_A": path, "alpha_A": 1.2})).verdict is expected
    assert training.error_grows_late(runs(proximal={"dist_A": path, "alpha_A": 0.1})).verdict is FAILS  # nothing to see


@pytest.mark.parametrize(("star", "expected"), [(0.5, HOLDS), (0.01, FAILS)])
def test_sgd_star(star, expected):
    assert training.sgd_star_fails(runs(SGD={"dist_A_star": star})).verdict is expected


@pytest.mark.parametrize(("power", "expected"), [(0.0, HOLDS), (0.6, FAILS)])
def test_transfer_is_flat(power, expected):
    table = {"T": T, "overlap": np.full(4, 0.3), "reached": 1000.0 * T**power}
    assert samples.transfer_is_flat(table).verdict is expected
    flat = samples.scratch_is_flat(table | {"overlap": np.zeros(4)})
    assert flat.verdict is (FAILS if power == 0 else HOLDS)


@pytest.mark.parametrize(("distance", "expected"), [(0.05, HOLDS), (0.3, FAILS)])
def test_small_overlap(distance, expected):
    table = {
        "overlap": np.full(3, 0.3),
        "epsilon": np.full(3, 0.1),
        "dist_V": np.full(3, 0.01),
        "dist_A": np.full(3, distance),
    }
    assert samples.small_overlap_transfers(table).verdict is expected


@pytest.mark.parametrize(("factor", "expected"), [(1.02, HOLDS), (1.5, FAILS)])
def test_simulation_predicts(factor, expected):
    columns = {name: np.array([1.0, factor]) for name in ("alpha_A", "alpha_V", "delta_A", "delta_V")}
    facts = {
        "lam": np.zeros(2),
        "gradients": np.array(["real", "simulated"]),
        "replicate": np.zeros(2),
        "step": np.ones(2),
    }
    assert training.simulation_predicts(facts | columns).verdict is expected


@pytest.mark.parametrize(("power", "trained", "expected"), [(0.0, 1e5, HOLDS), (0.5, 1e5, FAILS), (0.0, 500.0, FAILS)])
def test_few_samples(power, trained, expected):
    found = {"T": T, "likelihood": 100.0 * T**power}
    assert samples.few_samples(found, {"overlap": np.zeros(1), "found": np.array([trained])}).verdict is expected


@pytest.mark.parametrize(("ratio", "covered", "expected"), [(1.0, 95, HOLDS), (1.5, 95, FAILS), (1.0, 80, FAILS)])
def test_bound(ratio, covered, expected):
    table = {"N": np.full(4, 3), "n": np.full(4, 5000), "covered": np.full(4, covered), "intervals": np.full(4, 100)}
    table |= {f"square_{x}": np.full(4, 0.1 * ratio) for x in "PQ"} | {f"bound_{x}": np.full(4, 0.1) for x in "PQ"}
    assert samples.reaches_the_bound(table).verdict is expected


@pytest.mark.parametrize(("right", "expected"), [(True, HOLDS), (False, FAILS)])
def test_sequences(right, expected):
    table = {
        "length": np.array([10, 20]),
        "likelihood": np.array([False, right]),
        "moments": np.zeros(2),
        "marked": np.ones(2),
    }
    assert samples.sequences_work(table).verdict is expected


def test_words():
    assert verdict(True) is HOLDS
    assert verdict(False, True) is CHANGED
    assert verdict(False) is FAILS
    assert spread([1, 2, 3]) == "2 [1.5, 2.5]"
    assert share(np.array([True, False, True])) == "2 of 3"
    assert mostly([True] * 9 + [False])
    assert not mostly([])
    assert log_slope([1, 10, 100], [2, 200, 20000]) == pytest.approx(2)
