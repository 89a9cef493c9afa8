"""Metre in folk songs: is the strongest lag of the onsets the bar?

Songs and tunes in ABC notation inside music21's wheel, which is read and not imported. A song
becomes onsets on a grid of sixteenths: 1 where a note begins, 0 elsewhere. Bar lines are used to
leave out songs whose bars do not add up, and to shuffle; no estimator sees them.

The criterion: of the lags from 8 sixteenths, the shortest bar, up to 36, the first in an
estimator's order is the bar. One that names no such lag is wrong. ``control`` is "none"; "bars",
the inner bars of each song in random order, where the bar should still be found if it is metre and
not an echo of the melody; or "notes", the notes of each song in random order, where it should not.
"""

import re
from fractions import Fraction
from functools import cache

import numpy as np

from chains import in_archive
from frame import Data, Problem

TITLE = "metre in songs"
LICENCE = (
    "Essen collection: for non-commercial use; Ryan, O'Neill, Aird: in the public domain. "
    "Nothing is shipped"
)
JUDGE = "strongest"
BARS = {"2/4": 8, "3/4": 12, "4/4": 16, "6/8": 12, "9/8": 18}
PANELS = {1: 36, 20: 12}  # of one song, and of 20; of 9/8 there are songs for 7 of these
CASES = [
    {"metre": metre, "songs": songs, "control": control, "panel": panel}
    for songs, panels in PANELS.items()
    for control in ("none", "bars", "notes")
    for metre in BARS
    for panel in range(7 if (metre, songs) == ("9/8", 20) else panels)
]
FOLDERS = ("essenFolksong", "ryansMammoth", "oneills1850", "airdsAirs")
NOTE = re.compile(
    r"(?P<tuplet>\(\d)|(?P<bar>\|)|(?P<note>[_^=]*[A-Ga-g][,']*|z)(?P<length>\d*(?:/+\d*)?)(?P<tie>-?)(?P<broken>[<>]*)"
)
SIXTEENTH = Fraction(1, 16)
Bar = list[tuple[bool, int]]  # of each note: whether it begins here, and its length in sixteenths


def length_of(text: str) -> Fraction:
    """The length that ABC writes behind a note: 2, 3/2, /, //."""
    up, slash, down = text.partition("/")
    whole = Fraction(int(up or 1))
    if not slash:
        return whole
    return whole / (int(down.strip("/")) if down.strip("/") else 2 ** (1 + down.count("/")))


def bars_of(tune: str) -> tuple[str, list[Bar]] | None:
    """The metre of a tune and its bars.

    None where the metre changes, a length is finer than a sixteenth, or bars do not add up.
    """
    fields = dict(re.findall(r"^([ML]):\s*(\S+)", tune, re.M))
    metre = {"C": "4/4", "C|": "2/2"}.get(fields.get("M", ""), fields.get("M", ""))
    body = re.sub(
        r'"[^"]*"|![^!]*!|\{[^}]*\}|%.*|\[[A-Za-z]:[^]]*\]',
        "",
        re.sub(r"^[A-Za-z]:.*$", "", tune, flags=re.M),
    )
    if metre not in BARS or len(re.findall(r"^M:", tune, re.M)) > 1 or "[" in body:
        return None
    unit = Fraction(fields.get("L", "1/8")) / SIXTEENTH
    bars: list[Bar] = [[]]
    tied, factor = False, Fraction(1)
    for found in NOTE.finditer(body):
        if found["tuplet"]:
            return None
        if found["bar"]:
            bars.append([])
            continue
        longer = {"": Fraction(1), ">": Fraction(3, 2), "<": Fraction(1, 2)}.get(found["broken"])
        if longer is None:
            return None
        length = unit * length_of(found["length"]) * factor * longer
        factor = 2 - longer
        if length.denominator > 1 or length == 0:
            return None
        bars[-1].append((found["note"] != "z" and not tied, int(length)))
        tied = bool(found["tie"])
    bars = [bar for bar in bars if bar]
    inner = [sum(length for _, length in bar) == BARS[metre] for bar in bars[1:-1]]
    return (metre, bars) if len(inner) >= 6 and np.mean(inner) >= 0.7 else None


def onsets(notes: Bar) -> np.ndarray:
    """Notes as symbols on the grid."""
    return np.array([int(begins and i == 0) for begins, length in notes for i in range(length)])


@cache
def songs() -> dict[str, list[list[Bar]]]:
    """All songs by metre, in an order drawn once."""
    found: dict[str, list[list[Bar]]] = {metre: [] for metre in BARS}
    for text in in_archive(
        "music21-*.whl", r"music21/corpus/({})/.*\.abc".format("|".join(FOLDERS))
    ):
        for tune in re.split(r"^(?=X:)", text.decode("utf-8", "replace"), flags=re.M):
            if read := bars_of(tune):
                found[read[0]].append(read[1])
    rng = np.random.default_rng(0)
    return {metre: [some[i] for i in rng.permutation(len(some))] for metre, some in found.items()}


def load(metre: str, songs: int, control: str, panel: int) -> Problem:
    """A panel of songs of one metre; panels have no song in common."""
    rng = np.random.default_rng(panel)
    train = []
    for bars in all_songs(metre)[panel * songs : (panel + 1) * songs]:
        order = np.arange(len(bars))
        if control == "bars":
            order[1:-1] = rng.permutation(order[1:-1])
        notes = [note for i in order for note in bars[i]]
        if control == "notes":
            notes = [notes[i] for i in rng.permutation(len(notes))]
        train.append(onsets(notes))
    return Problem(
        Data(train, symbols=2, max_lag=36),
        lags=frozenset({BARS[metre]}),
        shortest=min(BARS.values()),
    )


def all_songs(metre: str) -> list[list[Bar]]:
    """The songs of a metre."""
    return songs()[metre]
