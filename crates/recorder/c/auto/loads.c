/*
 * Loads a library while the program runs: without the filter if the library and all that it needs
 * are plain. Also looks functions up in a library for the program.
 *
 * The loader has `syscall` instructions of its own, so no recorder sees its calls. Of a plain
 * library it is known before which files it opens:
 *
 * - For a path, it opens the file. For a name, it reads its cache, which leads to one path.
 * - All libraries that it needs are in the cache. No library of the process names directories.
 * - A name or path by which a library is already loaded opens nothing.
 *
 * Invariants:
 *
 * - A library of which anything is unclear is loaded with the filter.
 * - The record about a library is written before its load, and those about the libraries that it
 *   needs afterwards, from the loader's list. If the load fails, they are logged nevertheless.
 * - Each library that the loader took is looked up again afterwards. If one is not plain, the
 *   process gets the filter, and the run is not complete.
 * - The loader's calls run with no lock of the recorder, and their errors pass through here.
 */
#include "../elf.h"
#include "../symbols.h"
#include <linux/stat.h>

enum {
    PATH_ROOM = 256,
    ANSWER_ROOM = 32768,
    NAMES_ROOM = 131072,
    /* requests of a process, after which the filter is cheaper */
    MANY = 16,
    /* modes of `dlopen` */
    LAZY_OR_NOW = 3,
    KNOWN_MODES = 3 | 4 | 0x100 | 0x1000, /* NOLOAD, GLOBAL, NODELETE */
    /* namespaces of the loader */
    FIRST_SPACE = 0,
    CALLERS_SPACE = -2
};
static const u32 BY_DLOPEN = 0x80000000; /* a mode that libc adds */

void *dlsym(void *handle, const char *name);

/* The kernel's errors of the loader, as libc catches and passes them. */
struct exception {
    const char *object, *text;
    char *buffer;
};
typedef int catch_function(struct exception *caught, void (*act)(void *), void *data);
typedef void signal_function(int error, struct exception *caught, const char *occasion);

/* A load that needs no filter. */
struct plan {
    u64 verdict;          /* the low half; 0 if the library is loaded already */
    bool by_name;         /* the loader searches its cache for the library itself */
    char path[PATH_ROOM]; /* of the library; empty if it is loaded already */
};

/* ---- what the loader will do ----------------------------------------------------------------- */

struct search {
    const char *name;
    bool found;
};

/* The loader compares a name with the paths and the names of its libraries. */
static void search_loaded(u64 loads, void *data)
{
    (void)loads;
    struct search *search = data;
    for (struct bs_link_map *l = bs_first_library; l && !search->found; l = l->next) {
        struct bs_symbols symbols;
        search->found = bs_same(l->name, search->name);
        if (search->found)
            return;
        bs_find_symbols(l, &symbols);
        search->found = symbols.library && bs_same(symbols.library, search->name);
    }
}

static bool is_loaded(const char *name)
{
    struct search search = {.name = name};
    bs_with_libraries(search_loaded, &search);
    return search.found;
}

/* A library is needed by its name. The loader itself is loaded from another path than its own. */
static bool is_needed_loaded(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (*c == '/')
            name = c + 1;
    return is_loaded(path) || is_loaded(name);
}

static bool has(const char *name, char letter)
{
    for (const char *c = name; *c; c++)
        if (*c == letter)
            return true;
    return false;
}

/* The supervisor's verdict. A process that often asks gets the filter. */
static u64 ask(s64 fd, const char *path, char *paths, u64 size)
{
    static u32 asked;
    if (__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) > MANY)
        return 0;
    return bs_ask_load(fd, path, paths, size);
}

static s64 open_library(const char *path)
{
    return bs_gated(__NR_openat, BS_AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                    0);
}

/* The verdict about the library at a path; 0 if it is not plain, or not there. */
static u64 verdict_of_path(const char *path)
{
    struct bs_ident ident = {0};
    char paths[1];
    u64 verdict = bs_verdict_of(path, BS_VERDICT_LOADED, &ident);
    if (verdict)
        return verdict & BS_VERDICT_NOT ? 0 : verdict;
    if ((ident.mode & S_IFMT) != S_IFREG)
        return 0;
    s64 fd = open_library(path);
    if (fd < 0)
        return 0;
    verdict = ask(fd, path, paths, sizeof paths);
    bs_raw(__NR_close, fd);
    return verdict;
}

