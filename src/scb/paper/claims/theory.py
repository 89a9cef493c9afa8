"""Claims about the population process, gradient noise, rounding, and the softmax preconditioner."""

import numpy as np

from scb.jobs.table import Table, groups, pick, values
from scb.paper.claims.claim import TUNED, claim
from scb.paper.experiments.population import residual
from scb.paper.numbers import CLOSE, MOST, average, over, share, span, spread
from scb.paper.outcome import Outcome, all_of, at_least, at_most, between, mostly
from scb.paper.slopes import LOGS, line_slope, log_log_slope

POPULATION = "λ = 0 and access to the population loss"
NOISELESS = "1,500 noiseless steps, η = 0.01"
RECURSION = "recursion with K_P = K_Q = 0.5, η = 0.01"
AFTER_STAGE_ONE = "B = 64 at α_V = α_A = 0.5 on the population's lines"


@claim(
    "population-line",
    figure="F9",
    says="The population process stays on the straight lines through μ1ᵀ and P, 11ᵀ/T and Q.",
    quote="One can prove via induction on τ that V (resp. A) always stays on the straight line "
    "crossing μ1ᵀ and P (resp. 11ᵀ/T and Q).",
    where="Section 3.1",
    condition=POPULATION,
    setting=NOISELESS,
    words="largest distance {worst:.1e}",
)
def on_the_line(line: Table) -> Outcome:
    """Noiseless steps on whole matrices leave the lines by at most 1e-9 in either μ-norm."""
    worst = line["off_line"].max()
    return Outcome.judged(at_most(worst, 1e-9), worst=worst)


@claim(
    "drift-direction",
    figure="F9",
    says="The drift guides the population process in the right direction.",
    quote="The drift term will provide a small initial signal that guides the process toward the "
    "correct direction and then the linear term will amplify this signal.",
    where="Section 3.1",
    condition=f"{POPULATION}; with samples, see the claims on Stage 1",
    setting=f"{NOISELESS}; recursion with K_P = K_Q = 0.5",
    words="whole matrices: positive in {rows:share} rows, α_V at least {least:.1e} after "
    "{first:.0f} steps; recursion up to T = {longest:,.0f}: {ends:share}",
    control="without the drift the larger signal is {undrifted:.1g} after as many steps",
)
def drift_points_right(line: Table, stage_1: Table) -> Outcome:
    """From the uniform start both signals of the population are positive at every step that is
    looked at, on every task."""
    rows, ends = ((table["alpha_V"] > 0) & (table["alpha_A"] > 0) for table in (line, stage_1))
    first = line["step"].min()
    return Outcome.judged(
        at_least(min(rows.mean(), ends.mean()), 1),
        rows=share(rows),
        ends=share(ends),
        first=first,
        least=line["alpha_V"][line["step"] == first].min(),
        longest=stage_1["T"].max(),
        undrifted=stage_1["undrifted"].max(),
    )


@claim(
    "two-numbers",
    figure="F9",
    says="Two numbers, α_V and α_A, follow a closed recursion.",
    quote=(
        "The same calculation yields the following equations that govern the dynamics of α_V and "
        "α_A"
    ),
    where="Section 3.1, the equations before the matrix form",
    condition=POPULATION,
    setting=NOISELESS,
    words="largest error {recursion:.1e}",
    control=(
        "the matrix form below them, which lacks the identity (docs/paper/errata.md): {printed:.2g}"
    ),
)
def two_dimensions(line: Table) -> Outcome:
    """The two scalar equations agree with whole matrices to 1e-9 in α_V and α_A over all steps."""
    error = {
        form: max(np.abs(line[f"alpha_{x}"] - line[f"{form}_{x}"]).max() for x in "VA")
        for form in ("recursion", "printed")
    }
    return Outcome.judged(at_most(error["recursion"], 1e-9), **error)


@claim(
    "stage-one-length",
    figure="F9",
    says="Without noise, Stage 1 takes Θ(log(T K_Q)/η) steps.",
    quote="the first term would quickly boost it to σ₁ within 𝒯₁=log(T)/η iterations",
    where="Section 3.2; Appendix D, main result of Stage 1",
    condition="infinite amount of samples",
    setting=RECURSION,
    words="slope {slope:.3f} for T = {T:to ,.0f}",
)
def stage_one_length(stage_1: Table) -> Outcome:
    """The steps until α_V + α_A ≥ 0.2, times η, grow with log T at a slope between 0.95 and
    1.05."""
    slope = line_slope(np.log(stage_1["T"]), stage_1["eta"] * stage_1["steps"])
    return Outcome.judged(between(slope, 0.95, 1.05), slope=slope, T=span(stage_1["T"]))


