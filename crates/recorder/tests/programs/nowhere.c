/* Passes invalid pointers to every kind of call, and prints each result. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

extern char **environ;
static const char *kind;

#define SAYS(call) \
    do { \
        errno = 0; \
        long result = (long)(call); \
        printf("%s %s: %ld %s\n", kind, #call, result < 0 ? -1 : result, strerror(errno)); \
    } while (0)

static void look(char *bad)
{
    struct stat s;
    char text[64];
    SAYS(stat(bad, &s));
    SAYS(lstat(bad, &s));
    SAYS(fstatat(AT_FDCWD, bad, &s, 0));
    SAYS(fstatat(AT_FDCWD, bad, &s, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
    SAYS(stat("input", (void *)bad));
    SAYS(syscall(SYS_statx, AT_FDCWD, bad, AT_EMPTY_PATH, 0, text));
    SAYS(access(bad, R_OK));
    SAYS(faccessat(AT_FDCWD, bad, R_OK, AT_EACCESS));
    SAYS(readlink(bad, text, sizeof text));
    SAYS(readlinkat(AT_FDCWD, bad, text, sizeof text));
    SAYS(readlink(bad, bad, 1));
    SAYS(chdir(bad));
    SAYS(open(bad, O_RDONLY));
    SAYS(openat(AT_FDCWD, bad, O_PATH));
    SAYS(fopen(bad, "r") != 0);
    SAYS(syscall(SYS_openat2, AT_FDCWD, "input", bad, 24));
}

static void change(char *bad)
{
    struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    SAYS(open(bad, O_RDWR));
    SAYS(open(bad, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    SAYS(open(bad, O_WRONLY | O_CREAT | O_EXCL, 0600));
    SAYS(open(bad, O_RDWR | O_TMPFILE, 0600));
    SAYS(open(bad, O_RDONLY | O_CREAT, 0600));
    SAYS(fopen(bad, "w") != 0);
    SAYS(rename(bad, "to"));
    SAYS(rename("input", bad));
    SAYS(link("input", bad));
    SAYS(symlink("input", bad));
    SAYS(symlink(bad, "link"));
    SAYS(unlink(bad));
    SAYS(remove(bad));
    SAYS(rmdir(bad));
    SAYS(mkdir(bad, 0700));
    SAYS(mkfifo(bad, 0700));
    SAYS(truncate(bad, 1));
    SAYS(chmod(bad, 0600));
    SAYS(chown(bad, -1, -1));
    SAYS(utime(bad, 0));
    SAYS(utimensat(AT_FDCWD, bad, now, 0));
    SAYS(utimensat(AT_FDCWD, "input", (void *)bad, 0));
    SAYS(setxattr(bad, "user.a", "b", 1, 0));
    SAYS(memfd_create(bad, 0));
}

static void run(char *bad)
{
    int ends[2];
    pid_t pid;
    char *fine[] = {"true", NULL}, *with_bad[] = {"true", bad, NULL};
    SAYS(execve(bad, fine, environ));
    SAYS(execve("/bin/true", (char **)bad, environ));
    SAYS(execve("/bin/true", with_bad, environ));
    SAYS(execve("/bin/true", fine, (char **)bad));
    SAYS(execve("/bin/true", fine, with_bad));
    SAYS(posix_spawn(&pid, bad, NULL, NULL, fine, environ));
    SAYS(posix_spawn(&pid, "/bin/true", NULL, NULL, with_bad, environ));
    SAYS(pipe((int *)bad));
    SAYS(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)bad));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    SAYS(bind(fd, (void *)bad, 16));
    SAYS(connect(fd, (void *)bad, 16));
    SAYS(accept(fd, (void *)bad, (void *)bad));
    SAYS(sendmsg(fd, (void *)bad, 0));
    SAYS(recvmsg(fd, (void *)bad, 0));
    if (pipe(ends) == 0) {
        SAYS(write(ends[1], bad, 1));
        SAYS(write(ends[1], "x", 1));
        SAYS(read(ends[0], bad, 1));
    }
    if ((pid = fork()) == 0)
        _exit(3);
    SAYS(waitpid(pid, (int *)bad, 0) == pid);
    if ((pid = fork()) == 0)
        _exit(3);
    SAYS(waitid(P_PID, pid, (void *)bad, WEXITED));
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    /* No call may write to these pages. */
    char *pages = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'x', 4096);
    memcpy(pages + 3 * 4096 - 6, "input", 6); /* its NUL is the last byte of its page */
    for (int i = 0; i < 4; i++)
        mprotect(pages + i * 4096, 4096, i % 2 ? PROT_NONE : PROT_READ);
    char *const bad[] = {(char *)-1, (char *)16, pages + 4096, pages + 4000,
                         (char *)0x123456789abcdef0};
    const char *const kinds[] = {"last", "first page", "protected", "unterminated", "impossible"};
    for (int i = 0; i < 5; i++) {
        kind = kinds[i];
        look(bad[i]);
        change(bad[i]);
        run(bad[i]);
    }
    kind = "at a page's end";
    look(pages + 3 * 4096 - 6);
    return 0;
}
