/*
 * Has Node and R load what reports their calls (`interpreters/`), when the program begins. Other
 * programs, and the environment of the recorded command, stay as they are.
 *
 * Node reads NODE_OPTIONS, and R the file that R_PROFILE_USER names. The value that the program
 * brought is kept in a variable of the same name with the prefix BACKSTORY_. The loaded file puts
 * it back before the program's own code runs.
 */
#include "functions.h"

enum { VALUE_MAX = 4096 };

/* The new variable, and the one that keeps the old value. The program uses them by address. */
static char changed[VALUE_MAX], kept[VALUE_MAX];

static const char *base_name(const char *path)
{
    const char *base = path;
    for (; *path; path++)
        if (*path == '/')
            base = path + 1;
    return base;
}

/* Appends a text to the one in a buffer. False if it has no room. */
static bool append(char *buffer, const char *text)
{
    u32 used = bs_length(buffer, VALUE_MAX), size = bs_length(text, VALUE_MAX);
    if (used + size >= VALUE_MAX)
        return false;
    bs_copy(buffer + used, text, size + 1);
    return true;
}

static bool contains(const char *text, const char *part)
{
    for (; *text; text++)
        if (bs_starts(text, part))
            return true;
    return false;
}

/* The place of the variable that begins with this text, or the end of the environment. */
static char **place_of(char **env, const char *begin)
{
    while (*env && !bs_starts(*env, begin))
        env++;
    return env;
}

static char **end_of(char **env)
{
    while (*env)
        env++;
    return env;
}

/* Appends the path of a file beside the library. False: the program cannot read it. */
static bool append_path(char *buffer, const char *file)
{
    static const char any[] = "/" BS_PRELOAD_ANY "/" BS_PRELOAD_NAME;
    u32 begin = bs_length(buffer, VALUE_MAX);
    if (!append(buffer, bs_preload_entry))
        return false;
    u32 end = bs_length(buffer, VALUE_MAX);
    if (end - begin < sizeof any || !bs_same(buffer + end - (sizeof any - 1), any))
        return false;
    buffer[end - (sizeof any - 1)] = 0;
    for (const char *c = buffer + begin; *c; c++)
        if (*c == '"' || *c == '\\')
            return false;
    return append(buffer, "/") && append(buffer, file) &&
           bs_raw(__NR_faccessat, BS_AT_FDCWD, buffer + begin, 4 /* R_OK */) >= 0;
}

/*
 * Sets a variable, whose name ends with `=`. The array of the environment has room for one more
 * pointer: the recorder's own variable was taken out.
 */
static void set(char **env, const char *name, const char *more, const char *file)
{
    char **old = place_of(env, name), **end = end_of(env);
    /* A parent that read no such file has passed on both variables. */
    if (*old && contains(*old, file))
        return;
    bool complete = append(changed, name);
    if (*old && *more)
        complete =
            complete && append(changed, *old + bs_length(name, VALUE_MAX)) && append(changed, " ");
    complete = complete && append(changed, more) && append_path(changed, file);
    if (*old)
        complete = complete && append(kept, "BACKSTORY_") && append(kept, *old);
    if (!complete)
        return;
    end[1] = 0;
    if (old != end)
        *end = kept;
    *old = changed;
}

/* True if an argument before `end` is one of these words, or one with a value behind it. */
static bool has_argument(char **argv, const char *const *words, const char *end)
{
    for (argv++; *argv && !(end && bs_same(*argv, end)); argv++)
        for (const char *const *word = words; *word; word++)
            if (bs_same(*argv, *word) ||
                (bs_starts(*argv, *word) && (*argv)[bs_length(*word, VALUE_MAX)] == '='))
                return true;
    return false;
}

/* True if Node may not read each file: it would end where it cannot load one. */
static bool is_restricted(char **argv, char **env)
{
    static const char *const words[] = {"--permission", "--experimental-permission",
                                        "--experimental-policy", 0};
    const char *options = *place_of(env, "NODE_OPTIONS=");
    for (const char *const *word = words; *word; word++)
        if (options && contains(options, *word))
            return true;
    return has_argument(argv, words, 0);
}

/* True if R reads no profile of the user, so that no file would put the variable back. */
static bool has_no_profile(char **argv)
{
    static const char *const words[] = {"--vanilla", "--no-init-file", 0};
    return has_argument(argv, words, "--args");
}

BS_COLD void bs_hook_interpreter(char **argv, char **env)
{
    if (!bs_arena_path[0] || !bs_preload_entry[0] || !argv || !argv[0] ||
        !*place_of(env, BS_ENV_FUNCTIONS "="))
        return;
    const char *name = base_name(argv[0]);
    bool is_node = bs_same(name, "node") || bs_same(name, "nodejs");
    if (is_node && !is_restricted(argv, env))
        set(env, "NODE_OPTIONS=", "--require=", BS_NODE_HOOKS);
    if (bs_same(name, "R") && !has_no_profile(argv))
        set(env, "R_PROFILE_USER=", "", BS_R_HOOKS);
}
