/* A server that forks for each connection, and its client: both in one program. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 20 };

static void serve(int fd)
{
    char line[100];
    ssize_t n = read(fd, line, sizeof line);
    if (n <= 0)
        _exit(1);
    for (ssize_t i = 0; i < n; i++)
        line[i] ^= 1;
    if (write(fd, line, (size_t)n) != n)
        _exit(1);
    FILE *log = fopen("log", "a");
    fprintf(log, "request of %zd bytes\n", n);
    fclose(log);
    _exit(0);
}

int main(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 10) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        abort();
    if (fork() == 0) {
        for (int i = 0; i < REQUESTS; i++) {
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            char request[50], answer[50];
            int n = snprintf(request, sizeof request, "request number %d", i);
            if (connect(fd, (struct sockaddr *)&address, sizeof address) ||
                write(fd, request, (size_t)n) != n || read(fd, answer, sizeof answer) != n)
                abort();
            close(fd);
        }
        exit(0);
    }
    for (int i = 0; i < REQUESTS; i++) {
        int fd = accept(listener, 0, 0);
        if (fork() == 0)
            serve(fd);
        close(fd);
    }
    while (wait(0) > 0) {
    }
    return 0;
}
