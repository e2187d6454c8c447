/* How a list of slots stands in a label program: its kind, then
 *
 * - LIST_RUN: the first of consecutive slots,
 * - LIST_EACH: all slots,
 * - LIST_SAME: a slot that stands m times, and m,
 * - LIST_START: the first of m consecutive slots, and m.
 *
 * The last two are followed by empty slots. Empty slots follow each other, so a list of them is a
 * run, too. */
#ifndef ENCODING_H
#define ENCODING_H

#include "program.h"

enum { LIST_RUN, LIST_EACH, LIST_SAME, LIST_START };

static inline UInt encode_list(UShort *to, const Slot *slots, UInt n)
{
    UInt run = 1, same = 1, used = n;
    while (used > 1 && slots[used - 1] == EMPTY_SLOT)
        used--;
    while (run < used && slots[run] == slots[0] + run)
        run++;
    while (same < used && slots[same] == slots[0])
        same++;
    if (slots[0] == EMPTY_SLOT && used == 1)
        run = used = n;
    to[0] = LIST_EACH;
    if (run == n || run == used || same == used) {
        to[0] = run == n ? LIST_RUN : run == used ? LIST_START : LIST_SAME;
        to[1] = slots[0];
        to[2] = used;
        return run == n ? 2 : 3;
    }
    for (UInt i = 0; i < n; i++)
        to[1 + i] = slots[i];
    return 1 + n;
}

static inline const UShort *after_list(const UShort *at, UInt n)
{
    return at + (at[0] == LIST_RUN ? 2 : at[0] == LIST_EACH ? 1 + n : 3);
}

/* Returns the end of the list. */
static inline const UShort *decode_list(const UShort *at, UInt n, Slot *slots)
{
    for (UInt i = 0; i < n; i++) {
        switch (at[0]) {
        case LIST_RUN: slots[i] = at[1] == EMPTY_SLOT ? EMPTY_SLOT : at[1] + i; break;
        case LIST_EACH: slots[i] = at[1 + i]; break;
        case LIST_SAME: slots[i] = i < at[2] ? at[1] : EMPTY_SLOT; break;
        default: slots[i] = i < at[2] ? at[1] + i : EMPTY_SLOT; break;
        }
    }
    return after_list(at, n);
}

#endif
