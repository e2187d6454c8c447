/* Instructions that Valgrind does not know, such as those of AVX-512. The processor executes them,
 * one at a time. Their operands say how labels flow.
 *
 * A block ends before such an instruction (`Ijk_NoDecode`). It then calls `run_unknown`, and goes
 * on behind the instruction. If the instruction cannot be described, the program gets SIGILL, as
 * from Valgrind.
 *
 * Invariants:
 * - The registers, the memory and the flags of the program are as the processor leaves them.
 * - A mask has no label: it decides. Where the operands are not known well enough, all that the
 *   program writes from then on is `possible`. */
#ifndef UNKNOWN_H
#define UNKNOWN_H

#include "wide.h"

#include "pub_tool_hashtable.h"

/* The registers that step.S loads and stores. */
typedef struct {
    UChar vectors[VECTORS][VECTOR_BYTES];
    ULong masks[8];
    ULong general[16]; /* in the order of their numbers; the stack pointer (4) is never loaded */
    ULong flags;
    void *stub;
    UInt control, own_control; /* MXCSR: of the program, of Valgrind */
} StepState;

/* How labels flow in an instruction. `reg`, `vvvv` and `rm` are its operands. */
typedef enum {
    POSSIBLE,        /* not known well enough */
    DECIDES,         /* a mask, a comparison: what it writes has no label */
    MOVE_TO_REG,     /* each element of rm, or of memory, to reg */
    MOVE_TO_RM,      /* each element of reg to rm, or to memory */
    LANES,           /* reg, element by element: of vvvv, rm and reg */
    BLEND,           /* reg, element by element: of rm, or of vvvv, as the mask says */
    LANES_TO_VVVV,   /* vvvv, element by element: of rm */
    CONVERT_TO_REG,  /* reg, element by element: of rm, or memory, with elements of another size */
    CONVERT_TO_RM,   /* rm, or memory, element by element: of reg, likewise */
    REPEAT_TO_REG,   /* each element of reg: of the first of rm, or of memory */
    MIX_TO_REG,      /* all of reg: of vvvv, rm and reg */
    MIX_TO_RM,       /* all of rm: of reg and rm */
    MIX_TO_VVVV,     /* all of vvvv: of rm */
    FROM_GENERAL_RM, /* all of reg: of vvvv, reg, and the general register rm */
    TO_GENERAL_RM,   /* all of the general register rm: of reg */
    TO_GENERAL_REG,  /* all of the general register reg: of rm */
} Flow;

/* An instruction, as its bytes say it. */
typedef struct {
    struct _VgHashNode *next;
    UWord address; /* the key */
    UInt length;
    UChar code[15];
    UChar *stub; /* the instruction without the parts of its address, and a return */
    enum { LEGACY, VEX, EVEX } encoding;
    UChar map, opcode, modrm, prefix; /* prefix: 0, 0x66, 0xf2, 0xf3 */
    UChar reg, vvvv, rm, mask;        /* numbers of operands; rm without memory only */
    UChar bytes;                      /* of a vector: 16, 32 or 64 */
    Flow flow;
    Bool wide_elements, zeroes, broadcasts, has_memory;
    /* The address: the register `scratch` of the stub has all of it but the displacement. */
    UChar scratch;
    Char base, index; /* -1: none */
    UChar scale, segment;
    Bool by_vector, of_next; /* a vector of addresses; relative to the next instruction */
    UChar displaced;         /* bytes of the displacement */
    Int displacement;
} Unknown;

/* Describes the instruction at an address. NULL if it can't be executed here. */
const Unknown *describe_unknown(Addr address);

/* Executes an instruction. Called by the code of the block that ends before it. Returns the address
   of the next one, or its own if the program has replaced the instruction. */
VG_REGPARM(2) Addr run_unknown(UChar *guest, const Unknown *unknown);

/* Of one element, by its prefix. */
static inline Bool is_scalar(const Unknown *u)
{
    return u->prefix == 0xf2 || u->prefix == 0xf3;
}

/* unknown_flow.c: how labels flow in an instruction whose operands are known. */
Flow flow_of(const Unknown *unknown);

/* The bytes of an element of LANES. 0: it has none. */
UInt lane_of(const Unknown *unknown);

/* The bytes of an element of the narrower and of the wider operand of a conversion. */
void elements_of_conversion(const Unknown *unknown, UInt *narrow, UInt *wide);

/* The bytes that REPEAT_TO_REG repeats. 0: it is no such instruction. */
UInt repeated_bytes(const Unknown *unknown);

/* Whether the result depends on what `reg` was before, and on vvvv: an operand that an instruction
   does not have looks like register 0. */
Bool reads_destination(const Unknown *unknown);
Bool has_second_operand(const Unknown *unknown);

/* The result is the same for all operands: x - x, x ^ x, or a constant table. */
Bool is_constant(const Unknown *unknown);

/* unknown_labels.c: moves the labels as an instruction that was executed moved the bytes.
   `memory` is the address of its operand without the displacement, if it has one. */
void label_unknown(Thread *thread, const Unknown *unknown, Addr memory);

/* step.S: executes `stub` with these registers. */
void step_once(StepState *state);

#endif
