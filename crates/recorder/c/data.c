/*
 * Records the movement of data. The first read and the first write of each descriptor are logged.
 * Any other costs only the test of one byte. If functions are recorded, so are the first ones of
 * each function. The calls themselves are libc's, so they remain cancellation points.
 */
#include "shape.h"

/* A function of libc, looked up at its first use. */
struct far {
    void *function;
    char name[24];
};
typedef ssize any_function(s64, s64, s64, s64, s64, s64);

static any_function *reach(struct far *far)
{
    void *function = __atomic_load_n(&far->function, __ATOMIC_RELAXED);
    return (any_function *)(function ? function : bs_find(&far->function, far->name));
}

/* A read that may be the descriptor's first. A failed read moves nothing and is not logged. */
static __attribute__((noinline)) ssize first_read(struct far *far, s64 fd, s64 b, s64 c, s64 d,
                                                  s64 e, s64 f)
{
    u64 time = bs_now();
    bool news = bs_is_news((int)fd, BS_FD_READ);
    ssize got = reach(far)(fd, b, c, d, e, f);
    if (news && got >= 0) {
        bs_note(time, BS_OP_READ, (s32)fd, 0, 0, got);
        bs_fd_mark((int)fd, BS_FD_READ);
    }
    return got;
}

/*
 * A write that may be the descriptor's first. The record is begun before the call: if the process
 * dies during the call, the write may have happened.
 */
static __attribute__((noinline)) ssize first_write(struct far *far, s64 fd, s64 b, s64 c, s64 d,
                                                   s64 e, s64 f)
{
    if (!bs_is_news((int)fd, BS_FD_WROTE))
        return reach(far)(fd, b, c, d, e, f);
    bs_about_to_change((int)fd);
    struct bs_reservation rec = bs_begin(BS_OP_WRITE, (s32)fd, 0, 0);
    bool through = bs_about_to_write((int)fd);
    ssize put = reach(far)(fd, b, c, d, e, f);
    bs_end(rec, put >= 0 ? put : bs_error());
    if (put >= 0 && !through)
        bs_fd_mark((int)fd, BS_FD_WROTE);
    return put;
}

/* Calls libc's function directly if the operation is not the first, else through `first`. */
#define BY(first, mark, name, fd, ...) \
    ({ \
        static struct far far_ = {0, #name}; \
        void *next_ = __atomic_load_n(&far_.function, __ATOMIC_RELAXED); \
        BS_LIKELY(next_ && !bs_is_news(fd, mark)) \
        ? ((__typeof(&name))next_)(fd, __VA_ARGS__) \
        : first(&far_, fd, BS_FIVE_MORE(__VA_ARGS__, 0, 0, 0, 0, 0)); \
    })
#define BS_FIVE_MORE(a, b, c, d, e, ...) (s64)(a), (s64)(b), (s64)(c), (s64)(d), (s64)(e)
/* The call's number is first, then libc's function, then its arguments. */
#define READS(nr, name, ...) MOVES(nr, BY(first_read, BS_FD_READ, name, __VA_ARGS__), __VA_ARGS__)
#define WRITES(nr, name, ...) \
    MOVES(nr, BY(first_write, BS_FD_WROTE, name, __VA_ARGS__), __VA_ARGS__)
#ifdef BS_DEEP
#define MOVES(nr, call, ...) \
    u64 time_ = bs_now(); \
    ssize moved_ = call; \
    BS_DEEP_LOG_RETURN(time_, moved_, nr, __VA_ARGS__); \
    return moved_
#else
#define MOVES(nr, call, ...) return call
#endif

/* ---- read ------------------------------------------------------------------------------------ */

ssize read(int fd, void *to, size_t n);
ssize pread(int fd, void *to, size_t n, s64 at);
ssize readv(int fd, const void *parts, int count);
ssize preadv(int fd, const void *parts, int count, s64 at);
ssize preadv2(int fd, const void *parts, int count, s64 at, int flags);
ssize __read_chk(int fd, void *to, size_t n, size_t room);
ssize __pread_chk(int fd, void *to, size_t n, s64 at, size_t room);
ssize recv(int fd, void *to, size_t n, int flags);
ssize recvfrom(int fd, void *to, size_t n, int flags, void *from, u32 *size);
ssize __recv_chk(int fd, void *to, size_t n, size_t room, int flags);
ssize __recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, void *from, u32 *size);

