"""The scoreboard: nonsense gets nonsense scores, its own methods do what their papers say, and its page shows its rows."""

import math
import re
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks" / "scoreboard"), str(ROOT / "benchmarks")]

import chains  # noqa: E402
import frame  # noqa: E402
import report  # noqa: E402
from datasets import codons, hdmtd_two_lags, songs  # noqa: E402
from estimators import dependence, forward_stepwise  # noqa: E402
from study import table_of  # noqa: E402

HOW_TO = ROOT / "docs" / "howto" / "add-to-the-scoreboard.md"


class Fixed:
    """An estimator that says what it is made to say."""

    version, told, answers = "", False, frozenset(frame.JUDGES)

    def __init__(self, score=None, lags=()):
        self.answer = score
        self.found = lags

    def fit(self, data):
        self.symbols = data.symbols

    def score(self, test):
        return self.answer(sum(len(x) - 1 for x in test), self.symbols)

    def lags(self):
        return self.found


@pytest.fixture
def text():
    x = np.random.default_rng(0).integers(3, size=400)
    return frame.Problem(frame.Data([x[:300]], symbols=3, max_lag=4), test=[x[300:]])


def test_a_uniform_distribution_costs_exactly_the_logarithm_of_the_symbols(text):
    row = frame.judge("bits", Fixed(lambda n, N: np.full(n, -math.log(N))), text)
    assert row["bits"] == pytest.approx(math.log2(3), abs=1e-6)
    assert row["symbols"] == 99


@pytest.mark.parametrize(
    "score",
    [
        lambda n, N: np.full(n, math.log(0.9)),
        lambda n, N: np.zeros(n),
        lambda n, N: np.full(n, 0.1),
        lambda n, N: np.full(n, np.nan),
        lambda n, N: np.full(n, -np.inf),
        lambda n, N: np.full(n + 1, -5.0),
        lambda n, N: "no numbers",
    ],
    ids=["sums to 2.7", "certain of everything", "above one", "nan", "impossible", "too many", "text"],
)
def test_probabilities_that_are_none_get_the_worst_score(text, score):
    row = frame.judge("bits", Fixed(score), text)
    assert row["bits"] == math.inf
    assert row["error"]


@pytest.mark.parametrize("lags", [[0, 1, 5], [-3], [1, 5, 101], [1, 5, 5], ["x"], None])
def test_lags_that_are_none_are_not_right_and_the_row_says_why(lags):
    row = frame.judge("exact", Fixed(lags=lags), hdmtd_two_lags.load(1000, 0))
    assert not row["right"]
    assert row["error"]


@pytest.mark.parametrize("lags", [list(range(1, 101)), [1], []])
def test_all_lags_or_too_few_are_not_right(lags):
    assert not frame.judge("exact", Fixed(lags=lags), hdmtd_two_lags.load(1000, 0))["right"]


def test_the_right_lags_are_right_in_any_order_and_the_strongest_is_the_first_that_counts():
    problem = hdmtd_two_lags.load(1000, 0)
    assert frame.judge("exact", Fixed(lags=[5, 1]), problem)["right"]
    later = frame.Problem(problem.data, lags=frozenset({5}), shortest=3)
    assert frame.judge("strongest", Fixed(lags=[1, 2, 5, 9]), later)["answer"] == 5
    assert not frame.judge("strongest", Fixed(lags=[1, 2]), later)["right"]


def test_chance_is_hardly_ever_right():
    rows = [frame.judge("exact", dependence.Chance(), hdmtd_two_lags.load(1000, seed)) for seed in range(10)]
    assert sum(row["right"] for row in rows) <= 1


def test_a_text_that_is_learned_while_reading_is_coded_by_models_of_what_came_before():
    seen = []

    class Spy(Fixed):
        def fit(self, data):
            super().fit(data)
            seen.append(len(data.train[0]))

    x = np.random.default_rng(0).integers(3, size=5000)
    problem = frame.Problem(frame.Data([x], symbols=3, max_lag=4))
    row = frame.judge("adaptive", Spy(lambda n, N: np.full(n, -math.log(N))), problem)
    assert seen == [2048, 4096]
    assert row["bits"] == pytest.approx((2048 * 8 + 2952 * math.log2(3)) / 5000, abs=1e-5)


