// What is measured of A (TOKENS, stride) between steps: sums of each column, and the mass that stands out of its noise.
//
// blockIdx.x is the column, blockIdx.z the run; A of these runs lies one after the other, or if by_run that of all runs.
#include "block.cuh"

// found (4 + sparsity, TOKENS): for b = a − 1/T, Σb and Σb²; over the entries that reach the run's threshold, Σa and Σa²; and the
// entries at its positions (TOKENS, sparsity).
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    column_moments(const int* runs, int by_run, int T, int stride, int sparsity, const double* thresholds, const int* positions,
                   const double* A, double* found) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;  // (4 · BLOCK,)
    int k = blockIdx.x;
    int run = runs[blockIdx.z];
    const double* a = A + ((size_t)(by_run ? run : blockIdx.z) * TOKENS + k) * stride;
    double threshold = thresholds[run];
    double base = 1.0 / T;
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        double b = a[t] - base;
        double large = a[t] >= threshold ? a[t] : 0.0;
        sums[0] += b;
        sums[1] += b * b;
        sums[2] += large;
        sums[3] += large * large;
    }
    block_sums<4>(sums, parts);
    found += (size_t)blockIdx.z * (4 + sparsity) * TOKENS + k;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; ++i) found[i * TOKENS] = sums[i];
    }
    positions += ((size_t)run * TOKENS + k) * sparsity;
    for (int q = threadIdx.x; q < sparsity; q += BLOCK) found[(4 + q) * TOKENS] = a[positions[q]];
}

// A number as an integer in the same order, and back.
__device__ inline u64 ordered(double x) {
    u64 bits = *(u64*)&x;
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ inline double unordered(u64 key) {
    u64 bits = key >> 63 ? key & 0x7fffffffffffffffull : ~key;
    return *(double*)&bits;
}

// An entry, or its distance from a centre.
template <bool DISTANCE>
__device__ inline double looked_at(double a, double centre) {
    return DISTANCE ? fabs(a - centre) : a;
}

// The number with so many smaller ones among the T entries of a column, or among their distances from a centre; found byte by byte,
// from the highest on. histogram (258,) is shared memory.
template <bool DISTANCE>
__device__ inline double of_rank(int rank, const double* a, int T, double centre, int* histogram) {
    u64 prefix = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        __syncthreads();
        for (int i = threadIdx.x; i < 256; i += BLOCK) histogram[i] = 0;
        __syncthreads();
        for (int t = threadIdx.x; t < T; t += BLOCK) {
            u64 key = ordered(looked_at<DISTANCE>(a[t], centre));
            if (shift == 56 || key >> (shift + 8) == prefix) atomicAdd(&histogram[(int)(key >> shift & 255ull)], 1);
        }
        __syncthreads();
        if (threadIdx.x < 256) {
            int below = 0;
            for (int i = 0; i < threadIdx.x; ++i) below += histogram[i];
            if (below <= rank && rank < below + histogram[threadIdx.x]) {
                histogram[256] = threadIdx.x;
                histogram[257] = below;
            }
        }
        __syncthreads();
        prefix = prefix << 8 | (u64)histogram[256];
        rank -= histogram[257];
    }
    return unordered(prefix);
}

// The median of the entries of a column, or of their distances from a centre. parts (BLOCK,) is shared memory, too.
template <bool DISTANCE>
__device__ inline double median(const double* a, int T, double centre, int* histogram, double* parts) {
    int rank = (T - 1) / 2;
    double lower = of_rank<DISTANCE>(rank, a, T, centre, histogram);
    if (T % 2) return lower;
    double count = 0.0;  // of those that are not larger
    double next = -1.7976931348623157e308;  // the smallest that is larger, negated
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        double x = looked_at<DISTANCE>(a[t], centre);
        count += x <= lower;
        if (x > lower) next = fmax(next, -x);
    }
    count = block_sum(count, parts);
    next = block_max(next, parts);
    return count > rank + 1 ? lower : (lower - next) / 2;
}

// Σ_t (a_t − c) over the entries with |a_t − c| > s·quantile + tiny, for the median c and the spread s of the column: mass (TOKENS,).
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    mass_standing_out(int T, int stride, double quantile, double tiny, const double* A, double* mass) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;  // (BLOCK,)
    int* histogram = (int*)(parts + BLOCK);
    const double* a = A + ((size_t)blockIdx.z * TOKENS + blockIdx.x) * stride;
    double centre = median<false>(a, T, 0.0, histogram, parts);
    double threshold = 1.4826 * median<true>(a, T, centre, histogram, parts) * quantile + tiny;
    double sum = 0.0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        double b = a[t] - centre;
        if (fabs(b) > threshold) sum += b;
    }
    sum = block_sum(sum, parts);
    if (threadIdx.x == 0) mass[(size_t)blockIdx.z * TOKENS + blockIdx.x] = sum;
}
