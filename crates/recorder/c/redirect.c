/*
 * Redirects calls inside libc that do not go through the loader:
 *
 * - the read, write and close of its streams,
 * - its `open` and `close` for locales,
 * - its `getdents64` for directories,
 * - its `execve` for posix_spawn, system and popen.
 *
 * Each entry is redirected to the recorder once, after a check that its code is the expected one.
 * Any other entry is left alone, and the guard sees its calls.
 */
#include "bs.h"
#include <linux/mman.h>

s64 _IO_file_read(void *stream, void *to, s64 n);
s64 _IO_file_write(void *stream, const void *from, s64 n);
int _IO_file_close(void *stream);

static s64 (*real_read)(void *, void *, s64);
static s64 (*real_write)(void *, const void *, s64);
static int (*real_close)(void *);
bool bs_closes_are_seen, bs_exec_is_redirected, bs_lists_are_seen;
static bool internal_tried;

/* ---- streams --------------------------------------------------------------------------------- */

/* glibc's FILE. Macros compiled into old programs fix the offset of its descriptor. */
static inline int descriptor(const void *stream)
{
    return *(const int *)((const char *)stream + 112);
}

static s64 read_of_stream(void *stream, void *to, s64 n)
{
    int fd = descriptor(stream);
    if (BS_LIKELY(bs_fd_marks(fd) & BS_FD_READ && !(bs_modes & BS_MODE_ALL_OPS)))
        return real_read(stream, to, n);
    u64 time = bs_now();
    s64 got = real_read(stream, to, n);
    if (got >= 0) {
        bs_note(time, BS_OP_READ, fd, 0, 0, got);
        bs_fd_mark(fd, BS_FD_READ);
    }
    return got;
}

static s64 stream_read(void *stream, void *to, s64 n)
{
    u64 time = BS_DEEP_TIME();
    s64 got = read_of_stream(stream, to, n);
    BS_DEEP_LOG_RETURN(time, got, __NR_read, descriptor(stream), to, n);
    return got;
}

static s64 write_of_stream(void *stream, const void *from, s64 n)
{
    int fd = descriptor(stream);
    if (BS_LIKELY(bs_fd_marks(fd) & BS_FD_WROTE && !(bs_modes & BS_MODE_ALL_OPS)))
        return real_write(stream, from, n);
    bs_about_to_change(fd);
    struct bs_reservation rec = bs_begin(BS_OP_WRITE, fd, 0, 0);
    s64 put = real_write(stream, from, n);
    bs_end(rec, put);
    if (put > 0)
        bs_fd_mark(fd, BS_FD_WROTE);
    return put;
}

static s64 stream_write(void *stream, const void *from, s64 n)
{
    u64 time = BS_DEEP_TIME();
    s64 put = write_of_stream(stream, from, n);
    /* libc returns how many bytes were written, also if the last of several writes failed */
    BS_DEEP_LOG_RETURN(time, put, __NR_write, descriptor(stream), from, n);
    return put;
}

static int stream_close(void *stream)
{
    int fd = descriptor(stream);
    u64 time = BS_DEEP_TIME();
    struct bs_reservation rec = bs_begin_close(fd);
    bs_fd_closed((u32)fd);
    int result = (int)bs_end(rec, real_close(stream));
    BS_DEEP_LOG_RETURN(time, result, __NR_close, fd);
    return result;
}

enum { TABLE_ENTRIES = 21 };

static bool is_table(void **table)
{
    return table && table[14] == (void *)real_read && table[15] == (void *)real_write &&
           table[17] == (void *)real_close;
}

static void redirect_table(void **table)
{
    __atomic_store_n(&table[14], (void *)stream_read, __ATOMIC_RELEASE);
    __atomic_store_n(&table[15], (void *)stream_write, __ATOMIC_RELEASE);
    __atomic_store_n(&table[17], (void *)stream_close, __ATOMIC_RELEASE);
}

/* glibc's tables of stream functions are adjacent, in memory that is read-only after relocation. */
void bs_redirect_stdio(void)
{
    void **plain = bs_next_or_null("_IO_file_jumps"), **wide = bs_next_or_null("_IO_wfile_jumps");
    real_read = bs_next_or_null("_IO_file_read");
    real_write = bs_next_or_null("_IO_file_write");
    real_close = bs_next_or_null("_IO_file_close");
    if (!real_read || !real_write || !real_close || !is_table(plain) || !is_table(wide))
        return;
    void **low = plain < wide ? plain : wide, **high = plain < wide ? wide : plain;
    u64 page = (u64)low & ~(u64)(BS_PAGE - 1), end = (u64)(high + TABLE_ENTRIES);
    if (end - page > 4 * BS_PAGE ||
        bs_raw(__NR_mprotect, page, end - page, PROT_READ | PROT_WRITE) < 0)
        return;
    redirect_table(plain);
    redirect_table(wide);
    bs_closes_are_seen = true;
    bs_raw(__NR_mprotect, page, end - page, PROT_READ);
}

/* ---- libc's own entries ---------------------------------------------------------------------- */

enum { JUMP_SIZE = 14, ENDBR64 = 0xfa1e0ff3 };

/*
 * True if the function begins with this system call. It is then libc's own and not another
 * library's wrapper.
 */
