// Matrix instructions of a warp, with the layouts that PTX documents. Products are added one after
// the other in FP32.
#include <string.h>
#include "block.h"

static int all_lanes(const Fiber *fiber) {
    if (fiber->lanes == 0xffffffffu) return 1;
    fail("a matrix instruction without all lanes");
    return 0;
}

// One of the two values that a lane holds of an 8 by 8 matrix of halves. Lane 8 * matrix + row gave
// the address of the row.
static u16 *element(const Fiber *fiber, int matrix, int transposed, int of_two) {
    int across = (fiber->thread.lane & 3) * 2 + of_two, down = fiber->thread.lane >> 2;
    int row = transposed ? across : down, column = transposed ? down : across;
    char *address = shown_by(fiber, 8 * matrix + row)->address;
    if ((u64)address % 16) fail("a row of a matrix that is not aligned to 16 bytes");
    return (u16 *)address + column;
}

void load_matrix(struct Thread *thread, int site, int count, int transposed, char *row, u32 *values) {
    Fiber *fiber = (Fiber *)thread;
    next_shown(fiber)->address = row;
    meet(thread, site);
    if (!all_lanes(fiber)) return;
    for (int i = 0; i < count; i++)
        values[i] = *element(fiber, i, transposed, 0) | (u32)*element(fiber, i, transposed, 1) << 16;
    // All lanes have read before one goes on to write.
    meet(thread, site);
}

void store_matrix(struct Thread *thread, int site, int count, int transposed, char *row, u32 *values) {
    Fiber *fiber = (Fiber *)thread;
    next_shown(fiber)->address = row;
    meet(thread, site);
    if (!all_lanes(fiber)) return;
    for (int i = 0; i < count; i++)
        for (int of_two = 0; of_two < 2; of_two++)
            *element(fiber, i, transposed, of_two) = values[i] >> (16 * of_two);
    meet(thread, site);
}

enum { OF_FP16, OF_BF16, OF_TF32 };

static float number(const u32 *values, int i, int kind) {
    if (kind == OF_TF32) return u2f(values[i] & 0xffffe000u);
    u16 bits = values[i / 2] >> (16 * (i & 1));
    return kind == OF_BF16 ? b2f(bits) : h2f(bits);
}

void multiply(struct Thread *thread, int site, int depth, int kind, u32 *a, u32 *b, float *c) {
    Fiber *fiber = (Fiber *)thread;
    u32 *shown = next_shown(fiber)->values;
    memcpy(shown, a, 16);
    memcpy(shown + 4, b, 8);
    meet(thread, site);
    if (!all_lanes(fiber)) return;
    // A lane has two columns of two rows that are eight apart.
    int group = thread->lane >> 2, in_group = thread->lane & 3;
    for (int i = 0; i < 4; i++) {
        int lower = i >= 2, column = in_group * 2 + (i & 1);
        for (int k = 0; k < depth; k++) {
            // A number of 32 bits holds one TF32 or two halves: which lane of a group has number k,
            // and where.
            int of_k = kind == OF_TF32 ? k & 3 : (k & 7) >> 1;
            int in_a = kind == OF_TF32 ? lower + 2 * (k >= 4) : (k & 1) + 2 * lower + 4 * (k >= 8);
            int in_b = kind == OF_TF32 ? k >= 4 : (k & 1) + 2 * (k >= 8);
            const u32 *of_a = shown_by(fiber, group * 4 + of_k)->values;
            const u32 *of_b = shown_by(fiber, column * 4 + of_k)->values + 4;
            c[i] = __builtin_fmaf(number(of_a, in_a, kind), number(of_b, in_b, kind), c[i]);
        }
    }
}

void multiply_fragments(struct Thread *thread, int site, int shape[3], int kind, int added_half, int out_half, u32 *a,
                        u32 *b, u32 *c, u32 *d) {
    Fiber *fiber = (Fiber *)thread;
    u32 *shown = next_shown(fiber)->values;
    memcpy(shown, a, 40);
    memcpy(shown + 10, b, 40);
    meet(thread, site);
    if (!all_lanes(fiber)) return;
    int rows = shape[0], columns = shape[1], depth = shape[2];
    // Values that a lane has of each, in the order of rows as in thread.h.
    int of_a = rows * depth / LANES, of_b = depth * columns / LANES, of_c = rows * columns / LANES;
    for (int i = 0; i < of_c; i++) {
        int place = thread->lane * of_c + i, row = place / columns, column = place % columns;
        float total = added_half ? number(c, i, OF_FP16) : u2f(c[i]);
        for (int k = 0; k < depth; k++) {
            int in_a = row * depth + k, in_b = k * columns + column;
            float x = number(shown_by(fiber, in_a / of_a)->values, in_a % of_a, kind);
            float y = number(shown_by(fiber, in_b / of_b)->values + 10, in_b % of_b, kind);
            total = __builtin_fmaf(x, y, total);
        }
        if (!out_half) d[i] = f2u(total);
        else if (i & 1) d[i / 2] |= (u32)f2h(total) << 16;
        else d[i / 2] = f2h(total);
    }
}
