/*
 * Gives each thread its chunks, one at a time.
 *
 * Invariants:
 *
 * - Signals are blocked while the state changes, so a signal handler finds it consistent.
 * - Once the program has limited its own system calls, nothing here makes one.
 */
#include "arena.h"

enum { FEW_FREE = 8, GIVEN_BACK = 16, DEEPLY = 8 };
enum { SIG_SETMASK = 2 };

s32 bs_claim(u32 words)
{
    s32 found = -1;
    u32 left = 0;
    for (u32 w = 0; w < words; w++) {
        u64 *word = &bs_arena->free[w];
        u64 bits = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        while (bits && found < 0) {
            u64 lowest = bits & -bits;
            bits = __atomic_fetch_and(word, ~lowest, __ATOMIC_ACQ_REL);
            if (bits & lowest)
                found = (s32)(w * 64 + (u32)__builtin_ctzll(lowest));
            bits &= ~lowest;
        }
        for (; bits && left < FEW_FREE; bits &= bits - 1)
            left++;
    }
    if (left < FEW_FREE && !bs_arena->wanted)
        __atomic_store_n(&bs_arena->wanted, 1, __ATOMIC_RELAXED);
    return found;
}

void bs_begin_chunk(struct bs_chunk *chunk, u32 index)
{
    struct bs_thread *me = &bs_me;
    chunk->index = index;
    chunk->pid = bs_process->pid;
    chunk->tid = me->tid;
    chunk->epoch = bs_process->epoch;
    chunk->taken = bs_now();
    chunk->ppid = bs_process->ppid;
    chunk->seq = me->count++;
    BS_AUTO_DO(chunk->seq += bs_follows_start());
    chunk->next = sizeof *chunk;
    __atomic_store_n(&chunk->magic, BS_CHUNK_MAGIC, __ATOMIC_RELEASE);
}

/*
 * Set when a wait for a free chunk failed, because no memory is left for more chunks. The process
 * then does not wait again before a chunk was free.
 *
 * Without a guard a process cannot notify the supervisor, which looks by itself at least four times
 * a second. With a guard, more processes may notify the supervisor than it lets wait.
 */
static bool waited_in_vain;

/* True if the supervisor has found that all chunks are in use and that it can add no more. */
static bool is_dry(void)
{
    return __atomic_load_n(&bs_arena->dry, __ATOMIC_RELAXED);
}

static s32 wait_for_drain(void)
{
    const s64 pause[2] = {0, 2000000};
    s32 index = -1;
    /*
     * On a busy machine the supervisor may run late. So the loop counts its looks, and also bounds
     * the time.
     */
    u32 looks = 0;
    for (int tries = 0; index < 0 && tries < 1000 && looks < 30 && !waited_in_vain && !is_dry() &&
                        !(bs_arena->flags & BS_ARENA_CLOSED);
         tries++) {
        bs_raw(__NR_nanosleep, pause, 0);
        looks += !__atomic_load_n(&bs_arena->wanted, __ATOMIC_RELAXED);
        index = bs_claim(BS_BITMAP_WORDS);
    }
    if (index < 0)
        waited_in_vain = true;
    return index;
}

/*
 * Among many waiting threads, others may take the chunk that this one waited for, several times.
 * Each time some of them are served.
 */
static s32 claim_or_wait(void)
{
    s32 index = bs_claim(BS_BITMAP_WORDS);
    for (int tries = 0; index < 0 && tries < 8 && bs_is_guarded(); tries++) {
        s64 asked = bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_DRAIN, 0);
        if (asked == -BS_EINVAL)
            break; /* the supervisor has died: its successor drains, but is not asked */
        if (asked < 0)
            return -1;
        index = bs_claim(BS_BITMAP_WORDS);
        if (index < 0 && is_dry())
            return -1;
    }
    if (index >= 0 && waited_in_vain)
        waited_in_vain = false;
    return index < 0 ? wait_for_drain() : index;
}

