"""Claims about the number of samples: from scratch, transferred, and by the drift alone."""

import numpy as np

from scb.jobs.table import Table, pick, values
from scb.paper.claims.claim import Outcome, beside, log_slope, mostly, share, verdict


def transfer_is_flat(transfer: Table) -> Outcome:
    """Exponent in T at most 0.05."""
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
    """Both distances within ε in 90 % of runs at the smaller overlap."""
    overlap = min(o for o in values(transfer, "overlap") if o > 0)
    mine = pick(transfer, overlap=overlap)
    good = (mine["dist_V"] <= mine["epsilon"]) & (mine["dist_A"] <= mine["epsilon"])
    return Outcome(f"overlap {overlap:g}: within ε = {mine['epsilon'][0]:g} in {share(good)} runs", verdict(mostly(good)))


def drift_needs_samples(drift: Table) -> Outcome:
    """Simulated; exponent in T at least 0.9 with the sign right in 90 %."""
    T, middle = _medians(drift)
    slope = log_slope(T, middle)
    return Outcome(
        f"{middle.min():,.0f} to {middle.max():,.0f} samples for T = {T.min():,} to {T.max():,}: "
        f"T^{slope:.2f}, sign right in {share(drift['right'])}",
        verdict(slope >= 0.9 and mostly(drift["right"])),
    )


def scratch_is_flat(transfer: Table) -> Outcome:
    """Exponent in T at least 0.5 for the best method from scratch that we have."""
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
    *beside(
        "F7",
        ("Section 4; Appendix H", "Transfer needs a number of samples that does not depend on T.", transfer_is_flat),
        ("Section 4", "A small correlation between the tasks is enough.", small_overlap_transfers),
        ("Section 3.2", "Stage 1 needs poly(T) samples for the drift to decide.", drift_needs_samples),
        ("Section 3.2, conjecture", "This poly(T) dependence is unavoidable.", scratch_is_flat),
    ),
)
