/*
 * Wraps the calls that only deep recording needs. They wait for descriptors, ask for facts about
 * descriptors and the process, or give random bytes. The calls themselves are libc's, so they
 * remain cancellation points.
 */
#include "../file_system.h"
#include "exact.h"
#include "timeout.h"

/* The program's structure has been read by the call. */
static s64 timeout_of(s64 result, const struct bs_timeout *t)
{
    return result != -BS_EFAULT ? bs_timeout_at(t, BS_TIMEOUT_NS) : -1;
}

/* ---- waiting --------------------------------------------------------------------------------- */

int poll(void *fds, u64 count, int timeout);
int ppoll(void *fds, u64 count, const struct bs_timeout *timeout, const void *mask);
int select(int nfds, void *in, void *out, void *other, struct bs_timeout *timeout);
int pselect(int nfds, void *in, void *out, void *other, const struct bs_timeout *timeout,
            const void *mask);
int epoll_wait(int fd, void *events, int room, int timeout);
int epoll_pwait(int fd, void *events, int room, int timeout, const void *mask);
int epoll_pwait2(int fd, void *events, int room, const struct bs_timeout *timeout,
                 const void *mask);
int epoll_ctl(int fd, int operation, int other, void *event);
int __poll_chk(void *fds, u64 count, int timeout, size_t room);
int __ppoll_chk(void *fds, u64 count, const struct bs_timeout *timeout, const void *mask,
                size_t room);

/* Makes libc's call, and records it under the number and arguments that follow. */
#define RECORDED(type, call, ...) \
    u64 time = bs_now(); \
    type result = call; \
    BS_DEEP_LOG_RETURN(time, result, __VA_ARGS__); \
    return result;

BS_API int poll(void *fds, u64 count,
                int timeout){RECORDED(int, BS_NEXT(poll)(fds, count, timeout), __NR_poll, fds,
                                      count, bs_timeout_of_ms(timeout))} BS_ALIAS(__poll, poll);

BS_API int ppoll(void *fds, u64 count, const struct bs_timeout *timeout,
                 const void *mask){RECORDED(int, BS_NEXT(ppoll)(fds, count, timeout, mask),
                                            __NR_poll, fds, count, timeout_of(result, timeout))}

BS_API int __poll_chk(void *fds, u64 count, int timeout,
                      size_t room){RECORDED(int, BS_NEXT(__poll_chk)(fds, count, timeout, room),
                                            __NR_poll, fds, count, bs_timeout_of_ms(timeout))}

BS_API int __ppoll_chk(void *fds, u64 count, const struct bs_timeout *timeout, const void *mask,
                       size_t room){RECORDED(int,
                                             BS_NEXT(__ppoll_chk)(fds, count, timeout, mask, room),
                                             __NR_poll, fds, count, timeout_of(result, timeout))}

/* libc reads the timeout, and leaves the time left in its place. */
BS_API int select(int nfds, void *in, void *out, void *other, struct bs_timeout *timeout)
{
    s64 ns = bs_timeout_at(timeout, BS_TIMEOUT_US);
    RECORDED(int, BS_NEXT(select)(nfds, in, out, other, timeout), __NR_select, nfds, in, out, other,
             ns)
}
BS_ALIAS(__select, select);

BS_API int pselect(int nfds, void *in, void *out, void *other, const struct bs_timeout *timeout,
                   const void *mask){
    RECORDED(int, BS_NEXT(pselect)(nfds, in, out, other, timeout, mask), __NR_select, nfds, in, out,
             other, timeout_of(result, timeout))}

BS_API int epoll_wait(int fd, void *events, int room, int timeout){
    RECORDED(int, BS_NEXT(epoll_wait)(fd, events, room, timeout), __NR_epoll_wait, fd, events, room,
             bs_timeout_of_ms(timeout))}

BS_API int epoll_pwait(int fd, void *events, int room, int timeout, const void *mask){
    RECORDED(int, BS_NEXT(epoll_pwait)(fd, events, room, timeout, mask), __NR_epoll_wait, fd,
             events, room, bs_timeout_of_ms(timeout))}

BS_API int epoll_pwait2(int fd, void *events, int room, const struct bs_timeout *timeout,
                        const void *mask){
    RECORDED(int, BS_NEXT(epoll_pwait2)(fd, events, room, timeout, mask), __NR_epoll_wait, fd,
             events, room, timeout_of(result, timeout))}

BS_API int epoll_ctl(int fd, int operation, int other, void *event)
{
    RECORDED(int, BS_NEXT(epoll_ctl)(fd, operation, other, event), __NR_epoll_ctl, fd, operation,
             other, event)
}

/* ---- descriptors ----------------------------------------------------------------------------- */

int fstat(int fd, void *to);
int __fxstat(int version, int fd, void *to);
s64 lseek(int fd, s64 offset, int whence);
int getsockname(int fd, void *address, u32 *size);
int getpeername(int fd, void *address, u32 *size);
int getsockopt(int fd, int level, int option, void *value, u32 *size);
int shutdown(int fd, int how);