BS_INTERCEPTED ssize read(int fd, void *to, size_t n)
{
    READS(__NR_read, read, fd, to, n);
}
BS_ALIAS(__read, read);

BS_INTERCEPTED ssize pread(int fd, void *to, size_t n, s64 at)
{
    READS(__NR_pread64, pread, fd, to, n, at);
}
BS_ALIAS(pread64, pread);
BS_ALIAS(__pread64, pread);

BS_INTERCEPTED ssize readv(int fd, const void *parts, int count)
{
    READS(__NR_readv, readv, fd, parts, count);
}

BS_INTERCEPTED ssize preadv(int fd, const void *parts, int count, s64 at)
{
    READS(__NR_preadv, preadv, fd, parts, count, at);
}
BS_ALIAS(preadv64, preadv);

BS_API ssize preadv2(int fd, const void *parts, int count, s64 at, int flags)
{
    READS(__NR_preadv2, preadv2, fd, parts, count, at, flags);
}
BS_ALIAS(preadv64v2, preadv2);

BS_API ssize __read_chk(int fd, void *to, size_t n, size_t room)
{
    READS(__NR_read, __read_chk, fd, to, n, room);
}

BS_API ssize __pread_chk(int fd, void *to, size_t n, s64 at, size_t room)
{
    READS(__NR_pread64, __pread_chk, fd, to, n, at, room);
}
BS_ALIAS(__pread64_chk, __pread_chk);

BS_INTERCEPTED ssize recv(int fd, void *to, size_t n, int flags)
{
    READS(__NR_recvfrom, recv, fd, to, n, flags);
}

BS_INTERCEPTED ssize recvfrom(int fd, void *to, size_t n, int flags, void *from, u32 *size)
{
    if (BS_LIKELY(!from)) {
        READS(__NR_recvfrom, recvfrom, fd, to, n, flags, from, size);
    }
    bool news = bs_is_news(fd, BS_FD_READ);
    u32 room = bs_address_room(from, size);
    u64 began = BS_DEEP_TIME();
    ssize got = BY(first_read, BS_FD_READ, recvfrom, fd, to, n, flags, from, size);
    BS_DEEP_LOG_RETURN(began, got, __NR_recvfrom, fd, to, n, flags, from,
                       bs_deep_lengths(got, from, room, size));
    if (got >= 0 && size)
        bs_log_received(fd, news, from, *size, room);
    return got;
}

BS_API ssize __recv_chk(int fd, void *to, size_t n, size_t room, int flags)
{
    u64 began = BS_DEEP_TIME();
    ssize got = BY(first_read, BS_FD_READ, __recv_chk, fd, to, n, room, flags);
    BS_DEEP_LOG_RETURN(began, got, __NR_recvfrom, fd, to, n, flags);
    return got;
}

BS_API ssize __recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, void *from,
                            u32 *size)
{
    if (n > room)
        return BS_NEXT(__recvfrom_chk)(fd, to, n, room, flags, from, size); /* libc aborts here */
    return recvfrom(fd, to, n, flags, from, size);
}

/* ---- write ----------------------------------------------------------------------------------- */

ssize write(int fd, const void *from, size_t n);
ssize pwrite(int fd, const void *from, size_t n, s64 at);
ssize writev(int fd, const void *parts, int count);
ssize pwritev(int fd, const void *parts, int count, s64 at);
ssize pwritev2(int fd, const void *parts, int count, s64 at, int flags);
ssize send(int fd, const void *from, size_t n, int flags);
ssize sendto(int fd, const void *from, size_t n, int flags, const void *to, u32 size);
ssize vmsplice(int fd, const void *parts, size_t count, u32 flags);

