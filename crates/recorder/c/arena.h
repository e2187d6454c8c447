/* Declarations that attach.c, chunks.c and confined.c share: the attachment, and chunks. */
#ifndef ARENA_H
#define ARENA_H

#include "bs.h"

#pragma GCC visibility push(hidden)

extern bool bs_muted; /* for good: this process can log nothing */
extern u64 bs_mapped; /* bytes mapped from the arena's beginning */

/* Returns a descriptor of the arena, or a negative error. */
s64 bs_open_arena(void);
/* Maps `size` bytes of the arena. Returns their address, or a negative error. */
s64 bs_map_arena(s64 fd, u64 offset, u64 size);

/*
 * Places of the recorder's memory above its library, in a program that has the same addresses in
 * each execution. It then moves no memory of the program, so a replay without a recorder has the
 * same addresses. Elsewhere the kernel chooses the places.
 */
enum place { WINDOW_PLACE, PROCESS_PLACE, WHOLE_PLACE, RESERVE_PLACE };
/* The address of a place: a hint for mmap. 0: any address. */
u64 bs_place(enum place place);
/* Maps the first `size` bytes of the arena again. Returns their address, or a negative error. */
s64 bs_copy_arena(u64 size, enum place place);

/* STARTED_BEFORE: a program has begun, and has announced itself without a chunk. */
enum start { NOT_STARTED, STARTED_BY_EXEC, STARTED_BY_FORK, STARTED_BEFORE };

/*
 * Makes the process ready, once per exec and once per fork child. `*started` is set for the one
 * thread that did it.
 */
bool bs_set_up(enum start *started);

static inline bool is_error(s64 result)
{
    return (u64)result > -4096ull;
}

/*
 * chunks.c: claims a free chunk among the first `words` words of the bitmap. Returns -1 if all are
 * taken.
 */
s32 bs_claim(u32 words);
/* Gives a claimed chunk to the thread; writes the header's magic last. */
void bs_begin_chunk(struct bs_chunk *chunk, u32 index);
/* Marks a chunk to which its owner will append no more. */
void bs_mark_full(u8 *chunk);

/* confined.c: maps the chunks that a sandboxed process can take. */
void bs_map_reserve(void);
/* Takes one of the reserved chunks without a system call. */
bool bs_take_confined(void);

#ifdef BS_AUTO
/* attach.c: the arena's beginning, which the constructor maps before the process is set up. */
extern struct bs_arena *bs_first_pages;
/* False: not possible now, or never. */
bool bs_map_first_pages(void);

/* auto/verdicts.c: null without `bs_first_pages`. */
struct bs_programs *bs_programs(void);

/* auto/starts.c: announces the program without a chunk. False: not possible. */
bool bs_announce_start(void);
/* How the process began. `*epoch` is set if it has announced itself with this epoch. */
enum start bs_how_started(enum start how, u64 *epoch);
/* True if the supervisor makes a chunk of this thread from the announcement. */
bool bs_follows_start(void);
#endif

#pragma GCC visibility pop

#endif
