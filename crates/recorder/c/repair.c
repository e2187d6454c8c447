/*
 * Builds the environment of a program about to be executed: the caller's variables, plus the
 * recorder's two.
 */
#include "bs.h"

static bool is_preload(const char *variable)
{
    return bs_starts(variable, BS_ENV_PRELOAD "=");
}

bool bs_is_recorder_variable(const char *variable)
{
    return bs_starts(variable, BS_ENV_ARENA "=");
}

/*
 * True if the variable ends with the recorder's entry already. A program without the recorder has
 * passed it on.
 */
static bool has_our_entry(const char *variable)
{
    u32 n = bs_length(variable, ~0u), m = bs_length(bs_preload_entry, ~0u);
    return n > m && bs_same(variable + n - m, bs_preload_entry);
}

struct bs_room bs_environment_room(char *const *env)
{
    struct bs_room room = {3, 0};
    room.bytes = sizeof BS_ENV_PRELOAD + bs_length(bs_preload_entry, ~0u) + 2;
    for (; env && *env; env++) {
        room.count++;
        if (is_preload(*env))
            room.bytes += bs_length(*env, ~0u);
    }
    return room;
}

/*
 * True if the new program may load the recorder, and its loader will find the library. A program
 * that starts inside a sandbox might die of the calls that set the recorder up. There only the
 * guard records.
 */
static bool welcome(void)
{
    if (bs_modes & BS_MODE_SANDBOX)
        return bs_only_dispatches() && !(bs_modes & BS_MODE_MOVED);
    if (!(bs_modes & BS_MODE_MOVED) && (u32)bs_raw(__NR_geteuid, 0) == bs_user)
        return true;
    /*
     * With another root, other rules or another user, a loader might be unable to open the library.
     * It would print an error on the program's stderr. `access` ignores capabilities that end with
     * this program. Rules like Landlock's count for `open` only, so both are tried.
     */
    if (bs_gated(__NR_faccessat, BS_AT_FDCWD, bs_recorder_file, 4 /* R_OK */) < 0)
        return false;
    s64 fd = bs_gated(__NR_openat, BS_AT_FDCWD, bs_recorder_file, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0)
        bs_raw(__NR_close, fd);
    return fd >= 0;
}

/*
 * Replaces the part of the entry that a loader would have to find out by the library's own
 * directory.
 */
static void make_wide(char *entry)
{
    static const char any[] = "/" BS_PRELOAD_ANY "/" BS_PRELOAD_NAME,
                      wide[] = "/" BS_PRELOAD_WIDE "/" BS_PRELOAD_NAME;
    u32 n = bs_length(entry, ~0u);
    if (n >= sizeof any && bs_same(entry + n - (sizeof any - 1), any))
        bs_copy(entry + n - (sizeof any - 1), wide, sizeof wide);
}

/*
 * True if the loader will only print the libraries that it would take (`ldd`). It would print the
 * recorder, too, and the program does not run.
 */
static bool only_lists(char *const *env)
{
    for (; *env; env++)
        if (bs_starts(*env, "LD_TRACE_LOADED_OBJECTS="))
            return true;
    return false;
}

/*
 * Builds "LD_PRELOAD=" with the user's entries first and the recorder's last. A colon separates
 * them. The colon also follows an empty list, because then the user's variable was set, and empty.
 */
static char *preload_variable(const char *users, char *text, bool wide)
{
    u32 n = users ? bs_length(users, ~0u) : sizeof BS_ENV_PRELOAD;
    bs_copy(text, users ? users : BS_ENV_PRELOAD "=", n);
    if (users)
        text[n++] = ':';
    bs_copy(text + n, bs_preload_entry, bs_length(bs_preload_entry, ~0u) + 1);
    if (wide)
        make_wide(text + n);
    return text;
}

char *const *bs_environment_repaired(char *const *env, char **array, char *text, bool wide)
{
    static char *const none[] = {0};
    if (!env)
        env = none;
    if (!bs_arena_path[0] || !bs_preload_entry[0] || only_lists(env) || !welcome())
        return env;
    u32 n = 0;
    bool preload = false;
    for (char *const *e = env; *e; e++) {
        if (bs_is_recorder_variable(*e))
            continue;
        array[n] = *e;
        if (is_preload(*e) && !preload) {
            preload = true;
            if (!has_our_entry(*e))
                array[n] = preload_variable(*e, text, wide);
        }
        n++;
    }
    if (!preload)
        array[n++] = preload_variable(0, text, wide);
    array[n++] = bs_arena_path;
    array[n] = 0;
    return array;
}

/*
 * Any hash function is good enough: equal environments have equal hashes, and others nearly never.
 * The hash is not zero.
 */
u64 bs_environment_hash(char *const *env)
{
    u64 hash = 0x9e3779b97f4a7c15ull;
    for (; env && *env; env++) {
        if (bs_is_recorder_variable(*env))
            continue;
        const char *s = *env;
        u32 n = bs_length(s, ~0u);
        for (; n >= 8; n -= 8, s += 8) {
            u64 word;
            bs_copy(&word, s, 8);
            hash = (hash ^ word) * 0xff51afd7ed558ccdull;
            hash ^= hash >> 32;
        }
        for (; n; n--)
            hash = (hash ^ (u8)*s++) * 0x100000001b3ull;
        hash = (hash ^ 0x100) * 0xc4ceb9fe1a85ec53ull;
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}
