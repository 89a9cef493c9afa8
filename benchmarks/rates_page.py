"""The tables of docs/paper/rates.md, made from the tables of the full run, so that no number on that page is typed by hand."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scb.jobs.table import Table, pick, values, where
from scb.paper.claims.projector import PROJECTORS
from scb.paper.claims.rates import AXES
from scb.paper.experiments.rates import LARGEST_BATCH
from scb.paper.numbers import CLOSE, Number, share
from scb.paper.slopes import LAW_FROM, compared, law_rows, log_log_slope, printed_exponent, stage_samples, varied

STAGES = {1: "1", 2: "2", 3: "3", 0: "all"}

Blocks = Mapping[str, tuple[tuple[str, ...], Callable[..., str]]]
"""Name of a block → the tables that it needs, and the function that makes it."""


def markdown(head: list[str], rows: list[list[Any]]) -> str:
    """A table; the first column is on the left, the others on the right. Quartiles, limits and sizes are not broken over lines."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    text = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
    whole = re.compile(r"\[[+−-]?\d[^]]*\]|\(\d[^)]*\)|> \d|\d of \d|\w = \d")
    return whole.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def _number(x: float) -> str:
    """Three digits; a dash for what is not there."""
    return f"{Number(x):3}" if np.isfinite(x) else "–"


def _median(column: Any) -> str:
    """The median of what is finite."""
    finite = column[np.isfinite(column)]
    return _number(float(np.median(finite))) if finite.size else "–"


def exponents(rates: Table) -> str:
    """Size and stage; the printed exponent; the measured one with its 95 % interval, and how the two compare, by projector."""
    rows = []
    for axis, symbol in AXES.items():
        for stage, name in STAGES.items():
            printed = printed_exponent(rates, axis, stage) if stage else np.nan
            row = [symbol, name, f"{round(printed, 1) + 0.0:+.1f}" if stage else "–"]
            for projector in PROJECTORS:
                mine = law_rows(varied(pick(rates, projector=projector), axis), axis, stage)
                slope = log_log_slope(mine[axis], stage_samples(mine, stage) if stage else mine["samples"])
                row += [f"{slope:+.2f}", compared(slope, printed, axis) if stage else ""]
            rows.append(row)
    return markdown(["size", "stage", "printed", PROJECTORS["euclidean"], "", PROJECTORS["mu"], ""], rows)


def lengths(rates: Table) -> str:
    """Medians of the samples of Stage 1, and of Stages 2 and 3, against T."""
    rates = rates | {"later": rates["samples_2"] + rates["samples_3"]}
    rows = []
    for T in sorted(values(varied(rates, "T"), "T")):
        found = [pick(varied(rates, "T"), T=T, projector=projector) for projector in PROJECTORS]
        rows.append([f"{T:,}", *(_median(mine[column]) for column in ("samples_1", "later") for mine in found)])
    heads = [f"{stage}, {name}" for stage in ("Stage 1", "Stages 2 and 3") for name in PROJECTORS.values()]
    return markdown(["T", *heads], rows)


def searches(rates: Table) -> str:
    """How many searches there are, and how many found no batch."""
    none = np.isinf(np.stack([rates[f"batch_{stage}"] for stage in (1, 2, 3)]))
    words = f"There were {len(rates['T'])} searches of {rates['runs'][0]} tasks each. "
    if not none.any():
        return f"{words}All of them found a batch size that is enough."
    where_none = " and ".join(
        f"{found.sum()} in Stage {stage} (at Q = {', '.join(map(str, np.unique(rates['sparsity'][found])))})"
        for stage, found in enumerate(none, start=1)
        if found.any()
    )
    return (
        f"{words}Each found a sufficient batch size of at most {LARGEST_BATCH:,}, except {where_none}. Where none was found,"
        " the number of samples is unknown, so the interval of an exponent that depends on it has no upper end."
    )


def tail(rates: Table) -> str:
    """Exponents of Stage 1 in T below and above ``LAW_FROM``."""
    rows = []
    for projector, name in PROJECTORS.items():
        mine = varied(pick(rates, projector=projector), "T")
        parts = [where(mine, mine["T"] <= LAW_FROM), law_rows(mine, "T", 1)]
        rows.append([name, *(f"{log_log_slope(part['T'], part['samples_1']):+.2f}" for part in parts), f"{mine['T'].max():,}"])
    return markdown(["Stage 1 in T", "T ≤ 800", "T ≥ 800", "largest T"], rows)


def signs(wrong_signs: Table) -> str:
    """The share of wrong signs after Stage 1, with Wilson's interval."""
    rows = []
    for T in sorted(values(wrong_signs, "T")):
        found = [~pick(wrong_signs, T=T, projector=projector)["right"].astype(bool) for projector in PROJECTORS]
        rows.append([f"{T:,}", *(f"{share(wrong):share}" for wrong in found)])
    return markdown(["T", *(f"wrong signs, {name}" for name in PROJECTORS.values())], rows)


