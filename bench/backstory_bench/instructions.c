/*
 * Measures operations by which designs of deep recording are compared.
 *
 * `instructions CASE COUNT` prints ns per operation. If the machine does not have the case, it
 * prints that, and its exit status is 3.
 *
 * - `rdtsc`, `cpuid`: the instruction.
 * - `rdtsc-fault`, `cpuid-fault`: the same while the kernel lets it fault, with a handler that
 *   skips it.
 * - `rdtsc-mode`: the mode on and off again.
 * - `switch`, `switch-cpuid`: a switch to another thread on the same processor. In the second case
 *   the other thread lets `cpuid` fault.
 * - `vdso`, `syscall`: the time, without and with a system call.
 * - `lock`, `lock-record`: a lock and its release, alone and with a record of 48 bytes.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { SHORT = 2, UNAVAILABLE = 3 };

static volatile uint64_t sink;

/* By a call: the functions without one execute `rdtsc`, which may fault. */
static double now(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void unavailable(const char *what)
{
    printf("%s is not available here\n", what);
    exit(UNAVAILABLE);
}

static void ask_counter(void)
{
    sink += __builtin_ia32_rdtsc();
}

static void ask_processor(void)
{
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    sink += a;
}

static void skip(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += SHORT;
}

static void handle_faults(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = skip;
    sigaction(SIGSEGV, &action, NULL);
}

static int counter_faults(int faults)
{
    return prctl(PR_SET_TSC, faults ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

static int processor_faults(int faults)
{
    return (int)syscall(SYS_arch_prctl, ARCH_SET_CPUID, !faults);
}

static void toggle_counter(void)
{
    counter_faults(1);
    counter_faults(0);
}

static void ask_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    sink += (uint64_t)t.tv_nsec;
}

static void ask_kernel(void)
{
    sink += (uint64_t)now();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
    sink++;
    pthread_mutex_unlock(&mutex);
}

/* A record as the recorder writes it: room is reserved by an atomic addition. */
struct record {
    uint64_t time, number, fd, a, b, c;
};

enum { RECORDS = 1 << 10 };

static struct record records[RECORDS];
static uint32_t reserved;

static void lock_recorded(void)
{
    pthread_mutex_lock(&mutex);
    uint32_t at = __atomic_fetch_add(&reserved, 1, __ATOMIC_RELAXED) % RECORDS;
    volatile struct record *to = &records[at];
    to->time = __builtin_ia32_rdtsc();
    to->number = at, to->fd = 1, to->a = (uintptr_t)&mutex, to->b = 0, to->c = 0;
    sink++;
    pthread_mutex_unlock(&mutex);
}

static double each(void (*operation)(void), long count)
{
    double start = now();
    for (long i = 0; i < count; i++)
        operation();
    return (now() - start) / count;
}

static double each_fault(int (*mode)(int), void (*operation)(void), long count, const char *what)
{
    handle_faults();
    if (mode(1))
        unavailable(what);
    double took = each(operation, count);
    mode(0);
    return took;
}

struct side {
    int from, to, faults;
    long count;
};

static void *answer(void *own)
{
    struct side *side = own;
    char byte;
    if (side->faults && processor_faults(1))
        unavailable("ARCH_SET_CPUID");
    for (long i = 0; i < side->count; i++)
        if (read(side->from, &byte, 1) != 1 || write(side->to, &byte, 1) != 1)
            exit(4);
    return NULL;
}

/* Two threads on one processor wake each other by pipes: two switches a turn. */
static double each_switch(int faults, long count)
{
    int there[2], back[2];
    char byte = 0;
    pthread_t other;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) || pipe(there) || pipe(back))
        unavailable("a processor for two threads");
    struct side side = {there[0], back[1], faults, count};
    if (pthread_create(&other, NULL, answer, &side))
        unavailable("a thread");
    double start = now();
    for (long i = 0; i < count; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            exit(4);
    double took = (now() - start) / count / 2;
    pthread_join(other, NULL);
    return took;
}

static double measure(const char *which, long count)
{
    if (!strcmp(which, "rdtsc"))
        return each(ask_counter, count);
    if (!strcmp(which, "cpuid"))
        return each(ask_processor, count);
    if (!strcmp(which, "rdtsc-fault"))
        return each_fault(counter_faults, ask_counter, count, "PR_SET_TSC");
    if (!strcmp(which, "cpuid-fault"))
        return each_fault(processor_faults, ask_processor, count, "ARCH_SET_CPUID");
    if (!strcmp(which, "rdtsc-mode")) {
        if (counter_faults(1) || counter_faults(0))
            unavailable("PR_SET_TSC");
        return each(toggle_counter, count);
    }
    if (!strcmp(which, "switch"))
        return each_switch(0, count);
    if (!strcmp(which, "switch-cpuid"))
        return each_switch(1, count);
    if (!strcmp(which, "vdso"))
        return each(ask_time, count);
    if (!strcmp(which, "syscall"))
        return each(ask_kernel, count);
    if (!strcmp(which, "lock"))
        return each(lock, count);
    if (!strcmp(which, "lock-record"))
        return each(lock_recorded, count);
    return -1;
}

int main(int argc, char **argv)
{
    long count = argc == 3 ? atol(argv[2]) : 0;
    double took = count > 0 ? measure(argv[1], count) : -1;
    if (took < 0) {
        fputs("usage: instructions CASE COUNT\n", stderr);
        return 2;
    }
    printf("%.1f\n", took);
    return 0;
}
