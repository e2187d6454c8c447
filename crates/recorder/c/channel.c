/* Records pipes, sockets, passed descriptors, and descriptors that hold no file. */
#include "shape.h"

int socket(int domain, int type, int protocol);
ssize sendmsg(int fd, const void *message, int flags);
ssize recvmsg(int fd, void *message, int flags);
int sendmmsg(int fd, void *messages, u32 count, int flags);
int recvmmsg(int fd, void *messages, u32 count, int flags, void *timeout);
int pidfd_open(int pid, u32 flags);

/* ---- pipes, pairs ---------------------------------------------------------------------------- */

int bs_make_pipe(s64 nr, int ends[2], int flags)
{
    struct bs_reservation rec = bs_begin(BS_OP_PIPE, -1, -1, (u32)flags);
    u64 time = BS_DEEP_TIME();
    s64 result = bs_call(rec, nr, ends, flags);
    BS_DEEP_LOG(time, result, (u32)nr, ends, flags);
    if (result >= 0) {
        for (int i = 0; i < 2; i++)
            bs_fd_closed((u32)ends[i]);
        if (bs_open(rec)) {
            rec.record->fd = ends[0];
            rec.record->arg = ends[1];
        }
    }
    return (int)bs_finish(rec, result);
}

BS_INTERCEPTED int pipe(int ends[2])
{
    return bs_make_pipe(__NR_pipe, ends, 0);
}
BS_ALIAS(__pipe, pipe);

BS_INTERCEPTED int pipe2(int ends[2], int flags)
{
    return bs_make_pipe(flags ? __NR_pipe2 : __NR_pipe, ends, flags);
}

BS_INTERCEPTED int socketpair(int domain, int type, int protocol, int ends[2])
{
    struct bs_reservation rec = bs_begin(BS_OP_SOCKETPAIR, -1, -1, (u32)type);
    u64 time = BS_DEEP_TIME();
    s64 result = bs_call(rec, __NR_socketpair, domain, type, protocol, ends);
    BS_DEEP_LOG(time, result, __NR_socketpair, domain, type, protocol, ends);
    if (result >= 0) {
        for (int i = 0; i < 2; i++)
            bs_fd_closed((u32)ends[i]);
        if (bs_open(rec)) {
            rec.record->fd = ends[0];
            rec.record->arg = ends[1];
        }
    }
    return (int)bs_finish(rec, result);
}

/* ---- sockets --------------------------------------------------------------------------------- */

BS_INTERCEPTED int socket(int domain, int type, int protocol)
{
    return (int)BS_BY(bs_shaped_opens, socket, SOCKET, (.fd = 1, .arg = 2), domain, type, protocol);
}

BS_INTERCEPTED int connect(int fd, const void *address, u32 size)
{
    enum { EINPROGRESS = 115 };
    s32 type = bs_socket_type(fd);
    struct bs_reservation rec = bs_begin_bytes(0, BS_OP_CONNECT, fd, type, address, size);
    u64 time = BS_DEEP_TIME();
    s64 result = bs_call_cancel(rec, __NR_connect, fd, address, size);
    BS_DEEP_LOG(time, result, __NR_connect, fd, address, size);
    int returned = (int)bs_finish(rec, result);
    if (result >= 0 || result == -EINPROGRESS)
        bs_begin_connection(fd, type, address, size);
    return returned;
}
BS_ALIAS(__connect, connect);

BS_INTERCEPTED int bind(int fd, const void *address, u32 size)
{
    struct bs_reservation rec = bs_begin_bytes(0, BS_OP_BIND, fd, 0, address, size);
    u64 time = BS_DEEP_TIME();
    s64 result = bs_call(rec, __NR_bind, fd, address, size);
    if (result >= 0 && bs_open(rec))
        bs_know_port(fd, rec.record, address, size);
    result = bs_finish(rec, result);
    BS_DEEP_LOG_RETURN(time, result, __NR_bind, fd, address, size);
    return (int)result;
}

BS_INTERCEPTED int listen(int fd, int backlog)
{
    s64 result = BS_SHAPED(listen, LISTEN, (.fd = 1), fd, backlog);
    bs_forget_listeners();
    return (int)result;
}

/*
 * The peer is known only after the call, so the call is logged then. A failed accept brings no peer
 * and is not logged.
 *
 * A program that wants no address passes null. The kernel then reads neither argument, so the
 * recorder passes its own memory. The program sees no difference: an internet connection has an
 * address as long as it can be accepted. The kind of a listening socket is known only after its
 * first connection. So the kernel is asked for the address of that connection's other end.
 */
