/*
 * Replaces functions of libc that fork inside. They call the recorder's `fork` here, so that the
 * child is linked to its parent.
 */
#include "bs.h"

int fork(void);
int setsid(void);
int chdir(const char *path);
int dup2(int fd, int to);
int close(int fd);
void _exit(int status) __attribute__((noreturn));
int openpty(int *master, int *slave, char *name, const void *mode, const void *size);
int login_tty(int fd);

/* Opens the null device as each of the three standard descriptors. */
static int use_null(void)
{
    s64 fd = bs_ret(bs_open_file(BS_AT_FDCWD, "/dev/null", O_RDWR, 0));
    if (fd < 0)
        return -1;
    for (int to = 0; to < 3; to++)
        dup2((int)fd, to);
    if (fd > 2)
        close((int)fd);
    return 0;
}

BS_API int daemon(int keep_directory, int keep_descriptors)
{
    int pid = fork();
    if (pid < 0)
        return -1;
    if (pid > 0)
        _exit(0);
    u64 time = BS_DEEP_TIME();
    int session = BS_NEXT(setsid)();
    BS_DEEP_LOG_RETURN(time, session, __NR_setsid);
    if (session < 0)
        return -1;
    if (!keep_directory)
        chdir("/");
    return keep_descriptors ? 0 : use_null();
}

BS_API int forkpty(int *master, char *name, const void *mode, const void *size)
{
    int slave;
    if (BS_NEXT(openpty)(master, &slave, name, mode, size) < 0)
        return -1;
    int pid = fork();
    if (pid == 0) {
        close(*master);
        if (BS_NEXT(login_tty)(slave))
            _exit(1);
        return 0;
    }
    if (pid < 0)
        close(*master);
    close(slave);
    return pid;
}
