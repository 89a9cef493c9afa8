// A mini-batch: last tokens in ascending order, its division into segments, and labels.
//
//     last tokens   0  0  0  0  0  1  1  1  1 │ 1  1  2  2  4  4  4      samples of a group, in pieces of PIECE
//     segments     └───── 0 ─────┘└──── 1 ───┘ └ 2 ┘└─ 3┘└── 4 ──┘      one column inside one piece
//
// Columns and pieces depend on the batch alone, so that sums over segments do not depend on how it is divided into groups.
#include "stream.cuh"

// counts[k]: how many of the samples have last token k; integers, so that the order does not matter.
extern "C" __global__ void count_lasts(u64 key, int batch_size, const double* mu, int* counts) {
    SHARED_POOL(pool);
    int* mine = (int*)pool;
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) mine[k] = 0;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < batch_size; i += gridDim.x * blockDim.x) {
        atomicAdd(&mine[first_above(mu, TOKENS, to_unit(random_word(key, i)))], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) atomicAdd(&counts[k], mine[k]);
}

// Where each column's samples begin, starts (TOKENS + 1,); one thread.
extern "C" __global__ void begin_columns(const int* counts, int* starts) {
    int begin = 0;
    for (int k = 0; k < TOKENS; ++k) {
        starts[k] = begin;
        begin += counts[k];
    }
    starts[TOKENS] = begin;
}

__device__ inline int pieces(int begin, int end) { return begin < end ? (end - 1) / PIECE - begin / PIECE + 1 : 0; }

// Segments of the samples first … last − 1; columns[k] is the first segment of column k. One block.
extern "C" __global__ void lay_out(const int* starts, int first, int last, int most, int* columns, int* segments) {
    if (threadIdx.x == 0) {
        int used = 0;
        for (int k = 0; k < TOKENS; ++k) {
            columns[k] = used;
            used += pieces(max(starts[k], first), min(starts[k + 1], last));
        }
        columns[TOKENS] = used;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) {
        int begin = max(starts[k], first);
        int end = min(starts[k + 1], last);
        for (int s = columns[k]; s < columns[k + 1]; ++s) {
            int next = min((begin / PIECE + 1) * PIECE, end);
            segments[2 * s] = begin;
            segments[2 * s + 1] = next;
            begin = next;
        }
    }
    for (int s = columns[TOKENS] + threadIdx.x; s < most; s += blockDim.x) segments[2 * s] = segments[2 * s + 1] = 0;
}

// Last token, and label from the token at a source position, of the samples first … last − 1.
// positions and q are (TOKENS, sparsity), P is (TOKENS, TOKENS) with one distribution per row; q and P are cumulative.
extern "C" __global__ void draw_labels(u64 key, int batch_size, int first, int last, const int* starts, const u16* whole,
                                       const u64* fraction, const u16* table, const int* positions, const double* q, int sparsity,
                                       const double* P, int* lasts, int* labels) {
    Distribution distribution = {whole, fraction, table};
    for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x) {
        int k = first_above(starts, TOKENS + 1, i) - 1;
        int slot = first_above(q + k * sparsity, sparsity, to_unit(random_word(key, (u64)batch_size + i)));
        int source = draw_token(sample_key(key, batch_size, i), positions[k * sparsity + slot], distribution);
        lasts[i - first] = k;
        labels[i - first] = first_above(P + source * TOKENS, TOKENS, to_unit(random_word(key, 2ull * batch_size + i)));
    }
}

// Tokens of ``samples`` samples from ``first`` on, (samples, T); for tests.
extern "C" __global__ void draw_tokens(u64 key, int batch_size, int first, int samples, int T, const u16* whole, const u64* fraction,
                                       const u16* table, u16* tokens) {
    Distribution distribution = {whole, fraction, table};
    long long count = (long long)samples * T;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        tokens[i] = (u16)draw_token(sample_key(key, batch_size, first + (int)(i / T)), (u32)(i % T), distribution);
    }
}
