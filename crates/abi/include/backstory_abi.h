/*
 * The binary interface of backstory: what a recorder inside a process, the guard's supervisor and the readers of
 * a run's log agree on. This header is the only definition; src/lib.rs mirrors it and a test compares every size,
 * offset and constant. Everything is little-endian with fixed widths.
 *
 * A chunk is appended verbatim to a run's log, so records are a durable format: a change raises BS_ABI_VERSION, is
 * described in docs/formats/log.md, and old versions stay readable.
 */
#ifndef BACKSTORY_ABI_H
#define BACKSTORY_ABI_H

#include <stdint.h>

#define BS_ABI_VERSION 1u
#define BS_ARENA_MAGIC 0x616e657261534242ull /* "BBSarena" */
#define BS_CHUNK_MAGIC 0x4b4e4843u           /* "CHNK" */

/* Names in the environment of a recorded program. Both are hidden from it and put back at exec. */
#define BS_ENV_ARENA "BACKSTORY_ARENA" /* path of the arena file */
#define BS_ENV_PRELOAD "LD_PRELOAD"    /* our entry stands last and ends with BS_PRELOAD_NAME */
#define BS_PRELOAD_NAME "linux-backstory.so"
/*
 * Directory of that file: the first, which each loader replaces by its own, is for every program; the second for those that are
 * known to be for 64 bits, because a loader that replaces asks the kernel which program it loads, and that takes 20 us.
 */
#define BS_PRELOAD_ANY "$LIB"
#define BS_PRELOAD_WIDE "64"

/* Where the recorder is linked: below any position-independent executable. The gate's `syscall` is at a fixed offset. */
#define BS_HOME 0x550000010000ull

#define BS_CHUNK_SIZE 65536u
#define BS_MAX_CHUNKS 4096u
#define BS_BITMAP_WORDS (BS_MAX_CHUNKS / 64u)
/* Where in an arena's first page the path of the run's log stands, NUL-terminated, by the supervisor; empty if it does not fit. */
#define BS_ARENA_LOG 2048u
/*
 * Where contents are kept: a Bloom filter of the files that were read, behind the first page, by the supervisor. A file has two
 * bits; none is ever cleared. See bs_arena.told.
 */
#define BS_ARENA_READS 4096u
#define BS_READS_BITS 524288u
#define BS_READS_HASH(device, inode) \
    ((((uint64_t)(uint32_t)(device) << 32) ^ (inode)) * 0x9e3779b97f4a7c15ull)
#define BS_READS_FIRST(hash) ((hash) >> 45)
#define BS_READS_SECOND(hash) ((hash) >> 26 & (BS_READS_BITS - 1))
/*
 * A file that was changed by somebody else than who made it stands there, too (by S and R), its inode number xored with the first of
 * these; with the second (by R) one that only its maker had read, when others may have got its descriptor.
 */
#define BS_READS_CHANGED 0x5bd1e9952545f491ull
#define BS_READS_LENT 0x3c6ef372fe94f82bull
#define BS_ARENA_HEADER 69632u /* chunk i starts at BS_ARENA_HEADER + i * BS_CHUNK_SIZE */

/*
 * A deliberate ungated call: `getpriority(BS_MAGIC_WHICH, request, argument)`, an impossible `which`, so that a kernel without our
 * filter answers EINVAL and nothing happens. Requests:
 */
#define BS_MAGIC_WHICH 0x62736d67
#define BS_MAGIC_ANNOUNCE \
    1 /* argument: index of the caller's chunk; tells the supervisor who owns it (pid namespaces). 0 */
#define BS_MAGIC_ARENA \
    2 /* answered with a new descriptor of the arena (its path is out of the caller's reach) */
#define BS_MAGIC_DRAIN 3 /* answered with 0 once at least one chunk is free again */
/*
 * A file is about to change; answered once its content has been kept, or need not be. Argument: its path; 4th: the directory
 * descriptor in the low half, its device (as in bs_ident) in the high half; 5th: BS_CHANGE_*; 6th: its inode.
 */
