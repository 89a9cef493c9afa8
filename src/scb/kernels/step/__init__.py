"""A step of training draws a mini-batch, differentiates and updates, without a (B, T) batch or a
dense (T, N) gradient in memory.

Samples are sorted by their last token k, because sample i only touches column k_i of A. Example,
with tiles of 4:

    last tokens   0  0  0  1  1  2 │ 2  2  3  4  5  5        B = 12 samples
    shares       └───── 0 ───────┘ └───── 1 ───────┘        one thread each
    segments     └── 0 ─┘└ 1 ┘└2┘  └ 3 ┘└4┘└5┘└ 6 ┘          one column inside one share
    tiles        └── 0 ─┘└── 1 ─┘  └── 2 ──────┘└ 3 ┘        tokens are in the cache together
    accumulator   −1      −1   0    1   −1 −1 −1             of each segment

Column 2 is split between two shares, so each share adds up its part of the gradient in an
accumulator (T,), and the column is updated once all shares are done. A column whose segment does
not fit into one tile is updated in the same way. All other columns (−1) are updated by their share
immediately, while column and tokens are in the cache.

Column k of A is kept as ``raw[:, k] + offset[k]``, so the projection onto 1ᵀa = 1 changes only one
number.
"""
