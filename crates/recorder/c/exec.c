/*
 * Records the execution of programs, with arguments and environment. The environment is repaired so
 * that the executed program is recorded, too. Children on their parent's memory also come here, on
 * small stacks.
 */
#include "bs.h"

static u32 count(char *const *list)
{
    u32 n = 0;
    while (list && list[n])
        n++;
    return n;
}

/*
 * Logs the environment as the user sees it. Its hash is logged each time, its text only when it is
 * new to the run.
 */
static void log_environment(char *const *env)
{
    static char *const none[] = {0};
    u64 hash = bs_environment_hash(env);
    u64 *seen = bs_arena ? &bs_arena->env_seen[hash % 64] : 0;
    if (!seen)
        return;
    bool known = __atomic_load_n(seen, __ATOMIC_RELAXED) == hash;
    bs_log_strings(BS_OP_ENV, (s32)(u32)hash, (s32)(u32)(hash >> 32), known || !env ? none : env,
                   bs_is_recorder_variable);
    __atomic_store_n(seen, hash, __ATOMIC_RELAXED);
}

static s64 attempt(struct bs_reservation rec, int dir, const char *path, char *const *argv,
                   char *const *env, int flags, bool at)
{
    return at ? bs_call(rec, __NR_execveat, dir, path, argv, env, flags)
              : bs_call(rec, __NR_execve, path, argv, env);
}

/*
 * Executes a program for the calling process itself. `env` is the environment that the new program
 * gets. If it has the recorder's variables, it is another list than `shown`, and the entry before
 * it is free.
 */
static s64 execute(int dir, const char *path, char *const *argv, char *const *shown,
                   char *const *env, int flags, bool at)
{
    static char *const none[] = {0};
    u32 announced = 0;
    BS_AUTO_DO(if (env == shown) bs_need_filter_for_exec();
               else announced = bs_before_exec(dir, path, shown, flags) ? BS_EXEC_ANNOUNCED : 0);
    struct bs_reservation rec = {0};
    char variable[sizeof BS_ENV_PROGRAM + BS_BROKERED_PATH];
    struct bs_reservation unseen = {0};
    bool outside = env != shown && bs_leaves_recording(dir, path, flags);
    if (BS_UNLIKELY(outside)) {
        bs_name_program(variable, path);
        bs_end(bs_begin_path(BS_OP_OPAQUE, -1, 0, 0, variable), 0);
    }
    if (bs_me.borrowed)
        bs_me.spawned = (s32)bs_raw(__NR_getpid, 0);
    if (!(bs_modes & BS_MODE_STRICT)) {
        unseen = bs_begin_unseen();
        bs_is_ready(BS_OP_EXEC);
        bs_log_strings(BS_OP_ARGS, 0, 0, argv ? argv : none, 0);
        log_environment(shown);
        rec = bs_begin_path(BS_OP_EXEC, dir, (s32)count(argv), (u32)flags | announced, path);
    }
    /* The parent may die before it can log the child. The supervisor may look at any moment. */
    if (bs_me.borrowed && rec.record)
        rec.record->result = bs_me.spawned;
    if (BS_UNLIKELY(outside)) {
        ((char **)env)[-1] = variable;
        bs_execute_client(argv, env - 1);
    }
    s64 result = attempt(rec, dir, path, argv, env, flags, at);
    /* Without the recorder's variables the environment may be small enough. */
    if (result == -BS_E2BIG && env != shown) {
        BS_AUTO_DO(bs_need_filter_for_exec());
        result = attempt(rec, dir, path, argv, shown, flags, at);
    }
    bs_end(unseen, result);
    return bs_end(rec, result);
}

enum { ON_STACK = 4096 }; /* bytes; a child may have a stack of only a few pages */

