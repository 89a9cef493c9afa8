"""Claims about the softmax transformer and about the Gaussian simulation."""

import numpy as np

from scb.jobs.table import Table, at, pick, values
from scb.paper.claims.claim import CLOSE, Outcome, beside, ends, mostly, share, spread, verdict


def softmax_is_alike(softmax: Table) -> Outcome:
    """Both cosines ≥ 0.95 and losses within 2 % in 90 % of tasks."""
    soft, linear = (at(pick(softmax, model=model)) for model in ("softmax", "linear"))
    alike = [np.minimum(soft[name], linear[name]) for name in ("sim_A", "sim_V")]
    difference = np.abs(soft["loss"] / linear["loss"] - 1)
    return Outcome(
        f"smaller cosine with Q {spread(alike[0])}, with P {spread(alike[1])}; losses differ by {spread(100 * difference, 2)} %",
        verdict(mostly(alike[0] >= 0.95) and mostly(alike[1] >= 0.95) and mostly(difference <= 0.02)),
    )


def simulation_recovers(gaussian: Table) -> Outcome:
    """Both distances ≤ 0.05 and SGD's four times as large in 90 %, no divergence at B = 64."""
    parts, good, small = [], [], []
    for N in values(gaussian, "N"):
        batch = int(gaussian["batch_size"][gaussian["N"] == N].max())
        mine = pick(gaussian, N=N, batch_size=batch)
        ours, theirs = ends(mine, None, "proximal", "SGD")
        good.append((ours["dist_A"] <= CLOSE) & (ours["dist_V"] <= CLOSE) & (theirs["dist_A"] > 4 * ours["dist_A"]))
        small.append(~np.isfinite(at(pick(gaussian, N=N, method="SGD", batch_size=64))["dist_A"]))
        parts.append(f"N = {N}: ‖A − Q‖ {spread(ours['dist_A'], 2)}, SGD {spread(theirs['dist_A'], 2)} at B = {batch:,}")
    all_good = np.concatenate(good)
    diverged = np.concatenate(small)
    return Outcome(
        f"{'; '.join(parts)}; SGD at B = 64 diverges in {share(diverged)}",
        verdict(mostly(all_good) and not diverged.any(), mostly(all_good)),
        "the batch has to be large: with 64 samples the simulated dynamics diverges at these sizes",
    )


def simulation_predicts(prediction: Table) -> Outcome:
    """Medians of α and ‖Δ‖ within 10 % of real gradients after the same steps."""
    errors = {}
    for lam in sorted(values(prediction, "lam")):
        real, guess = (at(pick(prediction, lam=lam, gradients=kind)) for kind in ("real", "simulated"))
        name = "SGD" if lam == 0 else f"λ = {lam:.0e}"
        errors[name] = {
            column: float(np.median(guess[column]) / np.median(real[column]) - 1)
            for column in ("alpha_A", "alpha_V", "delta_A", "delta_V")
        }
    text = "; ".join(
        f"{name}: α_A {e['alpha_A']:+.1%}, ‖Δ_A‖ {e['delta_A']:+.1%}, ‖Δ_V‖ {e['delta_V']:+.1%}" for name, e in errors.items()
    )
    good = {name: max(abs(x) for x in e.values()) <= 0.1 for name, e in errors.items()}
    return Outcome(
        text,
        verdict(all(good.values()), good.get("SGD", False)),
        "for SGD; the noise of a column that few samples touch has heavier tails, and more of it passes λ than the Gaussian says",
    )


CLAIMS = (
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
