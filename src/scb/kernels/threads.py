"""This module runs one kernel on several threads: the caller's thread, and a few helpers that sleep
until they are needed. The caller never blocks on an idle helper.

A kernel that can be shared is called as ``kernel(me, team, …)`` on every thread, with ``me`` = 0 on
the caller's. It works in *turns*, each divided into shares, which are taken first come, first
served. If a helper gets no time because the machine is busy, other threads take its shares. The
caller waits only for shares that a helper has begun.

The locks are Python's own, which a kernel can use without Python's global lock. A thread tries
repeatedly to take a lock for some tens of microseconds, which is longer than most waits and shorter
than a time slice of the operating system. Then the thread sleeps.
"""

import ctypes
import os
import platform
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from scb.kernels.compiler import compiled

MOST_SHARES = 4
OVER = -1  # the number of the turn after the last one
_SPINS = 1000
# Seconds: how long a caller waits for a helper to come back from the last kernel
_PATIENCE = 2e-4

_acquire = types.ExternalFunction("PyThread_acquire_lock", types.int32(types.intp, types.int32))
_release = types.ExternalFunction("PyThread_release_lock", types.void(types.intp))


class Team(NamedTuple):
    """The data that the threads of a kernel share. Locks are addresses, and all are held when a
    turn begins.
    """

    # Beside the caller; without any, no lock is touched
    helpers: int
    spins: int  # how often a lock that is held is asked for before the thread sleeps
    # (1,), the number of the turn
    turn: NDArray[np.int64]
    # (MOST_SHARES,), locks that are released when a share may be taken
    free: NDArray[np.int64]
    # (MOST_SHARES,), locks that are released when a helper has done a share
    done: NDArray[np.int64]
    # (MOST_SHARES,), a lock for each helper, released when there is work; the first is not used
    call: NDArray[np.int64]


@intrinsic
def _relax(typing_context):
    """Pause for a moment, for the other thread of a core; does nothing on other processors."""

    def emit(context, builder, signature, arguments):
        if platform.machine() in ("x86_64", "AMD64"):
            nothing = ir.FunctionType(ir.VoidType(), [])
            builder.call(
                cgutils.get_or_insert_function(builder.module, nothing, "llvm.x86.sse2.pause"), []
            )
        return context.get_dummy_value()

    return types.void(), emit


@compiled
def _wait_for(lock, spins):
    for _ in range(spins):
        if _acquire(lock, np.int32(0)):
            return
        _relax()  # pyright: ignore[reportCallIssue] (the compiler gives the argument)
    _acquire(lock, np.int32(1))


@compiled
def open_turn(team, number, shares):
    """As the caller, offer the shares of turn ``number``; ``OVER`` tells the helpers to stop."""
    if team.helpers == 0:
        return
    team.turn[0] = number
    for share in range(shares):
        _release(team.free[share])
    for helper in range(1, team.helpers + 1):
        _acquire(team.call[helper], np.int32(0))  # it may not have taken the last call yet
        _release(team.call[helper])


@compiled
def await_turn(me, team):
    """As a helper, wait until there may be work, and return whether more work may follow."""
    _wait_for(team.call[me], team.spins)
    return team.turn[0] != OVER


@compiled
def take(team, share):
    """Try to take a share. Until it is done, the number of the turn does not change."""
    return team.helpers == 0 or _acquire(team.free[share], np.int32(0)) != 0


@compiled
def hand_in(me, team, share):
    """Report that a share is done, if a helper has done it."""
    if me > 0:
        _release(team.done[share])


@compiled
def await_shares(team, mine):
    """As the caller, wait for the shares that helpers have taken, which are those that are not
    ``mine``.
    """
    for share in range(mine.size):
        if not mine[share]:
            _wait_for(team.done[share], team.spins)


def thread_count() -> int:
    """Return the number of threads that kernels may use, as set by ``numba.set_num_threads``,
    NUMBA_NUM_THREADS or else OMP_NUM_THREADS.
    """
    threads = numba.get_num_threads()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if "NUMBA_NUM_THREADS" not in os.environ and limit.isdecimal():
        threads = min(threads, max(1, int(limit)))
    return threads


