/* The implicit labels of memory: which input bytes decided, by branches, about each byte.
 *
 * They are sets (labels.h) beside the labels of shadow.h, and never deferred. Few bytes have one,
 * so they are kept by chunks of memory that are made when they are needed.
 * Invariant: line_counts (shadow.h) counts both kinds of labels. */
#ifndef IMPLICIT_LABELS_H
#define IMPLICIT_LABELS_H

#include "engine.h"
#include "shadow.h"

/* NULL without --implicit. */
extern Label **implicit_chunks;

void implicit_labels_start(void);

static inline Label implicit_label(Addr a)
{
    const Label *chunk = implicit_chunks[(a & ADDRESS_MASK) >> CHUNK_SHIFT];
    return chunk ? chunk[a & ((1 << CHUNK_SHIFT) - 1)] : 0;
}

void set_implicit_label(Addr a, Label label);

/* A range of any length. With `counted`, the counts of its lines are known to be 0 already. */
void clear_implicit_labels(Addr a, ULong length, Bool counted);

#endif
