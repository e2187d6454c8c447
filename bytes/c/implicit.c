/* See implicit.h. */
#include "implicit.h"

#include "gathering.h"
#include "implicit_labels.h"

#define STACK_GROUP ((offsetof(VexGuestAMD64State, guest_RSP) - 16) / 8)

struct SavedImplicit {
    Label slots[REGISTERS];
    Label fp[8];
    ULong labelled;
    struct SavedImplicit *before;
};

UInt deciding(const Thread *t)
{
    const Implicit *i = t ? t->implicit : NULL;
    return i && i->depth ? i->windows[i->depth - 1].all : 0;
}

static UInt union_of(const Label *labels, UInt n)
{
    UInt all = 0;
    for (UInt i = 0; i < n; i++)
        all = implicit_union(all, labels[i]);
    return all;
}

/* A slot decides with its labels of both kinds. */
static UInt decision_of(const Thread *t, Slot slot)
{
    return implicit_union(t->implicit->slots[slot], SET_OF(resolve(t->slots[slot])));
}

/* As for explicit labels (execute.c): copies of input bytes and pointers have nothing of the
   index. */
static void add_address(Thread *t, UInt first, UInt n, Addr a, UInt address)
{
    if (settings.address == ADDRESS_TABLES && n == 8 && is_pointer(*(ULong *)a))
        return;
    for (UInt i = first; i < first + n; i++) {
        Label own = t->slots[i];
        if (settings.address == ADDRESS_ALL || own == 0 || (own & COMPUTED))
            t->implicit->slots[i] = implicit_union(t->implicit->slots[i], address);
    }
}

static const UShort *load(Thread *t, const Words *words, const UShort *pc)
{
    UInt n = pc[0], address = t->implicit->slots[pc[3]];
    Addr a = words->addresses[pc[1]];
    Label *to = &t->implicit->slots[pc[2]];
    Bool any = a && labelled(a, n - 1);
    for (UInt i = 0; i < n; i++)
        to[i] = any ? implicit_label(a + i) : 0;
    if (address && a)
        add_address(t, pc[2], n, a, address);
    return pc + 4;
}

static const UShort *store(Thread *t, const Words *words, const UShort *pc, UInt all)
{
    UInt n = pc[0];
    Addr a = words->addresses[pc[1]];
    Label labels[32];
    Label any = gather(labels, t->implicit->slots, pc + 2, n);
    if (a && (any || all || labelled(a, n - 1))) {
        for (UInt i = 0; i < n; i++)
            set_implicit_label(a + i, implicit_union(labels[i], all));
    }
    return after_list(pc + 2, n);
}

static const UShort *two_lists(Thread *t, const Words *words, UShort op, const UShort *pc)
{
    Label *slots = t->implicit->slots, *to = &slots[pc[1]], first[32], second[32];
    UInt n = pc[0];
    const UShort *a = pc + (op == OP_EACH ? 2 : 3), *b = after_list(a, n);
    const UChar *value = op == OP_EACH ? NULL : (const UChar *)&words->values[pc[2]];
    gather(first, slots, a, n);
    gather(second, slots, b, n);
    for (UInt i = 0; i < n; i++) {
        if (op == OP_EACH)
            to[i] = implicit_union(first[i], second[i]);
        else if (op == OP_SELECT)
            to[i] = *value ? first[i] : second[i];
        else
            to[i] = implicit_union(first[value[i] & (n - 1)], second[i]);
    }
    return after_list(b, n);
}

static const UShort *memory_run(Thread *t, const Words *words, UShort op, const UShort *pc,
                                UInt all)
{
    Addr a = words->addresses[pc[1]];
    Label *slot = &t->implicit->slots[pc[2]], label = 0;
    for (UInt i = 0; a && i < pc[0]; i++) {
        if (op == OP_FILL)
            set_implicit_label(a + i, implicit_union(*slot, all));
        else
            label = implicit_union(label, implicit_label(a + i));
    }
    if (op == OP_GATHER)
        *slot = label;
    return pc + 3;
}

