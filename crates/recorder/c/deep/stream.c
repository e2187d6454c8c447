/*
 * Appends records to the thread's deep stream: chunks of the arena that go into the run's deep log.
 *
 * Invariants:
 *
 * - A record is reserved by one unlocked xadd, and its state is written last, as in record.c.
 * - A chunk is declared full when no record in it is unfinished. A signal handler may interrupt the
 *   copying of a large record, and fill the chunk itself.
 * - If no chunk is free, the thread waits for the supervisor. Only if none becomes free for
 *   seconds, records are lost, and the next record says how many.
 * - Once the program has limited its own system calls, nothing here makes one. Signals cannot be
 *   blocked then: the records of a handler that interrupts the taking of a chunk are lost.
 */
#include "stream.h"
#include "../arena.h"

__thread struct bs_deep_thread bs_deep_me;

enum { SIG_SETMASK = 2 };
/* A record is continued in the next chunk only if at least so many bytes are left in this one. */
enum { LEAST_PIECE = 1024 };
enum { PAUSE_NS = 2000000, MOST_PAUSES = 2500, IMPATIENT = 100 };
/* Looks for a chunk without a call, at most for about 0.1 s: the supervisor looks, too. */
enum { MOST_LOOKS = 2000, SPINS = 1000 };
enum { MOST_POSTPONED = 512, LEAST_SPARE = 2 };

/* ---- chunks ---------------------------------------------------------------------------------- */

static bool is_over(void)
{
    return bs_arena->flags & (BS_ARENA_CLOSED | BS_ARENA_SHALLOW);
}

static void declare_postponed(struct bs_deep_thread *me)
{
    for (u32 left = me->postponed; left && me->last_postponed; left--) {
        struct bs_chunk *chunk = (struct bs_chunk *)me->last_postponed;
        me->last_postponed = (u8 *)chunk->pad;
        bs_mark_full((u8 *)chunk);
    }
    me->postponed = 0;
    me->last_postponed = 0;
}

/*
 * Takes a chunk, but not one of the last ones: the log matters more than the deep log. Without
 * chunks for the log, its operations would be lost.
 */
static s32 claim(void)
{
    u32 spare = 0;
    for (u32 w = 0; w < BS_BITMAP_WORDS && spare <= LEAST_SPARE; w++)
        for (u64 bits = __atomic_load_n(&bs_arena->free[w], __ATOMIC_RELAXED);
             bits && spare <= LEAST_SPARE; bits &= bits - 1)
            spare++;
    if (spare > LEAST_SPARE)
        return bs_claim(BS_BITMAP_WORDS);
    __atomic_store_n(&bs_arena->wanted, 1, __ATOMIC_RELAXED);
    return -1;
}

/* Waits without a call. */
static s32 claim_or_look(void)
{
    s32 index = claim();
    for (u32 i = 0; index < 0 && i < MOST_LOOKS && bs_deep_me.tries && !is_over(); i++) {
        for (u32 spin = 0; spin < SPINS; spin++)
            __builtin_ia32_pause();
        index = claim();
        if (index < 0 && i == IMPATIENT)
            declare_postponed(&bs_deep_me);
    }
    bs_deep_me.tries = index >= 0;
    return index;
}

/* Waits while the supervisor lives and has no chunk: it may be waiting for the disk. */
static s32 claim_or_wait(void)
{
    const s64 pause[2] = {0, PAUSE_NS};
    s32 index = claim();
    for (u32 i = 0; index < 0 && i < MOST_PAUSES && bs_deep_me.tries && !is_over(); i++) {
        bool asked = bs_arena->flags & BS_ARENA_GUARDED &&
                     bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_DRAIN, 0) >= 0;
        index = claim();
        if (index < 0 && (!asked || i % 8 == 7))
            bs_raw(__NR_nanosleep, pause, 0);
        if (i == IMPATIENT) /* its own chunks may be all that there are */
            declare_postponed(&bs_deep_me);
    }
    bs_deep_me.tries = index >= 0;
    return index;
}

