"""The division of a step on a GPU, and the form in which its kernels use a distribution."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError
from scb.kernels.random import TokenSampler


class Division(NamedTuple):
    """The division of a step, which is the same for all tasks. The last bits of results depend on
    it.
    """

    FEW: int = 4  # tokens up to which comparing with every threshold beats a look-up
    SOME: int = 50  # tokens up to which a thread has a histogram of its own
    MATRIX: int = 64  # tokens above which a library multiplies by V
    MOST: int = 4095  # tokens that an entry of the table can name
    UNIT: int = 8192  # samples; groups of a batch are multiples of it
    CHUNK: int = 256  # samples whose part of gV is one sum
    PIECE: int = 256  # samples whose part of g is one sum of 32-bit numbers
    TILE: int = 32  # samples of a chunk that are in shared memory together
    SCORE_THREADS: int = 256
    ROW_THREADS: int = 64  # for one row of a matrix with a column for each token
    UPDATE_THREADS: int = 1024


FIXED = Division()


@dataclass(frozen=True)
class Layout:
    """The sizes of blocks for one task; results do not depend on these sizes.

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
        """The number of positions of one block of pass 2."""
        return 16 * self.gradient_threads

    def stride(self, T: int) -> int:
        """The length of a row in memory, which is T rounded up to a multiple of a tile."""
        return -(-T // self.tile) * self.tile

    def mass_samples(self, N: int) -> int:
        """The number of samples of one block of pass 1."""
        return self.mass_threads if N <= FIXED.SOME else self.mass_threads // 32

    def mass_shared(self, N: int, table: int) -> int:
        """Return the bytes of shared memory of a block of pass 1, with a table of this size."""
        tiles = 4 * 16 * self.mass_threads  # four batches of 16 bytes for each thread
        if N <= FIXED.FEW:
            return tiles
        return table + 4 * N * self.mass_samples(N) + (tiles if N <= FIXED.SOME else 0)

    def gradient_shared(self, N: int) -> int:
        """Return the bytes of shared memory of a block of pass 2."""
        return 4 * self.stage * N


def layout(N: int, T: int) -> Layout:
    """Return sizes of blocks that suit N tokens and T positions; they were measured on one GPU and
    are valid on any.
    """
    mass_threads = 128 if FIXED.SOME / 2 < N <= FIXED.SOME else 256
    while N > FIXED.SOME and 4 * N * mass_threads // 32 > 96 * 1024:
        mass_threads //= 2
    # Little is empty
    threads = next(
        x for x in (512, 320, 256, 128, 64, 32) if -(-T // (16 * x)) * 16 * x <= 1.05 * T + 512
    )
    return Layout(mass_threads, threads, stage=max(4, min(64, 12_288 // N // 4 * 4)))


def batches(N: int, T: int) -> int:
    """Return the number of batches of 16 positions of a sample: a multiple of 4, or of 32 where a
    warp has a sample.
    """
    return -(-T // 64) * 4 if N <= FIXED.SOME else -(-T // 512) * 32


def token_bytes(N: int) -> int:
    """Return the number of bytes of a token that is kept between the passes."""
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


def device_sampler(sampler: TokenSampler, largest_shift: int = 3) -> DeviceSampler:
    """Return a distribution with the table of 16-bit entries that ``stream.cuh`` explains, with
    cells of up to 2^``largest_shift`` numbers.
    """
    whole = sampler.whole.astype(np.int64)
    if len(whole) + 1 > FIXED.MOST or not len(whole):
        raise InputError(f"N = {len(whole) + 1}: on a GPU there must be 2 to {FIXED.MOST:,} tokens")
    for shift in (largest_shift, 0):
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
    """Return the macros with which the kernels are compiled."""
    given = {
        **FIXED._asdict(),
        "TOKENS": N,
        "SHIFT": sampler.shift,
        "FIELD": sampler.field,
        "MASK": f"{sampler.mask}ull",
        "MASS_THREADS": sizes.mass_threads,
        "GRADIENT_THREADS": sizes.gradient_threads,
        "STAGE": sizes.stage,
    }
    return {name: str(value) for name, value in given.items()}


@cache
def source(folder: Path = Path(__file__).parent) -> str:
    """Return the source of the kernels as one text, with each file where it is first included."""
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
