/* See sockets.h. */
#include "sockets.h"

#define AF_UNIX_ 1
#define AF_INET_ 2
#define AF_INET6_ 10

typedef struct {
    UChar bytes[18]; /* address as of version 6, and port */
} Address;

/* 0, or the family of the name. `call`: getsockname or getpeername. */
static UInt name_of(Int fd, UWord call, Address *address)
{
    union {
        UShort family;
        UChar bytes[128];
    } name = {0};
    Int length = sizeof name;
    SysRes r = VG_(do_syscall)(call, fd, (UWord)&name, (UWord)&length, 0, 0, 0, 0, 0);
    *address = (Address){{0}};
    if (sr_isError(r))
        return 0;
    VG_(memcpy)(&address->bytes[16], &name.bytes[2], 2);
    if (name.family == AF_INET6_) {
        VG_(memcpy)(address->bytes, &name.bytes[8], 16);
    } else if (name.family == AF_INET_) {
        address->bytes[10] = address->bytes[11] = 0xff;
        VG_(memcpy)(&address->bytes[12], &name.bytes[4], 4);
    }
    return name.family;
}

static ULong hash_of(const Address *from, const Address *to)
{
    ULong h = 1469598103934665603ULL;
    for (UInt i = 0; i < 36; i++)
        h = (h ^ (i < 18 ? from->bytes[i] : to->bytes[i - 18])) * 1099511628211ULL;
    return h | 1ULL << 63;
}

/* The inode of the other end of a connected local socket, from the kernel's socket monitor
   (sock_diag(7)). 0: it has none yet, or the monitor may not be asked. */
static ULong peer_inode(UInt inode)
{
    struct {
        UInt length;
        UShort type, flags;
        UInt sequence, port;
        UChar family, protocol;
        UShort padding;
        UInt states, inode, show, cookie[2];
    } request = {sizeof request, 20 /* SOCK_DIAG_BY_FAMILY */, 1,         0, 0, AF_UNIX_, 0, 0, ~0u,
                 inode,          4 /* UDIAG_SHOW_PEER */,      {~0u, ~0u}};
    UInt answer[64] = {0};
    SysRes fd = VG_(do_syscall)(__NR_socket, 16 /* AF_NETLINK */, 2 | 02000000, 4, 0, 0, 0, 0, 0);
    if (sr_isError(fd))
        return 0;
    Int monitor = VG_(safe_fd)(sr_Res(fd));
    UChar kernel[12] = {16};
    SysRes sent = VG_(do_syscall)(__NR_sendto, monitor, (UWord)&request, sizeof request, 0,
                                  (UWord)kernel, sizeof kernel, 0, 0);
    SysRes got = sent;
    if (!sr_isError(sent))
        got = VG_(do_syscall)(__NR_recvfrom, monitor, (UWord)answer, sizeof answer, 0, 0, 0, 0, 0);
    VG_(close)(monitor);
    /* A header of 16 bytes, a message of 16, and the attribute: length and type, inode. */
    if (sr_isError(got) || sr_Res(got) < 40 || (answer[1] & 0xffff) != 20 || answer[8] >> 16 != 2)
        return 0;
    return answer[9];
}

static ULong known_peer(Entity *e)
{
    if (e->stream->peer == 0) {
        ULong peer = peer_inode((UInt)e->inode);
        if (peer) {
            e->stream->peer = peer;
            stream_of(e->device, peer)->peer = e->inode;
        }
    }
    return e->stream->peer;
}

void new_socket_pair(const Int *fds)
{
    Entity *a = entity_of_fd(fds[0]), *b = entity_of_fd(fds[1]);
    if (!a || !b)
        return;
    a->stream->peer = b->inode;
    b->stream->peer = a->inode;
}

static Entity *end_of(Int fd, const Place *place, Bool sends)
{
    Entity *e = entity_at(fd, place);
    /* A stand-in is a channel: the supervisor knows both ends. */
    if (!e || e->kind != KIND_SOCKET || !place->is_native)
        return e;
    Address own, other;
    UInt family = name_of(fd, __NR_getsockname, &own);
    if (family == AF_UNIX_) {
        ULong peer = known_peer(e);
        return sends ? channel_entity(e, e->inode) : peer ? channel_entity(e, peer) : e;
    }
    Bool connected = name_of(fd, __NR_getpeername, &other) != 0;
    if (connected && (family == AF_INET_ || family == AF_INET6_))
        return channel_entity(e, sends ? hash_of(&own, &other) : hash_of(&other, &own));
    /* A socket without a peer sends to many, and receives from others. */
    return sends ? channel_entity(e, e->inode) : e;
}

Entity *entity_to_write(Int fd, Bool at_offset, Place *place)
{
    return place_of(fd, at_offset ? IDENTITY : WRITING, place) ? end_of(fd, place, True) : NULL;
}

Entity *entity_to_read(Int fd, Bool at_offset, Place *place)
{
    return place_of(fd, at_offset ? IDENTITY : READING, place) ? end_of(fd, place, False) : NULL;
}
