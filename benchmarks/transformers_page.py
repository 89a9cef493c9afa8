"""The tables of docs/explanation/transformers-tables.md, made from the tables that are shipped: no number is typed by hand."""

from typing import Any

import numpy as np
from rates_page import Blocks, markdown

from scb.jobs.table import Table, pick, values
from scb.paper.claims.transformers import SMALL, growth
from scb.paper.numbers import median, spread
from scb.paper.tuned import best_setting, chosen_decoders, transferred

LENGTHS = (32, 128, 512, 2048, 8192)
VARIANTS = {
    "transformer": ("scaling", "standard"),
    "… initial weights 0.02": (f"scaling{SMALL}", "standard"),
    "… values centred": ("proximal", "values centred"),
}
KEPT = {"… values kept, same P": "values", "… values frozen, same P": "frozen"}
BASELINES = {
    "Algorithm 1, μ-projector": "Algorithm 1, mu",
    "Algorithm 1, the paper's projector": "Algorithm 1, euclidean",
    "`recover`": "recover",
}


def _thousands(best: Table, column: str = "samples_10") -> str:
    """Median and quartiles in thousands; how many samples were not enough where half of the tasks do not get there."""
    middle, low, high, _ = spread(best[column])
    if np.isinf(middle):
        return f"> {best['samples'][0] / 1000:,.0f}"
    digits = 0 if middle >= 9_950 else 1
    upper = f"{high / 1000:,.{digits}f}" if np.isfinite(high) else "∞"
    return f"{middle / 1000:,.{digits}f} [{low / 1000:,.{digits}f}, {upper}]"


def _cell(table: Table, setting: str, until: str = "samples_10", **where: Any) -> str:
    """One entry of a table; a dash if it was not run."""
    rows = pick(table, **where)
    return _thousands(best_setting(rows, setting, until), until) if len(rows["T"]) else "–"


def _baselines(transformers: Table, baselines: Table, N: int) -> dict[str, tuple[Table, str]]:
    """Name → its rows, and the column whose best value counts."""
    found = {name: (pick(transformers, study=study, variant=variant), "rate") for name, (study, variant) in VARIANTS.items()}
    found |= {name: (transferred(transformers, keep, "1"), "rate") for name, keep in KEPT.items()}
    found |= {name: (pick(baselines, rival=baseline), "setting") for name, baseline in BASELINES.items()}
    return {name: (pick(table, N=N), setting) for name, (table, setting) in found.items()}


def lengths(transformers: Table, baselines: Table) -> str:
    """Samples until 10 % is left, by N and T, and the exponent in T."""
    rows = []
    for N in (10, 3):
        for name, (mine, setting) in _baselines(transformers, baselines, N).items():
            if len(mine["T"]):
                found = [_cell(mine, setting, T=T) for T in LENGTHS]
                rows.append([f"N = {N}, {name}", *found, f"{growth(mine, setting):+.2f}"])
    return markdown(["thousands of samples", *(f"T = {T:,}" for T in LENGTHS), "exponent of T"], rows)


def halves(transformers: Table) -> str:
    """Samples until half is left, by N and T, and the exponent in T; each at the rate that is best for that."""
    half = "samples_50"
    rows = []
    for N in (50, 10, 3):
        found = {"transformer": pick(transformers, study="scaling", variant="standard", N=N)}
        found |= {name: pick(transferred(transformers, keep, "1"), N=N) for name, keep in KEPT.items()}
        for name, mine in found.items():
            several = sum(_cell(mine, "rate", half, T=T)[0].isdigit() for T in LENGTHS) > 1
            exponent = f"{growth(mine, 'rate', half):+.2f}" if several else "–"
            rows.append([f"N = {N}, {name}", *(_cell(mine, "rate", half, T=T) for T in LENGTHS), exponent])
    return markdown(["thousands of samples", *(f"T = {T:,}" for T in LENGTHS), "exponent of T"], rows)


def rates(transformers: Table) -> str:
    """The learning rate that is best for 10 %, by N and T; for half where 10 % is not reached."""
    rows = []
    for N in (10, 3, 50):
        fresh = pick(transformers, study="scaling", variant="standard", N=N)
        found = []
        for T in LENGTHS:
            mine = pick(fresh, T=T)
            known = len(mine["T"]) and np.isfinite(median(best_setting(mine, "rate")["samples_50"]))
            found.append(f"{best_setting(mine, 'rate')['rate'][0]:g}" if known else "–")
        rows.append([f"N = {N}", *found])
    return markdown(["best learning rate", *(f"T = {T:,}" for T in LENGTHS)], rows)


def alphabets(transformers: Table, baselines: Table) -> str:
    """Samples at T = 32, by N."""
    sizes = (3, 10, 50)
    rows = []
    for name, until in (("half", "samples_50"), ("10 %", "samples_10")):
        found = [_cell(transformers, "rate", until, study="scaling", variant="standard", N=N, T=32) for N in sizes]
        rows.append([f"transformer, {name} left", *found])
    for name, baseline in BASELINES.items():
        rows.append([f"{name}, 10 % left", *(_cell(baselines, "setting", rival=baseline, N=N, T=32) for N in sizes)])
    return markdown(["thousands of samples, T = 32", *(f"N = {N}" for N in sizes)], rows)


