/*
 * Makes a child by clone3, by number, that runs on its parent's memory while the parent waits. The
 * argument names the child's stack: the parent's, or one with a prepared return address.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));

static void child(void)
{
    int input = open("input", O_RDONLY);
    int output = open("output", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (input < 0 || output < 0 || dup2(input, 0) != 0 || dup2(output, 1) != 1)
        _exit(8);
    execl("/bin/cat", "cat", (char *)0);
    _exit(9);
}

/* Volatile, so that the compiler does not know that the call never returns. */
static void (*volatile function)(void) = child;

int main(int count, char **arguments)
{
    struct clone_args how = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD};
    if (count > 1 && !strcmp(arguments[1], "own")) {
        uint64_t size = sizeof stack - 64;
        *(void **)(stack + size) = (void *)child;
        how.stack = (uintptr_t)stack;
        how.stack_size = size;
    }
    volatile pid_t parent = getpid();
    syscall(SYS_clone3, &how, sizeof how);
    /* The child has overwritten that call's return address by this call's. */
    if (getpid() != parent)
        function();
    int status;
    return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}
