// Runs a kernel on the host: blocks one after the other, in a block the warps one after the other,
// each until its lanes meet.
//
// A thread is a fiber with a stack of its own. Lanes that wait at one site go on together; of
// several sites, the first in the code comes first. STANDIN_REVERSE runs warps and lanes in
// reversed order: a kernel that depends on the order of threads is wrong in one of the two.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../driver/standin.h"
#include "block.h"
#include "translated.h"

enum { STACK = 65536, SHARED = 262144, WARPS = THREADS / LANES };
// Seconds after which a launch is given up. Only products that the tuner tries out take as long.
static const double PATIENCE = 20;

static Fiber fibers[THREADS];
static Warp warps[WARPS];
static char *stacks;
static char shared[SHARED] __attribute__((aligned(1024)));
static Fiber *running;
static void *scheduler;
static Translated *kernel;
static void **kernel_arguments;
static char failure[200];
static int reversed;
// Where the scheduler goes on when a kernel touches what is not memory.
static sigjmp_buf rescue;

// Saves the registers that a call keeps on one stack, and takes them from another.
void switch_stacks(void **from, void *to);
__asm__(
    ".globl switch_stacks\n"
    "switch_stacks:\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
    " ret\n");

static void leave(void) { switch_stacks(&running->stack, scheduler); }

static void begin(void) {
    Fiber *fiber = running;
    kernel->run(&fiber->thread, kernel_arguments);
    fiber->state = ENDED;
    leave();
    __builtin_trap();
}

void fail(const char *why) {
    if (!*failure) snprintf(failure, sizeof failure, "%s", why);
}

Warp *warp_of(const Fiber *fiber) { return &warps[fiber->thread.warp]; }

const Shown *shown_by(const Fiber *fiber, int lane) {
    if (lane < 0 || lane >= LANES || !(fiber->lanes >> lane & 1)) return NULL;
    const Fiber *mate = warp_of(fiber)->lanes[lane];
    return &mate->shown[fiber->now];
}

static void wait_for(struct Thread *thread, State state, int site) {
    Fiber *fiber = (Fiber *)thread;
    fiber->state = state;
    fiber->site = site;
    leave();
}
void meet(struct Thread *thread, int site) {
    ((Fiber *)thread)->now ^= 1;
    wait_for(thread, WAITS_FOR_WARP, site);
}
static void barrier(struct Thread *thread, int site) { wait_for(thread, WAITS_FOR_BLOCK, site); }
static void trap(struct Thread *thread) {
    fail("a trap");
    wait_for(thread, ENDED, 0);
}
static void misaligned(struct Thread *thread) { fail("a misaligned access"); }

static const Hooks HOOKS = {
    .barrier = barrier, .meet = meet, .shuffle = shuffle, .active = active, .ballot = ballot, .reduce = reduce,
    .load_matrix = load_matrix, .store_matrix = store_matrix, .multiply = multiply,
    .multiply_fragments = multiply_fragments, .trap = trap, .misaligned = misaligned,
};

// Runs the lanes of a warp until all of them wait for the block or have ended.
static void run_warp(Warp *warp) {
    for (;;) {
        for (int i = 0; i < warp->count; i++) {
            Fiber *fiber = warp->lanes[reversed ? warp->count - 1 - i : i];
            if (fiber->state != RUNS) continue;
            running = fiber;
            switch_stacks(&scheduler, fiber->stack);
            if (*failure) return;
        }
        int first = 0;
        for (int i = 0; i < warp->count; i++) {
            Fiber *fiber = warp->lanes[i];
            if (fiber->state == WAITS_FOR_WARP && (!first || fiber->site < first)) first = fiber->site;
        }
        if (!first) return;
        u32 lanes = 0;
        for (int i = 0; i < warp->count; i++) {
            Fiber *fiber = warp->lanes[i];
            if (fiber->state == WAITS_FOR_WARP && fiber->site == first) lanes |= 1u << i;
        }
        for (int i = 0; i < warp->count; i++)
            if (lanes >> i & 1) {
                warp->lanes[i]->lanes = lanes;
                warp->lanes[i]->state = RUNS;
            }
    }
}

// Lets the threads go on that wait at a barrier. False if there is none.
static int pass_barrier(int threads) {
    int site = 0, ended = 0;
    for (int i = 0; i < threads; i++) {
        Fiber *fiber = &fibers[i];
        if (fiber->state == ENDED) ended = 1;
        else if (!site) site = fiber->site;
        else if (site != fiber->site) fail("threads of a block wait at different barriers");
    }
    if (site && ended) fail("some threads ended while others wait at a barrier");
    for (int i = 0; i < threads; i++)
        if (fibers[i].state == WAITS_FOR_BLOCK) fibers[i].state = RUNS;
    return site && !*failure;
}

