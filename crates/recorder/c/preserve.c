/*
 * Notifies the supervisor before a call changes a file, so that it can preserve the file's content.
 * Nothing here copies content. A file that loses its only name is preserved without a notification
 * where that is possible (own_link.c).
 *
 * The supervisor responds when it has preserved the content, or need not. After any response the
 * recorder makes the program's call. A process without the guard's filter sends a message instead
 * (auto/filter.c). The recorder skips the notification in two more cases:
 *
 * - The run has certainly not read the file. The arena has a filter of the files read, written by
 *   the supervisor. Beside it stands how many of the counted reports the filter covers.
 * - This process made the file, and no other process has read or written it (private.c).
 */
#include "bs.h"
#include <linux/stat.h>

enum { TRIES = 64 };

/*
 * A signal that arrives before the supervisor has received the call interrupts the call. The call
 * is then repeated.
 */
static void request(struct bs_look look, u32 change, const struct bs_ident *ident)
{
    if (look.flags & AT_SYMLINK_NOFOLLOW)
        change |= BS_CHANGE_ITSELF;
    if (bs_preserve_without_filter(&look, change, ident))
        return;
    u64 where = (u32)look.dir | ident->dev << 32;
    for (u32 tries = 0; tries < TRIES; tries++)
        if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_PRESERVE, look.path, where, change,
                   ident->ino) != -BS_EINTR)
            return;
}

/*
 * True if the filter contains all files that were read. This is checked before the filter itself,
 * because the supervisor may still add to the filter until then.
 */
static bool filter_is_complete(void)
{
    u64 reported = __atomic_load_n(&bs_arena->reported, __ATOMIC_SEQ_CST);
    return reported <= __atomic_load_n(&bs_arena->filtered, __ATOMIC_ACQUIRE);
}

/* True if the supervisor need not preserve the file's content, whichever process has read it. */
static bool is_unread_elsewhere(const struct bs_ident *ident, u32 change)
{
    bool goes = change == BS_CHANGE_REMOVE && ident->nlink == 1;
    if (bs_is_private(ident, goes))
        return bs_is_unused_by_others(ident);
    if (!goes)
        bs_report_change(ident);
    return false;
}

BS_COLD u64 bs_preserve(struct bs_look look, const struct bs_ident *ident)
{
    const u32 needed = BS_ARENA_KEEP | BS_ARENA_GUARDED;
    if ((bs_arena->flags & (needed | BS_ARENA_CLOSED)) != needed)
        return 0;
    u32 type = ident->mode & S_IFMT;
    if (type == S_IFREG) {
        bool again = look.change == BS_CHANGE_PART &&
                     bs_may_be_read(ident->dev, ident->ino ^ BS_READS_CHANGED);
        u32 change = again ? BS_CHANGE_WRITE : look.change;
        if (is_unread_elsewhere(ident, change) || ident->size == 0)
            return 0;
        /*
         * Both changes are always reported. A process that also opens the file for reading may read
         * it before the change. A part that the run leaves unchanged was written before the run.
         */
        bool matters = change == BS_CHANGE_UPDATE || change == BS_CHANGE_PART;
        bool complete = filter_is_complete(), read = bs_may_be_read(ident->dev, ident->ino);
        if (complete && !matters && !read)
            return 0;
        u64 linked = change == BS_CHANGE_REMOVE && read ? bs_link_own(&look, ident) : 0;
        if (linked)
            return linked;
        request(look, change, ident);
    } else if (type == S_IFLNK && look.change == BS_CHANGE_REMOVE && !filter_is_complete()) {
        request(look, BS_CHANGE_NAME,
                /* the supervisor looks at files read through the link while it still leads there */
                ident);
    }
    return 0;
}

/*
 * Preserves a file at the first change through a descriptor. A file opened for writing without
 * truncation may be read before it changes, as in `sort -o f f`. The open could not foresee that,
 * so the check is repeated when the file changes. It is repeated once only: content read through
 * another descriptor between two writes is not preserved.
 */
BS_COLD void bs_preserve_open(int fd)
{
    struct bs_look look = {
        .dir = fd, .path = "", .flags = AT_EMPTY_PATH, .change = BS_CHANGE_WRITE, .wanted = true};
    struct bs_ident ident;
    bs_process->fd[fd] &= (u8)~BS_FD_PART;
    if (!bs_arena || bs_modes & (BS_MODE_STRICT | BS_MODE_SANDBOX | BS_MODE_CLOSED))
        return;
    if (bs_identify(look, &ident) == 0)
        bs_preserve(look, &ident);
}
