"""A small standard decoder with embeddings, pre-norm attention and MLP blocks, and a readout, all
in one file.

With one layer, the prediction after the last token needs only one query, and a key or value depends
only on a token and its position. There are T·N pairs of a token and a position, often far fewer
than there are tokens in a mini-batch. In this case, ``Transformer`` works on a table of these
pairs, which gives the same numbers in a fraction of the time.
"""

from typing import Literal, get_args

import torch
from torch import nn

from scb.arrays import Array
from scb.inputs import InputError, integer, one_of

Attention = Literal["softmax", "linear", "shrunk", "thresholded"]


class Transformer(nn.Module):
    """A small causal decoder-only transformer.

    The transformer maps token sequences to the logits of the next token.

    Parameters
    ----------
    N : int
        The number of tokens in the vocabulary.
    T : int
        The number of positions in a context. With the last token, inputs have up to T + 1 tokens.
    width, heads, layers : int, default 64, 1 and 1
        The width of the embeddings, the number of attention heads, and the number of layers.
    mlp : int, default 4
        The width of the hidden layer of each MLP, as a multiple of ``width``. The value 0 leaves
        out the MLP.
    attention : {"softmax", "linear", "shrunk", "thresholded"}, default "softmax"
        The kind of attention. "linear" uses the scores q·k/√d as weights, without a softmax. The
        last two kinds apply the idea of the paper's proximal step: "shrunk" subtracts ``shrink``/L
        from each softmax weight, where L is the number of tokens, sets negative weights to 0 and
        normalises; "thresholded" is a softmax of scores that are centred and soft-thresholded at
        ``shrink`` standard deviations.
    norm : bool, default True
        Whether to use layer normalisation.
    shrink : float, default 1
        The amount of shrinkage for the attentions "shrunk" and "thresholded".
    centre : (N,) array, optional
        The distribution μ of the tokens. If given, the μ-weighted mean over tokens is subtracted
        from the values at each position, so a value encodes only how a token differs from the
        others, as with the μ-projector of ``Algorithm1``. This option is for one layer only. By
        default, values are not centred.
    init : float, optional
        The standard deviation of the initial weights; GPT-2 uses 0.02. By default, PyTorch's own
        initialisation is used; its weights are larger, and models that start from them learn these
        tasks from fewer samples.

    Examples
    --------
    >>> import torch, scb.torch
    >>> model = scb.torch.Transformer(N=10, T=40, width=32)
    >>> tokens = torch.randint(10, (8, 41))
    >>> model(tokens).shape, model.forward(tokens, last=False).shape
    (torch.Size([8, 10]), torch.Size([8, 41, 10]))
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
        attention: Attention = "softmax",
        norm: bool = True,
        shrink: float = 1.0,
        centre: Array | None = None,
        init: float | None = None,
    ) -> None:
        super().__init__()
        for name, value in (
            ("N", N),
            ("T", T),
            ("width", width),
            ("heads", heads),
            ("layers", layers),
        ):
            integer(name, value, low=1)
        one_of("attention", attention, get_args(Attention))
        if width % heads:
            raise InputError(
                f"width = {width}, heads = {heads}: the width must be a multiple of the heads"
            )
        if centre is not None and layers > 1:
            raise InputError(
                f"layers = {layers}: values can be centred in a model of one layer only"
            )
        self.embed = nn.Embedding(N, width)
        self.position = nn.Embedding(T + 1, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, mlp, attention, norm, shrink) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.readout = nn.Linear(width, N, bias=False)
        self.register_buffer(
            "centre",
            None if centre is None else torch.tensor(centre, dtype=torch.get_default_dtype()),
        )
        if init is not None:
            for module in self.modules():
                if isinstance(module, nn.Linear | nn.Embedding):
                    nn.init.normal_(module.weight, std=init)

    def forward(self, tokens: torch.Tensor, *, last: bool = True) -> torch.Tensor:
        """Compute the logits of the next token, after the last token only or after each token.

        Parameters
        ----------
        tokens : (B, L) integer tensor
            A batch of sequences of length L ≤ T + 1.
        last : bool, default True
            Whether to predict only after the last token.

        Returns
        -------
        (B, N) or (B, L, N) tensor
            The logits after the last token, or after each token if ``last`` is False.
        """
        L = tokens.shape[1]
        if len(self.blocks) == 1 and last:
            table = self.embed.weight + self.position.weight[:L, None]  # (L, N, width)
            return self.readout(self.norm(self.blocks[0].last_by_table(table, tokens, self.centre)))
        if self.centre is not None:
            raise InputError("a model with centred values predicts after the last token only")
        x = self.embed(tokens) + self.position.weight[:L]
        for depth, block in enumerate(self.blocks, start=1):
            x = block(x, last=last and depth == len(self.blocks))
        logits = self.readout(self.norm(x))
        return logits[:, -1] if last else logits


class Block(nn.Module):
    """A block of attention and then an MLP; each acts on its normalised input, and its output is
    added to the input.
    """

    def __init__(
        self, width: int, heads: int, mlp: int, attention: Attention, norm: bool, shrink: float
    ) -> None:
        super().__init__()
        self.heads = heads
        self.attention = attention
        self.shrink = shrink
        self.norm_1 = nn.LayerNorm(width) if norm else nn.Identity()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = None
        if mlp:
            self.norm_2 = nn.LayerNorm(width) if norm else nn.Identity()
            self.mlp = nn.Sequential(
                nn.Linear(width, mlp * width), nn.GELU(), nn.Linear(mlp * width, width)
            )

    def forward(self, x: torch.Tensor, *, last: bool) -> torch.Tensor:
        """Map (B, L, width) to the same shape or, with ``last``, to the last position only, (B, 1,
        width).
        """
        normed = self.norm_1(x)
        of = normed[:, -1:] if last else normed
        q = self._by_head(self.query(of))
        k = self._by_head(self.key(normed))
        v = self._by_head(self.value(normed))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, heads, 1 or L, L)
        if not last:
            L = x.shape[1]
            earlier = torch.ones(L, L, dtype=torch.bool, device=x.device).tril()
            scores = scores.masked_fill(~earlier, 0.0 if self.attention == "linear" else -torch.inf)
        attended = (self._weights(scores) @ v).transpose(1, 2).flatten(2)  # (B, 1 or L, width)
        return self._add_mlp((x[:, -1:] if last else x) + self.out(attended))

    def last_by_table(
        self, table: torch.Tensor, tokens: torch.Tensor, centre: torch.Tensor | None
    ) -> torch.Tensor:
        """Return what ``forward`` returns at the last position, (B, width), given the inputs for
        every position and token, (L, N, width).
        """
        L, N, width = table.shape
        B = len(tokens)
        normed = self.norm_1(table)
        q = self.query(normed[-1]).view(N, self.heads, -1)  # of each last token
        k = self.key(normed).view(L, N, self.heads, -1)
        v = self.value(normed)
        if centre is not None:
            v = v - torch.einsum("m,lmd->ld", centre, v)[:, None]
        v = v.view(L * N, self.heads, -1)
        scores = torch.einsum("khd,lmhd->khlm", q, k) / q.shape[-1] ** 0.5
        last = tokens[:, -1]
        # (B, L): which row of the table
        pair = torch.arange(L, device=tokens.device) * N + tokens
        # (B, heads)
        row = last[:, None] * self.heads + torch.arange(self.heads, device=tokens.device)
        # (B, heads, L), of the scores
        which = row[:, :, None] * (L * N) + pair[:, None]
        weights = self._weights(scores.reshape(-1).gather(0, which.reshape(-1)).view(which.shape))
        spread = weights.new_zeros(B, self.heads, L * N).scatter(
            2, pair[:, None].expand(B, self.heads, L), weights
        )
        attended = torch.einsum("bhp,phd->bhd", spread, v).reshape(B, width)
        return self._add_mlp(table[-1][last] + self.out(attended))

    def _by_head(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _weights(self, scores: torch.Tensor) -> torch.Tensor:
        if self.attention == "linear":
            return scores
        if self.attention == "thresholded":
            scores = _soft_threshold(scores, self.shrink)
        weights = scores.softmax(dim=-1)
        if self.attention == "shrunk":
            weights = (weights - self.shrink / scores.shape[-1]).clamp(min=0)
            weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-6)
        return weights

    def _add_mlp(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.mlp is None else x + self.mlp(self.norm_2(x))


def _soft_threshold(scores: torch.Tensor, multiple: float) -> torch.Tensor:
    """Logits without their mean and without what lies within ``multiple`` standard deviations; a
    masked logit, −∞, stays so.
    """
    there = scores.isfinite()
    count = there.sum(dim=-1, keepdim=True)
    seen = scores.where(there, 0.0)
    centred = (seen - seen.sum(dim=-1, keepdim=True) / count).where(there, 0.0)
    level = multiple * (centred.square().sum(dim=-1, keepdim=True) / count).sqrt().detach()
    return (centred.sign() * (centred.abs() - level).clamp(min=0)).where(there, -torch.inf)
