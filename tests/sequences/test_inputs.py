"""Data as people have them: each input is read as meant, or named in one line with the option that reads it."""

import gzip
import io
import sys
import warnings
from pathlib import Path
from time import sleep

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import scb
from scb.cli import main
from scb.mixture.fit import fit_mixture
from scb.sequences import patience
from scb.sequences.coding import windows_of_codes
from scb.sequences.symbols import as_sequences, encode
from truth.mtd import MTD

WALKS = [["home", "shop", "home"], ["shop", "cart"]]
FRAME = pd.DataFrame({"user": ["a", "a", "a", "b", "b"], "page": [x for walk in WALKS for x in walk]})
TIMED = FRAME.assign(time=[3, 1, 2, 2, 1])
FASTA = ">one the first\nACG\nT\n>two\nGGA\n"
READS = [list("ACGT"), list("GGA")]


def text(content, **options):
    """What is read from a file; the name of its kind is the key of the content."""
    ((ending, written),) = content.items()

    def read(folder):
        path = folder / f"file.{ending}"
        path.write_bytes(written if isinstance(written, bytes) else written.encode())
        return scb.read_sequences(path, **options)

    return read


def given(X, **options):
    """What the estimator takes X for."""

    def read(folder):
        sequences = scb.read_sequences(X, **options) if options else as_sequences(X)
        encode(sequences)
        return sequences

    return read


