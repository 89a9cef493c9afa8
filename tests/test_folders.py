"""scb writes where it was told, and only its own files: what is in the way is refused by name and left as it is."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import scb
from commands import ENVIRONMENT, forked
from scb.cli import main
from scb.files import WriteError, write_atomically
from scb.folders import RECORD, opened
from scb.inputs import InputError
from scb.task import Task
from scb.training.recipes import paper
from scb.training.run import Run
from scb.training.settings import TrainingSettings

SCB = Path(sys.executable).with_name("scb")
TASK = Task.random(3, 40, 2, seed=1)
RECIPE = paper(TASK, steps=(20, 10, 0))
TRAIN = ("train", "--recipe", "paper", "--T", "40", "--set", "steps=3")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    letters = np.random.default_rng(0).choice(list("abc"), 400)
    Path("text.txt").write_text("".join(letters))
    return tmp_path


def call(*arguments):
    main([str(a) for a in arguments])


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        call(*arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def fit(*arguments):
    return ("fit", "text.txt", "--max-lag", "2", "--lags", "1", "--halves", "0", *arguments)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ------------------------------------------------------------------------------ the lock is ours by name and kind


def a_link(path, thesis):
    path.symlink_to(thesis)


def a_hard_link(path, thesis):
    path.hardlink_to(thesis)


def a_fifo(path, thesis):
    os.mkfifo(path)


def a_directory(path, thesis):
    path.mkdir()


def a_text(path, thesis):
    path.write_text("my notes")


@pytest.mark.parametrize("put", [a_link, a_hard_link, a_fifo, a_directory, a_text])
def test_a_lock_that_is_not_ours_is_left_alone(here, capsys, put):
    call(*TRAIN, "--out", "run")
    thesis = here / "thesis.tex"
    thesis.write_text("years of work")
    (here / "run" / RECORD).unlink()
    put(here / "run" / RECORD, thesis)
    before = contents(here)
    assert f"run/{RECORD} is not the file" in refused(capsys, "train", "--out", "run", "--resume")
    assert contents(here) == before
    assert thesis.read_text() == "years of work"


def test_what_a_power_failure_left_of_the_record_is_ours(tmp_path):
    for left in (b"", b"scb: the lo", bytes(30), b"scb: the lock of this fo\0\0\0"):
        (tmp_path / RECORD).write_bytes(left)
        with opened(tmp_path, "testing") as folder:
            folder.file("a").write_text("x")
        with opened(tmp_path, "testing") as folder:
            folder.claim("a")
        (tmp_path / "a").unlink()


def test_a_torn_name_in_the_record_does_not_spoil_the_next(tmp_path):
    with opened(tmp_path, "testing") as folder:
        folder.file("a").write_text("x")
    with open(tmp_path / RECORD, "a") as file:
        file.write("torn")
    with opened(tmp_path, "testing") as folder:
        folder.file("b").write_text("x")
    with opened(tmp_path, "testing") as folder:
        folder.claim("a", "b")


def test_foreign_partial_files_are_kept(here):
    (here / "run").mkdir()
    names = (".thesis.tex.partial", ".x.partial", ".run.safetensors.abc.partial", "a.00000000.scb.partial")
    for name in names:
        (here / "run" / name).write_text("half of my download")
    (here / "run" / ".a.00000000.scb.partial").symlink_to(here / "text.txt")
    (here / "run" / ".b.00000000.scb.partial").write_text("ours, abandoned")
    call(*TRAIN, "--out", "run")
    left = {path.name for path in (here / "run").glob("*.partial")} | {path.name for path in (here / "run").glob(".*.partial")}
    assert left == {*names, ".a.00000000.scb.partial"}


# ------------------------------------------------------------------------------ files that are not ours


def test_fit_refuses_files_that_it_did_not_write_before_the_work(here, capsys):
    for name in ("summary.json", "report.html", "attention.png"):
        Path(name).write_text("mine")
    before = contents(here)
    said = refused(capsys, *fit("--out", "."))
    assert ". has summary.json, attention.png, report.html, which scb did not write" in said
    assert "--overwrite" in said
    assert contents(here) == before
    call(*fit("--out", ".", "--overwrite"))
    assert json.loads(Path("summary.json").read_text())["file"] == "text.txt"
    call(*fit("--out", "."))  # they are its own now


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_the_input_is_never_written(here, capsys, more):
    Path("lags.csv").write_text("x\n" + "a\nb\n" * 60)
    before = contents(here)
    said = refused(capsys, "fit", "lags.csv", "--max-lag", "2", "--out", ".", *more)
    assert "lags.csv would be written, and is the input" in said
    assert contents(here) == before
    TrainingSettings(T=40).save(".")
    said = refused(capsys, "train", "--config", "config.json", "--out", ".", *more)
    assert "config.json would be written, and is the input" in said


def test_links_in_a_folder_are_refused_with_overwrite_too(here, capsys):
    (here / "out").mkdir()
    (here / "out" / "report.html").symlink_to(here / "text.txt")
    before = Path("text.txt").read_bytes()
    said = refused(capsys, *fit("--out", "out", "--overwrite"))
    assert "out/report.html would be written, and is a symbolic link" in said
    assert Path("text.txt").read_bytes() == before


@pytest.mark.parametrize("name", ["claims.md", "tables/mine.parquet", "figures/F5.png"])
def test_reproduce_and_sweep_refuse_files_that_are_not_theirs(here, capsys, name):
    path = here / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    said = refused(capsys, "reproduce", "--quick", "--only", "F5", "--out", "out")
    assert f"out has {name.partition('/')[0]}" in said
    (here / "out" / "table.parquet").write_text("mine")
    sweep = 'kind = "recover"\nseeds = 1\n[fixed]\nT = 6\nsamples = 20\n[grid]\nN = [2, 3]\n'
    (here / "out" / "sweep.toml").write_text(sweep)
    assert "sweep.toml would be written, and is the input" in refused(capsys, "sweep", "out/sweep.toml", "--out", "out")
    Path("small.toml").write_text(sweep)
    assert "out has sweep.toml, table.parquet" in refused(capsys, "sweep", "small.toml", "--out", "out")
    assert path.read_text() == (here / "out" / "table.parquet").read_text() == "mine"


def test_show_writes_nothing_unless_asked(here, capsys):
    call(*fit("--out", "out"))
    (here / "other").mkdir()
    shutil.copy(here / "out" / "model.safetensors", here / "other" / "mine.safetensors")
    for name in ("lags.csv", "attention.png"):
        (here / "other" / name).write_text("mine")
    before = contents(here)
    call("show", "other/mine.safetensors")
    call("show", "out")
    assert contents(here) == before
    capsys.readouterr()
    assert "other has lags.csv, attention.png" in refused(capsys, "show", "out", "--out", "other")
    call("show", "out", "--out", "new")
    assert (here / "new" / "influence.png").stat().st_size > 1000


GUARDED = """
import os, sys

