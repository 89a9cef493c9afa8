"""The picture of a sparse contextual bigram, as SVG: three samples of a real task, in turn.

    python -m scb.picture docs/images

writes strip.svg, which moves, and strip-still.svg. Put inline into a page, the SVG takes the colour
of the text around it. As a file of its own it brings a light or a dark background, whichever the
reader prefers.
"""

import sys
from pathlib import Path

from scb.files import write_atomically
from scb.task.sampling import sample
from scb.task.task import Task

XMLNS = ' xmlns="http://www.w3.org/2000/svg"'
ALT = (
    "A strip of twelve coloured symbols. The last one points back to an earlier position, "
    "and the symbol found there sets the odds of the next, which takes its place at the end. "
    "Another last symbol points to another position."
)
COLOURS = ("#56b4e9", "#e69f00", "#1fb58a")
LETTERS = "ABC"
CONTEXT = 11
SAMPLES = 3
TASK_SEED = 83
SAMPLE_SEED = 17

# Seconds: each sample has its turn, and in it each part its moment, from its start to its end.
TURN = 7.0
MOMENTS = {
    "last": (0.7, 1.0),
    "jump": (1.3, 2.1),
    "found": (2.1, 2.4),
    "carry": (2.8, 3.5),
    "odds": (3.4, 3.9),
    "next": (4.4, 5.2),
}
FADE = 0.3

# Lengths in units of the view box.
WIDTH = 720
HEIGHT = 354
TOKEN = 46
PITCH = 53
LEFT = 14
STRIP = 132
SLOT = 660
BARS = (574, 628, 682)
BAR_WIDTH = 36
BAR_HEIGHT = 82
BASE = 304
CARRY = 264

STYLE = """
.scb-strip{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-size:26px;text-anchor:middle}
.scb-strip text{fill:currentColor}
.scb-strip .left{text-anchor:start}
.scb-strip .small{font-size:20px}
.scb-strip .in{fill:#111;font-weight:700}
.scb-strip .line{fill:none;stroke:currentColor;stroke-width:4;stroke-linecap:round;stroke-linejoin:round}
.scb-strip .jump .draw,.scb-strip .carry .draw{stroke-dasharray:1 2}
.scb-strip .slot{fill:none;stroke:currentColor;stroke-width:2.5;stroke-dasharray:5 5;opacity:.5}
.scb-strip .dim{opacity:.42}
.scb-strip .paper{fill:none}
.scb-strip .later{opacity:0}
svg:root{color:#1b1b1b}
svg:root .paper{fill:#fff}
@media (prefers-color-scheme:dark){svg:root{color:#ececec}svg:root .paper{fill:#16181b}}
"""


