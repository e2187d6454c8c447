/*
 * The recorder's access to the program's C library: the functions behind its wrappers, errno, and
 * cancellation.
 *
 * The recorder looks functions up itself. `dlsym` takes the loader's lock. In a signal handler, and
 * in the child of a program with threads, that lock may stay taken for ever. `dlsym` also costs a
 * microsecond. The recorder calls it only for a function in no library that the program began with.
 */
#include "symbols.h"

extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/*
 * Searches the libraries behind the recorder that the program began with. They are never unloaded.
 */
static void *find_in_libraries(const char *name)
{
    u32 hash = bs_symbol_hash(name);
    bool after = false;
    for (const struct bs_link_map *l = bs_first_library; l; l = l->next) {
        struct bs_symbols symbols;
        u32 i = after && bs_find_symbols(l, &symbols) ? bs_symbol(&symbols, name, hash) : 0;
        /* A symbol that is neither a function nor data must be looked up by the loader. */
        if (i)
            return (symbols.table[i].info & 15) <= STT_FUNC
                       ? (void *)(l->base + symbols.table[i].value)
                       : 0;
        after |= l == bs_last_before_next;
        if (l == bs_last_library)
            return 0;
    }
    return 0;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

/* Replaces a function that the program's libraries lack. */
static s64 missing(void)
{
    return bs_fail(-BS_ENOSYS);
}

static void *ask_loader(const char *name)
{
    void *found = dlsym ? dlsym((void *)-1l /* RTLD_NEXT */, name) : 0;
    /* dlsym looks at its caller's address, so this call must not become a jump. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

/*
 * Finds a function that may be missing. A failed look-up by the loader would change the result of
 * the program's `dlerror`.
 */
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

BS_COLD s64 bs_cancelled6(const char *entry, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    int old = 0;
    BS_NEXT(pthread_setcanceltype)(1 /* PTHREAD_CANCEL_ASYNCHRONOUS */, &old);
    s64 result = bs_through6(entry, nr, a, b, c, d, e, f);
    BS_NEXT(pthread_setcanceltype)(old, 0);
    return result;
}
