"""How a step is divided on a GPU, and a task's distribution as the kernels there want it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError
from scb.kernels.random import TokenSampler

FEW = 4  # up to this many tokens, comparing with every threshold is quicker than a look-up
SOME = 50  # up to this many, a thread has a histogram of its own
MATRIX = 64  # above, products with V are left to the library of matrix products
MOST = 4095  # tokens that an entry of the table can name
# Samples: groups of a batch are multiples of it
UNIT = 8192
CHUNK = 1024  # samples whose part of gV is one sum
PIECE = 256  # samples whose part of g is one sum of 32-bit numbers
SCORE_THREADS = 256
ROW_THREADS = 64  # for one row of a matrix with a column for each token
TILE = 32  # samples of a chunk that are in shared memory together
UPDATE_THREADS = 1024


@dataclass(frozen=True)
class Layout:
    """Sizes of blocks for one task; results do not depend on them.

    Attributes
    ----------
    mass_threads : of pass 1
    gradient_threads : of pass 2
    stage : samples whose scores are in shared memory together in pass 2
    """

    mass_threads: int
    gradient_threads: int
    stage: int

    @property
    def tile(self) -> int:
        """Positions of one block of pass 2."""
        return 16 * self.gradient_threads

    def stride(self, T: int) -> int:
        """T, made a multiple of a tile: the length of a row in memory."""
        return -(-T // self.tile) * self.tile

    def mass_samples(self, N: int) -> int:
        """Samples of one block of pass 1."""
        return self.mass_threads if N <= SOME else self.mass_threads // 32

    def mass_shared(self, N: int, table: int) -> int:
        """Bytes of shared memory of a block of pass 1, with a table of so many bytes."""
        tiles = 4 * 16 * self.mass_threads  # four batches of 16 bytes for each thread
        if N <= FEW:
            return tiles
        return table + 4 * N * self.mass_samples(N) + (tiles if N <= SOME else 0)

    def gradient_shared(self, N: int) -> int:
        """Bytes of shared memory of a block of pass 2."""
        return 4 * self.stage * N


def layout(N: int, T: int) -> Layout:
    """Sizes of blocks that suit N tokens and T positions; measured on one GPU, right on any."""
    mass_threads = 128 if SOME / 2 < N <= SOME else 256
    while N > SOME and 4 * N * mass_threads // 32 > 96 * 1024:
        mass_threads //= 2
    # Little is empty
    threads = next(
        x for x in (512, 320, 256, 128, 64, 32) if -(-T // (16 * x)) * 16 * x <= 1.05 * T + 512
    )
    return Layout(mass_threads, threads, stage=max(4, min(64, 12_288 // N // 4 * 4)))


def batches(N: int, T: int) -> int:
    """Batches of 16 positions of a sample: a multiple of 4; where a warp has a sample, of 32."""
    return -(-T // 64) * 4 if N <= SOME else -(-T // 512) * 32


def token_bytes(N: int) -> int:
    """Of a token that is kept between the passes."""
    return 1 if N <= 256 else 2


@dataclass(frozen=True)
class DeviceSampler:
    """A distribution over tokens for ``stream.cuh``."""

    whole: NDArray[np.uint16]  # (N − 1,), m_j
    fraction: NDArray[np.uint64]  # (N − 1,), ceil(2^53 f_j)
    table: NDArray[np.uint16]  # (65536 >> shift,)
    shift: int
    field: int
    mask: int


def device_sampler(sampler: TokenSampler) -> DeviceSampler:
    """The same distribution with the table of 16-bit entries that ``stream.cuh`` explains."""
    whole = sampler.whole.astype(np.int64)
    if len(whole) + 1 > MOST or not len(whole):
        raise InputError(f"N = {len(whole) + 1}: on a GPU there must be 2 to {MOST:,} tokens")
    for shift in (3, 0):
        cells = np.arange(0, 65536, 1 << shift)
        below = np.searchsorted(whole, cells)
        inside = np.searchsorted(whole, cells + (1 << shift)) - below
        if inside.max() <= 1:
            break
    at = whole[np.minimum(below, len(whole) - 1)]
    field = 8 if token_bytes(len(whole) + 1) == 1 else 4
    table = (
        (below << field) + np.where(inside > 0, (1 << field) - 1 - (at - cells), 0) - cells
    ) % 65536
    fraction = np.ceil(sampler.fraction * 2.0**53).astype(np.uint64)
    return DeviceSampler(
        sampler.whole, fraction, table.astype(np.uint16), shift, field, int(sampler.mask)
    )


def macros(N: int, sampler: DeviceSampler, sizes: Layout) -> dict[str, str]:
    """What the compiler is told."""
    return {
        "TOKENS": str(N),
        "FEW": str(FEW),
        "SOME": str(SOME),
        "MATRIX": str(MATRIX),
        "SHIFT": str(sampler.shift),
        "FIELD": str(sampler.field),
        "MASK": f"{sampler.mask}ull",
        "PIECE": str(PIECE),
        "CHUNK": str(CHUNK),
        "TILE": str(TILE),
        "MASS_THREADS": str(sizes.mass_threads),
        "GRADIENT_THREADS": str(sizes.gradient_threads),
        "STAGE": str(sizes.stage),
        "SCORE_THREADS": str(SCORE_THREADS),
        "ROW_THREADS": str(ROW_THREADS),
        "UPDATE_THREADS": str(UPDATE_THREADS),
    }


@cache
def source(folder: Path = Path(__file__).parent) -> str:
    """The kernels' source as one text, each file where it is first included."""
    seen = set()

    def text(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        lines = []
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            if line.startswith("#include"):
                lines.append(text(line.split('"')[1]))
            elif line != "#pragma once":
                lines.append(line)
        return "\n".join(lines) + "\n"

    return text("module.cu")
