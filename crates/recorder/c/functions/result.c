/*
 * Finds the result of a function in the hook that gcc calls before the function returns.
 *
 * gcc keeps the result in a register or on the stack while the hook runs, and moves it to rax or
 * xmm0 afterwards. DWARF does not describe that. So the instructions after the call are read: up to
 * the first that writes the result. Any instruction of another form ends the search.
 */
#include "functions.h"

enum { STEPS = 8, RAX = 0, RBP = 6, RSP = 7 };

/* DWARF's numbers of the registers, by the processor's. */
static const u8 dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

/* An instruction with a register and another operand, which is a register or on the stack. */
struct operands {
    u8 reg;        /* the first one */
    u8 other;      /* the other register, if it is one */
    bool is_stack; /* else `address` has the operand */
    u64 address;
    u32 size; /* bytes of the encoding */
};

static bool read_operands(const u8 *at, u8 rex, const u64 *general, u64 stack,
                          struct operands *found)
{
    u8 mode = at[0] >> 6, low = at[0] & 7;
    found->reg = (u8)((at[0] >> 3 & 7) | (rex & 4 ? 8 : 0));
    found->other = (u8)(low | (rex & 1 ? 8 : 0));
    found->is_stack = mode != 3;
    found->size = 1;
    if (mode == 3)
        return true;
    if (rex & 1 || (mode == 0 && low == 5))
        return false;
    u64 base;
    if (low == 4 && at[1] == 0x24) {
        base = stack;
        found->size = 2;
    } else if (low == 5) {
        base = general[RBP];
    } else {
        return false;
    }
    s32 distance = 0;
    if (mode == 1)
        distance = (signed char)at[found->size];
    else if (mode == 2)
        bs_copy(&distance, at + found->size, sizeof distance);
    found->size += mode == 1 ? 1 : mode == 2 ? 4 : 0;
    found->address = base + (u64)(s64)distance;
    return true;
}

static u64 operand(const struct operands *of, const u64 *general, bool is_wide)
{
    u64 value = 0;
    if (!of->is_stack)
        value = general[dwarf[of->other]];
    else
        bs_copy(&value, (const void *)of->address, is_wide ? 8 : 4);
    return is_wide ? value : (u32)value;
}

/* A move to xmm0. Returns false if the instruction is another one. */
static bool vector_move(const u8 *at, u8 prefix, u8 rex, const u64 *general, u64 stack, u64 *result)
{
    struct operands of;
    if (at[0] != 0x0f || !read_operands(at + 2, rex, general, stack, &of) || of.reg != 0)
        return false;
    u8 code = at[1];
    bool is_scalar = code == 0x10 && (prefix == 0xf2 || prefix == 0xf3) && of.is_stack;
    bool is_whole =
        (code == 0x28 || code == 0x6f || (code == 0x7e && prefix == 0xf3)) && of.is_stack;
    bool is_general = code == 0x6e && prefix == 0x66;
    if (!is_scalar && !is_whole && !is_general)
        return false;
    bool is_wide = is_general ? rex & 8 : !(is_scalar && prefix == 0xf3);
    *result = operand(&of, general, is_wide);
    return true;
}

/* A move to rax, an address, or a constant. Returns its length; 0 if it is another instruction. */
static u32 general_move(const u8 *at, u8 rex, const u64 *general, u64 stack, u64 *result)
{
    struct operands of;
    s32 number;
    if (at[0] == 0xb8 && !(rex & 9)) {
        bs_copy(&number, at + 1, sizeof number);
        *result = (u32)number;
        return 5;
    }
    if (at[0] == 0x31 && at[1] == 0xc0) {
        *result = 0;
        return 2;
    }
    if (at[0] == 0x8d && !(rex & 4)) { /* lea */
        if ((at[1] & 0xf8) == 0x40 && (at[1] & 7) != 4) {
            u32 base = (at[1] & 7) | (rex & 1 ? 8 : 0);
            *result = general[dwarf[base]] + (u64)(s64)(signed char)at[2];
        } else if (at[1] == 5) { /* relative to the next instruction */
            bs_copy(&number, at + 2, sizeof number);
            *result = (u64)at + 6 + (u64)(s64)number;
        } else {
            return 0;
        }
        *result = rex & 8 ? *result : (u32)*result;
        return at[1] == 5 ? 6 : 3;
    }
    if ((at[0] != 0x89 && at[0] != 0x8b) || !read_operands(at + 1, rex, general, stack, &of))
        return 0;
    if (at[0] == 0x89) { /* from the first operand to the other one */
        if (of.is_stack || of.other != 0)
            return 0;
        of.other = of.reg;
    } else if (of.reg != 0) {
        return 0;
    }
    *result = operand(&of, general, rex & 8);
    return 1 + of.size;
}

BS_COLD bool bs_result_after(u64 pc, const struct bs_registers *registers, bool is_vector,
                             u64 *result)
{
    const u8 *at = (const u8 *)pc;
    u64 general[16];
    bs_copy(general, registers->general, sizeof general);
    for (u32 i = 0; i < STEPS; i++) {
        u8 prefix = 0, rex = 0;
        const u8 *code = at;
        if (*code == 0x66 || *code == 0xf2 || *code == 0xf3)
            prefix = *code++;
        if ((*code & 0xf0) == 0x40)
            rex = *code++;
        u64 stack = general[RSP];
        if (is_vector && vector_move(code, prefix, rex, general, stack, result))
            return true;
        u32 moved = prefix ? 0 : general_move(code, rex, general, stack, result);
        if (moved && !is_vector)
            return true;
        if (moved) { /* on its way to a vector */
            general[RAX] = *result;
            at = code + moved;
        } else if (rex == 0x48 && code[0] == 0x83 && code[1] == 0xc4) { /* add $N, %rsp */
            general[RSP] = stack + (u64)(s64)(signed char)code[2];
            at = code + 3;
        } else if (prefix == 0 && rex == 0 && code[0] == 0x90) {
            at = code + 1;
        } else {
            return false;
        }
    }
    return false;
}
