/*
 * Records the children of posix_spawn, system and popen. libc makes the child itself, on the
 * parent's memory. The child's operations stand between two marks. They are the operations that the
 * request implies, and the execve that libc's own entry sends to the recorder (redirect.c).
 */
#include "bs.h"

typedef int spawn_function(int *pid, const char *path, const void *actions, const void *attributes,
                           char *const *argv, char *const *env);
spawn_function posix_spawn, posix_spawnp;
int system(const char *command);
void *popen(const char *command, const char *mode);
int pclose(void *stream);
int fileno(void *stream);

/* Logs the first mark. `LEND` follows it before libc makes the child. */
static void mark_spawn(u32 kind)
{
    bs_me.spawned = 0;
    bs_end(bs_begin(BS_OP_VFORK, 0, (s32)kind, 0), 0);
}
#define LEND() bs_borrow((u64)__builtin_frame_address(0))

/* ---- file actions ---------------------------------------------------------------------------- */

/*
 * An entry of glibc's list of actions. The layout is unchanged since 2.3, except that the list can
 * be longer.
 */
struct action {
    int kind;
    union {
        struct {
            int fd;
        } close;
        struct {
            int fd, to;
        } dup;
        struct {
            int fd;
            char *path;
            int flags;
            u32 mode;
        } open;
        struct {
            int from;
        } close_from;
    } u;
};
struct actions {
    int allocated, used;
    struct action *list;
};
enum { DO_CLOSE = 0, DO_DUP = 1, DO_OPEN = 2, DO_CLOSE_FROM = 5 };

/* Logs an action that changes only the child's descriptors. The guard sees changes of directory. */
static void log_action(const struct action *a)
{
    switch (a->kind) {
    case DO_CLOSE: bs_note(0, BS_OP_CLOSE, a->u.close.fd, 0, 0, 0); break;
    case DO_DUP:
        if (a->u.dup.fd == a->u.dup.to)
            bs_note(0, BS_OP_CLOEXEC, a->u.dup.fd, 0, 0, 0);
        else
            bs_note(0, BS_OP_DUP, a->u.dup.fd, 0, 1, a->u.dup.to);
        break;
    case DO_CLOSE_FROM: bs_note(0, BS_OP_CLOSE_RANGE, a->u.close_from.from, 0, ~0u, 0); break;
    default: break;
    }
}

/*
 * Called when the child carries out an open of its actions. The child makes its opens by libc's own
 * calls, which come to the recorder. So the actions before an open have happened by then, and all
 * actions have happened at the exec. The file of an open then moves to the descriptor that the
 * request names.
 */
s64 bs_spawned_open(const char *path, int flags, u32 mode)
{
    const struct actions *actions = bs_me.actions;
    s32 fd = -1;
    while (fd < 0 && bs_me.done < (u32)actions->used) {
        const struct action *a = &actions->list[bs_me.done++];
        if (a->kind == DO_OPEN && a->u.open.path == path)
            fd = a->u.open.fd;
        else
            log_action(a);
    }
    struct bs_reservation rec = bs_begin_open(BS_AT_FDCWD, path, flags, mode);
    s64 result = bs_call(rec, __NR_openat, BS_AT_FDCWD, path, flags, mode);
    bs_end(rec, result >= 0 && fd >= 0 ? fd : result);
    return result;
}

void bs_spawned_exec(void)
{
    const struct actions *actions = bs_me.actions;
    while (bs_me.done < (u32)actions->used)
        log_action(&actions->list[bs_me.done++]);
}

/* ---- posix_spawn ----------------------------------------------------------------------------- */

static int spawn(spawn_function *real, int *pid, const char *path, const void *actions,
                 const void *attributes, char *const *argv, char *const *env)
{
    bs_redirect_internal();
    mark_spawn(BS_SPAWN_POSIX);
    LEND();
    int child = 0, error;
    if (bs_exec_is_redirected) {
        bs_me.actions = actions;
        bs_me.done = 0;
        error = real(&child, path, actions, attributes, argv, env);
    } else {
        /*
         * The recorder does not see the exec. The guard logs it, and the recorder only prepares the
         * environment.
         */
        struct bs_room room = bs_environment_room(env);
        char *array[room.count + 1], text[room.bytes];
        error = real(&child, path, actions, attributes, argv,
                     bs_environment_repaired(env, array, text, false));
    }
    if (!error && pid)
        *pid = child;
    bs_give_back(error ? -error : child);
    return error;
}

BS_INTERCEPTED int posix_spawn(int *pid, const char *path, const void *actions,
                               const void *attributes, char *const *argv, char *const *env)
{
    return spawn(BS_NEXT(posix_spawn), pid, path, actions, attributes, argv, env);
}

BS_INTERCEPTED int posix_spawnp(int *pid, const char *path, const void *actions,
                                const void *attributes, char *const *argv, char *const *env)
{
    return spawn(BS_NEXT(posix_spawnp), pid, path, actions, attributes, argv, env);
}

/* ---- system, popen --------------------------------------------------------------------------- */

/* The status of a child of system(3) that could not execute the shell. */
enum { NO_SHELL = 127 << 8 };

BS_API int system(const char *command)
{
    bs_redirect_internal();
    mark_spawn(BS_SPAWN_SYSTEM);
    LEND();
    int status = BS_NEXT(system)(command);
    s32 child = bs_me.spawned;
    bs_give_back(child);
    /* Without a command, glibc executes `exit 0`, and says whether it could. musl does not. */
    int ended = command ? status : status ? 0 : NO_SHELL;
    if (child)
        bs_note(0, BS_OP_WAIT, 0, ended, 0, child);
    return status;
}

/*
 * A made-up number for the child's end of the pipe, which no descriptor has. libc closes that end
 * before the recorder can see it.
 */
enum { CHILDS_END = 1 << 20 };

BS_INTERCEPTED void *popen(const char *command, const char *mode)
{
    bs_redirect_internal();
    bool reads = false, cloexec = false;
    for (const char *c = mode; *c; c++) {
        reads |= *c == 'r';
        cloexec |= *c == 'e';
    }
    struct bs_reservation pipe =
        bs_begin(BS_OP_PIPE, reads ? -1 : CHILDS_END, reads ? CHILDS_END : -1, O_CLOEXEC);
    mark_spawn(BS_SPAWN_POPEN);
    bs_note(0, BS_OP_DUP, CHILDS_END, 0, 1, reads ? 1 : 0);
    LEND();
    void *stream = BS_NEXT(popen)(command, mode);
    int fd = stream ? BS_NEXT(fileno)(stream) : -1;
    if (bs_open(pipe)) {
        if (reads)
            pipe.record->fd = fd;
        else
            pipe.record->arg = fd;
    }
    bs_end(pipe, stream ? 0 : -BS_ENOMEM);
    bs_give_back(stream ? bs_me.spawned : -BS_ENOMEM);
    if (stream) {
        bs_fd_opened(fd, O_RDONLY);
        bs_note(0, BS_OP_CLOSE, CHILDS_END, 0, 0, 0);
        if (!cloexec)
            bs_note(0, BS_OP_CLOEXEC, fd, 0, 0, 0);
    }
    return stream;
}
BS_ALIAS(_IO_popen, popen);

BS_INTERCEPTED int pclose(void *stream)
{
    int fd = BS_NEXT(fileno)(stream);
    struct bs_reservation rec = bs_begin(BS_OP_CLOSE, fd, 0, 0);
    bs_fd_closed((u32)fd);
    int status = BS_NEXT(pclose)(stream);
    bs_end(rec, 0);
    return status;
}
