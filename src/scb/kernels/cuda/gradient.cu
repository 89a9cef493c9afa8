// Pass 2: the gradient of column k of A, g[t] = Σ_i u_i[x_i(t)] over the samples i with last token k.
//
// A block has a segment of samples (blockIdx.y), all of one column and at most PIECE, and a range of positions (blockIdx.x); a
// thread has WORDS words of every sample's stream, 4·WORDS positions, and their sums in registers:
//
//     word of the stream    0 … THREADS−1 │ THREADS … 2·THREADS−1 │ …          of one block: WORDS·THREADS words
//     thread                0 … THREADS−1 │ 0       …   THREADS−1 │ …
//
// Keys and scores of STAGE samples at a time pass through shared memory. Every position adds one number a sample (two where its
// token was open), in the order of the samples, whatever WORDS, THREADS and STAGE are. partial (segments, stride) takes the sums.
#include "stream.cuh"

constexpr int WIDTH = TOKENS;  // scores of a sample
constexpr int THREADS = GRADIENT_THREADS;

struct alignas(16) Sums {
    float position[4];
};

__device__ inline void stage_samples(u64 key, int batch_size, int first, int begin, int size, const float* scores, u64* keys,
                                     float* staged) {
    for (int s = threadIdx.x; s < size; s += THREADS) keys[s] = sample_key(key, batch_size, begin + s);
    const float* rows = scores + (size_t)(begin - first) * WIDTH;
    for (int p = threadIdx.x; p < size * WIDTH; p += THREADS) staged[p] = rows[p];
}

// Add u[x(t)] to the sums of a thread's positions; which of them are open. Up to FEW tokens it is u[x(t)] − u[0], step by step.
__device__ inline u32 add_scores(u64 stream, const u64* along, const float* u, const Law& law, const u32* m, Sums* sums) {
    bool any = false;
    u32 open = 0;
#if TOKENS <= FEW
    float step[THRESHOLDS];
#pragma unroll
    for (int j = 0; j < THRESHOLDS; ++j) step[j] = u[j + 1] - u[j];
#else
    u32 found[4 * WORDS];
#endif
#pragma unroll
    for (int q = 0; q < WORDS; ++q) {
        u64 bits = hash(stream + along[q]) & MASK;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
#if TOKENS <= FEW
            u32 w = sixteen_bits(bits, c);
#pragma unroll
            for (int j = 0; j < THRESHOLDS; ++j) {
                if (w > m[j]) sums[q].position[c] += step[j];
                any |= w == m[j];
            }
#else
            u32 f = found[4 * q + c] = look_up(bits, c, law.table);
            any |= is_tied(f);
            sums[q].position[c] += at_token<4>(u, f);
#endif
        }
    }
    if (!OFTEN && !any) return 0;
#pragma unroll
    for (int j = 0; j < 4 * WORDS; ++j) {
#if TOKENS <= FEW
        u32 w = sixteen_bits(hash(stream + along[j / 4]) & MASK, j % 4);
        for (int i = 0; i < THRESHOLDS; ++i) {
            if (w == m[i]) open |= 1u << j;
        }
#else
        if (is_tied(found[j])) open |= 1u << j;
#endif
    }
    return open;
}

// What an open token adds to its position beyond what it has been counted as.
__device__ inline float correction(u64 stream, u32 t, const float* u, const Law& law) {
    int below = open_token(stream, t, law);
    return u[below + rise(stream, t, below, law)] - u[below];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gradient(u64 key, int batch_size, int first, const int* segments, const float* scores, int stride, const u16* whole,
             const u64* fraction, const u16* table, float* partial) {
    SHARED_POOL(pool);
    int begin = segments[2 * blockIdx.y];
    int end = segments[2 * blockIdx.y + 1];
    if (begin == end) return;
    u64* keys = (u64*)pool;
    float* staged = (float*)(pool + STAGE * sizeof(u64) + TABLE_BYTES);
    u32 word = blockIdx.x * (THREADS * WORDS) + threadIdx.x;  // and every THREADS-th after it
    u64 along[WORDS];                                         // what they add to a key
    Sums sums[WORDS];
#pragma unroll
    for (int q = 0; q < WORDS; ++q) {
        along[q] = (word + q * THREADS) * GOLDEN;
        KEEP(along[q]);
        for (int c = 0; c < 4; ++c) sums[q].position[c] = 0.0f;
    }
    Law law = {whole, fraction, load_table(table, pool + STAGE * sizeof(u64))};
#if TOKENS <= FEW
    u32 m[THRESHOLDS];
    for (int j = 0; j < THRESHOLDS; ++j) m[j] = whole[j];
    float common = 0.0f;  // Σ_i u_i[0]; the sums have what is beyond it
#else
    u32 m[1];
#endif
    for (int staging = begin; staging < end; staging += STAGE) {
        int size = min(STAGE, end - staging);
        __syncthreads();
        stage_samples(key, batch_size, first, staging, size, scores, keys, staged);
        __syncthreads();
        for (int four = 0; four < size; four += 4) {  // open tokens of four samples are settled together
            u64 open = 0;
            for (int s = four; s < min(four + 4, size); ++s) {
                u32 tied = add_scores(keys[s], along, staged + s * WIDTH, law, m, sums);
                open |= (u64)tied << (4 * WORDS * (s - four));
#if TOKENS <= FEW
                common += staged[s * WIDTH];
#endif
            }
            while (open) {
                int bit = __ffsll(open) - 1;
                open &= open - 1;
                int s = four + bit / (4 * WORDS);
                bit %= 4 * WORDS;
                u32 t = 4 * (word + bit / 4 * THREADS) + bit % 4;
                float value = correction(keys[s], t, staged + s * WIDTH, law);
#pragma unroll
                for (int q = 0; q < WORDS; ++q) {  // not sums[bit / 4]: an index that is not a constant would leave the registers
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        if (bit == 4 * q + c) sums[q].position[c] += value;
                    }
                }
            }
        }
    }
    Sums* out = (Sums*)(partial + (size_t)blockIdx.y * stride);
#pragma unroll
    for (int q = 0; q < WORDS; ++q) {
#if TOKENS <= FEW
        for (int c = 0; c < 4; ++c) sums[q].position[c] += common;
#endif
        out[word + q * THREADS] = sums[q];
    }
}

// g (TOKENS, stride) += the parts of each column's segments, in their order. blockIdx.y is the column.
extern "C" __global__ void add_segments(const int* columns, const float* partial, int stride, double* g) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int k = blockIdx.y;
    if (t >= stride || columns[k] == columns[k + 1]) return;
    double s = g[(size_t)k * stride + t];
#pragma unroll 8
    for (int segment = columns[k]; segment < columns[k + 1]; ++segment) s += partial[(size_t)segment * stride + t];
    g[(size_t)k * stride + t] = s;
}
