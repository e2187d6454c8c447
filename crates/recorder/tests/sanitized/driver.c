/*
 * Runs the recorder's logic that needs no arena under AddressSanitizer and
 * UndefinedBehaviorSanitizer. It tests strings, the environment's repair and hiding, readable
 * memory, and the numbers in /proc. Buffers are exactly as large as the recorder makes them, so
 * that one byte too many is found. Ends with 0, or prints the failed check.
 */
#define memcpy recorders_memcpy
#define memset recorders_memset
/* It reads whole aligned blocks on purpose: they lie in the string's page. */
__attribute__((no_sanitize_address)) unsigned bs_length(const char *s, unsigned limit);
#include "text.c"
#undef memcpy
#undef memset

#include "memory.c"
#include "procfs.c"
#include "repair.c"
/* Keeps the constructor from running here. */
#define section(name) unused
#define memset recorders_memset
#include "environ.c"
#undef memset
#undef section

__asm__(".text\n.globl bs_gate\n.hidden bs_gate\nbs_gate: syscall\n ret\n");
u32 bs_modes;
/* not null, so that pages are checked by a call */
struct bs_arena *bs_arena = (struct bs_arena *)1;
bool bs_only_dispatches(void)
{
    return false;
}
u64 bs_ask_simulator(u64 request, u64 argument)
{
    (void)request, (void)argument;
    return 0;
}

bool bs_is_muted(void)
{
    return false;
}
void bs_step_behind_sanitizer(void)
{
}

extern void *malloc(size_t), free(void *), *mmap(void *, size_t, int, int, int, long);
extern int printf(const char *, ...), sprintf(char *, const char *, ...),
    mprotect(void *, size_t, int);
extern _Noreturn void exit(int);

#define CHECK(truth) \
    do { \
        if (!(truth)) { \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #truth); \
            exit(1); \
        } \
    } while (0)

static u64 state = 0x9e3779b97f4a7c15ull;

static u32 any(u32 below)
{
    state = state * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
    return (u32)(state >> 33) % below;
}

static char *copy_of(const char *text)
{
    u32 n = bs_length(text, ~0u) + 1;
    char *copy = malloc(n);
    bs_copy(copy, text, n);
    return copy;
}

/* Tests strings at a page's end, with no page behind it. */
static void strings(void)
{
    char *pages = mmap(0, 2 * BS_PAGE, 3, 0x22, -1, 0);
    CHECK(!mprotect(pages + BS_PAGE, BS_PAGE, 0));
    for (u32 n = 0; n < 100; n++) {
        char *s = pages + BS_PAGE - n - 1;
        for (u32 i = 0; i < n; i++)
            s[i] = (char)('a' + i % 26);
        s[n] = 0;
        for (u32 limit = 0; limit < 110; limit++)
            CHECK(bs_length(s, limit) == (n < limit ? n : limit));
        u32 length = ~0u;
        CHECK(bs_measure(s, ~0u, &length) && length == n);
        char *exact = malloc(n + 1);
        bs_copy(exact, s, n + 1);
        CHECK(bs_same(exact, s) && bs_starts(exact, s));
        free(exact);
        s[n] = 'x'; /* no string ends before the page does */
        CHECK(!bs_measure(s, ~0u, &length));
        CHECK(bs_measure(s, n, &length) && length == n);
    }
    CHECK(!bs_readable(pages + BS_PAGE - 1, 2) && bs_readable(pages + BS_PAGE - 1, 1));
    CHECK(!bs_readable((void *)8, 1) && !bs_readable((void *)~0ull, 2) &&
          !bs_readable(pages, ~0ull));
    /* In a sandbox, the kernel cannot be asked. */
    CHECK(bs_surely_readable(pages, 1) && !bs_surely_readable(pages + BS_PAGE, 1));
    bs_modes |= BS_MODE_SANDBOX;
    CHECK(bs_readable(pages + BS_PAGE, 1) && !bs_surely_readable(pages + BS_PAGE, 1));
    bs_modes &= ~BS_MODE_SANDBOX;
    u32 length;
    CHECK(bs_measure(0, 5, &length) && length == 0);
}

