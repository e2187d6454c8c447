/*
 * Makes the calls of files.c by number, as far as possible. It calls none of libc's functions of
 * these names.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define mkdir(...) syscall(SYS_mkdir, __VA_ARGS__)
#define mkdirat(...) syscall(SYS_mkdirat, __VA_ARGS__)
#define link(...) syscall(SYS_link, __VA_ARGS__)
#define linkat(...) syscall(SYS_linkat, __VA_ARGS__)
#define symlink(...) syscall(SYS_symlink, __VA_ARGS__)
#define symlinkat(...) syscall(SYS_symlinkat, __VA_ARGS__)
#define readlink(...) syscall(SYS_readlink, __VA_ARGS__)
#define readlinkat(...) syscall(SYS_readlinkat, __VA_ARGS__)
#define lstat(...) syscall(SYS_lstat, __VA_ARGS__)
#define fstatat(...) syscall(SYS_newfstatat, __VA_ARGS__)
#define access(...) syscall(SYS_access, __VA_ARGS__)
#define rename(...) syscall(SYS_rename, __VA_ARGS__)
#define renameat(...) syscall(SYS_renameat, __VA_ARGS__)
#undef renameat2
#define renameat2(...) syscall(SYS_renameat2, __VA_ARGS__)
#define unlink(...) syscall(SYS_unlink, __VA_ARGS__)
#define unlinkat(...) syscall(SYS_unlinkat, __VA_ARGS__)
#define rmdir(...) syscall(SYS_rmdir, __VA_ARGS__)
#define mkfifo(path, mode) syscall(SYS_mknod, path, (mode) | S_IFIFO, 0)
#define mknod(...) syscall(SYS_mknodat, AT_FDCWD, __VA_ARGS__)
#define chmod(...) syscall(SYS_chmod, __VA_ARGS__)
#define fchmod(...) syscall(SYS_fchmod, __VA_ARGS__)
#define fchmodat(...) syscall(SYS_fchmodat, __VA_ARGS__)
#define chown(...) syscall(SYS_chown, __VA_ARGS__)
#define fchown(...) syscall(SYS_fchown, __VA_ARGS__)
#define lchown(...) syscall(SYS_lchown, __VA_ARGS__)
#define utime(...) syscall(SYS_utime, __VA_ARGS__)
#define utimes(...) syscall(SYS_utimes, __VA_ARGS__)
#define utimensat(...) syscall(SYS_utimensat, __VA_ARGS__)
#define futimens(fd, times) syscall(SYS_utimensat, fd, NULL, times, 0)
#define setxattr(...) syscall(SYS_setxattr, __VA_ARGS__)
#define open(...) syscall(SYS_open, __VA_ARGS__)
#define creat(...) syscall(SYS_creat, __VA_ARGS__)
#define close(...) syscall(SYS_close, __VA_ARGS__)
#define read(...) syscall(SYS_read, __VA_ARGS__)
#define pread(...) syscall(SYS_pread64, __VA_ARGS__)
#define readv(...) syscall(SYS_readv, __VA_ARGS__)
#define write(...) syscall(SYS_write, __VA_ARGS__)
#define pwrite(...) syscall(SYS_pwrite64, __VA_ARGS__)
#define writev(...) syscall(SYS_writev, __VA_ARGS__)
#define sendfile(...) syscall(SYS_sendfile, __VA_ARGS__)
#define copy_file_range(...) syscall(SYS_copy_file_range, __VA_ARGS__)
#define ftruncate(...) syscall(SYS_ftruncate, __VA_ARGS__)
#define truncate(...) syscall(SYS_truncate, __VA_ARGS__)
#define mmap(...) (void *)syscall(SYS_mmap, __VA_ARGS__)
#define chdir(...) syscall(SYS_chdir, __VA_ARGS__)
#define fchdir(...) syscall(SYS_fchdir, __VA_ARGS__)

#include "files.c"
