"""Rows and words of claims, and how answers follow from numbers and intervals."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from scb.jobs.shipped import shipped
from scb.paper.claims.claim import Claim
from scb.paper.numbers import Number, average, middle, minus, over, share, span, spread
from scb.paper.outcome import Answer, Outcome, Verdict, all_of, any_of, at_least, at_most, between, mostly, opposite, rarely
from scb.paper.registry import CLAIMS, ELSEWHERE, TABLES, tables

HOLDS, CHANGED, SOME, UNSURE, FAILS = Verdict.HOLDS, Verdict.CHANGED, Verdict.SOME, Verdict.UNSURE, Verdict.FAILS
YES, NO = Answer.YES, Answer.NO
T = np.array([100, 1000, 10_000, 100_000])


def test_every_row_is_complete():
    """Each row has a criterion, a place, and a judge of its own; one of the paper's has a quote and a condition."""
    for claim in CLAIMS:
        assert claim.criterion.endswith("."), claim.says
        assert claim.where, claim.says
        assert claim.ours or claim.condition, claim.says
    assert len({claim.says for claim in CLAIMS}) == len(CLAIMS)
    quotes = [claim.quote for claim in CLAIMS if not claim.ours]
    assert len(set(quotes)) == len(quotes)  # no sentence is judged twice
    assert len({claim.judge for claim in CLAIMS}) == len(CLAIMS)
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z]+)*", claim.id) for claim in CLAIMS)


def test_the_page_in_docs_is_that_of_todays_claims():
    """Every claim whose tables are made by default or shipped stands there, word for word; benchmarks/pages.py writes it again."""
    docs = Path(__file__).parents[2] / "docs"
    there = {*tables(), *shipped(docs / "tables", (*TABLES, *ELSEWHERE))}
    for claim in CLAIMS:
        page = (docs / "paper" / "figures" / f"{claim.figure}.md").read_text()
        if there.issuperset(claim.uses):
            assert all(text in page for text in (claim.says, claim.quote, claim.criterion, claim.where)), claim.says


def test_every_judge_is_fed_data_in_some_test():
    source = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    missing = [claim.judge.__name__ for claim in CLAIMS if not re.search(rf"\.{claim.judge.__name__}\b", source)]
    assert missing == []


def test_settings_are_read_off_the_tables():
    claim = Claim("id", lambda a: Outcome.judged(YES), figure="F1", says="x", where="z", words="", setting="λ = 1e-5")
    table = {"N": np.array([3, 3]), "T": np.array([500, 5000]), "replicate": np.array([0, 1]), "ensemble": np.array(["a", "b"])}
    assert claim.settings(table) == "N = 3; T = 500, 5,000; 2 random tasks at each point; ensembles: a, b; λ = 1e-5"
    assert claim.settings({"T": np.arange(1, 9)}) == "T = 1 to 8; λ = 1e-5"
    assert claim.settings({"T": np.array([5, 7, np.inf])}) == "T = 5, 7; λ = 1e-5"
    drawn = {"N": np.array([3]), "replicate": np.array([0]), "chain": np.array(["dense"])}
    assert claim.settings(drawn) == "N = 3; 1 random task at each point; chains: dense; λ = 1e-5"


def test_an_ensemble_that_needs_a_change_is_told_apart():
    @partial(Claim, "loud", figure="F1", says="It is loud.", where="here", words="{level:g}", change="turn it up")
    def judge(x):
        """Criterion."""
        level = Number(x["level"][0], x["level"][0] - 0.1, x["level"][0] + 0.1)
        return Outcome.judged(at_least(level, 1), at_least(level, 0), level=x["level"][0])

    def judged(*levels):
        return judge({"ensemble": np.array([f"e{i}" for i in range(len(levels))]), "level": np.array(levels)})

    assert judged(2.0, 2.0).told == "holds as printed"
    assert judge.note(judged(2.0, 2.0)) == ""
    assert judge.measured(judged(2.0, 0.5)) == ["e0: 2", "e1: 0.5"]
    assert judged(2.0, 0.5).told == "holds in these ensembles: e0"
    assert judge.note(judged(2.0, -1.0)) == "holds as printed in e0; does not hold in e1 (turn it up)"
    assert judged(0.5, -1.0).told == "holds with a change (in e0)"
    assert judged(0.5, 0.6).told == "holds with a change"
    assert judged(-1.0, -1.0).told == "does not hold"
    assert judged(1.0, -1.0).told == "cannot tell"
    assert judge.note(judged(1.05, -1.0)).startswith("cannot tell in e0 (as printed an interval contains the threshold; with")
    assert judge.note(judged(0.05, 0.05)).startswith("it does not hold as printed; with the change (turn it up) an interval")
    assert judged(2.0, 1.0).told == "holds in these ensembles: e0"
    assert judge.measured(judge({"level": np.array([2.0])})) == ["2"]  # no ensembles to speak of


