/*
 * The declarations that all files of the recorder share: types, system calls, state and records.
 *
 * The recorder runs inside other programs. It runs in signal handlers, between vfork and exec, in
 * threads that may be cancelled, and before and after `main`. Hard rules for every file here:
 *
 * 1. A recorded call does not depend on libc. The few functions of libc that a wrapper needs are
 *    looked up at their first use (next.c).
 * 2. The recorder allocates nothing, and takes no lock that a signal handler could meet.
 * 3. A stack frame has a few hundred bytes at most.
 * 4. After a wrapper returns, `errno` has the value that the call gave it.
 * 5. A call that the guard watches goes through the gate if and only if the recorder logged it.
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

/*
 * A symbol not marked as visible belongs to the recorder alone. The code reaches it without a
 * table.
 */
#pragma GCC visibility push(hidden)

typedef int64_t s64;
typedef uint64_t u64;
typedef int32_t s32;
typedef uint32_t u32;
typedef uint8_t u8;
typedef s64 ssize;

#define BS_API __attribute__((visibility("default")))
/*
 * Marks a function that the sanitizers intercept, too (sanitizer.c). Two instructions without
 * effect at its entry make room for a short jump. Five bytes before the entry make room for the
 * long jump that the short one leads to.
 */
#define BS_INTERCEPTED BS_API __attribute__((patchable_function_entry(7, 5)))
#define BS_COLD __attribute__((noinline, cold))
#define BS_LIKELY(x) __builtin_expect(!!(x), 1)
#define BS_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Another name by which programs call the same function. */
#define BS_ALIAS(name, of) extern BS_API __typeof(of) name __attribute__((alias(#of)))

#define BS_AT_FDCWD (-100)
#define BS_PAGE 4096u
#define BS_PATH_MAX 4096u

/* The errors that the recorder itself distinguishes. */
/* clang-format off */
enum {
    BS_EPERM = 1, BS_ENOENT = 2, BS_EINTR = 4, BS_E2BIG = 7, BS_ENOEXEC = 8, BS_EBADF = 9, BS_ENOMEM = 12, BS_EACCES = 13,
    BS_EFAULT = 14, BS_EEXIST = 17, BS_EXDEV = 18, BS_ENODEV = 19, BS_ENOTDIR = 20, BS_EINVAL = 22, BS_ENFILE = 23, BS_EMFILE = 24,
    BS_ERANGE = 34, BS_ENAMETOOLONG = 36, BS_ENOSYS = 38, BS_ELOOP = 40, BS_EOPNOTSUPP = 95, BS_ETIMEDOUT = 110, BS_ESTALE = 116,
};
/* clang-format on */

#include "calls.h"

/* ---- state ----------------------------------------------------------------------------------- */

/* Modes of this process. In nearly every process none is set. */
enum {
    BS_MODE_STRICT = 1, /* the guard logs the calls it watches, whether or not they pass the gate */
    BS_MODE_ALL_OPS = 2, /* log every read and write */
    /* a child may share memory with its running parent: only the process itself logs */
    BS_MODE_SHARED_MEMORY = 4,
    BS_MODE_NO_TSC = 8, /* the time-stamp counter must not be read */
    /* the program limits its own system calls: the recorder makes none any more */
    BS_MODE_SANDBOX = 16,
    BS_MODE_CLOSED = 32, /* the run is over: nothing is logged, and the gate stays open */
    /* root, mounts or rules changed: a child may not find the recorder's file */
    BS_MODE_MOVED = 64,
    BS_MODE_SIMULATED = 128, /* the byte engine executes the program */
};
extern u32 bs_modes;
/* True once the process has made a second thread. */
extern bool bs_threaded;