/*
 * Maps a chunk. `mremap` with an old size of zero maps a shared mapping again, and can make it
 * larger. It needs no descriptor, so none appears in the program's table. It also works after the
 * program changed its root or a limit.
 */
static u8 *map_chunk(u32 index)
{
    u64 offset = BS_ARENA_HEADER + (u64)index * BS_CHUNK_SIZE;
    if (BS_LIKELY(offset < bs_mapped))
        return (u8 *)bs_arena + offset;
    s64 at = bs_raw(__NR_mremap, bs_arena, 0, offset + BS_CHUNK_SIZE, 1 /* MREMAP_MAYMOVE */);
    if (!is_error(at)) {
        bs_raw(__NR_munmap, at, offset);
        return (u8 *)at + offset;
    }
    s64 fd = bs_open_arena();
    if (fd < 0)
        return 0;
    at = bs_map_arena(fd, offset, BS_CHUNK_SIZE);
    bs_raw(__NR_close, fd);
    return is_error(at) ? 0 : (u8 *)at;
}

static void set_free(u32 index)
{
    __atomic_or_fetch(&bs_arena->free[index / 64], 1ull << (index % 64), __ATOMIC_RELEASE);
}

static void unmap_chunk(u8 *chunk)
{
    if ((u64)chunk - (u64)bs_arena >= bs_mapped)
        bs_raw(__NR_munmap, chunk, BS_CHUNK_SIZE);
}

void bs_mark_full(u8 *chunk)
{
    u32 index = ((struct bs_chunk *)chunk)->index;
    if (index < BS_MAX_CHUNKS)
        __atomic_or_fetch(&bs_arena->full[index / 64], 1ull << (index % 64), __ATOMIC_RELEASE);
}

static void retire(u8 *chunk)
{
    bs_mark_full(chunk);
    unmap_chunk(chunk);
}

/*
 * Maps all pages of a chunk in advance. A thread that needs a second chunk will fill it. A page
 * whose first access is a read is mapped with the pages around it, so the thread does not wait for
 * each page.
 */
static void map_all(const u8 *chunk)
{
    (void)*(const volatile u8 *)chunk;
    (void)*(const volatile u8 *)(chunk + BS_CHUNK_SIZE - 1);
}

/*
 * Reports the owner of a chunk where pids may belong to another namespace. Without a guard, /proc
 * has the pid that the supervisor knows, unless it was mounted anew.
 */
static BS_COLD void announce(struct bs_chunk *chunk)
{
    if (bs_is_guarded()) {
        bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_ANNOUNCE, chunk->index);
        bs_process->host_pid = chunk->host_pid;
        return;
    }
    char text[16];
    u32 number = 0;
    s64 n = bs_gated(__NR_readlinkat, BS_AT_FDCWD, "/proc/self", text, sizeof text);
    for (s64 i = 0; i < n; i++)
        number = number * 10 + (u32)(text[i] - '0');
    bs_process->host_pid = chunk->host_pid = number;
}

/* Gives the thread a chunk. Signals are blocked and the process is ready. */
static bool new_chunk(void)
{
    struct bs_thread *me = &bs_me;
    if (bs_arena->flags & BS_ARENA_CLOSED) {
        __atomic_or_fetch(&bs_modes, BS_MODE_CLOSED, __ATOMIC_SEQ_CST);
        return false;
    }
    s32 index = bs_claim(BS_BITMAP_WORDS);
    if (index < 0) {
        /*
         * With few chunks left, the retired chunk may be the one that becomes free. Operations in
         * progress in the current chunk keep their outcome.
         */
        if (me->previous) {
            retire(me->previous);
            me->previous = 0;
            me->changes++;
        }
        index = claim_or_wait();
    }
    if (index < 0)
        return false;
    u8 *at = map_chunk((u32)index);
    if (!at) {
        set_free((u32)index);
        return false;
    }
    if (me->previous)
        retire(me->previous);
    struct bs_chunk *chunk = (struct bs_chunk *)at;
    if (me->count)
        map_all(at);
    bs_begin_chunk(chunk, (u32)index);
    me->previous = me->chunk;
    me->changes++;
    __atomic_store_n(&me->chunk, at, __ATOMIC_RELEASE);
    if (bs_arena->flags & BS_ARENA_PIDNS)
        announce(chunk);
    return true;
}

