"""Claims about several heads: the order in which they learn, the saddle of equal heads, which heads
are learned, and spare heads."""

from scb.jobs.table import Table, groups, pick
from scb.paper.claims.claim import claim
from scb.paper.numbers import average, share
from scb.paper.outcome import Outcome, all_of, at_least, at_most, between

READABLE = 0.99
"""The overlap with the true head from which a head counts as read."""
LIMITATION = "Appendix A, the first limitation: one head"
POPULATION = (
    "sparsity 2, training without noise (exact gradients), η = 0.02/σ₁, from V of size 1e-3"
)


def _runs(heads: Table, start: str) -> Table:
    """The runs from a kind of start, a row each."""
    return pick(heads, start=start, number=1)


@claim(
    "heads-in-turn",
    figure="F33",
    says="Heads learn one singular value after another, at the times that the task predicts.",
    where=LIMITATION,
    setting=POPULATION,
    words="measured over predicted steps {slope:.3f}",
)
def heads_in_turn(heads: Table) -> Outcome:
    """The slope of measured on predicted steps to half of each singular value is 1 within 10 %:
    its mean over tasks, with the 95 % interval, lies between 0.9 and 1.1 for every number of heads.
    """
    runs = _runs(heads, "random")
    slopes = {H: average(rows["slope"]) for H, rows in groups(runs, "heads")}
    cases = {f"H = {H}": {"slope": slope} for H, slope in slopes.items()}
    return Outcome.judged(all_of(between(x, 0.9, 1.1) for x in slopes.values()), cases=cases)


@claim(
    "equal-heads-stop",
    figure="F33",
    says="Heads that start alike stop at the best function of one head.",
    where=LIMITATION,
    setting=POPULATION + "; three times as long as heads that differ should take",
    words="second singular value below 0.1 % in {stuck:share}, and the loss within 0.001 of the "
    "best single head's in {one_head:share}",
)
def equal_heads_stop(heads: Table) -> Outcome:
    """From equal starts, the second singular value ends below 0.1 % of the task's, and the loss
    within 0.001 of the least that one head can have, each in 95 % of tasks."""
    runs = _runs(heads, "equal")
    stuck = share(runs["second"] < 1e-3)
    one_head = share(abs(runs["above_one_head"]) <= 1e-3)
    return Outcome.judged(
        all_of([at_least(stuck, 0.95), at_least(one_head, 0.95)]), stuck=stuck, one_head=one_head
    )


@claim(
    "heads-are-read-afterwards",
    figure="F33",
    says="Training learns the function but not the heads; a rotation or ℓ₁ recovers the heads.",
    where=LIMITATION,
    setting=POPULATION + "; ℓ₁: four times as many steps more, with λ falling from 0.05 σ₁ to 0",
    words="all overlaps above 0.99 in {trained:share} as trained, {sparse:share} with ℓ₁, "
    "{rotated:share} after the rotation; function within 0.05 in {learned:share}",
)
def heads_are_read_afterwards(heads: Table, sparse_heads: Table) -> Outcome:
    """The function is within 0.05 in 95 % of tasks. The overlaps of all heads with the true ones
    exceed 0.99 in at most half of the tasks as trained, in at least 80 % with ℓ₁, and in at least
    95 % after the rotation."""
    runs = _runs(heads, "random")
    learned = share(runs["dist"] <= 0.05)
    trained = share(runs["overlap"] > READABLE)
    rotated = share(runs["rotated"] > READABLE)
    sparse = share(_runs(sparse_heads, "sparse")["overlap"] > READABLE)
    return Outcome.judged(
        all_of(
            [
                at_least(learned, 0.95),
                at_most(trained, 0.5),
                at_least(sparse, 0.8),
                at_least(rotated, 0.95),
            ]
        ),
        learned=learned,
        trained=trained,
        sparse=sparse,
        rotated=rotated,
    )


@claim(
    "spare-heads-die",
    figure="F33",
    says="A head beyond those of the task learns nothing and does not hide the others.",
    where=LIMITATION,
    setting=POPULATION,
    words="singular value of the spare head below 1 % of the least in {dead:share}; heads "
    "recovered in {rotated:share}",
)
def spare_heads_die(heads: Table) -> Outcome:
    """With one head too many, the singular value beyond those of the task ends below 1 % of the
    least of these, and the rotation gives overlaps above 0.99 for all heads, each in 95 % of tasks.
    """
    runs = _runs(heads, "spare")
    dead = share(runs["left_over"] < 0.01)
    rotated = share(runs["rotated"] > READABLE)
    return Outcome.judged(
        all_of([at_least(dead, 0.95), at_least(rotated, 0.95)]), dead=dead, rotated=rotated
    )
