/* Where a descriptor leads, and at which offset the last call on it moved bytes.
 *
 * With --ask, a supervisor answers system calls from a record (`backstory replay --deep`). Its
 * descriptors are stand-ins, and the answers to fstat, lseek and so on belong to the program. So
 * the engine asks for all at once, by a system call that no kernel has. */
#ifndef PLACES_H
#define PLACES_H

#include "engine.h"

typedef enum { KIND_FILE, KIND_PIPE, KIND_SOCKET, KIND_DEVICE, KIND_ARGUMENTS } Kind;

#define ASK 0x6273 /* in the filter of crates/reconstruct/src/engine/filter.rs */

/* Which offset is asked for. STARTED: no question, see under_way.h. */
typedef enum { READING, WRITING, IDENTITY, STARTED } Asked;

/* The supervisor fills it: crates/reconstruct/src/engine/supervisor/places.rs. */
typedef struct {
    ULong kind, device, inode, generation;
    ULong offset; /* of a file: behind the bytes. Of a stand-in: of their first one */
    ULong size, modified, modified_ns;
    ULong is_native;  /* 0: a stand-in */
    HChar path[4096]; /* of an answer: see path_of */
} Place;

/* False for descriptors that are closed, directories, and what else carries no bytes. */
Bool place_of(Int fd, Asked asked, Place *place);

/* The path behind a place, or an empty string. The kernel is asked here: once for each entity. */
const HChar *path_of(Int fd, const Place *place);

#endif