#define BS_MAGIC_PRESERVE 4

/* What is about to happen to a file, in BS_MAGIC_PRESERVE. */
#define BS_CHANGE_WRITE 1u  /* it is written to, in place; who does it does not read it */
#define BS_CHANGE_UPDATE 2u /* the same, but it may be read first */
#define BS_CHANGE_REMOVE 3u /* it loses this name */
#define BS_CHANGE_NAME \
    4u /* nothing but a name changes, or what it leads to: what was read by names is to be looked at before */
#define BS_CHANGE_PART \
    5u /* WRITE, by the first who does so in the run, and some of what it holds may stay */
#define BS_CHANGE_KIND 0xffu /* mask of the above */
#define BS_CHANGE_ITSELF \
    256u /* the path's last component is not followed if it is a symbolic link */

/* Arena flags, set by the supervisor, read by recorders. */
#define BS_ARENA_GUARDED 1u /* the guard is on: magic calls are answered */
#define BS_ARENA_PIDNS \
    2u /* some recorded process is in another pid namespace: announce every chunk */
#define BS_ARENA_STRICT \
    4u /* --guard=strict: the guard logs every watched call; recorders log only what it doesn't watch */
#define BS_ARENA_ALL_OPS \
    8u /* --suppress=off: log every read and write, not only the first per descriptor */
#define BS_ARENA_CLOSED 16u /* the run has ended or was detached: take no chunk, log nothing */
#define BS_ARENA_KEEP \
    32u /* contents are kept: ask with BS_MAGIC_PRESERVE (if guarded) before a file changes */

/* First page of the arena. Written by: S supervisor, R recorders. */
struct bs_arena {
    uint64_t magic;   /* S, once */
    uint32_t version; /* S, once: BS_ABI_VERSION; a recorder of another version mutes itself */
    uint32_t flags;   /* S: BS_ARENA_*; R: BS_ARENA_PIDNS (atomic or) */
    uint32_t chunks;  /* S: chunks that exist (are allocated in the file), grows */
    uint32_t
        wanted; /* R: raised (set to 1) when fewer than a few chunks were free; S clears it and adds chunks */
    uint64_t lost;    /* R: operations that could not be logged, for whatever reason (atomic add) */
    uint64_t started; /* S: bs time when the arena was made */
    uint32_t epochs;  /* R: atomic counter, source of bs_chunk.epoch */
    uint32_t
        dry; /* S: not 0 while no chunk is free and none can be made or drained: who waits for one waits in vain */
    uint64_t env_seen
        [64]; /* R: hashes of environments already logged in full (racy; a duplicate is harmless) */
    uint64_t free
        [BS_BITMAP_WORDS]; /* bit set: chunk is free and zeroed. R clears (atomic and), S sets */
    uint64_t full
        [BS_BITMAP_WORDS]; /* bit set: the owner will append no more. R sets (atomic or), S clears */
    uint64_t pad1[2];
    /*
     * Where contents are kept; both alone in their cache line. Whatever was logged that may be a read, or change what names mean, is
     * counted after it was logged: in told (atomic add; R, S), from 1. Of the first `known` (S) of these, every file that was read is in
     * the filter; 0 again where that can't be told any more.
     */
    uint64_t told;
    uint64_t known;
    uint64_t pad2[6];
};

/* First bytes of a chunk. Written by its owner when it takes the chunk; all zero while free. */
struct bs_chunk {
    uint32_t magic;
    uint32_t index; /* which chunk of the arena */
    uint32_t pid;   /* thread group id as the owner sees it (getpid) */
    uint32_t
        tid; /* as the owner sees it (gettid); 0 in a chunk of the guard, whose records carry bs_who; with
                        BS_TID_UNTOLD a number of its own, of a thread that could not ask */
    uint64_t
        epoch; /* one number per recorder start in this run (a fork child gets a new one); 0 for the guard */
    uint64_t taken; /* bs time */
    uint32_t
        ppid; /* who made this process, as far as its recorder knows; else getppid when that started */
    uint32_t seq; /* 0, 1, 2 … among the chunks of this (epoch, thread) */
    uint64_t
        next; /* offset from the chunk's start where the next record goes; advanced by an unlocked xadd. May exceed
                        BS_CHUNK_SIZE: then the last reservation did not fit and is no record */
    uint32_t
        host_pid; /* the owner's pid as the supervisor sees it, once announced (S) or, without a guard, found (R); else 0 */
    uint32_t flags;
    uint64_t pad;
};

