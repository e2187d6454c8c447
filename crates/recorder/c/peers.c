/*
 * Records facts about the other ends of internet sockets:
 *
 * - the address that a datagram was sent to or came from,
 * - the addresses of both ends of a TCP connection, when it begins,
 * - the bytes that a TCP connection carried, when its descriptor is closed or the process ends.
 *
 * Invariants: a call that moves data on a connection costs nothing here, and neither does a
 * descriptor that is no connection. Payload is never looked at. The kernel is asked once about the
 * facts that connections have in common with the socket that accepted them.
 */
#include "bs.h"

enum { SOL_SOCKET = 1, SO_TYPE = 3, SO_PROTOCOL = 38, SO_NETNS_COOKIE = 71 };
enum { IPPROTO_IP = 0, IP_TRANSPARENT = 19, IPPROTO_TCP = 6, TCP_INFO = 11 };
enum { SOCK_STREAM = 1, SOCK_DGRAM = 2 };
enum { AF_INET = 2, AF_INET6 = 10 };

/* A descriptor with both marks is a connection: no directory is open for writing. */
enum { CONNECTION = BS_FD_LISTED | BS_FD_WRITER };

static bool may_ask(void)
{
    return !(bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED));
}

enum { ADDRESS = BS_PEER_ADDRESS /* sizeof(struct sockaddr_in6) */ };

/*
 * The bytes of an internet address that identify it; 0 for an address of another kind. The memory
 * is the recorder's, or the kernel has just written there.
 */
static u32 known_bytes(const void *address, u32 size)
{
    u32 family = size >= 16 ? *(const uint16_t *)address : 0;
    return family == AF_INET ? 16 : family == AF_INET6 && size >= ADDRESS ? ADDRESS : 0;
}

/* The same of an address that the program passes to the kernel. */
static u32 telling_bytes(const void *address, u32 size)
{
    if (!address || size < 16 || !bs_readable(address, 2))
        return 0;
    u32 bytes = known_bytes(address, size);
    return bytes && bs_readable(address, bytes) ? bytes : 0;
}

/* Stores the address that an internet socket has, of ADDRESS bytes at most. */
static bool has_address(int fd, u8 *own)
{
    u32 size = ADDRESS;
    return may_ask() && bs_raw(__NR_getsockname, fd, own, &size) >= 0 && known_bytes(own, size);
}

/* The value of an option of 4 or 8 bytes. 0 if the kernel does not know the option. */
static u64 option(int fd, int level, int name, u32 size)
{
    u64 value = 0;
    if (!may_ask() || bs_raw(__NR_getsockopt, fd, level, name, &value, &size) < 0)
        return 0;
    return value;
}

