"""``scb fit``, ``scb show`` and ``scb sample`` as a user calls them."""

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import scb
from scb.cli import main
from scb.cli.fit import print_fit
from scb.cli.progress import steps
from scb.cli.terminal import terminal
from scb.sequences.analysis import split
from scb.sequences.comparison import Score
from scb.sequences.fit_folder import SavedFit, read_fit
from scb.sequences.input_formats import OTHER, read_sequences
from truth.mtd import MTD


def call(capsys, *arguments):
    main([str(a) for a in arguments])
    return capsys.readouterr().out


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as error:
        main([str(a) for a in arguments])
    assert error.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def letters():
    return np.array(list("abcd"))[MTD.random(1, per_lag=True).sample(12_000, 1)]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_a_text_is_fitted_shown_and_sampled(tmp_path, capsys, letters):
    file, out = tmp_path / "poem.txt", tmp_path / "out"
    file.write_text("".join(letters))
    text = call(capsys, "fit", file, "--max-lag", 12, "--out", out)
    assert max(map(len, text.splitlines())) <= 80
    assert "12,000 symbols of 4 kinds" in text
    for name in ("unigram", "bigram", "-gram,", "context tree", "PPM", "plain MTD", "this model"):
        assert name in text
    for name in ("model.safetensors", "lags.csv", "attention.png", "summary.json", "report.html"):
        assert (out / name).stat().st_size > 0
    model = scb.SparseContextualBigram.load(out / "model.safetensors")
    expected = scb.SparseContextualBigram(12).fit(letters[:9600])
    assert model.lags_["lag"].tolist() == expected.lags_["lag"].tolist() == [2, 7, 1, 11, 11, 2]
    best, *_ = json.loads((out / "summary.json").read_text())["held_out"]
    assert best["name"] == "this model"
    distributions = expected.predict_proba(letters[9600 - 12 :])[11:-1]
    bits = -np.log2(distributions[np.arange(2400), np.searchsorted(expected.classes_, letters[9600:])]).mean()
    assert best["bits"] == pytest.approx(bits, rel=1e-9)
    rows = (out / "lags.csv").read_text().splitlines()
    assert rows[0].startswith("context,lag,weight,stderr,influence,nats,delta_bic")
    assert len(rows) == 7
    page = (out / "report.html").read_text()
    assert f"scb fit {file.name} --max-lag 12 --out {out.name}" in page
    assert str(tmp_path) not in page
    assert "first 9,600 symbols are fitted" in page
    (out / "attention.png").unlink()
    answer = scb.SparseContextualBigram.load(out / "model.safetensors").summary().answer
    assert answer.startswith("After ‘a’, the next symbol depends on lags 2 and 7; after ‘b’, on")
    assert answer in page
    assert " ".join(text.split()).startswith(answer)
    shown = call(capsys, "show", out)
    assert shown.splitlines()[:8] == text.splitlines()[:8]
    assert not (out / "attention.png").exists()
    assert call(capsys, "show", out, "--out", out).startswith(shown)
    assert (out / "attention.png").exists()
    assert call(capsys, "sample", out, "--length", 30) == "".join(model.sample(30)) + "\n"
    lines = call(capsys, "sample", out / "model.safetensors", "--length", 5, "--seed", 3, "--separator", "\\n")
    assert lines.split() == model.sample(5, random_state=3).tolist()


def test_tables_with_groups_and_gaps(tmp_path, capsys, letters):
    person, state = np.repeat(np.arange(40), 300), letters.astype(object)
    state[100] = None
    parquet.write_table(pa.table({"person": person, "state": state.tolist()}), tmp_path / "careers.parquet")
    mixed = np.random.default_rng(0).permutation(12_000)
    mixed = mixed[np.argsort(mixed % 300, kind="stable")]  # rows of all persons among each other, each in its order
    cells = ["person,state"] + [f"{person[i]},{state[i] or ''}" for i in mixed]
    (tmp_path / "careers.csv").write_text("\n".join(cells) + "\n")
    expected = sorted((state[i * 300 : (i + 1) * 300].tolist() for i in range(40)), key=str)
    for name in ("careers.parquet", "careers.csv"):
        source = read_sequences(tmp_path / name, column="state", group="person")
        assert sorted(source, key=str) == expected
    text = call(capsys, "fit", tmp_path / "careers.parquet", "--group", "person", "--max-lag", 12, "--out", tmp_path / "o")
    assert "40 sequences" in text
    model = scb.SparseContextualBigram.load(tmp_path / "o" / "model.safetensors")
    assert model.n_windows_ == 32 * 299 - 2  # the last eight persons are held out; a gap is no label, and nor is what follows it


