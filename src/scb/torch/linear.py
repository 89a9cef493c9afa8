"""The paper's model and method in PyTorch: ``LinearAttention``, and Algorithm 1 as an optimiser for
any loop.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from scb.arrays import Array
from scb.geometry import projector_row
from scb.inputs import InputError, number
from scb.training.recipes.recipe import Recipe
from scb.training.schedules import MeasuredNoise
from scb.training.stages import Stage


class LinearAttention(nn.Module):
    """The paper's linear transformer F(x, k) = V·X·A[:, k] as a PyTorch module.

    The parameters of the module are V and A.

    The module predicts the label of a context x with last token k. Column t of X is the one-hot
    vector of token x_t.

    Parameters
    ----------
    V, A : (N, N) and (T, N) arrays
        The initial values of the value matrix and of the attention.

    Examples
    --------
    >>> import scb, scb.torch, torch
    >>> task = scb.Task.random(3, 40, 2)
    >>> model = scb.torch.LinearAttention(task.P, task.Q)  # predicts the true distribution
    >>> tokens, label = next(scb.torch.SampleStream(task, 1000))
    >>> model.forward(tokens).sum(dim=1).allclose(torch.ones(1000, dtype=torch.float64))
    True
    >>> round(model.loss(tokens, label).item(), 2)
    0.2
    """

    def __init__(self, V: Array, A: Array) -> None:
        super().__init__()
        self.V = nn.Parameter(torch.tensor(np.ascontiguousarray(V)))
        self.A = nn.Parameter(torch.tensor(np.ascontiguousarray(A)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Predict the distribution of each label.

        Parameters
        ----------
        tokens : (B, T + 1) integer tensor
            The contexts and, in the last column, the last tokens, which select the attention.

        Returns
        -------
        (B, N) tensor
            The predictions.
        """
        context = tokens[:, :-1]
        weights = self.A.T[tokens[:, -1]]  # (B, T)
        mass = torch.zeros(
            len(tokens), len(self.V), dtype=weights.dtype, device=weights.device
        ).scatter_add(1, context, weights)
        return mass @ self.V.T

    def loss(self, tokens: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """Compute the paper's loss, the mean of ½‖e_o − F‖².

        Here, e_o is the one-hot vector of the label, and F is the prediction.

        Parameters
        ----------
        tokens : (B, T + 1) integer tensor
            The contexts and, in the last column, the last tokens.
        label : (B,) integer tensor
            The labels.

        Returns
        -------
        scalar tensor
            The mean loss.
        """
        e = nn.functional.one_hot(label, len(self.V))
        return 0.5 * (self(tokens) - e).square().sum(dim=1).mean()


class Algorithm1(torch.optim.Optimizer):
    """The paper's Algorithm 1 as a PyTorch optimiser.

    The steps on V and A are preconditioned, soft-thresholded and projected.

    A step on V is V ← V − η_V (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μwᵀ), which keeps 1ᵀV = 1ᵀ and Vμ = μ.
    A step on column k of A is a ← Proj(soft(a − (η_A/μ_k)·∇_a, λ)), where soft is the soft
    threshold and Proj is the projection onto 1ᵀa = 1. V and A are two parameter groups, and their
    step sizes are called ``lr``, so PyTorch's schedulers work with them. With ``lr`` = 0, a
    parameter stays fixed.

    Parameters
    ----------
    V, A : torch.nn.Parameter
        The parameters to train, of shapes (N, N) and (T, N): those of a ``LinearAttention``, or of
        any module that has such a part.
    mu : (N,) array
        The distribution μ of the tokens.
    eta_V, eta_A : float
        The step sizes of V and A.
    lam : float, default 0
        The threshold λ of each proximal step.
    centred : bool, default False
        Whether to subtract the mean of each column of A's gradient before the proximal step instead
        of after it.
    projector : {"euclidean", "mu"}, default "mu"
        The choice of w: μ/‖μ‖² for the paper's projector, or 1 for the μ-projector, which has far
        less noise.

    Examples
    --------
    >>> import scb, scb.torch
    >>> from scb.geometry import uniform_start
    >>> task = scb.Task.random(3, 40, 2)
    >>> model = scb.torch.LinearAttention(*uniform_start(task.mu, task.T))
    >>> rates = {"eta_V": 0.02, "eta_A": 0.02, "lam": 1e-5}
    >>> optimiser = scb.torch.Algorithm1(model.V, model.A, task.mu, **rates)
    >>> batches = scb.torch.SampleStream(task, batch_size=256)
    >>> for _ in range(20):
    ...     optimiser.zero_grad()
    ...     model.loss(*next(batches)).backward()
    ...     _ = optimiser.step()
    >>> bool((model.A.sum(dim=0) - 1).abs().max() < 1e-12)
    True
    >>> optimiser.enter(scb.recipes.paper(task, lam=1e-4).stages[1])
    >>> optimiser.param_groups[1]["lam"]
    0.0001
    """

    def __init__(
        self,
        V: nn.Parameter,
        A: nn.Parameter,
        mu: Array,
        *,
        eta_V: float,
        eta_A: float,
        lam: float = 0.0,
        centred: bool = False,
        projector: str = "mu",
    ) -> None:
        for name, value in (("eta_V", eta_V), ("eta_A", eta_A), ("lam", lam)):
            number(name, value, low=0)
        N = len(mu)
        if V.shape != (N, N) or A.ndim != 2 or A.shape[1] != N:
            raise InputError(
                f"V has shape {tuple(V.shape)} and A {tuple(A.shape)}: "
                f"with {N} tokens, (N, N) and (T, N) go"
            )
        self.mu = torch.as_tensor(np.array(mu), dtype=V.dtype, device=V.device)
        of_V = {"params": [V], "lr": eta_V, "layer": "V", "row": self._row(projector)}
        of_A = {"params": [A], "lr": eta_A, "layer": "A", "lam": lam, "centred": centred}
        super().__init__([of_V, of_A], {})

    def enter(self, stage: Stage) -> None:
        """Switch to the step sizes, λ and projector of a stage in a recipe.

        Parameters
        ----------
        stage : Stage
            A stage with the rule "proximal".
        """
        of_V, of_A = self.param_groups
        of_V |= {"lr": stage.eta_V, "row": self._row(stage.projector)}
        of_A |= {
            "lr": stage.eta_A,
            "centred": stage.centred,
            "lam": stage.lam if isinstance(stage.lam, float) else _measured(stage),
        }

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step with the current gradients of V and A.

        Parameters
        ----------
        closure : callable, optional
            A function that computes the loss and its gradients again, as for any PyTorch optimiser.

        Returns
        -------
        float or None
            The loss that ``closure`` returned, if there is one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        of_V, of_A = self.param_groups
        (V,) = of_V["params"]
        (A,) = of_A["params"]
        # Of the V before the step
        lam = of_A["lam"](V, self.mu) if callable(of_A["lam"]) else of_A["lam"]
        if of_V["lr"] and V.grad is not None:
            H = (V.grad - V.grad.mean(dim=0)) / self.mu
            V -= of_V["lr"] * (H - torch.outer(H @ self.mu, of_V["row"]))
        if of_A["lr"] and A.grad is not None:
            g = A.grad - A.grad.mean(dim=0) if of_A["centred"] else A.grad
            a = A - of_A["lr"] * g / self.mu
            a = a.sign() * (a.abs() - lam).clamp(min=0)
            A.copy_(a + (1 - a.sum(dim=0)) / len(a))
        return loss

    def _row(self, projector: Any) -> torch.Tensor:
        row = projector_row(self.mu.cpu().numpy(), projector)
        return torch.as_tensor(row, dtype=self.mu.dtype, device=self.mu.device)


def follow(
    recipe: Recipe, batches: Callable[[int, int], tuple[torch.Tensor, torch.Tensor]]
) -> LinearAttention:
    """Train a ``LinearAttention`` according to a recipe, with an ordinary PyTorch loop.

    Parameters
    ----------
    recipe : Recipe
        A recipe in which all stages have the rule "proximal".
    batches : callable
        A function (step, batch size) → (tokens, label) that returns the mini-batch of a step.

    Returns
    -------
    LinearAttention
        The model after the last stage.

    Examples
    --------
    >>> import scb, scb.torch
    >>> task = scb.Task.random(3, 40, 2)
    >>> def batches(step, size):
    ...     return scb.torch.SampleStream(task, size).at(step)
    >>> options = {"accuracy": 0.05, "least_overlap": 0.9, "multiple": 1.0}
    >>> model = scb.torch.follow(scb.recipes.transfer(task, task.P, **options), batches)
    >>> bool(scb.metrics.distance_A(task, model.A.detach().numpy()) < 0.1)
    True
    """
    if any(stage.rule != "proximal" for stage in recipe.stages):
        raise InputError(
            "a stage of the recipe is not proximal: Algorithm1 takes proximal steps only"
        )
    mu = recipe.mu
    model = LinearAttention(recipe.start.V, recipe.start.A)
    optimiser = Algorithm1(model.V, model.A, mu, eta_V=0.0, eta_A=0.0)
    done = 0
    for stage in recipe.stages:
        optimiser.enter(stage)
        _round(model, stage.enter, mu)
        for step in range(1, stage.steps + 1):
            optimiser.zero_grad()
            model.loss(*batches(done, stage.batch_size)).backward()
            optimiser.step()
            done += 1
            if stage.over(step, *_values(model), mu):
                break
        _round(model, stage.leave, mu)
    return model


def _measured(stage: Stage) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """V, μ ↦ λ of each column, by the noise of a step from V."""
    assert isinstance(stage.lam, MeasuredNoise)

    def levels(V: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
        K_V = float(((V - mu[:, None]).square() * mu).sum())
        return torch.as_tensor(stage.levels(K_V, mu.cpu().numpy()), dtype=V.dtype, device=V.device)

    return levels


def _values(model: LinearAttention) -> tuple[Array, Array]:
    return model.V.detach().cpu().numpy(), model.A.detach().cpu().numpy()


@torch.no_grad()
def _round(
    model: LinearAttention,
    roundings: Iterable[Callable[[Array, Array, Array], tuple[Array, Array]]],
    mu: Array,
) -> None:
    for rounding in roundings:
        V, A = rounding(*_values(model), mu)
        model.V.copy_(torch.as_tensor(np.array(V)))
        model.A.copy_(torch.as_tensor(np.array(A)))
