/*
 * Wrappers for functions after which the recorder would no longer see everything, or could no
 * longer reach the supervisor. Each makes sure that the process has the filter first.
 */
#include "../bs.h"

enum { EXECUTABLE = 4, SHM_EXECUTABLE = 0100000 };

/* ---- new code -------------------------------------------------------------------------------- */

int mprotect(void *at, size_t size, int protection);
int pkey_mprotect(void *at, size_t size, int protection, int key);
void *shmat(int id, const void *at, int flags);
int personality(u64 persona);

BS_API int mprotect(void *at, size_t size, int protection)
{
    if (protection & EXECUTABLE)
        bs_need_filter();
    return (int)bs_ret(bs_raw(__NR_mprotect, at, size, protection));
}

BS_API int pkey_mprotect(void *at, size_t size, int protection, int key)
{
    if (protection & EXECUTABLE)
        bs_need_filter();
    return BS_NEXT(pkey_mprotect)(at, size, protection, key);
}

BS_API void *shmat(int id, const void *at, int flags)
{
    if (flags & SHM_EXECUTABLE)
        bs_need_filter();
    return BS_NEXT(shmat)(id, at, flags);
}

/* All readable memory may become executable. */
BS_API int personality(u64 persona)
{
    bs_need_filter();
    return BS_NEXT(personality)(persona);
}

/* ---- another user ---------------------------------------------------------------------------- */

/* Another user may not use the socket. libc changes the user of all threads. */
#define SETS_USER(name, declared, ...) \
    int name declared; \
    BS_API int name declared \
    { \
        bs_need_filter(); \
        return BS_NEXT(name)(__VA_ARGS__); \
    }

SETS_USER(setuid, (u32 user), user)
SETS_USER(seteuid, (u32 user), user)
SETS_USER(setreuid, (u32 user, u32 effective), user, effective)
SETS_USER(setresuid, (u32 user, u32 effective, u32 saved), user, effective, saved)
SETS_USER(setfsuid, (u32 user), user)
SETS_USER(capset, (void *header, const void *sets), header, sets)

/* ---- few resources --------------------------------------------------------------------------- */

/* A process with few descriptors or little memory may not be able to install the filter. */
#define SETS_LIMIT(name, declared, changes, ...) \
    int name declared; \
    BS_API int name declared \
    { \
        if (changes) \
            bs_need_filter(); \
        return BS_NEXT(name)(__VA_ARGS__); \
    }

SETS_LIMIT(setrlimit, (int resource, const void *limit), true, resource, limit)
SETS_LIMIT(setrlimit64, (int resource, const void *limit), true, resource, limit)
SETS_LIMIT(prlimit, (int pid, int resource, const void *limit, void *old), limit, pid, resource,
           limit, old)
SETS_LIMIT(prlimit64, (int pid, int resource, const void *limit, void *old), limit, pid, resource,
           limit, old)

/* ---- functions that make watched calls inside libc ------------------------------------------- */

/* stubs.S: returns libc's function of this name. */
__attribute__((used)) void *bs_begin_unseen_function(const char *name)
{
    void *function = 0;
    bs_need_filter();
    return bs_find(&function, name);
}
