/* Files, pipes, sockets and argument lists, and the input bytes that were read from them. */
#ifndef ENTITIES_H
#define ENTITIES_H

#include "places.h"
#include "shared.h"

typedef struct Entity {
    UInt id;
    Kind kind;
    ULong device, inode, generation;
    Long size; /* when it was first met */
    ULong modified, modified_ns;
    HChar *path;
    Bool ignored;  /* what it contains is no source */
    Bool recorded; /* the output has it */
    Stream *stream;
    UInt last_blocks[16]; /* of the last reads, +1 */
    UInt last_block;
    struct Entity *next;
} Entity;

/* Leaves [first, first + count) are the entity's bytes from `offset`, in units of 2^shift. */
typedef struct {
    UInt first, count, shift;
    Entity *entity;
    ULong offset, tick;
    Bool recorded;
} Block;

extern Block *blocks;
extern UInt block_count;

void entities_start(void);

/* NULL for descriptors that are closed, directories, and what else carries no bytes. */
Entity *entity_of_fd(Int fd);
Entity *entity_at(Int fd, const Place *place);
/* The bytes that one end of a connection sends (sockets.h). `socket`: either end. */
Entity *channel_entity(const Entity *socket, ULong number);
Entity *arguments_entity(UInt pid, ULong count);

/* The bytes [a, a + n) were read from the entity at `offset`. */
void add_source(Entity *entity, ULong offset, Addr a, ULong n);

/* The block of a leaf. */
Block *block_of(UInt leaf);

/* After a fork: nothing is in the child's output yet. */
void forget_recorded(void);

#endif
