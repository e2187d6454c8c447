/*
 * The table from a system call to its deep record. It says which argument is a path, a buffer that
 * the kernel filled, or a buffer that left.
 *
 * Memory is read only where the kernel has just read or written it. Lengths that it will read are
 * read before only if `bs_readable` says so, and never in a sandbox, where that cannot be asked.
 */
#include "stream.h"
#include <linux/stat.h>

enum { MOST_PARTS = 4 };

/* A record that is being put together. */
struct draft {
    struct bs_deep_record record;
    struct bs_part parts[MOST_PARTS];
    u32 count;
    u64 reference[4]; /* of a FILE section */
    u64 digest[2];    /* of a LEFT_DIGEST section */
    u8 address[BS_LONGEST_ADDRESS];
};

struct message {
    const void *name;
    u32 name_size;
    const struct vector *parts;
    u64 part_count;
    const void *control;
    u64 control_size;
    u32 flags;
};

static void add(struct draft *d, u32 kind, u32 arg, const void *at, u64 size)
{
    if (at && size && d->count < MOST_PARTS)
        d->parts[d->count++] =
            (struct bs_part){.kind = (u16)kind, .arg = (u16)arg, .size = size, .at = at};
}

/* A path that the kernel has read, unless it failed to. */
static void add_path(struct draft *d, u32 arg, s64 path)
{
    if (d->record.result != -BS_EFAULT && path)
        add(d, BS_DEEP_PATH, arg, (const void *)path, bs_length((const char *)path, BS_PATH_MAX));
}

/* The bytes that the kernel wrote, if the call succeeded. */
static void add_entered(struct draft *d, u32 arg, s64 at, u64 size)
{
    if (d->record.result >= 0)
        add(d, BS_DEEP_ENTERED, arg, (const void *)at, size);
}

static u64 room_in(const struct vector *vectors, u64 count)
{
    u64 size = 0;
    for (u64 i = 0; i < count; i++)
        size += vectors[i].size;
    return size;
}

/* ---- data ------------------------------------------------------------------------------------ */

/*
 * The bytes of a read that returned. A file whose content the run stores is only referenced. The
 * position is that before the read, or negative for the descriptor's own.
 */
static void entered(struct draft *d, int fd, struct bs_part bytes, s64 position)
{
    if (d->record.result <= 0 || !bytes.size)
        return;
    struct bs_deep_file file =
        bs_deep_describe(fd, position < 0 ? (s64)bytes.size : BS_DEEP_UNMOVED);
    /*
     * libc moves the position of a stream by calls that are not seen. If the program limited its
     * calls, the position is unknown, and the log gets the bytes.
     */
    if (file.regular && position < 0 && !(bs_modes & BS_MODE_SANDBOX)) {
        s64 now = file.position >= 0 ? file.position : bs_raw(__NR_lseek, fd, 0, 1 /* SEEK_CUR */);
        position = now - (s64)bytes.size;
    }
    if (file.referenced && position >= 0) {
        d->reference[0] = file.number;
        d->reference[1] = (u64)position;
        d->reference[2] = bytes.size;
        d->reference[3] = bs_hash(&bytes);
        add(d, BS_DEEP_FILE, 1, d->reference, sizeof d->reference);
    } else if (d->count < MOST_PARTS) {
        if (d->record.call == __NR_read && position >= 0)
            d->record.b = (u64)position + 1;
        bytes.kind = BS_DEEP_ENTERED;
        bytes.arg = 1;
        d->parts[d->count++] = bytes;
    }
}

static void left(struct draft *d, int fd, struct bs_part bytes, s64 position)
{
    if (d->record.result <= 0 || !bytes.size || d->count == MOST_PARTS)
        return;
    bs_deep_describe(fd, position < 0 ? (s64)bytes.size : BS_DEEP_UNMOVED);
    if (bs_arena->flags & BS_ARENA_FULL) {
        bytes.kind = BS_DEEP_LEFT;
        bytes.arg = 1;
        d->parts[d->count++] = bytes;
        return;
    }
    d->digest[0] = bytes.size;
    d->digest[1] = bs_hash(&bytes);
    add(d, BS_DEEP_LEFT_DIGEST, 1, d->digest, sizeof d->digest);
}

/* `done` bytes of a buffer, or of buffers. */
static struct bs_part plain(s64 at, s64 done)
{
    return (struct bs_part){.size = done > 0 ? (u64)done : 0, .at = (const void *)at};
}

