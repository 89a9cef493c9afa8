// The step on V and A from summed gradients, and A in fixed point. A and g are (TOKENS, stride): column k of the paper is a row.
//
// Sums are those of one block: THREADS strided parts, then a tree.
#include "stream.cuh"

constexpr int BLOCK = UPDATE_THREADS;

// The sum over the block, for all threads. ``parts`` (BLOCK,) is shared memory.
__device__ inline double block_sum(double value, double* parts) {
    __syncthreads();
    parts[threadIdx.x] = value;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
    return parts[0];
}

__device__ inline double block_max(double value, double* parts) {
    __syncthreads();
    parts[threadIdx.x] = value;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] = fmax(parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    __syncthreads();
    return parts[0];
}

// W = A in units of scale[k], as integers, and totals[k] = Σ_t W[k][t] (modulo 2^32, as all sums of W).
//
// The unit is the smallest power of two with which the mass on a token fits into 31 bits. It is at most Σ|a|; and by Bernstein's
// inequality it exceeds μ_n|Σa| + z, z = L·max|a|/3 + √((L·max|a|/3)² + 2L·μ_n·Σa²), with probability below 2e^−L only, L = 80.
// Rounding goes up or down by a sequence that is spread evenly (the fractions of t/φ), and what it then adds to the sum of the column,
// ``excess``, is taken back in steps of 1 that are spread evenly too. So it adds nothing to a sum over many positions, and the mean
// over samples, of which there are many more than of anything else, is right.
extern "C" __global__ void weigh(int T, int stride, double largest_mu, const double* A, int* W, double* scale, int* totals) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;
    const double* a = A + (size_t)blockIdx.x * stride;
    int* w = W + (size_t)blockIdx.x * stride;
    double sum = 0.0;
    double size = 0.0;
    double square = 0.0;
    double largest = 0.0;
    for (int t = threadIdx.x; t < T; t += BLOCK) {
        sum += a[t];
        size += fabs(a[t]);
        square += a[t] * a[t];
        largest = fmax(largest, fabs(a[t]));
    }
    sum = block_sum(sum, parts);
    size = block_sum(size, parts);
    square = block_sum(square, parts);
    largest = block_max(largest, parts);
    double third = 80.0 / 3.0 * largest;
    double deviation = third + sqrt(third * third + 160.0 * largest_mu * square);
    double bound = fmin(size, largest_mu * fabs(sum) + deviation);
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
    double low = block_sum((double)(total & 0xffffu), parts);
    double high = block_sum((double)(total >> 16), parts);
    if (threadIdx.x == 0) {
        scale[blockIdx.x] = ldexp(1.0, -exponent);
        totals[blockIdx.x] = (int)(u32)((u64)low + ((u64)high << 16));
    }
}

// V ← V − rate·(I − 11ᵀ/N) G diag(1/μ)(I − μwᵀ), w the ``projector_row``; or V − rate·G if ``plain``. One block.
// Before it, level[0] = lam + per_spread·√K_V. loss[0] is the mean of the losses. A step with ‖V‖ at or above the limit is noted.
extern "C" __global__ void step_V(int step, int batch_size, int plain, double eta, double lam, double per_spread, double limit,
                                  const double* mu, const double* projector_row, const double* G, const double* losses, double* V,
                                  double* level, double* loss, int* failed) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;
    double* mean = parts + BLOCK;    // (TOKENS,), of each column of G
    double* along = mean + TOKENS;  // (TOKENS,), (G − mean)·1 in each row
    double spread = 0.0;
    for (int p = threadIdx.x; p < TOKENS * TOKENS; p += BLOCK) {
        double d = V[p] - mu[p / TOKENS];
        spread += mu[p % TOKENS] * d * d;
    }
    spread = block_sum(spread, parts);
    double total = 0.0;
    for (int i = threadIdx.x; i < batch_size; i += BLOCK) total += losses[i];
    total = block_sum(total, parts);
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
    double rate = eta / batch_size;
    double square = 0.0;
    for (int p = threadIdx.x; p < TOKENS * TOKENS; p += BLOCK) {
        int n = p / TOKENS;
        int m = p % TOKENS;
        double direction = plain ? G[p] : (G[p] - mean[m]) / mu[m] - along[n] * projector_row[m];
        V[p] -= rate * direction;
        square += V[p] * V[p];
    }
    square = block_sum(square, parts);
    if (threadIdx.x == 0) {
        level[0] = lam + per_spread * sqrt(spread);
        loss[0] = total / batch_size;
        if (!(square < limit * limit)) atomicMin(failed, step);
    }
}

// A block has column k: a ← soft(a − c·g, level·per_column[k]), c = eta/(μ_k·B), then made to sum to 1; or a − eta/B·g if ``plain``.
// ``centred`` takes the mean out of g first. A step after which ‖a‖ is at or above the limit is noted.
extern "C" __global__ void step_A(int step, int batch_size, int T, int stride, int plain, int centred, double eta, double limit,
                                  const double* mu, const double* per_column, const double* level, const double* G, double* A,
                                  int* failed) {
    SHARED_POOL(pool);
    double* parts = (double*)pool;
    int k = blockIdx.x;
    const double* g = G + (size_t)k * stride;
    double* a = A + (size_t)k * stride;
    double coefficient = plain ? eta / batch_size : eta / (mu[k] * batch_size);
    double lam = plain ? 0.0 : level[0] * per_column[k];
    double mean = 0.0;
    if (centred) {
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
    if (threadIdx.x == 0 && !(square < limit * limit)) atomicMin(failed, step);
}
