# what: GNU make's own tests
# needs: make perl
# source: make-dfsg
# compare: tests
# limit: 200
cp -a "$FOREIGN_SOURCES"/make-dfsg/tests . && cd tests && cp config-flags.pm.in config-flags.pm
timeout $((190 * FOREIGN_PATIENCE)) perl run_make_tests.pl -make "$(command -v make)" | sed -nE 's/^([a-z]+\/[^ ]+) \.+ (.*)$/RESULT \1: \2/p'