@claim(
    "signals-meet",
    figure="F9",
    says="The two signals are equal up to O(1/T) when Stage 1 ends.",
    quote="At 𝒯₁, we have α_V + α_A = Θ(1/QN) and |α_V − α_A| ≤ Θ(1)/TK_Q.",
    where="Appendix D, main result of Stage 1, (c)",
    condition="Assumption 2.1; η ≤ min(K_P, K_Q, 1/10); B of Õ(T²Q⁴N⁵/min{K_P³, K_Q³})",
    setting="B = T²Q⁴N⁵/min{K_P³, K_Q³} and η = min(K_P, K_Q, 1/10); simulated gradients, paper's "
    "projector, not centred; T far below what (d) asks for",
    words="|α_V − α_A| falls like T^{slope:.2f}; T·K_Q times it is {scaled}, at most 2 in "
    "{close:share}; QN·(α_V + α_A) is {sum:to .2f}, between 1 and 3 in {size:share}",
    control="without noise it falls like T^{exact:.3f}",
)
def signals_meet(end_of_stage_1: Table, stage_1: Table) -> Outcome:
    """With the noise of the lemma's batch, in 90 % of tasks, at the first step at which one signal
    is 1/(QN): QN·(α_V + α_A) lies between 1 and 3, and T·K_Q·|α_V − α_A| is at most 2; and
    |α_V − α_A| falls with T at an exponent of at most -0.75."""
    rows = end_of_stage_1
    slope = log_log_slope(rows["T"], rows["gap"])
    scaled = rows["gap"] * rows["T"] * rows["K_Q"]
    size = (rows["sum"] >= 1) & (rows["sum"] <= 3)
    return Outcome.judged(
        all_of([mostly(size), mostly(scaled <= 2), at_most(slope, LOGS - 1)]),
        slope=slope,
        scaled=spread(scaled),
        close=share(scaled <= 2),
        sum=span(rows["sum"]),
        size=share(size),
        exact=log_log_slope(stage_1["T"], stage_1["gap"]),
    )


@claim(
    "difference-slow",
    figure="F9",
    says="Near (1, 1), the sum of the signals and the approximation error converge at a linear "
    "rate, while the difference is almost stuck.",
    quote="although (α_V + α_A)/2 can converge to 1 at a linear rate (and the approximation error "
    "also decreases exponentially fast), the convergence rate of α_A − α_V is much slower, and the "
    "process will get stuck around (1 + δ, 1 − δ) for some small nonzero δ, instead of converging "
    "to (1, 1).",
    where="Section 3.4",
    condition="near (1, 1), without noise",
    setting="recursion with K_P = K_Q = 0.5, η = 0.005; the error on whole matrices, from "
    "α_V = α_A = 0.9 and ‖Δ_V‖ = ‖Δ_A‖ = 0.1 in a random direction",
    words="rates per step in units of η: sum {sum:.2f}, difference {difference:.4f}, ‖Δ_V‖ {V}, "
    "‖Δ_A‖ {A}, both at least a half in {falls:share}",
)
def slow_difference(near_one: Table, error_decay: Table) -> Outcome:
    """Near (1, 1) the difference of the signals contracts at most at 5 % of the rate of their sum,
    and in 90 % of tasks ‖Δ_V‖_μ and ‖Δ_A‖_μ contract at a rate of at least half of η per step."""
    rates = {}
    for direction in ("sum", "difference"):
        rows = pick(near_one, direction=direction)
        # later, rounding is all that is left
        early = (rows["step"] > 0) & (rows["step"] <= 200)
        left = np.log(residual(rows, direction)[early])
        rates[direction] = -np.polyfit(rows["step"][early], left, 1)[0] / rows["eta"][0]
    falls = np.minimum(error_decay["rate_V"], error_decay["rate_A"]) >= 0.5
    return Outcome.judged(
        all_of([at_most(rates["difference"], 0.05 * rates["sum"]), mostly(falls)]),
        **rates,
        **{layer: spread(error_decay[f"rate_{layer}"]) for layer in "VA"},
        falls=share(falls),
    )


@claim(
    "stage-three-repairs",
    figure="F9",
    says="Stage 3, which normalises A and trains V alone, removes the difference of the signals.",
    quote="To accelerate this process, we directly round A via normalization, which is possible "
    "only after the approximation error becomes small in Stage 2. Then we freeze A and train V to "
    "the desired accuracy.",
    where="Section 3.4",
    condition="after Stage 2, when ‖Δ_A‖ is small",
    setting=f"sparsity 2, {TUNED}",
    words="in {good:share}; |1 − α_V| {before} before, {after} after; ‖V − P‖ {dist_V}",
    control="Stage 2 continued for as many samples instead: in {good_without:share}; |1 − α_V| "
    "{before_without} before, {after_without} after; ‖V − P‖ {dist_V_without}",
)
def stage_three_repairs(last_stage: Table) -> Outcome:
    """In 90 % of tasks ‖V − P‖_μ ends within 0.05, and α_V nearer to 1 than before Stage 3 or
    already within 0.02 of it."""
    numbers = {}
    literal = []
    for last, ending in (("normalised", ""), ("not normalised", "_without")):
        rows = pick(last_stage, last=last)
        before, after = (np.abs(1 - rows[f"alpha_V_{when}"]) for when in ("before", "after"))
        good = (rows["dist_V_after"] <= CLOSE) & ((after < before) | (after <= 0.02))
        literal.append(mostly(good))
        found = {"before": before, "after": after, "dist_V": rows["dist_V_after"]}
        numbers |= {f"{name}{ending}": spread(column) for name, column in found.items()}
        numbers[f"good{ending}"] = share(good)
    return Outcome.judged(literal[0], **numbers)


