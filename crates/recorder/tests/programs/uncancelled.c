/*
 * Checks that a call made by number is no cancellation point. It also checks that the loader's last
 * error message stays.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2], at_work[2];

static void *wait_in_read(void *unused)
{
    char byte;
    (void)unused;
    syscall(SYS_write, at_work[1], "x", 1);
    return syscall(SYS_read, ends[0], &byte, 1) == 1 ? "read" : "failed";
}

int main(void)
{
    pthread_t thread;
    void *result;
    char byte;
    dlopen("libnowhere.so", RTLD_NOW);
    close(open("input", O_RDONLY));
    puts(dlerror() ? "an error" : "no error");
    if (pipe(ends) || pipe(at_work) || pthread_create(&thread, NULL, wait_in_read, NULL))
        return 1;
    if (read(at_work[0], &byte, 1) != 1 || pthread_cancel(thread) || write(ends[1], "x", 1) != 1)
        return 2;
    pthread_join(thread, &result);
    puts(result == PTHREAD_CANCELED ? "cancelled" : result);
    return 0;
}
