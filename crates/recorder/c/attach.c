/*
 * Attaches the process to the arena: once per exec, and once per fork child.
 *
 * Invariants:
 *
 * - Signals are blocked while the state changes, so a signal handler finds it consistent.
 * - State that a child must not inherit by fork lies in pages that the kernel wipes there.
 */
#include "arena.h"
#include <linux/mman.h>

/*
 * The process maps the first chunks together with the arena's header, and keeps them mapped. Nearly
 * every process finds one of these chunks free. Mapping another chunk costs half of what a fork
 * child's first operation costs. The window stays below 2 MB, so that one page of page tables is
 * enough.
 */
enum { WINDOW = 30, WINDOW_SIZE = BS_ARENA_HEADER + WINDOW * BS_CHUNK_SIZE };
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
enum { MAP_SHARED_RW = 3 };

struct bs_arena *bs_arena;
const void *bs_gate_elsewhere;
bool bs_muted;
u64 bs_mapped;

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
    if (bs_arena && !bs_muted && !(bs_arena->flags & BS_ARENA_CLOSED) &&
        !(bs_is_guarded() && bs_is_flow(op))) {
        __atomic_add_fetch(&bs_arena->lost, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&bs_arena->reported, 1, __ATOMIC_SEQ_CST);
    }
}

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
 * The call goes through the gate: if the supervisor sees the
 * call, it knows that this process's gate does not work.
 */
s64 bs_open_arena(void)
{
    const char *path = bs_arena_path + sizeof BS_ENV_ARENA; /* after the "=" */
    s64 fd = bs_gated(__NR_openat, BS_AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    bool unreachable = fd == -BS_ENOENT || fd == -BS_EACCES || fd == -BS_ENOTDIR ||
                       fd == -BS_EPERM || fd == -BS_ELOOP;
    return unreachable ? bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_ARENA, 0) : fd;
}

s64 bs_map_arena(s64 fd, u64 offset, u64 size)
{
    return bs_gated(__NR_mmap, offset ? 0 : bs_place(WINDOW_PLACE), size, MAP_SHARED_RW, MAP_SHARED,
                    fd, offset);
}

u64 bs_place(enum place place)
{
#ifdef BS_DEEP
    /* Without randomization, the path of the program is the last string below this address. */
    const u64 end = 0x7ffffffff000, most = BS_PATH_MAX + BS_PAGE;
    if (bs_stack_end < end && bs_stack_end >= end - most)
        return BS_HOME + ((4ull + place) << 30);
#endif
    (void)place;
    return 0;
}

