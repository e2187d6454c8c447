/* The labels of threads, and the interpreter of label programs. */
#ifndef EXECUTE_H
#define EXECUTE_H

#include "deferred.h"
#include "program.h"
#include "shadow.h"

typedef struct Thread {
    Label slots[SLOTS];                 /* [0, REGISTERS) are the registers */
    Label fp[64];                       /* the x87 stack: 8 registers of 8 bytes */
    ULong labelled;                     /* groups of registers that may have labels */
    Words *words;                       /* NULL until the thread's second block */
    struct SavedRegisters *interrupted; /* by signal handlers, the last first */
    struct Implicit *implicit;          /* NULL without --implicit (implicit.h) */
    struct Wide *wide;                  /* NULL before an instruction needs them (wide.h) */
    struct KeptWide *kept;              /* by XSAVE, the last first (wide.h) */
} Thread;

/* The thread that runs. */
extern Thread *running;

void execute_start(void);
Thread *thread_of(ThreadId tid);

/* Called by the code of a block if the block before met a label. */
VG_REGPARM(1) void execute_block(UChar *guest);

/* The same with --implicit. */
VG_REGPARM(1) void execute_block_implicit(UChar *guest);

/* Whether eight bytes look like an address of the program. */
Bool is_pointer(ULong value);

/* Before the first block of a thread; later, it does nothing. */
void begin_thread(ThreadId tid);

/* Executes what is pending of a thread, so that its labels are those of its registers and memory
   now. Before a system call, a signal, or another thread. */
void catch_up(Thread *thread);

/* Labels of a part of the registers. */
void set_register_labels(Thread *thread, UInt offset, UInt size, Label label);

/* No register's label is deferred any more. Before another thread runs. */
void resolve_registers(Thread *thread);

void save_registers(Thread *thread);
void restore_registers(Thread *thread);
void reset_thread(Thread *thread);

/* Calls `visit` with the labels of a thread's registers, of both kinds, and of those that signal
   handlers interrupted. */
void each_register(ThreadId tid, void (*visit)(const Label *labels, UInt count));

#endif
