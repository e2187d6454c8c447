/*
 * The binary interface of backstory: the memory that recorded processes share with the supervisor,
 * and the records that a run's log consists of.
 *
 * Three parties use this header:
 *
 *  - A RECORDER is the preload library inside a recorded process. It appends records to a chunk.
 *  - The SUPERVISOR is outside. It makes the arena, hands out chunks, copies them to the log, and
 *    writes the guard's records to chunks of its own.
 *  - A READER (crates/abi/src, crates/eventlog) decodes the log, possibly years later.
 *
 * Memory of one run, the ARENA, is one file that all of them map:
 *
 *     0        4096                   BS_ARENA_HEADER
 *     | bs_arena | filter of read files | chunk 0 | chunk 1 | ... each of BS_CHUNK_SIZE
 *
 *     chunk:  | bs_chunk | bs_record ... | bs_record ... | zeros |
 *     record: | bs_record | bs_caller? | bs_ident? | strings | padding to 8 bytes |
 *
 * Hard rules:
 *
 *  1. This header is the only definition. crates/abi/src mirrors it for Rust, and a test compares
 *     every size, offset and constant.
 *  2. All fields are little-endian, of fixed width, and naturally aligned.
 *  3. One thread appends to a chunk, a child on its stack included. It reserves room with one
 *     `xadd` without a lock prefix: a signal handler that logs in between gets another record.
 *  4. A record's size is written first and its state last. Free memory is zero. A reader therefore
 *     finds a whole record or a hole, at whatever instruction the writer was killed.
 *  5. Whoever reads shared memory believes nothing in it: every process of the run can write to it.
 *  6. Chunks go to the log verbatim, so records are a durable format. A change raises
 *     BS_ABI_VERSION and is described in docs/formats/log.md. Old versions stay readable.
 *
 * In the comments below, S marks what the supervisor writes and R what recorders write.
 */
#ifndef BACKSTORY_ABI_H
#define BACKSTORY_ABI_H

#include <stdint.h>

#define BS_ABI_VERSION 1u
#define BS_ARENA_MAGIC 0x616e657261534242ull /* "BBSarena" */
#define BS_CHUNK_MAGIC 0x4b4e4843u           /* "CHNK" */

/* ---- how a process finds the recorder and the arena -------------------------------------- */

/* Variables of a recorded program. The recorder hides both from it, and adds them again at exec. */
#define BS_ENV_ARENA "BACKSTORY_ARENA" /* path of the arena */
#define BS_ENV_PRELOAD "LD_PRELOAD"    /* the last entry is the recorder's, a path that ends so: */
#define BS_PRELOAD_NAME "linux-backstory.so"

/*
 * The directory of that path. Every loader replaces the first by its own library directory, so that
 * entry is for any program. To do so, glibc's loader asks the kernel which program it loads, and
 * that takes 20 us. The second is for programs that are known to have the 64-bit loader.
 */
#define BS_PRELOAD_ANY "$LIB"
#define BS_PRELOAD_WIDE "64"

/*
 * Address at which the recorder is linked: below every position-independent executable. The gate,
 * the one `syscall` instruction that the guard's filter lets through, is at a fixed offset.
 */
#define BS_HOME 0x550000010000ull

/* ---- the arena --------------------------------------------------------------------------- */

#define BS_CHUNK_SIZE 65536u
#define BS_MAX_CHUNKS 4096u
#define BS_BITMAP_WORDS (BS_MAX_CHUNKS / 64u)

/* Offset of the path of the run's log, NUL-terminated. S; empty if the path does not fit. */
#define BS_ARENA_LOG 2048u

/*
 * Offset of a Bloom filter of the files that were read, for runs that store contents. S. A file
 * has two bits, and no bit is ever cleared. See bs_arena.filtered.
 */
#define BS_ARENA_READS 4096u
#define BS_READS_BITS 524288u
#define BS_READS_HASH(device, inode) \
    ((((uint64_t)(uint32_t)(device) << 32) ^ (inode)) * 0x9e3779b97f4a7c15ull)
#define BS_READS_FIRST(hash) ((hash) >> 45)
#define BS_READS_SECOND(hash) ((hash) >> 26 & (BS_READS_BITS - 1))

/*
 * The filter has two more kinds of entry. Each has the inode number xored with a constant:
 *
 *  - BS_READS_CHANGED (S, R): a file that another process than its maker changed.
 *  - BS_READS_SHARED (R): a file that only its maker has read, once other processes may have its
 *    descriptor.
 */
#define BS_READS_CHANGED 0x5bd1e9952545f491ull
#define BS_READS_SHARED 0x3c6ef372fe94f82bull

/* Chunk i starts at BS_ARENA_HEADER + i * BS_CHUNK_SIZE. */
#define BS_ARENA_HEADER 69632u

/* Flags of the arena. S, but for BS_ARENA_PIDNS. */
#define BS_ARENA_GUARDED 1u  /* the guard is on: requests by BS_MAGIC_WHICH are answered */
#define BS_ARENA_PIDNS 2u    /* a process is in another pid namespace: announce each chunk (R) */
#define BS_ARENA_STRICT 4u   /* --guard=strict: the guard logs every call that it watches */
#define BS_ARENA_ALL_OPS 8u  /* --suppress=off: log all reads and writes, not only the first */
#define BS_ARENA_CLOSED 16u  /* the run has ended or was detached: take no chunk, log nothing */
#define BS_ARENA_KEEP 32u    /* contents are stored: use BS_MAGIC_PRESERVE before a change */
#define BS_ARENA_ORDERED 64u /* --durability=ordered: use BS_MAGIC_COMMIT before writing through */
#define BS_ARENA_FULL 128u /* --outputs=full: deep records have the bytes that left, not a digest */
#define BS_ARENA_SHALLOW 256u /* the deep log has ended: write no more deep records */
#define BS_ARENA_BROKER 512u  /* a broker executes set-user-id programs: use BS_MAGIC_BROKER */

