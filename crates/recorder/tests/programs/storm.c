/*
 * Runs threads while a timer's handler, which opens files itself, interrupts them. One of the
 * threads makes children.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            _exit(1); \
        } \
    } while (0)
enum { THREADS = 4, ROUNDS = 2000 };

static void handler(int signal)
{
    (void)signal;
    int saved = errno;
    struct stat s;
    stat("/in-handler", &s);
    errno = saved;
}

static void *work(void *number)
{
    char name[32];
    struct stat s;
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "/t%ld-%d", (long)number, i);
        errno = 0;
        MUST(stat(name, &s) < 0 && errno == ENOENT);
    }
    return number;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 500}, {0, 500}}, never = {0};
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &every, 0);
    for (long i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], 0, work, (void *)i) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t pid = i % 2 ? vfork() : fork();
        if (pid == 0) {
            if (i % 4 == 0)
                open("/in-child", O_RDONLY);
            _exit(0);
        }
        int status;
        MUST(pid > 0);
        while (waitpid(pid, &status, 0) < 0)
            MUST(errno == EINTR);
        MUST(status == 0);
    }
    for (long i = 0; i < THREADS; i++) {
        void *result;
        MUST(pthread_join(threads[i], &result) == 0 && result == (void *)i);
    }
    setitimer(ITIMER_REAL, &never, 0);
    return 0;
}
