"""The tuning constants of the fitter, in one place.

None of these constants changes where the likelihood has its maximum. They trade time or memory
against how close a climb comes to the maximum, or determine how widely a search looks. Which
positions are selected follows from the criteria of the policies (``shared``, ``per_lag``).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Constants that determine how hard the fitter tries and how much memory it needs."""

    # ---- A climb (em): cheap EM steps first, then Newton steps
    # Nats: the gap at which a last fit has converged, and for each entry of P if that is more.
    # Entries are then off by about a thousandth of their standard errors.
    last_gap: float = 1e-3
    last_gap_per_entry: float = 1e-6
    # EM steps before the first Newton step. More cost time; with fewer, Newton starts so far away
    # that its steps fail.
    em_steps: int = 36
    # EM steps first where there are several matrices: the likelihood is nearly flat among them.
    em_steps_with_gauge: int = 60
    # Times N², if that is more: only Newton steps become costlier with N. More than the last number
    # of EM steps costs more than Newton steps do.
    em_steps_by_N: float = 0.24
    most_em_steps: int = 600
    # Nats: with a smaller gap the start is close to the maximum, and Newton comes first.
    near: float = 1.0
    # Multiplications up to which a Newton step is taken with matrices.
    dense: float = 4e7
    # Exact Newton steps without matrices, the costliest kind.
    exact_steps: int = 25
    # Steps without gain before a costlier kind of step is tried.
    idle: int = 5
    # Steps over which a climb with a limit on stalling measures its gain.
    stall_steps: int = 10
    # A climb that must reach a given likelihood gives up when this many steps together gain less
    # than this part of what is missing.
    prospect_steps: int = 5
    prospect: float = 0.05
    # An extrapolation leaves at least this part of what two EM steps make of an entry.
    least_kept: float = 0.02
    # The part of the background that is mixed into every column before a climb, so that no label is
    # impossible.
    lift: float = 1e-4

    # ---- A Newton step (newton)
    # Entries of P up to this are on the boundary.
    zero: float = 1e-10
    # What an entry that EM has lost gets back at most, and by which part of itself its derivative
    # must exceed the column's mean for all of that.
    revived: float = 1e-4
    eager: float = 1e-3
    # A weight that a step would make negative becomes this, and may come back.
    least_weight: float = 1e-9
    # Rounding of a log-likelihood, relative.
    rounding: float = 1e-13
    # The quadratic models that are tried in turn: whether with the exact second derivatives or with
    # the products of first derivatives, which are always concave; and a relative ridge.
    models: tuple[tuple[bool, float], ...] = (
        (True, 0.0),
        (True, 1e-6),
        (False, 1e-6),
        (False, 1e-3),
        (False, 1e-1),
    )
    # Rounds in which a step sends entries to 0, and the early part of a step: entries that reach 0
    # in it go first.
    boundary_rounds: int = 8
    early: float = 0.1
    # How often a step is halved, with matrices and without, and the part of the gain promised by
    # its slope that it must reach.
    halvings: tuple[int, int] = (4, 10)
    promised: float = 0.1
    # Products with the second derivatives in a step of conjugate gradients, at most, and its
    # relative precision; then both for an exact step, which small entries of P need, and for the
    # errors of an influence (evidence).
    products: tuple[int, float] = (30, 0.2)
    products_if_exact: tuple[int, float] = (200, 1e-3)
    products_of_errors: tuple[int, float] = (60, 0.05)
    # The part of itself to which an entry may fall in a step of conjugate gradients.
    shrink: float = 0.1
    # What a divisor is at least.
    tiny: float = 1e-300

    # ---- Weights with P fixed (weights)
    # A relative ridge, for slots that cannot be told apart.
    weight_ridge: float = 1e-9
    # The part of a Newton step below which an EM step is taken instead.
    shortest: float = 1e-3

    # ---- The search for positions (select, shared, per_lag, cross_fit)
    # The chance of a false position in a fit to contexts of iid tokens, at most, and its product
    # with the samples of a state, at most.
    false_position: float = 0.05
    false_position_samples: float = 5.0
    # Nats that a fit between two decisions may leave open, and the number of symbols beyond which
    # it ends where a few steps gain less: positions are then worth hundreds of nats, and steps take
    # long.
    close: float = 0.1
    many_symbols: int = 50
    # Rounds of the search, and those in which it may still grow, half of them with many symbols;
    # later ones only prune.
    rounds: int = 80
    growing_rounds: int = 40
    # Rounds without a signal that end a search: what is added after one is judged by matrices that
    # were fitted to noise.
    silent_rounds: int = 2
    # Positions per state at the start; growth may find the others again.
    most_at_start: int = 12
    # The weight of the background at the start, its weight at least when a slot is taken out, and
    # the part of its state's weight that a new slot gets.
    background: float = 0.05
    background_left: float = 0.01
    new_slot: float = 0.1
    # A slot with less weight goes, whatever its likelihood ratio: during the search and at its end.
    empty: float = 1e-6
    empty_at_end: float = 1e-4
    # A start from EM over all positions: its extrapolated steps, the weight from which a position
    # is kept, and the samples times positions that it looks at.
    start_steps: int = 15
    grown: float = 0.01
    start_cells: int = 8_000_000
    # Neighbouring samples that are kept or left out together where only some are looked at.
    neighbours: int = 1 << 10
    # The part of the samples that must have all their tokens for a search to look at these alone.
    nearly_all: float = 0.95
    # Cross-fitting: samples per entry of P below which it is done (and the BIC charges prices of
    # matrices), folds of states, labels that the prior adds to a column of P, and EM steps of a fit
    # to the other folds.
    few_samples: float = 20
    folds: int = 10
    prior: float = 4.0
    cross_steps: int = 40
    # Up to this many times its cost, a likelihood ratio with P fixed is checked with P fitted
    # again; beyond ``far_cost`` its exact value does not matter.
    near_cost_shared: float = 2
    near_cost_per_lag: float = 5
    far_cost: float = 10
    # The likelihood ratio of a new matrix is hardly ever more than this many times what a quadratic
    # model promises, in which all other parameters stay. Seen: up to 8 times, and 13 times beside
    # an n-gram.
    understated: float = 12
    # In the score of a weight or of a new matrix, a label has at least this part of its overall
    # probability.
    least_probability: float = 0.01

    # Expected labels below which an entry costs nothing, and the least concentration that is tried
    # (price).
    least_count: float = 1e-6
    least_concentration: float = 1e-2

    # ---- The spectral start, and the levels of scores (spectral, levels)
    spectral_rounds: int = 12
    spectral_starts: int = 8
    least_squares_steps: int = 20
    # Steps of the search for a level, its relative precision, and what is good enough once the
    # steps are used up, in standard deviations.
    level_steps: int = 60
    level_precision: float = 1e-6
    level_tolerance: float = 0.05
    # A tilt of so many inverse standard deviations shows that a level is never reached.
    largest_tilt: float = 1e4

    # ---- Shrunk matrices (shrink)
    # Nats per label that they must be worth; the EM steps, and the change in nats per label that
    # ends them.
    shrinkage_gain: float = 0.035
    shrinkage_steps: int = 60
    shrinkage_change: float = 1e-4

    # ---- What is reported of a fit (evidence, profile)
    # Steps of a fit without one position.
    evidence_steps: int = 100
    # Weights that may be looked at over all rows, for all positions, and passes for each that end
    # with certainty. With fewer, errors of the influence are not known.
    evidence_effort: float = 3e9
    evidence_passes: int = 100
    # Otherwise EM steps for each position, at least, if there is time for them. Evidence is no
    # bound where further steps would win back no more than this part of it.
    evidence_steps_at_least: int = 4
    evidence_precision: float = 0.01
    # Bytes of rows that may be kept for evidence that has not been asked for yet.
    evidence_bytes: int = 1 << 26
    # Bytes of second derivatives that several places may send for a Newton step; beyond it they
    # send products.
    summed_bytes: int = 1 << 26
    # Bytes that second derivatives may take; beyond it there are no standard errors.
    information_bytes: int = 1 << 30
    # A profile of the background's weight: where it starts and ends, the trace of it that other
    # states get, the steps of each fit and the gain in nats that ends it, the tries, and how near
    # to its limit it comes.
    profile_range: tuple[float, float] = (0.05, 0.98)
    profile_trace: float = 0.02
    profile_steps: int = 60
    profile_gain: float = 5e-3
    profile_tries: int = 12
    profile_close: float = 0.1

    # Standard errors from 0 within which an interval comes from the profile, entries times samples
    # times slots up to which it does, which takes seconds, and numbers that are held at a time.
    profile_near: float = 6.0
    profile_effort: float = 1.5e7
    profile_entries: int = 1 << 22

    # ---- Memory
    # Samples that are worked on at a time, and positions of each state while pairs are counted.
    samples_at_once: int = 1 << 14
    positions_at_once: int = 64
    # Different rows that are counted in a table, and terms of scores that are kept.
    table_rows: int = 1 << 22
    # Beyond that samples are sorted by a hash, with this multiplier, and equal ones counted if that
    # leaves no more than this part of them.
    multiplier: int = 0x9E3779B97F4A7C15
    fewer_rows: float = 0.7
    # Entries of the tables of pairs that partitions are asked for at a time.
    pair_entries: int = 1 << 20
    # Tokens in which the spectral start is looked for.
    start_tokens: int = 1 << 30


TUNING = Tuning()
