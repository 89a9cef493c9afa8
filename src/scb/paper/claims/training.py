"""Claims about training: figures and captions of the paper."""

from __future__ import annotations

import numpy as np

from scb.jobs.table import Table, at, pick, values
from scb.paper.claims.claim import Claim, Outcome, Verdict, log_slope, mostly, share, spread, verdict

CLOSE = 0.05
END = 1000  # steps of the paper's experiment


def _ends(table: Table, step: int | None, *methods: str) -> list[Table]:
    """The state of each method after ``step`` steps, one row a replicate, in the same order."""
    return [at(pick(table, method=method), step) for method in methods]


def signal_after_stage_one(convergence: Table) -> Outcome:
    """|α| at step 400."""
    (end,) = _ends(convergence, 400, "proximal")
    size = (np.abs(end["alpha_A"]) + np.abs(end["alpha_V"])) / 2
    return Outcome(
        f"|α| at step 400: {spread(size, 2)}",
        verdict(0.05 <= np.median(size) <= 0.2),
        "the signal is smaller, and differs from task to task",
    )


def sign_is_right(signs: Table) -> Outcome:
    """The sign at the end, by the letter and settled."""
    literal, settled = _ends(signs, None, "literal", "proximal")
    return Outcome(
        f"negative in {share(literal['alpha_A'] < 0)} as printed, in {share(settled['alpha_A'] < 0)} with the sign settled",
        verdict(mostly(literal["alpha_A"] > 0, 0.95), mostly(settled["alpha_A"] > 0, 0.95)),
        "noise decides the sign at B = 64; going over to the mirror image where A is skewed to the left repairs it",
    )


def proximal_beats_sgd(convergence: Table) -> Outcome:
    """Both distances before normalisation, task by task."""
    results = []
    for method, step in (("proximal", END), ("proximal, larger λ", None)):
        ours, theirs = _ends(convergence, step, method, "SGD")
        results.append([ours[name] < theirs[name] for name in ("dist_A", "dist_V")])
    (A, V), (A_late, V_late) = results
    last = int(convergence["step"].max())
    return Outcome(
        f"closer in A {share(A)}, in V {share(V)} after {END:,} steps; "
        f"with λ = 1e-4 {share(A_late)} and {share(V_late)} after {last:,}",
        verdict(mostly(A) and mostly(V), mostly(A_late) and mostly(V_late)),
        "λ = 1e-4 instead of 1e-5, and more steps",
    )


def star_recovers(signs: Table, convergence: Table) -> Outcome:
    """The star of the proximal method: by the letter, with the sign settled, and with more steps."""
    ends = (*_ends(signs, END, "literal", "proximal"), *_ends(convergence, None, "proximal"))
    letter, settled, late = (end["dist_A_star"] <= CLOSE for end in ends)
    return Outcome(
        f"‖A* − Q‖ ≤ {CLOSE} in {share(letter)} as printed, in {share(settled)} with the sign settled after {END:,} steps, "
        f"in {share(late)} after {int(convergence['step'].max()):,}",
        verdict(mostly(letter), mostly(late)),
        "settle the sign; and slow tasks need more than 1,000 steps",
    )


def small_rate_is_slow(convergence: Table) -> Outcome:
    """α_A with η₂'."""
    slow, ours = _ends(convergence, END, "SGD, small η₂'", "proximal")
    behind = slow["alpha_A"] < ours["alpha_A"]
    return Outcome(
        f"α_A after {END:,} steps {spread(slow['alpha_A'], 2)}, proximal {spread(ours['alpha_A'], 2)}; behind in {share(behind)}",
        verdict(mostly(behind)),
    )


def sgd_error_dominates(convergence: Table) -> Outcome:
    """‖Δ_A‖ against the size of the signal part of A, for SGD."""
    early, late = (*_ends(convergence, END, "SGD"), *_ends(convergence, None, "SGD"))
    over = [end["delta_A"] > np.abs(end["alpha_A"]) * np.sqrt(end["K_Q"]) for end in (early, late)]
    ratio = early["delta_A"] / (np.abs(early["alpha_A"]) * np.sqrt(early["K_Q"]))
    return Outcome(
        f"‖Δ_A‖ over signal {spread(ratio, 2)} after {END:,} steps; above 1 in {share(over[0])}, later in {share(over[1])}",
        verdict(mostly(over[0])),
        "it grows with the signal and stays of its size, mostly below it",
    )


def proximal_denoises(convergence: Table) -> Outcome:
    """‖Δ_A‖ of the proximal method over that of SGD."""
    sgd, small, large = _ends(convergence, END, "SGD", "proximal", "proximal, larger λ")
    ratios = [end["delta_A"] / sgd["delta_A"] for end in (small, large)]
    return Outcome(
        f"‖Δ_A‖ over that of SGD: {spread(ratios[0], 2)} with λ = 1e-5, {spread(ratios[1], 2)} with 1e-4",
        verdict(np.median(ratios[0]) <= 0.5, np.median(ratios[1]) <= 0.5),
        "λ = 1e-4; 1e-5 is below the noise of one entry in one step",
    )


