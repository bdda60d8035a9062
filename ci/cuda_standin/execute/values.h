// Number types of PTX, and conversions between them. Halves are kept as their bits.
#ifndef VALUES_H
#define VALUES_H

typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef float f32;
typedef double f64;

#define INLINE static inline __attribute__((always_inline, unused))

INLINE u32 f2u(float x) { u32 bits; __builtin_memcpy(&bits, &x, 4); return bits; }
INLINE float u2f(u32 bits) { float x; __builtin_memcpy(&x, &bits, 4); return x; }
INLINE u64 d2u(double x) { u64 bits; __builtin_memcpy(&bits, &x, 8); return bits; }
INLINE double u2d(u64 bits) { double x; __builtin_memcpy(&x, &bits, 8); return x; }

INLINE float h2f(u16 bits) { _Float16 x; __builtin_memcpy(&x, &bits, 2); return (float)x; }
INLINE u16 f2h(float x) { _Float16 half = (_Float16)x; u16 bits; __builtin_memcpy(&bits, &half, 2); return bits; }
INLINE float b2f(u16 bits) { return u2f((u32)bits << 16); }
INLINE u16 f2b(float x) {
    u32 bits = f2u(x);
    if (x != x) return 0x7fff;
    // To the nearest, ties to even.
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
INLINE u32 totf32(float x) { return x != x ? f2u(x) : (f2u(x) + 0x1000) & 0xffffe000u; }

INLINE float sat(float x) { return x != x || x < 0 ? 0 : x > 1 ? 1 : x; }
INLINE float nanminf(float x, float y) { return x != x || y != y ? __builtin_nanf("") : x < y ? x : y; }
INLINE float nanmaxf(float x, float y) { return x != x || y != y ? __builtin_nanf("") : x > y ? x : y; }

// PTX converts what is out of range to the nearest number, and a NaN to 0.
#define TO_INTEGER(type, least, most)            \
    INLINE type f2i_##type(double x) {           \
        if (x != x) return 0;                    \
        if (x <= (double)(least)) return least;  \
        if (x >= (double)(most)) return most;    \
        return (type)x;                          \
    }
TO_INTEGER(s8, -128, 127)
TO_INTEGER(u8, 0, 255)
TO_INTEGER(s16, -32768, 32767)
TO_INTEGER(u16, 0, 65535)
TO_INTEGER(s32, (-2147483647 - 1), 2147483647)
TO_INTEGER(u32, 0u, 4294967295u)
TO_INTEGER(s64, (-9223372036854775807ll - 1), 9223372036854775807ll)
TO_INTEGER(u64, 0ull, 18446744073709551615ull)

// Each digit of `choice` picks one of the eight bytes of b and a, or the sign of it.
INLINE u32 prmt(u32 a, u32 b, u32 choice) {
    u64 bytes = (u64)b << 32 | a;
    u32 result = 0;
    for (int i = 0; i < 4; i++) {
        u32 digit = choice >> (4 * i);
        u8 byte = bytes >> (8 * (digit & 7));
        if (digit & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= (u32)byte << (8 * i);
    }
    return result;
}
INLINE u64 brev64(u64 x) {
    u64 result = 0;
    for (int i = 0; i < 64; i++) result |= (x >> i & 1) << (63 - i);
    return result;
}
INLINE u32 brev32(u32 x) { return brev64(x) >> 32; }

#endif