static struct bs_part gathered(const struct vector *vectors, u64 count, s64 done)
{
    u64 room = done > 0 ? room_in(vectors, count) : 0;
    return (struct bs_part){
        .vectors = (u32)count, .size = (u64)done < room ? (u64)done : room, .at = vectors};
}

/*
 * The bytes of a call that receives. By MSG_TRUNC, TCP discards them, and does not look at the
 * buffers. So these need not be readable. In a sandbox, that is known of the stack only.
 */
static struct bs_part received(struct bs_part bytes, s64 flags)
{
    enum { MSG_TRUNC = 0x20 };
    if (BS_LIKELY(!(flags & MSG_TRUNC)))
        return bytes;
    struct vector one = {bytes.at, bytes.size};
    const struct vector *vectors = bytes.vectors ? bytes.at : &one;
    for (u64 rest = bytes.size, i = 0; rest; i++) {
        u64 n = vectors[i].size < rest ? vectors[i].size : rest;
        if (n && !bs_surely_readable(vectors[i].at, n))
            return (struct bs_part){0};
        rest -= n;
    }
    return bytes;
}

/* After a success, the kernel has just written at `size`. */
s64 bs_deep_lengths(s64 result, const void *address, u32 room, const u32 *size)
{
    return result >= 0 && address && size ? (s64)((u64)room << 32 | *size) : 0;
}

/*
 * The address that the kernel wrote, by its `bs_deep_lengths`. Its length is that of the whole
 * address. The program sees that, too, but has only the bytes that fit into its room. Those behind
 * are not read: they are zeros in the record.
 */
static void add_address(struct draft *d, u32 arg, const void *at, s64 lengths)
{
    u32 n = (u32)lengths, room = (u32)((u64)lengths >> 32);
    if (d->record.result < 0 || !at)
        return;
    if (n > BS_LONGEST_ADDRESS)
        n = BS_LONGEST_ADDRESS;
    if (n > room) {
        memset(d->address, 0, sizeof d->address);
        bs_copy(d->address, at, room);
        at = d->address;
    }
    add(d, BS_DEEP_ADDRESS, arg, at, n);
}

/*
 * `recvmsg` with MSG_TRUNC returns more than the buffers have. `room`: that for the address of a
 * message that was received.
 */
static void add_message(struct draft *d, int fd, const struct message *m, bool enters, u32 room)
{
    if (d->record.result < 0)
        return;
    struct bs_part bytes = gathered(m->parts, m->part_count, d->record.result);
    d->record.a = room_in(m->parts, m->part_count);
    if (enters)
        entered(d, fd, received(bytes, (s64)d->record.b), -1);
    else
        left(d, fd, bytes, -1);
    if (enters)
        add_address(d, 1, m->name, bs_deep_lengths(d->record.result, m->name, room, &m->name_size));
    else
        add(d, BS_DEEP_ADDRESS, 1, m->name, m->name ? m->name_size : 0);
    add(d, BS_DEEP_CONTROL, 1, m->control, m->control ? m->control_size : 0);
    if (enters)
        add(d, BS_DEEP_MESSAGE, 1, &m->flags, sizeof m->flags);
}

/* ---- other calls ----------------------------------------------------------------------------- */

/* The request of `ioctl` for the addresses of all network interfaces. */
#define SIOCGIFCONF 0x8912

/* Its argument (`struct ifconf`): the length of a list in bytes, and the list. */
struct interfaces {
    s32 length, unused;
    s64 list;
};

/* How many bytes this request of `ioctl` writes at its argument. */
static u64 ioctl_size(u64 request)
{
    switch (request) {
    case 0x5401: return 36; /* TCGETS */
    case 0x5413: return 8;  /* TIOCGWINSZ */
    case 0x540f:            /* TIOCGPGRP */
    case 0x541b:            /* FIONREAD */
    case 0x5411:            /* TIOCOUTQ */
    case 0x5429: return 4;  /* TIOCGSID */
    case SIOCGIFCONF: return sizeof(s32);
    case 0x8910:            /* SIOCGIFNAME */
    case 0x8913:            /* SIOCGIFFLAGS */
    case 0x8915:            /* SIOCGIFADDR */
    case 0x8917:            /* SIOCGIFDSTADDR */
    case 0x8919:            /* SIOCGIFBRDADDR */
    case 0x891b:            /* SIOCGIFNETMASK */
    case 0x891d:            /* SIOCGIFMETRIC */
    case 0x8921:            /* SIOCGIFMTU */
    case 0x8927:            /* SIOCGIFHWADDR */
    case 0x8933:            /* SIOCGIFINDEX */
    case 0x8942:            /* SIOCGIFTXQLEN */
    case 0x8970: return 40; /* SIOCGIFMAP; all of them a `struct ifreq` */
    default: break;
    }
    bool reads = request >> 30 & 2; /* _IOC_READ */
    return reads ? request >> 16 & 0x3fff : 0;
}

