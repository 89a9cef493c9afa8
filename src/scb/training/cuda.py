"""The engine on a GPU, which takes the same samples as ``Fused`` on the CPU."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.kernels.cuda.device import Device, Gpu
from scb.kernels.cuda.layout import FIXED
from scb.kernels.cuda.step import DeviceSteps
from scb.model import Gradient
from scb.task import Task
from scb.task.sampling import step_keys
from scb.training.engine import Fused, Looks, Request, Taken, hyperparameters
from scb.training.stages import Stage, State

# Numbers from which work on them is faster on the GPU: B·N² of a frozen step, or the entries of A
_LARGE = 1 << 20
# Tokens of a step from which it does not pay to take it together with those of other runs, and of
# all steps that are launched without looking at the run
_TOGETHER = 1 << 28


class OnGpu:
    """The attention A (T, N) of a run on a GPU.

    NumPy functions accept this object as an array; they work on a copy of its contents.

    Parameters
    ----------
    steps, run : the runs that are on the device, and which of them this one is
    stack, place : A there, (R, N, stride), of runs that stepped together, and the place of this
    one among them; they are never changed
    sums : ``moments``, if they are known
    """

    def __init__(
        self,
        steps: DeviceSteps,
        run: int,
        stack: Any,
        place: int = 0,
        sums: tuple[Array, Array] | None = None,
    ) -> None:
        self._steps = steps
        self._run = run
        self._stack = stack
        self._place = place
        self._sums = sums
        self.shape = (steps.T, steps.N)

    @property
    def _columns(self) -> Any:
        """A there, (N, stride)."""
        return self._stack[self._place]

    @property
    def there(self) -> Any:
        """A (T, N) as a CuPy array."""
        return self._columns[:, : self.shape[0]].T

    @property
    def large(self) -> bool:
        """Whether A is rounded and judged on the GPU rather than on the CPU."""
        return self.shape[0] * self.shape[1] >= _LARGE

    @property
    def source(self) -> "FreshOnGpu":
        """Fresh samples of the run's task, as a source of gradients that stay on the GPU."""
        return FreshOnGpu(self._steps, self._run, self.large)

    def like(self, there: Any) -> "OnGpu":
        """Another A of the same run, made from a CuPy or NumPy array (T, N)."""
        stack = self._columns[None].copy()
        stack[0, :, : self.shape[0]] = self._steps.to_device(there.T)
        return OnGpu(self._steps, self._run, stack)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return a copy of A on the CPU, which is made only once."""
        return self._here if dtype in (None, np.float64) else self._here.astype(dtype)

    def __reduce__(self) -> tuple[Any, tuple[Array]]:
        """Make pickles and deep copies as arrays on the CPU."""
        return np.asarray, (self._here,)

    @cached_property
    def _here(self) -> Array:
        return self._steps.to_host(self._columns)

    @property
    def moments(self) -> tuple[Array, Array]:
        """The sums that ``metrics.measure_all`` needs of A."""
        if self._sums is None:
            moments, support = self._steps.moments([self._run], self._columns[None])
            self._sums = moments[0], support[0]
        return self._sums

    def mass_standing_out(self, quantile: float, tiny: float) -> Array:
        """The mass of each column that stands out from its noise, (N,)."""
        return self._steps.mass_standing_out(self._columns[None], quantile, tiny)[0]


class Cuda:
    """An engine that draws fresh samples on a GPU and computes their gradients there.

    All tasks have the same shape, and V and A of each run stay on the GPU. Token for token, the
    samples are the same as those of ``Fused``. Sums over positions and samples are rounded
    differently (``kernels.cuda``), so a step agrees with the same step on a CPU to about 1e-7. On a
    given kind of GPU, a step always produces the same bits, however the batch is divided and
    whichever other runs take steps at the same time. If A is frozen, ``Fused`` takes the steps,
    whose cost does not depend on T; only large steps are then taken on the GPU. For such a step,
    the GPU draws all tokens if A is seldom 0. Otherwise, it draws only the tokens at the positions
    where A is not 0; they are the same as in whole contexts (``Composed``).

    Parameters
    ----------
    tasks : one for each run
    device : where to run; the current GPU of CuPy unless given
    memory : bytes that a mini-batch may take; what is free unless given. A larger batch is divided
    into groups
    """

    def __init__(
        self, *tasks: Task, device: Device | None = None, memory: int | None = None
    ) -> None:
        self._host = [Fused(task) for task in tasks]
        samplers = [host.fresh.sampler for host in self._host]
        self._steps = DeviceSteps(
            Gpu() if device is None else device, samplers, tasks[0].T, memory=memory
        )
        self._steps.keep_above([task.weight_threshold for task in tasks])
        # The V, A and stage that the device has of each run
        self._held: dict[int, tuple[Array, Any]] = {}
        self._stages: dict[int, tuple[Stage, Array]] = {}

    def take(
        self,
        V: Array,
        A: Any,
        mu: Array,
        stage: Stage,
        seed: int,
        steps: range,
        state: State | None = None,
    ) -> Taken:
        """Take ``steps`` of a stage from (V, A) of the first run."""
        return self.take_together({0: Request(V, A, mu, stage, seed, steps, state)})[0]

    def take_looking(self, asked: Request, every: int) -> Taken:
        """Take the steps that the first run requests, and look at it where they pass multiples of
        ``every``.
        """
        return self.take_together({0: asked}, every)[0]

    def far(self, stage: Stage, every: int) -> int:
        """Return the number of steps to request at once, which is a multiple of ``every``."""
        cost = stage.batch_size * self._steps.T + self._steps.N**2
        return every * max(1, _TOGETHER // (cost * every)) if self._takes(stage) else every

    def _takes(self, stage: Stage) -> bool:
        """Whether the steps of a stage are taken on the device."""
        large = stage.batch_size >= min(FIXED.UNIT, _LARGE // self._steps.N**2)
        return stage.rule in ("proximal", "vanilla") and (large or not _frozen(stage))

    def take_together(
        self, requests: Mapping[int, Request], every: int | None = None
    ) -> dict[int, Taken]:
        """Take the steps that each run requests, together where batch sizes are equal. If these
        steps pass multiples of ``every``, look at the run after each such multiple.
        """
        taken = {}
        groups = defaultdict(list)
        for run, asked in requests.items():
            stage = asked.stage
            frozen = _frozen(stage)
            if not self._takes(stage):
                host = self._host[run].take(*asked._replace(A=np.asarray(asked.A)))
                # An A that has not changed stays where it is
                taken[run] = host._replace(A=asked.A) if frozen else host
            elif len(asked.steps) == 0:
                taken[run] = Taken(asked.V, asked.A, steps=0, loss=np.nan, samples=0)
            else:
                looks = range(0)
                if every is not None:
                    next_one = every - asked.steps.start % every
                    looks = range(next_one, len(asked.steps), every)
                groups[stage.batch_size, len(asked.steps), frozen, looks].append(run)
        for (batch_size, steps, frozen, looks), runs in groups.items():
            most = max(1, _TOGETHER // (batch_size * self._steps.T))
            for begin in range(0, len(runs), most):
                some = {run: requests[run] for run in runs[begin : begin + most]}
                taken |= self._take(some, batch_size, steps, frozen, looks)
        return taken

    def _take(
        self,
        requests: Mapping[int, Request],
        batch_size: int,
        steps: int,
        frozen: bool,
        looks: range,
    ) -> dict[int, Taken]:
        """Steps that runs take together."""
        runs = list(requests)
        for run, asked in requests.items():
            self._put(run, asked)
        keys = np.stack([step_keys(asked.seed, asked.steps) for asked in requests.values()], axis=1)
        done, losses, seen = self._steps.take(runs, keys, batch_size, frozen=frozen, looks=looks)
        # V and A are now beyond the limit: repeat the steps before.
        for place, run in enumerate(runs):
            if done[place] < steps:
                self._held.pop(run, None)
                self._put(run, requests[run])
                if done[place]:
                    again = keys[: done[place], place, None]
                    self._steps.take([run], again, batch_size, frozen=frozen)
        Vs, As = self._handed_out(runs, [asked.A for asked in requests.values()], frozen)
        taken = {}
        for place, run in enumerate(runs):
            self._held[run] = Vs[place], As[place]
            tried = min(int(done[place]) + 1, steps)
            own = [array[: (np.asarray(looks) <= done[place]).sum(), place] for array in seen]
            at = np.asarray(looks, np.int64)[: len(own[0])]
            taken[run] = Taken(
                *self._held[run],
                steps=int(done[place]),
                loss=float(losses[tried - 1, place]),
                samples=tried * batch_size,
                looks=Looks(at, losses[at - 1, place], *own) if len(at) else None,
            )
        return taken

    def _put(self, run: int, asked: Request) -> None:
        """Bring (V, A) and the step sizes of a run to the device, unless it has them."""
        held = self._held.get(run)
        if held is None or held[0] is not asked.V or held[1] is not asked.A:
            A = asked.A.there if isinstance(asked.A, OnGpu) else asked.A
            self._steps.put(run, asked.V, A)
        stage = self._stages.get(run)
        if stage is None or stage[0] is not asked.stage or stage[1] is not asked.mu:
            self._stages[run] = asked.stage, asked.mu
            hyper = hyperparameters(asked.stage, asked.mu)
            self._steps.set_rates(run, hyper, plain=asked.stage.rule == "vanilla")

    def _handed_out(
        self, runs: Sequence[int], before: Sequence[Any], frozen: bool
    ) -> tuple[Sequence[Array], Sequence[Any]]:
        """V and A of the runs as they now are, with the sums that every evaluation needs."""
        Vs = list(self._steps.values(runs))
        if frozen:
            return Vs, before
        stack = self._steps.columns(runs)
        sums = zip(*self._steps.moments(runs, stack), strict=True)
        parts = enumerate(zip(runs, sums, strict=True))
        return Vs, [OnGpu(self._steps, run, stack, place, own) for place, (run, own) in parts]


def _frozen(stage: Stage) -> bool:
    """Whether the steps of a stage leave A as it is."""
    return stage.rule == "proximal" and stage.eta_A == 0


@dataclass(frozen=True)
class FreshOnGpu:
    """A source of gradients of fresh samples, like ``Fresh``. The gradient in A stays on the GPU if
    ``stays`` is true; otherwise, it is copied to the CPU.
    """

    _steps: DeviceSteps
    _run: int
    _stays: bool = True

    def __call__(self, V: Array, A: Any, batch_size: int, key: np.uint64) -> Gradient:
        """Return the mean gradient over ``batch_size`` fresh samples."""
        steps = self._steps
        steps.put(self._run, V, A)
        work = steps.differentiate([self._run], np.array([key]), batch_size)
        losses, gV = map(steps.fetch, (work.losses[0], work.gV[0]))
        columns = work.g[0]
        gA = columns[:, : steps.T].T if self._stays else steps.to_host(columns)
        return Gradient(
            float(losses.sum()) / batch_size, gV / batch_size, gA / batch_size, batch_size
        )