/* Above any thread's number: whether such a thread lives is not known, only whether its process does. */
#define BS_TID_UNTOLD 0x20000000u

/* States of a record. Memory not yet reached is all zero. */
#define BS_RESERVED 1u /* arguments are valid, the outcome is not known (yet) */
#define BS_DONE 2u     /* result is valid */

/* Record flags. */
#define BS_F_WHO 1u   /* a bs_who follows the header (records written by the supervisor) */
#define BS_F_IDENT 2u /* a bs_ident follows (after bs_who) */
#define BS_F_CUT 4u   /* a string did not fit and was cut */
#define BS_F_MORE 8u  /* ARGS, ENV: the last string continues in the next record of this op */
#define BS_F_PREDICTED \
    16u /* result was concluded by the supervisor from the file system, not observed */
#define BS_F_RESOLVED 32u /* path is absolute, as the supervisor resolved it for the caller */
#define BS_F_CHILD 64u    /* written by a CLONE_VM child into this chunk; not its owner's */
#define BS_F_OWN 128u /* OPEN: to read a file that this process has made, and nobody else changed */

/*
 * One operation: header, [bs_who], [bs_ident], then the op's NUL-terminated strings; size is a multiple of 8.
 * time is the time-stamp counter when the call began (a sequence number above the last seen counter where it can't be read).
 */
struct bs_record {
    uint16_t state;
    uint16_t op;    /* enum bs_op */
    uint16_t size;  /* whole record in bytes */
    uint16_t flags; /* BS_F_* */
    uint64_t time;
    int32_t fd;
    int32_t arg;
    int32_t result; /* >= 0, or -errno */
    uint32_t aux;
};

/* Who did it, in records that the supervisor wrote. Ids as the supervisor sees them. */
struct bs_who {
    uint32_t pid, tid;
    uint32_t nr;   /* system call number */
    uint32_t arch; /* AUDIT_ARCH_* */
};

/* A file and its content state. Times in ns since 1970; birth is 0 where unknown. */
struct bs_ident {
    uint64_t dev, ino;
    int64_t size, mtime, ctime, birth;
    uint32_t mode, nlink;
};

/*
 * Operations. X(name, number, strings, "fields"): how many strings follow (9: a list until the record's end). Unless said otherwise,
 * fd is a directory descriptor (AT_FDCWD for none), the string is a path as the program gave it, result is the call's.
 */
