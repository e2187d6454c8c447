/*
 * Passes the marks of a shell's command lines to the supervisor. A mark is a path at which nothing
 * can be, so that a shell makes one without a fork and without a message:
 *
 * - by a look-up, `[[ -e MARK ]]`, which fails with ENOTDIR, or for a long text with ENAMETOOLONG;
 * - by a time in a prompt of bash, `\D{MARK}`. Bash passes the format to strftime. This is the one
 *   function that bash calls for a prompt with a string of the user's. PS0, the prompt between
 *   reading a line and executing it, has no other effect that bash does not print.
 *
 * The supervisor ignores the marks of all processes but the shell. A mark is not logged.
 */
#include "bs.h"

enum { TRIES = 64 };

size_t strftime(char *to, size_t size, const char *format, const void *time);

/* A signal may interrupt the call before the supervisor has received it. */
static void request(const char *mark)
{
    for (u32 tries = 0; tries < TRIES; tries++)
        if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_LINE, mark) != -BS_EINTR)
            return;
}

/* True if the readable string is a mark. */
BS_COLD bool bs_mark_line(const char *mark)
{
    if (!bs_starts(mark, BS_LINE_MARK))
        return false;
    bool answered = bs_arena && !(bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED)) &&
                    (bs_arena->flags & (BS_ARENA_GUARDED | BS_ARENA_CLOSED)) == BS_ARENA_GUARDED;
    if (answered)
        request(mark);
    return true;
}

BS_API size_t strftime(char *to, size_t size, const char *format, const void *time)
{
    if (BS_UNLIKELY(*format == '/'))
        bs_mark_line(format);
    return BS_NEXT(strftime)(to, size, format, time);
}
