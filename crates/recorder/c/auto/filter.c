/*
 * Installs the guard's filter in a process that has run without it, for all of its threads. The
 * instructions lie in the arena. The supervisor has a socket beside it, and takes the listener
 * there. A process without the filter also sends its requests to preserve a content there. The
 * keeper has another socket, for a listener that the supervisor does not take.
 *
 * Invariants:
 *
 * - The process goes on only when a receiver serves the listener, when the keeper has it, or
 *   without a filter. In the other cases than the first, the run says that it may lack something.
 * - A listener is closed here only after a response or after the message to the keeper. The kernel
 *   fails the watched calls of a process whose listener has no holder (ENOSYS).
 * - The descriptors used here are closed before the wrapper returns. So the program's next
 *   descriptor has the number that it has without the recorder.
 * - Every program of the run can write into the arena. Instructions from there are copied, and
 *   their copy is checked, before they are installed.
 * - A child on its parent's memory has a filter of its own. It must not note that in this memory.
 */
#include "../arena.h"

enum {
    AF_UNIX = 1,
    DATAGRAM = 2,
    SEQPACKET = 5,
    CLOEXEC = 02000000,
    NO_SIGPIPE = 0x4000,
    CLOEXEC_MESSAGE = 0x40000000,
    SOL_SOCKET = 1,
    SCM_RIGHTS = 1,
    SET_MODE_FILTER = 1,
    /* TSYNC, SPEC_ALLOW, NEW_LISTENER, TSYNC_ESRCH, WAIT_KILLABLE_RECV */
    FILTER_FLAGS = 1 | 4 | 8 | 16 | 32,
    NO_NEW_PRIVS = 38,
    SIG_SETMASK = 2,
    MESSAGE_MAX = 32768,
    TRIES = 64,
    MANY = 64, /* requests of a process, after which a filter is cheaper than a socket for each */
    UNSERVED = -4096 /* no errno: the filter is installed, and the supervisor did not take it */
};

bool bs_filtered;

/* ---- the socket ------------------------------------------------------------------------------ */

struct part {
    void *at;
    u64 size;
};

/* The kernel's `struct msghdr`, with room for one descriptor. */
struct message {
    void *name;
    u64 name_size;
    struct part *parts;
    u64 part_count;
    void *control;
    u64 control_size;
    u64 flags;
};

struct control {
    u64 size;
    s32 level, type;
    s32 descriptor, padding;
};

/* The kernel's `struct sockaddr_un`. */
struct address {
    uint16_t family;
    char path[108];
};

/* Fills in the address of a socket beside the arena. False: there is no path for it. */
static bool is_beside_arena(struct address *address, const char *suffix)
{
    const char *arena = bs_arena_path + sizeof BS_ENV_ARENA; /* after the "=" */
    u32 n = bs_length(arena, sizeof address->path);
    u32 more = bs_length(suffix, sizeof address->path) + 1;
    if (!bs_arena_path[0] || n + more > sizeof address->path)
        return false;
    address->family = AF_UNIX;
    bs_copy(address->path, arena, n);
    bs_copy(address->path + n, suffix, more);
    return true;
}

/* Returns a connection with the supervisor, or a negative error. */
static s64 connection(void)
{
    struct address address = {0};
    if (!is_beside_arena(&address, BS_SOCKET_SUFFIX))
        return -BS_ENOENT;
    s64 fd = bs_raw(__NR_socket, AF_UNIX, SEQPACKET | CLOEXEC, 0);
    if (fd < 0)
        return fd;
    s64 error = bs_gated(__NR_connect, fd, &address, sizeof address);
    if (error < 0)
        bs_raw(__NR_close, fd);
    return error < 0 ? error : fd;
}

/*
 * Sends a request and a path, with a descriptor unless it is -1. `to` is null for a socket that is
 * connected.
 */
static bool send_to(struct address *to, s64 socket, struct bs_guard_request *request,
                    s64 descriptor, const char *path)
{
    struct part parts[2] = {{request, sizeof *request},
                            {(void *)path, bs_length(path, BS_PATH_MAX)}};
    struct control control = {20, SOL_SOCKET, SCM_RIGHTS, (s32)descriptor, 0};
    struct message message = {.parts = parts, .part_count = 2};
    if (to) {
        message.name = to;
        message.name_size = sizeof *to;
    }
    if (descriptor >= 0) {
        message.control = &control;
        message.control_size = sizeof control;
    }
    return bs_raw(__NR_sendmsg, socket, &message, NO_SIGPIPE) ==
           (s64)(parts[0].size + parts[1].size);
}

