/*
 * Handles programs with a sanitizer's runtime as a library (gcc's, and clang's with
 * -shared-libasan).
 *
 * Such a runtime intercepts what the recorder wraps, and takes the caller from the return address.
 * The loader's order is program, recorder, runtime, libc. Without help, one of these goes wrong:
 *
 * - The runtime sees the recorder as the caller, so a suppression by function stops matching.
 * - The runtime misses the calls that the recorder makes itself. ThreadSanitizer then no longer
 *   knows that a pipe orders two threads.
 *
 * The recorder therefore moves behind the runtime. In programs that clang linked the runtime into,
 * it stands there already: program, runtime, recorder, libc.
 *
 * 1. The entry of each function that both have becomes a jump to the runtime's function.
 * 2. The runtime finds "the next function" by `dlsym`. It gets the recorder's function, behind the
 *    jump.
 * 3. The recorder looks for libc's functions behind the runtime (next.c).
 *
 * All this happens before the runtime is initialized. Where new code is forbidden nothing happens.
 */
#include "symbols.h"
#include <linux/mman.h>

void *dlsym(void *handle, const char *name);
void *dlvsym(void *handle, const char *name, const char *version);

/*
 * AddressSanitizer insists on being the first library. It skips libraries whose name begins like
 * the vDSO's.
 */
static char overlooked[] = BS_PRELOAD_NAME;

/* Every runtime has this function. */
static const char runtime_function[] = "__sanitizer_set_report_fd";

/*
 * An entry's two instructions without effect (BS_INTERCEPTED) become a jump to the five bytes
 * before the entry. These become a jump to a table within reach. The table's jump can reach any
 * address.
 */
enum { NO_OPERATIONS = 0x9090, JUMP_BACK = 0xf9eb, NEAR_JUMP = 0xe9, BEFORE = 5, SKIPPED = 2 };
struct far_jump {
    u8 code[8]; /* jmp *2(%rip): the target */
    u64 target;
};
static const u8 far_jump[8] = {0xff, 0x25, 2};
enum { TABLE = BS_PAGE, MOST_JUMPS = TABLE / sizeof(struct far_jump) };

static struct bs_symbols own;

static u8 *entry(const struct bs_link_map *self, u32 symbol)
{
    return (u8 *)(self->base + own.table[symbol].value);
}

/* Returns the recorder's function behind the jump at its entry, or null if there is no jump. */
static void *behind_jump(const char *name)
{
    u32 symbol = bs_symbol(&own, name, bs_symbol_hash(name));
    u8 *at = symbol ? entry(bs_recorder_library, symbol) : 0;
    return at && *(uint16_t *)at == JUMP_BACK ? at + SKIPPED : 0;
}

/* These functions end in jumps: libc's functions look at the return address, too. */
static void *dlsym_of_runtime(void *handle, const char *name)
{
    void *function = handle == (void *)-1l /* RTLD_NEXT */ ? behind_jump(name) : 0;
    return function ? function : BS_NEXT(dlsym)(handle, name);
}

static void *dlvsym_of_runtime(void *handle, const char *name, const char *version)
{
    void *function = handle == (void *)-1l ? behind_jump(name) : 0;
    return function ? function : BS_NEXT(dlvsym)(handle, name, version);
}

/* The runtime's own calls of `dlsym` go through its table of jumps. */
static bool redirect_lookups(const struct bs_link_map *runtime, const struct bs_symbols *symbols)
{
    bool redirected = false;
    const struct bs_relocation *end = symbols->jumps + symbols->jumps_size / sizeof *end;
    for (const struct bs_relocation *r = symbols->jumps; r && r < end; r++) {
        const char *name = symbols->names + symbols->table[r->symbol].name;
        bool plain = bs_same(name, "dlsym");
        if (!plain && !bs_same(name, "dlvsym"))
            continue;
        void **slot = (void **)(runtime->base + r->offset);
        u64 page = (u64)slot & ~(u64)(BS_PAGE - 1);
        if (bs_raw(__NR_mprotect, page, BS_PAGE, PROT_READ | PROT_WRITE) < 0)
            return false;
        *slot = plain ? (void *)dlsym_of_runtime : (void *)dlvsym_of_runtime;
        redirected |= plain;
    }
    return redirected;
}

/* Maps memory for the far jumps, within reach of the recorder's code; null if there is no room. */
static struct far_jump *map_jumps(void)
{
    u64 here = (u64)bs_gate & ~(u64)(BS_PAGE - 1);
    s64 at = bs_raw(__NR_mmap, here - TABLE, TABLE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -(s64)BS_PAGE)
        return 0;
    s64 distance = at - (s64)here;
    if (distance > -(1ll << 30) && distance < 1ll << 30)
        return (struct far_jump *)at;
    bs_raw(__NR_munmap, at, TABLE);
    return 0;
}

/* Turns the entry into a jump to `target`. True if `jump` is used: aliases share an entry. */
static bool redirect(struct far_jump *jump, u8 *at, u64 target)
{
    u8 *first = at - BEFORE;
    u64 page = (u64)first & ~(u64)(BS_PAGE - 1), size = (u64)at + SKIPPED - page;
    if (*(uint16_t *)at != NO_OPERATIONS ||
        bs_raw(__NR_mprotect, page, size, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
        return false;
    bs_copy(jump->code, far_jump, sizeof far_jump);
    jump->target = target;
    *first = NEAR_JUMP;
    *(s32 *)(first + 1) = (s32)((u8 *)jump - at);
    *(uint16_t *)at = JUMP_BACK;
    bs_raw(__NR_mprotect, page, size, PROT_READ | PROT_EXEC);
    return true;
}

void bs_step_behind_sanitizer(void)
{
    struct bs_link_map *runtime = bs_recorder_library->next;
    struct bs_symbols symbols;
    if (!runtime || !bs_find_symbols(runtime, &symbols) ||
        !bs_symbol(&symbols, runtime_function, bs_symbol_hash(runtime_function)))
        return;
    bs_recorder_library->name = overlooked;
    struct far_jump *jumps = bs_find_symbols(bs_recorder_library, &own) ? map_jumps() : 0,
                    *next = jumps;
    if (!jumps || !redirect_lookups(runtime, &symbols))
        return;
    const u32 *bucket = (const u32 *)((const u64 *)(own.hash + 4) + own.hash[2]);
    for (u32 b = 0; b < own.hash[0]; b++)
        for (u32 i = bucket[b]; i && next < jumps + MOST_JUMPS; i++) {
            const char *name = own.names + own.table[i].name;
            u32 theirs = bs_symbol(&symbols, name, bs_symbol_hash(name));
            if (theirs)
                next += redirect(next, entry(bs_recorder_library, i),
                                 runtime->base + symbols.table[theirs].value);
            if (bucket[own.hash[0] + i - own.hash[1]] & 1)
                break;
        }
    bs_last_before_next = runtime;
    bs_raw(__NR_mprotect, jumps, TABLE, PROT_READ | PROT_EXEC);
}
