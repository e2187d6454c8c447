/*
 * Tracks the operations on each descriptor so far, and records the calls that copy and close
 * descriptors.
 */
#include "bs.h"

/*
 * True if this process may use the marks. A child that runs on its parent's memory leaves the
 * parent's marks alone.
 */
static bool has_marks(u32 fd)
{
    return fd < BS_MAX_FD && bs_process->generation && !bs_me.borrowed;
}

#ifdef BS_FUNCTIONS
/*
 * At BS_DESCRIPTORS_AT: for each descriptor, the thread of the last logged read and its
 * step, then the same of writes and copies.
 */
static u64 *last_use(int fd, u32 mark)
{
    u8 *behind = bs_process->fd + BS_DESCRIPTORS_AT;
    return (u64 *)behind + (mark & BS_FD_READ ? 0 : BS_MAX_FD) + (u32)fd;
}

/* 0 in a thread that has called no recorded function. */
static u64 present_use(void)
{
    enum { STEP_BITS = 40 };
    u64 step = bs_me.steps & ((1ull << STEP_BITS) - 1);
    return step ? (u64)bs_me.tid << STEP_BITS | step : 0;
}

bool bs_is_in_other_function(int fd, u32 mark)
{
    return has_marks((u32)fd) && *last_use(fd, mark) != present_use();
}

static void note_use(int fd, u32 mark)
{
    if (mark & (BS_FD_READ | BS_FD_WROTE | BS_FD_COPIED))
        *last_use(fd, mark) = present_use();
}
#endif

void bs_fd_mark(int fd, u32 mark)
{
    if (!has_marks((u32)fd))
        return;
    bs_process->fd[fd] |= (u8)mark;
    BS_FUNCTIONS_DO(note_use(fd, mark));
    if ((u32)fd > bs_process->highest)
        bs_process->highest = (u32)fd;
}

void bs_fd_closed(u32 fd)
{
    BS_DEEP_FORGET(fd);
    if (has_marks(fd) && bs_process->fd[fd])
        bs_process->fd[fd] = 0;
}

void bs_fd_opened(s64 fd, int flags)
{
    if (fd < 0)
        return;
    bs_fd_closed((u32)fd);
    if (flags & O_ACCMODE && !(flags & O_PATH))
        bs_fd_mark((int)fd, BS_FD_WRITER);
}

void bs_fd_copied(u32 from, u32 to)
{
    bs_fd_closed(to);
    const u8 copied = BS_FD_WRITER | BS_FD_PRIVATE | BS_FD_PART;
    if (has_marks(from) && bs_process->fd[from] & copied)
        bs_fd_mark((int)to, bs_process->fd[from] & copied);
}

/*
 * A close of a written descriptor logs the identity that the file then has. The close of a
 * connection logs how much it carried.
 */
struct bs_reservation bs_begin_close(int fd)
{
    if (BS_UNLIKELY(bs_fd_marks(fd) & BS_FD_WRITER) && !bs_closes_connection(fd))
        return bs_begin_ident(BS_OP_CLOSE, fd, 0, 0, 0, 0,
                              (struct bs_look){fd, "", AT_EMPTY_PATH, 0, true});
    return bs_begin(BS_OP_CLOSE, fd, 0, 0);
}

BS_INTERCEPTED int close(int fd)
{
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin_close(fd);
    bs_fd_closed((u32)fd);
    s64 result = bs_finish(rec, bs_call_cancel(rec, __NR_close, fd));
    BS_DEEP_LOG_RETURN(time, result, __NR_close, fd);
    return (int)result;
}
BS_ALIAS(__close, close);

/*
 * Closes all descriptors from `first` to `last`, and logs the files that were written through them.
 */
static s64 close_many(u32 first, u32 last, int flags)
{
    if (!(flags & 4 /* CLOSE_RANGE_CLOEXEC */) && !bs_me.borrowed && bs_process->generation)
        for (u32 fd = first; fd <= last && fd <= bs_process->highest; fd++) {
            if (bs_process->fd[fd] & BS_FD_WRITER)
                bs_end(bs_begin_close((int)fd), 0);
            bs_process->fd[fd] = 0;
        }
    BS_DEEP_DO(for (u32 fd = first; fd <= last && fd < BS_MAX_FD; fd++) bs_deep_forget(fd));
    struct bs_reservation rec = bs_begin(BS_OP_CLOSE_RANGE, (s32)first, flags, last);
    return bs_end(rec, bs_call(rec, __NR_close_range, first, last, flags));
}

BS_API int close_range(unsigned first, unsigned last, int flags)
{
    return (int)bs_ret(close_many(first, last, flags));
}

void closefrom(int first);

BS_API void closefrom(int first)
{
    u32 from = first < 0 ? 0 : (u32)first;
    if (close_many(from, ~0u, 0) < 0)
        BS_NEXT(closefrom)(first); /* on an old kernel libc reads /proc */
}

