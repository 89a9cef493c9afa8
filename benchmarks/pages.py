"""Tables and numbers of the site, from what benchmarks, examples and the full run have kept; nothing is measured here.

    python benchmarks/pages.py [NAME ...]

A table stands on its page between ``<!-- table NAME -->`` and ``<!-- end -->``; tests/project/test_site_kept.py compares the two.
docs/_ext/result_numbers.py explains single numbers; all of them are written, whatever tables are named.
So are the scoreboard and the pages of figures (docs/_ext/paper_pages.py).
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import rates_page
import transformers_page
from study import DOCS, Row, fill, table_of

from scb.jobs.shipped import read_shipped
from scb.jobs.table import Table, pick
from scb.paper.claims.large import RIGHT
from scb.paper.claims.projector import PROJECTORS
from scb.paper.claims.rates import AXES
from scb.paper.experiments.large import LARGE_BASE
from scb.paper.slopes import log_log_slope, printed_exponent, stage_samples, varied
from scb.paper.stage_one import power_laws
from scb.theory.constants import attention_error

sys.path.append(str(DOCS / "_ext"))
import paper_pages

import result_numbers
from result_numbers import written

HERE = Path(__file__).parent
HELD_OUT = {"lags, no n-gram": "lags without an n-gram", "without context (MTD)": "lags without context (MTD)"}
LENGTHS = (500, 50_000, 500_000)
SMOOTHING = {"kneser-ney": "modified Kneser–Ney", "witten-bell": "Witten–Bell"}


def rows(name: str, what: str) -> list[Row]:
    """The rows of one kind in a file below benchmarks."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["what"] == what]


@cache
def shipped(name: str) -> Table:
    """A table of the full run."""
    return read_shipped(DOCS / "tables", name)[0]


def power(x: float) -> str:
    """A number with two digits as a power of ten: 1.1·10⁻³."""
    return written(x, ".1p")


def two_digits(x: float) -> str:
    """A large number, with two digits that count."""
    return f"{float(f'{x:.1e}'):,.0f}" if x < 1e6 else power(x)


def signed(x: float, digits: int) -> str:
    """A number with a sign of its own, a true minus."""
    return f"{x:+.{digits}f}".replace("-", "−")


# ------------------------------------------------------------------------------------------------------- the engine


def threads() -> list[str]:
    """The thread team beside plain threads and beside one thread."""

    def quiet(row: Row) -> str:
        return "nothing else" if row["load"] < 0.5 else f"other work (load {row['load']:.0f})"

    def ratio(row: Row, name: str) -> str:
        return f"{row[name]['median']:.2f} ({row[name]['least']:.2f} to {row[name]['most']:.2f})"

    body = [
        [
            "a busy process on each core" if row["busy"] else quiet(row),
            row["N"],
            f"{row['team']['median']:,.0f} µs",
            ratio(row, "plain/team"),
            ratio(row, "one/team"),
        ]
        for row in rows("thread_team.jsonl", "threads")
    ]
    return table_of("beside|N|the team, per step|plain threads ÷ team|one thread ÷ team", body)


def screening() -> list[str]:
    """λ, the certain bound and the useful step of each regime."""
    found = [
        (row["regime"], row["alpha"], power(row["lam"]), power(row["bound"]), power(row["useful"]))
        for row in rows("engine.jsonl", "screening")
    ]
    return table_of("regime|α|λ|certain bound|useful step", found)


# ----------------------------------------------------------------------------------------------------------- sweeps


def half_way(name: str, axis: str, symbol: str, heading: str) -> Callable[[], list[str]]:
    """Where half of the runs succeed, at each value of an axis."""

    def made() -> list[str]:
        lines = []
        for row in rows(f"phases/{name}.jsonl", "half"):
            value = power(row[axis]) if 0 < row[axis] < 1 else f"{row[axis]:,g}"
            if row["at"] is None:
                lines.append((value, f"never (at best {row['best']} runs of a cell)", ""))
            else:
                lines.append((value, f"{row['at']:,.0f}", f"{row['low']:,.0f} to {row['high']:,.0f}"))
        return table_of(f"{symbol}|{heading}|95 % interval", lines)

    return made


# --------------------------------------------------------------------------------------------------------- examples


def held_out(name: str) -> Callable[[], list[str]]:
    """Bits for each held-out symbol, best first."""

    def made() -> list[str]:
        found = rows(f"examples/{name}.jsonl", "bits")
        lines = []
        for row in found:
            beside = f"{signed(row['above'], 4)} ± {row['error']:.4f}" if "above" in row else ""
            bits = f"**{row['bits']:.4f}**" if row is found[0] else f"{row['bits']:.4f}"
            lines.append((told(row["model"]), bits, beside))
        return table_of("model|bits|above lags beyond the recent past", lines)

    return made


def told(model: str) -> str:
    """The name of a model in words."""
    for code, name in SMOOTHING.items():
        model = model.replace(f"-gram, {code}", f"-gram (the best; {name})")
    return HELD_OUT.get(model, model)


# -------------------------------------------------------------------------------------------------------------- GPU


