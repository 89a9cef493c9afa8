"""A small, standard decoder: embeddings, pre-norm attention and MLP blocks, readout. One file, nothing hidden."""

from typing import Literal

import torch
from torch import nn

from scb.inputs import InputError, integer, one_of


class Transformer(nn.Module):
    """A causal transformer over N tokens that maps tokens (B, L ≤ T + 1) to logits.

    Parameters
    ----------
    N : how many tokens there are
    T : positions of a context; with the last token, inputs have up to T + 1 of them
    width, heads, layers : of the decoder
    mlp : width of the MLP over that of the decoder; 0 leaves the MLP out
    attention : "softmax", or "linear": weights q·k/√d over earlier positions, without normalisation
    norm : with layer norm
    """

    def __init__(
        self,
        N: int,
        T: int,
        width: int = 64,
        heads: int = 1,
        layers: int = 1,
        mlp: int = 4,
        *,
        attention: Literal["softmax", "linear"] = "softmax",
        norm: bool = True,
    ) -> None:
        super().__init__()
        for name, value in (("N", N), ("T", T), ("width", width), ("heads", heads), ("layers", layers)):
            integer(name, value, low=1)
        one_of("attention", attention, ("softmax", "linear"))
        if width % heads:
            raise InputError(f"width = {width}, heads = {heads}: the width must be a multiple of the heads")
        self.embed = nn.Embedding(N, width)
        self.position = nn.Embedding(T + 1, width)
        self.blocks = nn.ModuleList(Block(width, heads, mlp, attention, norm) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.readout = nn.Linear(width, N, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor, *, last: bool = True) -> torch.Tensor:
        """Logits of the token after the last one, (B, N); or, with ``last`` False, of the token after each one, (B, L, N)."""
        L = tokens.shape[1]
        x = self.embed(tokens) + self.position.weight[:L]
        for depth, block in enumerate(self.blocks, start=1):
            x = block(x, last=last and depth == len(self.blocks))
        logits = self.readout(self.norm(x))
        return logits[:, -1] if last else logits


class Block(nn.Module):
    """Attention, then an MLP, each on a normalised input and added to it."""

    def __init__(self, width: int, heads: int, mlp: int, attention: str, norm: bool) -> None:
        super().__init__()
        self.heads = heads
        self.attention = attention
        self.norm_1 = nn.LayerNorm(width) if norm else nn.Identity()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = None
        if mlp:
            self.norm_2 = nn.LayerNorm(width) if norm else nn.Identity()
            self.mlp = nn.Sequential(nn.Linear(width, mlp * width), nn.GELU(), nn.Linear(mlp * width, width))

    def forward(self, x: torch.Tensor, *, last: bool) -> torch.Tensor:
        """(B, L, width) → the same; with ``last``, only its last position, (B, 1, width), in a time like L and not L²."""
        normed = self.norm_1(x)
        if last:
            x = x[:, -1:]
        x = x + self.out(self._attend(normed[:, -1:] if last else normed, normed))
        return x if self.mlp is None else x + self.mlp(self.norm_2(x))

    def _attend(self, of: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
        B, L, width = to.shape
        q, k, v = (layer(x).view(B, x.shape[1], self.heads, -1).transpose(1, 2) for layer, x in self._inputs(of, to))
        causal = of.shape[1] == L and L > 1
        if self.attention == "softmax":
            found = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        else:
            scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
            found = (scores.tril() if causal else scores) @ v
        return found.transpose(1, 2).reshape(B, of.shape[1], width)

    def _inputs(self, of: torch.Tensor, to: torch.Tensor) -> tuple[tuple[nn.Module, torch.Tensor], ...]:
        return (self.query, of), (self.key, to), (self.value, to)
