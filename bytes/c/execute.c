/* See execute.h and program.h. */
#include "execute.h"

#include "variants.h"

Thread *running;
static Thread **threads;

struct SavedRegisters {
    Label slots[REGISTERS];
    Label fp[64];
    ULong labelled;
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

typedef struct {
    const UShort *at; /* after the list */
    const UShort *items;
    Bool run;
} List;

static inline List list_at(const UShort *at, UInt n)
{
    Bool run = at[0] == 0;
    return (List){at + (run ? 2 : 1 + n), at + 1, run};
}

static inline Label item(const Label *slots, List list, UInt i)
{
    return slots[list.run ? list.items[0] + i : list.items[i]];
}

/* Two labels at once. */
typedef ULong TwoLabels __attribute__((aligned(4), may_alias));

static inline Bool any_of_eight(const Label *labels)
{
    const TwoLabels *two = (const TwoLabels *)labels;
    return (two[0] | two[1] | two[2] | two[3]) != 0;
}

static inline Bool copy_eight(Label *to, const Label *from)
{
    TwoLabels *a = (TwoLabels *)to;
    const TwoLabels *b = (const TwoLabels *)from;
    ULong p = b[0], q = b[1], r = b[2], s = b[3];
    a[0] = p;
    a[1] = q;
    a[2] = r;
    a[3] = s;
    return (p | q | r | s) != 0;
}

static inline void clear_run(Label *to, UInt n)
{
    if (n & 1)
        to[--n] = 0;
    for (; n; n -= 2)
        *(TwoLabels *)&to[n - 2] = 0;
}

static inline void store_label(Addr a, Label label)
{
    set_label(a, label);
}

/* The labels that a list of registers' bytes gets; whether one of them is not 0. */
static inline Label gather(Label *to, const Label *slots, List list, UInt n)
{
    Label any = 0;
    if (list.run) {
        const Label *from = &slots[list.items[0]];
        UInt i = 0;
        for (; i + 8 <= n; i += 8)
            any |= copy_eight(to + i, from + i);
        for (; i < n; i++)
            any |= to[i] = from[i];
        return any;
    }
    for (UInt i = 0; i < n; i++)
        any |= to[i] = slots[list.items[i]];
    return any;
}

/* Whether the eight bytes at `a` look like an address of the program: a pointer out of a table is
   no value that was computed from the index. */
static Bool is_pointer(Addr a)
{
    ULong value = *(ULong *)a;
    return value > 0x10000 && value < (1ULL << ADDRESS_BITS) &&
           VG_(am_is_valid_for_client)(value, 1, VKI_PROT_READ);
}

static void unite_address(Label *to, UInt n, Addr a, Label address)
{
    if (settings.address == ADDRESS_TABLES && n == 8 && is_pointer(a))
        return;
    for (UInt i = 0; i < n; i++) {
        /* A copy of an input byte stays one, whichever index chose it. */
        if (settings.address == ADDRESS_ALL || to[i] == 0 || (to[i] & COMPUTED))
            to[i] = unite(to[i], address) | COMPUTED;
    }
}

static inline const UShort *do_load(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Addr a = t->words->addresses[pc[1]];
    Label *to = &t->slots[pc[2]];
    const Label *from = &shadow[a & ADDRESS_MASK];
    if (!labelled(a, n - 1))
        clear_run(to, n);
    else if (n == 8)
        copy_eight(to, from);
    else
        for (UInt i = 0; i < n; i++)
            to[i] = from[i];
    if (t->slots[pc[3]] && a)
        unite_address(to, n, a, t->slots[pc[3]]);
    return pc + 4;
}

static inline const UShort *do_store(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Addr a = t->words->addresses[pc[1]];
    List list = list_at(pc + 2, n);
    if (a == 0)
        return list.at;
    if (list.run && list.items[0] == EMPTY_SLOT && !labelled(a, n - 1))
        return list.at;
    Label labels[32];
    Label any = gather(labels, t->slots, list, n);
    if (any == 0 && !labelled(a, n - 1))
        return list.at;
    for (UInt i = 0; i < n; i++)
        store_label(a + i, labels[i]);
    return list.at;
}

static const UShort *do_permute(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Label *to = &t->slots[pc[1]];
    const UChar *index = (const UChar *)&t->words->values[pc[2]];
    List table = list_at(pc + 3, n), indices = list_at(table.at, n);
    for (UInt i = 0; i < n; i++)
        to[i] = unite(item(t->slots, table, index[i] & (n - 1)), item(t->slots, indices, i));
    return indices.at;
}

static const UShort *do_select(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Label *to = &t->slots[pc[1]];
    List yes = list_at(pc + 3, n), no = list_at(yes.at, n);
    List chosen = (UChar)t->words->values[pc[2]] ? yes : no;
    for (UInt i = 0; i < n; i++)
        to[i] = item(t->slots, chosen, i);
    return no.at;
}

static const UShort *do_each(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Label *to = &t->slots[pc[1]];
    List a = list_at(pc + 2, n), b = list_at(a.at, n);
    for (UInt i = 0; i < n; i++)
        to[i] = unite(item(t->slots, a, i), item(t->slots, b, i));
    return b.at;
}

static const UShort *do_memory_run(Thread *t, const UShort *pc, Bool fill)
{
    Addr a = t->words->addresses[pc[1]];
    Label label = fill ? t->slots[pc[2]] : 0;
    for (UInt i = 0; a && i < pc[0]; i++) {
        if (fill)
            store_label(a + i, label);
        else
            label = unite(label, shadow[(a + i) & ADDRESS_MASK]);
    }
    if (!fill)
        t->slots[pc[2]] = label;
    return pc + 3;
}

static UInt fp_register(Thread *t, UShort word, UShort bias)
{
    return ((UInt)t->words->values[word] + bias) & 7;
}

static const UShort *do_fp(Thread *t, UShort op, const UShort *pc)
{
    if (op == OP_FP_READ) {
        VG_(memcpy)(&t->slots[pc[0]], &t->fp[8 * fp_register(t, pc[1], pc[2])], 8 * sizeof(Label));
        return pc + 3;
    }
    if (op == OP_FP_ALL_READ) {
        t->slots[pc[0]] = unite_run(t->fp, 64);
        return pc + 1;
    }
    Label any = 0;
    const UShort *end = pc + 1;
    if (op == OP_FP_WRITE) {
        List list = list_at(pc + 2, 8);
        Label *to = &t->fp[8 * fp_register(t, pc[0], pc[1])];
        for (UInt i = 0; i < 8; i++)
            any |= to[i] = item(t->slots, list, i);
        end = list.at;
    } else {
        for (UInt i = 0; i < 64; i++)
            any |= t->fp[i] = t->slots[pc[0]];
    }
    if (any)
        t->labelled |= 1ULL << FP_GROUP;
    return end;
}

static inline const UShort *do_unite(Thread *t, UShort op, const UShort *pc)
{
    Label *to = &t->slots[pc[0]];
    UInt n = pc[1];
    if (op == OP_UNITE) {
        Label all = 0;
        for (UInt i = 0; i < n; i++)
            all = unite(all, t->slots[pc[2 + i]]);
        *to = all ? all | COMPUTED : 0;
        return pc + 2 + n;
    }
    if (op == OP_UNITE_RUN) {
        *to = unite_run(&t->slots[pc[2]], n);
        return pc + 3;
    }
    *to = 0;
    if (t->labelled >> pc[3] & 1 && (n != 8 || any_of_eight(&t->slots[pc[2]])))
        *to = unite_run(&t->slots[pc[2]], n);
    return pc + 4;
}

/* Registers that the block changed. A write of no label over no label is skipped by the bits of
   the groups alone. */
static inline void put_registers(Thread *t, const Variant *variant)
{
    const UShort *pc = variant->code_end, *end = variant->puts_end;
    ULong before = t->labelled;
    /* Sources are read before registers are written, if the same register is both. */
    Label copies[REGISTERS];
    UInt copied = 0;
    for (const UShort *at = pc; variant->overlapping && at < end;) {
        List list = list_at(at + 4, at[1]);
        if ((before >> at[2] | before >> at[3]) & 1) {
            gather(&copies[copied], t->slots, list, at[1]);
            copied += at[1];
        }
        at = list.at;
    }
    copied = 0;
    while (pc < end) {
        UInt offset = pc[0], n = pc[1], group = pc[2];
        List list = list_at(pc + 4, n);
        Bool idle = !((before >> group | before >> pc[3]) & 1);
        pc = list.at;
        if (idle)
            continue;
        Label *to = &t->slots[offset], any;
        if (variant->overlapping) {
            any = gather(to, copies, (List){NULL, &(UShort){copied}, True}, n);
            copied += n;
        } else {
            any = gather(to, t->slots, list, n);
        }
        if (any == 0 && n < group_size(group)) {
            const Label *whole = &t->slots[group_start(group)];
            for (UInt i = 0; i < group_size(group); i += 8)
                any |= any_of_eight(whole + i);
        }
        t->labelled = (t->labelled & ~(1ULL << group)) | (ULong)(any != 0) << group;
    }
}

static __attribute__((noinline)) void run_program(Thread *t, const Variant *variant)
{
    const UShort *pc = variant->code, *end = variant->code_end;
    while (pc < end) {
        UShort op = *pc++;
        switch (op) {
        case OP_LOAD: pc = do_load(t, pc); break;
        case OP_STORE: pc = do_store(t, pc); break;
        case OP_UNITE:
        case OP_UNITE_RUN:
        case OP_UNITE_REGISTER: pc = do_unite(t, op, pc); break;
        case OP_EACH: pc = do_each(t, pc); break;
        case OP_SELECT: pc = do_select(t, pc); break;
        case OP_PERMUTE: pc = do_permute(t, pc); break;
        case OP_FILL: pc = do_memory_run(t, pc, True); break;
        case OP_GATHER: pc = do_memory_run(t, pc, False); break;
        default: pc = do_fp(t, op, pc); break;
        }
    }
    put_registers(t, variant);
}

static inline void execute_pending(Thread *t, Words *words)
{
    Program *program = words->pending;
    if (!program || words->exit == NO_EXIT)
        return;
    Exit *exit = &program->exits[words->exit];
    ULong groups = t->labelled & program->groups, accesses = 0;
    /* Accesses beyond 64 share their bits. */
    for (UInt i = 0; i < exit->addresses; i++)
        accesses |= (ULong)(labelled(words->addresses[i], program->spans[i]) != 0) << (i & 63);
    if (UNLIKELY((groups | accesses) != 0))
        run_program(t, variant_of(program, exit, groups, accesses));
}

VG_REGPARM(2) void enter_block(UChar *guest, Program *program)
{
    Words *words = (Words *)(guest + REGISTERS);
    Thread *t = running;
    t->words = words;
    execute_pending(t, words);
    words->pending = program;
    words->exit = NO_EXIT;
}

void catch_up(Thread *t)
{
    if (!t->words)
        return;
    execute_pending(t, t->words);
    t->words->pending = NULL;
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
}

void save_registers(Thread *t)
{
    struct SavedRegisters *saved = VG_(malloc)("execute.saved", sizeof *saved);
    VG_(memcpy)(saved->slots, t->slots, sizeof saved->slots);
    VG_(memcpy)(saved->fp, t->fp, sizeof saved->fp);
    saved->labelled = t->labelled;
    saved->before = t->interrupted;
    t->interrupted = saved;
}

void restore_registers(Thread *t)
{
    struct SavedRegisters *saved = t->interrupted;
    if (!saved)
        return;
    VG_(memcpy)(t->slots, saved->slots, sizeof saved->slots);
    VG_(memcpy)(t->fp, saved->fp, sizeof saved->fp);
    t->labelled = saved->labelled;
    t->interrupted = saved->before;
    VG_(free)(saved);
}

void reset_thread(Thread *t)
{
    VG_(memset)(t->slots, 0, REGISTERS * sizeof(Label));
    VG_(memset)(t->fp, 0, sizeof t->fp);
    t->labelled = 1ULL << ALWAYS_GROUP;
    t->words = NULL;
    while (t->interrupted) {
        struct SavedRegisters *saved = t->interrupted;
        t->interrupted = saved->before;
        VG_(free)(saved);
    }
}