s64 bs_exec(int dir, const char *path, char *const *argv, char *const *env, int flags, bool at)
{
    u32 unused;
    bs_share_all(); /* the new program is a different reader that has these descriptors */
    if (!bs_measure(path, BS_PATH_MAX, &unused) || !bs_list_readable(argv) ||
        !bs_list_readable(env)) {
        struct bs_reservation rec = bs_begin_path(BS_OP_EXEC, dir, 0, (u32)flags, path);
        return bs_end(rec, attempt(rec, dir, path, argv, env, flags, at)); /* this call fails */
    }
    bool wide = !(flags & AT_EMPTY_PATH) && bs_has_wide_loader(dir, path);
    struct bs_room room = bs_environment_room(env);
    /* The first entry stays free for the broker's client. */
    u64 pointers = (room.count + 2) * sizeof(char *), size = pointers + room.bytes;
    if (size <= ON_STACK) {
        char *memory[(size + sizeof(char *) - 1) / sizeof(char *)];
        char *const *repaired =
            bs_environment_repaired(env, memory + 1, (char *)memory + pointers, wide);
        return execute(dir, path, argv, env, repaired, flags, at);
    }
    /*
     * The environment is too large for a spawned child's stack, so it gets memory of its own. After
     * a successful exec the parent, which shares that memory, unmaps it.
     */
    bs_free_scratch();
    s64 memory = bs_raw(__NR_mmap, 0, size, 3, 0x22, -1, 0);
    if ((u64)memory > -4096ull)
        return execute(dir, path, argv, env, env, flags, at);
    bs_me.scratch = (void *)memory;
    bs_me.scratch_size = size;
    char *const *repaired =
        bs_environment_repaired(env, (char **)memory + 1, (char *)memory + pointers, wide);
    s64 result = execute(dir, path, argv, env, repaired, flags, at);
    bs_free_scratch();
    return result;
}

int execve(const char *path, char *const *argv, char *const *env);

BS_API int execve(const char *path, char *const *argv, char *const *env)
{
    return (int)bs_ret(bs_exec(BS_AT_FDCWD, path, argv, env, 0, false));
}
BS_ALIAS(__execve, execve);

BS_API int execv(const char *path, char *const *argv)
{
    return (int)bs_ret(bs_exec(BS_AT_FDCWD, path, argv, environ, 0, false));
}

int execveat(int dir, const char *path, char *const *argv, char *const *env, int flags);

BS_API int execveat(int dir, const char *path, char *const *argv, char *const *env, int flags)
{
    return (int)bs_ret(bs_exec(dir, path, argv, env, flags, true));
}

int fexecve(int fd, char *const *argv, char *const *env);

BS_API int fexecve(int fd, char *const *argv, char *const *env)
{
    if (fd < 0 || !argv || !env)
        return (int)bs_fail(-BS_EINVAL);
    return (int)bs_ret(bs_exec(fd, "", argv, env, AT_EMPTY_PATH, true));
}

/* ---- search along PATH ----------------------------------------------------------------------- */

/* Runs a file that the kernel cannot execute as a script of the shell. */
static s64 execute_script(const char *path, char *const *argv, char *const *env)
{
    u32 n = count(argv);
    char *shell[n + 3];
    shell[0] = (char *)"/bin/sh";
    shell[1] = (char *)path;
    shell[2] = 0;
    for (u32 i = 1; i <= n; i++)
        shell[i + 1] = argv[i];
    return bs_exec(BS_AT_FDCWD, shell[0], shell, env, 0, false);
}

static s64 execute_or_script(const char *path, char *const *argv, char *const *env)
{
    s64 error = bs_exec(BS_AT_FDCWD, path, argv, env, 0, false);
    return error == -BS_ENOEXEC ? execute_script(path, argv, env) : error;
}

static const char *search_path(void)
{
    for (char **e = environ; e && *e; e++)
        if (bs_starts(*e, "PATH="))
            return *e + 5;
    return "/bin:/usr/bin";
}

