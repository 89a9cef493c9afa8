"""Claims about training: by the paper's methods, in its figures and captions; by the softmax; and simulated."""

import numpy as np

from scb.jobs.table import Table, at, pick, values
from scb.paper.claims.claim import CLOSE, Outcome, beside, ends, mostly, share, spread, verdict

END = 1000  # steps of the paper's experiment


def signal_after_stage_one(convergence: Table) -> Outcome:
    """Median |α| at step 400 between 0.05 and 0.2."""
    (end,) = ends(convergence, 400, "proximal")
    size = (np.abs(end["alpha_A"]) + np.abs(end["alpha_V"])) / 2
    measured = f"|α| at step 400: {spread(size, 2)}"
    note = "the signal is smaller, and differs from task to task"
    return Outcome(measured, verdict(0.05 <= np.median(size) <= 0.2), note)


def sign_is_right(signs: Table) -> Outcome:
    """Positive α_A at the end in 95 % of tasks."""
    literal, settled = ends(signs, None, "literal", "proximal")
    measured = f"negative in {share(literal['alpha_A'] < 0)} as printed, in {share(settled['alpha_A'] < 0)} with the sign settled"
    note = "noise decides the sign at B = 64; going over to the mirror image where A is skewed to the left repairs it"
    return Outcome(measured, verdict(mostly(literal["alpha_A"] > 0, 0.95), mostly(settled["alpha_A"] > 0, 0.95)), note)


def proximal_beats_sgd(convergence: Table) -> Outcome:
    """Both smaller in 90 % of tasks after 1,000 steps, λ = 1e-5."""
    results = []
    for method, step in (("proximal", END), ("proximal, larger λ", None)):
        ours, theirs = ends(convergence, step, method, "SGD")
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
    """‖A* − Q‖_μ ≤ 0.05 in 90 % of tasks after 1,000 steps."""
    last = (*ends(signs, END, "literal", "proximal"), *ends(convergence, None, "proximal"))
    letter, settled, late = (end["dist_A_star"] <= CLOSE for end in last)
    return Outcome(
        f"‖A* − Q‖ ≤ {CLOSE} in {share(letter)} as printed, in {share(settled)} with the sign settled after {END:,} steps, "
        f"in {share(late)} after {int(convergence['step'].max()):,}",
        verdict(mostly(letter), mostly(late)),
        "settle the sign; and slow tasks need more than 1,000 steps",
    )


def small_rate_is_slow(convergence: Table) -> Outcome:
    """α_A behind the proximal method's in 90 %."""
    slow, ours = (end["alpha_A"] for end in ends(convergence, END, "SGD, small η₂'", "proximal"))
    measured = f"α_A after {END:,} steps {spread(slow, 2)}, proximal {spread(ours, 2)}; behind in {share(slow < ours)}"
    return Outcome(measured, verdict(mostly(slow < ours)))


def sgd_error_dominates(convergence: Table) -> Outcome:
    """‖Δ_A‖_μ above |α_A|·√K_Q in 90 % after 1,000 steps."""
    early, late = (*ends(convergence, END, "SGD"), *ends(convergence, None, "SGD"))
    over = [end["delta_A"] > np.abs(end["alpha_A"]) * np.sqrt(end["K_Q"]) for end in (early, late)]
    ratio = early["delta_A"] / (np.abs(early["alpha_A"]) * np.sqrt(early["K_Q"]))
    measured = f"‖Δ_A‖ over signal {spread(ratio, 2)} after {END:,} steps; above 1 in {share(over[0])}, later in {share(over[1])}"
    note = "it grows with the signal and stays of its size, mostly below it"
    return Outcome(measured, verdict(mostly(over[0])), note)


def proximal_denoises(convergence: Table) -> Outcome:
    """Median ‖Δ_A‖_μ at most half of SGD's."""
    sgd, small, large = ends(convergence, END, "SGD", "proximal", "proximal, larger λ")
    ratios = [end["delta_A"] / sgd["delta_A"] for end in (small, large)]
    measured = f"‖Δ_A‖ over that of SGD: {spread(ratios[0], 2)} with λ = 1e-5, {spread(ratios[1], 2)} with 1e-4"
    note = "λ = 1e-4; 1e-5 is below the noise of one entry in one step"
    return Outcome(measured, verdict(np.median(ratios[0]) <= 0.5, np.median(ratios[1]) <= 0.5), note)


