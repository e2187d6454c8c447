/* Copies of labels: eight at once, and as a list of slots says (encoding.h). */
#ifndef GATHERING_H
#define GATHERING_H

#include "encoding.h"

/* Two labels at once. */
typedef ULong TwoLabels __attribute__((aligned(4), may_alias));

static inline Bool any_of_eight(const Label *labels)
{
    const TwoLabels *two = (const TwoLabels *)labels;
    return (two[0] | two[1] | two[2] | two[3]) != 0;
}

static inline Bool copy_eight(Label *to, const Label *from)
{
    TwoLabels *a = (TwoLabels *)to;
    const TwoLabels *b = (const TwoLabels *)from;
    ULong p = b[0], q = b[1], r = b[2], s = b[3];
    a[0] = p;
    a[1] = q;
    a[2] = r;
    a[3] = s;
    return (p | q | r | s) != 0;
}

static inline void clear_run(Label *to, UInt n)
{
    if (n & 1)
        to[--n] = 0;
    for (; n; n -= 2)
        *(TwoLabels *)&to[n - 2] = 0;
}

static inline Label copy_run(Label *to, const Label *from, UInt n)
{
    Label any = 0;
    UInt i = 0;
    for (; i + 8 <= n; i += 8)
        any |= copy_eight(to + i, from + i);
    for (; i < n; i++)
        any |= to[i] = from[i];
    return any;
}

/* Copies the labels of a list (encoding.h); whether one of them is not 0. */
static inline Label gather(Label *to, const Label *slots, const UShort *list, UInt n)
{
    const Label *from = &slots[list[1]];
    Label any = 0;
    UInt i = 0;
    switch (list[0]) {
    case LIST_RUN: return copy_run(to, from, n);
    case LIST_EACH:
        for (; i < n; i++)
            any |= to[i] = slots[list[1 + i]];
        return any;
    case LIST_SAME:
        any = from[0];
        for (; i < list[2]; i++)
            to[i] = any;
        break;
    default:
        for (; i < list[2]; i++)
            any |= to[i] = from[i];
        break;
    }
    for (; i < n; i++)
        to[i] = 0;
    return any;
}

#endif
