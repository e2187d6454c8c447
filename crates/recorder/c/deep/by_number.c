/*
 * Records the system calls that a program makes by number, through libc's `syscall`, and that only
 * deep recording needs. Their wrappers would make another call, or the one of the vDSO.
 */
#include "exact.h"

struct pause {
    s64 seconds, rest;
};
enum { NS = 1000000000, MS = 1000000, US = 1000 };

/* The timeout at an address in ns, -1 for none. The kernel has read it, or the call failed. */
static s64 timeout_at(s64 result, s64 at, s64 unit)
{
    const struct pause *t = (const struct pause *)at;
    return t && result != -BS_EFAULT ? t->seconds * NS + t->rest * unit : -1;
}

static s64 in_ns(s64 milliseconds)
{
    return (int)milliseconds < 0 ? -1 : (s64)(int)milliseconds * MS;
}

s64 bs_deep_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    u64 time = bs_now();
    s64 result = bs_raw6(nr, a, b, c, d, e, f);
    switch (nr) {
    case __NR_poll: BS_DEEP_LOG(time, result, __NR_poll, a, b, in_ns(c)); break;
    case __NR_ppoll: BS_DEEP_LOG(time, result, __NR_poll, a, b, timeout_at(result, c, 1)); break;
    case __NR_select:
        BS_DEEP_LOG(time, result, __NR_select, a, b, c, d, timeout_at(result, e, US));
        break;
    case __NR_pselect6:
        BS_DEEP_LOG(time, result, __NR_select, a, b, c, d, timeout_at(result, e, 1));
        break;
    case __NR_epoll_wait:
    case __NR_epoll_pwait: BS_DEEP_LOG(time, result, __NR_epoll_wait, a, b, c, in_ns(d)); break;
    case __NR_epoll_pwait2:
        BS_DEEP_LOG(time, result, __NR_epoll_wait, a, b, c, timeout_at(result, d, 1));
        break;
    case __NR_clock_gettime:
        if (result == 0)
            bs_exact_took(time, (int)a, (const s64 *)b);
        break;
    case __NR_epoll_ctl:
    case __NR_fstat:
    case __NR_lseek:
    case __NR_getsockname:
    case __NR_getpeername:
    case __NR_getsockopt:
    case __NR_shutdown:
    case __NR_getpid:
    case __NR_getppid:
    case __NR_uname:
    case __NR_getrusage:
    case __NR_times:
    case __NR_getrandom: BS_DEEP_LOG(time, result, nr, a, b, c, d, e, f); break;
    default: break;
    }
    return result;
}