def gpu_steps() -> list[str]:
    """10⁹ tokens per second of whole steps; the baselines, which were timed at T = 5,000, once for each N."""
    baselines = {(row["name"], row["N"]): row["rate"] for row in rows("gpu/steps.jsonl", "rival")}
    names = ("PyTorch, compiled", "PyTorch, tuned", "JAX, tuned")
    steps = rows("gpu/steps.jsonl", "step")
    small = {row["N"] for row in steps if row["T"] == 5000}
    lines = []
    for row in steps:
        N, ours = row["N"], row["ours"]
        shown = [""] * 5
        if row["T"] == 5000 or N not in small:
            rates = [baselines[name, N] for name in names]
            shown = [*map(times, rates), times(ours / max(rates[:2])), times(ours / rates[2])]
        lines.append((N, f"{row['T']:,}", f"{row['B']:,}", f"{ours:.0f}", *shown))
    return table_of("N|T|B|scb|PyTorch, compiled|PyTorch, tuned|JAX, tuned|scb / PyTorch|scb / JAX", lines)


def times(x: float) -> str:
    """A ratio, with one digit after the point where it is small."""
    return f"{x:.1f}" if x < 10 else f"{x:.0f}"


def gpu_crossover() -> list[str]:
    """Milliseconds of a step on the GPU and on the CPU."""
    lines = [
        (
            row["N"],
            f"{row['B']:,}",
            two_digits(row["B"] * row["T"]),
            f"{1e3 * row['cuda']:.2f}",
            f"{1e3 * row['cpu']:.2f}",
            times(row["cpu"] / row["cuda"]),
        )
        for row in rows("gpu/steps.jsonl", "crossover")
    ]
    return table_of("N|B|tokens per step|GPU, ms|CPU, ms|CPU / GPU", lines)


def whole_runs() -> list[str]:
    """Seconds of whole runs and of their kernels."""
    lines = [
        (
            "GPU" if row["device"] == "cuda" else "CPU",
            row["case"].split(",")[0],
            row["N"],
            f"{row['T']:,}",
            row["steps"],
            f"{row['kernels']:.3f}",
            f"{row['whole']:.3f}",
            f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}, n = {row['n']})",
        )
        for row in rows("gpu/whole_runs.jsonl", "run")
    ]
    return table_of("where|recipe|N|T|steps|kernels, s|whole run, s|whole run / kernels, median and range", lines)


def many_runs() -> list[str]:
    """Seconds of many runs at once, and of one."""
    lines = [
        (
            "GPU" if row["device"] == "cuda" else "CPU, two threads",
            f"{row['one']:.3f}",
            f"{row['together']:.2f}",
            f"{row['ratio']:.1f} ({row['low']:.1f} to {row['high']:.1f}, n = {row['n']})",
        )
        for row in rows("gpu/whole_runs.jsonl", "many")
    ]
    return table_of("where|one run, s|64 runs, s|64 runs / one run, median and range", lines)


def gpu_signs() -> list[str]:
    """The least batch that finds the sign in nine of ten runs, by the power law for each projector."""
    table = shipped("long-signs")
    lines = []
    for projector, (distribution, low, high) in sorted(power_laws(table, RIGHT).items()):
        longest = pick(table, projector=projector)["T"].max()
        least = distribution.least(np.array(LENGTHS, dtype=float)).tolist()
        cells = [two_digits(B) + ("" if longest >= T else " (not run)") for T, B in zip(LENGTHS, least, strict=True)]
        lines.append((PROJECTORS[projector], *cells, f"{distribution.exponent:.2f}", f"{low:.2f} to {high:.2f}"))
    return table_of("projector|" + "|".join(f"B_T at T = {T:,}" for T in LENGTHS) + "|exponent in T|95 % interval", lines)


def gpu_rates() -> list[str]:
    """Exponents of the least number of samples of each stage, measured and printed."""
    table = shipped("large-rates")
    lines = []
    for projector, name in PROJECTORS.items():
        mine = pick(table, projector=projector)
        for axis, symbol in AXES.items():
            found = varied(mine, axis, LARGE_BASE)
            xs = np.unique(found[axis])
            if len(xs) < 2:
                continue
            cells = [_exponent(found, mine, axis, stage) for stage in (1, 2, 3)]
            ends = [f"{x:,}" if x >= 1 else power(x) for x in (xs[0], xs[-1])]
            lines.append((name, f"{symbol} = {' to '.join(ends)}", *cells))
    return table_of("projector|size|Stage 1|Stage 2|Stage 3", lines)


def _exponent(found: Table, mine: Table, axis: str, stage: int) -> str:
    """The measured exponent with its interval, and the printed one; nothing where Stage 1 is asked about ε."""
    slope = log_log_slope(found[axis], stage_samples(found, stage))
    if np.isnan(slope.estimate) or (stage, axis) == (1, "epsilon"):
        return ""
    printed = round(printed_exponent(mine, axis, stage, LARGE_BASE), 1) + 0.0
    return f"{slope:+.2f} (printed {printed:+.1f})".replace("-", "−")


