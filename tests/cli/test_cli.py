import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from commands import ENVIRONMENT, forked
from scb.cli import COMMANDS, main
from scb.task import Task
from scb.training.run import Run
from scb.training.settings import TrainingSettings

SCB = Path(sys.executable).with_name("scb")


def scb(*arguments, **kwargs):
    return subprocess.run(
        [forked(), *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        **kwargs,
    )


@pytest.fixture
def here(monkeypatch, capsys, tmp_path):
    """Runs a command line in an empty directory and in this process; what it writes to stdout, or to stderr if it ends badly."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words, status=None):
        ended = 0
        try:
            main(list(words))
        except SystemExit as end:
            ended = end.code
        assert status in (None, ended)
        printed = capsys.readouterr()
        return printed.err if ended else printed.out

    return run


def test_plan_prints_a_table_of_80_columns():
    result = scb("plan", "3", "5000", "2", "--eps", "0.05", "--delta", "0.05")
    assert result.returncode == 0, result.stderr
    for word in ("Stage 1", "Stage 2", "Stage 3", "Transfer", "λ", "threshold"):
        assert word in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(here, command):
    told = here(command, "--help")
    assert len(told.splitlines()) > 7
    assert "None" not in told  # an option without a default has none to show


def test_bad_input_is_one_line_and_status_2():
    result = scb("plan", "3", "5000", "9000")
    assert result.returncode == 2
    assert result.stderr == "scb: sparsity = 9000: it must be at most 5,000\n"
    assert scb("nonsense").returncode == 2


def test_bench_names_a_file_of_baselines_that_is_not_there(here):
    assert here("bench", "--baselines", "nowhere.py", status=2) == "scb: nowhere.py is not there, or not a file\n"


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGKILL])
def test_the_busy_neighbours_of_a_benchmark_end_with_it(how):
    code = (
        "import time; from scb.training.benchmark import busy_neighbours\n"
        "with busy_neighbours(): print('busy', flush=True); time.sleep(60)"
    )
    bench = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert bench.stdout.readline() == "busy\n"
    neighbours = psutil.Process(bench.pid).children()
    assert len(neighbours) == len(os.sched_getaffinity(0))
    bench.send_signal(how)
    bench.communicate()
    try:
        assert psutil.wait_procs(neighbours, timeout=10)[1] == []
    finally:
        for left in neighbours:
            if left.is_running():
                left.kill()


def test_train_and_show(tmp_path):
    config = tmp_path / "run.toml"
    config.write_text('N = 4\nT = 60\nensemble = "uniform"\nrecipe = "paper"\nseed = 3\n[options]\nsteps = [20, 10, 5]\n')
    result = scb("train", "--config", config, "--T", "80", "--K-P", "0.2", "--set", "lam=1e-4", "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert "N = 4, T = 80, sparsity 2, uniform, K_P = 0.2" in result.stdout
    assert abs(Task.load(tmp_path / "run" / "task.npz").K_P - 0.2) < 1e-12
    assert max(map(len, result.stdout.splitlines())) <= 80
    for name in ("config.json", "task.npz", "run.safetensors", "curves.png"):
        assert (tmp_path / "run" / name).stat().st_size > 100
    run = Run.load(tmp_path / "run")
    assert (run.step, run.seed, run.finished) == (35, 3, True)
    assert TrainingSettings.load(tmp_path / "run").options == {"steps": [20, 10, 5], "lam": 1e-4}
    shown = scb("show", tmp_path / "run")
    assert shown.returncode == 0
    assert result.stdout.startswith(shown.stdout)
    assert "verdict" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "lamb=1"), "recipe 'tuned' has no option 'lamb'"),
        (("--recipe", "sgd", "--lam", "1e-4"), "recipe 'sgd' has no option 'lam'"),
        (("--source", "nowhere"), "source = 'nowhere': it must be one of 'fresh', 'reference', 'population', 'gaussian'"),
        (("--set", "lam"), "--set lam: it must be name=value"),
        (("--N", "1"), "N = 1: there must be at least 2"),
        (("--ensemble", "weak"), "ensemble = 'weak': it must be one of 'strong', 'dirichlet', 'uniform', 'softmax'"),
        (("--K-P", "2"), "K_P = 2.0: it must lie between 0 and 1"),
        (("--set", "lam=-1"), "lam = -1.0 in stage '2'"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("--resume",), "holds no run"),
    ],
)
def test_train_names_bad_input(here, arguments, message):
    said = here("train", *arguments, "--out", "run", status=2)
    assert message in said
    assert said.count("\n") == 1


def test_bad_config_files_are_named(tmp_path):
    for text, message in (
        ("N = ", "is not TOML"),
        ("M = 3", "has 'M'"),
        ('N = "3"', "N = '3': it must be an integer"),
        ('ensemble = "weak"', "ensemble = 'weak': it must be one of 'strong', 'dirichlet'"),
        ("K_P = true", "K_P = True: it must be a number"),
        ("options = 3", "options = 3: it must be a table"),
        ('recipe = "x"', "recipe = 'x'"),
    ):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(ValueError, match=message):
            TrainingSettings.read(tmp_path / "bad.toml")


def test_diverging_run_says_so(tmp_path):
    result = scb("train", "--recipe", "sgd", "--T", "100", "--set", "preconditioned=false", "eta=[50.0, 50.0]", "--out", tmp_path)
    assert result.returncode == 1
    assert "diverged at step" in result.stdout


def test_the_default_shows_the_method_working_and_says_so(here):
    trained = here("train")
    assert "verdict, estimated from held-out samples: learned\n" in trained
    assert "checked against the true P and Q: learned (" in trained
    assert "verdict, estimated from held-out samples: learned\n" in here("show")


@pytest.mark.parametrize(("task_seed", "seed"), [(0, 0), (1, 3), (2, 5)])
def test_a_run_that_is_too_slow_says_which_settings_would_do_and_they_do(here, task_seed, seed):
    """The command that is printed, run as it stands."""
    first = here("train", "--T", "300", "--recipe", "paper", "--seed", str(seed), "--task-seed", str(task_seed))
    assert "verdict, estimated from held-out samples: learned\n" not in first
    command = first.replace("\\\n", "").partition("these settings learn it:\n")[2]
    words = shlex.split(command.splitlines()[0])
    assert words[:2] == ["scb", "train"]
    second = here(*words[1:])
    assert "verdict, estimated from held-out samples: learned\n" in second
    assert "checked against the true P and Q: learned (" in second


def test_a_run_is_kept_and_resumed_as_it_is_only(here, tmp_path):
    options = ("--recipe", "paper", "--T", "40", "--eta", "0.02", "--lam", "1e-4", "--batch-size", "8", "--set", "steps=3")
    here("train", *options)
    file = tmp_path / "runs" / "1" / "run.safetensors"
    before = file.read_bytes()
    assert TrainingSettings.load(file.parent).options == {"eta": 0.02, "lam": 1e-4, "batch_size": 8, "steps": 3}
    assert Run.load(file.parent).step == 9
    assert here("train", "--out", "runs/1").startswith("scb: runs/1 holds a run, which is kept: give another directory as --out")
    changed = here("train", "--resume", "--set", "lam=5", "--N", "7", "--seed", "9")
    assert "runs/1 has N = 3, seed = 0, lam = 0.0001, where N = 7, seed = 9, lam = 5.0 is asked for" in changed
    (tmp_path / "other.toml").write_text("T = 41\nrecipe = 'sgd'\n")
    assert "T = 41, recipe = sgd" in here("train", "--resume", "--config", "other.toml")
    same = ("--N", "3", "--lam", "1e-4", "--set", "resolve_sign=true")  # as it is, in other words
    assert "wrote runs/1/curves.png" in here("train", "--resume", *same)
    assert file.read_bytes() == before
    assert "wrote runs/2/curves.png" in here("train", *options)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["1", "2"]


def test_an_interrupt_says_how_to_go_on(tmp_path):
    out = tmp_path / "a run"
    long = ["train", "--recipe", "paper", "--T", "300", "--set", "steps=100000", "--out", str(out)]
    process = subprocess.Popen([SCB, *long], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not (out / "run.safetensors").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said == f"scb: interrupted; go on with: scb train --out '{out}' --resume\n"


def kill_after_next_checkpoint(arguments, out, delay):
    """Start, wait until a new checkpoint is there and a little longer, and SIGKILL; whether it was still running."""
    file = out / "run.safetensors"
    before = file.stat().st_mtime_ns if file.exists() else 0
    process = subprocess.Popen([SCB, *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    while process.poll() is None and (not file.exists() or file.stat().st_mtime_ns == before):
        time.sleep(0.002)
    time.sleep(delay)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return running


def test_a_run_killed_again_and_again_ends_bit_identical(tmp_path):
    """SIGKILL at start-up and at arbitrary moments after checkpoints; then compare with an unbroken run."""
    settings = [
        "--recipe",
        "paper",
        "--T",
        "300",
        "--set",
        "steps=[5000, 5000, 500]",
        "threshold=0.001",
        "--seed",
        "4",
        "--every",
        "7",
    ]
    assert scb("train", *settings, "--out", tmp_path / "whole").returncode == 0
    out = tmp_path / "broken"
    process = subprocess.Popen([SCB, "train", *settings, "--out", out], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    while not (out / "config.json").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kills = [kill_after_next_checkpoint(["train", "--out", out, "--resume"], out, delay) for delay in (0.0, 0.01, 0.03, 0.1)]
    assert any(kills)
    assert scb("train", "--out", out, "--resume").returncode == 0
    whole, broken = Run.load(tmp_path / "whole"), Run.load(out)
    np.testing.assert_array_equal(whole.V, broken.V)
    np.testing.assert_array_equal(whole.A, broken.A)
    for name, column in whole.history.items():
        np.testing.assert_array_equal(column, broken.history[name])


def test_the_version_and_the_module():
    import scb

    module = [sys.executable, "-m", "scb"]
    said = subprocess.run([*module, "--version"], capture_output=True, text=True)
    assert said.stdout == f"scb {scb.__version__}\n"
    said = subprocess.run([*module, "--help"], capture_output=True, text=True)
    assert said.returncode == 0
    assert "reproduce" in said.stdout


def test_the_overview_is_one_screen_with_a_line_for_each_command(capsys):
    """What a terminal of 80 x 24 shows at once; whoever types nothing sees the same."""
    for given in (["--help"], ["-h"], []):
        main(given)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) < 24
        assert max(map(len, lines)) <= 80
    for name in COMMANDS:
        assert sum(line.split()[:1] == [name] for line in lines) == 1
    assert all(any(option in line for line in lines) for option in ("--version", "--print-completion", "COMMAND --help"))


def test_a_shell_completes_commands_and_options():
    lines = [
        f'eval "$({shlex.quote(str(SCB))} --print-completion bash)"',
        "complete_it() { COMP_WORDS=($1); COMP_CWORD=$2; COMPREPLY=(); _tyro_scb; echo ${COMPREPLY[@]}; }",
        'complete_it "scb fi" 1',
        'complete_it "scb fit --max" 2',
    ]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fit", "--max-lag"]
    refused = scb("--print-completion", "csh")
    assert refused.returncode == 2
    assert refused.stderr == "scb: --print-completion = 'csh': it must be one of 'bash', 'zsh'\n"


def test_a_run_says_when_it_took_the_mirror_image(here):
    """Here noise sends Stage 1 towards the mirror image; exactly as printed, the algorithm stays there."""
    options = ("train", "--recipe", "paper", "--T", "2000", "--seed", "3", "--set", "steps=[400,100,0]")
    fixed = " ".join(here(*options).split())
    assert "sign: after step 400 the columns of A were skewed to the left" in fixed
    assert "replaced by its mirror image (resolve_sign)" in fixed
    assert "sign: after" in here("show")
    assert "sign: after" not in here(*options, "resolve_sign=false")


def test_the_estimate_and_the_check_are_told_apart(here):
    """Distances estimated from samples are not the exact ones: the last line says which is which."""
    said = " ".join(here("train", "--recipe", "sgd", "--T", "500").split())
    assert "verdict, estimated from held-out samples: learned up to normalisation" in said
    assert "‖A − Q‖ is about 0.2," in said
    assert "checked against the true P and Q: learned up to normalisation (‖V−P‖ = 0.152" in said
    assert "these distances are exact, the estimate knows neither P nor Q)" in said
