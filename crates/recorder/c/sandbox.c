/*
 * Handles programs that limit their own system calls, or have them dispatched to themselves. After
 * that the recorder makes no call that the program itself did not make. In strict mode it cannot
 * even read the time-stamp counter.
 */
#include "bs.h"

enum {
    PR_SET_SECCOMP = 22,
    PR_SET_TSC = 26,
    PR_SET_DISPATCH = 59,
    MODE_STRICT = 1,
    MODE_FILTER = 2,
    TSC_SIGSEGV = 2
};

/* Number of limits in force, and of threads whose calls are or were dispatched. */
static u32 limits, dispatches;

/*
 * True if calls are dispatched and nothing limits them. Programs executed then are not dispatched.
 */
bool bs_only_dispatches(void)
{
    return __atomic_load_n(&dispatches, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&limits, __ATOMIC_SEQ_CST);
}

bool bs_dispatches(void)
{
    return __atomic_load_n(&dispatches, __ATOMIC_SEQ_CST);
}

static bool holds(void)
{
    return __atomic_load_n(&limits, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&dispatches, __ATOMIC_SEQ_CST);
}

/*
 * Makes a call that may limit the calls after it. First it does everything that would need a call
 * later. A failed call limits nothing: libseccomp and Chromium test the kernel with such calls,
 * long before they limit anything.
 */
static s64 limit(u32 *count, bool strict, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    BS_AUTO_DO(bs_need_filter());
    if (!holds())
        BS_DEEP_DO(bs_deep_before_limit());
    bs_prepare_for_sandbox();
    BS_DEEP_DO(bs_exact_end());
    if (strict)
        bs_stop_clock();
    s64 result = bs_raw(nr, a, b, c, d, e);
    if (result >= 0)
        __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    else if (!holds()) {
        __atomic_and_fetch(&bs_modes, ~BS_MODE_SANDBOX, __ATOMIC_SEQ_CST);
        if (holds()) { /* another thread made a limit meanwhile */
            __atomic_or_fetch(&bs_modes, BS_MODE_SANDBOX, __ATOMIC_SEQ_CST);
        } else {
            BS_DEEP_DO(bs_deep_limit_failed());
            BS_DEEP_DO(bs_exact_tell());
        }
    }
    return bs_ret(result);
}

s64 bs_limit(bool strict, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    return limit(&limits, strict, nr, a, b, c, d, e);
}

BS_INTERCEPTED int prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    u64 a = va_arg(args, u64), b = va_arg(args, u64), c = va_arg(args, u64), d = va_arg(args, u64);
    va_end(args);
    if (BS_UNLIKELY(option == PR_SET_SECCOMP && (a == MODE_STRICT || (a == MODE_FILTER && b))))
        return (int)bs_limit(a == MODE_STRICT, __NR_prctl, option, (s64)a, (s64)b, (s64)c, (s64)d);
    if (BS_UNLIKELY(option == PR_SET_DISPATCH && a)) {
        bs_redirect_internal(); /* programs that it executes through libc stay recorded */
        return (int)limit(&dispatches, false, __NR_prctl, option, (s64)a, (s64)b, (s64)c, (s64)d);
    }
    if (BS_UNLIKELY(option == PR_SET_TSC && a == TSC_SIGSEGV))
        bs_stop_clock();
    return (int)bs_ret(bs_raw(__NR_prctl, option, a, b, c, d));
}
