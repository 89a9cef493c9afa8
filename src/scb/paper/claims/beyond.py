"""The paper's open questions, as claims of our own."""

import numpy as np

from scb.jobs.table import Table, pick
from scb.paper.claims.claim import Outcome, beside, mostly, share, verdict


def few_samples(support: Table, transfer: Table) -> Outcome:
    """Median samples within a factor 2 over all T, and ten times fewer than Algorithm 1's."""
    T = np.unique(support["T"])
    medians = np.array([np.median(support["likelihood"][support["T"] == t]) for t in T])
    trained = pick(transfer, overlap=0.0)
    factor = np.median(trained["found"]) / np.median(support["likelihood"])
    text = ", ".join(f"{m:,.0f}" for m in medians)
    return Outcome(
        f"{text} samples at T = {', '.join(f'{t:,}' for t in T)}; Algorithm 1 needs {factor:,.0f} times as many",
        verdict(medians.max() < 2 * medians.min() and factor > 10),
        "" if medians.max() < 2 * medians.min() else "the number moves with T by more than a factor 2",
    )


def reaches_the_bound(bound: Table) -> Outcome:
    """Mean squared errors within 0.8 to 1.25 of the bound; intervals cover 92 to 98 %."""
    large = {name: column[bound["n"] >= 5000] for name, column in bound.items()}
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
    """Exact support in 90 % of tasks at the largest length."""
    longest = pick(sequences, length=sequences["length"].max())
    return Outcome(
        f"support exactly right in {share(longest['likelihood'])} from {int(longest['length'][0]):,} tokens; "
        f"by moments in {share(longest['moments'])}, which mark {longest['marked'].mean():.0f} positions a token instead of 2",
        verdict(mostly(longest["likelihood"])),
    )


CLAIMS = (
    *beside(
        "F10",
        (
            "Section 6, open question; ours",
            "Stage 1 can be replaced: the support needs samples that hardly depend on T.",
            few_samples,
        ),
    ),
    *beside("F11", ("beyond the paper; ours", "Maximum likelihood reaches the Cramér–Rao bound.", reaches_the_bound)),
    *beside("F12", ("Section 6, open question; ours", "One long sequence of dependent tokens is enough.", sequences_work)),
)
