/* Access to a library's dynamic symbols in the tables that the loader mapped (symbols.c). */
#ifndef BS_SYMBOLS_H
#define BS_SYMBOLS_H

#include "bs.h"

#pragma GCC visibility push(hidden)

enum { STT_FUNC = 2, HIDDEN_VERSION = 0x8000 };

/* Elf64_Sym */
struct bs_symbol {
    u32 name;
    u8 info, other;
    uint16_t section;
    u64 value, size;
};

/* Elf64_Rela */
struct bs_relocation {
    u64 offset;
    u32 type, symbol;
    s64 addend;
};

struct bs_symbols {
    const u32 *hash; /* DT_GNU_HASH */
    const struct bs_symbol *table;
    const char *names;
    const uint16_t *versions;
    const struct bs_relocation *jumps; /* DT_JMPREL */
    u64 jumps_size;                    /* in bytes */
    const char *library;               /* DT_SONAME; null if there is none */
};

/* False: the library has no GNU hash table. */
bool bs_find_symbols(const struct bs_link_map *library, struct bs_symbols *symbols);

/* The hash of a name in such a table. */
u32 bs_symbol_hash(const char *name);

/*
 * The symbols whose hashes have one bucket. `first` is the index of the first one, or 0 for none.
 * There is a link for each symbol, and that of the last one has bit 0.
 */
struct bs_bucket {
    u32 first;
    const u32 *links;
};
struct bs_bucket bs_bucket(const struct bs_symbols *symbols, u32 hash);

/* The index of the default version of a defined symbol, or 0. */
u32 bs_symbol(const struct bs_symbols *symbols, const char *name, u32 hash);

#pragma GCC visibility pop

#endif
