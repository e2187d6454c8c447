# what: ninja's own tests, and those of its output on a terminal, from Debian's sources
# needs: python3 script
# source: ninja-build/built/ninja_test
# compare: tests
# limit: 120
"$FOREIGN_SOURCES"/ninja-build/built/ninja_test | awk '
    function done() { if (name) print "RESULT " name ": " said }
    /^\[[0-9]+\/[0-9]+\] / { done(); name = $2; said = "ok" }
    /^\*\*\* Failure/ { said = "failed" }
    END { done() }'
ln -s "$FOREIGN_SOURCES"/ninja-build/built/ninja . && python3 "$FOREIGN_SOURCES"/ninja-build/misc/output_test.py -v
rm ninja