/*
 * Declares a chunk full, now or when the interrupted records are finished. A handler that jumped
 * away leaves its record unfinished for ever. So the number of postponed chunks is limited.
 */
static void retire(struct bs_deep_thread *me, u8 *chunk)
{
    if (me->unfinished <= 1) {
        bs_mark_full(chunk);
        return;
    }
    if (me->postponed == MOST_POSTPONED) {
        declare_postponed(me);
        me->unfinished = 1;
    }
    ((struct bs_chunk *)chunk)->pad = (u64)me->last_postponed;
    me->last_postponed = chunk;
    me->postponed++;
}

/* Gives the thread a new chunk instead of `full`. No signal handler comes between. */
static bool new_chunk(u8 *full)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (me->chunk != full) /* a handler was here */
        return true;
    if (is_over())
        return false;
    s32 index = bs_modes & BS_MODE_SANDBOX ? claim_or_look() : claim_or_wait();
    if (index < 0)
        return false;
    u8 *at = bs_deep_arena + BS_ARENA_HEADER + (u64)index * BS_CHUNK_SIZE;
    struct bs_chunk *chunk = (struct bs_chunk *)at;
    chunk->index = (u32)index;
    chunk->pid = bs_process->pid;
    chunk->tid = bs_me.tid;
    chunk->epoch = bs_process->epoch;
    chunk->taken = bs_now();
    chunk->ppid = bs_process->ppid;
    chunk->host_pid = bs_process->host_pid;
    chunk->seq = me->count++;
    chunk->flags = BS_CHUNK_DEEP;
    chunk->next = sizeof *chunk;
    __atomic_store_n(&chunk->magic, BS_CHUNK_MAGIC, __ATOMIC_RELEASE);
    if (full)
        retire(me, full);
    __atomic_store_n(&me->chunk, at, __ATOMIC_RELEASE);
    return true;
}

/* A handler that interrupts this takes no chunk itself. */
static bool change_confined(u8 *full)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (me->taking)
        return false;
    me->taking = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool changed = new_chunk(full);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    me->taking = false;
    return changed;
}

static bool change(u8 *full)
{
    if (bs_modes & BS_MODE_SANDBOX)
        return change_confined(full);
    u64 all = ~0ull, before = 0;
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    bool changed = new_chunk(full);
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
    return changed;
}

void bs_deep_thread_ends(void)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (!me->chunk || me->generation != bs_process->generation)
        return;
    u8 *chunk = me->chunk;
    me->is_shallow = true; /* what other destructors still do is not recorded */
    me->chunk = 0;
    declare_postponed(me);
    bs_mark_full(chunk);
}

/* The run says that a record is missing. */
static void count_loss(void)
{
    if (bs_arena)
        __atomic_add_fetch(&bs_arena->deep_lost, 1, __ATOMIC_RELAXED);
}

/* ---- the state of the thread ----------------------------------------------------------------- */

/*
 * True once a thread of this process makes calls that are not recorded: the process limited its own
 * calls before the thread began. A child on the memory of the process counts, too.
 */
static bool has_unseen_thread;

/* The rare part of `bs_deep_is_on`: another process or thread than the one that the state is of. */
static BS_COLD bool begin(void)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (bs_modes & BS_MODE_SANDBOX) {
        __atomic_store_n(&has_unseen_thread, true, __ATOMIC_RELAXED);
        return false;
    }
    if (bs_deep_is_go || bs_modes & BS_MODE_CLOSED || !bs_is_ready(BS_OP_START) || is_over() ||
        !bs_deep_map())
        return false;
    *me = (struct bs_deep_thread){.generation = bs_process->generation, .tries = true};
    bs_deep_log_begin();
    return me->chunk;
}

/*
 * A process that limits its own system calls stays deep, with two exceptions. Without the
 * time-stamp counter, its records have no place among those of others. If its calls are dispatched
 * to itself, the kernel did not make them.
 */
static bool is_confined_too_much(void)
{
    return bs_modes & BS_MODE_SANDBOX && (bs_modes & BS_MODE_NO_TSC || bs_dispatches() ||
                                          __atomic_load_n(&has_unseen_thread, __ATOMIC_RELAXED));
}

