# what: libuv's own tests
# needs: cmake
# source: libuv1/built/uv_run_tests
# compare: tests
# limit: 280
# TAP: `ok 12 - name`. The numbers follow the order, which is always the same.
# The tests run as root only with an option. The few tests that need an ordinary user skip
# themselves.
export UV_RUN_AS_ROOT=1
cp -a "$FOREIGN_SOURCES"/libuv1/test . && "$FOREIGN_SOURCES"/libuv1/built/uv_run_tests | sed -nE 's/^(ok|not ok) [0-9]+ - ([^ ]+).*/RESULT \2: \1/p'
