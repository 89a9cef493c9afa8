// Pass 2: the gradient of column k of A, g[t] = Σ_i u_i[x_i(t)] over the samples i with last token k.
//
// A block has a segment of samples (blockIdx.y), all of one column and at most PIECE, and a range of positions (blockIdx.x); a
// thread has WORDS words of every sample's stream, 4·WORDS positions, and their sums in registers:
//
//     word of the stream    0 … THREADS−1 │ THREADS … 2·THREADS−1 │ …          of one block: WORDS·THREADS words
//     thread                0 … THREADS−1 │ 0       …   THREADS−1 │ …
//
// Keys and scores of STAGE samples at a time pass through shared memory. Every position adds one number a sample, in the order of
// the samples, whatever WORDS, THREADS and STAGE are. partial (segments, stride) takes the sums.
#include "stream.cuh"

constexpr int WIDTH = TOKENS + 1;  // scores of a sample
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

extern "C" __global__ void __launch_bounds__(THREADS)
    gradient(u64 key, int batch_size, int first, const int* segments, const float* scores, int stride, const u16* whole,
             const u64* fraction, const u16* table, float* partial) {
    SHARED_POOL(pool);
    int begin = segments[2 * blockIdx.y];
    int end = segments[2 * blockIdx.y + 1];
    if (begin == end) return;
    u64* keys = (u64*)pool;
    float* staged = (float*)(pool + STAGE * sizeof(u64) + (TOKENS <= FEW ? 0 : TABLE_BYTES));
    int word = blockIdx.x * (THREADS * WORDS) + threadIdx.x;  // and every THREADS-th after it
    Sums sums[WORDS];
#pragma unroll
    for (int q = 0; q < WORDS; ++q) {
        for (int c = 0; c < 4; ++c) sums[q].position[c] = 0.0f;
    }
#if TOKENS <= FEW
    u32 m[THRESHOLDS];
    for (int j = 0; j < THRESHOLDS; ++j) m[j] = whole[j];
    float common = 0.0f;  // Σ_i u_i[0]; the sums have what is beyond it, Σ_j (u[j + 1] − u[j]) [w > m_j]
#else
    const u16* cells = load_table(table, pool + STAGE * sizeof(u64));
    Law law = {whole, fraction, cells};
#endif
    for (int staging = begin; staging < end; staging += STAGE) {
        int size = min(STAGE, end - staging);
        __syncthreads();
        stage_samples(key, batch_size, first, staging, size, scores, keys, staged);
        __syncthreads();
        for (int s = 0; s < size; ++s) {
            u64 stream = keys[s];
            const float* u = staged + s * WIDTH;
            u32 open = 0;
#if TOKENS <= FEW
            float rise[THRESHOLDS];
#pragma unroll
            for (int j = 0; j < THRESHOLDS; ++j) rise[j] = u[j + 1] - u[j];
            common += u[0];
#endif
#pragma unroll
            for (int q = 0; q < WORDS; ++q) {
                u64 bits = random_word(stream, word + q * THREADS) & MASK;
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    u32 w = sixteen_bits(bits, c);
#if TOKENS <= FEW
#pragma unroll
                    for (int j = 0; j < THRESHOLDS; ++j) {
                        if (w > m[j]) sums[q].position[c] += rise[j];
                        if (w == m[j]) open |= 1u << (4 * q + c);
                    }
#else
                    int token = look_up(w, cells);
                    if (token == TOKENS) open |= 1u << (4 * q + c);
                    sums[q].position[c] += u[token];
#endif
                }
            }
            while (open) {
                int bit = __ffs(open) - 1;
                int t = 4 * (word + bit / 4 * THREADS) + bit % 4;
                open &= open - 1;
#if TOKENS <= FEW
                float value = 0.0f;
                u32 w = sixteen_bits(random_word(stream, t / 4) & MASK, t % 4);
                u64 fine = random_word(stream, FRACTIONS + t) >> 11;
#pragma unroll
                for (int j = 0; j < THRESHOLDS; ++j) {
                    if (w == m[j] && fine >= fraction[j]) value += rise[j];
                }
#else
                float value = u[settle(stream, t, law)];
#endif
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
