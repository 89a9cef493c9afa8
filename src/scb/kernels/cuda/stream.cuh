// The counted stream of ``kernels.random``, bit for bit: random words, and tokens with a given law from 16 random bits each.
//
// A word of 64 bits stands for four tokens. Word i of a stream is a hash of the stream's key and i, so that a token is drawn twice,
// once for each pass, and never stored. Token t of a stream is the number of thresholds m_j + f_j at or below w + u, where w are its
// 16 bits and u a fraction of 53 bits, which matters only where w = m_j (a *tie*). Two ways to find it:
//
// - up to FEW tokens: w is compared with every m_j;
// - above: a table with one entry of 16 bits for each cell of 2^SHIFT neighbouring w:
//
//       entry       ┌─────────────── 12 bits ───────────────┬───── 4 bits ─────┐
//                   │ thresholds below the cell             │ 15 − (m_j mod 8) │    0 if the cell holds no threshold
//                   └───────────────────────────────────────┴──────────────────┘
//
//   Adding the last SHIFT bits of w makes a carry into the upper field exactly if w > m_j, and 15 in the lower one if w = m_j. The
//   table has SHIFT = 3 (16 KiB of shared memory); if some cell of 8 holds several thresholds it has SHIFT = 0, in global memory.
//
// Tied tokens are *open*: they count as token TOKENS, which has no weight, and ``settle`` draws them exactly afterwards.
//
// Set by the compiler's command line: TOKENS (N), FEW, SHIFT, and MASK, the bits of a word that are used (all, outside tests).

#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

constexpr int THRESHOLDS = TOKENS - 1;
constexpr u64 FRACTIONS = 1ull << 40;  // where in a stream the fractions begin
constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;
constexpr u32 LOW = (1u << SHIFT) - 1;
constexpr int CELLS = 65536 >> SHIFT;

struct Law {
    const u16* whole;     // (THRESHOLDS,), m_j
    const u64* fraction;  // (THRESHOLDS,), ceil(2^53 f_j): u >= f_j exactly if its 53 bits reach this
    const u16* table;     // (CELLS,)
};

__device__ inline u64 hash(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ inline u64 random_word(u64 key, u64 i) { return hash(key + i * GOLDEN); }

__device__ inline double to_unit(u64 word) { return (double)(word >> 11) * (1.0 / 9007199254740992.0); }

__device__ inline u32 sixteen_bits(u64 word, int j) { return (u32)(word >> (16 * j)) & 0xffffu; }

// The key of sample i's tokens; lasts, sources, labels and keys are four ranges of the step's stream, each of batch_size words.
__device__ inline u64 sample_key(u64 key, int batch_size, int i) { return random_word(key, 3ull * batch_size + i); }

// Token t of a stream, exactly.
__device__ inline int settle(u64 key, int t, const Law& law) {
    u32 w = sixteen_bits(random_word(key, t / 4) & MASK, t % 4);
    int token = 0;
    if (TOKENS <= FEW) {
        while (token < THRESHOLDS && law.whole[token] < w) ++token;
    } else {
        token = (law.table[w >> SHIFT] + (w & LOW)) >> 4;
    }
    if (token < THRESHOLDS && law.whole[token] == w) {
        u64 u = random_word(key, FRACTIONS + t) >> 11;
        while (token < THRESHOLDS && law.whole[token] == w && u >= law.fraction[token]) ++token;
    }
    return token;
}

// A token by the table, TOKENS if it is open.
__device__ inline int look_up(u32 w, const u16* table) {
    u32 v = table[w >> SHIFT] + (w & LOW);
    return (v & 15u) == 15u ? TOKENS : (int)(v >> 4);
}

struct alignas(16) Cells {
    u16 entry[8];
};

// The table, copied to shared memory by all threads of a block if it is small enough; a barrier must follow.
__device__ inline const u16* load_table(const u16* table, unsigned char* shared) {
    if (SHIFT == 0) return table;
    for (int i = threadIdx.x; i < CELLS / 8; i += blockDim.x) ((Cells*)shared)[i] = ((const Cells*)table)[i];
    return (const u16*)shared;
}

constexpr int TABLE_BYTES = SHIFT == 0 ? 0 : CELLS * 2;

// The first index at which an ascending array exceeds a value.
template <class T, class U>
__device__ inline int first_above(const T* ascending, int size, U value) {
    int begin = 0;
    int end = size;
    while (begin < end) {
        int middle = (begin + end) / 2;
        if (ascending[middle] > value) {
            end = middle;
        } else {
            begin = middle + 1;
        }
    }
    return begin;
}
