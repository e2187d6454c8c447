/*
 * The hooks of `--guard=auto` in the shared files. Part of bs.h, which includes it.
 *
 * A process starts without the guard's filter, and gets it before something that the recorder alone
 * would not see (docs/design/guard-auto.md). Without BS_AUTO, the library for other runs, the hooks
 * are empty and their arguments are not evaluated.
 */
#ifndef BS_AUTO_H
#define BS_AUTO_H

#ifdef BS_AUTO
/* True if the process is known to have the filter. Its children on its memory may have none. */
extern bool bs_filtered;
#define bs_is_guarded() bs_filtered
/* True if the process is known to have the filter, also in such a child. */
bool bs_is_filtered(void);

/* auto/filter.c: asks the guard whether the process has the filter. */
bool bs_has_filter(void);
/* Makes sure that the process has the filter. */
void bs_need_filter(void);
/* True for calls that the guard never watches, and that programs often make by number. */
bool bs_is_harmless_call(s64 nr);
/* The same before the process executes a program that is not plain. */
void bs_need_filter_for_exec(void);
/* Sends a file to the supervisor, which says whether it is plain. */
bool bs_ask_verdict(u32 request, s64 fd);
/*
 * Requests that a file's content is preserved before this change (BS_CHANGE_*). Returns when that
 * is done or need not be. False: the process has the filter, and must request it by a call.
 */
bool bs_preserve_without_filter(const struct bs_look *look, u32 change,
                                const struct bs_ident *ident);

/*
 * auto/verdicts.c: the process is about to execute a program, with this environment. True if it has
 * no filter then: the recorder in the new program announces itself at once.
 */
bool bs_before_exec(int dir, const char *path, char *const *env, int flags);
/*
 * True if the program and the libraries that the loader took are plain. `*verdict` then has what
 * the program may do (BS_VERDICT_CONNECTS and its like).
 */
bool bs_has_plain_files(u64 *verdict);

/* The same for a library that was loaded, by its path. */
bool bs_is_plain_library(const char *path);
/*
 * The verdict of a kind about the file at a path, and the file's identity. 0: the table has none.
 */
u64 bs_verdict_of(const char *path, u64 kind, struct bs_ident *ident);
/* True if the loader's cache is the one for which the verdicts hold. */
bool bs_has_same_cache(void);

/* A call of the loader's function. */
struct bs_load {
    bs_load_function *real;
    const char *name;
    int mode;
    const void *caller;
    s64 space;
    int argc;
    char **argv, **env;
    void *loaded; /* the result */
};
/* auto/loads.c: makes the call. The process gets the filter first, unless all is plain. */
void *bs_load(struct bs_load *load);

/*
 * auto/filter.c: asks whether a library is plain that is about to be loaded. Returns 0, or the low
 * half of its verdict, and puts up to `size` bytes of the paths behind the response into `paths`.
 * With descriptor -1, `path` is a name.
 */
u64 bs_ask_load(s64 fd, const char *path, char *paths, u64 size);
/* Logs that the loader reads its cache. */
void bs_log_loader_cache(void);
/* Logs that the process runs without a filter that it needs. */
void bs_note_unguarded(void);

/* auto/filter.c: the program begins. */
void bs_auto_begin(void);

/* redirect.c: true if the redirections of libc are in place that this program needs first. */
bool bs_redirect_first(u64 verdict);
/* True if the recorder sees where libc itself connects and binds. */
extern bool bs_connects_are_seen;
/* loader.c: returns the interpreter that a script names; null if it names none. */
const char *bs_script_interpreter(u8 *text, u64 size);

#define BS_AUTO_DO(statement) statement
#else
#define bs_is_guarded() (bs_arena->flags & BS_ARENA_GUARDED)
#define bs_preserve_without_filter(look, change, ident) false
#define BS_AUTO_DO(statement) ((void)0)
#endif

#endif