/* Puts the path of a file in the directory of libc into `to`. Returns its hash; 0: no room. */
static u32 beside_libc(char *to, const char *name)
{
    static const char libc[] = "/libc.so.6";
    u32 n = bs_length(name, PATH_ROOM);
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next) {
        u32 length = bs_length(l->name, PATH_ROOM), directory = length - (sizeof libc - 1) + 1;
        if (length < sizeof libc || length == PATH_ROOM ||
            !bs_same(l->name + directory - 1, libc) || directory + n >= PATH_ROOM)
            continue;
        bs_copy(to, l->name, directory);
        bs_copy(to + directory, name, n + 1);
        u32 hash = bs_symbol_hash(to);
        return hash != BS_NO_PATH ? hash : 1;
    }
    return 0;
}

/*
 * The verdict about the library to which the loader's cache leads, and its path. Most are in the
 * directory of libc. If the table has the verdict about the file there, it says whether the cache
 * leads from this name to this path.
 */
static u64 verdict_of_name(const char *name, char *path)
{
    struct bs_ident ident;
    u32 hash = beside_libc(path, name);
    u64 verdict = hash ? bs_verdict_of(path, BS_VERDICT_LOADED, &ident) : 0;
    if (verdict >> 32 != hash || !hash)
        verdict = ask(-1, name, path, PATH_ROOM);
    bool whole = bs_length(path, PATH_ROOM) < PATH_ROOM - 1;
    return verdict & BS_VERDICT_NOT || !whole ? 0 : verdict;
}

/*
 * True if the loader's calls are known, and the process needs no filter. Errors of the load must
 * pass through here.
 */
static bool plan_load(const struct bs_load *load, struct plan *plan)
{
    const u32 modes =
        BS_MODE_STRICT | BS_MODE_SHARED_MEMORY | BS_MODE_SANDBOX | BS_MODE_CLOSED | BS_MODE_MOVED;
    u32 n, mode = (u32)load->mode & ~BY_DLOPEN;
    if (bs_modes & modes || bs_me.borrowed || !bs_first_library || mode & ~(u32)KNOWN_MODES ||
        !(mode & LAZY_OR_NOW) || (load->space != CALLERS_SPACE && load->space != FIRST_SPACE))
        return false;
    if (!bs_measure(load->name, PATH_ROOM, &n) || n == PATH_ROOM || has(load->name, '$') ||
        !bs_is_ready(BS_OP_LOAD))
        return false;
    plan->by_name = !has(load->name, '/');
    if (is_loaded(load->name))
        return true;
    if ((!plan->by_name && load->name[0] != '/') || !bs_has_same_cache())
        return false;
    if (plan->by_name) {
        plan->verdict = verdict_of_name(load->name, plan->path);
    } else {
        bs_copy(plan->path, load->name, n + 1);
        plan->verdict = verdict_of_path(plan->path);
    }
    bool catches =
        bs_next_or_null("_dl_catch_exception") && bs_next_or_null("_dl_signal_exception");
    bool seen = bs_connects_are_seen || !(plan->verdict & BS_VERDICT_CONNECTS);
    return plan->verdict && catches && seen;
}

/* ---- what the loader did --------------------------------------------------------------------- */

struct news {
    const struct plan *plan;
    u64 before, after; /* the loader's counts of loads */
    bool more;         /* the loader searched its cache for a library */
    bool plain;        /* all of them */
    bool own_is_plain; /* the library that was to be loaded */
    char *names;       /* the paths of the new libraries, each with its NUL */
    u64 size;          /* bytes of these paths */
    bool cut;          /* there was no room for all of them */
};

static void note_load(const char *path, u32 aux)
{
    bs_note_path(bs_now(), BS_OP_LOAD, BS_AT_FDCWD, 0, aux, path, 0);
}

/*
 * New libraries stand at the end of the list. Another thread may have loaded some of them. They are
 * only listed here. If another thread forks meanwhile, the loader's lock stays taken in its child.
 */
