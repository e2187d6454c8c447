/* Bytes go through a pair of sockets, through a named socket, and through TCP: a third each. */
#include "files.h"

#define THIRD (N / 3)

static void send_part(int fd, int part)
{
    char in[N], out[N];
    read_in(in);
    reverse(out, in, N);
    need(send(fd, out + part * THIRD, THIRD, 0) == THIRD);
    need(read(fd, in, 1) == 0); /* until the other end is closed */
    _exit(0);
}

static void receive(int fd, char *to)
{
    read_all(fd, to, THIRD);
    close(fd);
}

static void serve(int family, struct sockaddr *address, socklen_t length, int part, char *to)
{
    int listener = socket(family, SOCK_STREAM, 0);
    need(bind(listener, address, length) == 0 && listen(listener, 1) == 0);
    need(getsockname(listener, address, &length) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(listener);
        int fd = socket(family, SOCK_STREAM, 0);
        need(connect(fd, address, length) == 0);
        send_part(fd, part);
    }
    receive(accept(listener, NULL, NULL), to);
    wait_for(child);
}

int main(void)
{
    char in[N], out[N], got[N];
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        send_part(pair[1], 0);
    }
    close(pair[1]);
    receive(pair[0], got);
    wait_for(child);
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
    unlink("socket");
    serve(AF_UNIX, (struct sockaddr *)&name, sizeof name, 1, got + THIRD);
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    serve(AF_INET, (struct sockaddr *)&port, sizeof port, 2, got + 2 * THIRD);
    read_in(in);
    reverse(out, in, N);
    memcpy(out, got, 3 * THIRD);
    write_out(out);
}
