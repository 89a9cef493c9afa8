"""Claims about Stage 1 by the drift alone, with the paper's projector and with the μ-projector."""

from typing import Any

import numpy as np

from scb.jobs.table import Table, by_value, groups, pick, where
from scb.paper.claims.claim import claim
from scb.paper.experiments.projector import GOAL
from scb.paper.numbers import Number, average, minus, share
from scb.paper.outcome import Answer, Outcome, all_of, at_least, at_most, between
from scb.paper.rows import both_ends
from scb.paper.slopes import log_log_slope
from scb.paper.stage_one import least_batches, power_laws, stage_one_slopes

DRAWS = 100
"""How often replicates are drawn anew for the interval of an exponent; every draw costs a fit."""
RIGHT = 0.9
"""The share of right signs that the least B must reach in the table of spreads."""
PROJECTORS = {"euclidean": "paper's projector", "mu": "μ-projector"}
SETTING = (
    f"sparsity 2, Stage 1 alone, η = 0.05, real gradients, not centred, {GOAL:.0%} of signs right, "
    "sign not resolved"
)
EXPONENTS = "B = {first:,.0f} at T = {T:,.0f} to {last:,.0f} at {T_last:,.0f}, T^{slope:.2f}"


def _exponents(stage_one: Table) -> dict[str, dict[str, Any]]:
    """By projector the least B at both ends of T, and its exponent in T."""
    found = {}
    for projector, slope in stage_one_slopes(stage_one, DRAWS).items():
        T, batches = least_batches(pick(stage_one, projector=projector))
        found[PROJECTORS[projector]] = both_ends(T, batches) | {"slope": Number(*slope)}
    return found


@claim(
    "stage-one-poly-t",
    figure="F14",
    says="Stage 1 needs poly(T) samples for the drift to decide the sign.",
    quote="Since, unfortunately, ε_noise does not scale with 1/T, we need poly(T) samples to "
    "ensure these conditions.",
    where="Section 3.2",
    condition="Algorithm 1 as printed, in which the drift has to decide the sign",
    setting=SETTING,
    words=EXPONENTS,
)
def stage_one_needs_poly_T(stage_one: Table) -> Outcome:
    """With the paper's projector the least B that makes 85 % of signs right grows like T^x; the
    95 % interval of x is above 1/2."""
    cases = _exponents(stage_one)
    return Outcome.judged(at_least(cases[PROJECTORS["euclidean"]]["slope"], 0.5), cases=cases)


@claim(
    "projector-leaks",
    figure="F14",
    says="The paper's projector leaks: the noise at the start does not fall with T. The "
    "μ-projector does not leak.",
    where="the preconditioner of Section 2.3, right factor I − μμᵀ/‖μ‖²",
    setting="sparsity 2, V = μ1ᵀ, A = 11ᵀ/T",
    words="{first:.2g} at T = {T:,.0f} to {last:.2g} at {T_last:,.0f}, T^{slope:.2f}; real "
    "gradients over exact {ratio:.2f}",
)
def noise_at_the_start(start_noise: Table) -> Outcome:
    """For T ≥ 1,000, E‖h_V‖_μ² at the start falls like T^-0.9 or faster with the μ-projector, and
    slower than T^-0.5 with the paper's; mini-batches have the exact value to 25 % in the mean.
    """
    cases = {}
    good = []
    for N, projector, rows in groups(start_noise, "N", "projector"):
        long = where(rows, rows["T"] >= 1000)
        T, squares = by_value(long, "T", "exact", np.mean)
        slope = log_log_slope(long["T"], long["exact"])
        ratio = average(rows["square"] / rows["exact"])
        falls = at_most(slope, -0.9) if projector == "mu" else at_least(slope, -0.5)
        good += [falls, between(ratio, 0.75, 1.25)]
        numbers = both_ends(T, squares) | {"slope": slope, "ratio": ratio}
        cases[f"N = {N}, {PROJECTORS[projector]}"] = numbers
    return Outcome.judged(all_of(good), cases=cases)


@claim(
    "fewer-wrong-signs",
    figure="F14",
    says="With the μ-projector, Stage 1 finds the right sign more often.",
    where="Algorithm 1 with another projector and no other change",
    setting="sparsity 2, Stage 1 alone, η = 0.01, sign not resolved",
    words="wrong in {euclidean:share} with the paper's projector, in {mu:share} with the "
    "μ-projector",
)
def fewer_wrong_signs(wrong_signs: Table) -> Outcome:
    """At T = 5,000 the share of wrong signs is smaller with the μ-projector; cannot tell where the
    two intervals overlap."""
    cases = {}
    apart = Answer.UNSURE
    for T, rows in groups(wrong_signs, "T"):
        wrong = {x: share(pick(rows, projector=x)["right"] == 0) for x in PROJECTORS}
        if T == 5000:
            apart = at_most(minus(wrong["mu"], wrong["euclidean"]), 0)
        cases[f"T = {T:,}"] = wrong
    return Outcome.judged(apart, cases=cases)


@claim(
    "projector-saves-t",
    figure="F14",
    says="With the μ-projector, the number of samples that Stage 1 needs grows more slowly with T.",
    where="Section 6 asks: can we improve the sample complexity of the first stage?",
    setting=SETTING,
    words=EXPONENTS,
)
def projector_saves_a_power_of_T(stage_one: Table) -> Outcome:
    """The exponent of the least B in T is smaller with the μ-projector; cannot tell where the two
    intervals overlap."""
    cases = _exponents(stage_one)
    paper, mu = (cases[name]["slope"] for name in PROJECTORS.values())
    return Outcome.judged(at_most(minus(mu, paper), 0), cases=cases)


@claim(
    "stage-one-spread",
    figure="F28",
    says="The T² of Stage 1 is due to the paper's projector: with it, the batch grows like T if μ "
    "is uniform, and like T² if μ is spread.",
    where="the preconditioner of Section 2.3, right factor I − μμᵀ/‖μ‖²",
    setting="sparsity 2, Stage 1 alone, η = 0.05, not centred, sign not resolved, simulated "
    "gradients; the spread is max μ over min μ, which Assumption 2.1 (b) allows up to C²",
    words="least B goes like T^{slope:.2f}",
)
def spread_decides(spread_of_mu: Table) -> Outcome:
    """The exponent in T of the least B with which 90 % of signs are right lies, with the paper's
    projector, between 0.5 and 1.5 at spread 1 and between 1.5 and 2.5 at spread 2, and with the
    μ-projector between 0.5 and 1.5 at both; for chains with K_P ≥ 1.4‖μ‖² and for others."""
    simulated = pick(spread_of_mu, gradients="simulated")
    cases = {}
    good = []
    for chain, spread, runs in groups(simulated, "chain", "spread"):
        by_projector = power_laws(runs, RIGHT, DRAWS)
        for projector, name in PROJECTORS.items():
            power_law, low, high = by_projector[projector]
            slope = Number(power_law.exponent, low, high)
            cases[f"{chain}, spread {spread:g}, {name}"] = {"slope": slope}
            # Other spreads are shown, and decide nothing
            if spread in (1, 2):
                expected = 2 if (spread, projector) == (2, "euclidean") else 1
                good.append(between(slope, expected - 0.5, expected + 0.5))
    return Outcome.judged(all_of(good), cases=cases)
