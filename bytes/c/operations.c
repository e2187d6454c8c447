/* Expressions: on which bytes of the operands each byte of the result depends.
 *
 * Moves, masks, lanes and shifts by constants are followed byte by byte. Any other operation makes
 * each byte of its result depend on all bytes of all operands, which is never too little.
 *
 * Comparisons have no label: a comparison decides, as a branch does. (Explicit flows are followed,
 * implicit flows are not.) */
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

/* The constant, if the atom is one of at most 64 bits. */
static Bool constant(const IRExpr *atom, ULong *value)
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

static Value bytewise(Value a, Value b)
{
    UInt same = 0;
    Value v = {.n = a.n};
    for (UInt i = 0; i < a.n; i++)
        same += a.at[i] == EMPTY_SLOT && b.at[i] == EMPTY_SLOT;
    if (same == a.n)
        return empty_value(a.n);
    if (a.n <= 2) {
        for (UInt i = 0; i < a.n; i++) {
            Slot both[2] = {a.at[i], b.at[i]};
            v.at[i] = unite_slots(both, 2);
        }
        return v;
    }
    Slot first = new_slots(a.n);
    begin_operation(OP_EACH);
    append(a.n);
    append(first);
    append_list(a.at, a.n);
    append_list(b.at, a.n);
    for (UInt i = 0; i < a.n; i++)
        v.at[i] = a.at[i] == EMPTY_SLOT && b.at[i] == EMPTY_SLOT ? EMPTY_SLOT : first + i;
    return v;
}

/* And, or, xor. A constant byte of ones or zeros lets the other through, or stops it. */
static Value mask(IROp op, IRExpr **args, Bool is_and, Bool is_or)
{
    Value a = value_of(args[0]), b = value_of(args[1]);
    ULong k = 0;
    if (!is_and && !is_or && eqIRAtom(args[0], args[1]))
        return empty_value(a.n);
    if (eqIRAtom(args[0], args[1]))
        return a;
    for (UInt side = 0; side < 2 && a.n <= 8; side++) {
        if (!constant(args[side], &k))
            continue;
        Value other = side ? a : b, v = {.n = a.n};
        for (UInt i = 0; i < a.n; i++) {
            UChar byte = (UChar)(k >> 8 * i);
            Bool through = is_and ? byte == 0xff : byte == 0;
            Bool stopped = is_and ? byte == 0 : is_or && byte == 0xff;
            v.at[i] = stopped ? EMPTY_SLOT : through ? other.at[i] : unite_slots(&other.at[i], 1);
        }
        return v;
    }
    if (is_or) {
        /* Parts that were shifted next to each other. */
        Bool apart = True;
        Value v = {.n = a.n};
        for (UInt i = 0; i < a.n; i++) {
            apart &= a.at[i] == EMPTY_SLOT || b.at[i] == EMPTY_SLOT;
            v.at[i] = a.at[i] == EMPTY_SLOT ? b.at[i] : a.at[i];
        }
        if (apart)
            return v;
    }
    return bytewise(a, b);
}

