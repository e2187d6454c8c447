/*
 * Appends operations to the thread's chunk.
 *
 * Invariants:
 *
 * - One unlocked xadd reserves a record, so a signal handler that logs in between gets another
 *   record.
 * - The size of a record is written first and its state last, so a reader finds either a whole
 *   record or a hole.
 */
#include "bs.h"
#include <linux/stat.h>

__thread struct bs_thread bs_me;
static struct bs_process unattached;
struct bs_process *bs_process = &unattached;
u32 bs_modes;
bool bs_threaded;

static u64 sequence; /* replaces the time where the counter cannot be read */

u64 bs_now(void)
{
    if (BS_UNLIKELY(bs_modes & BS_MODE_NO_TSC))
        return __atomic_add_fetch(&sequence, 1, __ATOMIC_RELAXED);
    u64 now = __builtin_ia32_rdtsc();
    return now;
}

/* From here on the time is a sequence number, higher than any counter value logged before. */
void bs_stop_clock(void)
{
    if (bs_modes & BS_MODE_NO_TSC)
        return;
    __atomic_store_n(&sequence, __builtin_ia32_rdtsc(), __ATOMIC_RELAXED);
    __atomic_or_fetch(&bs_modes, BS_MODE_NO_TSC, __ATOMIC_SEQ_CST);
}

bool bs_is_another(void)
{
    const struct bs_thread *me = &bs_me;
    bool owned =
        me->chunk && me->generation == bs_process->generation && !(bs_modes & BS_MODE_SANDBOX);
    return owned && (u32)bs_raw(__NR_gettid, 0) != me->tid;
}

/* The rare cases of `bs_logs_later`. */
BS_COLD bool bs_logs_later_in_mode(u32 op)
{
    if (bs_modes & BS_MODE_CLOSED || (bs_modes & BS_MODE_STRICT && bs_is_flow(op)))
        return false;
    if (bs_modes & BS_MODE_SHARED_MEMORY && !bs_me.borrowed && bs_is_another()) {
        bs_lose(op);
        return false;
    }
    return bs_is_ready(op);
}

static const struct bs_reservation nothing;

/* The flags of a record on a stack that a child may have borrowed. */
static BS_COLD u32 writer_flags(void)
{
    if (bs_is_another())
        return BS_F_CHILD;
    if (bs_has_jumped_out()) {
        bs_me.borrowed = 0;
        bs_give_back(-BS_EINTR);
    }
    return 0;
}

/* Reserves a record of `size` bytes and begins its header. */
static struct bs_reservation reserve(u32 op, u32 size, u32 flags)
{
    struct bs_thread *me = &bs_me;
    if (BS_UNLIKELY(bs_modes & (BS_MODE_STRICT | BS_MODE_SHARED_MEMORY | BS_MODE_CLOSED))) {
        if (bs_modes & BS_MODE_CLOSED || (bs_modes & BS_MODE_STRICT && bs_is_flow(op)))
            return nothing;
        if (bs_modes & BS_MODE_SHARED_MEMORY && !me->borrowed && bs_is_another()) {
            bs_lose(op);
            return nothing;
        }
    }
    if (BS_UNLIKELY(me->borrowed))
        flags |= writer_flags();
    for (;;) {
        if (BS_UNLIKELY(!me->chunk || me->generation != bs_process->generation) && !bs_take(op))
            return nothing;
        u32 changes = me->changes;
        struct bs_chunk *chunk = (struct bs_chunk *)me->chunk;
        u64 at = size;
        __asm__ volatile("xaddq %0, %1" : "+r"(at), "+m"(chunk->next)::"memory", "cc");
        if (BS_LIKELY(at + size <= BS_CHUNK_SIZE)) {
            struct bs_record *record = (struct bs_record *)((u8 *)chunk + at);
            __atomic_store_n(&record->size, (uint16_t)size, __ATOMIC_RELAXED);
            record->op = (uint16_t)op;
            record->flags = (uint16_t)flags;
            return (struct bs_reservation){record, changes};
        }
        if (!bs_change(op, changes))
            return nothing;
    }
}

/*
 * Counts a logged operation that may be a read, or that changes what names mean. After that, a
 * process that is about to change a file may have to notify the supervisor again. The count follows
 * the store of the record's state. So the supervisor finds the record of each operation counted
 * before it looked.
 */
