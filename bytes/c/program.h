/* The label program of a block of code: how labels flow while the block runs once.
 *
 * A block's code is translated once. It stores the address of each access and the exit that it
 * takes, and finds out whether a register or an access has a label. If so, the next block begins
 * with a call of `execute_block` (execute.c), which interprets the program.
 *
 * - Slots are labels by number. [0, REGISTERS) are the thread's registers, byte for byte.
 *   EMPTY_SLOT and the next 63 never have a label. FIRST_TEMPORARY begins the program's own.
 * - Words are stored by the code of the block: addresses of accesses, and values that decide.
 * - Puts are the writes to registers at an exit. The fields of each are: register offset, n, group,
 *   list of n.
 *
 * Invariant: an operation reads registers as they were when the block began; the exit's writes to
 * registers come last. So an operation that was executed needs no undoing at an earlier exit. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "engine.h"

#define REGISTERS sizeof(VexGuestAMD64State)
#define EMPTY_SLOT ((UShort)REGISTERS)
#define FIRST_TEMPORARY ((UShort)(REGISTERS + 64))
#define SLOTS 24000

typedef UShort Slot;

/* Operations. `list` is: 0, slot (consecutive slots) or 1, slot, slot … */
enum {
    OP_LOAD,           /* n, address word, first slot, slot of the address' label */
    OP_STORE,          /* n, address word, list of n */
    OP_UNITE,          /* slot, n, slots */
    OP_UNITE_RUN,      /* slot, n, first slot */
    OP_UNITE_REGISTER, /* slot, n, first slot, group: consecutive bytes of a register */
    OP_EACH,           /* n, first slot, list of n, list of n: bytewise union */
    OP_SELECT,         /* n, first slot, value word, list of n (if not 0), list of n */
    OP_PERMUTE,        /* n, first slot, value word, list of n (table), list of n (index) */
    OP_FP_READ,        /* first slot, value word, bias */
    OP_FP_WRITE,       /* value word, bias, list of 8 */
    OP_FP_ALL_READ,    /* slot */
    OP_FP_ALL_WRITE,   /* slot */
    OP_FILL,           /* n, address word, slot: stores one label n times (n up to 65535) */
    OP_GATHER,         /* n, address word, slot: the union of n bytes of memory */
    OP_DECIDE,         /* n, first slot, slot that decides, list of n: copies (implicit.h) */
    OP_BRANCH,         /* slot that decides, number of the exit */
    OP_OF_POINTERS,    /* n, first slot, value word and the next one, list of n: copies */
};

#define MAX_ADDRESSES 110
#define MAX_VALUES 110

typedef struct {
    UInt code_end, puts, puts_end;
    UShort addresses;         /* how many were stored when this exit is taken */
    Bool overlapping;         /* the writes read registers that they also write */
    struct Variant *variants; /* variants.h */
    UInt made;                /* how many were made */
    struct Program *program;
    Addr target; /* of a conditional jump */
} Exit;

typedef struct Program {
    ULong groups; /* of registers that the program reads or writes */
    UShort *code;
    Exit *exits;
    UShort exit_count;
    UInt slots;                 /* all are below */
    UChar spans[MAX_ADDRESSES]; /* bytes of each access, less one */
    /* For windows.h: the last instruction, and where the block continues without its branch. */
    Addr branch, next;
    UInt instructions;
    Int calls; /* 1: the block ends with a call, -1: it ends with a return */
} Program;

/* The words, in the two shadow areas that Valgrind keeps behind each thread's registers. */
typedef struct {
    ULong involved; /* not 0: the block that ran last met a label, and is not executed yet */
    ULong labelled; /* groups of registers that may have labels */
    Exit *exit;     /* that the block took */
    ULong window;   /* not 0: each block is executed (windows.h) */
    ULong addresses[MAX_ADDRESSES];
    ULong values[MAX_VALUES];
    UChar narrowed[16]; /* 1: an instruction wrote all of this ymm register (unknown.h) */
} Words;

/* Registers in groups, one bit each: a set bit says that a byte of the group may have a label. */
#define FP_GROUP 36
#define ALWAYS_GROUP 63 /* of programs that are always executed */
static inline Int group_of(UInt offset)
{
    if (offset >= 16 && offset < 144)
        return (offset - 16) / 8;
    if (offset >= 152 && offset < 176)
        return 16 + (offset - 152) / 8;
    UInt vectors = offsetof(VexGuestAMD64State, guest_YMM0);
    if (offset >= vectors && offset < vectors + 17 * 32)
        return 19 + (offset - vectors) / 32;
    return -1; /* never has a label */
}

static inline UInt group_start(Int group)
{
    if (group < 16)
        return 16 + 8 * group;
    if (group < 19)
        return 152 + 8 * (group - 16);
    return offsetof(VexGuestAMD64State, guest_YMM0) + 32 * (group - 19);
}

static inline UInt group_size(Int group)
{
    return group < 19 ? 8 : 32;
}

/* compile.c: instruments a block. */
IRSB *instrument_block(VgCallbackClosure *, IRSB *, const VexGuestLayout *, const VexGuestExtents *,
                       const VexArchInfo *, IRType, IRType);

#endif
