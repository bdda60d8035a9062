// The threads of a block, as fibers that run one at a time.
#ifndef BLOCK_H
#define BLOCK_H
#include "thread.h"

enum { LANES = 32, THREADS = 1024 };

// What a fiber waits for.
typedef enum { RUNS, WAITS_FOR_WARP, WAITS_FOR_BLOCK, ENDED } State;

// What a lane shows to the others when they meet: two operands of `wmma` at most.
typedef struct {
    u32 values[20];
    char *address;
} Shown;

typedef struct {
    struct Thread thread;
    // Its stack while it waits.
    void *stack;
    State state;
    // Where it waits.
    int site;
    // The lanes that met the last time.
    u32 lanes;
    // One is written for the next meeting while others still read that of the last.
    Shown shown[2];
    int now;
} Fiber;

typedef struct {
    Fiber *lanes[LANES];
    int count;
} Warp;

// The warp of a fiber.
Warp *warp_of(const Fiber *fiber);

// What a lane shows at its next meeting.
static inline Shown *next_shown(Fiber *fiber) { return &fiber->shown[fiber->now ^ 1]; }

// What a lane showed at the last meeting; NULL if it was not there.
const Shown *shown_by(const Fiber *fiber, int lane);

// Leaves the function until all lanes that come to this site are there.
void meet(struct Thread *thread, int site);

// Ends the launch. The first reason counts.
void fail(const char *why);

// From warp.c and matrices.c.
u32 shuffle(struct Thread *, int site, int kind, u32 value, u32 by, u32 clamp, int *within);
u32 active(struct Thread *, int site);
u32 ballot(struct Thread *, int site, int vote, u32 *lanes);
u32 reduce(struct Thread *, int site, int operation, int is_signed, u32 value);
void load_matrix(struct Thread *, int site, int count, int transposed, char *row, u32 *values);
void store_matrix(struct Thread *, int site, int count, int transposed, char *row, u32 *values);
void multiply(struct Thread *, int site, int depth, int kind, u32 *a, u32 *b, float *c);
void multiply_fragments(struct Thread *, int site, int shape[3], int kind, int added_half, int out_half, u32 *a, u32 *b,
                        u32 *c, u32 *d);

#endif
