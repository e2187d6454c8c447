"""Kinds of line for shells: results that depend on exit statuses, signals and order."""

from . import row

row("if-grep", "if grep -q yes {flag}; then cat {lines} > {out}; else sort -r {lines} > {out}; fi")
row("grep-and-or", "grep -q yes {flag} && echo one > {out} || echo two > {out}")
row("grep-child", "grep -q yes {flag} && /bin/echo one > {out} || /bin/echo two > {out}")
row("cmp", "cmp -s {lines} {lines2} && echo same > {out} || echo differ > {out}")
row("cmp-word", "if cmp -s {word} {word2}; then tail -n 1 {lines} > {out}; else head -n 1 {lines} > {out}; fi")
row("diff-out", "diff {lines} {lines2} > {out}")
row("diff-and", "diff {word} {word2} > {out} && /bin/echo equal > {out}.eq")
row("diff-q", "diff -q {word} {word2} > /dev/null || cat {lines} > {out}")
row("not", "! grep -q yes {flag} && cat {lines} > {out}")
row("status-number", 'sh -c "exit $(cat {num})"; echo $? > {out}', flags="fails")
row("status-tool", "./{tool} {lines} > {out}.t; echo $? > {out}", flags="fails")
row(
    "status-tool-if",
    "if ./{tool} {flag} > /dev/null; then cat {lines} > {out}; else echo failed > {out}; fi",
    flags="fails",
)
row("status-var", "grep -q yes {flag}; {newvar}=$?")
row("status-grep-c", 'grep -c z {lines} > {out}; echo "rc $?" > {out}.rc')
row("status-subshell", "( grep -q yes {flag} ) ; s=$?; /bin/echo $s > {out}", flags="fails")
row("status-pipeline", "cat {lines} | grep -q alpha; echo $? > {out}")
row("status-assignment", 'x=$(grep yes {flag}); echo "$? $x" > {out}')
row("wait-status", "(grep -q yes {flag}) & wait $!; echo $? > {out}", flags="fails")
row("wait-tool", "sh -c 'exit $(cat {num})' & p=$!; cat {lines} > {out}.w; wait $p; echo $? > {out}", flags="fails")
row(
    "elif",
    "if grep -q alpha {word}; then x=1; elif grep -q yes {flag}; then x=2; else x=3; fi; head -n $x {lines} > {out}",
)
row("while-grep", "i=0; while grep -q yes {flag} && [ $i -lt 2 ]; do i=$((i + 1)); done; echo $i > {out}")
row("until-counter", "i=0; until [ $i -ge $(cat {num}) ]; do i=$((i + 1)); cat {lines}; done > {out}")
row("break-grep", "for f in {dir}/*; do grep -q alpha $f && break; done; cat $f > {out}")
row("continue-cmp", "for f in {dir}/*; do cmp -s $f {word} && continue; cat $f; done > {out}")
row("test-subst", '[ "$(cat {word})" = alpha ] && cat {lines} > {out} || echo no > {out}')
row("test-num", "test $(cat {num}) -gt 2 && cat {lines} > {out} || cat {lines2} > {out}")
row("test-n", 'if test -n "$(grep yes {flag})"; then head -n 1 {lines} > {out}; else tail -n 1 {lines} > {out}; fi')
row(
    "xargs-status",
    "cat {list} | xargs -n 1 sh -c 'test $0 -lt 3 || exit 255' 2>/dev/null; echo $? > {out}",
    flags="fails",
)
row("find-exec-status", "find {dir} -name 'f*' -exec grep -q alpha {} \\; -print | sort > {out}")
row("find-execdir", "find {dir} -name 'f1' -exec sh -c 'head -n 1 \"$1\"' _ {} \\; > {out}")
row("find-exec-plus", "find {dir} -type f -exec cat {} + | sort > {out}")
row(
    "kill-by-flag",
    "sleep 5 & p=$!; grep -q yes {flag} && kill -9 $p || kill -15 $p; wait $p 2>/dev/null; echo $? > {out}",
    flags="fails",
)
row(
    "trap-term",
    "sh -c 'trap \"cat {word} > {out}; exit 0\" TERM; : > {out}.up; while :; do sleep 0.01; done' & p=$!\n"
    "while [ ! -e {out}.up ]; do sleep 0.01; done; kill -TERM $p; wait $p; rm {out}.up",
    flags="slow",
)
row("trap-exit", "(trap 'cat {lines} > {out}' EXIT; true)")
row("trap-exit-status", "(trap 'echo $? > {out}' EXIT; grep -q yes {flag}; exit $?)", flags="fails")
row(
    "trap-usr1",
    "sh -c 'trap \"echo got >> {out}\" USR1; cat {word} > {out}; grep -q yes {flag} && kill -USR1 $$; echo end >> {out}'",
)
row(
    "timeout-status",
    "timeout 0.4 sleep $(grep -q yes {flag} && echo 1 || echo 0); echo $? > {out}",
    flags="fails slow",
)
row("subshell-exit", "(grep -q yes {flag} || exit 3; cat {lines}) > {out}", flags="fails")
row("group-exit", "( cat {word}; [ $(cat {num}) -lt 3 ] && exit 0; cat {lines} ) > {out}")
row("set-e-subshell", "( set -e; cat {word}; grep -q yes {flag}; cat {lines} ) > {out}", flags="fails")
row("set-e-sh", "sh -ec 'grep -q yes {flag}; cat {lines} > {out}'; echo $? > {out}.rc", flags="fails")
row("and-chain", "grep -q a {word} && grep -q yes {flag} && cat {lines} > {out}")
row("or-chain", "grep -q yes {flag} || grep -q zz {word} || sort {lines} > {out}")
row("md5-check", "(cd . && md5sum {lines} > {out}.md5; md5sum -c {out}.md5 > /dev/null && cat {word} > {out})")
row("sort-check", "sort -c {lines} 2>/dev/null && echo sorted > {out} || echo unsorted > {out}")
row("tar-status", "tar tf {tar} f9 > /dev/null 2>&1 && echo has > {out} || echo lacks > {out}", flags="fails")
row("git-diff-quiet", "git diff --no-index --quiet {lines} {lines2} || echo differ > {out}", needs="git")
row("sh-n", "if sh -n {code} 2>/dev/null; then cat {word} > {out}; fi")
row("python-exit", 'python3 -c \'import sys; sys.exit(open("{flag}").read() != "yes\\n")\' && cat {lines} > {out}')
row("perl-exit", "perl -e 'open F, \"{num}\"; exit <F>'; echo $? > {out}", flags="fails")
row("awk-exit", "awk '$1 > 2 {exit 1}' {num} && head -n 1 {lines} > {out} || tail -n 1 {lines} > {out}")
row("true-false-file", "$(grep -q yes {flag} && echo true || echo false) && cat {lines} > {out}", flags="fails")
row("fails-partly", "sh -c 'head -n 1 {lines}; grep -q yes {flag} || exit 4; tail -n 1 {lines}' > {out}", flags="fails")
row("maker-false", "{ cat {lines}; false; } > {out}", flags="fails")
row("rm-f-then", "rm -f {out}.x && cat {lines} > {out}")