void bs_begin_thread(u32 tid)
{
    struct bs_thread *me = &bs_me;
    me->changes += GIVEN_BACK;
    me->count = 0;
    me->borrowed = 0;
    me->actions = 0;
    me->tid = tid;
    me->pid = bs_process->pid;
}

/* Forgets an inherited chunk. It stays mapped, which is cheaper, unless forks are nested deeply. */
static void forget(u8 **chunk)
{
    if (*chunk && bs_me.forks > DEEPLY)
        unmap_chunk(*chunk);
    *chunk = 0;
}

/* Gives the thread its first chunk in this process. */
static bool first_chunk(void)
{
    struct bs_thread *me = &bs_me;
    if (me->generation != bs_process->generation) {
        /*
         * The mapped chunks belong to the parent. The child neither writes to them nor gives them
         * back.
         */
        me->forks++;
        forget(&me->chunk);
        forget(&me->previous);
        bs_begin_thread((u32)bs_raw(__NR_gettid, 0));
    }
    if (!new_chunk())
        return false;
    me->generation = bs_process->generation;
    return true;
}

/* Blocks signals; they may be blocked already. */
static u64 block_signals(void)
{
    u64 all = ~0ull, before = 0;
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    return before;
}

static void restore_signals(u64 before)
{
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
}

BS_COLD bool bs_take(u32 op)
{
    if (bs_muted)
        return false;
    if (bs_modes & BS_MODE_SANDBOX) {
        bool taken = bs_take_confined();
        if (!taken)
            bs_lose(op);
        return taken;
    }
    u64 mask = block_signals();
    enum start started = NOT_STARTED;
    bool taken = bs_set_up(&started);
    if (taken && (!bs_me.chunk || bs_me.generation != bs_process->generation)) {
        taken = first_chunk();
        if (taken && started) {
            if (started != STARTED_BEFORE)
                bs_note(0, BS_OP_START, (s32)bs_process->pid, (s32)bs_process->ppid,
                        started == STARTED_BY_FORK, 0);
            if (started == STARTED_BY_EXEC && !bs_is_guarded())
                bs_log_first_libraries();
            if (started != STARTED_BY_FORK && bs_closes_are_seen)
                bs_log_streams_used();
        }
    }
    restore_signals(mask);
    if (!taken)
        bs_lose(op);
    return taken;
}

bool bs_is_ready(u32 op)
{
    return (bs_me.chunk && bs_me.generation == bs_process->generation) || bs_take(op);
}

BS_COLD bool bs_change(u32 op, u32 changes)
{
    if (bs_modes & BS_MODE_SANDBOX) {
        bool changed = bs_me.changes != changes || bs_take_confined();
        if (!changed)
            bs_lose(op);
        return changed;
    }
    u64 mask = block_signals();
    bool changed = bs_me.changes != changes || new_chunk();
    restore_signals(mask);
    if (!changed)
        bs_lose(op);
    return changed;
}

void bs_prepare_for_sandbox(void)
{
    bs_is_ready(BS_OP_START);
    bs_map_reserve();
    __atomic_or_fetch(&bs_modes, BS_MODE_SANDBOX, __ATOMIC_SEQ_CST);
}

void bs_thread_ends(void)
{
    struct bs_thread *me = &bs_me;
    BS_DEEP_DO(bs_deep_thread_ends());
    if (!me->chunk || me->generation != bs_process->generation || bs_modes & BS_MODE_SANDBOX)
        return;
    u64 mask = block_signals();
    if (me->previous)
        retire(me->previous);
    retire(me->chunk);
    me->previous = me->chunk = 0;
    me->changes += GIVEN_BACK;
    restore_signals(mask);
}
