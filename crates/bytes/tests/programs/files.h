/* Each program of this directory writes the bytes of `in`, from the last to the first, into `out`.
 * They differ in how the bytes go there. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 256

static void need(int good)
{
    if (!good)
        _exit(3);
}

static void read_all(int fd, char *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, to + at, n - at);
        need(got > 0);
        at += got;
    }
}

static void read_in(char *to)
{
    int fd = open("in", O_RDONLY);
    read_all(fd, to, N);
    close(fd);
}

static int create_out(void)
{
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(fd >= 0);
    return fd;
}

static inline void reverse(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[n - 1 - i];
}

static inline void write_out(const char *from)
{
    int fd = create_out();
    need(write(fd, from, N) == N);
    close(fd);
}

static inline void wait_for(pid_t child)
{
    int status;
    need(waitpid(child, &status, 0) == child && status == 0);
}
