/*
 * The process's and the thread's share of the arena. The process attaches to the arena at its first
 * operation. Each thread then takes one chunk at a time.
 *
 * Invariants:
 *
 * - Signals are blocked while the state changes, so a signal handler finds it consistent.
 * - State that a child must not inherit by fork lies in pages that the kernel wipes there.
 * - Once the program has limited its own system calls, nothing here makes one.
 */
#include "bs.h"
#include <linux/mman.h>
#include <linux/prctl.h>

/*
 * The process maps the first chunks together with the arena's header, and keeps them mapped. Nearly
 * every process finds one of these chunks free. Mapping another chunk costs half of what a fork
 * child's first operation costs. The window stays below 2 MB, so that one page of page tables is
 * enough.
 */
enum { WINDOW = 30, WINDOW_SIZE = BS_ARENA_HEADER + WINDOW * BS_CHUNK_SIZE };
enum { FEW_FREE = 8, GIVEN_BACK = 16, DEEPLY = 8 };
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
enum { SIG_SETMASK = 2, MAP_SHARED_RW = 3 };

struct bs_arena *bs_arena;
const void *bs_gate_elsewhere;

static bool muted;     /* for good: this process can log nothing */
static u64 mapped;     /* bytes mapped from the arena's beginning */
static u32 attempts;   /* failed attempts to attach, for lack of a resource */
extern char bs_home[]; /* the library's first byte */

bool bs_is_flow(u32 op)
{
    const u64 low = 1ull << BS_OP_OPEN | 1ull << BS_OP_TRUNCATE | 1ull << BS_OP_RENAME |
                    1ull << BS_OP_LINK | 1ull << BS_OP_SYMLINK | 1ull << BS_OP_UNLINK |
                    1ull << BS_OP_MKDIR | 1ull << BS_OP_MKNOD | 1ull << BS_OP_META |
                    1ull << BS_OP_CHDIR | 1ull << BS_OP_CHROOT | 1ull << BS_OP_MOUNT |
                    1ull << BS_OP_PIVOT | 1ull << BS_OP_NAMESPACE | 1ull << BS_OP_EXEC |
                    1ull << BS_OP_ARGS | 1ull << BS_OP_ENV | 1ull << BS_OP_CONNECT;
    return op < 64 ? low >> op & 1 : op == BS_OP_BIND;
}

/*
 * Counts a lost operation. An operation that the guard watches is not lost: its call misses the
 * gate, so the guard sees it.
 */
void bs_lose(u32 op)
{
    if (bs_arena && !muted && !(bs_arena->flags & BS_ARENA_CLOSED) &&
        !(bs_arena->flags & BS_ARENA_GUARDED && bs_is_flow(op))) {
        __atomic_add_fetch(&bs_arena->lost, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&bs_arena->told, 1, __ATOMIC_SEQ_CST);
    }
}

/* ---- attaching ------------------------------------------------------------------------------- */

/*
 * Puts the gate at its fixed address if a loader ignored the address that the library requests. One
 * page with the same instruction is mapped there. If that page is not free, the guard watches the
 * gate, and the supervisor refuses the process the arena.
 */
static void place_gate(void)
{
    s64 away = (s64)((u64)bs_home - BS_HOME);
    if (!away || bs_gate_elsewhere)
        return;
    u8 *instruction = (u8 *)((s64)(u64)bs_gate_ip - away) - 2;
    u64 page = (u64)instruction & ~(u64)(BS_PAGE - 1);
    s64 got = bs_raw(__NR_mmap, page, BS_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (s64)page) {
        if ((u64)got < -4096ull)
            bs_raw(__NR_munmap, got, BS_PAGE);
        return;
    }
    instruction[0] = 0x0f; /* syscall; ret */
    instruction[1] = 0x05;
    instruction[2] = 0xc3;
    if (bs_raw(__NR_mprotect, page, BS_PAGE, PROT_READ | PROT_EXEC) <
        0) { /* new code is forbidden */
        bs_raw(__NR_munmap, page, BS_PAGE);
        return;
    }
    bs_gate_elsewhere = instruction;
}

/*
 * Returns a descriptor of the arena. The call goes through the gate: if the supervisor sees the
 * call, it knows that this process's gate does not work.
 */
