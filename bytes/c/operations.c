/* Expressions: on which bytes of the operands each byte of the result depends.
 *
 * Moves, masks, lanes and shifts by constants are followed byte by byte. Any other operation makes
 * each byte of its result depend on all bytes of all operands, which is never too little.
 *
 * Comparisons have no label: a comparison decides, as a branch does. With --implicit, they have
 * what decided (implicit.h). */
#include "arrange.h"

UInt bytes_of(IRType type)
{
    switch (type) {
    case Ity_I1:
    case Ity_I8: return 1;
    case Ity_I16:
    case Ity_F16: return 2;
    case Ity_I32:
    case Ity_F32:
    case Ity_D32: return 4;
    case Ity_I64:
    case Ity_F64:
    case Ity_D64: return 8;
    case Ity_V256: return 32;
    default: return 16;
    }
}

Value value_of(IRExpr *atom)
{
    Value v = {.n = bytes_of(typeOfIRExpr(c.block->tyenv, atom))};
    if (atom->tag != Iex_RdTmp)
        return empty_value(v.n);
    const Slot *from = &c.temp_slots[c.temps[atom->Iex.RdTmp.tmp]];
    for (UInt i = 0; i < v.n; i++)
        v.at[i] = from[i];
    return v;
}

Bool constant(const IRExpr *atom, ULong *value)
{
    if (atom->tag != Iex_Const)
        return False;
    const IRConst *k = atom->Iex.Const.con;
    switch (k->tag) {
    case Ico_U1: *value = k->Ico.U1; return True;
    case Ico_U8: *value = k->Ico.U8; return True;
    case Ico_U16: *value = k->Ico.U16; return True;
    case Ico_U32: *value = k->Ico.U32; return True;
    case Ico_U64: *value = k->Ico.U64; return True;
    default: return False;
    }
}

static Value extended(IRExpr *arg, UInt n, Bool is_signed)
{
    Value from = value_of(arg), v = part(from, 0, n);
    if (is_signed) {
        Slot top = unite_slots(&from.at[from.n - 1], 1);
        for (UInt i = from.n; i < n; i++)
            v.at[i] = top;
    }
    return v;
}

static Value slice(IRExpr **args)
{
    ULong by;
    Value low = value_of(args[1]), high = value_of(args[0]);
    if (!constant(args[2], &by))
        by = 0;
    Value v = {.n = low.n};
    for (UInt i = 0; i < low.n; i++)
        v.at[i] = i + by < low.n ? low.at[i + by] : high.at[i + by - low.n];
    return v;
}

/* The lanes of operations that treat each lane alone, in bytes; 0 for others. */
static UInt lane_width(IROp op)
{
    switch (op) {
#include "lane_operations.h"
    default: return 0;
    }
}

static Bool is_comparison(IROp op)
{
    switch (op) {
#include "comparisons.h"
        return True;
    default: return False;
    }
}