BS_INTERCEPTED ssize write(int fd, const void *from, size_t n)
{
    WRITES(__NR_write, write, fd, from, n);
}
BS_ALIAS(__write, write);

BS_INTERCEPTED ssize pwrite(int fd, const void *from, size_t n, s64 at)
{
    WRITES(__NR_pwrite64, pwrite, fd, from, n, at);
}
BS_ALIAS(pwrite64, pwrite);
BS_ALIAS(__pwrite64, pwrite);

BS_INTERCEPTED ssize writev(int fd, const void *parts, int count)
{
    WRITES(__NR_writev, writev, fd, parts, count);
}

BS_INTERCEPTED ssize pwritev(int fd, const void *parts, int count, s64 at)
{
    WRITES(__NR_pwritev, pwritev, fd, parts, count, at);
}
BS_ALIAS(pwritev64, pwritev);

BS_API ssize pwritev2(int fd, const void *parts, int count, s64 at, int flags)
{
    WRITES(__NR_pwritev2, pwritev2, fd, parts, count, at, flags);
}
BS_ALIAS(pwritev64v2, pwritev2);

BS_INTERCEPTED ssize send(int fd, const void *from, size_t n, int flags)
{
    WRITES(__NR_sendto, send, fd, from, n, flags);
}
BS_ALIAS(__send, send);

BS_INTERCEPTED ssize sendto(int fd, const void *from, size_t n, int flags, const void *to, u32 size)
{
    if (BS_LIKELY(!to)) {
        WRITES(__NR_sendto, sendto, fd, from, n, flags, to, size);
    }
    bool news = bs_is_news(fd, BS_FD_WROTE);
    u64 time = bs_now();
    ssize put = BY(first_write, BS_FD_WROTE, sendto, fd, from, n, flags, to, size);
    BS_DEEP_LOG_RETURN(time, put, __NR_sendto, fd, from, n, flags, to, size);
    if (put >= 0)
        bs_log_sent(time, fd, news, to, size);
    return put;
}

BS_API ssize vmsplice(int fd, const void *parts, size_t count, u32 flags)
{
    WRITES(__NR_vmsplice, vmsplice, fd, parts, count, flags);
}

BS_API int fallocate(int fd, int mode, s64 at, s64 size)
{
    bs_about_to_change(fd);
    struct bs_reservation rec = bs_begin(BS_OP_WRITE, fd, 0, 0);
    return (int)bs_finish(rec, bs_call_cancel(rec, __NR_fallocate, fd, mode, at, size));
}
BS_ALIAS(fallocate64, fallocate);

int posix_fallocate(int fd, s64 at, s64 size);

BS_API int posix_fallocate(int fd, s64 at, s64 size)
{
    bs_about_to_change(fd);
    struct bs_reservation rec = bs_begin(BS_OP_WRITE, fd, 0, 0);
    int error = BS_NEXT(posix_fallocate)(fd, at, size);
    bs_end(rec, -error);
    return error;
}
BS_ALIAS(posix_fallocate64, posix_fallocate);

/* ---- asynchronous: a requested operation counts as done -------------------------------------- */

/* The first field of a request is the descriptor. */
int aio_read(int *request);
int aio_write(int *request);

BS_API int aio_read(int *request)
{
    if (bs_is_news(*request, BS_FD_READ)) {
        bs_note(0, BS_OP_READ, *request, 0, 0, 0);
        bs_fd_mark(*request, BS_FD_READ);
    }
    return BS_NEXT(aio_read)(request);
}
BS_ALIAS(aio_read64, aio_read);

BS_API int aio_write(int *request)
{
    if (bs_is_news(*request, BS_FD_WROTE)) {
        bs_about_to_change(*request);
        bs_note(0, BS_OP_WRITE, *request, 0, 0, 0);
        if (!bs_about_to_write(*request))
            bs_fd_mark(*request, BS_FD_WROTE);
    }
    return BS_NEXT(aio_write)(request);
}
BS_ALIAS(aio_write64, aio_write);

