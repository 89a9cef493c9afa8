"""The outcome of judging a claim: answers, the verdict that follows from them, and the numbers on
which they are based."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from scb.paper.numbers import MOST, Number, share

Numbers = Mapping[str, Number | float | str | None]
"""Name → number, or a word; None is known to be missing."""


class Answer(IntEnum):
    """An answer to a yes-or-no question, based on an estimate and its interval.

    Examples
    --------
    >>> from scb.paper.outcome import Answer
    >>> max(Answer.NO, Answer.UNSURE).name
    'UNSURE'
    """

    NO = 0
    UNSURE = 1
    YES = 2


class Comparison(NamedTuple):
    """A number and the bound that it was compared with.

    Attributes
    ----------
    number : Number
        The number.
    sign : str
        The comparison that the number has to satisfy: "≥", ">" or "≤".
    bound : float
        The bound.

    Examples
    --------
    >>> from scb.paper.numbers import Number
    >>> from scb.paper.outcome import Comparison
    >>> Comparison(Number(0.3, 0.2, 0.4), "≤", 0.25).unsure
    True
    """

    number: Number
    sign: str
    bound: float

    @property
    def unsure(self) -> bool:
        """Whether the interval contains the bound, or there is no interval."""
        return not (self.number.low >= self.bound or self.number.high <= self.bound)


_COMPARISONS: ContextVar[list[Comparison] | None] = ContextVar("comparisons", default=None)


@contextmanager
def comparisons_kept() -> Iterator[None]:
    """A context in which ``Outcome.judged`` keeps the comparisons made since the previous
    outcome."""
    token = _COMPARISONS.set([])
    try:
        yield
    finally:
        _COMPARISONS.reset(token)


def _compared(number: Number | float, sign: str, bound: float) -> Number:
    """The number, after its comparison was kept; a plain one is exact."""
    number = number if isinstance(number, Number) else Number.exact(float(number))
    kept = _COMPARISONS.get()
    if kept is not None:
        kept.append(Comparison(number, sign, float(bound)))
    return number


def at_least(number: Number | float, bound: float) -> Answer:
    """Answer the question of whether a number is at least a bound.

    The answer is unsure if the interval of the number contains the bound, or if the number is a
    ``Number`` without an interval. A plain number is exact.

    Parameters
    ----------
    number : Number or float
        The number.
    bound : float
        The bound.

    Returns
    -------
    Answer

    Examples
    --------
    >>> from scb.paper.numbers import share
    >>> from scb.paper.outcome import at_least
    >>> [at_least(share([True] * hits + [False] * (50 - hits)), 0.9).name for hits in (50, 45, 30)]
    ['YES', 'UNSURE', 'NO']
    >>> at_least(0.91, 0.9).name
    'YES'
    """
    number = _compared(number, "≥", bound)
    if number.low >= bound:
        return Answer.YES
    return Answer.NO if number.high < bound else Answer.UNSURE


def at_most(number: Number | float, bound: float) -> Answer:
    """Answer the question of whether a number is at most a bound, by the rules of ``at_least``.

    Parameters
    ----------
    number : Number or float
        The number.
    bound : float
        The bound.

    Returns
    -------
    Answer

    Examples
    --------
    >>> from scb.paper.numbers import Number
    >>> from scb.paper.outcome import at_most
    >>> at_most(Number(0.1, 0.0, 0.2), 0.15).name
    'UNSURE'
    """
    number = _compared(number, "≤", bound)
    if number.high <= bound:
        return Answer.YES
    return Answer.NO if number.low > bound else Answer.UNSURE


def above(number: Number | float, bound: float) -> Answer:
    """Whether a number is above a bound; unsure as in ``at_least``."""
    number = _compared(number, ">", bound)
    if number.low > bound:
        return Answer.YES
    return Answer.NO if number.high <= bound else Answer.UNSURE


def between(number: Number | float, low: float, high: float) -> Answer:
    """Whether a number lies between two bounds."""
    return all_of([at_least(number, low), at_most(number, high)])


def mostly(hits: Any, least: float = MOST) -> Answer:
    """Whether something is true of at least this share of tasks, judged by the observed tasks."""
    return at_least(share(hits), least)


def rarely(hits: Any, most: float = 1 - MOST) -> Answer:
    """Whether something is true of at most this share of tasks, judged by the observed tasks."""
    return at_most(share(hits), most)


def all_of(answers: Iterable[Answer]) -> Answer:
    """Whether all answers are yes; unsure if there are none."""
    return min(answers, default=Answer.UNSURE)


def any_of(answers: Iterable[Answer]) -> Answer:
    """Whether one of the answers is yes; unsure if there are none."""
    return max(answers, default=Answer.UNSURE)


def opposite(answer: Answer) -> Answer:
    """The negation of an answer."""
    return Answer(Answer.YES - answer)


class Verdict(Enum):
    """The possible verdicts on a claim, from best to worst.

    The verdicts are HOLDS (in all ensembles), SOME (in some ensembles, which are named), CHANGED
    (with a change), UNSURE (an interval contains a threshold) and FAILS.

    Examples
    --------
    >>> from scb.paper.outcome import Verdict
    >>> Verdict.CHANGED.value
    'holds with a change'
    """

    HOLDS = "holds as printed"
    SOME = "holds in these ensembles"
    CHANGED = "holds with a change"
    UNSURE = "cannot tell"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a claim: whether it holds, and the numbers on which this answer is based.

    Attributes
    ----------
    printed, changed : Answer
        Whether the claim holds as printed, and whether it holds with the change that it names.
    numbers : mapping of mappings
        The numbers by case and name. A case is a label such as "N = 3"; numbers for all cases
        together have the label "".
    ensembles : mapping of Outcome, default {}
        The outcomes in several ensembles of random tasks, by name. If the claim was judged in each
        ensemble, only the outcomes in the ensembles count.
    comparisons : tuple of Comparison, default ()
        The comparisons on which the judge based its answers, in order.

    Examples
    --------
    >>> from scb.paper.numbers import Number
    >>> from scb.paper.outcome import Outcome, at_most
    >>> errors = {"strong": Number(0.02, 0.01, 0.03), "flat": Number(0.7, 0.6, 0.8)}
    >>> parts = {name: Outcome.judged(at_most(x, 0.1), error=x) for name, x in errors.items()}
    >>> parts["flat"].verdict.value
    'does not hold'
    >>> Outcome.together(parts).told
    'holds in these ensembles: strong'
    """

    printed: Answer
    changed: Answer
    numbers: Mapping[str, Numbers]
    ensembles: "Mapping[str, Outcome]" = field(default_factory=dict)
    comparisons: tuple[Comparison, ...] = ()

    @staticmethod
    def judged(
        printed: Answer, changed: Answer = Answer.NO, /, cases: Any = None, **numbers: Any
    ) -> "Outcome":
        """Return the outcome in one ensemble.

        Parameters
        ----------
        printed, changed : Answer
            Whether the claim holds as printed, and whether it holds with the change.
        cases : mapping of mappings, optional
            The numbers of single cases, by label and name.
        **numbers : Number, float or str
            The other numbers, by name; a missing number is None.

        Returns
        -------
        Outcome
        """
        found = {**(cases or {}), **({"": numbers} if numbers else {})}
        kept = _COMPARISONS.get() or []
        comparisons = tuple(dict.fromkeys(kept))
        kept.clear()
        return Outcome(Answer(printed), Answer(changed), found, comparisons=comparisons)

    @staticmethod
    def together(parts: "Mapping[str, Outcome]") -> "Outcome":
        """Combine the outcomes in several ensembles.

        Parameters
        ----------
        parts : mapping of Outcome
            The outcomes by name of the ensemble.

        Returns
        -------
        Outcome
        """
        printed = all_of(part.printed for part in parts.values())
        changed = all_of(max(part.printed, part.changed) for part in parts.values())
        return Outcome(printed, changed, {}, parts)

    @property
    def verdict(self) -> Verdict:
        """The verdict; for several ensembles, the best verdict that is certain in one of them."""
        if not self.ensembles:
            if self.printed is Answer.YES:
                return Verdict.HOLDS
            if Answer.UNSURE in (self.printed, self.changed):
                return Verdict.UNSURE
            return Verdict.CHANGED if self.changed is Answer.YES else Verdict.FAILS
        found = {part.verdict for part in self.ensembles.values()}
        if Verdict.HOLDS in found:
            return Verdict.HOLDS if len(found) == 1 else Verdict.SOME
        return next(verdict for verdict in Verdict if verdict in found)

    @property
    def told(self) -> str:
        """The verdict as a phrase, with the ensembles to which it applies."""
        verdict = self.verdict
        best = Verdict.HOLDS if verdict is Verdict.SOME else verdict
        where = [name for name, part in self.ensembles.items() if part.verdict is best]
        if verdict is Verdict.SOME:
            return f"{verdict.value}: {', '.join(where)}"
        if verdict is Verdict.CHANGED and len(where) < len(self.ensembles):
            return f"{verdict.value} (in {', '.join(where)})"
        return verdict.value
