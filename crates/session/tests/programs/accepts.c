/*
 * Accepts connections.
 *
 * tell: Accepts them in many ways. Prints the addresses of both ends of each internet connection,
 * each as 28 bytes in hexadecimal digits.
 *
 * serve COUNT FILE: Accepts them in a loop, and answers each with the beginning of a file.
 *
 * reuse FILE: Answers a connection with a file by sendfile. The connection has the number that a
 * listening socket had. Then another socket listens.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            exit(1); \
        } \
    } while (0)

/* An address of an internet socket, and its size. */
struct end {
    union {
        unsigned char bytes[sizeof(struct sockaddr_in6)];
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    };
    socklen_t size;
};

static struct end four(uint32_t address, in_port_t port)
{
    struct end end = {.size = sizeof end.four};
    end.four.sin_family = AF_INET;
    end.four.sin_addr.s_addr = htonl(address);
    end.four.sin_port = port;
    return end;
}

static struct end six(struct in6_addr address)
{
    struct end end = {.size = sizeof end.six};
    end.six.sin6_family = AF_INET6;
    end.six.sin6_addr = address;
    return end;
}

static struct end own_end(int fd)
{
    struct end end = {.size = sizeof end.bytes};
    MUST(getsockname(fd, &end.any, &end.size) == 0);
    return end;
}

/* Returns a listening socket, or -1 if the machine has no such address. */
static int listening(struct end at)
{
    int fd = socket(at.any.sa_family, SOCK_STREAM, 0), off = 0;
    if (fd >= 0 && at.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (fd < 0 || bind(fd, &at.any, at.size) < 0) {
        close(fd);
        return -1;
    }
    MUST(listen(fd, 100) == 0);
    return fd;
}

static int connected(struct end to)
{
    int fd = socket(to.any.sa_family, SOCK_STREAM, 0);
    MUST(fd >= 0 && connect(fd, &to.any, to.size) == 0);
    return fd;
}

static void print(struct end own, struct end other)
{
    char line[2 * 2 * sizeof own.bytes + 3], *at = line;
    for (size_t i = 0; i < sizeof own.bytes; i++)
        at += sprintf(at, "%02x", own.bytes[i]);
    *at++ = ' ';
    for (size_t i = 0; i < sizeof other.bytes; i++)
        at += sprintf(at, "%02x", other.bytes[i]);
    *at++ = '\n';
    MUST(write(1, line, (size_t)(at - line)) == at - line);
}

/* ---- tell ------------------------------------------------------------------------------------ */

static int accept_with_address(int listener)
{
    struct end other = {.size = sizeof other.bytes};
    return accept4(listener, &other.any, &other.size, SOCK_CLOEXEC);
}

/* The kernel does not look at the size. */
static int accept_without_address(int listener)
{
    return accept(listener, 0, (socklen_t *)1);
}

/* The kernel cuts the address, and says how long it is. */
static int accept_with_short_address(int listener)
{
    enum { ROOM = 8, UNTOUCHED = 0xee };
    unsigned char bytes[sizeof(struct end)];
    memset(bytes, UNTOUCHED, sizeof bytes);
    socklen_t size = ROOM;
    int fd = accept(listener, (struct sockaddr *)bytes, &size);
    MUST(size == own_end(listener).size && bytes[0] != UNTOUCHED && bytes[ROOM] == UNTOUCHED);
    return fd;
}

typedef int accepts(int listener);

/* One connection to this address. */
static void one(int listener, struct end to, accepts *by)
{
    int client = connected(to), fd = by(listener);
    MUST(fd >= 0);
    print(own_end(fd), own_end(client));
    close(client);
    close(fd);
}

static void in_each_way(int listener, struct end to)
{
    accepts *const ways[] = {accept_with_address, accept_without_address,
                             accept_with_short_address};
    for (int i = 0; i < 9; i++)
        one(listener, to, ways[i % 3]);
}

/* A connection that its client resets before it is accepted. */
static void a_reset_one(int listener)
{
    struct linger at_once = {1, 0};
    int client = connected(own_end(listener));
    struct end other = own_end(client);
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(client);
    int fd = accept_without_address(listener);
    MUST(fd >= 0);
    print(own_end(listener), other);
    close(fd);
}

/* The same descriptor listens at another port. */
static void again_elsewhere(int listener)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    in_port_t port = own_end(listener).four.sin_port;
    MUST(connect(listener, &none, sizeof none) == 0 && listen(listener, 10) == 0);
    MUST(own_end(listener).four.sin_port != port);
    one(listener, own_end(listener), accept_with_address);
    one(listener, own_end(listener), accept_without_address);
}

enum { THREADS = 4, BY_EACH = 25 };