/*
 * --guard=auto: the first chunk is no chunk but what the run knows about programs (struct
 * bs_programs). The socket of the supervisor has the arena's path with BS_SOCKET_SUFFIX. That of
 * the keeper has the path with BS_KEEPER_SUFFIX.
 */
#define BS_ARENA_AUTO 1024u
#define BS_SOCKET_SUFFIX ".guard"
#define BS_KEEPER_SUFFIX ".keep" /* not longer: a path has room for both or for none */

/* --time=exact: deep recorders record the time that a program takes without a system call. */
#define BS_ARENA_EXACT 2048u

/* The arena's first page. */
struct bs_arena {
    uint64_t magic;   /* S, once */
    uint32_t version; /* S, once; a recorder of another BS_ABI_VERSION logs nothing */
    uint32_t flags;   /* BS_ARENA_* */
    uint32_t chunks;  /* S: how many chunks the file has; grows */
    uint32_t wanted;  /* R: set to 1 when few chunks are free. S: clears it and adds chunks */
    uint64_t lost;    /* R, atomic add: operations that could not be logged */
    uint64_t started; /* S: time-stamp counter when the arena was made */
    uint32_t epochs;  /* R, atomic add: the source of bs_chunk.epoch */
    /* S: not 0 while no chunk is free and none can become free. A recorder then does not wait. */
    uint32_t dry;
    /* R: hashes of the environments that were logged in full. A race logs one twice: harmless. */
    uint64_t env_seen[64];
    /* Bit set: the chunk is free and zero. R, atomic and: takes it. S, atomic or: frees it. */
    uint64_t free[BS_BITMAP_WORDS];
    /* Bit set: the owner appends no more. R, atomic or. S, atomic and: clears it. */
    uint64_t full[BS_BITMAP_WORDS];
    uint64_t deep_lost; /* R, atomic add: deep records that were lost */
    uint32_t kept;      /* R and S, atomic add: the number of the next preserved content */
    /*
     * S: where the path of the directory of preserved contents lies in the first page. It ends
     * with a NUL. 0 until the directory exists, or if the path does not fit.
     */
    uint32_t kept_path;
    /*
     * For runs that store contents, alone in a cache line. `reported` (R and S, atomic add) counts
     * records after they were logged. It counts those that may be a read, or that may change the
     * meaning of a path. The filter has every file that the first `filtered` (S) of them read.
     * `filtered` becomes 0 when that is no longer true.
     */
    uint64_t reported;
    uint64_t filtered;
    uint64_t pad2[6];
};

/* ---- verdicts ---------------------------------------------------------------------------- */

/*
 * Whether a program or a library makes all its system calls through the C library
 * (docs/design/guard-auto.md). An entry is about one content: size and times are as in bs_ident.
 */
struct bs_verdict {
    uint64_t dev, ino;
    int64_t size, mtime, ctime;
    uint64_t verdict; /* BS_VERDICT_*; written last. 0: the entry is free */
};
#define BS_VERDICT_PROGRAM 1ull /* about a program, with the libraries that it needs */
#define BS_VERDICT_LIBRARY 2ull /* about a library alone */
/*
 * About a library that a process loads while it runs, with the libraries that it needs. The high
 * half is the hash of the path to which the loader's cache leads from the last name of that path.
 * BS_NO_PATH: the cache leads to no path, or to several.
 */
#define BS_VERDICT_LOADED 3ull
#define BS_VERDICT_NOT 4ull  /* not plain */
#define BS_VERDICT_KIND 3ull /* mask of the kinds */
/*
 * Of a plain program, or of a library that is loaded: what it may do inside libc without an open
 * before, where no wrapper is.
 */
#define BS_VERDICT_CONNECTS 8ull /* `connect` and `bind` */
#define BS_VERDICT_LOADS 16ull   /* libraries are loaded */
/* Of a library that is loaded: it needs none but the C library, which is there. */
#define BS_VERDICT_ALONE 32ull
#define BS_NO_PATH 0u

#define BS_VERDICTS_MAGIC 0x7374636964726576ull /* "verdicts" */
#define BS_VERDICTS 896u
/* A content is at one of as many entries, from BS_READS_HASH(dev, ino) >> 40 on. */
#define BS_VERDICT_TRIES 8u

struct bs_verdicts {
    uint64_t magic;
    uint64_t pad;
    struct bs_verdict cache; /* the loader's cache for which the verdicts about programs hold */
    struct bs_verdict entry[BS_VERDICTS];
};

/* ---- starts ------------------------------------------------------------------------------ */

/*
 * --guard=auto: a recorder that begins in a program logs what the loader did: it read its cache,
 * and loaded the libraries. A program whose libraries are a known set takes no chunk for this. It
 * fills in a bs_start, from which the supervisor makes the chunk that the recorder would have made.
 */
#define BS_LOADER_CACHE "/etc/ld.so.cache"
/* The descriptor of the cache in these records: one that no process has. */
#define BS_LOADER_DESCRIPTOR 1048576

/* Libraries that a recorder logged in this order. S. Once written, a set does not change. */
#define BS_LIBRARY_SETS 16u
#define BS_LIBRARY_NAMES 504u
struct bs_library_set {
    uint64_t used;                   /* bytes of `names`; written last. 0: the set is free */
    uint8_t names[BS_LIBRARY_NAMES]; /* paths, each with its NUL */
};

