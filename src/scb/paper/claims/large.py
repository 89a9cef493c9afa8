"""Claims that were judged on a GPU: the simulated sizes with real gradients, the sign in long
contexts, rates at large sizes, and the planner's batch sizes."""

from typing import Any

import numpy as np

from scb.jobs.table import Table, groups, pick, where
from scb.paper.claims.claim import LITERAL, claim
from scb.paper.claims.projector import DRAWS, PROJECTORS, RIGHT
from scb.paper.claims.rates import MAIN_THEOREM, bounded, exponents, rate_claim
from scb.paper.experiments.large import LARGE_BASE
from scb.paper.numbers import MOST, Number, share
from scb.paper.outcome import Outcome, all_of, at_least, at_most, between, mostly
from scb.paper.rows import both_ends
from scb.paper.stage_one import power_laws
from scb.theory.constants import attention_error

WATCHED = ("alpha_V", "alpha_A", "delta_A")
SLACK = 0.1
"""How far real runs may lie beyond the range of the simulated ones, over its ends."""


def inside(real: Table, simulated: Table, column: str) -> np.ndarray:
    """The evaluations of a real run at which a column lies in the range of the simulated runs,
    widened by ``SLACK``."""
    found = []
    for step, value in zip(real["step"], real[column], strict=True):
        there = simulated[column][simulated["step"] == step]
        reach = SLACK * np.abs(there).max()
        found.append(bool(there.min() - reach <= value <= there.max() + reach))
    return np.array(found)


@claim(
    "simulation-right",
    figure="F21",
    says="At the sizes that the paper simulates, runs with real gradients agree with the "
    "simulation from start to end.",
    where="Appendix I, simulation",
    setting="sparsity 2, 1,000 steps, one task a size, sign resolved; paper's projector, Stage 2 "
    "centred, λ at 4.5 standard deviations of an entry's noise; NVIDIA H200",
    words="{close:share} real runs; of all evaluations α_V {alpha_V:.0%}, α_A {alpha_A:.0%}, ‖Δ_A‖ "
    "{delta_A:.0%}; outside between steps {first:.0f} and {last:.0f}",
    instead="the moment of take-off, which noise decides, is different",
)
def simulation_is_right(real_gradients: Table) -> Outcome:
    """In 90 % of the runs with real gradients, at each size, α_V, α_A and ‖Δ_A‖_μ lie in the range
    of the simulated runs at the same step, widened by 10 %, at nine of ten evaluations."""
    cases = {}
    for N, method, mine in groups(real_gradients, "N", "method"):
        simulated = pick(mine, gradients="simulated")
        real = where(mine, (mine["gradients"] == "real") & (mine["step"] > 0))
        hits = {column: inside(real, simulated, column) for column in WATCHED}
        trials = [real["trial"] == trial for trial in np.unique(real["trial"])]
        close = [min(np.mean(hit[one]) for hit in hits.values()) >= 0.9 for one in trials]
        outside = real["step"][~np.logical_and.reduce(list(hits.values()))]
        cases[f"N = {N}, {method}"] = {
            **{column: np.mean(hit) for column, hit in hits.items()},
            "close": share(close),
            "first": outside.min() if outside.size else None,
            "last": outside.max() if outside.size else None,
        }
    return Outcome.judged(
        all_of(at_least(case["close"], MOST) for case in cases.values()), cases=cases
    )


@claim(
    "sign-by-drift",
    figure="F22",
    says="With the drift alone, Stage 1 needs batches that grow like T² with the paper's projector "
    "and like T with the μ-projector.",
    where="Section 3.2, and Section 6, which asks for a better first stage",
    setting="sparsity 2, Stage 1 alone, η = 0.05, not centred, sign not resolved; NVIDIA H200",
    words="B = {first:.0f} at T = {T:,.0f} to {last:2} at {T_last:,.0f}, T^{slope:.2f}",
)
def sign_by_drift_alone(long_signs: Table) -> Outcome:
    """The exponent in T of the least B with which 90 % of signs are right lies between 1.5 and 2.5
    with the paper's projector, and between 0.5 and 1.5 with the μ-projector."""
    laws = power_laws(long_signs, RIGHT, DRAWS)
    cases = {}
    good = []
    for projector, expected in (("euclidean", 2), ("mu", 1)):
        law, low, high = laws[projector]
        T = np.unique(pick(long_signs, projector=projector)["T"])
        slope = Number(law.exponent, low, high)
        cases[PROJECTORS[projector]] = both_ends(T, law.least(T)) | {"slope": slope}
        good.append(between(slope, expected - 0.5, expected + 0.5))
    return Outcome.judged(all_of(good), cases=cases)


