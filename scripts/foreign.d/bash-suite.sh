# what: bash's own tests: what each of its scripts prints, and how it ends
# needs: bash gcc
# source: bash
# compare: tests
# limit: 240
cp -a "$FOREIGN_SOURCES"/bash/tests "$FOREIGN_SOURCES"/bash/support . && cd tests
for tool in recho zecho; do gcc -w -include stdlib.h -include string.h -include stdio.h -o $tool ../support/$tool.c || echo "no $tool"; done
printf '#include <stdio.h>\n#include <stdlib.h>\nextern char **environ; int main(int c, char **v) { if (c > 1) { char *s = getenv(v[1]); if (s) puts(s); return !s; } for (char **e = environ; *e; e++) puts(*e); return 0; }\n' >printenv.c; gcc -o printenv printenv.c
export THIS_SH=$(command -v bash) BUILD_DIR=$PWD BASH_TSTOUT=$PWD/.out PATH=$PWD:$PATH; unset BASH_ENV ENV; export TMPDIR=$PWD
for run in run-[a-z]*; do
    # Not those that need a terminal, the network or minutes.
    case $run in run-all | run-minimal | run-gprof | run-jobs | run-history | run-histexpand | run-read | run-test | *.orig | *~) continue ;; esac
    said=$(timeout 20 sh ./"$run" </dev/null 2>&1); status=$?
    lines=$(printf '%s' "$said" | wc -l)
    [ "$status $lines" = '0 0' ] && echo "RESULT $run: ok" || echo "RESULT $run: status $status, $lines lines differ"
done