@claim(
    "variance-grows",
    figure="F3",
    says="The variance of the mini-batch gradient in A grows with T.",
    quote="the variance of the mini-batch gradients scales with T.",
    where="Section 3.3",
    condition="after Stage 1",
    setting=AFTER_STAGE_ONE,
    words="grows like T^{slope:.3f}",
)
def variance_grows(noise: Table) -> Outcome:
    """‖h_A‖_μ² of a batch grows like T^x; the 95 % interval of x lies between 0.9 and 1.1."""
    slope = log_log_slope(noise["T"], noise["square"])
    return Outcome.judged(between(slope, 0.9, 1.1), slope=slope)


@claim(
    "largest-entry",
    figure="F3",
    says="The largest entry of the noise in A hardly grows with T, only like √log T.",
    quote="we can make the coordinate-wise difference between the population and mini-batch "
    "gradients 1/poly(N, Q) small using only poly(N, Q) log T samples by a standard concentration "
    "argument.",
    where="Section 3.3",
    condition="after Stage 1",
    setting=f"{AFTER_STAGE_ONE}; an entry's error falls like 1/√B, so that √log T asks for log T "
    "times the samples",
    words="largest entry / (σ√(2 log NT)) {ratio:.2f}",
)
def largest_entry(noise: Table) -> Outcome:
    """The largest entry of h_A over σ√(2 log NT), σ being the spread of one entry, varies in the
    mean by at most 25 % over all T."""
    ratio = noise["largest"] / np.sqrt(2 * noise["entry"] * np.log(noise["N"] * noise["T"]))
    means = {t: average(ratio[noise["T"] == t]) for t in sorted(values(noise, "T"))}
    cases = {f"T = {t:,}": {"ratio": x} for t, x in means.items()}
    varies = over(max(means.values()), min(means.values()))
    return Outcome.judged(at_most(varies, 1.25), cases=cases)


@claim(
    "threshold-separates",
    figure="F3",
    says="A threshold Θ(α/Q) tells true positions from others.",
    quote=(
        "Then, we can choose a threshold θ_Tmp = Θ(α_V / Q) s.t. a^(k)_t ≤ θ_Tmp iff q^(k)_t = 0."
    ),
    where="Appendix E, separation between noise and signal",
    condition="α_V ≥ Θ(Q/T + Q√N‖Δ_A‖_μ)",
    setting="sparsity 2, α_V = α_A = 0.3",
    words="separated in {separated:share}",
    control="where the condition is not met, c = {least:g}, in {unmet:share}",
)
def separation(separation: Table) -> Outcome:
    """With α_V = c·(Q/T + Q√N‖Δ_A‖_μ) and the worst Δ_A of that size, c = 8 separates true
    positions from others in 90 % of tasks."""
    found = {c: share(rows["separated"]) for c, rows in groups(separation, "margin")}
    least, *_, largest = found
    return Outcome.judged(
        all_of([at_least(found[largest], MOST), at_most(largest, 8)]),
        cases={f"c = {c:g}": {"separated": x} for c, x in found.items()},
        least=least,
        unmet=found[least],
    )


@claim(
    "rounding-mild",
    figure="F3",
    says="The thresholding-projection changes α_A and ‖Δ_A‖² by O(1)/T.",
    quote="We have α_A ← α_A + O(1)/T and ‖Δ_A‖_μ² ← ‖Δ_A‖_μ² + O(1)/T.",
    where="Appendix E, effect of rounding",
    condition="that of the separation between noise and signal",
    setting="α_A = 0.3, threshold α_A/(6Q)",
    words="α_A changes like T^{slope:.2f}; T times the growth of ‖Δ_A‖² is at most {growth:.2g}",
)
def rounding_is_mild(rounding: Table) -> Outcome:
    """The change of α_A falls at least like T^-0.9, and ‖Δ_A‖_μ² grows by at most 2/T in 90 % of
    tasks."""
    change = np.abs(rounding["alpha_after"] - rounding["alpha_before"])
    slope = log_log_slope(rounding["T"], change)
    growth = (rounding["square_after"] - rounding["square_before"]) * rounding["T"]
    good = all_of([at_most(slope, -0.9), mostly(growth <= 2)])
    return Outcome.judged(good, slope=slope, growth=growth.max())
