"""Claims that were judged on a GPU: the simulated sizes for real, the sign at long lengths, large rates, the planner's batches."""

import numpy as np

from scb.jobs.table import Table, pick, values, where
from scb.paper.claims.claim import Claim, Outcome, rounded, verdict
from scb.paper.experiments.large import LARGE_BASE
from scb.paper.slopes import compared, log_log_slope, printed_exponent, varied
from scb.paper.stage_one import power_laws
from scb.theory.planner import attention_error

WATCHED = {"alpha_V": "α_V", "alpha_A": "α_A", "delta_A": "‖Δ_A‖"}
SLACK = 0.1  # beyond the range of the simulated runs, of its ends
RIGHT = 0.9  # the share of right signs that is asked for
DRAWS = 100  # for an interval: each is a fit
AXES = {"T": "T", "N": "N", "sparsity": "Q", "epsilon": "ε"}
PROJECTORS = {"euclidean": "paper's projector", "mu": "μ-projector"}


def inside(real: Table, simulated: Table, column: str) -> np.ndarray:
    """At which evaluations of a real run a column lies in the range of the simulated runs, widened by ``SLACK``."""
    found = []
    for step, value in zip(real["step"], real[column], strict=True):
        there = simulated[column][simulated["step"] == step]
        reach = SLACK * np.abs(there).max()
        found.append(bool(there.min() - reach <= value <= there.max() + reach))
    return np.array(found)


def simulation_is_right(real_gradients: Table) -> Outcome:
    """At nine of ten evaluations of every run with real gradients α_V, α_A and ‖Δ_A‖_μ lie in the range of the simulated runs at
    the same step, widened by 10 %."""
    parts = []
    good: dict[str, bool] = {}
    for N, method in dict.fromkeys(zip(real_gradients["N"].tolist(), real_gradients["method"].tolist(), strict=True)):
        mine = pick(real_gradients, N=N, method=method)
        simulated = pick(mine, gradients="simulated")
        real = where(pick(mine, gradients="real"), pick(mine, gradients="real")["step"] > 0)
        hits = {symbol: inside(real, simulated, column) for column, symbol in WATCHED.items()}
        close = []
        for trial in np.unique(real["trial"]):
            shares = [float(np.mean(hit[real["trial"] == trial])) for hit in hits.values()]
            close.append(min(shares) >= 0.9)
        good[f"N = {N}, {method}"] = all(close)
        told = ", ".join(f"{symbol} {np.mean(hit):.0%}" for symbol, hit in hits.items())
        outside = real["step"][~np.logical_and.reduce(list(hits.values()))]
        steps = f"; outside between steps {outside.min():.0f} and {outside.max():.0f}" if outside.size else ""
        parts.append(f"N = {N}, {method}: {sum(close)} of {len(close)} real runs; of all evaluations {told}{steps}")
    where_right = " and ".join(name for name, right in good.items() if right)
    return Outcome.judged(
        "\n".join(parts),
        literal=all(good.values()),
        changed=any(good.values()),
        change=f"for {where_right}; else the moment of take-off, which noise decides, is another one",
        instead="the moment of take-off, which noise decides, is another one",
    )


def sign_by_drift_alone(long_signs: Table) -> Outcome:
    """The 95 % interval of the exponent in T of the least B with which 90 % of signs are right lies between 1.5 and 2.5 with the
    paper's projector, and between 0.5 and 1.5 with that of the μ-inner product."""
    laws = power_laws(long_signs, RIGHT, DRAWS)
    parts = []
    good = []
    for projector, expected in (("euclidean", 2), ("mu", 1)):
        law, low, high = laws[projector]
        T = np.unique(pick(long_signs, projector=projector)["T"])
        least = law.least(T)
        ends = f"B = {rounded(least[0], 2)} at T = {T[0]:,} to {rounded(least[-1], 2)} at {T[-1]:,}"
        parts.append(f"{PROJECTORS[projector]}: {ends}, T^{law.exponent:.2f} [{low:.2f}, {high:.2f}]")
        good.append(expected - 0.5 <= low and high <= expected + 0.5)
    return Outcome("\n".join(parts), verdict(all(good)))


