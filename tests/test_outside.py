"""A package of its own (tests/outside) adds a recipe, a rule that remembers, a source and a kind of sweep; the command has them."""

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

from scb.jobs.table import read_table
from scb.training.run import Run

HERE = Path(__file__).parent
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
"""
THINGS = """
NUMBER = 3

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


@pytest.fixture
def command(installed, tmp_path):
    """Runs scb in a new process that sees both packages."""
    known = {"PYTHONPATH": str(installed), "COLUMNS": "80", "TERM": "dumb", "NUMBA_NUM_THREADS": "1"}

    def run(*arguments, begin=False):
        options = {"env": os.environ | known, "cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([SCB, *arguments], **options)
        if begin:
            return process
        out, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return run


def test_the_command_runs_the_recipe_with_its_rule(command, tmp_path):
    done = command("train", "--recipe", "heavy_ball", "--T", "100")
    assert done.returncode == 0, done.stderr
    assert "verdict, from held-out samples: learned\n" in done.stdout
    run = Run.load(tmp_path / "runs" / "1")
    assert (run.recipe, run.step, run.samples) == ("heavy_ball", 600, 600 * 1024)
    wrong = command("train", "--recipe", "heavy_ball", "--set", "steps=[1,2]")
    assert wrong.stderr == "scb: steps = [1, 2]: it must be an integer\n"


def test_the_command_runs_the_source_and_the_rule_with_our_recipes(command, tmp_path):
    few = ("--T", "30", "--set", "steps=5")
    noisy = command("train", "--recipe", "paper", "--source", "noisy_labels", *few)
    assert noisy.returncode == 0, noisy.stderr
    moved = command("train", "--recipe", "sgd", *few, "rule=momentum")
    assert moved.returncode == 0, moved.stderr
    one, two = (Run.load(tmp_path / "runs" / name) for name in "12")
    assert (one.step, two.step) == (15, 10)
    assert "source = 'x': it must be one of 'fresh'" in command("train", "--source", "x").stderr
    assert "rule = 'x': it must be one of 'proximal', 'vanilla'" in command("train", "--recipe", "sgd", "--set", "rule=x").stderr


def test_the_sweep_has_the_kind_and_the_recipe(command, tmp_path):
    (tmp_path / "own.toml").write_text('kind = "heavy_ball"\nseeds = 2\n[fixed]\nsteps = 20\n[grid]\nbeta = [0.0, 0.9]\n')
    done = command("sweep", "own.toml", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "heavy_ball: 4 of 4 runs done" in done.stdout
    table, _ = read_table(tmp_path / "results" / "own" / "table.parquet")
    assert table["beta"].tolist() == [0.0, 0.0, 0.9, 0.9]
    assert len(set(table["dist_A"].tolist())) == 4
    (tmp_path / "trained.toml").write_text(
        'kind = "train"\nseeds = 1\n[fixed]\nrecipe = "heavy_ball"\nsteps = 5\n[grid]\nbatch_size = [8, 16]\n'
    )
    done = command("sweep", "trained.toml", "--jobs", "1")
    assert "train: 2 of 2 runs done" in done.stdout, done.stderr


def test_what_the_rule_remembers_is_resumed_to_the_last_bit(command, tmp_path):
    options = ("--recipe", "heavy_ball", "--T", "60", "--set", "steps=4000", "batch_size=64")
    assert command("train", *options, "--out", "whole").returncode == 0
    broken = command("train", *options, "--out", "broken", begin=True)
    while not (tmp_path / "broken" / "run.safetensors").exists():
        time.sleep(0.005)
    broken.send_signal(signal.SIGINT)
    _, said = broken.communicate()
    assert said == "scb: interrupted; go on with: scb train --out broken --resume\n"
    stopped = Run.load(tmp_path / "broken")
    assert stopped.step < 4000
    assert set(stopped.state) == {"V", "A"}
    assert np.abs(stopped.state["A"]).max() > 0
    assert command("train", "--out", "broken", "--resume").returncode == 0
    whole, resumed = (Run.load(tmp_path / name) for name in ("whole", "broken"))
    np.testing.assert_array_equal(whole.V, resumed.V)
    np.testing.assert_array_equal(whole.A, resumed.A)
    for name, column in whole.history.items():
        np.testing.assert_array_equal(column, resumed.history[name])


def test_what_cannot_be_loaded_is_one_line_and_the_others_go_on(command, tmp_path):
    missing = "of package 'broken' cannot be loaded (no_such_module:{}): ModuleNotFoundError: No module named 'no_such_module'\n"
    assert command("train", "--recipe", "absent").stderr == f"scb: recipe = 'absent' {missing.format('recipe')}"
    rule = command("train", "--recipe", "sgd", "--set", "rule=absent")
    assert rule.stderr == f"scb: rule = 'absent' {missing.format('rule')}"
    assert "argument 'task' without a type" not in command("train", "--recipe", "untyped").stderr
    assert "broken_things:untyped has an argument 'steps' without a type" in command("train", "--recipe", "untyped").stderr
    (tmp_path / "kind.toml").write_text('kind = "absent"\n')
    assert missing.format("Job") in command("sweep", "kind.toml").stderr
    (tmp_path / "kind.toml").write_text('kind = "number"\n')
    assert "InputError: it is a int, and must be a subclass of scb.jobs.job.Job" in command("sweep", "kind.toml").stderr
    assert command("train", "--recipe", "heavy_ball_2", "--T", "20", "--set", "steps=2").returncode == 0


def test_the_how_to_shows_this_package():
    page = (HERE.parent / "docs" / "how-to-add.md").read_text()
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.S)
    assert (PACKAGE / "heavy_ball.py").read_text() in shown
    assert (PACKAGE / "pyproject.toml").read_text() in shown
