"""What a stranger does to the commands: streams that are full, odd paths, little memory, functions that return nonsense."""

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import scb
import scb.cli.train
from commands import ENVIRONMENT, forked
from scb.cli import main
from scb.cli.advice import advise
from scb.cli.terminal import terminal
from scb.files import make_directory
from scb.inputs import InputError
from scb.model import Gradient
from scb.training.settings import TrainingSettings

SCB = Path(sys.executable).with_name("scb")
QUICK = ("train", "--recipe", "paper", "--T", "40", "--set", "steps=3")
TASK = scb.Task.random(3, 40, 2, seed=0)
NOT_UTF8 = os.fsdecode(b"na\xefve")


def call(*arguments, program=None, **kwargs):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs
    return subprocess.run([program or forked(), *arguments], text=True, errors="replace", **{"env": ENVIRONMENT} | streams)


def shell(line, cwd):
    return subprocess.run(["/bin/bash", "-o", "pipefail", "-c", line], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)


# ------------------------------------------------------------------------------------------------------ streams


@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        (">&-", 0, ""),
        ("| /usr/bin/head -n 0", 0, ""),
        (">&- 2>&-", 0, ""),
        ("> /dev/full", 1, "scb: the output could not be printed: No space left on device\n"),
        ("> /dev/full 2> /dev/full", 1, ""),
    ],
)
@pytest.mark.parametrize("command", [("plan", "3", "5000", "2"), ("--version",), ("--help",), QUICK])
def test_output_that_nobody_takes_ends_no_work(tmp_path, command, redirection, status, said):
    program = forked() if command == QUICK else SCB
    result = shell(f"{shlex.join([str(program), *command])} {redirection}", tmp_path)
    assert (result.returncode, result.stderr) == (status, said)
    if command == QUICK:
        assert scb.Run.load(tmp_path / "runs" / "1").finished
        assert (tmp_path / "runs" / "1" / "curves.png").exists()


def test_what_is_wrong_is_said_where_stdout_is_full(tmp_path):
    result = shell(f"{forked()} plan 3 50 90 > /dev/full", tmp_path)
    assert (result.returncode, result.stderr) == (2, "scb: sparsity = 90: it must be at most 50\n")


# ------------------------------------------------------------------------------------------------------ paths


def test_names_that_are_not_utf8(tmp_path):
    text = tmp_path / f"{NOT_UTF8}.txt"
    text.write_text("abbc" * 200)
    table = tmp_path / f"{NOT_UTF8}.csv"
    table.write_text("\n".join(["c", *"abbc" * 200]))
    for file in (text, table):
        fit = call("fit", file.name, "--max-lag", "3", "--halves", "0", "--out", NOT_UTF8 + file.suffix[1:], cwd=tmp_path)
        assert fit.returncode == 0, fit.stderr
        report = tmp_path / (NOT_UTF8 + file.suffix[1:]) / "report.html"
        assert f"na?ve{file.suffix}" in report.read_text(encoding="utf-8")
        assert call("show", NOT_UTF8 + file.suffix[1:], cwd=tmp_path).returncode == 0
    (tmp_path / f"{NOT_UTF8}.toml").write_text('recipe = "paper"\nT = 40\n[options]\nsteps = 3\n')
    train = call("train", "--config", f"{NOT_UTF8}.toml", "--out", NOT_UTF8, cwd=tmp_path)
    assert train.returncode == 0
    assert "wrote na?ve/curves.png\n" in train.stdout
    missing = call("train", "--config", NOT_UTF8 + "x", cwd=tmp_path)
    assert (missing.returncode, missing.stderr) == (2, "scb: na?vex is not there\n")


def test_a_path_of_1500_levels_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    deep = Path("/".join("d" * 1500))
    make_directory(deep)
    assert deep.is_dir()
    os.system("rm -rf d")  # pytest's own way of removing it is recursive