static s64 open_arena(void)
{
    const char *path = bs_arena_path + sizeof BS_ENV_ARENA; /* after the "=" */
    s64 fd = bs_gated(__NR_openat, BS_AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    bool unreachable = fd == -BS_ENOENT || fd == -BS_EACCES || fd == -BS_ENOTDIR ||
                       fd == -BS_EPERM || fd == -BS_ELOOP;
    return unreachable ? bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_ARENA, 0) : fd;
}

static s64 map_arena(s64 fd, u64 offset, u64 size)
{
    return bs_gated(__NR_mmap, 0, size, MAP_SHARED_RW, MAP_SHARED, fd, offset);
}

static bool is_error(s64 result)
{
    return (u64)result > -4096ull;
}

/*
 * True if a simulator runs the program. Valgrind responds to this sequence of rotations, which
 * changes nothing elsewhere. A simulator has descriptors and addresses of its own. It takes the
 * recorder's calls for the program's, and reports reads beyond a string's end.
 */
static bool is_simulated(void)
{
    static const u64 running_on_valgrind[6] = {0x1001};
    u64 answer = 0;
    __asm__ volatile(
        "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
        : "+d"(answer)
        : "a"(running_on_valgrind)
        : "cc", "memory", "rdi");
    return answer != 0;
}

bool bs_is_muted(void)
{
    return muted || (!bs_arena && (muted = is_simulated()));
}

/*
 * Maps the process state, which the kernel wipes in a child by fork. The state is not part of the
 * library, because most of that cost would fall on programs that never attach. The caller's lock
 * moves into the new state, where other waiting threads find it.
 */
static bool make_process(void)
{
    u64 size = sizeof *bs_process + BS_MAX_FD + BS_OWN * (sizeof(u64) + sizeof(u32));
    s64 at = bs_raw(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is_error(at))
        return false;
    if (bs_raw(__NR_madvise, at, size, MADV_WIPEONFORK) < 0) {
        bs_raw(__NR_munmap, at, size);
        return false;
    }
    ((struct bs_process *)at)->lock = 1;
    __atomic_store_n(&bs_process, (struct bs_process *)at, __ATOMIC_RELEASE);
    return true;
}

/* Maps the arena's first page. False: not possible now, or never (then `muted`). */
static bool attach(void)
{
    if (!bs_arena_path[0]) {
        /* the constructor looked for the variable and did not find it */
        muted = bs_first_library != 0;
        return false;
    }
    if (bs_is_muted())
        return false;
    place_gate();
    s64 fd = open_arena();
    if (fd < 0) {
        bool later = fd == -BS_EMFILE || fd == -BS_ENFILE || fd == -BS_ENOMEM || fd == -BS_EINTR;
        muted = !later || ++attempts > 100;
        return false;
    }
    mapped = WINDOW_SIZE;
    s64 at = map_arena(fd, 0, mapped);
    if (is_error(at)) {
        mapped = BS_ARENA_HEADER;
        at = map_arena(fd, 0, mapped);
    }
    bs_raw(__NR_close, fd);
    struct bs_arena *arena = (struct bs_arena *)at;
    if (!is_error(at)) /* a page whose first access is a write is mapped alone, which is cheaper */
        __atomic_fetch_or(&arena->wanted, 0, __ATOMIC_RELAXED);
    if (is_error(at) || arena->magic != BS_ARENA_MAGIC || arena->version != BS_ABI_VERSION ||
        !make_process()) {
        if (!is_error(at))
            bs_raw(__NR_munmap, at, mapped);
        muted = true;
        return false;
    }
    u32 flags = arena->flags;
    bs_odd |= (flags & BS_ARENA_STRICT ? BS_ODD_STRICT : 0) |
              (flags & BS_ARENA_ALL_OPS ? BS_ODD_ALL_OPS : 0);
    bs_arena = arena;
    bs_redirect_stdio();
    return true;
}

/*
 * Marks the run as one with several pid namespaces. From now on the supervisor trusts no pid that a
 * process reports about itself.
 */
void bs_other_numbers(void)
{
    if (bs_arena && !(bs_arena->flags & BS_ARENA_PIDNS))
        __atomic_or_fetch(&bs_arena->flags, BS_ARENA_PIDNS, __ATOMIC_SEQ_CST);
}

enum how { NOT_STARTED, STARTED_BY_EXEC, STARTED_BY_FORK };

/*
 * Makes the process ready, once per exec and once per fork child. `*started` is set for the one
 * thread that did it. A fork child writes to no page of the recorder here except the wiped ones:
 * each other page would have to be copied.
 */