/* ---- copies in the kernel -------------------------------------------------------------------- */

/*
 * A copy between the same two descriptors is logged once. With several pairs in turn it is logged
 * each time.
 */
static bool copy_is_news(int from, int to)
{
    bool same = bs_process->copy_from == from && bs_process->copy_to == to;
    return !same || !(bs_fd_marks(from) & bs_fd_marks(to) & BS_FD_COPIED) ||
           bs_modes & BS_MODE_ALL_OPS || bs_is_in_other_function(to, BS_FD_COPIED);
}

static ssize copied(struct bs_reservation rec, int from, int to, s64 n)
{
    bs_end(rec, n);
    if (n > 0 && rec.record && !bs_me.borrowed) {
        bs_process->copy_from = from;
        bs_process->copy_to = to;
        bs_fd_mark(from, BS_FD_COPIED);
        bs_fd_mark(to, BS_FD_COPIED);
    }
    return bs_ret(n);
}

#define COPIES(from, to, ...) \
    struct bs_reservation rec = {0}; \
    bs_about_to_change(to); \
    if (copy_is_news(from, to)) \
        rec = bs_begin(BS_OP_COPY, from, to, 0); \
    bs_about_to_write(to); \
    u64 time_ = BS_DEEP_TIME(); \
    s64 moved_ = copied(rec, from, to, bs_call_cancel(rec, __VA_ARGS__)); \
    BS_DEEP_LOG_RETURN(time_, moved_, __VA_ARGS__); \
    return moved_;

BS_API ssize sendfile(int to, int from, s64 *at, size_t n){
    COPIES(from, to, __NR_sendfile, to, from, at, n)} BS_ALIAS(sendfile64, sendfile);

BS_API ssize copy_file_range(int from, s64 *from_at, int to, s64 *to_at, size_t n, u32 flags){
    COPIES(from, to, __NR_copy_file_range, from, from_at, to, to_at, n, flags)}

BS_API ssize splice(int from, s64 *from_at, int to, s64 *to_at, size_t n,
                    u32 flags){COPIES(from, to, __NR_splice, from, from_at, to, to_at, n, flags)}

BS_API ssize
    tee(int from, int to, size_t n, u32 flags){COPIES(from, to, __NR_tee, from, to, n, flags)}

/* ---- truncation, mapping --------------------------------------------------------------------- */

BS_API int truncate(const char *path, s64 size)
{
    return (int)BS_SHAPED(truncate, TRUNCATE, (.strings = 1, .path = 1, .look = BS_LOOK_BEHIND),
                          path, size);
}
BS_ALIAS(truncate64, truncate);

BS_API int ftruncate(int fd, s64 size)
{
    bs_about_to_change(fd);
    return (int)BS_SHAPED(ftruncate, TRUNCATE, (.strings = 1, .fd = 1), fd, size);
}
BS_ALIAS(ftruncate64, ftruncate);

enum { MAP_ANON = 0x20 };
void *mmap(void *at, size_t size, int protection, int flags, int fd, s64 offset);

/* Only mappings of files are logged. A mapping of memory goes directly to the kernel. */
BS_INTERCEPTED void *mmap(void *at, size_t size, int protection, int flags, int fd, s64 offset)
{
    BS_AUTO_DO(if (protection & 4 /* PROT_EXEC */) bs_need_filter());
    if (fd < 0 || flags & MAP_ANON)
        return (void *)bs_ret(bs_raw(__NR_mmap, at, size, protection, flags, fd, offset));
    bs_share(fd); /* a child inherits the mapping */
    struct bs_reservation rec = bs_begin(BS_OP_MAP, fd, protection, (u32)flags);
    u64 time = BS_DEEP_TIME();
    s64 result = bs_call(rec, __NR_mmap, at, size, protection, flags, fd, offset);
    BS_DEEP_LOG(time, result, __NR_mmap, at, size, protection, flags, fd, offset);
    bs_end(rec, (u64)result > -4096ull ? result : 0);
    return (void *)bs_ret(result);
}
BS_ALIAS(mmap64, mmap);
