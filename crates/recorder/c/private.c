/*
 * Remembers the files that this process made and that no other process has read or written. The
 * process reads from them only what it has written itself. So no content is lost when it changes
 * them, and it need not notify the supervisor.
 *
 * Invariant: a file counts as private only while no other process can have its descriptor. A new
 * child, or a descriptor sent to another process, ends that for all files. A process that opens the
 * file by name has reported it, or has put it into the filter of changed files.
 */
#include "bs.h"
#include <linux/stat.h>

static u64 *private_files(void)
{
    return (u64 *)(bs_process->fd + BS_MAX_FD);
}

/*
 * Hashes of the names that the files were made under. They are a hint that excludes most other
 * files.
 */
static u32 *private_names(void)
{
    return (u32 *)(private_files() + BS_PRIVATE_FILES);
}

/* True if this thread belongs to the process itself, and the process is in its usual state. */
static bool is_usual(void)
{
    return bs_process->generation && !bs_me.borrowed &&
           !(bs_modes & (BS_MODE_SHARED_MEMORY | BS_MODE_SANDBOX | BS_MODE_STRICT));
}

/* A number for each file. It is never 0, and changes with each `bs_share_all`. */
static u64 tag(const struct bs_ident *ident)
{
    u64 hash =
        (ident->dev ^ (u64)bs_process->private_round << 32) * 0x9e3779b97f4a7c15ull ^ ident->ino;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ull ^ (u64)ident->birth;
    hash = (hash ^ hash >> 32) * 0x94d049bb133111ebull;
    return (hash ^ hash >> 31) | 1;
}

/*
 * The table entry of a file: one of two neighbours. If both belong to other files, it is the first.
 */
static u64 *file_entry(u64 tag)
{
    u64 *at = private_files() + (tag >> 40) % BS_PRIVATE_FILES,
        *beside = private_files() + ((tag >> 40) % BS_PRIVATE_FILES ^ 1);
    return *beside == tag || (*at && *at != tag && !*beside) ? beside : at;
}

