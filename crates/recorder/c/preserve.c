/*
 * Contents are kept: before a call changes a file that has something to lose, the supervisor is asked to look after it.
 *
 * The answer comes when the content has been kept, or need not be; whatever it is, the program's call is then made. Nothing is kept
 * here, and nothing is known here of what the run has read.
 */
#include "bs.h"
#include <linux/stat.h>

enum { TRIES = 64 };

/* Signals that come before the supervisor has heard of the call interrupt it. */
static void ask(struct bs_look look, u32 change, const struct bs_ident *ident)
{
    if (look.flags & AT_SYMLINK_NOFOLLOW)
        change |= BS_CHANGE_ITSELF;
    u64 where = (u32)look.dir | ident->dev << 32;
    for (u32 tries = 0; tries < TRIES; tries++)
        if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_PRESERVE, look.path, where, change, ident->ino) != -BS_EINTR)
            return;
}

BS_COLD void bs_preserve(struct bs_look look, const struct bs_ident *ident)
{
    const u32 needed = BS_ARENA_KEEP | BS_ARENA_GUARDED;
    if ((bs_arena->flags & (needed | BS_ARENA_CLOSED)) != needed)
        return;
    u32 type = ident->mode & S_IFMT;
    if (type == S_IFREG && ident->size > 0)
        ask(look, look.change, ident);
    else if (type == S_IFLNK && look.change == BS_CHANGE_REMOVE)
        ask(look, BS_CHANGE_NAME, ident); /* what was read by way of it is looked at while it still leads there */
}
