/* See execute.h and program.h. */
#include "execute.h"

#include "gathering.h"
#include "implicit.h"
#include "variants.h"

/* A union that is stored becomes a set. */
static inline void store_label(Addr a, Label label)
{
    set_label(a, resolve(label));
}

/* A pointer out of a table is no value that was computed from the index. */
Bool is_pointer(ULong value)
{
    return value > 0x10000 && value < (1ULL << ADDRESS_BITS) &&
           VG_(am_is_valid_for_client)(value, 1, VKI_PROT_READ);
}

static void unite_address(Label *to, UInt n, Addr a, Label address)
{
    if (settings.address == ADDRESS_TABLES && n == 8 && is_pointer(*(ULong *)a))
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
    const UShort *list = pc + 2, *end = after_list(list, n);
    if (a == 0)
        return end;
    Label labels[32];
    Label any = gather(labels, t->slots, list, n);
    if (any == 0 && !labelled(a, n - 1))
        return end;
    for (UInt i = 0; i < n; i++)
        store_label(a + i, labels[i]);
    return end;
}

static const UShort *do_permute(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Label *to = &t->slots[pc[1]], table[32], indices[32];
    const UChar *index = (const UChar *)&t->words->values[pc[2]];
    const UShort *second = after_list(pc + 3, n);
    gather(table, t->slots, pc + 3, n);
    gather(indices, t->slots, second, n);
    for (UInt i = 0; i < n; i++)
        to[i] = unite(table[index[i] & (n - 1)], indices[i]);
    return after_list(second, n);
}

static const UShort *do_select(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    const UShort *no = after_list(pc + 3, n);
    gather(&t->slots[pc[1]], t->slots, (UChar)t->words->values[pc[2]] ? pc + 3 : no, n);
    return after_list(no, n);
}

static const UShort *do_decide(Thread *t, const UShort *pc)
{
    gather(&t->slots[pc[1]], t->slots, pc + 3, pc[0]);
    return after_list(pc + 3, pc[0]);
}

static const UShort *do_each(Thread *t, const UShort *pc)
{
    UInt n = pc[0];
    Label *to = &t->slots[pc[1]], b[32];
    const UShort *second = after_list(pc + 2, n);
    gather(to, t->slots, pc + 2, n);
    gather(b, t->slots, second, n);
    for (UInt i = 0; i < n; i++)
        to[i] = unite(to[i], b[i]);
    return after_list(second, n);
}

static const UShort *do_memory_run(Thread *t, const UShort *pc, Bool fill)
{
    Addr a = t->words->addresses[pc[1]];
    Label label = fill ? resolve(t->slots[pc[2]]) : 0;
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
        any = gather(&t->fp[8 * fp_register(t, pc[0], pc[1])], t->slots, pc + 2, 8);
        end = after_list(pc + 2, 8);
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
        Label all = t->slots[pc[2]];
        for (UInt i = 1; i < n; i++)
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

/* Registers that the block changed. */
static inline void put_registers(Thread *t, const Variant *variant)
{
    const UShort *pc = variant->code_end, *end = variant->puts_end;
    /* Sources are read before registers are written, if the same register is both. */
    Label copies[REGISTERS];
    UInt copied = 0;
    for (const UShort *at = pc; variant->overlapping && at < end;) {
        gather(&copies[copied], t->slots, at + 3, at[1]);
        copied += at[1];
        at = after_list(at + 3, at[1]);
    }
    copied = 0;
    while (pc < end) {
        UInt offset = pc[0], n = pc[1], group = pc[2];
        const UShort *list = pc + 3;
        pc = after_list(list, n);
        Label *to = &t->slots[offset], any;
        if (variant->overlapping) {
            any = copy_run(to, &copies[copied], n);
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

static inline void run_operations(Thread *t, const Variant *variant)
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
        case OP_DECIDE:
        case OP_OF_POINTERS: pc = do_decide(t, pc); break;
        case OP_BRANCH: pc += 2; break;
        default: pc = do_fp(t, op, pc); break;
        }
    }
}

static __attribute__((noinline)) void run_program(Thread *t, const Variant *variant)
{
    run_operations(t, variant);
    put_registers(t, variant);
}

/* Whether one of the bytes [a, a + last] has a label. */
static inline Bool has_labels(Addr a, UInt last)
{
    if (!labelled(a, last))
        return False;
    const Label *at = &shadow[a & ADDRESS_MASK];
    Label any = at[last];
    UInt i = 0;
    for (; i + 8 <= last + 1; i += 8)
        any |= any_of_eight(at + i);
    for (; i < last; i++)
        any |= at[i];
    return any != 0;
}

static void execute_pending(Thread *t, Words *words)
{
    const Exit *exit = words->exit;
    const Program *program = exit->program;
    ULong groups = t->labelled & program->groups, accesses = 0;
    /* Accesses beyond 64 share their bits. */
    for (UInt i = 0; i < exit->addresses; i++)
        accesses |= (ULong)has_labels(words->addresses[i], program->spans[i]) << (i & 63);
    words->involved = 0;
    if ((groups | accesses) == 0 && !(program->groups >> ALWAYS_GROUP & 1))
        return;
    if (UNLIKELY(deferred_full()))
        resolve_registers(t);
    run_program(t, variant_of(words->exit, groups, accesses));
    words->labelled = t->labelled;
}

VG_REGPARM(1) void execute_block(UChar *guest)
{
    Words *words = (Words *)(guest + REGISTERS);
    Thread *t = running;
    t->words = words;
    if (words->exit)
        execute_pending(t, words);
    words->involved = 0;
}

/* Both kinds of labels. The explicit ones do not depend on the implicit ones. */
static void execute_both(Thread *t, Words *words)
{
    Exit *exit = words->exit;
    words->exit = NULL;
    words->involved = 0;
    if (exit && implicit_needs(t, words, exit)) {
        if (deferred_full())
            resolve_registers(t);
        const Variant *variant = whole_program(exit);
        run_operations(t, variant);
        run_implicit(t, words, variant);
        put_registers(t, variant);
        put_implicit(t, variant);
    }
    step_windows(t, words, exit);
    words->labelled = t->labelled | implicit_groups(t);
}

VG_REGPARM(1) void execute_block_implicit(UChar *guest)
{
    Words *words = (Words *)(guest + REGISTERS);
    running->words = words;
    execute_both(running, words);
}

void catch_up(Thread *t)
{
    if (!t->words || !t->words->involved)
        return;
    if (!t->implicit) {
        execute_pending(t, t->words);
        return;
    }
    execute_both(t, t->words);
    /* The next block must look whether a window ends. */
    t->words->involved = t->words->window;
}
