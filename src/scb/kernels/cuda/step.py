"""Steps of training whose V, A and mini-batches stay on a GPU."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.kernels.cuda.device import Device
from scb.kernels.cuda.layout import (
    FIXED,
    Layout,
    batches,
    device_sampler,
    layout,
    macros,
    token_bytes,
)
from scb.kernels.cuda.workspace import Workspace, new_workspace
from scb.kernels.step.batch import TaskSampler
from scb.kernels.step.share import Hyperparameters

# Where each column's positions begin, and the positions at which A is not 0
Active = tuple[Any, Any]

NEVER = np.iinfo(np.int32).max  # the number of a step that has not failed


class DeviceSteps:
    """(V, A) on a device, and steps of a stage on them.

    Twin: ``kernels.step.fused``, which draws the same samples. Here every column of A takes every
    step at once, since a pass over A costs nothing beside the drawing.
    """

    def __init__(
        self,
        device: Device,
        sampler: TaskSampler,
        T: int,
        *,
        sizes: Layout | None = None,
        memory: int | None = None,
    ) -> None:
        N = len(sampler.labels.mu)
        xp = device.xp
        tokens = device_sampler(sampler.tokens)
        self.T = T
        self.N = N
        self.sizes = layout(N, T) if sizes is None else sizes
        self.stride = self.sizes.stride(T)
        self._batches = batches(N, T)
        self._device = device
        self._memory = memory
        self._launch = device.compile(macros(N, tokens, self.sizes))
        self._table_bytes = 0 if tokens.shift == 0 else tokens.table.nbytes
        self._sampler = tuple(map(xp.asarray, (tokens.whole, tokens.fraction, tokens.table)))
        self._mu = xp.asarray(sampler.labels.mu)
        self._largest_mu = float(np.diff(sampler.labels.mu, prepend=0.0).max())
        # (N, Q)
        self._positions = xp.asarray(np.ascontiguousarray(sampler.labels.positions.T, np.int32))
        self._q = xp.asarray(np.ascontiguousarray(sampler.labels.q.T))
        self._P = xp.asarray(np.ascontiguousarray(sampler.labels.P.T))
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
        self._level = xp.empty(1)
        self._workspace: tuple[tuple[int, bool], Workspace] | None = None

    def put(self, V: Array, A: Array) -> None:
        """Take over V (N, N) and A (T, N)."""
        xp = self._device.xp
        self.V[...] = xp.asarray(np.ascontiguousarray(V, np.float64))
        # a column at a time: A may be one number seen as an array
        for k in range(self.N):
            self.A[k, : self.T] = xp.asarray(np.ascontiguousarray(A[:, k], np.float64))

    def get(self, A: Array | None = None) -> tuple[Array, Array]:
        """Copies of V and A, the latter column-contiguous; or the A that is given, if it has not
        changed.
        """
        V = np.empty((self.N, self.N))
        _to_host(self.V, V)
        if A is None:
            A = np.empty((self.T, self.N), order="F")
            _to_host(self._device.xp.ascontiguousarray(self.A[:, : self.T]), A.T)
        return V, A

    def active(self) -> Active | None:
        """The positions at which A is not 0, for steps that leave it as it is; None if they are
        many.
        """
        xp = self._device.xp
        columns, positions = xp.nonzero(self.A[:, : self.T])
        if 16 * len(positions) > self.N * self.T:
            return None
        return xp.searchsorted(columns, xp.arange(self.N + 1)).astype(np.int32), positions.astype(
            np.int32
        )

    def take(
        self, keys: NDArray[np.uint64], hyper: Hyperparameters, *, plain: bool, frozen: bool = False
    ) -> tuple[int, Array]:
        """One step for each of ``keys``; ``plain`` are vanilla ones, ``frozen`` ones leave A as it
        is.

        Returns the number of steps done, which is smaller than the number of keys if V or A reaches
        the limit (what stands there then is beyond it), and the mean loss of each.
        """
        xp = self._device.xp
        failed = xp.full(1, NEVER, np.int32)
        loss = xp.zeros(len(keys))
        mu = xp.asarray(hyper.mu)
        row = xp.asarray(hyper.projector_row)
        per_column = xp.asarray(hyper.per_column)
        active = self.active() if frozen else None
        B = hyper.batch_size
        for step, key in enumerate(keys):
            losses = self.differentiate(key, B, frozen, active)
            self._launch(
                "step_V", (1,), FIXED.UPDATE_THREADS, 8 * (FIXED.UPDATE_THREADS + 2 * self.N),
                step, B, plain, hyper.eta_V, hyper.lam, hyper.per_spread, hyper.limit,
                mu, row, self.gV, losses, self.V, self._level, loss[step : step + 1], failed,
            )  # fmt: skip
            if frozen:
                continue
            self._launch(
                "step_A", (self.N,), FIXED.UPDATE_THREADS, 8 * FIXED.UPDATE_THREADS,
                step, B, self.T, self.stride, plain, hyper.centred, hyper.eta_A, hyper.limit,
                mu, per_column, self._level, self.g, self.A, failed,
            )  # fmt: skip
        done = min(int(failed[0]), len(keys))
        host = np.empty(len(keys))
        _to_host(loss, host)
        return done, host

    def differentiate(
        self, key: np.uint64, batch_size: int, frozen: bool = False, active: Active | None = None
    ) -> Any:
        """Summed gradients of a mini-batch at (V, A), into ``gV`` and, unless A is ``frozen``,
        ``g``; the loss of each sample.

        With the ``active`` positions of a frozen A no other tokens are drawn.
        """
        work = self._work(batch_size, all_tokens=active is None)
        self._launch(
            "weigh", (self.N,), FIXED.UPDATE_THREADS, 8 * FIXED.UPDATE_THREADS,
            self.T, self.stride, self._largest_mu, self.A, self._W, self._scale, self._totals,
        )  # fmt: skip
        self._counts.fill(0)
        blocks = min(_blocks(batch_size, 256), 2 * self._device.processors)
        self._launch(
            "count_lasts", (blocks,), 256, 4 * self.N, key, batch_size, self._mu, self._counts
        )
        self._launch("begin_columns", (1,), 1, 0, self._counts, self._starts)
        self.gV.fill(0)
        if not frozen:
            self.g.fill(0)
        for first in range(0, batch_size, work.group):
            last = min(first + work.group, batch_size)
            self._draw_mass(key, batch_size, first, last, work, active)
            self._score(last - first, work, work.losses[first:last])
            if not frozen:
                self._add_gradient(first, last, work)
        return work.losses

    def _draw_mass(
        self, key: np.uint64, B: int, first: int, last: int, work: Workspace, active: Active | None
    ) -> None:
        """Last tokens, labels and mass of the samples first … last − 1."""
        N = self.N
        launch = self._launch
        samples = last - first
        launch(
            "draw_labels", (_blocks(samples, 128),), 128, 0,
            key, B, first, last, self._starts, *self._sampler,
            self._positions, self._q, self._q.shape[1], self._P, work.lasts, work.labels,
        )  # fmt: skip
        work.mass.fill(0)
        if active is not None:
            launch(
                "add_active_mass", (-(-samples // 128),), 128, 0,
                key, B, first, samples, self._W, self.stride, work.lasts,
                *active, *self._sampler, work.mass,
            )  # fmt: skip
            return
        blocks = -(-samples // self.sizes.mass_samples(N))
        wanted = min(-(-16 * self._device.processors // blocks), -(-self._batches // 32))
        length = -(-self._batches // wanted)  # of a range of positions, in batches of 16
        multiple = 128 if N > FIXED.SOME else 4
        length = -(-length // multiple) * multiple
        launch(
            "add_mass", (blocks, -(-self._batches // length)),
            self.sizes.mass_threads, self.sizes.mass_shared(N, self._table_bytes),
            key, B, first, samples, self._batches, length,
            self._W, self.stride, self._totals, work.lasts, *self._sampler, work.mass, work.tokens,
        )  # fmt: skip

    def _score(self, samples: int, work: Workspace, losses: Any) -> None:
        """Scores and losses of the samples, and their part of gV."""
        N = self.N
        if N <= FIXED.MATRIX:
            row = (N + 3) // 4 * 4 + 1
            chunks = -(-samples // FIXED.CHUNK)
            self._launch(
                "differentiate", (chunks,), FIXED.SCORE_THREADS, 8 * row * (N + 2 * FIXED.TILE),
                samples, work.mass, self._scale, work.lasts, work.labels, self.V,
                work.scores, losses, work.chunks,
            )  # fmt: skip
            self._launch("add_chunks", (-(-N * N // 128),), 128, 0, chunks, work.chunks, self.gV)
        else:
            self._multiply(samples, work, losses)

    def _add_gradient(self, first: int, last: int, work: Workspace) -> None:
        """Add the samples first … last − 1 to g."""
        N = self.N
        most = (last - first) // FIXED.PIECE + 1 + N
        self._launch(
            "lay_out", (1,), 256, 0, self._starts, first, last, most, self._columns, work.segments
        )
        tiles = self.stride // self.sizes.tile
        self._launch(
            "gradient", (tiles, most), self.sizes.gradient_threads, self.sizes.gradient_shared(N),
            first, self._batches, work.segments, work.tokens, work.scores, self.stride,
            work.partial,
        )  # fmt: skip
        self._launch(
            "add_segments",
            (-(-self.stride // 128), N),
            128,
            0,
            self._columns,
            work.partial,
            self.stride,
            self.g,
        )

    def _multiply(self, samples: int, work: Workspace, losses: Any) -> None:
        """Scores, losses and gV by matrix products of fixed sizes, so that their rounding does not
        depend on the group.
        """
        xp = self._device.xp
        for begin in range(0, samples, FIXED.UNIT):
            size = min(FIXED.UNIT, samples - begin)
            chunks = -(-size // FIXED.CHUNK)
            rows = chunks * FIXED.CHUNK  # those without a sample are 0
            own = slice(begin, begin + size)
            xa, r, u = work.matrices[:, :rows]
            self._launch(
                "scale_mass",
                (rows,),
                FIXED.ROW_THREADS,
                0,
                size,
                work.mass[own],
                self._scale,
                work.lasts[own],
                xa,
            )
            xp.matmul(xa, self.V.T, out=r)
            self._launch(
                "subtract_labels",
                (size,),
                FIXED.ROW_THREADS,
                8 * FIXED.ROW_THREADS,
                work.labels[own],
                r,
                losses[own],
            )
            xp.matmul(r, self.V, out=u)
            self._launch("round_scores", (size,), FIXED.ROW_THREADS, 0, u, work.scores[own])
            parts = work.chunks[:chunks]
            xp.matmul(
                r.reshape(chunks, FIXED.CHUNK, self.N).transpose(0, 2, 1),
                xa.reshape(chunks, FIXED.CHUNK, self.N),
                out=parts,
            )
            self._launch(
                "add_chunks", (-(-self.N * self.N // 128),), 128, 0, chunks, parts, self.gV
            )

    def _work(self, batch_size: int, *, all_tokens: bool) -> Workspace:
        """Memory for a batch size, kept until another one is asked for."""
        key = batch_size, all_tokens
        if self._workspace is None or self._workspace[0] != key:
            self._workspace = None  # frees its memory
            row = 16 * self._batches * token_bytes(self.N) if all_tokens else 0
            work = new_workspace(self._device, self.N, self.stride, row, batch_size, self._memory)
            self._workspace = key, work
        return self._workspace[1]


def _blocks(count: int, threads: int) -> int:
    """Blocks for ``count`` things, of which a thread may do several."""
    return min(-(-count // threads), 65_535)


def _to_host(array: Any, out: Array) -> None:
    """Copy a contiguous array of the device, or of NumPy, into a contiguous one here."""
    if isinstance(array, np.ndarray):
        out[...] = array
    else:
        array.get(out=out)
