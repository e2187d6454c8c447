# from: repository
# what: pjdfstest, the tests of POSIX file systems, from its own repository: no registry and no Debian release has it
rm -rf suite
git clone -q https://github.com/pjd/pjdfstest suite
git -C suite checkout -q 85a8aea9e685999ef0540392fd80535f873d7ff7
# A case may name the file system's type, on which some of the tests depend.
sed -i 's/^#fs="UFS"$/fs=${PJDFSTEST_FS:-$fs}/' suite/tests/conf
# The results of its configure with this C library, without autoconf.
for feature in SYS_SYSMACROS_H OPENAT UNLINKAT MKDIRAT LINKAT SYMLINKAT RENAMEAT MKFIFOAT MKNODAT FCHMODAT FCHOWNAT FACCESSAT FSTATAT READLINKAT \
    UTIMENSAT POSIX_FALLOCATE STRUCT_STAT_ST_ATIM STRUCT_STAT_ST_CTIM STRUCT_STAT_ST_MTIM; do
    echo "#define HAVE_$feature 1"
done >suite/config.h
cc -O1 -D_GNU_SOURCE -Isuite suite/pjdfstest.c -o suite/pjdfstest
