"""Data to fit and data to predict: what is held out, and how the split is reported."""

from typing import NamedTuple

import numpy as np

from scb.inputs import InputError
from scb.sequences.tables import Classes, Codes
from scb.task.task import generator

# A sequence is long if it has more than one in so many symbols
LONG = 10


class Split(NamedTuple):
    """Data to fit and data to predict."""

    train: list[Codes]
    test: list[Codes]
    skipped: list[int]  # symbols at the start of each test sequence that are history only
    seed: int = 0  # that whole sequences were drawn with
    fraction: float = 0.0  # of a long sequence that is held out


def split(codes: list[Codes], fraction: float, seed: int = 0) -> Split:
    """Hold out a fraction of the symbols: the end of each sequence with more than a tenth of all
    symbols and, among the other sequences, whole sequences drawn at random.
    """
    if fraction == 0:
        return Split(codes, [], [])
    lengths = np.array([len(x) for x in codes])
    if len(codes) == 1 and not 1 < round(lengths[0] * (1 - fraction)) < lengths[0]:
        raise InputError(f"{lengths[0]} symbols are too few for held_out = {fraction}")
    is_long = lengths * LONG > lengths.sum()
    order = generator(seed).permutation(np.flatnonzero(~is_long))
    wanted = fraction * lengths[order].sum()
    number = np.searchsorted(np.cumsum(lengths[order]), wanted) + 1
    # Some sequence is fitted and some held out
    number = min(number, order.size - (not is_long.any()))
    drawn = np.isin(np.arange(len(codes)), order[:number])
    cuts = np.where(is_long, np.round(lengths * (1 - fraction)).astype(int), drawn * 0)
    chosen = list(zip(codes, is_long, drawn, cuts.tolist(), strict=True))
    return Split(
        train=[x[:cut] if long else x for x, long, held, cut in chosen if not held],
        test=[x for x, long, held, _ in chosen if long or held],
        skipped=[cut for _, long, held, cut in chosen if long or held],
        seed=seed,
        fraction=fraction,
    )


def about_split(parts: Split, classes: Classes) -> list[str]:
    """Lines of text on what was fitted, what was held out, and which symbols are new to the fit."""
    if not parts.test:
        return ["All of it is fitted, nothing held out"]
    lines = [_said_of_split(parts)]
    strange = np.setdiff1d(
        np.concatenate([x[first:] for x, first in zip(parts.test, parts.skipped, strict=True)]),
        [-1, *np.unique(np.concatenate(parts.train))],
    )
    if strange.size:
        names = ", ".join(map(repr, classes[strange[:5]].tolist()))
        more = ", …" if strange.size > 5 else ""
        lines.append(
            f"{counted(strange.size, 'kind')} of symbols occurring only in what is held out"
            f" ({names}{more}): unlikely, but not impossible"
        )
    return lines


def _said_of_split(parts: Split) -> str:
    """Which part is fitted and which is held out, in words."""
    if len(parts.train) == len(parts.test) == 1 and parts.skipped[0]:
        return (
            f"The first {parts.skipped[0]:,} symbols are fitted, those after them held out to be"
            " predicted"
        )
    drawn = parts.skipped.count(0)
    cut = len(parts.skipped) - drawn
    held_out = []
    if drawn:
        held_out.append(f"{counted(drawn, 'sequence')} drawn at random (seed {parts.seed})")
    if cut:
        held_out.append(f"the last {parts.fraction:.0%} of {counted(cut, 'long sequence')}")
    return f"Held out to be predicted: {' and '.join(held_out)}; everything else is fitted"


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
