"""Steps of training whose V, A and mini-batches stay on a GPU."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.kernels.cuda.device import Device
from scb.kernels.cuda.layout import FIXED, Layout, token_bytes
from scb.kernels.cuda.runs import DeviceRuns
from scb.kernels.cuda.workspace import Workspace, new_workspace
from scb.kernels.step.batch import TaskSampler

NEVER = np.iinfo(np.int32).max  # the number of a step that has not failed
# Bytes of tokens up to which the memory of several sizes of steps is kept
_SMALL = 1 << 28


class Active(NamedTuple):
    """The positions at which A is not 0, for steps that leave A unchanged."""

    runs: tuple[int, ...]
    starts: Any  # (R·N + 1,), where the positions of each column begin
    positions: Any


class DeviceSteps(DeviceRuns):
    """(V, A) of runs on a device, and steps that several of them take together.

    Twin: ``kernels.step.fused``, which draws the same samples. Here, every column of A takes every
    step at once, since a pass over A costs little compared with the drawing. The result of a run
    does not depend on the other runs.
    """

    def __init__(
        self,
        device: Device,
        samplers: Sequence[TaskSampler],
        T: int,
        *,
        sizes: Layout | None = None,
        memory: int | None = None,
    ) -> None:
        super().__init__(device, samplers, T, sizes)
        self._memory = memory
        xp = device.xp
        self._at = xp.zeros(1, np.int32)
        self._failed = xp.empty(len(samplers), np.int32)
        self._keys = xp.empty(0, np.uint64)
        self._loss = xp.empty(0)
        self._active: Active | None = None
        self._workspaces: dict[tuple[int, int, bool], Workspace] = {}
        # A step in the form in which it is launched as one
        self._recorded: dict[tuple[int, int, bool, bool], Callable[[], None]] = {}

    def take(
        self,
        runs: Sequence[int],
        keys: NDArray[np.uint64],
        batch_size: int,
        *,
        frozen: bool = False,
        looks: range = range(0),
    ) -> tuple[NDArray[np.int64], Array, tuple[Array, Array, Array]]:
        """Take steps of these runs with the keys (steps, R); ``frozen`` steps leave A unchanged.
        The step sizes are those of ``set_rates``.

        Returns the number of steps that each run has done, which is smaller than the number of keys
        if V or A reaches the limit (the values are then beyond it), the mean loss of each step,
        (steps, R), and what was seen after the numbers of steps in ``looks``: V (E, R, N, N), and
        the sums of ``moments``.
        """
        steps, R = keys.shape
        active = self._active_positions(runs) if frozen else None
        if not frozen:
            self._active = None
        self._begin(runs, keys)
        work = self._work(R, batch_size, all_tokens=active is None)
        self._failed.fill(NEVER)
        if frozen:
            self._weigh(work)

        def one() -> None:
            self._step(work, batch_size, frozen, active)

        name = R, batch_size, frozen, active is None
        xp = self._device.xp
        V = xp.empty((len(looks), R, self.N, self.N))
        sums = xp.empty((len(looks), R, *self._sums_shape))
        for number in range(1, steps + 1):
            # What is recorded has to have run once
            step = one if number == 1 else self._recorded_step(name, one)
            self._recorded.get(name, step)()
            if number in looks:
                at = looks.index(number)
                V[at] = self._chosen(self.V, runs)
                self._add_up(self.A, sums[at], by_run=True)
        found = self._device.xp.concatenate((self._failed[:R], self._loss[: steps * R]))
        numbers = self.fetch(found)
        done = np.minimum(numbers[:R].astype(np.int64), steps)
        seen = self.fetch(sums) if len(looks) else np.empty(sums.shape)
        V = self.fetch(V) if len(looks) else np.empty(V.shape)
        return done, numbers[R:].reshape(steps, R), (V, seen[:, :, :4], seen[:, :, 4:])

    def differentiate(self, runs: Sequence[int], keys: NDArray[np.uint64], B: int) -> Workspace:
        """Return the summed gradients of a mini-batch of each run at its (V, A), with keys (R,):
        ``gV``, ``g`` and the ``losses`` of all samples.
        """
        self._begin(runs, keys[None])
        work = self._work(len(runs), B, all_tokens=True)
        self._weigh(work)
        self._differentiate(work, B, None)
        return work

    def _begin(self, runs: Sequence[int], keys: NDArray[np.uint64]) -> None:
        """Say which runs take the next steps, and their keys."""
        xp = self._device.xp
        if keys.size > len(self._keys):
            self._keys = xp.empty(keys.size, np.uint64)
            self._loss = xp.empty(keys.size)
            self._recorded.clear()
        self._keys[: keys.size] = xp.asarray(keys.ravel())
        self._at.fill(0)
        self.choose(runs)

    def _recorded_step(
        self, name: tuple[int, int, bool, bool], one: Callable[[], None]
    ) -> Callable[[], None]:
        """A step that is launched as one, where the device can do so."""
        if self.N > FIXED.MATRIX:
            return one  # a library's matrix products cannot be recorded
        if name not in self._recorded:
            self._recorded[name] = self._device.record(one)
        return self._recorded[name]

    def _step(self, work: Workspace, batch_size: int, frozen: bool, active: Active | None) -> None:
        if not frozen:
            self._weigh(work)
        self._differentiate(work, batch_size, active, frozen=frozen)
        threads = FIXED.UPDATE_THREADS
        self._launch(
            "step_V", (1, 1, work.runs), threads, 8 * (2 * threads + 2 * self.N),
            self._at, self._places, batch_size, self._rates, self._mu, self._row,
            work.gV, work.losses, self.V, work.level, self._loss, self._failed,
        )  # fmt: skip
        if not frozen:
            self._launch(
                "step_A", (self.N, 1, work.runs), threads, 8 * threads,
                self._at, self._places, batch_size, self.T, self.stride, self._rates, self._mu,
                self._per_column, work.level, work.g, self.A, self._failed,
            )  # fmt: skip
        self._launch("next_step", (1,), 1, 0, self._at)

    def _weigh(self, work: Workspace) -> None:
        threads = FIXED.UPDATE_THREADS
        self._launch(
            "weigh", (self.N, 1, work.runs), threads, 8 * 3 * threads,
            self._places, self.T, self.stride, self._largest_mu, self.A,
            work.W, work.scale, work.totals,
        )  # fmt: skip

    def _active_positions(self, runs: Sequence[int]) -> Active | None:
        """The positions at which A of these runs is not 0; None if they are many."""
        if self._active is None or self._active.runs != tuple(runs):
            xp = self._device.xp
            A = self.A[xp.asarray(np.asarray(runs))][:, :, : self.T]
            places, columns, positions = xp.nonzero(A)
            if 16 * len(positions) > A.size:
                return None
            bounds = xp.arange(len(runs) * self.N + 1)
            starts = xp.searchsorted(places * self.N + columns, bounds)
            self._active = Active(tuple(runs), starts.astype(np.int32), positions.astype(np.int32))
            self._recorded.clear()
        return self._active

    def _differentiate(
        self, work: Workspace, B: int, active: Active | None, *, frozen: bool = False
    ) -> None:
        """Summed gradients into ``work.gV`` and, unless A is ``frozen``, ``work.g``; of the tokens
        at the ``active`` positions alone if they are given.
        """
        R = work.runs
        blocks = min(_blocks(B, 256), 2 * self._device.processors)
        self._launch(
            "count_lasts", (blocks, 1, R), 256, 4 * self.N,
            self._keys, self._at, self._places, B, self._cumulative_mu, work.counts,
        )  # fmt: skip
        self._launch("begin_columns", (1, 1, R), 256, 4 * self.N + 4, work.counts, work.starts)
        for first in range(0, B, work.group):
            last = min(first + work.group, B)
            self._draw_mass(B, first, last, work, active)
            self._score(B, first, last - first, work)
            if not frozen:
                self._add_gradient(first, last, work)

    def _draw_mass(
        self, B: int, first: int, last: int, work: Workspace, active: Active | None
    ) -> None:
        """Last tokens, labels and mass of the samples first … last − 1."""
        N = self.N
        R = work.runs
        launch = self._launch
        samples = last - first
        stream = self._keys, self._at, self._places
        launch(
            "draw_labels", (_blocks(samples, 128), 1, R), 128, 0,
            *stream, B, first, last, work.starts, *self._sampler,
            self._positions, self._q, self._q.shape[2], self._P, work.lasts, work.labels, work.mass,
        )  # fmt: skip
        if active is not None:
            launch(
                "add_active_mass", (-(-samples // 128), 1, R), 128, 0,
                *stream, B, first, samples, work.W, self.stride, work.lasts,
                active.starts, active.positions, *self._sampler, work.mass,
            )  # fmt: skip
            return
        blocks = -(-samples // self.sizes.mass_samples(N))
        wanted = min(-(-16 * self._device.processors // (blocks * R)), -(-self._batches // 4))
        length = -(-self._batches // wanted)  # of a range of positions, in batches of 16
        multiple = 128 if N > FIXED.SOME else 4
        length = -(-length // multiple) * multiple
        launch(
            "add_mass", (blocks, -(-self._batches // length), R),
            self.sizes.mass_threads, self.sizes.mass_shared(N, self._table_bytes),
            *stream, B, first, samples, self._batches, length,
            work.W, self.stride, work.totals, work.lasts, *self._sampler, work.mass, work.tokens,
        )  # fmt: skip

    def _score(self, B: int, first: int, samples: int, work: Workspace) -> None:
        """Scores and losses of the samples from ``first`` on, and their part of gV."""
        N = self.N
        if N > FIXED.MATRIX:
            for place in range(work.runs):
                self._multiply(place, first, samples, work)
            return
        row = (N + 3) // 4 * 4 + 1
        chunks = -(-samples // FIXED.CHUNK)
        self._launch(
            "differentiate", (chunks, 1, work.runs), FIXED.SCORE_THREADS,
            8 * row * (N + 2 * FIXED.TILE),
            self._places, B, first, samples, work.mass, work.scale, work.lasts, work.labels, self.V,
            work.scores, work.losses, work.chunks,
        )  # fmt: skip
        self._launch(
            "add_chunks", (-(-N * N // 128), 1, work.runs), 128, 0,
            first == 0, chunks, work.chunks, work.gV,
        )  # fmt: skip

    def _add_gradient(self, first: int, last: int, work: Workspace) -> None:
        """Add the samples first … last − 1 to g."""
        N = self.N
        R = work.runs
        most = (last - first) // FIXED.PIECE + 1 + N
        self._launch(
            "lay_out", (1, 1, R), 256, 4 * N + 4,
            work.starts, first, last, most, work.columns, work.segments,
        )  # fmt: skip
        threads = self.sizes.gradient_threads
        # Few segments: smaller blocks keep more of the GPU busy
        while (
            self.stride // (16 * threads) * most * R < 2 * self._device.processors
            and threads % 64 == 0
        ):
            threads //= 2
        self._launch(
            "gradient", (self.stride // (16 * threads), most, R), threads,
            self.sizes.gradient_shared(N),
            first, last - first, self._batches, work.segments, work.tokens, work.scores,
            self.stride, work.partial,
        )  # fmt: skip
        self._launch(
            "add_segments", (-(-self.stride // 128), N, R), 128, 0,
            first == 0, most, work.columns, work.partial, self.stride, work.g,
        )  # fmt: skip

    def _multiply(self, place: int, first: int, samples: int, work: Workspace) -> None:
        """Scores, losses and gV of one run by matrix products of fixed sizes, so that their
        rounding does not depend on the group.
        """
        xp = self._device.xp
        launch = self._launch
        N = self.N
        V = self.V[self._runs_now[place]]

        def own(array: Any) -> Any:
            """The run's part of an array of samples, of which this group may fill less."""
            return array.reshape(-1, *array.shape[2:])[place * samples : (place + 1) * samples]

        mass, scores, lasts, labels = map(own, (work.mass, work.scores, work.lasts, work.labels))
        for begin in range(0, samples, FIXED.UNIT):
            size = min(FIXED.UNIT, samples - begin)
            chunks = -(-size // FIXED.CHUNK)
            rows = chunks * FIXED.CHUNK  # those without a sample are 0
            unit = slice(begin, begin + size)
            losses = work.losses[place, first + begin : first + begin + size]
            xa, r, u = work.matrices[:, :rows]
            launch(
                "scale_mass", (rows,), FIXED.ROW_THREADS, 0,
                size, mass[unit], work.scale[place], lasts[unit], xa,
            )  # fmt: skip
            xp.matmul(xa, V.T, out=r)
            launch(
                "subtract_labels", (size,), FIXED.ROW_THREADS, 8 * FIXED.ROW_THREADS,
                labels[unit], r, losses,
            )  # fmt: skip
            xp.matmul(r, V, out=u)
            launch("round_scores", (size,), FIXED.ROW_THREADS, 0, u, scores[unit])
            parts = work.chunks[place, :chunks]
            xp.matmul(
                r.reshape(chunks, FIXED.CHUNK, N).transpose(0, 2, 1),
                xa.reshape(chunks, FIXED.CHUNK, N),
                out=parts,
            )
            launch(
                "add_chunks", (-(-N * N // 128),), 128, 0,
                first + begin == 0, chunks, parts, work.gV[place],
            )  # fmt: skip

    def _work(self, runs: int, batch_size: int, *, all_tokens: bool) -> Workspace:
        """Memory for a batch size, kept for the next time; a large one until another is asked
        for.
        """
        key = runs, batch_size, all_tokens
        if key not in self._workspaces:
            row = 16 * self._batches * token_bytes(self.N) if all_tokens else 0
            kept = [runs * size * row for runs, size, _ in (*self._workspaces, key)]
            if sum(kept) > _SMALL:
                self._workspaces.clear()  # frees their memory
                self._recorded.clear()
            self._workspaces[key] = new_workspace(
                self._device, self.N, self.stride, row, batch_size, self._memory, runs
            )
        return self._workspaces[key]


def _blocks(count: int, threads: int) -> int:
    """Blocks for ``count`` things, of which a thread may do several."""
    return min(-(-count // threads), 65_535)
