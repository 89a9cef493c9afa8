"""The picture of a sparse contextual bigram as SVG, which shows three samples of a real task in
turn.

    python -m scb.picture docs/images

writes strip.svg, which moves, and strip-still.svg, which does not. An SVG that is put inline into a
page takes the colour of the text around it. As a separate file, the SVG has a light or a dark
background, whichever the reader prefers.
"""

import sys
from dataclasses import dataclass
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

# Seconds: when each part of a turn begins to appear, and when it is there.
MOMENTS = {
    "last": (0.7, 1.0),
    "jump": (1.3, 2.1),
    "found": (2.1, 2.4),
    "carry": (2.8, 3.5),
    "odds": (3.4, 3.9),
    "next": (4.4, 5.2),
}


@dataclass(frozen=True)
class Layout:
    """Lengths and heights in units of the view box, and the duration of a turn in seconds."""

    width: int = 720
    height: int = 354
    token: int = 46  # the side of a token
    pitch: int = 53  # from one token to the next
    left: int = 14  # of the first token, and of the words
    strip: int = 132  # the top of the tokens
    slot: int = 660  # the left side of the next token
    bars: tuple[int, int, int] = (574, 628, 682)
    bar_width: int = 36
    bar_height: int = 82
    base: int = 304  # the foot of the bars
    carry: int = 264  # of the arrow below the strip
    turn: float = 7.0
    fade: float = 0.3


AT = Layout()

STYLE = """
.scb-strip{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;\
font-size:26px;text-anchor:middle}
.scb-strip text{fill:currentColor}
.scb-strip .left{text-anchor:start}
.scb-strip .small{font-size:20px}
.scb-strip .in{fill:#111;font-weight:700}
.scb-strip .line{fill:none;stroke:currentColor;stroke-width:4;stroke-linecap:round;\
stroke-linejoin:round}
.scb-strip .jump .draw,.scb-strip .carry .draw{stroke-dasharray:1 2}
.scb-strip .slot{fill:none;stroke:currentColor;stroke-width:2.5;stroke-dasharray:5 5;opacity:.5}
.scb-strip .dim rect{opacity:.42}
.scb-strip .dim .in{fill:currentColor;opacity:.65}
.scb-strip .paper{fill:none}
.scb-strip .later{opacity:0}
svg:root{color:#1b1b1b}
svg:root .paper{fill:#fff}
@media (prefers-color-scheme:dark){svg:root{color:#ececec}svg:root .paper{fill:#16181b}}
"""


