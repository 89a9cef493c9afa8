"""A step of training on a GPU: CUDA C, one file per pass, and what launches it.

    weigh          A in fixed point, W                                                    update.cu
    count, lay out last tokens in ascending order, and segments: one column, one piece    batch.cu
    labels         source and label of each sample                                        batch.cu
    pass 1         every token, and mass (samples, N)                                     mass.cu
    scores         r, loss, scores u (samples, N) and gV                                  scores.cu
    pass 2         g (N, T) from the tokens and their scores                            gradient.cu
    update         V and A                                                                update.cu

Between steps ``measure.cu`` takes sums and medians of A. Every kernel can do the work of several
runs side by side.

``stream.cuh`` draws tokens, bit for bit those of ``kernels.random``; those of one group of samples
are kept from pass 1 to pass 2. Sums whose order could depend on how the work is divided are either
sums of integers, or have an order that depends on the sizes of the batch and the task alone.
"""
