/* Exact time (`--time exact`), for the other files of deep recording. */
#ifndef EXACT_H
#define EXACT_H

#include "stream.h"

#pragma GCC visibility push(hidden)

/* True while the recorder takes the place of the vDSO's functions. */
extern bool bs_exact_time;
/* The program begins. `auxiliary` as of bs_deep_begin. */
void bs_exact_begin(const u64 *auxiliary);
/* Records the time `taken` (seconds, ns) by a system call of the program's own. */
void bs_exact_took(u64 time, int clock, const s64 *taken);
/* Records on which processor the thread runs. */
s64 bs_exact_processor(u32 *processor, u32 *node);
/* Records a fact once in each process. `generation`: of the process that has recorded it. */
void bs_exact_tell_once(u32 *generation, u32 fact);
/* instructions.c: the program begins. Its instructions that are no calls are redirected. */
void bs_instructions_begin(void);
/* Records that some of them are not, if so. */
void bs_instructions_tell(void);

#pragma GCC visibility pop

#endif
