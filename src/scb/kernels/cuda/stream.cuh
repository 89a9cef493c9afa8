// The counted stream of ``kernels.random``, bit for bit: random words, and tokens with a given distribution from 16 random bits each.
//
// A word of 64 bits stands for four tokens. Word i of a stream is a hash of the stream's key and i. Token t of a stream is the number
// of thresholds m_j + f_j at or below w + u, where w are its 16 bits and u a fraction of 53 bits, which matters only where w = m_j (a
// *tie*). Two ways to find it:
//
// - up to FEW tokens: w is compared with every m_j;
// - above: a table with one entry of 16 bits for each cell of 2^SHIFT neighbouring w. Adding w to the entry of its cell gives,
//   modulo 2^16,
//
//       w + entry   ┌─────────── 16 − FIELD bits ───────────┬──────────── FIELD bits ──────────────┐
//                   │ thresholds below w                    │ all of them 1 exactly if w is tied   │
//                   └───────────────────────────────────────┴──────────────────────────────────────┘
//
//   because the entry, less the cell's first w, is (thresholds below the cell, 2^FIELD − 1 − m_j + first w): w > m_j makes a carry
//   into the upper field, w = m_j fills the lower one. A cell without a threshold has 0 there. The fields are bytes where tokens are
//   (up to 256 of them), so that four tokens are packed by moving bytes. The table has SHIFT = 3, which makes 16 KiB of shared
//   memory; if some cell of 8 holds several thresholds it has SHIFT = 0, and stays in global memory.
//
// Tied tokens are *open*: at first they count as if w + u lay below the threshold, and ``rise`` corrects that afterwards.
//
// Set by the compiler's command line: TOKENS (N), FEW, SHIFT, FIELD, and MASK, the bits of a word that are used (all, outside tests).

#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

constexpr int THRESHOLDS = TOKENS - 1;
constexpr u64 FRACTIONS = 1ull << 40;  // where in a stream the fractions begin
constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;
constexpr u32 FULL = (1u << FIELD) - 1;
constexpr u32 UPPER = 0xffffu & ~FULL;
constexpr int CELLS = 65536 >> SHIFT;
constexpr bool BYTES = TOKENS <= 256;  // whether a token is kept in a byte, or in two

#if TOKENS <= 256
typedef unsigned char Token;
#else
typedef u16 Token;
#endif

// Tokens of one word of the stream, and of four words: a *batch* of 16 positions.
struct alignas(4 * sizeof(Token)) Quad {
    u32 bits[sizeof(Token)];
};
struct alignas(16) Batch {
    Quad quad[4];
};

struct Distribution {
    const u16* whole;     // (THRESHOLDS,), m_j
    const u64* fraction;  // (THRESHOLDS,), ceil(2^53 f_j): u >= f_j exactly if its 53 bits reach this
    const u16* table;     // (CELLS,)
};

// Runs side by side. blockIdx.z counts the runs that take a step together, and runs[blockIdx.z] is the place of such a run among
// all that are on the device: what belongs to a run (V, A, its task, its step sizes) lies there. What a step only works with has the
// place blockIdx.z.
__device__ inline Distribution distribution_of(int run, const u16* whole, const u64* fraction, const u16* table) {
    return {whole + (size_t)run * THRESHOLDS, fraction + (size_t)run * THRESHOLDS, table + (size_t)run * CELLS};
}

// The key of this run's step: keys (steps, runs of this step), at[0] the number of the step.
__device__ inline u64 key_of(const u64* keys, const int* at) { return keys[(size_t)at[0] * gridDim.z + blockIdx.z]; }

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

// What the table says of the c-th 16 bits of a word: w + entry, see above; the bits above the 16th mean nothing.
__device__ inline u32 look_up(u64 word, int c, const u16* table) {
    u32 half = (u32)(word >> (32 * (c / 2)));
    u32 w = half >> (16 * (c % 2));
    u32 offset = (SHIFT > 0 ? half >> (16 * (c % 2) + SHIFT - 1) : w << 1) & (2 * CELLS - 2);  // in bytes
    return *(const u16*)((const char*)table + offset) + w;
}

__device__ inline bool is_tied(u32 found) { return (found & FULL) == FULL; }

__device__ inline int token_of(u32 found) { return (found & UPPER) >> FIELD; }

