"""Windows, as far as it can be had elsewhere: its missing modules, flags and calls are taken away in
a process of its own, and a file that is open can neither be renamed nor removed."""

import io
import os
import subprocess
import sys

import pytest

from scb.cli.streams import Output, replace_streams

WINDOWS = '''
import errno, fcntl, glob, multiprocessing, os, signal, struct, subprocess, sys
from contextlib import suppress

class OwnByte:
    """One byte from the place where the file stands, locked for its handle, as msvcrt does it."""

    LK_LOCK, LK_NBLCK = 1, 2

    def locking(self, handle, how, size):
        begin = os.lseek(handle, 0, os.SEEK_CUR)
        assert begin > os.fstat(handle).st_size, "others could not read what is locked"
        wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, begin, size, 0)
        try:
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)
        except OSError:
            code = errno.EACCES if how == self.LK_NBLCK else errno.EDEADLK
            raise OSError(code, os.strerror(code)) from None

def target(handle):
    """The file behind a handle of any process, if we may know it and it is still open."""
    with suppress(OSError):
        return os.readlink(handle)

def unless_open(call):
    """The call, refused while any process has one of its files open."""
    def refusing(*paths):
        wanted = {os.path.abspath(path) for path in paths}
        if wanted & {target(handle) for handle in glob.glob("/proc/[0-9]*/fd/*")}:
            raise PermissionError(errno.EACCES, "used by another process", *paths[:1])
        return call(*paths)
    return refusing

def text_mode_is_refused(path, flags, *mode, open=os.open):
    """Open a file, unless its line ends would be translated, which nothing of ours wants."""
    assert path == os.devnull or flags & os.O_BINARY, path
    return open(path, flags & ~os.O_BINARY, *mode)

os.O_BINARY = 1 << 28
os.open = text_mode_is_refused
for name in ("unlink", "remove", "replace", "rename"):
    setattr(os, name, unless_open(getattr(os, name)))
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "pread", "pwrite", "major", "minor", "fork",
             "getuid", "geteuid", "getloadavg", "sched_getaffinity", "mkfifo", "statvfs"):
    delattr(os, name)
for name in ("pthread_sigmask", "SIGKILL", "SIGHUP", "SIGALRM", "SIGPIPE", "SIGUSR1", "setitimer", "alarm"):
    delattr(signal, name)
sys.modules["msvcrt"] = OwnByte()
platform, sys.platform = sys.platform, "win32"
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
import scb.handles
sys.platform = platform  # other packages are those of this system
from pathlib import Path
import scb
from scb.cli import main
from scb.files import WriteError, write_atomically
from scb.folders import RECORD, opened
'''


def windows(code, folder):
    environment = os.environ | {"PYTHONIOENCODING": "cp1252", "COLUMNS": "80", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WINDOWS + code]
    done = subprocess.run(command, capture_output=True, cwd=folder, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr.decode("cp1252")
    return done.stdout.decode("cp1252")


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc says which files are open")


@needs_linux
def test_files_are_replaced_and_what_was_abandoned_is_removed(tmp_path):
    code = r"""
page = Path("page.txt")
for content in (b"one\n", b"two\r\n", b""):
    write_atomically(page, content)
    assert page.read_bytes() == content
left = Path(".page.txt.0123abcd.scb.partial")
left.write_bytes(b"half")
write_atomically(page, b"three")
assert os.listdir() == ["page.txt"], os.listdir()
with open(page):
    try:
        write_atomically(page, b"four")
    except WriteError as error:
        print(error)
assert os.listdir() == ["page.txt"] and page.read_bytes() == b"three"
with scb.handles.open_handle(left, os.O_RDWR | os.O_CREAT) as handle:
    scb.handles.lock_handle(handle, wait=True)
    write_atomically(page, b"five")
    assert left.exists()
"""
    assert windows(code, tmp_path) == "cannot write page.txt: used by another process\n"


@needs_linux
def test_a_folder_has_one_owner_until_that_process_dies(tmp_path):
    code = r"""
other = '''
with opened(Path("run"), "training") as folder:
    folder.file("a.txt").write_bytes(b"x")
    print("mine", flush=True)
    sys.stdin.readline()
    os._exit(1)
'''
child = subprocess.Popen([sys.executable, "-c", SOURCE + other], stdin=-1, stdout=-1, text=True)
assert child.stdout.readline() == "mine\n"
try:
    with opened(Path("run"), "training"):
        pass
except scb.InputError as error:
    print(error)
child.communicate("die\n")
with opened(Path("run"), "training") as folder:
    folder.claim("a.txt")
try:
    with opened(Path("new"), "training"):
        raise ValueError
except ValueError:
    print(Path("new").exists())
"""
    said = windows(f"SOURCE = {WINDOWS!r}\n" + code, tmp_path)
    assert said.splitlines() == ["another process is training in run: wait for it, or end it", "False"]


@needs_linux
def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    for target in (thesis, tmp_path / "missing.tex"):
        folder = tmp_path / f"beside {target.stem}" / "run"
        folder.mkdir(parents=True)
        (folder / ".scb").symlink_to(target)
        code = """
try:
    with opened(Path("run"), "training"):
        pass
except scb.InputError as error:
    print(error)
"""
        assert windows(code, folder.parent).startswith("run/.scb is not the file of that name")
    assert thesis.read_text() == "years of work"
    assert not (tmp_path / "missing.tex").exists()


@needs_linux
def test_commands_run_where_the_console_lacks_most_letters(tmp_path):
    code = """
Path("poem.txt").write_text("abcabcaab" * 40)
main(["train", "--T", "50", "--recipe", "paper", "--set", "steps=3", "--out", "run"])
main(["show", "run"])
main(["fit", "poem.txt", "--max-lag", "3", "--halves", "0", "--out", "fitted"])
main(["sample", "fitted", "--length", "9"])
main(["plan", "3", "5000", "2"])
"""
    assert "samples:" in windows(code, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"run", "fitted"}


@needs_linux
def test_jobs_run_in_processes_where_signals_cannot_be_held_back(tmp_path):
    code = """
signal.SIGKILL = 9  # by which Python ends a process on this system
from scb.jobs.processes import processes
with processes(2) as pool:
    print(sorted(pool.each(abs, [(-1,), (2,)])))
"""
    assert windows(code, tmp_path) == "[1, 2]\n"


def test_a_console_of_windows_gets_bytes_in_its_own_encoding(monkeypatch, tmp_path):
    class Console(io.RawIOBase):
        def fileno(self):
            return handle

        def writable(self):
            return True

    handle = os.open(tmp_path / "screen", os.O_RDWR | os.O_CREAT)
    console = io.TextIOWrapper(io.BufferedWriter(Console()), "utf-8")
    monkeypatch.setattr(os, "device_encoding", {handle: "cp437"}.get)
    for name in ("stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, console)
    output = replace_streams()
    assert isinstance(output, Output)
    print("α → ‖x‖", flush=True)
    assert (tmp_path / "screen").read_bytes() == b"\xe0 ? ?x?\n"
    os.close(handle)
