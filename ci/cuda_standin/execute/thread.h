// What a translated kernel sees of the thread that runs it.
#ifndef THREAD_H
#define THREAD_H
#include "values.h"

struct Thread;

// Where a thread leaves its function until others have come as far. `site` numbers the place in the
// code.
typedef struct {
    // All threads of the block.
    void (*barrier)(struct Thread *, int site);
    // The lanes of the warp that wait at this site.
    void (*meet)(struct Thread *, int site);
    u32 (*shuffle)(struct Thread *, int site, int kind, u32 value, u32 by, u32 clamp, int *within);
    u32 (*active)(struct Thread *, int site);
    u32 (*ballot)(struct Thread *, int site, int vote, u32 *lanes);
    u32 (*reduce)(struct Thread *, int site, int operation, int is_signed, u32 value);
    void (*load_matrix)(struct Thread *, int site, int count, int transposed, char *row, u32 *values);
    void (*store_matrix)(struct Thread *, int site, int count, int transposed, char *row, u32 *values);
    // c += a b with 16 rows and 8 columns. Kinds are FP16, BF16 and TF32.
    void (*multiply)(struct Thread *, int site, int depth, int kind, u32 *a, u32 *b, float *c);
    void (*multiply_fragments)(struct Thread *, int site, int shape[3], int kind, int added_half, int out_half, u32 *a,
                               u32 *b, u32 *c, u32 *d);
    void (*trap)(struct Thread *);
    void (*misaligned)(struct Thread *);
} Hooks;

// Names are those of PTX's special registers.
struct Thread {
    u32 tid[3], ntid[3], ctaid[3], nctaid[3];
    u32 lane, warp;
    // The carry of `add.cc`.
    u32 carry;
    u32 shared_size;
    char *shared;
    const Hooks *hooks;
};

// A GPU refuses an address that is not a multiple of the bytes that are read or written there.
#define ALIGNED(address, bytes) \
    if (__builtin_expect((u64)(address) % (bytes) != 0, 0)) T->hooks->misaligned(T)

// Fragments of `wmma`, whose layout PTX leaves open: values are dealt out to the lanes in the order
// of rows. Two halves are a number.
INLINE u64 fragment_place(struct Thread *T, int rows, int columns, int by_rows, u32 stride, int i) {
    int number = T->lane * (rows * columns / 32) + i, row = number / columns, column = number % columns;
    return by_rows ? (u64)row * stride + column : (u64)column * stride + row;
}
INLINE void load_fragment(struct Thread *T, int rows, int columns, int by_rows, int size, char *from, u32 stride,
                          u32 *values) {
    for (int i = 0; i < rows * columns / 32; i++) {
        u64 place = fragment_place(T, rows, columns, by_rows, stride, i);
        if (size == 4) values[i] = ((u32 *)from)[place];
        else values[i / 2] |= (u32)((u16 *)from)[place] << (16 * (i & 1));
    }
}
INLINE void store_fragment(struct Thread *T, int rows, int columns, int by_rows, int size, char *to, u32 stride,
                           u32 *values) {
    for (int i = 0; i < rows * columns / 32; i++) {
        u64 place = fragment_place(T, rows, columns, by_rows, stride, i);
        if (size == 4) ((u32 *)to)[place] = values[i];
        else ((u16 *)to)[place] = values[i / 2] >> (16 * (i & 1));
    }
}

#endif
