/* Records the opening of files by name, in all forms that programs call. */
#include "bs.h"

#define BS_O_TMPFILE (020000000 | O_DIRECTORY)

/* True for an open that changes nothing. It is logged after the call. */
static inline bool only_reads(int flags)
{
    return flags & O_PATH ||
           !(flags & (O_ACCMODE | O_CREAT | O_TRUNC | (BS_O_TMPFILE & ~O_DIRECTORY)));
}

static inline s64 open_to_read(int dir, const char *path, int flags, u32 mode)
{
    u64 time = bs_now();
    bool logged = bs_logs_later(BS_OP_OPEN);
    s64 fd =
        bs_cancel6(bs_entry_point_later(logged), __NR_openat, dir, (s64)path, flags, mode, 0, 0);
    bs_fd_opened(fd, flags);
    if (BS_LIKELY(logged))
        bs_note_path(time, BS_OP_OPEN | (bs_reads_private(dir, path, fd) ? BS_PRIVATE_READ : 0),
                     dir, flags, mode, path, fd);
    BS_DEEP_LOG(time, fd, __NR_openat, dir, path, flags, mode);
    if (BS_UNLIKELY(bs_environment_end && fd >= 0 && bs_starts(path, "/proc")))
        bs_opened_proc(path);
    return fd;
}

/*
 * An existing file that the open may overwrite is identified first. A file that must be new has no
 * identity yet.
 */
struct bs_reservation bs_begin_open(int dir, const char *path, int flags, u32 mode)
{
    bool new = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ||
               (flags & BS_O_TMPFILE) == BS_O_TMPFILE;
    if (new || !(flags & (O_ACCMODE | O_TRUNC)))
        return bs_begin_path(BS_OP_OPEN, dir, flags, mode, path);
    struct bs_look look = {.dir = dir, .path = path, .wanted = true};
    look.flags = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    look.change = flags & O_TRUNC                   ? BS_CHANGE_WRITE
                  : (flags & O_ACCMODE) == O_WRONLY ? BS_CHANGE_PART
                                                    : BS_CHANGE_UPDATE;
    return bs_begin_ident(BS_OP_OPEN, dir, flags, mode, path, 0, look);
}

/* True if a file at the path of `rec` must be new after the call. */
static inline bool is_new(struct bs_reservation rec, int flags)
{
    return flags & O_CREAT && rec.record && !(rec.record->flags & BS_F_IDENT);
}

static s64 opened(struct bs_reservation rec, int dir, const char *path, int flags, bool new, s64 fd)
{
    bs_fd_opened(fd, flags);
    if (new)
        bs_remember_made(dir, path, fd);
    else if (fd >= 0 && (flags & (O_ACCMODE | O_TRUNC)) == O_WRONLY && bs_arena &&
             bs_arena->flags & BS_ARENA_KEEP)
        bs_fd_mark((int)fd, BS_FD_PART);
    return bs_end(rec, fd);
}

#ifdef BS_AUTO
/* True if the path may be the memory of a process (/proc/PID/mem), whose code could be changed. */
static bool names_memory(const char *path)
{
    u32 n;
    return bs_measure(path, BS_PATH_MAX, &n) && n >= 3 && bs_same(path + n - 3, "mem");
}
#endif

static s64 open_to_write(int dir, const char *path, int flags, u32 mode)
{
    BS_AUTO_DO(if (names_memory(path)) bs_need_filter());
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin_open(dir, path, flags, mode);
    bool new = is_new(rec, flags);
    s64 fd = opened(rec, dir, path, flags, new,
                    bs_call_cancel(rec, __NR_openat, dir, path, flags, mode));
    BS_DEEP_LOG(time, fd, __NR_openat, dir, path, flags, mode);
    return fd;
}

s64 bs_open_plainly(s64 nr, const char *path, int flags, u32 mode)
{
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin_open(BS_AT_FDCWD, path, flags, mode);
    bool new = is_new(rec, flags);
    s64 fd = nr == __NR_creat ? bs_call(rec, nr, path, mode) : bs_call(rec, nr, path, flags, mode);
    opened(rec, BS_AT_FDCWD, path, flags, new, fd);
    BS_DEEP_LOG(time, fd, __NR_openat, BS_AT_FDCWD, path, flags, mode);
    return fd;
}

s64 bs_open_file(int dir, const char *path, int flags, u32 mode)
{
    return BS_LIKELY(only_reads(flags)) ? open_to_read(dir, path, flags, mode)
                                        : open_to_write(dir, path, flags, mode);
}

