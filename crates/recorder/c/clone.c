/* Records children made by `clone` and `clone3`, through libc's function and by number. */
#include "bs.h"

enum {
    CLONE_VM = 0x100,
    CLONE_FILES = 0x400,
    CLONE_VFORK = 0x4000,
    CLONE_SETTLS = 0x80000,
    CLONE_NEWPID = 0x20000000
};

typedef int child_function(void *);
int clone(child_function *function, void *stack, int flags, void *argument, ...);

#ifdef BS_AUTO
/*
 * True if the child may be unable to reach the supervisor. It is also true if the child shares
 * memory or a table of descriptors with its parent. The reason is that a process notes in its
 * memory whether it has the filter, and that a request uses descriptors.
 */
static bool changes_view(u32 flags)
{
    const u32 namespaces = 0x7e020000; /* CLONE_NEWNS and its like */
    bool beside = flags & (CLONE_VM | CLONE_FILES) && !(flags & CLONE_VFORK);
    return flags & namespaces || beside;
}
#endif

/*
 * A child that shares its parent's memory and has no thread pointer of its own shares its parent's
 * chunk. From then on every thread checks before it logs that it belongs to this process.
 */
BS_INTERCEPTED int clone(child_function *function, void *stack, int flags, void *argument, ...)
{
    va_list args;
    va_start(args, argument);
    void *parent_tid = va_arg(args, void *), *tls = va_arg(args, void *),
         *child_tid = va_arg(args, void *);
    va_end(args);
    BS_AUTO_DO(if (changes_view(flags)) bs_need_filter());
    bs_is_ready(BS_OP_FORK);
    if (flags & CLONE_NEWPID)
        bs_note_pid_namespace();
    u64 time = bs_now();
    bool suspended = flags & CLONE_VM && flags & CLONE_VFORK;
    struct bs_reservation rec = {0};
    if (suspended) {
        rec = bs_begin_at(time, BS_OP_VFORK, 0, BS_SPAWN_CLONE, (u32)flags);
        bs_borrow((u64)__builtin_frame_address(0));
    } else if (flags & CLONE_VM && !(flags & CLONE_SETTLS)) {
        __atomic_or_fetch(&bs_modes, BS_MODE_SHARED_MEMORY, __ATOMIC_SEQ_CST);
    }
    bs_share_all();
    int pid = BS_NEXT(clone)(function, stack, flags, argument, parent_tid, tls, child_tid);
    s64 result = pid >= 0 ? pid : bs_error();
    if (suspended) {
        bs_end(rec, 0);
        bs_give_back(result);
    } else {
        bs_note(time, BS_OP_FORK, 0, 0, (u32)flags, result);
    }
    return pid;
}
BS_ALIAS(__clone, clone);

/* ---- by number ------------------------------------------------------------------------------- */

/*
 * gate.S: each function makes the call without a stack frame of its own. The child returns from it
 * on the parent's stack. On another stack it returns to the address that the program put there.
 */
s64 bs_clone_on_stack(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_clone_suspended(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_clone_beside(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);

/* Logs the parent's side when `bs_clone_beside` returns. */
__attribute__((used)) s64 bs_clone_ends(s64 pid)
{
    bs_note(bs_me.clone_time, BS_OP_FORK, 0, 0, bs_me.clone_flags, pid);
    return bs_ret(pid);
}

/*
 * Returns the flags of the call. `*stack` becomes the child's stack, or null if the child runs on
 * the parent's stack or a copy of it.
 */
static u32 clone_request(s64 nr, s64 a, s64 b, u64 *stack)
{
    const u64 *request = (const u64 *)a; /* struct clone_args */
    enum { STACK = 5 };
    *stack = 0;
    if (nr == __NR_fork || (nr == __NR_clone3 && !bs_readable(request, (STACK + 1) * 8)))
        return 0;
    *stack = nr == __NR_clone ? (u64)b : request[STACK];
    return (u32)(nr == __NR_clone ? (u64)a : request[0]);
}

s64 bs_clone_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    u64 stack;
    u32 flags = clone_request(nr, a, b, &stack);
    BS_AUTO_DO(if (changes_view(flags)) bs_need_filter());
    bs_is_ready(BS_OP_FORK);
    if (flags & CLONE_NEWPID)
        bs_note_pid_namespace();
    if (flags & CLONE_VM && flags & CLONE_VFORK) {
        bs_end(bs_begin(BS_OP_VFORK, 0, BS_SPAWN_CLONE, flags), 0);
        bs_borrow((u64)__builtin_frame_address(0));
        return stack ? bs_clone_suspended(nr, a, b, c, d, e) : bs_clone_on_stack(nr, a, b, c, d, e);
    }
    if (flags & CLONE_VM)
        __atomic_or_fetch(&bs_modes, BS_MODE_SHARED_MEMORY, __ATOMIC_SEQ_CST);
    bs_share_all();
    bs_me.clone_time = bs_now();
    bs_me.clone_flags = flags;
    return bs_clone_beside(nr, a, b, c, d, e);
}
