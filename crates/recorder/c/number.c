/*
 * Handles system calls that a program makes by number, through libc's `syscall`. A call that has a
 * wrapper goes to the wrapper: without a guard no other component sees it. All others go to the
 * kernel.
 *
 * A call by number is no cancellation point, and its arguments reach the kernel unchanged. The
 * recorder preserves both properties.
 */
#include "shape.h"

/* Functions of other files, declared as in libc. */
int prctl(int option, ...);
ssize read(int fd, void *to, size_t n);
ssize pread(int fd, void *to, size_t n, s64 at);
ssize readv(int fd, const void *parts, int count);
ssize preadv(int fd, const void *parts, int count, s64 at);
ssize preadv2(int fd, const void *parts, int count, s64 at, int flags);
ssize recvfrom(int fd, void *to, size_t n, int flags, void *from, u32 *size);
ssize recvmsg(int fd, void *message, int flags);
int recvmmsg(int fd, void *messages, u32 count, int flags, void *timeout);
ssize write(int fd, const void *from, size_t n);
ssize pwrite(int fd, const void *from, size_t n, s64 at);
ssize writev(int fd, const void *parts, int count);
ssize pwritev(int fd, const void *parts, int count, s64 at);
ssize pwritev2(int fd, const void *parts, int count, s64 at, int flags);
ssize sendto(int fd, const void *from, size_t n, int flags, const void *to, u32 size);
ssize sendmsg(int fd, const void *message, int flags);
int sendmmsg(int fd, void *messages, u32 count, int flags);
ssize vmsplice(int fd, const void *parts, size_t count, u32 flags);
int fallocate(int fd, int mode, s64 at, s64 size);
ssize sendfile(int to, int from, s64 *at, size_t n);
ssize copy_file_range(int from, s64 *from_at, int to, s64 *to_at, size_t n, u32 flags);
ssize splice(int from, s64 *from_at, int to, s64 *to_at, size_t n, u32 flags);
ssize tee(int from, int to, size_t n, u32 flags);
int truncate(const char *path, s64 size);
int ftruncate(int fd, s64 size);
void *mmap(void *at, size_t size, int protection, int flags, int fd, s64 offset);
int openat(int dir, const char *path, int flags, ...);
int open_tree(int dir, const char *path, u32 flags);
int close(int fd);
int close_range(unsigned first, unsigned last, int flags);
int dup(int fd);
int dup2(int fd, int to);
int dup3(int fd, int to, int flags);
int fcntl(int fd, int command, ...);
int ioctl(int fd, unsigned long request, ...);
int socketpair(int domain, int type, int protocol, int ends[2]);
int socket(int domain, int type, int protocol);
int connect(int fd, const void *address, u32 size);
int bind(int fd, const void *address, u32 size);
int listen(int fd, int backlog);
int memfd_create(const char *name, u32 flags);
int eventfd(u32 start, int flags);
int epoll_create(int size);
int epoll_create1(int flags);
int timerfd_create(int clock, int flags);
int inotify_init1(int flags);
int pidfd_open(int pid, u32 flags);
int signalfd(int fd, const void *mask, int flags);
int fstatat(int dir, const char *path, void *to, int flags);
int statx(int dir, const char *path, int flags, u32 mask, void *to);
int access(const char *path, int mode);
int faccessat(int dir, const char *path, int mode, int flags);
ssize readlink(const char *path, char *to, size_t size);
ssize readlinkat(int dir, const char *path, char *to, size_t size);
ssize getdents64(int fd, void *to, size_t n);
int rename(const char *path, const char *to);
int renameat(int dir, const char *path, int to_dir, const char *to);
int renameat2(int dir, const char *path, int to_dir, const char *to, u32 flags);
int link(const char *path, const char *to);
int linkat(int dir, const char *path, int to_dir, const char *to, int flags);
int symlink(const char *target, const char *path);
int symlinkat(const char *target, int dir, const char *path);
int unlink(const char *path);
int unlinkat(int dir, const char *path, int flags);
int rmdir(const char *path);
int mkdir(const char *path, u32 mode);
int mkdirat(int dir, const char *path, u32 mode);
int mknodat(int dir, const char *path, u32 mode, u64 device);
int chdir(const char *path);
int fchdir(int fd);
int chroot(const char *path);
int pivot_root(const char *root, const char *old);
int mount(const char *source, const char *target, const char *type, u64 flags, const void *options);
int umount2(const char *target, int flags);
int unshare(int flags);
int setns(int fd, int kind);
int chmod(const char *path, u32 mode);
int fchmod(int fd, u32 mode);
int fchmodat(int dir, const char *path, u32 mode, int flags);
int chown(const char *path, u32 user, u32 group);
int lchown(const char *path, u32 user, u32 group);
int fchown(int fd, u32 user, u32 group);
int fchownat(int dir, const char *path, u32 user, u32 group, int flags);
int utime(const char *path, const void *times);
int utimes(const char *path, const void *times);
int futimesat(int dir, const char *path, const void *times);
int utimensat(int dir, const char *path, const void *times, int flags);
int futimens(int fd, const void *times);
int setxattr(const char *path, const char *name, const void *value, size_t size, int flags);
int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags);
int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int removexattr(const char *path, const char *name);
int lremovexattr(const char *path, const char *name);
int fremovexattr(int fd, const char *name);
int execve(const char *path, char *const *argv, char *const *env);
int execveat(int dir, const char *path, char *const *argv, char *const *env, int flags);
int wait4(int pid, int *status, int options, void *usage);
int waitid(int kind, u32 id, void *info, int options);
int kill(int pid, int signal);
int tgkill(int pid, int tid, int signal);
void _exit(int status) __attribute__((noreturn));
int pthread_setcancelstate(int state, int *old);

