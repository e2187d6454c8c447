/* Look-ups by name. A look at an open descriptor tells nothing that its open did not. */
#include "bs.h"

static int status(int dir, const char *path, void *to, int flags)
{
    struct bs_rec rec = bs_begin_path(BS_OP_STAT, dir, flags, 0, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_newfstatat, dir, path, to, flags));
}

BS_API int stat(const char *path, void *to)
{
    return status(BS_AT_FDCWD, path, to, 0);
}
BS_ALIAS(stat64, stat);

BS_API int lstat(const char *path, void *to)
{
    return status(BS_AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}
BS_ALIAS(lstat64, lstat);

int fstatat(int dir, const char *path, void *to, int flags);

BS_API int fstatat(int dir, const char *path, void *to, int flags)
{
    /* libc asks for the descriptor itself this way: no look-up. */
    if (flags & AT_EMPTY_PATH && path && !*path)
        return (int)bs_ret(bs_gated(__NR_newfstatat, dir, path, to, flags));
    return status(dir, path, to, flags);
}
BS_ALIAS(fstatat64, fstatat);

/* Programs linked against glibc before 2.33. */
BS_API int __xstat(int version, const char *path, void *to)
{
    (void)version;
    return status(BS_AT_FDCWD, path, to, 0);
}
BS_ALIAS(__xstat64, __xstat);

BS_API int __lxstat(int version, const char *path, void *to)
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
    struct bs_rec rec = {0};
    if (path && *path)
        rec = bs_begin_path(BS_OP_STAT, dir, flags, 0, path);
    else if (flags & AT_EMPTY_PATH)
        return (int)bs_ret(bs_gated(__NR_statx, dir, path, flags, mask, to));
    return (int)bs_finish(rec, bs_call(rec, __NR_statx, dir, path, flags, mask, to));
}

BS_API int access(const char *path, int mode)
{
    struct bs_rec rec = bs_begin_path(BS_OP_ACCESS, BS_AT_FDCWD, mode, 0, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_access, path, mode));
}

int faccessat(int dir, const char *path, int mode, int flags);

BS_API int faccessat(int dir, const char *path, int mode, int flags)
{
    struct bs_rec rec = bs_begin_path(BS_OP_ACCESS, dir, mode, (u32)flags, path);
    s64 result = flags ? bs_call(rec, __NR_faccessat2, dir, path, mode, flags) : bs_call(rec, __NR_faccessat, dir, path, mode);
    if (BS_UNLIKELY(result == -BS_ENOSYS)) { /* an old kernel: libc computes it */
        int answer = BS_NEXT(faccessat)(dir, path, mode, flags);
        bs_end(rec, answer < 0 && __errno_location ? -*__errno_location() : answer);
        return answer;
    }
    return (int)bs_finish(rec, result);
}

BS_API int eaccess(const char *path, int mode)
{
    return faccessat(BS_AT_FDCWD, path, mode, 0x200 /* AT_EACCESS */);
}
BS_ALIAS(euidaccess, eaccess);

BS_API ssize readlink(const char *path, char *to, size_t size)
{
    struct bs_rec rec = bs_begin_path(BS_OP_READLINK, BS_AT_FDCWD, 0, 0, path);
    return bs_finish(rec, bs_call(rec, __NR_readlink, path, to, size));
}

BS_API ssize readlinkat(int dir, const char *path, char *to, size_t size)
{
    struct bs_rec rec = bs_begin_path(BS_OP_READLINK, dir, 0, 0, path);
    return bs_finish(rec, bs_call(rec, __NR_readlinkat, dir, path, to, size));
}

/* Fortified: libc aborts if the buffer is smaller than said. */
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
