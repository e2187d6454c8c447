/*
 * Finds the libraries whose functions are wanted (`record --functions libz.so:inflate*`), when the
 * program begins and after each `dlopen`. Redirects calls of them.
 *
 * In: the patterns of libraries, and the loader's lists of objects. Out: stubs in the slots of all
 * objects, and in the results of `dlsym`.
 *
 * Invariants:
 *
 * - Without such a pattern nothing here does anything.
 * - One thread at a time looks. A thread that finds another one looking lets that one look again.
 * - The loader's lock is held while an object's memory is read, so the object stays loaded.
 */
#include "objects.h"

typedef int description_function(struct bs_description *, size_t size, void *data);
int dl_iterate_phdr(description_function *function, void *data);
void *dlsym(void *handle, const char *name);
void *dlvsym(void *handle, const char *name, const char *version);
int dladdr(const void *address, void *info);
int dladdr1(const void *address, void *info, void **extra, int flags);

const char *bs_library_patterns;

/* The loader's counts at the last look. */
static u64 known_adds, known_removals;
static u32 looker; /* pid of the process one of whose threads looks. A child by fork has another */
static bool again;

struct look {
    u64 count, adds, removals;
    u64 at, fresh; /* from this object on, all are new */
};

/* ---- names ----------------------------------------------------------------------------------- */

struct word {
    const char *start;
    u64 size;
};

