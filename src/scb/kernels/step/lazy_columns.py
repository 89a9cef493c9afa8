"""The columns of A: their sums and moments, and the proximal steps of columns that a mini-batch
does not touch.

A step shrinks and projects every column of A, even those without a sample in its mini-batch. For
such a column, the step is deferred until the column is touched or read. Then all skipped steps are
applied together, without a pass over T for each.
"""

from typing import NamedTuple

import numpy as np

from scb.kernels.compiler import compiled

_BLOCK = 64
# a column with at most this many nonzero entries of raw is brought up to date without a pass over T
SURVIVORS = 256


class Columns(NamedTuple):
    """The columns of A, each in its state after the steps applied to it so far; column k is raw[:,
    k] + offset[k].
    """

    raw: np.ndarray  # (T, N)
    offset: np.ndarray  # (N,)
    # (N,), how many steps each column has been through
    done: np.ndarray
    # (N, SURVIVORS), the positions where raw is not 0
    survivors: np.ndarray
    # (N,), how many there are, or −1 if that is not known
    n_survivors: np.ndarray
    # (steps,), λ of each step so far; for column k, times lam_factor[k]
    lams: np.ndarray
    lam_factor: np.ndarray  # (N,)


def new_columns(raw, offset, steps, lam_factor):
    """Return columns to which no step has been applied, with room for at most ``steps`` steps."""
    N = raw.shape[1]
    survivors = np.empty((N, SURVIVORS), np.int64)
    done = np.zeros(N, np.int64)
    return Columns(
        raw, offset, done, survivors, np.full(N, -1, np.int64), np.zeros(steps), lam_factor
    )


@compiled(inline=True)
def apply_deferred_prox(k, step, columns):
    """Apply the proximal steps that column k has skipped since ``done[k]`` and before ``step``."""
    skipped = columns.lams[columns.done[k] : step]
    if skipped.size and _largest(skipped) > 0:
        lams = skipped * columns.lam_factor[k]
        count = columns.n_survivors[k]
        if count >= 0:
            survivors = columns.survivors[k, :count]
            columns.offset[k] = prox_steps_on_survivors(
                columns.raw[:, k], columns.offset[k], lams, survivors
            )
        else:
            prox_steps(columns.raw[:, k], columns.offset[k], lams)
            columns.offset[k] = 0.0
    columns.done[k] = step


@compiled
def _largest(values):
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    return largest


@compiled(inline=True)
def prox_steps(raw, offset, lams):
    """Apply x ← soft(x, λ) + c, c = (1 − 1ᵀ soft(x, λ))/T, for each λ in turn to the column x = raw
    + offset, into raw.

    Since 1ᵀx = 1, |c| ≤ λ, so one step moves an entry towards 0 by at most 2λ. Entries beyond 2Σλ
    therefore keep their sign and move together. Entries within the first λ become equal at once.
    Only the entries in between are followed one by one. Twin: ``prox_steps``.
    """
    T = raw.size
    first = lams[0]
    bound = 0.0
    for lam in lams:
        bound += 2.0 * lam
    where = np.empty(T, np.int64)  # the entries between ...
    band = np.empty(T)  # ... and their values
    zeros = between = up = down = 0
    far = 0.0
    for start in range(0, T, _BLOCK):
        block = raw[start : min(start + _BLOCK, T)]
        z, inside, u, f = _survey(block, offset, first, bound)
        zeros += z
        up += u
        down += block.size - inside - u
        far += f
        if inside > z:
            for t in range(start, start + block.size):
                x = raw[t] + offset
                if first < abs(x) <= bound:
                    where[between] = t
                    band[between] = x
                    between += 1
    # soft(x) = 0 for the entries that become equal, as it would be for common = 0
    common = move_up = move_down = 0.0
    for lam in lams:
        common -= min(max(common, -lam), lam)
        total = far - lam * (up - down) + zeros * common
        for i in range(between):
            band[i] -= min(max(band[i], -lam), lam)
            total += band[i]
        c = (1.0 - total) / T
        common += c
        far += c * (up + down) - lam * (up - down)
        move_up += c - lam
        move_down += c + lam
        for i in range(between):
            band[i] += c
    _rewrite(raw, offset, first, common, move_up, move_down)
    for i in range(between):
        raw[where[i]] = band[i]


@compiled
def prox_steps_on_survivors(raw, offset, lams, survivors):
    """Apply the steps of ``prox_steps`` to a column that is ``offset`` except at its ``survivors``,
    without a pass over T. Return the new offset.
    """
    common = offset
    others = raw.size - survivors.size
    band = np.empty(survivors.size)
    for i in range(survivors.size):
        band[i] = raw[survivors[i]] + offset
    for lam in lams:
        common -= min(max(common, -lam), lam)
        total = others * common
        for i in range(survivors.size):
            band[i] -= min(max(band[i], -lam), lam)
            total += band[i]
        c = (1.0 - total) / raw.size
        common += c
        for i in range(survivors.size):
            band[i] += c
    for i in range(survivors.size):
        raw[survivors[i]] = band[i] - common
    return common


@compiled(reorder=True)
def _survey(raw, offset, first, bound):
    """How many entries x lie within ``first`` and within ``bound``, how many above ``bound``, and
    the sum beyond it on both sides.

    Comparisons are added up as numbers, because only then does the loop vectorise.
    """
    zeros = inside = up = 0
    far = 0.0
    for t in range(raw.size):
        x = raw[t] + offset
        size = abs(x)
        zeros += size <= first
        inside += size <= bound
        up += x > bound
        far += x * np.float64(size > bound)
    return zeros, inside, up, far


@compiled(reorder=True)
def _rewrite(raw, offset, first, common, move_up, move_down):
    for t in range(raw.size):
        x = raw[t] + offset
        moved = x + (move_up if x > 0 else move_down)
        raw[t] = common if abs(x) <= first else moved


@compiled(reorder=True)
def column_sum(a):
    """Return Σ_t a_t."""
    s = 0.0
    for t in range(a.size):
        s += a[t]
    return s


@compiled(reorder=True)
def moments_of(a, base, threshold):
    """Return Σb, Σb² of a column, with b = a − base, and Σa, Σa² where a reaches the threshold."""
    s = square = kept = kept_square = 0.0
    for t in range(a.size):
        b = a[t] - base
        s += b
        square += b * b
        # a product, not a branch: the loop vectorises
        large = a[t] * np.float64(a[t] >= threshold)
        kept += large
        kept_square += large * large
    return s, square, kept, kept_square


@compiled(reorder=True)
def _beyond(a, centre, threshold):
    s = 0.0
    for t in range(a.size):
        b = a[t] - centre
        s += b * np.float64(abs(b) > threshold)
    return s


@compiled
def mass_beyond(A, centre, threshold):
    """Return, for each column, Σ(a − c) over the entries with |a − c| above its threshold, where c
    is its ``centre``, (N,). Twin: ``mass_beyond``.
    """
    mass = np.empty(A.shape[1])
    for k in range(mass.size):
        mass[k] = _beyond(A[:, k], centre[k], threshold[k])
    return mass


@compiled
def column_moments(A, threshold):
    """Return Σb and Σb² for b = a − 1/T, and Σa and Σa² over the entries that reach ``threshold``,
    (4, N). Twin: ``column_moments``.
    """
    T, N = A.shape
    moments = np.empty((4, N))
    for k in range(N):
        moments[0, k], moments[1, k], moments[2, k], moments[3, k] = moments_of(
            A[:, k], 1.0 / T, threshold
        )
    return moments
