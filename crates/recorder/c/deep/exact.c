/*
 * `--time exact`: the time that the program takes without a system call is recorded.
 *
 * The kernel maps functions into each process that read the clocks (the vDSO). Their first
 * instruction becomes a jump to the recorder, which makes the system call instead and records its
 * result. All of libc's functions for time end there, and so do programs that find the vDSO
 * themselves.
 *
 * Invariants:
 *
 * - The functions are redirected once, when the program begins.
 * - Before the program limits its own system calls, the functions become the kernel's again. The
 *   limits need not allow a call that the program does not make.
 * - They stay the kernel's from then on. A thread may be anywhere in the kernel's instructions, but
 *   only before or behind the jump. So one write of 8 bytes can replace the jump at any time, and
 *   nothing can replace the kernel's instructions.
 * - The vDSO's pages stay writable. Threads may give the functions back at the same time, and
 *   limits that are in force already need not allow `mprotect`.
 */
#include "exact.h"
#include <linux/mman.h>

bool bs_exact_time;

/* ---- records --------------------------------------------------------------------------------- */

struct time_value {
    s64 seconds, rest;
};
enum { NS = 1000000000, REALTIME = 0, REALTIME_COARSE = 5, CLOCKS = 12 };

/* The times in the thread's last records, one for each clock. The next record counts from them. */
static __thread struct {
    s64 last[CLOCKS];
    u64 epoch; /* of the chunk in which these are, and its number */
    u32 seq;
    u32 known; /* one bit for each clock */
} base __attribute__((tls_model("initial-exec")));

static const struct bs_chunk *chunk_of(const struct bs_deep_record *record)
{
    u8 *first = bs_deep_arena + BS_ARENA_HEADER;
    u64 offset = (u64)((const u8 *)record - first);
    return (const struct bs_chunk *)(first + offset / BS_CHUNK_SIZE * BS_CHUNK_SIZE);
}

/*
 * Each chunk begins with whole times, so that it can be read without those before. Behind a gap the
 * times are whole, too. Which chunk a record is in is known only after it was reserved.
 */
void bs_exact_count(struct bs_deep_record *record)
{
    const struct bs_chunk *chunk = chunk_of(record);
    if (record->call == BS_DEEP_GAP || base.epoch != chunk->epoch || base.seq != chunk->seq) {
        base.epoch = chunk->epoch;
        base.seq = chunk->seq;
        base.known = 0;
    }
    if (record->call != BS_DEEP_CLOCK || record->b != BS_DEEP_WHOLE)
        return;
    s64 whole = record->result;
    if (base.known >> record->a & 1) {
        record->b = BS_DEEP_SINCE;
        record->result -= base.last[record->a];
    }
    base.last[record->a] = whole;
    base.known |= 1u << record->a;
}

static void log_clock(u64 time, int clock, s64 ns)
{
    if (!bs_deep_is_on())
        return;
    bool aside = bs_deep_me.handlers || clock < 0 || clock >= CLOCKS;
    struct bs_deep_record record = {.call = BS_DEEP_CLOCK,
                                    .time = time,
                                    .fd = -1,
                                    .result = ns,
                                    .a = (u64)(s64)clock,
                                    .b = aside ? BS_DEEP_ASIDE : BS_DEEP_WHOLE};
    bs_deep_append(&record, 0, 0);
}

void bs_exact_took(u64 time, int clock, const s64 *taken)
{
    if (bs_exact_time)
        log_clock(time, clock, taken[0] * NS + taken[1]);
}

static s64 take_time(int clock, struct time_value *to)
{
    u64 time = bs_now();
    s64 result = bs_raw(__NR_clock_gettime, clock, to);
    if (result == 0)
        log_clock(time, clock, to->seconds * NS + to->rest);
    return result;
}

/* ---- the functions --------------------------------------------------------------------------- */

static int vdso_clock_gettime(int clock, struct time_value *to)
{
    struct time_value now;
    s64 result = take_time(clock, &now);
    if (result == 0)
        *to = now;
    return (int)result;
}

static int vdso_gettimeofday(struct time_value *to, u64 *zone)
{
    struct time_value now;
    s64 result = to ? take_time(REALTIME, &now) : 0;
    if (result == 0 && to)
        *to = (struct time_value){now.seconds, now.rest / 1000};
    if (zone)
        *zone = 0;
    return (int)result;
}

static s64 vdso_time(s64 *to)
{
    struct time_value now;
    s64 result = take_time(REALTIME_COARSE, &now);
    if (result == 0 && to)
        *to = now.seconds;
    return result < 0 ? result : now.seconds;
}

s64 bs_exact_processor(u32 *processor, u32 *node)
{
    u32 found[2] = {0, 0};
    u64 time = bs_now();
    s64 result = bs_raw(__NR_getcpu, &found[0], &found[1], 0);
    if (result == 0 && bs_deep_is_on()) {
        struct bs_deep_record record = {
            .call = BS_DEEP_PROCESSOR, .time = time, .fd = -1, .a = found[0], .b = found[1]};
        bs_deep_append(&record, 0, 0);
    }
    if (processor)
        *processor = found[0];
    if (node)
        *node = found[1];
    return result;
}

