# what: bash's own tests: what each of its scripts prints, and how it ends
# needs: bash
# source: bash/.made
# compare: tests
# limit: 240
# Each script prints the differences from its expected output, some after a warning. The checksum of
# the whole output is compared.
cp -a "$FOREIGN_SOURCES"/bash/tests . && cp "$FOREIGN_SOURCES"/bash/{recho,zecho,printenv,xcase} tests && cd tests || exit
export THIS_SH=$(command -v bash) BUILD_DIR=$PWD BASH_TSTOUT=$PWD/.out PATH=$PWD:$PATH; unset BASH_ENV ENV; export TMPDIR=$PWD
for run in run-[a-z]*; do
    # Scripts that need a terminal, the network or minutes are left out.
    case $run in run-all | run-minimal | run-gprof | run-jobs | run-history | run-histexpand | run-read | run-test | *.orig | *~) continue ;; esac
    said=$(timeout $((20 * FOREIGN_PATIENCE)) sh ./"$run" </dev/null 2>&1); status=$?
    [ "$status" = 0 ] && ! grep -q '^[<>] ' <<<"$said" && result=ok || result="differs, status $status"
    echo "RESULT $run: $result${said:+, printed $(cksum <<<"$said")}"
done
