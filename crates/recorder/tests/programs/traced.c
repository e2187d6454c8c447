/* A tracer sees the calls that its child made by number, with these very numbers. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const int numbers[] = {SYS_open,  SYS_creat,  SYS_stat,   SYS_lstat, SYS_mknod,
                              SYS_pipe2, SYS_accept, SYS_rename, SYS_unlink};

static void child(void)
{
    struct stat s;
    int ends[2];
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    syscall(SYS_open, "input", O_RDONLY);
    syscall(SYS_creat, "made", 0600);
    syscall(SYS_stat, "made", &s);
    syscall(SYS_lstat, "made", &s);
    syscall(SYS_mknod, "node", S_IFREG | 0600, 0);
    syscall(SYS_pipe2, ends, 0);
    syscall(SYS_accept, 0, 0, 0);
    syscall(SYS_rename, "made", "node");
    syscall(SYS_unlink, "node");
    _exit(0);
}

int main(void)
{
    int status, seen = 0;
    pid_t pid = fork();
    if (pid == 0)
        child();
    waitpid(pid, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    while (ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid &&
           !WIFEXITED(status)) {
        struct user_regs_struct registers;
        ptrace(PTRACE_GETREGS, pid, 0, &registers);
        /* The tracer sees each call twice, at its beginning and at its end. */
        for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if ((long)registers.orig_rax == numbers[i])
                seen |= 1 << i;
    }
    printf("%x\n", seen);
    return WEXITSTATUS(status);
}
