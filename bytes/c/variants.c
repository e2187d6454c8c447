/* See variants.h.
 *
 * The program is executed with "can have a label" instead of labels. A list without the slots that
 * cannot have one has EMPTY_SLOT in their place. */
#include "variants.h"

#include "encoding.h"

#define KEPT 32
#define MOST_MADE 400 /* then an exit meets too many cases, and gets the whole program */

static UChar can[SLOTS];
static UShort *out;
static UInt out_used;
static Bool stored; /* an earlier operation of this program can have labelled memory */
static Bool fp;     /* the x87 stack can have labels */
static ULong accesses;

static Bool any(const Slot *slots, UInt n)
{
    for (UInt i = 0; i < n; i++) {
        if (can[slots[i]])
            return True;
    }
    return False;
}

/* Decodes a list into `slots`, with EMPTY_SLOT for what cannot have a label. */
static const UShort *read_list(const UShort *at, UInt n, Slot *slots)
{
    const UShort *end = decode_list(at, n, slots);
    for (UInt i = 0; i < n; i++) {
        if (!can[slots[i]])
            slots[i] = EMPTY_SLOT;
    }
    return end;
}

static void set(UInt first, UInt n, Bool value)
{
    for (UInt i = 0; i < n; i++)
        can[first + i] = value;
}

static void copy(const UShort *from, const UShort *to)
{
    while (from < to)
        out[out_used++] = *from++;
}

static void put_list(const Slot *slots, UInt n)
{
    out_used += encode_list(&out[out_used], slots, n);
}

static Bool has_label(UShort word)
{
    return stored || accesses >> (word & 63) & 1;
}

static const UShort *unite(const UShort *pc)
{
    UInt n = pc[2], used = 0;
    Slot slots[160];
    Bool list = pc[0] == OP_UNITE;
    for (UInt i = 0; i < n; i++) {
        Slot slot = list ? pc[3 + i] : pc[3] + i;
        if (can[slot])
            slots[used++] = slot;
    }
    can[pc[1]] = used > 0;
    Bool run = used >= 4 && slots[used - 1] == slots[0] + used - 1;
    if (used) {
        out[out_used++] = run ? OP_UNITE_RUN : OP_UNITE;
        out[out_used++] = pc[1];
        out[out_used++] = used;
        copy(slots, slots + (run ? 1 : used));
    }
    return pc + (list ? 3 + n : pc[0] == OP_UNITE_RUN ? 4 : 5);
}

/* Bytewise unions and choices: operations with two lists, whose head has `head` words. */
static const UShort *two_lists(const UShort *pc, UInt head)
{
    UInt n = pc[1];
    Slot a[32], b[32];
    const UShort *end = read_list(read_list(pc + head, n, a), n, b);
    Bool kept = any(a, n) || any(b, n);
    for (UInt i = 0; i < n; i++)
        can[pc[2] + i] = pc[0] == OP_EACH ? can[a[i]] || can[b[i]] : kept;
    if (kept) {
        copy(pc, pc + head);
        put_list(a, n);
        put_list(b, n);
    }
    return end;
}

static const UShort *store(const UShort *pc)
{
    Slot slots[32];
    const UShort *end = read_list(pc + 3, pc[1], slots);
    Bool labels = any(slots, pc[1]);
    if (labels || has_label(pc[2])) {
        copy(pc, pc + 3);
        put_list(slots, pc[1]);
    }
    stored |= labels;
    return end;
}

static const UShort *load(const UShort *pc)
{
    Bool memory = has_label(pc[2]), address = can[pc[4]];
    set(pc[3], pc[1], memory || address);
    if (memory || address) {
        copy(pc, pc + 5);
        if (!address)
            out[out_used - 1] = EMPTY_SLOT;
    }
    return pc + 5;
}

static const UShort *x87(const UShort *pc)
{
    Slot slots[8];
    const UShort *end = pc + (pc[0] == OP_FP_READ ? 4 : 2);
    if (pc[0] == OP_FP_READ || pc[0] == OP_FP_ALL_READ) {
        set(pc[1], pc[0] == OP_FP_READ ? 8 : 1, fp);
        if (fp)
            copy(pc, end);
        return end;
    }
    if (pc[0] == OP_FP_WRITE) {
        end = read_list(pc + 3, 8, slots);
        fp |= any(slots, 8);
        if (fp) {
            copy(pc, pc + 3);
            put_list(slots, 8);
        }
        return end;
    }
    fp |= can[pc[1]];
    if (fp) {
        copy(pc, end);
        if (!can[pc[1]])
            out[out_used - 1] = EMPTY_SLOT;
    }
    return end;
}