/* Completes the record of a copied descriptor. */
static s64 copied(struct bs_reservation rec, int from, s64 to)
{
    if (to >= 0 && to != from)
        bs_fd_copied((u32)from, (u32)to);
    return bs_end(rec, to);
}

BS_INTERCEPTED int dup(int fd)
{
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin(BS_OP_DUP, fd, 0, 0);
    s64 to = copied(rec, fd, bs_call(rec, __NR_dup, fd));
    BS_DEEP_LOG(time, to, __NR_dup, fd);
    return (int)bs_ret(to);
}

/* Before `to` is replaced by another descriptor, logs that the writing through `to` has ended. */
static void replaced(int fd, int to)
{
    if (fd != to && bs_fd_marks(to) & BS_FD_WRITER && bs_raw(__NR_fcntl, fd, 1 /* F_GETFD */) >= 0)
        bs_end(bs_begin_close(to), 0);
}

BS_INTERCEPTED int dup2(int fd, int to)
{
    u64 time = BS_DEEP_TIME();
    replaced(fd, to);
    struct bs_reservation rec = bs_begin(BS_OP_DUP, fd, 0, 1);
    s64 result = copied(rec, fd, bs_call(rec, __NR_dup2, fd, to));
    BS_DEEP_LOG(time, result, __NR_dup2, fd, to);
    return (int)bs_ret(result);
}
BS_ALIAS(__dup2, dup2);

BS_INTERCEPTED int dup3(int fd, int to, int flags)
{
    u64 time = BS_DEEP_TIME();
    replaced(fd, to);
    struct bs_reservation rec = bs_begin(BS_OP_DUP, fd, flags, 1);
    s64 result = copied(rec, fd, bs_call(rec, __NR_dup3, fd, to, flags));
    BS_DEEP_LOG(time, result, __NR_dup3, fd, to, flags);
    return (int)bs_ret(result);
}

/* `fcntl` copies and marks descriptors; its locks may wait, and are cancellation points. */
static s64 control(int fd, int command, u64 arg)
{
    struct bs_reservation none = {0};
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
        struct bs_reservation rec =
            bs_begin(BS_OP_DUP, fd, command == F_DUPFD_CLOEXEC ? O_CLOEXEC : 0, 0);
        return copied(rec, fd, bs_call(rec, __NR_fcntl, fd, command, arg));
    }
    if (command == F_SETFD) {
        struct bs_reservation rec = bs_begin(BS_OP_CLOEXEC, fd, arg & FD_CLOEXEC, 0);
        return bs_end(rec, bs_call(rec, __NR_fcntl, fd, command, arg));
    }
    if ((command == F_SETLK || command == F_SETLKW) && bs_process->generation && !bs_me.borrowed)
        bs_process->has_locks = true;
    if (command == F_SETLKW || command == 38 /* F_OFD_SETLKW */)
        return bs_call_cancel(none, __NR_fcntl, fd, command, arg);
    return bs_raw(__NR_fcntl, fd, command, arg);
}

int fcntl(int fd, int command, ...);

BS_API int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    u64 arg = va_arg(args, u64);
    va_end(args);
    if (command == F_GETOWN || command == 1036 /* a form of it that only libc knows */)
        return BS_NEXT(fcntl)(fd, command, arg); /* a negative result there is no errno */
    u64 time = BS_DEEP_TIME();
    s64 result = control(fd, command, arg);
    BS_DEEP_LOG(time, result, __NR_fcntl, fd, command, arg);
    return (int)bs_ret(result);
}
BS_ALIAS(fcntl64, fcntl);
BS_ALIAS(__fcntl, fcntl);

/* The requests that touch the descriptor table or copy data. */
enum { FIOCLEX = 0x5451, FIONCLEX = 0x5450, FICLONE = 0x40049409, FICLONERANGE = 0x4020940d };

/*
 * The descriptor of the file that is cloned from. FICLONERANGE passes it in a structure, which is
 * readable if the call succeeded.
 */
static s32 source(unsigned long request, u64 arg, s64 result)
{
    if (request == FICLONE)
        return (s32)arg;
    return result < 0 ? -1 : (s32) * (const s64 *)arg;
}

BS_INTERCEPTED int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    u64 arg = va_arg(args, u64);
    va_end(args);
    u64 now = 0;
    if (BS_UNLIKELY(request == FIOCLEX || request == FIONCLEX || request == FICLONE ||
                    request == FICLONERANGE))
        now = bs_now();
    if (BS_UNLIKELY(request == FICLONE || request == FICLONERANGE))
        bs_about_to_change(fd);
    u64 time = BS_DEEP_TIME();
    s64 result = bs_raw(__NR_ioctl, fd, request, arg);
    BS_DEEP_LOG(time, result, __NR_ioctl, fd, request, arg);
    if (BS_UNLIKELY(now)) {
        if (request == FIOCLEX || request == FIONCLEX)
            bs_note(now, BS_OP_CLOEXEC, fd, request == FIOCLEX, 0, result);
        else
            bs_note(now, BS_OP_COPY, source(request, arg, result), fd, 0, result);
    }
    return (int)bs_ret(result);
}
