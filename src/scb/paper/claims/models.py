"""Claims about the softmax transformer compared with the linear one, about the simulation with
Gaussian noise, and about larger N."""

import numpy as np

from scb.jobs.table import Table, at, groups, pick, where
from scb.paper.claims.claim import LITERAL, TUNED, claim
from scb.paper.numbers import CLOSE, average, share, spread
from scb.paper.outcome import Answer, Outcome, all_of, between, mostly
from scb.paper.rows import ends


@claim(
    "softmax-alike",
    figure="F2",
    says="Softmax and linear attention learn very similar patterns and reach the same loss.",
    quote="The attention pattern and the value matrix (learned transition matrix) are very similar "
    "(left two plots) and they converge to approximately the same loss (right plot).",
    where="Section 5.2, Figure 2, caption",
    condition="T=50, N=10, Q=2",
    setting=f"sparsity 2; the linear transformer by {TUNED}, the softmax by SGD",
    words="in {good:share}; smaller cosine with Q {with_Q:3}, with P {with_P:3}; losses differ by "
    "{differ} %",
)
def softmax_is_alike(softmax: Table) -> Outcome:
    """In 90 % of tasks both transformers reach cosines of at least 0.95 with Q and with P, and
    losses within 2 % of each other."""
    soft, linear = (at(pick(softmax, model=model)) for model in ("softmax", "linear"))
    with_Q, with_P = (np.minimum(soft[name], linear[name]) for name in ("sim_A", "sim_V"))
    differ = np.abs(soft["loss"] / linear["loss"] - 1)
    good = (with_Q >= 0.95) & (with_P >= 0.95) & (differ <= 0.02)
    return Outcome.judged(
        mostly(good),
        good=share(good),
        with_Q=spread(with_Q),
        with_P=spread(with_P),
        differ=spread(100 * differ),
    )


@claim(
    "simulation-recovers",
    figure="F5",
    says="At N = 100 and 500 with T = 100,000, the proximal method recovers the truth, whereas "
    "SGD's error grows.",
    quote="when T = 100000, N =100/500, our ℓ₁ regularized algorithm can recover the ground-truth "
    "since the distance to the population trajectory (Δ_A,Δ_V) stays very small, while the error "
    "along SGD trajectories quickly increases with the same batch size.",
    where="Appendix I, figure of the simulation, caption",
    condition="Gaussian noise in place of that of the batch",
    setting="batches, λ and step sizes are our choice, and it was not run at the {64, 128, 256} of "
    "the paper's other runs; sparsity 2, η = 0.02 for 600 steps, 0.01 for 400, λ at 4.5 standard "
    "deviations of an entry's noise, sign resolved; paper's projector, Stage 2 centred",
    words="holds in {close:share}; ‖A − Q‖ {ours}, SGD {sgd}; after Stage 1 ‖Δ_A‖ is at most "
    "{delta_A}, SGD's ends at {sgd_delta}; ‖Δ_V‖ is at most {delta_V}",
    change="the paper names no batch, λ or step size for the simulation; with our own, tuned "
    "values and with the sign resolved",
    instead="with our own, tuned values of batch, λ and step size and with the sign resolved, it "
    "does not hold either",
)
def simulation_recovers(gaussian: Table) -> Outcome:
    """With the change, in 90 % of tasks, for each N: both distances end within 0.05, after Stage 1
    ‖Δ_A‖_μ and ‖Δ_V‖_μ stay at or below 0.05, and SGD's ‖Δ_A‖_μ at the same batch ends four times
    larger. As printed it cannot be run: the batch, λ and the step size are not named."""
    cases = {}
    good = []
    for N, mine in groups(gaussian, "N"):
        ours, sgd = ends(mine, None, "proximal", "SGD")
        later = where(mine, (mine["method"] == "proximal") & (mine["stage"] > 1))
        worst = {
            layer: np.array(
                [later[f"delta_{layer}"][later["replicate"] == i].max() for i in ours["replicate"]]
            )
            for layer in "AV"
        }
        found = (ours["dist_A"], ours["dist_V"], worst["A"], worst["V"])
        close = np.max(found, axis=0) <= CLOSE
        close &= sgd["delta_A"] > 4 * ours["delta_A"]
        good.append(mostly(close))
        cases[f"N = {N}, B = {int(mine['batch_size'].max()):,}"] = {
            "close": share(close),
            "ours": spread(ours["dist_A"]),
            "sgd": spread(sgd["dist_A"]),
            "delta_A": spread(worst["A"]),
            "delta_V": spread(worst["V"]),
            "sgd_delta": spread(sgd["delta_A"]),
        }
    return Outcome.judged(Answer.NO, all_of(good), cases=cases)


