/*
 * Limits its own system calls, and then goes on. The kernel kills it at any other call. Without an
 * argument it allows looking at files and ending. With "strict" it allows reading and writing. With
 * "exec" it allows the calls of an ordinary program.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(nr) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(__NR_newfstatat),
        ALLOW(__NR_read),
        ALLOW(__NR_write),
        ALLOW(__NR_exit_group),
        ALLOW(__NR_exit),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    struct stat s;
    if (argc > 1 && !strcmp(argv[1], "exec")) {
        /* Allows all calls except those that only a recorder would make. */
        struct sock_filter most[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 1, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mremap, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {sizeof most / sizeof *most, most};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
            return 1;
        execl("/bin/echo", "echo", "executed", NULL);
        return 1;
    }
    int strict = argc > 1 && !strcmp(argv[1], "strict");
    if (strict) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
            return 1;
        write(1, "strict\n", 7);
        syscall(SYS_exit, 0);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 1;
    for (int i = 0; i < 3000; i++)
        stat("/absent", &s);
    write(1, "sandboxed\n", 10);
    _exit(0);
}
