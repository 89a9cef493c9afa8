"""Sequences from files and frames: every way in gives the same ones and says what it did; what may mean two things is refused."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import scb
from scb.sequences.symbols import as_sequences, encode

TRUTH = [["a", "b", "c", "a"], ["c", None, "a"], ["b", "b", "a", "c", "a"]]
FLAT = [x for sequence in TRUTH for x in sequence]
USER = [u for u, sequence in zip((7, 3, 5), TRUTH, strict=True) for _ in sequence]
TIME = [t for sequence in TRUTH for t in range(len(sequence))]


def mixed(seed=0):
    """The rows of all users among each other, in no order at all."""
    rows = np.random.default_rng(seed).permutation(len(FLAT))
    columns = {"user": USER, "page": FLAT, "time": TIME}
    return {name: [values[i] for i in rows] for name, values in columns.items()}


def by_name(found):
    return dict(zip(found.names, found, strict=True))


EXPECTED = dict(zip((7, 3, 5), TRUTH, strict=True))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_with_names_and_an_order(frame):
    found = scb.read_sequences(frame(mixed()), column="page", group="user", order="time")
    assert by_name(found) == EXPECTED
    assert found.said == "column 'page' in 3 sequences, one for each 'user', sorted by 'time'"
    assert found.many


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_files_with_names_and_an_order(tmp_path, ending):
    path = tmp_path / f"users.{ending}"
    table = mixed()
    if ending == "parquet":
        parquet.write_table(pa.table(table), path)
    elif ending == "jsonl":
        rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    else:
        pd.DataFrame(table).to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    found = scb.read_sequences(path, column="page", group="user", order="time")
    assert by_name(found) == EXPECTED


def test_another_separator_between_columns(tmp_path):
    path = tmp_path / "users.csv"
    pd.DataFrame(mixed()).to_csv(path, sep=";", index=False)
    found = scb.read_sequences(path, column="page", group="user", order="time", sep=";")
    assert by_name(found) == EXPECTED
    with pytest.raises(ValueError, match="one character"):
        scb.read_sequences(path, column="page", sep=";;")


def test_lists_in_cells_and_lines(tmp_path):
    frame = pa.table({"user": [7, 3, 5], "pages": TRUTH})
    found = scb.read_sequences(frame, column="pages", group="user")
    assert by_name(found) == EXPECTED
    assert list(as_sequences(frame)) == TRUTH
    lines, whole = tmp_path / "walks.jsonl", tmp_path / "walks.json"
    lines.write_text("\n".join(map(json.dumps, TRUTH)))
    whole.write_text(json.dumps(TRUTH))
    for path in (lines, whole):
        found = scb.read_sequences(path)
        assert list(found) == TRUTH
        assert "lines is a sequence" in found.said
    lines.write_text('"a"\n"b"\nnull\n"a"\n')
    assert list(scb.read_sequences(lines)) == [["a", "b", None, "a"]]


def test_texts(tmp_path):
    path = tmp_path / "walk.txt"
    path.write_text("a b, c\nb,, c\n")
    assert list(scb.read_sequences(path)) == [list("a b, c\nb,, c\n")]
    assert list(scb.read_sequences(path, by="word")) == [["a", "b,", "c", "b,,", "c"]]
    assert list(scb.read_sequences(path, by="line")) == [["a b, c", "b,, c"]]
    found = scb.read_sequences(path, sep=",")
    assert list(found) == [["a b", "c"], ["b", None, "c"]]
    assert found.said == "symbols between ','; each of the 2 lines is a sequence"


def test_rare_symbols_become_one():
    frame = pd.DataFrame({"x": ["a", "a", "b", "b", "c", None, "d", "a"]})
    found = scb.read_sequences(frame, top=2)
    assert list(found) == [["a", "a", "b", "b", "<other>", None, "<other>", "a"]]
    assert found.said.endswith("2 kinds beyond the 2 most common, 2 symbols, are '<other>'")


# ------------------------------------------------------------------------------------------------- without being told


def users(n=60, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 20, size=n)
    page = rng.choice(["home", "shop", "cart"], size=lengths.sum())
    return pd.DataFrame({"user": np.repeat(np.arange(n), lengths), "page": page}), np.split(page, np.cumsum(lengths)[:-1])


@pytest.mark.parametrize("columns", [["user", "page"], ["page", "user"]])
def test_a_column_of_names_is_told_from_one_of_symbols(columns):
    frame, expected = users()
    found = as_sequences(frame[columns])
    assert [list(x) for x in found] == [x.tolist() for x in expected]
    assert found.said.startswith("column 'page' in 60 sequences, one for each 'user' (guessed")
    codes, classes = encode(found)
    assert classes.tolist() == ["cart", "home", "shop"]
    numbers = frame.assign(page=frame["page"].map({"home": 0, "shop": 1, "cart": 2}))
    again, _ = encode(as_sequences(numbers[columns]))
    assert [len(x) for x in again] == [len(x) for x in codes]


def test_the_estimator_takes_frames_as_they_are():
    frame, expected = users()
    model = scb.SparseContextualBigram(2).fit(frame[["user", "page"]])
    by_hand = scb.SparseContextualBigram(2).fit([x.tolist() for x in expected])
    assert model.classes_.tolist() == ["cart", "home", "shop"]
    assert model.loglik_ == by_hand.loglik_
    assert model.score(frame[["user", "page"]]) == by_hand.score([x.tolist() for x in expected])
    read = scb.read_sequences(frame, column="page", group="user")
    assert scb.SparseContextualBigram(2).fit(read).loglik_ == by_hand.loglik_
    np.testing.assert_array_equal(model.predict(read), by_hand.predict([x.tolist() for x in expected]))


def test_rows_of_a_wide_frame_are_sequences():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.choice(list("abc"), size=(20, 6)), columns=[f"step{i}" for i in range(6)])
    found = as_sequences(wide)
    assert found.said == "each of the 20 rows is a sequence of 6 symbols, in the order of the columns"
    assert list(found) == wide.to_numpy().tolist()
    numbers = pd.DataFrame(rng.integers(3, size=(20, 4))).astype({1: float})
    numbers.iloc[0, 1] = np.nan
    first, *_ = as_sequences(numbers)
    assert [first[0], *first[2:]] == numbers.iloc[0, [0, 2, 3]].tolist()
    assert first[1] is None


def test_what_hmmlearn_takes():
    x = np.array([0, 1, 1, 0, 2, 1])
    for X in (x[:, None], x[:, None].tolist()):
        found = as_sequences(X, [4, 2])
        assert found.lengths == [4, 2]
        assert list(found.flat) == x.tolist()
    assert as_sequences(x[:, None]).lengths == [6]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"user": [1, 2, 3] * 4, "page": ["a", "b"] * 6, "time": list(range(100, 112))},
            r"user \(3 kinds\), page \(2 kinds\), time",
        ),
        ({"a": ["x", "y"] * 3, "b": ["p", "q"] * 3}, "which column holds the symbols"),
        ({"id": list(range(100, 106)), "page": ["a", "b"] * 3}, "which column holds the symbols"),
    ],
)
def test_what_can_be_meant_in_two_ways_is_refused(columns, message):
    with pytest.raises(ValueError, match=message) as error:
        as_sequences(pd.DataFrame(columns))
    assert "scb.read_sequences and scb fit take its name as 'column'" in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "no"}, "no column 'no': the columns are user, page, time"),
        ({"column": "page", "group": "gone"}, "no column 'gone'"),
        ({"column": "page", "order": "page"}, "'page' has 1 empty cells"),
        ({"column": "page", "top": 0}, "top = 0"),
        ({"column": "page", "by": "letter"}, "by = 'letter'"),
    ],
)
def test_bad_options_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        scb.read_sequences(pd.DataFrame(mixed()), **arguments)


def test_rows_without_a_name_are_left_out_and_counted():
    frame = pd.DataFrame({"user": ["u", None, "u", "v", "v"], "page": list("abcde")})
    found = scb.read_sequences(frame, column="page", group="user")
    assert by_name(found) == {"u": ["a", "c"], "v": ["d", "e"]}
    assert found.said.endswith("1 rows without a 'user' were left out")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", '{"a": 1}\n[1, 2]\n', "mixes objects, arrays and single values"),
        ("t.jsonl", '["a"]\n{bad', "line 2"),
        ("t.jsonl", "", "no rows"),
        ("t.json", "3", "no rows"),
        ("t.csv", "a,b\n", "no rows"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        scb.read_sequences(tmp_path / name)
    assert name in str(error.value)
    with pytest.raises(ValueError, match="'sep' is for text"):
        scb.read_sequences(tmp_path / "t.jsonl", sep=",") if name.endswith("l") else scb.read_sequences(_parquet(tmp_path), sep=",")


def _parquet(folder):
    parquet.write_table(pa.table({"a": [1]}), folder / "t.parquet")
    return folder / "t.parquet"


def test_lengths_do_not_go_with_what_is_told_apart_already():
    frame, _ = users()
    for X in (frame[["user", "page"]], as_sequences(frame[["user", "page"]])):
        with pytest.raises(ValueError, match="lengths can be given only for one long X"):
            as_sequences(X, [3])