/* The start of a program. R fills it in, S frees it. */
#define BS_STARTS 240u
struct bs_start {
    /* 0: free. Otherwise the process id in the high half, and BS_START_* in the low half. */
    uint64_t state;
    uint64_t epoch, time; /* as in a chunk */
    uint32_t ppid;
    uint32_t set; /* index of the library set */
};
#define BS_START_TAKEN 1ull  /* R is filling it in */
#define BS_START_FILLED 2ull /* R has filled it in */

/* ---- the filter -------------------------------------------------------------------------- */

/*
 * --guard=auto: the instructions of the guard's filter (`struct sock_filter`), for a process that
 * installs it. S, before the command starts. A process that finds none here, or damaged ones,
 * requests them by BS_GUARD_FILTER.
 */
#define BS_FILTER_BYTES 6136u
struct bs_filter_code {
    uint64_t size; /* bytes of `code`, at most BS_FILTER_BYTES; written last. 0: not published */
    uint8_t code[BS_FILTER_BYTES];
};

/* The first chunk of a run with --guard=auto. */
struct bs_programs {
    struct bs_verdicts verdicts;
    struct bs_filter_code filter;
    struct bs_library_set sets[BS_LIBRARY_SETS];
    struct bs_start starts[BS_STARTS];
};

/* ---- requests to the supervisor ---------------------------------------------------------- */

/*
 * A recorder asks the supervisor by `getpriority(BS_MAGIC_WHICH, request, argument)`, outside the
 * gate. No `which` has this value: a kernel without the guard's filter returns EINVAL, and nothing
 * happens.
 */
#define BS_MAGIC_WHICH 0x62736d67

/* Argument: the index of the caller's chunk. Its owner becomes known across pid namespaces. */
#define BS_MAGIC_ANNOUNCE 1
/* Returns a new descriptor of the arena, whose path the caller cannot reach. */
#define BS_MAGIC_ARENA 2
/* Returns 0 once at least one chunk is free. */
#define BS_MAGIC_DRAIN 3
/*
 * A file is about to change. Returns once its content is stored, or need not be.
 * Argument: its path. 4th: the directory descriptor in the low half, the device (as in bs_ident)
 * in the high half. 5th: BS_CHANGE_*. 6th: the inode.
 */
#define BS_MAGIC_PRESERVE 4
/* Returns 0 once everything logged so far is durable, or cannot be made so. */
#define BS_MAGIC_COMMIT 5
/*
 * A command line of a shell begins or ends. Returns once the supervisor has looked at the shell. At
 * an end it returns once the line's log is finalized, or after a moment. Argument: the mark, a path
 * that begins with BS_LINE_MARK (see docs/design/shell.md).
 */
#define BS_MAGIC_LINE 6
#define BS_LINE_MARK "/dev/null/backstory/line/"

/*
 * `record --functions`: returns a descriptor of the table (struct bs_function_table) of a file. The
 * file is mapped at the address in the argument. -ENOENT: the file has no table.
 */
#define BS_MAGIC_FUNCTIONS 7

/*
 * A program whose file gives a privilege is to be executed by the broker (docs/design/shell.md).
 * Argument 0: returns 0 if the caller may use the broker. Argument 1: returns a socket, whose other
 * end the broker gets. -EPERM: the caller executes the program itself.
 */
#define BS_MAGIC_BROKER 8

/* Returns 0: the caller has the filter. Without it, the kernel returns EINVAL. */
#define BS_MAGIC_FILTERED 9

/*
 * The byte engine executes programs in its own process (`record --bytes`). Argument: the address of
 * its list of the program's calls that are under way (bytes/c/under_way.c). All other calls are its
 * own.
 */
#define BS_MAGIC_SIMULATOR 10

/*
 * `record --deep --time exact`: a program begins, or has loaded a library. Its instructions that
 * read the time-stamp counter or identify the processor are to lead to the code at the address in
 * the argument. With the lowest bit set, the code may be in use and stays as it is. Returns 0 if
 * all of the instructions lead there. -ENOTSUP: not all of them do.
 */
#define BS_MAGIC_INSTRUCTIONS 11

/*
 * A recorder asks the simulator that executes it, by a client request of Valgrind. Argument: the
 * address after the instruction of the gate. The answer is 1 if the simulator tells the supervisor
 * which calls are the program's, and which come from the gate.
 */
#define BS_RECORDS_IN_SIMULATOR 0x42530001
/* The same: is the page readable that has the address in the argument? */
#define BS_READABLE_IN_SIMULATOR 0x42530002
/*
 * The same: the argument is the first of the addresses to which redirected calls of functions
 * return (bs_return_stubs). The stack has one of them in the place of the caller's address, which
 * is in memory, BS_RETURN_DISTANCE behind it. The addresses have BS_RETURN_STUBS bytes.
 */
#define BS_RETURNS_IN_SIMULATOR 0x42530003
#define BS_RETURN_STUBS 0x10000
#define BS_RETURN_DISTANCE 0x1000000

/*
 * --guard=auto: a process without the filter sends a request by the supervisor's socket. Each
 * message has one of these. A connection has one request, or BS_GUARD_FILTER and then
 * BS_GUARD_LISTENER.
 */
struct bs_guard_request {
    uint32_t kind; /* BS_GUARD_* */
    /*
     * Of a response: 0, or -errno. About a program or library: 1 if it is plain. About a library
     * that is loaded: 0, or the low half of its verdict (BS_VERDICT_LOADED).
     */
    int32_t result;
    uint32_t recorded; /* BS_GUARD_LISTENER: 1 if the program with the recorder goes on */
    /* BS_GUARD_PRESERVE: BS_CHANGE_*, the caller, and how it names the file (as in bs_ident) */
    uint32_t change;
    uint32_t tid;
    int32_t dir;
    uint64_t dev, ino;
};
#define BS_GUARD_PROGRAM 1u /* a descriptor of a program follows: is it plain? */
#define BS_GUARD_LIBRARY 2u /* the same for a library */
#define BS_GUARD_FILTER 3u  /* the response has the instructions of the filter after this struct */
/*
 * The caller's listener follows; the response: it is served. Without a response, the caller sends
 * the same request to the keeper's socket, as a datagram. That one gets no response.
 */