static int status_of(int fd, void *to)
{
    u64 time = bs_now();
    s64 result = bs_raw(__NR_fstat, fd, to);
    BS_DEEP_LOG(time, result, __NR_fstat, fd, to);
    return (int)bs_ret(result);
}

BS_API int fstat(int fd, void *to)
{
    return status_of(fd, to);
}
BS_ALIAS(fstat64, fstat);

BS_API int __fxstat(int version, int fd, void *to)
{
    (void)version;
    return status_of(fd, to);
}
BS_ALIAS(__fxstat64, __fxstat);

BS_API s64 lseek(int fd, s64 offset, int whence)
{
    u64 time = bs_now();
    s64 result = bs_raw(__NR_lseek, fd, offset, whence);
    BS_DEEP_LOG(time, result, __NR_lseek, fd, offset, whence);
    return bs_ret(result);
}
BS_ALIAS(lseek64, lseek);
BS_ALIAS(__lseek, lseek);

BS_API int getsockname(int fd, void *address, u32 *size)
{
    u32 room = bs_address_room(address, size);
    RECORDED(int, BS_NEXT(getsockname)(fd, address, size), __NR_getsockname, fd, address,
             bs_deep_lengths(result, address, room, size))
}

BS_API int getpeername(int fd, void *address, u32 *size)
{
    u32 room = bs_address_room(address, size);
    RECORDED(int, BS_NEXT(getpeername)(fd, address, size), __NR_getpeername, fd, address,
             bs_deep_lengths(result, address, room, size))
}

BS_API int getsockopt(int fd, int level, int option, void *value,
                      u32 *size){RECORDED(int, BS_NEXT(getsockopt)(fd, level, option, value, size),
                                          __NR_getsockopt, fd, level, option, value, size)}

BS_API int shutdown(int fd, int how)
{
    RECORDED(int, BS_NEXT(shutdown)(fd, how), __NR_shutdown, fd, how)
}

/* ---- the process, time, chance --------------------------------------------------------------- */

int getpid(void);
int getppid(void);
int getpgrp(void);
int getpgid(int pid);
int getsid(int pid);
int setpgid(int pid, int group);
int setpgrp(void);
int setsid(void);
int uname(void *to);
int clock_gettime(int clock, void *to);
int sched_getcpu(void);
int getrusage(int whose, void *to);
s64 times(void *to);
ssize getrandom(void *to, size_t n, u32 flags);
int getentropy(void *to, size_t n);
u32 arc4random(void);
void arc4random_buf(void *to, size_t n);
u32 arc4random_uniform(u32 bound);

BS_API int getpid(void){RECORDED(int, (int)bs_raw(__NR_getpid, 0), __NR_getpid)} BS_ALIAS(__getpid,
                                                                                          getpid);

BS_API int getppid(void){RECORDED(int, (int)bs_raw(__NR_getppid, 0), __NR_getppid)}

/* A program may fork only if it leads its process group, as setsid(1) does. */
BS_API int getpgrp(void){RECORDED(int, (int)bs_raw(__NR_getpgrp, 0), __NR_getpgrp)}

BS_API int getpgid(int pid){
    RECORDED(int, BS_NEXT(getpgid)(pid), __NR_getpgid, pid)} BS_ALIAS(__getpgid, getpgid);

BS_API int getsid(int pid){RECORDED(int, BS_NEXT(getsid)(pid), __NR_getsid, pid)}

BS_API int setpgid(int pid, int group){RECORDED(int, BS_NEXT(setpgid)(pid, group), __NR_setpgid,
                                                pid, group)} BS_ALIAS(__setpgid, setpgid);

BS_API int setpgrp(void){RECORDED(int, BS_NEXT(setpgrp)(), __NR_setpgid, 0, 0)}

BS_API int setsid(void){RECORDED(int, BS_NEXT(setsid)(), __NR_setsid)}

BS_API int uname(void *to){RECORDED(int, BS_NEXT(uname)(to), __NR_uname, to)}

/*
 * Only clocks that the vDSO does not have are read in the kernel: those of processor time. With
 * exact time, the vDSO's function records all of them.
 */
BS_API int clock_gettime(int clock, void *to)
{
    enum { PROCESS_CPUTIME = 2, THREAD_CPUTIME = 3 };
    if (bs_exact_time ||
        BS_LIKELY(clock >= 0 && clock != PROCESS_CPUTIME && clock != THREAD_CPUTIME))
        return BS_NEXT(clock_gettime)(clock, to);
    RECORDED(int, BS_NEXT(clock_gettime)(clock, to), __NR_clock_gettime, clock, to)
}

/* libc has the number in memory that it shares with the kernel. */
BS_API int sched_getcpu(void)
{
    u32 processor;
    if (!bs_exact_time)
        return BS_NEXT(sched_getcpu)();
    s64 result = bs_exact_processor(&processor, 0);
    return result < 0 ? (int)bs_ret(result) : (int)processor;
}

BS_API int getrusage(int whose, void *to){
    RECORDED(int, BS_NEXT(getrusage)(whose, to), __NR_getrusage, whose, to)}

