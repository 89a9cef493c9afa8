"""Claims about the population process, gradient noise, rounding, and the softmax preconditioner."""

import numpy as np

from scb.jobs.table import Table, by_value, pick, values, where
from scb.paper.claims.claim import CLOSE, Claim, Outcome, log_slope, mostly, share, spread, verdict
from scb.paper.experiments.population import residual


def on_the_line(line: Table) -> Outcome:
    """Noiseless steps on whole matrices leave the lines by at most 1e-9 in either μ-norm."""
    worst = float(line["off_line"].max())
    return Outcome(f"largest distance {worst:.1e}", verdict(worst <= 1e-9))


def drift_points_right(line: Table, stage_1: Table) -> Outcome:
    """From the uniform start both signals of the population are positive at every step that is looked at, on every task."""
    positive = (line["alpha_V"] > 0) & (line["alpha_A"] > 0)
    ends = (stage_1["alpha_V"] > 0) & (stage_1["alpha_A"] > 0)
    first = float(line["alpha_V"][line["step"] == line["step"].min()].min())
    measured = f"whole matrices: positive in {int(positive.sum())} of {positive.size} rows, α_V at least {first:.1e} after "
    measured += f"{int(line['step'].min())} steps; recursion up to T = {stage_1['T'].max():,}: {int(ends.sum())} of {ends.size}"
    control = f"without the drift the larger signal is {stage_1['undrifted'].max():.1g} after as many steps"
    return Outcome(measured, verdict(positive.all() and ends.all()), "", control)


def two_dimensions(line: Table) -> Outcome:
    """The two scalar equations agree with whole matrices to 1e-9 in α_V and α_A over all steps."""
    error = {
        form: max(float(np.abs(line[f"alpha_{x}"] - line[f"{form}_{x}"]).max()) for x in "VA") for form in ("recursion", "printed")
    }
    control = f"the matrix form below them, which lacks the identity (docs/paper/errata.md): {error['printed']:.2g}"
    return Outcome(f"largest error {error['recursion']:.1e}", verdict(error["recursion"] <= 1e-9), "", control)


def stage_one_length(stage_1: Table) -> Outcome:
    """The steps until α_V + α_A ≥ 0.2, times η, grow with log T at a slope between 0.95 and 1.05."""
    slope = float(np.polyfit(np.log(stage_1["T"]), stage_1["eta"] * stage_1["steps"], 1)[0])
    T = stage_1["T"]
    return Outcome(f"slope {slope:.3f} for T from {T.min():,} to {T.max():,}", verdict(abs(slope - 1) <= 0.05))


def signals_meet(stage_1: Table) -> Outcome:
    """Without noise |α_V − α_A| at the end of Stage 1 falls at least like T^-0.95, and T·K_Q times it is at most 2."""
    slope = log_slope(stage_1["T"], stage_1["gap"])
    scaled = float((stage_1["gap"] * stage_1["T"] * stage_1["K_Q"]).max())
    return Outcome(f"it falls like T^{slope:.3f}; T·K_Q times it is at most {scaled:.2g}", verdict(slope <= -0.95 and scaled <= 2))


def variance_grows(noise: Table) -> Outcome:
    """The mean of ‖h_A‖_μ² over batches grows like T^x with x within 0.1 of 1."""
    slope = log_slope(*by_value(noise, "T", "square", np.mean))
    return Outcome(f"grows like T^{slope:.3f}", verdict(abs(slope - 1) <= 0.1))


def largest_entry(noise: Table) -> Outcome:
    """The largest entry of h_A over σ√(2 log NT), σ being the spread of one entry, varies by at most 25 % over all T."""
    ratio = noise["largest"] / np.sqrt(2 * noise["entry"] * np.log(noise["N"] * noise["T"]))
    _, ratios = by_value(noise | {"ratio": ratio}, "T", "ratio", np.mean)
    text = ", ".join(f"{r:.2f}" for r in ratios)
    measured = f"largest entry / (σ√(2 log NT)): {text} as T grows {noise['T'].max() // noise['T'].min():,}-fold"
    return Outcome(measured, verdict(ratios.max() / ratios.min() <= 1.25))


def separation(separation: Table) -> Outcome:
    """With α_V = c·(Q/T + Q√N‖Δ_A‖_μ) and the worst Δ_A of that size, c = 8 separates true positions from others on every task."""
    parts = []
    good = {}
    for margin in sorted(values(separation, "margin")):
        hits = pick(separation, margin=margin)["separated"]
        good[margin] = bool(hits.all())
        parts.append(f"c = {margin:g}: {share(hits)}")
    largest = max(good)
    least = min(good)
    control = f"where the condition is not met, c = {least:g}, it {'separates as well' if good[least] else 'does not'}"
    return Outcome("; ".join(parts), verdict(good[largest] and largest <= 8), "", control)


