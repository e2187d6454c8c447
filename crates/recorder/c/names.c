/* Changing names: renames, links, removals, directories, the current directory and the root. */
#include "bs.h"

static struct bs_look victim(int dir, const char *path)
{
    return (struct bs_look){dir, path, AT_SYMLINK_NOFOLLOW, true};
}

/* ---- rename, link, symlink, unlink ----------------------------------------------------------------------------------- */

static struct bs_rec begin_rename(int dir, const char *path, int to_dir, const char *to, u32 flags)
{
    return bs_begin_ident(BS_OP_RENAME, dir, to_dir, flags, path, to ? to : "", victim(to_dir, to));
}

int rename(const char *path, const char *to);

BS_API int rename(const char *path, const char *to)
{
    struct bs_rec rec = begin_rename(BS_AT_FDCWD, path, BS_AT_FDCWD, to, 0);
    return (int)bs_finish(rec, bs_call(rec, __NR_rename, path, to));
}

BS_API int renameat(int dir, const char *path, int to_dir, const char *to)
{
    struct bs_rec rec = begin_rename(dir, path, to_dir, to, 0);
    return (int)bs_finish(rec, bs_call(rec, __NR_renameat, dir, path, to_dir, to));
}

BS_API int renameat2(int dir, const char *path, int to_dir, const char *to, u32 flags)
{
    struct bs_rec rec = begin_rename(dir, path, to_dir, to, flags);
    return (int)bs_finish(rec, bs_call(rec, __NR_renameat2, dir, path, to_dir, to, flags));
}

BS_API int link(const char *path, const char *to)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_LINK, BS_AT_FDCWD, BS_AT_FDCWD, 0, path, to);
    return (int)bs_finish(rec, bs_call(rec, __NR_link, path, to));
}

BS_API int linkat(int dir, const char *path, int to_dir, const char *to, int flags)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_LINK, dir, to_dir, (u32)flags, path, to);
    return (int)bs_finish(rec, bs_call(rec, __NR_linkat, dir, path, to_dir, to, flags));
}

BS_API int symlink(const char *target, const char *path)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_SYMLINK, BS_AT_FDCWD, 0, 0, target, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_symlink, target, path));
}

BS_API int symlinkat(const char *target, int dir, const char *path)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_SYMLINK, dir, 0, 0, target, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_symlinkat, target, dir, path));
}

static struct bs_rec begin_unlink(int dir, const char *path, int flags)
{
    return bs_begin_ident(BS_OP_UNLINK, dir, flags, 0, path, 0, victim(dir, path));
}

int unlink(const char *path);
int rmdir(const char *path);

BS_API int unlink(const char *path)
{
    struct bs_rec rec = begin_unlink(BS_AT_FDCWD, path, 0);
    return (int)bs_finish(rec, bs_call(rec, __NR_unlink, path));
}

BS_API int unlinkat(int dir, const char *path, int flags)
{
    struct bs_rec rec = begin_unlink(dir, path, flags);
    return (int)bs_finish(rec, bs_call(rec, __NR_unlinkat, dir, path, flags));
}

BS_API int rmdir(const char *path)
{
    struct bs_rec rec = begin_unlink(BS_AT_FDCWD, path, AT_REMOVEDIR);
    return (int)bs_finish(rec, bs_call(rec, __NR_rmdir, path));
}

/* As libc does it: a file, or else a directory. */
BS_API int remove(const char *path)
{
    struct bs_rec rec = begin_unlink(BS_AT_FDCWD, path, 0);
    s64 result = bs_end(rec, bs_call(rec, __NR_unlink, path));
    if (result == -21 /* EISDIR */ || result == -BS_EPERM) {
        rec = begin_unlink(BS_AT_FDCWD, path, AT_REMOVEDIR);
        s64 other = bs_end(rec, bs_call(rec, __NR_rmdir, path));
        /* It was no directory: what counts is why the file could not be removed. */
        if (other != -BS_ENOTDIR)
            result = other;
    }
    return (int)bs_ret(result);
}

/* ---- directories and other nodes ------------------------------------------------------------------------------------- */

BS_API int mkdir(const char *path, u32 mode)
{
    struct bs_rec rec = bs_begin_path(BS_OP_MKDIR, BS_AT_FDCWD, 0, mode, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_mkdir, path, mode));
}

BS_API int mkdirat(int dir, const char *path, u32 mode)
{
    struct bs_rec rec = bs_begin_path(BS_OP_MKDIR, dir, 0, mode, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_mkdirat, dir, path, mode));
}

