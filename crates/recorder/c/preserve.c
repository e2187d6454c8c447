/*
 * Contents are kept: before a call changes a file that has something to lose, the supervisor is asked to look after it.
 *
 * The answer comes when the content has been kept, or need not be; whatever it is, the program's call is then made. Nothing is kept
 * here. Who is sure that the run has not read the file does not ask: the supervisor tells what was read by a filter in the arena, and
 * by a mark whether that is all.
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

/* All that was read is in the filter. Asked first: until then it may still be filled. */
static bool is_known(void)
{
    return __atomic_load_n(&bs_arena->reads, __ATOMIC_ACQUIRE) == BS_READS_KNOWN;
}

static bool may_be_read(const struct bs_ident *ident)
{
    const u64 *filter = (const u64 *)((const u8 *)bs_arena + BS_ARENA_READS);
    const u64 hash = BS_READS_HASH(ident->dev, ident->ino);
    const u64 first = BS_READS_FIRST(hash), second = BS_READS_SECOND(hash);
    return filter[first / 64] >> first % 64 & filter[second / 64] >> second % 64 & 1;
}

BS_COLD void bs_preserve(struct bs_look look, const struct bs_ident *ident)
{
    const u32 needed = BS_ARENA_KEEP | BS_ARENA_GUARDED;
    if ((bs_arena->flags & (needed | BS_ARENA_CLOSED)) != needed)
        return;
    u32 type = ident->mode & S_IFMT;
    bool known = is_known();
    if (type == S_IFREG && ident->size > 0) {
        /* Who opens it for reading, too, may do so before it is changed. */
        if (!known || look.change == BS_CHANGE_UPDATE || may_be_read(ident))
            ask(look, look.change, ident);
    } else if (type == S_IFLNK && look.change == BS_CHANGE_REMOVE && !known) {
        ask(look, BS_CHANGE_NAME, ident); /* what was read by way of it is looked at while it still leads there */
    }
}
