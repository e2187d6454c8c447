/*
 * Records what a descriptor is: once, before its first read or write. The reads of some files then
 * need no bytes in the log.
 */
#include "stream.h"
#include <linux/stat.h>

/*
 * An entry of the table of descriptors. 0: nothing is known. With OPENED: a call in this process's
 * stream opened it, READ_ONLY or not, and the rest is a hash of the path, or 0. LATER alone: a call
 * in the stream accepted it. Otherwise the number of its fact, and the other bits.
 */
enum { REFERENCED = 1, READ_ONLY = 1, OPENED = 2, REGULAR = 4, LATER = 8, NUMBER = 16 };
static const u64 PATH = ~(u64)(READ_ONLY | OPENED);

/*
 * Marks of files whose name, when the kernel was asked for it, was the path by which they had been
 * opened. Of two files with the same place, the later one stays.
 */
enum { NAMES = 1024 };
static u64 names[NAMES];

static u64 *entry_of(int fd)
{
    u8 *table = bs_process->fd + BS_DESCRIPTORS_AT;
    bool known = (u32)fd < BS_MAX_FD && bs_process->generation && !bs_me.borrowed;
    return known ? (u64 *)table + fd : 0;
}

void bs_deep_forget(u32 fd)
{
    u64 *entry = fd < BS_MAX_FD ? entry_of((int)fd) : 0;
    if (entry && *entry)
        *entry = 0;
}

static u64 hash_of(const void *at, u64 size)
{
    struct bs_part part = {.size = size, .at = at};
    return bs_hash(&part);
}

/* A path in an entry. A relative one says nothing without the directory. */
static u64 hash_of_path(const char *path, u64 size)
{
    return size && *path == '/' ? hash_of(path, size) & PATH : 0;
}