def changes(transformers: Table) -> str:
    """One change at a time, at N = 10 and T = 128, with both kinds of initial weights."""
    table = pick(transformers, N=10, T=128)
    names = [("standard", "scaling")]
    names += [(name, kind) for kind in ("design", "proximal") for name in values(pick(table, study=f"{kind}{SMALL}"), "variant")]
    names.append(("values centred, weights shrunk by 0.9/L", "proximal"))
    rows = []
    for variant, kind in names:
        row = [variant]
        for study in (kind, f"{kind}{SMALL}"):
            mine = pick(table, study=study, variant=variant)
            if len(mine["T"]):
                best = best_setting(mine, "rate")
                row += [_thousands(best), f"{best['rate'][0]:g}"]
            else:
                row += ["–", "–"]
        rows.append(row)
    return markdown(["thousands of samples", "PyTorch's weights", "rate", "weights 0.02", "rate"], rows)


def transfer(transformers: Table) -> str:
    """What is kept, from how close a task, and the samples until 10 % is left."""
    kinds = {"all": "all weights", "values": "values", "frozen": "values, frozen"}
    rows = []
    for N in (10, 3, 50):
        found = {"nothing": pick(transformers, study="scaling", variant="standard")}
        found |= {f"{kinds[keep]}, overlap {x}": transferred(transformers, keep, x) for keep in kinds for x in ("1", "0.6", "0.3")}
        for name, table in found.items():
            mine = pick(table, N=N)
            if len(mine["T"]):
                rows.append([f"N = {N}: {name}", *(_cell(mine, "rate", T=T) for T in LENGTHS)])
    return markdown(["what is kept", *(f"T = {T:,}" for T in LENGTHS)], rows)


def stages(table: Table) -> str:
    """When things happen along training, for both starts."""
    rows = []
    for name, column, level, rising in (
        ("a tenth of the excess loss is gone", "left", 0.9, False),
        ("half of it is gone", "left", 0.5, False),
        ("α_A is 0.8", "alpha_A", 0.8, True),
        ("α_V is 0.8", "alpha_V", 0.8, True),
        ("10 % of the excess loss is left", "left", 0.1, False),
    ):
        rows.append([name, *(_when(pick(table, start=start), column, level, rising) for start in values(table, "start"))])
    for name, column in (("then: attention on the true positions", "mass"), ("then: what has another form", "unexplained")):
        found = []
        for start in values(table, "start"):
            runs = [pick(table, start=start, replicate=i) for i in np.unique(table["replicate"])]
            at = [run[column][np.argmax(run["left"] <= 0.1)] for run in runs if (run["left"] <= 0.1).any()]
            found.append(f"{min(at):.1%} to {max(at):.1%}")
        rows.append([name, *found])
    return markdown(["thousands of samples until", *values(table, "start")], rows)


def _when(table: Table, column: str, level: float, rising: bool) -> str:
    """Median and quartiles, in thousands, of the samples at the first look that is beyond a level."""
    first = []
    for i in np.unique(table["replicate"]):
        run = pick(table, replicate=i)
        beyond = run[column] >= level if rising else run[column] <= level
        first.append(float(run["samples"][np.argmax(beyond)]) if beyond.any() else np.inf)
    middle, low, high, _ = spread(first)
    return f"{middle / 1000:,.0f} [{low / 1000:,.0f}, {high / 1000:,.0f}]"


def sequences(decoders: Table) -> str:
    """What is left of the excess loss on held-out tokens, by the number of tokens; and what is known of the lags at the end."""
    sizes = sorted(values(decoders, "length"))
    rows = []
    for model in values(decoders, "model"):
        chosen = chosen_decoders(pick(decoders, model=model))
        found = []
        for n in sizes:
            middle, low, high, _ = spread(pick(chosen, length=n)["share"])
            found.append(f"{middle:.1%} [{low:.1%}, {high:.1%}]")
        last = pick(chosen, length=sizes[-1])
        rows.append([model, *found, f"{median(last['lags']):.0%}", f"{median(last['mass']):.2f}"])
    return markdown(["excess loss left", *(f"{n:,}" for n in sizes), "lags found", "mass on them"], rows)


def seconds(transformers: Table, baselines: Table) -> str:
    """Wall time until 10 % is left: 32 transformers side by side on the GPU, the baselines on one core."""
    rows = []
    for T in LENGTHS[:4]:
        best = best_setting(pick(transformers, study="scaling", variant="standard", N=10, T=T), "rate")
        found = [f"{median(best['seconds']):.1f}" if np.isfinite(median(best["samples_10"])) else "–"]
        for baseline in BASELINES.values():
            mine = best_setting(pick(baselines, rival=baseline, N=10, T=T), "setting")
            found.append(f"{median(mine['seconds']):.2f}")
        rows.append([f"{T:,}", *found])
    return markdown(["seconds, N = 10, T =", "32 transformers, H200", *(f"{name}, one core" for name in BASELINES)], rows)


BLOCKS: Blocks = {
    "samples by length": (("transformers", "transformer rivals"), lengths),
    "half by length": (("transformers",), halves),
    "best rates": (("transformers",), rates),
    "samples by alphabet": (("transformers", "transformer rivals"), alphabets),
    "one change": (("transformers",), changes),
    "what is kept": (("transformers",), transfer),
    "course": (("transformer stages",), stages),
    "one sequence": (("decoders",), sequences),
    "wall time": (("transformers", "transformer rivals"), seconds),
}