def strip_picture(animated: bool = True) -> str:
    """Return the picture as the text of an SVG file.

    Parameters
    ----------
    animated : bool, default True
        Whether three samples are shown in turn, unless the reader has asked for less motion. If
        not, only the first sample is shown.

    Returns
    -------
    str
        The SVG. Without ``XMLNS``, the SVG can be put into an HTML page.

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
        f'<svg{XMLNS} class="scb-strip" viewBox="0 0 {AT.width} {AT.height}"'
        f' role="img" aria-label="{ALT}">',
        f"<style>{STYLE}{_motion() if animated else ''}</style>",
        f'<rect class="paper" width="{AT.width}" height="{AT.height}" rx="12"/>',
        f'<text class="left" x="{AT.left}" y="36">The last one says where to look.</text>',
        f'<text class="left" x="{AT.left}" y="{AT.carry + 38}">What it finds there</text>',
        f'<text class="left" x="{AT.left}" y="{AT.carry + 70}">'
        "sets the odds of the next one.</text>",
        f'<rect class="slot" x="{AT.slot + 2}" y="{AT.strip + 2}" width="{AT.token - 4}"'
        f' height="{AT.token - 4}" rx="8"/>',
        f'<text class="small" x="{AT.slot + AT.token / 2:g}" y="{AT.strip - 12}">next</text>',
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
        f'<g class="jump">{_jump(_x(CONTEXT) + AT.token / 2, _x(position) + AT.token / 2)}</g>',
        f'<g class="found">{_token(found, _x(position))}{_ring(_x(position))}</g>',
        f'<g class="carry">{_carry(_x(position) + AT.token / 2)}</g>',
        f'<g class="odds">{_odds(task.P[:, found].tolist())}</g>',
        f'<g class="next" style="--from:{AT.bars[label] - AT.slot - AT.token / 2:g}px">'
        f"{_token(label, AT.slot)}</g></g>",
    ]
    return "\n".join(parts)


def _x(place: int) -> int:
    return AT.left + AT.pitch * place


def _token(token: int, x: float, kind: str = "") -> str:
    group = f'<g class="{kind}">' if kind else "<g>"
    return (
        f'{group}<rect x="{x:g}" y="{AT.strip}" width="{AT.token}" height="{AT.token}" rx="9"'
        f' fill="{COLOURS[token]}"/>'
        f'<text class="in" x="{x + AT.token / 2:g}" y="{AT.strip + 32}">{LETTERS[token]}</text></g>'
    )


def _ring(x: float) -> str:
    size = AT.token + 6
    place = f'x="{x - 3:g}" y="{AT.strip - 3}"'
    return f'<rect class="line" {place} width="{size}" height="{size}" rx="11"/>'


def _jump(start: float, end: float) -> str:
    """The arrow above the strip, from the last token to the position that it chooses."""
    foot = AT.strip - 8
    high = foot - 88
    curve = f"M{start:g} {foot}C{start:g} {high} {end:g} {high} {end:g} {foot - 6}"
    head = f"M{end - 9:g} {foot - 15}L{end:g} {foot - 4}L{end + 9:g} {foot - 15}"
    return _arrow(curve, head)


def _carry(x: float) -> str:
    """The arrow below the strip, from the token found to the odds."""
    end = AT.bars[0] - AT.bar_width / 2 - 14
    y = AT.carry
    line = f"M{x:g} {AT.strip + AT.token + 8}V{y - 14}Q{x:g} {y} {x + 14:g} {y}H{end:g}"
    head = f"M{end - 11:g} {AT.carry - 9}L{end:g} {AT.carry}L{end - 11:g} {AT.carry + 9}"
    return _arrow(line, head)


def _arrow(line: str, head: str) -> str:
    return (
        f'<path class="line draw" pathLength="1" d="{line}"/><path class="line head" d="{head}"/>'
    )


def _odds(column: list[float]) -> str:
    """A column of P as bars, with the tokens that they stand for below."""
    parts = []
    for token, (x, share) in enumerate(zip(AT.bars, column, strict=True)):
        height = round(AT.bar_height * share, 1)
        parts.append(
            f'<rect class="bar" x="{x - AT.bar_width / 2:g}" y="{AT.base - height:g}"'
            f' width="{AT.bar_width}" height="{height:g}" '
            f'fill="{COLOURS[token]}"/>'
            f'<text class="small" x="{x}" y="{AT.base - height - 8:g}">{share:.0%}</text>'
            f'<text class="small" x="{x}" y="{AT.base + 25}">{LETTERS[token]}</text>'
        )
    return "".join(parts)


def _motion() -> str:
    """The animation: each part of a turn appears at its moment, then the next turn comes."""
    whole = AT.turn * SAMPLES

    def at(seconds: float) -> str:
        return f"{100 * seconds / whole:.2f}%"

    def appear(name: str, before: str, after: str, start: float, end: float) -> str:
        return f"@keyframes scb-{name}{{0%,{at(start)}{{{before}}}{at(end)},100%{{{after}}}}}"

    timing = f"{whole:g}s linear calc(var(--turn)*{AT.turn:g}s - {whole:g}s) infinite"
    rules = [
        f"@keyframes scb-turn{{0%{{opacity:0}}{at(AT.fade)},{at(AT.turn - AT.fade)}{{opacity:1}}"
        f"{at(AT.turn)},100%{{opacity:0}}}}",
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
        ".scb-strip .bar{transform-box:fill-box;transform-origin:bottom;"
        f"animation:scb-bar {timing}}}"
    )
    rise = f"transform:translate(var(--from),{AT.base - AT.strip - 6}px) scale(.6)"
    rules.append(appear("move", rise, "transform:none", *MOMENTS["next"]))
    rules.append(
        ".scb-strip .next>g{transform-box:fill-box;transform-origin:center;"
        f"animation:scb-move {timing}}}"
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
