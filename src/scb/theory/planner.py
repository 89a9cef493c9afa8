"""The planner: batch sizes, λ, step counts and thresholds that the paper's lemmas ask for, stage by stage.

The lemmas hold up to constants that the paper hides in Θ(1). Here each is a field of ``Constants``, 1 unless given, so
that the *scaling* can be read off and a measured constant put in its place. The numbers are worst-case sufficient
conditions: expect them to be astronomically larger than what a run needs.
"""

from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt


@dataclass(frozen=True)
class Constants:
    """The Θ(1) factors c of the lemmas."""

    stage1_steps: float = 1.0  # of 𝒯₁ = c·log(T·K_Q)/η
    stage1_signal: float = 1.0  # of α at the end of Stage 1, min(1/2, c/(Q·N))
    stage1_batch: float = 1.0  # of both batch sizes in part V of the proof for Stage 1
    rounding: float = 1.0  # of the first threshold, λ₀ = c·α/Q
    stage2_batch: float = 1.0  # of both batch sizes of the lemma on the bias of the proximal gradient
    stage2_lambda: float = 1.0  # of λ = c·ε·K_P/(Q²N³)
    stage2_steps: float = 1.0  # of c·(1/(η·α) + log(1/δ_*)/η)
    normalisation: float = 0.1  # of the second threshold, c/Q
    stage3_batch: float = 1.0  # of N³/(δ·(c'·ε)²·K_P·K_Q²), which makes ‖h_V‖_μ ≤ c'·ε·√K_P·K_Q
    stage3_steps: float = 1.0  # of c·log(1/ε)/η
    transfer_theta: float = 1.0  # of θ = min(1/2, √(c/log(1/ε)))
    transfer_batch: float = 1.0  # of the batch of transfer's one step on A


@dataclass(frozen=True)
class StagePlan:
    """What one stage asks for; ``threshold`` is applied on entering it, ``None`` where there is none."""

    name: str
    eta: float
    steps: int
    batch_size: float
    lam: float
    threshold: float | None
    leaves: str

    @property
    def samples(self) -> float:
        """Fresh samples in the whole stage."""
        return self.steps * self.batch_size


@dataclass(frozen=True)
class Plan:
    """Stages 1 to 3 from scratch, and the single step that replaces Stage 1 in transfer."""

    K_P: float
    K_Q: float
    stages: tuple[StagePlan, ...]
    transfer: StagePlan
    theta: float


def plan(
    N: int,
    T: int,
    sparsity: int,
    eps: float = 0.05,
    delta: float = 0.05,
    *,
    K_P: float | None = None,
    K_Q: float | None = None,
    overlap: float | None = None,
    eta: float | None = None,
    constants: Constants | None = None,
) -> Plan:
    """What the paper's lemmas ask for, to reach ‖A − Q‖_μ² ≤ ε and ‖V − P‖_μ² ≤ ε with probability 1 − δ.

    Parameters
    ----------
    N, T, sparsity : sizes of the task
    eps, delta : target accuracy (of the squared distances) and failure probability
    K_P, K_Q : of the task; 1/N and 1/Q, the orders that assumptions (b) and (c) give, unless known
    overlap : centred μ-cosine with the pretrained P̂ (K_P̂ = K_P); unless given, the least that the paper allows
    eta : the step size η of all stages; min(K_P, K_Q, 1/10), the largest of the lemma on Stage 1, unless given
    """
    for name, value, low, high in (
        ("N", N, 2, inf),
        ("T", T, 1, inf),
        ("sparsity", sparsity, 1, T),
        ("eps", eps, 1e-300, exp(-1)),
        ("delta", delta, 1e-300, 1 - 1e-12),
    ):
        if not low <= value <= high:
            raise ValueError(f"{name} = {value}: it must lie between {low:g} and {high:g}")
    c = constants or Constants()
    Q = sparsity
    K_P = 1 / N if K_P is None else K_P
    K_Q = 1 / Q if K_Q is None else K_Q
    eta = min(K_P, K_Q, 0.1) if eta is None else eta
    alpha = min(0.5, c.stage1_signal / (Q * N))
    delta = delta / 3  # of each stage

    # Lemma "Main result of Stage 1", with the batch sizes of part V of its proof (failure δ/𝒯₁ a step).
    length = max(log(T * K_Q), 1.0)
    steps = ceil(c.stage1_steps * length / eta)
    second_order = steps * T**2 * Q**4 * N**5 * length**2 / (delta * min(K_P, K_Q, 1.0) ** 3)
    first_order = T**2 * max(N**2, Q**2) * N**4 * log(16 * steps / delta) / K_P**2
    batch = c.stage1_batch * max(second_order, first_order)
    leaves = f"max(α_V, α_A) ≥ {alpha:.2g}"
    stage1 = StagePlan("Stage 1", eta=eta, steps=steps, batch_size=batch, lam=0.0, threshold=None, leaves=leaves)

    # Lemmas "Gradient denoising", "bias of ĥ" and "Main lemma of Stage 2", for δ_*² = ε/(Q√N).
    target = eps / (Q * sqrt(N))
    steps = ceil(c.stage2_steps * (1 / (eta * alpha) + log(1 / sqrt(target)) / eta))
    each = delta / steps
    batch = c.stage2_batch * max(N**8 * Q**4 / (eps**2 * alpha**2 * K_P**2) * log(2 * N * T / each), N**6 * Q**3 / (each * eps**2))
    lam = c.stage2_lambda * eps * K_P / (Q**2 * N**3)
    threshold = c.rounding * alpha / Q
    leaves = f"‖Δ_A‖_μ² ≤ {target:.2g}"
    stage2 = StagePlan("Stage 2", eta=eta, steps=steps, batch_size=batch, lam=lam, threshold=threshold, leaves=leaves)

    # The last lemma of Stage 3: ‖h_V‖_μ ≤ c'·ε·√K_P·K_Q, from E‖∇̂_V l‖_μ² = O(N³) and Chebyshev, c' = 1/10.
    steps = ceil(c.stage3_steps * log(1 / eps) / eta)
    batch = c.stage3_batch * N**3 * steps / (delta * (0.1 * eps) ** 2 * K_P * K_Q**2)
    threshold = c.normalisation / Q
    leaves = f"‖V − P‖_μ² ≤ {eps:.2g}"
    stage3 = StagePlan("Stage 3", eta=eta, steps=steps, batch_size=batch, lam=0.0, threshold=threshold, leaves=leaves)

    # Lemma "First gradient step": Stage 2's concentration with relative accuracy ε_Tmp = min(1/(N·K_P), 1/log(1/ε)). The threshold
    # lies at α_V/(2Q), half of what a position of weight 1/Q reaches (the paper prints it without the Q).
    theta = min(0.5, sqrt(c.transfer_theta / log(1 / eps)))
    alpha_V = theta * (min(1.0, 1 / (N * K_P)) if overlap is None else overlap)
    accuracy = min(1 / (N * K_P), 1 / log(1 / eps))
    batch = c.transfer_batch * N**4 * Q**2 / (accuracy**2 * alpha_V**2 * K_P**2) * log(2 * N * T / delta)
    threshold = alpha_V / (2 * Q)
    leaves = f"α_A ≈ α_V = {alpha_V:.2g}"
    transfer = StagePlan("Transfer", eta=1.0, steps=1, batch_size=batch, lam=0.0, threshold=threshold, leaves=leaves)
    return Plan(K_P=K_P, K_Q=K_Q, stages=(stage1, stage2, stage3), transfer=transfer, theta=theta)