enum { SET_MODE_STRICT = 0, SET_MODE_FILTER = 1 };
enum { MASK = 8 /* bytes of a signal mask */, F_GETOWN_AS_LIBC = 1036 };

/* An argument as the path type that the wrappers take. */
#define AT(x) ((const char *)(x))
#define TO(x) ((void *)(x))
#define AS_IT_IS return bs_ret(bs_raw6(nr, a, b, c, d, e, f))

/*
 * This function is long because it is a table. Each wrapper here makes this very system call: a
 * tracer or a filter sees the call that the program made.
 */
static s64 by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    switch (nr) {
    /* Files by name, and changes of names. */
    case __NR_open: return bs_ret(bs_open_plainly(nr, AT(a), (int)b, (u32)c));
    case __NR_creat:
        return bs_ret(bs_open_plainly(nr, AT(a), O_WRONLY | O_CREAT | O_TRUNC, (u32)b));
    case __NR_openat: return openat((int)a, AT(b), (int)c, (u32)d);
    case __NR_open_tree: return open_tree((int)a, AT(b), (u32)c);
    case __NR_openat2: return bs_ret(bs_open_how((int)a, AT(b), AT(c), (u64)d));
    case __NR_stat: return BS_LOOKED(stat, STAT, (.strings = 1, .path = 1), a, b);
    case __NR_lstat:
        return BS_LOOKED(lstat, STAT, (.strings = 1, .path = 1, .arg_is = AT_SYMLINK_NOFOLLOW), a,
                         b);
    case __NR_newfstatat: return fstatat((int)a, AT(b), TO(c), (int)d);
    case __NR_statx: return statx((int)a, AT(b), (int)c, (u32)d, TO(e));
    case __NR_access: return access(AT(a), (int)b);
    case __NR_faccessat: return faccessat((int)a, AT(b), (int)c, 0);
    case __NR_readlink: return readlink(AT(a), TO(b), (size_t)c);
    case __NR_readlinkat: return readlinkat((int)a, AT(b), TO(c), (size_t)d);
    case __NR_rename: return rename(AT(a), AT(b));
    case __NR_renameat: return renameat((int)a, AT(b), (int)c, AT(d));
    case __NR_renameat2: return renameat2((int)a, AT(b), (int)c, AT(d), (u32)e);
    case __NR_link: return link(AT(a), AT(b));
    case __NR_linkat: return linkat((int)a, AT(b), (int)c, AT(d), (int)e);
    case __NR_symlink: return symlink(AT(a), AT(b));
    case __NR_symlinkat: return symlinkat(AT(a), (int)b, AT(c));
    case __NR_unlink: return unlink(AT(a));
    case __NR_unlinkat: return unlinkat((int)a, AT(b), (int)c);
    case __NR_rmdir: return rmdir(AT(a));
    case __NR_mkdir: return mkdir(AT(a), (u32)b);
    case __NR_mkdirat: return mkdirat((int)a, AT(b), (u32)c);
    case __NR_mknod: return BS_SHAPED(mknod, MKNOD, (.strings = 1, .path = 1, .aux = 2), a, b, c);
    case __NR_mknodat: return mknodat((int)a, AT(b), (u32)c, (u64)d);
    case __NR_truncate: return truncate(AT(a), b);
    case __NR_chdir: return chdir(AT(a));
    case __NR_fchdir: return fchdir((int)a);
    case __NR_chroot: return chroot(AT(a));
    case __NR_pivot_root: return pivot_root(AT(a), AT(b));
    case __NR_mount: return mount(AT(a), AT(b), AT(c), (u64)d, AT(e));
    case __NR_umount2: return umount2(AT(a), (int)b);
    case __NR_chmod: return chmod(AT(a), (u32)b);
    case __NR_fchmod: return fchmod((int)a, (u32)b);
    case __NR_fchmodat: return fchmodat((int)a, AT(b), (u32)c, 0);
    case __NR_chown: return chown(AT(a), (u32)b, (u32)c);
    case __NR_lchown: return lchown(AT(a), (u32)b, (u32)c);
    case __NR_fchown: return fchown((int)a, (u32)b, (u32)c);
    case __NR_fchownat: return fchownat((int)a, AT(b), (u32)c, (u32)d, (int)e);
    case __NR_utime: return utime(AT(a), AT(b));
    case __NR_utimes: return utimes(AT(a), AT(b));
    case __NR_futimesat: return futimesat((int)a, AT(b), AT(c));
    case __NR_utimensat:
        if (b)
            return utimensat((int)a, AT(b), AT(c), (int)d);
        if (a >= 0 && !d)
            return futimens((int)a, AT(c));
        AS_IT_IS; /* it fails anyway */
    case __NR_setxattr: return setxattr(AT(a), AT(b), AT(c), (size_t)d, (int)e);
    case __NR_lsetxattr: return lsetxattr(AT(a), AT(b), AT(c), (size_t)d, (int)e);
    case __NR_fsetxattr: return fsetxattr((int)a, AT(b), AT(c), (size_t)d, (int)e);
    case __NR_removexattr: return removexattr(AT(a), AT(b));
    case __NR_lremovexattr: return lremovexattr(AT(a), AT(b));
    case __NR_fremovexattr: return fremovexattr((int)a, AT(b));
    /* Descriptors, and data moved through them. */
    case __NR_close: return close((int)a);
    case __NR_close_range: return close_range((u32)a, (u32)b, (int)c);
    case __NR_dup: return dup((int)a);
    case __NR_dup2: return dup2((int)a, (int)b);
    case __NR_dup3: return dup3((int)a, (int)b, (int)c);
    case __NR_fcntl:
        if (b == F_GETOWN || b == F_GETOWN_AS_LIBC) /* libc makes another call for these */
            AS_IT_IS;
        return fcntl((int)a, (int)b, c);
    case __NR_ioctl: return ioctl((int)a, (u64)b, c);
    case __NR_read: return read((int)a, TO(b), (size_t)c);
    case __NR_pread64: return pread((int)a, TO(b), (size_t)c, d);
    case __NR_readv: return readv((int)a, AT(b), (int)c);
    case __NR_preadv: return preadv((int)a, AT(b), (int)c, d);
    case __NR_preadv2: return preadv2((int)a, AT(b), (int)c, d, (int)f);
    case __NR_recvfrom: return recvfrom((int)a, TO(b), (size_t)c, (int)d, TO(e), TO(f));
    case __NR_recvmsg: return recvmsg((int)a, TO(b), (int)c);
    case __NR_recvmmsg: return recvmmsg((int)a, TO(b), (u32)c, (int)d, TO(e));
    case __NR_getdents64: return getdents64((int)a, TO(b), (size_t)c);
    case __NR_write: return write((int)a, AT(b), (size_t)c);
    case __NR_pwrite64: return pwrite((int)a, AT(b), (size_t)c, d);
    case __NR_writev: return writev((int)a, AT(b), (int)c);
    case __NR_pwritev: return pwritev((int)a, AT(b), (int)c, d);
    case __NR_pwritev2: return pwritev2((int)a, AT(b), (int)c, d, (int)f);
    case __NR_sendto: return sendto((int)a, AT(b), (size_t)c, (int)d, AT(e), (u32)f);
    case __NR_sendmsg: return sendmsg((int)a, AT(b), (int)c);
    case __NR_sendmmsg: return sendmmsg((int)a, TO(b), (u32)c, (int)d);
    case __NR_vmsplice: return vmsplice((int)a, AT(b), (size_t)c, (u32)d);
    case __NR_fallocate: return fallocate((int)a, (int)b, c, d);
    case __NR_ftruncate: return ftruncate((int)a, b);
    case __NR_sendfile: return sendfile((int)a, (int)b, TO(c), (size_t)d);
    case __NR_copy_file_range:
        return copy_file_range((int)a, TO(b), (int)c, TO(d), (size_t)e, (u32)f);
    case __NR_splice: return splice((int)a, TO(b), (int)c, TO(d), (size_t)e, (u32)f);
    case __NR_tee: return tee((int)a, (int)b, (size_t)c, (u32)d);
    case __NR_mmap: return (s64)mmap(TO(a), (size_t)b, (int)c, (int)d, (int)e, f);
    /* Channels, descriptors that are neither file nor channel, and processes. */
    case __NR_pipe:
    case __NR_pipe2: return bs_make_pipe(nr, TO(a), nr == __NR_pipe ? 0 : (int)b);
    case __NR_socketpair: return socketpair((int)a, (int)b, (int)c, TO(d));
    case __NR_socket: return socket((int)a, (int)b, (int)c);
    case __NR_connect: return connect((int)a, AT(b), (u32)c);
    case __NR_bind: return bind((int)a, AT(b), (u32)c);
    case __NR_listen: return listen((int)a, (int)b);
    case __NR_accept:
    case __NR_accept4: return bs_accept(nr, (int)a, TO(b), TO(c), nr == __NR_accept ? 0 : (int)d);
    case __NR_memfd_create: return memfd_create(AT(a), (u32)b);
    case __NR_eventfd2: return eventfd((u32)a, (int)b);
    case __NR_epoll_create: return epoll_create((int)a);
    case __NR_epoll_create1: return epoll_create1((int)a);
    case __NR_timerfd_create: return timerfd_create((int)a, (int)b);
    case __NR_inotify_init1: return inotify_init1((int)a);
    case __NR_pidfd_open: return pidfd_open((int)a, (u32)b);
    case __NR_signalfd4:
        if (c != MASK)
            AS_IT_IS; /* it fails anyway */
        return signalfd((int)a, AT(b), (int)d);
    case __NR_unshare: return unshare((int)a);
    case __NR_setns: return setns((int)a, (int)b);
    case __NR_execve: return execve(AT(a), TO(b), TO(c));
    case __NR_execveat: return execveat((int)a, AT(b), TO(c), TO(d), (int)e);
    case __NR_wait4: return wait4((int)a, TO(b), (int)c, TO(d));
    case __NR_waitid:
        if (e) /* libc never passes such an argument */
            AS_IT_IS;
        return waitid((int)a, (u32)b, TO(c), (int)d);
    case __NR_kill: return kill((int)a, (int)b);
    case __NR_tgkill: return tgkill((int)a, (int)b, (int)c);
    case __NR_exit_group: _exit((int)a);
    /* Interfaces that the recorder cannot decode. */
    case __NR_ptrace: bs_log_opaque_trace((int)a); break;
    case __NR_acct: bs_log_opaque(BS_OPAQUE_ACCT); break;
    case __NR_swapon: bs_log_opaque(BS_OPAQUE_SWAPON); break;
    case __NR_fanotify_init: bs_log_opaque_events((u32)a); break;
    case __NR_mq_open: bs_log_opaque(BS_OPAQUE_QUEUE); break;
    case __NR_open_by_handle_at: bs_log_opaque(BS_OPAQUE_HANDLE); break;
    case __NR_process_vm_writev: bs_log_opaque(BS_OPAQUE_MEMORY); break;
    case __NR_pidfd_getfd: bs_log_opaque(BS_OPAQUE_DESCRIPTOR); break;
    case __NR_io_uring_setup: bs_log_opaque(BS_OPAQUE_RING); break;
    }
    BS_DEEP_DO(return bs_ret(bs_deep_by_number(nr, a, b, c, d, e, f)));
    AS_IT_IS;
}