/* The kernel has read and written the argument, so it is readable. */
static void add_interfaces(struct draft *d, const struct interfaces *all)
{
    if (all->list && all->length > 0)
        add_entered(d, 3, all->list, (u64)all->length);
}

/* The bytes that one of the sets of `select` has for `nfds` descriptors. */
static u64 set_size(s64 nfds)
{
    return nfds > 0 ? ((u64)nfds + 63) / 64 * 8 : 0;
}

/* Reads, writes and messages. False: another call. */
static bool data_call(struct draft *d, u32 nr, const s64 *arg)
{
    int fd = (int)arg[0];
    s64 done = d->record.result;
    const struct vector *vectors = (const struct vector *)arg[1];
    d->record.fd = fd;
    d->record.a = (u64)arg[2];
    d->record.b = (u64)arg[3];
    switch (nr) {
    case __NR_read:
        d->record.b = 0;
        entered(d, fd, plain(arg[1], done), -1);
        return true;
    case __NR_recvfrom:
        entered(d, fd, received(plain(arg[1], done < arg[2] ? done : arg[2]), arg[3]), -1);
        add_address(d, 4, (const void *)arg[4], arg[5]);
        return true;
    case __NR_pread64: entered(d, fd, plain(arg[1], done), arg[3]); return true;
    case __NR_readv:
    case __NR_preadv:
    case __NR_preadv2:
        d->record.b = nr == __NR_readv ? ~0ull : (u64)arg[3];
        d->record.a = done >= 0 ? room_in(vectors, (u64)arg[2]) : 0;
        entered(d, fd, gathered(vectors, (u64)arg[2], done), (s64)d->record.b);
        return true;
    case __NR_write:
        d->record.b = 0;
        left(d, fd, plain(arg[1], done), -1);
        return true;
    case __NR_pwrite64: left(d, fd, plain(arg[1], done), arg[3]); return true;
    case __NR_sendto:
        left(d, fd, plain(arg[1], done), -1);
        if (done >= 0)
            add(d, BS_DEEP_ADDRESS, 4, (const void *)arg[4], (u32)arg[5]);
        return true;
    case __NR_writev:
    case __NR_pwritev:
    case __NR_pwritev2:
        d->record.b = nr == __NR_writev ? ~0ull : (u64)arg[3];
        d->record.a = done >= 0 ? room_in(vectors, (u64)arg[2]) : 0;
        left(d, fd, gathered(vectors, (u64)arg[2], done), (s64)d->record.b);
        return true;
    case __NR_recvmsg:
    case __NR_sendmsg:
        d->record.b = (u64)arg[2];
        add_message(d, fd, (const struct message *)arg[1], nr == __NR_recvmsg, (u32)arg[3]);
        return true;
    default: d->record.a = d->record.b = 0; return false;
    }
}

