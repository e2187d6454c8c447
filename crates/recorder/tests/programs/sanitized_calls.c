/*
 * Makes calls that a sanitizer's runtime intercepts and the recorder wraps. The first argument
 * names the case. In each case, the intercepted call is the reason for a report, or for its
 * absence.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline))

static int ends[2], value;

static void *does_nothing(void *argument)
{
    return argument;
}

/* ThreadSanitizer reports a thread that is never joined, with the function that created it. */
NOT_INLINED void spawn(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, does_nothing, 0);
    usleep(20000);
}

static void *sends(void *argument)
{
    value = 42;
    return write(ends[1], "x", 1) == 1 ? argument : 0;
}

/* The pipe orders the two threads. ThreadSanitizer knows that from the intercepted calls. */
NOT_INLINED void through_a_pipe(void)
{
    pthread_t thread;
    char byte;
    if (pipe(ends) || pthread_create(&thread, 0, sends, 0) || read(ends[0], &byte, 1) != 1)
        exit(9);
    printf("%d\n", value);
    pthread_join(thread, 0);
}

/* AddressSanitizer checks the buffer of an intercepted read. */
NOT_INLINED void overrun(void)
{
    char *buffer = malloc(8);
    int file = open("input", O_RDONLY);
    printf("%zd\n", read(file, buffer, 9));
    close(file);
    free(buffer);
}

/* MemorySanitizer treats memory that an intercepted read has filled as initialized. */
NOT_INLINED void filled(void)
{
    char buffer[64];
    int file = open("input", O_RDONLY);
    ssize_t got = read(file, buffer, sizeof buffer);
    if (got > 0 && buffer[got - 1] == '\n')
        puts("a line");
    close(file);
}

/* LeakSanitizer reports the directory with the function that opened it. */
NOT_INLINED void leak(void)
{
    if (!opendir("."))
        exit(9);
}

/* Overwrites the remains of `leak` on the stack and in the registers. */
NOT_INLINED void forget(void)
{
    volatile char stack[4096];
    memset((char *)stack, 0, sizeof stack);
}

/* UndefinedBehaviorSanitizer intercepts no call here. Only its report must stay the same. */
NOT_INLINED int overflow(int by)
{
    volatile int most = 0x7fffffff;
    return most + by > 0;
}

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "";
    if (!strcmp(name, "spawn"))
        spawn();
    if (!strcmp(name, "pipe"))
        through_a_pipe();
    if (!strcmp(name, "overrun"))
        overrun();
    if (!strcmp(name, "filled"))
        filled();
    if (!strcmp(name, "leak"))
        leak(), forget();
    if (!strcmp(name, "overflow"))
        printf("%d\n", overflow(count));
    return 0;
}
