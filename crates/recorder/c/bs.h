/*
 * What all files of the recorder share: types, system calls, the record of one operation.
 *
 * The recorder runs inside other programs: in signal handlers, between vfork and exec, in threads
 * that may be cancelled, before and after `main`. Hard rules for every file here:
 *
 *  1. A recorded call does not depend on libc. The few functions of libc that a wrapper needs are
 *     looked up at their first use (next.c).
 *  2. The recorder allocates nothing, and takes no lock that a signal handler could meet.
 *  3. A frame has a few hundred bytes at most.
 *  4. `errno` is what the call left.
 *  5. A call that the guard watches goes through the gate if and only if it was logged here.
 */
#ifndef BS_H
#define BS_H

#include <asm/unistd.h>
#include <backstory_abi.h>
#include <linux/fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is not said to be visible is ours alone, and reached without a table. */
#pragma GCC visibility push(hidden)

typedef int64_t s64;
typedef uint64_t u64;
typedef int32_t s32;
typedef uint32_t u32;
typedef uint8_t u8;
typedef s64 ssize;

#define BS_API __attribute__((visibility("default")))
/*
 * A function that the sanitizers intercept, too (sanitizer.c): two instructions without effect at
 * its entry make room for a short jump, and five bytes before it for the jump that is reached so.
 */
#define BS_INTERCEPTED BS_API __attribute__((patchable_function_entry(7, 5)))
#define BS_COLD __attribute__((noinline, cold))
#define BS_LIKELY(x) __builtin_expect(!!(x), 1)
#define BS_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Another name that programs know the same function by. */
#define BS_ALIAS(name, of) extern BS_API __typeof(of) name __attribute__((alias(#of)))

#define BS_AT_FDCWD (-100)
#define BS_PAGE 4096u
#define BS_PATH_MAX 4096u

/* Errors that the recorder itself tells apart. */
/* clang-format off */
enum {
    BS_EPERM = 1, BS_ENOENT = 2, BS_EINTR = 4, BS_E2BIG = 7, BS_ENOEXEC = 8, BS_EBADF = 9, BS_ENOMEM = 12, BS_EACCES = 13,
    BS_EFAULT = 14, BS_EEXIST = 17, BS_ENODEV = 19, BS_ENOTDIR = 20, BS_EINVAL = 22, BS_ENFILE = 23, BS_EMFILE = 24,
    BS_ERANGE = 34, BS_ENAMETOOLONG = 36, BS_ENOSYS = 38, BS_ELOOP = 40, BS_EOPNOTSUPP = 95, BS_ETIMEDOUT = 110, BS_ESTALE = 116,
};
/* clang-format on */

/* ---- system calls ---------------------------------------------------------------------------------------------------- */

/* gate.S: same convention as the `syscall` instruction, called. The first passes the guard, the second does not. */
extern char bs_gate[], bs_gate_ip[], bs_plain[];
/* Where the gate is if the library was loaded somewhere else than at BS_HOME; else null. */
extern const void *bs_gate_elsewhere;

#ifdef __clang_analyzer__ /* which does not see that the kernel writes where its arguments point */
s64 bs_raw6(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);
s64 bs_through6(const char *way, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);
#else
static inline s64 bs_raw6(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    register s64 r10 __asm__("r10") = d;
    register s64 r8 __asm__("r8") = e;
    register s64 r9 __asm__("r9") = f;
    s64 result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

static inline s64 bs_through6(const char *way, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    register s64 r10 __asm__("r10") = d;
    register s64 r8 __asm__("r8") = e;
    register s64 r9 __asm__("r9") = f;
    s64 result;
    __asm__ volatile("call *%[way]"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9), [way] "r"(way)
                     : "rcx", "r11", "memory", "cc");
    return result;
}
#endif

#define BS_SIX(a, b, c, d, e, f, ...) (s64)(a), (s64)(b), (s64)(c), (s64)(d), (s64)(e), (s64)(f)
/* A call of our own that no filter of ours watches. */
#define bs_raw(nr, ...) bs_raw6(nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* A call of our own through the gate. */
#define bs_gated(nr, ...) bs_through6(bs_gate, nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* The program's call, whose record is `rec`: through the gate if it is logged. */
#define bs_call(rec, nr, ...) bs_through6(bs_way(rec), nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* The same for calls that are cancellation points. */
#define bs_call_cancel(rec, nr, ...) \
    bs_cancel6(bs_way(rec), nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))