def test_words_and_rare_symbols(tmp_path, capsys):
    (tmp_path / "t.txt").write_text("the cat the dog the bird the cat " * 40)
    (words,) = read_sequences(tmp_path / "t.txt", by="word", top=2)
    assert set(words) == {"the", "cat", OTHER}
    text = call(capsys, "fit", tmp_path / "t.txt", "--by", "word", "--max-lag", 4, "--out", tmp_path / "o", "--split", 0)
    assert "held-out bits" not in text
    assert "nothing held out" in (tmp_path / "o" / "report.html").read_text()
    assert set(call(capsys, "sample", tmp_path / "o", "--length", 50).split()) <= {"the", "cat", "dog", "bird"}


def test_options_reach_the_model(tmp_path, capsys, letters):
    (tmp_path / "t.txt").write_text("".join(letters[:3000]))
    options = ["--transition", "shared", "--no-context", "--lags", "1,2,7"]
    call(capsys, "fit", tmp_path / "t.txt", "--max-lag", 8, "--out", tmp_path / "o", *options)
    model = scb.SparseContextualBigram.load(tmp_path / "o" / "model.safetensors")
    assert (model.transition, model.context, model.lags) == ("shared", False, [1, 2, 7])
    call(capsys, "fit", tmp_path / "t.txt", "--max-lag", 8, "--out", tmp_path / "o", "--lags", 2)
    assert scb.SparseContextualBigram.load(tmp_path / "o" / "model.safetensors").lags == 2


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        (b"", "t.txt", [], "is empty"),
        (b"\xff\xfe\x00", "t.txt", [], "not text in UTF-8"),
        (b"abcabc" * 9, "t.txt", ["--column", "x"], "is read as text"),
        (b"abcabc" * 9, "t.txt", ["--split", "1.5"], "--split 1.5"),
        (b"abcabc" * 9, "t.txt", ["--lags", "few"], "--lags few"),
        (b"abcabc" * 9, "t.txt", ["--lags", "30"], "lags = 30"),
        (b"abcabc" * 9, "t.txt", ["--max-lag", "0"], "max_lag = 0"),
        (b"abc", "t.txt", [], "too few"),
        (b"a,b\n1,2\n", "t.csv", [], "take its name as 'column'"),
        (b"a,b\n1,2\n", "t.csv", ["--column", "c"], "no column 'c': the columns are a, b"),
        (b"a,b\n", "t.csv", ["--column", "a"], "no rows"),
        (b"a,b\n1\n2,3,4\n", "t.csv", ["--column", "a"], "cannot be read as csv"),
        (b"junk", "t.parquet", [], "cannot be read as parquet"),
    ],
)
def test_bad_files_and_options_are_one_line(tmp_path, capsys, content, name, options, message):
    (tmp_path / name).write_bytes(content)
    error = refused(capsys, "fit", tmp_path / name, "--out", tmp_path / "o", *options)
    *read, last = error.splitlines()
    assert message in last
    # What was read is said first, where it could be read
    assert all(line.startswith(("read text as", "it begins with")) for line in read)
    assert not (tmp_path / "o").exists()


def test_missing_models_are_named(tmp_path, capsys):
    assert "not there" in refused(capsys, "fit", tmp_path / "nothing.txt")
    assert "not there" in refused(capsys, "sample", tmp_path / "nothing")
    assert "is not there" in refused(capsys, "show", tmp_path / "nothing")
    (tmp_path / "model").write_text("hello")
    assert "damaged" in refused(capsys, "show", tmp_path / "model")