#define BS_GUARD_LISTENER 4u
/*
 * As BS_MAGIC_PRESERVE. A descriptor of the file follows, unless only names change. After this
 * struct stands the path; it is empty if `dir` is the file.
 */
#define BS_GUARD_PRESERVE 5u
/*
 * A library is about to be loaded. Its path follows this struct, and a descriptor of it. Without a
 * descriptor, the string is a name, which the loader's cache leads to a path. Paths stand behind a
 * response that the library is plain, each with its NUL: its own, and those of the libraries that
 * it needs.
 */
#define BS_GUARD_LOAD 6u

/*
 * The client that a recorder executes in the place of such a program. It lies in the directory of
 * the recorder. The first variable of its environment names the program.
 */
#define BS_CLIENT_NAME "client"
/* The files beside it that Node and R load in a recording of functions. */
#define BS_NODE_HOOKS "backstory-functions.cjs"
#define BS_R_HOOKS "backstory-functions.R"
/* The variable with the patterns of these functions, one a line. */
#define BS_ENV_FUNCTIONS "BACKSTORY_FUNCTIONS"
#define BS_ENV_PROGRAM "BACKSTORY_PROGRAM"

/* A message between client and broker. The two are of one build. */
struct bs_broker_message {
    uint32_t kind; /* BS_BROKER_* */
    int32_t value;
    uint64_t word;
};

/* From the client. */
#define BS_BROKER_HELLO 1u       /* value: its socket. word: its signal mask as it was */
#define BS_BROKER_DESCRIPTORS 2u /* value: how many follow in this message */
#define BS_BROKER_READY 3u       /* word: the signals that it got until the broker had joined it */
#define BS_BROKER_SIGNAL 4u      /* value: a signal that it got. word: the sender, or 0 */
#define BS_BROKER_REPORTED 10u   /* value: that of REPORT. It has reported all signals until then */
/* From the broker. */
#define BS_BROKER_WANTED 5u  /* value: number of descriptors that it wants; they follow */
#define BS_BROKER_STARTED 6u /* the program runs. word: the process id of its parent */
#define BS_BROKER_FAILED 7u  /* it does not: the client executes the program itself */
#define BS_BROKER_STOPPED 8u /* value: the signal that stopped it */
#define BS_BROKER_ENDED 9u   /* value: its status, as from wait(2) */
#define BS_BROKER_REPORT 11u /* value: a number. It shall report its signals and respond */

/* The change that is about to happen. */
#define BS_CHANGE_WRITE 1u    /* the caller writes to the file in place, and does not read it */
#define BS_CHANGE_UPDATE 2u   /* the same, but the caller may read the file first */
#define BS_CHANGE_REMOVE 3u   /* the file loses this path */
#define BS_CHANGE_NAME 4u     /* only a path changes, or the file to which it leads */
#define BS_CHANGE_PART 5u     /* WRITE, the first of the run, which may leave part of the content */
#define BS_CHANGE_KIND 0xffu  /* mask of the above */
#define BS_CHANGE_ITSELF 256u /* the path's last component is not followed if it is a link */

/* ---- chunks ------------------------------------------------------------------------------ */

/* The first bytes of a chunk. The owner writes them when it takes it; zero while it is free. */
struct bs_chunk {
    uint32_t magic; /* written last */
    uint32_t index; /* of the chunk in the arena */
    uint32_t pid;   /* getpid() of the owner */
    /*
     * gettid() of the owner. 0: a chunk of the guard, whose records have a bs_caller.
     * BS_TID_SUBSTITUTE and above: a thread that could not call gettid, by a number of its own.
     */
    uint32_t tid;
    uint64_t epoch; /* counts the recorders of the run: a fork child has its own; 0 for the guard */
    uint64_t taken; /* time-stamp counter */
    uint32_t ppid;  /* the process that made this one, if its recorder knows it; else getppid() */
    uint32_t seq;   /* 0, 1, 2 ... among the chunks of this epoch and thread */
    /*
     * Offset from the chunk's start at which the next record begins. It may exceed BS_CHUNK_SIZE:
     * then the last reservation did not fit and is no record.
     */
    uint64_t next;
    /* The owner's pid for the supervisor: announced (S), or found without a guard (R); else 0. */
    uint32_t host_pid;
    uint32_t flags; /* BS_CHUNK_DEEP, or 0 */
    uint64_t pad;
};

/* The chunk has deep records (struct bs_deep_record). It goes into the run's deep log. */
#define BS_CHUNK_DEEP 1u

/* Above every thread id of Linux. Whether such a thread lives is unknown; its process is known. */
#define BS_TID_SUBSTITUTE 0x20000000u

/* ---- records ----------------------------------------------------------------------------- */

/* States of a record. 0: memory that no record has reached. */
#define BS_RESERVED 1u /* the arguments are valid; the outcome is not known, or not yet */
#define BS_DONE 2u     /* the result is valid, too */

/* Flags of a record. */
#define BS_F_CALLER 1u     /* a bs_caller follows the header: the supervisor wrote the record */
#define BS_F_IDENT 2u      /* a bs_ident follows, after any bs_caller */
#define BS_F_CUT 4u        /* a string did not fit and was cut */
#define BS_F_MORE 8u       /* ARGS, ENV: the last string goes on in the next record of this op */
#define BS_F_PREDICTED 16u /* the supervisor concluded the result from the file system */
#define BS_F_RESOLVED 32u  /* the path is absolute, as the supervisor resolved it for the caller */
#define BS_F_CHILD 64u     /* a CLONE_VM child wrote it into the chunk of its parent's thread */
#define BS_F_PRIVATE 128u  /* OPEN for reading, of a file that only this process made and changed */

