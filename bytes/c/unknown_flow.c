/* Tables of unknown instructions: how each uses its operands. See unknown.h.
 *
 * The tables follow the opcode maps of Intel's manual (volume 2, appendix A, and chapter 5 for
 * EVEX). An instruction that they do not have mixes its vector registers: all that it writes is of
 * all that it reads. That is never too little. With an operand in memory, it is `POSSIBLE`, because
 * the size of the operand and the unit of its displacement are not known. */
#include "unknown.h"

static Bool is_one_of(const UChar *list, UInt count, UChar opcode)
{
    for (UInt i = 0; i < count; i++) {
        if (list[i] == opcode)
            return True;
    }
    return False;
}
#define IN(list, opcode) is_one_of(list, sizeof(list), opcode)

static Bool decides(const Unknown *u)
{
    static const UChar first[] = {0x2e, 0x2f, 0x64, 0x65, 0x66, 0x74, 0x75, 0x76, 0xc2};
    static const UChar third[] = {0x1e, 0x1f, 0x3e, 0x3f, 0x66, 0x67, 0xc2};
    static const UChar of_masks[] = {0x28, 0x29, 0x38, 0x39};
    switch (u->map) {
    case 1: return IN(first, u->opcode);
    case 2:
        if (u->prefix == 0xf3 && IN(of_masks, u->opcode))
            return True;
        return u->opcode == 0x26 || u->opcode == 0x27 || u->opcode == 0x68 ||
               (u->prefix == 0x66 && (u->opcode == 0x29 || u->opcode == 0x37));
    case 3: return IN(third, u->opcode);
    default: return False;
    }
}

/* Whole vectors that are moved. */
static Flow move_of(const Unknown *u)
{
    if (u->map == 2)
        return u->opcode == 0x2a && u->prefix == 0x66 ? MOVE_TO_REG : POSSIBLE;
    if (u->map != 1)
        return POSSIBLE;
    switch (u->opcode) {
    case 0x6f: return u->prefix ? MOVE_TO_REG : POSSIBLE;
    case 0x7f: return u->prefix ? MOVE_TO_RM : POSSIBLE;
    case 0x10:
    case 0x28: return is_scalar(u) ? POSSIBLE : MOVE_TO_REG;
    case 0x11:
    case 0x29:
    case 0x2b: return is_scalar(u) ? POSSIBLE : MOVE_TO_RM;
    case 0xe7: return u->prefix == 0x66 ? MOVE_TO_RM : POSSIBLE;
    default: return POSSIBLE;
    }
}

UInt lane_of(const Unknown *u)
{
    static const UChar bytes[] = {0xda, 0xde, 0xd8, 0xdc, 0xe0, 0xe8, 0xec, 0xf8, 0xfc};
    static const UChar words[] = {0xd5, 0xd9, 0xdd, 0xe3, 0xe4, 0xe5,
                                  0xe9, 0xea, 0xed, 0xee, 0xf9, 0xfd};
    static const UChar doubles[] = {0xfa, 0xfe};
    static const UChar quads[] = {0xd4, 0xfb, 0xf4};
    static const UChar by_width[] = {0xdb, 0xdf, 0xeb, 0xef};
    static const UChar floats[] = {0x51, 0x54, 0x55, 0x56, 0x57, 0x58,
                                   0x59, 0x5c, 0x5d, 0x5e, 0x5f};
    static const UChar second[] = {0x14, 0x15, 0x2c, 0x39, 0x3b, 0x3d, 0x3f,
                                   0x40, 0x45, 0x46, 0x47, 0x64, 0x65};
    const UInt width = u->wide_elements ? 8 : 4;
    if (u->map == 1 && IN(floats, u->opcode))
        return is_scalar(u) ? 0 : u->prefix == 0x66 ? 8 : 4;
    if (u->map == 3)
        return u->opcode == 0x25 ? width : 0;
    if (u->prefix != 0x66)
        return 0;
    if (u->map == 1)
        return IN(bytes, u->opcode)      ? 1
               : IN(words, u->opcode)    ? 2
               : IN(doubles, u->opcode)  ? 4
               : IN(quads, u->opcode)    ? 8
               : IN(by_width, u->opcode) ? width
                                         : 0;
    if (u->map != 2)
        return 0;
    /* Fused multiply-add of vectors has the even opcodes. */
    UInt low = u->opcode & 15, high = u->opcode & 0xf0;
    if ((high == 0x90 || high == 0xa0 || high == 0xb0) && low >= 6 && (low < 8 || low % 2 == 0))
        return width;
    if (u->opcode == 0x66)
        return u->wide_elements ? 2 : 1;
    return IN(second, u->opcode) ? width : 0;
}

