"""The three findings of the site's first page as small pictures, from results on disk.

    python benchmarks/landing.py

writes docs/images/finding-NAME.svg. The pictures stand inline in the page, and take the colour of
its text.
"""

import math
from collections import Counter
from collections.abc import Callable

from pages import rows, shipped
from study import DOCS, read

from scb.files import write_atomically
from scb.jobs.table import Table, pick
from scb.paper.tuned import best_setting, median

WIDTH = 340
HEIGHT = 186
BLUE = "#2a8fd0"
ORANGE = "#e07b00"
SMALL = ' class="small"'
LEFT = ' class="small" style="text-anchor:start"'
STYLE = """
.scb-finding{font:15px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;text-anchor:middle}
.scb-finding text{fill:currentColor}
.scb-finding .axis{stroke:currentColor;opacity:.55;stroke-width:1.5}
.scb-finding .small{font-size:13px;opacity:.8}
"""


def svg(alt: str, parts: list[str]) -> str:
    """A picture of these parts."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="scb-finding" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
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
    """Where the runs of the algorithm as printed end: a dot for each, by its signal."""
    signals = [
        row["alpha_A"] for case, row in read(DOCS.parent / "benchmarks/algorithm/paper.jsonl") if case["recipe"] == "literal"
    ]
    wrong = sum(signal < 0 for signal in signals)
    base = 140
    middle = WIDTH / 2
    step = 15.4
    stacks: Counter[int] = Counter()
    dots = []
    for signal in signals:
        place = math.floor(10 * signal)
        colour = ORANGE if signal < 0 else BLUE
        dots.append(circle(middle + (place + 0.5) * step, base - 9 - 11.5 * stacks[place], 5, colour))
        stacks[place] += 1
    parts = [
        line(8, base, WIDTH - 8, base),
        line(middle, base + 5, middle, 30),
        *dots,
        text(8, 16, f"overlap with the truth, {len(signals)} runs", LEFT),
        text(8, base + 22, "−1", ' style="text-anchor:start"'),
        text(middle, base + 22, "0"),
        text(WIDTH - 8, base + 22, "1", ' style="text-anchor:end"'),
        text(middle - 82, base + 42, f"{wrong} towards the mirror", SMALL),
        text(middle + 82, base + 42, f"{len(signals) - wrong} towards the truth", SMALL),
    ]
    alt = f"{len(signals)} runs as dots: {wrong} end on the side of the mirror image, the others on the side of the truth."
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
    for context, shift, colour in (("little", -5, BLUE), ("full", 5, ORANGE)):
        for row in (row for row in found if row["context"] == context):
            x = at(row["lag"]) + shift
            top = base - scale * row["influence"]
            reach = scale * row["error"]
            parts.append(line(x, base, x, top, f' stroke="{colour}" stroke-width="7"'))
            parts.append(line(x, top - reach, x, top + reach))
            side = "end" if shift < 0 else "start"
            label = f"after a {context} word"
            parts.append(text(x + 2.4 * shift, top + 4, label, f' class="small" style="text-anchor:{side}"'))
    parts += [text(at(lag), base + 22, str(lag)) for lag in (1, 5, 10, 15, 20)]
    parts.append(text(WIDTH / 2, base + 42, "syllables back", SMALL))
    lags = ", ".join(str(lag) for lag in sorted(hit))
    return svg(f"Influence of earlier syllables in Paradise Lost, by distance: only {lags} syllables back stands out.", parts)


def price() -> str:
    """Samples until a tenth of the excess loss is left, against the length of the context."""
    transformers = pick(shipped("transformers"), study="scaling", variant="standard", N=3)
    others = pick(shipped("transformer rivals"), N=3)
    lines = {
        "transformer": (transformers, "rate", "square_10", ORANGE),
        "Algorithm 1": (pick(others, rival="Algorithm 1, mu"), "setting", "samples_10", BLUE),
    }
    lengths = sorted(set(transformers["T"].tolist()))
    left = 66
    right = 230
    base = 140
    top = 36

    def x(length: float) -> float:
        return left + (right - left) * math.log(length / lengths[0]) / math.log(lengths[-1] / lengths[0])

    def y(samples: float) -> float:
        return base - (base - top) * math.log10(samples / 1000) / 3.5

    parts = [text(8, 16, "samples needed (log scale)", LEFT), line(left, base, right, base), line(left, base, left, top - 6)]
    for power, words in ((3, "1,000"), (4, "10,000"), (5, "100,000"), (6, "1 million")):
        parts.append(text(left - 6, y(10**power) + 4, words, ' class="small" style="text-anchor:end"'))
    for name, (table, setting, column, colour) in lines.items():
        points = [(x(T), y(_needed(pick(table, T=T), setting, column))) for T in lengths]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="3"/>')
        parts += [circle(px, py, 4, colour) for px, py in points]
        parts.append(text(right + 10, points[-1][1] + 5, name, ' style="text-anchor:start"'))
    parts += [text(x(T), base + 22, f"{T:,}") for T in (lengths[0], 512, lengths[-1])]
    parts.append(text((left + right) / 2, base + 42, "positions to choose from", SMALL))
    alt = "Samples needed, against the number of earlier positions: a transformer needs far more than Algorithm 1, and ever more."
    return svg(alt, parts)


def _needed(table: Table, setting: str, column: str) -> float:
    """The median over tasks, at the best setting."""
    return median(best_setting(table, setting)[column])


FINDINGS: dict[str, Callable[[], str]] = {"mirror": mirror, "metre": metre, "price": price}


if __name__ == "__main__":
    for name, draw in FINDINGS.items():
        path = DOCS / "images" / f"finding-{name}.svg"
        write_atomically(path, draw().encode())
        print(f"wrote {path}, {path.stat().st_size:,} bytes")
