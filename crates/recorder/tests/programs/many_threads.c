/*
 * Makes threads one after the other, more of them than a process may have mappings. The argument is
 * their number.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *look(void *how)
{
    access("/absent", F_OK);
    if (how)
        pthread_exit(NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 100;
    for (long i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, look, (void *)(i % 2)) || pthread_join(thread, NULL))
            return 1;
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0, c;
    while ((c = fgetc(maps)) != EOF)
        lines += c == '\n';
    return lines > 200 ? 2 : 0;
}