/* `bs_through6`, cancellable while it lasts. */
s64 bs_cancelled6(const char *way, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);

/* Sets errno; returns -1. */
s64 bs_fail(s64 error);
/* errno, negated as system calls do it. */
s64 bs_error(void);
/* What a libc function returns for a system call's result. */
static inline s64 bs_ret(s64 result)
{
    return BS_UNLIKELY((u64)result > -4096ull) ? bs_fail(result) : result;
}

/* ---- state ----------------------------------------------------------------------------------------------------------- */

/* What is unusual about this process; all zero in nearly every one. */
enum {
    BS_ODD_STRICT = 1,  /* the guard logs what it watches, whatever the gate */
    BS_ODD_ALL_OPS = 2, /* log every read and write */
    BS_ODD_SHARED =
        4, /* a child may run on our memory without stopping us: only the process itself logs */
    BS_ODD_NO_TSC = 8,   /* the time-stamp counter must not be read */
    BS_ODD_SANDBOX = 16, /* the program limits its own system calls: none of ours any more */
    BS_ODD_CLOSED = 32,  /* the run is over: nothing is logged, and the gate stays open */
    BS_ODD_MOVED =
        64, /* root, mounts or rules changed: our own file may be out of a child's reach */
};
extern u32 bs_odd;
/* More than one thread was made. */
extern bool bs_threaded;

/* A thread's place in the arena. */
struct bs_thread {
    u8 *chunk; /* where it appends */
    u8 *held; /* the one before, kept until the next change: an operation may still be writing its result there */
    u32 generation; /* of the process when `chunk` was taken */
    u32 forks;      /* nested, each of which began with what its parent had mapped */
    u32 changes;    /* of chunk: tells an operation whether its record is still mapped */
    u32 count;      /* chunks taken in this epoch */
    u32 tid;
    u32 borrowed; /* depth of vfork and spawn: what a child on this thread's stack does is logged here */
    u64 base;      /* of the stack where that began */
    s32 spawned;   /* pid of the child that did */
    void *scratch; /* memory that such a child could not free */
    u64 scratch_size;
    const void *
        actions; /* what a spawned child was told to do first, and how much of it has been logged (spawn.c) */
    u32 done;
    u32 pid;         /* of the process when `chunk` was taken */
    bool taking;     /* a chunk, where signals can't be blocked */
    u32 clone_flags; /* of a clone by number that is under way (clone.c) */
    u64 clone_time;  /* when it began */
};
extern __thread struct bs_thread bs_me __attribute__((tls_model("initial-exec")));

#define BS_MAX_FD 32768u
/* clang-format off */
enum {
    BS_FD_READ = 1, BS_FD_WROTE = 2, BS_FD_WRITER = 4, BS_FD_LISTED = 8, BS_FD_COPIED = 16, BS_FD_MADE = 32, BS_FD_OWN = 64,
    BS_FD_PART = 128, /* what is there may be read before this descriptor changes it (preserve.c) */
};
/* clang-format on */
/* Files that a process remembers as its own; where two would have the same place, the later. */
#define BS_OWN 16384u

/* What a child by fork must not believe of itself: the kernel wipes these pages there. */
struct bs_process {
    u32 generation; /* 0: not set up */
    u32 lock;
    u32 pid, ppid;
    u32 host_pid; /* as the supervisor knows it, where that had to be asked for */
    u64 epoch;
    u32 highest;            /* descriptor with a mark */
    s32 copy_from, copy_to; /* of the last copy in the kernel, if both are marked so */
    u64 told; /* own.c: what was told before that is our own, or among the first `others` */
    u64 others;
    u32 own;   /* own.c: which of the files below count */
    bool owns; /* there may be one */
    u8 fd[];   /* BS_MAX_FD of them, if it is set up; then BS_OWN files that it made */
};
extern struct bs_process *bs_process; /* before it is attached: without marks, and not set up */

/* The arena's first page, once mapped. */
extern struct bs_arena *bs_arena;

/* ---- records --------------------------------------------------------------------------------------------------------- */

