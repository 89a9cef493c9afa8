"""Memory on a GPU for the mini-batches of a step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scb.inputs import InputError
from scb.kernels.cuda.device import Device
from scb.kernels.cuda.layout import FIXED


@dataclass(frozen=True)
class Workspace:
    """Memory for one group of a mini-batch and for what is summed over its groups."""

    group: int  # samples
    lasts: Any  # (group,)
    labels: Any  # (group,)
    # (group, bytes of a row): those of all positions, from pass 1 to pass 2; empty where only a few
    # are drawn
    tokens: Any
    mass: Any  # (group, N), 32-bit integers
    scores: Any  # (group, N), 32 bits
    segments: Any  # (·, 2), where each begins and ends
    # (·, stride), 32 bits: parts of g
    partial: Any
    # (·, N, N): parts of gV, those of one unit of samples above MATRIX tokens
    chunks: Any
    # (3, UNIT, N): xa, r and u of one unit of samples, above MATRIX tokens
    matrices: Any
    losses: Any  # (B,)


def new_workspace(
    device: Device, N: int, stride: int, row: int, batch_size: int, memory: int | None
) -> Workspace:
    """Memory for a batch, which is divided into groups if it does not fit.

    ``row`` is the number of bytes of a sample's tokens, and ``memory`` the number of bytes that may
    be used, by default most of those that are free.
    """
    group = _group_size(device, N, stride, row, batch_size, memory)
    size = min(group, batch_size)
    unit = min(FIXED.UNIT, size)
    xp = device.xp
    try:
        return Workspace(
            group=group,
            lasts=xp.empty(size, np.int32),
            labels=xp.empty(size, np.int32),
            tokens=xp.empty((size, row), np.uint8),
            mass=xp.empty((size, N), np.int32),
            scores=xp.empty((size, N), np.float32),
            segments=xp.empty((group // FIXED.PIECE + 1 + N, 2), np.int32),
            partial=xp.empty((size // FIXED.PIECE + 1 + N, stride), np.float32),
            chunks=xp.empty((_chunks(size if N <= FIXED.MATRIX else unit), N, N)),
            matrices=xp.empty((3, _chunks(unit) * FIXED.CHUNK if N > FIXED.MATRIX else 0, N)),
            losses=xp.empty(batch_size),
        )
    except MemoryError as error:
        raise InputError(
            f"N = {N}: not even {FIXED.UNIT:,} samples of {row:,} bytes fit into the GPU's memory"
        ) from error


def _chunks(samples: int) -> int:
    return -(-samples // FIXED.CHUNK)


def _group_size(
    device: Device, N: int, stride: int, row: int, batch_size: int, memory: int | None
) -> int:
    """How many samples fit into the memory at a time: a multiple of ``UNIT``."""
    unit = FIXED.UNIT
    each = 8 + 8 * N + 4 * stride / FIXED.PIECE + row
    fixed = 8 * batch_size + 4 * (N + 1) * stride
    if N <= FIXED.MATRIX:
        each += 8 * N * N / FIXED.CHUNK
    else:
        fixed += 8 * (3 * unit * N + unit // FIXED.CHUNK * N * N)
    free = int(0.8 * device.free_memory()) if memory is None else memory
    units = int((free - fixed) / (each * unit))
    if row:
        # Keeping more than 32 GiB of tokens at a time would not be faster.
        units = min(units, (1 << 35) // (row * unit))
    whole = -(-batch_size // unit) * unit
    return min(max(units, 1) * unit, whole, 60_000 * FIXED.PIECE)