static void list_new(u64 loads, void *data)
{
    struct news *news = data;
    u64 fresh = loads - news->before;
    struct bs_link_map *l = bs_last_library;
    news->after = loads;
    while (l->next)
        l = l->next;
    for (; fresh > 1 && l->prev != bs_last_library && l != bs_last_library; fresh--)
        l = l->prev;
    for (; fresh && l && l != bs_last_library && !news->cut; l = l->next) {
        u64 size = bs_length(l->name, BS_PATH_MAX) + 1;
        if (news->size + size > NAMES_ROOM) {
            news->cut = true;
            return;
        }
        bs_copy(news->names + news->size, l->name, size);
        news->size += size;
    }
}

static void look_at_new(struct news *news)
{
    const char *end = news->names + news->size;
    for (const char *name = news->names; name < end; name += bs_length(name, BS_PATH_MAX) + 1) {
        bool own = bs_same(name, news->plan->path);
        if (!own) {
            note_load(name, 0);
            news->more = true;
        }
        bool plain = bs_is_logged_library(name) && bs_is_plain_library(name);
        news->plain &= plain;
        news->own_is_plain &= plain || !own;
    }
}

/* Without room for the list, it is not known which libraries are new. */
static void find_new(struct news *news)
{
    s64 memory = bs_raw(__NR_mmap, 0, NAMES_ROOM, 3, 0x22, -1, 0);
    news->names = (char *)memory;
    news->cut = (u64)memory >= -4096ull;
    bs_with_libraries(list_new, news);
    look_at_new(news);
    news->plain &= !news->cut;
    news->own_is_plain &= !news->cut;
    if ((u64)memory < -4096ull)
        bs_raw(__NR_munmap, memory, NAMES_ROOM);
}

/*
 * The loader has taken libraries. A file may have been replaced since it was looked at, and its
 * code has run. Another thread may have got the filter and loaded a library that is not plain.
 */
static void check_new(const struct plan *plan, u64 before)
{
    struct news news = {.plan = plan, .before = before, .plain = true, .own_is_plain = true};
    if (bs_library_loads() == before)
        return;
    find_new(&news);
    bs_skip_new_libraries(before, news.after);
    bool searched = news.more || plan->by_name;
    if (news.more && !plan->by_name)
        bs_log_loader_cache();
    bool as_planned = news.plain && (!searched || bs_has_same_cache());
    if (as_planned || (news.own_is_plain && bs_is_filtered()))
        return;
    bs_note_unguarded();
    bs_need_filter();
}

/*
 * A load has failed, and the loader has forgotten the libraries again. It had opened all that the
 * library needs and that were not loaded before.
 */
static BS_COLD void log_needed(const struct plan *plan)
{
    s64 memory = bs_raw(__NR_mmap, 0, ANSWER_ROOM, 3, 0x22, -1, 0), got = 0;
    s64 fd = open_library(plan->path);
    char *paths = (char *)memory;
    if ((u64)memory < -4096ull && fd >= 0)
        got = (s64)bs_ask_load(fd, plan->path, paths, ANSWER_ROOM);
    if (fd >= 0)
        bs_raw(__NR_close, fd);
    bool more = false;
    const char *path = paths, *end = paths + ANSWER_ROOM - 2;
    for (bool first = true; got && path < end && *path;
         path += bs_length(path, ANSWER_ROOM) + 1, first = false)
        if (!first && !is_needed_loaded(path)) {
            note_load(path, 0);
            more = true;
        }
    if (more && !plan->by_name)
        bs_log_loader_cache();
    if (!got || path >= end) /* the answer may have been cut */
        bs_note_unguarded();
    if ((u64)memory < -4096ull)
        bs_raw(__NR_munmap, memory, ANSWER_ROOM);
}

/* ---- the load -------------------------------------------------------------------------------- */

static void call_loader(void *data)
{
    struct bs_load *load = data;
    load->loaded = load->real(load->name, load->mode, load->caller, load->space, load->argc,
                              load->argv, load->env);
}

/*
 * A constructor may end the process, or execute another program. The libraries are then not looked
 * at, so the load counts as a lost operation while it lasts. A child that a constructor forks does
 * not end the load of its parent.
 */