static const UShort *decide(const UShort *pc)
{
    UInt n = pc[1];
    Slot slots[32];
    const UShort *end = read_list(pc + 4, n, slots);
    Bool by = can[pc[3]], kept = by || any(slots, n);
    set(pc[2], n, kept);
    if (kept) {
        copy(pc, pc + 4);
        if (!by)
            out[out_used - 1] = EMPTY_SLOT;
        put_list(slots, n);
    }
    return end;
}

static const UShort *copied(const UShort *pc)
{
    UInt n = pc[1];
    Slot slots[32];
    const UShort *end = read_list(pc + 4, n, slots);
    Bool kept = any(slots, n);
    set(pc[2], n, kept);
    if (kept) {
        copy(pc, pc + 4);
        put_list(slots, n);
    }
    return end;
}

static const UShort *one(const UShort *pc, Bool always)
{
    switch (pc[0]) {
    case OP_LOAD: return load(pc);
    case OP_STORE: return store(pc);
    case OP_UNITE:
    case OP_UNITE_RUN:
    case OP_UNITE_REGISTER: return unite(pc);
    case OP_EACH: return two_lists(pc, 3);
    case OP_SELECT:
    case OP_PERMUTE: return two_lists(pc, 4);
    case OP_GATHER:
        can[pc[3]] = always || has_label(pc[2]);
        if (can[pc[3]])
            copy(pc, pc + 4);
        return pc + 4;
    case OP_DECIDE: return decide(pc);
    case OP_OF_POINTERS: return copied(pc);
    case OP_BRANCH:
        if (can[pc[1]])
            copy(pc, pc + 3);
        return pc + 3;
    case OP_FILL:
        if (always || can[pc[3]] || has_label(pc[2])) {
            copy(pc, pc + 4);
            if (!can[pc[3]])
                out[out_used - 1] = EMPTY_SLOT;
        }
        stored |= can[pc[3]];
        return pc + 4;
    default: return x87(pc);
    }
}

static void puts(const UShort *pc, const UShort *end, ULong groups)
{
    while (pc < end) {
        Slot slots[32];
        UInt n = pc[1], group = pc[2];
        const UShort *next = read_list(pc + 3, n, slots);
        if (any(slots, n) || groups >> group & 1) {
            copy(pc, pc + 3);
            put_list(slots, n);
        }
        pc = next;
    }
}

static void make(Variant *v, Program *program, Exit *exit)
{
    UInt length = exit->code_end + 2 * (exit->puts_end - exit->puts) + exit->code_end + 64;
    out = VG_(malloc)("variant.code", length * sizeof(UShort));
    out_used = 0;
    stored = False;
    accesses = v->accesses;
    fp = v->groups >> FP_GROUP & 1;
    VG_(memset)(can, 0, program->slots);
    for (Int group = 0; group < FP_GROUP; group++) {
        if (v->groups >> group & 1)
            set(group_start(group), group_size(group), True);
    }
    Bool always = program->groups >> ALWAYS_GROUP & 1;
    const UShort *end = program->code + exit->code_end;
    for (const UShort *pc = program->code; pc < end;)
        pc = one(pc, always);
    UInt code_used = out_used;
    puts(program->code + exit->puts, program->code + exit->puts_end, v->groups);
    tl_assert(out_used <= length);
    VG_(free)((void *)v->code);
    v->code = out;
    v->code_end = out + code_used;
    v->puts_end = out + out_used;
    v->overlapping = exit->overlapping;
}

const Variant *whole_program(Exit *exit)
{
    if (!exit->variants)
        exit->variants = VG_(calloc)("variants", KEPT + 1, sizeof(Variant));
    Variant *v = &exit->variants[KEPT];
    v->groups = v->accesses = ~0ULL;
    if (!v->code)
        make(v, exit->program, exit);
    return v;
}

const Variant *variant_of(Exit *exit, ULong groups, ULong accesses_with_labels)
{
    if (!exit->variants)
        exit->variants = VG_(calloc)("variants", KEPT + 1, sizeof(Variant));
    ULong key = (groups * 0x9e3779b97f4a7c15ULL ^ accesses_with_labels) * 0xbf58476d1ce4e5b9ULL;
    Variant *v = &exit->variants[key >> 59];
    if (LIKELY(v->code && v->groups == groups && v->accesses == accesses_with_labels))
        return v;
    if (exit->made >= MOST_MADE)
        return whole_program(exit);
    exit->made++;
    v->groups = groups;
    v->accesses = accesses_with_labels;
    make(v, exit->program, exit);
    return v;
}