static bool ask_about(s64 socket, struct bs_guard_request *request, s64 descriptor,
                      const char *path)
{
    return send_to(0, socket, request, descriptor, path);
}

static bool ask(s64 socket, struct bs_guard_request *request, s64 descriptor)
{
    return ask_about(socket, request, descriptor, "");
}

/* Receives a response and up to `size` bytes after it. Returns their number, or an error. */
static s64 answer(s64 socket, struct bs_guard_request *response, void *to, u64 size)
{
    struct part parts[2] = {{response, sizeof *response}, {to, size}};
    struct message message = {.parts = parts, .part_count = size ? 2 : 1};
    s64 n = bs_raw(__NR_recvmsg, socket, &message, CLOEXEC_MESSAGE);
    if (n < (s64)sizeof *response)
        return -BS_EINVAL;
    return response->result < 0 ? response->result : n - (s64)sizeof *response;
}

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

bool bs_ask_verdict(u32 kind, s64 fd)
{
    u64 mask = block_signals();
    struct bs_guard_request request = {.kind = kind}, response = {0};
    s64 socket = connection();
    bool plain = socket >= 0 && ask(socket, &request, fd) && answer(socket, &response, 0, 0) == 0 &&
                 response.result == 1;
    if (socket >= 0)
        bs_raw(__NR_close, socket);
    restore_signals(mask);
    return plain;
}

u64 bs_ask_load(s64 fd, const char *path, char *paths, u64 size)
{
    u64 mask = block_signals();
    struct bs_guard_request request = {.kind = BS_GUARD_LOAD}, response = {0};
    s64 socket = connection(), got = -BS_EINVAL;
    if (socket >= 0 && ask_about(socket, &request, fd, path))
        got = answer(socket, &response, paths, size - 1);
    if (socket >= 0)
        bs_raw(__NR_close, socket);
    restore_signals(mask);
    paths[got > 0 ? got : 0] = 0;
    return got >= 0 ? (u64)(u32)response.result : 0;
}

/* ---- whether there is a filter --------------------------------------------------------------- */

/* A signal that arrives before the supervisor has received the call interrupts the call. */
bool bs_has_filter(void)
{
    s64 answered = -BS_EINTR;
    for (int tries = 0; tries < TRIES && answered == -BS_EINTR; tries++)
        answered = bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_FILTERED, 0);
    return answered == 0;
}

/* True if this is a child on its parent's memory. */
static bool is_borrower(void)
{
    return bs_me.borrowed && (u32)bs_raw(__NR_gettid, 0) != bs_me.tid;
}

/*
 * While a child runs on its parent's memory, another thread of the parent may get the filter and
 * note that there. The child then has none.
 */
bool bs_is_filtered(void)
{
    return bs_filtered && !(bs_threaded && is_borrower() && !bs_has_filter());
}

/* ---- contents -------------------------------------------------------------------------------- */

/*
 * Waits until the supervisor has preserved a file, or need not. Returns 0, or why it could not be
 * asked. The file is opened with O_PATH, as for a look.
 */
static s64 ask_to_preserve(const struct bs_look *look, struct bs_guard_request *request)
{
    bool named = (request->change & BS_CHANGE_KIND) == BS_CHANGE_NAME;
    bool opens = !named && !(look->flags & AT_EMPTY_PATH);
    u32 follow = look->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
    s64 file = named ? -1 : look->dir;
    if (opens)
        file = bs_gated(__NR_openat, look->dir, look->path, O_PATH | O_CLOEXEC | follow, 0);
    if (opens && file < 0) /* a file that is gone has nothing to lose */
        return file == -BS_ENOENT || file == -BS_ENOTDIR || file == -BS_ELOOP ? 0 : file;
    struct bs_guard_request response = {0};
    s64 socket = connection(), error = socket;
    if (socket >= 0) {
        error = ask_about(socket, request, file, look->path) ? answer(socket, &response, 0, 0)
                                                             : -BS_EINVAL;
        bs_raw(__NR_close, socket);
    }
    if (opens)
        bs_raw(__NR_close, file);
    return error;
}

/*
 * A process with threads gets the filter at its first request. Another thread could see the
 * descriptors that a request uses, or fork a child that has them.
 */
