/*
 * Redirects calls inside libc that do not go through the loader:
 *
 * - the read, write and close of its streams, and for deep logs their seek,
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
#ifdef BS_AUTO
bool bs_connects_are_seen;
#endif
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
    if (BS_LIKELY(!bs_is_news(fd, BS_FD_READ)))
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
    if (BS_LIKELY(!bs_is_news(fd, BS_FD_WROTE)))
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

#ifdef BS_DEEP
s64 _IO_file_seek(void *stream, s64 offset, int whence);

static s64 (*real_seek)(void *, s64, int);

/* A device, a pipe and a file answer differently, and nothing else may say which of these it is. */
static s64 stream_seek(void *stream, s64 offset, int whence)
{
    u64 time = BS_DEEP_TIME();
    s64 at = real_seek(stream, offset, whence);
    BS_DEEP_LOG_RETURN(time, at, __NR_lseek, descriptor(stream), offset, whence);
    return at;
}

static void redirect_seek(void **table)
{
    if (real_seek && table[16] == (void *)real_seek)
        __atomic_store_n(&table[16], (void *)stream_seek, __ATOMIC_RELEASE);
}
#endif

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
    BS_DEEP_DO(redirect_seek(table));
}

/* glibc's tables of stream functions are adjacent, in memory that is read-only after relocation. */
void bs_redirect_stdio(void)
{
    void **plain = bs_next_or_null("_IO_file_jumps"), **wide = bs_next_or_null("_IO_wfile_jumps");
    real_read = bs_next_or_null("_IO_file_read");
    real_write = bs_next_or_null("_IO_file_write");
    real_close = bs_next_or_null("_IO_file_close");
    BS_DEEP_DO(real_seek = bs_next_or_null("_IO_file_seek"));
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

enum { ENDBR64 = 0xfa1e0ff3 };

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

#if defined(BS_AUTO) || defined(BS_FUNCTIONS) || defined(BS_DEEP)
static bs_load_function *real_load;

/*
 * The loader's calls have a `syscall` instruction of its own, so the guard must see them, or they
 * must be known before. A loaded library may have functions whose calls are redirected, or
 * instructions that ask the processor.
 */
static void *load_for_libc(const char *name, int mode, const void *caller, s64 space, int argc,
                           char **argv, char **env)
{
#ifdef BS_AUTO
    struct bs_load load = {real_load, name, mode, caller, space, argc, argv, env, 0};
    return bs_load(&load);
#else
    void *loaded = real_load(name, mode, caller, space, argc, argv, env);
    BS_FUNCTIONS_DO(bs_redirect_libraries());
    BS_DEEP_DO(bs_instructions_loaded());
    return loaded;
#endif
}

/* True if the address is in the same object as `end`, before it. */
static bool is_before(u64 at, u64 end)
{
    enum { BEHIND = 0x10000 }; /* bytes at most between the description of an object and its end */
    for (const struct bs_link_map *l = bs_first_library; l; l = l->next) {
        u64 described = (u64)l->dynamic;
        if (l->base <= at && at < end && described > l->base && end < described + BEHIND)
            return true;
    }
    return false;
}

/*
 * Finds the entry of the loader's table that `dlopen` calls through. `dlopen` loads the address of
 * its inner function into rdi. The inner function loads the entry. Null if the code is another.
 */
static bs_load_function **load_entry(void)
{
    enum { SOON = 128 };
    const u8 *outer = bs_next_or_null("dlopen"), *inner = 0;
    u8 *table = bs_next_or_null("_rtld_global_ro");
    for (const u8 *c = outer; outer && !inner && c < outer + SOON; c++)
        if (c[0] == 0x48 && c[1] == 0x8d && c[2] == 0x3d) /* lea inner(%rip),%rdi */
            inner = c + 7 + *(const s32 *)(c + 3);
    for (const u8 *c = inner; inner && table && c < inner + SOON; c++)
        if (c[0] == 0x48 && c[1] == 0x8b && c[2] == 0x80) { /* mov offset(%rax),%rax */
            u32 offset = *(const u32 *)(c + 3);
            bs_load_function **entry = (bs_load_function **)(table + offset);
            if (offset < 0x800 && offset % 8 == 0 && is_before((u64)*entry, (u64)table))
                return entry;
        }
    return 0;
}

bool bs_redirect_load(void)
{
    bs_load_function **entry = load_entry();
    u64 page = (u64)entry & ~(u64)(BS_PAGE - 1);
    if (!entry || bs_raw(__NR_mprotect, page, BS_PAGE, PROT_READ | PROT_WRITE) < 0)
        return false;
    real_load = *entry;
    __atomic_store_n(entry, load_for_libc, __ATOMIC_RELEASE);
    bs_raw(__NR_mprotect, page, BS_PAGE, PROT_READ);
    return true;
}
#endif

#ifdef BS_AUTO
/*
 * libc reads a list before it loads a library of the name service or a converter of characters. So
 * the loader's entry is replaced at the first open inside libc. Another thread, or a signal handler
 * in between, may be here at the same time.
 */
static void see_loads(void)
{
    static u32 begun;
    static bool seen;
    u32 none = 0;
    if (BS_LIKELY(seen))
        return;
    if (__atomic_compare_exchange_n(&begun, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        seen = bs_redirect_load();
    if (!seen)
        bs_need_filter();
}
#endif

static int open_for_libc(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    u32 mode = va_arg(args, u32);
    va_end(args);
    BS_AUTO_DO(see_loads());
    s64 fd = bs_me.actions ? bs_spawned_open(path, flags, mode)
                           : bs_open_file(BS_AT_FDCWD, path, flags, mode);
    return (int)bs_ret(fd);
}

#ifdef BS_AUTO
int openat(int dir, const char *path, int flags, ...);
int connect(int fd, const void *address, u32 size);
int bind(int fd, const void *address, u32 size);

/*
 * `freopen` opens inside libc, and logs the open itself when libc has moved the new descriptor.
 * This one is then gone.
 */
static int cancelled_open_for_libc(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    u32 mode = va_arg(args, u32);
    va_end(args);
    see_loads();
    int fd = (int)bs_ret(bs_open_file(BS_AT_FDCWD, path, flags, mode));
    if (bs_me.reopens && fd >= 0)
        bs_note(0, BS_OP_CLOSE, fd, 0, 0, 0);
    return fd;
}
#endif

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

/* The jumps over internal functions, which the recorder needs in each of its forms, come first. */
enum { EXECUTE, OPEN, CLOSE, LIST, INTERNAL };

static struct bs_jump jump_if(bool is_expected, u8 *from, void *to)
{
    return (struct bs_jump){is_expected ? from : 0, to, false};
}

static void prepare_internal(struct bs_jump jumps[INTERNAL])
{
    u8 *execute = bs_next_or_null("execve"), *open_file = bs_next_or_null("__open_nocancel"),
       *list = bs_next_or_null("getdents64"), *close_file = bs_next_or_null("__close_nocancel");
    jumps[EXECUTE] =
        jump_if(execute && is_plain_call(execute, __NR_execve), execute, (void *)exec_for_libc);
    jumps[OPEN] = jump_if(open_file && asks_soon(open_file, BS_JUMP_SIZE, __NR_openat), open_file,
                          (void *)open_for_libc);
    jumps[CLOSE] = jump_if(close_file && is_plain_call(close_file, __NR_close), close_file,
                           (void *)close_for_libc);
    jumps[LIST] = jump_if(list && asks_soon(list, 0, __NR_getdents64), list, (void *)list_for_libc);
}

static void write_all(struct bs_jump *jumps, u32 count)
{
    u64 all = ~0ull, before = 0;
    bs_raw(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &before, sizeof all);
    bs_write_jumps(jumps, count);
    bs_exec_is_redirected |= jumps[EXECUTE].written;
    bs_lists_are_seen |= jumps[LIST].written;
    bs_raw(__NR_rt_sigprocmask, 2, &before, 0, sizeof before);
}

bool bs_has_one_thread(void)
{
    if (bs_threaded)
        return false;
    const char *single = bs_next_or_null("__libc_single_threaded");
    return single && *single;
}

void bs_redirect_internal(void)
{
    if (internal_tried || bs_modes & BS_MODE_SANDBOX || !bs_is_ready(BS_OP_START))
        return;
    internal_tried = true;
    struct bs_jump jumps[INTERNAL];
    if (bs_has_one_thread()) {
        prepare_internal(jumps);
        write_all(jumps, INTERNAL);
    }
    BS_AUTO_DO(if (!bs_exec_is_redirected) bs_need_filter());
}

/*
 * The same for a function that opens files and lists directories. In this form of the library the
 * constructor has done that, but for `execve`: `wordexp` executes a shell.
 */
static void redirect_files(void)
{
    BS_AUTO_DO(if (bs_lists_are_seen) return );
    bs_redirect_internal();
}

#ifdef BS_AUTO
/* The jump over libc's function of this name, if it begins as expected. */
static struct bs_jump jump(const char *name, u32 nr, void *to)
{
    u8 *from = bs_next_or_null(name);
    return jump_if(from && (is_plain_call(from, nr) || asks_soon(from, 0, nr)), from, to);
}

/*
 * After this, the changed pages of libc are the process's own. Each costs a fault and a copy. So
 * the constructor leaves out what this program does not need, or needs only after an open inside
 * libc.
 */
bool bs_redirect_first(u64 verdict)
{
    enum { MORE = 4, ALL = INTERNAL + MORE };
    struct bs_jump jumps[ALL] = {0};
    if (!bs_has_one_thread())
        return false;
    prepare_internal(jumps);
    jumps[EXECUTE].from = 0; /* for children, whose wrappers redirect it */
    jumps[INTERNAL] = jump("open", __NR_openat, (void *)cancelled_open_for_libc);
    jumps[INTERNAL + 1] = jump("openat", __NR_openat, (void *)openat);
    u32 count = INTERNAL + 2;
    if (verdict & BS_VERDICT_CONNECTS) {
        jumps[count++] = jump("connect", __NR_connect, (void *)connect);
        jumps[count++] = jump("bind", __NR_bind, (void *)bind);
    }
    write_all(jumps, count);
    for (u32 i = 0; i < count; i++)
        if (!jumps[i].written && i != CLOSE && i != EXECUTE)
            return false;
    bs_connects_are_seen = verdict & BS_VERDICT_CONNECTS;
    if (verdict & BS_VERDICT_LOADS)
        see_loads();
    return true;
}

/* True if libc makes calls that no redirection sees, or looks for the directory of a user. */
static bool walks_unseen(const char *name, u64 second)
{
    enum { TILDE = 1 << 12, TILDE_CHECK = 1 << 14 };
    if (bs_starts(name, "glob"))
        return second & (TILDE | TILDE_CHECK);
    return !bs_same(name, "scandir");
}
#endif

/*
 * walks.S: returns libc's function of this name. `second` is the second argument of its caller.
 */
__attribute__((used)) void *bs_begin_walk(const char *name, u64 second)
{
    void *function = 0;
    (void)second;
    BS_AUTO_DO(if (walks_unseen(name, second)) bs_need_filter());
    if (bs_same(name, "wordexp"))
        bs_redirect_internal();
    else
        redirect_files();
    return bs_find(&function, name);
}

char *setlocale(int category, const char *locale);

/* The first locale of a program reads some thirty files. */
BS_INTERCEPTED char *setlocale(int category, const char *locale)
{
    if (locale)
        redirect_files();
    return BS_NEXT(setlocale)(category, locale);
}

void *newlocale(int categories, const char *locale, void *base);

BS_API void *newlocale(int categories, const char *locale, void *base)
{
    if (locale)
        redirect_files();
    return BS_NEXT(newlocale)(categories, locale, base);
}
BS_ALIAS(__newlocale, newlocale);