static void run_block(int threads) {
    for (int i = 0; i < threads; i++) {
        // As `switch_stacks` leaves a stack: six registers, and where to return to.
        void **stack = (void **)(stacks + (i + 1l) * STACK);
        *--stack = NULL;
        *--stack = (void *)begin;
        stack -= 6;
        memset(stack, 0, 6 * sizeof *stack);
        fibers[i].stack = stack;
        fibers[i].state = RUNS;
        fibers[i].now = 0;
        fibers[i].lanes = 0;
    }
    int count = (threads + LANES - 1) / LANES;
    do {
        for (int i = 0; i < count && !*failure; i++) run_warp(&warps[reversed ? count - 1 - i : i]);
    } while (!*failure && pass_barrier(threads));
}

static int prepare(const Launch *launch, int shared_size) {
    if (!stacks) {
        stacks = mmap(NULL, (size_t)THREADS * STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) abort();
    }
    const unsigned *block = launch->block, *grid = launch->grid;
    int threads = block[0] * block[1] * block[2];
    for (int i = 0; i < threads; i++) {
        unsigned lane = i % LANES, warp = i / LANES;
        fibers[i].thread = (struct Thread){
            .tid = {i % block[0], i / block[0] % block[1], i / block[0] / block[1]},
            .ntid = {block[0], block[1], block[2]},
            .nctaid = {grid[0], grid[1], grid[2]},
            .lane = lane, .warp = warp, .shared = shared, .shared_size = shared_size, .hooks = &HOOKS,
        };
        warps[warp].lanes[lane] = &fibers[i];
        warps[warp].count = lane + 1;
    }
    return threads;
}

static void outside_of_memory(int signal) {
    fail("an access outside of memory");
    siglongjmp(rescue, 1);
}

// False if it took too long.
static int run_grid(const Launch *launch, int threads, int shared_size) {
    const unsigned *grid = launch->grid;
    double begun = seconds();
    if (sigsetjmp(rescue, 1)) return 1;
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                for (int i = 0; i < threads; i++) memcpy(fibers[i].thread.ctaid, (u32[]){x, y, z}, 3 * sizeof(u32));
                // NaNs: shared memory has no values.
                memset(shared, 0xff, shared_size);
                run_block(threads);
                if (*failure) return 1;
                if (seconds() - begun > PATIENCE) return 0;
            }
    return 1;
}

// CubeCL's measurements of a device. A launch takes the 20 ms that CubeCL looks for: it multiplies
// the work of a shorter one.
enum { PROBE_MICROSECONDS = 21000 };
static int is_probe(const char *name) {
    return strstr(name, "_throughput_i_") || !strncmp(name, "launch_overhead", 15) ||
           !strncmp(name, "prime_buffer", 12);
}

CUresult execute(const char *module, const char *name, const Launch *launch, void **arguments, void **translated) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (is_probe(name)) {
        usleep(PROBE_MICROSECONDS);
        record("PROBE %s", name);
        return CUDA_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    if (!*translated) *translated = translated_kernel(module);
    kernel = *translated;
    kernel_arguments = arguments;
    *failure = 0;
    reversed = getenv("STANDIN_REVERSE") != NULL;
    const unsigned *grid = launch->grid, *block = launch->block;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (*kernel->why) {
        record("UNSUPPORTED %s: %s", name, kernel->why);
    } else if (kernel->shared + launch->shared > SHARED) {
        record("UNSUPPORTED %s: %u bytes of shared memory", name, kernel->shared + launch->shared);
    } else {
        int shared_size = kernel->shared + launch->shared, threads = prepare(launch, shared_size);
        // On the stack that Rust gives each thread for signals: a fiber's may be the fault.
        struct sigaction before, action = {.sa_handler = outside_of_memory, .sa_flags = SA_ONSTACK};
        sigaction(SIGSEGV, &action, &before);
        int in_time = run_grid(launch, threads, shared_size);
        sigaction(SIGSEGV, &before, NULL);
        if (*failure) {
            record("FAULT %s, grid %u %u %u, block %u %u %u: %s", name, grid[0], grid[1], grid[2], block[0], block[1],
                   block[2], failure);
        } else if (!in_time) {
            record("SLOW %s, grid %u %u %u: given up", name, grid[0], grid[1], grid[2]);
        } else {
            record("RAN %s", name);
            result = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}
