"""F33 at tiny sizes: training without noise from four kinds of starts, and the claims on made-up rows."""

import numpy as np
import pytest

from scb.paper.claims import heads as claims
from scb.paper.experiments.heads import HeadsJob, heads_task
from scb.paper.outcome import Verdict

HOLDS, FAILS, UNSURE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNSURE


def test_tasks_have_singular_values_of_one_size():
    for ensemble in ("strong", "dirichlet"):
        values = heads_task(3, 30, 2, 0, ensemble).singular_values
        assert values[-1] >= values[0] / 5
    assert heads_task(3, 30, 1, 0).heads == 1


@pytest.mark.parametrize("start", ["random", "equal", "spare", "sparse"])
def test_each_start_ends_as_the_theory_says(start):
    rows = HeadsJob(2, start, T=200, replicate=3).run()
    assert rows["number"].tolist() == [1, 2]
    assert np.isfinite(rows["predicted"]).all()
    if start == "equal":
        assert rows["second"][0] < 1e-6
        assert abs(rows["above_one_head"][0]) < 0.01
        assert np.isnan(rows["measured"][1])
        return
    np.testing.assert_allclose(rows["measured"], rows["predicted"], rtol=0.1)
    assert rows["dist"][0] < 0.05
    assert rows["rotated"][0] > 0.99
    if start == "spare":
        assert rows["left_over"][0] < 0.01
    if start == "sparse":
        assert rows["overlap"][0] > 0.99


def population(start="random", count=120, **columns):
    """Made-up runs, a row each."""
    table = {"start": np.full(count, start), "number": np.ones(count, int), "heads": np.repeat([2, 3], count // 2)}
    return table | {name: np.broadcast_to(values, count) for name, values in columns.items()}


@pytest.mark.parametrize(("slope", "expected"), [(1.0, HOLDS), (1.15, FAILS), (0.85, FAILS), (np.nan, UNSURE)])
def test_heads_in_turn(slope, expected):
    spread = 0.01 * np.sin(np.arange(120))
    assert claims.heads_in_turn(population(slope=slope + spread)).verdict is expected


@pytest.mark.parametrize(("second", "above", "expected"), [(1e-9, 1e-4, HOLDS), (0.5, 1e-4, FAILS), (1e-9, 0.01, FAILS)])
def test_equal_heads_stop(second, above, expected):
    table = population("equal", second=second, above_one_head=above)
    assert claims.equal_heads_stop(table).verdict is expected
    table["second"] = np.where(np.arange(120) < 6, 0.5, second)
    assert claims.equal_heads_stop(table).verdict is not HOLDS


@pytest.mark.parametrize(
    ("trained", "rotated", "sparse", "expected"),
    [(0.6, 1.0, 1.0, HOLDS), (1.0, 1.0, 1.0, FAILS), (0.6, 0.9, 1.0, FAILS), (0.6, 1.0, 0.9, FAILS)],
)
def test_heads_are_read_afterwards(trained, rotated, sparse, expected):
    runs = population(overlap=trained, rotated=rotated, dist=0.01)
    sparse_runs = population("sparse", count=20, overlap=sparse)
    assert claims.heads_are_read_afterwards(runs, sparse_runs).verdict is expected
    assert claims.heads_are_read_afterwards(runs | {"dist": 10 * np.ones(120)}, sparse_runs).verdict is FAILS


@pytest.mark.parametrize(("left_over", "rotated", "expected"), [(1e-4, 1.0, HOLDS), (0.1, 1.0, FAILS), (1e-4, 0.5, FAILS)])
def test_spare_heads_die(left_over, rotated, expected):
    table = population("spare", left_over=left_over, rotated=rotated)
    assert claims.spare_heads_die(table).verdict is expected
