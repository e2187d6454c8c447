/*
 * Reads the tables of loaded objects: their dynamic sections, and the versions of their symbols.
 *
 * In: the memory of an object that the loader does not unload meanwhile.
 */
#include "objects.h"

enum {
    DT_NULL = 0,
    DT_STRTAB = 5,
    DT_RELA = 7,
    DT_RELASZ = 8,
    DT_SONAME = 14,
    DT_RELACOUNT = 0x6ffffff9,
    DT_VERDEF = 0x6ffffffc,
    DT_VERDEFNUM = 0x6ffffffd,
    DT_VERNEED = 0x6ffffffe,
    DT_VERNEEDNUM = 0x6fffffff
};
enum { ANY_VERSION = 1 }; /* the highest index that names no version */

/* Elf64_Verdef */
struct version_definition {
    uint16_t version, flags, index, count;
    u32 hash, aux, next;
};
/* Elf64_Verneed, Elf64_Vernaux */
struct version_need {
    uint16_t version, count;
    u32 file, aux, next;
};
struct needed_version {
    u32 hash;
    uint16_t flags, index;
    u32 name, next;
};

bool bs_read_object(struct bs_object *object, u64 base, const u64 *dynamic)
{
    u64 soname = 0;
    *object = (struct bs_object){.base = base};
    struct bs_link_map library = {.base = base, .dynamic = (u64 *)dynamic};
    if (!dynamic || !bs_find_symbols(&library, &object->symbols))
        return false;
    for (const u64 *d = dynamic; d[0] != DT_NULL; d += 2) {
        /* Some loaders have added the base to the addresses in the dynamic section. */
        u64 placed = d[1] < base ? d[1] + base : d[1];
        switch (d[0]) {
        case DT_RELA: object->relocations = (const struct bs_relocation *)placed; break;
        case DT_RELASZ: object->relocations_size = d[1]; break;
        case DT_RELACOUNT: object->relative_count = d[1]; break;
        case DT_SONAME: soname = d[1]; break;
        case DT_VERDEF: object->defined = placed; break;
        case DT_VERDEFNUM: object->defined_count = d[1]; break;
        case DT_VERNEED: object->needed = placed; break;
        case DT_VERNEEDNUM: object->needed_count = d[1]; break;
        }
    }
    if (soname)
        object->soname = object->symbols.names + soname;
    return true;
}

void bs_read_segments(struct bs_object *object, const struct bs_description *description)
{
    const struct bs_program_header *segments = description->segments;
    object->memory = bs_loaded_memory(object->base, segments, description->segment_count);
    for (u32 i = 0; i < description->segment_count; i++) {
        u64 start = object->base + segments[i].address, end = start + segments[i].in_memory;
        if (segments[i].type == PT_GNU_RELRO)
            object->read_only =
                (struct bs_range){start & ~(u64)(BS_PAGE - 1), end & ~(u64)(BS_PAGE - 1)};
    }
}

u32 bs_wanted_version(const struct bs_object *object, u32 symbol)
{
    if (!object->symbols.versions)
        return 0;
    u32 index = object->symbols.versions[symbol] & ~HIDDEN_VERSION;
    if (index <= ANY_VERSION)
        return 0;
    const struct version_need *need = (const struct version_need *)object->needed;
    for (u64 i = 0; need && i < object->needed_count; i++) {
        const struct needed_version *one =
            (const struct needed_version *)((const u8 *)need + need->aux);
        for (u32 j = 0; j < need->count; j++) {
            if (one->index == index)
                return one->hash;
            one = (const struct needed_version *)((const u8 *)one + one->next);
        }
        need = (const struct version_need *)((const u8 *)need + need->next);
    }
    const struct version_definition *own = (const struct version_definition *)object->defined;
    for (u64 i = 0; own && i < object->defined_count; i++) {
        if (own->index == index)
            return own->hash;
        own = (const struct version_definition *)((const u8 *)own + own->next);
    }
    return 0;
}

/* True if a definition has the version. */
static bool has_version(const struct bs_object *object, u32 symbol, u32 version)
{
    if (!object->symbols.versions)
        return true;
    u32 index = object->symbols.versions[symbol];
    if (!version)
        return !(index & HIDDEN_VERSION);
    const struct version_definition *own = (const struct version_definition *)object->defined;
    for (u64 i = 0; own && i < object->defined_count; i++) {
        if (own->index == (index & ~HIDDEN_VERSION))
            return own->hash == version;
        own = (const struct version_definition *)((const u8 *)own + own->next);
    }
    return false;
}

u64 bs_definition(const struct bs_object *object, const char *name, u32 hash, u32 version)
{
    const struct bs_symbols *symbols = &object->symbols;
    struct bs_bucket bucket = bs_bucket(symbols, hash);
    const u32 *link = bucket.links;
    for (u32 i = bucket.first; i; i = *link++ & 1 ? 0 : i + 1) {
        const struct bs_symbol *symbol = &symbols->table[i];
        bool fits = (*link | 1) == (hash | 1) && symbol->section &&
                    bs_same(symbols->names + symbol->name, name);
        if (fits && has_version(object, i, version))
            return object->base + symbol->value;
    }
    return 0;
}
