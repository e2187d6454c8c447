/* Reads a library's dynamic symbols from the tables that the loader mapped. */
#include "symbols.h"

enum {
    DT_NULL = 0,
    DT_PLTRELSZ = 2,
    DT_STRTAB = 5,
    DT_SYMTAB = 6,
    DT_SONAME = 14,
    DT_JMPREL = 23,
    DT_GNU_HASH = 0x6ffffef5,
    DT_VERSYM = 0x6ffffff0
};

/*
 * Returns a mapped address. Some loaders have added the base to the addresses in the dynamic
 * section, some have not.
 */
static const void *placed(const struct bs_link_map *library, u64 address)
{
    return (const void *)(address < library->base ? address + library->base : address);
}

bool bs_find_symbols(const struct bs_link_map *library, struct bs_symbols *symbols)
{
    u64 name = 0; /* the first string of the table is empty */
    *symbols = (struct bs_symbols){0};
    for (const u64 *d = library->dynamic; d && d[0] != DT_NULL; d += 2)
        switch (d[0]) {
        case DT_GNU_HASH: symbols->hash = placed(library, d[1]); break;
        case DT_SYMTAB: symbols->table = placed(library, d[1]); break;
        case DT_STRTAB: symbols->names = placed(library, d[1]); break;
        case DT_SONAME: name = d[1]; break;
        case DT_VERSYM: symbols->versions = placed(library, d[1]); break;
        case DT_JMPREL: symbols->jumps = placed(library, d[1]); break;
        case DT_PLTRELSZ: symbols->jumps_size = d[1]; break;
        }
    if (name && symbols->names)
        symbols->library = symbols->names + name;
    const u32 *hash = symbols->hash;
    return hash && symbols->table && symbols->names && hash[0] && hash[2];
}

u32 bs_symbol_hash(const char *name)
{
    u32 hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (u8)*c;
    return hash;
}

/*
 * The Bloom filter at the table's beginning is checked first: it excludes most absent symbols.
 */
struct bs_bucket bs_bucket(const struct bs_symbols *symbols, u32 hash)
{
    const u32 *table = symbols->hash;
    u32 buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const u64 *filter = (const u64 *)(table + 4);
    u64 bits = 1ull << (hash % 64) | 1ull << ((hash >> shift) % 64);
    if ((filter[hash / 64 % words] & bits) != bits)
        return (struct bs_bucket){0};
    const u32 *bucket = (const u32 *)(filter + words), *chain = bucket + buckets;
    u32 i = bucket[hash % buckets];
    return i < first ? (struct bs_bucket){0} : (struct bs_bucket){i, chain + (i - first)};
}

u32 bs_symbol(const struct bs_symbols *symbols, const char *name, u32 hash)
{
    struct bs_bucket bucket = bs_bucket(symbols, hash);
    const u32 *link = bucket.links;
    for (u32 i = bucket.first; i; i = *link++ & 1 ? 0 : i + 1) {
        const struct bs_symbol *symbol = &symbols->table[i];
        bool fits = (*link | 1) == (hash | 1) && bs_same(symbols->names + symbol->name, name);
        bool hidden = symbols->versions && symbols->versions[i] & HIDDEN_VERSION;
        if (fits && symbol->section && !hidden)
            return i;
    }
    return 0;
}