void elements_of_conversion(const Unknown *u, UInt *narrow, UInt *wide)
{
    static const UChar from[] = {1, 1, 1, 2, 2, 4}, to[] = {2, 4, 8, 4, 8, 8};
    *narrow = from[u->opcode & 7];
    *wide = to[u->opcode & 7];
}

static Flow conversion_of(const Unknown *u)
{
    UInt low = u->opcode & 15, high = u->opcode & 0xf0;
    if (u->map != 2 || low > 5 || high < 0x10 || high > 0x30)
        return POSSIBLE;
    if (u->prefix == 0xf3)
        return CONVERT_TO_RM;
    return u->prefix == 0x66 && high >= 0x20 ? CONVERT_TO_REG : POSSIBLE;
}

UInt repeated_bytes(const Unknown *u)
{
    if (u->map != 2 || u->prefix != 0x66)
        return 0;
    switch (u->opcode) {
    case 0x78: return 1;
    case 0x79: return 2;
    case 0x18:
    case 0x58: return 4;
    case 0x19:
    case 0x59: return 8;
    case 0x1a:
    case 0x5a: return 16;
    case 0x1b:
    case 0x5b: return 32;
    default: return 0;
    }
}

/* Instructions that mix, and whose operand in memory is a whole vector. */
static Bool mixes_whole_memory(const Unknown *u)
{
    static const UChar first[] = {0x14, 0x15, 0x60, 0x61, 0x62, 0x63, 0x67, 0x68, 0x69,
                                  0x6a, 0x6b, 0x6c, 0x6d, 0x70, 0xc6, 0xf5, 0xf6};
    static const UChar second[] = {0x00, 0x04, 0x0b, 0x0c, 0x0d, 0x16, 0x28, 0x2b,
                                   0x36, 0x75, 0x76, 0x77, 0x7d, 0x7e, 0x7f, 0x8d};
    static const UChar third[] = {0x00, 0x01, 0x03, 0x04, 0x05, 0x0f, 0x23, 0x43};
    switch (u->map) {
    case 1: return IN(first, u->opcode);
    case 2: return u->prefix == 0x66 && IN(second, u->opcode);
    case 3: return IN(third, u->opcode);
    default: return False;
    }
}

/* Shifts by a constant write vvvv. */
static Flow shift_of(const Unknown *u)
{
    UInt kind = u->modrm >> 3 & 7;
    if (u->opcode == 0x73 && (kind == 3 || kind == 7))
        return MIX_TO_VVVV;
    return LANES_TO_VVVV;
}

/* Between general and vector registers, or the rest of a vector. */
static Flow flow_of_registers(const Unknown *u)
{
    static const UChar to_rm[] = {0x19, 0x1b, 0x1d, 0x39, 0x3b};
    const UChar op = u->opcode;
    switch (u->map) {
    case 1:
        if (op == 0x6e || op == 0xc4 || (is_scalar(u) && (op == 0x2a || op == 0x7b)))
            return FROM_GENERAL_RM;
        if (op == 0x7e && u->prefix == 0x66)
            return TO_GENERAL_RM;
        if (op == 0xc5 || (is_scalar(u) && (op == 0x2c || op == 0x2d || op == 0x78 || op == 0x79)))
            return TO_GENERAL_REG;
        return op == 0x11 || op == 0xd6 ? MIX_TO_RM : MIX_TO_REG;
    case 2:
        if (op >= 0x7a && op <= 0x7c)
            return FROM_GENERAL_RM;
        return op == 0x63 || op == 0x8a || op == 0x8b ? MIX_TO_RM : MIX_TO_REG;
    case 3:
        if (op == 0x20 || op == 0x22)
            return FROM_GENERAL_RM;
        if (op >= 0x14 && op <= 0x17)
            return TO_GENERAL_RM;
        return IN(to_rm, op) ? MIX_TO_RM : MIX_TO_REG;
    default: return MIX_TO_REG;
    }
}