static void *accept_some(void *listener)
{
    for (int i = 0; i < BY_EACH; i++) {
        int fd = i % 2 ? accept_with_address(*(int *)listener)
                       : accept_without_address(*(int *)listener);
        struct end other = {.size = sizeof other.bytes};
        MUST(fd >= 0 && getpeername(fd, &other.any, &other.size) == 0);
        print(own_end(fd), other);
        close(fd);
    }
    return 0;
}

static void by_threads(int *listener)
{
    pthread_t threads[THREADS];
    int clients[THREADS * BY_EACH];
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], 0, accept_some, listener) == 0);
    for (int i = 0; i < THREADS * BY_EACH; i++)
        clients[i] = connected(own_end(*listener));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    for (int i = 0; i < THREADS * BY_EACH; i++)
        close(clients[i]);
}

/* A socket with a name in the file system has no address. */
static void without_internet(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 9) == 0);
    for (int i = 0; i < 3; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM, 0);
        MUST(connect(client, (struct sockaddr *)&name, sizeof name) == 0);
        int fd = accept(listener, 0, 0);
        MUST(fd >= 0 && write(client, "x", 1) == 1);
        close(client);
        close(fd);
    }
    close(listener);
}

static void tell(void)
{
    int listener = listening(four(INADDR_LOOPBACK, 0));
    in_each_way(listener, own_end(listener));
    a_reset_one(listener);
    by_threads(&listener);
    int copy = dup(listener);
    one(copy, own_end(listener), accept_with_address);
    if (fork() == 0) {
        in_each_way(listener, own_end(listener));
        _exit(0);
    }
    int status;
    MUST(wait(&status) > 0 && status == 0);
    close(copy);
    again_elsewhere(listener);
    int number = listener;
    close(listener);

    /* The connections of this one, under the same number, have several own addresses. */
    listener = listening(four(INADDR_ANY, 0));
    MUST(listener == number);
    in_each_way(listener, four(INADDR_LOOPBACK, own_end(listener).four.sin_port));
    in_each_way(listener, four(INADDR_LOOPBACK + 1, own_end(listener).four.sin_port));
    close(listener);

    listener = listening(six(in6addr_loopback));
    if (listener >= 0)
        in_each_way(listener, own_end(listener));
    close(listener);
    listener = listening(six(in6addr_any));
    if (listener >= 0) {
        struct end to = own_end(listener);
        int client = connected(four(INADDR_LOOPBACK, to.six.sin6_port));
        int fd = accept_with_address(listener);
        struct end other = {.size = sizeof other.bytes};
        MUST(fd >= 0 && getpeername(fd, &other.any, &other.size) == 0);
        print(own_end(fd), other);
        close(fd);
        close(client);
    }
    close(listener);
    without_internet();
}

/* ---- serve ----------------------------------------------------------------------------------- */

static void ask(struct end server, int count)
{
    char text[100];
    for (int i = 0; i < count; i++) {
        int fd = connected(server);
        MUST(write(fd, "question", 8) == 8);
        while (read(fd, text, sizeof text) > 0)
            ;
        close(fd);
    }
    exit(0);
}

static void serve(int count, const char *file)
{
    char text[100];
    int listener = listening(four(INADDR_LOOPBACK, 0));
    struct end here = own_end(listener);
    pid_t client = fork();
    if (client == 0)
        ask(here, count);
    for (int i = 0; i < count; i++) {
        struct end other = {.size = sizeof other.bytes};
        int fd = accept4(listener, &other.any, &other.size, SOCK_CLOEXEC);
        MUST(fd >= 0 && read(fd, text, sizeof text) == 8);
        int content = open(file, O_RDONLY);
        ssize_t size = pread(content, text, sizeof text, 0);
        MUST(size > 0 && write(fd, text, (size_t)size) == size);
        close(content);
        close(fd);
    }
    MUST(waitpid(client, 0, 0) == client);
    printf("%d\n", (int)getpid());
}

/* ---- reuse ----------------------------------------------------------------------------------- */

static void reuse(const char *file)
{
    int former = listening(four(INADDR_LOOPBACK, 0));
    int first = connected(own_end(former));
    close(accept_with_address(former));
    int listener = listening(four(INADDR_LOOPBACK, 0));
    int content = open(file, O_RDONLY), client = connected(own_end(listener));
    close(former);
    int fd = accept_with_address(listener);
    MUST(fd == former && sendfile(fd, content, 0, 100) > 0);
    listening(four(INADDR_LOOPBACK, 0));
    close(fd);
    close(client);
    close(first);
}

int main(int count, char **words)
{
    if (count == 4 && strcmp(words[1], "serve") == 0)
        serve(atoi(words[2]), words[3]);
    else if (count == 3 && strcmp(words[1], "reuse") == 0)
        reuse(words[2]);
    else
        tell();
    return 0;
}
