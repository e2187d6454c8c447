/*
 * Makes files whose every sector names the files that its content came from, and makes them durable
 * in many ways. Arguments: a number that decides what is done, and the number of steps.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECTOR = 512, SECTORS = 12, INPUTS = 6, MOST_READ = 3, KINDS = 12 };

static unsigned long state;
static unsigned now; /* the step that this process does */

static unsigned below(unsigned limit)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % limit;
}

static void check(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

/* Reads some inputs and earlier outputs, and writes their names into `names`. */
static void read_some(unsigned step, char *names, size_t room)
{
    char name[32], buffer[4096];
    unsigned count = 1 + below(MOST_READ);
    names[0] = 0;
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "in%u", below(INPUTS));
        if (step > 4 && below(2))
            snprintf(name, sizeof name, "out%u", below(step));
        int fd = open(name, O_RDONLY);
        if (fd < 0)
            continue;
        if (read(fd, buffer, sizeof buffer) > 0 && strlen(names) + strlen(name) + 2 < room) {
            strcat(names, " ");
            strcat(names, name);
        }
        close(fd);
    }
}

static size_t fill(char *content, const char *name, const char *inputs)
{
    unsigned sectors = 1 + below(SECTORS);
    for (unsigned i = 0; i < sectors; i++) {
        char *sector = content + i * SECTOR;
        memset(sector, '.', SECTOR);
        int n = snprintf(sector, SECTOR, "sector of %s:%s", name, inputs);
        sector[n] = '\n';
    }
    return sectors * SECTOR;
}

static int make(const char *name, int flags)
{
    int fd = open(name, O_RDWR | O_CREAT | flags, 0644);
    check(fd >= 0, name);
    return fd;
}

static void put(int fd, const char *content, size_t size)
{
    for (size_t at = 0; at < size; at += 3 * SECTOR / 2) {
        size_t n = size - at < 3 * SECTOR / 2 ? size - at : 3 * SECTOR / 2;
        check(pwrite(fd, content + at, n, (off_t)at) == (ssize_t)n, "pwrite");
    }
}

/* Makes one output durable, in the way that `kind` says. */
static void write_output(unsigned kind, const char *name, const char *inputs)
{
    static char content[SECTOR * SECTORS];
    char temporary[48];
    size_t size = fill(content, name, inputs);
    snprintf(temporary, sizeof temporary, "%s.%u.tmp", name, now);
    if (kind < 3) {
        int fd = make(name, O_TRUNC);
        put(fd, content, size);
        check(!(kind ? fdatasync(fd) : fsync(fd)), "fsync");
        close(fd);
    } else if (kind == 3 || kind == 4) {
        /* A mail server: write, fsync, rename, fsync the directory. */
        int fd = make(temporary, O_EXCL), directory = open(".", O_RDONLY | O_DIRECTORY);
        put(fd, content, size);
        check(!fsync(fd), "fsync");
        close(fd);
        check(!rename(temporary, name), "rename");
        if (kind == 4)
            check(!fsync(directory), "fsync of the directory");
        close(directory);
    } else if (kind == 5) {
        /* An editor without fsync: it replaces a file. */
        int fd = make(temporary, O_TRUNC), old = make(name, 0), directory = open(".", O_RDONLY);
        close(old);
        put(fd, content, size);
        close(fd);
        check(!rename(temporary, name), "rename");
        check(!fsync(directory), "fsync of the directory");
        close(directory);
    } else if (kind == 6) {
        int fd = make(name, O_TRUNC | O_DSYNC);
        put(fd, content, size);
        close(fd);
    } else if (kind == 7) {
        int fd = make(name, O_TRUNC);
        struct iovec part = {content, size};
        check(pwritev2(fd, &part, 1, 0, RWF_DSYNC) == (ssize_t)size, "pwritev2");
        close(fd);
    } else if (kind == 8) {
        int fd = make(name, O_TRUNC);
        check(!ftruncate(fd, (off_t)size), "ftruncate");
        char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        check(at != MAP_FAILED, "mmap");
        close(fd);
        memcpy(at, content, size);
        check(!msync(at, size, MS_SYNC), "msync");
        munmap(at, size);
    } else if (kind == 9) {
        /* Data that no call makes durable. The file is not truncated: ext4 begins to write such a
         * file back at its close, and no mode promises an order for that. */
        int fd = make(name, 0);
        put(fd, content, size);
        close(fd);
    } else {
        int fd = make(name, 0);
        put(fd, content, size);
        check(!fsync(fd), "fsync");
        put(fd, content, size);
        check(!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER),
              "sync_file_range");
        close(fd);
    }
}

/* The reader sends what it has read through a pipe, and another process writes it. */
static void through_pipe(unsigned step, unsigned kind, const char *name)
{
    int ends[2];
    char names[128] = "";
    check(!pipe(ends), "pipe");
    if (!fork()) {
        close(ends[0]);
        read_some(step, names, sizeof names);
        check(write(ends[1], names, strlen(names) + 1) > 0, "write");
        _exit(0);
    }
    close(ends[1]);
    check(read(ends[0], names, sizeof names) > 0, "read");
    close(ends[0]);
    write_output(kind, name, names);
    wait(0);
}

int main(int count, char **words)
{
    check(count == 3, "two numbers are needed");
    state = strtoul(words[1], 0, 10) * 2 + 1;
    unsigned steps = (unsigned)strtoul(words[2], 0, 10);
    for (unsigned step = 0; step < steps; step++) {
        char name[32], names[128];
        unsigned kind = below(KINDS), form = below(4);
        now = step;
        unsigned output = below(4) ? step : below(step + 1);
        snprintf(name, sizeof name, "out%u", output);
        /* A flush of one writer writes back what another has just written to the same file. No mode
         * promises an order for that, so a file has one writer at a time. */
        while (output != step && wait(0) > 0) {
        }
        if (form == 0) {
            read_some(step, names, sizeof names);
            write_output(kind, name, names);
            continue;
        }
        /* Processes of their own, so that one output does not depend on all inputs. */
        below(1000);
        if (!fork()) {
            if (form == 1) {
                through_pipe(step, kind, name);
            } else {
                read_some(step, names, sizeof names);
                write_output(kind, name, names);
            }
            _exit(0);
        }
        if (form != 3) /* some run at the same time as the next step */
            wait(0);
    }
    while (wait(0) > 0) {
    }
    return 0;
}
