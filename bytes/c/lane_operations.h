/* The operations of VEX that treat each lane of their operands alone (their names say so).
   Included by operations.c. */
/* clang-format off */
    case Iop_Add8x4: case Iop_Sub8x4: case Iop_QAdd8Sx4: case Iop_QAdd8Ux4: case Iop_QSub8Sx4: case
    Iop_QSub8Ux4: case Iop_HAdd8Ux4: case Iop_HAdd8Sx4: case Iop_HSub8Ux4: case Iop_HSub8Sx4: case
    Iop_Add8x8: case Iop_QAdd8Ux8: case Iop_QAdd8Sx8: case Iop_Sub8x8: case Iop_QSub8Ux8: case
    Iop_QSub8Sx8: case Iop_Abs8x8: case Iop_Mul8x8: case Iop_Avg8Ux8: case Iop_Max8Sx8: case
    Iop_Max8Ux8: case Iop_Min8Sx8: case Iop_Min8Ux8: case Iop_Cnt8x8: case Iop_Clz8x8: case
    Iop_Cls8x8: case Iop_Ctz8x16: case Iop_Shl8x8: case Iop_Shr8x8: case Iop_Sar8x8: case
    Iop_Sal8x8: case Iop_Add8x16: case Iop_QAdd8Ux16: case Iop_QAdd8Sx16: case Iop_Sub8x16: case
    Iop_QSub8Ux16: case Iop_QSub8Sx16: case Iop_Mul8x16: case Iop_MulHi8Ux16: case Iop_MulHi8Sx16:
    case Iop_Abs8x16: case Iop_Avg8Ux16: case Iop_Avg8Sx16: case Iop_Max8Sx16: case Iop_Max8Ux16:
    case Iop_Min8Sx16: case Iop_Min8Ux16: case Iop_Cnt8x16: case Iop_Clz8x16: case Iop_Cls8x16: case
    Iop_Shl8x16: case Iop_Shr8x16: case Iop_Sar8x16: case Iop_Sal8x16: case Iop_Rol8x16: case
    Iop_Add8x32: case Iop_Sub8x32: case Iop_Max8Sx32: case Iop_Max8Ux32: case Iop_Min8Sx32: case
    Iop_Min8Ux32: case Iop_QAdd8Ux32: case Iop_QAdd8Sx32: case Iop_QSub8Ux32: case Iop_QSub8Sx32:
    case Iop_Avg8Ux32: case Iop_NotV128: case Iop_NotV256: case Iop_Not8: case Iop_Not16: case
    Iop_Not32: case Iop_Not64:
        return 1;
    case Iop_Add16x2: case Iop_Sub16x2: case Iop_QAdd16Sx2: case Iop_QAdd16Ux2: case Iop_QSub16Sx2:
    case Iop_QSub16Ux2: case Iop_HAdd16Ux2: case Iop_HAdd16Sx2: case Iop_HSub16Ux2: case
    Iop_HSub16Sx2: case Iop_Add16x4: case Iop_QAdd16Ux4: case Iop_QAdd16Sx4: case Iop_Sub16x4: case
    Iop_QSub16Ux4: case Iop_QSub16Sx4: case Iop_Abs16x4: case Iop_Mul16x4: case Iop_MulHi16Ux4: case
    Iop_MulHi16Sx4: case Iop_QDMulHi16Sx4: case Iop_QRDMulHi16Sx4: case Iop_Avg16Ux4: case
    Iop_Max16Sx4: case Iop_Max16Ux4: case Iop_Min16Sx4: case Iop_Min16Ux4: case Iop_Clz16x4: case
    Iop_Cls16x4: case Iop_Ctz16x8: case Iop_Shl16x4: case Iop_Shr16x4: case Iop_Sar16x4: case
    Iop_Sal16x4: case Iop_Sqrt16Fx8: case Iop_Add16Fx8: case Iop_Sub16Fx8: case Iop_Abs16Fx8: case
    Iop_Neg16Fx8: case Iop_Add16x8: case Iop_QAdd16Ux8: case Iop_QAdd16Sx8: case Iop_Sub16x8: case
    Iop_QSub16Ux8: case Iop_QSub16Sx8: case Iop_Mul16x8: case Iop_MulHi16Ux8: case Iop_MulHi16Sx8:
    case Iop_QDMulHi16Sx8: case Iop_QRDMulHi16Sx8: case Iop_Abs16x8: case Iop_Avg16Ux8: case
    Iop_Avg16Sx8: case Iop_Max16Sx8: case Iop_Max16Ux8: case Iop_Min16Sx8: case Iop_Min16Ux8: case
    Iop_Clz16x8: case Iop_Cls16x8: case Iop_Shl16x8: case Iop_Shr16x8: case Iop_Sar16x8: case
    Iop_Sal16x8: case Iop_Rol16x8: case Iop_Add16x16: case Iop_Sub16x16: case Iop_Max16Sx16: case
    Iop_Max16Ux16: case Iop_Min16Sx16: case Iop_Min16Ux16: case Iop_Mul16x16: case Iop_MulHi16Ux16:
    case Iop_MulHi16Sx16: case Iop_QAdd16Ux16: case Iop_QAdd16Sx16: case Iop_QSub16Ux16: case
    Iop_QSub16Sx16: case Iop_Avg16Ux16:
        return 2;
    case Iop_Max32Fx2: case Iop_Min32Fx2: case Iop_Neg32Fx2: case Iop_Abs32Fx2: case Iop_Add32x2:
    case Iop_QAdd32Ux2: case Iop_QAdd32Sx2: case Iop_Sub32x2: case Iop_QSub32Ux2: case
    Iop_QSub32Sx2: case Iop_Abs32x2: case Iop_Mul32x2: case Iop_Mul32Fx2: case Iop_QDMulHi32Sx2:
    case Iop_QRDMulHi32Sx2: case Iop_Max32Sx2: case Iop_Max32Ux2: case Iop_Min32Sx2: case
    Iop_Min32Ux2: case Iop_Clz32x2: case Iop_Cls32x2: case Iop_Ctz32x4: case Iop_Shl32x2: case
    Iop_Shr32x2: case Iop_Sar32x2: case Iop_Sal32x2: case Iop_Add32Fx4: case Iop_Sub32Fx4: case
    Iop_Mul32Fx4: case Iop_Div32Fx4: case Iop_Max32Fx4: case Iop_Min32Fx4: case Iop_Add32Fx2: case
    Iop_Sub32Fx2: case Iop_Abs32Fx4: case Iop_Neg32Fx4: case Iop_Sqrt32Fx4: case Iop_RoundF32x4_RM:
    case Iop_RoundF32x4_RP: case Iop_RoundF32x4_RN: case Iop_RoundF32x4_RZ: case Iop_Add32x4: case
    Iop_QAdd32Ux4: case Iop_QAdd32Sx4: case Iop_Sub32x4: case Iop_QSub32Ux4: case Iop_QSub32Sx4:
    case Iop_Mul32x4: case Iop_MulHi32Ux4: case Iop_MulHi32Sx4: case Iop_QDMulHi32Sx4: case
    Iop_QRDMulHi32Sx4: case Iop_Abs32x4: case Iop_Avg32Ux4: case Iop_Avg32Sx4: case Iop_Max32Sx4:
    case Iop_Max32Ux4: case Iop_Min32Sx4: case Iop_Min32Ux4: case Iop_Clz32x4: case Iop_Cls32x4:
    case Iop_Shl32x4: case Iop_Shr32x4: case Iop_Sar32x4: case Iop_Sal32x4: case Iop_Rol32x4: case
    Iop_Add32x8: case Iop_Sub32x8: case Iop_Max32Sx8: case Iop_Max32Ux8: case Iop_Min32Sx8: case
    Iop_Min32Ux8: case Iop_Mul32x8: case Iop_Add32Fx8: case Iop_Sub32Fx8: case Iop_Mul32Fx8: case
    Iop_Div32Fx8: case Iop_Sqrt32Fx8: case Iop_Max32Fx8: case Iop_Min32Fx8:
        return 4;
    case Iop_QAdd64Ux1: case Iop_QAdd64Sx1: case Iop_QSub64Ux1: case Iop_QSub64Sx1: case
    Iop_Clz64x2: case Iop_Ctz64x2: case Iop_Sal64x1: case Iop_Add64Fx2: case Iop_Sub64Fx2: case
    Iop_Mul64Fx2: case Iop_Div64Fx2: case Iop_Max64Fx2: case Iop_Min64Fx2: case Iop_Abs64Fx2: case
    Iop_Neg64Fx2: case Iop_Sqrt64Fx2: case Iop_Add64x2: case Iop_QAdd64Ux2: case Iop_QAdd64Sx2: case
    Iop_Sub64x2: case Iop_QSub64Ux2: case Iop_QSub64Sx2: case Iop_Abs64x2: case Iop_Avg64Ux2: case
    Iop_Avg64Sx2: case Iop_Max64Sx2: case Iop_Max64Ux2: case Iop_Min64Sx2: case Iop_Min64Ux2: case
    Iop_Shl64x2: case Iop_Shr64x2: case Iop_Sar64x2: case Iop_Sal64x2: case Iop_Rol64x2: case
    Iop_Add64x4: case Iop_Sub64x4: case Iop_Add64Fx4: case Iop_Sub64Fx4: case Iop_Mul64Fx4: case
    Iop_Div64Fx4: case Iop_Sqrt64Fx4: case Iop_Max64Fx4: case Iop_Min64Fx4:
        return 8;
    case Iop_Add128x1: case Iop_Sub128x1:
        return 16;
/* clang-format on */
