"""Memory on a GPU for the mini-batches of a step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scb.inputs import InputError
from scb.kernels.cuda.device import Device
from scb.kernels.cuda.layout import FIXED


@dataclass(frozen=True)
class Workspace:
    """Memory for one group of a mini-batch and for the sums over its groups, for each of R runs
    that take steps together.
    """

    runs: int  # R
    group: int  # samples
    lasts: Any  # (R, group)
    labels: Any  # (R, group)
    # (R, group, bytes of a row): those of all positions, from pass 1 to pass 2; empty where only a
    # few are drawn
    tokens: Any
    mass: Any  # (R, group, N), 32-bit integers
    scores: Any  # (R, group, N), 32 bits
    segments: Any  # (R, ·, 2), where each begins and ends
    # (R, ·, stride), 32 bits: parts of g
    partial: Any
    # (R, ·, N, N): parts of gV, those of one unit of samples above MATRIX tokens
    chunks: Any
    # (3, UNIT, N): xa, r and u of one unit of samples, above MATRIX tokens
    matrices: Any
    losses: Any  # (R, B)
    W: Any  # (R, N, stride), A in fixed point ...
    scale: Any  # (R, N) ... its unit ...
    totals: Any  # (R, N) ... and its sums
    counts: Any  # (R, N), samples of each last token; 0 between steps
    starts: Any  # (R, N + 1), where they begin
    columns: Any  # (R, N + 1), where the segments of each column begin
    level: Any  # (R,), λ
    gV: Any  # (R, N, N)
    g: Any  # (R, N, stride)


def new_workspace(
    device: Device,
    N: int,
    stride: int,
    row: int,
    batch_size: int,
    memory: int | None,
    runs: int = 1,
) -> Workspace:
    """Allocate memory for a batch of each of ``runs`` runs, which is divided into groups if
    necessary.

    ``row`` is the number of bytes of a sample's tokens, and ``memory`` the number of bytes that may
    be used, by default most of the free bytes.
    """
    group = _group_size(device, N, stride, row, batch_size, memory, runs)
    size = min(group, batch_size)
    unit = min(FIXED.UNIT, size)
    pieces = size // FIXED.PIECE + 1 + N
    xp = device.xp
    try:
        return Workspace(
            runs=runs,
            group=group,
            lasts=xp.empty((runs, size), np.int32),
            labels=xp.empty((runs, size), np.int32),
            tokens=xp.empty((runs, size, row), np.uint8),
            mass=xp.empty((runs, size, N), np.int32),
            scores=xp.empty((runs, size, N), np.float32),
            segments=xp.empty((runs, pieces, 2), np.int32),
            partial=xp.empty((runs, pieces, stride), np.float32),
            chunks=xp.empty((runs, _chunks(size if N <= FIXED.MATRIX else unit), N, N)),
            matrices=xp.empty((3, _chunks(unit) * FIXED.CHUNK if N > FIXED.MATRIX else 0, N)),
            losses=xp.empty((runs, batch_size)),
            W=xp.empty((runs, N, stride), np.int32),
            scale=xp.empty((runs, N)),
            totals=xp.empty((runs, N), np.int32),
            counts=xp.zeros((runs, N), np.int32),
            starts=xp.empty((runs, N + 1), np.int32),
            columns=xp.empty((runs, N + 1), np.int32),
            level=xp.empty(runs),
            gV=xp.empty((runs, N, N)),
            g=xp.empty((runs, N, stride)),
        )
    except MemoryError as error:
        raise InputError(
            f"N = {N}: not even {FIXED.UNIT:,} samples of {row:,} bytes fit into the GPU's memory"
        ) from error


def _chunks(samples: int) -> int:
    return -(-samples // FIXED.CHUNK)


def _group_size(
    device: Device,
    N: int,
    stride: int,
    row: int,
    batch_size: int,
    memory: int | None,
    runs: int,
) -> int:
    """How many samples fit into the memory at a time: a multiple of ``UNIT``."""
    unit = FIXED.UNIT
    each = 8 + 8 * N + 4 * stride / FIXED.PIECE + row
    fixed = 8 * batch_size + 16 * (N + 1) * stride
    if N <= FIXED.MATRIX:
        each += 8 * N * N / FIXED.CHUNK
    else:
        fixed += 8 * (3 * unit * N + unit // FIXED.CHUNK * N * N)
    free = (int(0.8 * device.free_memory()) if memory is None else memory) // runs
    units = int((free - fixed) / (each * unit))
    if row:
        # Keeping more than 32 GiB of tokens at a time would not be faster.
        units = min(units, (1 << 35) // (row * unit))
    whole = -(-batch_size // unit) * unit
    return min(max(units, 1) * unit, whole, 60_000 * FIXED.PIECE)
