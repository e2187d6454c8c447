/* The functions that are active in the program: those that a write belongs to.
 *
 * In: the stack of the running thread, and Valgrind's tables of the program's files. Out: a frame
 * for each function of the program or of a library, without libc, the loader and the recorder. */
#ifndef CALLERS_H
#define CALLERS_H

#include "engine.h"

enum { CALLERS_MAX = 24 };

/* A place in a function: of a call, or of the write itself. */
typedef struct {
    Addr ip;
    UInt epoch; /* Valgrind's, of the files that were mapped */
    UInt id;    /* in the output of this image, 0: not yet */
    UInt line;  /* 0: the program has no debugging information for it */
    HChar *name, *file;
} Caller;

/* The frames of the running thread, the innermost first. */
UInt callers(Caller *found[CALLERS_MAX]);

/* The recorder in the program says to which addresses redirected calls of functions return. */
void callers_returns(Addr first);

/* The output of another image begins. */
void forget_callers(void);

#endif
