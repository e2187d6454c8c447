/*
 * What can be read of the program's memory. Where a program passes a pointer to nowhere the kernel says EFAULT, so what is read
 * before a call is looked at first; a page that holds the stack we stand on needs no look. Another thread may still take the
 * memory away in between.
 */
#include "bs.h"

u64 bs_stack_end;

enum { NO_SUCH_WAY = -1 };

/* Between here and the first thread's first frame, or on this very page, there is stack. */
static inline bool is_stack(u64 at)
{
    u64 here = (u64)__builtin_frame_address(0);
    if (at < here)
        return false;
    return at / BS_PAGE == here / BS_PAGE ||
           (at < bs_stack_end && bs_stack_end - here < FIRST_STACK_AT_MOST);
}

/* Asks for a change of the signal mask that does not exist: the kernel reads the new mask before it says so. */
static bool page_readable(u64 at)
{
    if (at < BS_PAGE || at >> 47)
        return false;
    if (is_stack(at) || bs_odd & BS_ODD_SANDBOX)
        return true;
    if (BS_UNLIKELY(!bs_arena) && bs_is_muted())
        return false;
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

/* `page`: one that has been seen to be readable. */
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

/* Nothing at all is an empty string to us, and the kernel's to judge. */
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
