// CUDA's kernels on a processor: what they need of CUDA, and a function that launches one.
//
// The threads of a block are contexts that take turns: each runs until it ends or comes to a barrier, then the next one. Blocks come one
// after the other. ``descending`` lets the last thread of a block and the last block go first: what holds in both orders needs no barrier
// that is not there.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

struct Index {
    unsigned x, y, z;
};

namespace host {
constexpr size_t STACK = 96 * 1024;
constexpr size_t POOL = 232448;  // bytes of shared memory that a block can have at most

Index grid, block, block_of_grid, thread_of_block;
alignas(16) unsigned char pool[POOL];
bool descending = false;

struct Thread {
    ucontext_t context;  // for the very first turn
    jmp_buf place;       // where it waits: jumps, unlike contexts, ask nothing of the system
    char* stack;
    bool over;
};
Thread threads[1024];  // at fixed places: a context points into itself
jmp_buf home;
unsigned current;
void (*body)(void*);
void* body_argument;

void barrier() {
    if (!_setjmp(threads[current].place)) _longjmp(home, 1);
    thread_of_block.x = current;
}

void run() {
    for (;;) {  // one block after the other
        body(body_argument);
        threads[current].over = true;
        barrier();
    }
}

void take_turn(Thread& thread) {
    if (_setjmp(home)) return;
    if (thread.stack) _longjmp(thread.place, 1);
    thread.stack = (char*)malloc(STACK);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack;
    thread.context.uc_stack.ss_size = STACK;
    makecontext(&thread.context, run, 0);
    setcontext(&thread.context);
}

void run_block() {
    unsigned count = block.x;
    for (unsigned i = 0; i < count; ++i) threads[i].over = false;
    memset(pool, 0xa5, POOL);  // shared memory holds anything at first
    for (bool any = true; any;) {
        any = false;
        for (unsigned turn = 0; turn < count; ++turn) {
            current = descending ? count - 1 - turn : turn;
            if (threads[current].over) continue;
            thread_of_block.x = current;
            take_turn(threads[current]);
            any = any || !threads[current].over;
        }
    }
}

template <class... Arguments, size_t... I>
void call(void (*kernel)(Arguments...), void** values, std::index_sequence<I...>) {
    kernel(*(Arguments*)values[I]...);
}

template <class... Arguments>
void launch(void (*kernel)(Arguments...), unsigned x, unsigned y, unsigned z, unsigned count, void** values) {
    struct Call {
        void (*kernel)(Arguments...);
        void** values;
    } mine = {kernel, values};
    body = [](void* argument) {
        Call* it = (Call*)argument;
        call(it->kernel, it->values, std::index_sequence_for<Arguments...>());
    };
    body_argument = &mine;
    grid = {x, y, z};
    block = {count, 1, 1};
    for (unsigned b = 0; b < x * y * z; ++b) {
        unsigned number = descending ? x * y * z - 1 - b : b;
        block_of_grid = {number % x, number / x % y, number / x / y};
        run_block();
    }
}
}  // namespace host

#define __device__
#define __global__
#define __launch_bounds__(threads)
#define SHARED_POOL(name) unsigned char* name = host::pool
#define threadIdx host::thread_of_block
#define blockIdx host::block_of_grid
#define blockDim host::block
#define gridDim host::grid
#define __syncthreads host::barrier
#define __syncwarp host::barrier  // all warps of a block come to it as often
#define __ffs __builtin_ffs
#define __ffsll __builtin_ffsll
using std::max;
using std::min;

// Four of the eight bytes of y and x, each named by four bits of ``which``.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int b = 0; b < 4; ++b) result |= (unsigned)(both >> (8 * (which >> (4 * b) & 7)) & 0xff) << (8 * b);
    return result;
}

template <class T>
T atomicAdd(T* address, T value) {
    T old = *address;
    *address = (T)((unsigned)old + (unsigned)value);  // integers that wrap around
    return old;
}

inline int atomicMin(int* address, int value) {
    int old = *address;
    *address = min(old, value);
    return old;
}

#include "module.cu"

extern "C" void set_order(int descending) { host::descending = descending; }

#define KERNEL(name) \
    extern "C" void launch_##name(unsigned x, unsigned y, unsigned z, unsigned threads, void** values) { \
        host::launch(name, x, y, z, threads, values);                                                       \
    }
KERNEL(count_lasts)
KERNEL(begin_columns)
KERNEL(lay_out)
KERNEL(draw_labels)
KERNEL(draw_tokens)
KERNEL(add_mass)
KERNEL(add_active_mass)
KERNEL(differentiate)
KERNEL(add_chunks)
KERNEL(scale_mass)
KERNEL(subtract_labels)
KERNEL(round_scores)
KERNEL(gradient)
KERNEL(add_segments)
KERNEL(weigh)
KERNEL(step_V)
KERNEL(step_A)
KERNEL(next_step)
KERNEL(column_moments)
KERNEL(mass_standing_out)