/* Instructions of masks have VEX, and opcodes of their own. */
static Bool is_of_masks(const Unknown *u)
{
    UInt low = u->opcode & 15, high = u->opcode & 0xf0;
    if (u->map == 1)
        return (high == 0x40 && low >= 1 && low <= 11) || (high == 0x90 && low < 10 && low != 4);
    return u->map == 3 && high == 0x30 && low < 4;
}

Flow flow_of(const Unknown *u)
{
    if (u->encoding == VEX && is_of_masks(u))
        return DECIDES;
    if (u->encoding == LEGACY) {
        /* SHA and GFNI have vectors; what is left has general registers. */
        Bool vectors = (u->map == 2 && u->opcode >= 0xc8 && u->opcode <= 0xcf) ||
                       (u->map == 3 && u->opcode >= 0xcc);
        return vectors && !u->has_memory ? MIX_TO_REG : POSSIBLE;
    }
    if (u->encoding == EVEX && decides(u))
        return DECIDES;
    if (u->encoding == EVEX && move_of(u) != POSSIBLE)
        return move_of(u);
    if (u->encoding == EVEX && u->map > 3)
        return POSSIBLE;
    if (u->encoding == EVEX && lane_of(u))
        return u->map == 2 && u->opcode >= 0x64 && u->opcode <= 0x66 ? BLEND : LANES;
    if (u->encoding == EVEX && conversion_of(u) != POSSIBLE)
        return conversion_of(u);
    if (u->encoding == EVEX && repeated_bytes(u))
        return REPEAT_TO_REG;
    if (u->has_memory)
        return u->encoding == EVEX && mixes_whole_memory(u) ? MIX_TO_REG : POSSIBLE;
    if (u->encoding == EVEX && u->map == 1 && u->opcode >= 0x71 && u->opcode <= 0x73)
        return shift_of(u);
    return flow_of_registers(u);
}

Bool reads_destination(const Unknown *u)
{
    static const UChar second[] = {0x50, 0x51, 0x52, 0x53, 0x70, 0x71, 0x72,
                                   0x73, 0x75, 0x76, 0x77, 0x7d, 0x7e, 0x7f};
    if (u->encoding == LEGACY || (u->mask && !u->zeroes))
        return True;
    if (u->map == 2)
        return IN(second, u->opcode) || (u->opcode >= 0x96 && u->opcode <= 0xbf);
    return u->map == 3 && (u->opcode == 0x25 || u->opcode == 0x54 || u->opcode == 0x55);
}

Bool has_second_operand(const Unknown *u)
{
    static const UChar first[] = {0x5b, 0x6e, 0x6f, 0x70, 0x78, 0x79, 0x7a, 0x7e, 0xe6};
    static const UChar of_scalars[] = {0x51, 0x5a, 0x7b};
    static const UChar second[] = {0x13, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20,
                                   0x21, 0x22, 0x23, 0x24, 0x25, 0x30, 0x31, 0x32, 0x33, 0x34,
                                   0x35, 0x42, 0x44, 0x4c, 0x4e, 0x54, 0x55, 0x58, 0x59, 0x5a,
                                   0x5b, 0x62, 0x78, 0x79, 0x7a, 0x7b, 0x7c, 0x88, 0x89, 0xc4};
    static const UChar third[] = {0x00, 0x01, 0x04, 0x05, 0x08, 0x09, 0x26, 0x56};
    if (u->encoding == LEGACY)
        return False;
    if (u->vvvv != 0)
        return True;
    switch (u->map) {
    case 1:
        if (u->opcode == 0x12 || u->opcode == 0x16)
            return !is_scalar(u);
        if (IN(of_scalars, u->opcode))
            return is_scalar(u);
        return !IN(first, u->opcode);
    case 2: return !IN(second, u->opcode);
    case 3: return !IN(third, u->opcode);
    default: return True;
    }
}

Bool is_constant(const Unknown *u)
{
    static const UChar of_equals[] = {0xdf, 0xef, 0xf8, 0xf9, 0xfa, 0xfb};
    if (u->map == 3 && u->opcode == 0x25) {
        UChar table = *(const UChar *)(u->address + u->length - 1);
        return table == 0 || table == 0xff;
    }
    return u->map == 1 && !u->has_memory && u->vvvv == u->rm && IN(of_equals, u->opcode);
}
