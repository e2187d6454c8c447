/*
 * Records look-ups by name. A look-up of an open descriptor is not logged: it adds nothing to the
 * record of its open.
 */
#include "shape.h"

/* The most frequent call of many programs. It has no shape, to be fast. */
static __attribute__((noinline)) int status(int dir, const char *path, void *to, int flags)
{
    u64 time = bs_now();
    bool logged = bs_logs_later(BS_OP_STAT);
    s64 result = bs_through6(bs_entry_point_later(logged), __NR_newfstatat, dir, (s64)path, (s64)to,
                             flags, 0, 0);
    bool mark = (result == -BS_ENOTDIR || result == -BS_ENAMETOOLONG) &&
                (bs_mark_line(path) || bs_mark_function(path));
    if (BS_LIKELY(logged && !mark))
        bs_note_path(time, BS_OP_STAT, dir, flags, 0, path, result);
    BS_DEEP_LOG(time, result, __NR_newfstatat, dir, path, to, flags);
    return (int)bs_ret(result);
}

BS_INTERCEPTED int stat(const char *path, void *to)
{
    return status(BS_AT_FDCWD, path, to, 0);
}
BS_ALIAS(stat64, stat);

BS_INTERCEPTED int lstat(const char *path, void *to)
{
    return status(BS_AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}
BS_ALIAS(lstat64, lstat);

/*
 * A look-up with AT_EMPTY_PATH. Libraries pass an empty path to query the descriptor itself, which
 * is no look-up by name. The recorder checks after the call whether the path is empty: the call has
 * shown that the path can be read.
 */
static s64 descriptors_or_names(s64 nr, int dir, const char *path, s64 b, s64 c, s64 d, int flags)
{
    u64 time = bs_now();
    s64 result = bs_gated(nr, dir, path, b, c, d);
    if (result != -BS_EFAULT && path && *path && bs_logs_later(BS_OP_STAT))
        bs_note_path(time, BS_OP_STAT, dir, flags, 0, path, result);
    BS_DEEP_LOG(time, result, (u32)nr, dir, path, b, c, d);
    return bs_ret(result);
}

int fstatat(int dir, const char *path, void *to, int flags);

BS_API int fstatat(int dir, const char *path, void *to, int flags)
{
    if (flags & AT_EMPTY_PATH)
        return (int)descriptors_or_names(__NR_newfstatat, dir, path, (s64)to, flags, 0, flags);
    return status(dir, path, to, flags);
}
BS_ALIAS(fstatat64, fstatat);

/* For programs linked against glibc before 2.33. */
BS_INTERCEPTED int __xstat(int version, const char *path, void *to)
{
    (void)version;
    return status(BS_AT_FDCWD, path, to, 0);
}
BS_ALIAS(__xstat64, __xstat);

BS_INTERCEPTED int __lxstat(int version, const char *path, void *to)
{
    (void)version;
    return status(BS_AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}
BS_ALIAS(__lxstat64, __lxstat);

BS_API int __fxstatat(int version, int dir, const char *path, void *to, int flags)
{
    (void)version;
    return fstatat(dir, path, to, flags);
}
BS_ALIAS(__fxstatat64, __fxstatat);

BS_API int statx(int dir, const char *path, int flags, u32 mask, void *to)
{
    if (flags & AT_EMPTY_PATH)
        return (int)descriptors_or_names(__NR_statx, dir, path, flags, mask, (s64)to, flags);
    return (int)BS_LOOKED(statx, STAT, (.strings = 1, .fd = 1, .path = 2, .arg = 3), dir, path,
                          flags, mask, to);
}

BS_API int access(const char *path, int mode)
{
    return (int)BS_LOOKED(access, ACCESS, (.strings = 1, .path = 1, .arg = 2), path, mode);
}

int faccessat(int dir, const char *path, int mode, int flags);

BS_API int faccessat(int dir, const char *path, int mode, int flags)
{
    if (!flags)
        return (int)BS_LOOKED(faccessat, ACCESS, (.strings = 1, .fd = 1, .path = 2, .arg = 3), dir,
                              path, mode);
    static const struct bs_shape shape = {.nr = __NR_faccessat2,
                                          .op = BS_OP_ACCESS,
                                          .strings = 1,
                                          .fd = 1,
                                          .path = 2,
                                          .arg = 3,
                                          .aux = 4};
    s64 result = bs_look_up(&shape, dir, (s64)path, mode, flags, 0);
    return result == -BS_ENOSYS ? BS_NEXT(faccessat)(dir, path, mode, flags) : (int)bs_ret(result);
}

BS_API int eaccess(const char *path, int mode)
{
    return faccessat(BS_AT_FDCWD, path, mode, 0x200 /* AT_EACCESS */);
}
BS_ALIAS(euidaccess, eaccess);

/*
 * True if the result does not overwrite the path. Some programs read a link into the same buffer
 * that names it. Such a call is logged before it is made.
 */
static inline bool apart(const char *path, const char *to, size_t size)
{
    return (u64)path - (u64)to >= size && (u64)to - (u64)path >= BS_PATH_MAX;
}

BS_INTERCEPTED ssize readlink(const char *path, char *to, size_t size)
{
    if (BS_LIKELY(apart(path, to, size)))
        return BS_LOOKED(readlink, READLINK, (.strings = 1, .path = 1), path, to, size);
    return BS_SHAPED(readlink, READLINK, (.strings = 1, .path = 1), path, to, size);
}

BS_INTERCEPTED ssize readlinkat(int dir, const char *path, char *to, size_t size)
{
    if (BS_LIKELY(apart(path, to, size)))
        return BS_LOOKED(readlinkat, READLINK, (.strings = 1, .fd = 1, .path = 2), dir, path, to,
                         size);
    return BS_SHAPED(readlinkat, READLINK, (.strings = 1, .fd = 1, .path = 2), dir, path, to, size);
}

/* The fortified form: libc aborts if the buffer is smaller than stated. */
void __chk_fail(void) __attribute__((noreturn));

BS_API ssize __readlink_chk(const char *path, char *to, size_t size, size_t room)
{
    if (size > room)
        BS_NEXT(__chk_fail)();
    return readlink(path, to, size);
}

BS_API ssize __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room)
{
    if (size > room)
        BS_NEXT(__chk_fail)();
    return readlinkat(dir, path, to, size);
}
