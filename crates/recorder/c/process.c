/* Records the ends of processes, the waits for them, their children, and signals between them. */
#include "bs.h"

int fork(void);
int _Fork(void);
void exit(int status) __attribute__((noreturn));
void quick_exit(int status) __attribute__((noreturn));
int kill(int pid, int signal);
int sigqueue(int pid, int signal, void *value);

/* ---- children -------------------------------------------------------------------------------- */

/*
 * The parent is set up before the fork: that state shows a child that it is one. The fork is logged
 * when the child's pid is known.
 */
static int fork_by(int (*real)(void))
{
    bs_is_ready(BS_OP_FORK);
    bs_share_all();
    u64 time = bs_now();
    int pid = real();
    if (pid == 0 && bs_me.chunk)
        /* The first access is a write. A first read would map this page, and a write again. */
        bs_process->copy_to = -1;
    if (pid != 0)
        bs_share_all(); /* for files that another thread made meanwhile */
    if (pid != 0)
        bs_note(time, BS_OP_FORK, 0, 0, 0, pid > 0 ? pid : bs_error());
    if (pid != 0)
        BS_DEEP_LOG_RETURN(time, pid, __NR_fork);
    return pid;
}

BS_INTERCEPTED int fork(void)
{
    return fork_by(BS_NEXT(fork));
}
BS_ALIAS(__fork, fork);

BS_API int _Fork(void)
{
    return fork_by(BS_NEXT(_Fork));
}

void bs_borrow(u64 base)
{
    bs_share_all();
    if (!bs_me.borrowed++)
        bs_me.base = base;
}

void bs_give_back(s64 child)
{
    bs_me.actions = 0;
    if (bs_me.borrowed)
        bs_me.borrowed--;
    bs_share_all();
    bs_note(0, BS_OP_VFORKED, 0, 0, 0, child);
    BS_DEEP_LOG(BS_DEEP_TIME(), child, __NR_clone);
    bs_free_scratch();
}

/*
 * A signal handler may jump out of `system`: then its stack frame is gone. This can be detected on
 * the first thread's stack only. A call from inside `system` has a stack address below libc's own
 * frames.
 */
bool bs_has_jumped_out(void)
{
    enum { OUR_FRAMES = 512 };
    u64 here = (u64)__builtin_frame_address(0), base = bs_me.base;
    return here + OUR_FRAMES > base && here < bs_stack_end &&
           bs_stack_end - base < FIRST_STACK_AT_MOST;
}

/* gate.S calls these two around the system call. */
__attribute__((used)) void bs_vfork_begins(void)
{
    bs_end(bs_begin(BS_OP_VFORK, 0, BS_SPAWN_VFORK, 0), 0);
    bs_borrow((u64)__builtin_frame_address(0));
}

void bs_free_scratch(void)
{
    if (bs_me.scratch)
        bs_raw(__NR_munmap, bs_me.scratch, bs_me.scratch_size);
    bs_me.scratch = 0;
}

