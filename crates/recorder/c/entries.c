/*
 * Writes jumps over the first bytes of functions of libc, which then lead to the recorder.
 *
 * Invariants:
 *
 * - This happens only while one thread exists, and with signals blocked.
 * - The code stays executable all the time. Where new code is forbidden (MDWE, a service's filter),
 *   a removed right would not come back, and libc could not run.
 * - Only code becomes writable, and only meanwhile.
 */
#include "elf.h"
#include <linux/mman.h>

static bool has(const struct bs_program_header *segment, u64 base, u64 from, u64 to)
{
    u64 at = base + segment->address;
    return segment->type == PT_LOAD && segment->flags & PF_EXECUTABLE && at <= from &&
           to <= at + segment->in_memory;
}

/* The library at this address or below it, of those that the program began with. */
static const struct bs_elf *library_below(u64 at)
{
    u64 base = 0;
    for (const struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next)
        if (l->base <= at && l->base > base)
            base = l->base;
    return (const struct bs_elf *)base;
}

/* True if all of this memory is certainly code of one library. */
static bool is_code(u64 from, u64 to)
{
    const struct bs_elf *elf = library_below(from);
    const struct bs_program_header *segments = bs_segments(elf);
    if (!segments)
        return false;
    for (u32 i = 0; i < elf->header_count; i++)
        if (has(&segments[i], (u64)elf, from, to))
            return true;
    return false;
}

static void write_jump(u8 *from, void *to)
{
    from[0] = 0xff; /* jmp *0(%rip) */
    from[1] = 0x25;
    *(u32 *)(from + 2) = 0;
    *(u64 *)(from + 6) = (u64)to;
}

/* Writes those jumps that are in this memory. */
static void write_between(struct bs_jump *jumps, u32 count, u64 low, u64 high)
{
    low &= ~(u64)(BS_PAGE - 1);
    if (bs_raw(__NR_mprotect, low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
        return;
    for (u32 i = 0; i < count; i++)
        if (jumps[i].from) {
            write_jump(jumps[i].from, jumps[i].to);
            jumps[i].written = true;
        }
    bs_raw(__NR_mprotect, low, high - low, PROT_READ | PROT_EXEC);
}

/*
 * Each change of rights costs as much as the copy of a page. So there is one for all functions,
 * unless they are in several libraries.
 */
void bs_write_jumps(struct bs_jump *jumps, u32 count)
{
    u64 low = ~0ull, high = 0;
    for (u32 i = 0; i < count; i++) {
        u64 from = (u64)jumps[i].from;
        if (from && from < low)
            low = from;
        if (from && from + BS_JUMP_SIZE > high)
            high = from + BS_JUMP_SIZE;
    }
    if (!high)
        return;
    if (high - low <= BS_PAGE || is_code(low, high))
        return write_between(jumps, count, low, high);
    for (u32 i = 0; i < count; i++)
        if (jumps[i].from)
            write_between(&jumps[i], 1, (u64)jumps[i].from, (u64)jumps[i].from + BS_JUMP_SIZE);
}
