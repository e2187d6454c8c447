/*
 * Reports the use of interfaces that cannot be decoded. Where there is a guard, it reports the use.
 * Without a guard, this code does. The call itself goes on unchanged.
 */
#include "bs.h"

s64 ptrace(int request, ...);
int mq_open(const char *name, int flags, ...);

void bs_log_opaque(const char *what)
{
    if (bs_is_ready(BS_OP_OPAQUE) && !bs_is_guarded())
        bs_end(bs_begin_path(BS_OP_OPAQUE, -1, 0, 0, what), 0);
}

/*
 * Reports that the next program gets no recorder, and that no guard sees it. The record is ended if
 * that program is not executed. Nothing if the program is observed.
 */
struct bs_reservation bs_begin_unseen(void)
{
    struct bs_reservation none = {0};
    bool filtered = bs_modes & BS_MODE_SANDBOX && !bs_only_dispatches();
    if (!filtered || !bs_is_ready(BS_OP_OPAQUE) || bs_is_guarded())
        return none;
    return bs_begin_path(BS_OP_OPAQUE, -1, 0, 0, BS_OPAQUE_FILTERED);
}

/*
 * Reports only requests that change the tracee. The guard has the same list in tracer.rs, with the
 * reasons.
 */
void bs_log_opaque_trace(int request)
{
    enum {
        POKETEXT = 4,
        POKEDATA = 5,
        POKEUSER = 6,
        SETREGS = 13,
        SETFPREGS = 15,
        SETFPXREGS = 19,
        SET_THREAD_AREA = 26,
        ARCH_PRCTL = 30,
        SYSEMU = 31,
        SYSEMU_SINGLESTEP = 32,
        SETSIGINFO = 0x4203,
        SETREGSET = 0x4205,
        SET_USER_DISPATCH = 0x4210,
        SET_SYSCALL_INFO = 0x4212
    };
    switch (request) {
    case POKETEXT:
    case POKEDATA:
    case SETSIGINFO: bs_log_opaque(BS_OPAQUE_TRACER_MEMORY); break;
    case SYSEMU:
    case SYSEMU_SINGLESTEP: bs_log_opaque(BS_OPAQUE_TRACER_EMULATION); break;
    case POKEUSER:
    case SETREGS:
    case SETFPREGS:
    case SETFPXREGS:
    case SET_THREAD_AREA:
    case ARCH_PRCTL:
    case SETREGSET:
    case SET_USER_DISPATCH:
    case SET_SYSCALL_INFO: bs_log_opaque(BS_OPAQUE_TRACER_REGISTERS); break;
    }
}

/* Events that name files by handle do not open them. */
void bs_log_opaque_events(u32 flags)
{
    enum { REPORT_FID = 0x200, REPORT_DIR_FID = 0x400 };
    if (!(flags & (REPORT_FID | REPORT_DIR_FID)))
        bs_log_opaque(BS_OPAQUE_FANOTIFY);
}

/* libc's function takes its arguments differently from the system call. */
BS_INTERCEPTED s64 ptrace(int request, ...)
{
    va_list args;
    va_start(args, request);
    s64 pid = va_arg(args, s64), at = va_arg(args, s64), data = va_arg(args, s64);
    va_end(args);
    BS_AUTO_DO(bs_need_filter()); /* tracees make calls that they would not make alone */
    bs_log_opaque_trace(request);
    return BS_NEXT(ptrace)(request, pid, at, data);
}

BS_API int mq_open(const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    u64 mode = va_arg(args, u64), attributes = va_arg(args, u64);
    va_end(args);
    bs_log_opaque(BS_OPAQUE_QUEUE);
    return BS_NEXT(mq_open)(name, flags, mode, attributes);
}

BS_API int acct(const char *path)
{
    bs_log_opaque(BS_OPAQUE_ACCT);
    return (int)bs_ret(bs_raw(__NR_acct, path));
}

BS_API int fanotify_init(u32 flags, u32 event_flags)
{
    bs_log_opaque_events(flags);
    return (int)bs_ret(bs_raw(__NR_fanotify_init, flags, event_flags));
}

BS_API int swapon(const char *path, int flags)
{
    bs_log_opaque(BS_OPAQUE_SWAPON);
    return (int)bs_ret(bs_raw(__NR_swapon, path, flags));
}

BS_INTERCEPTED ssize process_vm_writev(int pid, const void *from, u64 parts, const void *to,
                                       u64 to_parts, u64 flags)
{
    bs_log_opaque(BS_OPAQUE_MEMORY);
    return bs_ret(bs_raw(__NR_process_vm_writev, pid, from, parts, to, to_parts, flags));
}

BS_API int pidfd_getfd(int pidfd, int fd, u32 flags)
{
    bs_log_opaque(BS_OPAQUE_DESCRIPTOR);
    return (int)bs_ret(bs_raw(__NR_pidfd_getfd, pidfd, fd, flags));
}