__attribute__((used)) s64 bs_vfork_ends(s64 result)
{
    bs_give_back(result);
    return bs_ret(result);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static s64 wait_for(int pid, int *status, int options, void *usage)
{
    int mine = 0;
    if (!status)
        status = &mine;
    u64 time = bs_now();
    struct bs_reservation none = {0};
    s64 result = bs_call_cancel(none, __NR_wait4, pid, status, options, usage);
    if (result > 0)
        bs_note(time, BS_OP_WAIT, 0, *status, 0, result);
    BS_DEEP_LOG(time, result, __NR_wait4, pid, status, options);
    return bs_ret(result);
}

BS_INTERCEPTED int wait(int *status)
{
    return (int)wait_for(-1, status, 0, 0);
}
BS_ALIAS(__wait, wait);

BS_INTERCEPTED int waitpid(int pid, int *status, int options)
{
    return (int)wait_for(pid, status, options, 0);
}
BS_ALIAS(__waitpid, waitpid);

BS_INTERCEPTED int wait3(int *status, int options, void *usage)
{
    return (int)wait_for(-1, status, options, usage);
}

BS_INTERCEPTED int wait4(int pid, int *status, int options, void *usage)
{
    return (int)wait_for(pid, status, options, usage);
}

/* The structure that `waitid` fills in, in the kernel's size. */
struct child_info {
    int signal, error, code, pad, pid, user, status;
    char rest[100];
};
enum { CLD_EXITED = 1, CLD_KILLED = 2, CLD_DUMPED = 3, WNOWAIT = 0x01000000 };

/* The same status in the form of `wait`. */
static int wait_status(const struct child_info *info)
{
    switch (info->code) {
    case CLD_EXITED: return (info->status & 0xff) << 8;
    case CLD_KILLED: return info->status & 0x7f;
    case CLD_DUMPED: return (info->status & 0x7f) | 0x80;
    default: return (info->status & 0xff) << 8 | 0x7f; /* stopped or continued */
    }
}

BS_INTERCEPTED int waitid(int kind, u32 id, struct child_info *info, int options)
{
    struct child_info mine;
    mine.pid = 0;
    struct child_info *filled = info ? info : &mine;
    u64 time = bs_now();
    struct bs_reservation none = {0};
    s64 result = bs_call_cancel(none, __NR_waitid, kind, id, filled, options, 0);
    if (result == 0 && filled->pid)
        bs_note(time, BS_OP_WAIT, 0, wait_status(filled), options & WNOWAIT ? 1 : 0, filled->pid);
    BS_DEEP_LOG(time, result, __NR_waitid, kind, id, filled, options);
    return (int)bs_ret(result);
}

/* ---- ends ------------------------------------------------------------------------------------ */

enum { CLOCK_PROCESS_CPUTIME_ID = 2 };

/*
 * The processor time of the process in microseconds. 0 if it is unknown: a process that limited its
 * calls may not be allowed this one.
 */
static u64 processor_time(void)
{
    s64 time[2] = {0, 0};
    if (bs_modes & BS_MODE_SANDBOX ||
        bs_raw(__NR_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, time) < 0)
        return 0;
    return (u64)time[0] * 1000000 + (u64)time[1] / 1000;
}

static void log_exit(int status)
{
    u64 used = processor_time();
    BS_DEEP_LOG(BS_DEEP_TIME(), 0, __NR_exit_group, status);
    bs_note(0, BS_OP_EXIT, (s32)(used >> 32), status, (u32)used, 0);
}

/* The program called `exit`: its status was logged before its handlers ran. */
static bool exit_is_logged;

void bs_log_return_of_main(void)
{
    if (exit_is_logged || !bs_me.chunk) /* a process that logged nothing takes no chunk for this */
        return;
    u64 used = processor_time();
    BS_DEEP_LOG(BS_DEEP_TIME(), -1, __NR_exit_group, 0); /* the status is not known here */
    bs_note(0, BS_OP_EXIT, (s32)(used >> 32), 0, (u32)used, -1);
}

BS_API void exit(int status)
{
    bs_log_new_libraries();
    log_exit(status);
    exit_is_logged = true;
    BS_NEXT(exit)(status);
    __builtin_unreachable();
}

BS_API void quick_exit(int status)
{
    log_exit(status);
    BS_NEXT(quick_exit)(status);
    __builtin_unreachable();
}

void _exit(int status) __attribute__((noreturn));

BS_INTERCEPTED void _exit(int status)
{
    bs_log_open_connections();
    log_exit(status);
    for (;;) {
        bs_raw(__NR_exit_group, status);
        bs_raw(__NR_exit, status); /* a sandbox may allow only this call */
    }
}
BS_API void _Exit(int status) __attribute__((noreturn, alias("_exit")));

/* ---- signals --------------------------------------------------------------------------------- */

BS_INTERCEPTED int kill(int pid, int signal)
{
    struct bs_reservation rec = {0};
    if (signal)
        rec = bs_begin(BS_OP_KILL, pid, signal, 0);
    return (int)bs_finish(rec, bs_raw(__NR_kill, pid, signal));
}

BS_API int killpg(int group, int signal)
{
    if (group < 0)
        return (int)bs_fail(-BS_EINVAL);
    return kill(-group, signal);
}

BS_API int tgkill(int pid, int tid, int signal)
{
    struct bs_reservation rec = {0};
    if (signal)
        rec = bs_begin(BS_OP_KILL, pid, signal, 0);
    return (int)bs_finish(rec, bs_raw(__NR_tgkill, pid, tid, signal));
}

BS_API int sigqueue(int pid, int signal, void *value)
{
    struct bs_reservation rec = {0};
    if (signal)
        rec = bs_begin(BS_OP_KILL, pid, signal, 0);
    return (int)bs_end(rec, BS_NEXT(sigqueue)(pid, signal, value));
}
