/*
 * Contents are kept: before a call changes a file that has something to lose, the supervisor is asked to look after it.
 *
 * The answer comes when the content has been kept, or need not be; whatever it is, the program's call is then made. Nothing is kept
 * here. Who is sure that the run has not read the file does not ask: the supervisor tells what was read by a filter in the arena, and
 * how much of what was told that is. Nor does who has made the file, if nobody else has read or written it (own.c).
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
        if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_PRESERVE, look.path, where, change,
                   ident->ino) != -BS_EINTR)
            return;
}

/* All that was read is in the filter. Asked first: until then it may still be filled. */
static bool is_known(void)
{
    u64 told = __atomic_load_n(&bs_arena->told, __ATOMIC_SEQ_CST);
    return told <= __atomic_load_n(&bs_arena->known, __ATOMIC_ACQUIRE);
}

/* True if a file's content need not be looked after, whoever has read it. */
static bool is_our_own(const struct bs_ident *ident, u32 change)
{
    bool goes = change == BS_CHANGE_REMOVE && ident->nlink == 1;
    if (bs_is_own(ident, goes))
        return bs_nobody_else_knows(ident);
    if (!goes)
        bs_tell_changed(ident);
    return false;
}

BS_COLD void bs_preserve(struct bs_look look, const struct bs_ident *ident)
{
    const u32 needed = BS_ARENA_KEEP | BS_ARENA_GUARDED;
    if ((bs_arena->flags & (needed | BS_ARENA_CLOSED)) != needed)
        return;
    u32 type = ident->mode & S_IFMT;
    if (type == S_IFREG) {
        bool again = look.change == BS_CHANGE_PART &&
                     bs_may_be_read(ident->dev, ident->ino ^ BS_READS_CHANGED);
        u32 change = again ? BS_CHANGE_WRITE : look.change;
        if (is_our_own(ident, change) || ident->size == 0)
            return;
        /* Who opens it for reading, too, may do so before it is changed; and what the run leaves of it was there before. */
        bool matters = change == BS_CHANGE_UPDATE || change == BS_CHANGE_PART;
        if (!is_known() || matters || bs_may_be_read(ident->dev, ident->ino))
            ask(look, change, ident);
    } else if (type == S_IFLNK && look.change == BS_CHANGE_REMOVE && !is_known()) {
        ask(look, BS_CHANGE_NAME,
            ident); /* what was read by way of it is looked at while it still leads there */
    }
}

/*
 * A file that was opened to be written, and not emptied, may be read before it is: `sort -o f f`. Nobody knew that when it was opened, so
 * it is asked again when it changes. Once: what is then read through another descriptor, between two writes, is not kept.
 */
BS_COLD void bs_preserve_open(int fd)
{
    struct bs_look look = {
        .dir = fd, .path = "", .flags = AT_EMPTY_PATH, .change = BS_CHANGE_WRITE, .wanted = true};
    struct bs_ident ident;
    bs_process->fd[fd] &= (u8)~BS_FD_PART;
    if (!bs_arena || bs_odd & (BS_ODD_STRICT | BS_ODD_SANDBOX | BS_ODD_CLOSED))
        return;
    if (bs_identify(look, &ident) == 0)
        bs_preserve(look, &ident);
}