@claim(
    "simulation-predicts",
    figure="F5",
    says="Gaussian noise mimics the noise of mini-batches.",
    quote=(
        "do SGD simulation by combining our population gradient + Gaussian noise (to mimic the "
        "batch gradient noise)"
    ),
    where="Appendix I",
    condition="N≤ 500, T≤ 100000",
    setting=f"sparsity 2; 30 steps of η = 0.008 from α_V = α_A = 0.3; {LITERAL}",
    words="real gradients over simulated, the mean: α_A {alpha_A:.3f}, α_V {alpha_V:.3f}, ‖Δ_A‖ "
    "{delta_A:.3f}, ‖Δ_V‖ {delta_V:.3f}",
    change="for SGD; the noise of a column that few samples touch has heavier tails than Gaussian "
    "noise, and more of it passes λ",
)
def simulation_predicts(prediction: Table) -> Outcome:
    """For SGD and for λ > 0, α and ‖Δ‖ of the simulation are those of real gradients on the same
    tasks after the same steps, to 10 % in the mean."""
    cases = {}
    for lam, mine in groups(prediction, "lam"):
        real, guess = (at(pick(mine, gradients=kind)) for kind in ("real", "simulated"))
        cases["SGD" if lam == 0 else f"λ = {lam:.0e}"] = {
            column: average(real[column] / guess[column])
            for column in ("alpha_A", "alpha_V", "delta_A", "delta_V")
        }
    good = {
        name: all_of(between(ratio, 0.9, 1.1) for ratio in case.values())
        for name, case in cases.items()
    }
    return Outcome.judged(all_of(good.values()), good.get("SGD", Answer.NO), cases=cases)


@claim(
    "larger-n",
    figure="F6",
    says="At N = 10 and 20, the star recovers the truth, whereas SGD struggles.",
    quote="It shows that when gradient noise is large, ℓ₁ regularized algorithm with normalization "
    "and early-stopping can almost perfectly recover the ground-truth (the star), while SGD "
    "struggles to learn the target function.",
    where="Appendix I, last figure, caption",
    condition='N = 3, 10, 20; "The batch size can be chosen from standard {64, 128, 256}"; '
    "gradient "
    "noise is large",
    setting="N = 10 and B = 64 up to step 3,000, stopped, with knowledge of Q, at the best of 6 "
    "steps; the others up to 1,000; sparsity 2, η = 0.01 for 400 steps, then 0.005, λ = 1e-5; the "
    f"sign is not resolved; {LITERAL}",
    words="star {star:share} of all, {star_right:share} where the sign is right; SGD's star misses "
    "in {misses:share} of all, {misses_right:share} where the sign is right",
    change="resolve the sign",
    instead="given the right sign, SGD's star recovers the truth where the proximal star does",
    control="after 1,000 steps: star {early:share}, where the sign is right {early_right:share}",
)
def larger_N_alike(early_stopping: Table, larger_N: Table | None = None) -> Outcome:
    """Stopped at the best of 6 steps up to 3,000, the normalised A is within 0.05 of Q in 90 % of
    tasks, and SGD's, stopped likewise, is not in 90 %; with the change, of those in which the sign
    is right."""
    best, right = {}, {}
    for method in ("proximal", "SGD"):
        rows = pick(early_stopping, method=method)
        best[method] = np.array([run["dist_A_star"].min() for _, run in groups(rows, "replicate")])
        right[method] = at(rows)["alpha_A"] > 0
    star, misses = best["proximal"] <= CLOSE, best["SGD"] > CLOSE
    cases = {}
    if larger_N is not None:
        for N, batch, runs in groups(larger_N, "N", "batch_size"):
            (end,) = ends(runs, 1000, "proximal")
            early, right_now = end["dist_A_star"] <= CLOSE, end["alpha_A"] > 0
            numbers = {"early": share(early), "early_right": share(early[right_now])}
            cases[f"N = {N}, B = {batch}"] = numbers
    return Outcome.judged(
        all_of([mostly(star), mostly(misses)]),
        all_of([mostly(star[right["proximal"]]), mostly(misses[right["SGD"]])]),
        cases=cases,
        star=share(star),
        star_right=share(star[right["proximal"]]),
        misses=share(misses),
        misses_right=share(misses[right["SGD"]]),
        **({} if cases else {"early": None, "early_right": None}),
    )
