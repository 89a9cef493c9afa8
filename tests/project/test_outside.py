"""A package of its own (tests/outside) adds a recipe, a rule that remembers, a source and a kind of sweep; the command has them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from scb.jobs.table_file import read_table
from scb.training.run import Run

HERE = Path(__file__).parents[1]
PACKAGE = HERE / "outside"
SCB = Path(sys.executable).with_name("scb")
BROKEN = """[scb.recipes]
absent = no_such_module:recipe
heavy_ball_2 = heavy_ball:heavy_ball
untyped = broken_things:untyped
[scb.rules]
absent = no_such_module:rule
[scb.sweeps]
absent = no_such_module:Job
number = broken_things:NUMBER
unnamed = broken_things:Unnamed
[scb.sources]
number = broken_things:NUMBER
"""
THINGS = """
from scb.jobs.job import Job

NUMBER = 3

class Unnamed(Job):
    def run(self):
        return {}

def untyped(task, steps=3):
    return None
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package, built and installed by pip into a directory of its own; and beside it one whose entry points lead nowhere."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(PACKAGE, folder / "source")
    target = folder / "target"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", target, source], check=True)
    about = target / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(BROKEN)
    (target / "broken_things.py").write_text(THINGS)
    return target


MANY = """
import contextlib, io, json, sys
from scb.cli import main

for line in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(line)
    print(json.dumps([out.getvalue(), err.getvalue()]))
"""


@pytest.fixture
def around(installed):
    """The environment of a process that sees both packages."""
    return os.environ | {"PYTHONPATH": str(installed), "COLUMNS": "80", "TERM": "dumb", "NUMBA_NUM_THREADS": "1"}


@pytest.fixture
def commands(around, tmp_path):
    """Runs command lines of scb, one after the other in one new process; what each writes to stdout and to stderr."""

    def run(*lines):
        given = json.dumps([line.split() for line in lines])
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", MANY],
            input=given,
            env=around,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_the_command_runs_the_recipe_the_rule_and_the_source(commands, tmp_path):
    learned, wrong, noisy, moved, no_source, no_rule = commands(
        "train --recipe heavy_ball --T 100",
        "train --recipe heavy_ball --set steps=[1,2]",
        "train --recipe paper --source noisy_labels --T 30 --set steps=5",
        "train --recipe sgd --T 30 --set steps=5 rule=momentum",
        "train --source x",
        "train --recipe sgd --set rule=x",
    )
    assert "verdict, estimated from held-out samples: learned\n" in learned[0], learned[1]
    run, by_source, by_rule = (Run.load(tmp_path / "runs" / name) for name in "123")
    assert (run.recipe, run.step, run.samples) == ("heavy_ball", 600, 600 * 1024)
    assert wrong[1] == "scb: steps = [1, 2]: it must be an integer\n"
    assert (by_source.recipe, by_source.step, noisy[1]) == ("paper", 15, "")
    assert (by_rule.recipe, by_rule.step, moved[1]) == ("sgd", 10, "")
    assert "source = 'x': it must be one of 'fresh'" in no_source[1]
    assert "rule = 'x': it must be one of 'proximal', 'vanilla'" in no_rule[1]


def test_the_sweep_has_the_kind_and_the_recipe(commands, tmp_path):
    (tmp_path / "own.toml").write_text('kind = "heavy_ball"\nseeds = 2\n[fixed]\nsteps = 20\n[grid]\nbeta = [0.0, 0.9]\n')
    (tmp_path / "trained.toml").write_text(
        'kind = "train"\nseeds = 1\n[fixed]\nrecipe = "heavy_ball"\nsteps = 5\n[grid]\nbatch_size = [8, 16]\n'
    )
    own, trained = commands("sweep own.toml --jobs 1", "sweep trained.toml --jobs 1")
    assert "heavy_ball: 4 of 4 runs done" in own[0], own[1]
    assert "train: 2 of 2 runs done" in trained[0], trained[1]
    table, _ = read_table(tmp_path / "results" / "own" / "table.parquet")
    assert table["beta"].tolist() == [0.0, 0.0, 0.9, 0.9]
    assert len(set(table["dist_A"].tolist())) == 4


def test_what_cannot_be_loaded_is_one_line_and_the_others_go_on(commands, tmp_path):
    for kind in ("absent", "number", "unnamed"):
        (tmp_path / f"{kind}.toml").write_text(f'kind = "{kind}"\n')
    recipe, rule, source, untyped, kind, number, unnamed, sound = commands(
        "train --recipe absent",
        "train --recipe sgd --set rule=absent",
        "train --source number",
        "train --recipe untyped",
        "sweep absent.toml",
        "sweep number.toml",
        "sweep unnamed.toml",
        "train --recipe heavy_ball_2 --T 20 --set steps=2",
    )
    missing = "of package 'broken' cannot be loaded (no_such_module:{}): ModuleNotFoundError: No module named 'no_such_module'\n"
    assert recipe[1] == f"scb: recipe = 'absent' {missing.format('recipe')}"
    assert rule[1] == f"scb: rule = 'absent' {missing.format('rule')}"
    assert "it is of type int, and must be something that can be called" in source[1]
    assert "broken_things:untyped has an argument 'steps' without a type" in untyped[1]
    assert missing.format("Job") in kind[1]
    assert "it is of type int, and must be a subclass of scb.jobs.job.Job" in number[1]
    assert "Unnamed has no label" in unnamed[1]
    assert "wrote runs/1/curves.png" in sound[0], sound[1]


def test_what_the_rule_remembers_is_resumed_to_the_last_bit(around, commands, tmp_path):
    line = "train --recipe heavy_ball --T 60 --set steps=2000 batch_size=64 --out "
    options = {"env": around, "cwd": tmp_path, "text": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    broken = subprocess.Popen([SCB, *line.split(), "broken"], **options)
    while not (tmp_path / "broken" / "run.safetensors").exists():
        time.sleep(0.005)
    broken.send_signal(signal.SIGINT)
    _, said = broken.communicate()
    assert said == "scb: interrupted; go on with: scb train --out broken --resume\n"
    stopped = Run.load(tmp_path / "broken")
    assert stopped.step < 2000
    assert set(stopped.state) == {"V", "A"}
    assert np.abs(stopped.state["A"]).max() > 0
    commands("train --out broken --resume", line + "whole")
    whole, resumed = (Run.load(tmp_path / name) for name in ("whole", "broken"))
    np.testing.assert_array_equal(whole.V, resumed.V)
    np.testing.assert_array_equal(whole.A, resumed.A)
    for name, column in whole.history.items():
        np.testing.assert_array_equal(column, resumed.history[name])


def test_the_how_to_shows_this_package():
    page = (HERE.parent / "docs" / "howto" / "add-in-your-own-package.md").read_text()
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.S)
    assert (PACKAGE / "heavy_ball.py").read_text() in shown
    assert (PACKAGE / "pyproject.toml").read_text() in shown
