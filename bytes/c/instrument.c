/* Makes the code of a block store its words, and enter its label program.
 *
 * In: a block, and `c` of compile.c. Out: the block for Valgrind to translate.
 * Invariant: each exit is stored before its condition is tested, so that the last one that was
 * stored is the exit that was taken. `involved` is 0 until the first exit, so that a block that a
 * fault ends is not executed. */
#include "compile_block.h"
#include "execute.h"
#include "record.h"
#include "shadow.h"
#include "unknown.h"

#define WORDS(field) (REGISTERS + offsetof(Words, field))

static IRExpr *assign(IRSB *to, IRType type, IRExpr *value)
{
    IRTemp t = newIRTemp(to->tyenv, type);
    addStmtToIRSB(to, IRStmt_WrTmp(t, value));
    return IRExpr_RdTmp(t);
}

static IRExpr *widened(IRSB *to, IRExpr *atom, UInt half)
{
    switch (typeOfIRExpr(to->tyenv, atom)) {
    case Ity_I1: return assign(to, Ity_I64, IRExpr_Unop(Iop_1Uto64, atom));
    case Ity_I8: return assign(to, Ity_I64, IRExpr_Unop(Iop_8Uto64, atom));
    case Ity_I16: return assign(to, Ity_I64, IRExpr_Unop(Iop_16Uto64, atom));
    case Ity_I32: return assign(to, Ity_I64, IRExpr_Unop(Iop_32Uto64, atom));
    case Ity_V128:
        return assign(to, Ity_I64, IRExpr_Unop(half ? Iop_V128HIto64 : Iop_V128to64, atom));
    default: return atom;
    }
}

/* The CAS stored if what it found is what it expected. */
static IRExpr *swapped(IRSB *to, IRCAS *s)
{
    IRExpr *success = NULL;
    for (UInt i = 0; i < (s->oldHi != IRTemp_INVALID ? 2 : 1); i++) {
        IRTemp old = i ? s->oldHi : s->oldLo;
        IROp equal = Iop_CmpEQ64;
        switch (typeOfIRTemp(to->tyenv, old)) {
        case Ity_I8: equal = Iop_CmpEQ8; break;
        case Ity_I16: equal = Iop_CmpEQ16; break;
        case Ity_I32: equal = Iop_CmpEQ32; break;
        default: break;
        }
        IRExpr *one =
            assign(to, Ity_I1, IRExpr_Binop(equal, IRExpr_RdTmp(old), i ? s->expdHi : s->expdLo));
        if (success) {
            IRExpr *both = assign(
                to, Ity_I64, IRExpr_Binop(Iop_And64, widened(to, success, 0), widened(to, one, 0)));
            one = assign(to, Ity_I1, IRExpr_Unop(Iop_64to1, both));
        }
        success = one;
    }
    return success;
}

/* `involved`, or not 0 if the access has a label (shadow.h). */
static IRExpr *with_labels_at(IRSB *to, IRExpr *involved, IRExpr *address, UInt span)
{
    for (UInt at = 0; at < span; at += REACH + 1) {
        IRExpr *a = address;
        if (at)
            a = assign(to, Ity_I64, IRExpr_Binop(Iop_Add64, a, mkIRExpr_HWord(at)));
        a = assign(to, Ity_I64,
                   IRExpr_Binop(Iop_Shl64, a, IRExpr_Const(IRConst_U8(64 - ADDRESS_BITS))));
        a = assign(
            to, Ity_I64,
            IRExpr_Binop(Iop_Shr64, a, IRExpr_Const(IRConst_U8(64 - ADDRESS_BITS + LINE_SHIFT))));
        a = assign(to, Ity_I64, IRExpr_Binop(Iop_Add64, a, mkIRExpr_HWord(LINES_BASE)));
        IRExpr *count = assign(to, Ity_I8, IRExpr_Load(Iend_LE, Ity_I8, a));
        count = assign(to, Ity_I64, IRExpr_Unop(Iop_8Uto64, count));
        involved = assign(to, Ity_I64, IRExpr_Binop(Iop_Or64, involved, count));
    }
    return involved;
}

