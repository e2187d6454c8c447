# what: BusyBox's own tests, of the static BusyBox of the machine
# needs: busybox gcc
# source: busybox
# compare: tests
# limit: 200
# shell: bash
cp -a "$FOREIGN_SOURCES"/busybox/testsuite "$FOREIGN_SOURCES"/busybox/scripts . && chmod -R u+w . && ln -s "$(command -v busybox)" busybox
cd testsuite && bindir=$PWD/.. timeout $((190 * FOREIGN_PATIENCE)) ./runtest
