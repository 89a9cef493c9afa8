"""Runs on a GPU: the task, V, A and step sizes of each run, and the measurements of A."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.kernels.cuda.device import Device
from scb.kernels.cuda.layout import (
    FIXED,
    Layout,
    batches,
    device_sampler,
    layout,
    macros,
)
from scb.kernels.step.batch import TaskSampler
from scb.kernels.step.share import Hyperparameters


class DeviceRuns:
    """(V, A) of runs with tasks of one shape, side by side on a device."""

    def __init__(
        self, device: Device, samplers: Sequence[TaskSampler], T: int, sizes: Layout | None
    ) -> None:
        N = len(samplers[0].labels.mu)
        R = len(samplers)
        xp = device.xp
        tokens = [device_sampler(sampler.tokens) for sampler in samplers]
        shift = min(one.shift for one in tokens)
        if max(one.shift for one in tokens) > shift:  # one kernel for all of them
            tokens = [device_sampler(sampler.tokens, shift) for sampler in samplers]

        def stacked(arrays: Any) -> Any:
            return xp.asarray(np.stack([np.ascontiguousarray(array) for array in arrays]))

        labels = [sampler.labels for sampler in samplers]
        self.T = T
        self.N = N
        self.sizes = layout(N, T) if sizes is None else sizes
        self.stride = self.sizes.stride(T)
        self._batches = batches(N, T)
        self._device = device
        self._launch = device.compile(macros(N, tokens[0], self.sizes))
        self._table_bytes = 0 if shift == 0 else tokens[0].table.nbytes
        self._sampler = tuple(
            stacked(getattr(one, name) for one in tokens) for name in ("whole", "fraction", "table")
        )
        self._cumulative_mu = stacked(one.mu for one in labels)
        self._largest_mu = xp.asarray(
            np.array([np.diff(one.mu, prepend=0.0).max() for one in labels])
        )
        # (R, N, Q)
        self._positions = stacked(one.positions.T.astype(np.int32) for one in labels)
        self._q = stacked(one.q.T for one in labels)
        self._P = stacked(one.P.T for one in labels)
        self._sums_shape = (4 + self._positions.shape[2], N)  # of ``moments`` of a run
        self.V = xp.empty((R, N, N))
        self.A = xp.zeros((R, N, self.stride))
        self._mu = xp.empty((R, N))  # of the preconditioner
        self._row = xp.empty((R, N))
        self._per_column = xp.empty((R, N))
        self._rates = xp.empty((R, 7))
        # Entries that ``moments`` keeps, of each run
        self._thresholds = xp.zeros(R)
        # The runs that kernels are for
        self._runs_now: tuple[int, ...] = ()
        self._places = xp.zeros(R, np.int32)

    def put(self, run: int, V: Array, A: Any) -> None:
        """Take over V (N, N) and A (T, N), which are arrays on the CPU or on the device."""
        xp = self._device.xp
        self.V[run] = xp.asarray(np.ascontiguousarray(V, np.float64))
        if not isinstance(A, np.ndarray):
            self.A[run, :, : self.T] = A.T
            return
        # a column at a time: A may be one number seen as an array
        for k in range(self.N):
            column = np.ascontiguousarray(A[:, k], np.float64)
            self.A[run, k, : self.T] = xp.asarray(column)

    def keep_above(self, thresholds: Sequence[float]) -> None:
        """Set the value that entries of each run must reach to be kept by ``moments``."""
        self._thresholds[...] = self._device.xp.asarray(np.asarray(thresholds, np.float64))

    def set_rates(self, run: int, hyper: Hyperparameters, *, plain: bool) -> None:
        """Set the step sizes and other settings of a run; ``plain`` steps are vanilla steps."""
        xp = self._device.xp
        self._mu[run] = xp.asarray(hyper.mu)
        self._row[run] = xp.asarray(hyper.projector_row)
        self._per_column[run] = xp.asarray(hyper.per_column)
        rates = hyper.eta_V, hyper.eta_A, hyper.lam, hyper.per_spread, hyper.limit
        self._rates[run] = xp.asarray(np.array([*rates, hyper.centred, plain], np.float64))

    def fetch(self, array: Any) -> Array:
        """Return a copy of an array of the device in NumPy."""
        return self._device.to_host(array)

    def to_device(self, array: Any) -> Any:
        """Return an array of NumPy or of the device as a contiguous array on the device."""
        return self._device.xp.ascontiguousarray(self._device.xp.asarray(array))

    def to_host(self, columns: Any) -> Array:
        """Return a column-contiguous copy (T, N) in NumPy of an A (N, stride) of the device."""
        return self.fetch(self._device.xp.ascontiguousarray(columns[:, : self.T])).T

    def values(self, runs: Sequence[int]) -> Array:
        """Return a copy of V of these runs in NumPy, (R, N, N)."""
        return self.fetch(self._chosen(self.V, runs))

    def columns(self, runs: Sequence[int]) -> Any:
        """Return a copy of A of these runs, (R, N, stride)."""
        return self._chosen(self.A, runs)

    def _chosen(self, array: Any, runs: Sequence[int]) -> Any:
        """A copy of the parts of an array that belong to these runs."""
        if runs[-1] - runs[0] == len(runs) - 1:
            return array[runs[0] : runs[-1] + 1].copy()
        return array[self._device.xp.asarray(np.asarray(runs))]

    def choose(self, runs: Sequence[int]) -> None:
        """Say which runs, in ascending order, the next kernels are for."""
        if self._runs_now != tuple(runs):
            self._runs_now = tuple(runs)
            self._places[: len(runs)] = self._device.xp.asarray(np.asarray(runs, np.int32))

    def moments(self, runs: Sequence[int], columns: Any) -> tuple[Array, Array]:
        """Return, for each of these runs and its ``columns``, the sums of
        ``kernels.step.column_moments``, (R, 4, N), and the entries at the positions of its support,
        (R, Q, N).
        """
        self.choose(runs)
        found = self._device.xp.empty((len(columns), *self._sums_shape))
        self._add_up(columns, found, by_run=False)
        sums = self.fetch(found)
        return sums[:, :4], sums[:, 4:]

    def _add_up(self, columns: Any, found: Any, *, by_run: bool) -> None:
        """The sums of ``moments`` of the chosen runs, from ``columns`` of all runs or of those."""
        R = len(found)
        Q, N = self._sums_shape[0] - 4, self.N
        self._launch(
            "column_moments", (N, 1, R), FIXED.UPDATE_THREADS, 8 * 4 * FIXED.UPDATE_THREADS,
            self._places, by_run, self.T, self.stride, Q, self._thresholds, self._positions,
            columns, found,
        )  # fmt: skip

    def mass_standing_out(self, columns: Any, quantile: float, tiny: float) -> Array:
        """Return the mass of each column that stands out from its noise by this many standard
        deviations, (R, N).
        """
        R, N = columns.shape[:2]
        mass = self._device.xp.empty((R, N))
        self._launch(
            "mass_standing_out", (N, 1, R), FIXED.UPDATE_THREADS,
            8 * FIXED.UPDATE_THREADS + 4 * 258,
            self.T, self.stride, quantile, tiny, columns, mass,
        )  # fmt: skip
        return self.fetch(mass)
