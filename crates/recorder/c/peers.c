/*
 * Records facts about the other ends of internet sockets:
 *
 * - the address that a datagram was sent to or came from,
 * - the addresses of both ends of a TCP connection, when it begins,
 * - the bytes that a TCP connection carried, when its descriptor is closed or the process ends.
 *
 * Invariants: a call that moves data on a connection costs nothing here, and neither does a
 * descriptor that is no connection. Payload is never looked at.
 */
#include "bs.h"

enum { SOL_SOCKET = 1, SO_TYPE = 3, SO_NETNS_COOKIE = 71, IPPROTO_TCP = 6, TCP_INFO = 11 };
enum { SOCK_STREAM = 1, SOCK_DGRAM = 2 };
enum { AF_INET = 2, AF_INET6 = 10 };

/* A descriptor with both marks is a connection: no directory is open for writing. */
enum { CONNECTION = BS_FD_LISTED | BS_FD_WRITER };

static bool may_ask(void)
{
    return !(bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED));
}

s32 bs_socket_type(int fd)
{
    s32 type = 0;
    u32 size = sizeof type;
    if (!may_ask() || bs_raw(__NR_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
        return 0;
    return type;
}

/* The bytes of an internet address that identify it; 0 for an address of another kind. */
static u32 telling_bytes(const void *address, u32 size)
{
    if (!address || size < 16 || !bs_readable(address, 2))
        return 0;
    u32 family = *(const uint16_t *)address;
    u32 bytes = family == AF_INET ? 16 : family == AF_INET6 && size >= 28 ? 28 : 0;
    return bytes && bs_readable(address, bytes) ? bytes : 0;
}

enum { ADDRESS = 28 /* sizeof(struct sockaddr_in6) */ };

/* Stores the address that an internet socket has, of ADDRESS bytes at most. */
static bool has_address(int fd, u8 *own)
{
    u32 size = ADDRESS;
    return may_ask() && bs_raw(__NR_getsockname, fd, own, &size) >= 0 && telling_bytes(own, size);
}

void bs_know_port(int fd, struct bs_record *record, const void *address, u32 size)
{
    enum { PORT = 2 /* its offset, in both families */, PORT_SIZE = 2 };
    u8 own[ADDRESS], *copy = (u8 *)(record + 1);
    bool chosen = telling_bytes(address, size) && ((const uint16_t *)address)[1] == 0;
    bool fits = record->size >= sizeof *record + PORT + PORT_SIZE;
    if (chosen && fits && has_address(fd, own))
        bs_copy(copy + PORT, own + PORT, PORT_SIZE);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* The content of a record of kind ENDS. */
struct ends {
    u64 network;
    u8 own[ADDRESS], other[ADDRESS];
};

/*
 * Logs the addresses of both ends. The other end of a connection that is not established yet has
 * the address that it is to have.
 */
static BS_COLD void log_ends(int fd, bool accepted, const void *address, u32 bytes)
{
    struct ends ends = {0};
    u32 other = ADDRESS, network = sizeof ends.network;
    if (!has_address(fd, ends.own))
        return;
    if (bs_raw(__NR_getpeername, fd, ends.other, &other) < 0)
        bs_copy(ends.other, address, bytes);
    /* Linux before 5.14 has no cookies. */
    if (bs_raw(__NR_getsockopt, fd, SOL_SOCKET, SO_NETNS_COOKIE, &ends.network, &network) < 0)
        ends.network = 0;
    bs_end(bs_begin_bytes(0, BS_OP_ENDS, fd, accepted, &ends, sizeof ends), 0);
}

void bs_begin_connection(int fd, s32 type, const void *address, u32 size)
{
    u32 bytes = type == SOCK_STREAM ? telling_bytes(address, size) : 0;
    if (!bytes)
        return;
    bs_fd_mark(fd, CONNECTION);
    log_ends(fd, false, address, bytes);
}

void bs_begin_accepted(int fd)
{
    bs_fd_mark(fd, CONNECTION);
    log_ends(fd, true, 0, 0);
}

/* The part of Linux's `struct tcp_info` that is used here. */
struct connection_facts {
    u8 state;
    u8 others[143];
    u32 not_sent; /* bytes that were written and are still to be sent */
    u8 more[52];
    u64 sent, sent_again; /* bytes; `sent` includes those that were sent again */
};
_Static_assert(offsetof(struct connection_facts, not_sent) == 144, "tcpi_notsent_bytes");
_Static_assert(offsetof(struct connection_facts, sent) == 200, "tcpi_bytes_sent");
enum { RECEIVED_AT = 128 /* tcpi_bytes_received */ };

/* The peer's FIN counts as a byte in the number of received bytes. */
static bool has_peer_finished(u8 state)
{
    enum { TIME_WAIT = 6, CLOSE = 7, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };
    return state == TIME_WAIT || state == CLOSE || state == CLOSE_WAIT || state == LAST_ACK ||
           state == CLOSING;
}

static BS_COLD void log_traffic(int fd)
{
    struct connection_facts facts;
    u32 size = sizeof facts;
    if (!may_ask() || bs_raw(__NR_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &facts, &size) < 0 ||
        size < sizeof facts)
        return;
    u64 bytes[2] = {facts.sent - facts.sent_again + facts.not_sent};
    bs_copy(&bytes[1], (const u8 *)&facts + RECEIVED_AT, sizeof bytes[1]);
    bytes[1] -= bytes[1] && has_peer_finished(facts.state);
    bs_end(bs_begin_bytes(0, BS_OP_TRAFFIC, fd, 0, bytes, sizeof bytes), 0);
}

bool bs_closes_connection(int fd)
{
    if ((bs_fd_marks(fd) & CONNECTION) != CONNECTION)
        return false;
    log_traffic(fd);
    return true;
}

void bs_log_open_connections(void)
{
    if (!bs_process->generation || bs_me.borrowed)
        return;
    for (u32 fd = 0; fd <= bs_process->highest; fd++)
        if ((bs_process->fd[fd] & CONNECTION) == CONNECTION) {
            log_traffic((int)fd);
            bs_process->fd[fd] &= (u8)~CONNECTION;
        }
}

/* ---- datagrams ------------------------------------------------------------------------------- */

/* Hashes of sockets with an address, as logged last. A pair is logged once while it stays here. */
static u64 logged[8];

/* A step of FNV-1a, with a word in the place of a byte. */
static u64 mixed(u64 hash, u64 word)
{
    return (hash ^ word) * 0x100000001b3ull;
}

static u64 hash_of(u64 hash, const u8 *bytes, u32 size)
{
    for (u32 i = 0; i < size; i++)
        hash = mixed(hash, bytes[i]);
    return hash;
}

static void log_datagram(u64 time, int fd, bool received, bool first, const void *address, u32 size)
{
    u32 bytes = telling_bytes(address, size);
    if (!bytes)
        return;
    u64 hash = mixed(0xcbf29ce484222325ull, bs_process->epoch);
    hash = mixed(hash, (u64)(u32)fd << 1 | received);
    /* The rest of an IPv4 address is padding, which programs leave as it was. */
    hash = hash_of(hash, address, bytes == 16 ? 8 : 24);
    u64 *place = &logged[(hash >> 32) % (sizeof logged / sizeof *logged)];
    if (!first && __atomic_load_n(place, __ATOMIC_RELAXED) == hash)
        return;
    __atomic_store_n(place, hash, __ATOMIC_RELAXED);
    s32 type = bs_socket_type(fd);
    if (type && type != SOCK_DGRAM)
        return;
    bs_end(bs_begin_bytes(time, BS_OP_DATAGRAM, fd, received, address, bytes), 0);
}

void bs_log_received(int fd, bool first, const void *address, u32 size)
{
    log_datagram(0, fd, true, first, address, size);
}

void bs_log_sent(u64 time, int fd, bool first, const void *address, u32 size)
{
    log_datagram(time, fd, false, first, address, size);
}