bool bs_preserve_without_filter(const struct bs_look *look, u32 change,
                                const struct bs_ident *ident)
{
    static u32 asked;
    bool filtered = bs_is_filtered();
    /* Without the list of libraries, the loader would be asked, which is not safe here (next.c). */
    if (!filtered && (!bs_first_library || !bs_has_one_thread() ||
                      __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) > MANY)) {
        bs_need_filter();
        filtered = bs_is_filtered();
    }
    if (filtered)
        return false;
    u64 mask = block_signals();
    struct bs_guard_request request = {
        .kind = BS_GUARD_PRESERVE,
        .change = change,
        .tid = (u32)bs_raw(__NR_gettid, 0),
        .dir = look->dir,
        .dev = ident->dev,
        .ino = ident->ino,
    };
    s64 error = ask_to_preserve(look, &request);
    restore_signals(mask);
    if (error < 0)
        bs_note_not_kept(look->path[0] == '/' ? look->path : "", ident, error);
    return true;
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* The kernel's `struct sock_filter`. */
struct instruction {
    uint16_t code;
    u8 yes, no;
    u32 k;
};

/* The codes in the supervisor's filter, and the results. */
enum {
    LOAD_WORD = 0x20,
    GO = 0x05,
    IF_EQUAL = 0x15,
    IF_AT_LEAST = 0x35,
    IF_ANY_BIT = 0x45,
    RETURN = 0x06,
    ALLOW = 0x7fff0000,
    NOTIFY = 0x7fc00000,
    FAIL_ENOSYS = 0x00050000 | BS_ENOSYS
};

/* True for an instruction that the supervisor's filter can have. */
static bool is_of_filter(const struct instruction *one)
{
    switch (one->code) {
    case LOAD_WORD:
    case GO:
    case IF_EQUAL:
    case IF_AT_LEAST:
    case IF_ANY_BIT: return true;
    case RETURN: return one->k == ALLOW || one->k == NOTIFY || one->k == FAIL_ENOSYS;
    default: return false;
    }
}

/*
 * Copies the instructions that the supervisor has published in the arena. Returns their size, or 0
 * if it has published nothing, or if another program has written there. Forged ones that pass
 * cannot kill this program, and cannot let a call succeed without its effect.
 */
static u64 published(struct instruction *to)
{
    const struct bs_programs *programs = bs_programs();
    u64 size = programs ? __atomic_load_n(&programs->filter.size, __ATOMIC_ACQUIRE) : 0;
    if (!size || size > BS_FILTER_BYTES || size % sizeof *to)
        return 0;
    bs_copy(to, programs->filter.code, size);
    for (u64 i = 0; i < size / sizeof *to; i++)
        if (!is_of_filter(&to[i]))
            return 0;
    return size;
}

/* Installs the instructions. Returns the listener, or a negative error. */
static s64 install(struct instruction *instructions, u64 size)
{
    struct {
        uint16_t count;
        void *at;
    } program = {(uint16_t)(size / sizeof *instructions), instructions};
    s64 listener = bs_raw(__NR_seccomp, SET_MODE_FILTER, FILTER_FLAGS, &program);
    if (listener != -BS_EACCES)
        return listener;
    bs_raw(__NR_prctl, NO_NEW_PRIVS, 1, 0, 0, 0);
    return bs_raw(__NR_seccomp, SET_MODE_FILTER, FILTER_FLAGS, &program);
}

/*
 * Installs the instructions from the arena. Those that the kernel refuses are damaged, and are
 * requested by the socket, as missing ones are. Returns the listener, or a negative error.
 */
static s64 install_by(s64 socket, struct instruction *memory)
{
    u64 size = published(memory);
    s64 listener = size ? install(memory, size) : -BS_EINVAL;
    if (listener != -BS_EINVAL)
        return listener;
    struct bs_guard_request request = {.kind = BS_GUARD_FILTER}, response = {0};
    if (!ask(socket, &request, -1))
        return -BS_EINVAL;
    s64 sent = answer(socket, &response, memory, MESSAGE_MAX);
    if (sent <= 0)
        return sent < 0 ? sent : -BS_EINVAL;
    return install(memory, (u64)sent);
}

/*
 * Passes the listener to the keeper. The message holds it until the keeper has received it, so no
 * response is needed. The kernel refuses the message if the keeper is dead, too. sendmsg with an
 * address is not watched. A connect would be, in a process whose gate does not work, and would
 * wait for a receiver that does not exist.
 */
static BS_COLD void pass_to_keeper(s64 listener)
{
    struct address address = {0};
    struct bs_guard_request request = {.kind = BS_GUARD_LISTENER};
    if (!is_beside_arena(&address, BS_KEEPER_SUFFIX))
        return;
    s64 socket = bs_raw(__NR_socket, AF_UNIX, DATAGRAM | CLOEXEC, 0);
    if (socket < 0)
        return;
    send_to(&address, socket, &request, listener, "");
    bs_raw(__NR_close, socket);
}

