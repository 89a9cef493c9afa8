"""Codons: in a gene, letters have a period of three. Is it found there, and only there?

The chloroplast of Arabidopsis (NC_000932), a file of Biopython's source distribution, which is read
and not imported. ``kind`` is "coding", genes as they are translated; "other strand", the same genes
read backwards on the other strand, which has the same period; or "non-coding", what lies between
genes and inside their introns.

The criterion: of the lags from 3 up to 30, the first in an estimator's order is a multiple of 3. Of
non-coding sequence that is not an achievement but chance, 10 in 28; an estimator that names no lag
there is right.
"""

import re
from functools import cache

import numpy as np

from chains import in_archive
from frame import Data, Problem

TITLE = "codons of a chloroplast"
LICENCE = "GenBank: no restrictions; the file comes with Biopython. Nothing is shipped"
JUDGE = "strongest"
LETTERS = "acgt"
CASES = [
    {"kind": kind, "bases": bases, "panel": panel}
    for bases, panels in ((6000, (11, 11, 7)), (23_000, (3, 3, 2)))
    for kind, number in zip(("coding", "other strand", "non-coding"), panels, strict=True)
    for panel in range(number)
]


@cache
def genome() -> tuple[str, list[tuple[str, str]]]:
    """The sequence, and of each feature its kind and its place."""
    text = in_archive("biopython-*.tar.gz", r"NC_000932\.gb")[0].decode()
    features, _, origin = text.partition("ORIGIN")
    places = re.findall(
        r"^ {5}(\w+) +((?:complement|join|order|[\d.,()<>\s])+?)\n {21}/", features, re.M
    )
    return re.sub("[^acgtn]", "", origin), [
        (kind, re.sub(r"\s", "", place)) for kind, place in places
    ]


def backwards(sequence: str) -> str:
    """The other strand, in the direction in which it is read."""
    return sequence[::-1].translate(str.maketrans("acgt", "tgca"))


def stretch(place: str) -> str:
    """What lies at a place such as complement(join(1..20,30..44))."""
    sequence = genome()[0]
    if place.startswith("complement("):
        return backwards(stretch(place[11:-1]))
    if place.startswith("join("):
        return "".join(
            stretch(part) for part in re.findall(r"complement\([^)]*\)|[\d.<>]+", place[5:-1])
        )
    first, last = (int(number) for number in re.findall(r"\d+", place))
    return sequence[first - 1 : last]


@cache
def pieces(kind: str) -> list[str]:
    """Genes, or what lies between them, each once, in an order drawn once."""
    sequence, features = genome()
    if kind == "non-coding":
        free = np.ones(len(sequence), bool)
        for name, place in features:
            if name in ("CDS", "tRNA", "rRNA", "exon"):
                for first, last in re.findall(r"(\d+)\.\.[<>]?(\d+)", place):
                    free[int(first) - 1 : int(last)] = False
        edges = np.flatnonzero(np.diff(np.r_[0, free.astype(int), 0]))
        some = [sequence[a:b] for a, b in edges.reshape(-1, 2) if b - a >= 60]
    else:
        some = [stretch(place) for name, place in features if name == "CDS"]
        some = [gene for gene in some if len(gene) % 3 == 0]
    some = list(
        dict.fromkeys(min(one, backwards(one)) if kind == "non-coding" else one for one in some)
    )
    rng = np.random.default_rng(0)
    drawn = [some[i] for i in rng.permutation(len(some))]
    return [backwards(one) for one in drawn] if kind == "other strand" else drawn


def load(kind: str, bases: int, panel: int) -> Problem:
    """A panel of about so many bases; panels have no piece in common."""
    of = np.cumsum([len(one) for one in pieces(kind)]) // bases
    train = [
        np.array([LETTERS.index(base) for base in one])
        for one, place in zip(pieces(kind), of, strict=True)
        if place == panel
    ]
    return Problem(Data(train, symbols=4, max_lag=30), lags=frozenset(range(3, 31, 3)), shortest=3)
