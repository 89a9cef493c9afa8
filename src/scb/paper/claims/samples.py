"""Claims about the number of samples, from scratch and transferred; and the paper's open
questions, as ours."""

from functools import partial

import numpy as np

from scb.jobs.table import Table, by_value, pick, values, where
from scb.paper.claims.claim import Claim, joined
from scb.paper.numbers import CLOSE, Number, log_slope, median, mostly, share, span, spread
from scb.paper.outcome import Outcome

CORRELATED = "P̂ and P share μ, and ⟨P̂, P⟩_μ − ‖μ‖² ≥ ‖μ‖²"


@partial(
    Claim,
    "transfer-flat",
    figure="F7",
    says="Transfer needs a number of samples that does not depend on T.",
    quote="Then, running Algorithm from Stage 2 allows us to recover (P, Q) to ε-accuracy with "
    "high probability with poly(N, Q, 1/ε, log T) samples.",
    where="Section 4, theorem",
    condition=CORRELATED,
    setting="V̂ = P̂ of the related task",
    words="{samples:to ,.0f} samples for T = {T:to ,.0f}, T^{slope:+.3f}",
)
def transfer_is_flat(transfer: Table) -> Outcome:
    """For each overlap the median number of samples until both distances are ε goes like T^x with
    |x| ≤ 0.05."""
    cases = {}
    for overlap in values(transfer, "overlap"):
        if overlap:
            T, samples = by_value(pick(transfer, overlap=overlap), "T", "reached")
            numbers = {"samples": span(samples), "T": span(T), "slope": log_slope(T, samples)}
            cases[f"overlap {overlap:g}"] = numbers
    return Outcome.judged(all(abs(case["slope"]) <= 0.05 for case in cases.values()), cases=cases)


@partial(
    Claim,
    "small-overlap",
    figure="F20",
    says="A small correlation between the tasks is enough.",
    quote="as long as there is a (potentially small) nontrivial correlation between the "
    "pretraining and downstream tasks, the pretrained model can be used to provide a nonzero "
    "initial signal, allowing us to bypass the initial sample-intensive signal-boosting stage.",
    where="Section 4",
    condition=CORRELATED,
    setting="V̂ trained by the tuned recipe on the related task, θ = 1/2",
    words="in {learned:share} runs; ‖μ‖²/K_P {bound}",
    control="{below:share} below the bound",
)
def small_overlap_transfers(overlaps: Table) -> Outcome:
    """With θ = 1/2, both distances end within 0.05 in 90 % of the runs whose overlap is at least
    ‖μ‖²/K_P, as the paper asks."""
    half = pick(overlaps, theta=0.5)
    learned = half["learned"].astype(bool)
    allowed = half["overlap"] >= half["bound"]
    cases = {}
    for overlap in sorted(values(where(half, ~allowed), "overlap"), reverse=True):
        below = learned[~allowed & (half["overlap"] == overlap)]
        cases[f"overlap {overlap:g}"] = {"below": share(below)}
    return Outcome.judged(
        mostly(learned[allowed]),
        cases=cases,
        learned=share(learned[allowed]),
        bound=spread(half["bound"]),
        **({} if cases else {"below": None}),
    )


@partial(
    Claim,
    "poly-t-unavoidable",
    figure="F7",
    says="This poly(T) dependence is unavoidable.",
    quote="We conjecture that this poly(T) dependence is unavoidable (when only a polynomial "
    "amount of computing time is available).",
    where="Section 3.2",
    condition="any method of polynomial time; a conjecture",
    words="from scratch {samples:to ,.0f} samples for T = {T:to ,.0f}: T^{slope:+.3f}",
    instead="Algorithm 1 as printed needs it; where noise may choose the sign, which the skewness "
    "of A tells afterwards, it is gone",
)
def scratch_is_flat(transfer: Table) -> Outcome:
    """By the best method from scratch that we have, the median number of samples until ε goes like
    T^x with x ≥ 0.5."""
    T, samples = by_value(pick(transfer, overlap=0.0), "T", "reached")
    slope = log_slope(T, samples)
    return Outcome.judged(slope >= 0.5, samples=span(samples), T=span(T), slope=slope)