s64 bs_copy_arena(u64 size, enum place place)
{
    u64 to = bs_place(place);
    s64 taken = to ? bs_raw(__NR_mmap, to, size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                   : -BS_ENOMEM;
    if (!is_error(taken)) {
        s64 at = bs_raw(__NR_mremap, bs_arena, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, taken);
        if (!is_error(at))
            return at;
        /* The place may be free again, or another thread's by now: it is left as it is. */
    }
    return bs_raw(__NR_mremap, bs_arena, 0, size, MREMAP_MAYMOVE);
}

/* A client request of Valgrind: a sequence of rotations, which changes nothing elsewhere. */
u64 bs_ask_simulator(u64 request, u64 argument)
{
    const u64 words[6] = {request, argument};
    u64 answer = 0;
    __asm__ volatile(
        "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
        : "+d"(answer)
        : "a"(words)
        : "cc", "memory", "rdi");
    return answer;
}

/*
 * True if a simulator runs the program that takes the recorder's calls for the program's. It has
 * descriptors and addresses of its own, and may report reads beyond a string's end. The byte engine
 * instead tells the supervisor which calls come from the gate.
 */
static bool is_simulated(void)
{
    enum { RUNNING_ON_VALGRIND = 0x1001 };
    if (!bs_ask_simulator(RUNNING_ON_VALGRIND, 0))
        return false;
    if (!bs_ask_simulator(BS_RECORDS_IN_SIMULATOR, (u64)bs_gate_ip))
        return true;
    bs_modes |= BS_MODE_SIMULATED;
    return false;
}

bool bs_is_muted(void)
{
    return bs_muted || (!bs_arena && (bs_muted = is_simulated()));
}

/*
 * Maps the process state, which the kernel wipes in a child by fork. The state is not part of the
 * library, because most of that cost would fall on programs that never attach. The caller's lock
 * moves into the new state, where other waiting threads find it.
 */
static bool make_process(void)
{
    u64 size = sizeof *bs_process + BS_TABLES_SIZE;
    s64 at = bs_raw(__NR_mmap, bs_place(PROCESS_PLACE), size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

/*
 * Maps the arena's header and its first chunks. Null: not possible now, or never (then `bs_muted`).
 */
static struct bs_arena *map_first(void)
{
    if (!bs_arena_path[0]) {
        /* the constructor looked for the variable and did not find it */
        bs_muted = bs_first_library != 0;
        return 0;
    }
    if (bs_is_muted())
        return 0;
    place_gate();
    s64 fd = bs_open_arena();
    if (fd < 0) {
        bool later = fd == -BS_EMFILE || fd == -BS_ENFILE || fd == -BS_ENOMEM || fd == -BS_EINTR;
        bs_muted = !later || ++attempts > 100;
        return 0;
    }
    bs_mapped = WINDOW_SIZE;
    s64 at = bs_map_arena(fd, 0, bs_mapped);
    if (is_error(at)) {
        bs_mapped = BS_ARENA_HEADER;
        at = bs_map_arena(fd, 0, bs_mapped);
    }
    bs_raw(__NR_close, fd);
    struct bs_arena *arena = (struct bs_arena *)at;
    if (!is_error(at)) /* a page whose first access is a write is mapped alone, which is cheaper */
        __atomic_fetch_or(&arena->wanted, 0, __ATOMIC_RELAXED);
    if (!is_error(at) && arena->magic == BS_ARENA_MAGIC && arena->version == BS_ABI_VERSION)
        return arena;
    if (!is_error(at))
        bs_raw(__NR_munmap, at, bs_mapped);
    bs_muted = true;
    return 0;
}

#ifdef BS_AUTO
struct bs_arena *bs_first_pages;

bool bs_map_first_pages(void)
{
    bs_first_pages = map_first();
    return bs_first_pages;
}
#endif

static bool attach(void)
{
    struct bs_arena *arena = 0;
    BS_AUTO_DO(arena = bs_first_pages);
    if (!arena)
        arena = map_first();
    if (!arena)
        return false;
    if (!make_process()) {
        /* The program has announced itself, and operations were expected. */
        BS_AUTO_DO(__atomic_add_fetch(&arena->lost, 1, __ATOMIC_RELAXED));
        bs_raw(__NR_munmap, arena, bs_mapped);
        BS_AUTO_DO(bs_first_pages = 0);
        bs_muted = true;
        return false;
    }
    u32 flags = arena->flags;
    bs_modes |= (flags & BS_ARENA_STRICT ? BS_MODE_STRICT : 0) |
                (flags & BS_ARENA_ALL_OPS ? BS_MODE_ALL_OPS : 0);
    bs_arena = arena;
    bs_redirect_stdio();
    return true;
}

/*
 * Marks the run as one with several pid namespaces. From now on the supervisor trusts no pid that a
 * process reports about itself.
 */
void bs_note_pid_namespace(void)
{
    if (bs_arena && !(bs_arena->flags & BS_ARENA_PIDNS))
        __atomic_or_fetch(&bs_arena->flags, BS_ARENA_PIDNS, __ATOMIC_SEQ_CST);
}

/*
 * A fork child writes to no page of the recorder here except the wiped ones:
 * each other page would have to be copied.
 */
bool bs_set_up(enum start *started)
{
    u32 unlocked = 0;
    while (!__atomic_compare_exchange_n(&bs_process->lock, &unlocked, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (bs_muted)
            return false;
        bs_raw(__NR_sched_yield, 0);
        unlocked = 0;
    }
    bool ready = bs_process->generation != 0;
    enum start how = bs_arena ? STARTED_BY_FORK : STARTED_BY_EXEC;
    if (!ready && !bs_muted && (bs_arena || attach())) {
        bs_process->pid = (u32)bs_raw(__NR_getpid, 0);
        bs_process->ppid = (u32)bs_raw(__NR_getppid, 0);
        /* Orphans go to the supervisor: this is the first process of a namespace, or its child. */
        if (bs_process->pid == 1 || bs_process->ppid <= 1)
            bs_note_pid_namespace();
        u64 epoch = 0;
        BS_AUTO_DO(how = bs_how_started(how, &epoch));
        /*
         * By now an orphan's parent is the supervisor. Without this line the real parent would be
         * lost if it died before it logged the fork.
         */
        if (how == STARTED_BY_FORK && bs_me.pid && bs_process->ppid)
            bs_process->ppid = bs_me.pid;
        if (!epoch)
            epoch = __atomic_add_fetch(&bs_arena->epochs, 1, __ATOMIC_RELAXED);
        bs_process->epoch = epoch;
        if (bs_modes & BS_MODE_SHARED_MEMORY) /* this child has memory of its own, not shared */
            __atomic_and_fetch(&bs_modes, ~BS_MODE_SHARED_MEMORY, __ATOMIC_SEQ_CST);
        u32 generation = (u32)bs_process->epoch;
        __atomic_store_n(&bs_process->generation, generation ? generation : ~0u, __ATOMIC_RELEASE);
        *started = how;
        ready = true;
    }
    __atomic_store_n(&bs_process->lock, 0, __ATOMIC_RELEASE);
    return ready;
}
