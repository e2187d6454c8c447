"""Kinds of line for shells, about state.

They use descriptors, channels, moves, temporary files, caches, locks, and files changed in
place.
"""

from . import row

# descriptors and offsets
row("while-read", "while read n; do head -n $n {lines}; done < {list} > {out}")
row("while-read-builtin", 'while read n; do echo "n $n"; done < {list} > {out}')
row("while-read-pipe", "cat {list} | while read n; do head -n $n {lines}; done > {out}")
row("while-read-stdin-child", "while read n; do cat > {out}; done < {lines}")
row("read-then-cat", "{ read x; cat; } < {lines} > {out}")
row("head-c-then-cat", "(head -c 4 > /dev/null; cat) < {lines} > {out}")
row("dd-offset", "exec 3< {lines}; dd bs=1 count=$(cat {num}) <&3 > /dev/null 2>&1; cat <&3 > {out}; exec 3<&-")
row(
    "read-offset",
    'exec 4< {lines}; while read x y <&4; do [ "$x" = "$(cat {word})" ] && break; done; cat <&4 > {out}; exec 4<&-',
)
row("exec-out", "( exec > {out}; cat {lines}; echo end )")
row("exec-3", "exec 3> {out}; cat {word} >&3; echo x >&3; exec 3>&-")
# a file that a shell holds open for commands that may run
row("held-if", "{ cat {lines}; if [ -e {maybe} ]; then cat {lines2}; fi; } > {out}")
row("held-and", "( cat {lines}; grep -q yes {flag} && cat {lines2}; true ) > {out}")
row("held-exec", "( exec > {out}; cat {lines}; case $(cat {word}) in a*) cat {lines2};; esac )")
row("held-fd", "exec 4> {out}; cat {lines} >&4; for i in $(cat {list}); do head -n $i {lines2} >&4; done; exec 4>&-")
row("held-break", 'while read n; do [ "$n" -gt 3 ] && break; head -n $n {lines}; done < {list} > {out}')
row("held-child", "sh -c 'cat {lines}; if test -s {maybe}; then sort {lines2}; fi' > {out}")
row("held-nested", "{ cat {lines}; if test -e {maybe}; then sh -c 'cat {lines2}; cat {word}'; fi; } > {out}")
row("held-append", "cat {lines} > {out}; { while read n; do head -n $n {lines2}; done < {list}; } >> {out}")
row("fd-both", "{ cat {lines}; ls nothere; } > {out} 2>&1", flags="fails")
row("stdin-sort", "sort < {lines} > {out}")
row("sort-o-stdin", "sort -r -o {out} < {lines}")
row("append-group", "echo one > {out}; cat {lines} >> {out}")
row("append-loop", ": > {out}; for i in $(cat {list}); do echo $i >> {out}; done")
row("read-write-fd", "cat {lines} > {out}; exec 5<> {out}; printf %s $(cut -c 1 {word}) >&5; exec 5>&-")
row("dd-notrunc", "cat {lines} > {out}; dd if={word} of={out} bs=1 seek=$(cat {num}) conv=notrunc 2>/dev/null")
row("truncate-s", "cat {lines} > {out}; truncate -s $(cat {num}) {out}")
row("tee", "tee {out}.t < {lines} > {out}")
row("tee-pipe", "sort {lines} | tee {out}.t | head -n $(cat {num}) > {out}")
row("pipeline", "cat {lines} | sort | uniq -c | sort -rn > {out}")
row("pipe-two-readers", 'cat {lines} | { read a; echo "$a"; sort; } > {out}')
row("pipe-number", "cat {num} | { read n; head -n $n {lines}; } > {out}")
row("sigpipe", "cat {lines} {lines2} | head -n 1 > {out}")
row("subst-stdin", "wc -l < {lines} | { read n; head -n $n {lines2} > {out}; }")
# fifos, background jobs, locks
row("fifo", "mkfifo {out}.p; cat {lines} > {out}.p & sort < {out}.p > {out}; wait; rm {out}.p")
row("fifo-word", "mkfifo {out}.p; cat {num} > {out}.p & read n < {out}.p; head -n $n {lines} > {out}; wait; rm {out}.p")
row("bg-wait", "sort {lines} > {out}.b & head -n 1 {lines2} > {out}; wait")
row(
    "bg-poll",
    "(sleep 0.03; cat {lines} > {out}.b) & while [ ! -s {out}.b ]; do sleep 0.01; done; wait; wc -c < {out}.b > {out}",
    flags="slow",
)
row(
    "bg-flag",
    "(cat {lines} > {out}.b; : > {out}.go) & while [ ! -e {out}.go ]; do sleep 0.01; done; sort {out}.b > {out}; wait; rm {out}.go",
)
row(
    "bg-order",
    "(cat {word} > {out}; : > {out}.f) & until [ -e {out}.f ]; do sleep 0.01; done; wait; cat {num} >> {out}; rm {out}.f",
)
row("flock", "flock {out}.lock sh -c 'cat {lines} > {out}'", needs="flock")
row("mkdir-lock", "while ! mkdir {out}.lk 2>/dev/null; do sleep 0.01; done; cat {lines} > {out}; rmdir {out}.lk")
row("setsid", "setsid -w sh -c 'cat {lines} > {out}'")
row("nohup-env-i", "nohup env -i /bin/cat {lines} > {out} 2>/dev/null")
row("xargs-pool", "ls {dir}/* | xargs -P 3 -n 1 sh -c 'sort $0 > {out}.$(basename $0)'; cat {out}.f* > {out}")
# temporary files, moves, staging
row("mktemp", "t=$(mktemp); sort {lines} > $t; cat $t > {out}; rm $t")
row("mktemp-dir", "t=$(mktemp -d); cp {lines} $t/x; (cd $t; sort x > y); cat $t/y > {out}; rm -r $t")
row("temp-cwd", "sort {lines} > t{id}; uniq t{id} > {out}; rm t{id}")
row("temp-word", "cat {num} > t{id}; n=$(cat t{id}); rm t{id}; head -n $n {lines} > {out}")
row("temp-status", "grep yes {flag} > t{id}; if [ -s t{id} ]; then cat {lines}; else echo none; fi > {out}; rm t{id}")
row("stage-dir", "mkdir {out}.st; cat {lines} > {out}.st/f; mv {out}.st {out}.fin; cat {out}.fin/f > {out}")
row("stage-dir-unread", "mkdir {out}.st; sort {lines} > {out}.st/f; cat {word} > {out}.st/g; mv {out}.st {out}")
row("mv-over", "sort {lines} > {out}.tmp && mv {out}.tmp {out}")
row("mv-twice", "cat {lines} > {out}.a; mv {out}.a {out}.b; mv {out}.b {out}")
row("mv-into", "mkdir -p {out}.d; sort {lines} > x{id}; mv x{id} {out}.d/; cat {out}.d/x{id} > {out}")
row(
    "swap-dirs",
    "mkdir {out}.1 {out}.2; cat {lines} > {out}.1/f; cat {word} > {out}.2/f; mv {out}.1 {out}.t; mv {out}.2 {out}.1; mv {out}.t {out}.2; cat {out}.1/f {out}.2/f > {out}",
)
row("link-switch", "mkdir {out}.v1; cat {lines} > {out}.v1/f; ln -sfn {out}.v1 {out}.cur; cat {out}.cur/f > {out}")
row("ln-then-write", "cat {lines} > {out}; ln {out} {out}.h; cat {word} >> {out}.h")
row("cp-then-sed", 'cp {lines} {out}; sed -i "s/a/$(cut -c 1 {word})/" {out}')
row("cp-then-perl", "cp {lines} {out}; perl -pi -e 's/e/E/' {out}")
row("cp-then-append", "cp {lines} {out}; cat {word} >> {out}")
row("rewrite-self", "cat {lines} > {out}; sort -o {out} {out}; uniq {out} > {out}.u")
row("overwrite-twice", "cat {lines} > {out}; cat {lines2} > {out}")
row(
    "overwrite-read-between",
    "cat {lines} > t{id}; wc -l < t{id} > {out}; cat {word} > t{id}; cat t{id} >> {out}; rm t{id}",
)
# archives and splitting
row(
    "tar-pipe", "mkdir {out}.d; tar cf - --sort=name --mtime=@0 -C {dir} . | tar xf - -C {out}.d; cat {out}.d/* > {out}"
)
row("tar-x", "mkdir {out}.d; tar xf {tar} -C {out}.d; cat {out}.d/* > {out}")
row("tar-O", "tar xOf {tar} f1 > {out}")
row("tar-c", "tar cf {out}.tar --sort=name --mtime=@0 --owner=0 --group=0 {dir}; tar tf {out}.tar > {out}")
row("gzip", "gzip -nc {lines} > {out}.gz; gunzip -c {out}.gz | tail -n 1 > {out}")
row("gzip-replace", "cp {lines} {out}; gzip -n {out}; gunzip {out}.gz")
row("xz", "xz -c {lines} | xz -dc > {out}", needs="xz")
row("split", "split -l $(cat {num}) {lines} {out}.s; ls {out}.s* | wc -l > {out}")
row("csplit", "csplit -s -f {out}.c {lines} 2 2>/dev/null; cat {out}.c* > {out}")
row("ar", "cp {lines} m{id}; ar rcD {out}.a m{id} 2>/dev/null; ar p {out}.a > {out}; rm m{id}", needs="ar")
# odd places
row("cache-own", "cat {odd} > {out}")
row("cache-subst", "head -n $(wc -l < {odd}) {lines} > {out}")
row("cache-test", "cmp -s {odd} {lines} && echo same > {out} || sort {odd} > {out}")
row("cache-made", "mkdir -p .cache/k; sort {lines} > .cache/k/{id}; cat .cache/k/{id} > {out}")
row("cache-fill", "mkdir -p .cache; [ -e .cache/c{id} ] || sort {lines} > .cache/c{id}; head -n 1 .cache/c{id} > {out}")
row(
    "site-packages-made",
    "mkdir -p site-packages/m; cat {lines} > site-packages/m/{id}; tail -n 1 site-packages/m/{id} > {out}",
)
row("target-made", "mkdir -p target; cat {lines} > target/{id}; cp target/{id} {out}")
row("opt", 'cat "$TRUTH_OPT"/{opt} > {out}')
row("opt-subst", 'head -n $(wc -l < "$TRUTH_OPT"/{opt}) {lines} > {out}')
row("opt-copy", 'cp "$TRUTH_OPT"/{opt} {out}; sort {out} > {out}.s')
# programs of one's own, other tools
row("tool", "./{tool} {lines} > {out}", flags="fails")
row("tool-sh", "sh ./{tool} {lines} > {out}", flags="fails")
row("tool-word", "head -n $(./{tool} {num} | head -n 1) {lines} > {out}", flags="fails")
row("tool-copied", "cp {tool} x{id}; chmod +x x{id}; ./x{id} {lines} > {out}; rm x{id}", flags="fails")
row(
    "tool-made",
    "printf '#!/bin/sh\\nsort \"$1\" | head -n %s\\n' $(cat {num}) > {out}.x; chmod +x {out}.x; ./{out}.x {lines} > {out}",
)
row("pytool", "python3 {pytool} {lines} {out}")
row("pytool-module", "python3 -c 'import {module}; print({module}.V)' > {out}")
row("sed-f", "cp {code} {out}.c; sed -n 's/=/ /p' {out}.c > {out}")
row("sed-w", "sed 'w {out}' {lines} > /dev/null")
row("sed-r", "sed '1r {word}' {lines} > {out}")
row("ed-w", "printf '1d\\nw {out}\\nq\\n' | ed -s {lines}", needs="ed")
row("ed-script", "cp {lines} {out}; (cat {word} | sed 's/^/1s,.*,/; s/$/,/'; echo w; echo q) | ed -s {out}", needs="ed")
row("awk-getline", "awk -v f={num} 'BEGIN{getline n < f} NR<=n' {lines} > {out}")
row("awk-cmd-getline", "awk 'BEGIN{\"cat {num}\" | getline n} NR<=n' {lines} > {out}")
row("awk-system", 'awk \'BEGIN{system("cat {lines}"); print "end"}\' > {out}')
row("awk-print-to", "awk '{print > \"{out}\"}' {lines}")
row("awk-print-pipe", "awk '{print | \"sort > {out}\"}' {lines}")
row("awk-print-name", "awk 'NR==1{print > (\"{out}.\" $1)}' {word}")
row("comm-join", "sort {lines} > {out}.1; sort {lines2} > {out}.2; comm -12 {out}.1 {out}.2 > {out}")
row("sqlite", "sqlite3 {db} 'select k, v from t order by k' > {out}", needs="sqlite3")
row(
    "sqlite-build",
    "echo \"create table t(v); insert into t values('$(cat {word})');\" | sqlite3 {out}.db; sqlite3 {out}.db 'select v from t' > {out}",
    needs="sqlite3",
)
row(
    "sqlite-import",
    "sqlite3 {out}.db 'create table t(v)' '.import {lines} t' 'select count(*) from t' > {out}",
    needs="sqlite3",
)
row(
    "gcc-E",
    "gcc -E -P -include {header} -x c /dev/null > {out}; echo N | gcc -E -P -include {header} -x c - > {out}",
    needs="gcc",
    flags="slow",
)
row(
    "git-cat",
    "git init -q {out}.g && (cd {out}.g && GIT_AUTHOR_DATE=@0 git hash-object -w ../{lines} | git cat-file --batch | head -n 3) > {out}; rm -rf {out}.g",
    needs="git",
    flags="slow",
)
row("big-cat", "cat {big} > {out}")
row("big-tail", "tail -n 1 {big} > {out}")
row("big-word", "echo $(tail -n 1 {big}) > {out}")
row("config-key", "grep ^alpha {config} | cut -d= -f 2 > {out}")
# files changed in place
row("count-up", "n=$(cat {num}); echo $((n + 1)) > {num}; head -n $n {lines} > {out}", flags="rmw")
row("append-log", "cat {word} >> {lines}; tail -n 2 {lines} > {out}", flags="rmw")
row("sed-i-source", "sed -i 's/$/./' {config}; cat {config} > {out}", flags="rmw")
row("sort-o-source", "sort -o {config} {config}; head -n 1 {config} > {out}", flags="rmw")
row("rm-source", "cat {odd} > {out}; rm {odd}", flags="rmw")
row("touch-source", "cat {lines} > {out}; touch {word}", flags="rmw")
row("big-pipe", "cat {big} | sort -r | tail -n 2 > {out}")
row("big-pipe-kept", "cat {big} | tee {out}.copy | wc -c > {out}")
row("huge-sum", "cksum < {huge} > {out}")
row("huge-word", "head -n $(tail -n 1 {huge}) {lines} > {out}")
row("loop-many", "for i in 1 2 3 4 5 6 7 8 9; do cat {lines} | head -n 1; done > {out}")
row(
    "loop-many-outs",
    "for i in 1 2 3 4 5; do sort {lines} | head -n $i > {out}.$i; done; cat {out}.* | sort | uniq -c > {out}",
)
row("nested-functions", 'a{id}() { b{id} "$1"; }; b{id}() { head -n "$1" {lines}; }; a{id} "$(cat {num})" > {out}')
row(
    "pid-file",
    "sleep 3 & echo $! > {out}.pid; kill $(cat {out}.pid); wait 2>/dev/null; rm {out}.pid; cat {lines} > {out}",
)
row(
    "named-coop",
    'mkfifo {out}.a {out}.b; (read x < {out}.a; echo "got $x" > {out}.b) & cat {word} > {out}.a; cat {out}.b > {out}; wait; rm {out}.a {out}.b',
)
