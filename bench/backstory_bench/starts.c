/*
 * Compares starts of /bin/true: natively, and with a preloaded library that does nothing or little.
 *
 * `starts COUNT ROUNDS DIRECTORY` starts it COUNT times each way, by vfork and by fork. DIRECTORY
 * has the libraries, which are made from this file, too:
 *
 *   gcc -O2 -o starts starts.c
 *   gcc -O2 -shared -fPIC -DLIBRARY -nostdlib -Wl,-z,noseparate-code,-z,norelro -o D/compact.so \
 *       starts.c
 *   gcc -O2 -shared -fPIC -DLIBRARY -o D/ordinary.so starts.c
 *   gcc -O2 -shared -fPIC -DLIBRARY -DPATCHES -nostdlib -Wl,-z,noseparate-code,-z,norelro \
 *       -o D/patches.so starts.c
 *
 * The compact library has two segments, as the recorder has. The ordinary one has the segments of
 * gcc, and its start files. The third one is compact, and changes two pages of libc's code.
 *
 * The ways take turns in each round. For each way, the program prints medians of ROUNDS, with the
 * least and the most, in us a start. These are wall time, and processor time of parent and child.
 * The column "more" is the median of the differences of processor time to the native starts of the
 * same round.
 * The last figure is the page faults of a child. `--csv FILE` at the end keeps the rounds, with
 * times in ns.
 */
#ifdef LIBRARY

int empty(void)
{
    return 0;
}

#ifdef PATCHES
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

/* Writes a byte of libc's code, as it is, so that the process gets a page of its own. */
static void change(uintptr_t page)
{
    volatile char *code = (volatile char *)page;
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        __builtin_trap();
    *code = *code;
    if (mprotect((void *)page, 4096, PROT_READ | PROT_EXEC) != 0)
        __builtin_trap();
}

/* Changes the page of `open`, and the fourth one after it. */
__attribute__((constructor)) static void begin(void)
{
    uintptr_t page = (uintptr_t)open & ~(uintptr_t)4095;
    change(page);
    change(page + 4 * 4096);
}
#endif

#else
#define _GNU_SOURCE
#include "medians.h"

#include <sys/wait.h>
#include <time.h>

enum library { NATIVE, COMPACT, ORDINARY, PATCHES, LIBRARIES };
enum { WAYS = 2 * LIBRARIES };
static const char *const files[] = {"", "compact.so", "ordinary.so", "patches.so"};
static const char *const titles[] = {
    "vfork, native", "vfork, compact library", "vfork, ordinary library", "vfork, patches",
    "fork, native",  "fork, compact library",  "fork, ordinary library",  "fork, patches"};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double faults(void)
{
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    return r.ru_minflt;
}

static void start(int by_fork, char *const *environment)
{
    static char *const words[] = {"/bin/true", NULL};
    pid_t child = by_fork ? fork() : vfork();
    if (child == 0) {
        execve(words[0], words, environment);
        _exit(127);
    }
    need(child > 0, "fork");
    int status;
    need(waitpid(child, &status, 0) == child && status == 0, words[0]);
}

static void one(const struct series *all, int way, int round, int count, const char *directory)
{
    char preload[4200];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/%s", directory, files[way % LIBRARIES]);
    char *environment[] = {way % LIBRARIES == NATIVE ? NULL : preload, NULL};
    double wall = now(), touched = faults();
    double cpu = processor_time(RUSAGE_SELF) + processor_time(RUSAGE_CHILDREN);
    for (int i = 0; i < count; i++)
        start(way >= LIBRARIES, environment);
    cpu = processor_time(RUSAGE_SELF) + processor_time(RUSAGE_CHILDREN) - cpu;
    rounds_of(all, way, 0)[round] = (now() - wall) / count;
    rounds_of(all, way, 1)[round] = cpu / count;
    rounds_of(all, way, 2)[round] = (faults() - touched) / count;
}

/* A loader that cannot open a preloaded library goes on without it. */
static void check(const char *directory)
{
    for (int library = COMPACT; library < LIBRARIES; library++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", directory, files[library]);
        need(access(path, R_OK) == 0, path);
    }
}

/* The rounds stay in their order, because those of the native way are needed again. */
static void print(const struct series *all, int way)
{
    int middle = all->rounds / 2;
    double more[all->rounds];
    for (int r = 0; r < all->rounds; r++)
        more[r] = rounds_of(all, way, 1)[r] - rounds_of(all, way - way % LIBRARIES, 1)[r];
    qsort(more, all->rounds, sizeof *more, compare);
    double medians[3], least[3], most[3];
    for (int figure = 0; figure < 3; figure++) {
        double own[all->rounds];
        memcpy(own, rounds_of(all, way, figure), sizeof own);
        qsort(own, all->rounds, sizeof *own, compare);
        medians[figure] = own[middle], least[figure] = own[0], most[figure] = own[all->rounds - 1];
    }
    printf("%-24s wall %.0f (%.0f to %.0f) processor %.0f (%.0f to %.0f) more %.1f faults %.1f\n",
           titles[way], medians[0] / 1e3, least[0] / 1e3, most[0] / 1e3, medians[1] / 1e3,
           least[1] / 1e3, most[1] / 1e3, more[middle] / 1e3, medians[2]);
}

int main(int argc, char **argv)
{
    FILE *csv = csv_of(&argc, argv);
    if (argc != 4)
        return 2;
    int count = atoi(argv[1]), rounds = atoi(argv[2]);
    if (count < 1 || rounds < 1)
        return 2;
    check(argv[3]);
    struct series all = new_series(titles, WAYS, rounds, "wall_ns,cpu_ns,faults");
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++)
            one(&all, w, r, count, argv[3]);
    write_csv(csv, &all, argc, argv);
    for (int w = 0; w < WAYS; w++)
        print(&all, w);
}
#endif
