/*
 * A program for the tests of set-user-id programs. With a set-user-id bit of root it shows what it
 * has gained and inherited. Without one it restricts itself, and executes another program.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t count;

static void counted(int number)
{
    (void)number;
    count++;
}

/* Prints what a program inherits. */
static void show_state(void)
{
    char path[4096] = "";
    struct rlimit limit;
    sigset_t blocked;
    getrlimit(RLIMIT_NOFILE, &limit);
    sigprocmask(SIG_BLOCK, 0, &blocked);
    mode_t mask = umask(0);
    printf("directory %s\n", getcwd(path, sizeof path) ? strrchr(path, '/') : "?");
    printf("umask %o nice %d files %lu\n", mask, getpriority(PRIO_PROCESS, 0), limit.rlim_cur);
    printf("processors %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    int usr1 = sigismember(&blocked, SIGUSR1), term = sigismember(&blocked, SIGTERM);
    printf("blocked %d %d ignored %d\n", usr1, term, signal(SIGHUP, SIG_DFL) == SIG_IGN);
    const char *names[] = {"MINE", "LD_PRELOAD", "BACKSTORY_ARENA", "BACKSTORY_PROGRAM"};
    for (int i = 0; i < 4; i++)
        printf("%s=%s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "(none)");
    DIR *open_files = opendir("/proc/self/fd");
    int found = 0;
    for (struct dirent *entry; (entry = readdir(open_files));)
        found |= entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(open_files)
                     ? 1 << atoi(entry->d_name)
                     : 0;
    printf("descriptors %x\n", found);
}

/* Prints the groups and the capabilities in effect. */
static void show_privileges(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    printf("root group %d, caller's %d\n", !getegid(), !getgid());
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "CapEff:", 7))
            fputs(line, stdout);
}

static int copy(int from)
{
    char text[4096];
    ssize_t size;
    while ((size = read(from, text, sizeof text)) > 0)
        if (write(1, text, (size_t)size) != size)
            return 1;
    return size < 0;
}

/* Restricts this process. Returns nonzero if the kernel cannot. */
static int restrict_self(const char *how)
{
    if (!strcmp(how, "nothing"))
        return 0;
    if (strcmp(how, "landlock")) /* which a recorded process may use without */
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(how, "filter")) {
        struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog program = {1, allow};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    }
    if (!strcmp(how, "landlock")) {
        struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK};
        long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
        return fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0);
    }
    if (!strcmp(how, "undone")) { /* a mark of the supervisor's cannot be taken off */
        struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
        return setrlimit(RLIMIT_RTTIME, &unlimited) == 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "ids";
    if (!strcmp(what, "ids"))
        printf("root %d, caller is root %d, %s\n", !geteuid(), !getuid(), argv[0]);
    else if (!strcmp(what, "privileges"))
        show_privileges();
    else if (!strcmp(what, "exit"))
        return atoi(argv[2]);
    else if (!strcmp(what, "signal"))
        prctl(PR_SET_DUMPABLE, 0), kill(getpid(), atoi(argv[2]));
    else if (!strcmp(what, "copy"))
        return copy(0);
    else if (!strcmp(what, "state"))
        show_state();
    else if (!strcmp(what, "write"))
        return write(atoi(argv[2]), "written\n", 8) != 8;
    else if (!strcmp(what, "wait"))
        while (1)
            pause();
    else if (!strcmp(what, "count")) {
        signal(SIGUSR1, counted), signal(SIGUSR2, counted);
        sigset_t both, old;
        sigemptyset(&both), sigaddset(&both, SIGUSR1), sigaddset(&both, SIGUSR2);
        sigprocmask(SIG_BLOCK, &both, &old);
        close(creat("ready", 0644));
        while (count < atoi(argv[2]))
            sigsuspend(&old);
        usleep(200000);
        sigprocmask(SIG_SETMASK, &old, 0);
        printf("signals %d\n", count);
    } else if (!strcmp(what, "restricted")) {
        if (restrict_self(argv[2]))
            puts("the kernel cannot");
        execv(argv[3], argv + 3);
        return 127;
    }
    return 0;
}