/* One operation being logged; its record is null where it is not. */
struct bs_reservation {
    struct bs_record *record;
    u64 changes;
};

/* The way of a call: the gate if it has been logged, or if nobody logs any more. */
static inline const char *bs_way(struct bs_reservation rec)
{
    return BS_LIKELY(rec.record) || BS_UNLIKELY(bs_odd & BS_ODD_CLOSED) ? bs_gate : bs_plain;
}

static inline s64 bs_cancel6(const char *way, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    if (BS_UNLIKELY(bs_threaded))
        return bs_cancelled6(way, nr, a, b, c, d, e, f);
    return bs_through6(way, nr, a, b, c, d, e, f);
}

u64 bs_now(void);
/* Begin an operation without, with one, with two strings. `time`: 0 for now. */
struct bs_reservation bs_begin(u32 op, s32 fd, s32 arg, u32 aux);
struct bs_reservation bs_begin_at(u64 time, u32 op, s32 fd, s32 arg, u32 aux);
struct bs_reservation bs_begin_path(u32 op, s32 fd, s32 arg, u32 aux, const char *path);
struct bs_reservation bs_begin_paths(u32 op, s32 fd, s32 arg, u32 aux, const char *path,
                                     const char *other);
/* With what the file system says of a file: `look` names it, and says whether to ask at all. */
struct bs_look {
    s32 dir;
    const char *path;
    u32 flags; /* AT_* */
    u32 change; /* BS_CHANGE_* that the call will bring about, if any: its content may have to be kept first */
    bool wanted;
};
/* names.c: before a call removes the symbolic link that `look` names. */
void bs_log_link_text(const struct bs_look *look);
/* 0, or a negative error. */
s64 bs_identify(struct bs_look look, struct bs_ident *ident);
struct bs_reservation bs_begin_ident(u32 op, s32 fd, s32 arg, u32 aux, const char *path,
                                     const char *other, struct bs_look look);
/* With `size` bytes of a socket address. */
struct bs_reservation bs_begin_bytes(u32 op, s32 fd, s32 arg, const void *bytes, u32 size);
/* A list of strings in as many records as it takes. */
void bs_log_strings(u32 op, s32 fd, s32 arg, char *const *list, bool (*skip)(const char *));

/* True if the record can still be written to. */
static inline bool bs_open(struct bs_reservation rec)
{
    return BS_LIKELY(rec.record && bs_me.changes - (u32)rec.changes <= 1 &&
                     bs_me.generation == bs_process->generation);
}

/* The operation's outcome. */
static inline s64 bs_end(struct bs_reservation rec, s64 result)
{
    if (BS_LIKELY(bs_open(rec))) {
        rec.record->result = (s32)result;
        __atomic_store_n(&rec.record->state, BS_DONE, __ATOMIC_RELEASE);
    }
    return result;
}

/* What the wrapper returns, once the outcome is logged. */
s64 bs_finish(struct bs_reservation rec, s64 result);

/* An operation of which only the outcome is logged. */
void bs_note(u64 time, u32 op, s32 fd, s32 arg, u32 aux, s64 result);
/* The same with a path, unless the call could not read its arguments: then neither can we. */
void bs_note_path(u64 time, u32 op, s32 fd, s32 arg, u32 aux, const char *path, s64 result);

/*
 * Calls that change nothing are logged after they were made: their outcome says whether the path can be read, and a process
 * killed in between has learned nothing. Such an operation carries this mark: if it can't be logged then, nobody has seen it.
 */
#define BS_LATE 0x10000u
/* Nor need this be told to anybody: who reads has made the file. */
#define BS_OWN_READ 0x20000u

/* True if the operation can be logged later, so that its call goes through the gate. */
bool bs_logs_later_oddly(u32 op);
static inline bool bs_logs_later(u32 op)
{
    const u32 odd = BS_ODD_STRICT | BS_ODD_SHARED | BS_ODD_SANDBOX | BS_ODD_CLOSED;
    return BS_LIKELY(!(bs_odd & odd) && bs_me.chunk &&
                     bs_me.generation == bs_process->generation) ||
           bs_logs_later_oddly(op);
}
static inline const char *bs_way_later(bool logged)
{
    return BS_LIKELY(logged) || bs_odd & BS_ODD_CLOSED ? bs_gate : bs_plain;
}

