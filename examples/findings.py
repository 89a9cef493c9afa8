"""What the examples share: how much a lag matters, how sure that is, who predicts best, and the panels of the figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator

import scb
from scb.drawing import COLOURS
from scb.sequences.baselines.scoring import baseline_scorers
from scb.sequences.comparison import paired_error
from scb.sequences.symbols import as_sequences, encode

Symbols = Sequence[str | None]
Pair = tuple[str, int]
"""A context (\"all\" in a model without) and a lag."""

Row = dict[str, Any]
"""Something that was found, as it is kept for the page that tells of it; ``what`` says which kind of row it is."""

OWN = "lags beyond the recent past"
IMAGES = Path(__file__).parent.parent / "docs" / "images"
KEPT = Path(__file__).parent.parent / "benchmarks" / "examples"


def influence(model: scb.SparseContextualBigram) -> dict[Pair, float]:
    """``influence_`` by context and lag: with a matrix for each lag, a weight alone says little.

    Lag 1 is left out where it is the context: there is nothing to compare it with.
    """
    table, moves = model.lags_, model.influence_.data.tolist()
    pairs = zip(table["context"].tolist(), table["lag"].tolist(), moves, strict=True)
    return {("all" if k is None else str(k), lag): move for k, lag, move in pairs if not (model.context and lag == 1)}


def tenths(model: scb.SparseContextualBigram, sequence: Symbols, parts: int = 10) -> dict[Pair, tuple[float, float, int]]:
    """For each pair: influence, its standard error, and in how many of ``parts`` fits it was found.

    Each of these leaves a tenth of the sequence out and looks for the lags anew; the error is the jackknife's over these blocks. A
    pair that was not found has influence 0 there.
    """
    whole = influence(model)
    again: list[dict[Pair, float]] = []
    bounds = np.linspace(0, len(sequence), parts + 1).astype(int)
    for a, b in pairwise(bounds):
        rest = [part for part in (sequence[:a], sequence[b:]) if len(part)]
        again.append(influence(scb.SparseContextualBigram(**model.get_params()).fit(rest)))
    out = {}
    for pair in sorted(set(whole).union(*again)):
        values = np.array([one.get(pair, 0.0) for one in again])
        error = np.sqrt((parts - 1) * np.var(values))
        out[pair] = whole.get(pair, 0.0), float(error), int(np.sum(values > 0))
    return out


def print_lags(table: dict[Pair, tuple[float, float, int]], parts: int, contexts: str) -> list[Row]:
    """One line for each pair that was found on all data, then those that turned up only without some part; all of them as rows."""
    print(f"  {contexts:<12} lag  influence ± s.e.  found in fits without a part")
    for (context, lag), (size, error, times) in table.items():
        if size > 0:
            print(f"  {context:<12} {lag:3d}      {size:.3f} ± {error:.3f}  {times} of {parts}")
    rare = [f"{context} {lag} ({times})" for (context, lag), (size, _, times) in table.items() if size == 0]
    print(f"  only in some of these fits: {', '.join(rare) or 'none'}")
    return [
        {"what": "lag", "context": context, "lag": lag, "influence": size, "error": error, "times": times, "fits": parts}
        for (context, lag), (size, error, times) in table.items()
    ]


def print_found(models: dict[str, scb.SparseContextualBigram]) -> list[Row]:
    """The lags of each of several models, a line and a row each."""
    for name, model in models.items():
        print(f"  {name:<26} {lags_of(model)}")
    return [{"what": "found in", "sequence": name, "lags": lags_of(model)} for name, model in models.items()]


def lags_of(model: scb.SparseContextualBigram) -> str:
    """The lags beyond the context, in a word."""
    by: dict[str, list[int]] = {}
    for context, lag in sorted(influence(model)):
        by.setdefault(context, []).append(lag)
    return "; ".join(f"{context}: {', '.join(map(str, lags))}" for context, lags in by.items()) or "none"


def held_out(models: dict[str, scb.SparseContextualBigram], train: Symbols, test: Symbols) -> dict[str, np.ndarray]:
    """By name, the log-likelihood in nats of every symbol of ``test`` that has one before it; baselines are fitted to ``train``."""
    (known, held), classes = encode(as_sequences([list(train), list(test)]))
    scores: dict[str, np.ndarray] = {}
    for scorer in baseline_scorers([known], [held], len(classes)).values():
        scores |= scorer()
    at = np.flatnonzero((held[1:] >= 0) & (held[:-1] >= 0))
    for name, model in models.items():
        distributions = model.predict_proba(list(test))
        place = np.searchsorted(model.classes_, classes[held[at + 1]])
        scores[name] = np.log(distributions[at, place])
    return scores


def print_bits(scores: dict[str, np.ndarray], own: str) -> list[Row]:
    """The table, best first; for each model its difference to ``own``, symbol by symbol, with a standard error."""
    print(f"  held out, {len(scores[own]):,} symbols:       bits per symbol   above {own}")
    rows = []
    for name, values in sorted(scores.items(), key=lambda item: -item[1].mean()):
        difference = (scores[own] - values) / np.log(2)
        row = {"what": "bits", "model": name, "bits": float(-values.mean() / np.log(2)), "symbols": len(values)}
        beside = ""
        if name != own:
            row |= {"above": float(difference.mean()), "error": float(paired_error(difference))}
            beside = f"{row['above']:+.4f} ± {row['error']:.4f}"
        print(f"  {name:<38} {row['bits']:.4f}   {beside}")
        rows.append(row)
    return rows


def information(sequence: Symbols, symbol: str | None, max_lag: int) -> np.ndarray:
    """(max_lag,): mutual information of the next symbol and the one at each lag, in bits, where the current symbol is ``symbol``.

    ``symbol`` None: wherever. The bias of counts, (N − 1)²/(2n ln 2), is taken off.
    """
    names = sorted({x for x in sequence if x is not None})
    codes = np.array([-1 if x is None else names.index(x) for x in sequence])
    N, out = len(names), np.zeros(max_lag)
    for lag in range(1, max_lag + 1):
        label, source, now = codes[max_lag:], codes[max_lag - lag : len(codes) - lag], codes[max_lag - 1 : -1]
        kept = (label >= 0) & (source >= 0) & (now >= 0 if symbol is None else now == names.index(symbol))
        joint = np.bincount(label[kept] * N + source[kept], minlength=N * N).reshape(N, N) / kept.sum()
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        on = joint > 0
        rows, columns = ((joint.sum(axis=axis) > 0).sum() - 1 for axis in (0, 1))
        bias = rows * columns / (2 * np.log(2) * kept.sum())
        out[lag - 1] = (joint[on] * np.log2(joint[on] / apart[on])).sum() - bias
    return out


# ------------------------------------------------------------------------------------------------------ panels


def draw_influence(ax: Axes, model: scb.SparseContextualBigram, contexts: Sequence[str], label: str) -> None:
    """A heat map: contexts down, lags across; grey where the lag is the context itself, white where a lag was not found."""
    found = influence(model)
    size = np.array([[found.get((c, lag), np.nan) for lag in range(1, model.max_lag + 1)] for c in contexts])
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256)))
    top = float(np.nanmax(size)) if found else 1.0
    extent = (0.5, model.max_lag + 0.5, len(contexts) - 0.5, -0.5)
    ax.imshow(size, cmap=blues, vmin=0, vmax=top, aspect="auto", extent=extent)
    if model.context:
        ax.axvspan(0.5, 1.5, color="0.88", linewidth=0)
    for (k, lag), value in np.ndenumerate(size):
        if value > 0:
            text, colour = f"{value:.2f}".lstrip("0"), "white" if value > 0.55 * top else "black"
            ax.text(lag + 1, k, text, color=colour, fontsize=6.5 if model.max_lag < 20 else 5, ha="center", va="center")
    ax.set_yticks(range(len(contexts)), contexts)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    beyond = "found" if model.background == "labels" else "beyond the recent past"
    ax.set(xlabel="lag", ylabel=label, title=f"influence of the lags {beyond}")
    ax.grid(False)


