"""The planner computes the batch sizes, λ, step counts and thresholds that the paper's lemmas
require, stage by stage.

The planner follows the chain of lemmas backwards: from ε to the error of A that Stage 3 tolerates,
from there to the noise that Stage 2 tolerates, and from there to a batch size. The factors that the
paper hides in Θ(1) are the fields of ``Constants``. Where the paper has a formula in two versions,
docs/paper/errata.md says which version is used here.
"""

from dataclasses import dataclass
from math import ceil, exp, log, sqrt

from scb.inputs import InputError, integer, number
from scb.theory.constants import Constants, attention_error


@dataclass(frozen=True)
class StagePlan:
    """The settings that the lemmas require for one stage of a ``Plan``.

    Attributes
    ----------
    name : str
        The name of the stage.
    eta, steps, batch_size, lam : float, int, float and float
        The step size η, the number of steps, the number of samples per step, and the proximal
        threshold λ.
    threshold : float or None
        The value below which entries of A are set to 0 at the beginning of the stage, or None if no
        entries are set to 0.
    noise_V, noise_A : float or None
        Bounds on the noise ‖h_V‖_μ and ‖h_A‖_μ that the batch size guarantees in all steps, or None
        if no bound is required.
    leaves : str
        The condition that holds after the stage, as text.

    Examples
    --------
    >>> import scb
    >>> first = scb.plan(N=3, T=5000, sparsity=2).stages[0]
    >>> first.name, first.steps, f"{first.batch_size:.1e}", f"{first.samples:.1e}", first.leaves
    ('Stage 1', 94, '4.8e+16', '4.5e+18', 'α_V or α_A ≥ 0.17')
    """

    name: str
    eta: float
    steps: int
    batch_size: float
    lam: float = 0.0
    threshold: float | None = None
    noise_V: float | None = None
    noise_A: float | None = None
    leaves: str = ""

    @property
    def samples(self) -> float:
        """The number of fresh samples in the whole stage."""
        return self.steps * self.batch_size


@dataclass(frozen=True)
class Plan:
    """The result of ``scb.plan``: the stages from scratch and with transfer.

    Attributes
    ----------
    K_P, K_Q : float
        The values of the task's constants that the plan assumes.
    stages, transfer : tuples of StagePlan
        Stages 1 to 3 of training from scratch, and the stages with transfer, where a single step on
        A replaces Stage 1.
    theta : float
        The weight θ of the pretrained P̂ in the initial V of transfer.
    warning : str
        The reason why Lemma E.3, on Stage 2, does not apply to ε; empty if the lemma does apply.

    Examples
    --------
    >>> import scb
    >>> plan = scb.plan(N=3, T=5000, sparsity=2)
    >>> f"{plan.samples:.1e} from scratch, {plan.transfer_samples:.1e} with transfer"
    '4.5e+18 from scratch, 2.6e+15 with transfer'
    >>> plan.warning
    'Lemma E.3 asks for ε between Q²N³/√T = 1.53 and 0.1: at these sizes there is none'
    """

    K_P: float
    K_Q: float
    stages: tuple[StagePlan, ...]
    transfer: tuple[StagePlan, ...]
    theta: float
    warning: str

    @property
    def samples(self) -> float:
        """The number of fresh samples that training from scratch needs."""
        return sum(stage.samples for stage in self.stages)

    @property
    def transfer_samples(self) -> float:
        """The number of fresh samples that training with transfer needs."""
        return sum(stage.samples for stage in self.transfer)


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
    """Compute the settings for which the paper guarantees success.

    Success means ‖A − Q‖_μ² ≤ ε and ‖V − P‖_μ² ≤ ε with probability 1 − δ. The settings suffice in
    the worst case, but in practice a run needs astronomically fewer samples.

    Parameters
    ----------
    N, T, sparsity : int
        The numbers of tokens, of positions, and of positions that each token attends to.
    eps, delta : float, default 0.05
        The target accuracy ε of the squared distances, and the failure probability δ.
    K_P, K_Q : float, optional
        The constants of the task, if known. The defaults 1/N and 1/Q are the orders of magnitude
        that assumptions (b) and (c) imply.
    overlap : float, optional
        The centred μ-cosine of the task's P and the pretrained P̂, with K_P̂ = K_P. The default is
        the smallest value that the paper allows.
    eta : float, optional
        The step size η of all stages. The default, min(K_P, K_Q, 1/10), is the largest value that
        the lemma on Stage 1 allows.
    constants : Constants, optional
        The factors of the lemmas. The default is ``Constants()``, with the measured values.

    Returns
    -------
    Plan
        The stages from scratch and with transfer, each with its steps, batch size, λ and threshold.

    Examples
    --------
    >>> import scb
    >>> for stage in scb.plan(N=3, T=5000, sparsity=2).stages:
    ...     numbers = f"{stage.steps} {stage.batch_size:.1e} {stage.lam:.1e}"
    ...     print(stage.name, numbers, stage.leaves)
    Stage 1 94 4.8e+16 0.0e+00 α_V or α_A ≥ 0.17
    Stage 2 92 1.1e+13 2.5e-05 ‖Δ_A‖_μ² ≤ 0.00083
    Stage 3 15 1.7e+06 0.0e+00 ‖V − P‖_μ² ≤ 0.05
    """
    integer("N", N, low=2)
    integer("sparsity", sparsity, low=1, high=integer("T", T, low=1))
    tiny = 1e-12
    _check_between(tiny, exp(-1), eps=eps)
    _check_between(tiny, 1 - tiny, delta=delta)
    _check_between(tiny, 1, K_P=K_P, K_Q=K_Q, overlap=overlap, eta=eta)
    K_P = 1 / N if K_P is None else K_P
    K_Q = 1 / sparsity if K_Q is None else K_Q
    lemmas = _Lemmas(
        N=N,
        T=T,
        Q=sparsity,
        K_P=K_P,
        K_Q=K_Q,
        eps=eps,
        delta=delta / 3,  # of each stage
        eta=min(K_P, K_Q, 0.1) if eta is None else eta,
        c=constants or Constants(),
    )
    theta = min(0.5, sqrt(lemmas.c.theta / log(1 / eps)))
    alpha_V = theta * (min(1.0, 1 / (N * K_P)) if overlap is None else overlap)
    return Plan(
        K_P=K_P,
        K_Q=K_Q,
        stages=(
            lemmas.stage1(),
            lemmas.stage2(lemmas.alpha, lemmas.error_after_stage1()),
            lemmas.stage3(),
        ),
        transfer=(
            lemmas.first_step(alpha_V),
            lemmas.stage2(alpha_V, lemmas.error_after_first_step(theta, alpha_V)),
            lemmas.stage3(),
        ),
        theta=theta,
        warning=_warning(sparsity**2 * N**3 / sqrt(T), eps),
    )


