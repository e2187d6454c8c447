/* Makes the label program of a block out of its statements.
 *
 * In: a flat superblock of VEX. Out: `c`, which instrument.c turns into code and a Program.
 * Registers are followed by name: a move between registers costs nothing until an exit. */
#include "compile.h"

#include "compile_block.h"

void set_temp(IRTemp temp, Value v)
{
    Slot *to = &c.temp_slots[c.temps[temp]];
    for (UInt i = 0; i < v.n; i++)
        to[i] = v.at[i];
}

UInt address_word(IRExpr *address, UInt plus, UInt span, IRExpr *guard)
{
    return request_word((WordRequest){
        .is_address = True, .value = address, .plus = plus, .span = span, .guard = guard});
}

static Slot address_label(IRExpr *address)
{
    if (settings.address == ADDRESS_NONE || address->tag != Iex_RdTmp)
        return EMPTY_SLOT;
    Value v = value_of(address);
    return unite_values(&v, 1);
}

static Value loaded(IRExpr *address, UInt plus, UInt n, IRExpr *guard)
{
    Slot label = address_label(address);
    Value v = new_value(n);
    UInt word = address_word(address, plus, n, guard);
    begin_operation(OP_LOAD);
    append(n);
    append(word);
    append(v.at[0]);
    append(label);
    return v;
}

static void stored(UInt word, Value v)
{
    begin_operation(OP_STORE);
    append(v.n);
    append(word);
    append_list(v.at, v.n);
}

static Value selected(IRExpr *condition, Value yes, Value no)
{
    Value v = yes;
    if (VG_(memcmp)(yes.at, no.at, yes.n * sizeof(Slot)) != 0) {
        UInt word = request_word((WordRequest){.value = condition});
        v = of_two_lists(OP_SELECT, word, &yes, &no);
    }
    return decided(value_of(condition).at[0], v);
}

static Value expression(IRExpr *e, IRType type)
{
    switch (e->tag) {
    case Iex_Get: return register_value(e->Iex.Get.offset, bytes_of(type));
    case Iex_GetI:
        if (is_fp(e->Iex.GetI.descr->base))
            return fp_read(e->Iex.GetI.ix, e->Iex.GetI.bias & 7);
        return empty_value(bytes_of(type));
    case Iex_Qop: {
        IRQop *q = e->Iex.Qop.details;
        IRExpr *args[4] = {q->arg1, q->arg2, q->arg3, q->arg4};
        return apply_operation(q->op, args, 4, type);
    }
    case Iex_Triop: {
        IRTriop *t = e->Iex.Triop.details;
        IRExpr *args[3] = {t->arg1, t->arg2, t->arg3};
        return apply_operation(t->op, args, 3, type);
    }
    case Iex_Binop: {
        IRExpr *args[2] = {e->Iex.Binop.arg1, e->Iex.Binop.arg2};
        return apply_operation(e->Iex.Binop.op, args, 2, type);
    }
    case Iex_Unop: {
        IRExpr *args[1] = {e->Iex.Unop.arg};
        return apply_operation(e->Iex.Unop.op, args, 1, type);
    }
    case Iex_Load: return loaded(e->Iex.Load.addr, 0, bytes_of(type), NULL);
    case Iex_ITE:
        return selected(e->Iex.ITE.cond, value_of(e->Iex.ITE.iftrue), value_of(e->Iex.ITE.iffalse));
    case Iex_CCall: return apply_call(e->Iex.CCall.cee, e->Iex.CCall.args, type);
    case Iex_RdTmp:
    case Iex_Const: return value_of(e);
    default: return empty_value(bytes_of(type));
    }
}

static void do_load_guarded(IRLoadG *g, IRTypeEnv *types)
{
    UInt n = bytes_of(typeOfIRTemp(types, g->dst)), from = n;
    Bool is_signed = g->cvt == ILGop_8Sto32 || g->cvt == ILGop_16Sto32;
    if (g->cvt == ILGop_8Uto32 || g->cvt == ILGop_8Sto32)
        from = 1;
    if (g->cvt == ILGop_16Uto32 || g->cvt == ILGop_16Sto32)
        from = 2;
    Value v = loaded(g->addr, 0, from, g->guard);
    Slot top = is_signed ? unite_slots(&v.at[from - 1], 1) : EMPTY_SLOT;
    for (v.n = n; from < n; from++)
        v.at[from] = top;
    set_temp(g->dst, selected(g->guard, v, value_of(g->alt)));
}

static void do_swap(IRCAS *s, IRTypeEnv *types)
{
    UInt n = bytes_of(typeOfIRTemp(types, s->oldLo));
    set_temp(s->oldLo, loaded(s->addr, 0, n, NULL));
    Bool two = s->oldHi != IRTemp_INVALID;
    if (two)
        set_temp(s->oldHi, loaded(s->addr, n, n, NULL));
    for (UInt i = 0; i < (two ? 2 : 1); i++) {
        UInt word = request_word((WordRequest){.statement = c.statement,
                                               .after = True,
                                               .is_address = True,
                                               .value = s->addr,
                                               .plus = i * n,
                                               .span = n,
                                               .if_swapped = True});
        stored(word, value_of(i ? s->dataHi : s->dataLo));
    }
}