#define BS_OPS(X) \
    X(START, 1, 0, \
      "first record of a recorder in a process: fd pid, arg ppid, aux 1 if after fork without " \
      "exec") \
    X(OPEN, 10, 1, \
      "arg flags, aux mode, result descriptor; ident: the file before the call (guard, writers)") \
    X(CLOSE, 11, 0, \
      "fd descriptor; ident: the file as it is now, if this process had opened it for writing") \
    X(CLOSE_RANGE, 12, 0, "fd first, aux last (unsigned), arg flags") \
    X(READ, 13, 0, "fd descriptor; the first successful read since it was opened") \
    X(WRITE, 14, 0, "fd descriptor; the first successful write since it was opened") \
    X(MAP, 15, 0, "fd descriptor, arg PROT_*, aux MAP_*") \
    X(DUP, 16, 0, \
      "fd old, result new, arg O_CLOEXEC or 0; aux 1: new was closed first (dup2, dup3)") \
    X(CLOEXEC, 17, 0, "fd descriptor, arg 1 set, 0 cleared") \
    X(TRUNCATE, 18, 1, \
      "path; or, with fd >= 0 and an empty path, ftruncate; ident: the file before, of a path") \
    X(COPY, 19, 0, "fd from, arg to: sendfile, splice, tee, copy_file_range, FICLONE") \
    X(STAT, 20, 1, "arg AT_* flags; an empty path is fd itself") \
    X(ACCESS, 21, 1, "arg mode, aux AT_* flags") \
    X(READLINK, 22, 1, "") \
    X(LIST, 23, 0, "fd directory: its entries were read (first time)") \
    X(RENAME, 24, 2, \
      "fd and arg: the two directories, aux RENAME_*; ident: of the target before, if it existed") \
    X(LINK, 25, 2, \
      "fd and arg: the two directories, aux AT_* flags: old, new; ident: of the file before") \
    X(SYMLINK, 26, 2, "fd directory: target text, path of the link") \
    X(UNLINK, 27, 1, "arg AT_REMOVEDIR for a directory; ident: of the file before") \
    X(MKDIR, 28, 1, "aux mode") \
    X(MKNOD, 29, 1, "aux mode; S_IFIFO makes a channel") \
    X(META, 30, 1, \
      "arg BS_META_*: mode, owner, times or attributes of path, or of fd if empty; aux AT_* " \
      "flags;" \
      " ident: of the file before") \
    X(CHDIR, 31, 2, \
      "path, or fd if the path is empty; second string: the directory after it, absolute") \
    X(CHROOT, 32, 1, "path") \
    X(MOUNT, 33, 2, "source, target; arg 1: unmounted; aux MS_* flags") \
    X(PIVOT, 34, 2, "new root, where the old is put") \
    X(NAMESPACE, 35, 0, "unshare or setns: aux CLONE_NEW* flags") \
    X(FORK, 40, 0, "result child pid; aux clone flags") \
    X(VFORK, 41, 0, \
      "what follows up to VFORKED in this thread is done by the child; arg BS_SPAWN_*") \
    X(VFORKED, 42, 0, "result child pid or -errno") \
    X(EXEC, 43, 1, \
      "aux AT_* flags; arg argc; preceded by its ARGS and ENV. Reserved for ever if it " \
      "succeeded; with BS_F_CHILD, result is" \
      " the child's own pid then") \
    X(ARGS, 44, 9, \
      "argument strings for the next EXEC of this thread; aux their bytes (0: up to the padding)") \
    X(ENV, 45, 9, \
      "fd, arg: low, high half of the environment's hash; no strings: as logged before by that " \
      "hash;" \
      " aux as in ARGS") \
    X(WAIT, 46, 0, "result pid, arg wait status; aux 1 if it was only looked at (WNOWAIT)") \
    X(EXIT, 47, 0, "arg exit status") \
    X(THREAD, 48, 0, "fd, arg: low, high half of the handle; aux BS_THREAD_*") \
    X(KILL, 49, 0, "fd pid, arg signal") \
    X(PIPE, 60, 0, "fd read end, arg write end, aux flags") \
    X(SOCKET, 61, 0, "fd domain, arg type, result descriptor") \
    X(SOCKETPAIR, 62, 0, "fd and arg: the two ends, aux type") \
    X(CONNECT, 63, 0, "fd socket; aux bytes of sockaddr follow") \
    X(BIND, 64, 0, "fd socket; aux bytes of sockaddr follow") \
    X(ACCEPT, 65, 0, "fd socket, result descriptor; aux bytes of the peer's sockaddr follow") \
    X(LISTEN, 66, 0, "fd socket") \
    X(PASS, 67, 0, "fd socket, arg descriptor sent (aux 0) or received (aux 1)") \
    X(MEMFD, 68, 1, "name; result descriptor") \
    X(EVENTFD, 69, 0, "result descriptor of something that carries no file data; arg kind") \
    X(LOAD, 70, 1, "a library was loaded by dlopen: its path from the link map") \
    X(LOST, 80, 0, "aux operations could not be logged here; arg BS_LOST_*") \
    X(OPAQUE, 81, 1, "an interface was used that can't be decoded: its name") \
    X(LINK_TEXT, 82, 2, \
      "fd directory: path and text of a symbolic link that the thread's next call removes; " \
      "resolver: of a link as it is after the run") \
    X(IDENT, 90, 1, \
      "what the file system says of path at this time (arg AT_SYMLINK_NOFOLLOW: of the link " \
      "itself);" \
      " result -errno and no ident if it is not there") \
    X(GONE, 91, 0, "supervisor: fd pid ended, arg wait status, aux 1 if the status is known") \
    X(BORN, 92, 2, \
      "supervisor: fd pid first seen, arg its parent; strings: executable, current directory ('' " \
      "unknown)") \
    X(HOLD, 93, 1, \
      "supervisor: process fd pid holds descriptor arg, aux how it is open (O_ACCMODE, O_PATH, " \
      "O_CLOEXEC," \
      " or BS_HOLD_UNKNOWN): what /proc says of it. arg -1: it holds only the result ones that " \
      "follow," \
      " or (aux 1) the EXEC that comes next leaves it only those") \
    X(KEPT, 94, 1, \
      "supervisor: the content of path (resolved, absolute), as ident says, before who's call " \
      "changes it: in file" \
      " ID.kept/arg, aux BS_KEPT_*; result -errno if it could not be kept") \
    X(RUNS, 95, 2, \
      "resolver: the first bytes of a program (resolved, absolute) name what the kernel runs it " \
      "with, as written there")

