"""Claims about the number of samples: from scratch and transferred; and the paper's open questions, as ours."""

import numpy as np

from scb.jobs.table import Table, by_value, pick, values, where
from scb.paper.claims.claim import CLOSE, Claim, Outcome, joined, log_slope, mostly, share, spread, verdict


def transfer_is_flat(transfer: Table) -> Outcome:
    """For each overlap the median number of samples until both distances are ε goes like T^x with |x| ≤ 0.05."""
    parts = []
    slopes = []
    for overlap in values(transfer, "overlap"):
        if overlap == 0:
            continue
        T, samples = by_value(pick(transfer, overlap=overlap), "T", "reached")
        slopes.append(log_slope(T, samples))
        parts.append(f"overlap {overlap:g}: {samples.min():,.0f} to {samples.max():,.0f} samples, T^{slopes[-1]:+.3f}")
    T = transfer["T"]
    return Outcome(f"{'; '.join(parts)} for T = {T.min():,} to {T.max():,}", verdict(all(abs(slope) <= 0.05 for slope in slopes)))


def small_overlap_transfers(overlaps: Table) -> Outcome:
    """With θ = 1/2, both distances end within 0.05 in 90 % of the runs whose overlap is at least ‖μ‖²/K_P, as the paper asks."""
    half = pick(overlaps, theta=0.5)
    learned = half["learned"].astype(bool)
    allowed = half["overlap"] >= half["bound"]
    below = []
    for overlap in sorted(values(where(half, ~allowed), "overlap"), reverse=True):
        below.append(f"{overlap:g}: {share(learned[~allowed & (half['overlap'] == overlap)])}")
    measured = f"in {share(learned[allowed])} runs; ‖μ‖²/K_P {spread(half['bound'])}"
    return Outcome(measured, verdict(mostly(learned[allowed])), control=f"at smaller overlaps {', '.join(below)}")


def trained_value_transfers(pretrained: Table) -> Outcome:
    """For every N, T, sparsity and law of the table, both distances end within 0.05 in 90 % of runs at overlap 0.6."""
    names = ("N", "T", "sparsity", "family")
    parts = []
    good = []
    for case in dict.fromkeys(zip(*(pretrained[name].tolist() for name in names), strict=True)):
        rows = pick(pretrained, **dict(zip(names, case, strict=True)))
        good.append(mostly(rows["learned"]))
        N, T, sparsity, family = case
        samples = np.median(rows["samples"])
        parts.append(f"N = {N}, T = {T:,}, sparsity {sparsity}, {family}: {share(rows['learned'])}, {samples:,.0f} samples")
    return Outcome("\n".join(parts), verdict(all(good)))


def failures_are_said(pretrained: Table, overlaps: Table) -> Outcome:
    """Of the runs that end with a distance above 0.1, 95 % say that they have failed; of those within 0.05, at most 5 %."""
    runs = joined(pretrained, overlaps)
    worst = np.maximum(runs["dist_V"], runs["dist_A"])
    says = runs["says"].astype(bool)
    failed = ~says[~(worst <= 0.1)]
    fine = says[worst <= CLOSE]
    measured = f"{share(failed)} of those that failed say so, {share(fine)} of those that learned say that"
    return Outcome(measured, verdict(mostly(failed, 0.95) and mostly(fine, 0.95)))


def scratch_is_flat(transfer: Table) -> Outcome:
    """By the best method from scratch that we have, the median number of samples until ε goes like T^x with x ≥ 0.5."""
    T, samples = by_value(pick(transfer, overlap=0.0), "T", "reached")
    slope = log_slope(T, samples)
    return Outcome(
        f"from scratch {samples.min():,.0f} to {samples.max():,.0f} samples for T = {T.min():,} to {T.max():,}: T^{slope:+.3f}",
        verdict(slope >= 0.5),
        "Algorithm 1 as printed needs it; where noise may choose the sign, which the skewness of A tells afterwards, it is gone",
    )


def few_samples(support: Table, transfer: Table) -> Outcome:
    """The median number of samples varies by less than a factor 2 over all T, and is a tenth of Algorithm 1's or less."""
    T, samples = by_value(support, "T", "likelihood")
    factor = np.median(pick(transfer, overlap=0.0)["found"]) / np.median(support["likelihood"])
    hardly_moves = samples.max() < 2 * samples.min()
    text = f"{', '.join(f'{n:,.0f}' for n in samples)} samples at T = {', '.join(f'{t:,}' for t in T)}"
    measured = f"{text}; Algorithm 1 needs {factor:,.0f} times as many"
    note = "" if hardly_moves else "the number moves with T by more than a factor 2"
    return Outcome(measured, verdict(hardly_moves and factor > 10), note)


