/*
 * A signal handler jumps out of `system`. The operations after that belong to this process again.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sigjmp_buf back;

static void jump(int signal)
{
    siglongjmp(back, signal);
}

int main(void)
{
    struct stat s;
    signal(SIGUSR1, jump);
    if (sigsetjmp(back, 1) == 0) {
        char line[64];
        snprintf(line, sizeof line, "kill -USR1 %d; exec sleep 2 > /dev/null 2>&1", (int)getpid());
        system(line);
        return 1;
    }
    return stat("/after", &s) == 0;
}
