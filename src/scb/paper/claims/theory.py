"""Claims about the population process, gradient noise, rounding, and the softmax preconditioner."""

import numpy as np

from scb.jobs.table import Table, at, by_value, pick, values, where
from scb.paper.claims.claim import Claim, Outcome, log_slope, mostly, share, spread, verdict
from scb.paper.experiments.population import residual


def on_the_line(line: Table) -> Outcome:
    """1,500 noiseless steps on whole matrices; distance to the lines at most 1e-9."""
    worst = float(line["off_line"].max())
    return Outcome(f"largest distance {worst:.1e}", verdict(worst <= 1e-9))


def two_dimensions(line: Table) -> Outcome:
    """The recursion beside whole matrices; agreement to 1e-9."""
    error = {
        form: max(float(np.abs(line[f"alpha_{x}"] - line[f"{form}_{x}"]).max()) for x in "VA") for form in ("recursion", "printed")
    }
    measured = f"largest error {error['recursion']:.1e}; as printed {error['printed']:.2g}"
    note = "the printed matrix form lacks the identity: α stays itself, plus what is printed"
    return Outcome(measured, verdict(error["printed"] <= 1e-6, error["recursion"] <= 1e-9), note)


def stage_one_length(stage_1: Table) -> Outcome:
    """Slope of η·steps in log T between 0.95 and 1.05."""
    slope = float(np.polyfit(np.log(stage_1["T"]), stage_1["eta"] * stage_1["steps"], 1)[0])
    T = stage_1["T"]
    return Outcome(f"slope {slope:.3f} for T from {T.min():,} to {T.max():,}", verdict(abs(slope - 1) <= 0.05))


def signals_meet(stage_1: Table, convergence: Table) -> Outcome:
    """Falls at least like T^-0.9 without noise; in real runs at most a quarter of the sum."""
    slope = log_slope(stage_1["T"], stage_1["gap"])
    end = at(pick(convergence, method="SGD"), 400)
    ratio = np.abs(end["alpha_V"] - end["alpha_A"]) / np.abs(end["alpha_V"] + end["alpha_A"])
    measured = f"without noise it falls like T^{slope:.2f}; in real runs {spread(ratio, 2)} of the sum at step 400"
    return Outcome(measured, verdict(slope <= -0.9 and np.median(ratio) <= 0.25))


def variance_grows(noise: Table) -> Outcome:
    """Mean ‖h_A‖_μ² of batches of 64; exponent 1 ± 0.1."""
    slope = log_slope(*by_value(noise, "T", "square", np.mean))
    return Outcome(f"grows like T^{slope:.3f}", verdict(abs(slope - 1) <= 0.1))


def largest_entry(noise: Table) -> Outcome:
    """Largest entry over σ√(2 log NT) varies by at most 25 % for T from 100 to 100,000."""
    ratio = noise["largest"] / np.sqrt(2 * noise["entry"] * np.log(noise["N"] * noise["T"]))
    _, ratios = by_value(noise | {"ratio": ratio}, "T", "ratio", np.mean)
    text = ", ".join(f"{r:.2f}" for r in ratios)
    measured = f"largest entry / (σ√(2 log NT)): {text} as T grows {noise['T'].max() // noise['T'].min():,}-fold"
    return Outcome(measured, verdict(ratios.max() / ratios.min() <= 1.25))


def separation(rounding: Table) -> Outcome:
    """All entries of A on the right side in 99 %."""
    return Outcome(f"support exactly right in {share(rounding['support'])}", verdict(mostly(rounding["support"], 0.99)))


def rounding_is_mild(rounding: Table) -> Outcome:
    """Exponent of the change of α_A at most −0.9; growth of ‖Δ_A‖² at most 2/T."""
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
    """Rate of the difference at most 5 % of that of the sum."""
    rates = _rates(near_one)
    measured = f"rates in units of η: sum {rates['sum']:.2f}, difference {rates['difference']:.4f}"
    return Outcome(measured, verdict(rates["difference"] <= 0.05 * rates["sum"]))


def stage_three_repairs(near_one: Table, transfer: Table) -> Outcome:
    """Rate at least 0.8 η; real runs end within ε in 90 %."""
    rate = _rates(near_one)["normalised"]
    measured = f"α_V contracts at {rate:.2f} η once A is normalised; in real runs ‖V − P‖ ends at {spread(transfer['dist_V'], 2)}"
    return Outcome(measured, verdict(rate >= 0.8 and mostly(transfer["dist_V"] <= transfer["epsilon"])))


def near_uniform(preconditioner: Table) -> Outcome:
    """Entries within 5 % for attention within 1 % of uniform."""
    errors = pick(preconditioner, first=0.0)["uniform"]
    return Outcome(f"largest relative error {errors.max():.3f}", verdict(errors.max() <= 0.05))


def near_sparse(preconditioner: Table) -> Outcome:
    """Entries within 10 %, error falling like 1/T."""
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