/* A thread's position in the arena. */
struct bs_thread {
    u8 *chunk; /* the thread appends its records here */
    /*
     * The previous chunk. It stays until the next change, because an operation may still write its
     * result there.
     */
    u8 *previous;
    u32 generation; /* the process's when `chunk` was taken */
    u32 forks;      /* depth of nested forks; each child began with its parent's mappings */
    /* how often `chunk` changed: shows an operation whether its record is still mapped */
    u32 changes;
    u32 count; /* chunks taken in this epoch */
    u32 tid;
    /* Depth of vfork and spawn. The thread also logs a child that runs on its stack. */
    u32 borrowed;
    u64 base;      /* of the stack when the borrowing began */
    s32 spawned;   /* pid of the child that ran on this stack */
    void *scratch; /* memory that such a child could not free */
    u64 scratch_size;
    /* The file actions of a spawned child. `done` counts those already logged (spawn.c). */
    const void *actions;
    u32 done;
    u32 pid;         /* the process's when `chunk` was taken */
    bool taking;     /* the thread is taking a chunk while signals cannot be blocked */
    u32 clone_flags; /* flags of a clone by number that is in progress (clone.c) */
    u64 clone_time;  /* when that clone began */
#ifdef BS_AUTO
    bool reopens; /* libc's `freopen` is opening a file */
#endif
#ifdef BS_FUNCTIONS
    u64 steps; /* recorded functions that it has entered or left */
#endif
};
extern __thread struct bs_thread bs_me __attribute__((tls_model("initial-exec")));

#define BS_MAX_FD 32768u
/* clang-format off */
enum {
    BS_FD_READ = 1, BS_FD_WROTE = 2, BS_FD_WRITER = 4, BS_FD_LISTED = 8, BS_FD_COPIED = 16, BS_FD_MADE = 32, BS_FD_PRIVATE = 64,
    BS_FD_PART = 128, /* the run may read the file before this descriptor changes it (preserve.c) */
};
/* clang-format on */
/*
 * Number of files that a process remembers as made by itself. Of two files with the same table
 * entry, the later one stays.
 */
#define BS_PRIVATE_FILES 16384u
/* Listening sockets that a process remembers (peers.c). */
#define BS_LISTENERS 32u
#define BS_LISTENER_SIZE 48u
#define BS_PEER_ADDRESS 28u
/*
 * The tables behind the marks of descriptors. The private files come first. Some forms of the
 * library have a table of all descriptors behind them (deep/files.c, descriptors.c). The listening
 * sockets come last.
 */
#define BS_DESCRIPTORS_AT (BS_MAX_FD + BS_PRIVATE_FILES * (sizeof(u64) + sizeof(u32)))
#if defined(BS_DEEP)
#define BS_LISTENERS_AT (BS_DESCRIPTORS_AT + BS_MAX_FD * sizeof(u64))
#elif defined(BS_FUNCTIONS)
#define BS_LISTENERS_AT (BS_DESCRIPTORS_AT + 2 * BS_MAX_FD * sizeof(u64))
#else
#define BS_LISTENERS_AT BS_DESCRIPTORS_AT
#endif
#define BS_TABLES_SIZE (BS_LISTENERS_AT + BS_LISTENERS * BS_LISTENER_SIZE)

/* State that a child by fork must not inherit. The kernel wipes these pages in the child. */
struct bs_process {
    u32 generation; /* 0: not set up */
    u32 lock;
    u32 pid, ppid;
    u32 host_pid; /* the pid that the supervisor sees, if it had to be looked up */
    u64 epoch;
    u32 highest;            /* the highest descriptor with a mark */
    s32 copy_from, copy_to; /* the last copy in the kernel, if both ends are marked as copied */
    /*
     * private.c: all reports up to this count are by this process, or among the first
     * `reported_by_others`.
     */
    u64 reported;
    u64 reported_by_others;
    u32 private_round; /* private.c: which of the remembered files below are valid */
    bool has_private;  /* the table of private files may have an entry */
    bool has_locks;    /* descriptors.c: the process may hold a record lock (F_SETLK) */
    u64 other_disk;    /* own_link.c: a device from which no link can be made */
#ifdef BS_DEEP
    u32 deep_descriptors; /* DESCRIPTOR facts so far; their table follows the private files */
    bool deep_later;      /* deep/files.c: the fact of an accepted connection may be put off */
#endif
    /* BS_MAX_FD entries if set up; after them the tables, BS_TABLES_SIZE bytes in all */
    u8 fd[] __attribute__((aligned(sizeof(u64))));
};
extern struct bs_process *bs_process; /* before attaching: no marks, generation 0 */

/* The arena's first page, once mapped. */
extern struct bs_arena *bs_arena;

