/*
 * Records changes of names: renames, links, removals, directories, the current directory and the
 * root.
 */
#include "shape.h"

/* ---- rename, link, symlink, unlink ----------------------------------------------------------- */

int rename(const char *path, const char *to);

BS_API int rename(const char *path, const char *to)
{
    return (int)BS_SHAPED(
        rename, RENAME,
        (.strings = 2, .path = 1, .other = 2, .arg_is = BS_AT_FDCWD, .look = BS_LOOK_AT_OTHER),
        path, to);
}

BS_API int renameat(int dir, const char *path, int to_dir, const char *to)
{
    return (int)BS_SHAPED(
        renameat, RENAME,
        (.strings = 2, .fd = 1, .path = 2, .arg = 3, .other = 4, .look = BS_LOOK_AT_OTHER), dir,
        path, to_dir, to);
}

BS_API int renameat2(int dir, const char *path, int to_dir, const char *to, u32 flags)
{
    return (int)BS_SHAPED(renameat2, RENAME,
                          (.strings = 2, .fd = 1, .path = 2, .arg = 3, .other = 4, .aux = 5,
                           .look = BS_LOOK_AT_OTHER),
                          dir, path, to_dir, to, flags);
}

BS_API int link(const char *path, const char *to)
{
    return (int)BS_SHAPED(link, LINK, (.strings = 2, .path = 1, .other = 2, .arg_is = BS_AT_FDCWD),
                          path, to);
}

BS_API int linkat(int dir, const char *path, int to_dir, const char *to, int flags)
{
    return (int)BS_SHAPED(linkat, LINK,
                          (.strings = 2, .fd = 1, .path = 2, .arg = 3, .other = 4, .aux = 5), dir,
                          path, to_dir, to, flags);
}

BS_API int symlink(const char *target, const char *path)
{
    return (int)BS_SHAPED(symlink, SYMLINK, (.strings = 2, .path = 1, .other = 2), target, path);
}

BS_API int symlinkat(const char *target, int dir, const char *path)
{
    return (int)BS_SHAPED(symlinkat, SYMLINK, (.strings = 2, .path = 1, .fd = 2, .other = 3),
                          target, dir, path);
}

static const struct bs_shape unlink_shape = {
    .nr = __NR_unlink, .op = BS_OP_UNLINK, .strings = 1, .path = 1, .look = BS_LOOK_AT_PATH};
static const struct bs_shape rmdir_shape = {.nr = __NR_rmdir,
                                            .op = BS_OP_UNLINK,
                                            .strings = 1,
                                            .path = 1,
                                            .arg_is = AT_REMOVEDIR,
                                            .look = BS_LOOK_AT_PATH};

BS_INTERCEPTED int unlink(const char *path)
{
    return (int)bs_shaped(&unlink_shape, (s64)path, 0, 0, 0, 0);
}

BS_API int unlinkat(int dir, const char *path, int flags)
{
    return (int)BS_SHAPED(unlinkat, UNLINK,
                          (.strings = 1, .fd = 1, .path = 2, .arg = 3, .look = BS_LOOK_AT_PATH),
                          dir, path, flags);
}

BS_INTERCEPTED int rmdir(const char *path)
{
    return (int)bs_shaped(&rmdir_shape, (s64)path, 0, 0, 0, 0);
}

/* Removes a file, or else a directory, as libc does. */
BS_API int remove(const char *path)
{
    s64 result = bs_result(&unlink_shape, (s64)path, 0, 0, 0, 0);
    if (result == -21 /* EISDIR */ || result == -BS_EPERM) {
        s64 other = bs_result(&rmdir_shape, (s64)path, 0, 0, 0, 0);
        /* The path is no directory, so the reason why the file could not be removed counts. */
        if (other != -BS_ENOTDIR)
            result = other;
    }
    return (int)bs_ret(result);
}

/* ---- directories and other nodes ------------------------------------------------------------- */

BS_API int mkdir(const char *path, u32 mode)
{
    return (int)BS_SHAPED(mkdir, MKDIR, (.strings = 1, .path = 1, .aux = 2), path, mode);
}

BS_API int mkdirat(int dir, const char *path, u32 mode)
{
    return (int)BS_SHAPED(mkdirat, MKDIR, (.strings = 1, .fd = 1, .path = 2, .aux = 3), dir, path,
                          mode);
}

static inline int make_node(int dir, const char *path, u32 mode, u64 device)
{
    return (int)BS_SHAPED(mknodat, MKNOD, (.strings = 1, .fd = 1, .path = 2, .aux = 3), dir, path,
                          mode, (u32)device);
}

BS_API int mknod(const char *path, u32 mode, u64 device)
{
    return make_node(BS_AT_FDCWD, path, mode, device);
}

BS_API int mknodat(int dir, const char *path, u32 mode, u64 device)
{
    return make_node(dir, path, mode, device);
}

