/*
 * Switches on the sleds that `clang -fxray-instrument` leaves in functions: a few bytes at each
 * entry and exit that do nothing.
 *
 * In: the sleds of the functions that are asked for. Out: those sleds call bs_function_called and
 * bs_function_returned.
 *
 * Invariant: the program has one thread and has not begun, so no code runs in the pages that are
 * changed.
 */
#include "functions.h"
#include <linux/mman.h>

extern const u8 bs_sled_entry[], bs_sled_exit[], bs_sled_tail[];
extern const u8 bs_sled_entry_with[], bs_sled_exit_with[]; /* if arguments are recorded */

/* Kinds of sleds, as in the compiler's table. */
enum { ENTRY = 0, EXIT = 1, TAIL = 2, ENTRY_WITH_ARGUMENTS = 3 };
enum { JUMP_SIZE = 16, STEP = 1 << 16, TRIES = 4096 };

static void put_jump(u8 *at, const u8 *to)
{
    static const u8 jump[6] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    u64 address = (u64)to;
    bs_copy(at, jump, sizeof jump);
    bs_copy(at + sizeof jump, &address, sizeof address);
}

/* A sled reaches 2 GB far. So the jumps to the recorder lie in a page near the code. */
static u8 *make_jumps(u64 code, bool has_values)
{
    for (u64 i = 1; i <= TRIES; i++) {
        u64 wanted = (code & ~(u64)(STEP - 1)) - i * STEP;
        if (wanted > code || wanted < STEP)
            break;
        s64 at = bs_raw(__NR_mmap, wanted, BS_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (is_error(at))
            continue;
        u8 *jumps = (u8 *)at;
        put_jump(jumps, has_values ? bs_sled_entry_with : bs_sled_entry);
        put_jump(jumps + JUMP_SIZE, has_values ? bs_sled_exit_with : bs_sled_exit);
        put_jump(jumps + 2 * JUMP_SIZE, bs_sled_tail);
        if (at == (s64)wanted && bs_raw(__NR_mprotect, at, BS_PAGE, PROT_READ | PROT_EXEC) >= 0)
            return jumps;
        bs_raw(__NR_munmap, at, BS_PAGE);
        return 0;
    }
    return 0;
}

static s64 protect(u64 start, u64 size, int how)
{
    u64 first = start & ~(u64)(BS_PAGE - 1);
    return bs_raw(__NR_mprotect, first, start + size - first, how);
}

/* `mov $number, %r10d`, then a call or a jump. */
static void patch(u8 *sled, u32 number, u8 instruction, const u8 *to)
{
    u32 distance = (u32)(to - (sled + 11));
    sled[0] = 0x41;
    sled[1] = 0xba;
    bs_copy(sled + 2, &number, sizeof number);
    sled[6] = instruction;
    bs_copy(sled + 7, &distance, sizeof distance);
}

BS_COLD void bs_switch_on(const struct bs_module *module, u64 bias, const struct bs_sled *sleds,
                          u32 count)
{
    u8 *jumps = make_jumps(module->start, module->table);
    if (!jumps || protect(module->start, module->size, PROT_READ | PROT_WRITE) < 0)
        return;
    for (u32 i = 0; i < count; i++) {
        u64 at = bias + sleds[i].address;
        if (at - module->start >= module->size - 11)
            continue;
        u8 *sled = (u8 *)at;
        /* Other bytes than the compiler leaves: something else has changed them. */
        bool jumps_over = sled[0] == 0xeb && sled[1] == 9, returns = sled[0] == 0xc3;
        if (sleds[i].kind == EXIT && returns)
            patch(sled, sleds[i].number, 0xe9, jumps + JUMP_SIZE);
        else if (sleds[i].kind == TAIL && jumps_over)
            patch(sled, sleds[i].number, 0xe8, jumps + 2 * JUMP_SIZE);
        else if ((sleds[i].kind == ENTRY || sleds[i].kind == ENTRY_WITH_ARGUMENTS) && jumps_over)
            patch(sled, sleds[i].number, 0xe8, jumps);
    }
    protect(module->start, module->size, PROT_READ | PROT_EXEC);
}
