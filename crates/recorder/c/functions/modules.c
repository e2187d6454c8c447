/*
 * Gets the table of functions for each file whose code the process runs.
 *
 * In: the address of a function that is called for the first time. Out: a module with the table
 * that the supervisor made for the file.
 *
 * Invariant: a file is asked for once in a process. A child by fork has its parent's modules.
 */
#include "functions.h"
#include <linux/mman.h>

struct bs_module bs_modules[BS_MODULES];
u32 bs_module_count;

static u32 lock;
static u32 failures; /* addresses that belong to no file */

enum { MOST_FAILURES = 64, SIG_SETMASK = 2 };

/*
 * Returns how far the file with the code at `address` was moved from the addresses that it was
 * linked for. That is the highest base below the code: a file's memory is one range.
 */
static u64 bias_of(u64 address)
{
    u64 highest = 0;
    for (const struct bs_link_map *l = bs_first_library; l; l = l->next)
        if (l->base <= address && l->base > highest)
            highest = l->base;
    return highest;
}

static const struct bs_function_table *map_table(s64 fd)
{
    s64 at = bs_raw(__NR_mmap, 0, BS_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    if (is_error(at))
        return 0;
    const struct bs_function_table *head = (const struct bs_function_table *)at;
    u64 size = head->bytes;
    bool valid = head->magic == BS_FUNCTIONS_MAGIC;
    bs_raw(__NR_munmap, at, BS_PAGE);
    if (!valid)
        return 0;
    at = bs_raw(__NR_mmap, 0, size, PROT_READ, MAP_PRIVATE, fd, 0);
    return is_error(at) ? 0 : (const struct bs_function_table *)at;
}

static void add(const struct bs_module *module)
{
    bs_modules[bs_module_count] = *module;
    __atomic_store_n(&bs_module_count, bs_module_count + 1, __ATOMIC_RELEASE);
}

/* Asks the supervisor for the table of the file that is mapped at `address`. */
static void ask(u64 address, bool switches_on)
{
    s64 fd = bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_FUNCTIONS, address);
    if (fd < 0) {
        failures++;
        return;
    }
    const struct bs_function_table *table = map_table(fd);
    bs_raw(__NR_close, fd);
    if (!table) {
        failures++;
        return;
    }
    u64 bias = bias_of(address);
    struct bs_module module = {
        .start = bias + table->low,
        .size = table->size,
        .bits = table->count ? (const u64 *)((const u8 *)table + table->bits) : 0,
        .first = table->first,
        .table = table->signature_count ? table : 0,
    };
    if (module.table)
        bs_values_wanted = 1;
    if (switches_on && table->sled_count)
        bs_switch_on(&module, bias, (const struct bs_sled *)((const u8 *)table + table->sleds),
                     table->sled_count);
    add(&module);
}

/* True if the process may make system calls of the recorder, and a guard answers them. */
static bool may_ask(void)
{
    return failures < MOST_FAILURES && bs_module_count < BS_MODULES && !bs_me.borrowed &&
           bs_is_ready(BS_OP_CALLS) && bs_arena->flags & BS_ARENA_GUARDED &&
           !(bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED));
}

static void take_lock(u64 *signals)
{
    u64 all = ~0ull;
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &all, signals, sizeof all);
    u32 unlocked = 0;
    while (!__atomic_compare_exchange_n(&lock, &unlocked, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        bs_raw(__NR_sched_yield, 0);
        unlocked = 0;
    }
}

static void give_lock(const u64 *signals)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, signals, 0, sizeof *signals);
}

BS_COLD u32 bs_number_in_new_module(u64 function)
{
    if (!may_ask())
        return 0;
    u64 signals;
    take_lock(&signals);
    u32 before = bs_module_count;
    bool known = false;
    for (u32 i = 0; i < before; i++)
        known |= function - bs_modules[i].start < bs_modules[i].size;
    if (!known)
        ask(function, false);
    give_lock(&signals);
    if (!known && bs_module_count == before)
        return 0;
    const struct bs_module *last = &bs_modules[bs_module_count - 1];
    return known || function - last->start < last->size ? bs_function_number(function) : 0;
}

/* The program begins, with one thread. */
BS_COLD void bs_functions_begin(void)
{
    if (!bs_first_library || !bs_first_library->dynamic || !may_ask())
        return;
    u64 signals;
    take_lock(&signals);
    ask((u64)bs_first_library->dynamic, true);
    give_lock(&signals);
}
