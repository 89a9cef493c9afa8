// Between the passes: with r = V·xa − e_o for each sample, its loss ½‖r‖², the scores u = Vᵀr of its tokens, and gV = Σ r·xaᵀ.
//
// scores (samples, TOKENS) are 32-bit numbers; everything else has 64 bits.
// Up to MATRIX tokens one kernel does it all, CHUNK samples per block, TILE of them at a time in shared memory:
//
//     V  (TOKENS, ROW)   │ xa (TILE, ROW)   │ r (TILE, ROW)        ROW is odd: entries of a column lie in different banks
//
// Above, products are left to the library of matrix products, and the other kernels do what is between them.
#include "stream.cuh"

constexpr int FOURS = (TOKENS + 3) / 4;
constexpr int ROW = 4 * FOURS + 1;
constexpr int OWN = (FOURS * TOKENS + SCORE_THREADS - 1) / SCORE_THREADS;  // times four entries of gV a thread

// scale[k] is what one unit of the mass of column k is worth. partial (chunks, TOKENS, TOKENS) are parts of gV.
extern "C" __global__ void differentiate(const int* runs, int batch_size, int first, int samples, const int* mass,
                                         const double* scale, const int* lasts, const int* labels, const double* V, float* scores,
                                         double* losses, double* partial) {
#if TOKENS <= MATRIX
    SHARED_POOL(pool);
    mass += (size_t)blockIdx.z * samples * TOKENS;
    scale += (size_t)blockIdx.z * TOKENS;
    lasts += (size_t)blockIdx.z * samples;
    labels += (size_t)blockIdx.z * samples;
    V += (size_t)runs[blockIdx.z] * TOKENS * TOKENS;
    scores += (size_t)blockIdx.z * samples * TOKENS;
    losses += (size_t)blockIdx.z * batch_size + first;
    partial += (size_t)blockIdx.z * gridDim.x * TOKENS * TOKENS;
    double* v = (double*)pool;
    double* xa = v + TOKENS * ROW;
    double* r = xa + TILE * ROW;
    double sum[OWN][4];
    for (int e = 0; e < OWN; ++e) {
        for (int j = 0; j < 4; ++j) sum[e][j] = 0.0;
    }
    for (int p = threadIdx.x; p < TOKENS * TOKENS; p += SCORE_THREADS) v[p / TOKENS * ROW + p % TOKENS] = V[p];
    for (int p = threadIdx.x; p < 2 * TILE * ROW; p += SCORE_THREADS) xa[p] = 0.0;  // samples and tokens that are not there
    int end = min((int)(blockIdx.x + 1) * CHUNK, samples);
    for (int begin = blockIdx.x * CHUNK; begin < end; begin += TILE) {
        int size = min(TILE, end - begin);
        __syncthreads();
        for (int p = threadIdx.x; p < TILE * TOKENS; p += SCORE_THREADS) {
            int i = p / TOKENS;
            xa[i * ROW + p % TOKENS] = i < size ? mass[(size_t)begin * TOKENS + p] * scale[lasts[begin + i]] : 0.0;
        }
        __syncthreads();
        for (int p = threadIdx.x; p < TILE / 4 * TOKENS; p += SCORE_THREADS) {  // one row of V and four samples per thread
            int i = p / TOKENS * 4;
            int n = p % TOKENS;
            double s[4] = {0.0, 0.0, 0.0, 0.0};
            for (int m = 0; m < TOKENS; ++m) {
                double x = v[n * ROW + m];
                for (int j = 0; j < 4; ++j) s[j] += x * xa[(i + j) * ROW + m];
            }
            for (int j = 0; j < 4; ++j) r[(i + j) * ROW + n] = i + j < size ? s[j] - (n == labels[begin + i + j]) : 0.0;
        }
        __syncthreads();
        for (int p = threadIdx.x; p < TILE / 4 * TOKENS; p += SCORE_THREADS) {
            int i = p / TOKENS * 4;
            int m = p % TOKENS;
            double s[4] = {0.0, 0.0, 0.0, 0.0};
            for (int n = 0; n < TOKENS; ++n) {
                double x = v[n * ROW + m];
                for (int j = 0; j < 4; ++j) s[j] += x * r[(i + j) * ROW + n];
            }
            for (int j = 0; j < 4; ++j) {
                if (i + j < size) scores[(size_t)(begin + i + j) * TOKENS + m] = (float)s[j];
            }
        }
        if (threadIdx.x < size) {
            double s = 0.0;
            for (int n = 0; n < TOKENS; ++n) s += r[threadIdx.x * ROW + n] * r[threadIdx.x * ROW + n];
            losses[begin + threadIdx.x] = 0.5 * s;
        }
#pragma unroll
        for (int e = 0; e < OWN; ++e) {  // four rows and one column of gV
            int p = e * SCORE_THREADS + threadIdx.x;
            if (p >= FOURS * TOKENS) break;
            const double* four = r + p / TOKENS * 4;
            const double* one = xa + p % TOKENS;
            for (int i = 0; i < TILE; ++i) {
                for (int j = 0; j < 4; ++j) sum[e][j] += four[i * ROW + j] * one[i * ROW];
            }
        }
    }
#pragma unroll
    for (int e = 0; e < OWN; ++e) {
        int p = e * SCORE_THREADS + threadIdx.x;
        for (int j = 0; j < 4; ++j) {
            int n = p / TOKENS * 4 + j;
            if (n < TOKENS) partial[(size_t)blockIdx.x * TOKENS * TOKENS + n * TOKENS + p % TOKENS] = sum[e][j];
        }
    }
#endif
}

