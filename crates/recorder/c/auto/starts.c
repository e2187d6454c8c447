/*
 * Announces a program that begins, without a chunk: one entry in memory that the supervisor looks
 * at. A program that does nothing else costs the run no more than that.
 *
 * Invariants:
 *
 * - The supervisor makes the records from the entry that the recorder would have written into its
 *   first chunk. A thread's chunk that follows has the next number.
 * - An entry belongs to the process whose number is in its state. A killed process leaves an entry
 *   that the supervisor can free.
 */
#include "../arena.h"

enum { TRIES = 8 };

/* The process that announced itself, and its number. A child by fork has another. */
static u32 announced;
static u64 announced_epoch;

/* True if the libraries of this program are the set. */
static bool is_of_program(const struct bs_library_set *set, u64 used)
{
    u64 at = 0;
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next) {
        if (!bs_is_logged_library(l->name))
            continue;
        const char *name = l->name;
        do {
            if (at == used || set->names[at++] != (u8)*name)
                return false;
        } while (*name++);
    }
    return at == used;
}

static const struct bs_library_set *library_set(const struct bs_programs *programs)
{
    for (u32 i = 0; i < BS_LIBRARY_SETS; i++) {
        const struct bs_library_set *set = &programs->sets[i];
        u64 used = __atomic_load_n(&set->used, __ATOMIC_ACQUIRE);
        if (!used || used > BS_LIBRARY_NAMES)
            return 0;
        if (is_of_program(set, used))
            return set;
    }
    return 0;
}

/* Fills in a free entry. */
static bool fill(struct bs_programs *programs, u64 pid, struct bs_start start)
{
    for (u64 n = 0; n < TRIES; n++) {
        struct bs_start *entry = &programs->starts[(start.epoch + n) % BS_STARTS];
        u64 none = 0;
        if (!__atomic_compare_exchange_n(&entry->state, &none, pid << 32 | BS_START_TAKEN, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        entry->epoch = start.epoch;
        entry->time = start.time;
        entry->ppid = start.ppid;
        entry->set = start.set;
        __atomic_store_n(&entry->state, pid << 32 | BS_START_FILLED, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

/*
 * In a run that stores contents, a chunk is taken instead: the supervisor looks there for what the
 * program has read.
 */
bool bs_announce_start(void)
{
    if (bs_arena) /* attached already: it has a number and a chunk */
        return false;
    struct bs_programs *programs = bs_programs();
    if (!programs || bs_first_pages->flags & (BS_ARENA_CLOSED | BS_ARENA_PIDNS | BS_ARENA_KEEP))
        return false;
    const struct bs_library_set *set = library_set(programs);
    if (!set)
        return false;
    u32 pid = (u32)bs_raw(__NR_getpid, 0), ppid = (u32)bs_raw(__NR_getppid, 0);
    if (pid == 1 || ppid <= 1) /* perhaps another pid namespace (attach.c) */
        return false;
    struct bs_start start = {
        .epoch = __atomic_add_fetch(&bs_first_pages->epochs, 1, __ATOMIC_RELAXED),
        .time = bs_now(),
        .ppid = ppid,
        .set = (u32)(set - programs->sets),
    };
    if (!fill(programs, pid, start))
        return false;
    announced = pid;
    announced_epoch = start.epoch;
    return true;
}

enum start bs_how_started(enum start how, u64 *epoch)
{
    if (how != STARTED_BY_EXEC || !announced)
        return how;
    if (announced != bs_process->pid)
        return STARTED_BY_FORK; /* by a function of libc that no wrapper saw */
    *epoch = announced_epoch;
    return STARTED_BEFORE;
}

bool bs_follows_start(void)
{
    return announced && bs_process->epoch == announced_epoch && bs_me.tid == announced;
}