def rounding_is_mild(rounding: Table) -> Outcome:
    """The change of α_A falls at least like T^-0.9, and ‖Δ_A‖_μ² grows by at most 2/T on every task."""
    change = np.abs(rounding["alpha_after"] - rounding["alpha_before"])
    slope = log_slope(*by_value(rounding | {"change": change}, "T", "change"))
    growth = ((rounding["square_after"] - rounding["square_before"]) * rounding["T"]).max()
    measured = f"α_A changes like T^{slope:.2f}; T times the growth of ‖Δ_A‖² is at most {growth:.2g}"
    return Outcome(measured, verdict(slope <= -0.9 and growth <= 2.0))


def _rates(near_one: Table) -> dict[str, float]:
    """How fast each residual shrinks a step, in units of η, over the first 200 steps."""
    rates = {}
    for direction in values(near_one, "direction"):
        rows = pick(near_one, direction=direction)
        left = residual(rows, direction)
        early = (rows["step"] > 0) & (rows["step"] <= 200)  # later, rounding is all that is left
        rates[direction] = -float(np.polyfit(rows["step"][early], np.log(left[early]), 1)[0]) / float(rows["eta"][0])
    return rates


def slow_difference(near_one: Table) -> Outcome:
    """Near (1, 1) the difference of the signals contracts at most at 5 % of the rate of their sum."""
    rates = _rates(near_one)
    measured = f"rates in units of η: sum {rates['sum']:.2f}, difference {rates['difference']:.4f}"
    return Outcome(measured, verdict(rates["difference"] <= 0.05 * rates["sum"]))


def stage_three_repairs(last_stage: Table) -> Outcome:
    """In 90 % of tasks ‖V − P‖_μ ends within 0.05, and α_V nearer to 1 than before Stage 3 or already within 0.02 of it."""
    found = {}
    for last in ("normalised", "not normalised"):
        rows = pick(last_stage, last=last)
        before, after = (np.abs(1 - rows[f"alpha_V_{when}"]) for when in ("before", "after"))
        good = (rows["dist_V_after"] <= CLOSE) & ((after < before) | (after <= 0.02))
        text = f"in {share(good)}; |1 − α_V| {spread(before)} before, {spread(after)} after; ‖V − P‖ {spread(rows['dist_V_after'])}"
        found[last] = good, text
    control = f"Stage 2 going on for as many samples without it: {found['not normalised'][1]}"
    return Outcome(found["normalised"][1], verdict(mostly(found["normalised"][0])), "", control)


def near_uniform(preconditioner: Table) -> Outcome:
    """For entries of a within a share s of uniform, the largest relative error is at most 3s and like s^x, x within 0.1 of 1."""
    rows = pick(preconditioner, first=0.0)
    close = where(rows, rows["spread"] < 0.5)
    far = where(rows, rows["spread"] >= 0.5)
    s, errors = by_value(close, "spread", "uniform", np.max)
    slope = log_slope(s, errors)
    measured = f"relative error {', '.join(f'{e:.2g}' for e in errors)} at s = {', '.join(f'{x:g}' for x in s)}: s^{slope:.2f}"
    control = f"far from uniform, s = {far['spread'].max():g}, the error is {far['uniform'].max():.2g}" if len(far["T"]) else ""
    return Outcome(measured, verdict(abs(slope - 1) <= 0.1 and bool((errors <= 3 * s).all())), "", control)


def near_sparse(preconditioner: Table) -> Outcome:
    """The largest error of an entry is at most 10 % of the largest entry, and falls at least like T^-0.8."""
    rows = where(preconditioner, preconditioner["first"] > 0)
    slope = log_slope(*by_value(rows, "T", "corrected", np.mean))
    return Outcome(
        f"error of the printed form {rows['printed'].min():.1f} and more; of its square "
        f"{rows['corrected'].max():.3f} at most, falling like T^{slope:.2f}",
        verdict(rows["printed"].max() <= 0.1, slope <= -0.8 and rows["corrected"].max() <= 0.1),
        "the corner is (a₁(1 − a₁))², not a₁(1 − a₁)",
    )


