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

enum start { NOT_STARTED, STARTED_BY_EXEC, STARTED_BY_FORK };

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

#pragma GCC visibility pop

#endif
