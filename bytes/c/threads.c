/* The labels of each thread's registers: when it begins, when a signal interrupts it, and when
 * unions become sets. See execute.h. */
#include "collect.h"
#include "implicit.h"
#include "wide.h"

Thread *running;
static Thread **threads;

struct SavedRegisters {
    Label slots[REGISTERS];
    Label fp[64];
    ULong labelled;
    Wide *wide;
    struct SavedRegisters *before;
};

void execute_start(void)
{
    threads = VG_(calloc)("execute.threads", VG_N_THREADS, sizeof *threads);
}

Thread *thread_of(ThreadId tid)
{
    if (!threads[tid])
        reset_thread(threads[tid] = VG_(calloc)("execute.thread", 1, sizeof(Thread)));
    return threads[tid];
}

void begin_thread(ThreadId tid)
{
    Thread *t = thread_of(tid);
    if (t->words)
        return;
    /* The first block calls, so that the words are known. Those of the parent were copied. */
    Words none = {.involved = 1};
    UInt size = REGISTERS > sizeof none ? sizeof none : REGISTERS;
    VG_(set_shadow_regs_area)(tid, 1, 0, size, (const UChar *)&none);
}

void set_register_labels(Thread *t, UInt offset, UInt size, Label label)
{
    for (UInt i = offset; i < offset + size && i < REGISTERS; i++) {
        Int group = group_of(i);
        if (group < 0)
            continue;
        t->slots[i] = label;
        if (label)
            t->labelled |= 1ULL << group;
    }
    clear_implicit_registers(t, offset, size);
    if (t->words)
        t->words->labelled = t->labelled | implicit_groups(t);
}

static void resolve_all(Label *labels, UInt count)
{
    for (UInt i = 0; i < count; i++)
        labels[i] = resolve(labels[i]);
}

void resolve_registers(Thread *t)
{
    if (t->labelled) {
        resolve_all(t->slots, REGISTERS);
        resolve_all(t->fp, 64);
    }
    forget_deferred();
    collect_sets();
}

void save_registers(Thread *t)
{
    resolve_registers(t);
    struct SavedRegisters *saved = VG_(malloc)("execute.saved", sizeof *saved);
    VG_(memcpy)(saved->slots, t->slots, sizeof saved->slots);
    VG_(memcpy)(saved->fp, t->fp, sizeof saved->fp);
    saved->labelled = t->labelled;
    saved->wide = copy_of_wide(t->wide);
    saved->before = t->interrupted;
    t->interrupted = saved;
    save_implicit(t);
}

void restore_registers(Thread *t)
{
    struct SavedRegisters *saved = t->interrupted;
    if (!saved)
        return;
    VG_(memcpy)(t->slots, saved->slots, sizeof saved->slots);
    VG_(memcpy)(t->fp, saved->fp, sizeof saved->fp);
    t->labelled = saved->labelled;
    restore_implicit(t);
    VG_(free)(t->wide);
    t->wide = saved->wide;
    if (t->words)
        t->words->labelled = t->labelled | implicit_groups(t);
    t->interrupted = saved->before;
    VG_(free)(saved);
}

void reset_thread(Thread *t)
{
    VG_(memset)(t->slots, 0, REGISTERS * sizeof(Label));
    VG_(memset)(t->fp, 0, sizeof t->fp);
    t->labelled = 0;
    t->words = NULL;
    forget_wide(t);
    while (t->interrupted) {
        struct SavedRegisters *saved = t->interrupted;
        t->interrupted = saved->before;
        VG_(free)(saved->wide);
        VG_(free)(saved);
    }
    reset_implicit(t);
}

void each_register(ThreadId tid, void (*visit)(const Label *, UInt))
{
    const Thread *t = threads[tid];
    if (!t)
        return;
    visit(t->slots, REGISTERS);
    visit(t->fp, 64);
    each_wide(t, t->wide, visit);
    for (const struct SavedRegisters *saved = t->interrupted; saved; saved = saved->before) {
        visit(saved->slots, REGISTERS);
        visit(saved->fp, 64);
        if (saved->wide)
            each_wide(t, saved->wide, visit);
    }
    each_implicit(t, visit);
}