static bool is_plain_call(const u8 *function, u32 nr)
{
    if (*(const u32 *)function == (u32)ENDBR64)
        function += 4;
    return function[0] == 0xb8 && *(const u32 *)(function + 1) == nr && function[5] == 0x0f &&
           function[6] == 0x05;
}

/* True if the function makes this system call soon after offset `from`. */
static bool asks_soon(const u8 *function, u32 from, u32 nr)
{
    enum { SOON = 128, NEARBY = 32 };
    const u8 *number = function + from;
    while (number < function + SOON && !(number[0] == 0xb8 && *(const u32 *)(number + 1) == nr))
        number++;
    for (const u8 *c = number + 5; c < number + NEARBY && c < function + SOON; c++)
        if (c[0] == 0x0f && c[1] == 0x05)
            return true;
    return false;
}

/*
 * Writes a jump over the function's first bytes. This happens only while one thread exists, and
 * with signals blocked. The pages stay executable all the time. Where new code is forbidden (MDWE,
 * a service's filter), a removed right would not come back, and libc could not run.
 */
static bool jump_to(u8 *function, void *to)
{
    u64 page = (u64)function & ~(u64)(BS_PAGE - 1), size = (u64)function + JUMP_SIZE - page;
    if (bs_raw(__NR_mprotect, page, size, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
        return false;
    function[0] = 0xff; /* jmp *0(%rip) */
    function[1] = 0x25;
    *(u32 *)(function + 2) = 0;
    *(u64 *)(function + 6) = (u64)to;
    bs_raw(__NR_mprotect, page, size, PROT_READ | PROT_EXEC);
    return true;
}

static int open_for_libc(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    u32 mode = va_arg(args, u32);
    va_end(args);
    s64 fd = bs_me.actions ? bs_spawned_open(path, flags, mode)
                           : bs_open_file(BS_AT_FDCWD, path, flags, mode);
    return (int)bs_ret(fd);
}

static int exec_for_libc(const char *path, char *const *argv, char *const *env)
{
    if (bs_me.actions)
        bs_spawned_exec();
    return (int)bs_ret(bs_exec(BS_AT_FDCWD, path, argv, env, 0, false));
}

/*
 * Called when libc closes a descriptor. The next file with this number must not be taken for the
 * closed one. Between the marks of a spawned child nothing is logged: `popen` closes the child's
 * end of its pipe there. A record without BS_F_CHILD would mean that the child is another program.
 */
static int close_for_libc(int fd)
{
    struct bs_reservation rec = {0};
    if (!bs_me.borrowed) {
        rec = bs_begin_close(fd);
        bs_fd_closed((u32)fd);
    }
    u64 time = BS_DEEP_TIME();
    s64 result = bs_finish(rec, bs_call(rec, __NR_close, fd));
    BS_DEEP_LOG_RETURN(time, result, __NR_close, fd);
    return (int)result;
}

/*
 * Called when libc lists a directory. The first piece of a list is never empty. The last piece is
 * always empty, so it is not logged.
 */
static ssize list_for_libc(int fd, void *to, size_t n)
{
    u64 time = bs_now();
    ssize got = bs_raw(__NR_getdents64, fd, to, n);
    if (got > 0)
        bs_note(time, BS_OP_LIST, fd, 0, 0, 0);
    BS_DEEP_LOG(time, got, __NR_getdents64, fd, to, n);
    return bs_ret(got);
}

void bs_redirect_internal(void)
{
    if (internal_tried || bs_modes & BS_MODE_SANDBOX || !bs_is_ready(BS_OP_START))
        return;
    internal_tried = true;
    const char *single = bs_next_or_null("__libc_single_threaded");
    if (!single || !*single || bs_threaded)
        return;
    u8 *execute = bs_next_or_null("execve"), *open_file = bs_next_or_null("__open_nocancel"),
       *list = bs_next_or_null("getdents64"), *close_file = bs_next_or_null("__close_nocancel");
    u64 all = ~0ull, before = 0;
    bs_raw(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &before, sizeof all);
    if (execute && is_plain_call(execute, __NR_execve))
        bs_exec_is_redirected = jump_to(execute, (void *)exec_for_libc);
    if (open_file && asks_soon(open_file, JUMP_SIZE, __NR_openat))
        jump_to(open_file, (void *)open_for_libc);
    if (close_file && is_plain_call(close_file, __NR_close))
        jump_to(close_file, (void *)close_for_libc);
    if (list && asks_soon(list, 0, __NR_getdents64))
        bs_lists_are_seen = jump_to(list, (void *)list_for_libc);
    bs_raw(__NR_rt_sigprocmask, 2, &before, 0, sizeof before);
}

/* walks.S: returns libc's function of this name. */
__attribute__((used)) void *bs_begin_walk(const char *name)
{
    void *function = 0;
    bs_redirect_internal();
    return bs_find(&function, name);
}

char *setlocale(int category, const char *locale);

/* The first locale of a program reads some thirty files. */
BS_INTERCEPTED char *setlocale(int category, const char *locale)
{
    if (locale)
        bs_redirect_internal();
    return BS_NEXT(setlocale)(category, locale);
}

void *newlocale(int categories, const char *locale, void *base);

BS_API void *newlocale(int categories, const char *locale, void *base)
{
    if (locale)
        bs_redirect_internal();
    return BS_NEXT(newlocale)(categories, locale, base);
}
BS_ALIAS(__newlocale, newlocale);
