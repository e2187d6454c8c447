/* Timeouts as deep records have them: in ns, -1 for none. */
#ifndef TIMEOUT_H
#define TIMEOUT_H

#include "../bs.h"

/* The kernel's `timespec` or `timeval`. */
struct bs_timeout {
    s64 seconds, rest;
};
enum { BS_TIMEOUT_NS = 1, BS_TIMEOUT_US = 1000 };

/* The time in a structure whose `rest` has this unit. A time that is too long becomes the most. */
static inline s64 bs_timeout_at(const struct bs_timeout *t, s64 unit)
{
    const s64 most = ~0ull >> 1, second = 1000000000;
    s64 ns, rest;
    if (!t)
        return -1;
    if (__builtin_mul_overflow(t->seconds, second, &ns) ||
        __builtin_mul_overflow(t->rest, unit, &rest) || __builtin_add_overflow(ns, rest, &ns))
        return most;
    return ns;
}

static inline s64 bs_timeout_of_ms(int milliseconds)
{
    return milliseconds < 0 ? -1 : (s64)milliseconds * 1000000;
}

#endif