def test_what_was_done_with_users_is_said(tmp_path, capsys):
    """Short sequences in rows that are in no order, with gaps and a symbol that only the held-out ones have, against an n-gram."""
    rng = np.random.default_rng(0)
    rows = []
    lengths = rng.integers(1, 40, size=120).tolist()
    held_out = {int(x[0]) for x in split([np.full(n, user) for user, n in enumerate(lengths)], 0.2).test}
    for user in range(120):
        pages = rng.choice(["home", "shop", "cart"], size=lengths[user]).tolist()
        for t in range(3, len(pages)):
            pages[t] = pages[t - 3] if rng.random() < 0.7 else pages[t]
        pages = ["rare" if user in held_out and rng.random() < 0.1 else page for page in pages]
        rows += [(user, t, page if rng.random() > 0.03 else "") for t, page in enumerate(pages)]
    first = [row for row in rows if row[1] == 0]
    others = [row for row in rows if row[1] > 0]
    mixed = first + [others[i] for i in rng.permutation(len(others))]
    (tmp_path / "users.csv").write_text("\n".join(["user;time;page", *(f"{u};{t};{p}" for u, t, p in mixed)]) + "\n")
    options = ["--sep", ";", "--column", "page", "--group", "user", "--order", "time", "--background", "ngram", "--halves", 2]
    text = call(capsys, "fit", tmp_path / "users.csv", *options, "--max-lag", 5, "--out", tmp_path / "o")
    words = " ".join(text.split())
    assert "of 4 kinds in 120 sequences of 1 to 39 symbols" in words
    assert "column 'page' in 120 sequences, one for each 'user', sorted by 'time'" in words
    assert "% are missing" in words or "%) are missing" in words
    assert "say nothing about what comes next" in words
    assert "1 kind of symbols occurring only in what is held out ('rare')" in words
    said = f"Held out to be predicted: {len(held_out)} sequences drawn at random (seed 0); everything else is fitted"
    assert said in words
    assert "inf" not in words.replace("influence", "")
    model = scb.SparseContextualBigram.load(tmp_path / "o" / "model.safetensors")
    assert model.background == "ngram"
    assert said in " ".join((tmp_path / "o" / "report.html").read_text().split())
    assert "Infinity" not in (tmp_path / "o" / "summary.json").read_text()


def test_many_symbols_and_few_labels(tmp_path, capsys):
    """That nothing is found is said with what a lag would have had to be worth."""
    codes = np.random.default_rng(0).integers(60, size=3000)
    (tmp_path / "codes.csv").write_text("\n".join(["code", *(f"c{x:02d}" for x in codes)]) + "\n")
    words = " ".join(call(capsys, "fit", tmp_path / "codes.csv", "--max-lag", 5, "--out", tmp_path / "o").split())
    assert "of 60 kinds in 1 sequence" in words
    price = (60 * np.log(2399 / 60) / 2 + np.log(60 * 5)) / 2399 / np.log(2)
    assert f"a lag would have to save about {price:.2g} bits per symbol" in words
    assert "predicts better" not in words


def test_where_an_n_gram_predicts_better_the_background_is_named(tmp_path, capsys):
    """The next symbol is the exclusive or of the last two, nine times in ten: lags one by one say nothing about it."""
    rng = np.random.default_rng(0)
    x = [0, 1]
    for flip in rng.random(4000) < 0.1:
        x.append(x[-1] ^ x[-2] ^ int(flip))
    (tmp_path / "bits.txt").write_text("".join(map(str, x)))
    words = " ".join(
        call(capsys, "fit", tmp_path / "bits.txt", "--max-lag", 4, "--background", "labels", "--out", tmp_path / "o").split()
    )
    assert "predicts better: with --background ngram" in words
    words = " ".join(call(capsys, "fit", tmp_path / "bits.txt", "--max-lag", 4, "--out", tmp_path / "o").split())
    assert words.startswith("The last 2 symbols matter together, as an n-gram; beyond them, no earlier symbol decides")