/*
 * One operation. This header is followed, in this order, by:
 *
 * - a bs_caller if BS_F_CALLER
 * - a bs_ident if BS_F_IDENT
 * - the strings of the op, each with its NUL
 * - padding to a multiple of 8 bytes
 *
 * `time` is the time-stamp counter when the call began. Where the counter must not be read, it is a
 * sequence number above the last counter that was read.
 */
struct bs_record {
    uint16_t state; /* BS_RESERVED or BS_DONE */
    uint16_t op;    /* enum bs_op */
    uint16_t size;  /* of the whole record, in bytes */
    uint16_t flags; /* BS_F_* */
    uint64_t time;
    int32_t fd; /* fd, arg, aux: see BS_OPS */
    int32_t arg;
    int32_t result; /* >= 0, or -errno */
    uint32_t aux;
};

/* The caller, in a record of the supervisor. Ids are those of the supervisor's namespace. */
struct bs_caller {
    uint32_t pid, tid;
    uint32_t nr;   /* number of the system call */
    uint32_t arch; /* AUDIT_ARCH_* */
};

/* A file and the state of its content, from statx. Times are in ns since 1970; birth 0: unknown. */
struct bs_ident {
    uint64_t dev, ino;
    int64_t size, mtime, ctime, birth;
    uint32_t mode, nlink;
};

/* ---- deep records ------------------------------------------------------------------------ */

/*
 * One call with all that entered or left by it. docs/formats/deep.md describes the fields, the
 * sections that follow, and the facts.
 */
struct bs_deep_record {
    uint8_t state; /* BS_RESERVED or BS_DONE */
    uint8_t flags; /* BS_DEEP_MORE and its like */
    uint16_t call; /* number of the system call, or of a fact */
    uint32_t size; /* of the record with its sections; a multiple of 8 */
    uint64_t time; /* time-stamp counter before the call */
    uint32_t took; /* in units of 64 counts */
    int32_t fd;
    int64_t result;
    uint64_t a, b;
};

/* The head of a section. The bytes follow, padded to 8. A kind of 0 ends the record. */
struct bs_deep_section {
    uint16_t kind;
    uint16_t arg; /* which argument of the call points to the bytes */
    uint32_t length;
};

/* Flags of a deep record. */
#define BS_DEEP_MORE 1u /* the call goes on in the thread's next record with this time and call */
#define BS_DEEP_CUT 4u  /* bytes are missing */
#define BS_DEEP_HANDLER 8u /* a signal handler made the call */

/* Kinds of sections. */
#define BS_DEEP_ENTERED 1u
#define BS_DEEP_LEFT 2u
#define BS_DEEP_LEFT_DIGEST 3u
#define BS_DEEP_FILE 4u
#define BS_DEEP_PATH 5u
#define BS_DEEP_ADDRESS 6u
#define BS_DEEP_CONTROL 7u
#define BS_DEEP_MESSAGE 8u
#define BS_DEEP_IDENT 9u
#define BS_DEEP_WORDS 10u

#define BS_DEEP_NO_NAME 63u /* `?`: the PATH of a DESCRIPTOR that has no name */

/* Facts: calls that are no system call. */
#define BS_DEEP_BEGIN 1000u
#define BS_DEEP_DESCRIPTOR 1001u
#define BS_DEEP_SIGNAL 1002u
#define BS_DEEP_SIGNAL_END 1003u
#define BS_DEEP_GAP 1004u
#define BS_DEEP_SHALLOW 1005u
#define BS_DEEP_CLOCK 1006u
#define BS_DEEP_PROCESSOR 1007u
#define BS_DEEP_UNTIMED 1008u
#define BS_DEEP_COUNTER 1009u
#define BS_DEEP_CPUID 1010u
#define BS_DEEP_UNCOUNTED 1011u

/* How CLOCK has its time: `b`. */
#define BS_DEEP_SINCE 0u /* since the thread's last CLOCK of this clock */
#define BS_DEEP_WHOLE 1u /* whole, and later ones count from it */
#define BS_DEEP_ASIDE 2u /* whole, in a signal handler; none counts from it */

/* The kinds of redirected instructions. COUNTER has one of the first two. */
#define BS_DEEP_RDTSC 0u
#define BS_DEEP_RDTSCP 1u
#define BS_DEEP_CPUID_INSTRUCTION 2u

/* How a stream begins: `a` of BEGIN. */
#define BS_DEEP_BY_EXEC 0u
#define BS_DEEP_BY_FORK 1u
#define BS_DEEP_BY_THREAD 2u

/* ---- functions --------------------------------------------------------------------------- */

/*
 * Which functions of an executable file or a library are recorded (`record --functions`). S. All
 * processes of the run map it. Addresses are those that the file was linked for.
 */
struct bs_function_table {
    uint64_t magic; /* BS_FUNCTIONS_MAGIC */
    uint64_t bytes; /* of the whole table */
    uint64_t low;   /* the lowest address of the file's code */
    uint64_t size;  /* of the code */
    uint64_t bits;  /* offset of the bits, one for each byte of the code: a function begins there */
    uint64_t sleds; /* offset of the sleds of the functions */
    uint32_t count; /* functions */
    uint32_t sled_count;
    /* The number of a function is this one plus its offset in the code. */
    uint32_t first;
    uint32_t signature_count; /* 0 without `--arguments` */
    uint64_t signatures;      /* offset of the signatures, sorted by number */
    uint64_t values;          /* offset of the values */
    uint64_t places;          /* offset of the places */
    uint64_t names;           /* offset of the names, each with its NUL */
    uint64_t targets;         /* offset of the functions whose calls can be redirected */
    uint64_t libraries;       /* offset of the patterns of libraries, each with its NUL; "" ends */
    uint32_t target_count;
    uint32_t pad;
};
#define BS_FUNCTIONS_MAGIC 0x736e6f6974636e66ull /* "fnctions" */

