/*
 * Measures calls that only the guard sees: those of a static program.
 *
 * - `notified loop COUNT FILE` prints ns per open and close.
 * - `notified unpack COUNT DIR` makes COUNT files in an empty DIR, as the unpacking of a
 *   container's image does, and prints ns per file.
 * - `notified crowd PROCESSES COUNT FILE WHICH` lets all processes open at the same time. It prints
 *   ns of one open: the median (50), a percentile (99), or the worst (100). For 0 it prints how
 *   many times longer the last process took than the first.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double one(const char *file)
{
    double start = now();
    int fd = open(file, O_RDONLY);
    double end = now();
    if (fd < 0)
        exit(3);
    close(fd);
    return end - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int crowd(int processes, int count, const char *file, int which)
{
    size_t size = (size_t)processes * (count + 1) * sizeof(double);
    double *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
           *took = all + processes * count;
    int start[2];
    char byte;
    if (all == MAP_FAILED || pipe(start))
        return 4;
    for (int p = 0; p < processes; p++)
        if (fork() == 0) {
            close(start[1]);
            (void)!read(start[0], &byte, 1); /* until the parent closes its end */
            double begin = now();
            for (int i = 0; i < count; i++)
                all[p * count + i] = one(file);
            took[p] = now() - begin;
            _exit(0);
        }
    close(start[1]);
    for (int p = 0; p < processes; p++) {
        int status;
        if (wait(&status) < 0 || status)
            return 5;
    }
    qsort(all, (size_t)processes * count, sizeof *all, compare);
    qsort(took, processes, sizeof *took, compare);
    size_t last = (size_t)processes * count - 1;
    printf("%.2f\n", which ? all[last * which / 100] : took[processes - 1] / took[0]);
    return 0;
}

/* Five notified calls: the file, its owner, its mode, its times, and a look at the result. */
static void unpacked(const char *directory, int number)
{
    const struct timespec times[2] = {{1700000000, 0}, {1700000000, 0}};
    static const char content[4096];
    char path[4096];
    snprintf(path, sizeof path, "%s/f%06d", directory, number);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, content, sizeof content) != sizeof content || close(fd))
        exit(3);
    if (lchown(path, getuid(), getgid()) || chmod(path, 0644) ||
        utimensat(AT_FDCWD, path, times, 0))
        exit(4);
    one(path);
}

int main(int argc, char **argv)
{
    if (argc == 6)
        return crowd(atoi(argv[2]), atoi(argv[3]), argv[4], atoi(argv[5]));
    if (argc != 4)
        return 2;
    int count = atoi(argv[2]), unpacks = strcmp(argv[1], "unpack") == 0;
    double start = now();
    for (int i = 0; i < count; i++)
        if (unpacks)
            unpacked(argv[3], i);
        else
            one(argv[3]);
    printf("%.1f\n", (now() - start) / count);
    return 0;
}
