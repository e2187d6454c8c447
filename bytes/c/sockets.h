/* Which bytes that one recorded process sends are those that another one receives.
 *
 * A connection has two channels. A channel is an entity: writes to it are what one end sends, reads
 * of it are what the other end receives. Its number is the inode of the sending end for sockets of
 * this machine's file system, and is made of both addresses for IP. If the other end is not known,
 * received bytes are a source: the socket itself. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "entities.h"

/* The entity that bytes of the descriptor go to, or come from; NULL as for entity_of_fd.
   `at_offset`: the call names its offset. */
Entity *entity_to_write(Int fd, Bool at_offset, Place *place);
Entity *entity_to_read(Int fd, Bool at_offset, Place *place);

/* Two sockets that are connected with each other. */
void new_socket_pair(const Int *fds);

#endif
