/*
 * Compares ways to receive notifications of a seccomp filter.
 *
 * `receivers COUNT ROUNDS FILE` lets a process open FILE COUNT times. Each open is notified, and
 * the receiver answers it after the steps of the guard: read the path, check the caller, statx. One
 * way has no such steps. Another one has the two further steps of a call that changes a file by a
 * relative path: readlink of the caller's directory, and statfs. The ways take turns. For each way,
 * the program prints ns an open and close: wall time, and processor time of both processes. The
 * figures are medians of ROUNDS, with the least and the most. `--csv FILE` at the end keeps the
 * rounds.
 */
#define _GNU_SOURCE
#include "medians.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

enum way { SLEEP, SYNC, BARE, RELATIVE, SPIN, ADAPT, NATIVE, WAYS };
static const char *const titles[] = {"sleeps, ordinary wake-up",
                                     "sleeps, SYNC_WAKE_UP",
                                     "SYNC_WAKE_UP, no steps",
                                     "SYNC_WAKE_UP, a change",
                                     "spins with poll(2)",
                                     "spins 20 us, then sleeps",
                                     "no filter"};

/* /proc, as a directory. */
static int proc;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* A filter that notifies openat alone. */
static int install(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

static void pass(int socket, int fd)
{
    char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec bytes = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    need(sendmsg(socket, &m, 0) == 1, "sendmsg");
}

static int taken(int socket)
{
    char space[CMSG_SPACE(sizeof(int))], byte;
    struct iovec bytes = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    need(recvmsg(socket, &m, 0) == 1, "recvmsg");
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static void work(int socket, enum way way, int count, const char *file)
{
    char go;
    if (way != NATIVE)
        pass(socket, install());
    else
        need(write(socket, "", 1) == 1, "write");
    need(read(socket, &go, 1) == 1, "read");
    double start = now(), cpu = processor_time(RUSAGE_SELF);
    for (int i = 0; i < count; i++) {
        int fd = open(file, O_RDONLY);
        need(fd >= 0, file);
        close(fd);
    }
    double result[2] = {(now() - start) / count, (processor_time(RUSAGE_SELF) - cpu) / count};
    need(write(socket, result, sizeof result) == sizeof result, "write");
    _exit(0);
}

/* The guard's steps for an open, or with `change` those for a change by a relative path. */
static void handle(const struct seccomp_notif *n, int listener, int change)
{
    char path[4096], directory[4096], link[32];
    struct statx found;
    struct statfs system;
    struct iovec to = {path, 256}, from = {(void *)n->data.args[1], 256};
    need(process_vm_readv(n->pid, &to, 1, &from, 1, 0) > 0, "process_vm_readv");
    if (change) {
        snprintf(link, sizeof link, "%d/cwd", n->pid);
        need(readlinkat(proc, link, directory, sizeof directory) > 0, link);
    }
    need(ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &n->id) == 0, "ID_VALID");
    statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &found);
    if (change)
        statfs(path, &system);
}

static void wait_spinning(int listener, double most)
{
    double end = now() + most;
    struct pollfd p = {listener, POLLIN, 0};
    while (poll(&p, 1, 0) == 0)
        if (most > 0 && now() > end)
            return;
}

static void one(enum way way, int count, const char *file, double *wall, double *cpu)
{
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    pid_t child = fork();
    if (child == 0)
        work(ends[1], way, count, file);
    /* If the child fails, its end is closed, and no read here waits for it. */
    close(ends[1]);
    need(child > 0, "fork");
    char byte;
    int listener = -1;
    if (way == NATIVE)
        need(read(ends[0], &byte, 1) == 1, "read");
    else
        listener = taken(ends[0]);
    if (way == SYNC || way == BARE || way == RELATIVE)
        need(ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL) == 0, "SET_FLAGS");
    need(write(ends[0], "", 1) == 1, "write");
    double before = processor_time(RUSAGE_SELF);
    for (int i = 0; i < count && way != NATIVE; i++) {
        struct seccomp_notif n = {0};
        if (way == SPIN || way == ADAPT)
            wait_spinning(listener, way == SPIN ? 0 : 20e3);
        need(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0, "RECV");
        if (way != BARE)
            handle(&n, listener, way == RELATIVE);
        struct seccomp_notif_resp r = {.id = n.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        need(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0, "SEND");
    }
    double own = (processor_time(RUSAGE_SELF) - before) / count, result[2];
    need(read(ends[0], result, sizeof result) == sizeof result, "read");
    *wall = result[0], *cpu = result[1] + own;
    waitpid(child, NULL, 0);
    close(ends[0]);
    if (listener >= 0)
        close(listener);
}

int main(int argc, char **argv)
{
    FILE *csv = csv_of(&argc, argv);
    if (argc != 4)
        return 2;
    int count = atoi(argv[1]), rounds = atoi(argv[2]);
    if (count < 1 || rounds < 1)
        return 2;
    proc = open("/proc", O_PATH | O_DIRECTORY);
    need(proc >= 0, "/proc");
    struct series all = new_series(titles, WAYS, rounds, "wall_ns,cpu_ns");
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++)
            one(w, count, argv[3], rounds_of(&all, w, 0) + r, rounds_of(&all, w, 1) + r);
    write_csv(csv, &all, argc, argv);
    for (int w = 0; w < WAYS; w++) {
        const double *a = sorted(&all, w, 0), *c = sorted(&all, w, 1);
        printf("%-26s wall %6.0f (%.0f to %.0f)  processor %6.0f (%.0f to %.0f)\n", titles[w],
               a[rounds / 2], a[0], a[rounds - 1], c[rounds / 2], c[0], c[rounds - 1]);
    }
}
