/* The beginning of a program or a library, as in its file and in memory. */
#ifndef BS_ELF_H
#define BS_ELF_H

#include "bs.h"

enum {
    ELF_64 = 2,
    MACHINE_X86_64 = 62,
    PT_LOAD = 1,
    PT_DYNAMIC = 2,
    PT_INTERP = 3,
    PT_NOTE = 4,
    PT_PHDR = 6,
    PT_GNU_RELRO = 0x6474e552,
    PF_EXECUTABLE = 1,
    PF_READABLE = 4
};

/* Elf64_Ehdr */
struct bs_elf {
    u8 magic[4], class, rest[11];
    uint16_t type, machine;
    u32 version;
    u64 entry, headers, sections;
    u32 flags;
    uint16_t size, header_size, header_count;
};

/* Elf64_Phdr */
struct bs_program_header {
    u32 type, flags;
    u64 offset, address, physical, in_file, in_memory, align;
};

static inline bool bs_is_elf(const void *text)
{
    const u8 *magic = text;
    return magic[0] == 0x7f && magic[1] == 'E' && magic[2] == 'L' && magic[3] == 'F';
}

/* The segments of an object in memory; null if its first page cannot be read, or lacks some. */
static inline const struct bs_program_header *bs_segments(const struct bs_elf *elf)
{
    if (!elf || !bs_readable(elf, BS_PAGE) || !bs_is_elf(elf) ||
        elf->header_size != sizeof(struct bs_program_header) || elf->headers >= BS_PAGE ||
        elf->header_count > (BS_PAGE - elf->headers) / sizeof(struct bs_program_header))
        return 0;
    return (const void *)((const u8 *)elf + elf->headers);
}

/* A part of an object's memory, as addresses. */
struct bs_range {
    u64 start, end;
};

/* The memory that an object's segments take. Without a loaded segment, its end is 0. */
static inline struct bs_range bs_loaded_memory(u64 base, const struct bs_program_header *segments,
                                               u32 count)
{
    struct bs_range memory = {~0ull, 0};
    for (u32 i = 0; i < count; i++) {
        u64 start = base + segments[i].address, end = start + segments[i].in_memory;
        if (segments[i].type == PT_LOAD && start < memory.start)
            memory.start = start;
        if (segments[i].type == PT_LOAD && end > memory.end)
            memory.end = end;
    }
    return memory;
}

#endif
