/*
 * The client of the broker takes the place of a program whose file gives a privilege. Only a
 * process outside of the recording can execute that program. The client has the program's
 * arguments, and does what the program does: it stops, goes on, and ends. docs/design/shell.md has
 * the whole picture.
 *
 * A static program without libc, so that it starts fast and opens no file: every open would be
 * recorded as the program's. It blocks all signals from its beginning on.
 *
 * If the broker refuses, it executes the program itself, as without a broker.
 */
#include "../c/bs.h"

#include <linux/close_range.h>
#include <linux/poll.h>
#include <linux/socket.h>
#include <linux/stat.h>

enum {
    SIG_HUP = 1,
    SIG_INT = 2,
    SIG_QUIT = 3,
    SIG_CHLD = 17,
    SIG_CONT = 18,
    SIG_STOP = 19,
    SIG_TSTP = 20,
    SIG_TTIN = 21,
    SIG_TTOU = 22,
    SIG_WINCH = 28,
    SIG_SETMASK = 2,
    BY_KERNEL = 128, /* si_code */
    PR_SET_DUMPABLE = 4,
    PR_SET_NAME = 15,
    SOL_SOCKET_LEVEL = 1,
    RIGHTS = 1,
    NO_SIGNAL = 0x4000, /* MSG_NOSIGNAL */
    TRIES = 64,
    CANNOT_EXECUTE = 126,
    NOT_FOUND = 127,
    AT_ONCE = 128,      /* descriptors in one message; the kernel takes up to 253 */
    WANTED_MOST = 32768 /* descriptors in all */
};

/* The kernel's `struct signalfd_siginfo`: the fields up to the sender, and the rest. */
struct signal_info {
    u32 number;
    s32 error, code;
    u32 sender;
    u8 rest[112];
};

struct iovec {
    void *at;
    u64 size;
};

struct message_header {
    void *name;
    u64 name_size;
    struct iovec *parts;
    u64 part_count;
    void *control;
    u64 control_size;
    u64 flags;
};

struct rights {
    u64 size;
    s32 level, type;
    s32 fds[AT_ONCE];
};

static struct {
    struct bs_broker_message head;
    s32 fds[WANTED_MOST];
} packet;

static s32 broker, signals;
static u64 former_mask;
static u32 programs_parent;

__attribute__((noreturn)) static void leave(int status)
{
    for (;;)
        bs_raw(__NR_exit_group, status);
}

static u64 bit(u32 number)
{
    return 1ull << (number - 1);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool send(u32 kind, s32 value, u64 word, const s32 *fds, u32 count)
{
    struct bs_broker_message text = {.kind = kind, .value = value, .word = word};
    struct iovec part = {.at = &text, .size = sizeof text};
    struct message_header message = {.parts = &part, .part_count = 1};
    struct rights rights;
    if (count) {
        rights.size = offsetof(struct rights, fds) + count * sizeof *fds;
        rights.level = SOL_SOCKET_LEVEL;
        rights.type = RIGHTS;
        bs_copy(rights.fds, fds, count * sizeof *fds);
        message.control = &rights;
        message.control_size = (rights.size + 7) & ~7ull;
    }
    s64 sent;
    do
        sent = bs_raw(__NR_sendmsg, broker, &message, NO_SIGNAL);
    while (sent == -BS_EINTR);
    return sent == (s64)sizeof text;
}

/* Waits for a message. Returns its size, or less than the size of a message without one. */
static s64 receive(void)
{
    s64 size;
    do
        size = bs_raw(__NR_read, broker, &packet, sizeof packet);
    while (size == -BS_EINTR);
    return size;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* Lets a signal act on this process with its default action. */
static void act(s32 number)
{
    struct {
        void *handler;
        u64 flags;
        void *restorer;
        u64 mask;
    } by_default = {0};
    u64 all = ~0ull, others = ~bit((u32)number);
    s64 pid = bs_raw(__NR_getpid, 0);
    bs_raw(__NR_rt_sigaction, number, &by_default, 0, 8);
    bs_raw(__NR_tgkill, pid, pid, number);
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &others, 0, 8);
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);
}

/* Stops as the program did. The shell learns the signal. */
static void stop(s32 number)
{
    bool by_key = number == SIG_TSTP || number == SIG_TTIN || number == SIG_TTOU;
    act(by_key ? number : SIG_STOP);
}

/* Ends as the program did. A core of this process would tell nothing. */
__attribute__((noreturn)) static void end(s32 status)
{
    s32 number = status & 0x7f;
    if (!number)
        leave(status >> 8 & 0xff);
    bs_raw(__NR_prctl, PR_SET_DUMPABLE, 0);
    act(number);
    leave(128 + number);
}

/* True for signals of the terminal. They reach the whole process group, the program included. */
static bool is_terminals(const struct signal_info *info)
{
    const u64 keys = bit(SIG_HUP) | bit(SIG_INT) | bit(SIG_QUIT) | bit(SIG_CONT) | bit(SIG_TSTP) |
                     bit(SIG_TTIN) | bit(SIG_TTOU) | bit(SIG_WINCH);
    return info->code == BY_KERNEL && info->number <= 64 && keys & bit(info->number);
}