static const char *const variables[] = {
    "PATH=/bin",
    "A=",
    "",
    "LD_PRELOAD=/x/mine.so",
    "LD_PRELOAD=/x/a.so:/y/$LIB/" BS_PRELOAD_NAME,
    "LD_PRELOAD=/y/$LIB/" BS_PRELOAD_NAME,
    "LD_PRELOAD=",
    "LD_PRELOAD",
    "BACKSTORY_ARENA=/dev/shm/backstory-12345678.arena",
    "BACKSTORY_ARENAS=1",
    "ODD=\xff\xfe=\x01",
    "LONG="
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxx",
};
enum { VARIABLES = sizeof variables / sizeof *variables };

/* Any environment gets the recorder's two variables, in the room computed for it. */
static void repair(void)
{
    bs_copy(bs_arena_path, "BACKSTORY_ARENA=/dev/shm/a", 27);
    bs_copy(bs_preload_entry, "/y/$LIB/" BS_PRELOAD_NAME, sizeof "/y/$LIB/" BS_PRELOAD_NAME);
    bs_user = (u32)bs_raw(__NR_geteuid, 0);
    for (int round = 0; round < 20000; round++) {
        u32 count = any(12);
        char *env[12] = {0};
        bool users = false;
        for (u32 i = 0; i < count && i < 11; i++) {
            env[i] = copy_of(variables[any(VARIABLES)]);
            users |= bs_same(env[i], variables[3]);
        }
        struct bs_room room = bs_environment_room(env);
        char **array = malloc(room.count * sizeof *array), *text = malloc(room.bytes);
        char *const *repaired = bs_environment_repaired(env, array, text, round & 1);
        u32 arenas = 0, entries = 0, kept = 0;
        for (char *const *e = repaired; *e; e++) {
            arenas += bs_is_recorder_variable(*e);
            entries += bs_starts(*e, "LD_PRELOAD=") && own_entry(*e + 11) != 0;
            kept += bs_starts(*e, "LD_PRELOAD=/x/mine.so");
        }
        CHECK(arenas == 1 && entries >= 1 && (!users || kept));
        bs_environment_hash(env);
        CHECK(bs_list_readable(env));
        free(array), free(text);
        for (u32 i = 0; env[i]; i++)
            free(env[i]);
    }
}

/* Hiding the recorder's variables closes the gap, and changes nothing outside. */
static void hiding(void)
{
    for (int round = 0; round < 20000; round++) {
        u32 count = 1 + any(10), bytes = 0, at = 0, plain = 0, left = 0;
        u32 which[10];
        for (u32 i = 0; i < count; i++)
            bytes += bs_length(variables[which[i] = any(VARIABLES)], ~0u) + 1;
        char *block = malloc(bytes), **env = malloc((count + 1) * sizeof *env);
        for (u32 i = 0; i < count; i++) {
            const char *variable = variables[which[i]];
            u32 n = bs_length(variable, ~0u) + 1;
            bs_copy(env[i] = block + at, variable, n);
            at += n;
            plain +=
                !bs_starts(variable, "BACKSTORY_ARENA=") && !bs_starts(variable, "LD_PRELOAD=");
        }
        env[count] = 0;
        hide(env);
        for (char **e = env; *e; e++) {
            CHECK(!bs_is_recorder_variable(*e));
            CHECK(!bs_starts(*e, "LD_PRELOAD=") || !own_entry(*e + 11));
            left += !bs_starts(*e, "LD_PRELOAD=");
        }
        CHECK(left == plain);
        free(block), free(env);
    }
}

/* Any text gives numbers, or fails. */
static void numbers(void)
{
    char text[64];
    u64 to[3];
    CHECK(fields("1 (a) b) R 4 5 6 7", 4, to, 3) && to[0] == 4 && to[2] == 6);
    CHECK(!fields("1 (a) R 4", 4, to, 3));
    for (int round = 0; round < 200000; round++) {
        u32 n = any(sizeof text);
        for (u32 i = 0; i < n; i++)
            text[i] = "() 0123456789R-"[any(15)];
        text[n] = 0;
        char *exact = copy_of(text);
        fields(exact, 1 + any(50), to, 3);
        free(exact);
    }
}

int main(void)
{
    strings();
    repair();
    hiding();
    numbers();
    printf("fine\n");
    return 0;
}
