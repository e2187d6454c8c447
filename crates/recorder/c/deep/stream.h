/* Declarations that the files of deep recording share. */
#ifndef STREAM_H
#define STREAM_H

#include "../bs.h"

#pragma GCC visibility push(hidden)

typedef uint16_t u16;

struct vector {
    const void *at;
    u64 size;
};

/* Bytes for a section of a record: one piece of memory, or `vectors` pieces with `size` in all. */
struct bs_part {
    u16 kind, arg;
    u32 vectors; /* 0: `at` is the memory itself */
    u64 size;
    const void *at;
};

/* A thread's deep stream. */
struct bs_deep_thread {
    u8 *chunk;
    u32 generation; /* the process's when `chunk` was taken */
    u32 count;      /* deep chunks taken in this epoch */
    u32 unfinished; /* records that are being written, one for each nested signal handler */
    u32 gap;        /* records lost since the last one that was written */
    u32 handlers;   /* depth of signal handlers */
    bool is_shallow;
    bool tries;  /* false while no chunk could be had */
    bool taking; /* the thread is taking a chunk while signals cannot be blocked */
    /*
     * Chunks that are full, and in which an interrupted record may still be unfinished: how many,
     * and the last one. Each has the one before in its `pad`.
     */
    u32 postponed;
    u8 *last_postponed;
};
extern __thread struct bs_deep_thread bs_deep_me __attribute__((tls_model("initial-exec")));

/* True if calls of this thread are recorded deeply now. It begins the stream if necessary. */
bool bs_deep_is_on(void);
/* Appends a record. `record` needs no state, size or flags. */
void bs_deep_append(const struct bs_deep_record *record, const struct bs_part *parts, u32 count);
/* Appends a fact without sections. */
void bs_deep_fact(u32 fact, s32 fd, s64 result, u64 a, u64 b);
/* From here on the process is shallow. `reason` as in docs/formats/deep.md. */
void bs_deep_become_shallow(u32 reason);
enum { BS_SHALLOW_SANDBOX = 1, BS_SHALLOW_DISK = 2, BS_SHALLOW_OVER = 3 };

/* begin.c: maps the whole arena; records how the process or thread began */
extern u8 *bs_deep_arena;
/* The program is made by Go. Its calls pass no library, so it is shallow from its beginning. */
extern bool bs_deep_is_go;
bool bs_deep_map(void);
void bs_deep_log_begin(void);

/* files.c: what a descriptor is. */
struct bs_deep_file {
    u32 number;      /* of its DESCRIPTOR fact in this epoch; 0 if it has none yet */
    bool referenced; /* its reads need no bytes: the run stores the content */
    bool regular;    /* it has positions */
    s64 position;    /* the present one, if the kernel was asked just now; else negative */
};
/*
 * `moved`: bytes by which the call that just returned moved the descriptor's position. A call with
 * a position of its own leaves it unmoved.
 */
enum { BS_DEEP_UNMOVED = -1 };
struct bs_deep_file bs_deep_describe(int fd, s64 moved);
/* An open by this path, with these flags, has been recorded. */
void bs_deep_opened(s64 fd, const char *path, int flags);

/* exact.c: gives a CLOCK its final form, where it stands. A GAP is reported to it, too. */
void bs_exact_count(struct bs_deep_record *record);

/* hash.c: XXH64 with seed 0 */
u64 bs_hash(const struct bs_part *part);

#pragma GCC visibility pop

#endif
