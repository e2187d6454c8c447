/* Arrangements of bytes, for operations.c alone. */
#ifndef ARRANGE_H
#define ARRANGE_H

#include "compile.h"

Value part(Value from, UInt first, UInt n);
Value joined(Value high, Value low);

/* A shift of lanes of `width` bytes by `bits`; positive is towards the high end. */
Value shift_lanes(Value from, UInt width, Int bits, Bool arithmetic);

/* Each lane of the result depends on the same lane of the operands that are as long. */
Value lanes(const Value *args, UInt count, UInt width, UInt n);

Value interleave(Value left, Value right, UInt width, Bool high);

/* Lanes of twice `width` become lanes of `width`: by truncation, or (saturating) from both
   halves. */
Value narrow(Value low, Value high, UInt width, Bool saturate);

/* Units in the opposite order, within groups of `within` bytes. */
Value reversed(Value from, UInt unit, UInt within);

#endif