static bool next_signal(struct signal_info *info)
{
    return bs_raw(__NR_read, signals, info, sizeof *info) == (s64)sizeof *info;
}

static void pass_signals_on(void)
{
    struct signal_info info;
    while (next_signal(&info)) {
        bool own = info.number == SIG_CHLD || info.sender == programs_parent;
        if (!own && !is_terminals(&info))
            send(BS_BROKER_SIGNAL, (s32)info.number, info.code > 0 ? 0 : info.sender, 0, 0);
    }
}

/* The signals that came before the broker was in this process group, as a set. */
static u64 early_signals(void)
{
    struct signal_info info;
    u64 early = 0;
    while (next_signal(&info))
        if (info.number != SIG_CHLD && info.number <= 64)
            early |= bit(info.number);
    return early;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool request(void)
{
    s64 got = -BS_EINTR;
    for (int tries = 0; tries < TRIES && got == -BS_EINTR; tries++)
        got = bs_raw(__NR_getpriority, BS_MAGIC_WHICH, BS_MAGIC_BROKER, 1);
    broker = (s32)got;
    return got >= 0;
}

/* Sends the descriptors that the broker wants: all that the program would inherit. */
static bool pass_descriptors(s64 size)
{
    u32 count = (u32)packet.head.value, sent = 0;
    if (count > WANTED_MOST || size != (s64)(sizeof packet.head + count * sizeof *packet.fds))
        return false;
    while (sent < count) {
        u32 some = count - sent < AT_ONCE ? count - sent : AT_ONCE;
        if (!send(BS_BROKER_DESCRIPTORS, (s32)some, 0, packet.fds + sent, some))
            return false;
        sent += some;
    }
    return true;
}

/* True once the broker has started the program. */
static bool start(void)
{
    if (!request() || !send(BS_BROKER_HELLO, broker, former_mask, 0, 0))
        return false;
    s64 size = receive();
    if (size < (s64)sizeof packet.head || packet.head.kind != BS_BROKER_WANTED ||
        !pass_descriptors(size))
        return false;
    u64 all = ~0ull;
    signals = (s32)bs_raw(__NR_signalfd4, -1, &all, 8, O_CLOEXEC | O_NONBLOCK);
    if (signals < 0 || !send(BS_BROKER_READY, 0, early_signals(), 0, 0))
        return false;
    size = receive();
    programs_parent = (u32)packet.head.word;
    return size == (s64)sizeof packet.head && packet.head.kind == BS_BROKER_STARTED;
}

/* The program alone holds its descriptors open from now on. */
static void close_others(void)
{
    u32 low = (u32)(broker < signals ? broker : signals);
    u32 high = (u32)(broker < signals ? signals : broker);
    if (low)
        bs_raw(__NR_close_range, 0, low - 1, 0);
    if (high > low + 1)
        bs_raw(__NR_close_range, low + 1, high - 1, 0);
    bs_raw(__NR_close_range, high + 1, ~0u, 0);
}

__attribute__((noreturn)) static void follow(void)
{
    for (;;) {
        struct pollfd both[] = {{.fd = broker, .events = POLLIN},
                                {.fd = signals, .events = POLLIN}};
        bs_raw(__NR_poll, both, 2, -1);
        if (both[1].revents)
            pass_signals_on();
        if (!both[0].revents)
            continue;
        if (receive() < (s64)sizeof packet.head)
            leave(CANNOT_EXECUTE); /* the program's parent was killed */
        if (packet.head.kind == BS_BROKER_STOPPED)
            stop(packet.head.value);
        else if (packet.head.kind == BS_BROKER_ENDED)
            end(packet.head.value);
        else if (packet.head.kind == BS_BROKER_REPORT) {
            pass_signals_on();
            send(BS_BROKER_REPORTED, packet.head.value, 0, 0, 0);
        }
    }
}

/* The kernel shows at most 15 characters. */
static void take_name(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (*c == '/')
            name = c + 1;
    bs_raw(__NR_prctl, PR_SET_NAME, name);
}

__attribute__((used, noreturn)) void bs_client(u64 *stack)
{
    char **argv = (char **)(stack + 1), **env = argv + stack[0] + 1;
    if (!*env || !bs_starts(*env, BS_ENV_PROGRAM "="))
        leave(NOT_FOUND);
    const char *path = *env++ + sizeof BS_ENV_PROGRAM;
    u64 all = ~0ull;
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &all, &former_mask, 8);
    take_name(path);
    if (start()) {
        close_others();
        follow();
    }
    bs_raw(__NR_rt_sigprocmask, SIG_SETMASK, &former_mask, 0, 8);
    s64 error = bs_raw(__NR_execve, path, argv, env);
    leave(error == -BS_ENOENT ? NOT_FOUND : CANNOT_EXECUTE);
}

/* The kernel leaves the number of arguments, the arguments and the environment on the stack. */
__asm__(".globl _start\n"
        "_start:\n"
        "    xorl %ebp, %ebp\n"
        "    movq %rsp, %rdi\n"
        "    andq $-16, %rsp\n"
        "    call bs_client\n"
        "    ud2\n");