/* Stores a word. Returns what `involved` is then. */
static IRExpr *store_word(IRSB *to, WordRequest *r, IRStmt *statement, IRExpr *involved)
{
    IRExpr *value = r->value;
    if (!r->is_address) {
        value = widened(to, value, r->half);
        addStmtToIRSB(to, IRStmt_Put(WORDS(values) + 8 * r->number, value));
        return involved;
    }
    if (r->plus)
        value = assign(to, Ity_I64, IRExpr_Binop(Iop_Add64, value, mkIRExpr_HWord(r->plus)));
    IRExpr *guard = r->if_swapped ? swapped(to, statement->Ist.CAS.details) : r->guard;
    if (guard)
        value = assign(to, Ity_I64, IRExpr_ITE(guard, value, mkIRExpr_HWord(0)));
    addStmtToIRSB(to, IRStmt_Put(WORDS(addresses) + 8 * r->number, value));
    return with_labels_at(to, involved, value, r->span > 64 ? 64 : r->span);
}

/* Words get numbers in the order in which they are stored. False if they are too many. */
static Bool number_words(Program *program)
{
    UInt addresses = 0, values = 0;
    for (UInt i = 0; i < c.request_count; i++) {
        WordRequest *r = &c.requests[i];
        if (!r->used)
            continue;
        if (r->is_address) {
            if (addresses == MAX_ADDRESSES)
                return False;
            program->spans[addresses] = r->span > 63 ? 63 : r->span - 1;
            r->number = addresses++;
        } else {
            if (values == MAX_VALUES)
                return False;
            r->number = values++;
        }
    }
    return True;
}

static void renumber(UShort *op)
{
    switch (op[0]) {
    case OP_LOAD:
    case OP_STORE:
    case OP_FILL:
    case OP_GATHER:
    case OP_FP_READ: op[2] = c.requests[op[2]].number; break;
    case OP_SELECT:
    case OP_OF_POINTERS:
    case OP_PERMUTE: op[3] = c.requests[op[3]].number; break;
    case OP_FP_WRITE: op[1] = c.requests[op[1]].number; break;
    default: break;
    }
}

static void describe_end(Program *p, IRSB *block)
{
    p->next = 0;
    if (block->next->tag == Iex_Const && block->jumpkind == Ijk_Boring)
        p->next = block->next->Iex.Const.con->Ico.U64;
    p->calls = block->jumpkind == Ijk_Call ? 1 : block->jumpkind == Ijk_Ret ? -1 : 0;
    for (Int i = 0; i < block->stmts_used; i++) {
        if (block->stmts[i]->tag == Ist_IMark) {
            p->branch = block->stmts[i]->Ist.IMark.addr;
            p->instructions++;
        }
    }
}

/* The halves of a permutation's index follow each other. */
static Program *program_of_block(void)
{
    Program *p = VG_(calloc)("program", 1, sizeof *p);
    if (!number_words(p)) {
        VG_(free)(p);
        return NULL;
    }
    for (UInt i = 0; i < c.op_count; i++)
        renumber(&c.code[c.op_starts[i]]);
    p->groups = c.groups;
    p->code = VG_(malloc)("program.code", (c.code_used + c.puts_used + 1) * sizeof(UShort));
    VG_(memcpy)(p->code, c.code, c.code_used * sizeof(UShort));
    VG_(memcpy)(p->code + c.code_used, c.puts, c.puts_used * sizeof(UShort));
    p->exits = VG_(calloc)("program.exits", c.exit_count, sizeof(Exit));
    p->exit_count = c.exit_count;
    p->slots = c.next_slot;
    describe_end(p, c.block);
    for (UInt e = 0; e < c.exit_count; e++) {
        UInt addresses = 0;
        for (UInt i = 0; i < c.exits[e].requests_before; i++)
            addresses += c.requests[i].used && c.requests[i].is_address;
        p->exits[e] = (Exit){.code_end = c.exits[e].code_end,
                             .puts = c.code_used + c.exits[e].puts,
                             .puts_end = c.code_used + c.exits[e].puts_end,
                             .addresses = addresses,
                             .program = p,
                             .target = c.exits[e].target,
                             .overlapping = c.exits[e].overlapping};
    }
    return p;
}

