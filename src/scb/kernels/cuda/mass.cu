// Pass 1: the attention's mass on each token, mass[i][n] = Σ_t a_t [x_t = n], of each sample i with last token k, a = column k of A.
//
// a is in fixed point, W (TOKENS, stride) of 32-bit integers (``weigh`` in update.cu), so that a sum does not depend on its order:
// positions are divided into ranges, one for each blockIdx.y, and parts are added atomically. Sixteen positions at a time:
//
//     position    16b   …   16b+3 │ …   16b+7 │ …  16b+11 │ …  16b+15        batch b of a column, 4 words of the stream
//     open          0  0  1  0    │ 0  0  0  0 │ 0  0  0  0│ 0  0  0  0       one bit each: tied, to be settled afterwards
//
// Positions from T to the end of the last batch have weight 0. There are three ways, of which the number of tokens chooses one.
#include "stream.cuh"

struct alignas(16) Four {
    int weight[4];  // of the positions of one word
};

#if TOKENS <= FEW
// A thread has a sample and sums Σ a_t [w_t > m_j] in registers. totals[k] = Σ_t W[k][t].
extern "C" __global__ void add_mass(u64 key, int batch_size, int first, int samples, int batches, int range, const int* W, int stride,
                                    const int* totals, const int* lasts, const u16* whole, const u64* fraction, const u16* table,
                                    int* mass) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= samples) return;
    int k = lasts[i];
    const int* a = W + (size_t)k * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    u32 m[THRESHOLDS];
    int above[THRESHOLDS];
    for (int j = 0; j < THRESHOLDS; ++j) {
        m[j] = whole[j];
        above[j] = 0;
    }
    int end = min((int)(blockIdx.y + 1) * range, batches);
    for (int b = blockIdx.y * range; b < end; ++b) {
        u32 open = 0;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            u64 word = random_word(stream, 4 * b + q) & MASK;
            Four four = ((const Four*)a)[4 * b + q];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                u32 w = sixteen_bits(word, c);
#pragma unroll
                for (int j = 0; j < THRESHOLDS; ++j) {
                    if (w > m[j]) above[j] += four.weight[c];
                    if (w == m[j]) open |= 1u << (4 * q + c);
                }
            }
        }
        while (open) {
            int t = 16 * b + __ffs(open) - 1;
            open &= open - 1;
            u32 w = sixteen_bits(random_word(stream, t / 4) & MASK, t % 4);
            u64 u = random_word(stream, FRACTIONS + t) >> 11;
#pragma unroll
            for (int j = 0; j < THRESHOLDS; ++j) {
                if (w == m[j] && u >= fraction[j]) above[j] += a[t];
            }
        }
    }
    int* mine = mass + (size_t)i * TOKENS;
    atomicAdd(&mine[0], (blockIdx.y == 0 ? totals[k] : 0) - above[0]);
    for (int j = 1; j < THRESHOLDS; ++j) atomicAdd(&mine[j], above[j - 1] - above[j]);
    atomicAdd(&mine[THRESHOLDS], above[THRESHOLDS - 1]);
}
#elif TOKENS <= SOME
// A thread has a sample and a histogram of its own, histogram[token][thread], so that no bank of shared
// memory is shared and nothing is atomic.
extern "C" __global__ void add_mass(u64 key, int batch_size, int first, int samples, int batches, int range, const int* W, int stride,
                                     const int* totals, const int* lasts, const u16* whole, const u64* fraction, const u16* table,
                                     int* mass) {
    SHARED_POOL(pool);
    const u16* cells = load_table(table, pool);
    int* histogram = (int*)(pool + TABLE_BYTES) + threadIdx.x;
    for (int n = 0; n <= TOKENS; ++n) histogram[n * MASS_THREADS] = 0;
    __syncthreads();
    int i = blockIdx.x * MASS_THREADS + threadIdx.x;
    if (i >= samples) return;
    Law law = {whole, fraction, cells};
    const int* a = W + (size_t)lasts[i] * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    int end = min((int)(blockIdx.y + 1) * range, batches);
    for (int b = blockIdx.y * range; b < end; ++b) {
        u32 open = 0;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            u64 word = random_word(stream, 4 * b + q) & MASK;
            Four four = ((const Four*)a)[4 * b + q];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                int token = look_up(sixteen_bits(word, c), cells);
                if (token == TOKENS) open |= 1u << (4 * q + c);
                histogram[token * MASS_THREADS] += four.weight[c];
            }
        }
        while (open) {
            int t = 16 * b + __ffs(open) - 1;
            open &= open - 1;
            histogram[settle(stream, t, law) * MASS_THREADS] += a[t];
        }
    }
    for (int n = 0; n < TOKENS; ++n) atomicAdd(&mass[(size_t)i * TOKENS + n], histogram[n * MASS_THREADS]);
}
#else
// The 32 threads of a warp have a sample, and one histogram to which they add atomically.
extern "C" __global__ void add_mass(u64 key, int batch_size, int first, int samples, int batches, int range, const int* W, int stride,
                                     const int* totals, const int* lasts, const u16* whole, const u64* fraction, const u16* table,
                                     int* mass) {
    SHARED_POOL(pool);
    const u16* cells = load_table(table, pool);
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int* histogram = (int*)(pool + TABLE_BYTES) + warp * (TOKENS + 1);
    for (int n = lane; n <= TOKENS; n += 32) histogram[n] = 0;
    __syncthreads();
    int i = blockIdx.x * (MASS_THREADS / 32) + warp;
    bool used = i < samples;
    Law law = {whole, fraction, cells};
    const int* a = W + (size_t)lasts[used ? i : 0] * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    int end = used ? min((int)(blockIdx.y + 1) * range, batches) : 0;
    for (int b = blockIdx.y * range + lane; b < end; b += 32) {  // word q of the warp's 32 batches: neighbours for neighbours
        u32 open = 0;
        int base = b - lane;
        int full = min(32, end - base);  // batches of this round, each 4 words: word number q·full + lane
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            int word_number = 4 * base + q * full + lane;
            u64 word = random_word(stream, word_number) & MASK;
            Four four = ((const Four*)a)[word_number];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                int token = look_up(sixteen_bits(word, c), cells);
                if (token == TOKENS) open |= 1u << (4 * q + c);
                atomicAdd(&histogram[token], four.weight[c]);
            }
        }
        while (open) {
            int bit = __ffs(open) - 1;
            int t = 4 * (4 * base + bit / 4 * full + lane) + bit % 4;
            open &= open - 1;
            atomicAdd(&histogram[settle(stream, t, law)], a[t]);
        }
    }
    __syncthreads();
    if (!used) return;
    for (int n = lane; n < TOKENS; n += 32) atomicAdd(&mass[(size_t)i * TOKENS + n], histogram[n]);
}
#endif