static inline void report(u32 op, s32 arg)
{
    const u64 moves = 1ull << BS_OP_RENAME | 1ull << BS_OP_CHROOT | 1ull << BS_OP_MOUNT |
                      1ull << BS_OP_PIVOT | 1ull << BS_OP_NAMESPACE | 1ull << BS_OP_FORK |
                      1ull << BS_OP_EXEC;
    bool reads = op == BS_OP_OPEN ? !(arg & (O_ACCMODE | O_PATH | O_DIRECTORY))
                 : op < 64        ? moves >> op & 1
                                  : op == BS_OP_LOAD;
    if (reads && bs_arena->flags & BS_ARENA_KEEP)
        bs_report();
}

static inline struct bs_reservation publish(struct bs_reservation rec, u64 time, s32 fd, s32 arg,
                                            u32 aux)
{
    struct bs_record *record = rec.record;
    record->time = time ? time : bs_now();
    record->fd = fd;
    record->arg = arg;
    record->aux = aux;
    __atomic_store_n(&record->state, BS_RESERVED, __ATOMIC_RELEASE);
    report(record->op, arg);
    return rec;
}

static inline u32 rounded(u32 size)
{
    return (size + 7) & ~7u;
}

struct bs_reservation bs_begin_at(u64 time, u32 op, s32 fd, s32 arg, u32 aux)
{
    struct bs_reservation rec = reserve(op, sizeof(struct bs_record), 0);
    return BS_LIKELY(rec.record) ? publish(rec, time, fd, arg, aux) : rec;
}

struct bs_reservation bs_begin(u32 op, s32 fd, s32 arg, u32 aux)
{
    return bs_begin_at(0, op, fd, arg, aux);
}

#ifdef BS_FUNCTIONS
struct bs_reservation bs_begin_room(u32 op, s32 fd, s32 arg, const void *bytes, u32 size)
{
    struct bs_reservation rec = reserve(op, rounded(sizeof(struct bs_record) + size), 0);
    if (BS_UNLIKELY(!rec.record))
        return rec;
    if (bytes)
        bs_copy(rec.record + 1, bytes, size);
    return publish(rec, 0, fd, arg, size);
}
#endif

s64 bs_finish(struct bs_reservation rec, s64 result)
{
    return bs_ret(bs_end(rec, result));
}

/*
 * The record is never seen without its outcome. So no reader takes a fork whose child is not stored
 * yet for one without a child.
 */
void bs_note(u64 time, u32 op, s32 fd, s32 arg, u32 aux, s64 result)
{
    struct bs_reservation rec = reserve(op, sizeof(struct bs_record), 0);
    struct bs_record *record = rec.record;
    if (BS_UNLIKELY(!record))
        return;
    record->time = time ? time : bs_now();
    record->fd = fd;
    record->arg = arg;
    record->result = (s32)result;
    record->aux = aux;
    __atomic_store_n(&record->state, BS_DONE, __ATOMIC_RELEASE);
    report(record->op, arg);
}

static inline char *put(char *to, const char *s, u32 n)
{
    bs_copy(to, s, n);
    to[n] = 0;
    return to + n + 1;
}

void bs_note_path(u64 time, u32 op, s32 fd, s32 arg, u32 aux, const char *path, s64 result)
{
    if (BS_UNLIKELY(result == -BS_EFAULT))
        return;
    u32 n = bs_length(path, BS_PATH_MAX);
    u32 flags = (n == BS_PATH_MAX ? BS_F_CUT : 0) | (op & BS_PRIVATE_READ ? BS_F_PRIVATE : 0);
    struct bs_reservation rec =
        reserve(op | BS_DEFERRED, rounded(sizeof(struct bs_record) + n + 1), flags);
    struct bs_record *record = rec.record;
    if (BS_UNLIKELY(!record))
        return;
    put((char *)(record + 1), path, n);
    record->time = time;
    record->fd = fd;
    record->arg = arg;
    record->result = (s32)result;
    record->aux = aux;
    __atomic_store_n(&record->state, BS_DONE, __ATOMIC_RELEASE);
    report(op, arg);
}