static const UShort *x87(Thread *t, const Words *words, UShort op, const UShort *pc, UInt all)
{
    Implicit *m = t->implicit;
    Label labels[8];
    if (op == OP_FP_READ) {
        Label label = m->fp[((UInt)words->values[pc[1]] + pc[2]) & 7];
        for (UInt i = 0; i < 8; i++)
            m->slots[pc[0] + i] = label;
        return pc + 3;
    }
    if (op == OP_FP_WRITE) {
        gather(labels, m->slots, pc + 2, 8);
        m->fp[((UInt)words->values[pc[0]] + pc[1]) & 7] = implicit_union(union_of(labels, 8), all);
    } else if (op == OP_FP_ALL_READ) {
        m->slots[pc[0]] = union_of(m->fp, 8);
    } else {
        for (UInt i = 0; i < 8; i++)
            m->fp[i] = implicit_union(m->slots[pc[0]], all);
    }
    if (union_of(m->fp, 8))
        m->labelled |= 1ULL << FP_GROUP;
    return op == OP_FP_WRITE ? after_list(pc + 2, 8) : pc + 1;
}

static const UShort *unite_all(Thread *t, UShort op, const UShort *pc)
{
    Label *slots = t->implicit->slots, all = 0;
    UInt n = pc[1];
    if (op != OP_UNITE) {
        slots[pc[0]] = union_of(&slots[pc[2]], n);
        return pc + (op == OP_UNITE_RUN ? 3 : 4);
    }
    for (UInt i = 0; i < n; i++)
        all = implicit_union(all, slots[pc[2 + i]]);
    slots[pc[0]] = all;
    return pc + 2 + n;
}

static const UShort *decide(Thread *t, const UShort *pc)
{
    Label *to = &t->implicit->slots[pc[1]];
    UInt decided = decision_of(t, pc[2]);
    gather(to, t->implicit->slots, pc + 3, pc[0]);
    for (UInt i = 0; decided && i < pc[0]; i++)
        to[i] = implicit_union(to[i], decided);
    return after_list(pc + 3, pc[0]);
}

static const UShort *of_pointers(Thread *t, const Words *words, const UShort *pc)
{
    Label *to = &t->implicit->slots[pc[1]];
    const ULong *values = &words->values[pc[2]];
    if (is_pointer(values[0]) && is_pointer(values[1]))
        clear_run(to, pc[0]);
    else
        gather(to, t->implicit->slots, pc + 3, pc[0]);
    return after_list(pc + 3, pc[0]);
}

static const UShort *branch(Thread *t, const UShort *pc)
{
    UInt decided = decision_of(t, pc[0]);
    if (decided) {
        t->implicit->decided = implicit_union(t->implicit->decided, decided);
        t->implicit->exit = pc[1];
    }
    return pc + 2;
}

Bool implicit_needs(const Thread *t, const Words *words, const Exit *exit)
{
    const Program *program = exit->program;
    if (words->window || (t->labelled | t->implicit->labelled) & program->groups ||
        program->groups >> ALWAYS_GROUP & 1)
        return True;
    for (UInt i = 0; i < exit->addresses; i++) {
        if (labelled(words->addresses[i], program->spans[i]))
            return True;
    }
    return False;
}

void run_implicit(Thread *t, const Words *words, const Variant *variant)
{
    UInt all = deciding(t);
    const UShort *pc = variant->code;
    while (pc < variant->code_end) {
        UShort op = *pc++;
        switch (op) {
        case OP_LOAD: pc = load(t, words, pc); break;
        case OP_STORE: pc = store(t, words, pc, all); break;
        case OP_UNITE:
        case OP_UNITE_RUN:
        case OP_UNITE_REGISTER: pc = unite_all(t, op, pc); break;
        case OP_EACH:
        case OP_SELECT:
        case OP_PERMUTE: pc = two_lists(t, words, op, pc); break;
        case OP_FILL:
        case OP_GATHER: pc = memory_run(t, words, op, pc, all); break;
        case OP_DECIDE: pc = decide(t, pc); break;
        case OP_BRANCH: pc = branch(t, pc); break;
        case OP_OF_POINTERS: pc = of_pointers(t, words, pc); break;
        default: pc = x87(t, words, op, pc, all); break;
        }
    }
}

