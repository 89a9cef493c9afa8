"""Softmax's preconditioner, near uniform and near sparse attention."""

import numpy as np

from scb.jobs.table import Table, by_value, pick, where
from scb.paper.claims.claim import claim
from scb.paper.outcome import Outcome, all_of, at_most, between
from scb.paper.slopes import log_log_slope


@claim(
    "softmax-near-uniform",
    figure="F2",
    says="Near uniform attention, the softmax preconditioner (diag(a) − aaᵀ)² is (I − 11ᵀ/T)/T².",
    quote="Near initialization, i.e., when the attention pattern is still close to the uniform "
    "attention, we have (diag(a_σ) − a_σ a_σᵀ)² ≈ 1/T² (I − 11ᵀ/T).",
    where="Section 5.2",
    condition="attention close to uniform",
    words="relative error {error:.2g}; s^{slope:.2f}",
    control="far from uniform, s = {far:g}, the error is {far_error:.2g}",
)
def near_uniform(preconditioner: Table) -> Outcome:
    """For entries of a within a share s of uniform, the relative error is at most 3s, and like s^x;
    the 95 % interval of x lies between 0.9 and 1.1."""
    # first is a₁ where it stands out, else 0. The column uniform has the errors of this form
    rows = pick(preconditioner, first=0.0)
    is_near = rows["spread"] < 0.5
    near = where(rows, is_near)
    far = where(rows, ~is_near)
    s, errors = by_value(near, "spread", "uniform", np.max)
    slope = log_log_slope(near["spread"], near["uniform"])
    return Outcome.judged(
        all_of([between(slope, 0.9, 1.1), at_most((errors / s).max(), 3)]),
        cases={f"s = {x:g}": {"error": e} for x, e in zip(s, errors, strict=True)},
        slope=slope,
        # None if no row is far from uniform, and then nothing is said of the control
        far=far["spread"].max(initial=0) or None,
        far_error=far["uniform"].max(initial=0) or None,
    )


@claim(
    "softmax-near-sparse",
    figure="F2",
    says="Near sparse attention, the softmax preconditioner is a₁(1 − a₁)e₁e₁ᵀ + O(1/T).",
    quote="we have (diag(a_σ) − a_σ a_σᵀ)² ≈ a_σ,1(1 − a_σ,1) e₁ e₁ᵀ + O(1/T).",
    where="Section 5.2",
    condition="a_σ,1 is a small constant while all other entries are O(1/T)",
    words=(
        "error of the printed form {printed:.1f} and more; of its square {corrected:.3f} at most, "
        "falling like T^{slope:.2f}"
    ),
    change="the corner is (a₁(1 − a₁))², not a₁(1 − a₁)",
)
def near_sparse(preconditioner: Table) -> Outcome:
    """The largest error of an entry is at most 10 % of the largest entry, and falls at least like
    T^-0.8."""
    rows = where(preconditioner, preconditioner["first"] > 0)
    slope = log_log_slope(rows["T"], rows["corrected"])
    corrected = rows["corrected"].max()
    return Outcome.judged(
        at_most(rows["printed"].max(), 0.1),
        all_of([at_most(slope, -0.8), at_most(corrected, 0.1)]),
        printed=rows["printed"].min(),
        corrected=corrected,
        slope=slope,
    )