def test_a_compressor_that_does_nothing_needs_eight_bits():
    class Nothing(frame.Compressor):
        name = version = "nothing"

        def size(self, text):
            return len(text)

    x = np.arange(400) % 3
    problem = frame.Problem(frame.Data([x], symbols=3, max_lag=1), test=[x], kinds=np.array([65, 66, 67], np.uint8))
    for judge in ("bits", "adaptive"):
        assert frame.judge(judge, Nothing(), problem)["bits"] == 8


def nu_by_definition(x, chosen, lag, max_lag, N):
    """ν of Ost and Takahashi, from the windows one by one."""
    windows = [(tuple(x[t - s] for s in chosen), x[t - lag], x[t]) for t in range(max_lag, len(x))]
    n = len(windows)
    past, pair, triple = Counter(), Counter(), Counter()
    for s, b, a in windows:
        past[s] += 1
        pair[s, b] += 1
        triple[s, b, a] += 1
    total = 0.0
    for s in past:
        for b, c in combinations(range(N), 2):
            if pair[s, b] and pair[s, c]:
                distance = 0.5 * sum(abs(triple[s, b, a] / pair[s, b] - triple[s, c, a] / pair[s, c]) for a in range(N))
                total += pair[s, b] / n * pair[s, c] / n * distance / (past[s] / n)
    return total


def test_forward_stepwise_selection_follows_its_definition():
    rng = np.random.default_rng(3)
    x = rng.integers(3, size=300)
    x[4:] = np.where(rng.random(296) < 0.5, x[:-4], x[4:])
    chosen: list[int] = []
    for _ in range(3):
        values = {lag: nu_by_definition(x.tolist(), chosen, lag, 6, 3) for lag in range(1, 7) if lag not in chosen}
        chosen.append(max(values, key=lambda lag: (values[lag], -lag)))
    assert forward_stepwise.forward_stepwise([x], 3, 6, 3) == chosen
    label, past = forward_stepwise.windows([x], 6)
    counts = forward_stepwise.joint_counts(past[:, 1], label, past[:, 3], 3, 3)
    assert forward_stepwise.nu(counts) == pytest.approx(nu_by_definition(x.tolist(), [4], 2, 6, 3), rel=1e-12)


def test_a_chain_has_the_transitions_that_it_is_made_of():
    x = chains.mixture_chain(hdmtd_two_lags.LAGS, (0.01, np.array([0.5, 0.5])), 60_000, 0)
    for one in (0, 1):
        for five in (0, 1):
            at = np.flatnonzero((x[4:-1] == one) & (x[:-5] == five)) + 5
            p = 0.005 + sum(w * P[b, 0] for (w, P), b in zip(hdmtd_two_lags.LAGS.values(), (one, five), strict=True))
            assert abs(np.mean(x[at] == 0) - p) < 4 * math.sqrt(p * (1 - p) / at.size)


TUNE = """X:1
T: a tune, "with" C words
M: 2/4
L: 1/16
K: F
C2 | F2F2F2G2 | A3GF4 | A2-A2 z2B2 | c>BA2 F4
| f4fed2 | c4z4 | c8 | c2d2e2f2 |
"""


def test_a_tune_becomes_onsets_on_a_grid():
    metre, bars = songs.bars_of(TUNE.replace("c>B", "c2>B2"))
    assert metre == "2/4"
    assert [sum(length for _, length in bar) for bar in bars] == [2, 8, 8, 8, 10, 8, 8, 8, 8]
    assert songs.onsets(bars[1]).tolist() == [1, 0] * 4
    assert songs.onsets(bars[2]).tolist() == [1, 0, 0, 1, 1, 0, 0, 0]
    assert songs.onsets(bars[3]).tolist() == [1, 0, 0, 0, 0, 0, 1, 0]
    assert songs.onsets(bars[4]).tolist() == [1, 0, 0, 1, 1, 0, 1, 0, 0, 0]
    assert songs.bars_of(TUNE) is None, "c>B is finer than the grid"
    assert songs.bars_of(TUNE.replace("c>BA2", "(3cBA A2")) is None, "triplets are left out"
    assert songs.bars_of(TUNE.replace("2/4", "5/4")) is None


