/*
 * Gives chunks to a process that has limited its own system calls. The recorder maps all that it
 * needs before the limit takes effect. After the limit, nothing here makes a system call.
 *
 * Invariant: signals cannot be blocked here. A signal handler that interrupts the taking of a chunk
 * takes none itself, and its operations are counted as lost.
 */
#include "arena.h"

enum { RESERVE = 1024, RESERVE_SIZE = BS_ARENA_HEADER + RESERVE * BS_CHUNK_SIZE };

enum { PLENTY = 24, ASKED = 4, LOOKED_AFTER = 200 };

static u32 free_chunks(void)
{
    u32 count = 0;
    for (u32 w = 0; w < RESERVE / 64; w++)
        for (u64 bits = __atomic_load_n(&bs_arena->free[w], __ATOMIC_RELAXED); bits;
             bits &= bits - 1)
            count++;
    return count;
}

/*
 * Without a guard a process cannot notify the supervisor, which looks by itself at least each 50
 * ms.
 */
static bool wait_for_a_look(void)
{
    const s64 pause[2] = {0, 1000000};
    for (int tries = 0;
         tries < LOOKED_AFTER && __atomic_load_n(&bs_arena->wanted, __ATOMIC_ACQUIRE); tries++)
        bs_raw(__NR_nanosleep, pause, 0);
    return !bs_arena->wanted;
}

/*
 * Adds free chunks in advance, since the process cannot wait for the supervisor afterwards. At each
 * notification the supervisor doubles the number of chunks.
 */
static void stock_up(void)
{
    bool guarded = bs_is_guarded();
    for (int asked = 0; asked < ASKED && free_chunks() < PLENTY && !bs_arena->dry; asked++) {
        __atomic_store_n(&bs_arena->wanted, 1, __ATOMIC_RELAXED);
        if (guarded ? bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_DRAIN, 0) < 0
                    : !wait_for_a_look())
            return;
    }
}

/*
 * A second mapping of the arena up to its largest size. It is address space only, until a chunk
 * exists and is taken.
 */
static u8 *reserve;

/*
 * Offset in the thread's block where libc stores the thread's tid id; 0 if it was not found. After
 * a fork the kernel itself stores the child's id there, so the child knows it without a call.
 */
static u32 tid_offset;

enum { BLOCK = 1024 };

static u32 stored_tid(u32 at)
{
    return *(const u32 *)((const u8 *)__builtin_thread_pointer() + at);
}

static void find_number(void)
{
    if (tid_offset || !bs_readable(__builtin_thread_pointer(), BLOCK))
        return;
    u32 tid = (u32)bs_raw(__NR_gettid, 0);
    for (u32 at = sizeof(u64); at < BLOCK; at += sizeof tid)
        if (stored_tid(at) == tid) {
            tid_offset = at;
            return;
        }
}

void bs_map_reserve(void)
{
    if (reserve || !bs_arena || bs_modes & BS_MODE_SANDBOX)
        return;
    find_number();
    s64 at = bs_copy_arena(RESERVE_SIZE, RESERVE_PLACE);
    if ((u64)at < -4096ull)
        __atomic_store_n(&reserve, (u8 *)at, __ATOMIC_RELEASE);
    stock_up();
}

/*
 * Sets up a child by fork. A child made by the program's own system call finds its parent's id at
 * this offset. The recorder rejects such a child, because its id is unknown. It also rejects a
 * child in another pid namespace.
 */
static bool begin_process(void)
{
    const struct bs_thread *parent = &bs_me;
    if (!tid_offset || bs_arena->flags & BS_ARENA_PIDNS || !parent->pid || !parent->tid ||
        parent->tid & BS_TID_SUBSTITUTE)
        return false;
    u32 number = stored_tid(tid_offset), unlocked = 0;
    if (!number || number == parent->tid)
        return false;
    if (!__atomic_compare_exchange_n(&bs_process->lock, &unlocked, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    bs_process->pid = number;
    bs_process->ppid = parent->pid;
    bs_process->epoch = __atomic_add_fetch(&bs_arena->epochs, 1, __ATOMIC_RELAXED);
    u32 generation = (u32)bs_process->epoch;
    __atomic_store_n(&bs_process->generation, generation ? generation : ~0u, __ATOMIC_RELEASE);
    __atomic_store_n(&bs_process->lock, 0, __ATOMIC_RELEASE);
    return true;
}

/*
 * A thread that begins here cannot query its id. It gets an id that no thread has; the first thread
 * of a process gets the process's id.
 */
static void begin(struct bs_thread *me, bool first)
{
    u32 made_up = BS_TID_SUBSTITUTE | (__atomic_add_fetch(&bs_arena->epochs, 1, __ATOMIC_RELAXED) &
                                       (BS_TID_SUBSTITUTE - 1));
    me->chunk = me->previous = 0;
    bs_begin_thread(first ? bs_process->pid : made_up);
}

bool bs_take_confined(void)
{
    struct bs_thread *me = &bs_me;
    if (!reserve || me->taking || bs_arena->flags & BS_ARENA_CLOSED)
        return false;
    bool first = !bs_process->generation;
    if (first && !begin_process())
        return false;
    me->taking = true;
    s32 index = bs_claim(RESERVE / 64);
    if (index >= 0) {
        u8 *at = reserve + BS_ARENA_HEADER + (u64)index * BS_CHUNK_SIZE;
        if (me->generation != bs_process->generation)
            begin(me, first);
        if (me->previous)
            bs_mark_full(me->previous);
        struct bs_chunk *chunk = (struct bs_chunk *)at;
        chunk->host_pid = bs_process->host_pid; /* it cannot be queried any more */
        bs_begin_chunk(chunk, (u32)index);
        me->previous = me->chunk;
        me->changes++;
        me->generation = bs_process->generation;
        __atomic_store_n(&me->chunk, at, __ATOMIC_RELEASE);
    }
    me->taking = false;
    if (first && index >= 0)
        bs_note(0, BS_OP_START, (s32)bs_process->pid, (s32)bs_process->ppid, 1, 0);
    else if (first)
        __atomic_store_n(&bs_process->generation, 0, __ATOMIC_RELEASE);
    return index >= 0;
}
