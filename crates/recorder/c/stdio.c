/*
 * Records streams. The recorder opens the files and passes them to libc as descriptors. libc's
 * reads, writes and closes are logged at its streams' system calls (redirect.c). Where that is not
 * possible, they are logged at the stream's close.
 */
#include "bs.h"

void *fopen(const char *path, const char *mode);
void *fdopen(int fd, const char *mode);
void *freopen(const char *path, const char *mode, void *stream);
int fclose(void *stream);
int fileno(void *stream);
int mkstemp(char *pattern);
int mkostemp(char *pattern, int flags);
int mkstemps(char *pattern, int suffix);
int mkostemps(char *pattern, int suffix, int flags);
char *mkdtemp(char *pattern);

/*
 * The flags of `open` for a mode of `fopen`; -1 if libc must open the file, or refuse the mode.
 */
static int open_flags(const char *mode)
{
    int flags;
    switch (*mode) {
    case 'r': flags = O_RDONLY; break;
    case 'w': flags = O_WRONLY | O_CREAT | O_TRUNC; break;
    case 'a': flags = O_WRONLY | O_CREAT | O_APPEND; break;
    default: return -1;
    }
    for (const char *c = mode + 1; *c; c++) {
        if (*c == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        else if (*c == 'x')
            flags |= O_EXCL;
        else if (*c == 'e')
            flags |= O_CLOEXEC;
        else if (*c == 'm' || *c == ',')
            return -1; /* `fdopen` does not support memory mapping or a character set */
    }
    return flags;
}

/*
 * libc makes a stream before it opens the file, and frees it if the file cannot be opened. So later
 * memory lies elsewhere. For a mode that does not exist, glibc does the same, and opens nothing.
 * musl refuses such a mode at once. It makes its streams after the open.
 */
static BS_COLD void make_and_free_stream(const char *path)
{
    BS_NEXT(fopen)(path, "?");
}

BS_INTERCEPTED void *fopen(const char *path, const char *mode)
{
    int flags = bs_modes & BS_MODE_SANDBOX ? -1 : open_flags(mode);
    if (flags < 0)
        return BS_NEXT(fopen)(path, mode);
    s64 fd = bs_open_file(BS_AT_FDCWD, path, flags, 0666);
    if (fd < 0) {
        make_and_free_stream(path);
        bs_ret(fd);
        return 0;
    }
    if (flags & O_APPEND && !(flags & O_RDWR))
        bs_raw(__NR_lseek, fd, 0, 2 /* SEEK_END */); /* as `fopen` does, and `fdopen` does not */
    void *stream = BS_NEXT(fdopen)((int)fd, mode);
    if (!stream)
        bs_raw(__NR_close, fd);
    return stream;
}
BS_ALIAS(fopen64, fopen);
BS_ALIAS(_IO_fopen, fopen);

/*
 * libc opens the file inside, and the guard sees that. Only this wrapper knows the new descriptor.
 * Without a guard, only it knows the file, too.
 */
BS_INTERCEPTED void *freopen(const char *path, const char *mode, void *stream)
{
    u64 time = bs_now();
    int before = BS_NEXT(fileno)(stream);
    if (before >= 0 && !bs_closes_are_seen) {
        bs_end(bs_begin_close(before), 0);
        bs_fd_closed((u32)before);
    }
    BS_AUTO_DO(bs_me.reopens = true);
    void *result = BS_NEXT(freopen)(path, mode, stream);
    BS_AUTO_DO(bs_me.reopens = false);
    if (!path)
        return result;
    int flags = open_flags(mode), fd = result ? BS_NEXT(fileno)(result) : -1;
    struct bs_reservation rec =
        bs_begin_path(BS_OP_OPEN, BS_AT_FDCWD, flags < 0 ? 0 : flags, 0666, path);
    if (rec.record)
        rec.record->time = time;
    bs_fd_opened(fd, flags < 0 ? 0 : flags);
    bs_end(rec, result ? fd : bs_error());
    return result;
}
BS_ALIAS(freopen64, freopen);

BS_INTERCEPTED int fclose(void *stream)
{
    if (bs_closes_are_seen)
        return BS_NEXT(fclose)(stream);
    int fd = BS_NEXT(fileno)(stream);
    struct bs_reservation rec = {0};
    if (fd >= 0) {
        /* The close writes the rest of the buffer, so the file cannot be identified yet. */
        rec = bs_begin(BS_OP_CLOSE, fd, 0, 0);
        bs_fd_closed((u32)fd);
    }
    return (int)bs_end(rec, BS_NEXT(fclose)(stream));
}
BS_ALIAS(_IO_fclose, fclose);

/* ---- temporary files ------------------------------------------------------------------------- */

/*
 * Replaces six characters by random ones, as libc does. `make` returns the final result, or -EEXIST
 * to try another name.
 */
static s64 with_unique_name(char *pattern, int suffix, int flags,
                            s64 (*make)(const char *path, int flags))
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    u32 n = bs_length(pattern, BS_PATH_MAX);
    if (suffix < 0 || n < 6 + (u32)suffix || !bs_starts(pattern + n - 6 - suffix, "XXXXXX"))
        return -BS_EINVAL;
    char *place = pattern + n - 6 - suffix;
    for (int tries = 0; tries < 62 * 62 * 62; tries++) {
        u64 random = 0;
        if (bs_raw(__NR_getrandom, &random, sizeof random, 1 /* GRND_NONBLOCK */) < 8)
            random = (__builtin_ia32_rdtsc() ^ (u64)pattern) * 0x9e3779b97f4a7c15ull;
        random >>= 4;
        for (int i = 0; i < 6; i++, random /= 62)
            place[i] = letters[random % 62];
        s64 result = make(pattern, flags);
        if (result != -BS_EEXIST)
            return result;
    }
    return -BS_EEXIST;
}

static s64 make_file(const char *path, int flags)
{
    return bs_open_file(BS_AT_FDCWD, path, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
}

static s64 make_directory(const char *path, int flags)
{
    (void)flags;
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin_path(BS_OP_MKDIR, BS_AT_FDCWD, 0, 0700, path);
    s64 result = bs_end(rec, bs_call(rec, __NR_mkdir, path, 0700));
    BS_DEEP_LOG(time, result, __NR_mkdir, path, 0700, 1 /* libc's name */);
    return result;
}

BS_API int mkostemps(char *pattern, int suffix, int flags)
{
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_NO_TSC))
        return BS_NEXT(mkostemps)(pattern, suffix, flags);
    return (int)bs_ret(with_unique_name(pattern, suffix, flags, make_file));
}
BS_ALIAS(mkostemps64, mkostemps);

BS_API int mkstemps(char *pattern, int suffix)
{
    return mkostemps(pattern, suffix, 0);
}
BS_ALIAS(mkstemps64, mkstemps);

BS_API int mkostemp(char *pattern, int flags)
{
    return mkostemps(pattern, 0, flags);
}
BS_ALIAS(mkostemp64, mkostemp);

BS_API int mkstemp(char *pattern)
{
    return mkostemps(pattern, 0, 0);
}
BS_ALIAS(mkstemp64, mkstemp);

BS_API char *mkdtemp(char *pattern)
{
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_NO_TSC)) {
        BS_AUTO_DO(bs_need_filter());
        return BS_NEXT(mkdtemp)(pattern);
    }
    return bs_ret(with_unique_name(pattern, 0, 0, make_directory)) < 0 ? 0 : pattern;
}
