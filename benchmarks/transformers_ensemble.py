"""Many transformers of one shape that are trained side by side, for studies of many tasks and
learning rates.

The parameters of all models are stacked along a first axis and go through ``torch.func.vmap``. Each
model has its own task and its own learning rate, and no model affects another. On a GPU, the steps
are recorded once and replayed.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from scb.inputs import InputError, one_of

Loss = Literal["cross-entropy", "square"]
# Adam's; sgd has the first as its momentum
MOMENTS = (0.9, 0.999)


class Ensemble:
    """G models with stacked parameters, and their optimiser.

    Parameters
    ----------
    models : of one shape, all on one device
    rates : a learning rate for each
    loss : "cross-entropy" of the logits, or "square": ½‖e_o − F‖² with F the softmax of the logits
    optimiser : "adam", or "sgd" with momentum
    frozen : parameters whose names begin with one of these stay as they are
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        rates: Sequence[float],
        *,
        loss: Loss = "cross-entropy",
        optimiser: Literal["adam", "sgd"] = "adam",
        frozen: tuple[str, ...] = (),
    ) -> None:
        one_of("loss", loss, ("cross-entropy", "square"))
        one_of("optimiser", optimiser, ("adam", "sgd"))
        if len(models) != len(rates):
            raise InputError(f"{len(models)} models and {len(rates)} learning rates: there must be one for each")
        self.model = models[0]
        parameters, self.buffers = stack_module_state(list(models))
        self.parameters = {name: value.detach().clone() for name, value in parameters.items()}
        self.trained = [name for name in self.parameters if not name.startswith(frozen)] if frozen else list(self.parameters)
        for name in self.trained:
            self.parameters[name].requires_grad_()
        self.loss = loss
        self.optimiser = optimiser
        one = next(iter(self.parameters.values()))
        self.rates = torch.tensor(rates, device=one.device, dtype=one.dtype)
        self.count = torch.zeros((), device=one.device, dtype=torch.float64)
        self.moments = {name: [torch.zeros_like(self.parameters[name]) for _ in MOMENTS] for name in self.trained}
        self._graph: tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor] | None = None

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits (G, n, N) for tokens (G, n, L), or whatever else the models return for
        (n, L), with an additional first axis.
        """
        return vmap(lambda p, b, x: functional_call(self.model, (p, b), (x,)))(self.parameters, self.buffers, tokens)

    def step(self, tokens: torch.Tensor, label: torch.Tensor) -> None:
        """Take one step of every model on its own mini-batch, (G, B, L) and (G, B); labels have the
        shape of logits without N.
        """
        if tokens.device.type != "cuda":
            self._step(tokens, label)
            return
        if self._graph is None:
            self._record(tokens, label)
        assert self._graph is not None
        graph, to_tokens, to_label = self._graph
        to_tokens.copy_(tokens)
        to_label.copy_(label)
        graph.replay()

    def _step(self, tokens: torch.Tensor, label: torch.Tensor) -> None:
        logits = self.logits(tokens)
        if self.loss == "cross-entropy":
            loss = -logits.log_softmax(dim=-1).gather(-1, label[..., None])
        else:
            loss = 0.5 * (logits.softmax(dim=-1) - nn.functional.one_hot(label, logits.shape[-1])).square().sum(dim=-1)
        gradients = torch.autograd.grad(loss.sum() / label[0].numel(), [self.parameters[name] for name in self.trained])
        with torch.no_grad():
            self.count += 1
            for name, gradient in zip(self.trained, gradients, strict=True):
                self._update(name, gradient)

    def _update(self, name: str, gradient: torch.Tensor) -> None:
        parameter = self.parameters[name]
        first, second = self.moments[name]
        a, b = MOMENTS
        rates = self.rates.view(-1, *[1] * (parameter.ndim - 1))
        if self.optimiser == "sgd":
            first.mul_(a).add_(gradient)
            parameter -= rates * first
            return
        first.mul_(a).add_(gradient, alpha=1 - a)
        second.mul_(b).addcmul_(gradient, gradient, value=1 - b)
        scale = (second / (1 - b**self.count)).sqrt() + 1e-8
        parameter -= rates / (1 - a**self.count) * first / scale

    def _record(self, tokens: torch.Tensor, label: torch.Tensor) -> None:
        """Record a step as a CUDA graph; what was trained while it warmed up is put back."""
        state = [
            self.count,
            *(x for name in self.trained for x in (self.parameters[name], *self.moments[name])),
        ]
        before = [x.detach().clone() for x in state]
        inputs = tokens.clone(), label.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step(*inputs)
        with torch.no_grad():
            for x, was in zip(state, before, strict=True):
                x.copy_(was)
        self._graph = graph, *inputs


def excess(truth: torch.Tensor, F: torch.Tensor, mu: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the excess loss as a fraction of that of a model that always predicts μ, in KL
    divergence and in squared error, (G,) each.
    """
    trivial = mu[:, None].expand_as(truth)

    def divergence(distribution: torch.Tensor) -> torch.Tensor:
        return (truth * (truth.clamp(min=1e-300).log() - distribution.clamp(min=1e-12).log())).sum(dim=2).mean(dim=1)

    def square(distribution: torch.Tensor) -> torch.Tensor:
        return (distribution - truth).square().sum(dim=2).mean(dim=1)

    return divergence(F) / divergence(trivial), square(F) / square(trivial)
