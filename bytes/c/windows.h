/* Windows: how long a branch decides about what is written.
 *
 * A window opens at a branch on labelled bytes. It ends where both ways of the branch meet again,
 * as far as that is known, or else
 * - when the function returns that has the branch,
 * - when that function comes to the same branch again,
 * - after `settings.window` instructions.
 *
 * Both ways meet at a block that followed the other way before, in the same call of the function.
 * So each branch keeps blocks behind each way. If both ways are known, a block that followed
 * neither is taken to be behind a loop around both.
 *
 * Windows nest: all open ones decide about what is written. At its end, a window is undone for
 * registers that a function must preserve, if they have the value that they had at its beginning.
 * They were only saved and restored. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "program.h"

#define MOST_WINDOWS 32
#define PRESERVED 6

typedef struct {
    UInt decided, all;     /* what decided about the branch; with that of the windows around it */
    struct Branch *branch; /* the static one */
    UInt way;              /* 1: the exit of the branch was taken */
    Addr other;            /* where the other way begins, or 0 */
    Int calls;             /* that were made since, less returns */
    Int left;              /* instructions */
    ULong values[PRESERVED];
    Label labels[PRESERVED][8];
} Window;

struct Thread;

/* Between two blocks: windows end, and the one of the exit's branch opens. `exit`: of the block
   that ran, or NULL. */
void step_windows(struct Thread *thread, Words *words, const Exit *exit);

#endif
