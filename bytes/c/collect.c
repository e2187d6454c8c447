/* See collect.h: marks from the roots, then sweeps. */
#include "collect.h"

#include "implicit.h"
#include "implicit_labels.h"
#include "record.h"

#define FIRST_AT (1u << 16) /* sets */

static UInt next_at = FIRST_AT;
static UChar *marked; /* one bit each */

static Bool mark_one(UInt set)
{
    UInt i = set - NODE_BASE;
    if (set < NODE_BASE || marked[i / 8] >> i % 8 & 1)
        return False;
    marked[i / 8] |= 1 << i % 8;
    return True;
}

static void mark(UInt set)
{
    static UInt *stack, capacity;
    UInt used = 0;
    for (;;) {
        while (mark_one(set)) {
            Node *n = &nodes[set - NODE_BASE];
            if (n->second >= NODE_BASE) {
                if (used == capacity) {
                    capacity = capacity ? 2 * capacity : 1024;
                    stack = VG_(realloc)("collect.stack", stack, capacity * sizeof(UInt));
                }
                stack[used++] = n->second;
            }
            set = n->rest;
        }
        if (used == 0)
            return;
        set = stack[--used];
    }
}

static void mark_labels(const Label *labels, UInt count)
{
    UInt last = 0;
    for (UInt i = 0; i < count; i++) {
        UInt set = SET_OF(labels[i]);
        if (set >= NODE_BASE && set != last)
            mark(last = set);
    }
}

static void mark_implicit(Addr line)
{
    const Label *chunk = implicit_chunks ? implicit_chunks[line >> CHUNK_SHIFT] : NULL;
    if (chunk)
        mark_labels(&chunk[line & ((1 << CHUNK_SHIFT) - 1)], 1 << LINE_SHIFT);
}

/* The labels of memory: chunk by chunk, and only lines that have one. */
static ULong mark_memory(void)
{
    const UInt lines = 1 << (CHUNK_SHIFT - LINE_SHIFT);
    ULong found = 0;
    for (UInt i = 0; i < chunk_count; i++) {
        ULong first = (ULong)chunk_list[i] << (CHUNK_SHIFT - LINE_SHIFT);
        for (UInt k = 0; k < lines; k += 8) {
            if (*(ULong *)&line_counts[first + k] == 0)
                continue;
            for (UInt line = k; line < k + 8; line++) {
                if (line_counts[first + line]) {
                    mark_labels(&shadow[(first + line) << LINE_SHIFT], 1 << LINE_SHIFT);
                    mark_implicit((first + line) << LINE_SHIFT);
                    found += 1 << LINE_SHIFT;
                }
            }
        }
    }
    return found;
}

void collect_sets(void)
{
    if (used_nodes < next_at && used_nodes < settings.node_limit)
        return;
    if (!marked)
        marked = reserve(0, NODES_MAX / 8, "marks of sets");
    VG_(memset)(marked, 0, node_count / 8 + 1);
    ULong bytes = mark_memory();
    for (ThreadId tid = 0; tid < VG_N_THREADS; tid++)
        each_register(tid, mark_labels);
    keep_nodes(marked);
    /* Twice as many may be made as there are, and enough for the work of marking. */
    next_at = VG_MAX(VG_MAX(FIRST_AT, 2 * used_nodes), used_nodes + (UInt)(bytes / 16));
    next_at = VG_MIN(next_at, settings.node_limit);
}