/* An unreadable path is not logged, and its call does not go through the gate. */
struct bs_reservation bs_begin_path(u32 op, s32 fd, s32 arg, u32 aux, const char *path)
{
    u32 n;
    if (!bs_measure(path, BS_PATH_MAX, &n))
        return nothing;
    struct bs_reservation rec =
        reserve(op, rounded(sizeof(struct bs_record) + n + 1), n == BS_PATH_MAX ? BS_F_CUT : 0);
    if (BS_UNLIKELY(!rec.record))
        return rec;
    put((char *)(rec.record + 1), path, n);
    return publish(rec, 0, fd, arg, aux);
}

struct bs_reservation bs_begin_paths(u32 op, s32 fd, s32 arg, u32 aux, const char *path,
                                     const char *other)
{
    return bs_begin_ident(op, fd, arg, aux, path, other ? other : "", (struct bs_look){0});
}

/*
 * Reads a file's identity in the log's form. It returns the call's result, which also shows whether
 * the path could be read.
 */
s64 bs_identify_any(struct bs_look look, struct bs_ident *ident)
{
    struct statx s;
    s64 error = bs_gated(__NR_statx, look.dir, look.path, look.flags | AT_NO_AUTOMOUNT,
                         STATX_BASIC_STATS | STATX_BTIME, &s);
    if (error < 0)
        return error;
    u64 major = s.stx_dev_major, minor = s.stx_dev_minor;
    *ident = (struct bs_ident){
        .dev = (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~0xffull) << 12 |
               (major & ~0xfffull) << 32,
        .ino = s.stx_ino,
        .size = (s64)s.stx_size,
        .mtime = s.stx_mtime.tv_sec * 1000000000ll + s.stx_mtime.tv_nsec,
        .ctime = s.stx_ctime.tv_sec * 1000000000ll + s.stx_ctime.tv_nsec,
        .birth =
            s.stx_mask & STATX_BTIME ? s.stx_btime.tv_sec * 1000000000ll + s.stx_btime.tv_nsec : 0,
        .mode = s.stx_mode,
        .nlink = s.stx_nlink,
    };
    return 0;
}

s64 bs_identify(struct bs_look look, struct bs_ident *ident)
{
    s64 error = bs_identify_any(look, ident);
    if (!error && look.flags & AT_EMPTY_PATH && (ident->mode & S_IFMT) != S_IFREG)
        return -BS_EINVAL;
    return error;
}

/* Measures a path. False: it cannot be read. */
static bool length(const char *path, bool proved, u32 *n)
{
    if (!proved)
        return bs_measure(path, BS_PATH_MAX, n);
    *n = bs_length(path, BS_PATH_MAX);
    return true;
}

struct bs_reservation bs_begin_ident(u32 op, s32 fd, s32 arg, u32 aux, const char *path,
                                     const char *other, struct bs_look look)
{
    struct bs_ident ident;
    bool strict = bs_modes & BS_MODE_STRICT && bs_is_flow(op);
    s64 looked = -BS_EFAULT;
    if (look.wanted && !bs_arena)
        bs_is_ready(op);
    if (look.wanted && bs_arena && !strict && !(bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED)))
        looked = bs_identify(look, &ident);
    bool known = looked == 0;
    u64 linked = 0;
    if (BS_UNLIKELY(known && look.change && bs_arena->flags & BS_ARENA_KEEP))
        linked = bs_preserve(look, &ident);
    if (BS_UNLIKELY(known && op == BS_OP_CLOSE && bs_arena->flags & BS_ARENA_KEEP))
        bs_wrote_private(fd, &ident);
    if (BS_UNLIKELY(known && look.change == BS_CHANGE_REMOVE && (ident.mode & S_IFMT) == S_IFLNK))
        bs_log_link_text(&look);
    /* Only a close has no string in its record. */
    bool named = op != BS_OP_CLOSE, two = named && other;
    u32 n = 0, m = 0;
    bool proved = known || looked == -BS_ENOENT;
    if (named && !length(path, proved && look.path == path, &n))
        return nothing;
    if (two && !length(other, proved && look.path == other, &m))
        return nothing;
    u32 flags = (known ? BS_F_IDENT : 0) | (n == BS_PATH_MAX || m == BS_PATH_MAX ? BS_F_CUT : 0);
    u32 size = sizeof(struct bs_record) + (known ? sizeof ident : 0) + (named ? n + 1 : 0) +
               (two ? m + 1 : 0);
    struct bs_reservation rec = reserve(op, rounded(size), flags);
    rec.changes |= linked << 32;
    if (BS_UNLIKELY(!rec.record))
        return rec;
    char *to = (char *)(rec.record + 1);
    if (known) {
        bs_copy(to, &ident, sizeof ident);
        to += sizeof ident;
    }
    if (named)
        to = put(to, path, n);
    if (two)
        put(to, other, m);
    return publish(rec, 0, fd, arg, aux);
}

