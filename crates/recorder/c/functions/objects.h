/* A loaded object, and its tables of symbols and relocations (objects.c). */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "functions.h"

#include "../elf.h"
#include "../symbols.h"

#pragma GCC visibility push(hidden)

/* The description of a loaded object that `dl_iterate_phdr` passes. */
struct bs_description {
    u64 base;
    const char *name;
    const struct bs_program_header *segments;
    uint16_t segment_count;
    u64 adds, removals; /* loads and unloads since the start */
};

struct bs_object {
    u64 base;
    bool is_apart; /* in a namespace of its own (namespaces.c) */
    struct bs_range memory;
    struct bs_range read_only; /* after relocation */
    const char *soname;        /* null without one */
    struct bs_symbols symbols;
    u64 defined, needed; /* addresses of the definitions and needs of versions */
    u64 defined_count, needed_count;
    const struct bs_relocation *relocations; /* DT_RELA */
    u64 relocations_size, relative_count;
};

/* Reads the tables of an object. False: it has no dynamic symbols. */
bool bs_read_object(struct bs_object *object, u64 base, const u64 *dynamic);
void bs_read_segments(struct bs_object *object, const struct bs_description *description);

/* Calls a function for each object that `dlmopen` loaded. */
void bs_each_apart(void (*function)(const struct bs_description *));
/* Whether such an object has the base. */
bool bs_is_apart(u64 base);

/* The hash of the version that an object wants of a symbol; 0 for any. */
u32 bs_wanted_version(const struct bs_object *object, u32 symbol);
/* The address at which an object defines a symbol in a version, or 0. */
u64 bs_definition(const struct bs_object *object, const char *name, u32 hash, u32 version);

static inline bool bs_is_in(u64 address, struct bs_range range)
{
    return address - range.start < range.end - range.start;
}

#pragma GCC visibility pop

#endif
