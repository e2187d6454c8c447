/*
 * `--time exact`: records the instructions that read the time-stamp counter (`rdtsc`, `rdtscp`),
 * and those that identify the processor (`cpuid`).
 *
 * When the program begins, the supervisor puts a jump in the place of each such instruction in the
 * program and its libraries (crates/instructions). It does so again when a library was loaded. The
 * jump leads here. The instruction is executed here, and its result recorded.
 *
 * Invariant: the program does not see a difference, but for the bytes of its code. No system call
 * is made, except to take a chunk of the log.
 */
#include "exact.h"

/* As instruction_entry.S has saved them. */
struct registers {
    u64 bp, r11, r10, r9, r8, di, si, d, c, b, a, flags;
};

enum { IDENTITY_BYTES = 16 };

/* The jumps lead here. */
extern const u8 bs_instruction_entry[];

static BS_COLD void identify(struct registers *at)
{
    u32 leaf = (u32)at->a, subleaf = (u32)at->c;
    u32 told[IDENTITY_BYTES / sizeof(u32)];
    u64 time = bs_now();
    __asm__ volatile("cpuid"
                     : "=a"(told[0]), "=b"(told[1]), "=c"(told[2]), "=d"(told[3])
                     : "a"(leaf), "c"(subleaf));
    at->a = told[0];
    at->b = told[1];
    at->c = told[2];
    at->d = told[3];
    if (!bs_deep_is_on())
        return;
    struct bs_part part = {.kind = BS_DEEP_ENTERED, .size = sizeof told, .at = told};
    struct bs_deep_record record = {
        .call = BS_DEEP_CPUID, .time = time, .fd = -1, .a = leaf, .b = subleaf};
    bs_deep_append(&record, &part, 1);
}

static void count(struct registers *at, u32 kind)
{
    u32 low, high, processor = 0;
    if (kind == BS_DEEP_RDTSCP)
        __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor));
    else
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    at->a = low;
    at->d = high;
    if (kind == BS_DEEP_RDTSCP)
        at->c = processor;
    if (!bs_deep_is_on())
        return;
    u64 counter = (u64)high << 32 | low;
    struct bs_deep_record record = {
        .call = BS_DEEP_COUNTER,
        /* A program that forbids the instruction gives itself another value. */
        .time = bs_modes & BS_MODE_NO_TSC ? bs_now() : counter,
        .fd = -1,
        .result = (s64)counter,
        .a = kind,
        .b = processor,
    };
    bs_deep_append(&record, 0, 0);
}

__attribute__((used)) void bs_deep_instruction(struct registers *at, u32 kind)
{
    if (kind == BS_DEEP_CPUID_INSTRUCTION)
        identify(at);
    else
        count(at, kind);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool redirects; /* a supervisor redirects the instructions of this program */
static bool is_left;   /* some stay. A forked child has the same code */
static u32 told;       /* the generation of the process in which the record says that some stay */

void bs_instructions_tell(void)
{
    if (__atomic_load_n(&is_left, __ATOMIC_SEQ_CST))
        bs_exact_tell_once(&told, BS_DEEP_UNCOUNTED);
}

static void tell(void)
{
    __atomic_store_n(&is_left, true, __ATOMIC_SEQ_CST);
    bs_instructions_tell();
}

/* Other threads, or a child on this memory, may execute the code that would change. */
static void ask(void)
{
    bool in_use = bs_threaded || bs_modes & BS_MODE_SHARED_MEMORY;
    u64 to = (u64)bs_instruction_entry | in_use;
    if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_INSTRUCTIONS, to) != 0)
        tell();
}

/* Without a guard, no supervisor answers. Nothing is redirected then. */
void bs_instructions_begin(void)
{
    redirects = bs_arena->flags & BS_ARENA_GUARDED && !(bs_modes & BS_MODE_SIMULATED);
    if (!redirects) {
        tell();
        return;
    }
    ask();
    redirects = bs_redirect_load();
    /* The libraries that the program loads later would not be seen. */
    if (!redirects)
        tell();
}

/* The loader's count of loads when the supervisor was asked last. */
static u64 known;

void bs_instructions_loaded(void)
{
    if (!redirects || bs_me.borrowed || !bs_deep_is_on())
        return;
    u64 loads = bs_library_loads();
    if (__atomic_exchange_n(&known, loads, __ATOMIC_RELAXED) == loads)
        return;
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED))
        tell();
    else
        ask();
}