/* ---- the parts ------------------------------------------------------------------------------------------------------- */

/* arena.c */
bool bs_take(u32 op);                /* gives the thread a chunk */
bool bs_is_muted(void);              /* this process will never log */
bool bs_is_ready(u32 op);            /* it has one, or could be given one now */
bool bs_change(u32 op, u32 changes); /* a new one: the old is full, unless it has changed already */
void bs_prepare_for_sandbox(void);   /* all that would need a system call later */
void bs_map_reserve(void);           /* confined.c: the chunks that a sandboxed process can take */
s32 bs_claim(
    u32 words); /* a free chunk's number among those of so many words of the bitmap, or -1 */
void bs_begin_chunk(struct bs_chunk *chunk,
                    u32 index); /* a claimed one is the thread's; its header is valid last */
void bs_begin_thread(u32 tid);  /* nothing of what the thread had is its own any more */
bool bs_take_confined(void);    /* takes one of these, without a system call */
void bs_say_full(u8 *chunk);    /* its owner will append no more */
void bs_thread_ends(void);      /* the chunk is given back */
void bs_lose(u32 op);           /* an operation could not be logged */
void bs_other_numbers(void);    /* a process may be in another pid namespace */
bool bs_is_another(void); /* record.c: with this thread's state, but another thread or process? */
bool bs_is_flow(u32 op);  /* the guard watches it */
void bs_stop_clock(void); /* record.c: time becomes a sequence number */

/* environ.c: found when the library was loaded */
extern char bs_arena_path[];    /* "BACKSTORY_ARENA=..."; empty: not recorded */
extern char bs_preload_entry[]; /* our own entry of LD_PRELOAD, as any program may have it */
extern const char *bs_own_file; /* where we were loaded from */
extern u32 bs_user;             /* effective, at that time */
struct bs_link_map {
    u64 base;
    char *name;
    u64 *dynamic;
    struct bs_link_map *next, *prev;
};
extern struct bs_link_map *bs_first_library, *bs_last_library; /* that the program began with */
extern struct bs_link_map *bs_own_library;
/* libc's functions are looked for behind this one: the recorder, or a sanitizer's runtime. */
extern struct bs_link_map *bs_last_before_next;

/* sanitizer.c */
void bs_step_behind_sanitizer(void);