static bool matches(struct word pattern, struct word name)
{
    u64 p = 0, n = 0, star = ~0ull, from = 0;
    while (n < name.size) {
        char c = p < pattern.size ? pattern.start[p] : 0;
        if (c == '*') {
            star = p++;
            from = n;
        } else if (p < pattern.size && (c == '?' || c == name.start[n])) {
            p++;
            n++;
        } else if (star != ~0ull) {
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.start[p] == '*')
        p++;
    return p == pattern.size;
}

static struct word whole(const char *name)
{
    return (struct word){name, bs_length(name, BS_PATH_MAX)};
}

/* The part of a name before its `.so`. */
static struct word stem(const char *name)
{
    struct word all = whole(name);
    for (u64 i = 0; i + 3 <= all.size; i++)
        if (name[i] == '.' && name[i + 1] == 's' && name[i + 2] == 'o')
            return (struct word){name, i};
    return all;
}

/*
 * True if the supervisor may know a pattern for the library. It knows the file's own name, which
 * differs from the one here in what follows `.so`.
 */
static bool may_be_wanted(const char *name)
{
    const char *base = name;
    for (const char *c = name; *c; c++)
        if (*c == '/')
            base = c + 1;
    for (const char *p = bs_library_patterns; *p; p += bs_length(p, BS_PATH_MAX) + 1)
        if (matches(whole(p), whole(base)) || matches(stem(p), stem(base)))
            return true;
    return false;
}

/* ---- objects --------------------------------------------------------------------------------- */

static const u64 *dynamic_of(const struct bs_description *description)
{
    for (u32 i = 0; i < description->segment_count; i++)
        if (description->segments[i].type == PT_DYNAMIC)
            return (const u64 *)(description->base + description->segments[i].address);
    return 0;
}

/* The program itself and the kernel's library have no path. */
static bool is_library(const struct bs_description *description)
{
    bool has_path = false;
    for (const char *c = description->name; c && *c; c++)
        has_path |= *c == '/';
    return has_path && description->name != bs_recorder_file &&
           description->base != (bs_recorder_library ? bs_recorder_library->base : 0);
}

static int count_one(struct bs_description *description, size_t size, void *data)
{
    (void)size;
    struct look *look = data;
    look->count++;
    look->adds = description->adds;
    look->removals = description->removals;
    return 0;
}

static void add(const struct bs_description *description)
{
    struct bs_object object;
    const u64 *dynamic = dynamic_of(description);
    if (!is_library(description) || !dynamic ||
        !bs_read_object(&object, description->base, dynamic))
        return;
    if (may_be_wanted(description->name) || (object.soname && may_be_wanted(object.soname)))
        bs_add_library((u64)dynamic, description->base);
}

static int add_one(struct bs_description *description, size_t size, void *data)
{
    (void)size;
    struct look *look = data;
    if (!look->at) {
        bs_add_waiting();
        bs_each_apart(add);
    }
    if (look->at++ >= look->fresh)
        add(description);
    return 0;
}

static void redirect_apart(const struct bs_description *description)
{
    struct bs_object object;
    if (!is_library(description) ||
        !bs_read_object(&object, description->base, dynamic_of(description)))
        return;
    object.is_apart = true;
    bs_read_segments(&object, description);
    bs_redirect_slots(&object);
}

static int redirect_one(struct bs_description *description, size_t size, void *data)
{
    (void)size;
    struct look *look = data;
    struct bs_object object;
    bool has_path = is_library(description), is_program = !look->at;
    if (is_program)
        bs_each_apart(redirect_apart);
    if (look->at++ < look->fresh || !(has_path || is_program) ||
        !bs_read_object(&object, description->base, dynamic_of(description)))
        return 0;
    bs_read_segments(&object, description);
    bs_redirect_slots(&object);
    return 0;
}

/* The modules whose objects are loaded, as bits, and the number of modules at that time. */
static u64 loaded;
static u32 loaded_of;
_Static_assert(BS_MODULES <= 64, "a bit for each module");

static void mark(const struct bs_description *description)
{
    for (u32 i = 0; i < loaded_of; i++)
        if (bs_modules[i].bias == description->base)
            loaded |= 1ull << i;
}

static int mark_one(struct bs_description *description, size_t size, void *data)
{
    (void)size;
    struct look *look = data;
    if (!look->at++) {
        loaded = 0;
        loaded_of = __atomic_load_n(&bs_module_count, __ATOMIC_ACQUIRE);
        bs_each_apart(mark);
    }
    mark(description);
    return 0;
}

/*
 * Forgets the modules whose objects were unloaded. One that is loaded again meanwhile is found by
 * the next look, which its load asks for.
 */
static void forget_unloaded(void)
{
    struct look look = {0};
    BS_NEXT(dl_iterate_phdr)(mark_one, &look);
    bs_forget_modules(loaded, loaded_of);
}

static void look_once(void)
{
    struct look look = {0};
    BS_NEXT(dl_iterate_phdr)(count_one, &look);
    if (look.adds == known_adds && look.removals == known_removals && !bs_waiting_count)
        return;
    if (look.removals != known_removals)
        forget_unloaded();
    u64 fresh = look.adds - known_adds, before = bs_redirected_count;
    look.fresh = look.count > fresh ? look.count - fresh : 0;
    known_adds = look.adds;
    known_removals = look.removals;
    BS_NEXT(dl_iterate_phdr)(add_one, &look);
    if (!bs_redirected_count)
        return;
    look.at = 0;
    /* A new function may have a slot in each object. */
    if (bs_redirected_count != before)
        look.fresh = 0;
    BS_NEXT(dl_iterate_phdr)(redirect_one, &look);
}

BS_COLD void bs_redirect_libraries(void)
{
    if (!bs_library_patterns || bs_me.borrowed || !bs_first_library)
        return;
    u32 own = bs_process->pid, seen = __atomic_load_n(&looker, __ATOMIC_RELAXED);
    __atomic_store_n(&again, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&again, __ATOMIC_SEQ_CST)) {
        if (seen == own || !__atomic_compare_exchange_n(&looker, &seen, own, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return;
        __atomic_store_n(&again, false, __ATOMIC_SEQ_CST);
        look_once();
        __atomic_store_n(&looker, 0, __ATOMIC_SEQ_CST);
        seen = 0;
    }
}

/* ---- pointers to functions ------------------------------------------------------------------- */

/* Handles for which the loader looks at its caller. The wrapper then ends in a jump. */
static bool depends_on_caller(const void *handle)
{
    return handle == 0 /* RTLD_DEFAULT */ || handle == (void *)-1l /* RTLD_NEXT */;
}

static void *redirected(void *found)
{
    u64 stub = bs_stub_of((u64)found);
    return stub ? (void *)stub : found;
}

/*
 * A loader's function. BS_NEXT would ask the loader for a missing one by `dlsym`, which is one of
 * them.
 */
#define LOADERS(name) \
    ({ \
        static void *next_; \
        if (BS_UNLIKELY(!next_)) \
            next_ = bs_first_library ? bs_next_or_null(#name) : 0; \
        (__typeof(&name))next_; \
    })

BS_API void *dlsym(void *handle, const char *name)
{
    __typeof(&dlsym) loaders = LOADERS(dlsym);
    if (BS_UNLIKELY(!loaders))
        return 0;
    if (BS_LIKELY(!bs_library_patterns) || depends_on_caller(handle))
        return loaders(handle, name);
    bs_redirect_libraries();
    return redirected(loaders(handle, name));
}

BS_API void *dlvsym(void *handle, const char *name, const char *version)
{
    __typeof(&dlvsym) loaders = LOADERS(dlvsym);
    if (BS_UNLIKELY(!loaders))
        return 0;
    if (BS_LIKELY(!bs_library_patterns) || depends_on_caller(handle))
        return loaders(handle, name, version);
    bs_redirect_libraries();
    return redirected(loaders(handle, name, version));
}

/* The program gets the function of a stub. */
BS_API int dladdr(const void *address, void *info)
{
    __typeof(&dladdr) loaders = LOADERS(dladdr);
    return loaders ? loaders((const void *)bs_function_of((u64)address), info) : 0;
}

BS_API int dladdr1(const void *address, void *info, void **extra, int flags)
{
    __typeof(&dladdr1) loaders = LOADERS(dladdr1);
    return loaders ? loaders((const void *)bs_function_of((u64)address), info, extra, flags) : 0;
}