def draw_information(ax: Axes, lines: dict[str, np.ndarray], marks: Sequence[int]) -> None:
    """Mutual information against lag, from 2 on since lag 1 is the context, with thin lines at the marks."""
    for number, (name, values) in enumerate(lines.items()):
        lags = range(2, len(values) + 1)
        ax.plot(lags, values[1:], "os^D"[number] + "-", color=COLOURS[number], ms=3, lw=1.0, label=name)
    for lag in marks:
        ax.axvline(lag, color="0.5", linewidth=0.8, linestyle=":")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="lag", ylabel="bits", title="mutual information with the next symbol", ylim=(0, None))
    ax.legend()


def draw_shares(ax: Axes, shares: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Stacked bars: a bar for each row, a part for each column of ``shares`` (rows, columns)."""
    left = np.zeros(len(rows))
    for j, name in enumerate(columns):
        ax.barh(range(len(rows)), shares[:, j], left=left, color=COLOURS[j], alpha=0.8, label=name, height=0.75)
        for i, share in enumerate(shares[:, j]):
            if share > 0.08:
                ax.text(left[i] + share / 2, i, f"{share:.0%}", color="white", fontsize=7, ha="center", va="center")
        left += shares[:, j]
    ax.set_yticks(range(len(rows)), rows)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="share of next symbols")
    ax.grid(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=len(columns), fontsize=7, handlelength=1.0)


def shares(sequence: Symbols, current: str, lag: int, symbols: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(N, N): how often each symbol comes next after ``current``, by the symbol at ``lag``; and (N,) out of how many."""
    counts = np.zeros((len(symbols), len(symbols)))
    for t in range(lag, len(sequence)):
        source, label = sequence[t - lag], sequence[t]
        if sequence[t - 1] == current and source in symbols and label in symbols:
            counts[symbols.index(source), symbols.index(label)] += 1
    total = counts.sum(axis=1)
    return counts / np.maximum(total, 1)[:, None], total


def options(story: str | None, name: str) -> argparse.Namespace:
    """--quick, --figure and --results, the same for every example."""
    parser = argparse.ArgumentParser(description=story, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer fits to check the findings with")
    parser.add_argument("--figure", type=Path, default=IMAGES / f"{name}.png", help="where the figure goes")
    parser.add_argument("--results", type=Path, help="where the rows for the page go; with --quick nowhere")
    asked = parser.parse_args(sys.argv[1:])
    if asked.results is None and not asked.quick:
        asked.results = KEPT / f"{name}.jsonl"
    return asked


def keep(rows: Sequence[Row], path: Path | None) -> None:
    """Write the rows, a line each."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    print("results:", path)
