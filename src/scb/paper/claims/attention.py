"""Claims about the dynamics of softmax attention, compared with those of the linear model."""

import numpy as np

from scb.jobs.table import Table, groups, pick, values, where
from scb.paper.claims.claim import claim
from scb.paper.numbers import median, middle, over, share
from scb.paper.outcome import Answer, Outcome, above, all_of, at_least, at_most, mostly
from scb.paper.rows import in_ensembles
from scb.paper.slopes import LOGS, log_log_slope

RECIPES = "recipes softmax, paper with λ = 1e-4, sgd; 3,000 steps"


@claim(
    "softmax-step",
    figure="F30",
    says="Softmax, too, has a sample-intensive first stage.",
    quote="there will be a sample-intensive initial stage, and after the model and the target have "
    "a nontrivial correlation, proximal gradient descent/SGD will become much more sample "
    "efficient.",
    where="Section 5.2",
    condition="a learning rate that is not named",
    setting="recipe softmax, B = 64; the step size of W goes like a power of T, or is T² times "
    "that of the linear model at η = 0.01",
    words="until α_A = 0.1: T^{slope:+.2f}; at the largest T {first} samples, {ratio} times those "
    "from 0.1 to 0.8; 0.1 is not reached in {never:share}",
    instead="the step size of W decides whether the first stage grows with T, and how long it is "
    "compared with the rest",
)
def softmax_step(softmax_steps: Table) -> Outcome:
    """Both with the step size of W that needs the fewest samples until α_A = 0.1 at the largest T,
    in the median, and with the paper's own equivalence, T² times the linear model's: these samples
    grow like T^x with x of at least 0.25, and at the largest T they are at least three times those
    from there to α_A = 0.8 in the median run."""
    longest = pick(softmax_steps, T=softmax_steps["T"].max())
    steps = sorted(values(longest, "step"))
    best = min(steps, key=lambda step: median(pick(longest, step=step)["samples_10"]))
    names, cases = {}, {}
    for step in steps:
        rows, last = (pick(table, step=step) for table in (softmax_steps, longest))
        first, later = last["samples_10"], last["samples_80"]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Where a run does not get there, the rest takes longer than all of it
            ratio = np.where(np.isfinite(later), first / (later - first), 0.0)
        names[step] = f"{step}, the best" if step == best else step
        cases[names[step]] = {
            "slope": log_log_slope(rows["T"], rows["samples_10"]),
            "first": middle(first),
            "ratio": middle(ratio),
            "never": share(np.isinf(rows["samples_10"])),
        }
    asked = [cases[names[step]] for step in (best, "equivalent")]
    good = [
        answer
        for case in asked
        for answer in (at_least(case["slope"], LOGS), at_least(case["ratio"], 3))
    ]
    return Outcome.judged(all_of(good), cases=cases)


@claim(
    "softmax-denoises",
    figure="F17",
    says="Softmax roughly ignores positions with little attention.",
    quote="softmax transformers automatically adjust the learning rate according to a_{σ, t} and "
    "roughly ignore those positions with a small attention weight to stabilize the gradients.",
    where="Section 5.2",
    condition="a_σ,1 is a small constant while all other entries are O(1/T)",
    setting="the preconditioner (diag(a) − aaᵀ)² of random a; no run",
    words="entries other than that of the attended position are at most {others:.3f} of the "
    "largest, falling like T^{slope:.2f}",
)
def softmax_ignores(preconditioner: Table) -> Outcome:
    """Beside the entry of the attended position, no entry of softmax's preconditioner is above
    10 % of the largest, and these others fall at least like T^-0.8."""
    rows = where(preconditioner, preconditioner["first"] > 0)
    slope, others = log_log_slope(rows["T"], rows["corrected"]), rows["corrected"].max()
    good = all_of([at_most(slope, -0.8), at_most(others, 0.1)])
    return Outcome.judged(good, slope=slope, others=others)


@claim(
    "softmax-error",
    figure="F17",
    says="Softmax does not keep the error of A below SGD's: it settles on few positions, which are "
    "not always the right ones.",
    where="Section 5.2, at one step size",
    setting=RECIPES,
    words="T^{slope:+.2f}; {error} at T = {T:,.0f}; gets there up to T = {furthest:,.0f}",
    instead="the error is below SGD's",
)
def softmax_error(attention: Table, dirichlet_attention: Table | None = None) -> Outcome:
    """At equal batch, with the step size of its recipe, and at the largest T, softmax's ‖Δ_A‖_μ,
    when α_A passes 0.5, is above SGD's in the median."""
    return in_ensembles(_larger, attention, dirichlet_attention)


def _larger(attention: Table) -> Outcome:
    cases = {}
    for method, rows in groups(attention, "method"):
        there = np.isfinite(rows["delta_50"])
        longest = where(rows, there & (rows["T"] == rows["T"].max()))["delta_50"]
        gets_there = longest.size > 0
        cases[method] = {
            "slope": log_log_slope(rows["T"], rows["delta_50"]),
            "error": middle(longest) if gets_there else None,
            "T": rows["T"].max(),
            "furthest": None if gets_there else rows["T"][there].max(),
        }
    softmax, sgd = cases["softmax"], cases["SGD"]
    good = Answer.UNSURE
    if softmax["error"] is not None and sgd["error"] is not None:
        good = above(over(softmax["error"], sgd["error"]), 1)
    return Outcome.judged(good, cases=cases)


@claim(
    "one-step-equal",
    figure="F17",
    says="Near uniform attention, one step of softmax with T²η equals one step of the linear model "
    "with η.",
    quote="our linear model and softmax transformers are approximately equivalent up to a change "
    "in learning rates.",
    where="Section 5.2",
    condition="the attention pattern is still close to the uniform attention",
    setting="α_V = 0.2, uniform attention",
    words="largest relative difference {error:.1e}",
    control="largest relative difference {large:.2g}",
)
def one_step_is_equal(one_step: Table) -> Outcome:
    """In 90 % of cases the steps of σ(w) with T²η and of a with η on one mini-batch differ by at
    most 5 % of their length for η ≤ 1/T, whatever T is; as a control, η = 10/T."""
    worst = {x: rows["error"].max() for x, rows in groups(one_step, "size")}
    cases = {f"ηT = {x:g}": {"error" if x <= 1 else "large": e} for x, e in worst.items()}
    small = one_step["error"][one_step["size"] <= 1]
    return Outcome.judged(mostly(small <= 0.05), cases=cases, large=None)