int bs_accept(s64 nr, int socket, void *address, u32 *size, int flags)
{
    u64 time = bs_now();
    u32 room = bs_address_room(address, size);
    u8 peer[BS_PEER_ADDRESS];
    u32 peer_size = sizeof peer;
    bool own = !address && bs_accepts_internet(socket);
    struct bs_reservation none = {0};
    s64 fd = bs_call_cancel(none, nr, socket, own ? peer : address, own ? &peer_size : size, flags);
    if (fd < 0) {
        BS_DEEP_LOG(time, fd, __NR_accept4, socket, address, 0, flags);
        return (int)bs_fail(fd);
    }
    bs_fd_opened(fd, 0);
    if (!address && (!own || peer_size > sizeof peer))
        peer_size = bs_ask_peer((int)fd, socket, peer);
    const void *other = address ? address : peer;
    BS_DEEP_LOG(time, fd, __NR_accept4, socket, other,
                address ? bs_deep_lengths(fd, address, room, size)
                        : bs_deep_lengths(fd, peer, sizeof peer, &peer_size),
                flags);
    u32 whole = room ? *size : 0, got = whole < room ? whole : room;
    bs_end(bs_begin_known_bytes(time, BS_OP_ACCEPT, socket, flags, address, got), fd);
    u32 known = !address ? peer_size : whole <= room ? whole : 0;
    if (bs_begin_accepted((int)fd, socket, other, known))
        BS_DEEP_DO(bs_deep_accepted((int)fd));
    return (int)fd;
}

BS_INTERCEPTED int accept(int socket, void *address, u32 *size)
{
    return bs_accept(__NR_accept4, socket, address, size, 0);
}

BS_INTERCEPTED int accept4(int socket, void *address, u32 *size, int flags)
{
    return bs_accept(__NR_accept4, socket, address, size, flags);
}

/* ---- messages, and descriptors in them ------------------------------------------------------- */

struct message {
    void *name;
    u32 name_size;
    void *parts;
    u64 part_count;
    void *control;
    u64 control_size;
    int flags;
};
struct many_messages {
    struct message message;
    u32 bytes;
};
struct control {
    u64 size;
    int level, kind;
};
enum { SOL_SOCKET = 1, SCM_RIGHTS = 1 };
enum { MOST_MESSAGES = 1024 /* UIO_MAXIOV: the kernel takes no more in one call */ };

/* `bs_address_room` of a message before the call that receives it. */
static u32 room_of(const struct message *message)
{
    bool known = bs_surely_readable(message, sizeof *message);
    return known ? bs_room(message->name, message->name_size) : BS_UNKNOWN_ROOM;
}

/* The same of each message. */
static void find_rooms(u8 *rooms, const struct many_messages *messages, u32 count)
{
    bool known = bs_surely_readable(messages, count * sizeof *messages);
    for (u32 i = 0; i < count; i++) {
        const struct message *m = &messages[i].message;
        rooms[i] = (u8)(known ? bs_room(m->name, m->name_size) : BS_UNKNOWN_ROOM);
    }
}

/*
 * Logs the descriptors that a message carries. Sent descriptors have the time at which the call
 * began: a receiver may use them before the call returns.
 */
static void log_passed(u64 time, int socket, const struct message *message, u32 received)
{
    if (BS_LIKELY(!message || !message->control || message->control_size < sizeof(struct control)))
        return;
    u64 at = 0;
    while (at + sizeof(struct control) <= message->control_size) {
        const struct control *c = (const struct control *)((const char *)message->control + at);
        if (c->size < sizeof *c || c->size > message->control_size - at)
            return;
        if (c->level == SOL_SOCKET && c->kind == SCM_RIGHTS) {
            const int *fds = (const int *)(c + 1);
            for (u64 i = 0; i < (c->size - sizeof *c) / sizeof(int); i++) {
                if (received) {
                    bs_fd_closed((u32)fds[i]);
                    BS_DEEP_DO(bs_deep_passed(fds[i]));
                } else {
                    bs_share_all();
                }
                bs_note(time, BS_OP_PASS, socket, fds[i], received, 0);
            }
        }
        at += (c->size + 7) & ~7ull;
    }
}

/*
 * The first message that a socket sends or receives counts as its first write or read. Further
 * messages may have other addresses. `room`: that for the sender's address, before the call.
 */
static void log_message(u64 time, int fd, u32 op, const struct message *message, u32 room,
                        ssize result)
{
    u32 mark = op == BS_OP_READ ? BS_FD_READ : BS_FD_WROTE;
    if (result < 0)
        return;
    bool news = bs_is_news(fd, mark);
    if (BS_UNLIKELY(message && message->name)) {
        if (op == BS_OP_READ)
            bs_log_received(fd, news, message->name, message->name_size, room);
        else
            bs_log_sent(time, fd, news, message->name, message->name_size);
    }
    if (!news)
        return;
    bs_note(time, op, fd, 0, 0, result);
    bs_fd_mark(fd, mark);
}

BS_INTERCEPTED ssize sendmsg(int fd, const void *message, int flags)
{
    u64 time = bs_now();
    ssize result = BS_NEXT(sendmsg)(fd, message, flags);
    BS_DEEP_LOG_RETURN(time, result, __NR_sendmsg, fd, message, flags);
    log_message(time, fd, BS_OP_WRITE, message, 0, result);
    if (result >= 0)
        log_passed(time, fd, message, 0);
    return result;
}

