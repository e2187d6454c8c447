/*
 * The functions whose calls are redirected, by their addresses.
 *
 * A library may choose a function when it is loaded: its symbol has the address of a resolver,
 * which returns the function's (IFUNC). The loader calls it. Here it is called again, since the
 * slots of a program that binds lazily do not have the result yet.
 *
 * Invariants:
 *
 * - A function keeps its stub as long as the process runs. If the library is loaded at the same
 *   address again, the function has the same stub again.
 * - A resolver is called only after the loader has relocated its library, and so all that the
 *   resolver uses. Until then its function waits: another thread may be loading the library.
 */
#include "objects.h"
#include <linux/mman.h>

enum { BUCKETS = 2 * BS_REDIRECTED };

struct bs_redirected *bs_redirected;
u32 bs_redirected_count;
static uint16_t *buckets; /* index of a function plus 1 */
static struct {
    u64 resolver, function;
} chosen[BS_CHOSEN];
static u32 chosen_count;

/* A function whose library was not relocated at the last look. */
struct waiting {
    u64 bias;
    struct bs_code code;
    u64 resolver;
    u32 number;
};
static struct waiting waiting[BS_CHOSEN];
u32 bs_waiting_count;

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

/* The function that a resolver of the code chooses, or 0. The loader has relocated the code. */
static u64 choose(struct bs_code code, u64 resolver)
{
    u32 at = chosen_count;
    for (u32 i = chosen_count; i-- > 0;) {
        if (chosen[i].resolver == resolver)
            return chosen[i].function;
        if (!chosen[i].resolver)
            at = i;
    }
    if (at == BS_CHOSEN)
        return 0;
    u64 function = ((u64(*)(void))resolver)();
    if (function - code.start >= code.size)
        return 0;
    chosen[at].function = function;
    __atomic_store_n(&chosen[at].resolver, resolver, __ATOMIC_RELEASE);
    if (at == chosen_count)
        __atomic_store_n(&chosen_count, at + 1, __ATOMIC_RELEASE);
    return function;
}

u64 bs_chosen_by(u64 address)
{
    u32 count = __atomic_load_n(&chosen_count, __ATOMIC_ACQUIRE);
    for (u32 i = 0; i < count; i++)
        if (__atomic_load_n(&chosen[i].resolver, __ATOMIC_ACQUIRE) == address)
            return chosen[i].function;
    return address;
}

/* Gives a function a stub. False if none is left. */
static bool add_target(u64 address, u32 number)
{
    uint16_t *bucket = bucket_of(address);
    if (*bucket) {
        bs_redirected[*bucket - 1].number = number;
        return true;
    }
    if (bs_redirected_count == BS_REDIRECTED)
        return false;
    u32 index = bs_redirected_count++;
    bs_redirected[index] = (struct bs_redirected){address, number, 0};
    __atomic_store_n(bucket, (uint16_t)(index + 1), __ATOMIC_RELEASE);
    return true;
}

/* The same for a function that its library chooses, or will choose. */
static bool add_chosen(const struct waiting *one)
{
    /* The loader's list has no other namespaces. */
    if (bs_is_apart(one->bias))
        return true;
    if (!bs_is_initial(one->bias) && !bs_is_relocated(one->bias, one->code)) {
        if (bs_waiting_count == BS_CHOSEN)
            return false;
        waiting[bs_waiting_count++] = *one;
        return true;
    }
    u64 function = choose(one->code, one->resolver);
    return !function || add_target(function, one->number);
}

bool bs_add_targets(u64 bias, struct bs_code code, const struct bs_target *targets, u32 count)
{
    if (!count)
        return true;
    if (!map_tables())
        return false;
    for (u32 i = 0; i < count; i++) {
        u64 address = bias + targets[i].address;
        struct waiting one = {bias, code, address, targets[i].number};
        if (targets[i].is_chosen ? !add_chosen(&one) : !add_target(address, one.number))
            return false;
    }
    return true;
}

bool bs_add_waiting_targets(void)
{
    u32 count = bs_waiting_count;
    bool added = true;
    bs_waiting_count = 0;
    /* Each one that waits again goes to an earlier place, or to its own. */
    for (u32 i = 0; i < count; i++) {
        struct waiting one = waiting[i];
        added &= add_chosen(&one);
    }
    return added;
}

void bs_forget_targets(u64 start, u64 size)
{
    for (u32 i = 0; i < bs_redirected_count; i++)
        if (bs_redirected[i].address - start < size)
            bs_redirected[i].number = 0;
    for (u32 i = 0; i < chosen_count; i++)
        if (chosen[i].resolver - start < size)
            __atomic_store_n(&chosen[i].resolver, 0, __ATOMIC_RELEASE);
    u32 left = 0;
    for (u32 i = 0; i < bs_waiting_count; i++)
        if (waiting[i].code.start != start)
            waiting[left++] = waiting[i];
    bs_waiting_count = left;
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