void bs_deep_opened(s64 fd, const char *path, int flags)
{
    u64 *entry = fd >= 0 && fd < BS_MAX_FD ? entry_of((int)fd) : 0, none = 0;
    if (!entry)
        return;
    u64 opened = OPENED | ((flags & O_ACCMODE) == O_RDONLY ? READ_ONLY : 0) |
                 hash_of_path(path, bs_length(path, BS_PATH_MAX));
    /* Another thread may know the descriptor already. */
    __atomic_compare_exchange_n(entry, &none, opened, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/*
 * The call that accepted the connection says what it is. Its inode is asked for once another
 * process may have it: that number tells which sockets of two processes are one.
 */
void bs_deep_accepted(int fd)
{
    u64 *entry = entry_of(fd), none = 0;
    if (!entry || !bs_deep_is_on() || bs_deep_me.gap)
        return;
    if (__atomic_compare_exchange_n(entry, &none, LATER, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_store_n(&bs_process->deep_later, true, __ATOMIC_RELEASE);
}

/* Writes a number with a text around it, and a null byte. Returns the length. */
static u64 join(char *to, const char *before, u64 number, const char *after)
{
    char digits[20], *at = to;
    u32 n = 0;
    for (u64 rest = number; n == 0 || rest; rest /= 10)
        digits[n++] = (char)('0' + rest % 10);
    while (*before)
        *at++ = *before++;
    while (n)
        *at++ = digits[--n];
    while (*after)
        *at++ = *after++;
    *at = 0;
    return (u64)(at - to);
}

/*
 * The target of the link /proc/self/fd/N. The look-up takes longer than the rest of the record, and
 * a server has a new socket for each request. The name of a socket is its inode (proc(5)).
 */
static s64 target(int fd, const struct bs_ident *ident, char *to, u64 size)
{
    if ((ident->mode & S_IFMT) == S_IFSOCK)
        return (s64)join(to, "socket:[", ident->ino, "]");
    char name[32];
    join(name, "/proc/self/fd/", (u32)fd, "");
    return bs_gated(__NR_readlinkat, BS_AT_FDCWD, name, to, size);
}

/*
 * True if the run stores the content of the file. It is a regular file with a name, opened for
 * reading, and this process did not make it. A file of /proc has the size 0.
 */
static bool is_stored(int fd, u64 entry, const struct bs_ident *ident)
{
    enum { GETFL = 3 };
    if (!(bs_arena->flags & BS_ARENA_KEEP) || (ident->mode & S_IFMT) != S_IFREG || !ident->size ||
        !ident->nlink || bs_is_private(ident, false))
        return false;
    if (entry & OPENED)
        return entry & READ_ONLY;
    s64 flags = bs_raw(__NR_fcntl, fd, GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
}

/*
 * The mark of a file and of the path by which it was opened, or 0. A name that was the kernel's
 * once is taken for its name as long as the same file is opened by it.
 */
static u64 mark_of(u64 path, const struct bs_ident *ident)
{
    if (!path || (ident->mode & S_IFMT) != S_IFREG || !ident->nlink)
        return 0;
    u64 key[4] = {path, ident->dev, ident->ino, (u64)ident->birth};
    return hash_of(key, sizeof key);
}

/* The name of a descriptor, unless it is the path of the record that opened it: then 0 bytes. */
static s64 name_of(int fd, u64 entry, const struct bs_ident *ident, char *to, u64 size)
{
    u64 path = entry & OPENED ? entry & PATH : 0;
    u64 mark = mark_of(path, ident), *place = &names[mark % NAMES];
    if (mark && __atomic_load_n(place, __ATOMIC_RELAXED) == mark)
        return 0;
    s64 n = target(fd, ident, to, size);
    if (n <= 0) { /* no path would mean that of the record that opened it */
        *to = BS_DEEP_NO_NAME;
        return 1;
    }
    if (mark && n < (s64)size && hash_of_path(to, (u64)n) == path)
        __atomic_store_n(place, mark, __ATOMIC_RELAXED);
    return n;
}

/*
 * The position is left out if the stream has the call that opened the file, and the present call
 * does not move it. The calls in between tell it then.
 */
static BS_COLD struct bs_deep_file describe(int fd, s64 moved, u64 *entry, u64 known)
{
    struct bs_deep_file file = {.position = -1};
    struct bs_ident ident;
    struct bs_look look = {.dir = fd, .path = "", .flags = AT_EMPTY_PATH};
    if (bs_modes & BS_MODE_SANDBOX || bs_identify_any(look, &ident) < 0)
        return file;
    file.number = __atomic_add_fetch(&bs_process->deep_descriptors, 1, __ATOMIC_RELAXED);
    file.referenced = is_stored(fd, known, &ident);
    file.regular = (ident.mode & S_IFMT) == S_IFREG;
    if (entry)
        *entry = (u64)file.number * NUMBER | (file.referenced ? REFERENCED : 0) |
                 (file.regular ? REGULAR : 0);
    char link[256];
    s64 n = name_of(fd, known, &ident, link, sizeof link);
    struct bs_part parts[2] = {
        {.kind = BS_DEEP_IDENT, .size = sizeof ident, .at = &ident},
        {.kind = BS_DEEP_PATH, .size = (u64)n, .at = link},
    };
    if (file.regular && (moved != BS_DEEP_UNMOVED || !(known & OPENED)))
        file.position = bs_raw(__NR_lseek, fd, 0, 1 /* SEEK_CUR */);
    s64 position = file.position;
    if (moved > 0 && position >= moved)
        position -= moved;
    struct bs_deep_record record = {.call = BS_DEEP_DESCRIPTOR,
                                    .flags = n == sizeof link ? BS_DEEP_CUT : 0,
                                    .time = bs_now(),
                                    .fd = fd,
                                    .result = ident.mode & S_IFMT,
                                    .a = file.number,
                                    .b = (u64)position};
    bs_deep_append(&record, parts, 2);
    return file;
}

struct bs_deep_file bs_deep_describe(int fd, s64 moved)
{
    u64 *entry = entry_of(fd), known = entry ? *entry : 0;
    if (BS_LIKELY(known && !(known & OPENED)))
        return (struct bs_deep_file){.number = (u32)(known / NUMBER),
                                     .referenced = known & REFERENCED,
                                     .regular = known & REGULAR,
                                     .position = -1};
    return describe(fd, moved, entry, known);
}

/* Describes it also if that was put off. */
static void describe_now(int fd)
{
    u64 *entry = entry_of(fd), known = entry ? *entry : 0;
    if (!known || known & OPENED || known == LATER)
        describe(fd, 0, entry, known);
}

void bs_deep_passed(int fd)
{
    if (bs_deep_is_on())
        describe_now(fd);
}

/* A connection that is accepted meanwhile sets the mark again. */
void bs_deep_share_accepted(void)
{
    if (BS_LIKELY(!bs_process->deep_later) || bs_me.borrowed ||
        !__atomic_exchange_n(&bs_process->deep_later, false, __ATOMIC_ACQUIRE))
        return;
    for (u32 fd = 0; fd <= bs_process->highest; fd++) {
        const u64 *entry = entry_of((int)fd);
        if (entry && *entry == LATER)
            bs_deep_passed((int)fd);
    }
}

/* Afterwards no call may be made. Descriptors above these are only numbers in the log. */
void bs_deep_before_limit(void)
{
    enum { MOST = 256, GETFD = 1 };
    if (!bs_deep_is_on())
        return;
    for (int fd = 0; fd < MOST; fd++)
        if (bs_raw(__NR_fcntl, fd, GETFD) >= 0)
            describe_now(fd);
}