/* A function of a library that was compiled without hooks. Calls by symbol are redirected. */
struct bs_target {
    uint64_t address;
    uint32_t number;    /* of the function */
    uint32_t is_chosen; /* 1: the address is that of a resolver, which returns the function's */
};

/* A place at which the compiler left room for a call (`clang -fxray-instrument`). */
struct bs_sled {
    uint64_t address;
    uint32_t number; /* of the function */
    uint32_t kind;   /* as in the compiler's table: 0 entry, 1 exit, 2 jump to a function */
};

/* The parameters of a function, and its result. */
struct bs_signature {
    uint32_t number; /* of the function */
    uint16_t count;  /* parameters */
    uint16_t result; /* 1: a value for the result follows the parameters */
    uint32_t first;  /* index of the first value */
};

/* A value: a parameter, a result, the target of a pointer, or a member of a structure. */
struct bs_value {
    uint8_t kind;   /* see below */
    uint8_t size;   /* bytes, of a number or a structure */
    uint8_t count;  /* members of a structure; 1 if a pointer has a target */
    uint8_t places; /* of a parameter. Of a result: 1 if it is in a vector register */
    /*
     * Of a member: from the structure's beginning. Of a parameter or a result that points to data:
     * the bytes of its target's type, at least 1; negative if the type is constant. Otherwise 0.
     */
    int32_t offset;
    uint32_t name;  /* offset among the names */
    uint32_t first; /* index of the target or of the first member */
    uint32_t place; /* index of the parameter's first place */
};
enum {
    BS_VALUE_UNKNOWN = 0,
    BS_VALUE_SIGNED = 1,
    BS_VALUE_UNSIGNED = 2,
    BS_VALUE_FLOAT = 3,
    BS_VALUE_TEXT = 4, /* a pointer to characters */
    BS_VALUE_POINTER = 5,
    BS_VALUE_STRUCTURE = 6
};

/* The place of a parameter while the function is in a part of its code. */
struct bs_place {
    uint32_t from, to; /* offsets in the file's code; both 0: where the function begins */
    uint8_t base;      /* a register, by DWARF's number: 0 to 15 general, 17 to 32 vectors */
    uint8_t memory;    /* 1: in memory, at the register's content plus `offset` */
    uint16_t pad;
    int32_t offset;
};

/*
 * The words of CALLS. The two highest bits of an entry's first word say what it is. The others are
 * the time since the record's, in units of 64 counts. A word of 0 ends the entries.
 */
#define BS_CALLS_CALL 0x40000000u   /* the next word is the number of the function */
#define BS_CALLS_RETURN 0x80000000u /* of the last function that was called and has not returned */
/* Both bits: a call, as above, and its return. */
#define BS_CALLS_TIME 0x3fffffffu
/* In the number of a function: an interpreter runs it. */
#define BS_FUNCTION_INTERPRETED 0x80000000u

/* ---- operations -------------------------------------------------------------------------- */

/*
 * X(name, number, strings, "fields"). `strings` is how many strings follow; 9 means a list up to
 * the record's end. Unless the text says otherwise:
 *
 *  - fd is a directory descriptor, AT_FDCWD for none;
 *  - the string is a path as the program gave it;
 *  - result is the result of the call.
 *
 * Records without a word about the writer come from the recorder, from the guard, or from both. The
 * resolver is the part of the supervisor that looks at paths after the run.
 */