def test_a_phrase_is_told_of_the_cases_that_have_its_numbers():
    @partial(
        Claim, "two", figure="F1", says="x", where="y", words="{n:.0f} runs; at most {most:.1f}; {word} seen", control="{without}"
    )
    def judge(x):
        """Criterion."""
        cases = {"a": {"n": 3, "word": None}, "b": {"n": 4, "word": "often"}}
        return Outcome.judged(YES, cases=cases, most=0.5, without=share([]))

    outcome = judge(x={})
    assert judge.measured(outcome) == ["a: 3 runs", "b: 4 runs; often seen", "at most 0.5"]
    assert judge.controlled(outcome) == ["–"]
    misspelt = replace(judge, words="{runs:.0f} runs")
    with pytest.raises(ValueError, match="claim two: its judge gives no number runs"):
        misspelt(x={})


def test_words():
    assert Outcome.judged(YES).verdict is HOLDS
    assert Outcome.judged(NO, YES).verdict is CHANGED
    assert Outcome.judged(NO).verdict is FAILS
    for answers in ((Answer.UNSURE, YES), (Answer.UNSURE, NO), (NO, Answer.UNSURE)):
        assert Outcome.judged(*answers).verdict is UNSURE
    assert f"{spread([1, 2, 3])}" == "2 [1.5, 2.5]"
    assert f"{spread([])}" == "–"
    assert f"{spread([116_480, 123_840])}" == "120,000 [120,000, 120,000]"
    assert f"{spread([1.0, np.inf, np.inf])}" == "never"
    assert f"{span([1, 5, 30]):to .1f}" == "1.0 to 30.0"
    assert f"{Number(0.5, -np.inf, np.inf):+.1f}" == "+0.5 [-inf, +inf]"
    assert f"{share(np.arange(50) < 45):share}" == "45 of 50 (79–96 %)"  # Wilson's interval
    assert f"{share([]):share}" == "0 of 0"


def test_answers_follow_from_intervals():
    """Every kind of estimate that a judge can have: sure on either side of a bound, and unsure in between."""
    for number, answer in (((2, 1.5, 2.5), YES), ((1, 0.5, 1.5), Answer.UNSURE), ((0.2, 0.1, 0.3), NO)):
        assert at_least(Number(*number), 1) is answer
        assert at_most(Number(*number), 1) is opposite(answer)
        assert at_least(minus(Number(*number), Number(1, 1, 1)), 0) is answer
        assert at_least(over(Number(*number), Number(2, 2, 2)), 0.5) is answer
    assert [mostly(np.arange(50) < hits) for hits in (50, 47, 20)] == [YES, Answer.UNSURE, NO]
    assert [rarely(np.arange(50) < hits) for hits in (0, 3, 20)] == [YES, Answer.UNSURE, NO]
    assert [at_least(middle(np.arange(20) + shift), 0) for shift in (1, -9, -30)] == [YES, Answer.UNSURE, NO]
    assert [at_least(average(np.arange(20) + shift), 0) for shift in (1, -9, -30)] == [YES, Answer.UNSURE, NO]
    assert between(Number(1, 0.5, 1.5), 0, 2) is YES
    assert between(Number(1, 0.5, 1.5), 0, 1.2) is Answer.UNSURE
    assert between(Number(1, 0.5, 1.5), 1.6, 2) is NO


def test_what_is_not_known_cannot_be_told():
    for nothing in (Number(3.0), Number(np.nan), share([]), middle([]), middle([1, 2, 3]), average([5.0]), average([])):
        assert at_least(nothing, 0.5) is Answer.UNSURE
        assert at_most(nothing, 0.5) is Answer.UNSURE
    assert all_of([]) is any_of([]) is mostly([]) is Answer.UNSURE
    assert at_least(3.0, 0.5) is YES  # a plain number is exact


def test_intervals_of_medians_and_means_cover():
    rng = np.random.default_rng(0)
    draws = rng.normal(1.0, 1.0, size=(2000, 15))
    for estimator, truth in ((middle, 1.0), (average, 1.0)):
        found = [estimator(row) for row in draws]
        assert np.mean([number.low <= truth <= number.high for number in found]) == pytest.approx(0.95, abs=0.03)
