/*
 * Runs as many threads at once as the first argument says, and opens descriptors with high numbers.
 * Then it closes all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_barrier_t all;

static void *look(void *number)
{
    struct stat s;
    char path[64];
    pthread_barrier_wait(&all);
    snprintf(path, sizeof path, "/crowd-%ld", (long)number);
    stat(path, &s);
    return NULL;
}

static void threads(long count)
{
    pthread_t *ids = calloc(count, sizeof *ids);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all, NULL, count);
    for (long i = 0; i < count; i++)
        if (pthread_create(&ids[i], &small, look, (void *)i))
            exit(1);
    for (long i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
}

static void descriptors(void)
{
    char byte;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int fd = open("input", O_RDWR);
    for (int to = 4000; to < 200000; to *= 2) {
        int high = fcntl(fd, F_DUPFD, to);
        if (high >= 0 &&
            (pread(high, &byte, 1, 0) != 1 || pwrite(high, &byte, 1, 0) != 1 || close(high)))
            exit(2);
    }
    if (dup2(fd, 5000) != 5000 && errno != EBADF)
        exit(3);
    close_range(3, ~0u, 0);
    /* 3: no descriptor above 2 is open, not even one of the recorder */
    if (open("input", O_RDONLY) != 3)
        exit(4);
}

int main(int argc, char **argv)
{
    threads(atol(argv[1]));
    descriptors();
    puts("done");
    return argc - 2;
}
