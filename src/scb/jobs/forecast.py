"""How long something will still take whose parts have known costs, on a machine whose pace is only
known from what it has done.

Costs are seconds on a quiet machine, so they are known up to the pace: how many seconds a second of
cost takes here and now. Every part that is through tells it, and those to come are expected to take
the pace that was seen so far.
"""

import os
from collections.abc import Callable, Mapping
from time import monotonic

# Seconds of cost that must be through before what is measured counts as much as what was expected
_TRUST = 1.0


def crowding(workers: int) -> float:
    """The pace to expect of a machine on which others work as well: how many processes there will
    be for a core, at least 1.
    """
    others = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1.0, (others + workers) / (os.cpu_count() or 1))


class Forecast:
    """The time left in phases that follow one another.

    Parameters
    ----------
    costs : phase → seconds that it takes on a quiet machine, in the order in which they come
    pace : seconds for a second of cost, to begin with
    clock : seconds, for tests
    """

    def __init__(
        self, costs: Mapping[str, float], pace: float = 1.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._clock = clock
        self._costs = dict(costs)
        self._shares = dict.fromkeys(costs, 0.0)  # how much of each phase is through
        self._pace = pace  # at the end of the phase before
        self._phase = next(iter(self._costs))
        self._begun = self._last = clock()  # when this phase began, and when it last went on

    @property
    def phase(self) -> str:
        """The phase under way."""
        return self._phase

    def expect(self, phase: str, cost: float) -> None:
        """Correct the cost of a phase."""
        self._costs[phase] = cost

    def note(self, phase: str, share: float) -> None:
        """So much of a phase is through; the phases before it are."""
        now = self._clock()
        if phase != self._phase:
            names = list(self._costs)
            for name in names[: names.index(phase)]:
                self._shares[name] = 1.0
            self._pace = self._measured(now)
            self._phase = phase
            self._begun = self._last = now
        if share > self._shares[phase]:
            self._shares[phase] = share
            self._last = now

    def _measured(self, now: float) -> float:
        """The pace: what was expected, and what this phase has taken for what is through."""
        through = self._costs[self._phase] * self._shares[self._phase]
        return (
            (_TRUST * self._pace + (now - self._begun)) / (_TRUST + through)
            if through
            else self._pace
        )

    @property
    def left(self) -> float:
        """Seconds until everything is through."""
        now = self._clock()
        pace = self._measured(self._last)
        rest = {name: cost * (1 - self._shares[name]) for name, cost in self._costs.items()}
        current = rest.pop(self._phase) * pace
        waited = now - self._last  # for the next piece, of which nothing is known yet
        return max(current - waited, 0.2 * waited if current else 0.0) + pace * sum(rest.values())

    @property
    def share(self) -> float:
        """How much of the whole is through, by cost and by the time spent on the piece under way;
        from 0 to 1.
        """
        total = sum(self._costs.values())
        through = sum(cost * self._shares[name] for name, cost in self._costs.items())
        waited = (self._clock() - self._last) / self._measured(self._last)
        return min(
            (
                through
                + min(waited, 0.95 * self._costs[self._phase] * (1 - self._shares[self._phase]))
            )
            / total,
            1.0,
        )