BS_INTERCEPTED ssize recvmsg(int fd, void *message, int flags)
{
    u32 room = room_of(message);
    u64 time = bs_now();
    ssize result = BS_NEXT(recvmsg)(fd, message, flags);
    BS_DEEP_LOG_RETURN(time, result, __NR_recvmsg, fd, message, flags, room);
    log_message(time, fd, BS_OP_READ, message, room, result);
    if (result >= 0)
        log_passed(0, fd, message, 1);
    return result;
}

BS_INTERCEPTED int sendmmsg(int fd, void *messages, u32 count, int flags)
{
    u64 time = bs_now();
    int result = BS_NEXT(sendmmsg)(fd, messages, count, flags);
    if (result < 0)
        BS_DEEP_LOG_RETURN(time, result, __NR_sendmsg, fd, messages, flags);
    for (int i = 0; i < result; i++) {
        const struct message *message = &((struct many_messages *)messages)[i].message;
        BS_DEEP_LOG(time, ((struct many_messages *)messages)[i].bytes, __NR_sendmsg, fd, message,
                    flags);
        log_message(time, fd, BS_OP_WRITE, message, 0, result);
        log_passed(time, fd, message, 0);
    }
    return result;
}

BS_INTERCEPTED int recvmmsg(int fd, void *messages, u32 count, int flags, void *timeout)
{
    u8 rooms[MOST_MESSAGES];
    u32 looked = count < MOST_MESSAGES ? count : MOST_MESSAGES;
    find_rooms(rooms, messages, looked);
    u64 time = bs_now();
    int result = BS_NEXT(recvmmsg)(fd, messages, count, flags, timeout);
    for (u32 i = 0; i < looked && (int)i < result; i++) {
        const struct message *message = &((struct many_messages *)messages)[i].message;
        BS_DEEP_LOG(time, ((struct many_messages *)messages)[i].bytes, __NR_recvmsg, fd, message,
                    flags, rooms[i]);
        log_message(time, fd, BS_OP_READ, message, rooms[i], result);
        log_passed(0, fd, message, 1);
    }
    return result;
}

/* ---- memory with a descriptor ---------------------------------------------------------------- */

BS_API int memfd_create(const char *name, u32 flags)
{
    return (int)BS_BY(bs_shaped_opens, memfd_create, MEMFD, (.strings = 1, .path = 1, .arg = 2),
                      name, flags);
}

/* Writes the file name of a shared memory object into `to`. False if there can be no such name. */
static bool shared_name(const char *name, char to[280])
{
    static const char place[] = "/dev/shm/";
    while (*name == '/')
        name++;
    u32 n = bs_length(name, 256);
    for (u32 i = 0; i < n; i++)
        if (name[i] == '/')
            return false;
    if (!n || n > 255)
        return false;
    bs_copy(to, place, sizeof place - 1);
    bs_copy(to + sizeof place - 1, name, n + 1);
    return true;
}

BS_API int shm_open(const char *name, int flags, u32 mode)
{
    char path[280];
    if (!shared_name(name, path))
        return (int)bs_fail(-BS_EINVAL);
    s64 fd = bs_open_file(BS_AT_FDCWD, path, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    return (int)bs_ret(fd == -21 /* EISDIR */ ? -BS_EINVAL : fd);
}

int unlink(const char *path);

BS_API int shm_unlink(const char *name)
{
    char path[280];
    if (!shared_name(name, path))
        return (int)bs_fail(-BS_ENOENT);
    int result = unlink(path);
    if (result < 0 && __errno_location && *__errno_location() == BS_EPERM)
        return (int)bs_fail(-BS_EACCES);
    return result;
}

/* ---- descriptors without file data: only their numbers matter -------------------------------- */

#define PLAIN(name, nr, parameters, ...) \
    BS_INTERCEPTED int name parameters \
    { \
        return (int)BS_BY(bs_shaped_opens, nr, EVENTFD, (.arg_is = __NR_##nr), __VA_ARGS__); \
    }

PLAIN(eventfd, eventfd2, (u32 start, int flags), start, flags)
PLAIN(epoll_create1, epoll_create1, (int flags), flags)
PLAIN(epoll_create, epoll_create, (int size), size)
PLAIN(timerfd_create, timerfd_create, (int clock, int flags), clock, flags)
PLAIN(inotify_init1, inotify_init1, (int flags), flags)
PLAIN(pidfd_open, pidfd_open, (int pid, u32 flags), pid, flags)

int inotify_init1(int flags);

BS_INTERCEPTED int inotify_init(void)
{
    return inotify_init1(0);
}

BS_INTERCEPTED int signalfd(int fd, const void *mask, int flags)
{
    if (fd >= 0)
        return (int)bs_ret(bs_raw(__NR_signalfd4, fd, mask, 8, flags));
    return (int)BS_BY(bs_shaped_opens, signalfd4, EVENTFD, (.arg_is = __NR_signalfd4), fd, mask, 8,
                      flags);
}