/*
 * True for calls whose paths the guard reads. A tracer may have changed the paths at the call's
 * entry, and the guard reads them after that. So in a run with a guard the recorder leaves these
 * calls to it.
 */
static bool is_for_the_guard(s64 nr)
{
    switch (nr) {
    case __NR_open:
    case __NR_creat:
    case __NR_rename:
    case __NR_renameat:
    case __NR_link:
    case __NR_linkat:
    case __NR_symlink:
    case __NR_symlinkat:
    case __NR_unlink:
    case __NR_unlinkat:
    case __NR_rmdir:
    case __NR_mkdir:
    case __NR_mkdirat:
    case __NR_mknod:
    case __NR_mknodat:
    case __NR_truncate:
    case __NR_chroot:
    case __NR_mount:
    case __NR_umount2:
    case __NR_chmod:
    case __NR_fchmodat:
    case __NR_chown:
    case __NR_lchown:
    case __NR_fchownat:
    case __NR_utime:
    case __NR_utimes:
    case __NR_futimesat:
    case __NR_utimensat:
    case __NR_setxattr:
    case __NR_lsetxattr:
    case __NR_removexattr:
    case __NR_lremovexattr:
    case __NR_execve: return bs_arena && bs_is_guarded();
    default: return false;
    }
}

/* True for calls whose wrappers are cancellation points. By number, they are not. */
static bool is_cancelled_in_wrapper(s64 nr)
{
    switch (nr) {
    case __NR_openat:
    case __NR_close:
    case __NR_fcntl:
    case __NR_read:
    case __NR_pread64:
    case __NR_readv:
    case __NR_preadv:
    case __NR_preadv2:
    case __NR_recvfrom:
    case __NR_recvmsg:
    case __NR_recvmmsg:
    case __NR_write:
    case __NR_pwrite64:
    case __NR_writev:
    case __NR_pwritev:
    case __NR_pwritev2:
    case __NR_sendto:
    case __NR_sendmsg:
    case __NR_sendmmsg:
    case __NR_vmsplice:
    case __NR_fallocate:
    case __NR_sendfile:
    case __NR_copy_file_range:
    case __NR_splice:
    case __NR_tee:
    case __NR_connect:
    case __NR_accept:
    case __NR_accept4:
    case __NR_wait4:
    case __NR_waitid: return true;
    default: return false;
    }
}