static BS_COLD bool is_off_now(void)
{
    if (is_confined_too_much())
        bs_deep_become_shallow(BS_SHALLOW_SANDBOX);
    else if (bs_arena->flags & BS_ARENA_SHALLOW)
        bs_deep_become_shallow(BS_SHALLOW_DISK);
    else if (bs_arena->flags & BS_ARENA_CLOSED)
        bs_deep_become_shallow(BS_SHALLOW_OVER);
    return bs_deep_me.is_shallow;
}

/*
 * True in a child on this memory. A process that limited its calls cannot ask which one it is. If
 * parent and child go on side by side, neither is recorded from here on, and that is a loss.
 */
static BS_COLD bool is_child_on_memory(void)
{
    if (!(bs_modes & BS_MODE_SANDBOX))
        return bs_is_another();
    if (!__atomic_exchange_n(&has_unseen_thread, true, __ATOMIC_RELAXED) && !bs_me.borrowed)
        count_loss();
    return true;
}

void bs_deep_limit_failed(void)
{
    __atomic_store_n(&has_unseen_thread, false, __ATOMIC_RELAXED);
}

bool bs_deep_is_on(void)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (BS_UNLIKELY(bs_muted))
        return false;
    if (BS_UNLIKELY(bs_me.borrowed || bs_modes & BS_MODE_SHARED_MEMORY) && is_child_on_memory())
        return false;
    if (BS_UNLIKELY(!me->generation || me->generation != bs_process->generation))
        return begin();
    if (BS_UNLIKELY(me->is_shallow))
        return false;
    return !(BS_UNLIKELY(bs_modes & BS_MODE_SANDBOX || is_over()) && is_off_now());
}

void bs_deep_thread_begins(void)
{
    (void)bs_deep_is_on();
}

/* ---- records --------------------------------------------------------------------------------- */

/* A position in the bytes of a record's parts. */
struct cursor {
    u32 part, vector;
    u64 offset; /* in this piece of memory */
    u64 taken;  /* of this part */
};

static u64 rounded(u64 size)
{
    return (size + 7) & ~7ull;
}

/* The next contiguous piece of a part from the cursor on; null at its end. */
static const u8 *next_piece(const struct bs_part *part, struct cursor *at, u64 *size)
{
    if (!part->vectors) {
        *size = part->size - at->offset;
        return *size ? (const u8 *)part->at + at->offset : 0;
    }
    const struct vector *v = part->at;
    while (at->vector < part->vectors && at->taken < part->size) {
        u64 left = part->size - at->taken, here = v[at->vector].size - at->offset;
        if (here) {
            *size = here < left ? here : left;
            return (const u8 *)v[at->vector].at + at->offset;
        }
        at->vector++;
        at->offset = 0;
    }
    return 0;
}

/* Bytes that the parts take in sections. */
static u64 needed(const struct bs_part *parts, u32 count)
{
    u64 size = 0;
    for (u32 i = 0; i < count; i++) {
        struct cursor at = {0};
        u64 n;
        while (next_piece(&parts[i], &at, &n)) {
            size += sizeof(struct bs_deep_section) + rounded(n);
            at.offset += n;
            at.taken += n;
        }
    }
    return size;
}

/* Fills a record with sections up to `end`. Returns false once all parts are in records. */
static bool fill(const struct bs_part *parts, u32 count, struct cursor *at, u8 *to, const u8 *end)
{
    enum { HEAD = sizeof(struct bs_deep_section) };
    while (at->part < count) {
        const struct bs_part *part = &parts[at->part];
        u64 n;
        const u8 *from = next_piece(part, at, &n);
        if (!from) {
            *at = (struct cursor){.part = at->part + 1};
            continue;
        }
        if ((u64)(end - to) < HEAD + 8)
            return true;
        u64 room = (u64)(end - to) - HEAD;
        n = n < room ? n : room;
        *(struct bs_deep_section *)to = (struct bs_deep_section){part->kind, part->arg, (u32)n};
        bs_copy(to + HEAD, from, n);
        to += HEAD + rounded(n);
        at->offset += n;
        at->taken += n;
    }
    return false;
}

