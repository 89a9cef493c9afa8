// A mini-batch: last tokens in ascending order, its division into segments, and labels.
//
//     last tokens   0  0  0  0  0  1  1  1  1 │ 1  1  2  2  4  4  4      samples of a group, in pieces of PIECE
//     segments     └───── 0 ─────┘└──── 1 ───┘ └ 2 ┘└─ 3┘└── 4 ──┘      one column inside one piece
//
// Columns and pieces depend on the batch alone, so that sums over segments do not depend on how it is divided into groups.
#include "stream.cuh"

// counts[k]: how many of the samples have last token k; integers, so that the order does not matter. They must be 0 before.
extern "C" __global__ void count_lasts(const u64* keys, const int* at, const int* runs, int batch_size, const double* mu, int* counts) {
    SHARED_POOL(pool);
    int* mine = (int*)pool;
    u64 key = key_of(keys, at);
    mu += (size_t)runs[blockIdx.z] * TOKENS;
    counts += (size_t)blockIdx.z * TOKENS;
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) mine[k] = 0;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < batch_size; i += gridDim.x * blockDim.x) {
        atomicAdd(&mine[first_above(mu, TOKENS, to_unit(random_word(key, i)))], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) atomicAdd(&counts[k], mine[k]);
}

// Where each column's samples begin, starts (TOKENS + 1,); and the counts made 0 for the next step. One block.
extern "C" __global__ void begin_columns(int* counts, int* starts) {
    SHARED_POOL(pool);
    int* shared = (int*)pool;  // (TOKENS + 1,)
    counts += (size_t)blockIdx.z * TOKENS;
    starts += (size_t)blockIdx.z * (TOKENS + 1);
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) {
        shared[k] = counts[k];
        counts[k] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int begin = 0;
        for (int k = 0; k < TOKENS; ++k) {
            int count = shared[k];
            shared[k] = begin;
            begin += count;
        }
        shared[TOKENS] = begin;
    }
    __syncthreads();
    for (int k = threadIdx.x; k <= TOKENS; k += blockDim.x) starts[k] = shared[k];
}

__device__ inline int pieces(int begin, int end) { return begin < end ? (end - 1) / PIECE - begin / PIECE + 1 : 0; }

// Segments of the samples first … last − 1; columns[k] is the first segment of column k. One block.
extern "C" __global__ void lay_out(const int* starts, int first, int last, int most, int* columns, int* segments) {
    SHARED_POOL(pool);
    int* used = (int*)pool;  // (TOKENS + 1,)
    starts += (size_t)blockIdx.z * (TOKENS + 1);
    columns += (size_t)blockIdx.z * (TOKENS + 1);
    segments += (size_t)blockIdx.z * 2 * most;
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) used[k] = pieces(max(starts[k], first), min(starts[k + 1], last));
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int k = 0; k < TOKENS; ++k) {
            int mine = used[k];
            used[k] = total;
            total += mine;
        }
        used[TOKENS] = total;
    }
    __syncthreads();
    for (int k = threadIdx.x; k <= TOKENS; k += blockDim.x) columns[k] = used[k];
    for (int k = threadIdx.x; k < TOKENS; k += blockDim.x) {
        int begin = max(starts[k], first);
        int end = min(starts[k + 1], last);
        for (int s = used[k]; s < used[k + 1]; ++s) {
            int next = min((begin / PIECE + 1) * PIECE, end);
            segments[2 * s] = begin;
            segments[2 * s + 1] = next;
            begin = next;
        }
    }
    for (int s = used[TOKENS] + threadIdx.x; s < most; s += blockDim.x) segments[2 * s] = segments[2 * s + 1] = 0;
}

// Last token, and label from the token at a source position, of the samples first … last − 1; and their mass made 0.
// positions and q are (TOKENS, sparsity), P is (TOKENS, TOKENS) with one distribution per row; q and P are cumulative.
extern "C" __global__ void draw_labels(const u64* keys, const int* at, const int* runs, int batch_size, int first, int last,
                                       const int* starts, const u16* whole, const u64* fraction, const u16* table,
                                       const int* positions, const double* q, int sparsity, const double* P, int* lasts, int* labels,
                                       int* mass) {
    u64 key = key_of(keys, at);
    int run = runs[blockIdx.z];
    int samples = last - first;
    Distribution distribution = distribution_of(run, whole, fraction, table);
    starts += (size_t)blockIdx.z * (TOKENS + 1);
    positions += (size_t)run * TOKENS * sparsity;
    q += (size_t)run * TOKENS * sparsity;
    P += (size_t)run * TOKENS * TOKENS;
    lasts += (size_t)blockIdx.z * samples;
    labels += (size_t)blockIdx.z * samples;
    mass += (size_t)blockIdx.z * samples * TOKENS;
    for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x) {
        int k = first_above(starts, TOKENS + 1, i) - 1;
        int slot = first_above(q + k * sparsity, sparsity, to_unit(random_word(key, (u64)batch_size + i)));
        int source = draw_token(sample_key(key, batch_size, i), positions[k * sparsity + slot], distribution);
        lasts[i - first] = k;
        labels[i - first] = first_above(P + source * TOKENS, TOKENS, to_unit(random_word(key, 2ull * batch_size + i)));
    }
    size_t entries = (size_t)samples * TOKENS;
    for (size_t p = blockIdx.x * blockDim.x + threadIdx.x; p < entries; p += gridDim.x * blockDim.x) mass[p] = 0;
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
