/*
 * Objects in namespaces of their own: those that `dlmopen` loads. `dl_iterate_phdr` passes only the
 * objects of its caller's namespace.
 *
 * In: the loader's record for debuggers, which lists all namespaces since glibc 2.35. Out: a
 * description of each object that is not in the program's namespace.
 *
 * Invariant: the caller holds the loader's lock, so that the lists do not change.
 */
#include "objects.h"

/* The loader's record of a namespace (struct r_debug_extended). */
struct namespace
{
    int version;
    const struct bs_link_map *first;
    u64 breakpoint;
    u64 state;
    u64 loader;
    const struct namespace *next; /* from version 2 on */
};

enum { FIRST_WITH_NEXT = 2 };

static const struct namespace *first_other(void)
{
    const struct namespace *own = bs_next_or_null("_r_debug");
    return own && own->version >= FIRST_WITH_NEXT ? own->next : 0;
}

static bool describe(const struct bs_link_map *object, struct bs_description *description)
{
    const struct bs_elf *elf = (const struct bs_elf *)object->base;
    if (!elf || !object->dynamic || !bs_is_elf(elf) ||
        elf->header_size != sizeof(struct bs_program_header))
        return false;
    *description = (struct bs_description){
        .base = object->base,
        .name = object->name,
        .segments = (const struct bs_program_header *)(object->base + elf->headers),
        .segment_count = elf->header_count,
    };
    return true;
}

void bs_each_apart(void (*function)(const struct bs_description *))
{
    struct bs_description description;
    for (const struct namespace *n = first_other(); n; n = n->next)
        for (const struct bs_link_map *l = n->first; l; l = l->next)
            if (describe(l, &description))
                function(&description);
}

bool bs_is_apart(u64 base)
{
    for (const struct namespace *n = first_other(); n; n = n->next)
        for (const struct bs_link_map *l = n->first; l; l = l->next)
            if (l->base == base)
                return true;
    return false;
}
