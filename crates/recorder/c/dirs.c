/* Directories: opened here, handed to libc, and noted when their entries are first read. */
#include "bs.h"

void *fdopendir(int fd);
int dirfd(void *dir);
void *readdir(void *dir);
void *readdir64(void *dir);
int readdir_r(void *dir, void *entry, void **result);
int readdir64_r(void *dir, void *entry, void **result);
int closedir(void *dir);
void *opendir(const char *path);
int scandir(const char *path, void ***list, int (*wanted)(const void *),
            int (*order)(const void **, const void **));
int scandirat(int dir, const char *path, void ***list, int (*wanted)(const void *),
              int (*order)(const void **, const void **));
ssize getdents64(int fd, void *to, size_t n);

BS_INTERCEPTED void *opendir(const char *path)
{
    if (bs_odd & BS_ODD_SANDBOX)
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

static inline void list(int fd)
{
    if (BS_UNLIKELY(!(bs_fd_marks(fd) & BS_FD_LISTED)))
        log_list(fd);
}

BS_INTERCEPTED void *readdir(void *dir)
{
    list(BS_NEXT(dirfd)(dir));
    return BS_NEXT(readdir)(dir);
}

BS_INTERCEPTED void *readdir64(void *dir)
{
    list(BS_NEXT(dirfd)(dir));
    return BS_NEXT(readdir64)(dir);
}

BS_INTERCEPTED int readdir_r(void *dir, void *entry, void **result)
{
    list(BS_NEXT(dirfd)(dir));
    return BS_NEXT(readdir_r)(dir, entry, result);
}

BS_INTERCEPTED int readdir64_r(void *dir, void *entry, void **result)
{
    list(BS_NEXT(dirfd)(dir));
    return BS_NEXT(readdir64_r)(dir, entry, result);
}

BS_API ssize getdents64(int fd, void *to, size_t n)
{
    list(fd);
    return bs_ret(bs_raw(__NR_getdents64, fd, to, n));
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

/*
 * libc opens and lists inside: the guard sees the open. Without a guard it is logged here, with a number that no open
 * descriptor has.
 */
enum { UNKNOWN_FD = 1 << 20 };

static int scanned(u64 time, int dir, const char *path, int count)
{
    if (!bs_arena || bs_arena->flags & BS_ARENA_GUARDED)
        return count;
    struct bs_reservation rec =
        bs_begin_path(BS_OP_OPEN, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, path);
    if (rec.record)
        rec.record->time = time;
    bs_end(rec, count >= 0 ? UNKNOWN_FD : bs_error());
    if (count >= 0) {
        bs_note(time, BS_OP_LIST, UNKNOWN_FD, 0, 0, 0);
        bs_note(0, BS_OP_CLOSE, UNKNOWN_FD, 0, 0, 0);
    }
    return count;
}

BS_INTERCEPTED int scandir(const char *path, void ***to, int (*wanted)(const void *),
                           int (*order)(const void **, const void **))
{
    u64 time = bs_now();
    return scanned(time, BS_AT_FDCWD, path, BS_NEXT(scandir)(path, to, wanted, order));
}
BS_ALIAS(scandir64, scandir);

BS_API int scandirat(int dir, const char *path, void ***to, int (*wanted)(const void *),
                     int (*order)(const void **, const void **))
{
    u64 time = bs_now();
    return scanned(time, dir, path, BS_NEXT(scandirat)(dir, path, to, wanted, order));
}
BS_ALIAS(scandirat64, scandirat);
