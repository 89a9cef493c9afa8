"""What ``pip install .`` is enough for, without any extra, and what is said where one is missing."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from scb.extras import INSTALL

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
PICTURE = "a picture needs matplotlib: pip install '.[report]' in the clone"
REPORT = PICTURE.replace("a picture", "the report")
PLAIN = f"""
import sys
for package in {[*INSTALL, "polars"]!r}:
    sys.modules[package] = None  # as if it were not installed
import scb
"""


def run(code, cwd):
    return subprocess.run([sys.executable, "-c", PLAIN + code], capture_output=True, text=True, cwd=cwd, timeout=300)


def test_extras_are_no_dependencies_and_are_declared():
    assert not {part.split(">")[0] for part in PROJECT["dependencies"]} & set(INSTALL)
    extras = PROJECT["optional-dependencies"]
    for package, command in INSTALL.items():
        extra = re.search(r"\[(\w+)\]", command)
        if extra:
            assert any(part.startswith(package) for part in extras[extra[1]]), package


def test_training_recovery_and_the_estimator_do_without_extras(tmp_path):
    code = """
task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
run = scb.train(task, scb.recipes.paper(task, steps=(5, 5, 5)), checkpoint="run")
assert scb.Run.load("run").step == 15
assert len(run._repr_html_()) > 100 and len(str(run)) > 100
assert scb.recover(scb.sample(task, 2000, seed=1))._repr_html_()
words = ["a", "b", None, "c"] * 100
model = scb.SparseContextualBigram(max_lag=4).fit(words)
model.save("model.safetensors")
print(model.classes_.tolist(), len(model.sample(5)), model.n_windows_)
for wanted in (run.plot, run.to_pandas, model.plot):
    try:
        wanted()
    except scb.InputError as error:
        print(error)
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    found, *missing = done.stdout.splitlines()
    assert found == "['a', 'b', 'c'] 5 199"  # 199 symbols follow one that is known
    assert missing == [
        PICTURE,
        "to_pandas() needs pandas: pip install pandas",
        PICTURE,
    ]


COMMANDS = [
    (["fit", "poem.txt", "--max-lag", "3", "--halves", "0"], 0, f"{PICTURE} no report.html: {REPORT}"),
    (["fit", "poem.csv"], 2, "poem.csv: a table needs pyarrow: pip install '.[tables]' in the clone"),
    (["reproduce", "--quick"], 2, "scb reproduce needs matplotlib: pip install '.[report]' in the clone"),
    (["sweep", "support"], 2, "the diagram of a sweep needs matplotlib: pip install '.[report]' in the clone"),
    (["sweep", "small.toml", "--jobs", "1"], 0, "results/small/table.json"),
    (["train", "--T", "50"], 0, PICTURE),
    (["plan", "3", "5000", "2"], 0, "samples:"),
]
ONE_BY_ONE = """
import contextlib, io, json
from scb.cli import main

for line in json.load(open("lines.json")):
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
        except SystemExit as ended:
            status = ended.code
    print(json.dumps([status, out.getvalue() + err.getvalue()]))
"""


def test_commands_without_extras(tmp_path):
    (tmp_path / "poem.txt").write_text("abcabcaab" * 40)
    (tmp_path / "small.toml").write_text('kind = "recover"\nseeds = 2\n[grid]\nT = [10, 20]')
    (tmp_path / "poem.csv").write_text("x\n" + "a\nb\n" * 40)
    (tmp_path / "lines.json").write_text(json.dumps([line for line, *_ in COMMANDS]))
    done = run(ONE_BY_ONE, tmp_path)
    assert done.returncode == 0, done.stderr
    for answer, (line, status, said) in zip(done.stdout.splitlines(), COMMANDS, strict=True):
        ended, text = json.loads(answer)
        assert ended == status, (line, text)
        assert said in " ".join(text.split()), line
