"""Tables of the scoreboard, from the rows that are kept."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from study import percent, read, table_of

from frame import HERE
from scb.jobs.table import wilson

OURS = "scb"
PREDICTS = "scb, beyond the recent past"
Kept = list[tuple[dict[str, Any], dict[str, Any]]]


class Group(NamedTuple):
    """Cases of one data set that are reported together."""

    title: str
    dataset: str
    where: dict[str, Any]
    ours: str = OURS


LAGS = [
    *(
        Group(f"lags {{1, 5}} up to 100, n = {n:,}", "hdmtd_two_lags", {"n": n})
        for n in (1000, 10_000)
    ),
    *(
        Group(f"lags {{1, 15, 30}} up to 40, n = {n:,}", "hdmtd_three_lags", {"n": n})
        for n in (1000, 10_000)
    ),
    *(Group(f"interleaved chains, n = {n}", "interleaved", {"n": n}) for n in (50, 100, 200, 400)),
]
SONGS = [
    Group(title, "songs", {"songs": songs, "control": control})
    for songs, of in ((1, "one song"), (20, "20 songs"))
    for control, title in (
        ("none", of),
        ("bars", f"{of}, bars in random order"),
        ("notes", f"{of}, notes in random order"),
    )
]
CODONS = [
    Group(f"{kind}, {bases:,} bases", "codons", {"kind": kind, "bases": bases})
    for bases in (6000, 23_000)
    for kind in ("coding", "other strand", "non-coding")
]
TEXTS = [
    Group(f"{text}, {how}", dataset, {"text": text}, PREDICTS)
    for dataset, how in (("texts", "held out"), ("texts_adaptive", "learned while reading"))
    for text in ("alice29", "plrabn12")
]
BARS = {"2/4": 8, "3/4": 12, "4/4": 16, "6/8": 12, "9/8": 18}


def kept(dataset: str, rows: Path = HERE / "rows") -> Kept:
    """The rows of a data set."""
    return read(rows / f"{dataset}.jsonl")


def by_estimator(group: Group, value: Callable[[dict, dict], Any]) -> dict[str, dict[str, Any]]:
    """Of each estimator, a value for each of its cases in the group, by the rest of the case."""
    found: dict[str, dict[str, Any]] = {}
    for case, row in kept(group.dataset):
        if all(case[name] == wanted for name, wanted in group.where.items()):
            rest = str(sorted((k, v) for k, v in case.items() if k != "estimator"))
            found.setdefault(case["estimator"], {})[rest] = value(case, row)
    return found


def right(case: dict, row: dict) -> float:
    """Whether a row is right."""
    return float(row["right"])


def share(values: Iterable[float]) -> str:
    """A share with its 95 % interval."""
    some = list(values)
    low, high = wilson(np.array(sum(some)), np.array(len(some)))
    return f"{percent(float(np.mean(some)), '.0f')} ({100 * low:.0f}–{100 * high:.0f})"


def paired(one: dict[str, float], other: dict[str, float]) -> tuple[float, float]:
    """The mean difference over the cases of both, and the half width of its 95 % interval."""
    both = sorted(set(one) & set(other))
    difference = np.array([one[key] - other[key] for key in both])
    spread = difference.std(ddof=1) if len(both) > 1 else math.nan
    return float(difference.mean()), float(1.96 * spread / math.sqrt(max(len(both), 1)))


def verdict(difference: float, half: float, better: int) -> str:
    """Who wins and by how much: ``better`` is 1 for shares, −1 for bits, of which fewer win."""
    if better > 0:
        words = f"{100 * abs(difference):.0f} ± {100 * half:.0f} points"
    else:
        words = f"{abs(difference):.3f} ± {half:.3f} bits"
    if not abs(difference) > half:
        return f"cannot tell ({words})"
    return f"{'wins' if difference * better > 0 else 'loses'} by {words}"


# -------------------------------------------------------------------------------------- the tables


TOLD = {"hdMTD FS", "mutual information, told the number", "scb, told the number"}
ASKED = ("hdmtd_two_lags", "hdmtd_three_lags", "interleaved")


def summary() -> list[str]:
    """Of each problem: ours as it comes and at its best, the best other, who wins by how much."""
    lines = []
    for group in (*LAGS, *SONGS, *CODONS):
        if not {"notes", "non-coding"} & {*group.where.values()}:
            found = by_estimator(group, right)
            if group.dataset in ASKED:
                found = {name: rows for name, rows in found.items() if name not in TOLD}
            means = {name: float(np.mean(list(rows.values()))) for name, rows in found.items()}
            texts = {name: share(rows.values()) for name, rows in found.items()}
            lines += compared(group.title, found, means, texts, 1)
    for group in TEXTS:
        rows = by_estimator(group, lambda case, row: row)
        bits = {name: bits_of(one) for name, one in rows.items()}
        found = {name: blocks_of(one) for name, one in rows.items()}
        texts = {name: f"{value:.3f} bits" for name, value in bits.items()}
        lines += compared(group.title, found, bits, texts, -1)
    headings = "problem|scb as it comes|scb's best setting|best other|as it comes against the other"
    return table_of(f"{headings}|best setting against the other", lines)


def compared(
    title: str,
    found: dict[str, dict[str, float]],
    means: dict[str, float],
    texts: dict[str, str],
    better: int,
) -> list[list[str]]:
    """A line of the summary, or none where something is missing."""
    ours = [name for name in found if name.startswith("scb")]
    others = [name for name in found if name not in ours and name != "chance"]
    if not ours or not others:
        return []
    best = max(ours, key=lambda name: better * means[name])
    other = max(others, key=lambda name: better * means[name])
    verdicts = [
        verdict(*paired(found[name], found[other]), better) if name in found else ""
        for name in (OURS, best)
    ]
    setting = "the same" if best == OURS else f"{best.removeprefix('scb, ')}: {texts[best]}"
    return [[title, texts.get(OURS, "not run"), setting, f"{other}: {texts[other]}", *verdicts]]


def bits_of(rows: dict[str, dict]) -> float:
    """The bits of the one row of an estimator on a text."""
    return next(iter(rows.values()))["bits"]


def blocks_of(rows: dict[str, dict]) -> dict[str, float]:
    """The blocks of that row, by their number."""
    return {f"{i:02}": bits for i, bits in enumerate(next(iter(rows.values()))["blocks"])}


def shares(groups: list[Group], value: Callable[[dict, dict], float] = right) -> list[str]:
    """A line for each estimator, a column for each group."""
    found = [by_estimator(group, value) for group in groups]
    names = list(dict.fromkeys(name for one in found for name in one))
    lines = [
        [name, *(share(one[name].values()) if name in one else "" for one in found)]
        for name in sorted(names, key=order)
    ]
    return table_of("|".join(["estimator", *(group.title for group in groups)]), lines)


def order(name: str) -> tuple[bool, bool, str]:
    """Ours first, chance last."""
    return name == "chance", not name.startswith("scb"), name


def seconds(groups: list[Group]) -> list[str]:
    """Median seconds of one fit."""
    found = [by_estimator(group, lambda case, row: row["seconds"]) for group in groups]
    names = sorted(dict.fromkeys(name for one in found for name in one), key=order)
    lines = [
        [
            name,
            *(f"{np.median(list(one[name].values())):.3f}" if name in one else "" for one in found),
        ]
        for name in names
    ]
    return table_of(
        "|".join(["seconds per fit, median", *(group.title for group in groups)]), lines
    )


def whole_bars(case: dict, row: dict) -> float:
    """Whether the answer is a whole number of bars."""
    return float(row["answer"] is not None and row["answer"] % BARS[case["metre"]] == 0)


def named(case: dict, row: dict) -> float:
    """Whether any lag was named as an answer."""
    return float(row["answer"] is not None)


def beside(rows: dict[str, dict[str, Any]], name: str, ours: str) -> str:
    """Bits of an estimator and, in brackets, how many more than ours, with a 95 % interval."""
    if name not in rows:
        return ""
    bits = f"{bits_of(rows[name]):.3f}"
    if name == ours or ours not in rows:
        return bits
    gap, half = paired(blocks_of(rows[name]), blocks_of(rows[ours]))
    return f"{bits} ({gap:+.3f} ± {half:.3f})"


def texts() -> list[str]:
    """Bits of each estimator on each text, with the difference to ours; the best first."""
    found = [by_estimator(group, lambda case, row: row) for group in TEXTS]
    names = dict.fromkeys(name for one in found for name in one)
    first = {name: next(bits_of(one[name]) for one in found if name in one) for name in names}
    lines = [
        [bold(name, PREDICTS), *(beside(one, name, PREDICTS) for one in found)]
        for name in sorted(names, key=lambda name: first[name])
    ]
    headings = ["bits per letter (more than the bold line)", *(group.title for group in TEXTS)]
    return table_of("|".join(headings), lines)


def bold(name: str, ours: str) -> str:
    """A name, bold if it is ours."""
    return f"**{name}**" if name == ours else name


def versions() -> list[str]:
    """What made the rows."""
    found: dict[str, set[str]] = {}
    for path in sorted((HERE / "rows").glob("*.jsonl")):
        for case, row in read(path):
            if row.get("version"):
                found.setdefault(row["version"], set()).add(case["estimator"])
    return table_of(
        "made with|estimators",
        [[v, ", ".join(sorted(names, key=order))] for v, names in sorted(found.items())],
    )


def tables() -> dict[str, list[str]]:
    """All tables of the page, by their names on it."""
    hdmtd = LAGS[:4]
    return {
        "summary": summary(),
        "hdmtd": shares(hdmtd),
        "hdmtd seconds": seconds(hdmtd),
        "interleaved": shares(LAGS[4:]),
        "songs": shares(SONGS),
        "songs whole bars": shares(SONGS, whole_bars),
        "codons": shares(CODONS),
        "codons named": shares(CODONS, named),
        "texts": texts(),
        "brasilia": brasilia(),
        "versions": versions(),
    }


def brasilia() -> list[str]:
    """Bits of each day of the held-out year, with the lags that were found; the best first."""
    found = by_estimator(Group("", "brasilia", {}), lambda case, row: row)
    lines = []
    for name in sorted(found, key=lambda one: bits_of(found[one])):
        (row,) = found[name].values()
        lags = ", ".join(str(lag) for lag in row["lags"])
        lines.append([bold(name, OURS), beside(found, name, OURS), lags, f"{row['seconds']:.1f}"])
    return table_of("estimator|bits per day (more than the bold line)|lags|seconds", lines)