#define BS_OPS(X) \
    X(START, 1, 0, \
      "first record of a recorder in a process: fd pid, arg ppid, aux 1 if after fork without " \
      "exec") \
    X(OPEN, 10, 1, \
      "arg flags, aux mode, result descriptor; ident: the file before the call (guard, writers)") \
    X(CLOSE, 11, 0, \
      "fd descriptor; ident: the file as it is now, if this process opened it for writing") \
    X(CLOSE_RANGE, 12, 0, "fd first, aux last (unsigned), arg flags") \
    X(READ, 13, 0, "fd descriptor; the first successful read since it was opened") \
    X(WRITE, 14, 0, "fd descriptor; the first successful write since it was opened") \
    X(MAP, 15, 0, "fd descriptor, arg PROT_*, aux MAP_*") \
    X(DUP, 16, 0, \
      "fd old, result new, arg O_CLOEXEC or 0; aux 1: new was closed first (dup2, dup3)") \
    X(CLOEXEC, 17, 0, "fd descriptor, arg 1 set, 0 cleared") \
    X(TRUNCATE, 18, 1, \
      "path; or, with fd >= 0 and an empty path, ftruncate; ident: the file before, of a path") \
    X(COPY, 19, 0, "fd source, arg target: sendfile, splice, tee, copy_file_range, FICLONE") \
    X(STAT, 20, 1, "arg AT_* flags; an empty path is fd itself") \
    X(ACCESS, 21, 1, "arg mode, aux AT_* flags") \
    X(READLINK, 22, 1, "") \
    X(LIST, 23, 0, "fd directory: its entries were read for the first time") \
    X(RENAME, 24, 2, \
      "fd and arg: the two directories, aux RENAME_*; ident: the target before, if it existed") \
    X(LINK, 25, 2, \
      "fd and arg: the two directories, aux AT_* flags; old and new path; ident: the file before") \
    X(SYMLINK, 26, 2, "fd directory; text of the link, path of the link") \
    X(UNLINK, 27, 1, "arg AT_REMOVEDIR for a directory; ident: the file before") \
    X(MKDIR, 28, 1, "aux mode") \
    X(MKNOD, 29, 1, "aux mode; S_IFIFO makes a channel") \
    X(META, 30, 1, \
      "arg BS_META_*: mode, owner, times or attributes of path, or of fd if empty; aux AT_* " \
      "flags;" \
      " ident: the file before") \
    X(CHDIR, 31, 2, \
      "path, or fd if the path is empty; second string: the directory after it, absolute") \
    X(CHROOT, 32, 1, "path") \
    X(MOUNT, 33, 2, "source, target; arg 1: unmounted; aux MS_* flags") \
    X(PIVOT, 34, 2, "new root, path at which the old root is mounted") \
    X(NAMESPACE, 35, 0, "unshare or setns: aux CLONE_NEW* flags") \
    X(FORK, 40, 0, "result child pid; aux clone flags") \
    X(VFORK, 41, 0, "the child does what follows in this thread, up to VFORKED; arg BS_SPAWN_*") \
    X(VFORKED, 42, 0, "result child pid or -errno") \
    X(EXEC, 43, 1, \
      "aux AT_* flags, and BS_EXEC_ANNOUNCED; arg argc; after its ARGS and ENV. If it succeeds " \
      "it stays BS_RESERVED, " \
      "and with BS_F_CHILD its result is the child's own pid") \
    X(ARGS, 44, 9, \
      "argument strings for the next EXEC of this thread; aux their bytes (0: up to the padding)") \
    X(ENV, 45, 9, \
      "fd, arg: low, high half of the environment's hash; aux as in ARGS. Without strings: the " \
      "environment that was logged before with this hash") \
    X(WAIT, 46, 0, "result pid, arg wait status; aux 1 if the child stays waitable (WNOWAIT)") \
    X(EXIT, 47, 0, \
      "arg exit status; fd, aux: high, low half of the processor time of the process in " \
      "microseconds, 0 if unknown; result -1 if the status is not known, since main returned") \
    X(THREAD, 48, 0, "fd, arg: low, high half of the handle; aux BS_THREAD_*") \
    X(KILL, 49, 0, "fd pid, arg signal") \
    X(PIPE, 60, 0, "fd read end, arg write end, aux flags") \
    X(SOCKET, 61, 0, "fd domain, arg type, result descriptor") \
    X(SOCKETPAIR, 62, 0, "fd and arg: the two ends, aux type") \
    X(CONNECT, 63, 0, "fd socket, arg its SO_TYPE (0 unknown); aux bytes of sockaddr follow") \
    X(BIND, 64, 0, "fd socket; aux bytes of sockaddr follow") \
    X(ACCEPT, 65, 0, "fd socket, result descriptor; aux bytes of the peer's sockaddr follow") \
    X(LISTEN, 66, 0, "fd socket") \
    X(PASS, 67, 0, "fd socket, arg the descriptor that was sent (aux 0) or received (aux 1)") \
    X(MEMFD, 68, 1, "name; result descriptor") \
    X(EVENTFD, 69, 0, "result a descriptor without file data; arg the system call that made it") \
    X(LOAD, 70, 1, \
      "dlopen loaded a library: its path in the link map; aux BS_LOAD_ANNOUNCED: it is about to") \
    X(RESOLVE, 71, 2, \
      "a name was looked up: the name; one address of the answer as hexadecimal digits ('': " \
      "none)") \
    X(TRAFFIC, 72, 0, \
      "fd a connection that ends; aux bytes follow: bytes sent, bytes received (64 bits each)") \
    X(DATAGRAM, 73, 0, \
      "fd socket, arg 0 sent, 1 received; aux bytes of the other end's sockaddr follow: the " \
      "first " \
      "datagram to or from it") \
    X(ENDS, 74, 0, \
      "fd a connection that began, arg 1: accepted; aux bytes follow: the cookie of its network " \
      "namespace (64 bits, 0 unknown), sockaddr of its own end, of the other end (28 bytes each)") \
    X(LOST, 80, 0, "aux operations could not be logged here; arg BS_LOST_*") \
    X(OPAQUE, 81, 1, "the process used an interface that cannot be decoded: its name") \
    X(LINK_TEXT, 82, 2, \
      "fd directory; path and text of a symbolic link that the thread's next call removes; " \
      "resolver: of a link as it is after the run") \
    X(IDENT, 90, 1, \
      "the file that path names at this time (arg AT_SYMLINK_NOFOLLOW: the link itself); " \
      "result -errno and no ident if there is none") \
    X(GONE, 91, 0, "supervisor: fd pid ended, arg wait status, aux 1 if the status is known") \
    X(BORN, 92, 2, \
      "supervisor: fd pid first seen, arg its parent; strings: executable, current directory ('' " \
      "unknown)") \
    X(HOLD, 93, 1, \
      "supervisor: process fd holds descriptor arg; aux how it is open (O_ACCMODE, O_PATH, " \
      "O_CLOEXEC, or BS_HOLD_UNKNOWN); string: its link in /proc. arg -1: the process holds " \
      "only the next result descriptors, or (aux 1) the next EXEC leaves it only those") \
    X(KEPT, 94, 1, \
      "supervisor: the content of path (resolved, absolute) with this ident, before the call " \
      "of `who` changes it, is in file ID.kept/arg; aux BS_KEPT_*; result -errno if it could " \
      "not be stored. Recorder: the same with aux BS_KEPT_OWN_LINK; links in the path are not " \
      "resolved. With --guard=auto also a result -errno, if it could not ask the supervisor") \
    X(RUNS, 95, 2, \
      "resolver: a program (resolved, absolute), and the interpreter or loader that its first " \
      "bytes name, as written there") \
    X(WORK, 96, 2, \
      "source: an activity begins, whose number is the caller's pid, inside process arg (0: " \
      "none); what it is, and its text. GONE ends it") \
    X(RESOURCE, 97, 1, \
      "source: the caller used a thing that the source itself names; aux BS_RESOURCE_*; fd tells " \
      "things of one name apart; ident: the version that it wrote") \
    X(FACT, 98, 2, "source: a fact about the caller: its kind, and a payload") \
    X(DESCRIBED, 99, 2, \
      "importer: a statement of a description about activities and entities, which the " \
      "describing " \
      "tool numbered from 0; aux BS_DESCRIBED_*. What fd, arg, result and the strings mean is in " \
      "docs/formats/log.md") \
    X(FUNCTION, 100, 2, \
      "a function whose calls are recorded: fd its number; its name, and the file and line that " \
      "it is in ('': unknown). With --arguments a third string follows: its type, as " \
      "i32(ptr,?)") \
    X(CALLS, 101, 0, \
      "the thread's calls of functions up to its next record; aux bytes of words follow, see " \
      "BS_CALLS_CALL") \
    X(VALUES, 102, 9, \
      "fd a function: arg 0 the arguments of its last call in this thread, arg 1 its result; " \
      "each " \
      "as NAME=VALUE; aux as in ARGS")

