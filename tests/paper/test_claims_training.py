"""Claims about the paper's experiment and its limits: each is fed data for it and data against it."""

import numpy as np
import pytest

from claim_tables import mixed, runs
from scb.paper.claims import convergence, limits, models, noise, regulariser
from scb.paper.outcome import Verdict
from scb.paper.rows import joined

HOLDS, CHANGED, SOME, UNSURE, FAILS = Verdict.HOLDS, Verdict.CHANGED, Verdict.SOME, Verdict.UNSURE, Verdict.FAILS


# ------------------------------------------------------------------------------------------------------ the paper's experiment


@pytest.mark.parametrize(("size", "expected"), [(0.1, HOLDS), (-0.1, HOLDS), (0.01, FAILS), (0.5, FAILS)])
def test_signal_after_stage_one(size, expected):
    assert convergence.signal_after_stage_one(runs(proximal={"alpha_A": size, "alpha_V": size})).verdict is expected


@pytest.mark.parametrize(
    ("proximal", "larger", "sign", "expected"),
    [(0.1, 0.1, 1, HOLDS), (0.9, 0.1, 1, CHANGED), (0.9, 0.9, 1, FAILS), (0.9, 0.1, -1, UNSURE)],
)
def test_proximal_beats_sgd(proximal, larger, sign, expected):
    both = lambda x: {"dist_A": x, "dist_V": x, "alpha_A": sign}  # noqa: E731
    table = runs(proximal=both(proximal), larger=both(larger), SGD=both(0.5))
    assert convergence.proximal_beats_sgd(table).verdict is expected


@pytest.mark.parametrize(
    ("right", "wrong", "bad", "expected"),
    [(0.01, 0.7, 0, HOLDS), (0.01, 0.7, 40, HOLDS), (0.2, 0.7, 40, FAILS), (0.2, 0.01, 40, FAILS)],
)
def test_star(right, wrong, bad, expected):
    columns = {"dist_A_star": (right, wrong), "dist_V_star": (0.01, 0.0), "alpha_A": (0.5, -0.5)}
    table = mixed(40, bad, proximal=columns, larger=columns, SGD=columns)
    assert convergence.star_recovers(table).verdict is expected


@pytest.mark.parametrize(
    ("fast", "slow", "alpha", "bad", "expected"),
    [
        (0.5, 0.6, 0.1, 0, HOLDS),
        (0.5, 0.6, 0.1, 40, HOLDS),
        (0.2, 0.6, 0.1, 0, FAILS),
        (0.5, 0.4, 0.1, 0, HOLDS),  # less noise may bring the slower one closer
        (0.5, 0.6, 0.9, 0, FAILS),
    ],
)
def test_small_rate_is_slow(fast, slow, alpha, bad, expected):
    columns = {"dist_A": ((0.7, 0.6, fast), (0.8, 0.9, 0.9)), "alpha_A": (0.6, -0.6)}
    table = mixed(40, bad, slow={"dist_A": (slow, 0.8), "alpha_A": (alpha, -alpha)}, SGD=columns, proximal=columns)
    assert convergence.small_rate_is_slow(table).verdict is expected


@pytest.mark.parametrize(("delta", "expected"), [((0.2, 0.5, 0.9), HOLDS), ((0.2, 0.3, 0.4), FAILS), ((0.9, 0.8, 0.7), FAILS)])
def test_sgd_error_dominates(delta, expected):
    table = runs(SGD={"delta_A": delta, "alpha_A": 0.5, "K_Q": 1.0})
    assert convergence.sgd_error_dominates(table).verdict is expected


@pytest.mark.parametrize(("small", "large", "expected"), [(0.1, 0.1, HOLDS), (0.9, 0.1, CHANGED), (0.9, 0.9, FAILS)])
def test_proximal_denoises(small, large, expected):
    table = runs(proximal={"delta_A": small}, larger={"delta_A": large}, SGD={"delta_A": 1.0})
    assert convergence.proximal_denoises(table).verdict is expected


@pytest.mark.parametrize(("ours", "theirs", "expected"), [(0.01, 0.01, HOLDS), (0.01, 0.3, FAILS), (0.3, 0.01, FAILS)])
def test_value_error_is_small(ours, theirs, expected):
    table = runs(proximal={"delta_V_worst": ours, "K_P": 0.25}, SGD={"delta_V_worst": theirs, "K_P": 0.25})
    assert convergence.value_error_is_small(table).verdict is expected


@pytest.mark.parametrize(("after", "bad", "expected"), [(0.99, 0, HOLDS), (0.99, 40, HOLDS), (0.5, 0, FAILS)])
def test_normalisation_helps(after, bad, expected):
    table = mixed(40, bad, proximal={"sim_A": (0.8, -0.8), "sim_A_star": (after, 0.0), "alpha_A": (0.5, -0.5)})
    assert convergence.normalisation_helps(table).verdict is expected


