/*
 * Libraries. The guard sees the loader open each. The recorder logs which ones the loader took and,
 * without a guard, those that the program began with.
 */
#include "bs.h"

/* What `dl_iterate_phdr` tells of a library; the numbers count loads since the start. */
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

static void log_library(const char *name)
{
    if (name == bs_own_file)
        return;
    for (const char *c = name; c && *c; c++)
        if (*c == '/') { /* the program itself and the kernel's library have none */
            bs_note_path(bs_now(), BS_OP_LOAD, 0, 0, 0, name, 0);
            return;
        }
}

void bs_log_first_libraries(void)
{
    for (struct bs_link_map *l = bs_first_library; l; l = l == bs_last_library ? 0 : l->next)
        log_library(l->name);
}

/* How far the list has been logged. */
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

/* New ones stand at the list's end. */
void bs_log_new_libraries(void)
{
    if (!bs_arena || !known || bs_me.borrowed)
        return;
    struct walk walk = {0};
    BS_NEXT(dl_iterate_phdr)(count_one, &walk);
    u64 fresh = walk.adds - known;
    if (!fresh)
        return;
    walk.skip = walk.count > fresh ? walk.count - fresh : 0;
    BS_NEXT(dl_iterate_phdr)(log_one, &walk);
    known = walk.adds;
}

/*
 * The loader searches where the caller's own library says, so it must see the real caller. So this
 * ends in a jump, and the libraries are logged at the next opportunity.
 */
BS_INTERCEPTED void *dlopen(const char *path, int flags)
{
    bs_is_ready(BS_OP_LOAD);
    if (!known) {
        struct walk walk = {0};
        BS_NEXT(dl_iterate_phdr)(count_one, &walk);
        known = walk.adds;
    }
    bs_log_new_libraries();
    return BS_NEXT(dlopen)(path, flags);
}

static void at_end(void)
{
    bs_log_new_libraries();
}

__attribute__((section(".fini_array"), used)) static void (*const ending)(void) = at_end;