def test_a_name_that_is_too_long_is_said_without_its_middle(tmp_path):
    result = call(*QUICK, "--out", "d" * 300, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == f"scb: {'d' * 78} … {'d' * 78}: File name too long\n"


def test_a_directory_that_was_deleted_is_refused(tmp_path, monkeypatch):
    result = shell(f"mkdir gone; cd gone; rmdir ../gone; {shlex.join([str(forked()), *QUICK])}", tmp_path)
    assert (result.returncode, result.stderr) == (2, "scb: runs: No such file or directory\n")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(OSError, match="cannot write a: No such file"):
        make_directory(Path("a/b"))


def test_a_config_that_is_no_file_is_named(tmp_path):
    for name, said in (("nowhere.toml", "is not there"), (".", "is a directory, where a file is wanted")):
        result = call("train", "--config", name, cwd=tmp_path)
        assert (result.returncode, result.stderr) == (2, f"scb: {name} {said}\n")
    result = call("lab", "--out", ".", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, "scb: . is a directory, and must be a file: give another name\n")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------ memory


@pytest.mark.parametrize("megabytes", [60, 300, 600])
def test_too_little_address_space_is_one_line(tmp_path, megabytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    result = call(*QUICK, program=SCB, cwd=tmp_path, preexec_fn=limit)
    said = f"scb: out of memory ('ulimit -v' allows {megabytes} MB, and at least 1,024 are needed)\n"
    assert (result.returncode, result.stderr) == (2, said)
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_does_not_fit_is_one_line(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    result = call("train", "--T", "2000000000", program=SCB, cwd=tmp_path, preexec_fn=limit)
    assert result.returncode == 2
    assert result.stderr.startswith("scb: out of memory (")
    assert result.stderr.count("\n") == 1


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("steps", [0, (0, 0, 0)])
def test_a_recipe_without_steps_is_refused(steps):
    with pytest.raises(InputError, match="recipe 'paper' has 0 steps in all stages"):
        scb.recipes.paper(TASK, steps=steps)
    with pytest.raises(InputError, match="recipe 'softmax' has 0 steps"):
        scb.recipes.softmax(TASK, steps=0)
    assert scb.train(TASK, scb.recipes.paper(TASK, steps=(0, 10, 0))).step == 10


@pytest.mark.parametrize("options", [("--device", "cuda"), ("--set", "steps=0"), ("--seed", "-1")])
def test_what_is_refused_leaves_nothing(tmp_path, options):
    result = call("train", "--recipe", "paper", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_diverged_run_ends_with_status_1_and_advice_that_was_tried(tmp_path):
    result = call("train", "--T", "60", "--eta", "5", cwd=tmp_path)
    assert result.returncode == 1
    assert "diverged at step" in result.stdout
    advice = result.stdout.partition("tried on this task, these settings learn it:\n")[2]
    again = call(*shlex.split(advice)[1:], cwd=tmp_path)
    assert again.returncode == 0
    assert "verdict, estimated from held-out samples: learned\n" in again.stdout
    assert call("show", "runs/1", cwd=tmp_path).returncode == 0  # a look at it is no failure


def test_settings_that_were_not_seen_to_learn_the_task_are_not_recommended(capsys):
    console = terminal()
    usual = TrainingSettings(T=40)
    for verdict in (None, "learned", "undecided: ‖A − Q‖ is about 0.05"):
        advise(console, verdict, usual)
    assert capsys.readouterr().out == ""
    advise(console, "learned up to normalisation: more", usual)
    assert capsys.readouterr().out == "no settings are known that learn this task\n"
    advise(console, "too slow: more", TrainingSettings(T=40, recipe="paper"), patience=0)
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "trying recipe 'tuned' on this task, for up to 0 s …"
    said = " ".join(" ".join(rest).split())
    assert said == "recipe 'tuned' was tried for 0 s, which is too short to say whether it learns this task"


# ------------------------------------------------------------------------------------------------------ functions of one's own


def with_stage(**options):
    """One stage of two steps with these options."""
    start = scb.recipes.paper(TASK).start
    stage = scb.Stage("mine", 2, **{"eta_V": 0.1, "eta_A": 0.1, "check_every": 1} | options)
    return scb.Recipe("mine", start, TASK.mu, stages=(stage,))


def nothing(*arguments):
    """A function that forgets to return."""


def transposed(V, A, *rest):
    return V, A.T


def not_a_number(V, A, *rest):
    return V, A * np.nan


class Forgetful:
    """A rule with a memory, which forgets to return it."""

    def start(self, V, A):
        return {}

    def __call__(self, V, A, gV, gA, mu, stage, state):
        return V, A


@pytest.mark.parametrize("use", [lambda f: {"rule": f}, lambda f: {"enter": (f,)}, lambda f: {"leave": (f,)}])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (nothing, "nothing of stage 'mine' returns None: it must return V and A"),
        (transposed, r"the A that the \w+ transposed of stage 'mine' returns has shape \(3, 40\): it must be \(40, 3\)"),
        (not_a_number, "not_a_number of stage 'mine' returns NaN"),
    ],
)
def test_a_rule_or_rounding_that_returns_nonsense_is_named(use, function, message):
    with pytest.raises(InputError, match=message):
        scb.train(TASK, with_stage(**use(function)))


def test_other_functions_that_return_nonsense_are_named():
    with pytest.raises(InputError, match=r"the rule Forgetful of stage 'mine' returns .*: it must return V, A and its state"):
        scb.train(TASK, with_stage(rule=Forgetful()))
    with pytest.raises(InputError, match="the condition nothing of stage 'mine' returns None: it must return True or False"):
        scb.train(TASK, with_stage(stop=nothing))
    with pytest.raises(InputError, match=r"enter = .* in stage 'mine': it must be a list or tuple of functions"):
        with_stage(enter=nothing)
    with pytest.raises(InputError, match=r"callbacks = .*: it must be a list or tuple of functions"):
        scb.train(TASK, with_stage(), callbacks=nothing)  # pyright: ignore


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returns None: it must return a scb.model.Gradient"),
        (Gradient(0.5, TASK.P, TASK.P, 1), r"the gradient of A that .* returns has shape \(3, 3\): it must be \(40, 3\)"),
        (Gradient(None, TASK.P, TASK.Q, 1), "returns the loss None"),
        (Gradient(0.5, TASK.P, TASK.Q, None), "the number of samples that .* returns = None"),
    ],
)
def test_a_source_that_returns_nonsense_is_named(answer, message):
    def source(V, A, batch_size, key):
        return answer

    with pytest.raises(InputError, match=message):
        scb.train(TASK, with_stage(), source=source)
    with pytest.raises(InputError, match="source = 3: it must be a function"):
        scb.train(TASK, with_stage(), source=3)  # pyright: ignore


