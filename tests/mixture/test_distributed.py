"""Fits on a real cluster of two processes equal the fits on one machine, and no sample comes to the driver."""

import os
import pickle
import signal
from contextlib import nullcontext
from dataclasses import replace

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.utils import silence_logging_cmgr

import scb
import scb.mixture.dask as on_dask
from scb import SparseContextualBigram
from scb.jobs.dask import SILENT
from scb.mixture.executors import Here, Workers, current_executor
from scb.mixture.model import Mixture
from scb.mixture.partition import Partition
from scb.mixture.rows import NO_POSITION, RowTable, Slots
from scb.mixture.samples_in import as_data
from scb.mixture.tuning import TUNING

pytestmark = pytest.mark.slow

CLOSE = 1e-10


@pytest.fixture(scope="module")
def cluster():
    with (
        silence_logging_cmgr(SILENT),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=SILENT
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def client(cluster):
    """The cluster as the current client."""
    with cluster.as_current():
        assert isinstance(current_executor(), Workers)
        yield cluster


@pytest.fixture
def received(monkeypatch):
    """The pickled size of every list of results that comes to the driver."""
    sizes = []
    for kind in (Workers, Here):
        results = kind.results

        def counted(self, held, results=results):
            answers = results(self, held)
            sizes.append(len(pickle.dumps(answers)))
            return answers

        monkeypatch.setattr(kind, "results", counted)
    return sizes


def drawn(task, n, partitions):
    """Batches that are drawn on the workers, and the same here."""
    batches = [scb.sample(task, n // partitions, seed=seed) for seed in range(partitions)]
    return [dask.delayed(scb.sample)(task, n // partitions, seed=seed) for seed in range(partitions)], batches


def with_background(task):
    """Slots at the true positions, and the background."""
    positions = np.c_[np.full(task.N, NO_POSITION), task.positions.T]
    return Slots(positions, np.zeros_like(positions))


def assert_same(fit, expected):
    assert fit.n_samples == expected.n_samples
    assert [s.tolist() for s in fit.support] == [s.tolist() for s in expected.support]
    assert sum(len(s) for s in fit.support) > 0
    for name in ("V", "A", "mu"):
        np.testing.assert_allclose(getattr(fit, name), getattr(expected, name), rtol=0, atol=CLOSE)
    for mine, theirs in zip(fit.stderr, expected.stderr, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=CLOSE)
    np.testing.assert_allclose([fit.loglik, fit.gap], [expected.loglik, expected.gap], rtol=CLOSE, atol=CLOSE)


def assert_same_model(model, expected):
    assert model.classes_.tolist() == expected.classes_.tolist()
    assert model.n_windows_ == expected.n_windows_
    assert len(expected.lags_["lag"]) > 0
    for name in ("context", "lag"):
        assert model.lags_[name].tolist() == expected.lags_[name].tolist()
    for name in ("weight", "stderr"):
        np.testing.assert_allclose(model.lags_[name], expected.lags_[name], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(matrices(model), matrices(expected), rtol=0, atol=CLOSE)
    np.testing.assert_allclose(model.attention_.toarray(), expected.attention_.toarray(), rtol=0, atol=CLOSE)
    for name in ("prior_", "frequencies_", "loglik_"):
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=CLOSE)
    assert getattr(model, "n_features_in_", None) == getattr(expected, "n_features_in_", None)


def matrices(model):
    return np.array(list(model.transition_.values()) if isinstance(model.transition_, dict) else [model.transition_])


# ------------------------------------------------------------------------------------------------ recover


@pytest.mark.parametrize("method", ["likelihood", "spectral"])
def test_four_partitions_equal_one_machine(client, method):
    task = scb.Task.random(3, 300, 2, seed=1)
    delayed, batches = drawn(task, 4000, 4)
    expected = scb.recover(batches, method=method)
    assert [s.tolist() for s in expected.support] == [s.tolist() for s in task.support]
    assert_same(scb.recover(delayed, method=method), expected)


def test_rows_that_stay_on_the_workers(client):
    """Too many different rows to count them: every sum of EM, Newton and the tails is taken on the workers."""
    task = scb.Task.random(20, 12, 2, seed=1)
    delayed, batches = drawn(task, 8400, 4)
    assert as_data(delayed).rows(with_background(task)).counted is None
    assert_same(scb.recover(delayed), scb.recover(batches))


def test_few_rows_come_to_the_driver(client, monkeypatch):
    """Fewer than 20 samples for each entry of P: their rows take fewer bytes than sums, and cross-fitting asks for many."""
    trips = []
    total = Workers.total
    monkeypatch.setattr(Workers, "total", lambda self, held: trips.append(1) or total(self, held))
    task = scb.Task.random(12, 12, 2, seed=1)
    delayed, batches = drawn(task, 1000, 4)
    table = as_data(delayed).rows(with_background(task)).counted
    assert table is not None
    assert len(table.label) == 1000
    trips.clear()
    fit = scb.recover(delayed)
    assert len(trips) < 100
    expected = scb.recover(batches)
    assert [s.tolist() for s in fit.support] == [s.tolist() for s in expected.support]
    np.testing.assert_allclose(fit.V, expected.V, atol=1e-6)


def test_every_sum_equals_that_of_one_machine(monkeypatch):
    """Each method of the data and of their rows, for counted rows and others, over twenty partitions."""
    task = scb.Task.random(4, 30, 2, seed=2)
    delayed, batches = drawn(task, 2000, 20)
    data, parts = as_data(batches), as_data(delayed)
    at = Mixture(task.P, data.label_distribution, np.c_[np.full(4, 0.1), 0.9 * task.weights.T])
    U, z = at.P - (at.P @ data.mu)[:, None], np.full(4, 4.0)
    floor = 0.3 * data.label_distribution
    folds = np.array([0, 1, 1, 0])
    for counted in (True, False):
        mine, theirs = (x.rows(with_background(task)) for x in (parts, data))
        assert (mine.counted is not None) == counted
        pairs = np.argwhere(np.ones((4, 30)))
        for a, b in (
            *((mine.total(f, at), theirs.total(f, at)) for f in (RowTable.evaluate, RowTable.curvature)),
            (mine.total(RowTable.information, at), theirs.total(RowTable.information, at)),
            ([mine.total(RowTable.removal_ratios, at)], [theirs.total(RowTable.removal_ratios, at)]),
            ([mine.total(RowTable.labels_by_slot, at)], [theirs.total(RowTable.labels_by_slot, at)]),
            (mine.total(RowTable.curvature_along, at, U, at.q), theirs.total(RowTable.curvature_along, at, U, at.q)),
            ([mine.total(RowTable.logliks, at)], [theirs.total(RowTable.logliks, at)]),
            tuple(one.total(RowTable.weight_curvature, at, np.arange(4) != 2) for one in (mine, theirs)),
            tuple([one.score_levels(np.array([U, U / 2]), folds, at, data.mu, z)] for one in (mine, theirs)),
            ([parts.total(Partition.scores, U)], [data.total(Partition.scores, U)]),
            tuple([one.total(Partition.distribution_scores, U, at, rows=rows)] for one, rows in ((parts, mine), (data, theirs))),
            tuple(
                [one.total(Partition.likelihood_scores, np.array([U, U / 2]), folds, at, rows=rows)]
                for one, rows in ((parts, mine), (data, theirs))
            ),
            (
                parts.total(Partition.source_tables, 2, at, rows=mine),
                data.total(Partition.source_tables, 2, at, rows=theirs),
            ),
            tuple(one.total(Partition.label_tables, at, rows=rows) for one, rows in ((parts, mine), (data, theirs))),
            (
                parts.total(Partition.weight_scores, np.array([3, 7]), np.stack([at.P.T, at.P]), at, floor, rows=mine),
                data.total(Partition.weight_scores, np.array([3, 7]), np.stack([at.P.T, at.P]), at, floor, rows=theirs),
            ),
            ([parts.total(Partition.pair_tables, pairs)], [data.total(Partition.pair_tables, pairs)]),
            ([parts.chi_squares()], [data.chi_squares()]),
            ([parts.by_label, parts.label_distribution, parts.counts], [data.by_label, data.label_distribution, data.counts]),
        ):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)
        monkeypatch.setattr("scb.mixture.data.TUNING", replace(TUNING, table_rows=0))


def test_thinned_data_are_the_same_samples():
    tokens = np.arange(50_000) % 3
    data, parts = as_data(tokens, max_lag=5), as_data(da.from_array(tokens, chunks=7001), max_lag=5)
    np.testing.assert_array_equal(parts.thinned(9000).by_label, data.thinned(9000).by_label)
    assert 8000 < parts.thinned(9000).n == data.thinned(9000).n < 10_000


def test_the_largest_chi_squares_are_found_without_all_tables(monkeypatch):
    task = scb.Task.random(3, 300, 2, seed=1)
    delayed, batches = drawn(task, 4000, 4)
    monkeypatch.setattr("scb.mixture.data.TUNING", replace(TUNING, pair_entries=9 * 64))
    some, whole = as_data(delayed).chi_squares(), as_data(batches).chi_squares()
    known = np.isfinite(some)
    assert known.sum() == 64
    np.testing.assert_allclose(some[known], whole[known], rtol=1e-11)
    top = np.argsort(whole, axis=None)[-6:]  # those of the six positions that matter
    assert {divmod(i, 300) for i in top.tolist()} == {(k, t) for k, s in enumerate(task.support) for t in s.tolist()}
    assert known.ravel()[top].all()


@pytest.mark.parametrize("chunks", [((4000,),), ((1, 20, 7, 1972, 0, 2000),)])
def test_windows_across_chunks_are_not_lost(client, chunks):
    """Chunks that are shorter than max_lag, empty, or all there is."""
    tokens = scb.generate(scb.Task.random(3, 12, 2, seed=2), 4000, seed=1)
    expected = scb.recover(tokens, max_lag=12)
    assert expected.n_samples == 4000 - 13
    assert_same(scb.recover(da.from_array(tokens, chunks=chunks), max_lag=12), expected)


def test_bags_of_batches_and_of_sequences():
    task = scb.Task.random(3, 12, 2, seed=2)
    batches = [scb.sample(task, n, seed=n) for n in (900, 0, 400, 700)]
    assert_same(scb.recover(db.from_sequence(batches, npartitions=4)), scb.recover(batches))
    sequences = [scb.generate(task, n, seed=n) for n in (1500, 10, 13, 14, 2000)]
    expected = scb.recover(sequences, max_lag=12)
    assert expected.n_samples == 1487 + 1 + 1987
    assert_same(scb.recover(db.from_sequence(sequences, npartitions=3), max_lag=12), expected)
    assert_same(scb.recover([dask.delayed(s) for s in sequences], max_lag=12), expected)


# ------------------------------------------------------------------------------------------------ the estimator


@pytest.fixture(scope="module")
def letters():
    """One sequence of letters with gaps; the last third has a symbol that the rest does not."""
    codes = scb.generate(scb.Task.random(3, 4, 2, seed=5), 6000, seed=1)
    symbols = np.array(["b", "a", "cc"], dtype=object)[codes]
    symbols[5000::50] = "d"
    symbols[::701] = None
    symbols[2000:2100] = np.nan
    return symbols


CHUNKS = ((3, 2000, 97, 3900),)


@pytest.mark.parametrize(
    "options",
    [{}, {"transition": "per_lag"}, {"context": False, "background": "labels"}],
    ids=["shared", "per_lag", "no context"],
)
def test_the_estimator_on_an_array_with_gaps(client, letters, options):
    expected = SparseContextualBigram(4, **options).fit(letters)
    model = SparseContextualBigram(4, **options).fit(da.from_array(letters, chunks=CHUNKS))
    assert_same_model(model, expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"transition": "per_lag"},
        {"transition": "per_lag", "context": False, "background": "labels"},
        {"lags": 1},
        {"lags": [2, 5]},
        {"lags": [2, 5], "transition": "per_lag"},
    ],
    ids=lambda options: ", ".join(f"{name}={value}" for name, value in options.items()),
)
def test_other_options_of_the_estimator(options, seed):
    codes = scb.generate(scb.Task.random(3, 6, 2, seed=seed), 6000, seed=seed)
    expected = SparseContextualBigram(6, **options).fit(codes)
    model = SparseContextualBigram(6, **options).fit(da.from_array(codes, chunks=CHUNKS))
    assert_same_model(model, expected)


def test_the_estimator_on_many_sequences(letters):
    sequences = [letters[:2500].tolist(), [], letters[2010:2050].tolist(), letters[2500:2504].tolist(), letters[3000:]]
    expected = SparseContextualBigram(6).fit(sequences)
    assert not hasattr(expected, "n_features_in_")
    for X in (db.from_sequence(sequences, npartitions=3), [dask.delayed(s) for s in sequences]):
        assert_same_model(SparseContextualBigram(6).fit(X), expected)
    rows = scb.generate(scb.Task.random(3, 6, 2, seed=5), 6000, seed=1).reshape(20, 300)
    expected = SparseContextualBigram(6).fit(rows)
    model = SparseContextualBigram(6).fit(da.from_array(rows, chunks=(7, 100)))
    assert_same_model(model, expected)
    assert model.n_features_in_ == 300
    again = SparseContextualBigram(6).fit(da.from_array(rows, chunks=(7, 100)), init=expected)
    assert_same_model(again, SparseContextualBigram(6).fit(rows, init=expected))


@pytest.mark.parametrize("context", [True, False])
def test_an_ngram_as_background_is_counted_where_the_data_lie(cluster, context):
    """A chain in which four symbols of ten are those of 20 steps ago, beyond the reach of the n-gram.

    The smaller fit is made on the cluster. The other takes four times as many sums, each of which would be a round trip.
    """
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=6000)
    for t in range(20, codes.size):
        if rng.random() < 0.4:
            codes[t] = codes[t - 20]
        elif rng.random() < 0.25:
            codes[t] = (codes[t - 1] + 1) % 3
    options = {"transition": "per_lag", "background": "ngram", "context": context}
    expected = SparseContextualBigram(21, **options).fit(codes)
    assert set(expected.lags_["lag"].tolist()) == {20}
    with nullcontext() if context else cluster.as_current():
        assert isinstance(current_executor(), Here if context else Workers)
        model = SparseContextualBigram(21, **options).fit(da.from_array(codes, chunks=CHUNKS))
    assert_same_model(model, expected)
    assert model.score(codes) == pytest.approx(expected.score(codes), rel=CLOSE)


# ------------------------------------------------------------------------------------------------ the network


def test_what_comes_back_does_not_grow_with_the_data(client, received):
    """Sixteen times the data, the same bytes; and nothing else leaves a worker: partitions stay where they are."""
    task, size = scb.Task.random(3, 300, 2, seed=1), {}

    def sent():
        return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    for n in (4000, 64_000):
        received.clear()
        before = sent()
        fit = scb.recover(drawn(task, n, 4)[0])
        assert [s.tolist() for s in fit.support] == [s.tolist() for s in task.support]
        size[n] = sum(received)
        assert abs(sent() - before - size[n]) < 10_000
    assert max(size.values()) < 1.01 * min(size.values())
    assert size[64_000] < 0.025 * 64_000 * 300  # a token has one byte


def test_large_arguments_are_sent_once(client, monkeypatch):
    task = scb.Task.random(3, 20, 2, seed=1)
    delayed, batches = drawn(task, 1000, 4)
    data, parts = as_data(batches), as_data(delayed)
    monkeypatch.setattr("scb.mixture.executors.LARGE", 100)
    for table in (np.eye(3), np.ones((3, 3))):
        mine, theirs = (x.total(Partition.scores, table) for x in (parts, data))
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        mine, theirs = (x.rows(with_background(task)).counted for x in (parts, data))
        np.testing.assert_array_equal(mine.columns, theirs.columns)


def test_a_worker_that_dies_is_made_up_for(client, monkeypatch):
    """Dask draws its partitions again, on whichever worker there is."""
    task = scb.Task.random(3, 40, 2, seed=1)
    delayed, batches = drawn(task, 2000, 4)
    results, calls, killed = Workers.results, [], []

    def deadly(self, held):
        calls.append(len(held))
        if len(calls) == 8:
            address, pid = next(iter(client.run(os.getpid).items()))
            os.kill(pid, signal.SIGKILL)
            killed.append(address)
        return results(self, held)

    monkeypatch.setattr(Workers, "results", deadly)
    assert_same(scb.recover(delayed), scb.recover(batches))
    assert len(calls) > 10
    assert killed[0] not in client.nthreads()


def test_a_worker_with_another_scb_is_refused(client, monkeypatch):
    data = [dask.delayed(scb.sample)(scb.Task.random(3, 12, 2, seed=2), 100, seed=0)]
    monkeypatch.setattr(on_dask, "code_digest", lambda: "older")
    with pytest.raises(ValueError, match="a worker has another version of scb"):
        scb.recover(data)


# ------------------------------------------------------------------------------------------------ without a cluster


def test_without_a_cluster():
    assert isinstance(current_executor(), Here)
    task = scb.Task.random(3, 300, 2, seed=1)
    delayed, batches = drawn(task, 4000, 4)
    assert_same(scb.recover(delayed), scb.recover(batches))
    assert_same(scb.recover(delayed[0]), scb.recover(batches[0]))


def test_errors():
    task = scb.Task.random(3, 12, 2, seed=2)
    one, other = scb.sample(task, 50), scb.sample(scb.Task.random(3, 13, 2), 50)
    with pytest.raises(ValueError, match="T = 12 and with T = 13"):
        scb.recover([dask.delayed(one), dask.delayed(other)])
    with pytest.raises(ValueError, match="must lie in"):
        scb.recover([dask.delayed(one)], N=2)
    with pytest.raises(ValueError, match="data is empty"):
        scb.recover([dask.delayed(one[:0])])
    with pytest.raises(ValueError, match="leave max_lag out"):
        scb.recover([dask.delayed(one)], max_lag=3)
    with pytest.raises(ValueError, match="a 1-D array is a sequence if max_lag"):
        scb.recover(da.zeros(10, dtype=int))
    with pytest.raises(ValueError, match="longest sequence has 10 tokens"):
        scb.recover(da.zeros(10, dtype=int, chunks=3), max_lag=9)
    with pytest.raises(TypeError, match="from Dask, only arrays, bags and lists"):
        scb.recover([dask.delayed(one), one])
    model = SparseContextualBigram(3)
    with pytest.raises(ValueError, match="no symbol follows another one"):
        model.fit(da.from_array(np.array([0, np.nan, 0, np.nan]), chunks=2))
    with pytest.raises(ValueError, match="all are missing"):
        model.fit(da.full(9, np.nan, chunks=2))
    with pytest.raises(TypeError, match="symbols of type int, str"):
        model.fit([dask.delayed([1, 2, 3, 4, 5]), dask.delayed(list("abcde"))])
    with pytest.raises(ValueError, match="must hold sequences"):
        model.fit(db.from_sequence(["ab", "c"]))
    with pytest.raises(ValueError, match="lengths can be given only for one long X"):
        model.fit(da.zeros(9, dtype=int), lengths=[4, 5])
    with pytest.raises(TypeError, match="only fit accepts"):
        model.fit(np.arange(90) % 3).score(da.zeros(9, dtype=int))


def test_partitions_say_how_large_they_are():
    """Else the scheduler would think nothing of moving them."""
    batch = scb.sample(scb.Task.random(3, 300, 2), 100)
    (held,) = as_data([dask.delayed(batch)]).partitions
    assert isinstance(held, Partition)
    assert held.__sizeof__() > batch.context.nbytes


def test_a_fit_with_many_tokens_takes_few_round_trips(monkeypatch):
    """26 tokens, rows too different to be counted: second derivatives are summed once for each Newton step."""
    monkeypatch.setattr("scb.mixture.data.TUNING", replace(TUNING, table_rows=0))
    trips = []
    total = Here.total
    monkeypatch.setattr(Here, "total", lambda self, held: trips.append(len(held)) or total(self, held))
    task = scb.Task.random(26, 20, 2, seed=1)
    delayed, batches = drawn(task, 20_000, 4)
    fit = scb.recover(delayed)
    assert trips.count(4) <= 500
    expected = scb.recover(batches)
    assert [s.tolist() for s in fit.support] == [s.tolist() for s in expected.support]
    assert fit.loglik == pytest.approx(expected.loglik, rel=1e-10)
    np.testing.assert_allclose(fit.V, expected.V, atol=1e-5)