/* A call of a function with the address of the registers, and with an argument if there is one. */
static IRDirty *call(void *function, const HChar *name, IRExpr *argument)
{
    IRExpr **arguments =
        argument ? mkIRExprVec_2(IRExpr_GSPTR(), argument) : mkIRExprVec_1(IRExpr_GSPTR());
    IRDirty *d =
        unsafeIRDirty_0_N(argument ? 2 : 1, name, VG_(fnptr_to_fnentry)(function), arguments);
    /* The words behind the registers change; Valgrind must be told of some part. */
    d->nFxState = 1;
    d->fxState[0].fx = argument ? Ifx_Modify : Ifx_Read;
    d->fxState[0].offset = offsetof(VexGuestAMD64State, guest_RAX);
    d->fxState[0].size = 8;
    d->fxState[0].nRepeats = d->fxState[0].repeatLen = 0;
    return d;
}

/* Calls a function with the address of the registers, if the guard holds. */
static void add_call(IRSB *to, void *function, const HChar *name, IRExpr *guard)
{
    IRDirty *d = call(function, name, NULL);
    if (guard)
        d->guard = guard;
    addStmtToIRSB(to, IRStmt_Dirty(d));
}

static IRExpr *word(IRSB *to, UInt offset)
{
    return assign(to, Ity_I64, IRExpr_Get(offset, Ity_I64));
}

/* The block before is executed if it met a label. Returns what `involved` begins with: whether the
   registers of this block have labels. */
static IRExpr *begin(IRSB *to, Program *program)
{
    IRExpr *pending =
        assign(to, Ity_I1, IRExpr_Binop(Iop_CmpNE64, word(to, WORDS(involved)), mkIRExpr_HWord(0)));
    if (settings.implicit)
        add_call(to, execute_block_implicit, "execute_block_implicit", pending);
    else
        add_call(to, execute_block, "execute_block", pending);
    if (program->groups >> ALWAYS_GROUP & 1)
        return mkIRExpr_HWord(1);
    IRExpr *involved = settings.implicit ? word(to, WORDS(window)) : mkIRExpr_HWord(0);
    if (program->groups == 0)
        return involved;
    IRExpr *registers =
        assign(to, Ity_I64,
               IRExpr_Binop(Iop_And64, word(to, WORDS(labelled)), mkIRExpr_HWord(program->groups)));
    if (!settings.implicit)
        return registers;
    return assign(to, Ity_I64, IRExpr_Binop(Iop_Or64, involved, registers));
}

static void end(IRSB *to, Exit *exit, IRExpr *involved)
{
    addStmtToIRSB(to, IRStmt_Put(WORDS(involved), involved));
    addStmtToIRSB(to, IRStmt_Put(WORDS(exit), mkIRExpr_HWord((HWord)exit)));
}

/* Notes how a statement of a known instruction changes the registers of wide.h. `restores`: the
   block had XRSTOR before, and its writes empty nothing. */
static void note_wide(IRSB *to, const IRStmt *s, Bool *restores)
{
    if (!has_wide_registers())
        return;
    if (s->tag == Ist_Dirty) {
        const IRDirty *d = s->Ist.Dirty.details;
        const HChar *name = d->cee->name;
        /* VEX leaves out the components that a constant mask leaves out. */
        if (VG_(strstr)(name, "_XSAVE_COMPONENT_"))
            addStmtToIRSB(to, IRStmt_Dirty(call(keep_wide, "keep_wide", d->args[1])));
        if (VG_(strstr)(name, "_XRSTOR_COMPONENT_")) {
            addStmtToIRSB(to, IRStmt_Dirty(call(put_wide_back, "put_wide_back", d->args[1])));
            *restores = True;
        }
    }
    if (s->tag != Ist_Put || *restores)
        return;
    Int at = s->Ist.Put.offset - (Int)offsetof(VexGuestAMD64State, guest_YMM0);
    Int end = at + sizeofIRType(typeOfIRExpr(to->tyenv, s->Ist.Put.data));
    if (at < 0 || at >= YMM_BYTES * YMM_COUNT || (end - 1) % YMM_BYTES < YMM_BYTES / 2)
        return;
    IRExpr *one = IRExpr_Const(IRConst_U8(1));
    addStmtToIRSB(to, IRStmt_Put(WORDS(narrowed) + at / YMM_BYTES, one));
}