def test_config_files_with_odd_content_are_refused_by_name(tmp_path):
    for text in ("T = nan", "T = 1e400", "seed = -1", "options = []", "N = [3]", "every = true"):
        (tmp_path / "odd.toml").write_text(text)
        with pytest.raises(InputError):
            TrainingSettings.read(tmp_path / "odd.toml").build()


DIGITS = "1" + "0" * 5000


@pytest.mark.parametrize(
    ("name", "content", "command", "said"),
    [
        ("a.toml", f"N = {DIGITS}", "train --config", "a.toml is not TOML: it has an integer of too many digits"),
        ("a.toml", f"seeds = {DIGITS}", "sweep", "a.toml: not TOML: it has an integer of too many digits"),
        ("a.toml", "x = " + "[" * 2000, "sweep", "a.toml: not TOML: its values are nested too deeply"),
        ("a.toml", "ÿ".encode("latin-1"), "sweep", "a.toml: it is not text in UTF-8 (invalid start byte at byte 0)"),
        ("a.jsonl", f"[{DIGITS}]", "fit", "a.jsonl: it cannot be read as jsonl: line 1: it has an integer of too many digits"),
        ("a.csv", "a\nb\n".encode("utf-16"), "fit", "a.csv: it is not text in UTF-8 (invalid start byte at byte 0)"),
        ("a.txt", "ab", "fit --sep \\ ", r"a.txt: sep = '\\': it must be characters, or an escape such as \t"),
        ("a.txt", "ab", "show b", "b is not there"),
    ],
)
def test_what_is_wrong_is_said_in_our_own_words(tmp_path, monkeypatch, capsys, name, content, command, said):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SystemExit, match="2"):
        main([*command.split(), *([] if command.startswith("show") else [name])])
    assert capsys.readouterr().err == f"scb: {said}\n"


def test_an_option_of_5000_digits_is_no_number(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--set", f"eta={DIGITS}"])
    assert re.fullmatch("scb: eta = '10*…: it must be a number\n", capsys.readouterr().err)


def test_an_empty_number_is_no_empty_path(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["plan", "", "500", "2"])
    assert "Error parsing N" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--out", "file/table.md"], "file is not a directory: give another name"),
        (["--out", "."], ". is a directory, and must be a file: give another name"),
        (["--sizes", "3x200", "nonsense"], "sizes has 'nonsense': it must look like 3x5000"),
    ],
)
def test_bench_refuses_before_it_times(tmp_path, monkeypatch, capsys, options, said):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "--repeats", "1", "--sizes", "3x200", *options])
    assert capsys.readouterr().err == f"scb: {said}\n"
