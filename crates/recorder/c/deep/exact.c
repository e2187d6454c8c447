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
 * - A function is redirected by one write of 8 bytes, because other threads may be in it.
 * - Before the program limits its own system calls, the functions become the kernel's again. The
 *   limits need not allow a call that the program does not make.
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
    u32 known;             /* one bit for each clock */
    u32 generation, count; /* of the deep chunk in which these are */
} base __attribute__((tls_model("initial-exec")));

/* Each chunk begins with whole times, so that it can be read without those before. */
static void renew_base(void)
{
    if (base.generation == bs_deep_me.generation && base.count == bs_deep_me.count)
        return;
    base.generation = bs_deep_me.generation;
    base.count = bs_deep_me.count;
    base.known = 0;
}

static void log_clock(u64 time, int clock, s64 ns)
{
    if (!bs_deep_is_on())
        return;
    struct bs_deep_record record = {
        .call = BS_DEEP_CLOCK, .time = time, .fd = -1, .result = ns, .a = (u64)(s64)clock};
    renew_base();
    if (bs_deep_me.handlers || clock < 0 || clock >= CLOCKS) {
        record.b = BS_DEEP_ASIDE;
    } else {
        record.b = base.known >> clock & 1 ? BS_DEEP_SINCE : BS_DEEP_WHOLE;
        if (record.b == BS_DEEP_SINCE)
            record.result -= base.last[clock];
        base.last[clock] = ns;
        base.known |= 1u << clock;
    }
    bs_deep_append(&record, 0, 0);
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

static bool protect(s64 access)
{
    return bs_raw(__NR_mprotect, vdso, vdso_size, access) >= 0;
}

static bool set_entries(bool redirects)
{
    if (!protect(PROT_READ | PROT_WRITE | PROT_EXEC))
        return false;
    for (u32 r = 0; r < REDIRECTED; r++)
        __atomic_store_n(redirected[r].entry, redirects ? redirected[r].now : redirected[r].before,
                         __ATOMIC_SEQ_CST);
    protect(PROT_READ | PROT_EXEC);
    return true;
}

static bool redirect(void)
{
    if (!protect(PROT_READ | PROT_WRITE | PROT_EXEC))
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
    }
    return set_entries(true);
}

/* ---- begin and end --------------------------------------------------------------------------- */

void bs_exact_begin(const u64 *auxiliary)
{
    enum { AT_SYSINFO_EHDR = 33 };
    for (const u64 *aux = auxiliary; aux && *aux; aux += 2)
        if (*aux == AT_SYSINFO_EHDR)
            vdso = (u8 *)aux[1];
    bs_exact_time = vdso && find_functions() && redirect();
}

void bs_exact_suspend(void)
{
    if (bs_exact_time)
        set_entries(false);
}

void bs_exact_resume(void)
{
    if (bs_exact_time)
        set_entries(true);
}
