"""The other end of ``Processes`` is a process that runs calls. Nothing heavy is imported at the top
of this module, so a failed start can still be reported.
"""

import os
import pickle
import traceback
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Thread


def work(link: Connection) -> None:
    """Send None if the process is ready, or else the reason; then run calls until the other end
    closes.
    """
    calls: SimpleQueue[bytes] = SimpleQueue()
    try:
        _start(link, calls)
        link.send(None)
    except BaseException as error:
        link.send(f"{type(error).__name__}: {error}")
        os._exit(1)
    try:
        while True:
            link.send_bytes(_reply(calls.get()))
    finally:
        # No traceback, and no waiting for threads.
        os._exit(1)


def _start(link: Connection, calls: SimpleQueue[bytes]) -> None:
    """Start to listen, and import what every call needs."""
    Thread(target=_listen, args=(link, calls), daemon=True).start()
    import scb.jobs.pool  # noqa: F401
    from scb.kernels.compiler import compile_silently

    compile_silently()


def _listen(link: Connection, calls: SimpleQueue[bytes]) -> None:
    """Receive calls, and end the process when its parent is gone. A worker keeps nothing, so it may
    end at any moment.
    """
    try:
        parent = parent_process()
        while parent is not None and parent.sentinel not in wait([link, parent.sentinel]):
            calls.put(link.recv_bytes())
    finally:
        os._exit(1)


def _reply(call: bytes) -> bytes:
    """What a call returns and None, or None and what it raises, with the traceback as a note."""
    try:
        # The bytes come through a pipe that only the parent has.
        function, arguments = pickle.loads(call)  # noqa: S301
        return pickle.dumps((function(*arguments), None))
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            # Our own bytes: whether the error survives being sent.
            pickle.loads(reply := pickle.dumps((None, error)))  # noqa: S301
        except Exception:
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return reply