@partial(
    Claim,
    "trained-transfer",
    figure="F20",
    says="Transfer works with a trained V̂ at other sizes, sparsities and distributions, and does not grow with T.",
    where="Section 4, made into a recipe",
    setting="V̂ trained by the tuned recipe on the related task, overlap 0.6, θ = 1/2",
    words="{learned:share}, {samples:,.0f} samples",
)
def trained_value_transfers(pretrained: Table) -> Outcome:
    """For every N, T, sparsity and distribution of the table, both distances end within 0.05 in
    90 % of runs at overlap 0.6."""
    names = ("N", "T", "sparsity", "family")
    cases = {}
    good = []
    for case in dict.fromkeys(zip(*(pretrained[name].tolist() for name in names), strict=True)):
        rows = pick(pretrained, **dict(zip(names, case, strict=True)))
        good.append(mostly(rows["learned"]))
        N, T, sparsity, family = case
        numbers = {"learned": share(rows["learned"]), "samples": median(rows["samples"])}
        cases[f"N = {N}, T = {T:,}, sparsity {sparsity}, {family}"] = numbers
    return Outcome.judged(all(good), cases=cases)


@partial(
    Claim,
    "failed-transfer-says-so",
    figure="F20",
    says="A transfer that has failed says so.",
    where="Section 4, made into a recipe",
    setting="held-out samples decide",
    words="{failed:share} of those that failed say so, {fine:share} of those that learned say that",
)
def failures_are_said(pretrained: Table, overlaps: Table) -> Outcome:
    """Of the runs that end with a distance above 0.1, 95 % say that they have failed; of those
    within 0.05, at most 5 %."""
    runs = joined(pretrained, overlaps)
    worst = np.maximum(runs["dist_V"], runs["dist_A"])
    says = runs["says"].astype(bool)
    failed = ~says[~(worst <= 0.1)]
    fine = says[worst <= CLOSE]
    good = mostly(failed, 0.95) and mostly(fine, 0.95)
    return Outcome.judged(good, failed=share(failed), fine=share(fine))


@partial(
    Claim,
    "support-from-few",
    figure="F10",
    says="Stage 1 can be replaced: the support needs samples that hardly depend on T.",
    where="Section 6 asks: can we improve the sample complexity of the first stage?",
    words="{samples:,.0f} samples; Algorithm 1 needs {factor:,.0f} times as many",
    instead="the number moves with T by a factor {moves:.1f}",
)
def few_samples(support: Table, transfer: Table) -> Outcome:
    """The median number of samples varies by less than a factor 2 over all T, and is a tenth of
    Algorithm 1's or less."""
    T, samples = by_value(support, "T", "likelihood")
    factor = median(pick(transfer, overlap=0.0)["found"]) / median(support["likelihood"])
    moves = samples.max() / samples.min()
    return Outcome.judged(
        moves < 2 and factor > 10,
        cases={f"T = {t:,}": {"samples": n} for t, n in zip(T, samples, strict=True)},
        factor=factor,
        moves=moves if moves >= 2 else None,
    )


@partial(
    Claim,
    "cramer-rao",
    figure="F11",
    says="Maximum likelihood reaches the Cramér–Rao bound.",
    where="beyond the paper",
    words="squared error over bound: P {P:.2f}, Q {Q:.2f} ({fits:.0f} fits, n ≥ 5,000; in brackets "
    "one standard error); 95 % intervals cover {coverage:.1%}",
)
def reaches_the_bound(bound: Table) -> Outcome:
    """For n ≥ 5,000 the mean squared errors of P and Q are 0.8 to 1.25 times the bound, and 92 to
    98 % of 95 % intervals cover."""
    large = where(bound, bound["n"] >= 5000)
    # two weights a token, which add up to 1
    freedom = {"P": large["N"] * (large["N"] - 1), "Q": large["N"]}
    ratio = {}
    for x, weights in freedom.items():
        estimate = np.average(large[f"square_{x}"] / large[f"bound_{x}"], weights=weights)
        # of a mean of squares of standard normals
        error = np.sqrt(2 / weights.sum())
        ratio[x] = Number(estimate, estimate - error, estimate + error, len(large["n"]))
    coverage = large["covered"].sum() / large["intervals"].sum()
    good = all(0.8 <= r.estimate <= 1.25 for r in ratio.values()) and 0.92 <= coverage <= 0.98
    return Outcome.judged(good, **ratio, fits=len(large["n"]), coverage=coverage)


@partial(
    Claim,
    "one-sequence-enough",
    figure="F12",
    says="One long sequence of dependent tokens is enough.",
    where="Section 6 asks: what can we gain if the datapoints are sequences?",
    words="support exactly right in {right:share} from {length:,.0f} tokens",
    control="by moments, which ask for independent tokens, in {moments:share}: they mark "
    "{marked:.0f} positions per token instead of 2",
)
def sequences_work(sequences: Table) -> Outcome:
    """From the longest sequences the support is exactly right in 90 % of tasks."""
    longest = pick(sequences, length=sequences["length"].max())
    return Outcome.judged(
        mostly(longest["likelihood"]),
        right=share(longest["likelihood"]),
        length=longest["length"][0],
        moments=share(longest["moments"]),
        marked=longest["marked"].mean(),
    )
