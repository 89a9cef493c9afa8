"""The numbers that the fitter is tuned by, in one place.

None of them changes what a maximum of the likelihood is. They trade time against how close a climb
comes to it, or decide how wide a search looks. Which positions are selected follows from the
criteria of the policies (``shared``, ``per_lag``).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """How hard the fitter tries; see each field for what it trades."""

    # ---- A climb (em): cheap EM steps first, then Newton steps
    # EM steps before the first Newton step: more of them cost time, fewer let Newton start so far
    # away that its steps fail.
    em_steps: int = 36
    # The same where there are several matrices, among which the likelihood is nearly flat.
    em_steps_with_gauge: int = 60
    # Times N², where that is more: only Newton steps become dearer with N.
    em_steps_by_N: float = 0.24
    # Nats: where the gap is smaller, the start is close to the maximum, and Newton comes first.
    near: float = 1.0
    # Multiplications up to which a Newton step is taken with matrices.
    dense: float = 1e7
    # Exact Newton steps without matrices, which are the dearest, at most.
    exact_steps: int = 25
    # Steps without gain that are borne before a dearer kind of step is tried.
    idle: int = 5
    # A climb with a limit on stalling looks at so many steps together.
    stall_steps: int = 10
    # A climb that has to reach a given likelihood gives up where so many steps together gain less
    # than this part of what is missing.
    prospect_steps: int = 5
    prospect: float = 0.05
    # The part of what two EM steps make of an entry that an extrapolation leaves of it, at least.
    least_kept: float = 0.02
    # The part of the background that is mixed into every column where a climb starts, so that no
    # label is impossible.
    lift: float = 1e-4

    # ---- A Newton step (newton)
    # Entries of P up to this are on the boundary.
    zero: float = 1e-10
    # What an entry that EM has lost gets back, at most; by this part of itself its derivative must
    # exceed the column's mean for all of that.
    revived: float = 1e-4
    eager: float = 1e-3
    # A weight that a step would make negative becomes this, and may come back.
    least_weight: float = 1e-9
    # Rounding of a log-likelihood, relative.
    rounding: float = 1e-13
    # The quadratic models that are tried in turn: with the second derivatives themselves, or with
    # the products of first derivatives alone, which are always concave; and a relative ridge.
    models: tuple[tuple[bool, float], ...] = (
        (True, 0.0),
        (True, 1e-6),
        (False, 1e-6),
        (False, 1e-3),
        (False, 1e-1),
    )
    # Rounds in which a step sends entries to 0, and the part of the step in which those get there
    # that go first.
    boundary_rounds: int = 8
    early: float = 0.1
    # Times that a step is halved, with matrices and without; and the part of what its slope
    # promises that it must gain.
    halvings: tuple[int, int] = (4, 10)
    promised: float = 0.1
    # Products with the second derivatives in a step of conjugate gradients, at most, and its
    # relative precision; the same for an exact step, which small entries of P need.
    products: tuple[int, float] = (60, 0.05)
    products_if_exact: tuple[int, float] = (200, 1e-3)
    # The part of itself to which an entry may fall in a step of conjugate gradients.
    shrink: float = 0.1

    # ---- Weights with P fixed (weights)
    # Slots up to which second derivatives are made; beyond it EM is cheaper.
    few_slots: int = 48
    # Relative, for slots that cannot be told apart.
    weight_ridge: float = 1e-9
    # The part of a Newton step below which an EM step is taken instead.
    shortest: float = 1e-3

    # ---- The search for positions (select, shared, per_lag)
    # Nats that a fit between two decisions may leave open.
    close: float = 0.1
    # Rounds of the search, and those in which it may still grow; later ones only prune.
    rounds: int = 80
    growing_rounds: int = 40
    # Positions of a context at the start; growth may find the others again.
    most_at_start: int = 12
    # The weight with which the background starts, and the part of its context's weight with which a
    # new slot does.
    background: float = 0.05
    new_slot: float = 0.1
    # A slot with less weight goes, whatever its likelihood ratio: during the search and at its end.
    empty: float = 1e-6
    empty_at_end: float = 1e-4
    # A start from EM over all positions: its steps, the weight from which a position is kept, and
    # the samples times positions that it looks at, at most.
    start_steps: int = 45
    grown: float = 0.01
    start_cells: int = 8_000_000
    # Times its cost, a likelihood ratio with P fixed is not trusted up to here, and P is fitted
    # again; beyond ``far`` nobody asks how much it is.
    near_cost_shared: float = 2
    near_cost_per_lag: float = 5
    far_cost: float = 10
    # The part of its distribution that a label has at least in the score of a weight.
    least_probability: float = 0.01

    # ---- What is reported of a fit (evidence, profile)
    # Steps of a fit without one position.
    evidence_steps: int = 100
    # Weights that may be looked at over all rows, for all positions, with about so many passes for
    # each; beyond it P stays fixed, and errors of the influence are not known.
    evidence_effort: float = 3e9
    evidence_passes: int = 100
    # Bytes of rows that may be kept for evidence that nobody has asked for yet.
    evidence_bytes: int = 1 << 26
    # Bytes that second derivatives may take; beyond it there are no standard errors.
    information_bytes: int = 1 << 30
    # A profile of the background's weight: where it starts and ends, the steps of each fit and the
    # gain in nats that ends it, the tries, and how near to its limit it comes.
    profile_range: tuple[float, float] = (0.05, 0.98)
    profile_trace: float = 0.02
    profile_steps: int = 60
    profile_gain: float = 5e-3
    profile_tries: int = 12
    profile_close: float = 0.1


TUNING = Tuning()
