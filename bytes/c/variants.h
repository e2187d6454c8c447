/* Label programs for what a block meets: which of its registers and accesses have labels.
 *
 * In: a program, the groups of registers that may have labels, and a bit for each access whose
 * memory has one. Out: the same program without the operations that would unite, move or clear
 * nothing. Blocks meet the same few cases again and again, so that each exit keeps some of them.
 *
 * Invariant: a variant has the same effect as the program in the case that it is made for. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "program.h"

typedef struct Variant {
    ULong groups, accesses; /* the case */
    const UShort *code, *code_end, *puts_end;
    Bool overlapping;
} Variant;

/* Never NULL; valid until the next call. */
const Variant *variant_of(Exit *exit, ULong groups, ULong accesses);

/* The variant in which everything can have a label. */
const Variant *whole_program(Exit *exit);

#endif
