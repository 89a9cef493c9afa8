// Pass 1: the attention's mass on each token, mass[i][n] = Σ_t a_t [x_t = n], of each sample i with last token k, a = column k of A.
//
// a is in fixed point, W (TOKENS, stride) of 32-bit integers (``weigh`` in update.cu), so that a sum does not depend on its order:
// positions are divided into ranges, one for each blockIdx.y, and parts are added atomically. Every token is kept for pass 2:
//
//     position           0  …  15 │ 16  …  31 │ …          tokens (samples, 16·batches), a byte each, or two if N > 256
//     batch                0      │     1     │ …          4 words of the stream, 16 positions
//     open         0 0 1 0 …      │ 0 0 0 0 … │ …          one bit each: tied, to be settled after its batch
//
// Positions from T on have weight 0. There are three ways, of which the number of tokens chooses one. In the first two a thread has a
// sample; four of its batches wait in shared memory, in a *tile* (32 samples, 4 batches) for each warp, until the warp writes
// them together: memory takes 64 bytes in a row at their full speed, and 16 at a third of it.
#include "stream.cuh"

struct alignas(16) Four {
    int weight[4];  // of the positions of one word
};

// Where batch s of a warp's sample lies in its tile: in an order in which neither rows nor columns share banks.
__device__ inline int place_in_tile(int row, int s) { return 4 * row + (s ^ (row / 2 % 4)); }

// Write the tile of a warp whose samples begin at ``first_row`` to the tokens of batches b … b + 3.
__device__ inline void write_tile(const Batch* tile, int first_row, int samples, int batches, int b, Token* tokens) {
    int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        int row = 8 * j + lane / 4;
        Batch* out = (Batch*)tokens + (size_t)(first_row + row) * batches + b;
        if (first_row + row < samples) out[lane % 4] = tile[place_in_tile(row, lane % 4)];
    }
    __syncwarp();
}

