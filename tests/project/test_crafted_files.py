"""Files that somebody else made: each is read or refused in a sentence, and nothing in it is obeyed."""

import csv
import io
import json
import os
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest
from rich.table import Table
from rich.text import Text

import scb
from scb import files
from scb.cli import main
from scb.cli.terminal import terminal
from scb.files import SLOT, read_json, seal, write_json
from scb.inputs import DamagedFileError, InputError
from scb.jobs.table_file import read_table, write_table
from scb.sequences.model_file import FORMAT
from scb.sequences.symbols import inert
from scb.tensors import read_arrays, write_arrays
from scb.training.run import Run
from scb.training.settings import read_toml

FAKE = "scb-sha256:" + "a" * 64


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for background in ("labels", "ngram"):
        model = scb.SparseContextualBigram(3, background=background).fit(list("abcabcaab" * 40))
        model.save(folder / f"{background}.safetensors")
    return folder


def test_what_is_not_a_regular_file_is_refused_and_not_waited_for(tmp_path):
    for name in ("x.txt", "x.csv", "x.parquet", "x.jsonl", "config.toml", "run.safetensors", "summary.json"):
        os.mkfifo(tmp_path / name)
    readers = [(scb.read_sequences, name) for name in ("x.txt", "x.csv", "x.parquet", "x.jsonl")]
    readers += [(read_toml, "config.toml"), (read_json, "summary.json"), (scb.SparseContextualBigram.load, "run.safetensors")]
    for read, name in readers:
        with pytest.raises(InputError, match="is a pipe or a device, where a regular file is wanted"):
            read(tmp_path / name)
    with pytest.raises(InputError, match="pipe or a device"):
        Run.load(tmp_path)
    with pytest.raises(InputError, match="pipe or a device"):
        scb.read_sequences("/dev/zero")
    with pytest.raises(IsADirectoryError, match="is a directory, where a file is wanted"):
        scb.read_sequences(tmp_path)


def test_texts_that_look_like_digests_cost_nothing_and_hide_nothing(tmp_path, monkeypatch):
    digests = []
    real = files.sha256
    monkeypatch.setattr(files, "sha256", lambda content: digests.append(1) or real(content))
    write_json(tmp_path / "a.json", {"text": FAKE * 1000})
    assert read_json(tmp_path / "a.json") == {"text": FAKE * 1000}
    write_table(tmp_path / "a.parquet", {"x": np.array([FAKE] * 3)}, {"fact": FAKE})
    assert read_table(tmp_path / "a.parquet")[1] == {"fact": FAKE}
    scb.SparseContextualBigram(2).fit([FAKE, "b"] * 50).save(tmp_path / "m.safetensors")
    assert FAKE in scb.SparseContextualBigram.load(tmp_path / "m.safetensors").classes_
    (tmp_path / "b.json").write_text(FAKE * 1000)
    digests.clear()
    with pytest.raises(DamagedFileError):
        read_json(tmp_path / "b.json")
    assert len(digests) <= 2


def changed(folder, name, path, array=None, **facts):
    arrays, content = read_arrays(folder / f"{name}.safetensors", FORMAT)
    content["parameters"] |= facts.pop("parameters", {})
    write_arrays(path, FORMAT, arrays | (array or {}), content | facts)
    return path


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"kind": "V2000000000"}, "far more memory than what it holds"),
        ({"kind": "<U100000000"}, "far more memory than what it holds"),
        ({"parameters": {"max_lag": 10**10}}, "far more memory than what it holds"),
        ({"fit": {}}, "is damaged"),
    ],
)
def test_a_model_file_cannot_ask_for_more_than_it_holds(models, tmp_path, facts, said):
    with pytest.raises(DamagedFileError, match=said):
        scb.SparseContextualBigram.load(changed(models, "labels", tmp_path / "m.safetensors", **facts))