static inline bool takes_mode(int flags)
{
    return flags & O_CREAT || (flags & BS_O_TMPFILE) == BS_O_TMPFILE;
}

#define MODE(flags) \
    u32 mode = 0; \
    if (takes_mode(flags)) { \
        va_list args; \
        va_start(args, flags); \
        mode = va_arg(args, u32); \
        va_end(args); \
    }

BS_INTERCEPTED int open(const char *path, int flags, ...)
{
    MODE(flags)
    return (int)bs_ret(bs_open_file(BS_AT_FDCWD, path, flags, mode));
}
BS_ALIAS(open64, open);
BS_ALIAS(__open, open);
BS_ALIAS(__open64, open);

BS_API int openat(int dir, const char *path, int flags, ...)
{
    MODE(flags)
    return (int)bs_ret(bs_open_file(dir, path, flags, mode));
}
BS_ALIAS(openat64, openat);

/*
 * The fortified form. The compiler has seen that the caller passes no mode. libc aborts if a mode
 * was needed.
 */
int __open_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);

BS_API int __open_2(const char *path, int flags)
{
    if (takes_mode(flags))
        return BS_NEXT(__open_2)(path, flags);
    return (int)bs_ret(bs_open_file(BS_AT_FDCWD, path, flags, 0));
}
BS_ALIAS(__open64_2, __open_2);

BS_API int __openat_2(int dir, const char *path, int flags)
{
    if (takes_mode(flags))
        return BS_NEXT(__openat_2)(dir, path, flags);
    return (int)bs_ret(bs_open_file(dir, path, flags, 0));
}
BS_ALIAS(__openat64_2, __openat_2);

BS_INTERCEPTED int creat(const char *path, u32 mode)
{
    return (int)bs_ret(bs_open_file(BS_AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode));
}
BS_ALIAS(creat64, creat);

/*
 * Returns a path relative to a directory that is its root. The parent of that directory is the
 * directory itself, and an absolute path starts there, too.
 */
static const char *in_root(const char *path)
{
    u32 n;
    if (!bs_measure(path, BS_PATH_MAX, &n) || n == BS_PATH_MAX)
        return path; /* the kernel rejects it */
    const char *at = path;
    for (;;) {
        while (*at == '/')
            at++;
        u32 dots = at[0] != '.' ? 0 : at[1] != '.' ? 1 : 2;
        if (!dots || (at[dots] && at[dots] != '/'))
            break;
        at += dots;
    }
    return *at || at == path ? at : ".";
}

/* Not every libc has this function. Programs call it through `syscall`, which leads here. */
s64 bs_open_how(int dir, const char *path, const void *given, u64 size)
{
    const struct open_how *how = given;
    if (size < sizeof *how || !bs_readable(how, sizeof *how))
        return bs_raw(__NR_openat2, dir, path, how, size);
    const char *leads = how->resolve & RESOLVE_IN_ROOT ? in_root(path) : path;
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin_open(dir, leads, (int)how->flags, (u32)how->mode);
    s64 fd = bs_call(rec, __NR_openat2, dir, path, how, size);
    bs_fd_opened(fd, (int)how->flags);
    BS_DEEP_LOG(time, fd, __NR_openat, dir, path, how->flags, how->mode);
    return bs_end(rec, fd);
}

int open_tree(int dir, const char *path, u32 flags);

/*
 * Returns a descriptor from which others are opened. Its tree may be mounted or detached. The guard
 * does not watch this call.
 */
BS_API int open_tree(int dir, const char *path, u32 flags)
{
    u64 time = bs_now();
    s64 fd = bs_raw(__NR_open_tree, dir, path, flags);
    bs_fd_opened(fd, O_PATH);
    bool nameless = fd >= 0 && flags & AT_EMPTY_PATH && !(path && *path);
    if (nameless && dir != BS_AT_FDCWD)
        bs_note(time, BS_OP_DUP, dir, 0, 0, fd);
    else
        bs_note_path(time, BS_OP_OPEN, dir, O_PATH | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0),
                     0, nameless ? "." : path, fd);
    return (int)bs_ret(fd);
}

BS_INTERCEPTED int open_by_handle_at(int mount, void *handle, int flags)
{
    bs_log_opaque(BS_OPAQUE_HANDLE);
    struct bs_reservation none = {0};
    return (int)bs_ret(bs_call_cancel(none, __NR_open_by_handle_at, mount, handle, flags));
}