/* ---- records --------------------------------------------------------------------------------- */

/* An operation that is being logged. `record` is null if the operation is not logged. */
struct bs_reservation {
    struct bs_record *record;
    /*
     * The low half counts the thread's changes of chunks. The high half is the number, plus 1, of a
     * preserved content that the process linked itself before this call.
     */
    u64 changes;
};

/*
 * The entry point for a call. It is the gate if the call has been logged, or if the run is over and
 * nothing is logged any more.
 */
static inline const char *bs_entry_point(struct bs_reservation rec)
{
    return BS_LIKELY(rec.record) || BS_UNLIKELY(bs_modes & BS_MODE_CLOSED) ? bs_gate : bs_plain;
}

static inline s64 bs_cancel6(const char *entry, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    if (BS_UNLIKELY(bs_threaded))
        return bs_cancelled6(entry, nr, a, b, c, d, e, f);
    return bs_through6(entry, nr, a, b, c, d, e, f);
}

u64 bs_now(void);
/* Begin an operation without a string, with one, and with two. `time` is 0 for now. */
struct bs_reservation bs_begin(u32 op, s32 fd, s32 arg, u32 aux);
struct bs_reservation bs_begin_at(u64 time, u32 op, s32 fd, s32 arg, u32 aux);
struct bs_reservation bs_begin_path(u32 op, s32 fd, s32 arg, u32 aux, const char *path);
struct bs_reservation bs_begin_paths(u32 op, s32 fd, s32 arg, u32 aux, const char *path,
                                     const char *other);
/*
 * Begins an operation together with the identity of a file. `look` names the file, and says whether
 * to look it up at all.
 */
struct bs_look {
    s32 dir;
    const char *path;
    u32 flags; /* AT_* */
    /* BS_CHANGE_* if the call will change the file: its content may have to be preserved first */
    u32 change;
    bool wanted;
};
/*
 * names.c: logs the target of the symbolic link that `look` names, before a call removes the link.
 */
void bs_log_link_text(const struct bs_look *look);
/*
 * Reads a file's identity. Returns 0 or a negative error. A descriptor must be that of a regular
 * file, except for bs_identify_any.
 */
s64 bs_identify(struct bs_look look, struct bs_ident *ident);
s64 bs_identify_any(struct bs_look look, struct bs_ident *ident);
struct bs_reservation bs_begin_ident(u32 op, s32 fd, s32 arg, u32 aux, const char *path,
                                     const char *other, struct bs_look look);
/* Logs that the process has linked a file as preserved content `number`. `path` is absolute. */
void bs_note_kept(s32 number, const char *path, const struct bs_ident *ident);
#ifdef BS_AUTO
/* Logs that the content of a file could not be preserved. */
void bs_note_not_kept(const char *path, const struct bs_ident *ident, s64 error);
#endif
/* Begins an operation with `size` bytes of a socket address, at `time` (0: now). */
struct bs_reservation bs_begin_bytes(u64 time, u32 op, s32 fd, s32 arg, const void *bytes,
                                     u32 size);
/* The same with bytes that are certainly readable. */
struct bs_reservation bs_begin_known_bytes(u64 time, u32 op, s32 fd, s32 arg, const void *bytes,
                                           u32 size);
/* Logs a list of strings in as many records as it needs. */
void bs_log_strings(u32 op, s32 fd, s32 arg, char *const *list, bool (*skip)(const char *));

/* True if the thread can still write to the record. */
static inline bool bs_open(struct bs_reservation rec)
{
    return BS_LIKELY(rec.record && bs_me.changes - (u32)rec.changes <= 1 &&
                     bs_me.generation == bs_process->generation);
}

/* Writes the operation's outcome into its record. */
static inline s64 bs_end(struct bs_reservation rec, s64 result)
{
    if (BS_LIKELY(bs_open(rec))) {
        rec.record->result = (s32)result;
        __atomic_store_n(&rec.record->state, BS_DONE, __ATOMIC_RELEASE);
    }
    return result;
}

/* Logs the outcome and returns the wrapper's return value. */
s64 bs_finish(struct bs_reservation rec, s64 result);