/* Calls that name a file, or ask about one. False: another call. */
static bool file_call(struct draft *d, u32 nr, const s64 *arg)
{
    struct bs_deep_record *r = &d->record;
    switch (nr) {
    case __NR_open:
    case __NR_creat:
        r->fd = BS_AT_FDCWD;
        r->a = nr == __NR_open ? (u64)arg[1] : O_WRONLY | O_CREAT | O_TRUNC;
        r->b = (u64)(nr == __NR_open ? arg[2] : arg[1]);
        add_path(d, 0, arg[0]);
        return true;
    case __NR_openat:
    case __NR_faccessat:
    case __NR_faccessat2:
        r->fd = (s32)arg[0], r->a = (u64)arg[2], r->b = (u64)arg[3];
        add_path(d, 1, arg[1]);
        return true;
    case __NR_mkdir: /* and whether `mkdtemp` chose the name */
        r->fd = BS_AT_FDCWD, r->a = (u64)arg[1], r->b = (u64)arg[2];
        add_path(d, 0, arg[0]);
        return true;
    case __NR_access:
        r->fd = BS_AT_FDCWD, r->a = (u64)arg[1];
        add_path(d, 0, arg[0]);
        return true;
    case __NR_mkdirat:
        r->fd = (s32)arg[0], r->a = (u64)arg[2];
        add_path(d, 1, arg[1]);
        return true;
    case __NR_stat:
    case __NR_lstat:
        r->fd = BS_AT_FDCWD;
        add_path(d, 0, arg[0]);
        add_entered(d, 1, arg[1], 144);
        return true;
    case __NR_statfs:
        r->fd = BS_AT_FDCWD;
        add_path(d, 0, arg[0]);
        add_entered(d, 1, arg[1], 120);
        return true;
    case __NR_fstat:
        r->fd = (s32)arg[0];
        add_entered(d, 1, arg[1], 144);
        return true;
    case __NR_newfstatat:
        r->fd = (s32)arg[0], r->a = (u64)arg[3];
        add_path(d, 1, arg[1]);
        add_entered(d, 2, arg[2], 144);
        return true;
    case __NR_statx:
        r->fd = (s32)arg[0], r->a = (u64)arg[2], r->b = (u64)arg[3];
        add_path(d, 1, arg[1]);
        add_entered(d, 4, arg[4], sizeof(struct statx));
        return true;
    case __NR_readlink:
        r->fd = BS_AT_FDCWD, r->a = (u64)arg[2];
        if (r->result >= 0 && arg[0] != arg[1])
            add_path(d, 0, arg[0]);
        add_entered(d, 1, arg[1], (u64)r->result);
        return true;
    case __NR_readlinkat:
        r->fd = (s32)arg[0], r->a = (u64)arg[3];
        if (arg[1] != arg[2])
            add_path(d, 1, arg[1]);
        add_entered(d, 2, arg[2], (u64)r->result);
        return true;
    case __NR_getdents64:
        r->fd = (s32)arg[0], r->a = (u64)arg[2];
        /* The program may have opened it by a relative path, or through a symbolic link. */
        if (r->result > 0)
            bs_deep_describe(r->fd, BS_DEEP_UNMOVED);
        add_entered(d, 1, arg[1], (u64)r->result);
        return true;
    case __NR_mmap:
        r->fd = (s32)arg[4], r->a = (u64)arg[1], r->b = (u64)arg[5];
        /* Not if the call failed. The file of a socket, opened with O_PATH, is no socket. */
        if (r->result > 0 && r->fd >= 0)
            bs_deep_describe(r->fd, BS_DEEP_UNMOVED);
        return true;
    default: return false;
    }
}

/* Calls that wait for several descriptors. False: another call. */
static bool waiting_call(struct draft *d, u32 nr, const s64 *arg)
{
    struct bs_deep_record *r = &d->record;
    switch (nr) {
    case __NR_poll: /* the timeout in ns, as the wrappers pass it */
        r->fd = -1, r->a = (u64)arg[1], r->b = (u64)arg[2];
        add_entered(d, 0, arg[0], (u64)arg[1] * 8);
        return true;
    case __NR_select:
        r->fd = -1, r->a = (u64)arg[0], r->b = (u64)arg[4];
        for (u32 i = 1; i <= 3; i++)
            add_entered(d, i, arg[i], set_size(arg[0]));
        return true;
    case __NR_epoll_wait:
        r->fd = (s32)arg[0], r->a = (u64)arg[2], r->b = (u64)arg[3];
        add_entered(d, 1, arg[1], (u64)r->result * 12);
        return true;
    case __NR_epoll_ctl:
        r->fd = (s32)arg[0], r->a = (u64)arg[1], r->b = (u64)arg[2];
        if (r->result >= 0)
            add(d, BS_DEEP_LEFT, 3, (const void *)arg[3], 12);
        return true;
    default: return false;
    }
}

/* Says what the descriptors are between which the kernel moved bytes. */
static void describe_moved(const struct bs_deep_record *r, s64 from, s64 from_at, s64 to, s64 to_at)
{
    if (r->result <= 0)
        return;
    bs_deep_describe((int)from, from_at ? BS_DEEP_UNMOVED : r->result);
    bs_deep_describe((int)to, to_at ? BS_DEEP_UNMOVED : r->result);
}

