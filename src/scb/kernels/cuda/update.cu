// The step on V and A from summed gradients, and A in fixed point. A and g are (TOKENS, stride): column k of the paper is a row.
#include "block.cuh"

// A run's step sizes and so on; rates (runs, RATES).
constexpr int RATES = 7;
struct Rates {
    double eta_V, eta_A, lam, per_spread, limit, centred, plain;
};

// W = A in units of scale[k], as integers, and totals[k] = Σ_t W[k][t] (modulo 2^32, as all sums of W).
//
// The unit is the smallest power of two with which the mass on a token fits into 31 bits. It is at most Σ|a|; and by Bernstein's
// inequality it exceeds μ_n|Σa| + z, z = L·max|a|/3 + √((L·max|a|/3)² + 2L·μ_n·Σa²), with probability below 2e^−L only, L = 80.
// Rounding goes up or down by a sequence that is spread evenly (the fractions of t/φ), and what it then adds to the sum of the column,
// ``excess``, is taken back in steps of 1 that are spread evenly too. So it adds nothing to a sum over many positions, and the mean
// over samples, of which there are many more than of anything else, is right.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    weigh(const int* runs, int T, int stride, const double* largest_mu, const double* A, int* W, double* scale, int* totals) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;  // (3 · BLOCK,)
    int run = runs[blockIdx.z];
    int k = blockIdx.z * TOKENS + blockIdx.x;
    const double* a = A + ((size_t)run * TOKENS + blockIdx.x) * stride;
    int* w = W + (size_t)k * stride;
    double sums[3] = {0.0, 0.0, 0.0};  // of a, |a| and a²
    double largest = 0.0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        sums[0] += a[t];
        sums[1] += fabs(a[t]);
        sums[2] += a[t] * a[t];
        largest = fmax(largest, fabs(a[t]));
    }
    block_sums<3>(sums, parts);
    largest = block_max(largest, parts);
    double third = 80.0 / 3.0 * largest;
    double deviation = third + sqrt(third * third + 160.0 * largest_mu[run] * sums[2]);
    double bound = fmin(sums[1], largest_mu[run] * fabs(sums[0]) + deviation);
    int exponent = 0;
    if (bound > 0.0 && bound < 1e300) exponent = (int)floor(log2((2147483648.0 - stride) / bound));
    exponent = min(exponent, 1000);
    double unit = ldexp(1.0, exponent);
    double excess = 0.0;
    for (int t = threadIdx.x; t < stride; t += BLOCK) {
        u32 even = (u32)t * 2654435769u;  // 2^32/φ
        double x = t < T ? floor(a[t] * unit + even * (1.0 / 4294967296.0)) : 0.0;
        w[t] = fabs(x) < 2147483648.0 ? (int)x : 0;
        if (t < T) excess += w[t] - a[t] * unit;
    }
    excess = rint(block_sum(excess, parts)) / T;
    u32 total = 0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        if (fabs(excess) < 1.0) w[t] -= (int)(floor((t + 1) * excess) - floor(t * excess));
        total += (u32)w[t];
    }
    // Two halves of 16 bits are summed exactly as doubles.
    double halves[2] = {(double)(total & 0xffffu), (double)(total >> 16)};
    block_sums<2>(halves, parts);
    if (threadIdx.x == 0) {
        scale[k] = ldexp(1.0, -exponent);
        totals[k] = (int)(u32)((u64)halves[0] + ((u64)halves[1] << 16));
    }
}

