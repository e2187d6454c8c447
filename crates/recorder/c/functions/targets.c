/*
 * The functions whose calls are redirected, by their addresses.
 *
 * A library may choose a function when it is loaded: its symbol has the address of a resolver,
 * which returns the function's (IFUNC). The loader has called it. Here it is called again, since
 * the slots of a program that binds lazily do not have the result yet.
 *
 * Invariants:
 *
 * - A function keeps its stub as long as the process runs. If the library is loaded at the same
 *   address again, the function has the same stub again.
 * - A resolver is called only if the program began with its library. Then the loader has relocated
 *   all that the resolver uses. Of a library that is loaded later, another thread may be at that.
 */
#include "functions.h"
#include <linux/mman.h>

enum { BUCKETS = 2 * BS_REDIRECTED };

struct bs_redirected *bs_redirected;
u32 bs_redirected_count;
static uint16_t *buckets; /* index of a function plus 1 */
static struct {
    u64 resolver, function;
} chosen[BS_CHOSEN];
static u32 chosen_count;

static bool map_tables(void)
{
    if (bs_redirected)
        return true;
    u64 size = BS_REDIRECTED * sizeof *bs_redirected;
    if (!bs_map_returns())
        return false;
    s64 at = bs_raw(__NR_mmap, 0, size + BUCKETS * sizeof *buckets, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is_error(at))
        return false;
    buckets = (uint16_t *)(at + (s64)size);
    __atomic_store_n(&bs_redirected, (struct bs_redirected *)at, __ATOMIC_RELEASE);
    return true;
}

/* The bucket of a function, or the free one that it would have. */
static uint16_t *bucket_of(u64 address)
{
    u64 at = address * 0x9e3779b97f4a7c15ull >> 32;
    for (;; at++) {
        uint16_t *bucket = &buckets[at % BUCKETS];
        u32 index = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
        if (!index || bs_redirected[index - 1].address == address)
            return bucket;
    }
}

/* The function that a resolver of the code chooses, or 0. */
static u64 choose(u64 bias, struct bs_code code, u64 resolver)
{
    for (u32 i = 0; i < chosen_count; i++)
        if (chosen[i].resolver == resolver)
            return chosen[i].function;
    if (chosen_count == BS_CHOSEN || !bs_is_initial(bias))
        return 0;
    u64 function = ((u64(*)(void))resolver)();
    if (function - code.start >= code.size)
        return 0;
    chosen[chosen_count].resolver = resolver;
    chosen[chosen_count].function = function;
    __atomic_store_n(&chosen_count, chosen_count + 1, __ATOMIC_RELEASE);
    return function;
}

u64 bs_chosen_by(u64 address)
{
    u32 count = __atomic_load_n(&chosen_count, __ATOMIC_ACQUIRE);
    for (u32 i = 0; i < count; i++)
        if (chosen[i].resolver == address)
            return chosen[i].function;
    return address;
}

bool bs_add_targets(u64 bias, struct bs_code code, const struct bs_target *targets, u32 count)
{
    if (!count)
        return true;
    if (!map_tables())
        return false;
    for (u32 i = 0; i < count; i++) {
        u64 address = bias + targets[i].address;
        if (targets[i].is_chosen && !(address = choose(bias, code, address)))
            continue;
        uint16_t *bucket = bucket_of(address);
        if (*bucket) {
            bs_redirected[*bucket - 1].number = targets[i].number;
            continue;
        }
        if (bs_redirected_count == BS_REDIRECTED)
            return false;
        u32 index = bs_redirected_count++;
        bs_redirected[index] = (struct bs_redirected){address, targets[i].number, 0};
        __atomic_store_n(bucket, (uint16_t)(index + 1), __ATOMIC_RELEASE);
    }
    return true;
}

void bs_forget_targets(u64 start, u64 size)
{
    for (u32 i = 0; i < bs_redirected_count; i++)
        if (bs_redirected[i].address - start < size)
            bs_redirected[i].number = 0;
}

u64 bs_stub_of(u64 address)
{
    if (!bs_redirected)
        return 0;
    u32 index = *bucket_of(address);
    bool has_stub = index && bs_redirected[index - 1].number;
    return has_stub ? (u64)bs_call_stubs + (u64)(index - 1) * BS_STUB : 0;
}

u64 bs_function_of(u64 address)
{
    u64 at = address - (u64)bs_call_stubs;
    bool is_stub = bs_redirected && at < BS_REDIRECTED * BS_STUB && at % BS_STUB == 0 &&
                   bs_redirected[at / BS_STUB].address;
    return is_stub ? bs_redirected[at / BS_STUB].address : address;
}