static s64 uncancelled(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    int old = 0;
    BS_NEXT(pthread_setcancelstate)(1 /* PTHREAD_CANCEL_DISABLE */, &old);
    s64 result = by_number(nr, a, b, c, d, e, f);
    BS_NEXT(pthread_setcancelstate)(old, 0);
    return result;
}

/*
 * Declared without a variable list of arguments, so that no frame is left when a child is made
 * (clone.c). The seventh argument lies behind the return address. It is not declared: most callers
 * pass none, and the compiler would write to the callers' frames there.
 */
BS_API s64 syscall(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    s64 f = ((const s64 *)__builtin_frame_address(0))[2];
    BS_AUTO_DO(if (!bs_is_harmless_call(nr)) bs_need_filter());
    if (nr == __NR_seccomp && (a == SET_MODE_STRICT || (a == SET_MODE_FILTER && c)))
        return bs_limit(a == SET_MODE_STRICT, nr, a, b, c, d, e);
    if (nr == __NR_prctl)
        return prctl((int)a, b, c, d, e);
    if (nr == __NR_fork || nr == __NR_clone || nr == __NR_clone3)
        return bs_clone_by_number(nr, a, b, c, d, e);
    if (nr == __NR_landlock_restrict_self)
        __atomic_or_fetch(&bs_modes, BS_MODE_MOVED, __ATOMIC_SEQ_CST);
    if (is_for_the_guard(nr))
        AS_IT_IS;
    if (BS_UNLIKELY(bs_threaded) && is_cancelled_in_wrapper(nr))
        return uncancelled(nr, a, b, c, d, e, f);
    return by_number(nr, a, b, c, d, e, f);
}
