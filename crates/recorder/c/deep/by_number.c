/*
 * Records the system calls that a program makes by number, through libc's `syscall`, and that only
 * deep recording needs. Their wrappers would make another call, or the one of the vDSO.
 */
#include "exact.h"
#include "timeout.h"

/*
 * The timeout at an address. The kernel writes the time left there, so it is read before the call.
 * -1 also if the memory may be unreadable.
 */
static s64 timeout_at(s64 at, s64 unit)
{
    const struct bs_timeout *t = (const struct bs_timeout *)at;
    bool readable = !(bs_modes & BS_MODE_SANDBOX) && bs_readable(t, sizeof *t);
    return readable ? bs_timeout_at(t, unit) : -1;
}

static s64 timeout_of(s64 nr, s64 c, s64 d, s64 e)
{
    switch (nr) {
    case __NR_poll: return bs_timeout_of_ms((int)c);
    case __NR_ppoll: return timeout_at(c, BS_TIMEOUT_NS);
    case __NR_select: return timeout_at(e, BS_TIMEOUT_US);
    case __NR_pselect6: return timeout_at(e, BS_TIMEOUT_NS);
    case __NR_epoll_wait:
    case __NR_epoll_pwait: return bs_timeout_of_ms((int)d);
    case __NR_epoll_pwait2: return timeout_at(d, BS_TIMEOUT_NS);
    default: return -1;
    }
}

static bool asks_for_address(s64 nr)
{
    return nr == __NR_getsockname || nr == __NR_getpeername;
}

/* The kernel takes the lower half of a register for a number that is an `int`. */
s64 bs_deep_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    s64 timeout = timeout_of(nr, c, d, e);
    u32 room = asks_for_address(nr) ? bs_address_room((const void *)b, (const u32 *)c) : 0;
    u64 time = bs_now();
    s64 result = bs_raw6(nr, a, b, c, d, e, f);
    switch (nr) {
    case __NR_poll:
    case __NR_ppoll: BS_DEEP_LOG(time, result, __NR_poll, a, (u32)b, timeout); break;
    case __NR_select:
    case __NR_pselect6: BS_DEEP_LOG(time, result, __NR_select, (int)a, b, c, d, timeout); break;
    case __NR_epoll_wait:
    case __NR_epoll_pwait:
    case __NR_epoll_pwait2:
        BS_DEEP_LOG(time, result, __NR_epoll_wait, a, b, (int)c, timeout);
        break;
    case __NR_clock_gettime:
        if (result == 0)
            bs_exact_took(time, (int)a, (const s64 *)b);
        break;
    case __NR_getsockname:
    case __NR_getpeername:
        BS_DEEP_LOG(time, result, nr, a, b,
                    bs_deep_lengths(result, (const void *)b, room, (const u32 *)c));
        break;
    case __NR_epoll_ctl:
    case __NR_fstat:
    case __NR_lseek:
    case __NR_getsockopt:
    case __NR_shutdown:
    case __NR_getpid:
    case __NR_getppid:
    case __NR_getpgrp:
    case __NR_getpgid:
    case __NR_getsid:
    case __NR_setpgid:
    case __NR_setsid:
    case __NR_uname:
    case __NR_getrusage:
    case __NR_times:
    case __NR_sysinfo:
    case __NR_statfs:
    case __NR_getrandom: BS_DEEP_LOG(time, result, nr, a, b, c, d, e, f); break;
    default: break;
    }
    return result;
}