# Name → how it is read, and either the sequences that are meant or the line that names the option
INPUTS = {
    # In Python
    "a series of lists": (given(FRAME.groupby("user").page.agg(list)), WALKS),
    "a series of lists of polars": (given(pl.Series(WALKS)), WALKS),
    "an array of lists of Arrow": (given(pa.array(WALKS)), WALKS),
    "an object array of lists": (given(np.array(WALKS, dtype=object)), WALKS),
    "a series of lists with an empty cell": (given(pd.Series([["a", "b"], None, ["b"]])), [["a", "b"], [], ["b"]]),
    "strings as sequences": (given(["ACGT", "GGTA"]), r"pass \[list\(x\) for x in X\] for their characters"),
    "sentences": (given(["to be or", "not to be"]), r"\[x.split\(\) for x in X\] for their words"),
    "one string": (given("ACGT"), r"pass list\(X\) for its characters, X.split\(\) for its words"),
    "a dict of sequences": (given(dict(zip("ab", WALKS, strict=True))), r"list\(X.values\(\)\)"),
    "a set": (given({"a", "b"}), "no order: pass a list"),
    "a path": (given(Path("walks.csv")), r"scb.read_sequences\(X\)"),
    "measurements": (given(np.random.default_rng(0).random(500)), r"scb.read_sequences with bins=5 \(--bins 5\)"),
    "measurements in bins": (
        given(pd.DataFrame({"x": [0.1, 0.9, 0.2, 0.8]}), bins=2),
        [[pytest.approx(0.15), pytest.approx(0.85)] * 2],
    ),
    # Tables
    "an order of strings": (
        given(pd.DataFrame({"page": list("acdb"), "n": ["0", "10", "11", "2"]}), column="page", order="n"),
        [list("abcd")],
    ),
    "an order of names": (
        given(pd.DataFrame({"page": list("acb"), "n": ["day 1", "day 10", "day 2"]}), column="page", order="n"),
        [list("abc")],
    ),
    "rows in another order than their times": (given(TIMED, column="page", group="user"), r"order='time' \(--order time\)"),
    "a time with pauses": (
        given(pd.DataFrame({"x": list("abcd"), "t": [0, 5, 100, 103]}), column="x", order="t", gap=10),
        [list("ab"), list("cd")],
    ),
    "a clock with pauses": (
        given(
            pd.DataFrame({"x": list("abc"), "t": pd.to_datetime(["2026-01-01 10:00", "2026-01-01 10:29", "2026-01-01 11:00"])}),
            column="x",
            order="t",
            gap="30min",
        ),
        [list("ab"), ["c"]],
    ),
    "a gap without an order": (given(TIMED, column="page", gap=3), "'order' must name the column"),
    # Files
    "semicolons": (text({"csv": "user;page\na;home\na;shop\nb;home\n"}, column="page", group="user"), [["home", "shop"], ["home"]]),
    "no row of names": (text({"csv": "rain\ndry\nrain\n"}), [["rain", "dry", "rain"]]),
    "no row of names, numbers": (text({"csv": "1.5\n2.5\n1.5\n"}), [[1.5, 2.5, 1.5]]),
    "names that are data, by option": (text({"csv": "rain\ndry\nrain\n"}, header=True), [["dry", "rain"]]),
    "the index of pandas": (text({"csv": FRAME.to_csv()}, column="page", group="user"), WALKS),
    "FASTA": (text({"fasta": FASTA}), READS),
    "FASTA with gzip": (text({"fa.gz": gzip.compress(FASTA.encode())}), READS),
    "FASTA in a .txt": (text({"txt": FASTA}), r"kind='fasta' \(--kind fasta\)"),
    "a table with gzip": (text({"csv.gz": gzip.compress(FRAME.to_csv(index=False).encode())}, column="page", group="user"), WALKS),
    "gzip cut short": (text({"txt.gz": gzip.compress(b"abcabc" * 99)[:-9]}), "cannot be decompressed"),
    "characters of each line": (text({"txt": "ACG\nTGGA\n"}, sep=""), [list("ACG"), list("TGGA")]),
    "lines of one length": (text({"txt": "ACG\nTGA\n"}), r"sep='' \(--sep \"\"\)"),
    "a symbol on each line": (text({"txt": "rain\ndry\n" * 9}), r"by='line' \(--by line\)"),
    "a table without an ending": (text({"data": "a,b\n1,2\n1,3\n"}), r"kind='csv' \(--kind csv\)"),
    "a table that is text to us": (text({"txt": "a,b\n"}, column="a"), "pass 'kind' if it is a table"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_is_read_as_meant_or_named_with_the_option(tmp_path, name):
    read, meant = INPUTS[name]
    if isinstance(meant, list):
        assert list(read(tmp_path)) == meant
        return
    # An error, or a warning where the reading may be meant; both are one line
    with pytest.raises((ValueError, UserWarning), match=meant) as line:
        read(tmp_path)
    assert "\n" not in str(line.value)


def test_there_are_thirty_of_them():
    assert len(INPUTS) >= 30


def test_standard_input(tmp_path, monkeypatch, capsys):
    letters = "".join(np.array(list("abcd"))[MTD.random(1).sample(600, 1)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(letters.encode())))
    assert list(scb.read_sequences("-")) == [list(letters)]
    lines = "\n".join(letters).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    main(["fit", "-", "--by", "line", "--max-lag", "3", "--halves", "0", "--out", str(tmp_path / "out")])
    told = capsys.readouterr()
    assert "600 symbols of 4 kinds" in told.out
    first = ", ".join(map(repr, letters[:10]))
    assert told.err == f"read text as one sequence of lines\nit begins with {first}\n"


# ------------------------------------------------------------------------------------------------ what is done with them


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_log_likelihoods_stand_beside_the_rows(frame):
    """Rows of several sequences among each other, unsorted: each gets the value of its own symbol."""
    rng = np.random.default_rng(0)
    x = np.array(list("abcd"))[MTD.random(1).sample(400, 1)].reshape(8, 50)
    rows = rng.permutation(400)
    user, time = np.divmod(rows, 50)
    # polars can hold a missing name only among objects of one type
    table = frame({"user": [None if u == 7 else f"u{u}" for u in user], "time": time, "page": x[user, time]})
    model = scb.SparseContextualBigram(3).fit(list(x))
    read = scb.read_sequences(table, column="page", group="user", order="time")
    each = model.log_likelihoods(read)
    assert each.shape == (400,)
    expected = model.log_likelihoods(x).reshape(8, 50)
    expected[7] = np.nan
    np.testing.assert_array_equal(each, expected[user, time])
    assert np.isnan(each).sum() == 50 + 7
    distributions = model.predict_proba(x[0])
    codes = np.searchsorted(model.classes_, x[0])
    np.testing.assert_allclose(expected[0, 1:], np.log(distributions[np.arange(49), codes[1:]]), rtol=1e-12)


def test_a_gap_is_not_predicted_and_neither_is_what_follows_it():
    model = scb.SparseContextualBigram(2).fit(list("abcab" * 20))
    each = model.log_likelihoods(["a", "b", None, "c", "a"])
    assert np.isnan(each).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("background", ["labels", "ngram", "per_sequence"])
def test_forecasts_of_several_sequences_are_those_of_each(background):
    x = MTD.random(1).sample(5000, 1)
    model = scb.SparseContextualBigram(12, background=background).fit(x)
    pieces = [x[:30].tolist(), x[100:103].tolist(), [0, None, 1]]
    several = model.forecast(pieces, 2, n_samples=4000)
    assert several.shape == (3, 2, 4)
    np.testing.assert_allclose(several[:, 0], model.predict_proba(pieces), rtol=1e-12)
    for piece, found in zip(pieces, several, strict=True):
        first = model.predict_proba([piece])[0]
        exact = sum(first[s] * model.predict_proba([[*piece, s]])[0] for s in range(4))  # all continuations
        np.testing.assert_allclose(found[1], exact, atol=0.03)


def test_compare_fits_n_grams_to_the_training_data():
    x = MTD.random(1).sample(6000, 1)
    train, test = x[:4000], x[4000:]
    model = scb.SparseContextualBigram(12).fit(train)
    table = scb.compare({"ours": model}, test, train=train).columns
    bits = dict(zip(table["model"].tolist(), table["bits"].tolist(), strict=True))
    assert {"ours", "unigram", "bigram"} < set(bits)
    assert len(bits) == 6
    assert bits["ours"] == min(bits.values())
    # The first symbol is not predicted
    p = np.bincount(train, minlength=4) / train.size
    assert bits["unigram"] == pytest.approx(-np.log2(p[test[1:]]).mean(), abs=1e-3)


def test_partial_fit_does_not_discard_a_model(tmp_path):
    x = MTD.random(1).sample(3000, 1)
    model = scb.SparseContextualBigram(3).fit(x)
    with pytest.raises(scb.InputError, match=r"fit\(X, init=model\)"):
        model.partial_fit(x)
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(scb.InputError, match="partial_fit of a new model"):
        scb.SparseContextualBigram.load(tmp_path / "model.safetensors").partial_fit(x)


# ------------------------------------------------------------------------------------------------ fits that take long


def test_a_long_fit_is_announced(monkeypatch):
    data = windows_of_codes([MTD.random(1).sample(4000, 1)], 4, 12, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not patience.warn_if_long(data, [lambda part: sleep(0.01)])
    monkeypatch.setattr(patience, "_LARGE", 0)
    assert not patience.warn_if_long(data, [lambda part: None])
    monkeypatch.setattr(patience, "_LONG", 0.02)
    with pytest.warns(UserWarning, match=r"minutes or longer: an interrupt \(Ctrl-C\) ends the search"):
        assert patience.warn_if_long(data, [lambda part: sleep(0.01)])


def test_a_search_that_is_stopped_gives_what_it_has():
    data = windows_of_codes([MTD.random(1).sample(6000, 1)], 4, 12, True)
    whole = fit_mixture(data)
    rounds = []

    def stop(turn, positions, loglik):
        rounds.append((positions, loglik))
        if turn == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_mixture(data, progress=stop)
    stopped = fit_mixture(data, progress=stop, stoppable=True)
    assert whole.settled
    assert not stopped.settled
    # The last fit leaves the background out where the lags are enough
    assert stopped.loglik == pytest.approx(rounds[-1][1], rel=1e-3)
    # It had not left out what is not needed
    assert sum(map(len, stopped.support)) == rounds[-1][0] > sum(map(len, whole.support))