def error_grows_late(convergence: Table) -> Outcome:
    """The distance of A comes down and goes up again."""
    rows = pick(convergence, method="proximal")
    helped = []
    for i in np.unique(rows["replicate"]):
        run = pick(rows, replicate=i)
        if run["alpha_A"].max() >= 1:  # else it has not got there yet
            helped.append(run["dist_A"][-1] > run["dist_A"].min() + 0.01)
    return Outcome(
        f"‖A − Q‖ ends above its minimum in {share(helped)} tasks whose α_A has passed 1",
        verdict(mostly(helped)) if helped else Verdict.FAILS,
        "" if helped else "no run has come that far",
    )


def value_error_is_small(convergence: Table) -> Outcome:
    """The largest ‖Δ_V‖ on the way."""
    rows = pick(convergence, method="proximal")
    worst = np.array([pick(rows, replicate=i)["delta_V"].max() for i in np.unique(rows["replicate"])])
    return Outcome(f"largest on the way {spread(worst, 2)}", verdict(mostly(worst <= 0.1)))


def normalisation_helps(convergence: Table) -> Outcome:
    """The proximal method before and after normalisation."""
    early, late = (*_ends(convergence, END, "proximal"), *_ends(convergence, None, "proximal"))
    better = [end["dist_A_star"] < end["dist_A"] for end in (early, late)]
    return Outcome(
        f"closer after it in {share(better[0])} after {END:,} steps, {share(better[1])} at the end",
        verdict(mostly(better[0]), mostly(better[1])),
        "once the signal has passed the threshold",
    )


def sgd_star_fails(convergence: Table) -> Outcome:
    """SGD after normalisation."""
    early, late = (*_ends(convergence, END, "SGD"), *_ends(convergence, None, "SGD"))
    good = [end["dist_A_star"] <= CLOSE for end in (early, late)]
    return Outcome(
        f"‖A* − Q‖ ≤ {CLOSE} for SGD in {share(good[0])} after {END:,} steps, {share(good[1])} at the end",
        verdict(mostly(~good[0]) and mostly(~good[1])),
        "normalised SGD finds Q as well, as soon as its signal has passed the threshold; its V stays off",
    )


def proximal_similarity(convergence: Table) -> Outcome:
    """μ-cosines of A at the end, with and without normalisation."""
    ours, theirs = _ends(convergence, END, "proximal", "SGD")
    before, after = ours["sim_A"] > theirs["sim_A"], ours["sim_A_star"] > theirs["sim_A_star"]
    return Outcome(
        f"more similar in {share(before)} before, {share(after)} after normalisation",
        verdict(mostly(before) and mostly(after), mostly(before)),
        "before normalisation only; after it the two are alike",
    )


def larger_N(sizes: Table) -> Outcome:
    """N = 10 and 20: proximal against SGD before normalisation, and the star."""
    parts, beats, stars = [], [], []
    for N in values(sizes, "N"):
        ours, theirs = _ends(pick(sizes, N=N), None, "proximal", "SGD")
        beats.append(ours["dist_A"] < theirs["dist_A"])
        stars.append(ours["dist_A_star"] <= 2 * CLOSE)
        parts.append(f"N = {N}: closer than SGD {share(beats[-1])}, star within {2 * CLOSE} {share(stars[-1])}")
    ahead, found = mostly(np.concatenate(beats)), mostly(np.concatenate(stars))
    return Outcome(
        "; ".join(parts),
        verdict(ahead and found, ahead),
        "on slow tasks 1,000 steps are too few for either method",
    )


def softmax_is_alike(softmax: Table) -> Outcome:
    """Patterns and losses at the end of both."""
    soft, linear = (at(pick(softmax, model=model)) for model in ("softmax", "linear"))
    alike = [np.minimum(soft[name], linear[name]) for name in ("sim_A", "sim_V")]
    difference = np.abs(soft["loss"] / linear["loss"] - 1)
    return Outcome(
        f"smaller cosine with Q {spread(alike[0])}, with P {spread(alike[1])}; losses differ by {spread(100 * difference, 2)} %",
        verdict(mostly(alike[0] >= 0.95) and mostly(alike[1] >= 0.95) and mostly(difference <= 0.02)),
    )


