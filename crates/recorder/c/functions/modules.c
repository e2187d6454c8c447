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

/*
 * The pid of the process one of whose threads has the lock; 0 for none. A child by fork may find
 * that of its parent: no thread of the child has the lock then. A module that was being added at
 * the fork does not count yet.
 */
static u32 lock;
static u32 failures; /* addresses that belong to no file */
/* The thread has the lock. A library's code that runs then asks for nothing (targets.c). */
static __thread bool has_lock __attribute__((tls_model("initial-exec")));

enum { MOST_FAILURES = 64, SIG_SETMASK = 2 };

/* The loader's answer about an address (struct dl_find_object). */
struct found_object {
    u64 flags;
    void *start, *end;
    const struct bs_link_map *library;
    u64 frames, reserved[8];
};
typedef int find_object(u64 address, struct found_object *found);

/*
 * Returns how far the file with the code at `address` was moved from the addresses that it was
 * linked for.
 *
 * A hook asks, maybe in a signal handler or in the child of a program with threads. So the loader's
 * lock is not taken, which may stay taken for ever.
 */
static u64 bias_of(u64 address)
{
    struct found_object found;
    find_object *loaders =
        (find_object *)(bs_first_library ? bs_next_or_null("_dl_find_object") : 0);
    if (loaders)
        return loaders(address, &found) ? 0 : found.library->base;
    /*
     * The loader of a glibc before 2.35. Another thread may change its list meanwhile. A file's
     * memory is one range, so its base is the highest one below the code.
     */
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

/* Adds a module. A file that was unloaded may be at the same addresses again. */
static void add(const struct bs_module *module)
{
    u32 at = 0;
    while (at < bs_module_count &&
           !(bs_modules[at].first == module->first && bs_modules[at].start == module->start))
        at++;
    if (at < bs_module_count) {
        __atomic_store_n(&bs_modules[at].size, module->size, __ATOMIC_RELEASE);
        return;
    }
    bs_modules[at] = *module;
    __atomic_store_n(&bs_module_count, at + 1, __ATOMIC_RELEASE);
}

/*
 * Asks the supervisor for the table of the file that is mapped at `address`. `begins`: it is the
 * program, which begins.
 */
static void ask(u64 address, u64 bias, bool begins)
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
    struct bs_module module = {
        .start = bias + table->low,
        .size = table->size,
        .bits = table->count ? (const u64 *)((const u8 *)table + table->bits) : 0,
        .first = table->first,
        .table = table->signature_count ? table : 0,
        .bias = bias,
    };
    if (module.table)
        bs_values_wanted = 1;
    const u8 *bytes = (const u8 *)table;
    if (begins && table->sled_count)
        bs_switch_on(&module, bias, (const struct bs_sled *)(bytes + table->sleds),
                     table->sled_count);
    if (begins && bytes[table->libraries])
        bs_library_patterns = (const char *)bytes + table->libraries;
    add(&module);
    const struct bs_target *targets = (const struct bs_target *)(bytes + table->targets);
    struct bs_code code = {module.start, module.size};
    if (!begins && !bs_add_targets(bias, code, targets, table->target_count))
        bs_lose(BS_OP_CALLS);
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
    u32 own = bs_process->pid, seen = 0;
    while (!__atomic_compare_exchange_n(&lock, &seen, own, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (seen == own) {
            bs_raw(__NR_sched_yield, 0);
            seen = 0;
        }
    }
    has_lock = true;
}

static void give_lock(const u64 *signals)
{
    has_lock = false;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, signals, 0, sizeof *signals);
}

BS_COLD u32 bs_number_in_new_module(u64 function)
{
    if (has_lock || !may_ask())
        return 0;
    u64 signals;
    take_lock(&signals);
    u32 before = bs_module_count;
    bool known = false;
    for (u32 i = 0; i < before; i++)
        known |= function - bs_modules[i].start < bs_modules[i].size;
    if (!known)
        ask(function, bias_of(function), false);
    give_lock(&signals);
    if (!known && bs_module_count == before)
        return 0;
    const struct bs_module *last = &bs_modules[bs_module_count - 1];
    return known || function - last->start < last->size ? bs_function_number(function) : 0;
}

BS_COLD void bs_add_library(u64 address, u64 bias)
{
    if (!may_ask())
        return;
    u64 signals;
    take_lock(&signals);
    bool known = false;
    for (u32 i = 0; i < bs_module_count; i++)
        known |= bs_modules[i].bias == bias && bs_modules[i].size;
    if (!known)
        ask(address, bias, false);
    give_lock(&signals);
}

BS_COLD void bs_add_waiting(void)
{
    if (!bs_waiting_count)
        return;
    u64 signals;
    take_lock(&signals);
    if (!bs_add_waiting_targets())
        bs_lose(BS_OP_CALLS);
    give_lock(&signals);
}

BS_COLD void bs_forget_modules(u64 loaded, u32 count)
{
    u64 signals;
    take_lock(&signals);
    for (u32 i = 0; i < count; i++)
        if (bs_modules[i].size && !(loaded >> i & 1)) {
            bs_forget_targets(bs_modules[i].start, bs_modules[i].size);
            __atomic_store_n(&bs_modules[i].size, 0, __ATOMIC_RELEASE);
        }
    give_lock(&signals);
}

/* The program begins, with one thread. */
BS_COLD void bs_functions_begin(void)
{
    if (!bs_first_library || !bs_first_library->dynamic || !may_ask())
        return;
    u64 signals;
    take_lock(&signals);
    ask((u64)bs_first_library->dynamic, bs_first_library->base, true);
    give_lock(&signals);
    if (bs_library_patterns)
        bs_redirect_load();
    bs_redirect_libraries();
}
