/* A file of the output directory that all processes of a run map.
 *
 * - A tick is a counter that orders reads and writes of the whole run.
 * - A number is counted for each program image, and names its file.
 * - A stream counts the bytes of a file, pipe or socket, and has the tick of the last write.
 *
 * Invariant: a write's tick is taken before its bytes can be read; a read's, after. */
#ifndef SHARED_H
#define SHARED_H

#include "engine.h"

typedef struct {
    ULong device, inode; /* 0, 0: free */
    ULong written, read; /* bytes that went through a stream */
    ULong last_write;    /* tick */
    ULong generation;    /* counts pipes that had the same inode number */
    ULong peer;          /* inode of the other end of a connected local socket, if known */
} Stream;

void shared_start(const HChar *directory);
ULong next_tick(void);
UInt next_number(void);
Stream *stream_of(ULong device, ULong inode);
ULong advance(ULong *counter, ULong n); /* returns the value before */

#endif
