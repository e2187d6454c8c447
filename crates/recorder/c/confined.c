/*
 * Chunks for who has limited its own system calls. What is needed was mapped before the limit, so that nothing here makes a call.
 *
 * Invariant: signals can't be blocked here; a handler that comes in between takes nothing, and what it does is counted as lost.
 */
#include "bs.h"

enum { RESERVE = 1024, RESERVE_SIZE = BS_ARENA_HEADER + RESERVE * BS_CHUNK_SIZE };

enum { PLENTY = 24, ASKED = 4, LOOKED_AFTER = 200 };

static u32 free_chunks(void)
{
    u32 count = 0;
    for (u32 w = 0; w < RESERVE / 64; w++)
        for (u64 bits = __atomic_load_n(&bs_arena->free[w], __ATOMIC_RELAXED); bits; bits &= bits - 1)
            count++;
    return count;
}

/* Without a guard the supervisor can't be asked: it looks by itself, at least each 50 ms. */
static bool wait_for_a_look(void)
{
    const s64 pause[2] = {0, 1000000};
    for (int tries = 0; tries < LOOKED_AFTER && __atomic_load_n(&bs_arena->wanted, __ATOMIC_ACQUIRE); tries++)
        bs_raw(__NR_nanosleep, pause, 0);
    return !bs_arena->wanted;
}

/* Nobody can be waited for afterwards; each time that it is asked the supervisor doubles what there is. */
static void stock_up(void)
{
    bool guarded = bs_arena->flags & BS_ARENA_GUARDED;
    for (int asked = 0; asked < ASKED && free_chunks() < PLENTY && !bs_arena->dry; asked++) {
        __atomic_store_n(&bs_arena->wanted, 1, __ATOMIC_RELAXED);
        if (guarded ? bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_DRAIN, 0) < 0 : !wait_for_a_look())
            return;
    }
}

/* The arena once more, as far as it may grow: address space only, until a chunk is there and taken. */
static u8 *reserve;

void bs_map_reserve(void)
{
    if (reserve || !bs_arena || bs_odd & BS_ODD_SANDBOX)
        return;
    s64 at = bs_raw(__NR_mremap, bs_arena, 0, RESERVE_SIZE, 1 /* MREMAP_MAYMOVE */);
    if ((u64)at < -4096ull)
        __atomic_store_n(&reserve, (u8 *)at, __ATOMIC_RELEASE);
    stock_up();
}

/* A thread that begins here can't ask for its number, and gets one that no thread has. */
static void begin(struct bs_thread *me)
{
    me->chunk = me->held = 0;
    bs_begin_thread(BS_TID_UNTOLD | (__atomic_add_fetch(&bs_arena->epochs, 1, __ATOMIC_RELAXED) & (BS_TID_UNTOLD - 1)));
}

bool bs_take_confined(void)
{
    struct bs_thread *me = &bs_me;
    if (!reserve || !bs_process->generation || me->taking || bs_arena->flags & BS_ARENA_CLOSED)
        return false;
    me->taking = true;
    s32 index = bs_claim(RESERVE / 64);
    if (index >= 0) {
        u8 *at = reserve + BS_ARENA_HEADER + (u64)index * BS_CHUNK_SIZE;
        if (me->generation != bs_process->generation)
            begin(me);
        if (me->held)
            bs_say_full(me->held);
        struct bs_chunk *chunk = (struct bs_chunk *)at;
        chunk->host_pid = bs_process->host_pid; /* nobody can be asked for it */
        bs_begin_chunk(chunk, (u32)index);
        me->held = me->chunk;
        me->changes++;
        me->generation = bs_process->generation;
        __atomic_store_n(&me->chunk, at, __ATOMIC_RELEASE);
    }
    me->taking = false;
    return index >= 0;
}
