/* Sets of input bytes, interned: equal sets have equal ids as long as they are lists.
 *
 * Ids from 1 to LEAF_MAX are single bytes ("leaves"): the k-th byte that was read. Ids from
 * NODE_BASE are nodes. A node has one of two shapes.
 * - list: a range of leaves, and the id of a set whose leaves are all lower, and not adjacent.
 * - pair: two sets. It is made if merging two lists would take more than MERGE_LIMIT ranges.
 *
 * Lists descend, so that a sum over an input that is read from its beginning adds one node for
 * each addition. Invariant: a node refers to older nodes only.
 *
 * Above `settings.node_limit` nodes, a union becomes one range that covers both sets, with its
 * ends widened to 2^shift bytes; later, everything read so far. `coarse_shift` says which. */
#ifndef LABELS_H
#define LABELS_H

#include "engine.h"

#define NODE_BASE 0x40000000u
#define LEAF_MAX (NODE_BASE - 1)

typedef struct {
    UInt low, high; /* list: the range. pair: low is 0, high is the highest leaf */
    UInt rest;      /* list: lower set, or 0. pair: first set */
    UInt second;    /* pair: second set */
    UInt lowest;    /* the lowest leaf of the set */
} Node;

extern Node *nodes; /* nodes[id - NODE_BASE] */
extern UInt node_count;
extern UInt coarse_shift; /* 0: exact. 63: everything read so far */

void labels_start(void);

/* Takes `count` new leaves; returns the first. When ids run out, returns 0 and coarsens. */
UInt new_leaves(UInt count);
UInt leaf_count(void);

/* The interned set of the leaves [low, high]. */
UInt range_set(UInt low, UInt high);

UInt merge_sets(UInt a, UInt b);

/* A direct-mapped memory of the last unions. */
typedef struct {
    UInt a, b, result;
} Union;
#define UNION_MEMORY 32768
extern Union union_memory[UNION_MEMORY];

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
    Union *u = &union_memory[(x * 2654435761u ^ y * 2246822519u) >> 17];
    if (u->a != x || u->b != y) {
        UInt result = merge_sets(x, y);
        *u = (Union){x, y, result};
    }
    return u->result | COMPUTED;
}

/* The union of labels, for a value that was computed from them. */
Label unite_run(const Label *labels, UInt count);

#endif
