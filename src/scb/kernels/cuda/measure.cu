// What is measured of A (TOKENS, stride) between steps: sums of each column, and the mass that stands out of its noise.
//
// blockIdx.x is the column, blockIdx.z the run; A of the runs lies one after the other.
#include "block.cuh"

// moments (4, TOKENS): for b = a − 1/T, Σb and Σb²; and over the entries that reach ``threshold``, Σa and Σa².
// support (sparsity, TOKENS): the entries at positions (TOKENS, sparsity).
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    column_moments(int T, int stride, int sparsity, const double* thresholds, const int* positions, const double* A,
                   double* moments, double* support) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;  // (4 · BLOCK,)
    int k = blockIdx.x;
    size_t column = (size_t)blockIdx.z * TOKENS + k;
    const double* a = A + column * stride;
    double threshold = thresholds[blockIdx.z];
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
    if (threadIdx.x < 4) moments[((size_t)blockIdx.z * 4 + threadIdx.x) * TOKENS + k] = sums[threadIdx.x];
    for (int q = threadIdx.x; q < sparsity; q += BLOCK) {
        support[((size_t)blockIdx.z * sparsity + q) * TOKENS + k] = a[positions[column * sparsity + q]];
    }
}

// Sort values (SAMPLE,) in shared memory, ascending; a bitonic network.
__device__ inline void sort(double* values) {
    for (int size = 2; size <= SAMPLE; size *= 2) {
        for (int gap = size / 2; gap > 0; gap /= 2) {
            __syncthreads();
            for (int p = threadIdx.x; p < SAMPLE / 2; p += BLOCK) {
                int i = 2 * gap * (p / gap) + p % gap;
                bool ascending = (i & size) == 0;
                double low = values[i];
                double high = values[i + gap];
                if ((low > high) == ascending) {
                    values[i] = high;
                    values[i + gap] = low;
                }
            }
        }
    }
    __syncthreads();
}

// Σ_t (a_t − c) over the entries with |a_t − c| > s·quantile + tiny, for the median c and the spread s of a sample of the column:
// mass (TOKENS,). The sample is positions i·T/n, i < n = min(T, SAMPLE), as in ``training.roundings``.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    mass_standing_out(int T, int stride, double quantile, double tiny, const double* A, double* mass) {
    SHARED_POOL(pool);
    double* values = (double*)pool;  // (SAMPLE,)
    double* parts = values + SAMPLE;
    const double* a = A + ((size_t)blockIdx.z * TOKENS + blockIdx.x) * stride;
    int n = min(T, SAMPLE);
    for (int i = threadIdx.x; i < SAMPLE; i += BLOCK) values[i] = i < n ? a[(long long)i * T / n] : 1.7976931348623157e308;
    sort(values);
    double centre = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += BLOCK) values[i] = fabs(values[i] - centre);
    sort(values);
    double spread = 1.4826 * (n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2);
    double threshold = spread * quantile + tiny;
    double sum = 0.0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        double b = a[t] - centre;
        if (fabs(b) > threshold) sum += b;
    }
    sum = block_sum(sum, parts);
    if (threadIdx.x == 0) mass[(size_t)blockIdx.z * TOKENS + blockIdx.x] = sum;
}