def simulation_recovers(gaussian: Table) -> Outcome:
    """The large simulations at their end."""
    parts, good, small = [], [], []
    for N in values(gaussian, "N"):
        batch = int(gaussian["batch_size"][gaussian["N"] == N].max())
        mine = pick(gaussian, N=N, batch_size=batch)
        ours, theirs = _ends(mine, None, "proximal", "SGD")
        good.append((ours["dist_A"] <= CLOSE) & (ours["dist_V"] <= CLOSE) & (theirs["dist_A"] > 4 * ours["dist_A"]))
        small.append(~np.isfinite(at(pick(gaussian, N=N, method="SGD", batch_size=64))["dist_A"]))
        parts.append(
            f"N = {N}: ‖A − Q‖ {spread(ours['dist_A'], 2)}, SGD {spread(theirs['dist_A'], 2)} at B = {batch:,}"
        )
    all_good, diverged = np.concatenate(good), np.concatenate(small)
    return Outcome(
        f"{'; '.join(parts)}; SGD at B = 64 diverges in {share(diverged)}",
        verdict(mostly(all_good) and not diverged.any(), mostly(all_good)),
        "the batch has to be large: with 64 samples the simulated dynamics diverges at these sizes",
    )


def simulation_predicts(prediction: Table) -> Outcome:
    """Medians of real and simulated runs at the end of the same stretch."""
    errors = {}
    for lam in sorted(values(prediction, "lam")):
        real, guess = (at(pick(prediction, lam=lam, gradients=kind)) for kind in ("real", "simulated"))
        name = "SGD" if lam == 0 else f"λ = {lam:.0e}"
        errors[name] = {
            column: float(np.median(guess[column]) / np.median(real[column]) - 1)
            for column in ("alpha_A", "alpha_V", "delta_A", "delta_V")
        }
    text = "; ".join(
        f"{name}: α_A {e['alpha_A']:+.1%}, ‖Δ_A‖ {e['delta_A']:+.1%}, ‖Δ_V‖ {e['delta_V']:+.1%}"
        for name, e in errors.items()
    )
    good = {name: max(abs(x) for x in e.values()) <= 0.1 for name, e in errors.items()}
    return Outcome(
        text,
        verdict(all(good.values()), good.get("SGD", False)),
        "for SGD; the noise of a column that few samples touch has heavier tails, and more of it passes λ than the Gaussian says",
    )


def transfer_is_flat(transfer: Table) -> Outcome:
    """Samples of transfer against T."""
    parts, flat = [], []
    for overlap in values(transfer, "overlap"):
        if overlap == 0:
            continue
        T, middle = _medians(pick(transfer, overlap=overlap))
        slope = log_slope(T, middle)
        parts.append(f"overlap {overlap:g}: {middle.min():,.0f} to {middle.max():,.0f} samples, T^{slope:+.3f}")
        flat.append(abs(slope) <= 0.05)
    T = transfer["T"]
    return Outcome(f"{'; '.join(parts)} for T = {T.min():,} to {T.max():,}", verdict(all(flat)))


def small_overlap_transfers(transfer: Table) -> Outcome:
    """The smaller overlap at the end."""
    overlap = min(o for o in values(transfer, "overlap") if o > 0)
    mine = pick(transfer, overlap=overlap)
    good = (mine["dist_V"] <= mine["epsilon"]) & (mine["dist_A"] <= mine["epsilon"])
    return Outcome(
        f"overlap {overlap:g}: within ε = {mine['epsilon'][0]:g} in {share(good)} runs", verdict(mostly(good))
    )


def drift_needs_samples(drift: Table) -> Outcome:
    """Stage 1 by the drift alone."""
    T, middle = _medians(drift)
    slope = log_slope(T, middle)
    return Outcome(
        f"{middle.min():,.0f} to {middle.max():,.0f} samples for T = {T.min():,} to {T.max():,}: "
        f"T^{slope:.2f}, sign right in {share(drift['right'])}",
        verdict(slope >= 0.9 and mostly(drift["right"])),
    )


def scratch_is_flat(transfer: Table) -> Outcome:
    """From scratch, with the sign settled after Stage 1."""
    T, middle = _medians(pick(transfer, overlap=0.0))
    slope = log_slope(T, middle)
    return Outcome(
        f"from scratch {middle.min():,.0f} to {middle.max():,.0f} samples for T = {T.min():,} to {T.max():,}: T^{slope:+.3f}",
        verdict(slope >= 0.5),
        "let noise choose the sign, and read it off the skewness of A afterwards: no poly(T) is needed",
    )


def _medians(table: Table) -> tuple[np.ndarray, np.ndarray]:
    T = np.unique(table["T"])
    return T, np.array([np.median(table["reached"][table["T"] == t]) for t in T])


