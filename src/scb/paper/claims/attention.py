"""Claims about the dynamics of softmax attention beside those of the linear model."""

from functools import partial

import numpy as np

from scb.jobs.table import Table, pick, values, where
from scb.paper.claims.claim import Claim
from scb.paper.numbers import spread
from scb.paper.outcome import Outcome
from scb.paper.slopes import log_log_slope

RECIPES = "recipes softmax, paper with λ = 1e-4, sgd; 3,000 steps"


@partial(
    Claim,
    "softmax-first-stage",
    figure="F17",
    says="Softmax has a sample-intensive first stage too.",
    quote="there will be a sample-intensive initial stage, and after the model and the target have "
    "a nontrivial correlation, proximal gradient descent/SGD will become much more sample "
    "efficient.",
    where="Section 5.2",
    setting=RECIPES,
    words="until α_A = 0.1: T^{slope:+.2f}; at T = {T:,.0f} {first} samples, over those to 0.8: {ratio}",
    control="proximal: {proximal_first} and {proximal_rest} samples",
)
def softmax_first_stage(attention: Table) -> Outcome:
    """In the median run of softmax at the largest T the samples until α_A = 0.1 are at least three
    times those from there to 0.8, and they grow with T at an exponent of at least 0.3."""
    rows = pick(attention, method="softmax")
    slope = log_log_slope(rows["T"], rows["samples_10"])
    T = rows["T"].max()
    longest, linear = (pick(attention, method=name, T=T) for name in ("softmax", "proximal"))
    first = longest["samples_10"]
    there = np.isfinite(longest["samples_80"])
    # where the run does not get there, the rest takes longer than all of it
    ratio = np.zeros(len(first))
    ratio[there] = first[there] / (longest["samples_80"] - first)[there]
    return Outcome.judged(
        np.median(ratio) >= 3 and slope.estimate >= 0.3,
        slope=slope,
        T=T,
        first=spread(first),
        ratio=spread(ratio),
        proximal_first=spread(linear["samples_10"]),
        proximal_rest=spread(linear["samples_80"] - linear["samples_10"]),
    )


@partial(
    Claim,
    "softmax-denoises",
    figure="F17",
    says="Softmax ignores positions of little attention, as ℓ₁ does, and so keeps the error of A small.",
    quote="softmax transformers automatically adjust the learning rate according to a_{σ, t} and "
    "roughly ignore those positions with a small attention weight to stabilize the gradients.",
    where="Section 5.2",
    condition="a nontrivial correlation between a_σ and q",
    setting=RECIPES,
    words="T^{slope:+.2f}; {error:.2g} at T = {T:,.0f}; gets there up to T = {furthest:,.0f}",
    instead="with its step size it is larger than SGD's at every T: softmax settles on few positions, not always the right ones",
)
def softmax_denoises(attention: Table) -> Outcome:
    """At equal batch ‖Δ_A‖_μ, when α_A passes 0.5, grows with T at an exponent of at most 0.25 for
    softmax, where SGD's grows at 0.35 or more; and at the largest T it is below SGD's in the
    median."""
    cases = {}
    for method in values(attention, "method"):
        rows = pick(attention, method=method)
        there = np.isfinite(rows["delta_50"])
        longest = where(rows, there & (rows["T"] == rows["T"].max()))["delta_50"]
        gets_there = longest.size > 0
        cases[method] = {
            "slope": log_log_slope(rows["T"], rows["delta_50"]),
            "error": np.median(longest) if gets_there else None,
            "T": rows["T"].max(),
            "furthest": None if gets_there else rows["T"][there].max(),
        }
    softmax, sgd = cases["softmax"], cases["SGD"]
    flat = softmax["slope"].estimate <= 0.25 and sgd["slope"].estimate >= 0.35
    smaller = None not in (softmax["error"], sgd["error"]) and softmax["error"] <= sgd["error"]
    return Outcome.judged(flat and smaller, cases=cases)


@partial(
    Claim,
    "one-step-equal",
    figure="F17",
    says="Near uniform attention one step of softmax with T²η is one of the linear model with η.",
    quote="our linear model and softmax transformers are approximately equivalent up to a change in learning rates.",
    where="Section 5.2",
    condition="the attention pattern is still close to the uniform attention",
    setting="α_V = 0.2, uniform attention",
    words="largest relative difference {error:.1e}",
    control="largest relative difference {large:.2g}",
)
def one_step_is_equal(one_step: Table) -> Outcome:
    """The steps of σ(w) with T²η and of a with η on one mini-batch differ by at most 5 % of their
    length for η ≤ 1/T, whatever T is; as a control, η = 10/T."""
    worst = {x: pick(one_step, size=x)["error"].max() for x in values(one_step, "size")}
    cases = {f"ηT = {x:g}": {"error" if x <= 1 else "large": e} for x, e in worst.items()}
    good = max(e for x, e in worst.items() if x <= 1) <= 0.05
    return Outcome.judged(good, cases=cases, large=None)
