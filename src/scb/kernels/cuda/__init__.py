"""A step of training on a GPU: CUDA C, one file a pass, and what launches it.

    weigh          A in fixed point, W                                                    update.cu
    count, lay out last tokens in ascending order, and segments: one column, one piece    batch.cu
    labels         source and label of each sample                                        batch.cu
    pass 1         mass (samples, N) by drawing every token                               mass.cu
    scores         r, loss, scores u (samples, N) and gV                              scores.cu
    pass 2         g (N, T) by drawing every token again                                  gradient.cu
    update         V and A                                                                update.cu

Tokens are never stored: ``stream.cuh`` draws them, bit for bit those of ``kernels.random``. Sums whose order could depend on how
the work is divided are either sums of integers, or have an order that depends on the sizes of the batch and the task alone.
"""
