/*
 * Preserves a file that a call is about to take its only name from. The process makes a hard link
 * in the directory of preserved contents itself, and does not wait for the supervisor.
 *
 * It does so only for a file that the filter of read files contains. The filter may contain a file
 * wrongly, and never loses one. Whether the run has read this content is decided when the contents
 * of the run are stored.
 *
 * If the call fails, the link is removed again. Where no link can be made, the caller notifies the
 * supervisor as for any other change.
 */
#include "bs.h"

enum {
    ROOM = 512,      /* bytes of a path, with its NUL: stacks may be small */
    DIGITS = 11,     /* of a 32-bit number, with the slash before it */
    LARGE = 1 << 20, /* bytes of a file: the run may not have read it */
};

/* Appends a string to a path of `n` bytes. Returns the new length, or 0 if there is no room. */
static u32 append(char *to, u32 n, const char *s)
{
    u32 more = bs_length(s, ROOM);
    if (n + more >= ROOM)
        return 0;
    bs_copy(to + n, s, more);
    to[n + more] = 0;
    return n + more;
}

/* The name of a preserved content: the directory's path and the number. */
static bool destination(u32 directory, u32 number, char *to)
{
    char digits[DIGITS + 1], *digit = digits + DIGITS;
    *digit = 0;
    do
        *--digit = (char)('0' + number % 10);
    while (number /= 10);
    *--digit = '/';
    u32 n = append(to, 0, (const char *)bs_arena + directory);
    return n && append(to, n, digit);
}

/* True for a component of a path that is not the name of a file. */
static bool is_dots(const char *s)
{
    return *s == '/' || (*s == '.' && (s[1] == '/' || (s[1] == '.' && s[2] == '/')));
}

/*
 * The absolute path of the file. False for a path that is too long, for one that would have to be
 * resolved first, and for files of the kernel. Links in a relative path are not resolved.
 */
static bool absolute(const struct bs_look *look, char *to)
{
    const char *path = look->path;
    u32 n = 0;
    if (*path != '/') {
        if (look->dir != BS_AT_FDCWD)
            return false;
        s64 length = bs_gated(__NR_getcwd, to, ROOM);
        if (length <= 2 || *to != '/')
            return false;
        n = append(to, (u32)length - 1, "/");
        if (!n)
            return false;
    }
    u32 name = n;
    if (!append(to, n, path))
        return false;
    if (to[name] == '/')
        name++;
    for (const char *at = to + name; *at; at++)
        if ((at == to + name || at[-1] == '/') && is_dots(at))
            return false;
    return !bs_starts(to, "/proc/") && !bs_starts(to, "/sys/") && !bs_starts(to, "/dev/");
}

BS_COLD u64 bs_link_own(const struct bs_look *look, const struct bs_ident *ident)
{
    u32 directory = __atomic_load_n(&bs_arena->kept_path, __ATOMIC_ACQUIRE);
    if (!directory || directory >= BS_PAGE || !bs_process->generation || bs_modes & BS_MODE_MOVED ||
        ident->nlink != 1 || ident->size > LARGE || ident->dev == bs_process->other_disk)
        return 0;
    char path[ROOM], name[ROOM];
    if (!absolute(look, path))
        return 0;
    u32 number = __atomic_fetch_add(&bs_arena->kept, 1, __ATOMIC_RELAXED);
    if (!destination(directory, number, name))
        return 0;
    s64 error = bs_gated(__NR_linkat, look->dir, look->path, BS_AT_FDCWD, name, 0);
    if (error == -BS_EXDEV)
        bs_process->other_disk = ident->dev;
    if (error < 0)
        return 0;
    bs_note_kept((s32)number, path, ident);
    return (u64)number + 1;
}

BS_COLD void bs_unlink_own(u64 linked)
{
    char name[ROOM];
    u32 directory = __atomic_load_n(&bs_arena->kept_path, __ATOMIC_ACQUIRE);
    if (directory && directory < BS_PAGE && destination(directory, (u32)(linked - 1), name))
        bs_gated(__NR_unlinkat, BS_AT_FDCWD, name, 0);
}