def _against_T(table: Table, axis: str, column: str, name: Callable[[Any], str], power: bool = True) -> str:
    """Medians: a line for each T, a column for each value of ``axis``; exponents in the last line where it is a ``power``."""
    kinds = values(table, axis)
    rows = [[f"{T:,}", *(_median(pick(table, T=T, **{axis: kind})[column]) for kind in kinds)] for T in sorted(values(table, "T"))]
    if power:
        found = [pick(table, **{axis: kind}) for kind in kinds]
        rows.append(["exponent", *(f"{log_log_slope(mine['T'], mine[column]):+.2f}" for mine in found)])
    return markdown(["T", *(name(kind) for kind in kinds)], rows)


def _method(multiple: float) -> str:
    return f"λ = {multiple:g}σ" if multiple else "SGD"


def stage_two(table: Table) -> str:
    """The least samples of Stage 2 without ℓ1 and with it."""
    return _against_T(table, "multiple", "samples", _method)


def stage_two_error(table: Table) -> str:
    """‖Δ_A‖² after Stage 2 without ℓ1 and with it."""
    return _against_T(table, "multiple", "square_A", _method)


def first_stage(attention: Table) -> str:
    """Samples until α_A = 0.1."""
    return _against_T(attention, "method", "samples_10", str)


def error_at_half(attention: Table) -> str:
    """‖Δ_A‖ when α_A passes 0.5."""
    return _against_T(attention, "method", "delta_50", str)


def similarity(attention: Table) -> str:
    """The cosine of A with Q at the end."""
    return _against_T(attention, "method", "sim_A_end", str, power=False)


def one_step(table: Table) -> str:
    """The largest relative difference of one step, by its size and by T."""
    Ts = sorted(values(table, "T"))
    sizes = sorted(values(table, "size"))
    rows = [[f"{size:g}", *(f"{pick(table, size=size, T=T)['error'].max():.1e}" for T in Ts)] for size in sizes]
    return markdown(["ηT", *(f"T = {T:,}" for T in Ts)], rows)


def theorem(table: Table) -> str:
    """How many runs inside all assumptions end with the right sign, and how many within ε."""
    rows = []
    for projector, name in PROJECTORS.items():
        mine = pick(table, projector=projector)
        last = where(mine, np.r_[mine["seed"][1:] != mine["seed"][:-1], True])
        close = (last["dist_A"] <= CLOSE) & (last["dist_V"] <= CLOSE) & last["inside"]
        right = last["alpha_V"] > 0
        shares = [f"{share(hits):share}" for hits in (right, close, close[right])]
        rows.append([name, *shares, _median(last["samples"])])
    head = ["projector", "sign right", "both squared distances ≤ 0.0025", "the same, of those with the right sign", "samples"]
    return markdown(head, rows)


def windows(table: Table) -> str:
    """What becomes of Algorithm 1 on windows, by length of the sequence."""
    rows = []
    for data, distribution in dict.fromkeys(zip(table["data"].tolist(), table["law"].tolist(), strict=True)):
        for length in sorted(values(table, "length")):
            mine = pick(table, data=data, law=distribution, length=length)
            close = (mine["dist_A"] <= CLOSE) & (mine["dist_V"] <= CLOSE)
            found = [f"{share(hits.astype(bool)):share}" for hits in (close, mine["exact"], mine["likelihood"])]
            samples = "windows" if data == "sequence" else "independent samples"
            rows.append([samples, distribution, f"{length:,}", *found, _median(mine["dist_A"]), _median(mine["dist_V"])])
    head = ["data", "μ", "tokens", "both ≤ 0.05", "support exact", "by likelihood", "‖A − Q‖", "‖V − P‖"]
    return markdown(head, rows)


def marginal(table: Table) -> str:
    """Quartiles of the distance between the frequencies of a long sequence and μ."""
    kinds = {
        "total variation from μ": table["distance"],
        "by chance": table["error"],
        "largest difference in standard errors": table["largest"],
    }
    rows = []
    for name, column in kinds.items():
        rows.append([name, *(_number(x) for x in np.percentile(column, (0, 25, 50, 75, 100)))])
    head = f"{len(table['distance'])} tasks, {table['length'][0]:,} tokens"
    return markdown([head, "least", "25 %", "median", "75 %", "most"], rows)


BLOCKS: Blocks = {
    "exponents": (("rates",), exponents),
    "searches": (("rates",), searches),
    "lengths": (("rates",), lengths),
    "tail": (("rates",), tail),
    "signs": (("wrong signs",), signs),
    "stage two": (("stage two",), stage_two),
    "stage two error": (("stage two error",), stage_two_error),
    "first stage": (("attention",), first_stage),
    "error at half": (("attention",), error_at_half),
    "similarity": (("attention",), similarity),
    "one step": (("one step",), one_step),
    "theorem": (("theorem",), theorem),
    "windows": (("windows",), windows),
    "marginal": (("marginal",), marginal),
}
