/* Appends operations to the label program, and removes those that nothing uses.
 *
 * In: slots. Out: `c.code`. Invariant: each operation defines new slots, so that a slot's label
 * never changes while the program is interpreted. */
#include "compile.h"
#include "encoding.h"

Compilation c;

void begin_operation(UShort op)
{
    if (c.op_count == MAX_OPS || c.code_used > MAX_CODE - 300) {
        c.overflow = True;
        c.op_count = 0;
        c.code_used = 0;
    }
    c.op_starts[c.op_count++] = c.code_used;
    append(op);
}

void append(UInt word)
{
    c.code[c.code_used++] = (UShort)word;
}

static Bool is_run(const Slot *slots, UInt n)
{
    for (UInt i = 1; i < n; i++) {
        if (slots[i] != slots[0] + i)
            return False;
    }
    return True;
}

void append_list(const Slot *slots, UInt n)
{
    c.code_used += encode_list(&c.code[c.code_used], slots, n);
}

Slot new_slots(UInt n)
{
    if (c.next_slot + n > SLOTS) {
        c.overflow = True;
        c.next_slot = FIRST_TEMPORARY;
    }
    Slot first = c.next_slot;
    c.next_slot += n;
    for (UInt i = 0; i < n; i++)
        c.computed[first + i] = False;
    return first;
}

Value new_value(UInt n)
{
    Value v = {.n = n};
    Slot first = new_slots(n);
    for (UInt i = 0; i < n; i++)
        v.at[i] = first + i;
    return v;
}

/* A new value of an operation on a word or slot, and on a list. */
static Value of_list(UShort op, UInt word, const Value *list)
{
    Value v = new_value(list->n);
    begin_operation(op);
    append(v.n);
    append(v.at[0]);
    append(word);
    append_list(list->at, v.n);
    return v;
}

Value of_two_lists(UShort op, UInt word, const Value *first, const Value *second)
{
    Value v = of_list(op, word, first);
    append_list(second->at, v.n);
    return v;
}

Value all_bytes(Slot slot, UInt n)
{
    Value v = {.n = n};
    for (UInt i = 0; i < n; i++)
        v.at[i] = slot;
    return v;
}

Value empty_value(UInt n)
{
    return all_bytes(EMPTY_SLOT, n);
}

Value decided(Slot by, Value v)
{
    if (!settings.implicit || by == EMPTY_SLOT)
        return v;
    return of_list(OP_DECIDE, by, &v);
}

Value of_operands(IRExpr *a, IRExpr *b, Value v)
{
    if (!settings.implicit || a->tag != Iex_RdTmp || b->tag != Iex_RdTmp)
        return v;
    Slot slot = unite_values(&v, 1);
    if (slot == EMPTY_SLOT)
        return v;
    UInt first = request_word((WordRequest){.value = a});
    request_word((WordRequest){.value = b});
    return of_list(OP_OF_POINTERS, first, &v);
}

Value decision(const Value *values, UInt count, UInt n)
{
    Value none = empty_value(n);
    return settings.implicit ? decided(unite_values(values, count), none) : none;
}

/* An equal union in the same block. */
static Slot same_union(UInt start, UInt length)
{
    for (UInt i = c.op_count - 1, tries = 0; i-- > 0 && tries < 40; tries++) {
        const UShort *other = &c.code[c.op_starts[i]];
        if (other[0] != c.code[start] || c.op_starts[i + 1] - c.op_starts[i] != length)
            continue;
        UInt k = 2;
        while (k < length && other[k] == c.code[start + k])
            k++;
        if (k == length)
            return other[1];
    }
    return 0;
}

Slot unite_slots(const Slot *slots, UInt count)
{
    Slot unique[160];
    UInt n = 0;
    for (UInt i = 0; i < count; i++) {
        UInt k = 0;
        while (k < n && unique[k] != slots[i])
            k++;
        if (k == n && slots[i] != EMPTY_SLOT)
            unique[n++] = slots[i];
    }
    if (n == 0)
        return EMPTY_SLOT;
    if (n == 1 && c.computed[unique[0]])
        return unique[0];
    UInt start = c.code_used;
    Bool run = n >= 4 && is_run(unique, n);
    Int group = unique[0] < REGISTERS ? group_of(unique[0]) : -1;
    Bool one_register = run && group >= 0 && group == group_of(unique[n - 1]);
    begin_operation(one_register ? OP_UNITE_REGISTER : run ? OP_UNITE_RUN : OP_UNITE);
    append(0);
    append(n);
    for (UInt i = 0; i < (run ? 1 : n); i++)
        append(unique[i]);
    if (one_register)
        append(group);
    Slot same = c.overflow ? 0 : same_union(start, c.code_used - start);
    if (same) {
        c.op_count--;
        c.code_used = start;
        return same;
    }
    Slot slot = new_slots(1);
    c.computed[slot] = True;
    return c.code[start + 1] = slot;
}

Slot unite_values(const Value *values, UInt count)
{
    Slot slots[160];
    UInt n = 0;
    for (UInt i = 0; i < count; i++) {
        for (UInt k = 0; k < values[i].n; k++)
            slots[n++] = values[i].at[k];
    }
    return unite_slots(slots, n);
}

