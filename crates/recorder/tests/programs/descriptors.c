/* Copies, marks and closes descriptors by every method. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            exit(1); \
        } \
    } while (0)

int main(void)
{
    int fd = open("out", O_WRONLY | O_CREAT, 0644);
    MUST(fd == 3);
    MUST(dup(fd) == 4 && dup2(fd, 10) == 10 && dup3(fd, 11, O_CLOEXEC) == 11);
    MUST(fcntl(fd, F_DUPFD, 20) == 20 && fcntl(fd, F_DUPFD_CLOEXEC, 21) == 21);
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
    MUST(write(10, "x", 1) == 1 && write(10, "y", 1) == 1);
    MUST(dup2(0, 10) == 10);
    MUST(close(fd) == 0 && close(99) < 0);
    MUST(close_range(4, 15, 0) == 0);
    closefrom(16);
    MUST(open("out", O_RDONLY) == 3);
    return 0;
}
