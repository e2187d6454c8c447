/* The output of one program image (docs/formats/bytes.md). */
#ifndef RECORD_H
#define RECORD_H

#include "entities.h"

/* Starts the file of this image, or of the child after a fork. */
void record_start(Bool forked);
void record_flush(void);
void record_end(void);

/* The writes that follow belong to the functions that are active now, if `known`, else to none. */
void record_callers(Bool known);

/* The bytes [a, a + n) went to the entity at `offset`. */
void record_write(Entity *entity, ULong offset, Addr a, ULong n, ULong tick);

/* As record_write, for the changed bytes of a mapping: those that are no longer the bytes of the
   entity at their own offset. */
void record_mapped(Entity *entity, ULong offset, Addr a, ULong n);

/* The kernel moved bytes from one to the other. */
void record_move(Entity *from, ULong from_offset, Entity *to, ULong to_offset, ULong n, ULong tick);

/* The entity has another path now. */
void record_name(Entity *entity);

/* From here on, what this image writes may depend on everything that it has read. */
void record_possible(const HChar *reason);

/* The node stands for no set any more: the output has another number for the next one. */
void forget_node(UInt set);

UInt image_number(void);

#endif
