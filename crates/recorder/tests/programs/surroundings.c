/*
 * Prints what a program can find out about its start: its environment and the numbers of its
 * descriptors.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;
static const char *early;

__attribute__((constructor)) static void first(void)
{
    early = getenv("LD_PRELOAD");
}

int main(void)
{
    char text[8192];
    printf("early %s now %s\n", early ? early : "-",
           getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "-");
    for (char **e = environ; *e; e++)
        puts(*e);
    int fd = open("/proc/self/environ", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text);
    printf("descriptor %d, %zd bytes\n", fd, n);
    fwrite(text, 1, n, stdout);
    FILE *status = fopen("/proc/self/cmdline", "r");
    printf("descriptor %d\n", fileno(status));
    return 0;
}