CLAIMS = (
    Claim(
        figure="F9",
        says="The population process stays on the straight lines through μ1ᵀ and P, 11ᵀ/T and Q.",
        quote="One can prove via induction on τ that V (resp. A) always stays on the straight line crossing μ1ᵀ and P "
        "(resp. 11ᵀ/T and Q).",
        where="Section 3.1",
        condition="λ = 0 and access to the population loss",
        setting="1,500 noiseless steps, η = 0.01",
        judge=on_the_line,
    ),
    Claim(
        figure="F9",
        says="The drift guides the population process in the right direction.",
        quote="The drift term will provide a small initial signal that guides the process toward the correct direction and then "
        "the linear term will amplify this signal.",
        where="Section 3.1",
        condition="λ = 0 and access to the population loss; with samples, see the claims on Stage 1",
        setting="1,500 noiseless steps, η = 0.01; recursion with K_P = K_Q = 0.5",
        judge=drift_points_right,
    ),
    Claim(
        figure="F9",
        says="Two numbers, α_V and α_A, follow a recursion of their own.",
        quote="The same calculation yields the following equations that govern the dynamics of α_V and α_A",
        where="Section 3.1, the equations before the matrix form",
        condition="λ = 0 and access to the population loss",
        setting="1,500 noiseless steps, η = 0.01",
        judge=two_dimensions,
    ),
    Claim(
        figure="F9",
        says="Without noise Stage 1 takes Θ(log(T K_Q)/η) steps.",
        quote="the first term would quickly boost it to σ₁ within 𝒯₁=log(T)/η iterations",
        where="Section 3.2; Appendix D, main result of Stage 1",
        condition="infinite amount of samples",
        setting="recursion with K_P = K_Q = 0.5, η = 0.01",
        judge=stage_one_length,
    ),
    Claim(
        figure="F9",
        says="The two signals are equal up to O(1/T) when Stage 1 ends.",
        quote="At 𝒯₁, we have α_V + α_A = Θ(1/QN) and |α_V − α_A| ≤ Θ(1)/TK_Q.",
        where="Appendix D, main result of Stage 1, (c)",
        condition="the batch of the lemma, which makes the noise O(1/T)",
        setting="recursion with K_P = K_Q = 0.5, η = 0.01",
        judge=signals_meet,
    ),
    Claim(
        figure="F9",
        says="Near (1, 1) the sum converges at a linear rate, the difference is almost stuck.",
        quote="although (α_V + α_A)/2 can converge to 1 at a linear rate (and the approximation error also decreases exponentially "
        "fast), the convergence rate of α_A − α_V is much slower, and the process will get stuck around (1 + δ, 1 − δ) for some "
        "small nonzero δ, instead of converging to (1, 1).",
        where="Section 3.4",
        condition="near (1, 1), without noise",
        setting="recursion with K_P = K_Q = 0.5, η = 0.005",
        judge=slow_difference,
    ),
    Claim(
        figure="F9",
        says="Normalising A and training V alone (Stage 3) repairs this.",
        quote="To accelerate this process, we directly round A via normalization, which is possible only after the approximation "
        "error becomes small in Stage 2. Then we freeze A and train V to the desired accuracy.",
        where="Section 3.4",
        condition="after Stage 2, when ‖Δ_A‖ is small",
        setting="sparsity 2, the tuned recipe",
        judge=stage_three_repairs,
    ),
    Claim(
        figure="F3",
        says="The variance of the mini-batch gradient in A grows with T.",
        quote="the variance of the mini-batch gradients scales with T.",
        where="Section 3.3",
        condition="after Stage 1",
        setting="B = 64 at α_V = α_A = 0.5 on the population's lines",
        judge=variance_grows,
    ),
    Claim(
        figure="F3",
        says="Its largest entry hardly grows: like √log T.",
        quote="we can make the coordinate-wise difference between the population and mini-batch gradients 1/poly(N, Q) small using "
        "only poly(N, Q) log T samples by a standard concentration argument.",
        where="Section 3.3",
        condition="after Stage 1",
        setting="B = 64 at α_V = α_A = 0.5 on the population's lines",
        judge=largest_entry,
    ),
    Claim(
        figure="F3",
        says="A threshold Θ(α/Q) tells true positions from others.",
        quote="Then, we can choose a threshold θ_Tmp = Θ(α_V / Q) s.t. a^(k)_t ≤ θ_Tmp iff q^(k)_t = 0.",
        where="Appendix E, separation between noise and signal",
        condition="α_V ≥ Θ(Q/T + Q√N‖Δ_A‖_μ)",
        setting="sparsity 2, α_V = α_A = 0.3",
        judge=separation,
    ),
    Claim(
        figure="F3",
        says="The thresholding-projection changes α_A and ‖Δ_A‖² by O(1)/T.",
        quote="We have α_A ← α_A + O(1)/T and ‖Δ_A‖_μ² ← ‖Δ_A‖_μ² + O(1)/T.",
        where="Appendix E, effect of rounding",
        condition="that of the separation between noise and signal",
        setting="α_A = 0.3, threshold α_A/(6Q)",
        judge=rounding_is_mild,
    ),
    Claim(
        figure="F2",
        says="Near uniform attention the softmax preconditioner (diag(a) − aaᵀ)² is (I − 11ᵀ/T)/T².",
        quote="Near initialization, i.e., when the attention pattern is still close to the uniform attention, we have "
        "(diag(a_σ) − a_σ a_σᵀ)² ≈ 1/T² (I − 11ᵀ/T).",
        where="Section 5.2",
        condition="attention close to uniform",
        judge=near_uniform,
    ),
    Claim(
        figure="F2",
        says="Near sparse attention it is a₁(1 − a₁)e₁e₁ᵀ + O(1/T).",
        quote="we have (diag(a_σ) − a_σ a_σᵀ)² ≈ a_σ,1(1 − a_σ,1) e₁ e₁ᵀ + O(1/T).",
        where="Section 5.2",
        condition="a_σ,1 is a small constant while all other entries are O(1/T)",
        judge=near_sparse,
    ),
)