@pytest.mark.parametrize(
    ("before", "after", "star", "bad", "expected"),
    [(1, 1, 0.2, 0, HOLDS), (1, 1, 0.2, 40, HOLDS), (1, -1, 0.2, 0, FAILS), (-1, 1, 0.2, 0, FAILS), (1, 1, 0.01, 0, FAILS)],
)
def test_proximal_similarity(before, after, star, bad, expected):
    ours = {
        "sim_A": (0.5 + 0.1 * before, 0.0),
        "sim_A_star": (0.9 + 0.01 * after, 0.0),
        "alpha_A": (0.5, -0.5),
        "dist_A_star": (0.1, 0.7),
    }
    theirs = {"sim_A": (0.5, 0.1), "sim_A_star": (0.9, 0.1), "alpha_A": (0.5, -0.5), "dist_A_star": (star, 0.7)}
    assert convergence.proximal_similarity(mixed(40, bad, proximal=ours, SGD=theirs)).verdict is expected


@pytest.mark.parametrize(
    ("star", "sgd", "bad", "expected"),
    [(0.01, 0.5, 0, HOLDS), (0.01, 0.5, 40, CHANGED), (0.01, 0.01, 0, FAILS), (0.5, 0.5, 0, FAILS)],
)
def test_larger_N(star, sgd, bad, expected):
    """The star is as near as it is at its best step; in the mirror image it is far."""
    steps = {"alpha_A": (0.5, -0.5)}
    ours = steps | {"dist_A_star": ((0.7, star, 0.6), 0.7)}
    table = mixed(40, bad, proximal=ours, SGD=steps | {"dist_A_star": ((0.7, sgd, 0.6), 0.7)})
    assert models.larger_N_alike(table).verdict is expected
    few = {name: column[np.isin(table["replicate"], (0, 1, 40))] for name, column in table.items()}
    assert models.larger_N_alike(few).verdict is (FAILS if expected is FAILS else UNSURE)
    control = runs(facts={"N": 20, "batch_size": 64}, proximal={"dist_A_star": 0.01, "alpha_A": 0.5})
    found = models.larger_N_alike(table, control)
    assert "N = 20, B = 64: after 1,000 steps: star 40 of 40" in models.larger_N_alike.controlled(found)[0]


@pytest.mark.parametrize(("cosine", "star", "bad", "expected"), [(0.99, 1, 0, HOLDS), (0.8, 1, 40, CHANGED), (0.8, 0.5, 0, FAILS)])
def test_similarity_is_close(cosine, star, bad, expected):
    columns = {"sim_A": (cosine, -cosine), "sim_A_star": (star, 0.0), "alpha_A": (0.5, -0.5)}
    assert convergence.similarity_is_close(mixed(40, bad, proximal=columns)).verdict is expected
    assert convergence.similarity_is_close(mixed(5, bad, proximal=columns)).verdict is (FAILS if expected is FAILS else UNSURE)


def test_the_verdict_says_in_which_ensembles_a_claim_holds():
    strong = runs(facts={"ensemble": "strong"}, proximal={"alpha_A": 0.01, "alpha_V": 0.01})
    others = [runs(facts={"ensemble": name}, proximal={"alpha_A": 0.1, "alpha_V": 0.1}) for name in ("dirichlet", "uniform")]
    found = convergence.signal_after_stage_one(strong, joined(*others))
    assert found.verdict is SOME
    claim = convergence.signal_after_stage_one
    assert claim.note(found).startswith("holds as printed in dirichlet, uniform; does not hold in strong")
    assert [line.partition(":")[0] for line in claim.measured(found)] == ["strong", "dirichlet", "uniform"]
    assert convergence.signal_after_stage_one(others[0], others[1]).verdict is HOLDS
    assert convergence.signal_after_stage_one(strong).verdict is FAILS


# ------------------------------------------------------------------------------------------------------ its limits


def strained(**points):
    """A table of stability: "B_rate" → share of runs that diverge."""
    tables = []
    for point, share_of_runs in points.items():
        batch, rate = point.removeprefix("B").split("_")
        facts = {"batch_size": int(batch), "rate": float(rate)}
        columns = {"dist_A_star": 0.01, "delta_A": 1.0, "alpha_A": 0.5}
        for diverged in (False, True):
            count = round(40 * (share_of_runs if diverged else 1 - share_of_runs))
            if count:
                given = columns | {"diverged": diverged}
                part = runs(replicates=count, facts=facts, proximal=given, larger=given, SGD=given)
                tables.append(part | {"replicate": part["replicate"] + 100 * diverged})
    return joined(*tables)


@pytest.mark.parametrize(("half", "largest", "expected"), [(1.0, 1.0, HOLDS), (0.0, 1.0, CHANGED), (0.0, 0.0, FAILS)])
def test_smaller_batch_diverges(half, largest, expected):
    table = strained(B64_1=0.0, B32_1=half, B64_8=0.0, B32_8=largest)
    assert limits.smaller_batch_diverges(table).verdict is expected


def test_smaller_batch_at_the_largest_step_size_was_not_run():
    found = limits.smaller_batch_diverges(strained(B64_1=0.0, B32_1=0.0, B64_2=0.0, B64_8=1.0, B32_8=1.0))
    assert found.verdict is UNSURE
    assert "B = 32 was not run" in limits.smaller_batch_diverges.note(found)


