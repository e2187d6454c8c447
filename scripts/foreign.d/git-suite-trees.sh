# what: git's own tests, from Debian's sources, of the git that is installed: 14 scripts about work trees, branches, stashes, settings, objects
# needs: git perl
# source: git/t/helper/test-tool
# compare: tests
# limit: 290
# TAP: `ok 12 - name`, `ok 12 # skip why (name)`, `not ok 12 - name # TODO known breakage`.
export GIT_TEST_INSTALLED=$(dirname "$(command -v git)") TEST_OUTPUT_DIRECTORY=$HOME
cd "$FOREIGN_SOURCES"/git/t || exit
for script in t{0001,0003,0008,1300,1450,1503,2020,3000,3200,3600,3700,3903,5300,7001}-*.sh; do
    sh "$script" --root="$HOME" </dev/null |
        sed -nE -e "s/^ok ([0-9]+) # skip.*/RESULT $script \1: skipped/p" -e "s/^(ok|not ok) ([0-9]+) - .*/RESULT $script \2: \1/p"
done