UInt request_word(WordRequest request)
{
    if (c.request_count == MAX_REQUESTS) {
        c.overflow = True;
        c.request_count = 0;
    }
    request.statement = c.statement;
    request.used = False;
    c.requests[c.request_count] = request;
    return c.request_count++;
}

/* ---- removal ---- */

static UChar used[SLOTS];

static const UShort *use_list(const UShort *at, UInt n)
{
    Slot slots[REGISTERS];
    const UShort *end = decode_list(at, n, slots);
    for (UInt i = 0; i < n; i++)
        used[slots[i]] = 1;
    return end;
}

typedef struct {
    UInt first, n; /* slots that the operation defines */
    Bool effect;   /* it changes memory or the x87 stack */
} Definition;

static Definition definition_of(const UShort *op)
{
    switch (op[0]) {
    case OP_LOAD: return (Definition){op[3], op[1], False};
    case OP_UNITE:
    case OP_UNITE_RUN:
    case OP_UNITE_REGISTER:
    case OP_FP_ALL_READ: return (Definition){op[1], 1, False};
    case OP_EACH:
    case OP_SELECT:
    case OP_DECIDE:
    case OP_OF_POINTERS:
    case OP_PERMUTE: return (Definition){op[2], op[1], False};
    case OP_FP_READ: return (Definition){op[1], 8, False};
    case OP_GATHER: return (Definition){op[3], 1, False};
    default: return (Definition){0, 0, True};
    }
}

static void use_operands(const UShort *op)
{
    const UShort *at = op + 1;
    switch (op[0]) {
    case OP_LOAD:
        c.requests[at[1]].used = True;
        used[at[3]] = 1;
        break;
    case OP_STORE:
        c.requests[at[1]].used = True;
        use_list(at + 2, at[0]);
        break;
    case OP_UNITE:
        for (UInt i = 0; i < at[1]; i++)
            used[at[2 + i]] = 1;
        break;
    case OP_UNITE_RUN:
    case OP_UNITE_REGISTER:
        for (UInt i = 0; i < at[1]; i++)
            used[at[2] + i] = 1;
        break;
    case OP_EACH: use_list(use_list(at + 2, at[0]), at[0]); break;
    case OP_SELECT:
    case OP_PERMUTE:
        c.requests[at[2]].used = True;
        if (op[0] == OP_PERMUTE)
            c.requests[at[2] + 1].used = True;
        use_list(use_list(at + 3, at[0]), at[0]);
        break;
    case OP_FP_READ: c.requests[at[1]].used = True; break;
    case OP_FP_WRITE:
        c.requests[at[0]].used = True;
        use_list(at + 2, 8);
        break;
    case OP_FP_ALL_WRITE: used[at[0]] = 1; break;
    case OP_FILL:
        c.requests[at[1]].used = True;
        used[at[2]] = 1;
        break;
    case OP_GATHER: c.requests[at[1]].used = True; break;
    case OP_DECIDE:
        used[at[2]] = 1;
        use_list(at + 3, at[0]);
        break;
    case OP_BRANCH: used[at[0]] = 1; break;
    case OP_OF_POINTERS:
        c.requests[at[2]].used = c.requests[at[2] + 1].used = True;
        use_list(at + 3, at[0]);
        break;
    }
}

/* Removes operations whose slots nothing uses, and closes the gaps. */
void remove_unused(void)
{
    static UChar keep[MAX_OPS];
    VG_(memset)(used, 0, c.next_slot);
    for (UInt at = 0; at < c.puts_used;)
        at = use_list(&c.puts[at + 3], c.puts[at + 1]) - c.puts;
    for (UInt i = c.op_count; i-- > 0;) {
        Definition d = definition_of(&c.code[c.op_starts[i]]);
        keep[i] = d.effect;
        for (UInt k = 0; k < d.n && !keep[i]; k++)
            keep[i] = used[d.first + k];
        if (keep[i])
            use_operands(&c.code[c.op_starts[i]]);
    }
    UInt to = 0, exit = 0;
    for (UInt i = 0; i <= c.op_count; i++) {
        while (exit < c.exit_count && c.exits[exit].op_count == i)
            c.exits[exit++].code_end = to;
        if (i == c.op_count)
            break;
        UInt end = i + 1 < c.op_count ? c.op_starts[i + 1] : c.code_used;
        UInt length = end - c.op_starts[i];
        if (!keep[i])
            continue;
        VG_(memmove)(&c.code[to], &c.code[c.op_starts[i]], length * sizeof(UShort));
        c.op_starts[i] = to;
        to += length;
    }
    c.code_used = to;
    for (UInt slot = 0; slot < REGISTERS; slot++) {
        if (used[slot] && group_of(slot) >= 0)
            c.groups |= 1ULL << group_of(slot);
    }
    UInt kept = 0;
    for (UInt i = 0; i < c.op_count; i++) {
        if (keep[i])
            c.op_starts[kept++] = c.op_starts[i];
    }
    c.op_count = kept;
}
