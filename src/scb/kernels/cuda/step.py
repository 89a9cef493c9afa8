"""Steps of training whose V, A and mini-batches stay on a GPU."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError
from scb.kernels.cuda.device import Device
from scb.kernels.cuda.layout import (
    CHUNK,
    MATRIX,
    PIECE,
    SCORE_THREADS,
    SOME,
    TILE,
    UNIT,
    UPDATE_THREADS,
    Layout,
    device_law,
    layout,
    macros,
)
from scb.kernels.step.batch import TaskLaw
from scb.kernels.step.share import Hyperparameters

Array = NDArray[np.float64]

NEVER = np.iinfo(np.int32).max  # the number of a step that has not failed
_SHARE = 0.8  # of the free memory, for the mini-batch


@dataclass(frozen=True)
class Workspace:
    """Memory for one group of a mini-batch and for what is summed over its groups."""

    group: int  # samples
    most: int  # segments of a group
    lasts: Any  # (group,)
    labels: Any  # (group,)
    mass: Any  # (group, N), 32-bit integers
    scores: Any  # (group, N), 32 bits
    partial: Any  # (most, stride), 32 bits: parts of g
    chunks: Any  # (group/CHUNK, N, N): parts of gV, up to MATRIX tokens
    matrices: Any  # (3, UNIT, N): xa, r and u of one unit of samples, above MATRIX tokens
    losses: Any  # (B,)


class DeviceSteps:
    """(V, A) on a device, and steps of a stage on them.

    Twin: ``kernels.step.fused``, which draws the same samples. Here every column of A takes every step at once, since a pass over A
    costs nothing beside the drawing.
    """

    def __init__(self, device: Device, law: TaskLaw, T: int, *, sizes: Layout | None = None, memory: int | None = None) -> None:
        N = len(law.labels.mu)
        xp = device.xp
        tokens = device_law(law.tokens)
        self.T = T
        self.N = N
        self.sizes = layout(N, T) if sizes is None else sizes
        self.stride = self.sizes.stride(T)
        self._device = device
        self._memory = memory
        self._launch = device.compile(macros(N, tokens, self.sizes))
        self._table_bytes = 0 if tokens.shift == 0 else tokens.table.nbytes
        self._law = tuple(map(xp.asarray, (tokens.whole, tokens.fraction, tokens.table)))
        self._mu = xp.asarray(law.labels.mu)
        self._largest_mu = float(np.diff(law.labels.mu, prepend=0.0).max())
        self._positions = xp.asarray(np.ascontiguousarray(law.labels.positions.T, np.int32))  # (N, Q)
        self._q = xp.asarray(np.ascontiguousarray(law.labels.q.T))
        self._P = xp.asarray(np.ascontiguousarray(law.labels.P.T))
        self.V = xp.empty((N, N))
        self.A = xp.zeros((N, self.stride))
        self.gV = xp.empty((N, N))
        self.g = xp.empty((N, self.stride))
        self._W = xp.empty((N, self.stride), np.int32)
        self._scale = xp.empty(N)
        self._totals = xp.empty(N, np.int32)
        self._counts = xp.empty(N, np.int32)
        self._starts = xp.empty(N + 1, np.int32)
        self._columns = xp.empty(N + 1, np.int32)
        self._segments = xp.empty(0, np.int32)
        self._level = xp.empty(1)
        self._workspace: tuple[int, Workspace] | None = None

    def put(self, V: Array, A: Array) -> None:
        """Take over V (N, N) and A (T, N)."""
        xp = self._device.xp
        self.V[...] = xp.asarray(np.ascontiguousarray(V, np.float64))
        for k in range(self.N):  # a column at a time: A may be one number seen as an array
            self.A[k, : self.T] = xp.asarray(np.ascontiguousarray(A[:, k], np.float64))

    def get(self) -> tuple[Array, Array]:
        """Copies of V and A, the latter column-contiguous."""
        A = np.empty((self.T, self.N), order="F")
        _to_host(self._device.xp.ascontiguousarray(self.A[:, : self.T]), A.T)
        V = np.empty((self.N, self.N))
        _to_host(self.V, V)
        return V, A

    def take(self, keys: NDArray[np.uint64], hyper: Hyperparameters, *, plain: bool) -> tuple[int, Array]:
        """One step for each of ``keys``; ``plain`` are vanilla ones.

        Returns the number of steps done, which is smaller than the number of keys if V or A reaches the limit (what stands there
        then is beyond it), and the mean loss of each.
        """
        xp = self._device.xp
        failed = xp.full(1, NEVER, np.int32)
        loss = xp.zeros(len(keys))
        mu = xp.asarray(hyper.mu)
        row = xp.asarray(hyper.projector_row)
        per_column = xp.asarray(hyper.per_column)
        B = hyper.batch_size
        for step, key in enumerate(keys):
            losses = self.differentiate(key, B)
            self._launch(
                "step_V", (1,), UPDATE_THREADS, 8 * (UPDATE_THREADS + 2 * self.N),
                step, B, plain, hyper.eta_V, hyper.lam, hyper.per_spread, hyper.limit,
                mu, row, self.gV, losses, self.V, self._level, loss[step : step + 1], failed,
            )  # fmt: skip
            self._launch(
                "step_A", (self.N,), UPDATE_THREADS, 8 * UPDATE_THREADS,
                step, B, self.T, self.stride, plain, hyper.centred, hyper.eta_A, hyper.limit,
                mu, per_column, self._level, self.g, self.A, failed,
            )  # fmt: skip
        done = min(int(failed[0]), len(keys))
        host = np.empty(len(keys))
        _to_host(loss, host)
        return done, host

    def differentiate(self, key: np.uint64, batch_size: int) -> Any:
        """Summed gradients of a mini-batch at (V, A), into ``gV`` and ``g``; the loss of each of its samples."""
        work = self._work(batch_size)
        self._launch(
            "weigh", (self.N,), UPDATE_THREADS, 8 * UPDATE_THREADS,
            self.T, self.stride, self._largest_mu, self.A, self._W, self._scale, self._totals,
        )  # fmt: skip
        self._counts.fill(0)
        self._launch(
            "count_lasts",
            (min(_blocks(batch_size, 256), 2 * self._device.processors),),
            256,
            4 * self.N,
            key,
            batch_size,
            self._mu,
            self._counts,
        )
        self._launch("begin_columns", (1,), 1, 0, self._counts, self._starts)
        self.gV.fill(0)
        self.g.fill(0)
        for first in range(0, batch_size, work.group):
            self._differentiate_group(key, batch_size, first, min(first + work.group, batch_size), work)
        return work.losses

    def _differentiate_group(self, key: np.uint64, B: int, first: int, last: int, work: Workspace) -> None:
        """Add the samples first … last − 1 to the gradients."""
        N = self.N
        launch = self._launch
        samples = last - first
        most = samples // PIECE + 1 + N
        launch("lay_out", (1,), 256, 0, self._starts, first, last, most, self._columns, self._segments)
        launch(
            "draw_labels", (_blocks(samples, 128),), 128, 0,
            key, B, first, last, self._starts, *self._law,
            self._positions, self._q, self._q.shape[1], self._P, work.lasts, work.labels,
        )  # fmt: skip
        batches = -(-self.T // 16)
        blocks = -(-samples // self.sizes.mass_samples(N))
        wanted = min(-(-16 * self._device.processors // blocks), -(-batches // 32))
        length = -(-batches // wanted)  # of a range of positions, in batches of 16
        length = -(-length // 128) * 128 if N > SOME else length
        work.mass.fill(0)
        launch(
            "add_mass", (blocks, -(-batches // length)), self.sizes.mass_threads, self.sizes.mass_shared(N, self._table_bytes),
            key, B, first, samples, batches, length, self._W, self.stride, self._totals, work.lasts, *self._law, work.mass,
        )  # fmt: skip
        if N <= MATRIX:
            row = (N + 3) // 4 * 4 + 1
            chunks = -(-samples // CHUNK)
            launch(
                "differentiate", (chunks,), SCORE_THREADS, 8 * row * (N + 2 * TILE),
                samples, work.mass, self._scale, work.lasts, work.labels, self.V,
                work.scores, work.losses[first:last], work.chunks,
            )  # fmt: skip
            launch("add_chunks", (-(-N * N // 128),), 128, 0, chunks, work.chunks, self.gV)
        else:
            self._multiply(samples, work, work.losses[first:last])
        tiles = self.stride // self.sizes.tile
        launch(
            "gradient", (tiles, most), self.sizes.gradient_threads, self.sizes.gradient_shared(N, self._table_bytes),
            key, B, first, self._segments, work.scores, self.stride, *self._law, work.partial,
        )  # fmt: skip
        launch("add_segments", (-(-self.stride // 128), N), 128, 0, self._columns, work.partial, self.stride, self.g)

    def _multiply(self, samples: int, work: Workspace, losses: Any) -> None:
        """Scores, losses and gV by matrix products of UNIT samples each, so that their rounding does not depend on the group."""
        xp = self._device.xp
        for begin in range(0, samples, UNIT):
            size = min(UNIT, samples - begin)
            own = slice(begin, begin + size)
            xa, r, u = work.matrices[:, :size]
            blocks = (_blocks(size * self.N, 256),)
            self._launch("scale_mass", blocks, 256, 0, size, work.mass[own], self._scale, work.lasts[own], xa)
            xp.matmul(xa, self.V.T, out=r)
            self._launch("subtract_labels", (size,), SCORE_THREADS, 8 * SCORE_THREADS, work.labels[own], r, losses[own])
            xp.matmul(r, self.V, out=u)
            self._launch("round_scores", blocks, 256, 0, size, u, work.scores[own])
            self.gV += r.T @ xa

    def _work(self, batch_size: int) -> Workspace:
        """Memory for a batch size, kept until another one is asked for; a batch that does not fit is divided into groups."""
        if self._workspace is not None and self._workspace[0] == batch_size:
            return self._workspace[1]
        self._workspace = None
        xp = self._device.xp
        N = self.N
        whole = -(-batch_size // UNIT) * UNIT
        each = 8 + 8 * N + 4 * self.stride / PIECE
        each += 8 * N * N / CHUNK if N <= MATRIX else 0
        fixed = 8 * batch_size + 4 * (N + 1) * self.stride + (0 if N <= MATRIX else 3 * 8 * UNIT * N)
        memory = int(_SHARE * self._device.free_memory()) if self._memory is None else self._memory
        units = int((memory - fixed) / (each * UNIT))
        group = min(max(units, 1) * UNIT, whole, 60_000 * PIECE)
        most = group // PIECE + 1 + N
        size = min(group, batch_size)
        try:
            work = Workspace(
                group=group,
                most=most,
                lasts=xp.empty(size, np.int32),
                labels=xp.empty(size, np.int32),
                mass=xp.empty((size, N), np.int32),
                scores=xp.empty((size, N), np.float32),
                partial=xp.empty((min(most, size // PIECE + 1 + N), self.stride), np.float32),
                chunks=xp.empty((-(-size // CHUNK) if N <= MATRIX else 0, N, N)),
                matrices=xp.empty((3, min(UNIT, size) if N > MATRIX else 0, N)),
                losses=xp.empty(batch_size),
            )
        except MemoryError as error:
            raise InputError(
                f"N = {N}, T = {self.T:,}: even {UNIT:,} samples at a time do not fit into the GPU's memory"
            ) from error
        self._segments = xp.empty((most, 2), np.int32)
        self._workspace = batch_size, work
        return work


def _blocks(count: int, threads: int) -> int:
    """Blocks for ``count`` things, of which a thread may do several."""
    return min(-(-count // threads), 65_535)


def _to_host(array: Any, out: Array) -> None:
    """Copy a contiguous array of the device, or of NumPy, into a contiguous one here."""
    if isinstance(array, np.ndarray):
        out[...] = array
    else:
        array.get(out=out)
