/* Sets of input bytes, interned: equal sets have equal ids as long as they are lists.
 *
 * Ids from 1 to LEAF_MAX are single bytes ("leaves"): the k-th byte that was read. Ids from
 * NODE_BASE are nodes. A node has one of two shapes.
 * - list: a range of leaves, and the id of a set whose leaves are all lower, and not adjacent.
 * - pair: two sets. It is made if merging two lists would take more than MERGE_LIMIT ranges.
 *
 * Lists descend, so that a sum over an input that is read from its beginning adds one node for
 * each addition. Invariant: nodes form no cycle.
 *
 * Above `settings.node_limit` nodes, a union becomes one range that covers both sets, with its
 * ends widened to 2^shift bytes; later, everything read so far. `coarse_shift` says which. */
#ifndef LABELS_H
#define LABELS_H

#include "engine.h"

#define NODE_BASE 0x40000000u
#define LEAF_MAX (NODE_BASE - 1)
#define NODES_MAX 0x20000000u

typedef struct {
    UInt low, high; /* list: the range. pair: low is 0, high is the highest leaf */
    UInt rest;      /* list: lower set, or 0. pair: first set */
    UInt second;    /* pair: second set */
    UInt lowest;    /* the lowest leaf of the set */
} Node;

extern Node *nodes;     /* nodes[id - NODE_BASE] */
extern UInt node_count; /* nodes that were ever in use: ids are below NODE_BASE + node_count */
extern UInt used_nodes;
extern UInt coarse_shift; /* 0: exact. 63: everything read so far */

void labels_start(void);

/* Bytes of memory that the sets take, at most until now. */
ULong set_memory(void);

/* Takes `count` new leaves; returns the first. When ids run out, returns 0 and coarsens. */
UInt new_leaves(UInt count);
UInt leaf_count(void);

/* Frees each node whose bit is 0. */
void keep_nodes(const UChar *marked);

/* The interned set of the leaves [low, high]. */
UInt range_set(UInt low, UInt high);

UInt merge_sets(UInt a, UInt b);

/* A direct-mapped memory of the last unions. */
typedef struct {
    UInt a, b, result;
} Union;
#define UNION_MEMORY 32768
extern Union union_memory[UNION_MEMORY];

/* The union of two sets that are not empty. */
static inline UInt unite_sets(UInt x, UInt y)
{
    if (x == y)
        return x;
    if (x < y) {
        UInt t = x;
        x = y;
        y = t;
    }
    Union *u = &union_memory[(x * 2654435761u ^ y * 2246822519u) >> 17];
    if (u->a != x || u->b != y) {
        UInt result = merge_sets(x, y);
        *u = (Union){x, y, result};
    }
    return u->result;
}

#endif