def gpu_plan() -> list[str]:
    """What the lemmas promise at the end of each stage, and what was measured."""
    plan = shipped("plan")
    N, sparsity, epsilon = (float(plan[name][0]) for name in ("N", "sparsity", "epsilon"))
    watched = ("step", "samples", "alpha_V", "alpha_A", "delta_A", "dist_V")
    ends = [{name: float(plan[name][plan["stage"] == stage][-1]) for name in watched} for stage in (1, 2, 3)]
    promised = (
        f"α_V or α_A ≥ {min(0.5, 1 / (sparsity * N)):g}",
        f"‖Δ_A‖_μ² ≤ {attention_error(int(N), int(sparsity), epsilon):g}",
        f"‖V − P‖_μ² ≤ {epsilon:g}",
    )
    measured = (
        f"{ends[0]['alpha_V']:.2f} and {ends[0]['alpha_A']:.2f}",
        power(ends[1]["delta_A"] ** 2),
        power(ends[2]["dist_V"] ** 2),
    )
    lines = []
    before = {"step": 0.0, "samples": 0.0}
    for stage, end in enumerate(ends):
        steps = end["step"] - before["step"]
        batch = two_digits((end["samples"] - before["samples"]) / steps)
        lines.append((stage + 1, f"{steps:.0f}", batch, promised[stage], measured[stage]))
        before = end
    return table_of("stage|steps|samples per step|promised at its end|measured", lines)


def block(needs: tuple[str, ...], make: Callable[..., str]) -> Callable[[], list[str]]:
    """A table of a page that is made from tables of the full run alone."""
    return lambda: make(*map(shipped, needs)).splitlines()


# ----------------------------------------------------------------------------------------------------- installation

PARTS = {
    "compiler": "NumPy and Numba, which compile the numerical code; part of every installation",
    "training": "what training, sampling and the planner use, with the commands",
    "recovery": "SciPy besides, for recovery",
    "plain": "`pip install .`: scikit-learn besides, for the estimator and `scb fit`",
    "tables": "`pip install '.[tables]'`: CSV, Parquet and data frames",
    "report": "`pip install '.[report]'`: tables, pictures, reports, `scb reproduce`",
    "all": "`pip install '.[all]'`: sweeps on a cluster and pandas besides",
}
IMPORTS = {
    "scb": "`import scb`",
    "training": "training: `scb.train`",
    "estimator": "the estimator: `scb.SparseContextualBigram`",
    "report": "the paper's report, with matplotlib",
}


def installation_sizes() -> list[str]:
    """What the parts of an installation need."""
    found = [(PARTS[row["part"]], row["packages"], f"{row['megabytes']:.0f}") for row in rows("installation.jsonl", "size")]
    return table_of("part|packages|size in MB", found)


def installation_packages() -> list[str]:
    """The large packages of a plain installation, side by side."""
    found = rows("installation.jsonl", "package")
    sizes = ["MB", *(f"{row['megabytes']:.0f}" for row in found)]
    return table_of("|".join(["package", *(row["package"] for row in found)]), [sizes])


def installation_times() -> list[str]:
    """How long the parts of an installation take to load."""
    found = [
        (IMPORTS[row["import"]], f"{row['seconds']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}", row["n"])
        for row in rows("installation.jsonl", "time")
    ]
    return table_of("what is loaded|seconds, median|95 % interval of the median|n", found)


TABLES: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "installation-sizes": ("howto/install", installation_sizes),
    "installation-packages": ("howto/install", installation_packages),
    "installation-times": ("howto/install", installation_times),
    "screening": ("explanation/engine", screening),
    "threads": ("explanation/engine", threads),
    "phase-support": ("explanation/sweeps", half_way("support", "T", "T", "samples")),
    "phase-symbols": ("explanation/sweeps", half_way("symbols", "N", "N", "samples")),
    "phase-lambda": ("explanation/sweeps", half_way("lambda", "lam", "λ", "batch size B")),
    **{name: ("explanation/examples", held_out(name)) for name in ("paradise_lost", "kalevala", "seattle_rain")},
    "gpu-steps": ("explanation/gpu", gpu_steps),
    "gpu-crossover": ("explanation/gpu", gpu_crossover),
    "whole-runs": ("explanation/gpu", whole_runs),
    "many-runs": ("explanation/gpu", many_runs),
    "gpu-signs": ("explanation/gpu", gpu_signs),
    "gpu-rates": ("explanation/gpu", gpu_rates),
    "gpu-plan": ("explanation/gpu", gpu_plan),
    **{name: ("paper/rates", block(*made)) for name, made in rates_page.BLOCKS.items()},
    **{name: ("explanation/transformers-tables", block(*made)) for name, made in transformers_page.BLOCKS.items()},
}
"""Name of a table → its page in docs, and the function that makes it."""


def page_of(name: str) -> Path:
    """Where a table stands."""
    return DOCS / f"{TABLES[name][0]}.md"


if __name__ == "__main__":
    paper_pages.write_paper()
    for name in sys.argv[1:] or TABLES:
        fill(page_of(name), name, TABLES[name][1]())
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if result_numbers.IN_PAGE.search(text):
            page.write_text(result_numbers.filled(text), encoding="utf-8")