/* For programs linked against glibc before 2.33. */
BS_API int __xmknod(int version, const char *path, u32 mode, const u64 *device)
{
    (void)version;
    return make_node(BS_AT_FDCWD, path, mode, *device);
}

BS_API int __xmknodat(int version, int dir, const char *path, u32 mode, const u64 *device)
{
    (void)version;
    return make_node(dir, path, mode, *device);
}

enum { FIFO = 0010000 };

BS_API int mkfifo(const char *path, u32 mode)
{
    return make_node(BS_AT_FDCWD, path, mode | FIFO, 0);
}

BS_API int mkfifoat(int dir, const char *path, u32 mode)
{
    return make_node(dir, path, mode | FIFO, 0);
}

/* ---- current directory, root, mounts --------------------------------------------------------- */

/* Logs an operation on two paths that needs no other field. */
static BS_COLD void log_paths(u32 op, u64 time, s32 fd, const char *path, const char *other,
                              s64 result)
{
    struct bs_reservation rec = bs_begin_paths(op, fd, 0, 0, path, other);
    if (!rec.record)
        return;
    rec.record->time = time;
    bs_end(rec, result);
}

/*
 * Logs the target of a symbolic link that the next call removes. Files opened through the link have
 * other paths from then on. A target longer than the buffer is left out. The buffer is small
 * because stacks may be small.
 */
BS_COLD void bs_log_link_text(const struct bs_look *look)
{
    char text[512];
    u64 n = (u64)bs_gated(__NR_readlinkat, look->dir, look->path, text, sizeof text);
    if (n >= sizeof text)
        return;
    text[n] = 0;
    log_paths(BS_OP_LINK_TEXT, bs_now(), look->dir, look->path, text, 0);
}

/* Logs a completed change of directory and the path that it led to. */
static BS_COLD void log_directory(u64 time, int fd, const char *path, s64 result, u32 room)
{
    char now[room];
    s64 n = result < 0 ? 0 : bs_raw(__NR_getcwd, now, room);
    if (n == -BS_ERANGE && room < BS_PATH_MAX) {
        log_directory(time, fd, path, result, BS_PATH_MAX);
        return;
    }
    if (n <= 0 || now[0] != '/')
        now[0] = 0;
    log_paths(BS_OP_CHDIR | BS_DEFERRED, time, fd, path, now, result);
}

static int change_directory(s64 nr, s64 argument, int fd, const char *path)
{
    u64 time = bs_now();
    bool logged = bs_logs_later(BS_OP_CHDIR);
    s64 result = bs_through6(bs_entry_point_later(logged), nr, argument, 0, 0, 0, 0, 0);
    if (logged && result != -BS_EFAULT)
        log_directory(time, fd, path, result, 512);
    return (int)bs_ret(result);
}

BS_API int chdir(const char *path)
{
    return change_directory(__NR_chdir, (s64)path, BS_AT_FDCWD, path);
}

BS_API int fchdir(int fd)
{
    return change_directory(__NR_fchdir, fd, fd, "");
}

BS_API int chroot(const char *path)
{
    BS_AUTO_DO(bs_need_filter());
    return (int)BS_BY(bs_shaped_moves, chroot, CHROOT, (.strings = 1, .path = 1), path);
}

/* No header of libc declares it. Programs declare it themselves, or use `syscall`. */
int pivot_root(const char *root, const char *old);

BS_API int pivot_root(const char *root, const char *old)
{
    BS_AUTO_DO(bs_need_filter());
    return (int)BS_BY(bs_shaped_moves, pivot_root, PIVOT, (.strings = 2, .path = 1, .other = 2),
                      root, old);
}

BS_API int mount(const char *source, const char *target, const char *type, u64 flags,
                 const void *options)
{
    BS_AUTO_DO(bs_need_filter());
    return (int)BS_BY(bs_shaped_moves, mount, MOUNT,
                      (.strings = 2, .path = 1, .other = 2, .aux = 4), source, target, type, flags,
                      options);
}

BS_API int umount2(const char *target, int flags)
{
    BS_AUTO_DO(bs_need_filter());
    return (int)BS_BY(bs_shaped_moves, umount2, MOUNT, (.strings = 2, .other = 1, .arg_is = 1),
                      target, flags);
}

BS_API int umount(const char *target)
{
    return umount2(target, 0);
}

BS_API int unshare(int flags)
{
    BS_AUTO_DO(bs_need_filter());
    return (int)BS_BY(bs_shaped_moves, unshare, NAMESPACE, (.aux = 1), flags);
}

BS_API int setns(int fd, int kind)
{
    BS_AUTO_DO(bs_need_filter());
    return (int)BS_BY(bs_shaped_moves, setns, NAMESPACE, (.fd = 1, .aux = 2), fd, kind);
}