// V ← V − rate·(I − 11ᵀ/N) G diag(1/μ)(I − μwᵀ), w the ``projector_row``; or V − rate·G if ``plain``. One block.
// Before it, level[0] = lam + per_spread·√K_V. loss[at] is the mean of the losses. A step with ‖V‖ at or above the limit is noted.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    step_V(const int* at, const int* runs, int batch_size, const Rates* all_rates, const double* mu, const double* projector_row,
           const double* G, const double* losses, double* V, double* level, double* loss, int* failed) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;      // (2 · BLOCK,)
    double* mean = parts + 2 * BLOCK;  // (TOKENS,), of each column of G
    double* along = mean + TOKENS;     // (TOKENS,), (G − mean)·1 in each row
    int run = runs[blockIdx.z];
    Rates rates = all_rates[run];
    mu += (size_t)run * TOKENS;
    projector_row += (size_t)run * TOKENS;
    V += (size_t)run * TOKENS * TOKENS;
    G += (size_t)blockIdx.z * TOKENS * TOKENS;
    losses += (size_t)blockIdx.z * batch_size;
    double sums[2] = {0.0, 0.0};  // K_V, and the loss
    for (int p = threadIdx.x; p < TOKENS * TOKENS; p += BLOCK) {
        double d = V[p] - mu[p / TOKENS];
        sums[0] += mu[p % TOKENS] * d * d;
    }
    for (int i = threadIdx.x; i < batch_size; i += BLOCK) sums[1] += losses[i];
    block_sums<2>(sums, parts);
    for (int m = threadIdx.x; m < TOKENS; m += BLOCK) {
        double s = 0.0;
        for (int n = 0; n < TOKENS; ++n) s += G[n * TOKENS + m];
        mean[m] = s / TOKENS;
    }
    __syncthreads();
    for (int n = threadIdx.x; n < TOKENS; n += BLOCK) {
        double s = 0.0;
        for (int m = 0; m < TOKENS; ++m) s += G[n * TOKENS + m] - mean[m];
        along[n] = s;
    }
    __syncthreads();
    double rate = rates.eta_V / batch_size;
    double square = 0.0;
    for (int p = threadIdx.x; p < TOKENS * TOKENS; p += BLOCK) {
        int n = p / TOKENS;
        int m = p % TOKENS;
        double direction = rates.plain != 0.0 ? G[p] : (G[p] - mean[m]) / mu[m] - along[n] * projector_row[m];
        V[p] -= rate * direction;
        square += V[p] * V[p];
    }
    square = block_sum(square, parts);
    if (threadIdx.x == 0) {
        level[blockIdx.z] = rates.lam + rates.per_spread * sqrt(sums[0]);
        loss[(size_t)at[0] * gridDim.z + blockIdx.z] = sums[1] / batch_size;
        if (!(square < rates.limit * rates.limit)) atomicMin(&failed[blockIdx.z], at[0]);
    }
}

// A block has column k: a ← soft(a − c·g, level·per_column[k]), c = eta/(μ_k·B), then made to sum to 1; or a − eta/B·g if ``plain``.
// ``centred`` takes the mean out of g first. A step after which ‖a‖ is at or above the limit is noted.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    step_A(const int* at, const int* runs, int batch_size, int T, int stride, const Rates* all_rates, const double* mu,
           const double* per_column, const double* level, const double* G, double* A, int* failed) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;
    int run = runs[blockIdx.z];
    size_t column = (size_t)run * TOKENS + blockIdx.x;
    Rates rates = all_rates[run];
    bool plain = rates.plain != 0.0;
    const double* g = G + ((size_t)blockIdx.z * TOKENS + blockIdx.x) * stride;
    double* a = A + column * stride;
    double coefficient = plain ? rates.eta_A / batch_size : rates.eta_A / (mu[column] * batch_size);
    double lam = plain ? 0.0 : level[blockIdx.z] * per_column[column];
    double mean = 0.0;
    if (rates.centred != 0.0) {
        for (int t = threadIdx.x; t < T; t += BLOCK) mean += g[t];
        mean = block_sum(mean, parts) / T;
    }
    double sum = 0.0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        double x = a[t] - coefficient * (g[t] - mean);
        double y = x - fmin(fmax(x, -lam), lam);
        a[t] = y;
        sum += y;
    }
    sum = block_sum(sum, parts);
    double shift = plain ? 0.0 : (1.0 - sum) / T;
    double square = 0.0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        a[t] += shift;
        square += a[t] * a[t];
    }
    square = block_sum(square, parts);
    if (threadIdx.x == 0 && !(square < rates.limit * rates.limit)) atomicMin(&failed[blockIdx.z], at[0]);
}

// The step is over: the next one has another key. One thread.
extern "C" __global__ void next_step(int* at) { ++at[0]; }