def _warning(low: float, eps: float) -> str:
    """What is wrong with ε, which Lemma E.3 wants between ``low`` and 0.1."""
    asked = f"Lemma E.3 asks for ε between Q²N³/√T = {low:.3g} and 0.1"
    if low >= 0.1:
        return f"{asked}: at these sizes there is none"
    return "" if low <= eps <= 0.1 else f"{asked}: {eps:g} is not"


def _check_between(low: float, high: float, **given: float | None) -> None:
    """Raise an InputError unless all that is given lies between two values."""
    for name, value in given.items():
        if value is not None and not low <= number(name, value) <= high:
            raise InputError(f"{name} = {value}: it must lie between {low:g} and {high:g}")


@dataclass(frozen=True)
class _Lemmas:
    """The lemmas at one task, one accuracy and one set of constants; ``delta`` is the failure
    probability of a stage.
    """

    N: int
    T: int
    Q: int
    K_P: float
    K_Q: float
    eps: float
    delta: float
    eta: float
    c: Constants

    @property
    def alpha(self) -> float:
        """min(1/2, c/(QN)): 𝒯₁ is the first step at which α_V or α_A reaches it. (The theorem
        leaves out the 1/2.)
        """
        return min(0.5, self.c.stage1_signal / (self.Q * self.N))

    @property
    def allowed(self) -> float:
        """Δ of the lemma on Stage 1, which keeps ‖Δ_V‖_μ² and ‖Δ_A‖_μ² below Δ/T."""
        return min(self.K_P / 4, self.K_Q / 4, 1 / (self.Q**4 * self.N**3))

    def stage1(self) -> StagePlan:
        """Lemma "Main result of Stage 1", with the batch sizes of part V of its proof, one 𝒯₁ for
        the union over the steps.
        """
        length = max(log(self.T * self.K_Q), 1.0)
        steps = ceil(self.c.stage1_steps * length / self.eta)
        each = self.delta / steps
        noise = self.c.stage1_noise * sqrt(self.allowed / self.T) * min(self.K_P, self.K_Q) / length
        squares = max(self.c.square_A * self.T * self.N**2, self.c.square_V * self.N**3)
        second_order = 4 * squares / (each * noise**2)
        extreme = max(self.c.along_P * self.N**3, self.c.along_Q * self.Q * self.N**2)
        first_order = 2 * (extreme * 4 * self.T / self.K_P) ** 2 * log(8 / each)
        return StagePlan(
            name="Stage 1",
            eta=self.eta,
            steps=steps,
            batch_size=max(second_order, first_order),
            noise_V=noise,
            noise_A=noise,
            leaves=f"α_V or α_A ≥ {self.alpha:.2g}",
        )

    def error_after_stage1(self) -> float:
        """δ⁽²⁾ with δ_A² + δ_V² ≤ (δ⁽²⁾)² where Stage 2 begins: lemmas "Main result of Stage 1" and
        "Effect of rounding".
        """
        square_A = (self.allowed + self.c.rounding_error) / self.T
        return sqrt(self.allowed / self.T / self.K_P + square_A / self.K_Q)

    def stage2(self, alpha: float, start: float) -> StagePlan:
        """Lemmas "Gradient denoising", "bias of ĥ" and "Main lemma of Stage 2", from α_V, α_A ≥
        ``alpha`` and δ ≤ ``start``.

        The main lemma bears noise ‖ĥ_A‖_μ/(K_P√K_Q) + ‖h_V‖_μ/(√K_P K_Q) ≤ Err with c·max(δ,
        Err)·Err ≤ δ_*². Half of it is V's. The lemma on ĥ gives ‖ĥ_A‖_μ ≤ c·ε₂/(QN²), which decides
        ε₂; with it go λ and the batch size.
        """
        N, Q, eta = self.N, self.Q, self.eta
        square = attention_error(N, Q, self.eps, self.c)
        goal = sqrt(square / self.K_Q)  # δ_*
        # 1.1: δ + η·Err ≤ 1.1·max(δ, Err)
        factor = 1.1 * self.c.errors * self.c.boundary
        err = min(goal / sqrt(factor), goal**2 / (factor * start), 0.025 * alpha)
        noise_V = err / 2 * sqrt(self.K_P) * self.K_Q
        noise_A = err / 2 * self.K_P * sqrt(self.K_Q)
        accuracy = noise_A * Q * N**2 / self.c.bias  # ε₂
        steps = ceil(self.c.stage2_steps * (1 / (eta * alpha) + log(1 / goal) / eta))
        each = self.delta / (3 * steps)
        coordinate = self.coordinate_batch(accuracy / (Q * N**2), alpha, each)
        on_support = self.c.square_on_support * Q * N**2 / (each * (accuracy / (Q * N**2)) ** 2)
        of_V = self.c.square_V * N**3 / (each * noise_V**2)
        return StagePlan(
            name="Stage 2",
            eta=eta,
            steps=steps,
            batch_size=max(coordinate, on_support, of_V),
            lam=self.c.stage2_lambda * eta * accuracy / (Q**2 * N**2),  # η_A·K_P = η
            threshold=self.c.rounding * alpha / Q,
            noise_V=noise_V,
            noise_A=noise_A,
            leaves=f"‖Δ_A‖_μ² ≤ {square:.2g}",
        )

    def coordinate_batch(self, relative: float, alpha: float, failure: float) -> float:
        """Samples that bring every coordinate of ∇_A l within ``relative``·αK_P/(NQ): Hoeffding,
        and a union over NT of them.
        """
        xi = relative * alpha * self.K_P / (self.N * self.Q)
        return 2 * (self.c.coordinate * self.N / xi) ** 2 * log(2 * self.N * self.T / failure)

    def stage3(self) -> StagePlan:
        """The last lemma of Stage 3: ‖h_V‖_μ ≤ c·ε√K_P K_Q in all steps, from E‖∇̂_V l‖_μ² ≤ c·N³
        and Chebyshev.
        """
        steps = ceil(self.c.stage3_steps * log(1 / self.eps) / self.eta)
        noise = self.c.stage3_noise * self.eps * sqrt(self.K_P) * self.K_Q
        return StagePlan(
            name="Stage 3",
            eta=self.eta,
            steps=steps,
            batch_size=self.c.square_V * self.N**3 * steps / (self.delta * noise**2),
            threshold=self.c.normalisation / self.Q,
            noise_V=noise,
            leaves=f"‖V − P‖_μ² ≤ {self.eps:.2g}",
        )

    @property
    def step_accuracy(self) -> float:
        """ε_Tmp = min(1/(N·K_P), 1/log(1/ε)) of transfer's step on A."""
        return min(1 / (self.N * self.K_P), 1 / log(1 / self.eps))

    def first_step(self, alpha_V: float) -> StagePlan:
        """Lemma "First gradient step": Stage 2's concentration with relative accuracy ε_Tmp, at η =
        1.

        The threshold lies at half of what a position of weight 1/(CQ) reaches, C = 2 (the paper
        prints it without the Q).
        """
        return StagePlan(
            name="Transfer",
            eta=1.0,
            steps=1,
            batch_size=self.coordinate_batch(self.step_accuracy, alpha_V, self.delta),
            threshold=self.c.rounding * alpha_V / self.Q,
            leaves=f"α_A ≈ α_V = {alpha_V:.2g}",
        )

    def error_after_first_step(self, theta: float, alpha_V: float) -> float:
        """δ⁽²⁾ after transfer's step: lemmas "Initialization" (δ_V² ≤ c·θ²) and "First gradient
        step" (δ_A²).
        """
        square_A = self.c.step_error * ((self.step_accuracy * alpha_V) ** 2 / self.Q + 1 / self.T)
        return sqrt(self.c.start_error * theta**2 + square_A / self.K_Q)