#if TOKENS <= FEW
// A thread has a sample and sums Σ a_t [w_t > m_j] in registers. totals[k] = Σ_t W[k][t].
extern "C" __global__ void add_mass(const u64* keys, const int* at, const int* runs, int batch_size, int first, int samples,
                                    int batches, int range, const int* W, int stride, const int* totals, const int* lasts,
                                    const u16* whole, const u64* fraction, const u16* table, int* mass, Token* tokens) {
    SHARED_POOL(pool);
    u64 key = key_of(keys, at);
    Distribution distribution = distribution_of(runs[blockIdx.z], whole, fraction, table);
    W += (size_t)blockIdx.z * TOKENS * stride;
    totals += (size_t)blockIdx.z * TOKENS;
    lasts += (size_t)blockIdx.z * samples;
    mass += (size_t)blockIdx.z * samples * TOKENS;
    tokens += (size_t)blockIdx.z * samples * 16 * batches;
    int lane = threadIdx.x % 32;
    Batch* tile = (Batch*)pool + (threadIdx.x - lane) * 4;
    int i = blockIdx.x * MASS_THREADS + threadIdx.x;
    bool used = i < samples;  // others go along, since a warp writes together
    int k = lasts[used ? i : 0];
    const int* a = W + (size_t)k * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    u32 m[THRESHOLDS];
    int above[THRESHOLDS];
    for (int j = 0; j < THRESHOLDS; ++j) {
        m[j] = distribution.whole[j];
        above[j] = 0;
    }
    int b = blockIdx.y * range;
    int end = min(b + range, batches);
    u64 z = stream + 4ull * b * GOLDEN;
    for (; b < end; ++b, z += 4 * GOLDEN) {
        Batch batch;
        bool any = false;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            u64 word = hash(z + q * GOLDEN) & MASK;
            Four four = ((const Four*)a)[4 * b + q];
            u32 bits = 0;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                u32 w = sixteen_bits(word, c);
#pragma unroll
                for (int j = 0; j < THRESHOLDS; ++j) {
                    if (w > m[j]) {
                        above[j] += four.weight[c];
                        bits += 1u << (8 * c);
                    }
                    any |= w == m[j];
                }
            }
            batch.quad[q].bits[0] = bits;
        }
        Batch* kept = tile + place_in_tile(lane, b % 4);
        *kept = batch;
        if (any) {
            for (int t = 16 * b; t < 16 * b + 16; ++t) {
                u32 w = sixteen_bits(random_word(stream, t / 4) & MASK, t % 4);
                for (int j = 0; j < THRESHOLDS; ++j) {
                    if (w == m[j] && random_word(stream, FRACTIONS + t) >> 11 >= distribution.fraction[j]) {
                        above[j] += a[t];
                        ++((Token*)kept)[t % 16];
                    }
                }
            }
        }
        if (b % 4 == 3) write_tile(tile, i - lane, samples, batches, b - 3, tokens);
    }
    if (!used) return;
    int* sums = mass + (size_t)i * TOKENS;
    atomicAdd(&sums[0], (blockIdx.y == 0 ? totals[k] : 0) - above[0]);
    for (int j = 1; j < THRESHOLDS; ++j) atomicAdd(&sums[j], above[j - 1] - above[j]);
    atomicAdd(&sums[THRESHOLDS], above[THRESHOLDS - 1]);
}
#elif TOKENS <= SOME
// A thread has a sample and a histogram of its own, histogram[token][thread], so that no bank of shared
// memory is shared and nothing is atomic.
extern "C" __global__ void add_mass(const u64* keys, const int* at, const int* runs, int batch_size, int first, int samples,
                                    int batches, int range, const int* W, int stride, const int* totals, const int* lasts,
                                    const u16* whole, const u64* fraction, const u16* table, int* mass, Token* tokens) {
    SHARED_POOL(pool);
    u64 key = key_of(keys, at);
    Distribution distribution = distribution_of(runs[blockIdx.z], whole, fraction, table);
    W += (size_t)blockIdx.z * TOKENS * stride;
    totals += (size_t)blockIdx.z * TOKENS;
    lasts += (size_t)blockIdx.z * samples;
    mass += (size_t)blockIdx.z * samples * TOKENS;
    tokens += (size_t)blockIdx.z * samples * 16 * batches;
    const u16* cells = load_table(distribution.table, pool);
    distribution.table = cells;
    int lane = threadIdx.x % 32;
    Batch* tile = (Batch*)(pool + TABLE_BYTES) + (threadIdx.x - lane) * 4;
    int* histogram = (int*)(pool + TABLE_BYTES + MASS_THREADS * 4 * sizeof(Batch)) + threadIdx.x;
    for (int n = 0; n < TOKENS; ++n) histogram[n * MASS_THREADS] = 0;
    __syncthreads();
    int i = blockIdx.x * MASS_THREADS + threadIdx.x;
    bool used = i < samples;  // others go along, since a warp writes together
    const int* a = W + (size_t)lasts[used ? i : 0] * stride;
    u64 stream = sample_key(key, batch_size, first + i);
    int b = blockIdx.y * range;
    int end = min(b + range, batches);
    u64 z = stream + 4ull * b * GOLDEN;
    for (; b < end; ++b, z += 4 * GOLDEN) {
        Batch batch;
        u32 open = 0;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            u64 word = hash(z + q * GOLDEN) & MASK;
            Four four = ((const Four*)a)[4 * b + q];
            u32 found[4];
#pragma unroll
            for (int c = 0; c < 4; ++c) found[c] = look_up(word, c, cells);
#pragma unroll
            for (int c = 0; c < 4; ++c) at_token<4 * MASS_THREADS>(histogram, found[c]) += four.weight[c];
            batch.quad[q] = pack(found);
            open |= tied_bits(found, q);
        }
        Batch* kept = tile + place_in_tile(lane, b % 4);
        *kept = batch;
        while (open) {
            int j = position_of(__ffs(open) - 1);
            open &= open - 1;
            u32 t = 16 * b + j;
            int below = ((Token*)kept)[j];
            int token = below + rise(stream, t, below, distribution);
            histogram[below * MASS_THREADS] -= a[t];
            histogram[token * MASS_THREADS] += a[t];
            ((Token*)kept)[j] = token;
        }
        if (b % 4 == 3) write_tile(tile, i - lane, samples, batches, b - 3, tokens);
    }
    if (!used) return;
    for (int n = 0; n < TOKENS; ++n) atomicAdd(&mass[(size_t)i * TOKENS + n], histogram[n * MASS_THREADS]);
}
#else
// The 32 threads of a warp have a sample, and one histogram to which they add atomically.
// Batches are a multiple of 32 here, a round, and ranges one of four rounds. Word 32q + lane of a round is a thread's q-th.
extern "C" __global__ void add_mass(const u64* keys, const int* at, const int* runs, int batch_size, int first, int samples,
                                    int batches, int range, const int* W, int stride, const int* totals, const int* lasts,
                                    const u16* whole, const u64* fraction, const u16* table, int* mass, Token* tokens) {
    SHARED_POOL(pool);
    u64 key = key_of(keys, at);
    Distribution distribution = distribution_of(runs[blockIdx.z], whole, fraction, table);
    W += (size_t)blockIdx.z * TOKENS * stride;
    totals += (size_t)blockIdx.z * TOKENS;
    lasts += (size_t)blockIdx.z * samples;
    mass += (size_t)blockIdx.z * samples * TOKENS;
    tokens += (size_t)blockIdx.z * samples * 16 * batches;
    const u16* cells = load_table(distribution.table, pool);
    distribution.table = cells;
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int* histogram = (int*)(pool + TABLE_BYTES) + warp * TOKENS;
    for (int n = lane; n < TOKENS; n += 32) histogram[n] = 0;
    __syncthreads();
    int i = blockIdx.x * (MASS_THREADS / 32) + warp;
    bool used = i < samples;
    const int* a = W + (size_t)lasts[used ? i : 0] * stride;
    Token* mine = tokens + (size_t)i * (16 * batches);
    u64 stream = sample_key(key, batch_size, first + i);
    int end = used ? min((int)(blockIdx.y + 1) * range, batches) : 0;
    for (int begin = blockIdx.y * range; begin < end; begin += 128) {
        u32 open[2] = {0, 0};  // of two rounds each
#pragma unroll
        for (int round = 0; round < 4; ++round) {
            if (begin + 32 * round >= end) break;
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                u32 place = 4 * (begin + 32 * round) + 32 * q + lane;
                u64 word = random_word(stream, place) & MASK;
                Four four = ((const Four*)a)[place];
                u32 found[4];
#pragma unroll
                for (int c = 0; c < 4; ++c) found[c] = look_up(word, c, cells);
#pragma unroll
                for (int c = 0; c < 4; ++c) atomicAdd(&at_token<4>(histogram, found[c]), four.weight[c]);
                ((Quad*)mine)[place] = pack(found);
                open[round / 2] |= tied_bits(found, q) << (ROUND_BITS * (round % 2));
            }
        }
        u64 all = (u64)open[1] << 32 | open[0];
        while (all) {  // open tokens of four rounds are settled together, since the other threads of the warp wait
            int bit = __ffsll(all) - 1;
            all &= all - 1;
            int round = 2 * (bit / 32) + second_of(bit % 32);
            int j = position_of(bit % 32);
            u32 t = 4 * (4 * (begin + 32 * round) + 32 * (j / 4) + lane) + j % 4;
            int below = mine[t];
            int steps = rise(stream, t, below, distribution);
            if (steps > 0) {
                atomicAdd(&histogram[below], -a[t]);
                atomicAdd(&histogram[below + steps], a[t]);
                mine[t] = below + steps;
            }
        }
    }
    __syncthreads();
    if (!used) return;
    for (int n = lane; n < TOKENS; n += 32) atomicAdd(&mass[(size_t)i * TOKENS + n], histogram[n]);
}
#endif

// Where A is 0 but at a few positions, those of column k being positions[starts[k]] … positions[starts[k + 1] − 1]: only the tokens
// there are drawn, the same as in the whole context. A thread has a sample. The positions of all runs stand in one array.
extern "C" __global__ void add_active_mass(const u64* keys, const int* at, const int* runs, int batch_size, int first, int samples,
                                           const int* W, int stride, const int* lasts, const int* starts, const int* positions,
                                           const u16* whole, const u64* fraction, const u16* table, int* mass) {
    u64 key = key_of(keys, at);
    Distribution distribution = distribution_of(runs[blockIdx.z], whole, fraction, table);
    W += (size_t)blockIdx.z * TOKENS * stride;
    lasts += (size_t)blockIdx.z * samples;
    starts += (size_t)blockIdx.z * TOKENS;
    mass += (size_t)blockIdx.z * samples * TOKENS;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= samples) return;
    int k = lasts[i];
    u64 stream = sample_key(key, batch_size, first + i);
    for (int j = starts[k]; j < starts[k + 1]; ++j) {
        int t = positions[j];
        mass[(size_t)i * TOKENS + draw_token(stream, t, distribution)] += W[(size_t)k * stride + t];
    }
}