/* Moves: each byte of the result is a byte of an operand, or zero. */
static Bool move(IROp op, IRExpr **args, UInt n, Value *v)
{
    Value a = value_of(args[0]);
    switch (op) {
    case Iop_8Uto16:
    case Iop_8Uto32:
    case Iop_8Uto64:
    case Iop_16Uto32:
    case Iop_16Uto64:
    case Iop_32Uto64:
    case Iop_64UtoV128:
    case Iop_32UtoV128:
    case Iop_1Uto8:
    case Iop_1Uto32:
    case Iop_1Uto64:
    case Iop_64to32:
    case Iop_64to16:
    case Iop_64to8:
    case Iop_32to16:
    case Iop_32to8:
    case Iop_16to8:
    case Iop_128to64:
    case Iop_V128to64:
    case Iop_V128to32:
    case Iop_V256to64_0:
    case Iop_V256toV128_0:
    case Iop_ReinterpF64asI64:
    case Iop_ReinterpI64asF64:
    case Iop_ReinterpF32asI32:
    case Iop_ReinterpI32asF32:
    case Iop_ReinterpV128asI128:
    case Iop_ReinterpI128asV128: *v = part(a, 0, n); return True;
    case Iop_64HIto32:
    case Iop_32HIto16:
    case Iop_16HIto8:
    case Iop_128HIto64:
    case Iop_V128HIto64:
    case Iop_V256toV128_1: *v = part(a, n, n); return True;
    case Iop_V256to64_1: *v = part(a, 8, 8); return True;
    case Iop_V256to64_2: *v = part(a, 16, 8); return True;
    case Iop_V256to64_3: *v = part(a, 24, 8); return True;
    case Iop_ZeroHI64ofV128: *v = part(part(a, 0, 8), 0, 16); return True;
    case Iop_ZeroHI96ofV128: *v = part(part(a, 0, 4), 0, 16); return True;
    case Iop_ZeroHI112ofV128: *v = part(part(a, 0, 2), 0, 16); return True;
    case Iop_ZeroHI120ofV128: *v = part(part(a, 0, 1), 0, 16); return True;
    case Iop_8HLto16:
    case Iop_16HLto32:
    case Iop_32HLto64:
    case Iop_64HLto128:
    case Iop_64HLtoV128:
    case Iop_V128HLtoV256: *v = joined(a, value_of(args[1])); return True;
    case Iop_64x4toV256:
        *v = joined(joined(a, value_of(args[1])), joined(value_of(args[2]), value_of(args[3])));
        return True;
    case Iop_SetV128lo64: *v = joined(part(a, 8, 8), value_of(args[1])); return True;
    case Iop_SetV128lo32: *v = joined(part(a, 4, 12), value_of(args[1])); return True;
    case Iop_8Sto16:
    case Iop_8Sto32:
    case Iop_8Sto64:
    case Iop_16Sto32:
    case Iop_16Sto64:
    case Iop_32Sto64: *v = extended(args[0], n, True); return True;
    case Iop_Reverse8sIn16_x4:
    case Iop_Reverse8sIn16_x8: *v = reversed(a, 1, 2); return True;
    case Iop_Reverse8sIn32_x1:
    case Iop_Reverse8sIn32_x2:
    case Iop_Reverse8sIn32_x4: *v = reversed(a, 1, 4); return True;
    case Iop_Reverse8sIn64_x1:
    case Iop_Reverse8sIn64_x2: *v = reversed(a, 1, 8); return True;
    case Iop_Slice64:
    case Iop_SliceV128: *v = slice(args); return True;
    default: return False;
    }
}

static Value compared(IRExpr **args, UInt count, UInt n)
{
    Value values[8];
    if (count == 2 && eqIRAtom(args[0], args[1]))
        return empty_value(n);
    for (UInt i = 0; i < count; i++)
        values[i] = value_of(args[i]);
    if (count != 2 || values[0].n != 8 || !settings.implicit)
        return decision(values, count, n);
    Value both = all_bytes(unite_values(values, 2), 1);
    both = of_operands(args[0], args[1], both);
    return decision(&both, 1, n);
}

Value apply_operation(IROp op, IRExpr **args, UInt count, IRType type)
{
    UInt n = bytes_of(type);
    Value v;
    if (is_comparison(op))
        return compared(args, count, n);
    if (move(op, args, n, &v) || (count == 2 && rearrange(op, args, &v)))
        return v;
    if (count == 2 && (op == Iop_Sub8 || op == Iop_Sub16 || op == Iop_Sub32 || op == Iop_Sub64)) {
        if (eqIRAtom(args[0], args[1]))
            return empty_value(n);
        if (c.subtraction_count < 64) {
            c.subtractions[c.subtraction_count][0] = args[0];
            c.subtractions[c.subtraction_count++][1] = args[1];
        }
    }
    Value values[4];
    for (UInt i = 0; i < count; i++)
        values[i] = value_of(args[i]);
    UInt width = lane_width(op);
    if (width && n % width == 0)
        return lanes(values, count, width, n);
    v = all_bytes(unite_values(values, count), n);
    return op == Iop_Sub64 ? of_operands(args[0], args[1], v) : v;
}

Value apply_call(const IRCallee *callee, IRExpr **args, IRType type)
{
    UInt n = bytes_of(type), count = 0;
    while (args[count] && count < 5)
        count++;
    /* Conditions are comparisons. A carry that is added is not. */
    if (VG_(strcmp)(callee->name, "amd64g_calculate_condition") == 0)
        return compared(args, count, n);
    Value values[8];
    for (UInt i = 0; i < count; i++)
        values[i] = value_of(args[i]);
    return all_bytes(unite_values(values, count), n);
}
