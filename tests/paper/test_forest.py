"""The pictures of what a verdict rests on."""

import re

import pytest

from scb.paper.forest import MARGIN, WIDTH, forest
from scb.paper.numbers import Number
from scb.paper.outcome import Outcome, above, at_least, at_most, between, comparisons_kept


def judged(number, cases=None):
    return Outcome.judged(between(number, 0.2, 0.8), cases=cases, error=number)


def test_a_judge_keeps_what_it_compared_and_only_that():
    one, other = Number(0.5, 0.4, 0.6), Number(0.9, 0.7, 0.95)
    before = at_least(one, 0.1)
    with comparisons_kept():
        first = Outcome.judged(at_most(one, 0.7))
        second = Outcome.judged(above(other, 0.8))
    after = Outcome.judged(before)
    assert [tuple(found.comparisons) for found in (first, second, after)] == [((one, "≤", 0.7),), ((other, ">", 0.8),), ()]


def test_two_bounds_of_a_number_are_one_row_and_blue_if_one_lies_inside():
    with comparisons_kept():
        sure, unsure = judged(Number(0.5, 0.4, 0.6)), judged(Number(0.75, 0.7, 0.9))
    for outcome, blue in ((sure, False), (unsure, True)):
        (row,) = forest(outcome)
        assert row.label == "error"
        assert row.text.endswith("; asked: ≥ 0.2 and ≤ 0.8")
        assert row.unsure is blue
        assert row.picture.count('class="bound"') == 2


def places(picture, kind):
    return [float(x) for x in re.findall(rf'class="{kind}" d="M([\d.]+)', picture)]


def test_rows_with_the_same_bounds_share_a_scale():
    with comparisons_kept():
        parts = {name: judged(Number(x, x - 0.1, x + 0.1)) for name, x in {"strong": 0.3, "flat": 0.9}.items()}
    first, second = forest(Outcome.together(parts))
    assert (first.label, second.label) == ("strong", "flat")
    assert places(first.picture, "bound") == places(second.picture, "bound")
    # Values from 0.2 to 1 are spread over the whole width.
    assert places(first.picture, "bound")[0] == pytest.approx(MARGIN)
    assert places(second.picture, "estimate")[0] == pytest.approx(MARGIN + (WIDTH - 2 * MARGIN) * 0.7 / 0.8, abs=0.1)


def test_large_ranges_are_logarithmic_and_what_has_no_end_reaches_the_edge():
    with comparisons_kept():
        outcome = Outcome.judged(at_most(Number(10.0, 1.0, float("inf")), 100.0))
    (row,) = forest(outcome)
    assert places(row.picture, "estimate")[0] == pytest.approx(WIDTH / 2, abs=0.1)
    assert f"H{WIDTH:.1f}" in row.picture
    assert row.unsure


def test_a_number_is_told_by_its_case_and_by_its_name_if_the_case_has_two():
    slope, error, other = Number(1.0, 0.9, 1.1), Number(0.3, 0.2, 0.4), Number(0.6, 0.5, 0.7)
    cases = {"N = 3": {"slope": slope, "final_error": error}, "N = 10": {"final_error": other}}
    with comparisons_kept():
        answers = [at_least(slope, 0.5), at_most(error, 0.5), at_most(other, 0.5), at_least(2.5, 2)]
        outcome = Outcome.judged(min(answers), cases=cases)
    assert [row.label for row in forest(outcome)] == ["N = 3: slope", "N = 3: final error", "N = 10", ""]