static Value shift(IRExpr **args, UInt width, Int direction, Bool arithmetic)
{
    Value from = value_of(args[0]);
    ULong bits;
    if (constant(args[1], &bits))
        return shift_lanes(from, width, direction * (Int)(bits > 512 ? 512 : bits), arithmetic);
    Value v = lanes(&from, 1, width, from.n), amount = value_of(args[1]);
    Slot by = unite_values(&amount, 1);
    if (by == EMPTY_SLOT)
        return v;
    return bytewise(v, all_bytes(by, from.n));
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

static Value permuted(IRExpr **args)
{
    Value table = value_of(args[0]), index = value_of(args[1]), v = {.n = table.n};
    Slot first = new_slots(v.n);
    UInt word = request_word((WordRequest){.value = args[1], .half = 0});
    request_word((WordRequest){.value = args[1], .half = 1});
    begin_operation(OP_PERMUTE);
    append(v.n);
    append(first);
    append(word);
    append_list(table.at, v.n);
    append_list(index.at, v.n);
    for (UInt i = 0; i < v.n; i++)
        v.at[i] = first + i;
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

/* Operations that mix the lanes of their operands in a fixed order. */
static Bool rearrange(IROp op, IRExpr **args, Value *v)
{
    Value a = value_of(args[0]), b = value_of(args[1]);
    switch (op) {
    case Iop_InterleaveLO8x8:
    case Iop_InterleaveLO8x16: *v = interleave(a, b, 1, False); break;
    case Iop_InterleaveLO16x4:
    case Iop_InterleaveLO16x8: *v = interleave(a, b, 2, False); break;
    case Iop_InterleaveLO32x2:
    case Iop_InterleaveLO32x4: *v = interleave(a, b, 4, False); break;
    case Iop_InterleaveLO64x2: *v = interleave(a, b, 8, False); break;
    case Iop_InterleaveHI8x8:
    case Iop_InterleaveHI8x16: *v = interleave(a, b, 1, True); break;
    case Iop_InterleaveHI16x4:
    case Iop_InterleaveHI16x8: *v = interleave(a, b, 2, True); break;
    case Iop_InterleaveHI32x2:
    case Iop_InterleaveHI32x4: *v = interleave(a, b, 4, True); break;
    case Iop_InterleaveHI64x2: *v = interleave(a, b, 8, True); break;
    case Iop_NarrowBin16to8x8:
    case Iop_NarrowBin16to8x16: *v = narrow(b, a, 1, False); break;
    case Iop_NarrowBin32to16x4:
    case Iop_NarrowBin32to16x8: *v = narrow(b, a, 2, False); break;
    case Iop_NarrowBin64to32x4: *v = narrow(b, a, 4, False); break;
    case Iop_QNarrowBin16Sto8Ux8:
    case Iop_QNarrowBin16Sto8Sx8:
    case Iop_QNarrowBin16Sto8Ux16:
    case Iop_QNarrowBin16Sto8Sx16:
    case Iop_QNarrowBin16Uto8Ux16: *v = narrow(b, a, 1, True); break;
    case Iop_QNarrowBin32Sto16Sx4:
    case Iop_QNarrowBin32Sto16Sx8:
    case Iop_QNarrowBin32Sto16Ux8:
    case Iop_QNarrowBin32Uto16Ux8: *v = narrow(b, a, 2, True); break;
    case Iop_Perm8x16:
    case Iop_PermOrZero8x16: *v = permuted(args); break;
    case Iop_And8:
    case Iop_And16:
    case Iop_And32:
    case Iop_And64:
    case Iop_AndV128:
    case Iop_AndV256:
    case Iop_And1: *v = mask(op, args, True, False); break;
    case Iop_Or8:
    case Iop_Or16:
    case Iop_Or32:
    case Iop_Or64:
    case Iop_OrV128:
    case Iop_OrV256:
    case Iop_Or1: *v = mask(op, args, False, True); break;
    case Iop_Xor8:
    case Iop_Xor16:
    case Iop_Xor32:
    case Iop_Xor64:
    case Iop_XorV128:
    case Iop_XorV256: *v = mask(op, args, False, False); break;
    case Iop_Shl8:
    case Iop_Shl16:
    case Iop_Shl32:
    case Iop_Shl64:
    case Iop_ShlV128: *v = shift(args, a.n, 1, False); break;
    case Iop_Shr8:
    case Iop_Shr16:
    case Iop_Shr32:
    case Iop_Shr64:
    case Iop_ShrV128: *v = shift(args, a.n, -1, False); break;
    case Iop_Sar8:
    case Iop_Sar16:
    case Iop_Sar32:
    case Iop_Sar64: *v = shift(args, a.n, -1, True); break;
    case Iop_ShlN16x4:
    case Iop_ShlN16x8:
    case Iop_ShlN16x16: *v = shift(args, 2, 1, False); break;
    case Iop_ShlN32x2:
    case Iop_ShlN32x4:
    case Iop_ShlN32x8: *v = shift(args, 4, 1, False); break;
    case Iop_ShlN64x2:
    case Iop_ShlN64x4: *v = shift(args, 8, 1, False); break;
    case Iop_ShrN16x4:
    case Iop_ShrN16x8:
    case Iop_ShrN16x16: *v = shift(args, 2, -1, False); break;
    case Iop_ShrN32x2:
    case Iop_ShrN32x4:
    case Iop_ShrN32x8: *v = shift(args, 4, -1, False); break;
    case Iop_ShrN64x2:
    case Iop_ShrN64x4: *v = shift(args, 8, -1, False); break;
    case Iop_SarN16x4:
    case Iop_SarN16x8:
    case Iop_SarN16x16: *v = shift(args, 2, -1, True); break;
    case Iop_SarN32x2:
    case Iop_SarN32x4:
    case Iop_SarN32x8: *v = shift(args, 4, -1, True); break;
    case Iop_Add32F0x4:
    case Iop_Sub32F0x4:
    case Iop_Mul32F0x4:
    case Iop_Div32F0x4:
    case Iop_Max32F0x4:
    case Iop_Min32F0x4: {
        Value low[2] = {part(a, 0, 4), part(b, 0, 4)};
        *v = joined(part(a, 4, 12), all_bytes(unite_values(low, 2), 4));
        break;
    }
    case Iop_Add64F0x2:
    case Iop_Sub64F0x2:
    case Iop_Mul64F0x2:
    case Iop_Div64F0x2:
    case Iop_Max64F0x2:
    case Iop_Min64F0x2: {
        Value low[2] = {part(a, 0, 8), part(b, 0, 8)};
        *v = joined(part(a, 8, 8), all_bytes(unite_values(low, 2), 8));
        break;
    }
    default: return False;
    }
    return True;
}

Value apply_operation(IROp op, IRExpr **args, UInt count, IRType type)
{
    UInt n = bytes_of(type);
    Value v;
    if (is_comparison(op))
        return empty_value(n);
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
    return all_bytes(unite_values(values, count), n);
}

Value apply_call(const IRCallee *callee, IRExpr **args, IRType type)
{
    UInt n = bytes_of(type);
    /* Conditions are comparisons. A carry that is added is not. */
    if (VG_(strcmp)(callee->name, "amd64g_calculate_condition") == 0)
        return empty_value(n);
    Value values[8];
    UInt count = 0;
    for (; args[count] && count < 8; count++)
        values[count] = value_of(args[count]);
    return all_bytes(unite_values(values, count > 5 ? 5 : count), n);
}
