/* Makes, runs and waits for children by every method. The argument names the method. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            exit(1); \
        } \
    } while (0)
extern char **environ;

static void reap(pid_t pid, int code)
{
    int status;
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == code);
}

static void by_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        MUST(open("input", O_RDONLY) >= 0);
        _exit(7);
    }
    reap(pid, 7);
}

static void by_vfork(void)
{
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            if (i == 0)
                _exit(7);
            if (i == 1)
                execl("/nowhere/at-all", "none", NULL);
            execl("/bin/true", "true", "vforked", NULL);
            _exit(7);
        }
        reap(pid, i == 0 ? 7 : 0);
    }
}

static void by_spawn(void)
{
    pid_t pid;
    char *argv[] = {"sh", "-c", "echo spawned; exit 7", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "spawned", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 5);
    MUST(posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ) == 0);
    reap(pid, 7);
    char *none[] = {"none", NULL};
    MUST(posix_spawn(&pid, "/nowhere/at-all", NULL, NULL, none, environ) == ENOENT);
    MUST(posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) == 0);
    reap(pid, 7);
}

static void by_system(void)
{
    char line[64];
    MUST(WEXITSTATUS(system("exit 7")) == 7);
    FILE *from = popen("echo from-child", "r"), *to = popen("cat > popened", "w");
    MUST(from && to && fgets(line, sizeof line, from) && strcmp(line, "from-child\n") == 0);
    MUST(fputs("to-child\n", to) >= 0 && pclose(from) == 0 && pclose(to) == 0);
}

static int cloned(void *argument)
{
    execl("/bin/true", "true", (char *)argument, NULL);
    return 7;
}

static void by_clone(void)
{
    static char stack[12288]; /* small, as such a child's stack may be */
    reap(clone(cloned, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, "cloned"), 0);
    reap(clone(cloned, stack + sizeof stack, SIGCHLD, "copied"), 0);
}

static void by_exec(void)
{
    char *argv[] = {"true", "executed", NULL};
    char *none[] = {NULL};
    char *given[] = {"PATH=/nowhere", "GIVEN=yes", NULL};
    for (int i = 0; i < 8; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            switch (i) {
            case 0: execv("/bin/true", argv); break;
            case 1: execve("/bin/true", argv, given); break;
            case 2: execvp("true", argv); break;
            case 3: execvpe("true", argv, given); break;
            case 4: execl("/bin/true", "true", "executed", NULL); break;
            case 5: execlp("true", "true", "executed", NULL); break;
            case 6: execle("/bin/true", "true", "executed", NULL, none); break;
            case 7: fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), argv, given); break;
            }
            _exit(9);
        }
        reap(pid, 0);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "fork"))
        by_fork();
    else if (!strcmp(how, "vfork"))
        by_vfork();
    else if (!strcmp(how, "spawn"))
        by_spawn();
    else if (!strcmp(how, "system"))
        by_system();
    else if (!strcmp(how, "clone"))
        by_clone();
    else if (!strcmp(how, "exec"))
        by_exec();
    else
        return 2;
    exit(3);
}
