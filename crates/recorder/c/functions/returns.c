/*
 * Logs redirected calls of a library's functions, and remembers where they return to.
 *
 * In: a call at a stub (redirection.S), with all registers. Out: the address to go on at.
 *
 * Invariants:
 *
 * - An entry stays until its call returns, whichever thread the stack belongs to then. So functions
 *   may switch stacks.
 * - An entry without a return is reused only if its stub is no longer where it was put. A longjmp
 *   or an exception has then left the frame.
 * - If no entry is free, the call goes to the function as if it were not redirected.
 */
#include "functions.h"
#include <linux/mman.h>

enum {
    STACK_POINTER = 7, /* by DWARF's number */
    PROBES = 16,
    SCAN = 64,   /* entries that are checked for an abandoned one */
    PAUSE = 256, /* calls until the next check, if there was none */
    NONE = BS_RETURNS
};
/* From a return stub to its entry. redirection.S has the same number. */
static const u64 DISTANCE = BS_RETURN_DISTANCE;

struct entry {
    u64 back; /* the address that the call returns to */
    u64 slot; /* where that address was. 0: free */
};
_Static_assert(sizeof(struct entry) == BS_STUB, "entries are as far apart as stubs");
_Static_assert(BS_RETURNS *BS_STUB == BS_RETURN_STUBS, "the engine knows all stubs");

/* `slot` of an entry that is being filled in. */
static const u64 CLAIMED = 1;

static u32 *numbers; /* of the functions, by entry */
static u32 cursor, pause;
static __thread u32 next_entry __attribute__((tls_model("initial-exec")));

u64 bs_redirected_call(u32 index, const struct bs_registers *registers);
u64 bs_redirected_return(u32 index, const struct bs_registers *registers);

static inline u64 stub(u32 entry)
{
    return (u64)bs_return_stubs + entry * BS_STUB;
}

static inline struct entry *entry_of(u32 index)
{
    return (struct entry *)(stub(index) + DISTANCE);
}

/* The processor checks return addresses itself. It would end the program. */
static bool has_shadow_stack(void)
{
    u64 stack = 0;
    __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" /* rdsspq %rax */ : "+a"(stack));
    return stack != 0;
}

BS_COLD bool bs_map_returns(void)
{
    if (has_shadow_stack())
        return false;
    u64 first = (u64)entry_of(0) & ~(u64)(BS_PAGE - 1), end = (u64)entry_of(BS_RETURNS);
    u64 size = end - first + BS_RETURNS * sizeof(u32);
    s64 at = bs_raw(__NR_mmap, first, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (s64)first) {
        if (!is_error(at))
            bs_raw(__NR_munmap, at, size);
        return false;
    }
    numbers = (u32 *)end;
    if (bs_modes & BS_MODE_SIMULATED)
        bs_ask_simulator(BS_RETURNS_IN_SIMULATOR, (u64)bs_return_stubs);
    return true;
}

static bool claims(u32 index, u64 seen)
{
    u64 *slot = &entry_of(index)->slot;
    return __atomic_load_n(slot, __ATOMIC_RELAXED) == seen &&
           __atomic_compare_exchange_n(slot, &seen, CLAIMED, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Takes the entry of a frame that a longjmp or an exception has left. */
static BS_COLD u32 take_abandoned(void)
{
    u32 readable;
    if (pause) {
        pause--;
        return NONE;
    }
    /* Where memory cannot be looked at, no frame looks abandoned. */
    if (bs_fetch(&readable, (u64)&cursor, sizeof readable) != sizeof readable)
        return NONE;
    for (u32 i = 0; i < SCAN; i++) {
        u32 at = __atomic_fetch_add(&cursor, 1, __ATOMIC_RELAXED) % BS_RETURNS;
        u64 slot = __atomic_load_n(&entry_of(at)->slot, __ATOMIC_ACQUIRE), found = 0;
        if (slot <= CLAIMED || (bs_fetch(&found, slot, sizeof found) && found == stub(at)))
            continue;
        if (claims(at, slot))
            return at;
    }
    pause = PAUSE;
    return NONE;
}

/* Takes a free entry. Those of a thread are close to each other. */
static inline u32 claim(void)
{
    u32 from = next_entry ? next_entry : bs_me.tid * SCAN;
    for (u32 i = 0; i < PROBES; i++) {
        u32 at = (from + i) % BS_RETURNS;
        if (BS_LIKELY(claims(at, 0))) {
            next_entry = at + 1;
            return at;
        }
    }
    return take_abandoned();
}

u64 bs_redirected_call(u32 index, const struct bs_registers *registers)
{
    const struct bs_redirected *function = &bs_redirected[index];
    u64 *slot = (u64 *)registers->general[STACK_POINTER];
    if (BS_UNLIKELY(bs_me.borrowed || !function->number))
        return function->address;
    u64 back = *slot, behind = back - (u64)bs_return_stubs;
    if (BS_UNLIKELY(behind < BS_RETURNS * BS_STUB)) {
        /* A redirected function jumps to this one, which returns to the caller of both. */
        u32 at = (u32)behind / BS_STUB;
        numbers[at] = function->number;
        bs_function_called(function->number, (u64)slot, entry_of(at)->back);
    } else {
        u32 at = claim();
        if (BS_UNLIKELY(at == NONE)) {
            bs_lose(BS_OP_CALLS);
            return function->address;
        }
        struct entry *entry = entry_of(at);
        bs_function_called(function->number, (u64)slot, back);
        numbers[at] = function->number;
        entry->back = back;
        *slot = stub(at);
        __atomic_store_n(&entry->slot, (u64)slot, __ATOMIC_RELEASE);
    }
    if (BS_UNLIKELY(bs_values_wanted))
        bs_log_called(function->number, registers, 0);
    return function->address;
}

u64 bs_redirected_return(u32 index, const struct bs_registers *registers)
{
    struct entry *entry = entry_of(index);
    u64 back = entry->back, stack = registers->general[STACK_POINTER] - sizeof back;
    if (BS_UNLIKELY(bs_values_wanted))
        bs_log_returned(numbers[index], stack, registers, 0);
    bs_redirected_function_returned(stack);
    __atomic_store_n(&entry->slot, 0, __ATOMIC_RELEASE);
    next_entry = index;
    return back;
}
