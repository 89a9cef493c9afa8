// Pass 2: the gradient of column k of A, g[t] = Σ_i u_i[x_i(t)] over the samples i with last token k, from the tokens that pass 1 kept.
//
// A block has a segment of samples (blockIdx.y), all of one column and at most PIECE, and a range of positions (blockIdx.x); a
// thread has a batch of 16 positions and their sums in registers:
//
//     batch     0        1        2      …  threads−1 │ threads …                of every sample
//     thread    0        1        2      …  threads−1 │ 0       …                a block has as many batches as threads
//
// Scores of STAGE samples at a time pass through shared memory. Every position adds one number per sample, in the order of the samples,
// whatever the sizes are. partial (segments, stride) takes the sums.
#include "stream.cuh"

constexpr int AHEAD = BYTES ? 4 : 2;  // samples whose tokens are on their way from memory together

struct alignas(16) Sums {
    float position[16];
};

// Add u[x(t)] to the sums of 16 positions.
__device__ inline void add_scores(const Batch& batch, const float* u, Sums& sums) {
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        u32 bits = batch.quad[j / 4].bits[BYTES ? 0 : j % 4 / 2];
        sums.position[j] += u[BYTES ? bits >> (8 * (j % 4)) & 0xff : bits >> (16 * (j % 2)) & 0xffff];
    }
}

extern "C" __global__ void __launch_bounds__(GRADIENT_THREADS)
    gradient(int first, int samples, int batches, const int* segments, const Token* tokens, const float* scores, int stride,
             float* partial) {
    SHARED_POOL(pool);
    segments += (size_t)blockIdx.z * 2 * gridDim.y;
    tokens += (size_t)blockIdx.z * samples * 16 * batches;
    scores += (size_t)blockIdx.z * samples * TOKENS;
    partial += (size_t)blockIdx.z * gridDim.y * stride;
    int begin = segments[2 * blockIdx.y];
    int end = segments[2 * blockIdx.y + 1];
    if (begin == end) return;
    float* staged = (float*)pool;
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    bool used = b < batches;
    const Batch* mine = (const Batch*)tokens + b;
    Sums sums;
    for (int j = 0; j < 16; ++j) sums.position[j] = 0.0f;
    for (int staging = begin; staging < end; staging += STAGE) {
        int size = min(STAGE, end - staging);
        __syncthreads();
        const float* rows = scores + (size_t)(staging - first) * TOKENS;
        for (int p = threadIdx.x; p < size * TOKENS; p += blockDim.x) staged[p] = rows[p];
        __syncthreads();
        if (!used) continue;
        const Batch* row = mine + (size_t)(staging - first) * batches;
        int s = 0;
        for (; s + AHEAD <= size; s += AHEAD) {
            Batch next[AHEAD];
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) next[j] = row[(size_t)(s + j) * batches];
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) add_scores(next[j], staged + (s + j) * TOKENS, sums);
        }
        for (; s < size; ++s) add_scores(row[(size_t)s * batches], staged + s * TOKENS, sums);
    }
    ((Sums*)(partial + (size_t)blockIdx.y * stride))[b] = sums;
}

// g (TOKENS, stride) += the parts of each column's segments, in their order; without what was there if these are of the ``first``
// group. There are ``most`` parts for each run. blockIdx.y is the column.
extern "C" __global__ void add_segments(int first, int most, const int* columns, const float* partial, int stride, double* g) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int k = blockIdx.y;
    columns += (size_t)blockIdx.z * (TOKENS + 1);
    partial += (size_t)blockIdx.z * most * stride;
    g += (size_t)blockIdx.z * TOKENS * stride;
    if (t >= stride || (!first && columns[k] == columns[k + 1])) return;
    double s = first ? 0.0 : g[(size_t)k * stride + t];
#pragma unroll 8
    for (int segment = columns[k]; segment < columns[k + 1]; ++segment) s += partial[(size_t)segment * stride + t];
    g[(size_t)k * stride + t] = s;
}
