"""Tables of the scoreboard, from the rows that are kept."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from study import percent, read, table_of

from datasets.songs import BARS
from frame import BLOCKS, HERE, estimators, modules
from scb.jobs.table import wilson

FINDS = "scb"
PREDICTS = "scb.Experts"
NONSENSE = [math.inf] * BLOCKS
Kept = list[tuple[dict[str, Any], dict[str, Any]]]


class Group(NamedTuple):
    """Cases of one data set that are reported together."""

    title: str
    dataset: str
    where: dict[str, Any]


class Score(NamedTuple):
    """A mean with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """scb and the best other estimator on one problem, and the mean of their paired differences.

    ``gap`` is positive where scb is ahead, and ``half`` the half width of its 95 % interval.
    """

    title: str
    cases: int
    ours: Score
    rival: str
    theirs: Score
    gap: float
    half: float
    bits: bool


TWO = [Group(f"{{1, 5}}, n = {n:,}", "hdmtd_two_lags", {"n": n}) for n in (1000, 10_000)]
THREE = [Group(f"{{1, 15, 30}}, n = {n:,}", "hdmtd_three_lags", {"n": n}) for n in (1000, 10_000)]
HDMTD = [*TWO, *THREE]
INTERLEAVED = [Group(f"n = {n}", "interleaved", {"n": n}) for n in (50, 100, 200, 400)]
SONGS = [
    Group(f"{of}{how}", "songs", {"songs": songs, "control": control})
    for songs, of in ((1, "one song"), (20, "20 songs"))
    for control, how in (("none", ""), ("bars", ", bars shuffled"), ("notes", ", notes shuffled"))
]
CODONS = [
    Group(f"{kind}, {bases:,} bases", "codons", {"kind": kind, "bases": bases})
    for bases in (6000, 23_000)
    for kind in ("coding", "other strand", "non-coding")
]
BRASILIA = Group("warm days in Brasília", "brasilia", {})
TEXTS = [
    Group(f"{text}, {how}", dataset, {"text": text})
    for dataset, how in (("texts", "held out"), ("texts_adaptive", "as it is read"))
    for text in ("alice29", "plrabn12")
]


def kept(dataset: str) -> Kept:
    """The rows of a data set."""
    return read(HERE / "rows" / f"{dataset}.jsonl")


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


def bits_by_estimator(group: Group) -> dict[str, dict[str, float]]:
    """Of each estimator, the bits of each block of a text, by its number; seeds are averaged."""
    blocks: dict[str, list[list[float]]] = {}
    for name, rows in by_estimator(group, lambda case, row: row["blocks"] or NONSENSE).items():
        blocks.setdefault(name.partition(", seed")[0], []).extend(rows.values())
    return {
        name: {f"{i:02}": float(bits) for i, bits in enumerate(np.mean(some, axis=0))}
        for name, some in blocks.items()
    }


# ------------------------------------------------------------------------------- who is ahead


def share(values: Iterable[float]) -> Score:
    """A share with Wilson's interval."""
    some = list(values)
    low, high = wilson(np.array(sum(some)), np.array(len(some)))
    return Score(float(np.mean(some)), float(low), float(high))


def mean(values: Iterable[float]) -> Score:
    """A mean of independent values with Student's interval."""
    some = np.array(list(values))
    if not np.isfinite(some).all():
        return Score(math.inf, math.inf, math.inf)
    half = stdtrit(some.size - 1, 0.975) * some.std(ddof=1) / math.sqrt(some.size)
    return Score(float(some.mean()), float(some.mean() - half), float(some.mean() + half))


def difference(one: dict[str, float], other: dict[str, float]) -> Score:
    """The mean of the differences over the cases that both have."""
    return mean(one[key] - other[key] for key in sorted(set(one) & set(other)))