def error_grows_late(convergence: Table) -> Outcome:
    """‖A − Q‖_μ ends above its minimum in 90 % of the tasks that got there."""
    rows = pick(convergence, method="proximal")
    helped = []
    for i in np.unique(rows["replicate"]):
        run = pick(rows, replicate=i)
        if run["alpha_A"].max() >= 1:  # else it has not got there yet
            helped.append(run["dist_A"][-1] > run["dist_A"].min() + 0.01)
    measured = f"‖A − Q‖ ends above its minimum in {share(helped)} tasks whose α_A has passed 1"
    return Outcome(measured, verdict(mostly(helped)), "" if helped else "no run has come that far")


def value_error_is_small(convergence: Table) -> Outcome:
    """At most 0.1 all the way in 90 %."""
    rows = pick(convergence, method="proximal")
    worst = np.array([pick(rows, replicate=i)["delta_V"].max() for i in np.unique(rows["replicate"])])
    return Outcome(f"largest on the way {spread(worst, 2)}", verdict(mostly(worst <= 0.1)))


def normalisation_helps(convergence: Table) -> Outcome:
    """‖A* − Q‖_μ below ‖A − Q‖_μ in 90 % after 1,000 steps."""
    early, late = (*ends(convergence, END, "proximal"), *ends(convergence, None, "proximal"))
    better = [end["dist_A_star"] < end["dist_A"] for end in (early, late)]
    measured = f"closer after it in {share(better[0])} after {END:,} steps, {share(better[1])} at the end"
    note = "once the signal has passed the threshold"
    return Outcome(measured, verdict(mostly(better[0]), mostly(better[1])), note)


def sgd_star_fails(convergence: Table) -> Outcome:
    """‖A* − Q‖_μ above 0.05 in 90 %."""
    early, late = (*ends(convergence, END, "SGD"), *ends(convergence, None, "SGD"))
    good = [end["dist_A_star"] <= CLOSE for end in (early, late)]
    measured = f"‖A* − Q‖ ≤ {CLOSE} for SGD in {share(good[0])} after {END:,} steps, {share(good[1])} at the end"
    note = "normalised SGD finds Q as well, as soon as its signal has passed the threshold; its V stays off"
    return Outcome(measured, verdict(mostly(~good[0]) and mostly(~good[1])), note)


def proximal_similarity(convergence: Table) -> Outcome:
    """Larger cosine of A with Q in 90 %, both ways."""
    ours, theirs = ends(convergence, END, "proximal", "SGD")
    before, after = ours["sim_A"] > theirs["sim_A"], ours["sim_A_star"] > theirs["sim_A_star"]
    measured = f"more similar in {share(before)} before, {share(after)} after normalisation"
    note = "before normalisation only; after it the two are alike"
    return Outcome(measured, verdict(mostly(before) and mostly(after), mostly(before)), note)


def larger_N(sizes: Table) -> Outcome:
    """Closer than SGD in A, and star within 0.1, in 90 %."""
    parts, beats, stars = [], [], []
    for N in values(sizes, "N"):
        ours, theirs = ends(pick(sizes, N=N), None, "proximal", "SGD")
        beats.append(ours["dist_A"] < theirs["dist_A"])
        stars.append(ours["dist_A_star"] <= 2 * CLOSE)
        parts.append(f"N = {N}: closer than SGD {share(beats[-1])}, star within {2 * CLOSE} {share(stars[-1])}")
    ahead = mostly(np.concatenate(beats))
    found = mostly(np.concatenate(stars))
    return Outcome("; ".join(parts), verdict(ahead and found, ahead), "on slow tasks 1,000 steps are too few for either method")


def softmax_is_alike(softmax: Table) -> Outcome:
    """Both cosines ≥ 0.95 and losses within 2 % in 90 % of tasks."""
    soft, linear = (at(pick(softmax, model=model)) for model in ("softmax", "linear"))
    with_Q, with_P = (np.minimum(soft[name], linear[name]) for name in ("sim_A", "sim_V"))
    differ = np.abs(soft["loss"] / linear["loss"] - 1)
    measured = f"smaller cosine with Q {spread(with_Q)}, with P {spread(with_P)}; losses differ by {spread(100 * differ, 2)} %"
    return Outcome(measured, verdict(mostly(with_Q >= 0.95) and mostly(with_P >= 0.95) and mostly(differ <= 0.02)))


