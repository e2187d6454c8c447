/*
 * Tells which parts of the program's memory can be read. If a program passes an invalid pointer,
 * the kernel returns EFAULT. So the recorder checks memory that it reads before a call. A page of
 * the current stack needs no check. Another thread may still unmap the memory after the check.
 */
#include "bs.h"

u64 bs_stack_end;

enum { NO_SUCH_WAY = -1 };

/*
 * True if the address is certainly stack: on this very page, or between here and the first thread's
 * first frame.
 */
static inline bool is_stack(u64 at)
{
    u64 here = (u64)__builtin_frame_address(0);
    if (at < here)
        return false;
    return at / BS_PAGE == here / BS_PAGE ||
           (at < bs_stack_end && bs_stack_end - here < FIRST_STACK_AT_MOST);
}

/*
 * Requests a change of the signal mask that does not exist. The kernel reads the new mask before it
 * rejects the request, so an unreadable page gives EFAULT.
 */
static bool page_readable(u64 at)
{
    if (at < BS_PAGE || at >> 47)
        return false;
    if (is_stack(at) || bs_modes & BS_MODE_SANDBOX)
        return true;
    if (BS_UNLIKELY(!bs_arena) && bs_is_muted())
        return false;
    /* Valgrind would print a message about each such request. */
    if (BS_UNLIKELY(bs_modes & BS_MODE_SIMULATED))
        return bs_ask_simulator(BS_READABLE_IN_SIMULATOR, at);
    return bs_raw(__NR_rt_sigprocmask, NO_SUCH_WAY, at & ~7ull, 0, 8) != -BS_EFAULT;
}

bool bs_readable(const void *at, u64 size)
{
    u64 from = (u64)at, last = from + (size ? size - 1 : 0);
    for (u64 page = from; page / BS_PAGE <= last / BS_PAGE; page += BS_PAGE)
        if (!page_readable(page))
            return false;
    return last >= from;
}

bool bs_surely_readable(const void *at, u64 size)
{
    if (BS_UNLIKELY(bs_modes & BS_MODE_SANDBOX))
        return is_stack((u64)at) && is_stack((u64)at + size - 1);
    return bs_readable(at, size);
}

/* Measures a string. `page` is the last page found readable. */
static bool measure(const char *s, u32 limit, u32 *length, u64 *page)
{
    u32 n = 0;
    for (;;) {
        u64 at = (u64)s + n;
        if (at / BS_PAGE != *page && !page_readable(at))
            return false;
        *page = at / BS_PAGE;
        u32 room = BS_PAGE - at % BS_PAGE;
        if (room > limit - n)
            room = limit - n;
        u32 more = bs_length((const char *)at, room);
        n += more;
        if (more < room || n == limit) {
            *length = n;
            return true;
        }
    }
}

/* A null pointer counts as an empty string here. The kernel decides whether the call accepts it. */
bool bs_measure(const char *s, u32 limit, u32 *length)
{
    u64 none = ~0ull;
    *length = 0;
    return !s || measure(s, limit, length, &none);
}

bool bs_list_readable(char *const *list)
{
    u64 array = ~0ull, text = ~0ull;
    u32 length;
    for (; list; list++) {
        if ((u64)list / BS_PAGE != array && !page_readable((u64)list))
            return false;
        array = (u64)list / BS_PAGE;
        if (!*list)
            return true;
        if (!measure(*list, ~0u, &length, &text))
            return false;
    }
    return true;
}
