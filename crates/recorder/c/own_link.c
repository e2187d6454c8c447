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
 *
 * The link is made relative to the directory of the call, and so is right wherever that directory
 * lies. The record needs a path in addition. For a path relative to a descriptor it is made from
 * the descriptor's link in /proc, which may be out of date or invalid. So it is used only after it
 * has led to the linked file.
 */
#include "bs.h"

enum {
    ROOM = 512,      /* bytes of a path, with its NUL: stacks may be small */
    DIGITS = 11,     /* of a 32-bit number, with the slash before it */
    LARGE = 1 << 20, /* bytes of a file: the run may not have read it */
    TRIES = 4,       /* to name a file while another process renames its directory */
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

/* Appends a slash and a number, like `append`. */
static u32 append_number(char *to, u32 n, u32 number)
{
    char digits[DIGITS + 1], *digit = digits + DIGITS;
    *digit = 0;
    do
        *--digit = (char)('0' + number % 10);
    while (number /= 10);
    *--digit = '/';
    return append(to, n, digit);
}

/* The name of a preserved content: the directory's path and the number. */
static bool destination(u32 directory, u32 number, char *to)
{
    u32 n = append(to, 0, (const char *)bs_arena + directory);
    return n && append_number(to, n, number);
}

/*
 * The path of the directory from which a relative path starts, with a slash at its end. Returns its
 * length. 0: the path is too long, does not begin at the root, or is the root's. A thread may have
 * other descriptors than its process.
 */
static u32 start(s32 dir, char *to)
{
    s64 length;
    if (dir == BS_AT_FDCWD) {
        length = bs_gated(__NR_getcwd, to, ROOM) - 1; /* without the NUL */
    } else {
        append_number(to, append(to, 0, "/proc/thread-self/fd"), (u32)dir);
        /* The kernel has copied the link's name before it writes the target. */
        length = bs_gated(__NR_readlinkat, BS_AT_FDCWD, to, to, ROOM);
    }
    return length > 1 && length < ROOM && *to == '/' ? append(to, (u32)length, "/") : 0;
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
    bool relative = *look->path != '/';
    u32 name = relative ? start(look->dir, to) : 0;
    if ((relative && !name) || !append(to, name, look->path))
        return false;
    if (to[name] == '/')
        name++;
    for (const char *at = to + name; *at; at++)
        if ((at == to + name || at[-1] == '/') && is_dots(at))
            return false;
    return !bs_starts(to, "/proc/") && !bs_starts(to, "/sys/") && !bs_starts(to, "/dev/");
}

/* Makes the link. Returns 0, or a negative error. */
static BS_COLD s64 link_as(const struct bs_look *look, u32 directory, u32 number)
{
    char name[ROOM];
    if (!destination(directory, number, name))
        return -BS_ENAMETOOLONG;
    return bs_gated(__NR_linkat, look->dir, look->path, BS_AT_FDCWD, name, 0);
}

/*
 * True if the path leads to the file that was there before the link was made, and this file has one
 * more link now. Then no other file has taken its name meanwhile, and the link is a link of it.
 */
static BS_COLD bool leads_to_linked(const char *path, const struct bs_ident *before)
{
    struct bs_look look = {.dir = BS_AT_FDCWD, .path = path, .flags = AT_SYMLINK_NOFOLLOW};
    struct bs_ident now;
    return bs_identify_any(look, &now) == 0 && now.dev == before->dev && now.ino == before->ino &&
           now.nlink == before->nlink + 1;
}

/*
 * Makes sure that the path is that of the linked file. Of a path below a descriptor, the directory
 * may have been renamed or removed since. It may also lie outside the root or below another mount.
 * Only a renamed directory has another path.
 */
static bool names_linked(const struct bs_look *look, char *path, const struct bs_ident *before)
{
    if (*look->path == '/' || look->dir == BS_AT_FDCWD)
        return true;
    for (u32 tries = 1; !leads_to_linked(path, before); tries++)
        if (tries == TRIES || !absolute(look, path))
            return false;
    return true;
}

BS_COLD u64 bs_link_own(const struct bs_look *look, const struct bs_ident *ident)
{
    u32 directory = __atomic_load_n(&bs_arena->kept_path, __ATOMIC_ACQUIRE);
    if (!directory || directory >= BS_PAGE || !bs_process->generation || bs_modes & BS_MODE_MOVED ||
        ident->nlink != 1 || ident->size > LARGE || ident->dev == bs_process->other_disk)
        return 0;
    char path[ROOM];
    if (!absolute(look, path))
        return 0;
    u32 number = __atomic_fetch_add(&bs_arena->kept, 1, __ATOMIC_RELAXED);
    s64 error = link_as(look, directory, number);
    if (error == -BS_EXDEV)
        bs_process->other_disk = ident->dev;
    if (error < 0)
        return 0;
    u64 linked = (u64)number + 1;
    if (!names_linked(look, path, ident)) {
        bs_unlink_own(linked);
        return 0;
    }
    bs_note_kept((s32)number, path, ident);
    return linked;
}

BS_COLD void bs_unlink_own(u64 linked)
{
    char name[ROOM];
    u32 directory = __atomic_load_n(&bs_arena->kept_path, __ATOMIC_ACQUIRE);
    if (directory && directory < BS_PAGE && destination(directory, (u32)(linked - 1), name))
        bs_gated(__NR_unlinkat, BS_AT_FDCWD, name, 0);
}
