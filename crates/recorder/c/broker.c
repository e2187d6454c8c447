/*
 * Decides whether the broker executes a program. The filter of an ordinary user makes the kernel
 * ignore the privilege that a file gives: set-id bits and capabilities. A process outside of the
 * filter, the broker, executes such a program, and the caller executes the broker's client instead.
 *
 * Nothing here is trusted: the supervisor and the broker check everything again. A program that the
 * broker refuses is executed as without a broker.
 */
#include "file_system.h"
#include <linux/stat.h>
#include <linux/xattr.h>

enum { TRIES = 64, NO_SUID = 2 /* ST_NOSUID */ };

/* True if the file has a privilege for its user. */
static bool has_privilege(const char *path)
{
    struct statx is;
    if (bs_gated(__NR_statx, BS_AT_FDCWD, path, 0, STATX_MODE | STATX_UID | STATX_GID, &is) < 0 ||
        (is.stx_mode & S_IFMT) != S_IFREG)
        return false;
    const u32 group = S_ISGID | S_IXGRP;
    if (is.stx_mode & S_ISUID && is.stx_uid != (u32)bs_raw(__NR_geteuid, 0))
        return true;
    if ((is.stx_mode & group) == group && is.stx_gid != (u32)bs_raw(__NR_getegid, 0))
        return true;
    return bs_gated(__NR_getxattr, path, XATTR_NAME_CAPS, 0, 0) > 0;
}

/* True if the kernel would give the privilege: not to a script, and not where it is `nosuid`. */
static bool gives_privilege(const char *path)
{
    struct bs_file_system there;
    u8 start[BS_FILE_BEGINNING] __attribute__((aligned(8)));
    if (bs_gated(__NR_statfs, path, &there) < 0 || there.flags & NO_SUID)
        return false;
    return bs_read_beginning(BS_AT_FDCWD, path, start) < 2 || start[0] != '#' || start[1] != '!';
}

BS_COLD static bool leaves(const char *path)
{
    if (bs_length(path, BS_BROKERED_PATH) >= BS_BROKERED_PATH || !has_privilege(path) ||
        !gives_privilege(path))
        return false;
    s64 refused = -BS_EINTR;
    for (int tries = 0; tries < TRIES && refused == -BS_EINTR; tries++)
        refused = bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_BROKER, 0);
    return !refused;
}

bool bs_leaves_recording(int dir, const char *path, int flags)
{
    const u32 modes = BS_MODE_STRICT | BS_MODE_SANDBOX | BS_MODE_CLOSED | BS_MODE_MOVED;
    const u32 needed = BS_ARENA_GUARDED | BS_ARENA_BROKER;
    if (bs_modes & modes || !bs_is_ready(BS_OP_EXEC) ||
        (bs_arena->flags & (needed | BS_ARENA_CLOSED)) != needed)
        return false;
    return !flags && *path && (dir == BS_AT_FDCWD || *path == '/') && leaves(path);
}

void bs_name_program(char *variable, const char *path)
{
    bs_copy(variable, BS_ENV_PROGRAM "=", sizeof BS_ENV_PROGRAM);
    bs_copy(variable + sizeof BS_ENV_PROGRAM, path, bs_length(path, BS_BROKERED_PATH) + 1);
}

s64 bs_execute_client(char *const *argv, char *const *env)
{
    static const char any[] = "/" BS_PRELOAD_ANY "/" BS_PRELOAD_NAME, name[] = "/" BS_CLIENT_NAME;
    char client[BS_PAGE / 4 + sizeof name];
    u32 n = bs_length(bs_preload_entry, ~0u);
    if (n < sizeof any || n >= BS_PAGE / 4 ||
        !bs_same(bs_preload_entry + n - (sizeof any - 1), any))
        return -BS_ENOENT;
    n -= sizeof any - 1;
    bs_copy(client, bs_preload_entry, n);
    bs_copy(client + n, name, sizeof name);
    return bs_gated(__NR_execve, client, argv, env);
}