def compared(group: Group, title: str, bits: bool) -> Comparison:
    """scb with its defaults beside the best of the others, which is not told the number of lags."""
    ours, sign, score = (PREDICTS, -1, mean) if bits else (FINDS, 1, share)
    found = bits_by_estimator(group) if bits else by_estimator(group, right)
    told = {name for name, one in estimators().items() if one.told}
    if bits or group.dataset in ("songs", "codons"):
        told = {"chance"}
    rivals = [name for name in found if not name.startswith("scb") and name not in told]
    rival = max(rivals, key=lambda name: sign * score(found[name].values()).mean)
    gap = difference(found[ours], found[rival])
    scores = [score(found[name].values()) for name in (ours, rival)]
    cases = len(found[ours])
    half = (gap.high - gap.low) / 2
    return Comparison(title, cases, scores[0], rival, scores[1], sign * gap.mean, half, bits)


def comparisons() -> list[Comparison]:
    """Every line of the first table."""
    chains = [(group, f"hdMTD's chain, lags {group.title}") for group in HDMTD]
    chains += [(group, f"interleaved chains, {group.title}") for group in INTERLEAVED]
    songs = [(group, f"metre: {group.title}") for group in SONGS if "notes" not in group.title]
    codons = [(group, f"codons: {group.title}") for group in CODONS if "coding, " in group.title]
    codons = [(group, title) for group, title in codons if "non-" not in title]
    lags = [compared(*pair, bits=False) for pair in (*chains, *songs, *codons)]
    texts = [(BRASILIA, f"hdMTD's data: {BRASILIA.title}"), *((one, one.title) for one in TEXTS)]
    return lags + [compared(*pair, bits=True) for pair in texts]


def winner(line: Comparison) -> str:
    """Who wins and by how much."""
    gap = abs(line.gap)
    by = f"{gap:.3f} ± {line.half:.3f} bits"
    if not line.bits:
        by = f"{100 * gap:.0f} ± {100 * line.half:.0f} points"
    if not gap > line.half:
        return f"undecided ({by})"
    return f"**scb** by {by}" if line.gap > 0 else f"{line.rival} by {by}"


def summary() -> list[str]:
    """Of each problem: scb, the best other, and who wins by how much."""
    lines = [
        [
            line.title,
            f"{line.cases} blocks" if line.bits else line.cases,
            written(line.ours, line.bits),
            f"{line.rival}: {written(line.theirs, line.bits)}",
            winner(line),
        ]
        for line in comparisons()
    ]
    return table_of("problem|n|scb|best of the others|who wins", lines)


def tally() -> list[str]:
    """How often scb wins, in one sentence."""
    of = {
        kind: [winner(line) for line in comparisons() if line.bits == bits]
        for kind, bits in (("about lags", False), ("about bits", True))
    }
    parts = []
    for kind, found in of.items():
        wins = sum(one.startswith("**scb") for one in found)
        undecided = sum(one.startswith("undecided") for one in found)
        loses = len(found) - wins - undecided
        parts.append(
            f"Of the {len(found)} problems {kind}, scb with its defaults wins {wins} and loses "
            f"{loses}; {undecided} {'is' if undecided == 1 else 'are'} undecided."
        )
    return [" ".join(parts)]


# -------------------------------------------------------------------------------------- the tables


def written(score: Score, bits: bool = False) -> str:
    """A share or a number of bits, with its interval."""
    if bits:
        return f"{score.mean:.3f} ({score.low:.2f}–{score.high:.2f})"
    return f"{percent(score.mean, '.0f')} ({100 * score.low:.0f}–{100 * score.high:.0f})"


def order(name: str) -> tuple[bool, bool, str]:
    """Ours first, chance last."""
    return name == "chance", not name.startswith("scb"), name


def columns(
    first: str,
    groups: list[Group],
    value: Callable[[dict, dict], float],
    cell: Callable[[list[float]], str],
) -> list[str]:
    """A line for each estimator, a column for each group."""
    found = [by_estimator(group, value) for group in groups]
    names = sorted({name for one in found for name in one}, key=order)
    lines = [
        [name, *(cell(list(one[name].values())) if name in one else "" for one in found)]
        for name in names
    ]
    return table_of("|".join([first, *(group.title for group in groups)]), lines)


