/* Threads that pass messages of many lengths through pipes and socket pairs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 60, LONGEST = 150000 };

static void read_all(int fd, char *to, size_t n)
{
    while (n) {
        ssize_t got = read(fd, to, n);
        if (got <= 0)
            abort();
        to += got;
        n -= (size_t)got;
    }
}

static void *run(void *number)
{
    int ends[2], pair[2];
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
        abort();
    unsigned seed = (unsigned)(size_t)number;
    char *from = malloc(LONGEST), *to = malloc(LONGEST);
    for (int i = 0; i < LONGEST; i++)
        from[i] = (char)rand_r(&seed);
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = 1 + (size_t)rand_r(&seed) % 60000;
        if (write(ends[1], from + round, n) != (ssize_t)n)
            abort();
        read_all(ends[0], to, n);
        size_t m = 1 + (size_t)rand_r(&seed) % 4000;
        struct iovec out[3] = {{from, m}, {from + 7, 0}, {from + 9, 2 * m}};
        struct msghdr message = {.msg_iov = out, .msg_iovlen = 3};
        if (sendmsg(pair[0], &message, 0) != (ssize_t)(3 * m))
            abort();
        struct iovec in[2] = {{to, m / 2}, {to + m, LONGEST - m}};
        struct msghdr received = {.msg_iov = in, .msg_iovlen = 2};
        if (recvmsg(pair[1], &received, 0) != (ssize_t)(3 * m))
            abort();
        if (send(pair[1], from, m, 0) < 0 || recv(pair[0], to, LONGEST, 0) != (ssize_t)m)
            abort();
        if (writev(ends[1], out, 1) < 0 || readv(ends[0], in, 2) < 0)
            abort();
        if (getrandom(to, 33, 0) != 33)
            abort();
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], 0, run, (void *)i))
            abort();
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    /* one read of more bytes than any chunk has */
    FILE *file = fopen("large", "w+");
    char *large = malloc(1 << 20);
    for (int i = 0; i < 1 << 20; i++)
        large[i] = (char)(i * 7 + i / 1000);
    fwrite(large, 1, 1 << 20, file);
    fflush(file);
    if (pread(fileno(file), large, 1 << 20, 0) != 1 << 20)
        abort();
    return 0;
}
