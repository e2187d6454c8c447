/* Uses pipes, sockets, a passed descriptor, and memory with a name. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            exit(1); \
        } \
    } while (0)

static void pass(int from, int to, int fd)
{
    char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    MUST(sendmsg(from, &message, 0) == 1);
    MUST(recvmsg(to, &message, 0) == 1);
}

int main(void)
{
    int ends[2], pair[2];
    char byte;
    MUST(pipe(ends) == 0 && write(ends[1], "x", 1) == 1 && read(ends[0], &byte, 1) == 1);
    MUST(pipe2(ends, O_CLOEXEC) == 0);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    MUST(send(pair[0], "x", 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1);
    pass(pair[0], pair[1], ends[0]);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(server, (void *)&address, sizeof address) == 0 && listen(server, 1) == 0);
    MUST(connect(client, (void *)&address, sizeof address) == 0 && accept(server, 0, 0) >= 0);
    MUST(memfd_create("memory", 0) >= 0);
    MUST(eventfd(0, 0) >= 0 && epoll_create1(0) >= 0);
    return 0;
}
