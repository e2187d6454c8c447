# what: pjdfstest: renames and changes of owner for all pairs of file kinds, 5,732 assertions, below `mount`
# needs: cc
# source: pjdfstest/suite/pjdfstest
# compare: tests
# modes: mount mount-passthrough
# limit: 900
PAIRS=yes
. "$FOREIGN_ROOT/scripts/foreign.d/pjdfstest.sh"
