"""Findings of the site's first page and of its story as small pictures, from results on disk.

    python benchmarks/landing.py

writes docs/images/finding-NAME.svg. The pictures stand inline in the page, and take the colour of
its text.
"""

import math
from collections.abc import Callable

from misspecified import KEPT, often
from pages import rows, shipped
from study import DOCS, group, read

from result_numbers import table_under
from scb.files import write_atomically
from scb.jobs.table import Table, pick
from scb.paper.tuned import best_setting, median
from scb.theory.dynamics import population_recursion

WIDTH = 340
HEIGHT = 186
BLUE = "#2a8fd0"
ORANGE = "#e07b00"
SMALL = ' class="small"'
LEFT = ' class="small" style="text-anchor:start"'
TRULY = {"Markov chain of order 3": (2, 3), "hidden Markov model": range(2, 16), "random walk with momentum": (2,)}
"""Lags beyond 1 that matter, together with others, in the sequences of benchmarks/misspecified.py."""
STYLE = """
.scb-finding{font:15px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;text-anchor:middle}
.scb-finding text{fill:currentColor}
.scb-finding .axis{stroke:currentColor;opacity:.55;stroke-width:1.5}
.scb-finding .small{font-size:13px;opacity:.8}
"""


def svg(alt: str, parts: list[str], width: int = WIDTH, height: int = HEIGHT) -> str:
    """A picture of these parts."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="scb-finding" viewBox="0 0 {width} {height}" role="img"'
    return "\n".join([f'{head} aria-label="{alt}">', f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, more: str = "") -> str:
    """Words, centred at x unless ``more`` says otherwise."""
    return f'<text x="{x:g}" y="{y:g}"{more}>{words}</text>'


def circle(x: float, y: float, radius: float, colour: str, opacity: float = 1) -> str:
    """A dot."""
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"{faint}/>'


def line(x0: float, y0: float, x1: float, y1: float, more: str = ' class="axis"') -> str:
    """A straight line."""
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"{more}/>'


def mirror() -> str:
    """Runs of the algorithm as printed at the paper's size, a dot for each: which side Stage 1 took."""
    signs = pick(shipped("wrong signs"), T=5000, projector="euclidean")["right"].tolist()
    wrong = signs.count(False)
    across = 20
    colours = [ORANGE] * wrong + [BLUE] * (len(signs) - wrong)
    dots = [circle(24 + 15.4 * (i % across), 34 + 11.5 * (i // across), 5, colour) for i, colour in enumerate(colours)]
    below = 46 + 11.5 * (len(signs) // across)
    parts = [
        text(8, 16, f"{len(signs)} runs, each on a task of its own", LEFT),
        *dots,
        circle(24, below + 7, 5, ORANGE),
        text(34, below + 12, f"{wrong} to the mirror image", LEFT),
        circle(206, below + 7, 5, BLUE),
        text(216, below + 12, f"{len(signs) - wrong} to the truth", LEFT),
    ]
    alt = f"{len(signs)} runs as dots: {wrong} headed for the mirror image, the others for the truth."
    return svg(alt, parts)


def metre() -> str:
    """How much earlier syllables of Paradise Lost matter, beyond the last few, by distance."""
    found = [row for row in rows("examples/paradise_lost.jsonl", "lag") if row["influence"] > 0]
    farthest = 24
    base = 140
    scale = 100 / 0.045

    def at(lag: float) -> float:
        return WIDTH - 14 - (lag - 1) * (WIDTH - 28) / (farthest - 1)

    parts = [text(8, 16, "influence on the next syllable", LEFT), line(at(farthest) - 6, base, WIDTH - 8, base)]
    hit = {row["lag"] for row in found}
    parts += [circle(at(lag), base, 3, "currentColor", 0.45) for lag in range(2, farthest + 1) if lag not in hit]
    for context, example, shift, colour in (("little", "“the”, “of” …", -5, BLUE), ("full", "“fruit” …", 5, ORANGE)):
        for row in (row for row in found if row["context"] == context):
            x = at(row["lag"]) + shift
            top = base - scale * row["influence"]
            reach = scale * row["error"]
            parts.append(line(x, base, x, top, f' stroke="{colour}" stroke-width="7"'))
            parts.append(line(x, top - reach, x, top + reach))
            side = "end" if shift < 0 else "start"
            parts.append(text(x + 2.4 * shift, top + 4, f"after {example}", f' class="small" style="text-anchor:{side}"'))
    parts += [text(at(lag), base + 22, str(lag)) for lag in (1, 5, 10, 15, 20)]
    parts.append(text(WIDTH / 2, base + 42, "syllables back", SMALL))
    lags = ", ".join(str(lag) for lag in sorted(hit))
    return svg(f"Influence of earlier syllables in Paradise Lost, by distance: only {lags} syllables back stands out.", parts)


def chart(
    above: str,
    below: str,
    alt: str,
    ticks: dict[float, str],
    lines: dict[str, tuple[str, dict[float, float]]],
    shown: list[float],
    height: Callable[[float], float] = math.log10,
) -> str:
    """Lines over a logarithmic axis: name → (colour, x → y); ``shown`` are the labels of the axis."""
    left, right, base, top = 66, 230, 140, 36
    wide = sorted({math.log(x) for _, points in lines.values() for x in points})
    low, high = height(min(ticks)), height(max(ticks))

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log(x) - wide[0]) / (wide[-1] - wide[0])
        return left + (right - left) * across, base - (base - top) * (height(y) - low) / (high - low)

    parts = [text(8, 16, above, LEFT), line(left, base, right, base), line(left, base, left, top - 6)]
    parts += [text(left - 6, at(shown[0], y)[1] + 4, words, ' class="small" style="text-anchor:end"') for y, words in ticks.items()]
    for name, (colour, points) in lines.items():
        places = [at(x, y) for x, y in points.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="3"/>')
        parts += [circle(x, y, 4, colour) for x, y in places]
        parts.append(text(right + 10, places[-1][1] + 5, name, ' style="text-anchor:start"'))
    parts += [text(at(x, max(ticks))[0], base + 22, f"{x:,}") for x in shown]
    parts.append(text((left + right) / 2, base + 42, below, SMALL))
    return svg(alt, parts)


def price() -> str:
    """Samples until a tenth of the excess loss is left, against the length of the context."""
    transformers = pick(shipped("transformers"), study="scaling", variant="standard", N=3)
    others = pick(shipped("transformer rivals"), N=3, rival="Algorithm 1, mu")
    lengths = sorted(set(transformers["T"].tolist()))
    lines = {
        "transformer": (ORANGE, {T: _needed(pick(transformers, T=T), "rate", "square_10") for T in lengths}),
        "Algorithm 1": (BLUE, {T: _needed(pick(others, T=T), "setting", "samples_10") for T in lengths}),
    }
    return chart(
        "samples needed (log scale)",
        "positions to choose from",
        "Samples needed, against the number of earlier positions: a transformer needs far more than Algorithm 1, and ever more.",
        {1e3: "1,000", 1e4: "10,000", 1e5: "100,000", 1e6: "1 million", 3e6: ""},
        lines,
        [lengths[0], 512, lengths[-1]],
    )


def leak() -> str:
    """How often Stage 1 takes the wrong sign, against the length of the context, with either projector."""
    signs = shipped("wrong signs")
    lengths = sorted(set(signs["T"].tolist()))

    def wrong(projector: str) -> dict[float, float]:
        return {T: 1 - float(pick(signs, T=T, projector=projector)["right"].mean()) for T in lengths}

    return chart(
        "runs that head for the mirror image",
        "positions to choose from (T)",
        "Share of runs that head for the mirror image, against T: it grows towards one half with the paper's projector, "
        "and stays small with the μ-projector.",
        {0: "0 %", 0.25: "25 %", 0.5: "50 %"},
        {"the paper's": (ORANGE, wrong("euclidean")), "μ-projector": (BLUE, wrong("mu"))},
        [lengths[0], lengths[1], lengths[-1]],
        height=float,
    )


def wait() -> str:
    """The attention's signal against time, without noise, for four lengths of the context."""
    left, right, base, top, eta, steps, every = 34, 330, 140, 44, 0.01, 1300, 10
    parts = [
        text(8, 16, "how far the attention has come, for T =", LEFT),
        line(left, base, right, base),
        line(left, base, left, top),
    ]
    parts += [text(left - 6, y + 4, words, ' class="small" style="text-anchor:end"') for y, words in ((base, "0"), (top, "1"))]
    for T, colour in ((50, BLUE), (500, "#009e73"), (5000, ORANGE), (50_000, "#cc79a7")):
        signal = population_recursion(0.5, 0.5, T, 2 * eta, 2 * eta, steps)[::every, 1]
        places = [(left + (right - left) * i * every / steps, base - (base - top) * value) for i, value in enumerate(signal)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="3"/>')
        grown = next(x for x, y in places if y < base - 0.8 * (base - top))
        parts.append(text(grown, top - 8, f"{T:,}"))
    parts += [text(left + (right - left) * step / steps, base + 22, f"{step:,}") for step in (0, 400, 800, 1200)]
    parts.append(text((left + right) / 2, base + 42, "training step", SMALL))
    alt = "Progress of the attention against the step, for four lengths T: flat, then steep, later by as much for each tenfold T."
    return svg(alt, parts)


def shrink() -> str:
    """Samples of Stage 2 until the attention is near Q as it stands, without ℓ₁ and with it."""
    least = shipped("stage two")
    lengths = sorted(set(least["T"].tolist()))

    def needed(multiple: float) -> dict[float, float]:
        return {T: median(pick(least, T=T, multiple=multiple)["samples"]) for T in lengths}

    return chart(
        "samples of Stage 2 (log scale)",
        "positions to choose from (T)",
        "Samples of Stage 2 against T: in proportion to T without the ℓ₁ step, nearly constant with it.",
        {1e4: "10,000", 1e5: "100,000", 1e6: "1 million"},
        {"without ℓ₁": (ORANGE, needed(0.0)), "with ℓ₁": (BLUE, needed(1.0))},
        [lengths[0], 1000, lengths[-1]],
    )


def _needed(table: Table, setting: str, column: str) -> float:
    """The median over tasks, at the best setting."""
    return median(best_setting(table, setting)[column])


def step() -> str:
    """Milliseconds of one training step at the paper's size, by what takes it."""
    table = table_under("", (DOCS.parent / "benchmarks/results.md").read_text(encoding="utf-8"))
    row = next(i for i, size in enumerate(zip(table["N"], table["T"], strict=True)) if size == (3, 5000))
    times = {name: table[name][row] for name in ("NumPy", "PyTorch", "JAX", "scb, 2 threads")}
    longest = max(times.values())
    parts = [text(8, 16, "milliseconds per step, N = 3, T = 5,000, B = 64", LEFT)]
    for i, (name, taken) in enumerate(times.items()):
        y = 46 + 34 * i
        wide = 170 * taken / longest
        parts.append(text(104, y + 5, name, ' class="small" style="text-anchor:end"'))
        parts.append(line(110, y, 110 + wide, y, f' stroke="{BLUE if name.startswith("scb") else ORANGE}" stroke-width="16"'))
        parts.append(text(116 + wide, y + 5, f"{taken:.3g}", LEFT))
    return svg("Time of one training step: " + ", ".join(f"{name} {taken:.3g} ms" for name, taken in times.items()) + ".", parts)


def weights() -> str:
    """Two mixtures with other weights and the same prediction: w·v + (1 − w)·P[x] for two symbols x."""
    models = ((0.2, 0.5, (0.25, 0.75)), (0.5, 0.5, (0.1, 0.9)))
    parts = []
    for i, (w, fixed, others) in enumerate(models):
        left = 8 + 172 * i
        parts.append(text(left, 16, f"lag 1: {w:g}, lag 11: {1 - w:g}", LEFT))
        for j, other in enumerate(others):
            x = left + 30 + 70 * j
            middle = 140 - 110 * w * fixed
            top = middle - 110 * (1 - w) * other
            parts.append(line(x, 140, x, middle, f' stroke="{BLUE}" stroke-width="34"'))
            parts.append(line(x, middle, x, top, f' stroke="{ORANGE}" stroke-width="34"'))
            parts.append(text(x, top - 6, f"{w * fixed + (1 - w) * other:.1f}"))
            parts.append(text(x, 158, f"x = {'ab'[j]}", SMALL))
    parts += [
        circle(14, 175, 5, BLUE),
        text(24, 180, "from lag 1", LEFT),
        circle(120, 175, 5, ORANGE),
        text(130, 180, "from lag 11", LEFT),
    ]
    return svg("Two models with different weights of the lags 1 and 11, whose bars have the same heights, 0.3 and 0.7.", parts)


def misspecified() -> str:
    """Lags that are found in sequences that are no mixtures of lags, with two backgrounds; the area is the share of the seeds."""
    found = group(read(KEPT), "kind", "background")
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    titles = {"labels": "beyond the symbol frequencies", "ngram": "beyond an n-gram"}
    parts = [text(8, 58 + 32 * i, kind, LEFT) for i, kind in enumerate(kinds)]
    base = 62 + 32 * len(kinds)
    for left, (background, title) in zip((228, 490), titles.items(), strict=True):
        parts.append(text(left - 8, 20, title, LEFT))
        parts.append(line(left - 8, base - 18, left + 14 * 15 + 8, base - 18))
        parts += [text(left + 15 * (lag - 1), base, str(lag)) for lag in (1, 5, 10, 15)]
        for i, kind in enumerate(kinds):
            for lag, share in often(found[kind, background]).items():
                colour = BLUE if lag in TRULY.get(kind, ()) else ORANGE
                parts.append(circle(left + 15 * (lag - 1), 53 + 32 * i, 7 * math.sqrt(share), colour))
    parts += [circle(236, base + 20, 6, BLUE), text(248, base + 25, "part of what is true", LEFT)]
    parts += [circle(418, base + 20, 6, ORANGE), text(430, base + 25, "found, and not there", LEFT)]
    parts.append(text(8, base + 25, "lag; area: share of 20 seeds", LEFT))
    alt = "Lags found in five kinds of sequences: many that are not there beyond the symbol frequencies, few beyond an n-gram."
    return svg(alt, parts, width=730, height=base + 36)


FINDINGS: dict[str, Callable[[], str]] = {
    "mirror": mirror,
    "metre": metre,
    "price": price,
    "wait": wait,
    "leak": leak,
    "shrink": shrink,
    "step": step,
    "weights": weights,
    "misspecified": misspecified,
}


if __name__ == "__main__":
    for name, draw in FINDINGS.items():
        path = DOCS / "images" / f"finding-{name}.svg"
        write_atomically(path, draw().encode())
        print(f"wrote {path}, {path.stat().st_size:,} bytes")
