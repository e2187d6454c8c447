/* The operations of VEX that compare (their names say so).
   Included by operations.c. */
/* clang-format off */
    case Iop_CmpEQ8: case Iop_CmpEQ16: case Iop_CmpEQ32: case Iop_CmpEQ64: case Iop_CmpNE8: case
    Iop_CmpNE16: case Iop_CmpNE32: case Iop_CmpNE64: case Iop_CasCmpEQ8: case Iop_CasCmpEQ16: case
    Iop_CasCmpEQ32: case Iop_CasCmpEQ64: case Iop_CasCmpNE8: case Iop_CasCmpNE16: case
    Iop_CasCmpNE32: case Iop_CasCmpNE64: case Iop_ExpCmpNE8: case Iop_ExpCmpNE16: case
    Iop_ExpCmpNE32: case Iop_ExpCmpNE64: case Iop_CmpLT32S: case Iop_CmpLT64S: case Iop_CmpLE32S:
    case Iop_CmpLE64S: case Iop_CmpLT32U: case Iop_CmpLT64U: case Iop_CmpLE32U: case Iop_CmpLE64U:
    case Iop_CmpNEZ8: case Iop_CmpNEZ16: case Iop_CmpNEZ32: case Iop_CmpNEZ64: case Iop_CmpwNEZ32:
    case Iop_CmpwNEZ64: case Iop_CmpORD32U: case Iop_CmpORD64U: case Iop_CmpORD32S: case
    Iop_CmpORD64S: case Iop_CmpF64: case Iop_CmpF32: case Iop_CmpF16: case Iop_CmpF128: case
    Iop_CmpNEZ16x2: case Iop_CmpNEZ8x4: case Iop_CmpEQ32Fx2: case Iop_CmpGT32Fx2: case
    Iop_CmpGE32Fx2: case Iop_CmpNEZ8x8: case Iop_CmpNEZ16x4: case Iop_CmpNEZ32x2: case Iop_CmpEQ8x8:
    case Iop_CmpEQ16x4: case Iop_CmpEQ32x2: case Iop_CmpGT8Ux8: case Iop_CmpGT16Ux4: case
    Iop_CmpGT32Ux2: case Iop_CmpGT8Sx8: case Iop_CmpGT16Sx4: case Iop_CmpGT32Sx2: case Iop_CmpD64:
    case Iop_CmpD128: case Iop_CmpExpD64: case Iop_CmpExpD128: case Iop_CmpLT16Fx8: case
    Iop_CmpLE16Fx8: case Iop_CmpEQ16Fx8: case Iop_CmpEQ32Fx4: case Iop_CmpLT32Fx4: case
    Iop_CmpLE32Fx4: case Iop_CmpUN32Fx4: case Iop_CmpGT32Fx4: case Iop_CmpGE32Fx4: case
    Iop_CmpEQ32F0x4: case Iop_CmpLT32F0x4: case Iop_CmpLE32F0x4: case Iop_CmpUN32F0x4: case
    Iop_CmpEQ64Fx2: case Iop_CmpLT64Fx2: case Iop_CmpLE64Fx2: case Iop_CmpUN64Fx2: case
    Iop_CmpEQ64F0x2: case Iop_CmpLT64F0x2: case Iop_CmpLE64F0x2: case Iop_CmpUN64F0x2: case
    Iop_CmpNEZ8x16: case Iop_CmpNEZ16x8: case Iop_CmpNEZ32x4: case Iop_CmpNEZ64x2: case
    Iop_CmpNEZ128x1: case Iop_CmpEQ8x16: case Iop_CmpEQ16x8: case Iop_CmpEQ32x4: case Iop_CmpEQ64x2:
    case Iop_CmpGT8Sx16: case Iop_CmpGT16Sx8: case Iop_CmpGT32Sx4: case Iop_CmpGT64Sx2: case
    Iop_CmpGT8Ux16: case Iop_CmpGT16Ux8: case Iop_CmpGT32Ux4: case Iop_CmpGT64Ux2: case
    Iop_CmpNEZ8x32: case Iop_CmpNEZ16x16: case Iop_CmpNEZ32x8: case Iop_CmpNEZ64x4: case
    Iop_CmpEQ8x32: case Iop_CmpEQ16x16: case Iop_CmpEQ32x8: case Iop_CmpEQ64x4: case Iop_CmpGT8Sx32:
    case Iop_CmpGT16Sx16: case Iop_CmpGT32Sx8: case Iop_CmpGT64Sx4:
/* clang-format on */