enum bs_op {
#define BS_OP_ENUM(name, number, strings, doc) BS_OP_##name = number,
    BS_OPS(BS_OP_ENUM)
#undef BS_OP_ENUM
};

enum { BS_META_MODE = 1, BS_META_OWNER = 2, BS_META_TIMES = 3, BS_META_ATTR = 4 };
enum {
    BS_SPAWN_VFORK = 1,
    BS_SPAWN_POSIX = 2,
    BS_SPAWN_SYSTEM = 3,
    BS_SPAWN_POPEN = 4,
    BS_SPAWN_CLONE = 5
};
enum { BS_THREAD_CREATE = 1, BS_THREAD_START = 2, BS_THREAD_JOIN = 3 };
#define BS_HOLD_UNKNOWN 0x80000000u
/* Names of what can't be decoded, of those that both recorder and guard notice. */
#define BS_OPAQUE_TRACER_MEMORY "PTRACE_POKEDATA"
#define BS_OPAQUE_TRACER_REGISTERS "PTRACE_SETREGS"
#define BS_OPAQUE_TRACER_EMULATION "PTRACE_SYSEMU"
#define BS_OPAQUE_ACCT "acct"
#define BS_OPAQUE_SWAPON "swapon"
#define BS_OPAQUE_QUEUE "POSIX message queue"
#define BS_OPAQUE_HANDLE "open_by_handle_at"
#define BS_OPAQUE_MEMORY "process_vm_writev"
#define BS_OPAQUE_DESCRIPTOR "pidfd_getfd"
#define BS_OPAQUE_FANOTIFY "fanotify with descriptors"
#define BS_OPAQUE_RING "io_uring without the guard"
/* How a content is kept. A link is the file itself, which who has it open may still write to: ident's size and mtime tell. */
enum { BS_KEPT_LINK = 1, BS_KEPT_CLONE = 2, BS_KEPT_COPY = 3 };
enum { BS_LOST_NO_CHUNK = 1, BS_LOST_SANDBOX = 2, BS_LOST_TOO_LONG = 3 };

_Static_assert(sizeof(struct bs_record) == 32, "record header");
_Static_assert(sizeof(struct bs_chunk) == 64, "chunk header");
_Static_assert(sizeof(struct bs_arena) <= BS_ARENA_LOG, "arena header");

#endif
