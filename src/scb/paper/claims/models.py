"""Claims about the softmax transformer beside the linear one, and about the simulation with
Gaussian noise."""

from functools import partial

import numpy as np

from scb.jobs.table import Table, at, pick, values
from scb.paper.claims.claim import Claim, ends
from scb.paper.numbers import CLOSE, share, spread
from scb.paper.outcome import Outcome


@partial(
    Claim,
    "softmax-alike",
    figure="F2",
    says="Softmax and linear attention learn very similar patterns and reach the same loss.",
    quote="The attention pattern and the value matrix (learned transition matrix) are very similar "
    "(left two plots) and they converge to approximately the same loss (right plot).",
    where="Section 5.2, Figure 2, caption",
    condition="T=50, N=10, Q=2",
    setting="sparsity 2; the linear transformer by the tuned recipe, the softmax by SGD",
    words="on {good:share}; smaller cosine with Q {with_Q:3}, with P {with_P:3}; losses differ by {differ} %",
)
def softmax_is_alike(softmax: Table) -> Outcome:
    """On every task both transformers reach cosines of at least 0.95 with Q and with P, and losses
    within 2 % of each other."""
    soft, linear = (at(pick(softmax, model=model)) for model in ("softmax", "linear"))
    with_Q, with_P = (np.minimum(soft[name], linear[name]) for name in ("sim_A", "sim_V"))
    differ = np.abs(soft["loss"] / linear["loss"] - 1)
    good = (with_Q >= 0.95) & (with_P >= 0.95) & (differ <= 0.02)
    return Outcome.judged(
        all(good),
        good=share(good),
        with_Q=spread(with_Q),
        with_P=spread(with_P),
        differ=spread(100 * differ),
    )


@partial(
    Claim,
    "simulation-recovers",
    figure="F5",
    says="At N = 100 and 500, T = 100,000 the proximal method recovers the truth; SGD's error grows.",
    quote="when T = 100000, N =100/500, our ℓ₁ regularized algorithm can recover the ground-truth "
    "since the distance to the population trajectory (Δ_A,Δ_V) stays very small, while the error "
    "along SGD trajectories quickly increases with the same batch size.",
    where="Appendix I, figure of the simulation, caption",
    condition="Gaussian noise in place of that of the batch; the batch is not named",
    setting="sparsity 2, η = 0.02 for 600 steps, 0.01 for 400, λ at 4.5 standard deviations of an entry's noise, sign resolved",
    words="on {close:share}; ‖A − Q‖ {ours}, SGD {sgd}",
    instead="the paper does not name the batch; ours is large",
)
def simulation_recovers(gaussian: Table) -> Outcome:
    """On every task, for each N: both distances end within 0.05, and SGD's ‖A − Q‖_μ at the same
    batch is four times larger."""
    cases = {}
    for N in values(gaussian, "N"):
        mine = pick(gaussian, N=N)
        ours, sgd = ends(mine, None, "proximal", "SGD")
        close = (ours["dist_A"] <= CLOSE) & (ours["dist_V"] <= CLOSE)
        cases[f"N = {N}, B = {int(mine['batch_size'].max()):,}"] = {
            "close": share(close & (sgd["dist_A"] > 4 * ours["dist_A"])),
            "ours": spread(ours["dist_A"]),
            "sgd": spread(sgd["dist_A"]),
        }
    return Outcome.judged(all(case["close"].estimate == 1 for case in cases.values()), cases=cases)


@partial(
    Claim,
    "simulation-predicts",
    figure="F5",
    says="Gaussian noise mimics that of mini-batches.",
    quote="do SGD simulation by combining our population gradient + Gaussian noise (to mimic the batch gradient noise)",
    where="Appendix I",
    condition="N≤ 500, T≤ 100000",
    setting="sparsity 2; 30 steps of η = 0.008 from α_V = α_A = 0.3",
    words="α_A {alpha_A:+.1%}, ‖Δ_A‖ {delta_A:+.1%}, ‖Δ_V‖ {delta_V:+.1%}",
    change="for SGD; the noise of a column that few samples touch has heavier tails, and more of "
    "it passes λ than the Gaussian says",
)
def simulation_predicts(prediction: Table) -> Outcome:
    """The medians of α and ‖Δ‖ lie within 10 % of those of real gradients after the same steps, for
    SGD and for λ > 0."""
    errors: dict[str, dict[str, float]] = {}
    for lam in sorted(values(prediction, "lam")):
        both = (pick(prediction, lam=lam, gradients=kind) for kind in ("real", "simulated"))
        real, guess = map(at, both)
        columns = ("alpha_A", "alpha_V", "delta_A", "delta_V")
        errors["SGD" if lam == 0 else f"λ = {lam:.0e}"] = {
            column: float(np.median(guess[column]) / np.median(real[column]) - 1)
            for column in columns
        }
    good = {name: max(map(abs, error.values())) <= 0.1 for name, error in errors.items()}
    return Outcome.judged(all(good.values()), good.get("SGD", False), cases=errors)
