/*
 * Programs that limit their own system calls, and programs that make them by number. After a limit the recorder makes no call
 * that the program itself did not ask for; in strict mode not even the time-stamp counter can be read.
 */
#include "bs.h"

enum { PR_SET_SECCOMP = 22, PR_SET_TSC = 26, MODE_STRICT = 1, MODE_FILTER = 2, TSC_SIGSEGV = 2 };
enum { SET_MODE_STRICT = 0, SET_MODE_FILTER = 1 };

/* Limits that hold. */
static u32 limits;

/*
 * Makes a call that may limit those that follow. Before it: everything that would need a call later. Who only asks what the kernel
 * can do, by a call that fails (libseccomp and Chromium do, long before they limit anything), is not limited.
 */
static s64 limit(bool strict, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    bs_prepare_for_sandbox();
    if (strict)
        bs_stop_clock();
    s64 result = bs_raw(nr, a, b, c, d, e);
    if (result >= 0)
        __atomic_add_fetch(&limits, 1, __ATOMIC_SEQ_CST);
    else if (!__atomic_load_n(&limits, __ATOMIC_SEQ_CST)) {
        __atomic_and_fetch(&bs_odd, ~BS_ODD_SANDBOX, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&limits, __ATOMIC_SEQ_CST)) /* another thread's, meanwhile */
            __atomic_or_fetch(&bs_odd, BS_ODD_SANDBOX, __ATOMIC_SEQ_CST);
    }
    return bs_ret(result);
}

ssize read(int fd, void *to, size_t n);
ssize write(int fd, const void *from, size_t n);

BS_API int prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    u64 a = va_arg(args, u64), b = va_arg(args, u64), c = va_arg(args, u64), d = va_arg(args, u64);
    va_end(args);
    if (BS_UNLIKELY(option == PR_SET_SECCOMP && (a == MODE_STRICT || (a == MODE_FILTER && b))))
        return (int)limit(a == MODE_STRICT, __NR_prctl, option, (s64)a, (s64)b, (s64)c, (s64)d);
    if (BS_UNLIKELY(option == PR_SET_TSC && a == TSC_SIGSEGV))
        bs_stop_clock();
    return (int)bs_ret(bs_raw(__NR_prctl, option, a, b, c, d));
}

/* Elsewhere, as libc has them. */
int close(int fd);
int close_range(unsigned first, unsigned last, int flags);
int dup(int fd);
int dup2(int fd, int to);
int dup3(int fd, int to, int flags);
int pipe(int ends[2]);
int pipe2(int ends[2], int flags);
int memfd_create(const char *name, u32 flags);
int openat(int dir, const char *path, int flags, ...);
int renameat2(int dir, const char *path, int to_dir, const char *to, u32 flags);
int statx(int dir, const char *path, int flags, u32 mask, void *to);
int execveat(int dir, const char *path, char *const *argv, char *const *env, int flags);
ssize copy_file_range(int from, s64 *from_at, int to, s64 *to_at, size_t n, u32 flags);
ssize getdents64(int fd, void *to, size_t n);
s64 bs_open_how(int dir, const char *path, const void *how, u64 size);
int pivot_root(const char *root, const char *old);
void _exit(int status) __attribute__((noreturn));

/* A call by number: what we have a wrapper for and the guard does not watch anyway goes there. */
static s64 by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    switch (nr) {
    case __NR_close: return close((int)a);
    case __NR_close_range: return close_range((u32)a, (u32)b, (int)c);
    case __NR_dup: return dup((int)a);
    case __NR_dup2: return dup2((int)a, (int)b);
    case __NR_dup3: return dup3((int)a, (int)b, (int)c);
    case __NR_pipe: return pipe((int *)a);
    case __NR_pipe2: return pipe2((int *)a, (int)b);
    case __NR_memfd_create: return memfd_create((const char *)a, (u32)b);
    case __NR_read: return read((int)a, (void *)b, (size_t)c);
    case __NR_write: return write((int)a, (const void *)b, (size_t)c);
    case __NR_openat: return openat((int)a, (const char *)b, (int)c, (u32)d);
    case __NR_openat2: return bs_ret(bs_open_how((int)a, (const char *)b, (const void *)c, (u64)d));
    case __NR_renameat2: return renameat2((int)a, (const char *)b, (int)c, (const char *)d, (u32)e);
    case __NR_statx: return statx((int)a, (const char *)b, (int)c, (u32)d, (void *)e);
    case __NR_execveat: return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d, (int)e);
    case __NR_copy_file_range: return copy_file_range((int)a, (s64 *)b, (int)c, (s64 *)d, (size_t)e, (u32)f);
    case __NR_getdents64: return getdents64((int)a, (void *)b, (size_t)c);
    case __NR_pivot_root: return pivot_root((const char *)a, (const char *)b);
    case __NR_exit_group: _exit((int)a);
    default: return bs_ret(bs_raw6(nr, a, b, c, d, e, f));
    }
}

/* Children made by number: no register or stack may be touched around a vfork, and a fork child finds itself anew. */
static s64 child_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    enum { SHARES_MEMORY = 0x100, NEW_PIDS = 0x20000000 };
    u64 flags = nr == __NR_clone ? (u64)a : nr == __NR_clone3 && bs_readable((void *)a, sizeof(u64)) ? *(const u64 *)a : 0;
    bs_is_ready(BS_OP_FORK);
    if (flags & NEW_PIDS)
        bs_other_numbers();
    u64 time = bs_now();
    if (flags & SHARES_MEMORY)
        __atomic_or_fetch(&bs_odd, BS_ODD_SHARED, __ATOMIC_SEQ_CST);
    bs_disown_all();
    s64 pid = bs_raw6(nr, a, b, c, d, e, 0);
    if (pid)
        bs_note(time, BS_OP_FORK, 0, 0, (u32)flags, pid);
    return bs_ret(pid);
}

/* Called by number these are no cancellation points, but our wrappers are. */
static bool is_cancelled_in_wrapper(s64 nr)
{
    return nr == __NR_read || nr == __NR_write || nr == __NR_close || nr == __NR_openat || nr == __NR_copy_file_range;
}

int pthread_setcancelstate(int state, int *old);

static s64 uncancelled(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    int old = 0;
    BS_NEXT(pthread_setcancelstate)(1 /* PTHREAD_CANCEL_DISABLE */, &old);
    s64 result = by_number(nr, a, b, c, d, e, f);
    BS_NEXT(pthread_setcancelstate)(old, 0);
    return result;
}

BS_API s64 syscall(s64 nr, ...)
{
    va_list args;
    va_start(args, nr);
    s64 a = va_arg(args, s64), b = va_arg(args, s64), c = va_arg(args, s64);
    s64 d = va_arg(args, s64), e = va_arg(args, s64), f = va_arg(args, s64);
    va_end(args);
    if (nr == __NR_seccomp && (a == SET_MODE_STRICT || (a == SET_MODE_FILTER && c)))
        return limit(a == SET_MODE_STRICT, nr, a, b, c, d, e);
    if (nr == __NR_prctl)
        return prctl((int)a, b, c, d, e);
    if (nr == __NR_fork || nr == __NR_clone || nr == __NR_clone3)
        return child_by_number(nr, a, b, c, d, e);
    if (nr == __NR_landlock_restrict_self)
        __atomic_or_fetch(&bs_odd, BS_ODD_MOVED, __ATOMIC_SEQ_CST);
    if (BS_UNLIKELY(bs_threaded) && is_cancelled_in_wrapper(nr))
        return uncancelled(nr, a, b, c, d, e, f);
    return by_number(nr, a, b, c, d, e, f);
}
