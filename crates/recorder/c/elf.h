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

#endif
