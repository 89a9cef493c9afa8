"""Commands in processes that are forked from one that has loaded their libraries, which saves the seconds of their start.

``forked()`` is a program that stands for ``scb``. It hands its arguments, folder, environment and streams to a server, which
forks the process that runs the command, and it ends as that one ends. All test processes share the server, which ends with the
process that started them. A test of how Python itself starts (with little memory, in another locale, without a module), or of
a signal, calls the real ``scb``.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

# What tests give a command. The kernels of BLAS are those of the tests: others round differently, and a run would not be the same.
ENVIRONMENT = {"COLUMNS": "80", "TERM": "dumb", "PATH": "/usr/bin", "NUMBA_NUM_THREADS": "1"}
ENVIRONMENT |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}

CLIENT = """#!{python} -IS
import json, os, signal, socket, sys

def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False

streams = [number for number in range(3) if is_open(number)]
request = json.dumps([sys.argv[1:], dict(os.environ), streams]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(request).to_bytes(8)], [os.open(".", os.O_RDONLY), *streams])
    server.sendall(request)
    status = int(server.recv(8))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@cache
def forked() -> Path:
    """The program; the first process that asks for it starts the server. It is ``scb`` itself where forks are not safe."""
    if sys.platform != "linux":
        return Path(sys.executable).with_name("scb")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    owner = os.getppid() if run else os.getpid()
    folder = Path(tempfile.gettempdir()) / f"scb-commands-{run or os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    program = folder / "scb"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            address = str(folder / "socket")
            nowhere = subprocess.DEVNULL
            command = [sys.executable, __file__, address, str(owner)]
            subprocess.run(command, env=os.environ | {"NUMBA_NUM_THREADS": "1"}, stdin=nowhere, stdout=nowhere, check=True)
            program.write_text(CLIENT.format(python=sys.executable, address=address))
            program.chmod(0o700)
    return program


def serve(address: str, owner: int) -> None:
    """Wait for commands for as long as the owner lives. Whoever comes before the libraries are loaded waits."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(100)
        if os.fork():
            return
        os.setsid()
        from torture.forks import warm

        warm()
        server.settimeout(1)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while Path(f"/proc/{owner}").exists() and Path(address).exists():
            try:
                client, _ = server.accept()
            except TimeoutError:
                continue
            with client:
                if not os.fork():
                    server.close()
                    attend(client)
                    return
    shutil.rmtree(Path(address).parent)


def attend(client: socket.socket) -> None:
    """Run the command of a client in one more process, and tell how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    client.settimeout(None)
    size, (folder, *files), *_ = socket.recv_fds(client, 8, 4)
    with client.makefile("rb") as stream:
        words, environment, streams = json.loads(stream.read(int.from_bytes(size)))
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    client.close()
    become(words, environment, folder, dict(zip(streams, files, strict=True)))


def become(words: list[str], environment: dict[str, str], folder: int, streams: dict[int, int]) -> None:
    """Be a process that a shell has started with these words."""
    for number in range(3):
        if number in streams:
            os.dup2(streams[number], number)
        else:
            os.close(number)
    os.fchdir(folder)
    for file in (folder, *streams.values()):
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    plain = {"encoding": "utf-8", "closefd": False}
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", **plain) if 1 in streams else None
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", errors="backslashreplace", buffering=1, **plain) if 2 in streams else None
    sys.modules["__main__"] = ModuleType("__main__")  # workers would import it
    sys.argv = ["scb", *words]
    from scb.cli import main

    main()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    serve(sys.argv[1], int(sys.argv[2]))