static s64 vdso_getcpu(u32 *processor, u32 *node, void *unused)
{
    (void)unused;
    return bs_exact_processor(processor, node);
}

/* ---- the vDSO -------------------------------------------------------------------------------- */

/*
 * The entry of a function becomes `jmp *place`. The place lies behind the end of the vDSO's file,
 * in its last page.
 */
static struct redirected {
    const char *name;
    const void *to;
    u64 *entry;
    u64 before, now;
} redirected[] = {
    {"__vdso_clock_gettime", (const void *)vdso_clock_gettime, 0, 0, 0},
    {"__vdso_gettimeofday", (const void *)vdso_gettimeofday, 0, 0, 0},
    {"__vdso_time", (const void *)vdso_time, 0, 0, 0},
    {"__vdso_getcpu", (const void *)vdso_getcpu, 0, 0, 0},
};
enum { REDIRECTED = sizeof redirected / sizeof *redirected, JUMP = 6 };

static u8 *vdso;
static u64 vdso_size; /* in whole pages */

struct section {
    u32 name, type;
    u64 flags, address, offset, size;
    u32 link, info;
    u64 alignment, entry_size;
};
struct symbol {
    u32 name;
    u8 info, other;
    u16 section;
    u64 value, size;
};

static u32 find_in(const struct section *symbols, const char *names)
{
    const struct symbol *all = (const struct symbol *)(vdso + symbols->offset);
    u32 found = 0;
    for (u64 s = 0; s < symbols->size / sizeof *all; s++)
        for (u32 r = 0; r < REDIRECTED; r++)
            if (all[s].size >= sizeof(u64) && all[s].value % sizeof(u64) == 0 &&
                bs_same(names + all[s].name, redirected[r].name)) {
                redirected[r].entry = (u64 *)(vdso + all[s].value);
                found++;
            }
    return found;
}

/* Finds the functions, and the room for the addresses of their replacements. */
static bool find_functions(void)
{
    enum { SECTIONS_AT = 0x28, SECTION_COUNT = 0x3c, DYNAMIC_SYMBOLS = 11 };
    const struct section *sections = (const struct section *)(vdso + *(u64 *)(vdso + SECTIONS_AT));
    u32 count = *(const u16 *)(vdso + SECTION_COUNT), found = 0;
    u64 end = *(u64 *)(vdso + SECTIONS_AT) + count * sizeof *sections;
    for (u32 i = 0; i < count; i++)
        if (sections[i].type == DYNAMIC_SYMBOLS)
            found +=
                find_in(&sections[i], (const char *)(vdso + sections[sections[i].link].offset));
    vdso_size = (end + BS_PAGE - 1) & ~(u64)(BS_PAGE - 1);
    return found == REDIRECTED && vdso_size - end >= (REDIRECTED + 1) * sizeof(u64);
}

static bool redirect(void)
{
    const s64 access = PROT_READ | PROT_WRITE | PROT_EXEC;
    if (bs_raw(__NR_mprotect, vdso, vdso_size, access) < 0)
        return false;
    for (u32 r = 0; r < REDIRECTED; r++) {
        struct redirected *one = &redirected[r];
        u64 *place = (u64 *)(vdso + vdso_size) - REDIRECTED + r;
        *place = (u64)one->to;
        s32 distance = (s32)((u8 *)place - ((u8 *)one->entry + JUMP));
        one->before = *one->entry;
        u8 code[sizeof(u64)] = {0xff, 0x25};
        bs_copy(code + 2, &distance, sizeof distance);
        bs_copy(&one->now, code, sizeof code);
        __atomic_store_n(one->entry, one->now, __ATOMIC_SEQ_CST);
    }
    return true;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static bool ended;
static u32 told; /* the generation of the process in which the record says that it ended */

void bs_exact_begin(const u64 *auxiliary)
{
    enum { AT_SYSINFO_EHDR = 33 };
    for (const u64 *aux = auxiliary; aux && *aux; aux += 2)
        if (*aux == AT_SYSINFO_EHDR)
            vdso = (u8 *)aux[1];
    bs_exact_time = vdso && find_functions() && redirect();
}

/* Of several threads that are here, one changes each function. */
void bs_exact_end(void)
{
    if (!__atomic_load_n(&bs_exact_time, __ATOMIC_SEQ_CST))
        return;
    for (u32 r = 0; r < REDIRECTED; r++) {
        u64 now = redirected[r].now;
        __atomic_compare_exchange_n(redirected[r].entry, &now, redirected[r].before, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
    __atomic_store_n(&bs_exact_time, false, __ATOMIC_SEQ_CST);
}

void bs_exact_tell_once(u32 *generation, u32 fact)
{
    if (!bs_deep_is_on())
        return;
    u32 here = bs_process->generation;
    if (__atomic_exchange_n(generation, here, __ATOMIC_SEQ_CST) != here)
        bs_deep_fact(fact, -1, 0, 0, 0);
}

void bs_exact_tell(void)
{
    if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
        bs_exact_tell_once(&told, BS_DEEP_UNTIMED);
}
