/* Implicit flows (--implicit): on which input bytes a byte depends by a branch or a comparison.
 *
 * Each byte of a register has a second label, its implicit one. It is a set (labels.h), and is
 * never deferred. The same label programs are executed for both kinds.
 * - OP_DECIDE: what decided about a value becomes implicit, of both kinds.
 * - OP_BRANCH: what decided about a branch becomes implicit of all that is written in the branch's
 *   window (windows.h).
 * - OP_OF_POINTERS: the difference or comparison of two pointers has no implicit label. Else each
 *   place in a buffer would depend on all that was searched before.
 * Any other operation gives its result the implicit labels of its operands.
 *
 * Invariant: explicit labels are the same as without --implicit. */
#ifndef IMPLICIT_H
#define IMPLICIT_H

#include "execute.h"
#include "variants.h"
#include "windows.h"

typedef struct Implicit {
    Label slots[SLOTS]; /* [0, REGISTERS) are the registers */
    Label fp[8];        /* one for each x87 register */
    ULong labelled;     /* groups of registers that may have implicit labels */
    UInt decided;       /* what decided about the branches of the block that was executed last */
    UInt exit;          /* the number of the last of them */
    UInt depth;         /* open windows, the outermost first */
    Window windows[MOST_WINDOWS];
    struct SavedImplicit *interrupted; /* by signal handlers, the last first */
} Implicit;

/* The union of two sets. */
static inline UInt implicit_union(UInt a, UInt b)
{
    return a == 0 ? b : b == 0 ? a : unite_sets(a, b);
}

/* The set that decides about all that the thread writes now; 0: none. */
UInt deciding(const Thread *thread);

static inline ULong implicit_groups(const Thread *thread)
{
    return thread->implicit ? thread->implicit->labelled : 0;
}

/* Whether a block that ran meets a label of either kind, or ran in a window. */
Bool implicit_needs(const Thread *thread, const Words *words, const Exit *exit);

/* The operations of a program, after those of explicit labels, and before registers are put. */
void run_implicit(Thread *thread, const Words *words, const Variant *variant);
void put_implicit(Thread *thread, const Variant *variant);

void reset_implicit(Thread *thread);
void clear_implicit_registers(Thread *thread, UInt offset, UInt size);
void save_implicit(Thread *thread);
void restore_implicit(Thread *thread);

/* Calls a function with all implicit labels of a thread. */
void each_implicit(const Thread *thread, void (*mark)(const Label *labels, UInt count));

#endif
