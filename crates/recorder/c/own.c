/*
 * Remembers the files that this process made and that no other process has read or written. The
 * process reads from them only what it has written itself. So no content is lost when it changes
 * them, and it need not notify the supervisor.
 *
 * Invariant: a file counts as the process's own only while no other process can have its
 * descriptor. A new child, or a descriptor sent to another process, ends that for all files. A
 * process that opens the file by name has reported it, or has put it into the filter of changed
 * files.
 */
#include "bs.h"
#include <linux/stat.h>

static u64 *own_files(void)
{
    return (u64 *)(bs_process->fd + BS_MAX_FD);
}

/*
 * Hashes of the names that the files were made under. They are a hint that excludes most other
 * files.
 */
static u32 *own_names(void)
{
    return (u32 *)(own_files() + BS_OWN);
}

/* True if this thread belongs to the process itself, and the process is in its usual state. */
static bool knows(void)
{
    return bs_process->generation && !bs_me.borrowed &&
           !(bs_odd & (BS_ODD_SHARED | BS_ODD_SANDBOX | BS_ODD_STRICT));
}

/* A number for each file. It is never 0, and changes with each `bs_disown_all`. */
static u64 tag(const struct bs_ident *ident)
{
    u64 hash = (ident->dev ^ (u64)bs_process->own << 32) * 0x9e3779b97f4a7c15ull ^ ident->ino;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ull ^ (u64)ident->birth;
    hash = (hash ^ hash >> 32) * 0x94d049bb133111ebull;
    return (hash ^ hash >> 31) | 1;
}

/*
 * The table entry of a file: one of two neighbours. If both belong to other files, it is the first.
 */
static u64 *place(u64 tag)
{
    u64 *at = own_files() + (tag >> 40) % BS_OWN,
        *beside = own_files() + ((tag >> 40) % BS_OWN ^ 1);
    return *beside == tag || (*at && *at != tag && !*beside) ? beside : at;
}

static void raise(u64 *to, u64 value)
{
    u64 old = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (old < value &&
           !__atomic_compare_exchange_n(to, &old, value, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
}

/*
 * Counts a report in the arena. Reports by other processes between two of this process count as
 * `others`. Threads may overtake each other here. `told` may then fall back, which makes the
 * process's own reports look like others'.
 */
void bs_tell(void)
{
    u64 before = __atomic_fetch_add(&bs_arena->told, 1, __ATOMIC_SEQ_CST);
    if (!bs_process->generation || bs_me.borrowed)
        return;
    if (__atomic_load_n(&bs_process->told, __ATOMIC_RELAXED) != before)
        raise(&bs_process->others, before);
    __atomic_store_n(&bs_process->told, before + 1, __ATOMIC_RELEASE);
}

/* True if the filter contains all that other processes have read. */
static bool others_are_known(void)
{
    u64 told = __atomic_load_n(&bs_arena->told, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bs_process->told, __ATOMIC_ACQUIRE) != told) {
        raise(&bs_process->others, told);
        __atomic_store_n(&bs_process->told, told, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&bs_process->others, __ATOMIC_ACQUIRE) <=
           __atomic_load_n(&bs_arena->known, __ATOMIC_ACQUIRE);
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
 * for its own.
 */
void bs_tell_changed(const struct bs_ident *ident)
{
    if (bs_may_be_read(ident->dev, ident->ino ^ BS_READS_CHANGED))
        return;
    put(ident->dev, ident->ino ^ BS_READS_CHANGED);
}

/* A hash of the name, never 0. */
static u32 name(int dir, const char *path)
{
    u64 hash = bs_process->own ^ (u64)(*path == '/' ? BS_AT_FDCWD : dir) << 32;
    for (; *path; path++)
        hash = (hash ^ (u8)*path) * 0x100000001b3ull;
    hash *= 0x9e3779b97f4a7c15ull;
    return (u32)(hash >> 32) | 1;
}

/* The table entry of a name, found like the entry of a file. */
static u32 *name_place(u32 name)
{
    u32 first = name / 2 % BS_OWN, *at = own_names() + first, *beside = own_names() + (first ^ 1);
    return *beside == name || (*at && *at != name && !*beside) ? beside : at;
}

void bs_made(int dir, const char *path, s64 fd)
{
    if (!bs_arena || !(bs_arena->flags & BS_ARENA_KEEP) || fd < 0 || !knows())
        return;
    bs_fd_mark((int)fd, BS_FD_MADE);
    u32 made = name(dir, path);
    bs_process->owns = true;
    __atomic_store_n(name_place(made), made, __ATOMIC_RELAXED);
}

static s64 look_at(int fd, struct bs_ident *ident)
{
    return bs_identify((struct bs_look){fd, "", AT_EMPTY_PATH, 0, true}, ident);
}

/*
 * Called after an open for reading. It reads the file's identity only if a file made here has the
 * same name.
 */
BS_COLD bool bs_reads_own_file(int dir, const char *path, s64 fd)
{
    struct bs_ident ident;
    u32 asked = name(dir, path);
    if (!knows() || __atomic_load_n(name_place(asked), __ATOMIC_RELAXED) != asked)
        return false;
    if (look_at((int)fd, &ident) < 0 || !bs_is_own(&ident, false) ||
        bs_may_be_read(ident.dev, ident.ino ^ BS_READS_CHANGED))
        return false;
    bs_fd_mark((int)fd, BS_FD_OWN);
    return (bs_fd_marks((int)fd) & BS_FD_OWN) != 0;
}

void bs_lend(int fd)
{
    struct bs_ident ident;
    if (BS_LIKELY(!(bs_fd_marks(fd) & BS_FD_OWN)))
        return;
    bs_process->fd[fd] &= (u8)~BS_FD_OWN;
    if (look_at(fd, &ident) < 0)
        return;
    put(ident.dev, ident.ino ^ BS_READS_LENT);
    put(ident.dev, ident.ino);
}

/* The kernel reuses inode numbers, but not for a file with the same birth time. */
void bs_wrote_own(int fd, const struct bs_ident *ident)
{
    if (!(bs_fd_marks(fd) & BS_FD_MADE) || !ident->birth || !knows())
        return;
    u64 mine = tag(ident);
    __atomic_store_n(place(mine), mine, __ATOMIC_RELAXED);
}

bool bs_is_own(const struct bs_ident *ident, bool goes)
{
    if (!ident->birth || !knows())
        return false;
    u64 mine = tag(ident);
    if (__atomic_load_n(place(mine), __ATOMIC_RELAXED) != mine)
        return false;
    if (goes)
        __atomic_store_n(place(mine), 0, __ATOMIC_RELAXED);
    return true;
}

bool bs_nobody_else_knows(const struct bs_ident *own)
{
    return others_are_known() && !bs_may_be_read(own->dev, own->ino) &&
           !bs_may_be_read(own->dev, own->ino ^ BS_READS_CHANGED);
}

void bs_disown_all(void)
{
    if (BS_LIKELY(!bs_process->owns))
        return;
    bs_process->owns = false;
    __atomic_add_fetch(&bs_process->own, 1, __ATOMIC_SEQ_CST);
    for (u32 fd = 0; fd <= bs_process->highest; fd++) {
        bs_lend((int)fd);
        if (bs_process->fd[fd] & BS_FD_MADE)
            bs_process->fd[fd] &= (u8)~BS_FD_MADE;
    }
}
