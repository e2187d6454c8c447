/*
 * Measures the cost of preserving a file by a hard link before the file is removed. The link is
 * made by an absolute path, relative to the current directory, or relative to a descriptor.
 *
 * `own_links DIR FILES ROUNDS` makes FILES files in the empty DIR, and removes them, in each round
 * by each way. It prints the median of ns of processor time for each file. The ways take turns.
 * The recorder needs the absolute path of the file for its record. So the second way also calls
 * getcwd(2), and the last one reads the link of the descriptor in /proc. `--csv FILE` at the end
 * keeps the rounds.
 */
#define _GNU_SOURCE
#include "medians.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char given[4096];
static int directory, kept;

enum { REMOVE_ONLY, ABSOLUTE, CURRENT, DESCRIPTOR, WAYS };

static const char *const titles[] = {
    "removed, without a link",
    "linked by an absolute path",
    "linked relative to the current directory",
    "linked relative to a descriptor",
};

static void preserve(int way, const char *name, int number)
{
    char to[16], path[8192], link[64];
    snprintf(to, sizeof to, "%d", number);
    switch (way) {
    case ABSOLUTE:
        snprintf(path, sizeof path, "%s/%s", given, name);
        need(linkat(AT_FDCWD, path, kept, to, 0) == 0, "linkat");
        break;
    case CURRENT:
        need(syscall(SYS_getcwd, path, sizeof path) > 0, "getcwd");
        need(linkat(AT_FDCWD, name, kept, to, 0) == 0, "linkat");
        break;
    case DESCRIPTOR:
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        need(readlink(link, path, sizeof path) > 0, "readlink");
        need(linkat(directory, name, kept, to, 0) == 0, "linkat");
        break;
    default: break;
    }
}

static double remove_all(int way, int files)
{
    char name[16];
    for (int f = 0; f < files; f++) {
        snprintf(name, sizeof name, "file%d", f);
        int fd = openat(directory, name, O_CREAT | O_EXCL | O_WRONLY, 0600);
        need(fd >= 0 && write(fd, name, 4) == 4, name);
        close(fd);
    }
    double start = processor_time(RUSAGE_SELF);
    for (int f = 0; f < files; f++) {
        snprintf(name, sizeof name, "file%d", f);
        preserve(way, name, f);
        need(unlinkat(directory, name, 0) == 0, "unlinkat");
    }
    double end = processor_time(RUSAGE_SELF);
    for (int f = 0; f < files && way != REMOVE_ONLY; f++) {
        snprintf(name, sizeof name, "%d", f);
        need(unlinkat(kept, name, 0) == 0, "unlinkat");
    }
    return (end - start) / files;
}

int main(int argc, char **argv)
{
    FILE *csv = csv_of(&argc, argv);
    if (argc != 4)
        return 2;
    int files = atoi(argv[2]), rounds = atoi(argv[3]);
    need(files > 0 && rounds > 0 && realpath(argv[1], given) && chdir(given) == 0, argv[1]);
    directory = open(".", O_RDONLY | O_DIRECTORY);
    need(mkdir("kept", 0700) == 0, "mkdir");
    kept = open("kept", O_RDONLY | O_DIRECTORY);
    need(directory >= 0 && kept >= 0, "open");
    struct series all = new_series(titles, WAYS, rounds, "cpu_ns");
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++)
            rounds_of(&all, w, 0)[r] = remove_all(w, files);
    write_csv(csv, &all, argc, argv);
    print_medians(&all);
    rmdir("kept");
}
