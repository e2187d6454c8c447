/*
 * Looks programs and libraries up in the table of verdicts. A file that is not there is sent to the
 * supervisor.
 *
 * Invariant: whatever is unclear is not plain. So is each program for a process that may hold a
 * record lock: a look at the program would release its lock on that file.
 */
#include "../arena.h"

enum { INTERPRETERS = 4 };

struct bs_programs *bs_programs(void)
{
    struct bs_programs *at = (struct bs_programs *)((u8 *)bs_first_pages + BS_ARENA_HEADER);
    bool mapped = bs_first_pages && bs_first_pages->flags & BS_ARENA_AUTO &&
                  bs_mapped >= BS_ARENA_HEADER + sizeof *at;
    return mapped && at->verdicts.magic == BS_VERDICTS_MAGIC ? at : 0;
}

static const struct bs_verdicts *table(void)
{
    const struct bs_programs *programs = bs_programs();
    return programs ? &programs->verdicts : 0;
}

static bool is_about(const struct bs_verdict *entry, const struct bs_ident *ident)
{
    return entry->dev == ident->dev && entry->ino == ident->ino && entry->size == ident->size &&
           entry->mtime == ident->mtime && entry->ctime == ident->ctime;
}

/* The verdict about a content; 0 if the table has no such entry. */
static u64 verdict_about(const struct bs_ident *ident, u64 kind)
{
    const struct bs_verdicts *verdicts = table();
    u64 at = BS_READS_HASH(ident->dev, ident->ino) >> 40;
    for (u32 n = 0; verdicts && n < BS_VERDICT_TRIES; n++) {
        const struct bs_verdict *entry = &verdicts->entry[(at + n) % BS_VERDICTS];
        u64 found = __atomic_load_n(&entry->verdict, __ATOMIC_ACQUIRE);
        if (!found)
            return 0;
        if ((found & BS_VERDICT_KIND) == kind && is_about(entry, ident))
            return found;
    }
    return 0;
}

static bool is_plain(const struct bs_look *look, s64 fd, u64 kind)
{
    struct bs_ident ident;
    if (bs_identify(*look, &ident) != 0)
        return false;
    u64 found = verdict_about(&ident, kind);
    if (found)
        return !(found & BS_VERDICT_NOT);
    s64 opened = fd;
    if (fd < 0)
        opened = bs_gated(__NR_openat, look->dir, look->path,
                          O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    bool plain =
        opened >= 0 &&
        bs_ask_verdict(kind == BS_VERDICT_PROGRAM ? BS_GUARD_PROGRAM : BS_GUARD_LIBRARY, opened);
    if (fd < 0 && opened >= 0)
        bs_raw(__NR_close, opened);
    return plain;
}

u64 bs_verdict_of(const char *path, u64 kind, struct bs_ident *ident)
{
    struct bs_look look = {.dir = BS_AT_FDCWD, .path = path, .wanted = true};
    return bs_identify(look, ident) == 0 ? verdict_about(ident, kind) : 0;
}

static bool is_plain_file(const char *path, u64 kind)
{
    struct bs_look look = {.dir = BS_AT_FDCWD, .path = path, .wanted = true};
    return is_plain(&look, -1, kind);
}

bool bs_is_plain_library(const char *path)
{
    return is_plain_file(path, BS_VERDICT_LIBRARY);
}

static bool is_plain_descriptor(s64 fd)
{
    struct bs_look look = {.dir = (s32)fd, .path = "", .flags = AT_EMPTY_PATH, .wanted = true};
    return is_plain(&look, fd, BS_VERDICT_PROGRAM);
}

/* ---- before an exec -------------------------------------------------------------------------- */

/*
 * True if executing the file runs a plain program, or fails because the file is missing. The
 * recorder's calls see the file as the kernel will see it.
 */
__attribute__((noinline)) static bool runs_plain(int dir, const char *path)
{
    u8 text[BS_FILE_BEGINNING] __attribute__((aligned(8)));
    for (int i = 0; i < INTERPRETERS; i++) {
        s64 fd = bs_gated(__NR_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
            return i == 0 && (fd == -BS_ENOENT || fd == -BS_ENOTDIR);
        s64 size = bs_raw(__NR_read, fd, text, BS_FILE_BEGINNING);
        bool script = size >= 4 && text[0] == '#' && text[1] == '!';
        bool plain = size >= 4 && !script && is_plain_descriptor(fd);
        bs_raw(__NR_close, fd);
        if (!script)
            return plain;
        path = bs_script_interpreter(text, (u64)size);
        if (!path)
            return false;
        dir = BS_AT_FDCWD;
    }
    return false;
}

/* True if a variable changes what the loader or libc load. */
static bool has_loader_variable(char *const *env)
{
    for (; env && *env; env++)
        if (bs_starts(*env, "LD_") || bs_starts(*env, "GLIBC_TUNABLES=") ||
            bs_starts(*env, "GCONV_PATH="))
            return true;
    return false;
}

bool bs_before_exec(int dir, const char *path, char *const *env, int flags)
{
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED) || bs_is_filtered())
        return false;
    bool known = !(flags & AT_EMPTY_PATH) && bs_is_ready(BS_OP_EXEC) &&
                 !(bs_modes & BS_MODE_MOVED) && bs_preload_entry[0] && !bs_may_hold_locks();
    bool plain = known && !has_loader_variable(env) && runs_plain(dir, path);
    if (!plain)
        bs_need_filter_for_exec();
    /* A child on its parent's memory may have the filter since an earlier attempt. */
    return plain && !(bs_me.borrowed && bs_has_filter());
}

/* ---- after an exec --------------------------------------------------------------------------- */

static bool has_directory(const char *name)
{
    for (const char *c = name; c && *c; c++)
        if (*c == '/')
            return true;
    return false;
}

/*
 * The caller looked at the file of this path before it executed the path. If that file is there
 * now, it is the program. The kernel's link to the program costs more: for it, the kernel makes a
 * directory in /proc.
 */
static bool is_plain_program(u64 *verdict)
{
    const char *path = (const char *)bs_stack_end;
    struct bs_ident ident;
    u64 found = path ? bs_verdict_of(path, BS_VERDICT_PROGRAM, &ident) : 0;
    if (!found || found & BS_VERDICT_NOT)
        return is_plain_file("/proc/self/exe", BS_VERDICT_PROGRAM);
    *verdict = found;
    return true;
}

bool bs_has_same_cache(void)
{
    struct bs_look look = {.dir = BS_AT_FDCWD, .path = BS_LOADER_CACHE, .wanted = true};
    struct bs_ident cache;
    const struct bs_verdicts *verdicts = table();
    return verdicts && bs_identify(look, &cache) == 0 && is_about(&verdicts->cache, &cache);
}

bool bs_has_plain_files(u64 *verdict)
{
    if (!bs_has_same_cache() || !is_plain_program(verdict))
        return false;
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next)
        if (l->name != bs_recorder_file && has_directory(l->name) &&
            !is_plain_file(l->name, BS_VERDICT_LIBRARY))
            return false;
    return bs_first_library != 0;
}
