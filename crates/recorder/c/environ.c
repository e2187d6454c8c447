/*
 * The constructor: hides the recorder's variables before any other constructor runs. Nothing else
 * happens at a program's start, except in programs with a sanitizer's runtime (sanitizer.c).
 */
#include "elf.h"

enum { ARENA_MAX = 512, ENTRY_MAX = 1024 };
char bs_arena_path[ARENA_MAX];
char bs_preload_entry[ENTRY_MAX];
const char *bs_recorder_file = "";
u32 bs_user;
struct bs_link_map *bs_first_library, *bs_last_library, *bs_recorder_library, *bs_last_before_next;

/* musl calls constructors without arguments. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));
extern u64 _DYNAMIC[];

enum {
    AT_NULL = 0,
    AT_PHDR = 3,
    AT_PHNUM = 5,
    AT_EUID = 12,
    AT_EXECFN = 31,
    DT_NULL = 0,
    DT_DEBUG = 21
};

struct debug {
    int version;
    struct bs_link_map *libraries;
};

/* The loader's list of libraries, found from the auxiliary vector behind the environment. */
static struct bs_link_map *find_libraries(char **env)
{
    while (*env)
        env++;
    const struct bs_program_header *headers = 0;
    u64 count = 0, base = 0;
    for (u64 *aux = (u64 *)(env + 1); aux[0] != AT_NULL; aux += 2) {
        if (aux[0] == AT_PHDR)
            headers = (const struct bs_program_header *)aux[1];
        if (aux[0] == AT_PHNUM)
            count = aux[1];
        if (aux[0] == AT_EUID)
            bs_user = (u32)aux[1];
        if (aux[0] == AT_EXECFN) /* the last string on the stack */
            bs_stack_end = aux[1];
    }
    u64 *dynamic = 0;
    for (u64 i = 0; headers && i < count; i++)
        if (headers[i].type == PT_PHDR)
            base = (u64)headers - headers[i].address;
    for (u64 i = 0; headers && i < count; i++)
        if (headers[i].type == PT_DYNAMIC)
            dynamic = (u64 *)(base + headers[i].address);
    for (; dynamic && dynamic[0] != DT_NULL; dynamic += 2)
        if (dynamic[0] == DT_DEBUG && dynamic[1])
            return ((struct debug *)dynamic[1])->libraries;
    return 0;
}

/* Finds the recorder's own entry and the last entry of the list. */
static void find_ourselves(void)
{
    for (struct bs_link_map *l = bs_first_library; l; l = l->next) {
        if (l->dynamic == _DYNAMIC && l->name) {
            bs_recorder_file = l->name;
            bs_recorder_library = bs_last_before_next = l;
        }
        bs_last_library = l;
    }
}

/*
 * Returns the start of the recorder's own entry, the last one, in a value of LD_PRELOAD; null if it
 * is absent.
 */
static char *own_entry(char *value)
{
    char *entry = value, *base = value;
    for (char *c = value; *c; c++) {
        if (*c == ':' || *c == ' ')
            entry = base = c + 1;
        if (*c == '/')
            base = c + 1;
    }
    return bs_same(base, BS_PRELOAD_NAME) ? entry : 0;
}

/* Stores the recorder's entry in the form that any program may have. */
static void keep_entry(const char *entry)
{
    static const char any[] = "/" BS_PRELOAD_ANY "/" BS_PRELOAD_NAME,
                      wide[] = "/" BS_PRELOAD_WIDE "/" BS_PRELOAD_NAME;
    u32 n = bs_length(entry, ENTRY_MAX);
    if (n + sizeof any > ENTRY_MAX)
        return;
    bs_copy(bs_preload_entry, entry, n + 1);
    if (n >= sizeof wide && bs_same(entry + n - (sizeof wide - 1), wide))
        bs_copy(bs_preload_entry + n - (sizeof wide - 1), any, sizeof any);
}

/*
 * Stores the content of one of the recorder's variables, then shortens it. False: the caller drops
 * it.
 */
static bool keep_variable(char *variable)
{
    if (bs_starts(variable, BS_ENV_ARENA "=")) {
        u32 n = bs_length(variable, ARENA_MAX);
        if (n < ARENA_MAX)
            bs_copy(bs_arena_path, variable, n + 1);
        return false;
    }
    if (!bs_starts(variable, BS_ENV_PRELOAD "="))
        return true;
    char *value = variable + sizeof BS_ENV_PRELOAD;
    char *entry = own_entry(value);
    if (!entry)
        return true;
    keep_entry(entry);
    if (entry == value)
        return false;
    entry[-1] = 0;
    return true;
}

/*
 * Takes the recorder's variables out of the array. It also closes the gaps in the text, because
 * readers of /proc/self/environ stop at an empty string. Text that is not contiguous stays where it
 * is.
 */
static void hide(char **env)
{
    bool one_piece = true;
    for (char **e = env; e[0] && e[1]; e++)
        one_piece &= e[1] == e[0] + bs_length(e[0], ~0u) + 1;
    char **kept = env;
    char *to = *env, *end = to;
    for (; *env; env++) {
        char *from = *env;
        u32 size = bs_length(from, ~0u) + 1;
        end = from + size;
        if (!keep_variable(from)) {
            if (!one_piece)
                memset(from, 0, size);
            continue;
        }
        *kept++ = one_piece ? to : from;
        size = bs_length(from, ~0u) + 1;
        if (one_piece && to != from)
            for (u32 i = 0; i < size; i++)
                to[i] = from[i];
        to += size;
    }
    *kept = 0;
    if (one_piece && to && to < end) {
        memset(to, 0, (u64)(end - to));
        bs_environment_end = (u64)to;
    }
}

#ifdef BS_DEEP
/* The auxiliary vector stands behind the environment. */
static const u64 *behind(char **env)
{
    while (*env)
        env++;
    return (const u64 *)(env + 1);
}
#endif

static void start(int argc, char **argv, char **env)
{
    (void)argc, (void)argv;
    if (!gnu_get_libc_version) {
        env = &environ ? environ : 0;
        argv = 0;
    }
    if (!env)
        return;
    bs_first_library = find_libraries(env);
    find_ourselves();
    if (bs_recorder_library)
        bs_step_behind_sanitizer();
    BS_DEEP_DO(const u64 *auxiliary = behind(env));
    if (*env)
        hide(env);
    BS_DEEP_DO(bs_deep_begin(argv, env, auxiliary, gnu_get_libc_version != 0));
    BS_FUNCTIONS_DO(bs_hook_interpreter(argv, env));
    BS_FUNCTIONS_DO(bs_functions_begin());
    BS_AUTO_DO(bs_auto_begin());
}

__attribute__((section(".init_array"), used)) static void (*const at_start)(int, char **,
                                                                            char **) = start;