class _Helper(threading.Thread):
    """A thread that does one task after the other, and sleeps between them."""

    def __init__(self) -> None:
        super().__init__(name="scb-helper", daemon=True)
        self._begin = threading.Lock()  # held but when there is something to begin with
        self._begin.acquire()
        self._idle = threading.Lock()  # held while there is a task
        self._task: Callable[[], Any] | None = None
        self._over = False
        self.start()

    def run(self) -> None:
        while True:
            self._begin.acquire()
            if self._over or self._task is None:
                return
            try:
                self._task()
            finally:
                self._task = None
                self._idle.release()

    def reserve(self) -> bool:
        """Reserve the helper for the caller, if it is free or will be in a moment."""
        return self._idle.acquire(timeout=_PATIENCE)

    def release(self) -> None:
        """Give it back without a task."""
        self._idle.release()

    def begin(self, task: Callable[[], Any]) -> None:
        """Let it do a task."""
        self._task = task
        self._begin.release()

    def take_back(self) -> None:
        """Take the task back if it has not begun; otherwise leave it to end by itself."""
        if self._begin.acquire(blocking=False):
            self._task = None
            self._idle.release()

    def end(self) -> None:
        """End the thread, after its task if it has one."""
        self._over = True
        with suppress(RuntimeError):  # it may be about to begin
            self._begin.release()


class _Threads:
    """Helpers and locks, for one caller at a time."""

    def __init__(self, helpers: int) -> None:
        self.helpers = [_Helper() for _ in range(helpers)]
        locks = [_held_locks() for _ in range(3)]
        self.team = Team(helpers, _SPINS, np.zeros(1, np.int64), *locks)

    def run(self, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """What ``kernel`` returns on this thread, with the helpers at work beside it.

        A helper that is still in the last kernel would take shares of this one with the arguments
        of that one. So unless all helpers are free, the caller does all the work. At the end it
        waits for no helper, because there is no share left to take.
        """
        ready = [helper for helper in self.helpers if helper.reserve()]
        if len(ready) < len(self.helpers):
            for helper in ready:
                helper.release()
            return kernel(0, _no_team, *arguments)
        for me, helper in enumerate(self.helpers, start=1):
            # An old call
            ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(int(self.team.call[me])), 0)
            helper.begin(lambda me=me: kernel(me, self.team, *arguments))
        returned = kernel(0, self.team, *arguments)
        for helper in self.helpers:
            helper.take_back()
        return returned

    def abandon(self) -> None:
        """End the threads, also after an error in the middle of a kernel."""
        self.team.turn[0] = OVER
        for me, helper in enumerate(self.helpers, start=1):
            helper.end()
            ctypes.pythonapi.PyThread_release_lock(ctypes.c_void_p(int(self.team.call[me])))


def _held_locks() -> NDArray[np.int64]:
    allocate = ctypes.pythonapi.PyThread_allocate_lock
    allocate.restype = ctypes.c_void_p
    # They are never freed: there are as many as there have been helpers
    locks = [allocate() for _ in range(MOST_SHARES)]
    for lock in locks:
        ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
    return np.array(locks, np.int64)


class _Desk:
    """The threads of this process, made on first use. A forked process has none of its parent's."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start without threads; those of a parent process are not told."""
        self.lock = threading.Lock()
        self.threads: _Threads | None = None

    def with_helpers(self, helpers: int) -> _Threads | None:
        """Threads with so many helpers, or None if the system gives no more or Python is ending."""
        if self.threads is not None and len(self.threads.helpers) != helpers:
            self.close()
        if self.threads is None:
            with suppress(RuntimeError):
                self.threads = _Threads(helpers)
        return self.threads

    def close(self) -> None:
        """Let the threads go."""
        if self.threads is not None:
            self.threads.abandon()
        self.threads = None


_desk = _Desk()
_no_team = Team(0, 0, *(np.zeros(n, np.int64) for n in (1, MOST_SHARES, MOST_SHARES, MOST_SHARES)))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_desk.forget)


def run_together(kernel: Callable[..., Any], threads: int, *arguments: Any) -> Any:
    """Return the result of ``kernel(0, team, *arguments)``, whose shares up to ``threads`` threads
    do.

    The helpers serve one caller at a time. Another thread that calls a kernel in the meantime does
    all its work itself.
    """
    helpers = min(threads, MOST_SHARES) - 1
    if helpers < 1 or not _desk.lock.acquire(blocking=False):
        return kernel(0, _no_team, *arguments)
    try:
        workers = _desk.with_helpers(helpers)
        if workers is None:
            return kernel(0, _no_team, *arguments)
        return workers.run(kernel, arguments)
    except BaseException:
        _desk.close()
        raise
    finally:
        _desk.lock.release()
