/* Arrangements of bytes: parts, lanes and shifts of values.
 *
 * In: values, as slots. Out: the same slots in another order, or unions of those of a lane. */
#include "arrange.h"

Value part(Value from, UInt first, UInt n)
{
    Value v = {.n = n};
    for (UInt i = 0; i < n; i++)
        v.at[i] = first + i < from.n ? from.at[first + i] : EMPTY_SLOT;
    return v;
}

Value joined(Value high, Value low)
{
    Value v = {.n = low.n + high.n};
    for (UInt i = 0; i < v.n; i++)
        v.at[i] = i < low.n ? low.at[i] : high.at[i - low.n];
    return v;
}

/* A shift of lanes of `width` bytes by `bits`; positive is towards the high end. */
Value shift_lanes(Value from, UInt width, Int bits, Bool arithmetic)
{
    Value v = empty_value(from.n);
    Int whole = (bits < 0 ? -bits : bits) / 8, rest = (bits < 0 ? -bits : bits) % 8;
    for (UInt lane = 0; lane < from.n; lane += width) {
        for (Int i = 0; i < (Int)width; i++) {
            Int near = bits < 0 ? i + whole : i - whole, far = bits < 0 ? near + 1 : near - 1;
            Slot two[2] = {EMPTY_SLOT, EMPTY_SLOT};
            if (near >= 0 && near < (Int)width)
                two[0] = from.at[lane + near];
            else if (arithmetic)
                two[0] = from.at[lane + width - 1];
            if (rest && far >= 0 && far < (Int)width)
                two[1] = from.at[lane + far];
            v.at[lane + i] =
                rest || (arithmetic && near >= (Int)width) ? unite_slots(two, 2) : two[0];
        }
    }
    return v;
}

Value lanes(const Value *args, UInt count, UInt width, UInt n)
{
    Value v = {.n = n};
    for (UInt lane = 0; lane < n; lane += width) {
        Slot slots[160];
        UInt used = 0;
        for (UInt a = 0; a < count; a++) {
            for (UInt i = 0; i < width && args[a].n == n; i++)
                slots[used++] = args[a].at[lane + i];
        }
        Slot all = unite_slots(slots, used);
        for (UInt i = 0; i < width; i++)
            v.at[lane + i] = all;
    }
    return v;
}

Value interleave(Value left, Value right, UInt width, Bool high)
{
    Value v = {.n = left.n};
    UInt start = high ? left.n / 2 : 0;
    for (UInt i = 0; i < left.n; i++) {
        UInt lane = i / width, byte = i % width;
        Value *from = lane % 2 ? &left : &right;
        v.at[i] = from->at[start + lane / 2 * width + byte];
    }
    return v;
}

/* Lanes of twice `width` become lanes of `width`: by truncation, or (saturating) from both
   halves. */
Value narrow(Value low, Value high, UInt width, Bool saturate)
{
    Value v = {.n = 0};
    for (UInt half = 0; half < 2; half++) {
        Value *from = half ? &high : &low;
        for (UInt lane = 0; lane + 2 * width <= from->n; lane += 2 * width) {
            Bool wide = False;
            for (UInt i = 0; i < width; i++)
                wide |= from->at[lane + width + i] != EMPTY_SLOT;
            Slot all = saturate && wide ? unite_slots(&from->at[lane], 2 * width) : EMPTY_SLOT;
            for (UInt i = 0; i < width; i++)
                v.at[v.n++] = saturate && wide ? all : from->at[lane + i];
        }
    }
    return v;
}

Value reversed(Value from, UInt unit, UInt within)
{
    Value v = {.n = from.n};
    for (UInt i = 0; i < from.n; i++) {
        UInt group = i / within * within, inside = i % within;
        UInt lane = inside / unit, byte = inside % unit;
        v.at[i] = from.at[group + (within / unit - 1 - lane) * unit + byte];
    }
    return v;
}
