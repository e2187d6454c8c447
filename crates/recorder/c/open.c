/* Opening files by name, in all the forms that programs call. */
#include "bs.h"

/* Five bytes, and safe for a path of any length; a pointer that is none is left to the kernel. */
static inline bool bs_starts_with_proc(const char *path)
{
    return (u64)path >= BS_PAGE && !((u64)path >> 47) && bs_starts(path, "/proc");
}

#define BS_O_TMPFILE (020000000 | O_DIRECTORY)

s64 bs_open_file(int dir, const char *path, int flags, u32 mode)
{
    if (BS_UNLIKELY(bs_environment_end && path && bs_starts_with_proc(path)))
        bs_about_to_open_proc(path);
    /* What is about to be overwritten is identified first, unless it must be new. */
    bool changes = flags & O_ACCMODE && !(flags & (O_EXCL | O_PATH)) && (flags & BS_O_TMPFILE) != BS_O_TMPFILE;
    struct bs_rec rec;
    if (changes)
        rec = bs_begin_ident(BS_OP_OPEN, dir, flags, mode, path, 0,
                             (struct bs_look){dir, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, true});
    else
        rec = bs_begin_path(BS_OP_OPEN, dir, flags, mode, path);
    s64 fd = bs_call_cancel(rec, __NR_openat, dir, path, flags, mode);
    bs_fd_opened(fd, flags);
    return bs_end(rec, fd);
}

static inline bool takes_mode(int flags)
{
    return flags & O_CREAT || (flags & BS_O_TMPFILE) == BS_O_TMPFILE;
}

#define MODE(flags)                                                                                \
    u32 mode = 0;                                                                                  \
    if (takes_mode(flags)) {                                                                       \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, u32);                                                                  \
        va_end(args);                                                                              \
    }

BS_API int open(const char *path, int flags, ...)
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

/* Fortified: the compiler has seen that no mode follows; libc aborts if one was needed. */
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

BS_API int creat(const char *path, u32 mode)
{
    return (int)bs_ret(bs_open_file(BS_AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode));
}
BS_ALIAS(creat64, creat);

/* Not in every libc: programs call it through `syscall`, which comes here. */
s64 bs_open_how(int dir, const char *path, const struct open_how *how, u64 size)
{
    if (!how || size < sizeof *how)
        return bs_raw(__NR_openat2, dir, path, how, size);
    struct bs_rec rec = bs_begin_path(BS_OP_OPEN, dir, (s32)how->flags, (u32)how->mode, path);
    s64 fd = bs_call(rec, __NR_openat2, dir, path, how, size);
    bs_fd_opened(fd, (int)how->flags);
    return bs_end(rec, fd);
}
