/* Waits for no descriptor, by number and by libc, and for a pipe that is ready for ever. */
#include <limits.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    struct timespec two = {0, 2000000}, ever = {LONG_MAX, 0};
    struct timeval three = {0, 3000};
    int ends[2];
    struct pollfd out = {.events = POLLOUT};
    if (pipe(ends))
        return 1;
    out.fd = ends[1];
    syscall(SYS_ppoll, 0, 0, &two, 0, 8);
    select(0, 0, 0, 0, &three);
    return syscall(SYS_ppoll, &out, 1, &ever, 0, 8) != 1;
}