def strip_picture(animated: bool = True) -> str:
    """The picture as the text of an SVG file.

    Parameters
    ----------
    animated : bool, default True
        Whether three samples take turns, unless a reader has asked for less motion. Otherwise the
        first one is shown.

    Returns
    -------
    str
        The SVG. Without ``XMLNS`` it can stand in an HTML page.

    Examples
    --------
    >>> from scb.picture import strip_picture
    >>> strip_picture().startswith("<svg")
    True
    """
    task = Task.random(N=3, T=CONTEXT, sparsity=1, seed=TASK_SEED, ensemble="dirichlet")
    batch = sample(task, SAMPLES, seed=SAMPLE_SEED)
    shown = SAMPLES if animated else 1
    turns = [
        _turn(i, task, context.tolist(), int(last), int(label))
        for i, (context, last, label) in enumerate(
            zip(batch.context, batch.last, batch.label, strict=True)
        )
    ]
    parts = [
        f'<svg{XMLNS} class="scb-strip" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{ALT}">',
        f"<style>{STYLE}{_motion() if animated else ''}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="12"/>',
        f'<text class="left" x="{LEFT}" y="36">The last one says where to look.</text>',
        f'<text class="left" x="{LEFT}" y="{CARRY + 38}">What it finds there</text>',
        f'<text class="left" x="{LEFT}" y="{CARRY + 70}">sets the odds of the next one.</text>',
        f'<rect class="slot" x="{SLOT + 2}" y="{STRIP + 2}" width="{TOKEN - 4}" height="{TOKEN - 4}" rx="8"/>',
        f'<text class="small" x="{SLOT + TOKEN / 2:g}" y="{STRIP - 12}">next</text>',
        *turns[:shown],
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _turn(index: int, task: Task, context: list[int], last: int, label: int) -> str:
    """One sample: the strip, and all that happens to it."""
    position = int(task.support[last][0])
    found = context[position]
    tokens = [*context, last]
    dim = "".join(
        _token(token, _x(i), "dim")
        for i, token in enumerate(tokens)
        if i not in (position, CONTEXT)
    )
    parts = [
        f'<g class="turn{" later" if index else ""}" style="--turn:{index}">{dim}',
        # The two that count lie dimmed below, until they light up.
        _token(last, _x(CONTEXT), "dim") + _token(found, _x(position), "dim"),
        f'<g class="last">{_token(last, _x(CONTEXT))}{_ring(_x(CONTEXT))}</g>',
        f'<g class="jump">{_jump(_x(CONTEXT) + TOKEN / 2, _x(position) + TOKEN / 2)}</g>',
        f'<g class="found">{_token(found, _x(position))}{_ring(_x(position))}</g>',
        f'<g class="carry">{_carry(_x(position) + TOKEN / 2)}</g>',
        f'<g class="odds">{_odds(task.P[:, found].tolist())}</g>',
        f'<g class="next" style="--from:{BARS[label] - SLOT - TOKEN / 2:g}px">{_token(label, SLOT)}</g></g>',
    ]
    return "\n".join(parts)


def _x(place: int) -> int:
    return LEFT + PITCH * place


def _token(token: int, x: float, kind: str = "") -> str:
    group = f'<g class="{kind}">' if kind else "<g>"
    return (
        f'{group}<rect x="{x:g}" y="{STRIP}" width="{TOKEN}" height="{TOKEN}" rx="9" fill="{COLOURS[token]}"/>'
        f'<text class="in" x="{x + TOKEN / 2:g}" y="{STRIP + 32}">{LETTERS[token]}</text></g>'
    )


def _ring(x: float) -> str:
    size = TOKEN + 6
    return (
        f'<rect class="line" x="{x - 3:g}" y="{STRIP - 3}" width="{size}" height="{size}" rx="11"/>'
    )


def _jump(start: float, end: float) -> str:
    """The arrow above the strip, from the last token to the position that it chooses."""
    foot = STRIP - 8
    high = foot - 88
    curve = f"M{start:g} {foot}C{start:g} {high} {end:g} {high} {end:g} {foot - 6}"
    head = f"M{end - 9:g} {foot - 15}L{end:g} {foot - 4}L{end + 9:g} {foot - 15}"
    return _arrow(curve, head)


def _carry(x: float) -> str:
    """The arrow below the strip, from the token found to the odds."""
    end = BARS[0] - BAR_WIDTH / 2 - 14
    line = f"M{x:g} {STRIP + TOKEN + 8}V{CARRY - 14}Q{x:g} {CARRY} {x + 14:g} {CARRY}H{end:g}"
    head = f"M{end - 11:g} {CARRY - 9}L{end:g} {CARRY}L{end - 11:g} {CARRY + 9}"
    return _arrow(line, head)


def _arrow(line: str, head: str) -> str:
    return (
        f'<path class="line draw" pathLength="1" d="{line}"/><path class="line head" d="{head}"/>'
    )


def _odds(column: list[float]) -> str:
    """A column of P as bars, with the tokens that they stand for below."""
    parts = []
    for token, (x, share) in enumerate(zip(BARS, column, strict=True)):
        height = round(BAR_HEIGHT * share, 1)
        parts.append(
            f'<rect class="bar" x="{x - BAR_WIDTH / 2:g}" y="{BASE - height:g}" width="{BAR_WIDTH}" height="{height:g}" '
            f'fill="{COLOURS[token]}"/>'
            f'<text class="small" x="{x}" y="{BASE - height - 8:g}">{share:.0%}</text>'
            f'<text class="small" x="{x}" y="{BASE + 25}">{LETTERS[token]}</text>'
        )
    return "".join(parts)


def _motion() -> str:
    """The animation: each part of a turn appears at its moment, then the next turn comes."""
    whole = TURN * SAMPLES

    def at(seconds: float) -> str:
        return f"{100 * seconds / whole:.2f}%"

    def appear(name: str, before: str, after: str, start: float, end: float) -> str:
        return f"@keyframes scb-{name}{{0%,{at(start)}{{{before}}}{at(end)},100%{{{after}}}}}"

    timing = f"{whole:g}s linear calc(var(--turn)*{TURN:g}s - {whole:g}s) infinite"
    rules = [
        f"@keyframes scb-turn{{0%{{opacity:0}}{at(FADE)},{at(TURN - FADE)}{{opacity:1}}{at(TURN)},100%{{opacity:0}}}}",
        f".scb-strip .turn{{animation:scb-turn {timing}}}",
    ]
    for name, (start, end) in MOMENTS.items():
        drawn = name in ("jump", "carry")
        rules.append(appear(name, "opacity:0", "opacity:1", end - 0.1 if drawn else start, end))
        rules.append(
            f".scb-strip .{name}{' .head' if drawn else ''}{{animation:scb-{name} {timing}}}"
        )
        if drawn:
            rules.append(
                appear(f"{name}-line", "stroke-dashoffset:1.05", "stroke-dashoffset:0", start, end)
            )
            rules.append(f".scb-strip .{name} .draw{{animation:scb-{name}-line {timing}}}")
    rules.append(appear("bar", "transform:scaleY(0)", "transform:none", *MOMENTS["odds"]))
    rules.append(
        f".scb-strip .bar{{transform-box:fill-box;transform-origin:bottom;animation:scb-bar {timing}}}"
    )
    rise = f"transform:translate(var(--from),{BASE - STRIP - 6}px) scale(.6)"
    rules.append(appear("move", rise, "transform:none", *MOMENTS["next"]))
    rules.append(
        f".scb-strip .next>g{{transform-box:fill-box;transform-origin:center;animation:scb-move {timing}}}"
    )
    return "@media (prefers-reduced-motion:no-preference){\n" + "\n".join(rules) + "\n}\n"


def main(directory: str) -> None:
    """Write both pictures into a directory."""
    for name, animated in (("strip", True), ("strip-still", False)):
        path = Path(directory) / f"{name}.svg"
        write_atomically(path, strip_picture(animated).encode())
        print(f"wrote {path}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