def test_where_plain_mtd_predicts_better_the_advice_is_to_go_without_context(capsys):
    """And where something else does, or the model has no context already, it is another one, or none."""
    scores = [
        Score(name, bits, bits - 2.0, 0.001, name == "this model", bits == 1.9)
        for name, bits in (("plain MTD", 1.9), ("this model", 2.0))
    ]
    x = np.random.default_rng(0).integers(3, size=200)
    for context, background, words in (
        (True, "labels", "plain MTD predicts better: with --no-context"),
        (True, "ngram", "plain MTD predicts better: with --no-context"),
        (False, "labels", "plain MTD predicts better: with --background ngram"),
        (False, "ngram", ""),
    ):
        model = scb.SparseContextualBigram(2, context=context, background=background).fit(x)
        print_fit(terminal(), SavedFit(model, model.summary(), scores, ""))
        printed = " ".join(capsys.readouterr().out.split())
        assert words in printed
        assert words or "predicts better" not in printed


def test_the_headline_of_a_fit_with_an_n_gram_is_what_was_held_out(tmp_path, capsys, letters):
    """An n-gram has learned the symbols of the fit; what it needs for them says little."""
    (tmp_path / "text.txt").write_text("".join(map(str, letters[:3000])))
    call(capsys, "fit", tmp_path / "text.txt", "--max-lag", 4, "--background", "ngram", "--halves", 0, "--out", tmp_path / "o")
    saved = read_fit(tmp_path / "o")
    (own,) = [score.bits for score in saved.scores if score.own]
    assert any(line.startswith(f"{own:.4f} bits per held-out symbol") for line in saved.summary.about)
    assert not any("log-likelihood" in line for line in saved.summary.about)


def test_a_fit_that_is_piped_says_where_it_is(capsys):
    with steps("looking for lags …", patience=0.01) as say:
        time.sleep(0.1)
        say("what each lag is worth …")
        time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 s: looking for lags …"
    assert lines[-1] == "0 s: what each lag is worth …"


def test_the_estimator_and_the_analysis_are_one_road(letters):
    fitted = scb.SparseContextualBigram(8).fit(letters[:3000])
    analysis = scb.analyse(scb.SparseContextualBigram(8), letters[:3000], held_out=0, n_halves=0)
    assert str(analysis.summary) == str(fitted.summary())
    assert analysis.model.loglik_ == fitted.loglik_
    assert (analysis.scores, analysis.n_held_out, analysis.failures) == ([], 0, [])


def test_printing_computes_nothing(letters, monkeypatch):
    """The evidence is computed for the summary; afterwards the fitter may be gone."""
    model = scb.SparseContextualBigram(8).fit(letters[:3000])
    summary = model.summary()
    expected = str(summary)

    def gone(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr("scb.mixture.evidence.PendingEvidence.find", gone)
    monkeypatch.setattr("scb.sequences.lag_model.LagModel.table", gone)
    assert str(summary) == expected


def test_all_of_a_held_out_sequence_is_predicted(letters):
    model = scb.SparseContextualBigram(4)
    sequences = [letters[first : first + 60] for first in range(0, 1200, 60)]
    analysis = scb.analyse(model, sequences, held_out=0.5, n_halves=0, random_state=1)
    held_out = [sequences[int(x[0])] for x in split([np.full(60, i) for i in range(20)], 0.5, 1).test]
    assert analysis.n_held_out == 59 * len(held_out) == 590
    own = next(score for score in analysis.scores if score.own)
    assert own.bits == pytest.approx(-model.score(held_out) / np.log(2))


@pytest.mark.parametrize(
    ("options", "message"), [({"held_out": 1}, "held_out = 1"), ({"n_halves": 3}, "n_halves = 3"), ({}, "too few")]
)
def test_what_cannot_be_analysed_is_named(options, message):
    with pytest.raises(scb.InputError, match=message):
        scb.analyse(scb.SparseContextualBigram(), list("abcabc"), **options)
