// Pass 1: the attention's mass on each token, mass[i][n] = Σ_t a_t [x_t = n], of each sample i with last token k, a = column k of A.
//
// a is in fixed point, W (TOKENS, stride) of 32-bit integers (``weigh`` in update.cu), so that a sum does not depend on its order:
// positions are divided into ranges, one for each blockIdx.y, and parts are added atomically. Sixteen positions at a time:
//
//     position    16b   …   16b+3 │ …   16b+7 │ …  16b+11 │ …  16b+15        batch b of a column, 4 words of the stream
//     open          0  0  1  0    │ 0  0  0  0 │ 0  0  0  0│ 0  0  0  0       one bit each: tied, to be settled afterwards
//
// Positions from T on have weight 0. There are three ways, of which the number of tokens chooses one.
#include "stream.cuh"

struct alignas(16) Four {
    int weight[4];  // of the positions of one word
};

// Which of 16 tokens are open.
__device__ inline u32 tied_bits(const u32* found) {
    u32 open = 0;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        if (is_tied(found[j])) open |= 1u << j;
    }
    return open;
}

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
    int b = blockIdx.y * range;
    int end = min(b + range, batches);
    u64 z = stream + 4ull * b * GOLDEN;
    for (; b < end; ++b, z += 4 * GOLDEN) {
        u64 words[4];
        bool any = false;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            words[q] = hash(z + q * GOLDEN) & MASK;
            Four four = ((const Four*)a)[4 * b + q];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                u32 w = sixteen_bits(words[q], c);
#pragma unroll
                for (int j = 0; j < THRESHOLDS; ++j) {
                    if (w > m[j]) above[j] += four.weight[c];
                    any |= w == m[j];
                }
            }
        }
        if (!any) continue;
        for (int t = 16 * b; t < 16 * b + 16; ++t) {
            u32 w = sixteen_bits(random_word(stream, t / 4) & MASK, t % 4);
            for (int j = 0; j < THRESHOLDS; ++j) {
                if (w == m[j] && random_word(stream, FRACTIONS + t) >> 11 >= fraction[j]) above[j] += a[t];
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
    for (int n = 0; n < TOKENS; ++n) histogram[n * MASS_THREADS] = 0;
    __syncthreads();
    int i = blockIdx.x * MASS_THREADS + threadIdx.x;
    if (i >= samples) return;
    Law law = {whole, fraction, cells};
    const int* a = W + (size_t)lasts[i] * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    int b = blockIdx.y * range;
    int end = min(b + range, batches);
    u64 z = stream + 4ull * b * GOLDEN;
    for (; b < end; ++b, z += 4 * GOLDEN) {
        u32 found[16];
        bool any = false;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            u64 word = hash(z + q * GOLDEN) & MASK;
            Four four = ((const Four*)a)[4 * b + q];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                u32 f = found[4 * q + c] = look_up(word, c, cells);
                any |= is_tied(f);
                at_token<4 * MASS_THREADS>(histogram, f) += four.weight[c];
            }
        }
        if (!any) continue;
        u32 open = tied_bits(found);
        while (open) {
            u32 t = 16 * b + __ffs(open) - 1;
            open &= open - 1;
            int below = open_token(stream, t, law);
            histogram[below * MASS_THREADS] -= a[t];
            histogram[(below + rise(stream, t, below, law)) * MASS_THREADS] += a[t];
        }
    }
    for (int n = 0; n < TOKENS; ++n) atomicAdd(&mass[(size_t)i * TOKENS + n], histogram[n * MASS_THREADS]);
}
#else
// The 32 threads of a warp have a sample, and one histogram to which they add atomically.
// Ranges are multiples of 32 batches here.
extern "C" __global__ void add_mass(u64 key, int batch_size, int first, int samples, int batches, int range, const int* W, int stride,
                                     const int* totals, const int* lasts, const u16* whole, const u64* fraction, const u16* table,
                                     int* mass) {
    SHARED_POOL(pool);
    const u16* cells = load_table(table, pool);
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int* histogram = (int*)(pool + TABLE_BYTES) + warp * TOKENS;
    for (int n = lane; n < TOKENS; n += 32) histogram[n] = 0;
    __syncthreads();
    int i = blockIdx.x * (MASS_THREADS / 32) + warp;
    bool used = i < samples;
    Law law = {whole, fraction, cells};
    const int* a = W + (size_t)lasts[used ? i : 0] * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    int end = used ? min((int)(blockIdx.y + 1) * range, batches) : 0;
    for (int begin = blockIdx.y * range; begin < end; begin += 128) {
        u64 open = 0;  // of up to four rounds, each of 32 batches: word 32q + lane of a round is a thread's q-th
        for (int round = 0; round < min(4, (end - begin + 31) / 32); ++round) {
            u32 first_word = 4 * (begin + 32 * round) + lane;
            u32 found[16];
            bool any = false;
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                u64 word = random_word(stream, first_word + 32 * q) & MASK;
                Four four = ((const Four*)a)[first_word + 32 * q];
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    u32 f = found[4 * q + c] = look_up(word, c, cells);
                    any |= is_tied(f);
                    atomicAdd(&at_token<4>(histogram, f), four.weight[c]);
                }
            }
            if (OFTEN || any) open |= (u64)tied_bits(found) << (16 * round);
        }
        while (open) {
            int bit = __ffsll(open) - 1;
            open &= open - 1;
            u32 t = 4 * (4 * begin + 128 * (bit / 16) + 32 * (bit % 16 / 4) + lane) + bit % 4;
            int below = open_token(stream, t, law);
            int steps = rise(stream, t, below, law);
            if (steps > 0) {
                atomicAdd(&histogram[below], -a[t]);
                atomicAdd(&histogram[below + steps], a[t]);
            }
        }
    }
    __syncthreads();
    if (!used) return;
    for (int n = lane; n < TOKENS; n += 32) atomicAdd(&mass[(size_t)i * TOKENS + n], histogram[n]);
}
#endif

// Where A is 0 but at a few positions, those of column k being positions[starts[k]] … positions[starts[k + 1] − 1]: only the tokens
// there are drawn, the same as in the whole context. A thread has a sample.
extern "C" __global__ void add_active_mass(u64 key, int batch_size, int first, int samples, const int* W, int stride,
                                           const int* lasts, const int* starts, const int* positions, const u16* whole,
                                           const u64* fraction, const u16* table, int* mass) {
    Law law = {whole, fraction, table};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= samples) return;
    int k = lasts[i];
    u64 stream = sample_key(key, batch_size, first + i);
    for (int j = starts[k]; j < starts[k + 1]; ++j) {
        int t = positions[j];
        mass[(size_t)i * TOKENS + draw_token(stream, t, law)] += W[(size_t)k * stride + t];
    }
}
