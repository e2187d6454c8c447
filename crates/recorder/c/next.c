/*
 * What is needed of the program's C library: its own functions behind our wrappers, errno, cancellation.
 *
 * They are looked up here and not by `dlsym`: that takes the loader's lock, which a signal handler, or the child of a program with
 * threads, may find taken for ever; and it costs a microsecond each time. `dlsym` is left for what is in no library that the
 * program began with.
 */
#include "bs.h"

extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern u64 _DYNAMIC[];

/* ---- the loader's tables --------------------------------------------------------------------------------------------- */

enum {
    DT_NULL = 0,
    DT_STRTAB = 5,
    DT_SYMTAB = 6,
    DT_GNU_HASH = 0x6ffffef5,
    DT_VERSYM = 0x6ffffff0
};
enum { STT_FUNC = 2, HIDDEN_VERSION = 0x8000 };

struct symbol {
    u32 name;
    u8 info, other;
    uint16_t section;
    u64 value, size;
};

struct tables {
    const u32 *hash;
    const struct symbol *symbols;
    const char *names;
    const uint16_t *versions;
};

/* Some loaders have added the base to the addresses in the dynamic section, some not. */
static const void *placed(const struct bs_link_map *library, u64 address)
{
    return (const void *)(address < library->base ? address + library->base : address);
}

static bool find_tables(const struct bs_link_map *library, struct tables *t)
{
    *t = (struct tables){0};
    for (const u64 *d = library->dynamic; d && d[0] != DT_NULL; d += 2)
        switch (d[0]) {
        case DT_GNU_HASH: t->hash = placed(library, d[1]); break;
        case DT_SYMTAB: t->symbols = placed(library, d[1]); break;
        case DT_STRTAB: t->names = placed(library, d[1]); break;
        case DT_VERSYM: t->versions = placed(library, d[1]); break;
        }
    return t->hash && t->symbols && t->names && t->hash[0] && t->hash[2];
}

/* A symbol's index in its library, or 0: the table says first whether it can be there at all. */
static u32 find_symbol(const struct tables *t, const char *name, u32 hash)
{
    u32 buckets = t->hash[0], first = t->hash[1], words = t->hash[2], shift = t->hash[3];
    const u64 *filter = (const u64 *)(t->hash + 4);
    u64 bits = 1ull << (hash % 64) | 1ull << ((hash >> shift) % 64);
    if ((filter[hash / 64 % words] & bits) != bits)
        return 0;
    const u32 *bucket = (const u32 *)(filter + words), *chain = bucket + buckets;
    u32 i = bucket[hash % buckets];
    if (i < first)
        return 0;
    for (;; i++) {
        u32 link = chain[i - first];
        bool fits = (link | 1) == (hash | 1) && bs_same(t->names + t->symbols[i].name, name);
        if (fits && t->symbols[i].section && !(t->versions && t->versions[i] & HIDDEN_VERSION))
            return i;
        if (link & 1)
            return 0;
    }
}

/* In the libraries after ours that the program began with, which are never unloaded. */
static void *find_in_libraries(const char *name)
{
    u32 hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (u8)*c;
    bool after = false;
    for (const struct bs_link_map *l = bs_first_library; l; l = l->next) {
        struct tables t;
        u32 i = after && find_tables(l, &t) ? find_symbol(&t, name, hash) : 0;
        if (i) /* what is neither function nor data must be asked for in the loader's own way */
            return (t.symbols[i].info & 15) <= STT_FUNC ? (void *)(l->base + t.symbols[i].value)
                                                        : 0;
        after |= l->dynamic == _DYNAMIC;
        if (l == bs_last_library)
            return 0;
    }
    return 0;
}

/* ---- libc's functions ------------------------------------------------------------------------------------------------ */

/* Stands in for a function that the program's libraries don't have. */
static s64 missing(void)
{
    return bs_fail(-BS_ENOSYS);
}

static void *ask_loader(const char *name)
{
    void *found = dlsym ? dlsym((void *)-1l /* RTLD_NEXT */, name) : 0;
    /* dlsym asks who called it: this must not become a jump. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

/* Of what may be missing: a vain question to the loader would show up in the program's `dlerror`. */
BS_COLD void *bs_next_or_null(const char *name)
{
    return bs_first_library ? find_in_libraries(name) : ask_loader(name);
}

BS_COLD void *bs_find(void **place, const char *name)
{
    void *found = find_in_libraries(name);
    if (!found)
        found = ask_loader(name);
    if (!found)
        found = (void *)missing;
    __atomic_store_n(place, found, __ATOMIC_RELAXED);
    return found;
}

BS_COLD s64 bs_fail(s64 error)
{
    if (__errno_location)
        *__errno_location() = (int)-error;
    return -1;
}

BS_COLD s64 bs_error(void)
{
    return __errno_location ? -*__errno_location() : -BS_EINVAL;
}

int pthread_setcanceltype(int type, int *old);

BS_COLD s64 bs_cancelled6(const char *way, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    int old = 0;
    BS_NEXT(pthread_setcanceltype)(1 /* PTHREAD_CANCEL_ASYNCHRONOUS */, &old);
    s64 result = bs_through6(way, nr, a, b, c, d, e, f);
    BS_NEXT(pthread_setcanceltype)(old, 0);
    return result;
}