def reaches_the_bound(bound: Table) -> Outcome:
    """For n ≥ 5,000 the mean squared errors of P and Q are 0.8 to 1.25 times the bound, and 92 to 98 % of 95 % intervals cover."""
    large = where(bound, bound["n"] >= 5000)
    freedom = {"P": large["N"] * (large["N"] - 1), "Q": large["N"]}  # two weights a token, which add up to 1
    ratio = {x: np.average(large[f"square_{x}"] / large[f"bound_{x}"], weights=freedom[x]) for x in "PQ"}
    error = {x: np.sqrt(2 / freedom[x].sum()) for x in "PQ"}  # of a mean of squares of standard normals
    coverage = large["covered"].sum() / large["intervals"].sum()
    return Outcome(
        f"squared error over bound: P {ratio['P']:.2f} ± {error['P']:.2f}, Q {ratio['Q']:.2f} ± {error['Q']:.2f} "
        f"({len(large['n'])} fits, n ≥ 5,000); 95 % intervals cover {coverage:.1%}",
        verdict(all(0.8 <= r <= 1.25 for r in ratio.values()) and 0.92 <= coverage <= 0.98),
    )


def sequences_work(sequences: Table) -> Outcome:
    """From the longest sequences the support is exactly right in 90 % of tasks."""
    longest = pick(sequences, length=sequences["length"].max())
    moments = f"by moments, which ask for independent tokens, in {share(longest['moments'])}"
    return Outcome(
        f"support exactly right in {share(longest['likelihood'])} from {int(longest['length'][0]):,} tokens",
        verdict(mostly(longest["likelihood"])),
        control=f"{moments}: they mark {longest['marked'].mean():.0f} positions a token instead of 2",
    )


CLAIMS = (
    Claim(
        figure="F7",
        says="Transfer needs a number of samples that does not depend on T.",
        quote="Then, running Algorithm from Stage 2 allows us to recover (P, Q) to ε-accuracy with high probability with "
        "poly(N, Q, 1/ε, log T) samples.",
        where="Section 4, theorem",
        condition="P̂ and P share μ, and ⟨P̂, P⟩_μ − ‖μ‖² ≥ ‖μ‖²",
        setting="V̂ = P̂ of the related task",
        judge=transfer_is_flat,
    ),
    Claim(
        figure="F20",
        says="A small correlation between the tasks is enough.",
        quote="as long as there is a (potentially small) nontrivial correlation between the pretraining and downstream tasks, the "
        "pretrained model can be used to provide a nonzero initial signal, allowing us to bypass the initial sample-intensive "
        "signal-boosting stage.",
        where="Section 4",
        condition="P̂ and P share μ, and ⟨P̂, P⟩_μ − ‖μ‖² ≥ ‖μ‖²",
        setting="V̂ trained by the tuned recipe on the related task, θ = 1/2",
        judge=small_overlap_transfers,
    ),
    Claim(
        figure="F7",
        says="This poly(T) dependence is unavoidable.",
        quote="We conjecture that this poly(T) dependence is unavoidable (when only a polynomial amount of computing time is "
        "available).",
        where="Section 3.2",
        condition="any method of polynomial time; a conjecture",
        judge=scratch_is_flat,
    ),
    Claim(
        figure="F20",
        says="Transfer works with a trained V̂ at other sizes, sparsities and laws, and does not grow with T.",
        quote="",
        where="Section 4, made into a recipe",
        setting="V̂ trained by the tuned recipe on the related task, overlap 0.6, θ = 1/2",
        judge=trained_value_transfers,
    ),
    Claim(
        figure="F20",
        says="A transfer that has failed says so.",
        quote="",
        where="Section 4, made into a recipe",
        setting="held-out samples decide",
        judge=failures_are_said,
    ),
    Claim(
        figure="F10",
        says="Stage 1 can be replaced: the support needs samples that hardly depend on T.",
        quote="",
        where="Section 6 asks: can we improve the sample complexity of the first stage?",
        judge=few_samples,
    ),
    Claim(
        figure="F11",
        says="Maximum likelihood reaches the Cramér–Rao bound.",
        quote="",
        where="beyond the paper",
        judge=reaches_the_bound,
    ),
    Claim(
        figure="F12",
        says="One long sequence of dependent tokens is enough.",
        quote="",
        where="Section 6 asks: what can we gain if the datapoints are sequences?",
        judge=sequences_work,
    ),
)
