import subprocess
import sys
from pathlib import Path

import pytest

SCB = Path(sys.executable).with_name("scb")


def scb(*arguments, **kwargs):
    return subprocess.run(
        [SCB, *arguments],
        capture_output=True,
        text=True,
        env={"COLUMNS": "80", "TERM": "dumb", "PATH": "/usr/bin"},
        **kwargs,
    )


def test_plan_prints_a_table_of_80_columns():
    result = scb("plan", "3", "5000", "2", "--eps", "0.05", "--delta", "0.05")
    assert result.returncode == 0, result.stderr
    for word in ("Stage 1", "Stage 2", "Stage 3", "Transfer", "λ", "threshold"):
        assert word in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", ["reproduce", "plan", "bench"])
def test_help_teaches(command):
    result = scb(command, "--help")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) > 8


def test_bad_input_is_one_line_and_status_2():
    result = scb("plan", "3", "5000", "9000")
    assert result.returncode == 2
    assert result.stderr == "scb: sparsity = 9000: it must lie between 1 and 5000\n"
    assert scb("nonsense").returncode == 2
