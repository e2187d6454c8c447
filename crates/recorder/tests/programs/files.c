/* Makes each kind of call that names, opens or changes a file, once. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#ifndef RENAME_EXCHANGE /* an older musl defines neither */
#include <sys/syscall.h>
#define RENAME_EXCHANGE 2
#define renameat2(...) syscall(SYS_renameat2, __VA_ARGS__)
#endif

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            exit(1); \
        } \
    } while (0)

static void names(int dir)
{
    struct stat s;
    char text[64];
    MUST(mkdir("dir", 0755) == 0);
    MUST(mkdirat(dir, "dir2", 0755) == 0);
    MUST(link("made", "hard") == 0);
    MUST(linkat(dir, "made", dir, "hard2", 0) == 0);
    MUST(symlink("made", "soft") == 0);
    MUST(symlinkat("made", dir, "soft2") == 0);
    MUST(readlink("soft", text, sizeof text) == 4);
    MUST(readlinkat(dir, "soft2", text, sizeof text) == 4);
    MUST(stat("made", &s) == 0 && lstat("soft", &s) == 0 && fstatat(dir, "made", &s, 0) == 0);
    MUST(access("made", R_OK) == 0 && access("absent", F_OK) < 0);
    MUST(rename("hard", "renamed") == 0);
    MUST(renameat(dir, "hard2", dir, "renamed2") == 0);
    MUST(renameat2(dir, "renamed", dir, "renamed2", RENAME_EXCHANGE) == 0);
    MUST(unlink("renamed") == 0 && unlinkat(dir, "renamed2", 0) == 0 && remove("soft2") == 0);
    MUST(rmdir("dir") == 0 && remove("dir2") == 0);
    MUST(mkfifo("fifo", 0600) == 0 && mknod("node", S_IFREG | 0600, 0) == 0);
}

static void attributes(int fd)
{
    struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    struct timeval times[2] = {{1, 2}, {3, 4}};
    MUST(chmod("made", 0600) == 0 && fchmod(fd, 0644) == 0 &&
         fchmodat(AT_FDCWD, "made", 0600, 0) == 0);
    MUST(chown("made", -1, -1) == 0 && fchown(fd, -1, -1) == 0 && lchown("soft", -1, -1) == 0);
    MUST(utime("made", 0) == 0 && utimes("made", times) == 0 && futimes(fd, times) == 0 &&
         lutimes("soft", times) == 0);
    MUST(utimensat(AT_FDCWD, "made", now, 0) == 0 && futimens(fd, now) == 0);
    setxattr("made", "user.a", "b", 1, 0);
}

static void contents(void)
{
    char text[64];
    struct iovec part = {text, 4};
    int in = open("input", O_RDONLY), out = open("made", O_RDWR | O_TRUNC);
    MUST(in >= 0 && out >= 0);
    MUST(pread(in, text, 4, 0) == 4 && readv(in, &part, 1) == 4 && read(in, text, 1) == 1);
    MUST(pwrite(out, text, 4, 0) == 4 && writev(out, &part, 1) == 4);
    off_t zero = 0;
    MUST(sendfile(out, in, &zero, 4) == 4);
    zero = 0;
    MUST(copy_file_range(in, &zero, out, 0, 4, 0) == 4);
    MUST(ftruncate(out, 4096) == 0 && truncate("made", 8192) == 0);
    char *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
    MUST(map != MAP_FAILED);
    map[0] = 'x';
    MUST(munmap(map, 4096) == 0);
    attributes(out);
    MUST(close(in) == 0 && close(out) == 0);
}

int main(void)
{
    char pattern[] = "tempXXXXXX", pattern2[] = "tempXXXXXX.c", pattern3[] = "tempdirXXXXXX";
    int fd = open("made", O_WRONLY | O_CREAT | O_EXCL, 0644);
    MUST(fd >= 0 && write(fd, "text", 4) == 4 && write(fd, "more", 4) == 4 && close(fd) == 0);
    MUST(open("absent", O_RDONLY) < 0);
    MUST((fd = creat("created", 0600)) >= 0 && close(fd) == 0);
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    MUST(dir >= 0);
    names(dir);
    contents();
    MUST((fd = mkstemp(pattern)) >= 0 && close(fd) == 0 && unlink(pattern) == 0);
    MUST((fd = mkostemps(pattern2, 2, O_CLOEXEC)) >= 0 && close(fd) == 0 && unlink(pattern2) == 0);
    MUST(mkdtemp(pattern3) && rmdir(pattern3) == 0);
    DIR *list = opendir(".");
    MUST(list && readdir(list) && readdir(list) && closedir(list) == 0);
    MUST(chdir("/") == 0 && fchdir(dir) == 0);
    return 0;
}