static int make_node(int dir, const char *path, u32 mode, u64 device)
{
    struct bs_rec rec = bs_begin_path(BS_OP_MKNOD, dir, 0, mode, path);
    return (int)bs_finish(rec, bs_call(rec, __NR_mknodat, dir, path, mode, (u32)device));
}

BS_API int mknod(const char *path, u32 mode, u64 device)
{
    return make_node(BS_AT_FDCWD, path, mode, device);
}

BS_API int mknodat(int dir, const char *path, u32 mode, u64 device)
{
    return make_node(dir, path, mode, device);
}

/* Programs linked against glibc before 2.33. */
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

/* ---- current directory, root, mounts --------------------------------------------------------------------------------- */

/* Logs a change of directory that has happened, with where it led. */
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
    struct bs_rec rec = bs_begin_paths(BS_OP_CHDIR, fd, 0, 0, path, now);
    if (rec.slot)
        rec.slot->time = time;
    bs_end(rec, result);
}

/* The way of a call that is logged afterwards: the gate if there is room to log it. */
static const char *way_for_later(u32 op)
{
    if (bs_odd & (BS_ODD_STRICT | BS_ODD_SHARED | BS_ODD_SANDBOX | BS_ODD_CLOSED))
        return bs_odd & BS_ODD_CLOSED ? bs_gate : bs_plain;
    bool ready = (bs_me.chunk && bs_me.generation == bs_process.generation) || bs_take(op);
    return ready ? bs_gate : bs_plain;
}

BS_API int chdir(const char *path)
{
    u64 time = bs_now();
    const char *way = way_for_later(BS_OP_CHDIR);
    s64 result = bs_through6(way, __NR_chdir, BS_SIX(path, 0, 0, 0, 0, 0, 0));
    if (way == bs_gate)
        log_directory(time, BS_AT_FDCWD, path, result, 512);
    return (int)bs_ret(result);
}

BS_API int fchdir(int fd)
{
    u64 time = bs_now();
    const char *way = way_for_later(BS_OP_CHDIR);
    s64 result = bs_through6(way, __NR_fchdir, BS_SIX(fd, 0, 0, 0, 0, 0, 0));
    if (way == bs_gate)
        log_directory(time, fd, "", result, 512);
    return (int)bs_ret(result);
}

static s64 moved(s64 result)
{
    if (result >= 0)
        __atomic_or_fetch(&bs_odd, BS_ODD_MOVED, __ATOMIC_SEQ_CST);
    return result;
}

BS_API int chroot(const char *path)
{
    struct bs_rec rec = bs_begin_path(BS_OP_CHROOT, BS_AT_FDCWD, 0, 0, path);
    return (int)bs_finish(rec, moved(bs_call(rec, __NR_chroot, path)));
}

/* In libc under no header; programs declare it themselves, or use `syscall`. */
s64 bs_pivot_root(const char *root, const char *old)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_PIVOT, BS_AT_FDCWD, 0, 0, root, old);
    return bs_end(rec, moved(bs_call(rec, __NR_pivot_root, root, old)));
}

BS_API int pivot_root(const char *root, const char *old)
{
    return (int)bs_ret(bs_pivot_root(root, old));
}

BS_API int mount(const char *source, const char *target, const char *type, u64 flags, const void *options)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_MOUNT, BS_AT_FDCWD, 0, 0, source, target ? target : "");
    return (int)bs_finish(rec, moved(bs_call(rec, __NR_mount, source, target, type, flags, options)));
}

static int unmount(const char *target, int flags)
{
    struct bs_rec rec = bs_begin_paths(BS_OP_MOUNT, BS_AT_FDCWD, 1, 0, "", target ? target : "");
    return (int)bs_finish(rec, moved(bs_call(rec, __NR_umount2, target, flags)));
}

BS_API int umount(const char *target)
{
    return unmount(target, 0);
}

BS_API int umount2(const char *target, int flags)
{
    return unmount(target, flags);
}

BS_API int unshare(int flags)
{
    struct bs_rec rec = bs_begin(BS_OP_NAMESPACE, BS_AT_FDCWD, 0, (u32)flags);
    return (int)bs_finish(rec, moved(bs_call(rec, __NR_unshare, flags)));
}

BS_API int setns(int fd, int kind)
{
    struct bs_rec rec = bs_begin(BS_OP_NAMESPACE, fd, 0, (u32)kind);
    return (int)bs_finish(rec, moved(bs_call(rec, __NR_setns, fd, kind)));
}
