# what: the tests of packages of the npm registry: tar-fs, resolve and tape, which runs many of its own in processes
# needs: node npm
# source: node-packages/.made
# compare: tests
# limit: 280
# TAP: `ok 12 name` from tape, `ok 12 - name` from tap; tap's inner results are indented.
cp -a "$FOREIGN_SOURCES"/node-packages/{tar-fs,resolve,tape,node_modules,package.json} . || exit
export PATH=$PWD/node_modules/.bin:$PATH NODE_OPTIONS=--no-warnings
for package in tar-fs resolve tape; do
    for file in "$package"/test/*.js; do
        (cd "$package" && timeout $((100 * FOREIGN_PATIENCE)) node "test/${file##*/}" </dev/null 2>&1) |
            sed -nE "s#^ *(ok|not ok) ([0-9]+) .*#RESULT $file \2: \1#p"
    done
done
