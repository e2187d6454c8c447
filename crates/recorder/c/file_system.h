/* The answer of `statfs` about a file system. */
#ifndef FILE_SYSTEM_H
#define FILE_SYSTEM_H

#include "bs.h"

/* The kernel's `struct statfs`. */
struct bs_file_system {
    s64 type, block;
    u64 blocks, free, available, files, free_files;
    u32 id[2];
    s64 name_length, fragment, flags, spare[4];
};

#endif
