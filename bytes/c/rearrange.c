/* Operations whose result mixes bytes of two operands in a known order: masks, shifts, lanes.
 *
 * In: an operation and its operands. Out: for each byte of the result, the slots it comes from. */
#include "arrange.h"

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

static Value permuted(IRExpr **args)
{
    Value table = value_of(args[0]), index = value_of(args[1]);
    UInt word = request_word((WordRequest){.value = args[1], .half = 0});
    request_word((WordRequest){.value = args[1], .half = 1});
    return of_two_lists(OP_PERMUTE, word, &table, &index);
}

/* Operations that mix the lanes of their operands in a fixed order. */
Bool rearrange(IROp op, IRExpr **args, Value *v)
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
