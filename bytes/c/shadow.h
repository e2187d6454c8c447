/* The labels of memory: one for each byte that the program can have, in a flat array. The kernel
 * keeps only the pages of it that were written. A count for each line of 16 bytes says how many of
 * them, and of the next 15, have a label. So code without labels looks at one byte for each access.
 *
 * Invariant: line_counts[i] is the number of labels in shadow[16 i .. 16 i + 30] that are not 0.
 * Implicit labels of the same bytes (implicit_labels.h) are counted, too. */
#ifndef SHADOW_H
#define SHADOW_H

#include "engine.h"

/* The counts, then the labels. They end below the recorder (BS_HOME), which also maps memory behind
   itself. */
#define LINES_BASE 0x140000000000ULL
#define SHADOW_BASE 0x150000000000ULL
#define LINE_SHIFT 4

static Label *const shadow = (Label *)SHADOW_BASE;
static UChar *const line_counts = (UChar *)LINES_BASE;

void shadow_start(void);

#define REACH 15 /* bytes behind a line that its count covers */

/* Whether one of the bytes [a, a + length] may have a label; at most 64 bytes. */
static inline UInt labelled(Addr a, UInt length)
{
    UInt any = line_counts[(a & ADDRESS_MASK) >> LINE_SHIFT];
    for (UInt at = REACH + 1; at <= length; at += REACH + 1)
        any |= line_counts[((a + at) & ADDRESS_MASK) >> LINE_SHIFT];
    return any;
}

/* Parts of the address space that have had a label. */
#define CHUNK_SHIFT 20
extern UChar *chunk_known;
extern UInt *chunk_list, chunk_count;

static inline void count_label(Addr a, Int change)
{
    UInt chunk = (UInt)((a & ADDRESS_MASK) >> CHUNK_SHIFT);
    if (UNLIKELY(!chunk_known[chunk])) {
        chunk_known[chunk] = 1;
        chunk_list[chunk_count++] = chunk;
    }
    ULong line = (a & ADDRESS_MASK) >> LINE_SHIFT,
          before = ((a - REACH) & ADDRESS_MASK) >> LINE_SHIFT;
    line_counts[line] += change;
    if (before != line)
        line_counts[before] += change;
}

static inline void set_label(Addr a, Label label)
{
    Label *at = &shadow[a & ADDRESS_MASK];
    Int change = (label != 0) - (*at != 0);
    if (change)
        count_label(a, change);
    if (*at != label)
        *at = label;
}

/* Removes the labels of a range of any length. */
void clear_labels(Addr a, ULong length);

/* Moves labels as mremap moves bytes; the ranges do not overlap. */
void copy_labels(Addr from, Addr to, SizeT length);

#endif
