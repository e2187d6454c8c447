/* The registers that Valgrind does not have, with their labels: zmm16 to zmm31, the upper halves of
 * zmm0 to zmm15, and k0 to k7.
 *
 * Invariants:
 * - A known instruction that writes all of a ymm register empties the upper half of its zmm. The
 *   processor does the same (`narrowed` in program.h, which `empty_upper_halves` applies).
 * - XSAVE does not store these registers, because `cpuid` hides them. They are kept here under the
 *   address until XRSTOR loads it. glibc does so around each first call of a library's function. */
#ifndef WIDE_H
#define WIDE_H

#include "execute.h"

#define VECTORS 32
#define VECTOR_BYTES 64
#define YMM_BYTES 32
#define YMM_COUNT 16 /* of the registers that Valgrind has */

typedef struct Wide {
    UChar vectors[VECTORS][VECTOR_BYTES];
    ULong masks[8];
    Label labels[VECTORS][VECTOR_BYTES]; /* not those of the bytes that Valgrind has */
} Wide;

/* True if the processor has these registers, and the kernel saves them. */
Bool has_wide_registers(void);

/* Those of a thread. The first call makes them. */
Wide *wide_of(Thread *thread);
Wide *copy_of_wide(const Wide *wide);

/* Empties the upper halves whose lower ones a known instruction wrote. */
void empty_upper_halves(Wide *wide, Words *words);

/* For the code of a block: XSAVE stores at an address, or XRSTOR loads from it. */
VG_REGPARM(2) void keep_wide(UChar *guest, Addr address);
VG_REGPARM(2) void put_wide_back(UChar *guest, Addr address);

/* A thread begins without these registers. */
void forget_wide(Thread *thread);

/* Calls `visit` with all labels of a thread's registers here. */
void each_wide(const Thread *thread, const Wide *wide, void (*visit)(const Label *, UInt));

#endif
