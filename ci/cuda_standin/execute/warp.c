// Shuffles, votes and reductions of a warp, as PTX documents them.
#include "block.h"

u32 shuffle(struct Thread *thread, int site, int kind, u32 value, u32 by, u32 clamp, int *within) {
    Fiber *fiber = (Fiber *)thread;
    next_shown(fiber)->values[0] = value;
    meet(thread, site);
    // The upper half of the last operand cuts the warp into segments.
    int lane = thread->lane, segment = clamp >> 8 & 31, limit = clamp & 31;
    int last = (lane & segment) | (limit & ~segment), first = lane & segment, from;
    by &= 31;
    switch (kind) {
        case 1: from = lane - (int)by; *within = from >= last; break;
        case 2: from = lane + (int)by; *within = from <= last; break;
        case 3: from = lane ^ (int)by; *within = from <= last; break;
        default: from = first | (by & ~segment); *within = from <= last;
    }
    const Shown *shown = shown_by(fiber, *within ? from : lane);
    // Undefined on a GPU; a NaN here.
    return shown ? shown->values[0] : 0xffffffffu;
}

u32 active(struct Thread *thread, int site) {
    meet(thread, site);
    return ((Fiber *)thread)->lanes;
}

u32 ballot(struct Thread *thread, int site, int vote, u32 *lanes) {
    Fiber *fiber = (Fiber *)thread;
    next_shown(fiber)->values[0] = vote != 0;
    meet(thread, site);
    u32 votes = 0;
    for (int lane = 0; lane < LANES; lane++) {
        const Shown *shown = shown_by(fiber, lane);
        if (shown && shown->values[0]) votes |= 1u << lane;
    }
    *lanes = fiber->lanes;
    return votes;
}

u32 reduce(struct Thread *thread, int site, int operation, int is_signed, u32 value) {
    Fiber *fiber = (Fiber *)thread;
    next_shown(fiber)->values[0] = value;
    meet(thread, site);
    int first = 1;
    u32 result = 0;
    for (int lane = 0; lane < LANES; lane++) {
        const Shown *shown = shown_by(fiber, lane);
        if (!shown) continue;
        u32 x = shown->values[0];
        int less = is_signed ? (s32)x < (s32)result : x < result;
        if (first) result = x;
        else switch (operation) {
            case 0: result += x; break;
            case 1: result = less ? x : result; break;
            case 2: result = less ? result : x; break;
            case 3: result &= x; break;
            case 4: result |= x; break;
            default: result ^= x;
        }
        first = 0;
    }
    return result;
}