@rate_claim(
    "large-rates",
    figure="F23",
    says="The printed rates hold at sizes beyond those of F15.",
    where=f"{MAIN_THEOREM}, and its lemmas",
    setting=f"η = 0.05; base N = {LARGE_BASE['N']}, T = {LARGE_BASE['T']:,}, Q = "
    f"{LARGE_BASE['sparsity']}, ε = {LARGE_BASE['epsilon']}, K_P = {LARGE_BASE['K_P']}; 1 or 2 "
    "searches of 10 tasks; NVIDIA H200",
)
def large_rates_hold(large_rates: Table) -> Outcome:
    """No exponent of any stage's least number of samples in T, N, Q and ε is worse than the printed
    one by more than 0.25; Stage 1 is not asked about ε."""
    asked = {1: ("T", "N", "sparsity"), 2: ("T", "N", "sparsity", "epsilon")}
    return bounded(exponents(large_rates, {**asked, 3: asked[2]}, LARGE_BASE))


@claim(
    "plan-keeps-promises",
    figure="F24",
    says="With the batch sizes that the lemmas require, every stage ends as the lemmas promise.",
    where="the lemmas of Appendices D to F, with measured constants",
    setting="simulated: inside Assumption 2.1 and the range of ε of Lemma E.3, batches of at most "
    "10¹², fewer than asked in Stage 1; real: outside both, one run on an NVIDIA H200 at N = 2, "
    "where Δ_V is 0 and the projector cannot leak, since the batches of larger tasks cannot be "
    f"run; δ = 0.2; {LITERAL}",
    words="kept in {kept:share}; Stage 1: larger signal {signal:.2f}, promised {asked:.2g}; Stage "
    "2: ‖Δ_A‖_μ² {error:.1e}, promised {borne:.1e}; Stage 3: ‖A − Q‖_μ² {dist_A:.1e} and ‖V − "
    "P‖_μ² {dist_V:.1e}, promised {epsilon:g}; {samples:.2g} samples",
)
def plan_keeps_its_promises(planned: Table, plan: Table | None = None) -> Outcome:
    """In 90 % of simulated runs at a size inside all assumptions, and in the real run: after Stage
    1 one of the signals is at least min{1/2, 1/(QN)}, after Stage 2 ‖Δ_A‖_μ² is at most what
    Stage 3 bears, and after Stage 3 both squared distances are at most ε."""
    runs = [_promises(run) for _, run in groups(planned, "replicate")]
    cases = {"simulated": _worst(runs)}
    good = [mostly(planned["inside"] > 0), mostly([kept for kept, _ in runs])]
    if plan is not None:
        kept, numbers = _promises(plan)
        cases["real"] = {"kept": share([kept]), **numbers}
        good.append(at_most(float(not kept), 0))
    return Outcome.judged(all_of(good), cases=cases)


def _promises(run: Table) -> tuple[bool, dict[str, float]]:
    """Whether a run keeps them, and its numbers beside what was promised."""
    N, sparsity, epsilon = (run[name][0] for name in ("N", "sparsity", "epsilon"))
    first, second, third = (
        {name: column[run["stage"] == stage][-1] for name, column in run.items()}
        for stage in (1, 2, 3)
    )
    signal, asked = max(first["alpha_V"], first["alpha_A"]), min(0.5, 1 / (sparsity * N))
    error = second["delta_A"] ** 2
    borne = attention_error(int(N), int(sparsity), float(epsilon))
    distances = {name: third[name] ** 2 for name in ("dist_A", "dist_V")}
    kept = signal >= asked and error <= borne and max(distances.values()) <= epsilon
    promised = {"asked": asked, "borne": borne, "epsilon": epsilon, "samples": third["samples"]}
    return bool(kept), {"signal": signal, "error": error, **promised, **distances}


def _worst(runs: list[tuple[bool, dict[str, float]]]) -> dict[str, Any]:
    """The share of runs that keep them, and the worst number of each kind."""
    numbers = [numbers for _, numbers in runs]
    found = {name: max(each[name] for each in numbers) for name in numbers[0]}
    least = {"signal": min(each["signal"] for each in numbers)}
    return {"kept": share([kept for kept, _ in runs]), **found, **least}
