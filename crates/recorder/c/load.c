/*
 * Records libraries. The guard sees the loader open each file. The recorder logs which libraries
 * the loader took. Without a guard it also logs those that the program began with.
 */
#include "bs.h"

/*
 * The description of a library that `dl_iterate_phdr` passes. Its two counters count loads and
 * unloads since the start.
 */
struct library {
    u64 base;
    const char *name;
    const void *headers;
    uint16_t header_count;
    u64 adds, removals;
};
typedef int library_function(struct library *, size_t size, void *data);
int dl_iterate_phdr(library_function *function, void *data);
void *dlopen(const char *path, int flags);

/* The program itself and the kernel's library have no path. */
bool bs_is_logged_library(const char *name)
{
    if (name == bs_recorder_file)
        return false;
    /* The loader that every plain program names is known by its exec. */
    BS_AUTO_DO(if (bs_same(name, "/lib64/ld-linux-x86-64.so.2")) return false);
    for (const char *c = name; c && *c; c++)
        if (*c == '/')
            return true;
    return false;
}

static void log_library(const char *name)
{
    if (bs_is_logged_library(name))
        bs_note_path(bs_now(), BS_OP_LOAD, 0, 0, 0, name, 0);
}

void bs_log_first_libraries(void)
{
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next)
        log_library(l->name);
}

/* The loader's count of loads, up to which the libraries are logged; 0 before the first look. */
static u64 known;

struct walk {
    u64 count, skip, adds;
};

static int count_one(struct library *library, size_t size, void *data)
{
    (void)size;
    struct walk *walk = data;
    walk->count++;
    walk->adds = library->adds;
    return 0;
}

static int log_one(struct library *library, size_t size, void *data)
{
    (void)size;
    struct walk *walk = data;
    if (walk->skip)
        walk->skip--;
    else
        log_library(library->name);
    return 0;
}

u64 bs_library_loads(void)
{
    struct walk walk = {0};
    BS_NEXT(dl_iterate_phdr)(count_one, &walk);
    return walk.adds;
}

static u64 first_libraries(void)
{
    u64 count = 0;
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next)
        count++;
    return count;
}

/*
 * New libraries stand at the list's end, behind those that the program began with. A library that
 * could not be loaded counts as well, but the list does not have it.
 */
void bs_log_new_libraries(void)
{
    if (!bs_arena || !known || bs_me.borrowed)
        return;
    struct walk walk = {0};
    BS_NEXT(dl_iterate_phdr)(count_one, &walk);
    u64 fresh = walk.adds - known;
    if (!fresh)
        return;
    u64 first = first_libraries();
    walk.skip = walk.count > first + fresh ? walk.count - fresh : first;
    BS_NEXT(dl_iterate_phdr)(log_one, &walk);
    known = walk.adds;
}

#ifdef BS_AUTO
struct locked {
    library_act *act;
    void *data;
};

static int act_once(struct library *library, size_t size, void *data)
{
    (void)size;
    const struct locked *locked = data;
    locked->act(library->adds, locked->data);
    return 1; /* no further library */
}

void bs_with_libraries(library_act *act, void *data)
{
    struct locked locked = {act, data};
    BS_NEXT(dl_iterate_phdr)(act_once, &locked);
}

void bs_skip_new_libraries(u64 before, u64 after)
{
    if (known == before)
        known = after;
}
#endif

/*
 * The loader's search depends on the caller's own library, so the loader must see the real caller.
 * The wrapper therefore ends in a jump, and the next opportunity logs the libraries.
 */
BS_INTERCEPTED void *dlopen(const char *path, int flags)
{
    bs_is_ready(BS_OP_LOAD);
    if (!known)
        known = bs_library_loads();
    bs_log_new_libraries();
    return BS_NEXT(dlopen)(path, flags);
}

static void at_end(void)
{
    bs_log_open_connections();
    bs_log_new_libraries();
    bs_log_return_of_main();
}

__attribute__((section(".fini_array"), used)) static void (*const ending)(void) = at_end;