static s64 begin_unseen(void)
{
    __atomic_add_fetch(&bs_arena->lost, 1, __ATOMIC_RELAXED);
    return bs_raw(__NR_getpid, 0);
}

static void end_unseen(s64 pid)
{
    if (pid == bs_raw(__NR_getpid, 0))
        __atomic_sub_fetch(&bs_arena->lost, 1, __ATOMIC_RELAXED);
}

/*
 * The load failed. The loader's list is as before. A file that was replaced since it was looked at
 * may need others than before.
 */
static BS_COLD void after_failure(const struct plan *plan, u64 before)
{
    struct bs_ident ident;
    u32 now = (u32)bs_verdict_of(plan->path, BS_VERDICT_LOADED, &ident);
    if (!(plan->verdict & BS_VERDICT_ALONE) || now != (u32)plan->verdict)
        log_needed(plan);
    bs_skip_new_libraries(before, bs_library_loads());
}

/* The loader reports an error by a jump to the function of libc that catches it. */
static void call_and_catch(struct bs_load *load, const struct plan *plan)
{
    catch_function *catch = bs_next_or_null("_dl_catch_exception");
    signal_function *signal = bs_next_or_null("_dl_signal_exception");
    struct exception caught = {0};
    u64 before = bs_library_loads();
    s64 pid = begin_unseen();
    int error = catch (&caught, call_loader, load);
    if (caught.text)
        after_failure(plan, before);
    else
        check_new(plan, before);
    end_unseen(pid);
    if (caught.text)
        signal(error, &caught, 0);
}

void *bs_load(struct bs_load *load)
{
    struct plan plan = {0};
    bool named = load->name && *load->name;
    bool plain = named && !bs_is_filtered() && plan_load(load, &plan);
    if (named && !plain)
        bs_need_filter();
    if (!plain || !plan.path[0]) {
        call_loader(load);
        return load->loaded;
    }
    if (plan.by_name)
        bs_log_loader_cache();
    note_load(plan.path, BS_LOAD_ANNOUNCED);
    call_and_catch(load, &plan);
    return load->loaded;
}

/* ---- functions of a library ------------------------------------------------------------------ */

/* The end of a library that the program began with; 0 if it cannot be read. */
static u64 end_of(const struct bs_link_map *library)
{
    const struct bs_elf *elf = (const struct bs_elf *)library->base;
    const struct bs_program_header *segments = bs_segments(elf);
    return segments ? bs_loaded_memory(library->base, segments, elf->header_count).end : 0;
}

/* The memory of a library. All threads find the same. */
struct image {
    u64 begin, end; /* 0: not known yet */
};

/* A library is found by its own name. Another one may have functions of the same names. */
static void find_image(struct image *image, const char *name)
{
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next) {
        struct bs_symbols symbols;
        bs_find_symbols(l, &symbols);
        u64 end = symbols.library && bs_same(symbols.library, name) ? end_of(l) : 0;
        if (end) {
            __atomic_store_n(&image->begin, l->base, __ATOMIC_RELAXED);
            __atomic_store_n(&image->end, end, __ATOMIC_RELEASE);
            return;
        }
    }
}

/* True if an address is not certainly outside of the library of this name. */
static bool may_be_in(u64 at, const char *name, struct image *image)
{
    if (!__atomic_load_n(&image->end, __ATOMIC_ACQUIRE))
        find_image(image, name);
    u64 end = __atomic_load_n(&image->end, __ATOMIC_ACQUIRE);
    return !end || (image->begin <= at && at < end);
}

/*
 * stubs.S: `dlsym` in a certain library, for which the caller does not matter. The functions of
 * libc and of the loader lead past the recorder.
 */
__attribute__((used)) void *bs_find_in_library(void *handle, const char *name)
{
    static struct image libc, loader;
    void *found = BS_NEXT(dlsym)(handle, name);
    u64 at = (u64)found;
    if (found && !bs_is_filtered() &&
        (may_be_in(at, "libc.so.6", &libc) || may_be_in(at, "ld-linux-x86-64.so.2", &loader)))
        bs_need_filter();
    return found;
}
