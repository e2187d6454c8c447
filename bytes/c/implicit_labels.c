/* See implicit_labels.h. */
#include "implicit_labels.h"

#define CHUNK (1ULL << CHUNK_SHIFT)

Label **implicit_chunks;

void implicit_labels_start(void)
{
    implicit_chunks = reserve(0, (1ULL << (ADDRESS_BITS - CHUNK_SHIFT)) * sizeof *implicit_chunks,
                              "the implicit labels of memory");
}

void set_implicit_label(Addr a, Label label)
{
    Label **chunk = &implicit_chunks[(a & ADDRESS_MASK) >> CHUNK_SHIFT];
    if (!*chunk) {
        if (!label)
            return;
        *chunk = reserve(0, CHUNK * sizeof(Label), "the implicit labels of memory");
    }
    Label *at = &(*chunk)[a & (CHUNK - 1)];
    Int change = (label != 0) - (*at != 0);
    if (change)
        count_label(a, change);
    *at = label;
}

void clear_implicit_labels(Addr a, ULong length, Bool counted)
{
    a &= ADDRESS_MASK;
    for (Addr end = a + length; a < end;) {
        Addr next = VG_MIN(VG_ROUNDDN(a, CHUNK) + CHUNK, end);
        Label *chunk = implicit_chunks[a >> CHUNK_SHIFT];
        if (chunk && counted)
            VG_(memset)(&chunk[a & (CHUNK - 1)], 0, (next - a) * sizeof(Label));
        for (Addr at = a; chunk && !counted && at < next; at++)
            set_implicit_label(at, 0);
        a = next;
    }
}