static void note_kept(s32 number, u32 how, const char *path, const struct bs_ident *ident,
                      s64 result)
{
    u32 n = bs_length(path, BS_PATH_MAX);
    u32 size = sizeof(struct bs_record) + sizeof *ident + n + 1;
    struct bs_reservation rec = reserve(
        BS_OP_KEPT, rounded(size), BS_F_IDENT | BS_F_RESOLVED | (n == BS_PATH_MAX ? BS_F_CUT : 0));
    if (BS_UNLIKELY(!rec.record))
        return;
    bs_copy(rec.record + 1, ident, sizeof *ident);
    put((char *)(rec.record + 1) + sizeof *ident, path, n);
    bs_end(publish(rec, 0, 0, number, how), result);
}

BS_COLD void bs_note_kept(s32 number, const char *path, const struct bs_ident *ident)
{
    note_kept(number, BS_KEPT_OWN_LINK, path, ident, 0);
}

#ifdef BS_AUTO
BS_COLD void bs_note_not_kept(const char *path, const struct bs_ident *ident, s64 error)
{
    note_kept(-1, 0, path, ident, error);
}
#endif

enum { LONGEST_BYTES = 256 };

struct bs_reservation bs_begin_known_bytes(u64 time, u32 op, s32 fd, s32 arg, const void *bytes,
                                           u32 size)
{
    if (size > LONGEST_BYTES)
        size = LONGEST_BYTES;
    struct bs_reservation rec = reserve(op, rounded(sizeof(struct bs_record) + size), 0);
    if (BS_UNLIKELY(!rec.record))
        return rec;
    bs_copy(rec.record + 1, bytes, size);
    return publish(rec, time, fd, arg, size);
}

BS_COLD struct bs_reservation bs_begin_bytes(u64 time, u32 op, s32 fd, s32 arg, const void *bytes,
                                             u32 size)
{
    if (size > LONGEST_BYTES)
        size = LONGEST_BYTES;
    return bs_begin_known_bytes(time, op, fd, arg, bytes, bs_readable(bytes, size) ? size : 0);
}

/* ---- lists ----------------------------------------------------------------------------------- */

enum { PIECE = 8192, MOST = 1 << 21 };

/* A position in a list of strings. */
struct cursor {
    char *const *list;
    u32 offset; /* within *list */
};

/*
 * Returns how many bytes of strings the next record takes from `from`, and advances `from`. If `to`
 * is not null, the strings are copied there.
 */
static BS_COLD u32 piece(struct cursor *from, char *to, bool (*skip)(const char *), bool *cut)
{
    u32 used = 0;
    *cut = false;
    while (*from->list) {
        if (skip && skip(*from->list)) {
            from->list++;
            continue;
        }
        const char *s = *from->list + from->offset;
        u32 n = bs_length(s, PIECE);
        u32 room = PIECE - used;
        bool fits = n + 1 <= room;
        if (!fits && (used || room < 64) && n <= PIECE / 2)
            break;
        u32 take = fits ? n : room - 1;
        if (to)
            put(to + used, s, take);
        used += take + 1;
        if (!fits) {
            from->offset += take;
            *cut = true;
            break;
        }
        from->offset = 0;
        from->list++;
    }
    return used;
}

BS_COLD void bs_log_strings(u32 op, s32 fd, s32 arg, char *const *list, bool (*skip)(const char *))
{
    struct cursor at = {list, 0};
    u32 total = 0;
    bool cut;
    do {
        struct cursor ahead = at;
        u32 used = piece(&ahead, 0, skip, &cut);
        bool last = total + used > MOST;
        u32 flags = (cut ? BS_F_MORE : 0) | (last && *ahead.list ? BS_F_CUT : 0);
        struct bs_reservation rec = reserve(op, rounded(sizeof(struct bs_record) + used),
                                            last ? flags & ~BS_F_MORE : flags);
        if (!rec.record)
            return;
        bool ignored;
        piece(&at, (char *)(rec.record + 1), skip, &ignored);
        bs_end(publish(rec, 0, fd, arg, used), 0);
        total += used;
        if (last)
            return;
    } while (*at.list);
}