CLAIMS = (
    Claim(
        "Figure 1, caption",
        "Stage 1 ends at τ = 400, when α_A, α_V ≈ 0.1.",
        "median |α| at step 400 between 0.05 and 0.2",
        "F1",
        ("convergence",),
        signal_after_stage_one,
    ),
    Claim(
        "Section 5.1; Figure 1",
        "After Stage 1 both distances fall faster with the proximal method than with SGD.",
        "both smaller in 90 % of tasks after 1,000 steps, λ = 1e-5",
        "F1",
        ("convergence",),
        proximal_beats_sgd,
    ),
    Claim(
        "Section 5.1; Figure 1",
        "The final solution (the star) recovers the truth.",
        "‖A* − Q‖_μ ≤ 0.05 in 90 % of tasks after 1,000 steps",
        "F1",
        ("signs", "convergence"),
        star_recovers,
    ),
    Claim(
        "Section 5.1; Figure 1",
        "With the smaller η₂' SGD is too slow.",
        "α_A behind the proximal method's in 90 %",
        "F1",
        ("convergence",),
        small_rate_is_slow,
    ),
    Claim(
        "Figure 2; Section 5.2",
        "Softmax and linear attention learn very similar patterns and reach the same loss.",
        "both cosines ≥ 0.95 and losses within 2 % in 90 % of tasks",
        "F2",
        ("softmax",),
        softmax_is_alike,
    ),
    Claim(
        "Appendix I, signals",
        "For SGD, ‖Δ_A‖ keeps growing and dominates the signal.",
        "‖Δ_A‖_μ above |α_A|·√K_Q in 90 % after 1,000 steps",
        "F3",
        ("convergence",),
        sgd_error_dominates,
    ),
    Claim(
        "Appendix I, signals",
        "The proximal method keeps close to the population process.",
        "median ‖Δ_A‖_μ at most half of SGD's",
        "F3",
        ("convergence",),
        proximal_denoises,
    ),
    Claim(
        "Appendix I, signals and last section",
        "The regulariser's bias takes A away again in the end: stop early.",
        "‖A − Q‖_μ ends above its minimum in 90 % of the tasks that got there",
        "F3",
        ("convergence",),
        error_grows_late,
    ),
    Claim(
        "Appendix I, signals",
        "‖Δ_V‖ stays small.",
        "at most 0.1 all the way in 90 %",
        "F3",
        ("convergence",),
        value_error_is_small,
    ),
    Claim(
        "Appendix I, similarity",
        "Normalisation improves the proximal solution further.",
        "‖A* − Q‖_μ below ‖A − Q‖_μ in 90 % after 1,000 steps",
        "F4",
        ("convergence",),
        normalisation_helps,
    ),
    Claim(
        "Appendix I, similarity and convergence",
        "SGD never learns Q, even with normalisation.",
        "‖A* − Q‖_μ above 0.05 in 90 %",
        "F4",
        ("convergence",),
        sgd_star_fails,
    ),
    Claim(
        "Appendix I, similarity",
        "With or without normalisation the proximal method outperforms SGD.",
        "larger cosine of A with Q in 90 %, both ways",
        "F4",
        ("convergence",),
        proximal_similarity,
    ),
    Claim(
        "Appendix I, simulation",
        "At N = 100 and 500, T = 100,000 the proximal method recovers the truth; SGD's error grows.",
        "both distances ≤ 0.05 and SGD's four times as large in 90 %, no divergence at B = 64",
        "F5",
        ("gaussian",),
        simulation_recovers,
    ),
    Claim(
        "Appendix I, simulation",
        "Gaussian noise mimics that of mini-batches.",
        "medians of α and ‖Δ‖ within 10 % of real gradients after the same steps",
        "F5",
        ("prediction",),
        simulation_predicts,
    ),
    Claim(
        "Appendix I, convergence",
        "Larger N (10, 20) behaves alike.",
        "closer than SGD in A, and star within 0.1, in 90 %",
        "F6",
        ("sizes",),
        larger_N,
    ),
    Claim(
        "Section 4; Appendix H",
        "Transfer needs a number of samples that does not depend on T.",
        "exponent in T at most 0.05",
        "F7",
        ("transfer",),
        transfer_is_flat,
    ),
    Claim(
        "Section 4",
        "A small correlation between the tasks is enough.",
        "both distances within ε in 90 % of runs at the smaller overlap",
        "F7",
        ("transfer",),
        small_overlap_transfers,
    ),
    Claim(
        "Section 3.2",
        "Stage 1 needs poly(T) samples for the drift to decide.",
        "simulated; exponent in T at least 0.9 with the sign right in 90 %",
        "F7",
        ("drift",),
        drift_needs_samples,
    ),
    Claim(
        "Section 3.2, conjecture",
        "This poly(T) dependence is unavoidable.",
        "exponent in T at least 0.5 for the best method from scratch that we have",
        "F7",
        ("transfer",),
        scratch_is_flat,
    ),
    Claim(
        "Sections 3.1 and 5.1",
        "The drift guides the process in the right direction.",
        "positive α_A at the end in 95 % of tasks",
        "F8",
        ("signs",),
        sign_is_right,
    ),
)