/* Logs an operation of which only the outcome matters. */
void bs_note(u64 time, u32 op, s32 fd, s32 arg, u32 aux, s64 result);
/*
 * The same with a path. If the call could not read its arguments, the recorder cannot either and
 * logs no path.
 */
void bs_note_path(u64 time, u32 op, s32 fd, s32 arg, u32 aux, const char *path, s64 result);

/*
 * The recorder logs a call that changes nothing after the call was made. Its outcome says whether
 * the path can be read, and a process killed in between has learned nothing. Such an operation
 * carries this mark: if the recorder cannot log it then, the guard has not seen it either.
 */
#define BS_DEFERRED 0x10000u
/* A read that the recorder need not report to other processes: the reader made the file itself. */
#define BS_PRIVATE_READ 0x20000u

/* True if the recorder can log the operation later, so that its call goes through the gate. */
bool bs_logs_later_in_mode(u32 op);
static inline bool bs_logs_later(u32 op)
{
    const u32 modes = BS_MODE_STRICT | BS_MODE_SHARED_MEMORY | BS_MODE_SANDBOX | BS_MODE_CLOSED;
    return BS_LIKELY(!(bs_modes & modes) && bs_me.chunk &&
                     bs_me.generation == bs_process->generation) ||
           bs_logs_later_in_mode(op);
}
static inline const char *bs_entry_point_later(bool logged)
{
    return BS_LIKELY(logged) || bs_modes & BS_MODE_CLOSED ? bs_gate : bs_plain;
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* attach.c */
void bs_lose(u32 op);                            /* an operation could not be logged */
u64 bs_ask_simulator(u64 request, u64 argument); /* 0 without a simulator */
bool bs_is_muted(void);                          /* this process will never log anything */
bool bs_is_flow(u32 op);                         /* the guard watches this operation */
void bs_note_pid_namespace(void);                /* the process may be in another pid namespace */

/* chunks.c */
bool bs_take(u32 op);                /* gives the thread a chunk */
bool bs_is_ready(u32 op);            /* the thread has a chunk, or could get one now */
bool bs_change(u32 op, u32 changes); /* new chunk for a full one, unless already changed */
void bs_prepare_for_sandbox(void);   /* does all that would need a system call later */
void bs_begin_thread(u32 tid);       /* discards the thread's inherited state */
void bs_thread_ends(void);           /* gives the thread's chunk back */

/* record.c */
bool bs_is_another(void); /* another thread or process uses this thread's state? */
void bs_stop_clock(void); /* time becomes a sequence number */

/* environ.c: values found when the library was loaded */
extern char bs_arena_path[]; /* "BACKSTORY_ARENA=..."; empty: not recorded */
/* the recorder's own entry of LD_PRELOAD, in the form for any program */
extern char bs_preload_entry[];
extern const char *bs_recorder_file; /* the file that the loader loaded the recorder from */
extern u32 bs_user;                  /* effective user id at load time */
struct bs_link_map {
    u64 base;
    char *name;
    u64 *dynamic;
    struct bs_link_map *next, *prev;
};
extern struct bs_link_map *bs_first_library, *bs_last_library; /* loaded at the start */
extern struct bs_link_map *bs_recorder_library;
/*
 * The look-up of libc's functions begins behind this library: the recorder, or a sanitizer's
 * runtime.
 */
extern struct bs_link_map *bs_last_before_next;

/* sanitizer.c */
void bs_step_behind_sanitizer(void);

/* next.c */
void *bs_next_or_null(const char *name);
/*
 * Finds a function and stores it in `*place`. If there is no such function, the result is one that
 * fails with ENOSYS.
 */
void *bs_find(void **place, const char *name);
/* The function that the program would call if the recorder were not loaded. */
#define BS_NEXT(name) \
    ({ \
        static void *next_; \
        void *found_ = __atomic_load_n(&next_, __ATOMIC_RELAXED); \
        (__typeof(&name))(BS_LIKELY(found_) ? found_ : bs_find(&next_, #name)); \
    })

/* channel.c: a pipe and an accepted socket, made by the system call with this number */
int bs_make_pipe(s64 nr, int ends[2], int flags);
int bs_accept(s64 nr, int socket, void *address, u32 *size, int flags);

/* peers.c */
s32 bs_socket_type(int fd); /* SO_TYPE; 0 if unknown */
/* If the kernel chose the port of a bound address, the record gets this port. */
void bs_know_port(int fd, struct bs_record *record, const void *address, u32 size);
/* The descriptor is a connection from now on, if type and address are those of one. */
void bs_begin_connection(int fd, s32 type, const void *address, u32 size);
/*
 * The descriptor was accepted from `socket`. `address` is that of the other end, of `size` bytes. 0
 * bytes: it is not known. False: it is certainly no internet connection.
 */
bool bs_begin_accepted(int fd, int socket, const void *address, u32 size);
/*
 * Asks for the address of the other end of a connection that was accepted from `socket`. It has
 * BS_PEER_ADDRESS bytes at most. Returns their number, or 0 if it is no internet address.
 */
u32 bs_ask_peer(int fd, int socket, u8 *other);
/* True if an accepted connection has an address of BS_PEER_ADDRESS bytes at most. */
bool bs_accepts_internet(int socket);
void bs_forget_listeners(void); /* a socket listens, perhaps at another address than before */
/* If the descriptor is a connection, logs how much it carried. It is about to be closed. */
bool bs_closes_connection(int fd);
void bs_log_open_connections(void); /* the same for all, when the process ends */
/* process.c: logs that the process ends, unless the program called `exit`. */
void bs_log_return_of_main(void);
/* The most bytes that the kernel has for a socket address (`_K_SS_MAXSIZE`). */
enum { BS_LONGEST_ADDRESS = 128 };
/*
 * The room that a program has for a socket address, before the call that writes the address. The
 * kernel returns the length of the whole address, which may be longer. The room is 0 without an
 * address, and BS_LONGEST_ADDRESS at most. BS_UNKNOWN_ROOM: the length at `size` may not be
 * readable. A recorder can find that out in a sandbox only for the stack.
 */
enum { BS_UNKNOWN_ROOM = UINT8_MAX };
u32 bs_address_room(const void *address, const u32 *size);
/* The same by a length that can be read. */
static inline u32 bs_room(const void *address, u32 size)
{
    return !address ? 0 : size < BS_LONGEST_ADDRESS ? size : BS_LONGEST_ADDRESS;
}
/*
 * A datagram was received. `first`: it is the first that the socket received. `size`: of the whole
 * address, as the call returned it. `room`: of `bs_address_room`. Nothing is logged if the room is
 * unknown.
 */
void bs_log_received(int fd, bool first, const void *address, u32 size, u32 room);
/*
 * A datagram was sent by a call that began at `time`. The other end may have logged its receipt
 * before the call returned.
 */
void bs_log_sent(u64 time, int fd, bool first, const void *address, u32 size);

/* opaque.c */
void bs_log_opaque(const char *what);        /* BS_OPAQUE_*, unless the guard reports it */
struct bs_reservation bs_begin_unseen(void); /* ended by the failure of the exec that follows */
void bs_log_opaque_trace(int request);
void bs_log_opaque_events(u32 flags);

/* sandbox.c: makes a call that may limit the system calls after it */
bool bs_only_dispatches(void);
bool bs_dispatches(void); /* the calls of a thread are or were dispatched to the program */
s64 bs_limit(bool strict, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);

/* load.c */
bool bs_is_logged_library(const char *name); /* a library of the link map with this name */
void bs_log_first_libraries(void);
void bs_log_new_libraries(void);
u64 bs_library_loads(void); /* the loader's count of loads, of all namespaces */
#ifdef BS_AUTO
/*
 * Acts once while the list of libraries cannot change. `loads` is the loader's count. The loader's
 * lock is taken, as by each load.
 */
typedef void library_act(u64 loads, void *data);
void bs_with_libraries(library_act *act, void *data);
/* All libraries are logged that were loaded between these counts. */
void bs_skip_new_libraries(u64 before, u64 after);
#endif

/* procfs.c */
extern u64 bs_environment_end;
void bs_opened_proc(const char *path);

/* entries.c */
enum { BS_JUMP_SIZE = 14 };
/* A jump over the first bytes of a function of libc. Without `from` there is nothing to do. */
struct bs_jump {
    u8 *from;
    void *to;
    bool written;
};
/* Only while one thread exists, and with signals blocked. */
void bs_write_jumps(struct bs_jump *jumps, u32 count);

/* The loader's function behind `dlopen`, the name service and the converters of characters. */
typedef void *bs_load_function(const char *name, int mode, const void *caller, s64 space, int argc,
                               char **argv, char **env);

/* redirect.c */
void bs_redirect_stdio(void);
void bs_redirect_internal(void);
#if defined(BS_AUTO) || defined(BS_FUNCTIONS) || defined(BS_DEEP)
/* Lets the loader's part of `dlopen` come to the recorder. False if it is not as expected. */
bool bs_redirect_load(void);
#endif
/* False also for threads that libc makes by itself, such as for timers, and if it is not known. */
bool bs_has_one_thread(void);
extern bool bs_exec_is_redirected;
extern bool bs_lists_are_seen;  /* the recorder sees libc's own listing of a directory */
extern bool bs_closes_are_seen; /* a stream's close is logged at its system call */

/* streams.c */
/* before set-up; the caller has checked that libc's streams have the expected layout */
void bs_log_streams_used(void);

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
/*
 * True if the process may hold a record lock. It loses its locks on a file when it closes any
 * descriptor of the file, one of the recorder included. A child of vfork has no locks.
 */
static inline bool bs_may_hold_locks(void)
{
    return BS_UNLIKELY(bs_process->has_locks) && !bs_me.borrowed;
}

/* private.c: the files that this process made and that no other process has seen. */
/* Counts a logged operation that may be a read, or that changes what names mean. */
void bs_report(void);
void bs_remember_made(int dir, const char *path, s64 fd); /* remembers a file made by an open */
bool bs_reads_private_file(int dir, const char *path, s64 fd);
static inline bool bs_reads_private(int dir, const char *path, s64 fd)
{
    return BS_UNLIKELY(bs_process->has_private) && fd >= 0 && bs_reads_private_file(dir, path, fd);
}
void bs_share(int fd); /* other processes may read the file from now on */
void bs_wrote_private(int fd, const struct bs_ident *ident);
bool bs_is_private(const struct bs_ident *ident, bool goes); /* with `goes`, forgets it */
bool bs_is_unused_by_others(const struct bs_ident *ident);
bool bs_may_be_read(u64 dev, u64 ino);
/* changed by this process, which did not make it */
void bs_report_change(const struct bs_ident *ident);
void bs_share_all(void); /* another process may have them open now */

/* open.c, exec.c: the functions behind the redirected entries of libc */
struct bs_reservation bs_begin_open(int dir, const char *path, int flags,
                                    u32 mode); /* an open that may change something */
s64 bs_open_file(int dir, const char *path, int flags, u32 mode);
s64 bs_open_how(int dir, const char *path, const void *how, u64 size);
s64 bs_open_plainly(s64 nr, const char *path, int flags,
                    u32 mode); /* `open` or `creat` as system calls */
s64 bs_exec(int dir, const char *path, char *const *argv, char *const *envp, int flags, bool at);
void bs_free_scratch(void); /* process.c: frees what a child on this memory left */
/* a child's operations follow, until `bs_give_back` with the child's pid or -errno */
void bs_borrow(u64 base);
void bs_give_back(s64 child);
bool bs_has_jumped_out(void); /* the child left its borrowed stack by a jump instead */

/* clone.c */
s64 bs_clone_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);

/* spawn.c: an open and the execve of a spawned child, called from libc's own entry points */
s64 bs_spawned_open(const char *path, int flags, u32 mode);
void bs_spawned_exec(void);

/* loader.c */
bool bs_has_wide_loader(int dir, const char *path);
enum { BS_FILE_BEGINNING = 1024 };
/* Reads the beginning of a file without waiting. Returns the number of bytes, or an error. */
s64 bs_read_beginning(int dir, const char *path, u8 *text);

/* broker.c */
enum { BS_BROKERED_PATH = 256 }; /* programs with a longer path are executed as without a broker */
/* True if the broker executes this program. */
bool bs_leaves_recording(int dir, const char *path, int flags);
/* Writes the client's variable. It has room for `BS_BROKERED_PATH` bytes behind the name. */
void bs_name_program(char *variable, const char *path);
s64 bs_execute_client(char *const *argv, char *const *env); /* returns only if that fails */

/* repair.c */
struct bs_room {
    u32 count; /* pointers */
    u32 bytes; /* of text */
};
struct bs_room bs_environment_room(char *const *env);
/* `wide`: for a program that uses the loader of 64-bit programs. */
char *const *bs_environment_repaired(char *const *env, char **array, char *text, bool wide);
bool bs_is_recorder_variable(const char *variable);
u64 bs_environment_hash(char *const *env);

/* memory.c: which parts of the program's memory the recorder can read without an EFAULT */
extern u64 bs_stack_end; /* of the first thread */
enum { FIRST_STACK_AT_MOST = 64 << 20 };
bool bs_readable(const void *at, u64 size);
/* The same, but in a sandbox only stack counts: the kernel cannot be asked about other memory. */
bool bs_surely_readable(const void *at, u64 size);
bool bs_measure(const char *s, u32 limit, u32 *length); /* false: no readable string */
bool bs_list_readable(char *const *list);

/* preserve.c */
/*
 * Preserves a file that loses its only name, and that the filter contains, by a hard link. Returns
 * the number of the content plus 1, or 0 if the supervisor must be notified.
 */
u64 bs_link_own(const struct bs_look *look, const struct bs_ident *ident);
/* The call failed, so the file gets its former number of links again. `linked` as it returned. */
void bs_unlink_own(u64 linked);
/* Needs an attached arena. Returns what `bs_link_own` returned, or 0. */
u64 bs_preserve(struct bs_look look, const struct bs_ident *ident);
void bs_preserve_open(int fd);
/* Call this before the first write through a descriptor, and before its file is truncated. */
static inline void bs_about_to_change(int fd)
{
    if (BS_UNLIKELY(bs_fd_marks(fd) & BS_FD_PART))
        bs_preserve_open(fd);
}

/* durable.c */
bool bs_commit_before_write(int fd);
/*
 * Call this once a write is logged and before it is made. True if the kernel makes each write
 * through the descriptor durable, so that the next one needs this call, too.
 */
static inline bool bs_about_to_write(int fd)
{
    return bs_arena && BS_UNLIKELY(bs_arena->flags & BS_ARENA_ORDERED) &&
           bs_commit_before_write(fd);
}
/* line.c */
bool bs_mark_line(const char *mark);

#include "auto.h"
#include "deep.h"

#ifdef BS_FUNCTIONS
/* record.c: begins an operation with `size` bytes of room, which are zero. */
struct bs_reservation bs_begin_room(u32 op, s32 fd, s32 arg, const void *bytes, u32 size);
void bs_functions_begin(void);                     /* functions/modules.c */
void bs_hook_interpreter(char **argv, char **env); /* functions/preloads.c */
void bs_redirect_libraries(void);                  /* functions/libraries.c */
/* descriptors.c: the thread entered or left a recorded function since it used the descriptor so */
bool bs_is_in_other_function(int fd, u32 mark);
/* functions/interpreted.c */
bool bs_mark_function(const char *path);
#define BS_FUNCTIONS_DO(statement) statement
#else
#define bs_is_in_other_function(fd, mark) false
#define bs_mark_function(path) false
#define BS_FUNCTIONS_DO(statement) ((void)0)
#endif

/* True if an operation is the first of its kind on the descriptor, or all are logged. */
static inline bool bs_is_news(int fd, u32 mark)
{
    return !(bs_fd_marks(fd) & mark) || bs_modes & BS_MODE_ALL_OPS ||
           bs_is_in_other_function(fd, mark);
}

/* text.c */
u32 bs_length(const char *s, u32 limit); /* of a readable string */
void bs_copy(void *to, const void *from, u64 size);
bool bs_starts(const char *s, const char *with);
bool bs_same(const char *a, const char *b);
void *memset(void *to, int byte, size_t n);
void *memcpy(void *to, const void *from, size_t n);

#pragma GCC visibility pop

/* The C library's symbols; null in a program whose C library lacks them. */
extern char **environ __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));

#endif