static bool set_up(enum how *started)
{
    u32 unlocked = 0;
    while (!__atomic_compare_exchange_n(&bs_process->lock, &unlocked, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (muted)
            return false;
        bs_raw(__NR_sched_yield, 0);
        unlocked = 0;
    }
    bool ready = bs_process->generation != 0;
    enum how how = bs_arena ? STARTED_BY_FORK : STARTED_BY_EXEC;
    if (!ready && !muted && (bs_arena || attach())) {
        bs_process->pid = (u32)bs_raw(__NR_getpid, 0);
        bs_process->ppid = (u32)bs_raw(__NR_getppid, 0);
        /* Orphans go to the supervisor: this is the first process of a namespace, or its child. */
        if (bs_process->pid == 1 || bs_process->ppid <= 1)
            bs_other_numbers();
        /*
         * By now an orphan's parent is the supervisor. Without this line the real parent would be
         * lost if it died before it logged the fork.
         */
        if (how == STARTED_BY_FORK && bs_me.pid && bs_process->ppid)
            bs_process->ppid = bs_me.pid;
        bs_process->epoch = __atomic_add_fetch(&bs_arena->epochs, 1, __ATOMIC_RELAXED);
        if (bs_odd & BS_ODD_SHARED) /* this child has memory of its own, not shared */
            __atomic_and_fetch(&bs_odd, ~BS_ODD_SHARED, __ATOMIC_SEQ_CST);
        u32 generation = (u32)bs_process->epoch;
        __atomic_store_n(&bs_process->generation, generation ? generation : ~0u, __ATOMIC_RELEASE);
        *started = how;
        ready = true;
    }
    __atomic_store_n(&bs_process->lock, 0, __ATOMIC_RELEASE);
    return ready;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

s32 bs_claim(u32 words)
{
    s32 found = -1;
    u32 left = 0;
    for (u32 w = 0; w < words; w++) {
        u64 *word = &bs_arena->free[w];
        u64 bits = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        while (bits && found < 0) {
            u64 lowest = bits & -bits;
            bits = __atomic_fetch_and(word, ~lowest, __ATOMIC_ACQ_REL);
            if (bits & lowest)
                found = (s32)(w * 64 + (u32)__builtin_ctzll(lowest));
            bits &= ~lowest;
        }
        for (; bits && left < FEW_FREE; bits &= bits - 1)
            left++;
    }
    if (left < FEW_FREE && !bs_arena->wanted)
        __atomic_store_n(&bs_arena->wanted, 1, __ATOMIC_RELAXED);
    return found;
}

void bs_begin_chunk(struct bs_chunk *chunk, u32 index)
{
    struct bs_thread *me = &bs_me;
    chunk->index = index;
    chunk->pid = bs_process->pid;
    chunk->tid = me->tid;
    chunk->epoch = bs_process->epoch;
    chunk->taken = bs_now();
    chunk->ppid = bs_process->ppid;
    chunk->seq = me->count++;
    chunk->next = sizeof *chunk;
    __atomic_store_n(&chunk->magic, BS_CHUNK_MAGIC, __ATOMIC_RELEASE);
}

/*
 * Set when a wait for a free chunk failed, because no memory is left for more chunks. The process
 * then does not wait again before a chunk was free.
 *
 * Without a guard a process cannot notify the supervisor, which looks by itself at least four times
 * a second. With a guard, more processes may notify the supervisor than it lets wait.
 */
static bool waited_in_vain;

/* True if the supervisor has found that all chunks are in use and that it can add no more. */
static bool is_dry(void)
{
    return __atomic_load_n(&bs_arena->dry, __ATOMIC_RELAXED);
}

static s32 wait_for_drain(void)
{
    const s64 pause[2] = {0, 2000000};
    s32 index = -1;
    /*
     * On a busy machine the supervisor may run late. So the loop counts its looks, and also bounds
     * the time.
     */
    u32 looks = 0;
    for (int tries = 0; index < 0 && tries < 1000 && looks < 30 && !waited_in_vain && !is_dry() &&
                        !(bs_arena->flags & BS_ARENA_CLOSED);
         tries++) {
        bs_raw(__NR_nanosleep, pause, 0);
        looks += !__atomic_load_n(&bs_arena->wanted, __ATOMIC_RELAXED);
        index = bs_claim(BS_BITMAP_WORDS);
    }
    if (index < 0)
        waited_in_vain = true;
    return index;
}

/*
 * Among many waiting threads, others may take the chunk that this one waited for, several times.
 * Each time some of them are served.
 */
static s32 claim_or_wait(void)
{
    s32 index = bs_claim(BS_BITMAP_WORDS);
    for (int tries = 0; index < 0 && tries < 8 && bs_arena->flags & BS_ARENA_GUARDED; tries++) {
        if (bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_DRAIN, 0) < 0)
            return -1;
        index = bs_claim(BS_BITMAP_WORDS);
        if (index < 0 && is_dry())
            return -1;
    }
    if (index >= 0 && waited_in_vain)
        waited_in_vain = false;
    return index < 0 ? wait_for_drain() : index;
}

/*
 * Maps a chunk. `mremap` with an old size of zero maps a shared mapping again, and can make it
 * larger. It needs no descriptor, so none appears in the program's table. It also works after the
 * program changed its root or a limit.
 */
static u8 *map_chunk(u32 index)
{
    u64 offset = BS_ARENA_HEADER + (u64)index * BS_CHUNK_SIZE;
    if (BS_LIKELY(offset < mapped))
        return (u8 *)bs_arena + offset;
    s64 at = bs_raw(__NR_mremap, bs_arena, 0, offset + BS_CHUNK_SIZE, 1 /* MREMAP_MAYMOVE */);
    if (!is_error(at)) {
        bs_raw(__NR_munmap, at, offset);
        return (u8 *)at + offset;
    }
    s64 fd = open_arena();
    if (fd < 0)
        return 0;
    at = map_arena(fd, offset, BS_CHUNK_SIZE);
    bs_raw(__NR_close, fd);
    return is_error(at) ? 0 : (u8 *)at;
}

static void set_free(u32 index)
{
    __atomic_or_fetch(&bs_arena->free[index / 64], 1ull << (index % 64), __ATOMIC_RELEASE);
}

static void unmap_chunk(u8 *chunk)
{
    if ((u64)chunk - (u64)bs_arena >= mapped)
        bs_raw(__NR_munmap, chunk, BS_CHUNK_SIZE);
}

void bs_say_full(u8 *chunk)
{
    u32 index = ((struct bs_chunk *)chunk)->index;
    if (index < BS_MAX_CHUNKS)
        __atomic_or_fetch(&bs_arena->full[index / 64], 1ull << (index % 64), __ATOMIC_RELEASE);
}

static void retire(u8 *chunk)
{
    bs_say_full(chunk);
    unmap_chunk(chunk);
}

/*
 * Maps all pages of a chunk in advance. A thread that needs a second chunk will fill it. A page
 * whose first access is a read is mapped with the pages around it, so the thread does not wait for
 * each page.
 */
static void map_all(const u8 *chunk)
{
    (void)*(const volatile u8 *)chunk;
    (void)*(const volatile u8 *)(chunk + BS_CHUNK_SIZE - 1);
}

/*
 * Reports the owner of a chunk where pids may belong to another namespace. Without a guard, /proc
 * has the pid that the supervisor knows, unless it was mounted anew.
 */
static BS_COLD void announce(struct bs_chunk *chunk)
{
    if (bs_arena->flags & BS_ARENA_GUARDED) {
        bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_ANNOUNCE, chunk->index);
        bs_process->host_pid = chunk->host_pid;
        return;
    }
    char text[16];
    u32 number = 0;
    s64 n = bs_gated(__NR_readlinkat, BS_AT_FDCWD, "/proc/self", text, sizeof text);
    for (s64 i = 0; i < n; i++)
        number = number * 10 + (u32)(text[i] - '0');
    bs_process->host_pid = chunk->host_pid = number;
}

