// Sums over a block of UPDATE_THREADS: strided parts, then a tree.
#pragma once
#include "stream.cuh"

constexpr int BLOCK = UPDATE_THREADS;

// COUNT sums over the block, for all threads, in place. ``parts`` (COUNT · BLOCK,) is shared memory.
template <int COUNT>
__device__ inline void block_sums(double* values, double* parts) {
    __syncthreads();
    for (int c = 0; c < COUNT; ++c) parts[c * BLOCK + threadIdx.x] = values[c];
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (half >= 32) {
            __syncthreads();
        } else {
            __syncwarp();  // what is left lies with the threads of one warp
        }
        if (threadIdx.x < half) {
            for (int c = 0; c < COUNT; ++c) parts[c * BLOCK + threadIdx.x] += parts[c * BLOCK + threadIdx.x + half];
        }
    }
    __syncthreads();
    for (int c = 0; c < COUNT; ++c) values[c] = parts[c * BLOCK];
}

__device__ inline double block_sum(double value, double* parts) {
    block_sums<1>(&value, parts);
    return value;
}

__device__ inline double block_max(double value, double* parts) {
    __syncthreads();
    parts[threadIdx.x] = value;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] = fmax(parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    __syncthreads();
    return parts[0];
}
