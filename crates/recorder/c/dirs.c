/*
 * Records directories. The recorder opens them, passes them to libc, and logs them when the program
 * first reads their entries.
 */
#include "bs.h"

void *fdopendir(int fd);
int dirfd(void *dir);
void *readdir(void *dir);
void *readdir64(void *dir);
int readdir_r(void *dir, void *entry, void **result);
int readdir64_r(void *dir, void *entry, void **result);
int closedir(void *dir);
void *opendir(const char *path);
ssize getdents64(int fd, void *to, size_t n);

BS_INTERCEPTED void *opendir(const char *path)
{
    if (bs_modes & BS_MODE_SANDBOX)
        return BS_NEXT(opendir)(path);
    s64 fd =
        bs_ret(bs_open_file(BS_AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC, 0));
    if (fd < 0)
        return 0;
    void *dir = BS_NEXT(fdopendir)((int)fd);
    if (!dir)
        bs_raw(__NR_close, fd);
    return dir;
}

static BS_COLD void log_list(int fd)
{
    bs_note(0, BS_OP_LIST, fd, 0, 0, 0);
    bs_fd_mark(fd, BS_FD_LISTED);
}

/*
 * Called before an entry is read. If the recorder sees libc's own listing, it logs the directory
 * there instead.
 */
static __attribute__((noinline)) void list(void *dir)
{
    if (BS_LIKELY(bs_lists_are_seen))
        return;
    int fd = BS_NEXT(dirfd)(dir);
    if (BS_UNLIKELY(!(bs_fd_marks(fd) & BS_FD_LISTED)))
        log_list(fd);
}

BS_INTERCEPTED void *readdir(void *dir)
{
    list(dir);
    return BS_NEXT(readdir)(dir);
}

BS_INTERCEPTED void *readdir64(void *dir)
{
    list(dir);
    return BS_NEXT(readdir64)(dir);
}

BS_INTERCEPTED int readdir_r(void *dir, void *entry, void **result)
{
    list(dir);
    return BS_NEXT(readdir_r)(dir, entry, result);
}

BS_INTERCEPTED int readdir64_r(void *dir, void *entry, void **result)
{
    list(dir);
    return BS_NEXT(readdir64_r)(dir, entry, result);
}

BS_API ssize getdents64(int fd, void *to, size_t n)
{
    if (!(bs_fd_marks(fd) & BS_FD_LISTED))
        log_list(fd);
    u64 time = BS_DEEP_TIME();
    s64 got = bs_raw(__NR_getdents64, fd, to, n);
    BS_DEEP_LOG(time, got, __NR_getdents64, fd, to, n);
    return bs_ret(got);
}

BS_INTERCEPTED int closedir(void *dir)
{
    if (!dir)
        return BS_NEXT(closedir)(dir);
    int fd = BS_NEXT(dirfd)(dir);
    struct bs_reservation rec = bs_begin_close(fd);
    bs_fd_closed((u32)fd);
    return (int)bs_end(rec, BS_NEXT(closedir)(dir));
}
