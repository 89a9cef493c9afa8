"""The layout of batches and sequences as samples in flat arrays of tokens; copies of tokens are
avoided where possible.

A sample is a window of T tokens, a last token that chooses the attention, and a label. In a
sequence, lag ℓ of a label is the token ℓ steps before it: lag 1 is the current token, which is the
last token of the sample. The positions of a window count from the oldest: position t is lag
``nearest`` + T − 1 − t. There is one convention with two settings:

- nearest = 2 in ``recover``, as in the paper: the current token chooses the attention but is not
  itself a source, and every sample has all its T tokens;
- nearest = 1 in the estimator: the current symbol may be a source too, and every symbol that
  follows another is a label. Where a window reaches beyond the start of a sequence or into a gap,
  token N marks what is missing.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import AnyArray, Array, Flags, Ints
from scb.inputs import InputError, unmasked
from scb.kernels.windows import count_tokens
from scb.task.sampling import Batch, token_dtype

LARGEST_TOKEN = 1 << 16


class Block(NamedTuple):
    """Samples on one flat array: token t of sample i is ``tokens[starts[i] + t]``; the last token
    and the label of each sample are stored separately.
    """

    tokens: AnyArray
    starts: Ints
    last: Ints
    label: Ints

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.starts.size

    @property
    def pairs(self) -> tuple[AnyArray, Ints, Ints]:
        """The first arguments of kernels for pairs of a label and a token."""
        return self.tokens, self.starts, self.label

    def some(self, at: slice | Ints) -> "Block":
        """Some of the samples; no token is copied."""
        return Block(self.tokens, self.starts[at], self.last[at], self.label[at])

    def has_gap(self, N: int, T: int) -> Flags:
        """(n,): whether one of the T tokens of each sample is missing (token N)."""
        gaps = np.flatnonzero(self.tokens == N)
        touched = np.zeros(self.tokens.size + T, np.int32)  # by the start of a window
        np.add.at(touched, np.maximum(gaps - T + 1, 0), 1)
        np.add.at(touched, gaps + 1, -1)
        return np.cumsum(touched)[self.starts] > 0


def batch_block(batch: Any, N: int | None) -> Block:
    """A checked batch with compact tokens; a ValueError says what is wrong with the batch."""
    if not isinstance(batch, Batch):
        raise InputError(
            f"data holds {type(batch).__name__}: it must hold Batches; sequences of tokens also "
            "require max_lag"
        )
    last = compact_tokens("last", batch.last, N)
    label = compact_tokens("label", batch.label, N)
    tokens = compact_tokens("context", np.ascontiguousarray(batch.context).reshape(-1), N)
    n, T = batch.context.shape
    if n and T < 1:
        raise InputError(
            f"context has shape {batch.context.shape}: there must be at least 1 position"
        )
    return Block(
        tokens, np.arange(n, dtype=np.int64) * T, last.astype(np.int64), label.astype(np.int64)
    )


def sequence_blocks(sequences: Iterable[AnyArray], T: int) -> list[Block]:
    """Every window of T tokens, a last token and a label, of each sequence of compact tokens that
    is long enough. The tokens are used in place.
    """
    blocks = []
    for tokens in sequences:
        starts = np.arange(max(0, tokens.size - T - 1), dtype=np.int64)
        if starts.size:
            last = tokens[starts + T].astype(np.int64)
            blocks.append(Block(tokens, starts, last, tokens[starts + T + 1].astype(np.int64)))
    return blocks


def label_block(
    sequences: Sequence[AnyArray],
    N: int,
    T: int,
    *,
    by_last: bool = True,
    skipped: int | Sequence[int] = 0,
) -> Block:
    """Every symbol that follows another as a label, with the T symbols before it; token N stands
    for a missing symbol.

    A negative code is a gap. The first ``skipped`` symbols of each sequence are not labels;
    ``skipped`` is one number for all sequences or one for each. Unless windows differ ``by_last``,
    all windows have last token 0.
    """
    flat = np.full(sum(T + len(codes) for codes in sequences), N, dtype=token_dtype(N + 1))
    wanted = np.zeros(flat.size, bool)
    end = 0
    for codes, unwanted in zip(sequences, of_each(sequences, skipped), strict=True):
        start = end + T  # what is before it is not there
        end = start + len(codes)
        flat[start:end] = np.where(codes < 0, N, codes)
        wanted[start + unwanted : end] = True
    there = flat < N
    labels = 1 + np.flatnonzero(there[1:] & there[:-1] & wanted[1:])
    last = flat[labels - 1].astype(np.int64) if by_last else np.zeros(labels.size, np.int64)
    return Block(flat, labels - T, last, flat[labels].astype(np.int64))


def of_each(sequences: Sequence[Any], number: int | Sequence[int]) -> list[int]:
    """A number for each sequence, from one number for all or the numbers themselves."""
    return np.broadcast_to(number, len(sequences)).tolist()


def symbol_counts(sequences: Iterable[AnyArray], N: int) -> Array:
    """(N,): how often each symbol occurs; gaps are not counted."""
    counts = np.zeros(N)
    for codes in sequences:
        if codes.dtype.kind == "u":
            count_tokens(codes, counts)
        else:
            counts += np.bincount(codes + 1, minlength=N + 1)[1:]  # a gap is −1
    return counts


def compact_tokens(name: str, values: Any, N: int | None) -> AnyArray:
    """Tokens as the smallest unsigned integers, or the array itself if it already has such a type;
    a ValueError names values that are not tokens.
    """
    values = np.asarray(unmasked(name, values))
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise InputError(f"{name} holds NaN: tokens must be integers from 0 on")
    if values.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {values.dtype}: tokens must be integers from 0 on")
    if values.size and values.dtype.kind == "i" and values.min() < 0:
        raise InputError(f"{name} holds {values.min()}: tokens must be integers from 0 on")
    top = int(values.max()) if values.size else 0
    if N is not None and top >= N:
        raise InputError(f"{name} holds token {top}: with N = {N}, tokens must lie in [0, {N - 1}]")
    if top >= LARGEST_TOKEN:
        raise InputError(
            f"{name} holds token {top}: tokens must be numbered 0, 1, 2, … (at most 65536 of them)"
        )
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2 and values.dtype.isnative:
        return values
    return values.astype(token_dtype(top + 1))


def token_sequences(sequences: Sequence[Any]) -> list[AnyArray]:
    """Checked one-dimensional sequences of compact tokens."""
    checked = []
    for i, sequence in enumerate(sequences):
        array = np.asarray(unmasked(f"sequence {i}", sequence))
        if array.ndim != 1:
            raise InputError(f"sequence {i} has shape {array.shape}: it must be one-dimensional")
        checked.append(
            compact_tokens(f"sequence {i}", array, None) if array.size else np.empty(0, np.uint8)
        )
    return checked
