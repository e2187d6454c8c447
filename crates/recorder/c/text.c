/* String functions that do not use libc. */
#include "bs.h"
#include <emmintrin.h>

/*
 * Returns the length of a string, at most `limit`. It reads whole aligned 16-byte blocks, so it
 * never reads beyond the page with the string's end. A null pointer is an empty string.
 */
u32 bs_length(const char *s, u32 limit)
{
    if (BS_UNLIKELY((u64)s < BS_PAGE))
        return 0;
    const __m128i zero = _mm_setzero_si128();
    u64 skip = (u64)s & 15;
    const char *block = s - skip;
    u32 ends =
        (u32)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128((const __m128i *)block), zero)) >>
        skip;
    if (ends)
        return (u32)__builtin_ctz(ends) < limit ? (u32)__builtin_ctz(ends) : limit;
    for (;;) {
        block += 16;
        if ((u64)(block - s) >= limit)
            return limit;
        ends = (u32)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128((const __m128i *)block), zero));
        if (ends) {
            u64 n = (u64)(block - s) + (u32)__builtin_ctz(ends);
            return n < limit ? (u32)n : limit;
        }
    }
}

void bs_copy(void *to, const void *from, u64 n)
{
    u8 *d = to;
    const u8 *s = from;
    if (n >= 16) {
        for (u64 i = 0; i + 16 <= n; i += 16)
            _mm_storeu_si128((__m128i *)(d + i), _mm_loadu_si128((const __m128i *)(s + i)));
        _mm_storeu_si128((__m128i *)(d + n - 16), _mm_loadu_si128((const __m128i *)(s + n - 16)));
        return;
    }
    for (u64 i = 0; i < n; i++) {
        d[i] = s[i];
        /* keeps the compiler from making a call of memcpy from this loop */
        __asm__ volatile("" ::: "memory");
    }
}

bool bs_starts(const char *s, const char *with)
{
    while (*with)
        if (*s++ != *with++)
            return false;
    return true;
}

bool bs_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* The compiler may insert calls of these two functions. */
void *memcpy(void *to, const void *from, size_t n)
{
    void *d = to;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(n)::"memory");
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    void *d = to;
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(byte) : "memory");
    return to;
}