/* Sockets, pipes, and the state of the process. Any other call keeps its first arguments. */
static void other_call(struct draft *d, u32 nr, const s64 *arg)
{
    struct bs_deep_record *r = &d->record;
    r->fd = (s32)arg[0], r->a = (u64)arg[1], r->b = (u64)arg[2];
    switch (nr) {
    case __NR_accept:
    case __NR_accept4:
        r->a = (u64)arg[3], r->b = 0;
        add_address(d, 1, (const void *)arg[1], arg[2]);
        break;
    case __NR_connect:
    case __NR_bind:
        r->a = r->b = 0;
        if (r->result != -BS_EFAULT)
            add(d, BS_DEEP_ADDRESS, 1, (const void *)arg[1], (u32)arg[2] < 128 ? (u32)arg[2] : 128);
        break;
    case __NR_getsockname:
    case __NR_getpeername:
        r->a = r->b = 0;
        add_address(d, 1, (const void *)arg[1], arg[2]);
        break;
    case __NR_getsockopt:
        if (arg[4] && r->result >= 0)
            add_entered(d, 3, arg[3], *(const u32 *)arg[4]);
        break;
    case __NR_ioctl:
        add_entered(d, 2, arg[2], ioctl_size((u64)arg[1]));
        if (arg[1] == SIOCGIFCONF && r->result == 0)
            add_interfaces(d, (const struct interfaces *)arg[2]);
        break;
    case __NR_socket: r->fd = -1, r->a = (u64)arg[0], r->b = (u64)arg[1]; break;
    case __NR_pipe:
    case __NR_pipe2:
        r->fd = -1, r->b = 0;
        add_entered(d, 0, arg[0], 2 * sizeof(int));
        break;
    case __NR_socketpair:
        r->fd = -1, r->b = 0;
        add_entered(d, 3, arg[3], 2 * sizeof(int));
        break;
    case __NR_sendfile:
        r->fd = (s32)arg[1], r->a = (u64)arg[0], r->b = (u64)arg[3];
        describe_moved(r, arg[1], arg[2], arg[0], 0);
        break;
    case __NR_splice:
    case __NR_copy_file_range:
        r->a = (u64)arg[2], r->b = (u64)arg[4];
        describe_moved(r, arg[0], arg[1], arg[2], arg[3]);
        break;
    case __NR_getrandom:
        r->fd = -1, r->a = (u64)arg[1], r->b = (u64)arg[2];
        add_entered(d, 0, arg[0], (u64)r->result);
        break;
    case __NR_wait4:
        r->fd = -1, r->a = (u64)arg[0], r->b = (u64)arg[2];
        if (r->result > 0)
            add_entered(d, 1, arg[1], sizeof(int));
        break;
    case __NR_waitid:
        r->fd = -1, r->a = (u64)arg[1], r->b = (u64)arg[3];
        add_entered(d, 2, arg[2], 128);
        break;
    case __NR_rt_sigtimedwait:
        r->fd = -1, r->a = r->b = 0;
        add_entered(d, 1, arg[1], 128);
        break;
    case __NR_exit_group:
    case __NR_getpgid:
    case __NR_getsid:
    case __NR_clock_gettime: r->fd = -1, r->a = (u64)arg[0], r->b = 0; break;
    case __NR_setpgid: r->fd = -1, r->a = (u64)arg[0], r->b = (u64)arg[1]; break;
    case __NR_fork:
    case __NR_vfork:
    case __NR_clone:
    case __NR_getpid:
    case __NR_getpgrp:
    case __NR_setsid:
    case __NR_getppid: r->fd = -1, r->a = r->b = 0; break;
    case __NR_getrusage:
        r->fd = -1, r->a = (u64)arg[0], r->b = 0;
        add_entered(d, 1, arg[1], 144);
        break;
    case __NR_times:
        r->fd = -1, r->a = r->b = 0;
        add_entered(d, 0, arg[0], 32);
        break;
    case __NR_uname:
        r->fd = -1, r->a = r->b = 0;
        add_entered(d, 0, arg[0], 6 * 65);
        break;
    case __NR_sysinfo:
        r->fd = -1, r->a = r->b = 0;
        add_entered(d, 0, arg[0], 112);
        break;
    default: break;
    }
    if (nr == __NR_clock_gettime)
        add_entered(d, 1, arg[1], 16);
}

void bs_deep_log(u64 time, s64 result, u32 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    if (!bs_deep_is_on())
        return;
    struct draft draft;
    u64 took = (bs_now() - time) >> 6;
    draft.count = 0;
    draft.record = (struct bs_deep_record){.call = (uint16_t)nr,
                                           .time = time,
                                           .took = took < ~0u ? (u32)took : ~0u,
                                           .fd = -1,
                                           .result = result};
    const s64 arg[6] = {a, b, c, d, e, f};
    if (!data_call(&draft, nr, arg) && !file_call(&draft, nr, arg) &&
        !waiting_call(&draft, nr, arg))
        other_call(&draft, nr, arg);
    bs_deep_append(&draft.record, draft.parts, draft.count);
    if (nr == __NR_openat && result >= 0 && !bs_deep_me.gap)
        bs_deep_opened(result, (const char *)b, (int)c);
}
