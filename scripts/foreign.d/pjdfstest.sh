# what: pjdfstest: what POSIX says of calls on files, 3,074 assertions, under `record` and below `mount`
# needs: cc
# source: pjdfstest/suite/pjdfstest
# compare: tests
# modes: on off mount mount-passthrough
# limit: 290
# TAP: `ok 12`, `not ok 12 - tried 'open …', expected EPERM, got 0`.
# It makes devices and becomes other users, so it needs root.
[ "$(id -u)" = 0 ] || exit 77
# Below a mount, the tests are those of the file system behind it.
PJDFSTEST_FS=$(df -PT "$FOREIGN_CASE" | tail -n 1 | awk '{print toupper($2)}')
export PJDFSTEST_FS
# The other users need to search the directory of the tests.
mkdir -m 755 tests && cd tests || exit 1
suite=$FOREIGN_SOURCES/pjdfstest/suite/tests
for script in "$suite"/{chmod,chown,ftruncate,link,mkdir,mkfifo,mknod,open,posix_fallocate,rename,rmdir,symlink,truncate,unlink,utimensat}/*.t; do
    name=${script#"$suite"/}
    # The case pjdfstest-pairs runs these three. They make all pairs of file kinds.
    case $name in chown/00.t | rename/09.t | rename/10.t) is_pairs=yes ;; *) is_pairs= ;; esac
    [ "$is_pairs" = "${PAIRS:-}" ] || continue
    sh "$script" 2>/dev/null </dev/null | sed -nE "s,^(ok|not ok) ([0-9]+).*,RESULT $name \2: \1,p"
done
