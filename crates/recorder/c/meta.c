/* Records changes of modes, owners, times and extended attributes. */
#include "shape.h"

/* ---- mode ------------------------------------------------------------------------------------ */

BS_API int chmod(const char *path, u32 mode)
{
    return (int)BS_SHAPED(chmod, META, (.strings = 1, .path = 1, .arg_is = BS_META_MODE), path,
                          mode);
}

BS_API int fchmod(int fd, u32 mode)
{
    return (int)BS_SHAPED(fchmod, META, (.strings = 1, .fd = 1, .arg_is = BS_META_MODE), fd, mode);
}

int fchmodat(int dir, const char *path, u32 mode, int flags);

BS_API int fchmodat(int dir, const char *path, u32 mode, int flags)
{
    if (flags) {
        /* libc emulates the call through /proc, and the guard sees that */
        BS_AUTO_DO(bs_need_filter());
        return BS_NEXT(fchmodat)(dir, path, mode, flags);
    }
    return (int)BS_SHAPED(fchmodat, META,
                          (.strings = 1, .fd = 1, .path = 2, .arg_is = BS_META_MODE), dir, path,
                          mode);
}

int lchmod(const char *path, u32 mode);

BS_API int lchmod(const char *path, u32 mode)
{
    return fchmodat(BS_AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

/* ---- owner ----------------------------------------------------------------------------------- */

BS_API int chown(const char *path, u32 user, u32 group)
{
    return (int)BS_SHAPED(chown, META, (.strings = 1, .path = 1, .arg_is = BS_META_OWNER), path,
                          user, group);
}

BS_API int lchown(const char *path, u32 user, u32 group)
{
    return (int)BS_SHAPED(
        lchown, META,
        (.strings = 1, .path = 1, .arg_is = BS_META_OWNER, .aux_is = AT_SYMLINK_NOFOLLOW), path,
        user, group);
}

BS_API int fchown(int fd, u32 user, u32 group)
{
    return (int)BS_SHAPED(fchown, META, (.strings = 1, .fd = 1, .arg_is = BS_META_OWNER), fd, user,
                          group);
}

BS_API int fchownat(int dir, const char *path, u32 user, u32 group, int flags)
{
    return (int)BS_SHAPED(fchownat, META,
                          (.strings = 1, .fd = 1, .path = 2, .arg_is = BS_META_OWNER, .aux = 5),
                          dir, path, user, group, flags);
}

/* ---- times ----------------------------------------------------------------------------------- */

BS_API int utime(const char *path, const void *times)
{
    return (int)BS_SHAPED(utime, META, (.strings = 1, .path = 1, .arg_is = BS_META_TIMES), path,
                          times);
}

BS_API int utimes(const char *path, const void *times)
{
    return (int)BS_SHAPED(utimes, META, (.strings = 1, .path = 1, .arg_is = BS_META_TIMES), path,
                          times);
}

BS_API int futimesat(int dir, const char *path, const void *times)
{
    return (int)BS_SHAPED(futimesat, META,
                          (.strings = 1, .fd = 1, .path = 2, .arg_is = BS_META_TIMES), dir, path,
                          times);
}

BS_API int utimensat(int dir, const char *path, const void *times, int flags)
{
    if (!path)
        return (int)bs_fail(-BS_EINVAL); /* as in libc, where that form is futimens */
    return (int)BS_SHAPED(utimensat, META,
                          (.strings = 1, .fd = 1, .path = 2, .arg_is = BS_META_TIMES, .aux = 4),
                          dir, path, times, flags);
}

BS_API int futimens(int fd, const void *times)
{
    if (fd < 0)
        return (int)bs_fail(-BS_EBADF);
    return (int)BS_SHAPED(utimensat, META, (.strings = 1, .fd = 1, .arg_is = BS_META_TIMES), fd, 0,
                          times, 0);
}

struct microseconds {
    s64 seconds, micro;
};

/* Converts the times to nanoseconds; null if they are out of range. */
static const s64 *nanoseconds(const struct microseconds given[2], s64 to[4], bool *bad)
{
    *bad = given && (given[0].micro < 0 || given[0].micro >= 1000000 || given[1].micro < 0 ||
                     given[1].micro >= 1000000);
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

/* ---- extended attributes --------------------------------------------------------------------- */

BS_API int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    return (int)BS_SHAPED(setxattr, META, (.strings = 1, .path = 1, .arg_is = BS_META_ATTR), path,
                          name, value, size, flags);
}

BS_API int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    return (int)BS_SHAPED(
        lsetxattr, META,
        (.strings = 1, .path = 1, .arg_is = BS_META_ATTR, .aux_is = AT_SYMLINK_NOFOLLOW), path,
        name, value, size, flags);
}

BS_API int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return (int)BS_SHAPED(fsetxattr, META, (.strings = 1, .fd = 1, .arg_is = BS_META_ATTR), fd,
                          name, value, size, flags);
}

BS_API int removexattr(const char *path, const char *name)
{
    return (int)BS_SHAPED(removexattr, META, (.strings = 1, .path = 1, .arg_is = BS_META_ATTR),
                          path, name);
}

BS_API int lremovexattr(const char *path, const char *name)
{
    return (int)BS_SHAPED(
        lremovexattr, META,
        (.strings = 1, .path = 1, .arg_is = BS_META_ATTR, .aux_is = AT_SYMLINK_NOFOLLOW), path,
        name);
}

BS_API int fremovexattr(int fd, const char *name)
{
    return (int)BS_SHAPED(fremovexattr, META, (.strings = 1, .fd = 1, .arg_is = BS_META_ATTR), fd,
                          name);
}