/* The writes to registers that an exit makes. */
static void end_exit(void)
{
    UInt e = c.exit_count++;
    if (c.exit_count == MAX_EXITS || c.puts_used > MAX_CODE - 3000) {
        c.overflow = True;
        c.exit_count = 1;
        c.puts_used = 0;
        return;
    }
    c.exits[e].op_count = c.op_count;
    c.exits[e].requests_before = c.request_count;
    c.exits[e].puts = c.puts_used;
    c.exits[e].overlapping = False;
    for (Int group = 0; group < FP_GROUP; group++) {
        UInt start = group_start(group), end = start + group_size(group);
        for (UInt at = start; at < end; at++) {
            UInt n = 0;
            while (at + n < end && c.registers[at + n] != at + n)
                n++;
            if (n == 0)
                continue;
            for (UInt i = 0; i < n; i++)
                c.exits[e].overlapping |= c.registers[at + i] < REGISTERS;
            UShort *put = &c.puts[c.puts_used];
            put[0] = at;
            put[1] = n;
            put[2] = group;
            c.puts_used += 3;
            UInt code_used = c.code_used;
            append_list(&c.registers[at], n);
            for (UInt i = code_used; i < c.code_used; i++)
                c.puts[c.puts_used++] = c.code[i];
            c.code_used = code_used;
            c.groups |= 1ULL << group;
            at += n;
        }
    }
    c.exits[e].puts_end = c.puts_used;
}

/* The exit that comes next is taken or not as the atom has it. */
static void branch_on(IRExpr *atom)
{
    if (!settings.implicit || atom->tag != Iex_RdTmp)
        return;
    Value v = value_of(atom);
    Slot slot = v.n == 1 ? v.at[0] : unite_values(&v, 1);
    if (slot == EMPTY_SLOT)
        return;
    begin_operation(OP_BRANCH);
    append(slot);
    append(c.exit_count);
}

static void statement(IRStmt *s, IRTypeEnv *types)
{
    switch (s->tag) {
    case Ist_Put: write_register(s->Ist.Put.offset, s->Ist.Put.data); break;
    case Ist_PutI: {
        IRPutI *p = s->Ist.PutI.details;
        if (is_fp(p->descr->base))
            fp_write(p->ix, p->bias & 7, value_of(p->data));
        break;
    }
    case Ist_WrTmp:
        set_temp(s->Ist.WrTmp.tmp,
                 expression(s->Ist.WrTmp.data, typeOfIRTemp(types, s->Ist.WrTmp.tmp)));
        break;
    case Ist_Store: {
        Value v = value_of(s->Ist.Store.data);
        stored(address_word(s->Ist.Store.addr, 0, v.n, NULL), v);
        break;
    }
    case Ist_StoreG: {
        IRStoreG *g = s->Ist.StoreG.details;
        Value v = decided(value_of(g->guard).at[0], value_of(g->data));
        stored(address_word(g->addr, 0, v.n, g->guard), v);
        break;
    }
    case Ist_LoadG: do_load_guarded(s->Ist.LoadG.details, types); break;
    case Ist_CAS: do_swap(s->Ist.CAS.details, types); break;
    case Ist_LLSC:
        set_temp(s->Ist.LLSC.result,
                 empty_value(bytes_of(typeOfIRTemp(types, s->Ist.LLSC.result))));
        break;
    case Ist_Dirty: do_helper(s->Ist.Dirty.details, types); break;
    case Ist_Exit:
        if (s->Ist.Exit.jk == Ijk_Boring)
            branch_on(s->Ist.Exit.guard);
        c.exits[c.exit_count].target = s->Ist.Exit.dst->Ico.U64;
        end_exit();
        break;
    default: break;
    }
}

void compile_block(IRSB *block, Int first)
{
    static Slot temp_slots[60000];
    static UShort temps[4000];
    UInt used = 0;
    c.block = block;
    c.temps = temps;
    c.temp_slots = temp_slots;
    c.next_slot = FIRST_TEMPORARY;
    c.code_used = c.op_count = c.request_count = c.exit_count = c.puts_used = 0;
    c.groups = 0;
    c.flags_operation = -1;
    c.subtraction_count = 0;
    c.overflow = block->tyenv->types_used > 3900;
    for (Int i = 0; i < block->tyenv->types_used && !c.overflow; i++) {
        temps[i] = used;
        used += bytes_of(block->tyenv->types[i]);
        c.overflow = used > 59000;
    }
    for (UInt i = 0; i < REGISTERS; i++)
        c.registers[i] = i;
    for (c.statement = first; c.statement < block->stmts_used && !c.overflow; c.statement++)
        statement(block->stmts[c.statement], block->tyenv);
    if (!c.overflow) {
        /* A jump through a table: a switch. */
        if (block->jumpkind == Ijk_Boring)
            branch_on(block->next);
        c.exits[c.exit_count].target = 0;
        end_exit();
    }
    if (!c.overflow)
        remove_unused();
}
