/* Reads and writes of registers by a block: by name, byte by byte. The x87 stack has operations,
 * because its top is known only when the block runs. See compile.h. */
#include "compile.h"

#define CC_OP offsetof(VexGuestAMD64State, guest_CC_OP)
#define CC_DEP1 offsetof(VexGuestAMD64State, guest_CC_DEP1)
#define CC_DEP2 offsetof(VexGuestAMD64State, guest_CC_DEP2)
#define FPREG offsetof(VexGuestAMD64State, guest_FPREG)

static Bool is_followed(UInt offset)
{
    return offset < REGISTERS && group_of(offset) >= 0;
}

Bool is_fp(UInt offset)
{
    return offset >= FPREG && offset < FPREG + 64;
}

static Value fp_all(UInt n)
{
    Slot slot = new_slots(1);
    begin_operation(OP_FP_ALL_READ);
    append(slot);
    c.groups |= 1ULL << FP_GROUP;
    return all_bytes(slot, n);
}

Value fp_read(IRExpr *index, UInt bias)
{
    Value v = new_value(8);
    UInt word = request_word((WordRequest){.value = index});
    begin_operation(OP_FP_READ);
    append(v.at[0]);
    append(word);
    append(bias);
    c.groups |= 1ULL << FP_GROUP;
    return v;
}

void fp_write(IRExpr *index, UInt bias, Value v)
{
    UInt word = request_word((WordRequest){.value = index});
    begin_operation(OP_FP_WRITE);
    append(word);
    append(bias);
    append_list(v.at, 8);
    c.groups |= 1ULL << FP_GROUP;
}

static IRExpr *index_of(UInt offset)
{
    return IRExpr_Const(IRConst_U64((offset - FPREG) / 8));
}

Value register_value(UInt offset, UInt n)
{
    if (is_fp(offset) && n == 8 && (offset - FPREG) % 8 == 0)
        return fp_read(index_of(offset), 0);
    if (is_fp(offset))
        return fp_all(n);
    Value v = {.n = n};
    for (UInt i = 0; i < n; i++)
        v.at[i] = is_followed(offset + i) ? c.registers[offset + i] : EMPTY_SLOT;
    return v;
}

void put_register(UInt offset, Value v)
{
    if (is_fp(offset) && v.n == 8 && (offset - FPREG) % 8 == 0) {
        fp_write(index_of(offset), 0, v);
        return;
    }
    if (is_fp(offset)) {
        Value both[2] = {fp_all(1), v};
        Slot all = unite_values(both, 2);
        begin_operation(OP_FP_ALL_WRITE);
        append(all);
        return;
    }
    for (UInt i = 0; i < v.n; i++) {
        if (is_followed(offset + i))
            c.registers[offset + i] = v.at[i];
    }
}

/* Whether the operands of the flags can reach a value: by a carry that is added. After a mere
   comparison they decide only. */
static Bool flags_carry(IRExpr *data, UInt offset)
{
    Int op = c.flags_operation;
    if (op < 0 || op == 0 || op <= 4 || (op >= 9 && op <= 16) || op >= 29)
        return True;
    if (op > 8)
        return False; /* and, or, xor, test, inc, dec */
    for (UInt i = 0; i < c.subtraction_count; i++) {
        IRExpr *term = c.subtractions[i][offset == CC_DEP2];
        if (eqIRAtom(term, data))
            return True;
        /* Narrower operands were extended for the flags. */
        if (op < 8)
            return True;
    }
    return False;
}

void write_register(UInt offset, IRExpr *data)
{
    if (offset == CC_OP) {
        c.flags_operation = data->tag == Iex_Const ? (Int)data->Iex.Const.con->Ico.U64 : -1;
        return;
    }
    Value v = value_of(data);
    if ((offset == CC_DEP1 || offset == CC_DEP2) && !flags_carry(data, offset))
        v = decision(&v, 1, 8);
    put_register(offset, v);
}