s32 bs_socket_type(int fd)
{
    return (s32)option(fd, SOL_SOCKET, SO_TYPE, sizeof(s32));
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

/* ---- listening sockets ----------------------------------------------------------------------- */

/* How much a connection has in common with the socket that accepted it. */
enum {
    ALIKE_NOT,     /* they may differ: the kernel is asked about each connection */
    ALIKE_NETWORK, /* the network: the socket listens at all addresses of the machine */
    ALIKE,         /* the network and the own address */
    NO_INTERNET,   /* it accepts no internet connection */
};

/*
 * A listening socket of this process. Several threads may accept from it. One that finds the entry
 * in change asks the kernel instead of waiting: a signal handler may have interrupted the change.
 */
struct listener {
    u32 version; /* odd while a thread changes the entry */
    s32 fd;
    u64 network;
    u32 alike;
    u8 own[ADDRESS];
};
_Static_assert(sizeof(struct listener) == BS_LISTENER_SIZE, "the room in bs_process");

/*
 * A descriptor with both marks is a listening socket with an entry. It neither lists nor copies. A
 * connection to which a file was copied has both, too, and the mark of a writer.
 */
enum { LISTENER = BS_FD_LISTED | BS_FD_COPIED };

/* False also if another process may run in this memory: its descriptors are others. */
static bool can_have_entry(int fd)
{
    return (u32)fd < BS_MAX_FD && bs_process->generation && !bs_me.borrowed &&
           !(bs_modes & BS_MODE_SHARED_MEMORY);
}

static bool is_listener(int fd)
{
    return (bs_fd_marks(fd) & (LISTENER | BS_FD_WRITER)) == LISTENER;
}

static struct listener *entry_of(int fd)
{
    return (struct listener *)(bs_process->fd + BS_LISTENERS_AT) + (u32)fd % BS_LISTENERS;
}

/* True if the socket may have the entry: no other open one does. */
static bool may_have(int fd, const struct listener *entry)
{
    s32 owner = entry->fd;
    return owner == fd || entry_of(owner) != entry || !is_listener(owner);
}

/* Copies what is known of a listening socket. */
static bool recall(int fd, struct listener *facts)
{
    if (!can_have_entry(fd) || !is_listener(fd))
        return false;
    struct listener *entry = entry_of(fd);
    u32 version = __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
    bs_copy(facts, entry, sizeof *facts);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool same = __atomic_load_n(&entry->version, __ATOMIC_RELAXED) == version;
    return same && !(version & 1) && facts->fd == fd;
}

/* Keeps the facts, unless another thread is changing the entry. */
static void keep(int fd, struct listener *facts)
{
    struct listener *entry = entry_of(fd);
    u32 version = __atomic_load_n(&entry->version, __ATOMIC_RELAXED);
    if (version & 1 || !may_have(fd, entry) ||
        !__atomic_compare_exchange_n(&entry->version, &version, version + 1, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    facts->fd = fd;
    facts->version = version + 1;
    bs_copy(entry, facts, sizeof *facts);
    __atomic_store_n(&entry->version, version + 2, __ATOMIC_RELEASE);
    bs_fd_mark(fd, LISTENER);
}

/* The last four bytes of the address for all addresses are 0, with IPv6 also of its IPv4 form. */
static bool may_be_all_addresses(const u8 *own, u32 bytes)
{
    enum { IPV4_AT = 4, IPV6_END_AT = 8 + 12 };
    const u8 *end = own + (bytes == 16 ? IPV4_AT : IPV6_END_AT);
    return !(end[0] | end[1] | end[2] | end[3]);
}

/*
 * Asks what a listening socket tells about each of its connections. Connections to other addresses
 * reach a transparent socket (TPROXY), and other protocols may change addresses.
 */
static BS_COLD void examine(int fd, struct listener *facts)
{
    u32 size = ADDRESS;
    *facts = (struct listener){.alike = ALIKE_NOT};
    if (!can_have_entry(fd) || !may_have(fd, entry_of(fd)) || !may_ask() ||
        bs_raw(__NR_getsockname, fd, facts->own, &size) < 0)
        return;
    u32 bytes = known_bytes(facts->own, size);
    if (!bytes) {
        facts->alike = NO_INTERNET;
    } else if (option(fd, SOL_SOCKET, SO_PROTOCOL, sizeof(s32)) == IPPROTO_TCP) {
        bool other = may_be_all_addresses(facts->own, bytes) ||
                     option(fd, IPPROTO_IP, IP_TRANSPARENT, sizeof(s32));
        facts->alike = other ? ALIKE_NETWORK : ALIKE;
        /* Linux before 5.14 has no cookies. */
        facts->network = option(fd, SOL_SOCKET, SO_NETNS_COOKIE, sizeof facts->network);
    }
    keep(fd, facts);
}

bool bs_accepts_internet(int fd)
{
    struct listener facts;
    return recall(fd, &facts) && (facts.alike == ALIKE || facts.alike == ALIKE_NETWORK);
}

void bs_forget_listeners(void)
{
    if (!bs_process->generation || bs_me.borrowed)
        return;
    for (int i = 0; i < (int)BS_LISTENERS; i++) {
        s32 owner = entry_of(i)->fd;
        if (is_listener(owner))
            bs_process->fd[owner] &= (u8)~LISTENER;
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

/* The content of a record of kind ENDS. */
struct ends {
    u64 network;
    u8 own[ADDRESS], other[ADDRESS];
};

/* Stores the address of the other end, unless the connection has none any more. */
static bool has_peer(int fd, u8 *other)
{
    u32 size = ADDRESS;
    return may_ask() && bs_raw(__NR_getpeername, fd, other, &size) >= 0;
}

/*
 * Logs the addresses of both ends. The other end of a connection that is not established yet has
 * the address that it is to have.
 */
static BS_COLD void log_ends(int fd, const void *address, u32 bytes)
{
    struct ends ends = {0};
    if (!has_address(fd, ends.own))
        return;
    if (!has_peer(fd, ends.other))
        bs_copy(ends.other, address, bytes);
    ends.network = option(fd, SOL_SOCKET, SO_NETNS_COOKIE, sizeof ends.network);
    bs_end(bs_begin_known_bytes(0, BS_OP_ENDS, fd, false, &ends, sizeof ends), 0);
}

void bs_begin_connection(int fd, s32 type, const void *address, u32 size)
{
    u32 bytes = type == SOCK_STREAM ? telling_bytes(address, size) : 0;
    if (!bytes)
        return;
    bs_fd_mark(fd, CONNECTION);
    log_ends(fd, address, bytes);
}

u32 bs_ask_peer(int fd, int socket, u8 *other)
{
    struct listener facts;
    u32 size = ADDRESS;
    if ((recall(socket, &facts) && facts.alike == NO_INTERNET) || !may_ask() ||
        bs_raw(__NR_getpeername, fd, other, &size) < 0)
        return 0;
    return known_bytes(other, size);
}

bool bs_begin_accepted(int fd, int socket, const void *address, u32 size)
{
    struct listener facts;
    if (!recall(socket, &facts))
        examine(socket, &facts);
    if (facts.alike == NO_INTERNET)
        return false;
    bs_fd_mark(fd, CONNECTION);
    struct ends ends = {.network = facts.network};
    if (facts.alike == ALIKE)
        bs_copy(ends.own, facts.own, ADDRESS);
    else if (!has_address(fd, ends.own))
        return false;
    u32 bytes = known_bytes(address, size);
    if (bytes)
        bs_copy(ends.other, address, bytes);
    else
        has_peer(fd, ends.other);
    if (facts.alike == ALIKE_NOT)
        ends.network = option(fd, SOL_SOCKET, SO_NETNS_COOKIE, sizeof ends.network);
    bs_end(bs_begin_known_bytes(0, BS_OP_ENDS, fd, true, &ends, sizeof ends), 0);
    return true;
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
    bs_end(bs_begin_known_bytes(0, BS_OP_TRAFFIC, fd, 0, bytes, sizeof bytes), 0);
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

/* `bytes`: those of the address that identify it. They can be read. */
static void log_datagram(u64 time, int fd, bool received, bool first, const void *address,
                         u32 bytes)
{
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

u32 bs_address_room(const void *address, const u32 *size)
{
    bool known = !address || bs_surely_readable(size, sizeof *size);
    return known ? bs_room(address, address ? *size : 0) : BS_UNKNOWN_ROOM;
}

/* The kernel has written no more of the address than the room holds. */
void bs_log_received(int fd, bool first, const void *address, u32 size, u32 room)
{
    if (room == BS_UNKNOWN_ROOM)
        room = 0;
    log_datagram(0, fd, true, first, address, known_bytes(address, size < room ? size : room));
}

void bs_log_sent(u64 time, int fd, bool first, const void *address, u32 size)
{
    log_datagram(time, fd, false, first, address, telling_bytes(address, size));
}