/* The stack pointer is no value of the program, and flags have what was compared. */
static Bool is_decided(UInt group)
{
    return group != STACK_GROUP && (group < 16 || group >= 19);
}

void put_implicit(Thread *t, const Variant *variant)
{
    Implicit *m = t->implicit;
    Label copies[REGISTERS];
    UInt copied = 0, around = deciding(t);
    for (const UShort *at = variant->code_end; at < variant->puts_end;) {
        gather(&copies[copied], m->slots, at + 3, at[1]);
        copied += at[1];
        at = after_list(at + 3, at[1]);
    }
    copied = 0;
    for (const UShort *at = variant->code_end; at < variant->puts_end;) {
        UInt offset = at[0], n = at[1], group = at[2];
        UInt all = is_decided(group) ? around : 0;
        for (UInt i = 0; i < n; i++)
            m->slots[offset + i] = implicit_union(copies[copied + i], all);
        copied += n;
        at = after_list(at + 3, n);
        Label any = 0;
        for (UInt i = 0; i < group_size(group); i++)
            any |= m->slots[group_start(group) + i];
        m->labelled = (m->labelled & ~(1ULL << group)) | (ULong)(any != 0) << group;
    }
}

void reset_implicit(Thread *t)
{
    Implicit *m = t->implicit;
    if (!settings.implicit)
        return;
    if (!m)
        t->implicit = m = VG_(calloc)("implicit", 1, sizeof *m);
    VG_(memset)(m->slots, 0, REGISTERS * sizeof(Label));
    VG_(memset)(m->fp, 0, sizeof m->fp);
    m->labelled = m->depth = m->decided = 0;
    while (m->interrupted) {
        struct SavedImplicit *saved = m->interrupted;
        m->interrupted = saved->before;
        VG_(free)(saved);
    }
}

void clear_implicit_registers(Thread *t, UInt offset, UInt size)
{
    for (UInt i = offset; t->implicit && i < offset + size && i < REGISTERS; i++)
        t->implicit->slots[i] = 0;
}

/* A handler is no part of what a branch decides: the windows end. */
void save_implicit(Thread *t)
{
    Implicit *m = t->implicit;
    if (!m)
        return;
    struct SavedImplicit *saved = VG_(malloc)("implicit.saved", sizeof *saved);
    VG_(memcpy)(saved->slots, m->slots, sizeof saved->slots);
    VG_(memcpy)(saved->fp, m->fp, sizeof saved->fp);
    saved->labelled = m->labelled;
    saved->before = m->interrupted;
    m->interrupted = saved;
    m->depth = 0;
    if (t->words)
        t->words->window = 0;
}

void restore_implicit(Thread *t)
{
    Implicit *m = t->implicit;
    struct SavedImplicit *saved = m ? m->interrupted : NULL;
    if (!saved)
        return;
    VG_(memcpy)(m->slots, saved->slots, sizeof saved->slots);
    VG_(memcpy)(m->fp, saved->fp, sizeof saved->fp);
    m->labelled = saved->labelled;
    m->interrupted = saved->before;
    VG_(free)(saved);
}

void each_implicit(const Thread *t, void (*mark)(const Label *labels, UInt count))
{
    const Implicit *m = t->implicit;
    if (!m)
        return;
    mark(m->slots, REGISTERS);
    mark(m->fp, 8);
    mark(&m->decided, 1);
    for (UInt i = 0; i < m->depth; i++) {
        mark(&m->windows[i].decided, 2);
        mark(&m->windows[i].labels[0][0], PRESERVED * 8);
    }
    for (const struct SavedImplicit *saved = m->interrupted; saved; saved = saved->before) {
        mark(saved->slots, REGISTERS);
        mark(saved->fp, 8);
    }
}