/* next.c */
void *bs_next_or_null(const char *name);
/* Keeps what it finds in `*place`; a function that fails with ENOSYS where there is none. */
void *bs_find(void **place, const char *name);
/* The function that programs would get without us. */
#define BS_NEXT(name) \
    ({ \
        static void *next_; \
        void *found_ = __atomic_load_n(&next_, __ATOMIC_RELAXED); \
        (__typeof(&name))(BS_LIKELY(found_) ? found_ : bs_find(&next_, #name)); \
    })

/* channel.c: by the call of this number */
int bs_make_pipe(s64 nr, int ends[2], int flags);
int bs_accept(s64 nr, int socket, void *address, u32 *size, int flags);

/* opaque.c */
void bs_say_opaque(const char *what); /* BS_OPAQUE_*, unless the guard says it */
void bs_say_opaque_trace(int request);
void bs_say_opaque_events(u32 flags);

/* sandbox.c: makes a call that may limit those that follow */
bool bs_only_dispatches(void);
s64 bs_limit(bool strict, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);

/* load.c */
void bs_log_first_libraries(void);
void bs_log_new_libraries(void);

/* procfs.c */
extern u64 bs_environment_end;
void bs_opened_proc(const char *path);

/* redirect.c */
void bs_redirect_stdio(void);
void bs_redirect_internal(void);
extern bool bs_exec_is_redirected;
extern bool bs_lists_are_seen;  /* libc's own listing of a directory comes to the recorder */
extern bool bs_closes_are_seen; /* a stream's close is logged where it meets the kernel */

/* streams.c */
void bs_log_streams_used(
    void); /* before set-up; the caller knows that libc's streams are what we think they are */

/* descriptors.c */
void bs_fd_opened(s64 fd, int flags);
void bs_fd_closed(u32 fd);
void bs_fd_copied(u32 from, u32 to);
struct bs_reservation bs_begin_close(int fd);
static inline u32 bs_fd_marks(int fd)
{
    return BS_LIKELY((u32)fd < BS_MAX_FD && bs_process->generation && !bs_me.borrowed)
               ? bs_process->fd[fd]
               : 0;
}
void bs_fd_mark(int fd, u32 mark);

/* own.c: what this process made, and nobody else has seen */
void bs_tell(void); /* that something was logged which may be a read, or change what names mean */
void bs_made(int dir, const char *path, s64 fd); /* a file, by opening it */
bool bs_reads_own_file(int dir, const char *path, s64 fd);
static inline bool bs_reads_own(int dir, const char *path, s64 fd)
{
    return BS_UNLIKELY(bs_process->owns) && fd >= 0 && bs_reads_own_file(dir, path, fd);
}
void bs_lend(int fd); /* others may read it from now on */
void bs_wrote_own(int fd, const struct bs_ident *ident);
bool bs_is_own(const struct bs_ident *ident, bool goes); /* with `goes`, no longer */
bool bs_nobody_else_knows(const struct bs_ident *own);
bool bs_may_be_read(u64 dev, u64 ino);
void bs_tell_changed(const struct bs_ident *ident); /* by us, who have not made it */
void bs_disown_all(void); /* there may be somebody now who has them open */

/* open.c, exec.c, environ: what the redirected entries of libc land in */
struct bs_reservation bs_begin_open(int dir, const char *path, int flags,
                                    u32 mode); /* one that may change something */
s64 bs_open_file(int dir, const char *path, int flags, u32 mode);
s64 bs_open_how(int dir, const char *path, const void *how, u64 size);
s64 bs_open_plainly(s64 nr, const char *path, int flags,
                    u32 mode); /* `open` or `creat`, as calls */
s64 bs_exec(int dir, const char *path, char *const *argv, char *const *envp, int flags, bool at);
void bs_free_scratch(void); /* process.c: what a child on our memory had to leave */
void bs_borrow(
    u64 base); /* what follows is a child's, until `bs_give_back` with the child's pid or -errno */
void bs_give_back(s64 child);
bool bs_has_jumped_out(void); /* and somebody jumped out of it instead */

/* clone.c */
s64 bs_clone_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);

/* spawn.c: an open and the execve of a spawned child, by way of libc's own entries */
s64 bs_spawned_open(const char *path, int flags, u32 mode);
void bs_spawned_exec(void);

/* loader.c */
bool bs_has_wide_loader(int dir, const char *path);

/* repair.c */
struct bs_room {
    u32 count; /* pointers */
    u32 bytes; /* of text */
};
struct bs_room bs_environment_room(char *const *env);
/* `wide`: for a program that has the loader of 64-bit programs. */
char *const *bs_environment_repaired(char *const *env, char **array, char *text, bool wide);
bool bs_is_our_variable(const char *variable);
u64 bs_environment_hash(char *const *env);

/* memory.c: what may be read of the program's memory, where the kernel would say EFAULT */
extern u64 bs_stack_end; /* of the first thread */
enum { FIRST_STACK_AT_MOST = 64 << 20 };
bool bs_readable(const void *at, u64 size);
bool bs_measure(const char *s, u32 limit, u32 *length); /* false: not a string that can be read */
bool bs_list_readable(char *const *list);

/* preserve.c */
void bs_preserve(struct bs_look look, const struct bs_ident *ident); /* the arena is there */
void bs_preserve_open(int fd);
/* Before a descriptor is first written by, or what it leads to is cut. */
static inline void bs_about_to_change(int fd)
{
    if (BS_UNLIKELY(bs_fd_marks(fd) & BS_FD_PART))
        bs_preserve_open(fd);
}

/* text.c */
u32 bs_length(const char *s, u32 limit); /* of a string that can be read */
void bs_copy(void *to, const void *from, u64 size);
bool bs_starts(const char *s, const char *with);
bool bs_same(const char *a, const char *b);
void *memset(void *to, int byte, size_t n);
void *memcpy(void *to, const void *from, size_t n);

#pragma GCC visibility pop

/* The C library's; null where it has none. */
extern char **environ __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));

#endif