def large_rates_hold(large_rates: Table) -> Outcome:
    """No exponent of any stage's least number of samples in T, N, Q and ε is worse than the printed one by more than its 95 %
    interval; Stage 1 is not asked about ε."""
    lines = []
    missed = []
    for projector, name in PROJECTORS.items():
        mine = pick(large_rates, projector=projector)
        for axis, symbol in AXES.items():
            rows = varied(mine, axis, LARGE_BASE)
            if len(np.unique(rows[axis])) < 2:
                continue
            parts = []
            for stage in (1, 2, 3):
                slope = log_log_slope(rows[axis], rows[f"samples_{stage}"])
                if np.isnan(slope.value) or (stage, axis) == (1, "epsilon"):
                    continue
                printed = printed_exponent(mine, axis, stage, LARGE_BASE)
                word = compared(slope, printed, axis)
                if word == "missed":
                    missed.append(f"{symbol}, Stage {stage}, {name}")
                parts.append(f"Stage {stage} {slope} (printed {round(printed, 1) + 0.0:+.1f}, {word})")
            span = f"{symbol} = {min(values(rows, axis)):,} to {max(values(rows, axis)):,}"
            lines.append(f"{name}, {span}: {'; '.join(parts)}")
    none = {stage: int((~np.isfinite(large_rates[f"samples_{stage}"])).sum()) for stage in (1, 2, 3)}
    if any(none.values()):
        told = ", ".join(f"{count} in Stage {stage}" for stage, count in none.items() if count)
        lines.append(f"left out, since no batch was enough: {told}, of {len(large_rates['T'])} searches")
    return Outcome("\n".join(lines), verdict(not missed), f"missed: {'; '.join(missed)}")


def plan_keeps_its_promises(plan: Table) -> Outcome:
    """After Stage 1 one of the signals is at least min{1/2, 1/(QN)}, after Stage 2 ‖Δ_A‖_μ² is at most what Stage 3 bears, and
    after Stage 3 both squared distances are at most ε."""
    N, sparsity, epsilon = (plan[name][0] for name in ("N", "sparsity", "epsilon"))
    first, second, third = ({name: column[plan["stage"] == stage][-1] for name, column in plan.items()} for stage in (1, 2, 3))
    signal = max(first["alpha_V"], first["alpha_A"])
    asked = min(0.5, 1 / (sparsity * N))
    error = float(second["delta_A"]) ** 2
    borne = attention_error(int(N), int(sparsity), float(epsilon))
    distances = [float(third[name]) ** 2 for name in ("dist_A", "dist_V")]
    measured = (
        f"Stage 1: larger signal {signal:.2f}, promised {asked:.2g}; Stage 2: ‖Δ_A‖_μ² {error:.1e}, promised {borne:.1e}; "
        f"Stage 3: ‖A − Q‖_μ² {distances[0]:.1e} and ‖V − P‖_μ² {distances[1]:.1e}, promised {epsilon:g}; "
        f"{third['samples']:.2g} samples"
    )
    return Outcome(measured, verdict(signal >= asked and error <= borne and max(distances) <= epsilon))


CLAIMS = (
    Claim(
        figure="F21",
        says="At the sizes that the paper simulates, real gradients do what the simulation says, over the whole run.",
        quote="",
        where="Appendix I, simulation",
        judge=simulation_is_right,
        setting="sparsity 2, 1,000 steps, one task a size; NVIDIA H200",
    ),
    Claim(
        figure="F22",
        says="By the drift alone Stage 1 asks for batches of T² with the paper's projector, of T with that of the μ-inner product.",
        quote="",
        where="Section 3.2, and Section 6, which asks for a better first stage",
        judge=sign_by_drift_alone,
        setting="sparsity 2, Stage 1 alone, η = 0.05, sign not settled; NVIDIA H200",
    ),
    Claim(
        figure="F23",
        says="The printed rates hold at sizes beyond those of F15.",
        quote="",
        where="Theorem 1 and its lemmas",
        judge=large_rates_hold,
        setting=f"η = 0.05; base N = {LARGE_BASE['N']}, T = {LARGE_BASE['T']:,}, Q = {LARGE_BASE['sparsity']}, "
        f"ε = {LARGE_BASE['epsilon']}, K_P = {LARGE_BASE['K_P']}; 1 or 2 searches of 10 tasks; NVIDIA H200",
    ),
    Claim(
        figure="F24",
        says="With exactly the batch sizes that the lemmas ask for, every stage ends as they promise.",
        quote="",
        where="the lemmas of Appendices D to F, with measured constants",
        judge=plan_keeps_its_promises,
        setting="Q = 1, ε = 0.1, δ = 0.2; NVIDIA H200",
    ),
)
