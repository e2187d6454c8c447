/* The labels of memory: one for each byte that the program can have, in a flat array. The kernel
 * keeps only the pages of it that were written. A count for each 64 bytes says how many of them
 * have a label. So code without labels looks at one byte for each access.
 *
 * Invariant: line_counts[a >> 6] is the number of labels in shadow[a .. a + 63] that are not 0. */
#ifndef SHADOW_H
#define SHADOW_H

#include "engine.h"

#define SHADOW_BASE 0x200000000000ULL
#define LINES_BASE 0x180000000000ULL
#define LINE_SHIFT 6

static Label *const shadow = (Label *)SHADOW_BASE;
static UChar *const line_counts = (UChar *)LINES_BASE;

void shadow_start(void);

/* Whether one of the bytes [a, a + length] may have a label; at most 64 bytes. */
static inline UInt labelled(Addr a, UInt length)
{
    return line_counts[(a & ADDRESS_MASK) >> LINE_SHIFT] |
           line_counts[((a + length) & ADDRESS_MASK) >> LINE_SHIFT];
}

static inline void set_label(Addr a, Label label)
{
    Label *at = &shadow[a & ADDRESS_MASK];
    line_counts[(a & ADDRESS_MASK) >> LINE_SHIFT] += (label != 0) - (*at != 0);
    if (*at != label)
        *at = label;
}

/* Removes the labels of a range of any length. */
void clear_labels(Addr a, ULong length);

/* Moves labels as mremap moves bytes; the ranges do not overlap. */
void copy_labels(Addr from, Addr to, SizeT length);

#endif
