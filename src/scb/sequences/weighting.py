"""Windows that count more or less: weights of symbols or sequences, and soft labels, which are
distributions that another model predicts.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from scb.arrays import Array, Ints
from scb.inputs import InputError, real_array
from scb.mixture.data import Data, Here
from scb.mixture.partition import Partition
from scb.mixture.windows import Block
from scb.sequences.choice import in_states
from scb.sequences.coding import labels_among, windows_of_codes
from scb.sequences.lag_model import LagModel
from scb.sequences.symbols import as_sequences, encode
from scb.sequences.tables import Classes, Codes, Sequences


def windows_with_weights(
    sequences: Sequences,
    max_lag: int,
    context: bool,
    sample_weight: Any,
    probabilities: Any,
    beside: Ints | None,
) -> tuple[Data, Classes, int | None]:
    """Windows with weights or soft labels, and with covariates whose codes are ``beside`` (symbols,
    covariates); the symbols; and the common length of several sequences.

    A sequence without weight is left out.
    """
    weight = np.ones(sum(sequences.lengths))
    if sample_weight is not None:
        weight = symbol_weights(sequences, sample_weight)
    parts = np.split(weight, np.cumsum(sequences.lengths)[:-1])
    kept = [i for i, part in enumerate(parts) if part.any()]
    if len(kept) < len(parts) and probabilities is None:
        every = list(sequences)
        if beside is not None:
            beside = beside[np.repeat([part.any() for part in parts], sequences.lengths)]
        sequences = as_sequences([every[i] for i in kept])
        weight = np.concatenate([parts[i] for i in kept])
    codes, classes = encode(sequences)
    data = weighted_windows(codes, len(classes), max_lag, context, weight, beside)
    if probabilities is not None:
        data = with_soft_labels(data, codes, weight, probabilities)
    same = sequences.many and len(set(sequences.lengths)) == 1
    return data, classes, sequences.lengths[0] if same else None


def symbol_weights(sequences: Sequences, sample_weight: Any) -> Array:
    """(symbols,): the weight of each symbol, from weights of sequences or of symbols. In a table,
    each row is a symbol.
    """
    weight = real_array("sample_weight", sample_weight)
    lengths = np.array(sequences.lengths)
    symbols = int(lengths.sum())
    rows = symbols if sequences.rows is None else sequences.n_rows
    if weight.ndim != 1 or weight.size not in (len(lengths), rows):
        raise InputError(
            f"sample_weight has shape {weight.shape}: there must be one weight for each of the"
            f" {len(lengths):,} sequences, or for each of the {rows:,} symbols"
        )
    if not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise InputError("sample_weight: weights must be finite, at least 0, and not all zero")
    if weight.size == len(lengths) and (sequences.many or len(lengths) > 1):
        return np.repeat(weight, lengths)
    return weight if sequences.rows is None else weight[sequences.rows]


def weighted_windows(
    codes: list[Codes],
    N: int,
    max_lag: int,
    context: bool,
    weight: Array,
    beside: Ints | None = None,
) -> Data:
    """The windows of sequences, each with the weight of its label; windows without weight are left
    out. ``weight`` is (symbols,).
    """
    data = windows_of_codes(codes, N, max_lag, context, beside=beside)
    (partition,) = data.partitions
    weighted = replace(partition, weight=weight[labels_among(codes)])
    weighted = weighted.only(0, lambda own, numbers: own.weights > 0)
    flat = np.concatenate(codes)
    counts = np.bincount(flat[flat >= 0], weight[flat >= 0], minlength=N)
    return _data(data, weighted, counts.astype(float))


def with_soft_labels(data: Data, codes: list[Codes], weight: Array, probabilities: Any) -> Data:
    """Windows whose labels are distributions: a window counts once for each label, with the
    probability of that label as its weight.

    Row i of ``probabilities`` (symbols, N) is the distribution of the symbol after symbol i;
    ``weight`` (symbols,) is the same as in ``weighted_windows``.
    """
    p = real_array("probabilities", probabilities)
    flat = np.concatenate(codes)
    if p.shape != (flat.size, data.N):
        raise InputError(
            f"probabilities has shape {p.shape}: there must be a row for each of the "
            f"{flat.size:,} symbols and a column for each of the {data.N} different symbols, in "
            "sorted order"
        )
    sums = p.sum(axis=1)
    if (p < 0).any() or not np.allclose(sums, 1, atol=1e-4):
        raise InputError("probabilities: each row must be a distribution of the next symbol")
    # The distribution of a label is in the row of the symbol before it
    rows = np.flatnonzero(labels_among(codes) & (weight > 0)) - 1
    p = p[rows] / sums[rows, None]
    (partition,) = data.partitions
    (block,) = partition.blocks
    p *= partition.weights[:, None]
    sample, label = np.nonzero(p)
    repeated = Block(block.tokens, block.starts[sample], block.last[sample], label)
    soft = replace(Partition.from_blocks([repeated]), weight=p[sample, label])
    if partition.beside is not None:
        soft = replace(soft, beside=partition.beside[sample])
    return _data(data, soft, data.mu * data.tokens)


def explained_share(model: LagModel, data: Data) -> float:
    """The share that a model explains of the information in soft labels beyond the distribution of
    all labels; it is 1 if the model predicts exactly as the soft labels do.
    """
    data = in_states(data, model.context)
    (partition,) = data.partitions
    (block,) = partition.blocks
    weight = partition.weights
    _, window = np.unique(block.starts, return_inverse=True)
    total = np.bincount(window, weight)[window]
    best = (weight * np.log(weight / total)).sum()
    least = (weight * np.log(data.label_distribution[block.label])).sum()
    return float((model.loglik(data) - least) / (best - least))


def _data(like: Data, partition: Partition, counts: Array) -> Data:
    """The samples of a partition in this process; ``counts`` (N,) is how often symbols occur."""
    total = float(counts.sum())
    data = Data.from_partitions(Here(), [partition], like.shape, counts / total, independent=False)
    return replace(data, tokens=total)