def guard(event, arguments):
    writes = event in ("os.mkdir", "os.rename", "os.remove", "os.truncate")
    if event == "open":
        writes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes and os.path.dirname(os.path.abspath(str(arguments[0]))) == os.path.abspath(sys.argv[1]):
        raise PermissionError(13, "read-only", arguments[0])

sys.addaudithook(guard)
from scb.cli import main
main(["show", sys.argv[1]])
"""


@pytest.mark.parametrize(
    "made", [(*TRAIN, "--out", "made"), ("fit", "text.txt", "--max-lag", "2", "--split", "0", "--out", "made")]
)
def test_show_reads_a_folder_that_cannot_be_written(here, made):
    """Root may write anywhere, so that the interpreter has to refuse it."""
    call(*made)
    os.chmod("made", 0o500)
    shown = subprocess.run([sys.executable, "-c", GUARDED, "made"], capture_output=True, text=True, env=ENVIRONMENT)
    os.chmod("made", 0o700)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_link_that_was_named_stays_and_its_target_is_replaced(tmp_path):
    model = scb.SparseContextualBigram(2).fit(list("abac" * 9))
    model.save(tmp_path / "target")
    before = (tmp_path / "target").read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    scb.SparseContextualBigram(3).fit(list("abac" * 9)).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() != before
    assert scb.SparseContextualBigram.load(tmp_path / "link").max_lag == 3


def test_save_replaces_its_own_kind_only(tmp_path):
    model = scb.SparseContextualBigram(2).fit(list("abac" * 9))
    run = scb.train(TASK, RECIPE)
    saves = {"model": model.save, "task.npz": TASK.save, "run.safetensors": lambda path, **more: run.save(path.parent, **more)}
    for name, save in saves.items():
        save(tmp_path / name)
    for name, save in saves.items():
        path = tmp_path / name
        save(path)
        whole = path.read_bytes()
        for foreign in (b"my thesis" * 1000, next((tmp_path / other).read_bytes() for other in saves if other != name)):
            path.write_bytes(foreign)
            with pytest.raises(InputError, match=f"{name} is there, and is not what would be written"):
                save(path)
            assert path.read_bytes() == foreign
            save(path, overwrite=True)
            assert path.read_bytes() == whole
        path.write_bytes(b"")  # a temporary file that was made for it
        save(path)


def test_lab_and_bench_replace_their_own_pages_only(here, capsys):
    Path("page.html").write_text("mine")
    assert "page.html is there" in refused(capsys, "lab", "--out", "page.html")
    assert "page.html is there" in refused(capsys, "bench", "--out", "page.html")
    assert Path("page.html").read_text() == "mine"
    call("lab", "--out", "page.html", "--overwrite")
    call("lab", "--out", "page.html")


# ------------------------------------------------------------------------------ one writer


def test_a_folder_belongs_to_one_process(here, capsys):
    with opened(here / "run", "training"):
        with pytest.raises(InputError, match="another process is training in"), opened(here / "run", "training"):
            pass
        assert "another process is training in run" in refused(capsys, *TRAIN, "--out", "run")
        with pytest.raises(InputError, match="another process"):
            scb.train(TASK, RECIPE, checkpoint=here / "run")
        call(*TRAIN, "--out", "run", "--no-lock")


def test_of_two_writers_to_a_checkpoint_one_is_refused(tmp_path):
    answers = []
    first = threading.Event()

    def train(**options):
        try:
            answers.append(scb.train(TASK, RECIPE, checkpoint=tmp_path, **options))
        except InputError as error:
            answers.append(error)

    def second(run):
        if not first.is_set():
            first.set()
            other = threading.Thread(target=train)
            other.start()
            other.join()

    train(callbacks=[second])
    assert "another process is training" in str(answers[0])
    assert isinstance(answers[1], Run)


def test_a_run_in_a_checkpoint_is_kept(tmp_path):
    scb.train(TASK, RECIPE, checkpoint=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"holds a run, which is kept: continue it with resume=True, .* replace run.safetensors"):
        scb.train(TASK, RECIPE, seed=1, checkpoint=tmp_path)
    assert contents(tmp_path) == before
    assert scb.train(TASK, RECIPE, seed=1, checkpoint=tmp_path, overwrite=True).seed == Run.load(tmp_path).seed == 1
    (tmp_path / "run.safetensors").write_text("mine")
    with pytest.raises(InputError, match="holds a run"):
        scb.train(TASK, RECIPE, checkpoint=tmp_path)


def test_a_refused_folder_is_left_as_it_was(here, capsys):
    with pytest.raises(KeyError), opened(here / "new", "testing") as folder:
        folder.claim(*{}["nothing"])
    assert not (here / "new").exists()
    (here / "old").mkdir()
    (here / "old" / "report.html").write_text("mine")
    refused(capsys, *fit("--out", "old"))
    assert [path.name for path in (here / "old").iterdir()] == ["report.html"]


def test_threads_that_write_do_not_change_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", None)
    write_atomically(tmp_path / "a", b"x")
    monkeypatch.undo()
    mask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "b", b"x")
    finally:
        os.umask(mask)
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o640


# ------------------------------------------------------------------------------ wrong or incomplete


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_removed_during_a_run_is_told(here, replaced):
    long = [SCB, "train", "--recipe", "paper", "--T", "300", "--set", "steps=[3000,0,0]", "--out", "out"]
    process = subprocess.Popen(long, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not (here / "out" / "run.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)
    shutil.rmtree(here / "out")
    if replaced:
        (here / "out").mkdir()
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate()
    assert process.returncode == 2
    assert said == (
        "scb: out was removed or replaced while scb was training there: what it holds now is not complete, run the command again\n"
    )
    assert (here / "out").exists() == replaced


@pytest.mark.parametrize("name", ["run.safetensors", "config.json", "task.npz"])
def test_files_of_another_run_are_refused(here, capsys, name):
    call(*TRAIN, "--out", "one")
    call("train", "--recipe", "paper", "--T", "50", "--set", "steps=3", "--out", "two")
    shutil.copy(here / "two" / name, here / "one" / name)
    for command in (("show", "one"), ("train", "--out", "one", "--resume")):
        said = refused(capsys, *command)
        assert "one/run.safetensors belongs to another run than one/" in said
        assert f"one/{name}" in said
    call("show", "two")


def test_the_summary_of_another_fit_is_refused(here, capsys):
    call(*fit("--out", "one"))
    call(*fit("--out", "two", "--split", "0.3"))
    call("show", "one")
    shutil.copy(here / "two" / "summary.json", here / "one" / "summary.json")
    capsys.readouterr()
    for command in ("show", "sample"):
        assert "one/summary.json does not belong to the model in one/model.safetensors" in refused(capsys, command, "one")
    shutil.copy(here / "two" / "model.safetensors", here / "one" / "mine.safetensors")
    call("show", "one/mine.safetensors")  # which says nothing of the summary beside it
    assert "held-out bits" not in capsys.readouterr().out


# ------------------------------------------------------------------------------ clear words


def test_a_file_system_without_locks_is_named_with_the_way_out(here, capsys, monkeypatch):
    def unable(handle, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unable)
    said = refused(capsys, *TRAIN, "--out", "run")
    assert said.startswith("scb: run cannot be locked: No locks available (the file system at /")
    assert "--no-lock" in said
    assert not (here / "run").exists()
    (here / "run").mkdir()
    refused(capsys, *TRAIN, "--out", "run")
    assert not list((here / "run").iterdir())
    call(*TRAIN, "--out", "run", "--no-lock")
    call(*fit("--no-lock"))
    with pytest.raises(InputError, match="lock=False"):
        scb.train(TASK, RECIPE, checkpoint="checkpoint")
    scb.train(TASK, RECIPE, checkpoint="checkpoint", lock=False)


def test_a_full_disk_names_the_file_and_how_to_go_on(here):
    disk = here / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", disk]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT}
    try:
        result = subprocess.run([forked(), *TRAIN, "--T", "4000", "--out", "disk/a run"], **options)
        said = "scb: cannot write disk/a run/run.safetensors: No space left on device; go on with: scb train --out"
        assert (result.returncode, result.stderr) == (2, f"{said} 'disk/a run' --resume\n")
        assert not list(disk.rglob(".*.partial"))
        (disk / "ballast").write_bytes(bytes(8000))
        result = subprocess.run([forked(), *fit("--out", "disk/fit")], **options)
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert result.stderr.startswith("scb: cannot write disk/fit")
        subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)
        assert subprocess.run([forked(), "train", "--out", "disk/a run", "--resume"], **options).returncode == 0
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_write_error_keeps_its_number(tmp_path):
    with pytest.raises(WriteError, match="cannot write") as found:
        write_atomically(tmp_path / "no such folder" / "a", b"x")
    assert found.value.errno == errno.ENOENT


@pytest.mark.parametrize(
    "arguments",
    [("fit", "text.txt", "--out", ""), ("train", "--out="), ("show", ""), ("sweep", "--status", ""), ("lab", "--out", "")],
)
def test_an_empty_path_is_not_the_current_folder(here, capsys, arguments):
    assert "is empty: it must be the path" in refused(capsys, *arguments)
    assert [path.name for path in here.iterdir()] == ["text.txt"]


def test_an_empty_path_in_python(here):
    with pytest.raises(InputError, match="checkpoint = ''"):
        scb.train(TASK, RECIPE, checkpoint="")
    with pytest.raises(InputError, match="directory = ''"):
        scb.train(TASK, RECIPE).save("")
