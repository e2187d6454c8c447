/* How a list of slots stands in a label program: 0 and the first of consecutive slots, or 1 and all
 * of them. Empty slots follow each other, so a list of them is consecutive, too. */
#ifndef ENCODING_H
#define ENCODING_H

#include "program.h"

static inline UInt encode_list(UShort *to, const Slot *slots, UInt n)
{
    Bool run = True, empty = slots[0] == EMPTY_SLOT;
    for (UInt i = 1; i < n; i++) {
        run &= slots[i] == slots[0] + i;
        empty &= slots[i] == EMPTY_SLOT;
    }
    to[0] = !(run || empty);
    if (to[0] == 0) {
        to[1] = slots[0];
        return 2;
    }
    for (UInt i = 0; i < n; i++)
        to[1 + i] = slots[i];
    return 1 + n;
}

#endif
