/* Unions that no store has needed yet.
 *
 * Most unions are never stored: a difference that only decides a branch, an index, a hash that the
 * next value replaces. So a union of registers' labels is a note of its two operands, in a ring of
 * notes. It becomes a set (labels.h) when it is stored to memory, or when the ring is full.
 *
 * Invariant: only registers of the thread that runs, and slots of the program that runs, have
 * labels from the ring. Memory never has one. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include "labels.h"

#define DEFERRED_BASE 0x60000000u
#define DEFERRED 16384
#define DEFERRED_LOW 4096 /* a program begins with that much room */
#define IS_RANGE 0x80000000u

/* a and b: two sets, or with IS_RANGE in b the lowest and highest leaf. result: 0 if unknown. */
typedef struct {
    UInt a, b, result;
} Deferred;

extern Deferred deferred[DEFERRED];
extern UInt deferred_count; /* the entry 0 is not used */

/* The set of a deferred union. */
UInt resolve_deferred(UInt set);

static inline Label resolve(Label label)
{
    if (SET_OF(label) < DEFERRED_BASE)
        return label;
    return resolve_deferred(SET_OF(label)) | COMPUTED;
}

static inline Bool deferred_full(void)
{
    return deferred_count > DEFERRED - DEFERRED_LOW;
}

/* Nothing has a label from the ring any more. */
static inline void forget_deferred(void)
{
    deferred_count = 1;
}

static inline UInt defer(UInt a, UInt b)
{
    const Deferred *last = &deferred[deferred_count - 1];
    if (last->a == a && last->b == b)
        return DEFERRED_BASE + deferred_count - 1;
    deferred[deferred_count] = (Deferred){a, b, 0};
    return DEFERRED_BASE + deferred_count++;
}

/* A union at once: for rings without room. */
UInt merge_now(UInt a, UInt b);

/* The union of two labels. The result is computed, unless one of them is empty. */
static inline Label unite(Label a, Label b)
{
    UInt x = SET_OF(a), y = SET_OF(b);
    if (y == 0)
        return a;
    if (x == 0)
        return b;
    if (x == y)
        return a | b;
    if (x < y) {
        UInt t = x;
        x = y;
        y = t;
    }
    if (x >= DEFERRED_BASE) {
        const Deferred *d = &deferred[x - DEFERRED_BASE];
        if (d->a == y || d->b == y)
            return x | COMPUTED;
    }
    if (UNLIKELY(deferred_count == DEFERRED))
        return merge_now(x, y) | COMPUTED;
    return defer(x, y) | COMPUTED;
}

/* The union of labels, for a value that was computed from them. */
Label unite_run(const Label *labels, UInt count);

#endif
