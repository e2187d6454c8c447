/*
 * A library like those that users preload. It wraps libc's `open` and `malloc`, and counts their
 * calls.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int opens;
static char memory[1 << 20], *next = memory;

void *malloc(size_t size)
{
    char *place = next;
    next += (size + 31) & ~15ul;
    *(size_t *)place = size;
    return next > memory + sizeof memory ? NULL : place + 16;
}

void free(void *place)
{
    (void)place;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *place, size_t size)
{
    void *to = malloc(size);
    if (place && to)
        memcpy(to, place, ((size_t *)place)[-2] < size ? ((size_t *)place)[-2] : size);
    return to;
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, int);
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    if (!real)
        real = (int (*)(const char *, int, int))dlsym(RTLD_NEXT, "open");
    opens++;
    return real(path, flags, mode);
}

__attribute__((constructor)) static void start(void)
{
    close(open("input", O_RDONLY)); /* before main runs */
}

__attribute__((destructor)) static void end(void)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%d opens\n", opens);
    write(2, line, n);
}