/*
 * The connection is there before the filter: without it, no receiver could be found for the
 * listener. Between the installation and the response, another thread may wait for a receiver. This
 * thread makes no call that the filter watches.
 *
 * Without a response that the listener is served, the supervisor has been killed, or lacks a
 * resource. The keeper then lets the calls continue, and they are not logged.
 */
static s64 get_filter_by(s64 socket, struct instruction *memory, bool goes_on)
{
    s64 listener = install_by(socket, memory);
    if (listener < 0)
        return listener;
    struct bs_guard_request request = {.kind = BS_GUARD_LISTENER, .recorded = goes_on};
    struct bs_guard_request response = {0};
    bool served = ask(socket, &request, listener) && answer(socket, &response, 0, 0) >= 0;
    if (!served)
        pass_to_keeper(listener);
    bs_raw(__NR_close, listener);
    return served ? 0 : UNSERVED;
}

static s64 get_filter(bool goes_on)
{
    s64 socket = connection();
    if (socket < 0)
        return socket;
    s64 memory = bs_raw(__NR_mmap, 0, MESSAGE_MAX, 3, 0x22, -1, 0), error = memory;
    if ((u64)memory < -4096ull) {
        error = get_filter_by(socket, (struct instruction *)memory, goes_on);
        bs_raw(__NR_munmap, memory, MESSAGE_MAX);
    }
    bs_raw(__NR_close, socket);
    return error;
}

/*
 * Logs that the process runs without a filter that it needs. It may read any file from now on, so
 * the supervisor must look at this record before the next change.
 */
BS_COLD void bs_note_unguarded(void)
{
    bs_end(bs_begin_path(BS_OP_OPAQUE, -1, 0, 0, BS_OPAQUE_UNGUARDED), 0);
    if (bs_arena && bs_arena->flags & BS_ARENA_KEEP)
        bs_report();
}

static BS_COLD void need_filter(bool goes_on)
{
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED) || bs_is_filtered() || !bs_arena_path[0] ||
        (bs_arena && bs_arena->flags & BS_ARENA_CLOSED))
        return;
    u64 mask = block_signals();
    bool borrower = is_borrower(), filtered = bs_has_filter();
    if (!filtered) {
        s64 got = get_filter(goes_on && !borrower);
        /* Without its own filter, the process may have got one by another thread. */
        filtered = got >= 0 || (got != UNSERVED && bs_has_filter());
    }
    if (filtered && !borrower)
        __atomic_store_n(&bs_filtered, true, __ATOMIC_RELEASE);
    restore_signals(mask);
    if (!filtered && bs_is_ready(BS_OP_OPAQUE))
        bs_note_unguarded();
}

void bs_need_filter(void)
{
    need_filter(true);
}

void bs_need_filter_for_exec(void)
{
    need_filter(false);
}

/* The supervisor derives the same records from a `bs_start`. */
void bs_log_loader_cache(void)
{
    bs_note_path(bs_now(), BS_OP_OPEN, BS_AT_FDCWD, O_RDONLY | O_CLOEXEC, 0, BS_LOADER_CACHE,
                 BS_LOADER_DESCRIPTOR);
    bs_note(0, BS_OP_CLOSE, BS_LOADER_DESCRIPTOR, 0, 0, 0);
}

void bs_auto_begin(void)
{
    if (!bs_arena_path[0] || (bs_filtered = bs_has_filter()) || !bs_map_first_pages())
        return;
    u64 verdict = BS_VERDICT_CONNECTS | BS_VERDICT_LOADS;
    bool plain = bs_has_plain_files(&verdict), redirected = bs_redirect_first(verdict);
    if (redirected && plain && bs_announce_start())
        return;
    if (!bs_is_ready(BS_OP_START))
        return;
    bs_log_loader_cache();
    if (!redirected)
        bs_need_filter();
    if (plain)
        return;
    /* The caller had looked at the program. A file was replaced meanwhile, and its code ran. */
    bs_note_unguarded();
    bs_need_filter();
}

bool bs_is_harmless_call(s64 nr)
{
    switch (nr) {
    case __NR_futex:
    case __NR_getcpu:
    case __NR_getpid:
    case __NR_getrandom:
    case __NR_gettid:
    case __NR_membarrier:
    case __NR_sched_getaffinity:
    case __NR_sched_yield:
    case __NR_tgkill: return true;
    default: return false;
    }
}
