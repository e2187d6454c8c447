/*
 * Asks the supervisor to make the log durable before a write that the kernel makes durable itself:
 * through a descriptor with O_SYNC, O_DSYNC or O_DIRECT. Only in runs that want this order
 * (--durability=ordered). All other flushes are system calls that the supervisor sees by itself.
 */
#include "bs.h"

enum { GET_FLAGS = 3 /* F_GETFL */, DSYNC = 010000, DIRECT = 040000, TRIES = 64 };

/* True if each write through the descriptor waits for the disk. O_SYNC contains O_DSYNC. */
static bool writes_through(int fd)
{
    s64 flags = bs_raw(__NR_fcntl, fd, GET_FLAGS);
    return flags >= 0 && flags & (DSYNC | DIRECT);
}

BS_COLD bool bs_commit_before_write(int fd)
{
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED) || !writes_through(fd))
        return false;
    /* A signal that arrives before the supervisor has received the call interrupts the call. */
    for (u32 tries = 0; tries < TRIES; tries++)
        if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_COMMIT) != -BS_EINTR)
            break;
    return true;
}
