"""The engine on a GPU, which takes the samples that ``Fused`` takes on the processor."""

import numpy as np

from scb.arrays import Array
from scb.kernels.cuda.device import Device, Gpu
from scb.kernels.cuda.layout import FIXED
from scb.kernels.cuda.step import DeviceSteps
from scb.task import Task
from scb.task.sampling import step_keys
from scb.training.engine import Fused, Taken, hyperparameters
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage, State


class Cuda:
    """Fresh samples of a task, drawn, differentiated and forgotten on a GPU; V and A come back at
    the end of ``take``.

    Token for token the samples are those of ``Fused``. Sums over positions and samples are rounded
    otherwise (``kernels.cuda``), so that a step agrees with the processor's to about 1e-7; on one
    kind of GPU it is the same to the last bit every time, however the batch is divided. Where A is
    frozen, ``Fused`` takes the steps, which do not depend on T. Only large batches are drawn on the
    GPU then: tokens at the positions where A is not 0, the same as in whole contexts
    (``Composed``); all, if A is seldom 0.

    Parameters
    ----------
    device : where to run; the current GPU of CuPy unless given
    memory : bytes that a mini-batch may take; what is free unless given. A larger batch is divided
    into groups
    """

    def __init__(
        self, task: Task, *, device: Device | None = None, memory: int | None = None
    ) -> None:
        self.fresh = Fresh(task)
        self._host = Fused(task)
        self._steps = DeviceSteps(
            Gpu() if device is None else device, self.fresh.sampler, task.T, memory=memory
        )
        # The V and A handed out last, which the device still has
        self._held: tuple[Array, Array] | None = None

    def take(
        self,
        V: Array,
        A: Array,
        mu: Array,
        stage: Stage,
        seed: int,
        steps: range,
        state: State | None = None,
    ) -> Taken:
        """Take ``steps`` of a stage from (V, A)."""
        frozen = stage.rule == "proximal" and stage.eta_A == 0
        if stage.rule not in ("proximal", "vanilla") or (frozen and stage.batch_size < FIXED.UNIT):
            return self._host.take(V, A, mu, stage, seed, steps, state)
        if len(steps) == 0:
            return Taken(V, A, steps=0, loss=np.nan, samples=0)
        if self._held is None or self._held[0] is not V or self._held[1] is not A:
            self._steps.put(V, A)
        keys = step_keys(seed, steps)
        hyper = hyperparameters(stage, mu)
        plain = stage.rule == "vanilla"
        done, losses = self._steps.take(keys, hyper, plain=plain, frozen=frozen)
        # V and A are now beyond the limit: repeat the steps before.
        if done < len(keys):
            self._steps.put(V, A)
            self._steps.take(keys[:done], hyper, plain=plain, frozen=frozen)
        self._held = self._steps.get(None if not frozen else A)
        tried = min(done + 1, len(keys))
        return Taken(
            *self._held, steps=done, loss=float(losses[tried - 1]), samples=tried * stage.batch_size
        )