BS_API s64 times(void *to){RECORDED(s64, BS_NEXT(times)(to), __NR_times, to)}

BS_API ssize getrandom(void *to, size_t n, u32 flags){
    RECORDED(ssize, BS_NEXT(getrandom)(to, n, flags), __NR_getrandom, to, n, flags)}

BS_API int getentropy(void *to, size_t n)
{
    u64 time = bs_now();
    int failed = BS_NEXT(getentropy)(to, n);
    BS_DEEP_LOG(time, failed ? bs_error() : (s64)n, __NR_getrandom, to, n);
    return failed;
}

BS_API void arc4random_buf(void *to, size_t n)
{
    u64 time = bs_now();
    BS_NEXT(arc4random_buf)(to, n);
    BS_DEEP_LOG(time, (s64)n, __NR_getrandom, to, n);
}

BS_API u32 arc4random(void)
{
    u64 time = bs_now();
    u32 value = BS_NEXT(arc4random)();
    BS_DEEP_LOG(time, sizeof value, __NR_getrandom, &value, sizeof value);
    return value;
}

BS_API u32 arc4random_uniform(u32 bound)
{
    u64 time = bs_now();
    u32 value = BS_NEXT(arc4random_uniform)(bound);
    BS_DEEP_LOG(time, sizeof value, __NR_getrandom, &value, sizeof value);
    return value;
}

/* ---- the machine and its file systems -------------------------------------------------------- */

/* libc's struct statvfs, which it makes of the kernel's. */
struct file_system_view {
    u64 block, fragment;
    u64 blocks, free, available, files, free_files, available_files;
    u64 id, flags, name_length;
    int spare[6];
};

int sysinfo(void *to);
int statfs(const char *path, struct bs_file_system *to);
int statvfs(const char *path, struct file_system_view *to);

BS_API int sysinfo(void *to)
{
    u64 time = bs_now();
    int failed = BS_NEXT(sysinfo)(to);
    BS_DEEP_LOG_RETURN(time, failed, __NR_sysinfo, to);
    return failed;
}

BS_API int statfs(const char *path, struct bs_file_system *to)
{
    u64 time = bs_now();
    int failed = BS_NEXT(statfs)(path, to);
    BS_DEEP_LOG_RETURN(time, failed, __NR_statfs, path, to);
    return failed;
}
BS_ALIAS(statfs64, statfs);

/*
 * libc makes the call inside itself. The record has the kernel's answer again, without its type:
 * older versions of libc do not pass it on.
 */
BS_API int statvfs(const char *path, struct file_system_view *to)
{
    enum { VALID = 0x20 };
    u64 time = bs_now();
    int failed = BS_NEXT(statvfs)(path, to);
    struct bs_file_system kernels = {0};
    if (failed == 0)
        kernels = (struct bs_file_system){
            .block = (s64)to->block,
            .blocks = to->blocks,
            .free = to->free,
            .available = to->available,
            .files = to->files,
            .free_files = to->free_files,
            .id = {(u32)to->id, (u32)(to->id >> 32)},
            .name_length = (s64)to->name_length,
            .fragment = (s64)to->fragment,
            .flags = (s64)(to->flags | VALID),
        };
    BS_DEEP_LOG_RETURN(time, failed, __NR_statfs, path, &kernels);
    return failed;
}
BS_ALIAS(statvfs64, statvfs);

/* ---- the limit of the address space ---------------------------------------------------------- */

struct limit {
    u64 soft, hard;
};
int setrlimit(u32 resource, const struct limit *limit);
int getrlimit(u32 resource, struct limit *limit);

enum { LIMIT_OF_ADDRESSES = 9, ARENA = BS_ARENA_HEADER + BS_MAX_CHUNKS * BS_CHUNK_SIZE };
static const u64 UNLIMITED = ~0ull;

/* True once the program's limit has room for the arena beside its own memory. */
static bool has_more_addresses;

/* A program that limits its own address space has not counted the arena. */
BS_API int setrlimit(u32 resource, const struct limit *limit)
{
    if (resource != LIMIT_OF_ADDRESSES || !limit || !bs_deep_arena || limit->soft == UNLIMITED)
        return BS_NEXT(setrlimit)(resource, limit);
    struct limit more = {limit->soft + ARENA, limit->hard};
    if (more.hard != UNLIMITED)
        more.hard += ARENA;
    if (BS_NEXT(setrlimit)(resource, &more) == 0) {
        has_more_addresses = true;
        return 0;
    }
    return BS_NEXT(setrlimit)(resource, limit);
}
BS_ALIAS(setrlimit64, setrlimit);

BS_API int getrlimit(u32 resource, struct limit *limit)
{
    int result = BS_NEXT(getrlimit)(resource, limit);
    if (result == 0 && resource == LIMIT_OF_ADDRESSES && has_more_addresses) {
        limit->soft -= limit->soft != UNLIMITED ? ARENA : 0;
        limit->hard -= limit->hard != UNLIMITED ? ARENA : 0;
    }
    return result;
}
BS_ALIAS(getrlimit64, getrlimit);