/* Has the instruction executed that the block ends before. The translation is discarded if the
   program replaces the instruction, or unmaps it: so it becomes a part of the block. */
static void add_unknown(IRSB *to, const VexGuestExtents *extents)
{
    if (to->jumpkind != Ijk_NoDecode || to->next->tag != Iex_Const)
        return;
    Addr address = to->next->Iex.Const.con->Ico.U64;
    const Unknown *unknown = describe_unknown(address);
    if (!unknown)
        return;
    ((VexGuestExtents *)extents)->len[extents->n_used - 1] += unknown->length;
    IRTemp next = newIRTemp(to->tyenv, Ity_I64);
    IRDirty *run = call(run_unknown, "run_unknown", mkIRExpr_HWord((HWord)unknown));
    run->tmp = next;
    addStmtToIRSB(to, IRStmt_Dirty(run));
    IRExpr *replaced =
        assign(to, Ity_I1, IRExpr_Binop(Iop_CmpEQ64, IRExpr_RdTmp(next), mkIRExpr_HWord(address)));
    addStmtToIRSB(to, IRStmt_Exit(replaced, Ijk_InvalICache, IRConst_U64(address), to->offsIP));
    to->jumpkind = Ijk_Boring;
    to->next = mkIRExpr_HWord(address + unknown->length);
}

static VG_REGPARM(1) void block_is_lost(UChar *guest)
{
    record_possible("a block of code was too large for its labels to be followed");
}

IRSB *instrument_block(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                       const VexGuestExtents *extents, const VexArchInfo *host, IRType word,
                       IRType host_word)
{
    IRSB *to = deepCopyIRSBExceptStmts(in);
    Int first = 0;
    while (first < in->stmts_used && in->stmts[first]->tag != Ist_IMark)
        addStmtToIRSB(to, in->stmts[first++]);
    compile_block(in, first);
    Bool restores = False;
    Program *program = c.overflow ? NULL : program_of_block();
    if (!program) {
        add_call(to, block_is_lost, "block_is_lost", NULL);
        for (Int i = first; i < in->stmts_used; i++) {
            addStmtToIRSB(to, in->stmts[i]);
            note_wide(to, in->stmts[i], &restores);
        }
        add_unknown(to, extents);
        return to;
    }
    Bool idle = c.op_count == 0 && c.puts_used == 0 && !settings.implicit;
    IRExpr *involved = idle ? NULL : begin(to, program);
    UInt exit = 0, next = 0;
    for (Int i = first; i < in->stmts_used; i++) {
        UInt until = next;
        while (until < c.request_count && c.requests[until].statement == i)
            until++;
        for (UInt k = next; k < until; k++) {
            if (c.requests[k].used && !c.requests[k].after)
                involved = store_word(to, &c.requests[k], NULL, involved);
        }
        if (in->stmts[i]->tag == Ist_Exit && !idle)
            end(to, &program->exits[exit++], involved);
        addStmtToIRSB(to, in->stmts[i]);
        note_wide(to, in->stmts[i], &restores);
        for (UInt k = next; k < until; k++) {
            if (c.requests[k].used && c.requests[k].after)
                involved = store_word(to, &c.requests[k], in->stmts[i], involved);
        }
        next = until;
    }
    if (!idle)
        end(to, &program->exits[exit], involved);
    add_unknown(to, extents);
    return to;
}
