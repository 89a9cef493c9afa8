// Between the passes: with r = V·xa − e_o for each sample, its loss ½‖r‖², the scores u = Vᵀr of its tokens, and gV = Σ r·xaᵀ.
//
// scores (samples, TOKENS + 1) are 32-bit numbers; the last of a row is that of an open token, 0. Everything else has 64 bits.
// Up to MATRIX tokens one kernel does it all, CHUNK samples a block, TILE of them at a time in shared memory:
//
//     V  (TOKENS, ROW)   │ xa (TILE, ROW)   │ r (TILE, ROW)        ROW = TOKENS, made odd: columns lie in different banks
//
// Above, products are left to the library of matrix products, and the other kernels do what is between them.
#include "stream.cuh"

constexpr int ROW = TOKENS | 1;
constexpr int PAIRS = (TOKENS * TOKENS + SCORE_THREADS - 1) / SCORE_THREADS;  // entries of gV a thread

// scale[k] is what one unit of the mass of column k is worth. partial (chunks, TOKENS, TOKENS) are parts of gV.
extern "C" __global__ void differentiate(int samples, const int* mass, const double* scale, const int* lasts, const int* labels,
                                         const double* V, float* scores, double* losses, double* partial) {
#if TOKENS <= MATRIX
    SHARED_POOL(pool);
    double* v = (double*)pool;
    double* xa = v + TOKENS * ROW;
    double* r = xa + TILE * ROW;
    double sum[PAIRS];
    for (int p = 0; p < PAIRS; ++p) sum[p] = 0.0;
    for (int p = threadIdx.x; p < TOKENS * TOKENS; p += SCORE_THREADS) v[p / TOKENS * ROW + p % TOKENS] = V[p];
    int end = min((int)(blockIdx.x + 1) * CHUNK, samples);
    for (int begin = blockIdx.x * CHUNK; begin < end; begin += TILE) {
        int size = min(TILE, end - begin);
        __syncthreads();
        for (int p = threadIdx.x; p < size * TOKENS; p += SCORE_THREADS) {
            int i = p / TOKENS;
            xa[i * ROW + p % TOKENS] = mass[(size_t)begin * TOKENS + p] * scale[lasts[begin + i]];
        }
        __syncthreads();
        for (int p = threadIdx.x; p < size * TOKENS; p += SCORE_THREADS) {
            int i = p / TOKENS;
            int n = p % TOKENS;
            double s = n == labels[begin + i] ? -1.0 : 0.0;
            for (int m = 0; m < TOKENS; ++m) s += v[n * ROW + m] * xa[i * ROW + m];
            r[i * ROW + n] = s;
        }
        __syncthreads();
        for (int p = threadIdx.x; p < size * (TOKENS + 1); p += SCORE_THREADS) {
            int i = p / (TOKENS + 1);
            int m = p % (TOKENS + 1);
            double s = 0.0;
            if (m < TOKENS) {
                for (int n = 0; n < TOKENS; ++n) s += r[i * ROW + n] * v[n * ROW + m];
                scores[(size_t)begin * (TOKENS + 1) + p] = (float)s;
            } else {
                for (int n = 0; n < TOKENS; ++n) s += r[i * ROW + n] * r[i * ROW + n];
                losses[begin + i] = 0.5 * s;
                scores[(size_t)begin * (TOKENS + 1) + p] = 0.0f;
            }
        }
#pragma unroll
        for (int e = 0; e < PAIRS; ++e) {
            int p = e * SCORE_THREADS + threadIdx.x;
            int n = p / TOKENS;
            int m = p % TOKENS;
            if (n < TOKENS) {
                for (int i = 0; i < size; ++i) sum[e] += r[i * ROW + n] * xa[i * ROW + m];
            }
        }
    }
#pragma unroll
    for (int e = 0; e < PAIRS; ++e) {
        int p = e * SCORE_THREADS + threadIdx.x;
        if (p < TOKENS * TOKENS) partial[(size_t)blockIdx.x * TOKENS * TOKENS + p] = sum[e];
    }
#endif
}

// gV (TOKENS, TOKENS) += partial[0] + partial[1] + …, in this order.
extern "C" __global__ void add_chunks(int chunks, const double* partial, double* gV) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= TOKENS * TOKENS) return;
    double s = gV[p];
    for (int c = 0; c < chunks; ++c) s += partial[(size_t)c * TOKENS * TOKENS + p];
    gV[p] = s;
}

// xa (samples, TOKENS) from the mass.
extern "C" __global__ void scale_mass(int samples, const int* mass, const double* scale, const int* lasts, double* xa) {
    long long count = (long long)samples * TOKENS;
    for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < count; p += (long long)gridDim.x * blockDim.x) {
        xa[p] = mass[p] * scale[lasts[p / TOKENS]];
    }
}

// r ← r − e_o in place, and the losses; a block of SCORE_THREADS has a sample.
extern "C" __global__ void subtract_labels(const int* labels, double* r, double* losses) {
    SHARED_POOL(pool);
    double* sums = (double*)pool;
    double* mine = r + (size_t)blockIdx.x * TOKENS;
    double s = 0.0;
    for (int n = threadIdx.x; n < TOKENS; n += SCORE_THREADS) {
        if (n == labels[blockIdx.x]) mine[n] -= 1.0;
        s += mine[n] * mine[n];
    }
    sums[threadIdx.x] = s;
    for (int half = SCORE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) losses[blockIdx.x] = 0.5 * sums[0];
}

// scores from u (samples, TOKENS).
extern "C" __global__ void round_scores(int samples, const double* u, float* scores) {
    long long count = (long long)samples * (TOKENS + 1);
    for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < count; p += (long long)gridDim.x * blockDim.x) {
        long long i = p / (TOKENS + 1);
        int n = (int)(p % (TOKENS + 1));
        scores[p] = n < TOKENS ? (float)u[i * TOKENS + n] : 0.0f;
    }
}