@pytest.mark.parametrize(("one", "two", "expected"), [(0.0, 1.0, HOLDS), (0.0, 0.0, UNSURE), (1.0, 1.0, UNSURE)])
def test_rate_is_the_largest(one, two, expected):
    assert limits.rate_is_the_largest(strained(B64_1=one, B64_2=two)).verdict is expected


@pytest.mark.parametrize(("star", "expected"), [(0.5, HOLDS), (0.01, FAILS)])
def test_sgd_star_fails(star, expected):
    table = strained(B64_1=0.0, B64_8=0.0, B64_12=1.0)
    noisy = (table["method"] == "SGD") & (table["rate"] == 8)
    table["dist_A_star"] = np.where(noisy, star, table["dist_A_star"])
    found = limits.sgd_star_fails(table)
    assert found.verdict is expected
    assert limits.sgd_star_fails.measured(found)[0].startswith("8 times")


@pytest.mark.parametrize(
    ("small", "large", "none", "expected"),
    [(0.02, 0.02, 0, HOLDS), (0.001, 0.02, 0, HOLDS), (0, 0.001, 0, CHANGED), (0, 0.02, 0.02, FAILS), (0, 0, 0, FAILS)],
)
def test_loss_rises_late(small, large, none, expected):
    def run(rise):
        return {"fitted": 0.9, "loss": 0.2 * (1 + rise), "loss_least": 0.2}

    table = runs(steps=(6000,), settled=run(small), largest=run(large), sgd_settled=run(none))
    assert limits.loss_rises_late(table).verdict is expected
    slow = table | {"fitted": np.full(120, 0.3)}
    assert limits.loss_rises_late(slow).verdict is UNSURE  # nothing to see


@pytest.mark.parametrize(
    ("small", "large", "loss", "expected"),
    [(0.1, 0.1, 0.2, HOLDS), (0, 0.1, 0.2, CHANGED), (0, 0.1, 0.3, FAILS), (0, 0, 0.2, FAILS)],
)
def test_same_function(small, large, loss, expected):
    def run(rise):
        signals = {"alpha_V": 1.3, "alpha_A": 0.7}
        return {"fitted": 0.9, "dist_A": 0.1 + rise, "dist_A_least": 0.1, "loss": loss, "loss_nearest": 0.2} | signals

    table = runs(steps=(6000,), settled=run(small), largest=run(large), sgd_settled=run(0.1))
    assert limits.same_function(table).verdict is expected


@pytest.mark.parametrize(
    ("sgd", "small", "large", "expected"),
    [(3, 0.1, 3, HOLDS), (3, 3, 0.1, UNSURE), (0.1, 3, 0.1, UNSURE), (0.1, 3, 3, FAILS), (3, 3, 3, UNSURE)],
)
def test_noise_dominates(sgd, small, large, expected):
    """The numbers are ‖Δ_A‖ over the signal; a K_P below 1/N does not count, whoever loses there."""
    tables = []
    for K_P, star in ((0.03, 0.7), (0.3, 0.01), (0.5, 0.7)):
        deltas = {"settled": small, "larger": large, "sgd_settled": sgd}
        columns = {method: {"dist_A_star": star, "delta_A": delta, "alpha_A": -1.0, "K_Q": 1.0} for method, delta in deltas.items()}
        if K_P < 0.1:
            columns["settled"]["delta_A"], columns["sgd_settled"]["delta_A"] = 3.0, 0.1
        tables.append(runs(facts={"K_P": K_P, "batch_size": 64, "N": 10}, **columns))
    assert noise.noise_dominates(joined(*tables)).verdict is expected


@pytest.mark.parametrize(("bad", "settled", "expected"), [(40, 0.3, HOLDS), (0, 0.3, FAILS), (40, -0.3, FAILS)])
def test_noise_decides_the_sign(bad, settled, expected):
    table = mixed(40, bad, proximal={"alpha_A": (0.3, -0.3)}, larger={"alpha_A": (0.3, settled)})
    assert noise.noise_decides_the_sign(table).verdict is expected


@pytest.mark.parametrize(("K_P", "T", "expected"), [(0.05, 10**8, HOLDS), (0.5, 5000, UNSURE), ((0.05, 5.0), 10**8, UNSURE)])
def test_lambda_is_the_lemma_s(K_P, T, expected):
    table = runs(facts={"N": 3, "T": T}, proximal={"K_P": 0.1})
    table["K_P"] = np.where(table["replicate"] < 36, *(np.broadcast_to(K_P, 2)))
    assert limits.lambda_is_the_lemma_s(table).verdict is expected


@pytest.mark.parametrize(("below", "expected"), [(0, HOLDS), (2, UNSURE), (40, FAILS)])
def test_nothing_below(below, expected):
    count = np.where(np.arange(40) < below, 6000, 0)
    table = {"entries": np.full(40, 15_000), "below": count, "least": np.full(40, -3.0)}
    assert regulariser.nothing_below(table).verdict is expected
