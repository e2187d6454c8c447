/* compile.c, for instrument.c alone. */
#ifndef COMPILE_BLOCK_H
#define COMPILE_BLOCK_H

#include "compile.h"

/* Compiles the statements from `first` on; the result is in `c`. */
void compile_block(IRSB *block, Int first);

#endif
