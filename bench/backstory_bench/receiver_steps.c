/*
 * Measures steps of a receiver of notifications, as it makes them and as they could be. One step
 * identifies a process, with a pidfd that is kept or opened. The other one reads the memory of a
 * process, in one call or in several.
 *
 * `receiver_steps TIMES ROUNDS` prints the median of ns of processor time of each way. The ways
 * take turns. The process that is read is a child that waits until its parent ends. `--csv FILE` at
 * the end keeps the rounds.
 */
#define _GNU_SOURCE
#include "medians.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096
#define STRINGS 64
#define STRING_BYTES 32
#define PIDFD_GET_INFO _IOC(3, 0xff, 11, 64)

/* The first 64 bytes of `struct pidfd_info`, whose first field is the mask. */
struct info {
    unsigned long mask, other[7];
};

static pid_t child;
static int kept, watched;
static char *there;
static char buffer[2 * PAGE];

static void open_and_identify(void)
{
    struct info info = {.mask = 1 | 2 | 8};
    struct stat status;
    int pidfd = syscall(SYS_pidfd_open, child, 0);
    need(pidfd >= 0, "pidfd_open");
    need(ioctl(pidfd, PIDFD_GET_INFO, &info) == 0, "PIDFD_GET_INFO");
    need(fstat(pidfd, &status) == 0, "fstat");
    struct epoll_event event = {.events = EPOLLIN};
    need(epoll_ctl(watched, EPOLL_CTL_ADD, pidfd, &event) == 0, "epoll_ctl");
    close(pidfd);
}

static void identify_kept(void)
{
    struct info info = {.mask = 1 | 2 | 8};
    need(ioctl(kept, PIDFD_GET_INFO, &info) == 0, "PIDFD_GET_INFO");
}

/* Reads `bytes` at each of `count` addresses, by one call for all of them. */
static void read_pieces(char *const *from, const size_t *bytes, int count)
{
    struct iovec local = {buffer, sizeof buffer}, remote[2];
    for (int i = 0; i < count; i++)
        remote[i] = (struct iovec){from[i], bytes[i]};
    need(process_vm_readv(child, &local, 1, remote, count, 0) > 0, "process_vm_readv");
}

/* A path that ends in the next page: 256 bytes of it in each page. */
static void path_by_one_call(void)
{
    read_pieces((char *[]){there + PAGE - 256, there + PAGE}, (size_t[]){256, 256}, 2);
}

static void path_by_two_calls(void)
{
    read_pieces((char *[]){there + PAGE - 256}, (size_t[]){256}, 1);
    read_pieces((char *[]){there + PAGE}, (size_t[]){256}, 1);
}

/* The arguments of an exec: 64 strings of 32 bytes. */
static void strings_by_one_window(void)
{
    read_pieces((char *[]){there, there + PAGE}, (size_t[]){PAGE, PAGE}, 2);
}

static void strings_one_by_one(void)
{
    for (int i = 0; i < STRINGS; i++)
        read_pieces((char *[]){there + (size_t)i * STRING_BYTES}, (size_t[]){STRING_BYTES}, 1);
}

static const struct {
    const char *what;
    void (*step)(void);
} ways[] = {
    {"pidfd_open, PIDFD_GET_INFO, fstat, epoll_ctl, close", open_and_identify},
    {"PIDFD_GET_INFO of a pidfd that is kept", identify_kept},
    {"a path in two pages, by one process_vm_readv", path_by_one_call},
    {"a path in two pages, by two", path_by_two_calls},
    {"64 strings of 32 bytes, by one window of 8 KiB", strings_by_one_window},
    {"64 strings of 32 bytes, one by one", strings_one_by_one},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* A process with the pages of its parent, which it has changed. It lives as long as the parent. */
static void make_child(void)
{
    int ends[2];
    char byte;
    need(pipe(ends) == 0, "pipe");
    child = fork();
    need(child >= 0, "fork");
    close(ends[child == 0]);
    if (child == 0) {
        memset(there, 'b', 2 * PAGE);
        _exit(read(ends[0], &byte, 1) != 0);
    }
}

int main(int argc, char **argv)
{
    FILE *csv = csv_of(&argc, argv);
    if (argc != 3)
        return 2;
    int times = atoi(argv[1]), rounds = atoi(argv[2]);
    if (times < 1 || rounds < 1)
        return 2;
    there = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(there != MAP_FAILED, "mmap");
    memset(there, 'a', 2 * PAGE);
    make_child();
    kept = syscall(SYS_pidfd_open, child, 0);
    watched = epoll_create1(EPOLL_CLOEXEC);
    need(kept >= 0 && watched >= 0, "pidfd_open");
    const char *titles[WAYS];
    for (int w = 0; w < WAYS; w++)
        titles[w] = ways[w].what;
    struct series all = new_series(titles, WAYS, rounds, "cpu_ns");
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++) {
            double start = processor_time(RUSAGE_SELF);
            for (int i = 0; i < times; i++)
                ways[w].step();
            rounds_of(&all, w, 0)[r] = (processor_time(RUSAGE_SELF) - start) / times;
        }
    write_csv(csv, &all, argc, argv);
    print_medians(&all);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