def shares(groups: list[Group], value: Callable[[dict, dict], float] = right) -> list[str]:
    """Shares with their intervals."""
    return columns("estimator", groups, value, lambda values: written(share(values)))


def seconds(groups: list[Group]) -> list[str]:
    """Median seconds of one fit."""
    return columns(
        "seconds per fit, median",
        groups,
        lambda case, row: row["seconds"],
        lambda values: f"{np.median(values):.3f}",
    )


def whole_bars(case: dict, row: dict) -> float:
    """Whether the answer is a whole number of bars."""
    return float(row["answer"] is not None and row["answer"] % BARS[case["metre"]] == 0)


def named(case: dict, row: dict) -> float:
    """Whether any lag was named as an answer."""
    return float(row["answer"] is not None)


def beside(found: dict[str, dict[str, float]], name: str) -> str:
    """Bits of an estimator and, in brackets, how many more than ours, with a 95 % interval."""
    if name not in found:
        return ""
    bits = mean(found[name].values()).mean
    if name == PREDICTS or not math.isfinite(bits):
        return f"{bits:.3f}"
    gap = difference(found[name], found[PREDICTS])
    return f"{bits:.3f} ({gap.mean:+.3f} ± {(gap.high - gap.low) / 2:.3f})"


def best_first(found: list[dict[str, dict[str, float]]]) -> list[str]:
    """Names of estimators by their bits on the first text that they have."""
    names = {name for one in found for name in one}
    first = {n: next(mean(one[n].values()).mean for one in found if n in one) for n in names}
    return sorted(names, key=lambda name: first[name])


def bold(name: str) -> str:
    """A name, bold if it is our predictor."""
    return f"**{name}**" if name == PREDICTS else name


def texts() -> list[str]:
    """Bits of each estimator on each text, with the difference to ours; the best first."""
    found = [bits_by_estimator(group) for group in TEXTS]
    lines = [[bold(name), *(beside(one, name) for one in found)] for name in best_first(found)]
    headings = ["bits per letter (more than the bold line)", *(group.title for group in TEXTS)]
    return table_of("|".join(headings), lines)


def brasilia() -> list[str]:
    """Bits of each day of the held-out year, with the lags that were found; the best first."""
    found = bits_by_estimator(BRASILIA)
    rows = by_estimator(BRASILIA, lambda case, row: row)
    lines = []
    for name in best_first([found]):
        (row,) = rows[name].values()
        lags = ", ".join(str(lag) for lag in row["lags"])
        lines.append([bold(name), beside(found, name), lags, f"{row['seconds']:.1f}"])
    return table_of("estimator|bits per day (more than the bold line)|lags|seconds", lines)


def versions() -> list[str]:
    """What made the rows."""
    found: dict[str, set[str]] = {}
    for path in sorted((HERE / "rows").glob("*.jsonl")):
        for case, row in read(path):
            if row.get("version"):
                found.setdefault(row["version"], set()).add(case["estimator"])
    return table_of(
        "made with|estimators",
        [[v, "; ".join(sorted(names, key=order))] for v, names in sorted(found.items())],
    )


def licences() -> list[str]:
    """Under which conditions others may use the data."""
    found = [(module.TITLE, module.LICENCE) for module in modules("datasets").values()]
    return table_of("data|licence", found)


def tables() -> dict[str, list[str]]:
    """All tables of the page, by their names on it."""
    return {
        "tally": tally(),
        "summary": summary(),
        "hdmtd": shares(HDMTD),
        "hdmtd seconds": seconds(HDMTD),
        "interleaved": shares(INTERLEAVED),
        "songs": shares(SONGS),
        "songs whole bars": shares(SONGS, whole_bars),
        "codons": shares(CODONS),
        "codons named": shares(CODONS, named),
        "texts": texts(),
        "brasilia": brasilia(),
        "licences": licences(),
        "versions": versions(),
    }
