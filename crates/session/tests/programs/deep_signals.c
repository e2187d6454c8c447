/* A timer interrupts large reads and writes. Its handler reads, too. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIZE = 200000, ROUNDS = 40 };
static int zeros[2];
static volatile int rounds;

static void ring(int number)
{
    char byte[3000];
    (void)number;
    if (write(zeros[1], byte, sizeof byte) > 0 && read(zeros[0], byte, sizeof byte) != sizeof byte)
        abort();
    rounds++;
}

int main(void)
{
    if (pipe(zeros))
        abort();
    struct sigaction action = {.sa_handler = ring, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct sigaction known;
    sigaction(SIGALRM, 0, &known);
    if (known.sa_handler != ring)
        abort();
    struct itimerval often = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &often, 0);
    char *bytes = malloc(SIZE);
    memset(bytes, 'x', SIZE);
    char name[] = "largeXXXXXX";
    int fd = mkstemp(name);
    for (int i = 0; i < ROUNDS || rounds < 20; i++) {
        bytes[i % SIZE]++;
        if (pwrite(fd, bytes, SIZE, 0) != SIZE || pread(fd, bytes, SIZE, 0) != SIZE)
            abort();
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, 0);
    return 0;
}