/* Reserves up to `wanted` bytes. `*room` is how many. */
static struct bs_deep_record *reserve(u64 wanted, u32 *room)
{
    struct bs_deep_thread *me = &bs_deep_me;
    for (;;) {
        struct bs_chunk *chunk = (struct bs_chunk *)me->chunk;
        u64 next = chunk ? chunk->next : BS_CHUNK_SIZE;
        u64 left = next < BS_CHUNK_SIZE ? BS_CHUNK_SIZE - next : 0;
        u64 size = wanted <= left ? wanted : left < LEAST_PIECE ? 0 : left;
        if (size) {
            u64 at = size;
            __asm__ volatile("xaddq %0, %1" : "+r"(at), "+m"(chunk->next)::"memory", "cc");
            if (BS_LIKELY(at + size <= BS_CHUNK_SIZE)) {
                struct bs_deep_record *record = (struct bs_deep_record *)((u8 *)chunk + at);
                __atomic_store_n(&record->size, (u32)size, __ATOMIC_RELAXED);
                *room = (u32)size;
                return record;
            }
        }
        if (!change((u8 *)chunk))
            return 0;
    }
}

static void append(const struct bs_deep_record *like, const struct bs_part *parts, u32 count)
{
    struct bs_deep_thread *me = &bs_deep_me;
    struct cursor at = {0};
    u64 left = needed(parts, count) + sizeof *like;
    for (bool more = true; more;) {
        u32 size;
        struct bs_deep_record *record = reserve(left, &size);
        if (!record) {
            me->gap++;
            count_loss();
            return;
        }
        more = fill(parts, count, &at, (u8 *)(record + 1), (u8 *)record + size);
        record->flags =
            (u8)(like->flags | (more ? BS_DEEP_MORE : 0) | (me->handlers ? BS_DEEP_HANDLER : 0));
        record->call = like->call;
        record->time = like->time;
        record->took = like->took;
        record->fd = like->fd;
        record->result = like->result;
        record->a = like->a;
        record->b = like->b;
        if (BS_UNLIKELY(like->call == BS_DEEP_CLOCK || like->call == BS_DEEP_GAP))
            bs_exact_count(record);
        __atomic_store_n(&record->state, BS_DONE, __ATOMIC_RELEASE);
        left -= size - sizeof *like; /* the next piece may need one more section's head */
        left = more ? left + sizeof(struct bs_deep_section) + 8 : 0;
    }
}

void bs_deep_append(const struct bs_deep_record *record, const struct bs_part *parts, u32 count)
{
    struct bs_deep_thread *me = &bs_deep_me;
    me->unfinished++;
    if (BS_UNLIKELY(me->gap)) {
        u32 gap = me->gap;
        struct bs_deep_record lost = {
            .call = BS_DEEP_GAP, .time = record->time, .fd = -1, .result = gap};
        me->gap = 0;
        append(&lost, 0, 0);
        if (me->gap) /* again */
            me->gap += gap - 1;
    }
    append(record, parts, count);
    if (--me->unfinished == 0 && BS_UNLIKELY(me->postponed))
        declare_postponed(me);
}

void bs_deep_fact(u32 fact, s32 fd, s64 result, u64 a, u64 b)
{
    struct bs_deep_record record = {
        .call = (uint16_t)fact, .time = bs_now(), .fd = fd, .result = result, .a = a, .b = b};
    bs_deep_append(&record, 0, 0);
}

/* The record fits into the thread's chunk, or counts as lost: no call may be made. */
void bs_deep_become_shallow(u32 reason)
{
    struct bs_deep_thread *me = &bs_deep_me;
    struct bs_chunk *chunk = (struct bs_chunk *)me->chunk;
    if (chunk && chunk->next + sizeof(struct bs_deep_record) <= BS_CHUNK_SIZE)
        bs_deep_fact(BS_DEEP_SHALLOW, -1, 0, reason, 0);
    else if (reason != BS_SHALLOW_OVER)
        count_loss();
    me->is_shallow = true;
}
