/*
 * Limits its own system calls to `read`, `write` and `exit_group`, and then moves bytes through a
 * pipe. With `thread`, the limit allows everything, and a thread that is made behind it writes.
 * With `shared`, a child on its memory ran beside it before.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *text)
{
    if (write(1, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
}

static void limit(struct sock_filter *filter, unsigned short length)
{
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program, 0, 0))
        abort();
}

static void *talk(void *unused)
{
    say("thread\n");
    return unused;
}

static int end(void *unused)
{
    (void)unused;
    return 0;
}

#define ALLOW(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
    enum { PIECES = 200, PIECE = 4096 };
    static unsigned char out[PIECE], in[PIECE];
    int ends[2];
    if (pipe(ends))
        abort();
    say("before\n");
    if (argc > 1 && !strcmp(argv[1], "thread")) {
        struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        pthread_t thread;
        limit(all, 1);
        say("after\n");
        if (pthread_create(&thread, 0, talk, 0) || pthread_join(thread, 0))
            abort();
        say("behind\n");
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "shared")) {
        static char stack[65536] __attribute__((aligned(16)));
        if (waitpid(clone(end, stack + sizeof stack, CLONE_VM | SIGCHLD, 0), 0, 0) < 0)
            abort();
    }
    struct sock_filter few[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    limit(few, sizeof few / sizeof *few);
    say("after\n");
    for (int piece = 0; piece < PIECES; piece++) {
        memset(out, piece, PIECE);
        if (write(ends[1], out, PIECE) != PIECE || read(ends[0], in, PIECE) != PIECE)
            abort();
    }
    ssize_t n = read(0, in, PIECE);
    if (n > 0 && write(1, in, (size_t)n) != n)
        abort();
    return 0;
}
