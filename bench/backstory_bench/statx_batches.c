/*
 * Compares the processor time of statx(2) for many files: one call a file, and batches by
 * io_uring.
 *
 * `statx_batches DIR DIRECTORIES FILES ROUNDS` makes DIRECTORIES directories of FILES files in the
 * empty DIR. It prints the median of ns per file of each way, all threads and the kernel's workers
 * included. The ways take turns. `--csv FILE` at the end keeps the rounds.
 */
#define _GNU_SOURCE
#include "medians.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MOST 1024
#define WANTED (STATX_BASIC_STATS | STATX_BTIME)

static int ring;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe *entries;
static struct io_uring_cqe *results;
static struct statx found[MOST];
static char names[MOST][16];

static void make_ring(void)
{
    struct io_uring_params p = {0};
    ring = syscall(SYS_io_uring_setup, MOST, &p);
    need(ring >= 0, "io_uring_setup");
    size_t sq = p.sq_off.array + p.sq_entries * 4, cq = p.cq_off.cqes + p.cq_entries * 16;
    char *m = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                   IORING_OFF_SQ_RING);
    entries = mmap(NULL, MOST * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                   ring, IORING_OFF_SQES);
    need(m != MAP_FAILED && entries != MAP_FAILED, "mmap");
    sq_tail = (unsigned *)(m + p.sq_off.tail);
    sq_mask = (unsigned *)(m + p.sq_off.ring_mask);
    sq_array = (unsigned *)(m + p.sq_off.array);
    cq_head = (unsigned *)(m + p.cq_off.head);
    cq_tail = (unsigned *)(m + p.cq_off.tail);
    cq_mask = (unsigned *)(m + p.cq_off.ring_mask);
    results = (struct io_uring_cqe *)(m + p.cq_off.cqes);
}

static void batch(int directory, int from, int count)
{
    unsigned tail = *sq_tail;
    for (int i = 0; i < count; i++, tail++) {
        struct io_uring_sqe *e = &entries[tail & *sq_mask];
        *e = (struct io_uring_sqe){.opcode = IORING_OP_STATX,
                                   .fd = directory,
                                   .addr = (unsigned long)names[from + i],
                                   .len = WANTED,
                                   .off = (unsigned long)&found[i],
                                   .statx_flags = AT_SYMLINK_NOFOLLOW,
                                   .user_data = i};
        sq_array[tail & *sq_mask] = tail & *sq_mask;
    }
    __atomic_store_n(sq_tail, tail, __ATOMIC_RELEASE);
    need(syscall(SYS_io_uring_enter, ring, count, count, IORING_ENTER_GETEVENTS, NULL, 0) == count,
         "io_uring_enter");
    for (int i = 0; i < count; i++) {
        unsigned head = *cq_head;
        need(head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE), "a missing result");
        need(results[head & *cq_mask].res == 0, "IORING_OP_STATX");
        __atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
    }
}

/* `size` 0: one call a file. */
static double walk(const char *dir, int directories, int files, int size)
{
    char path[4096];
    double start = processor_time(RUSAGE_SELF);
    for (int d = 0; d < directories; d++) {
        snprintf(path, sizeof path, "%s/%d", dir, d);
        int directory = open(path, O_PATH | O_DIRECTORY);
        need(directory >= 0, path);
        for (int f = 0; f < files && size; f += size)
            batch(directory, f, f + size < files ? size : files - f);
        for (int f = 0; f < files && !size; f++)
            need(statx(directory, names[f], AT_SYMLINK_NOFOLLOW, WANTED, found) == 0, "statx");
        close(directory);
    }
    return (processor_time(RUSAGE_SELF) - start) / ((double)directories * files);
}

static void make_files(const char *dir, int directories, int files)
{
    for (int f = 0; f < files; f++)
        snprintf(names[f], sizeof names[f], "file%d", f);
    for (int d = 0; d < directories; d++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", dir, d);
        need(mkdir(path, 0700) == 0, path);
        int directory = open(path, O_RDONLY);
        for (int f = 0; f < files; f++) {
            int fd = openat(directory, names[f], O_CREAT | O_WRONLY, 0600);
            need(fd >= 0, names[f]);
            close(fd);
        }
        close(directory);
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 8, 32, 128, 1000};
    static const char *const titles[] = {"one call a file", "batches of 8", "batches of 32",
                                         "batches of 128", "batches of 1000"};
    enum { WAYS = sizeof sizes / sizeof *sizes };
    FILE *csv = csv_of(&argc, argv);
    if (argc != 5)
        return 2;
    int directories = atoi(argv[2]), files = atoi(argv[3]), rounds = atoi(argv[4]);
    if (files > MOST || rounds < 1)
        return 2;
    make_files(argv[1], directories, files);
    make_ring();
    struct series all = new_series(titles, WAYS, rounds, "cpu_ns");
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++)
            rounds_of(&all, w, 0)[r] = walk(argv[1], directories, files, sizes[w]);
    write_csv(csv, &all, argc, argv);
    print_medians(&all);
}
