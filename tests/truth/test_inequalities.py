"""The inequality lemmas hold with the constants of ``scb.theory.bounds``, and would not with half of them.

To see what is needed beside what is in use: ``PYTHONPATH=tests python -m truth.inequalities``.
"""

import pytest

from scb.theory.bounds import BOUNDS
from truth.inequalities import measure

ROUNDING = 1e-6


@pytest.fixture(scope="module")
def measured():
    return measure()


@pytest.mark.parametrize("name", BOUNDS)
def test_the_constant_is_enough_and_needed(name, measured):
    bound = BOUNDS[name]
    slack = measured[name] / bound.constant if bound.largest else bound.constant / measured[name]
    assert 1 - ROUNDING <= slack <= 2, f"{bound.statement}: c = {measured[name]:.4g} was measured, {bound.constant} is in use"


@pytest.mark.parametrize("name", [name for name, bound in BOUNDS.items() if bound.printed is not None])
def test_the_printed_constant_is_enough(name, measured):
    bound = BOUNDS[name]
    assert bound.printed is not None
    enough = bound.printed <= measured[name] if bound.largest else measured[name] <= bound.printed
    assert enough or measured[name] == pytest.approx(bound.printed, rel=ROUNDING)