static void raise_to(u64 *to, u64 value)
{
    u64 old = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (old < value &&
           !__atomic_compare_exchange_n(to, &old, value, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
}

/*
 * Counts a report in the arena. Reports by other processes between two of this process count as
 * `reported_by_others`. Threads may overtake each other here. `reported` may then fall back, which
 * makes this process's reports look like reports by others.
 */
void bs_report(void)
{
    u64 before = __atomic_fetch_add(&bs_arena->reported, 1, __ATOMIC_SEQ_CST);
    if (!bs_process->generation || bs_me.borrowed)
        return;
    if (__atomic_load_n(&bs_process->reported, __ATOMIC_RELAXED) != before)
        raise_to(&bs_process->reported_by_others, before);
    __atomic_store_n(&bs_process->reported, before + 1, __ATOMIC_RELEASE);
}

/* True if the filter contains all that other processes have read. */
static bool filter_has_reads_of_others(void)
{
    u64 reported = __atomic_load_n(&bs_arena->reported, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bs_process->reported, __ATOMIC_ACQUIRE) != reported) {
        raise_to(&bs_process->reported_by_others, reported);
        __atomic_store_n(&bs_process->reported, reported, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&bs_process->reported_by_others, __ATOMIC_ACQUIRE) <=
           __atomic_load_n(&bs_arena->filtered, __ATOMIC_ACQUIRE);
}

struct bits {
    u64 *first, *second;
    u64 in_first, in_second;
};

/* The two words of the filter that hold a file's bits, and the bits in them. */
static struct bits bits(u64 dev, u64 ino)
{
    u64 *filter = (u64 *)((u8 *)bs_arena + BS_ARENA_READS);
    const u64 hash = BS_READS_HASH(dev, ino), first = BS_READS_FIRST(hash),
              second = BS_READS_SECOND(hash);
    return (struct bits){filter + first / 64, filter + second / 64, 1ull << first % 64,
                         1ull << second % 64};
}

bool bs_may_be_read(u64 dev, u64 ino)
{
    struct bits b = bits(dev, ino);
    return __atomic_load_n(b.first, __ATOMIC_RELAXED) & b.in_first &&
           __atomic_load_n(b.second, __ATOMIC_RELAXED) & b.in_second;
}

static void put(u64 dev, u64 ino)
{
    struct bits b = bits(dev, ino);
    __atomic_or_fetch(b.first, b.in_first, __ATOMIC_SEQ_CST);
    __atomic_or_fetch(b.second, b.in_second, __ATOMIC_SEQ_CST);
}

/*
 * Runs before the change is made. The process that made the file must not take the changed content
 * for what it wrote itself.
 */
void bs_report_change(const struct bs_ident *ident)
{
    if (bs_may_be_read(ident->dev, ident->ino ^ BS_READS_CHANGED))
        return;
    put(ident->dev, ident->ino ^ BS_READS_CHANGED);
}

/* A hash of the name, never 0. */
static u32 name_hash(int dir, const char *path)
{
    u64 hash = bs_process->private_round ^ (u64)(*path == '/' ? BS_AT_FDCWD : dir) << 32;
    for (; *path; path++)
        hash = (hash ^ (u8)*path) * 0x100000001b3ull;
    hash *= 0x9e3779b97f4a7c15ull;
    return (u32)(hash >> 32) | 1;
}

/* The table entry of a name, found like the entry of a file. */
static u32 *name_entry(u32 name)
{
    u32 first = name / 2 % BS_PRIVATE_FILES, *at = private_names() + first,
        *beside = private_names() + (first ^ 1);
    return *beside == name || (*at && *at != name && !*beside) ? beside : at;
}

void bs_remember_made(int dir, const char *path, s64 fd)
{
    if (!bs_arena || !(bs_arena->flags & BS_ARENA_KEEP) || fd < 0 || !is_usual())
        return;
    bs_fd_mark((int)fd, BS_FD_MADE);
    u32 made = name_hash(dir, path);
    bs_process->has_private = true;
    __atomic_store_n(name_entry(made), made, __ATOMIC_RELAXED);
}

static s64 look_at(int fd, struct bs_ident *ident)
{
    return bs_identify((struct bs_look){fd, "", AT_EMPTY_PATH, 0, true}, ident);
}

/*
 * Called after an open for reading. It reads the file's identity only if a file made here has the
 * same name.
 */
BS_COLD bool bs_reads_private_file(int dir, const char *path, s64 fd)
{
    struct bs_ident ident;
    u32 hash = name_hash(dir, path);
    if (!is_usual() || __atomic_load_n(name_entry(hash), __ATOMIC_RELAXED) != hash)
        return false;
    if (look_at((int)fd, &ident) < 0 || !bs_is_private(&ident, false) ||
        bs_may_be_read(ident.dev, ident.ino ^ BS_READS_CHANGED))
        return false;
    bs_fd_mark((int)fd, BS_FD_PRIVATE);
    return (bs_fd_marks((int)fd) & BS_FD_PRIVATE) != 0;
}

void bs_share(int fd)
{
    struct bs_ident ident;
    if (BS_LIKELY(!(bs_fd_marks(fd) & BS_FD_PRIVATE)))
        return;
    bs_process->fd[fd] &= (u8)~BS_FD_PRIVATE;
    if (look_at(fd, &ident) < 0)
        return;
    put(ident.dev, ident.ino ^ BS_READS_SHARED);
    put(ident.dev, ident.ino);
}

/* The kernel reuses inode numbers, but not for a file with the same birth time. */
void bs_wrote_private(int fd, const struct bs_ident *ident)
{
    if (!(bs_fd_marks(fd) & BS_FD_MADE) || !ident->birth || !is_usual())
        return;
    u64 number = tag(ident);
    __atomic_store_n(file_entry(number), number, __ATOMIC_RELAXED);
}

bool bs_is_private(const struct bs_ident *ident, bool goes)
{
    if (!ident->birth || !is_usual())
        return false;
    u64 number = tag(ident);
    if (__atomic_load_n(file_entry(number), __ATOMIC_RELAXED) != number)
        return false;
    if (goes)
        __atomic_store_n(file_entry(number), 0, __ATOMIC_RELAXED);
    return true;
}

bool bs_is_unused_by_others(const struct bs_ident *ident)
{
    return filter_has_reads_of_others() && !bs_may_be_read(ident->dev, ident->ino) &&
           !bs_may_be_read(ident->dev, ident->ino ^ BS_READS_CHANGED);
}

void bs_share_all(void)
{
    BS_DEEP_DO(bs_deep_share_accepted());
    if (BS_LIKELY(!bs_process->has_private))
        return;
    bs_process->has_private = false;
    __atomic_add_fetch(&bs_process->private_round, 1, __ATOMIC_SEQ_CST);
    for (u32 fd = 0; fd <= bs_process->highest; fd++) {
        bs_share((int)fd);
        if (bs_process->fd[fd] & BS_FD_MADE)
            bs_process->fd[fd] &= (u8)~BS_FD_MADE;
    }
}