def test_a_background_of_contexts_that_there_cannot_be(models, tmp_path):
    arrays, _ = read_arrays(models / "ngram.safetensors", FORMAT)
    about = arrays["background.about"]
    for depth in (63, 31, 2**40, -1):
        array = {"background.about": np.array([about[0], depth, about[2]])}
        with pytest.raises(DamagedFileError, match="damaged"):
            scb.SparseContextualBigram.load(changed(models, "ngram", tmp_path / "m.safetensors", array))
    array = {"background.codes": arrays["background.codes"][::-1].copy()}
    with pytest.raises(DamagedFileError, match="does not count histories"):
        scb.SparseContextualBigram.load(changed(models, "ngram", tmp_path / "m.safetensors", array))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([{"x": 1}, {"x": 2}]),
        pa.array([[[1], [2]], [[3]]]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_columns_that_hold_no_symbols(cells):
    table = pa.table({"c": cells, "g": [1, 2]})
    for columns in ({}, {"column": "c"}, {"column": "g", "group": "c"}, {"column": "g", "order": "c"}):
        with pytest.raises(InputError, match="column 'c' has cells of type"):
            scb.read_sequences(table, **columns)
    lists = pa.table({"c": [[1], [2]], "g": [1, 2]})
    with pytest.raises(InputError, match=r"they must be single values$"):
        scb.read_sequences(lists, column="g", group="c")


def test_columns_of_one_name_and_values_nested_too_deeply(tmp_path):
    (tmp_path / "x.csv").write_text("a,a\nx,y\n")
    with pytest.raises(InputError, match="there are 2 columns 'a': each must have a different name"):
        scb.read_sequences(tmp_path / "x.csv")
    for name in ("x.json", "x.jsonl"):
        (tmp_path / name).write_text("[" * 100_000 + "]" * 100_000)
        with pytest.raises(InputError, match="its values are nested too deeply"):
            scb.read_sequences(tmp_path / name)


def test_control_characters_are_written_out():
    table = Table("a")
    table.add_row("cell\x1b[2J")
    console = terminal(file=io.StringIO(), width=80)
    for one in ("line\x1b[31m\u202e", Text("text\x9b31m"), table):
        console.print(one)
    printed = console.file.getvalue()
    assert not any(x in printed for x in "\x1b\x9b\u202e")
    for text in (r"line\x1b[31m\u202e", r"text\x9b31m", r"cell\x1b[2J"):
        assert text in printed


def test_names_with_control_characters_in_errors_and_formulas_in_tables(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["fit", str(tmp_path / "\x1b[31mred.txt")])
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert r"\x1b[31mred.txt is not there" in error
    assert [inert(x) for x in ("=1+1", "+", "-", "@x", "\t", "\r", "a-", -1.5, None)] == [
        *("'=1+1", "'+", "'-", "'@x", "'\t", "'\r", "a-", -1.5, None)
    ]
    (tmp_path / "x.txt").write_text("\n".join(["=cmd", "-", "=cmd", "=cmd", "@x"] * 60))
    main(
        [
            "fit",
            str(tmp_path / "x.txt"),
            "--by",
            "line",
            "--max-lag",
            "3",
            "--halves",
            "0",
            "--background",
            "labels",
            "--out",
            str(tmp_path / "out"),
        ]
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "lags.csv").read_text())))
    assert rows
    assert {row["context"] for row in rows} <= {"'=cmd", "'-", "'@x"}
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["file"] == "x.txt"
    assert str(tmp_path) not in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("odd", np.arange(1), "are not of one sweep: only one has the column 'odd'"),
        ("key", np.arange(1), "its rows have no keys"),
        ("N", np.array([[2], None], dtype=object)[:1], "the cells of column 'N' are lists"),
    ],
)
def test_rows_of_a_sweep_that_are_none(tmp_path, capsys, monkeypatch, column, cells, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('kind = "recover"\nseeds = 1\n[fixed]\nT = 9\nsamples = 20\n[grid]\nN = [2]\n')
    main(["sweep", "s.toml", "--jobs", "1", "--out", "out"])
    (part,) = (tmp_path / "out" / "rows").iterdir()
    rows, facts = read_table(part)
    write_table(part.with_name("another.parquet"), rows | {column: cells}, facts)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["sweep", "--status", "out"])
    assert said in capsys.readouterr().err


def test_a_task_that_promises_more_than_it_holds(tmp_path):
    path = tmp_path / "task.npz"
    scb.Task.random(3, 9, 2).save(path)
    with ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["T.npy"] = members["T.npy"].replace(b"'shape': (), }", b"'shape': (9999999999,), }")
    with ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = SLOT.encode()
    path.write_bytes(seal(path.read_bytes()))
    with pytest.raises(DamagedFileError, match=r"T.npy promises an array of shape \(9999999999,\)"):
        scb.Task.load(path)
