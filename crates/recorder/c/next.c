/* What is needed of the program's C library: its own functions behind our wrappers, errno, cancellation. */
#include "bs.h"

extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* Stands in for a function that the program's libraries don't have. */
static s64 missing(void)
{
    return bs_fail(-BS_ENOSYS);
}

BS_COLD void *bs_next_or_null(const char *name)
{
    void *found = dlsym ? dlsym((void *)-1l /* RTLD_NEXT */, name) : 0;
    /* dlsym asks who called it: this must not become a jump. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

BS_COLD void *bs_find(void **place, const char *name)
{
    void *found = bs_next_or_null(name);
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