def test_places_of_genes_are_read_on_both_strands(monkeypatch):
    monkeypatch.setattr(codons, "genome", lambda: ("aacgtttg", []))
    assert codons.stretch("2..4") == "acg"
    assert codons.stretch("complement(2..4)") == "cgt"
    assert codons.stretch("join(1..2,complement(6..8))") == "aa" + "caa"
    assert codons.stretch("complement(join(1..2,4..5))") == "acg"[:2] + "tt"


def test_nonsense_stands_last_in_the_tables_and_is_never_the_best_of_the_others(monkeypatch):
    bits = {"bits": math.inf, "blocks": [], "lags": [], "seconds": 0.0, "version": ""}
    worst = {"nonsense": ("texts", "texts_adaptive", "brasilia"), "certain of nothing": ("hdmtd_two_lags", "songs")}
    real = report.kept

    def with_nonsense(dataset):
        rows = real(dataset)
        cases = {str(case | {"estimator": ""}): case for case, _ in rows}.values()
        names = [name for name, datasets in worst.items() if dataset in datasets]
        return rows + [(case | {"estimator": name}, bits | {"answer": None, "right": False}) for name in names for case in cases]

    before = report.summary()
    monkeypatch.setattr(report, "kept", with_nonsense)
    assert report.summary() == before
    assert report.texts()[-1].startswith("| nonsense | inf |")
    assert report.brasilia()[-1].startswith("| nonsense | inf")
    (line,) = [line for line in report.shares(report.SONGS) if line.startswith("| certain of nothing")]
    assert [cell.split("\u00a0")[0].strip() for cell in line.split("|")[2:-1]] == ["0"] * len(report.SONGS)


def test_who_wins_follows_from_the_difference_and_its_interval():
    score = report.Score(0.5, 0.4, 0.6)
    line = report.Comparison("one", 10, score, "the other", score, 0.2, 0.1, bits=False)
    assert report.winner(line) == "**scb** by 20 ± 10 points"
    assert report.winner(line._replace(gap=-0.2)) == "the other by 20 ± 10 points"
    assert report.winner(line._replace(gap=-0.05)) == "undecided (5 ± 10 points)"
    assert report.winner(line._replace(gap=-0.05, half=math.nan)) == "undecided (5 ± nan points)"
    assert report.difference({"a": 1.0, "b": 2.0, "c": 9.0}, {"a": 0.0, "b": 3.0}).mean == 0.0


def test_the_page_shows_what_the_rows_say():
    page = (ROOT / "docs" / "explanation" / "scoreboard.md").read_text()
    for name, table in report.tables().items():
        assert "\n".join(table) in page, f"python benchmarks/scoreboard --tables writes the table {name} anew"
    assert report.tables()["hdmtd"] != table_of("estimator", [])


def test_forward_stepwise_selection_chose_what_hdmtd_published():
    rows = report.kept("published")
    ours = [row for case, row in rows if case["estimator"] == "hdMTD FS"]
    package = [row for case, row in rows if case["estimator"] == "hdMTD in R"]
    assert sum(row["same"] for row in ours) == sum(row["samples"] for row in ours) == 700
    (fsc,) = [row for case, row in rows if case["estimator"] == "hdMTD FSC"]
    assert fsc["same"] == fsc["samples"] == 4
    assert package
    assert all(row["same"] for row in package)


def test_every_row_belongs_to_a_case_and_says_what_made_it():
    for name, module in frame.modules("datasets").items():
        known = [str(sorted(case.items())) for case in module.CASES]
        for case, row in report.kept(name):
            rest = {key: value for key, value in case.items() if key not in ("dataset", "estimator")}
            assert str(sorted(rest.items())) in known
            assert "version" in row
            assert "error" not in row, (case, row["error"])


def test_the_estimator_of_the_how_to_can_be_judged(text):
    (code,) = re.findall(r"^```python\n(.*?)^```$", HOW_TO.read_text(), re.S | re.M)
    assert len(code.splitlines()) <= 24
    scope: dict = {}
    exec(code, scope)
    (estimator,) = scope["ESTIMATORS"]
    assert frame.judge("bits", estimator(), text)["bits"] == pytest.approx(math.log2(3), abs=0.1)
    assert frame.judge("exact", estimator(), hdmtd_two_lags.load(1000, 0))["lags"] == [1]
