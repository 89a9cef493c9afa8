"""The whole of ``scb reproduce``, small: figures, claims, report; again; interrupted; with one process and with two."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

import scb
from commands import forked
from scb.cli import main
from scb.jobs.table_file import read_table
from scb.paper.registry import FIGURES, claims_for, drawable
from scb.paper.registry import tables as experiments

pytestmark = pytest.mark.slow

SCB = Path(sys.executable).with_name("scb")
MADE = experiments()
DRAWN = drawable(FIGURES, MADE)  # the others need the full run
JUDGED = [claim for claim in claims_for(DRAWN).values() if set(claim.needs) <= set(MADE)]
SMALL = ("--quick", "--seeds", "1")
NARROW = os.environ | {"COLUMNS": "80", "TERM": "dumb"}


def command(out, *options, program=SCB):
    return [program, "reproduce", "--out", str(out), *SMALL, *options]


def reproduce(out, *options, program=SCB):
    return subprocess.run(command(out, *options, program=program), capture_output=True, text=True, timeout=300, env=NARROW)


def tables(out):
    return {path.stem: read_table(path)[0] for path in sorted((out / "tables").glob("*.parquet"))}


def assert_same_tables(one, other):
    assert one.keys() == other.keys()
    for name, table in one.items():
        for column, values in table.items():
            assert_array_equal(values, other[name][column], strict=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    answer = reproduce(out)
    assert answer.returncode == 0, answer.stderr
    return out, answer.stdout


def test_all_figures_claims_and_one_page(results):
    out, text = results
    for name in DRAWN:
        for kind in ("png", "pdf"):
            assert (out / "figures" / f"{name}.{kind}").stat().st_size > 10_000
        assert f'id="{name}"' in (out / "report.html").read_text()
    page = (out / "report.html").read_text()
    assert page.count("<article ") == len(JUDGED)
    assert page.count('class="estimate"') > len(JUDGED)  # the numbers that verdicts rest on
    for ours in (False, True):  # a table for each
        assert f"{sum(claim.ours is ours for claim in JUDGED)} claims:" in text
    left = len(claims_for(FIGURES)) - len(JUDGED)
    assert sum(int(count) for count in re.findall(r"(\d+)\s+more\s+claims?\s", text)) == left
    assert all(len(line) <= 80 for line in text.splitlines())
    sources = re.findall(r'(?:src|href)="([^"]{0,40})', page)
    assert all(source.startswith(("data:", "#", "tables/")) for source in sources)  # nothing is fetched
    linked = {source for source in sources if source.startswith("tables/")}
    assert linked == {f"tables/{need.replace(' ', '-')}.parquet" for name in DRAWN for need in FIGURES[name].needs}
    assert all((out / source).stat().st_size > 100 for source in linked)
    assert "<script" not in page


def test_again_redraws_without_running(results):
    out, _ = results
    before = tables(out)
    (out / "report.html").unlink()
    answer = reproduce(out, "--only", "F8", program=forked())
    assert "\n0 new runs" in answer.stdout
    assert (out / "report.html").exists()
    assert_same_tables(before, tables(out))


def test_interrupts_leave_nothing_broken_and_processes_do_not_matter(results, tmp_path):
    """Killed, then interrupted, then let run, in one process: the same tables as at one go in two."""
    out, _ = results
    for kind in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(
            command(tmp_path, "--only", "F3", "--jobs", "1"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        done = len(list(tmp_path.rglob("cache/*/*.parquet")))
        deadline = time.time() + 120
        while len(list(tmp_path.rglob("cache/*/*.parquet"))) < done + 2 and process.poll() is None:
            assert time.time() < deadline
            time.sleep(0.02)
        process.send_signal(kind)
        _, errors = process.communicate(timeout=60)
        if kind == signal.SIGINT and process.returncode:  # unless it was through before
            assert process.returncode == 130
            assert "Traceback" not in errors
    answer = reproduce(tmp_path, "--only", "F3", "--jobs", "1", program=forked())
    assert answer.returncode == 0, answer.stderr
    whole = tables(out)
    assert_same_tables(tables(tmp_path), {name: whole[name] for name in tables(tmp_path)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--only", "F1,F99"), "only has 'F99': the figures are F1, F2"),
        (("--jobs", "0"), "jobs = 0: it must be at least 1"),
        (("--seeds", "0"), "seeds = 0: it must be at least 1"),
        (("--seeds", "9" * 40), "it must be at most 1,000,000"),
        (("--jobs", "9" * 40), "it must be at most 4,096"),
    ],
)
def test_bad_options_are_one_line(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "--out", str(tmp_path), *options])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in told
    assert len(told.splitlines()) == 1


PLANTED = '''

@claim(
    "planted-signs",
    figure="F14",
    says="A planted claim.",
    where="here",
    words="{count:.0f} planted rows",
)
def planted(wrong_signs: Table) -> Outcome:
    """There are rows."""
    return Outcome.judged(len(wrong_signs["T"]) > 0, count=len(wrong_signs["T"]))
'''


def test_a_claim_is_one_edit_in_one_file(tmp_path):
    """Written into a file of claims, it is in the report, on the page, among the outcomes and on the terminal."""
    shutil.copytree(Path(scb.__file__).parent, tmp_path / "scb", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "scb" / "paper" / "claims" / "projector.py"
    file.write_text(file.read_text() + PLANTED)
    shipped = Path(__file__).parents[2] / "docs" / "tables"
    command = [sys.executable, "-m", "scb", "reproduce", "--only", "F14", "--shipped", str(shipped), "--out", str(tmp_path / "out")]
    environment = NARROW | {"PYTHONPATH": str(tmp_path)}
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "A planted claim." in answer.stdout
    assert "1600 planted rows" in answer.stdout
    for name in ("report.html", "claims.md"):
        page = (tmp_path / "out" / name).read_text()
        assert 'id="planted-signs"' in page
        assert "1600 planted rows" in page
    assert "planted-signs,,,count,1600.0" in (tmp_path / "out" / "claims.csv").read_text()
