"""Fits of few and short sequences, and of data with rare symbols: whatever the data, there is a model or a sentence."""

import random
import warnings
from dataclasses import replace

import numpy as np
import pytest

import scb
from scb.cli import main
from scb.inputs import InputError
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.scoring import scored
from scb.sequences.summary import summarise
from truth.mtd import MTD


def short(kinds, length, number=200):
    chosen = random.Random(100 * kinds + length)
    return [chosen.choices("abcdef"[:kinds], k=length) for _ in range(number)]


@pytest.mark.parametrize("background", ["labels", "ngram"])
@pytest.mark.parametrize("transition", ["shared", "per_lag"])
@pytest.mark.parametrize("kinds", range(1, 7))
def test_short_sequences_are_fitted(kinds, transition, background):
    for length in (1, 2, 3, 4, 5, 8, 15):
        model = scb.SparseContextualBigram(3, transition=transition, background=background)
        if length == 1:
            with pytest.raises(InputError, match="no symbol follows another"):
                model.fit(short(kinds, length, 30))
            continue
        model.fit(short(kinds, length, 30))
        assert np.isfinite([model.gap_, model.loglik_, *model.criterion_.values()]).all()


@pytest.mark.parametrize("background", ["labels", "ngram"])
@pytest.mark.parametrize(("kinds", "length"), [(1, 2), (2, 4)])
def test_the_command_fits_short_sequences_with_every_baseline(tmp_path, capsys, kinds, length, background):
    file = tmp_path / "s.csv"
    rows = [f"{i},{x}" for i, sequence in enumerate(short(kinds, length)) for x in sequence]
    file.write_text("\n".join(["who,what", *rows]))
    columns = ["--group", "who", "--column", "what"]
    main(["fit", str(file), *columns, "--max-lag", "3", "--background", background, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "could not be computed" not in printed
    assert "context tree, depth" in printed


def test_contexts_that_all_end_before_the_greatest_depth():
    tree = ContextTree.fit([np.array([0, 1, 0, 0])] * 40 + [np.array([1, 0, 1, 1])] * 40, 2, 12)
    assert np.isfinite(tree.loglik)
    np.testing.assert_allclose(tree.distributions(np.arange(9)).sum(axis=1), 1)


def test_a_baseline_that_fails_is_named_and_takes_nothing_with_it(tmp_path, capsys, monkeypatch):
    found, failed = scored({"odd": lambda: {"odd": np.zeros(1 << 60)}, "even": lambda: {"even": np.zeros(2)}}, print)
    assert list(found) == ["even"]
    assert len(failed) == 1
    assert failed[0].startswith("the baseline odd could not be computed: ")

    def fails(*_):
        raise ZeroDivisionError("no\nnumber")

    monkeypatch.setattr(ContextTree, "fit", fails)
    (tmp_path / "s.txt").write_text("abcab" * 40)
    main(["fit", str(tmp_path / "s.txt"), "--max-lag", "3", "--halves", "0", "--out", str(tmp_path / "out")])
    line = "the baseline context tree could not be computed: ZeroDivisionError: no number"
    assert line in " ".join(capsys.readouterr().out.split())
    assert line in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_errors_of_a_fit_that_nothing_depends_on_are_unknown_without_a_warning():
    """A single symbol: the likelihood is the same whatever the attention is."""
    model = scb.SparseContextualBigram(20, background="ngram", lags=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(["a"] * 6)
    assert np.isnan(model.lags_["stderr"]).all()


def test_the_interval_of_an_influence_that_the_data_leave_open_is_unknown():
    """Most columns of the matrices are not used by these few symbols."""
    model = scb.SparseContextualBigram(20, transition="per_lag", lags=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.fit(list("dcdfa")).summary().columns
    assert np.isnan(found["high"][found["lag"] > 1]).all()


def test_a_likelihood_that_is_flat_in_a_direction_gives_no_infinite_step():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = scb.SparseContextualBigram(5, lags=2, transition="shared").fit(list("baaabb"))
        found = model.summary().columns
    np.testing.assert_array_equal(found["high"], 1)  # all that can be said of an influence


def test_a_lag_for_which_no_sequence_is_long_enough():
    model = scb.SparseContextualBigram(20, transition="per_lag", context=False, lags=2).fit([["a"] * 5] * 9)
    assert np.isfinite(model.criterion_["per_lag"])


@pytest.mark.parametrize("header", ["# a header: data\n", "> abcd\n"])
def test_symbols_that_occur_only_where_windows_are_not_whole(header):
    letters = "".join(np.array(list("abcd"))[MTD.random(1, per_lag=True).sample(12_000, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = scb.SparseContextualBigram(20, transition="auto").fit(list(header + letters))
    assert model.converged_
    assert np.isfinite(list(model.criterion_.values())).all()
    assert 0 <= model.gap_ < 1e-3
    # The header is a handful of symbols: what they cost is little beside the rest.
    assert model.loglik_ > scb.SparseContextualBigram(20, transition="per_lag").fit(list(letters)).loglik_ - 30 * len(header)


def test_a_criterion_that_is_infinite_does_not_win_by_infinity():
    model = scb.SparseContextualBigram(3).fit(list("abcab" * 40))
    facts = replace(model._fitted.facts, criterion={"shared": 100.0, "per_lag": np.inf})
    text = str(summarise(replace(model._fitted, facts=facts)))
    assert "inf" not in text.replace("influence", "")
    assert "a matrix for each lag has no BIC: a symbol of the data has probability 0 under it" in text