def simulation_recovers(gaussian: Table) -> Outcome:
    """Both distances ≤ 0.05 and SGD's four times as large in 90 %, no divergence at B = 64."""
    parts = []
    recovered = []
    diverged = []
    for N in values(gaussian, "N"):
        batch = int(gaussian["batch_size"][gaussian["N"] == N].max())
        ours, theirs = ends(pick(gaussian, N=N, batch_size=batch), None, "proximal", "SGD")
        recovered.append((ours["dist_A"] <= CLOSE) & (ours["dist_V"] <= CLOSE) & (theirs["dist_A"] > 4 * ours["dist_A"]))
        diverged.append(~np.isfinite(at(pick(gaussian, N=N, method="SGD", batch_size=64))["dist_A"]))
        parts.append(f"N = {N}: ‖A − Q‖ {spread(ours['dist_A'], 2)}, SGD {spread(theirs['dist_A'], 2)} at B = {batch:,}")
    good = mostly(np.concatenate(recovered))
    measured = f"{'; '.join(parts)}; SGD at B = 64 diverges in {share(np.concatenate(diverged))}"
    note = "the batch has to be large: with 64 samples the simulated dynamics diverges at these sizes"
    return Outcome(measured, verdict(good and not np.any(diverged), good), note)


def simulation_predicts(prediction: Table) -> Outcome:
    """Medians of α and ‖Δ‖ within 10 % of real gradients after the same steps."""
    errors: dict[str, dict[str, float]] = {}
    for lam in sorted(values(prediction, "lam")):
        real, guess = (at(pick(prediction, lam=lam, gradients=kind)) for kind in ("real", "simulated"))
        columns = ("alpha_A", "alpha_V", "delta_A", "delta_V")
        error = {column: np.median(guess[column]) / np.median(real[column]) - 1 for column in columns}
        errors["SGD" if lam == 0 else f"λ = {lam:.0e}"] = error
    text = "α_A {alpha_A:+.1%}, ‖Δ_A‖ {delta_A:+.1%}, ‖Δ_V‖ {delta_V:+.1%}"
    good = {name: max(map(abs, error.values())) <= 0.1 for name, error in errors.items()}
    measured = "; ".join(f"{name}: {text.format(**error)}" for name, error in errors.items())
    note = "for SGD; the noise of a column that few samples touch has heavier tails, and more of it passes λ than the Gaussian says"
    return Outcome(measured, verdict(all(good.values()), good.get("SGD", False)), note)


CLAIMS = (
    *beside(
        "F1",
        ("Figure 1, caption", "Stage 1 ends at τ = 400, when α_A, α_V ≈ 0.1.", signal_after_stage_one),
        (
            "Section 5.1; Figure 1",
            "After Stage 1 both distances fall faster with the proximal method than with SGD.",
            proximal_beats_sgd,
        ),
        ("Section 5.1; Figure 1", "The final solution (the star) recovers the truth.", star_recovers),
        ("Section 5.1; Figure 1", "With the smaller η₂' SGD is too slow.", small_rate_is_slow),
    ),
    *beside(
        "F3",
        ("Appendix I, signals", "For SGD, ‖Δ_A‖ keeps growing and dominates the signal.", sgd_error_dominates),
        ("Appendix I, signals", "The proximal method keeps close to the population process.", proximal_denoises),
        (
            "Appendix I, signals and last section",
            "The regulariser's bias takes A away again in the end: stop early.",
            error_grows_late,
        ),
        ("Appendix I, signals", "‖Δ_V‖ stays small.", value_error_is_small),
    ),
    *beside(
        "F4",
        ("Appendix I, similarity", "Normalisation improves the proximal solution further.", normalisation_helps),
        ("Appendix I, similarity and convergence", "SGD never learns Q, even with normalisation.", sgd_star_fails),
        ("Appendix I, similarity", "With or without normalisation the proximal method outperforms SGD.", proximal_similarity),
    ),
    *beside("F6", ("Appendix I, convergence", "Larger N (10, 20) behaves alike.", larger_N)),
    *beside("F8", ("Sections 3.1 and 5.1", "The drift guides the process in the right direction.", sign_is_right)),
    *beside(
        "F2",
        (
            "Figure 2; Section 5.2",
            "Softmax and linear attention learn very similar patterns and reach the same loss.",
            softmax_is_alike,
        ),
    ),
    *beside(
        "F5",
        (
            "Appendix I, simulation",
            "At N = 100 and 500, T = 100,000 the proximal method recovers the truth; SGD's error grows.",
            simulation_recovers,
        ),
        ("Appendix I, simulation", "Gaussian noise mimics that of mini-batches.", simulation_predicts),
    ),
)
