/* Modes, owners, times, extended attributes. */
#include "bs.h"

/* A change of `what` of `path`, or of the descriptor `dir` where the path is null. */
static struct bs_rec begin(int dir, const char *path, int what)
{
    return bs_begin_path(BS_OP_META, dir, what, 0, path);
}

/* ---- mode ------------------------------------------------------------------------------------------------------------ */

BS_API int chmod(const char *path, u32 mode)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_MODE);
    return (int)bs_finish(rec, bs_call(rec, __NR_chmod, path, mode));
}

BS_API int fchmod(int fd, u32 mode)
{
    struct bs_rec rec = begin(fd, 0, BS_META_MODE);
    return (int)bs_finish(rec, bs_call(rec, __NR_fchmod, fd, mode));
}

int fchmodat(int dir, const char *path, u32 mode, int flags);

BS_API int fchmodat(int dir, const char *path, u32 mode, int flags)
{
    if (flags)
        return BS_NEXT(fchmodat)(dir, path, mode, flags); /* libc emulates it through /proc; the guard sees that */
    struct bs_rec rec = begin(dir, path, BS_META_MODE);
    return (int)bs_finish(rec, bs_call(rec, __NR_fchmodat, dir, path, mode));
}

int lchmod(const char *path, u32 mode);

BS_API int lchmod(const char *path, u32 mode)
{
    return fchmodat(BS_AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

/* ---- owner ----------------------------------------------------------------------------------------------------------- */

BS_API int chown(const char *path, u32 user, u32 group)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_OWNER);
    return (int)bs_finish(rec, bs_call(rec, __NR_chown, path, user, group));
}

BS_API int lchown(const char *path, u32 user, u32 group)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_OWNER);
    return (int)bs_finish(rec, bs_call(rec, __NR_lchown, path, user, group));
}

BS_API int fchown(int fd, u32 user, u32 group)
{
    struct bs_rec rec = begin(fd, 0, BS_META_OWNER);
    return (int)bs_finish(rec, bs_call(rec, __NR_fchown, fd, user, group));
}

BS_API int fchownat(int dir, const char *path, u32 user, u32 group, int flags)
{
    struct bs_rec rec = begin(dir, path, BS_META_OWNER);
    return (int)bs_finish(rec, bs_call(rec, __NR_fchownat, dir, path, user, group, flags));
}

/* ---- times ----------------------------------------------------------------------------------------------------------- */

BS_API int utime(const char *path, const void *times)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_TIMES);
    return (int)bs_finish(rec, bs_call(rec, __NR_utime, path, times));
}

BS_API int utimes(const char *path, const void *times)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_TIMES);
    return (int)bs_finish(rec, bs_call(rec, __NR_utimes, path, times));
}

BS_API int futimesat(int dir, const char *path, const void *times)
{
    struct bs_rec rec = begin(dir, path, BS_META_TIMES);
    return (int)bs_finish(rec, bs_call(rec, __NR_futimesat, dir, path, times));
}

BS_API int utimensat(int dir, const char *path, const void *times, int flags)
{
    if (!path)
        return (int)bs_fail(-BS_EINVAL); /* as libc: that form is futimens */
    struct bs_rec rec = begin(dir, path, BS_META_TIMES);
    return (int)bs_finish(rec, bs_call(rec, __NR_utimensat, dir, path, times, flags));
}

BS_API int futimens(int fd, const void *times)
{
    if (fd < 0)
        return (int)bs_fail(-BS_EBADF);
    struct bs_rec rec = begin(fd, 0, BS_META_TIMES);
    return (int)bs_finish(rec, bs_call(rec, __NR_utimensat, fd, 0, times, 0));
}

struct microseconds {
    s64 seconds, micro;
};

/* In nanoseconds; null if they are out of range. */
static const s64 *nanoseconds(const struct microseconds given[2], s64 to[4], bool *bad)
{
    *bad = given && (given[0].micro < 0 || given[0].micro >= 1000000 || given[1].micro < 0 || given[1].micro >= 1000000);
    if (!given || *bad)
        return 0;
    for (int i = 0; i < 2; i++) {
        to[2 * i] = given[i].seconds;
        to[2 * i + 1] = given[i].micro * 1000;
    }
    return to;
}

BS_API int futimes(int fd, const struct microseconds times[2])
{
    s64 nanos[4];
    bool bad;
    const s64 *to = nanoseconds(times, nanos, &bad);
    return bad ? (int)bs_fail(-BS_EINVAL) : futimens(fd, to);
}

BS_API int lutimes(const char *path, const struct microseconds times[2])
{
    s64 nanos[4];
    bool bad;
    const s64 *to = nanoseconds(times, nanos, &bad);
    return bad ? (int)bs_fail(-BS_EINVAL) : utimensat(BS_AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}

/* ---- extended attributes --------------------------------------------------------------------------------------------- */

BS_API int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_ATTR);
    return (int)bs_finish(rec, bs_call(rec, __NR_setxattr, path, name, value, size, flags));
}

BS_API int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_ATTR);
    return (int)bs_finish(rec, bs_call(rec, __NR_lsetxattr, path, name, value, size, flags));
}

BS_API int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    struct bs_rec rec = begin(fd, 0, BS_META_ATTR);
    return (int)bs_finish(rec, bs_call(rec, __NR_fsetxattr, fd, name, value, size, flags));
}

BS_API int removexattr(const char *path, const char *name)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_ATTR);
    return (int)bs_finish(rec, bs_call(rec, __NR_removexattr, path, name));
}

BS_API int lremovexattr(const char *path, const char *name)
{
    struct bs_rec rec = begin(BS_AT_FDCWD, path, BS_META_ATTR);
    return (int)bs_finish(rec, bs_call(rec, __NR_lremovexattr, path, name));
}

BS_API int fremovexattr(int fd, const char *name)
{
    struct bs_rec rec = begin(fd, 0, BS_META_ATTR);
    return (int)bs_finish(rec, bs_call(rec, __NR_fremovexattr, fd, name));
}