/* Gives the thread a chunk. Signals are blocked and the process is ready. */
static bool new_chunk(void)
{
    struct bs_thread *me = &bs_me;
    if (bs_arena->flags & BS_ARENA_CLOSED) {
        __atomic_or_fetch(&bs_odd, BS_ODD_CLOSED, __ATOMIC_SEQ_CST);
        return false;
    }
    s32 index = bs_claim(BS_BITMAP_WORDS);
    if (index < 0) {
        /*
         * With few chunks left, the retired chunk may be the one that becomes free. Operations in
         * progress in the current chunk keep their outcome.
         */
        if (me->held) {
            retire(me->held);
            me->held = 0;
            me->changes++;
        }
        index = claim_or_wait();
    }
    if (index < 0)
        return false;
    u8 *at = map_chunk((u32)index);
    if (!at) {
        set_free((u32)index);
        return false;
    }
    if (me->held)
        retire(me->held);
    struct bs_chunk *chunk = (struct bs_chunk *)at;
    if (me->count)
        map_all(at);
    bs_begin_chunk(chunk, (u32)index);
    me->held = me->chunk;
    me->changes++;
    __atomic_store_n(&me->chunk, at, __ATOMIC_RELEASE);
    if (bs_arena->flags & BS_ARENA_PIDNS)
        announce(chunk);
    return true;
}