// The tokens of four ``found`` side by side.
__device__ inline Quad pack(const u32* found) {
    Quad quad;
    if (BYTES) {
        quad.bits[0] = __byte_perm(__byte_perm(found[0], found[1], 0x51), __byte_perm(found[2], found[3], 0x51), 0x5410);
    } else {
        for (int h = 0; h < 2; ++h) {
            u32 two = __byte_perm(found[2 * h], found[2 * h + 1], 0x5410);
            quad.bits[h * !BYTES] = (two >> FIELD) & ((0xffffu >> FIELD) * 0x10001u);
        }
    }
    return quad;
}

// Which of four ``found``, the q-th quad of a batch, are open: bit 8c + q for the c-th of them in a byte each; or 16·(c % 2) + 2q + c/2.
__device__ inline u32 tied_bits(const u32* found, int q) {
    if (BYTES) {
        u32 low = __byte_perm(__byte_perm(found[0], found[1], 0x40), __byte_perm(found[2], found[3], 0x40), 0x5410);
        return (((low & 0x7f7f7f7fu) + 0x01010101u) & low & 0x80808080u) >> (7 - q);
    }
    u32 open = 0;
    for (int h = 0; h < 2; ++h) {
        u32 low = __byte_perm(found[2 * h], found[2 * h + 1], 0x5410) & (FULL * 0x10001u);
        open |= (((low + 0x10001u) & ((FULL + 1) * 0x10001u)) >> FIELD) << (2 * q + h);
    }
    return open;
}

constexpr int ROUND_BITS = BYTES ? 4 : 8;  // by which the open bits of another batch can be shifted into the same 32

// The position in its batch (0 … 15) that a bit of ``tied_bits`` stands for, and which of two batches it was.
__device__ inline int position_of(int bit) {
    return BYTES ? 4 * (bit % ROUND_BITS) + bit / 8 : 2 * (bit % ROUND_BITS) + bit / 16;
}
__device__ inline int second_of(int bit) { return bit / ROUND_BITS % 2; }

// The entry for ``found`` in an array with one entry of ``bytes`` bytes for each token.
template <int bytes, class T>
__device__ inline T& at_token(T* array, u32 found) {
    constexpr int unit = 1 << FIELD;
    u32 offset = bytes < unit ? (found & UPPER) / (unit / bytes) : (found & UPPER) * (bytes / unit);
    return *(T*)((char*)array + offset);
}

// How many of the thresholds that equal the w of an open token, ``below`` and those after it, lie at or below w + u.
__device__ inline int rise(u64 key, u32 t, int below, const Distribution& distribution) {
    u64 u = random_word(key, FRACTIONS + t) >> 11;
    int token = below;
    if (TOKENS > FEW && SHIFT > 0) return u >= distribution.fraction[token];  // a cell holds one threshold
    u16 w = distribution.whole[below];
    while (token < THRESHOLDS && distribution.whole[token] == w && u >= distribution.fraction[token]) ++token;
    return token - below;
}

// How many thresholds lie below w, for token t of a stream; and whether another one equals w.
__device__ inline int thresholds_below(u64 key, u32 t, const Distribution& distribution, bool& tied) {
    u64 word = (random_word(key, t / 4) & MASK) >> (16 * (t % 4));
    if (TOKENS > FEW) {
        u32 found = look_up(word, 0, distribution.table);
        tied = is_tied(found);
        return token_of(found);
    }
    u32 w = sixteen_bits(word, 0);
    int below = 0;
    while (below < THRESHOLDS && distribution.whole[below] < w) ++below;
    tied = below < THRESHOLDS && distribution.whole[below] == w;
    return below;
}

// Token t of a stream, exactly.
__device__ inline int draw_token(u64 key, u32 t, const Distribution& distribution) {
    bool tied;
    int below = thresholds_below(key, t, distribution, tied);
    return tied ? below + rise(key, t, below, distribution) : below;
}

struct alignas(16) Cells {
    u16 entry[8];
};

// The table, copied to shared memory by all threads of a block if it is small enough; a barrier must follow.
__device__ inline const u16* load_table(const u16* table, unsigned char* shared) {
    if (SHIFT == 0 || TOKENS <= FEW) return table;
    for (int i = threadIdx.x; i < CELLS / 8; i += blockDim.x) ((Cells*)shared)[i] = ((const Cells*)table)[i];
    return (const u16*)shared;
}

constexpr int TABLE_BYTES = SHIFT == 0 || TOKENS <= FEW ? 0 : CELLS * 2;

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