// gV (TOKENS, TOKENS) += partial[0] + partial[1] + …, in this order; without what was there if these are the ``first``.
extern "C" __global__ void add_chunks(int first, int chunks, const double* partial, double* gV) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= TOKENS * TOKENS) return;
    partial += (size_t)blockIdx.z * chunks * TOKENS * TOKENS;
    gV += (size_t)blockIdx.z * TOKENS * TOKENS;
    double s = first ? 0.0 : gV[p];
    for (int c = 0; c < chunks; ++c) s += partial[(size_t)c * TOKENS * TOKENS + p];
    gV[p] = s;
}

// xa (rows, TOKENS) from the mass of the samples, and 0 for the rows after them. A block of ROW_THREADS has a row, here and below.
extern "C" __global__ void scale_mass(int samples, const int* mass, const double* scale, const int* lasts, double* xa) {
    size_t row = blockIdx.x;
    double unit = row < samples ? scale[lasts[row]] : 0.0;
    for (int n = threadIdx.x; n < TOKENS; n += ROW_THREADS) xa[row * TOKENS + n] = row < samples ? mass[row * TOKENS + n] * unit : 0.0;
}

// r ← r − e_o in place, and the losses.
extern "C" __global__ void subtract_labels(const int* labels, double* r, double* losses) {
    SHARED_POOL(pool);
    double* sums = (double*)pool;
    double* mine = r + (size_t)blockIdx.x * TOKENS;
    int label = labels[blockIdx.x];
    double s = 0.0;
    for (int n = threadIdx.x; n < TOKENS; n += ROW_THREADS) {
        double x = mine[n] - (n == label);
        if (n == label) mine[n] = x;
        s += x * x;
    }
    sums[threadIdx.x] = s;
    for (int half = ROW_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) losses[blockIdx.x] = 0.5 * sums[0];
}

// scores from u (samples, TOKENS).
extern "C" __global__ void round_scores(const double* u, float* scores) {
    size_t row = blockIdx.x;
    for (int n = threadIdx.x; n < TOKENS; n += ROW_THREADS) scores[row * TOKENS + n] = (float)u[row * TOKENS + n];
}