enum bs_op {
#define BS_OP_ENUM(name, number, strings, doc) BS_OP_##name = number,
    BS_OPS(BS_OP_ENUM)
#undef BS_OP_ENUM
};

/* Values of fields that BS_OPS names. */
/* In the aux of EXEC: the recorder in the new program announces itself by a START. */
#define BS_EXEC_ANNOUNCED 0x40000000u
/* In the aux of LOAD: the loader is about to read the library, and perhaps others that it needs. */
#define BS_LOAD_ANNOUNCED 1u
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
/*
 * How a content is stored. A link is the file itself. A process that has the file open may still
 * write to it, which its size and mtime show. The process that removes the file can link it itself
 * (OWN_LINK), whether or not the run has read it.
 */
enum { BS_KEPT_LINK = 1, BS_KEPT_CLONE = 2, BS_KEPT_COPY = 3, BS_KEPT_OWN_LINK = 4 };
/*
 * A use of a RESOURCE: all of its content is new (WRITE), or content was added or changed in part
 * (CHANGE).
 */
enum {
    BS_RESOURCE_READ = 1,
    BS_RESOURCE_WRITE = 2,
    BS_RESOURCE_CHANGE = 3,
    BS_RESOURCE_DELETE = 4
};
/*
 * The first byte of the aux of a DESCRIBED is the kind of statement. The second one is a number of
 * the graph: a relation, a kind of entity, or a reason of information. The flags follow.
 */
enum {
    BS_DESCRIBED_ACTIVITY = 1,
    BS_DESCRIBED_WORD = 2,
    BS_DESCRIBED_ENTITY = 3,
    BS_DESCRIBED_EDGE = 4,
    BS_DESCRIBED_INFORM = 5,
    BS_DESCRIBED_DERIVED = 6,
    BS_DESCRIBED_NOTE = 7,
    BS_DESCRIBED_RANK = 8,
    BS_DESCRIBED_CERTAIN = 0x10000, /* EDGE: it happened; otherwise it can have happened */
    BS_DESCRIBED_LAST = 0x20000,    /* ENTITY: the last version of its name */
    BS_DESCRIBED_PART = 0x40000,    /* ACTIVITY: a part of a program's work */
    BS_DESCRIBED_ENDED = 0x80000,   /* ACTIVITY: result is its status as wait(2) reports it */
    BS_DESCRIBED_EXECED = 0x100000  /* ACTIVITY: it ended by an exec */
};
enum { BS_LOST_NO_CHUNK = 1, BS_LOST_SANDBOX = 2, BS_LOST_TOO_LONG = 3 };

/* The string of OPAQUE, for interfaces that both recorder and guard notice. */
#define BS_OPAQUE_TRACER_MEMORY "PTRACE_POKEDATA"
#define BS_OPAQUE_TRACER_REGISTERS "PTRACE_SETREGS"
#define BS_OPAQUE_TRACER_EMULATION "PTRACE_SYSEMU"
#define BS_OPAQUE_ACCT "acct"
#define BS_OPAQUE_SWAPON "swapon"
#define BS_OPAQUE_QUEUE "POSIX message queue"
#define BS_OPAQUE_HANDLE "open_by_handle_at"
#define BS_OPAQUE_MEMORY "process_vm_writev"
/* The path of a program follows: it ran outside of the recording, started by the broker. */
#define BS_OPAQUE_OUTSIDE BS_ENV_PROGRAM "="
#define BS_OPAQUE_DESCRIPTOR "pidfd_getfd"
#define BS_OPAQUE_FANOTIFY "fanotify with descriptors"
#define BS_OPAQUE_RING "io_uring without the guard"
#define BS_OPAQUE_UNGUARDED "a program outside of the guard's filter"
#define BS_OPAQUE_FILTERED "exec below a seccomp filter without the guard"

_Static_assert(sizeof(struct bs_record) == 32, "record header");
_Static_assert(sizeof(struct bs_chunk) == 64, "chunk header");
_Static_assert(sizeof(struct bs_programs) <= BS_CHUNK_SIZE, "tables of plain programs");
_Static_assert(sizeof(struct bs_deep_record) == 48, "deep record");
_Static_assert(sizeof(struct bs_function_table) == 120, "table of functions");
_Static_assert(sizeof(struct bs_signature) == 12, "parameters of a function");
_Static_assert(sizeof(struct bs_value) == 20, "value");
_Static_assert(sizeof(struct bs_place) == 16, "place of a parameter");
_Static_assert(sizeof(struct bs_arena) <= BS_ARENA_LOG, "arena header");

#endif