void bs_begin_thread(u32 tid)
{
    struct bs_thread *me = &bs_me;
    me->changes += GIVEN_BACK;
    me->count = 0;
    me->borrowed = 0;
    me->actions = 0;
    me->tid = tid;
    me->pid = bs_process->pid;
}

/* Forgets an inherited chunk. It stays mapped, which is cheaper, unless forks are nested deeply. */
static void forget(u8 **chunk)
{
    if (*chunk && bs_me.forks > DEEPLY)
        unmap_chunk(*chunk);
    *chunk = 0;
}

/* Gives the thread its first chunk in this process. */
static bool first_chunk(void)
{
    struct bs_thread *me = &bs_me;
    if (me->generation != bs_process->generation) {
        /*
         * The mapped chunks belong to the parent. The child neither writes to them nor gives them
         * back.
         */
        me->forks++;
        forget(&me->chunk);
        forget(&me->held);
        bs_begin_thread((u32)bs_raw(__NR_gettid, 0));
    }
    if (!new_chunk())
        return false;
    me->generation = bs_process->generation;
    return true;
}

/* Blocks signals; they may be blocked already. */
static u64 block_signals(void)
{
    u64 all = ~0ull, before = 0;
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    return before;
}

static void restore_signals(u64 before)
{
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
}

BS_COLD bool bs_take(u32 op)
{
    if (muted)
        return false;
    if (bs_odd & BS_ODD_SANDBOX) {
        bool taken = bs_take_confined();
        if (!taken)
            bs_lose(op);
        return taken;
    }
    u64 mask = block_signals();
    enum how started = NOT_STARTED;
    bool taken = set_up(&started);
    if (taken && (!bs_me.chunk || bs_me.generation != bs_process->generation)) {
        taken = first_chunk();
        if (taken && started) {
            bs_note(0, BS_OP_START, (s32)bs_process->pid, (s32)bs_process->ppid,
                    started == STARTED_BY_FORK, 0);
            if (started == STARTED_BY_EXEC && !(bs_arena->flags & BS_ARENA_GUARDED))
                bs_log_first_libraries();
            if (started == STARTED_BY_EXEC && bs_closes_are_seen)
                bs_log_streams_used();
        }
    }
    restore_signals(mask);
    if (!taken)
        bs_lose(op);
    return taken;
}

bool bs_is_ready(u32 op)
{
    return (bs_me.chunk && bs_me.generation == bs_process->generation) || bs_take(op);
}

BS_COLD bool bs_change(u32 op, u32 changes)
{
    if (bs_odd & BS_ODD_SANDBOX) {
        bool changed = bs_me.changes != changes || bs_take_confined();
        if (!changed)
            bs_lose(op);
        return changed;
    }
    u64 mask = block_signals();
    bool changed = bs_me.changes != changes || new_chunk();
    restore_signals(mask);
    if (!changed)
        bs_lose(op);
    return changed;
}

void bs_prepare_for_sandbox(void)
{
    bs_is_ready(BS_OP_START);
    bs_map_reserve();
    __atomic_or_fetch(&bs_odd, BS_ODD_SANDBOX, __ATOMIC_SEQ_CST);
}

void bs_thread_ends(void)
{
    struct bs_thread *me = &bs_me;
    if (!me->chunk || me->generation != bs_process->generation || bs_odd & BS_ODD_SANDBOX)
        return;
    u64 mask = block_signals();
    if (me->held)
        retire(me->held);
    retire(me->chunk);
    me->held = me->chunk = 0;
    me->changes += GIVEN_BACK;
    restore_signals(mask);
}
