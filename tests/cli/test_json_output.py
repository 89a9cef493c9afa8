"""The option --json: one object on stdout, nothing else there, with the fields that the reference lists."""

import json
import re
from pathlib import Path

import pytest

import scb
from scb.cli import main
from scb.sequences.estimator import SparseContextualBigram
from scb.training.benchmark import baselines
from scb.training.run import Run

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text()
TYPES = {"text": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "null": type(None), "symbol": object}
TRAIN = ("train", "--recipe", "paper", "--T", "40", "--set", "steps=3")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command with --json: its object, its status and its stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        status = 0
        try:
            main([*arguments, "--json"])
        except SystemExit as end:
            status = end.code
        printed = capsys.readouterr()
        (line,) = printed.out.splitlines()
        return json.loads(line, parse_constant=pytest.fail), status, printed.err

    return run


def listed(kind):
    """Field → type, from the page: what all objects have, and the table of one kind."""
    sections = re.split("^## ", PAGE, flags=re.M)
    own = next(section for section in sections if section.startswith(f"{kind}\n"))
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", sections[0] + own, re.M)
    fields = {name: said.strip() for name, said in rows}
    if kind == "plan":
        fields |= {name.replace("stages", "transfer"): said for name, said in fields.items() if name.startswith("stages[].")}
    return fields


def fits(value, said):
    if said.startswith("list of "):
        return isinstance(value, list) and all(fits(one, re.sub("s$", "", said[len("list of ") :])) for one in value)
    return any(isinstance(value, TYPES[word]) and (word == "boolean" or not isinstance(value, bool)) for word in said.split(" or "))


def check(found, kind, absent=()):
    """The fields are those of the page, and their values are of the types there."""
    fields = listed(kind)
    seen = set()

    def walk(one, prefix):
        for name, value in one.items():
            inner = isinstance(value, list) and f"{prefix}{name}[]" in fields
            field = f"{prefix}{name}{'[]' if inner else ''}"
            seen.add(field)
            assert fits(value, fields[field]), (field, value)
            for part in value if inner else ():
                walk(part, f"{field}.")

    walk(found, "")
    assert seen == set(fields) - set(absent)
    assert found["kind"] == kind


def test_a_plan(call):
    found, status, said = call("plan", "3", "5000", "2")
    check(found, "plan")
    assert status == 0
    assert "Stage 1" in said
    assert found["samples"] == sum(stage["steps"] * stage["batch_size"] for stage in found["stages"])


def test_a_run_is_told_by_train_and_show_alike(call, tmp_path):
    found, status, said = call(*TRAIN, "--out", "run")
    check(found, "run")
    assert status == 0
    assert "verdict, estimated from held-out samples" in said
    run = Run.load(tmp_path / "run")
    assert (found["verdict"], found["steps"], found["settings"]["T"]) == (run.verdict, run.step, 40)
    assert found["stages"][-1]["dist_V"] == run.history["dist_V"][-1]
    assert call("show", "run")[0] == found
    again, _, said = call("train", "--out", "run", "--resume")
    assert again == found
    assert "the run in run is finished: there is nothing left to go on with" in said


def test_a_run_that_diverges_is_told_and_has_status_1(call):
    found, status, _ = call("train", "--recipe", "sgd", "--T", "40", "--set", "steps=50", "--eta", "1e5", "--out", "run")
    check(found, "run")
    assert status == 1
    assert found["diverged"] == found["steps"]
    assert (found["learned"], found["by_truth"]) == (False, None)


def test_a_fit_is_told_by_fit_and_show_alike(call, tmp_path):
    codes = scb.generate(scb.Task.random(N=2, T=3, sparsity=1, seed=0), 900, seed=0)
    Path("text.txt").write_text("".join("ab"[code] for code in codes))
    found, status, said = call("fit", "text.txt", "--max-lag", "4", "--halves", "2", "--out", "fit")
    check(found, "fit")
    assert status == 0
    assert "held-out bits" in said
    model = SparseContextualBigram.load(tmp_path / "fit" / "model.safetensors")
    assert [row["weight"] for row in found["lags"]] == model.lags_["weight"].tolist()
    assert (found["log_likelihood"], found["symbols"]) == (model.loglik_, ["a", "b"])
    assert call("show", "fit")[0] == found


def test_a_fit_without_context_lags_or_held_out_symbols(call):
    Path("text.txt").write_text("ab" * 10)
    found, _, _ = call("fit", "text.txt", "--max-lag", "1", "--no-context", "--halves", "0", "--split", "0")
    check(found, "fit", absent={"lags[].found", *(name for name in listed("fit") if name.startswith("held_out[]."))})
    assert [row["context"] for row in found["lags"]] == [None]
    assert found["held_out"] == []


def test_a_benchmark_with_baselines_from_a_file_that_is_named(call):
    """NumPy and ours come with the package; those of the file stand between them, if what they need is installed."""
    Path("more.py").write_text(
        "from scb.training.benchmark import Baseline, numpy_step\n"
        "BASELINES = {'mine': Baseline(numpy_step), 'absent': Baseline(numpy_step, needs='no_such_library')}\n"
    )
    found, status, said = call("bench", "--sizes", "3x50", "--repeats", "1", "--out", "out.md", "--baselines", "more.py")
    check(found, "benchmark")
    assert status == 0
    assert "wrote out.md" in said
    assert list(found["sizes"][0]["ms"]) == ["NumPy", "mine", "scb, 1 thread", "scb, 2 threads"]
    header = next(line for line in Path("out.md").read_text().splitlines() if line.startswith("| N"))
    assert header == "| N | T | NumPy | mine | scb, 1 thread | scb, 2 threads |"
    Path("benchmarks").mkdir()
    Path("more.py").rename("benchmarks/step_baselines.py")
    assert list(baselines(None)) == ["NumPy", "scb, 1 thread", "scb, 2 threads"]


def test_what_is_refused_leaves_stdout_empty(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for arguments in (["plan", "3", "5000", "9000"], ["show", "nowhere"], ["fit", "nowhere.txt"]):
        with pytest.raises(SystemExit) as end:
            main([*arguments, "--json"])
        assert end.value.code == 2
        out, said = capsys.readouterr()
        assert out == ""
        assert said.startswith("scb: ")
