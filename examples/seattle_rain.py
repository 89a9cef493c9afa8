"""Rain in Seattle: which earlier days say whether it rains tomorrow, and which only seem to.

1,461 days, 2012 to 2015, "wet" where any precipitation was measured, "dry" otherwise. (The data also have a column that names the
weather. It is not used: it calls wet days rain in 2012, and fog from 2014 on.)

The days have seasons, which the model does not know: a wet day a week ago makes winter more likely, and so rain. To tell such
stand-ins from memory, lags are also looked for in sequences drawn from a chain that has seasons and no memory beyond one day: its
chances of rain depend on the month and on the day before, as measured.

    python examples/seattle_rain.py [--quick] [--figure FILE] [--results FILE]
"""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
from data import read
from findings import OWN, draw_shares, held_out, influence, information, keep, lags_of, options, print_bits, print_found, shares
from matplotlib.figure import Figure

import scb
from scb.drawing import COLOURS, caption, panels, quiet, save

MAX_LAG = 14
SYMBOLS = ("dry", "wet")

Days = list[str | None]


def days(text: str) -> tuple[Days, np.ndarray]:
    """Dry or wet, and the month (0 to 11), of each day."""
    rows = list(csv.DictReader(text.splitlines()))
    return [SYMBOLS[float(row["precipitation"]) > 0] for row in rows], np.array([int(row["date"][5:7]) - 1 for row in rows])


def half_years(rain: Days, month: np.ndarray, summer: bool) -> list[Days]:
    """The days of April to September, or of the other months; a sequence for each run of them."""
    inside = ((month >= 3) & (month <= 8)) == summer
    bounds = np.flatnonzero(np.diff(inside)) + 1
    parts = np.split(np.arange(len(rain)), bounds)
    return [[rain[i] for i in part] for part in parts if inside[part[0]]]


def seasonal_chain(rain: Days, month: np.ndarray) -> np.ndarray:
    """(12, 2): the chance of rain in each month after a dry day and after a wet one."""
    wet = np.array([day == "wet" for day in rain])
    chance = np.zeros((12, 2))
    for m in range(12):
        for before in (0, 1):
            at = (month[1:] == m) & (wet[:-1] == bool(before))
            chance[m, before] = (wet[1:][at].sum() + 0.5) / (at.sum() + 1)
    return chance


def draw_days(chance: np.ndarray, month: np.ndarray, rng: np.random.Generator) -> Days:
    """One sequence from that chain."""
    wet, u = [int(rng.random() < chance[month[0]].mean())], rng.random(len(month))
    for m, x in zip(month[1:], u[1:], strict=True):
        wet.append(int(x < chance[m, wet[-1]]))
    return [SYMBOLS[x] for x in wet]


def fit(sequence: Days | list[Days], context: bool = True, background: str = "labels") -> scb.SparseContextualBigram:
    """One matrix for all lags: rain is followed by rain."""
    return scb.SparseContextualBigram(MAX_LAG, transition="shared", context=context, background=background).fit(sequence)


@quiet
def draw(rain: Days, model: scb.SparseContextualBigram, drawn: list[Days]) -> Figure:
    """Attention, mutual information against the seasonal chain, and rain after a dry day."""
    figure, axes = panels(3, "Seattle: which earlier days say whether it rains tomorrow", width=4.2, height=2.6)
    model.plot_attention(axes[0])
    axes[0].set(title="weights of the lags that were found", xlabel="lag, days", ylabel="today")
    axes[0].grid(False)
    lags = np.arange(1, MAX_LAG + 1)
    axes[1].plot(lags, information(rain, None, MAX_LAG), "o-", color=COLOURS[0], ms=3, lw=1.0, label="measured")
    low, high = np.quantile([information(one, None, MAX_LAG) for one in drawn], (0.05, 0.95), axis=0)
    axes[1].fill_between(lags, low, high, color="0.5", alpha=0.3, linewidth=0, label="seasons and one day of memory")
    axes[1].set(title="mutual information with tomorrow", xlabel="lag, days", ylabel="bits", ylim=(0, None))
    axes[1].legend()
    pairs = [(lag, shares(rain, "dry", lag, SYMBOLS)) for lag in (2, 7)]
    rows = [f"{lag} days before: {SYMBOLS[i]}\n({pair[1][i]:,.0f})" for lag, pair in pairs for i in (0, 1)]
    draw_shares(axes[2], np.concatenate([pair[0] for _, pair in pairs]), rows, SYMBOLS)
    axes[2].set(title="tomorrow, after a dry day", xlabel="share of days")
    caption(
        figure,
        f"{len(rain):,} days; the grey band holds 90 % of {len(drawn)} sequences drawn from a chain with seasons",
    )
    return figure


def main() -> None:
    """Fit, check, compare, draw."""
    asked = options(__doc__, "seattle_rain")
    rain, month = days(read("vega-datasets", "vega_datasets/_data/seattle-weather.csv"))
    print(f"Seattle: {len(rain):,} days, {rain.count('wet'):,} of them wet.\n")
    model = fit(rain)
    rng, repetitions = np.random.default_rng(0), 10 if asked.quick else 100
    chance = seasonal_chain(rain, month)
    drawn = [draw_days(chance, month, rng) for _ in range(repetitions)]
    found = [influence(fit(one)) for one in drawn]
    often = Counter(pair for one in found for pair in one)
    print(f"  today  lag  weight ± s.e.    found in {repetitions} draws from seasons and one day of memory")
    rows = []
    for context, lag, weight, error in zip(*model.lags_.values(), strict=True):
        times = often[str(context), int(lag)]
        print(f"  {context:<5}  {lag:3d}  {weight:.3f} ± {error:.3f}   {times if lag > 1 else '–'}")
        row = {"what": "lag", "context": str(context), "lag": int(lag), "weight": float(weight), "error": float(error)}
        rows.append(row | {"drawn": times})
    any_far = sum(any(lag > 2 for _, lag in one) for one in found)
    print(f"  some lag beyond 2 was found in {any_far} of these draws")

    year = len(rain) // 4
    others = {
        "first half": rain[: 2 * year],
        "second half": rain[2 * year :],
        "October to March": half_years(rain, month, summer=False),
        "April to September": half_years(rain, month, summer=True),
        "days in random order": [rain[i] for i in rng.permutation(len(rain))],
    }
    print("\n  beyond lag 1, found in")
    rows += print_found({name: fit(sequence) for name, sequence in others.items()})
    print()
    cut = len(rain) * 8 // 10
    train, test = rain[:cut], rain[cut:]
    models = {
        OWN: fit(train, background="ngram"),
        "lags, no n-gram": fit(train),
        "without context (MTD)": fit(train, context=False),
    }
    print(f"  beyond the recent past, found in the first 80 %: {lags_of(models[OWN])}")
    rows += print_bits(held_out(models, train, test), OWN)
    tomorrow, _ = shares(rain, "dry", 2, SYMBOLS)
    rain_after = {f"rain_after_{name}": float(tomorrow[i, SYMBOLS.index("wet")]) for i, name in enumerate(SYMBOLS)}
    rows.append({"what": "facts", "days": len(rain), "train": len(train), "draws": repetitions, "far": any_far, **rain_after})
    rows.append({"what": "found in", "sequence": "MTD, first 80 %", "lags": lags_of(models["without context (MTD)"])})
    print("\nfigure:", *save(draw(rain, model, drawn), asked.figure, ("png",)))
    keep(rows, asked.results)


if __name__ == "__main__":
    main()