/* True if the search goes on in the next directory after this error. */
static bool goes_on(s64 error)
{
    return error == -BS_EACCES || error == -BS_ENOENT || error == -BS_ESTALE ||
           error == -BS_ENOTDIR || error == -BS_ENODEV || error == -BS_ETIMEDOUT;
}

/*
 * Looks whether the file is missing; returns the error or 0. Most directories of PATH lack the
 * program. A look is cheaper than an attempt with all its arguments logged, and gives the same
 * error.
 */
static s64 missing(const char *path)
{
    /* In strict mode, and in a process that can log nothing, the guard must see the attempt. */
    bool looks = bs_is_ready(BS_OP_EXEC) && !(bs_modes & (BS_MODE_SANDBOX | BS_MODE_STRICT));
    s64 error = looks ? bs_gated(__NR_faccessat, BS_AT_FDCWD, path, 0 /* F_OK */) : 0;
    if (error != -BS_ENOENT && error != -BS_ENOTDIR)
        return 0;
    return bs_end(bs_begin_path(BS_OP_EXEC, BS_AT_FDCWD, 0, 0, path), error);
}

static s64 execute_along_path(const char *file, char *const *argv, char *const *env)
{
    u32 n = bs_length(file, BS_PATH_MAX);
    if (!n)
        return -BS_ENOENT;
    for (const char *c = file; *c; c++)
        if (*c == '/')
            return execute_or_script(file, argv, env);
    if (n > 255)
        return -BS_ENAMETOOLONG;
    const char *dirs = search_path();
    u32 longest = bs_length(dirs, BS_PATH_MAX - 1);
    char path[longest + n + 2];
    s64 error = -BS_ENOENT;
    bool denied = false;
    for (;;) {
        u32 m = 0;
        while (dirs[m] && dirs[m] != ':')
            m++;
        if (m <= longest) {
            bs_copy(path, dirs, m);
            if (m)
                path[m++] = '/';
            bs_copy(path + m, file, n + 1);
            error = missing(path);
            if (!error)
                error = execute_or_script(path, argv, env);
            denied |= error == -BS_EACCES;
            if (!goes_on(error))
                return error;
        }
        while (*dirs && *dirs != ':')
            dirs++;
        if (!*dirs++)
            return denied ? -BS_EACCES : error;
    }
}

int execvpe(const char *file, char *const *argv, char *const *env);

BS_API int execvpe(const char *file, char *const *argv, char *const *env)
{
    return (int)bs_ret(execute_along_path(file, argv, env));
}
/* musl's own name for this function. Its `execlp` and old programs bind to it. */
BS_ALIAS(__execvpe, execvpe);

BS_API int execvp(const char *file, char *const *argv)
{
    return (int)bs_ret(execute_along_path(file, argv, environ));
}

/* ---- arguments one by one -------------------------------------------------------------------- */

/*
 * Collects the arguments from `first` up to and including the null into `list`. `after` then reads
 * the argument behind the null.
 */
#define LIST(list, first) \
    va_list args; \
    va_start(args, first); \
    u32 n = 1; \
    while (first && va_arg(args, char *)) \
        n++; \
    va_end(args); \
    char *list[n + 1]; \
    va_start(args, first); \
    list[0] = (char *)first; \
    for (u32 i = 1; first && i <= n; i++) \
        list[i] = va_arg(args, char *); \
    list[n] = 0;

BS_API int execl(const char *path, const char *first, ...)
{
    LIST(list, first)
    va_end(args);
    return (int)bs_ret(bs_exec(BS_AT_FDCWD, path, list, environ, 0, false));
}

BS_API int execlp(const char *file, const char *first, ...)
{
    LIST(list, first)
    va_end(args);
    return (int)bs_ret(execute_along_path(file, list, environ));
}

BS_API int execle(const char *path, const char *first, ...)
{
    LIST(list, first)
    char *const *env = va_arg(args, char *const *);
    va_end(args);
    return (int)bs_ret(bs_exec(BS_AT_FDCWD, path, list, env, 0, false));
}
