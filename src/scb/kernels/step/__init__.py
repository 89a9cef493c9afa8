"""A step of training: draw a mini-batch, differentiate, update; without a (B, T) batch or a dense
(T, N) gradient in memory.

Samples are sorted by their last token k, because sample i only touches column k_i of A. Example,
with tiles of 4:

    last tokens   0  0  0  1  1  2 │ 2  2  3  4  5  5        B = 12 samples
    shares       └───── 0 ───────┘ └───── 1 ───────┘        one thread each
    segments     └── 0 ─┘└ 1 ┘└2┘  └ 3 ┘└4┘└5┘└ 6 ┘          one column inside one share
    tiles        └── 0 ─┘└── 1 ─┘  └── 2 ──────┘└ 3 ┘        tokens are in the cache together
    accumulator   −1      −1   0    1   −1 −1 −1             of each segment

Column 2 is split between two shares, so each adds up its part of the gradient in an accumulator
(T,), and the column is updated once all shares are done. So is a column whose segment does not fit
into one tile. All others (−1) are updated by their share on the spot, while column and tokens are
in the cache.

Column k of A is kept as ``raw[:, k] + offset[k]``, so that the projection onto 1ᵀa = 1 changes one
number.
"""
