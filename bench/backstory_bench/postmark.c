/* Postmark with threads: makes files, then reads, appends, makes and removes some of them.

   postmark DIR THREADS DIRECTORIES FILES TRANSACTIONS MEAN BLOCK [TEXT PHASES]

   As in Katcher's Postmark, each transaction reads a file or appends to one, and makes a file or
   removes one. Sizes are uniform around MEAN bytes; reads and writes have BLOCK bytes. Each thread
   has its own files, in directories that all share. Prints the seconds of the transactions and of
   all phases.

   The names of TEXT percent of the files end with .txt. PHASES has a letter for each phase that is
   done: m makes the files, t does transactions, r removes the files. Without m, the files of an
   earlier run are taken. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE 64

static const char *top;
static long directories, files, transactions, mean, block, text;
static const char *phases = "mtr";
static pthread_barrier_t phase;

struct worker {
    pthread_t thread;
    unsigned long random;
    long number, made, live;
    long *names;
    char *bytes;
};

static int is_done(char name)
{
    return strchr(phases, name) != NULL;
}

static void failed(const char *what, const char *path)
{
    fprintf(stderr, "postmark: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static unsigned long below(struct worker *w, unsigned long bound)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % bound;
}

static void path_of(struct worker *w, long name, char *path, size_t room)
{
    long directory = (name * 31 + w->number) % directories;
    const char *end = name * 37 % 100 < text ? ".txt" : "";
    snprintf(path, room, "%s/d%ld/f%ld.%ld%s", top, directory, w->number, name, end);
}

static void write_bytes(struct worker *w, int fd, long size, const char *path)
{
    while (size > 0) {
        ssize_t done = write(fd, w->bytes, (size_t)(size < block ? size : block));
        if (done <= 0)
            failed("write", path);
        size -= done;
    }
}

static void make(struct worker *w)
{
    char path[4096];
    path_of(w, w->made, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        failed("make", path);
    write_bytes(w, fd, 1 + (long)below(w, 2 * (unsigned long)mean), path);
    close(fd);
    w->names[w->live++] = w->made++;
}

static void drop(struct worker *w, long at)
{
    char path[4096];
    path_of(w, w->names[at], path, sizeof path);
    if (unlink(path) != 0)
        failed("remove", path);
    w->names[at] = w->names[--w->live];
}

static void use(struct worker *w)
{
    char path[4096];
    int append = below(w, 2) == 0;
    path_of(w, w->names[below(w, (unsigned long)w->live)], path, sizeof path);
    int fd = open(path, append ? O_WRONLY | O_APPEND : O_RDONLY);
    if (fd < 0)
        failed("open", path);
    ssize_t done = 1;
    if (append)
        write_bytes(w, fd, 1 + (long)below(w, (unsigned long)mean), path);
    while (!append && done > 0)
        done = read(fd, w->bytes, (size_t)block);
    if (done < 0)
        failed("read", path);
    close(fd);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    pthread_barrier_wait(&phase);
    for (long i = 0; i < files; i++) {
        if (is_done('m'))
            make(w);
        else
            w->names[w->live++] = w->made++;
    }
    pthread_barrier_wait(&phase);
    for (long i = 0; is_done('t') && i < transactions; i++) {
        if (w->live > 0)
            use(w);
        if (w->live > 0 && below(w, 2) == 0)
            drop(w, (long)below(w, (unsigned long)w->live));
        else
            make(w);
    }
    pthread_barrier_wait(&phase);
    while (is_done('r') && w->live > 0)
        drop(w, w->live - 1);
    pthread_barrier_wait(&phase);
    return NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void name_directory(long number, char *path, size_t room)
{
    snprintf(path, room, "%s/d%ld", top, number);
}

int main(int argc, char **argv)
{
    char path[4096];
    double at[4];
    if (argc != 8 && argc != 10) {
        fputs("usage: postmark DIR THREADS DIRECTORIES FILES TRANSACTIONS MEAN BLOCK"
              " [TEXT PHASES]\n",
              stderr);
        return 2;
    }
    top = argv[1];
    long threads = atol(argv[2]);
    directories = atol(argv[3]);
    files = atol(argv[4]) / threads;
    transactions = atol(argv[5]) / threads;
    mean = atol(argv[6]);
    block = atol(argv[7]);
    if (argc == 10) {
        text = atol(argv[8]);
        phases = argv[9];
    }
    for (long i = 0; is_done('m') && i < directories; i++) {
        name_directory(i, path, sizeof path);
        if (mkdir(path, 0755) != 0)
            failed("make", path);
    }
    pthread_barrier_init(&phase, NULL, (unsigned)threads + 1);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    for (long i = 0; i < threads; i++) {
        struct worker *w = &workers[i];
        w->random = 0x9e3779b97f4a7c15UL * (unsigned long)(i + 1);
        w->number = i;
        w->names = calloc((size_t)(files + transactions), sizeof *w->names);
        w->bytes = malloc((size_t)block);
        memset(w->bytes, 'x', (size_t)block);
        for (long byte = LINE - 1; byte < block; byte += LINE)
            w->bytes[byte] = '\n';
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            failed("start", "a thread");
    }
    for (int i = 0; i < 4; i++) {
        pthread_barrier_wait(&phase);
        at[i] = now();
    }
    for (long i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    for (long i = 0; is_done('r') && i < directories; i++) {
        name_directory(i, path, sizeof path);
        if (rmdir(path) != 0)
            failed("remove", path);
    }
    printf("%.3f %.3f\n", at[2] - at[1], at[3] - at[0]);
    return 0;
}
