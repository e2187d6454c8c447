"""Kinds of line for bash."""

from . import row


def bash(name: str, text: str, **more: str) -> None:
    """Adds a kind of line for bash."""
    row(name, text, "bash", **more)


bash("read-file", 'echo "$(<{lines})" > {out}')
bash("read-file-var", "x=$(<{num}); head -n $x {lines} > {out}")
bash("mapfile", 'mapfile -t A < {list}; echo "${A[1]}" > {out}')
bash("mapfile-proc", 'mapfile -t A < <(cat {list}); head -n "${A[0]}" {lines} > {out}')
bash("mapfile-loop", 'mapfile -t F < {names}; for f in "${F[@]}"; do cat "$f"; done > {out}')
bash("proc-subst", "cat <(sort {lines}) > {out}")
bash("proc-subst-diff", "diff <(sort {lines}) <(sort {lines2}) > {out}")
bash("proc-subst-cmp", "cmp -s <(sort {word}) <(sort {word2}) && echo same > {out} || echo differ > {out}")
bash("proc-subst-while", 'while read -r n; do head -n "$n" {lines}; done < <(sort {list}) > {out}')
bash(
    "proc-subst-out",
    "cat {lines} > >(sort > {out}); while [ ! -s {out} ]; do sleep 0.01; done; sleep 0.02",
    flags="slow",
)
bash("proc-subst-source", 'source <(cat {code}); echo "$V" > {out}')
bash("here-string", 'cat <<< "$(cat {word})" > {out}')
bash("here-string-read", 'read -r a b <<< "$(head -n 1 {lines})"; echo "$b $a" > {out}')
bash("double-bracket", "if [[ $(<{word}) == a* ]]; then cat {lines} > {out}; else cat {lines2} > {out}; fi")
bash("double-bracket-nt", "[[ {lines} -nt {lines2} ]] && echo newer > {out} || echo older > {out}", flags="src")
bash("double-bracket-s", "[[ -s {lines} && -e {maybe} ]] && cat {word} > {out} || echo no > {out}")
bash("regex", '[[ $(<{config}) =~ alpha=([0-9]+) ]]; echo "${BASH_REMATCH[1]}" > {out}')
bash("arith-for", "for ((i = 0; i < $(cat {num}); i++)); do echo $i; done > {out}")
bash("arith-if", "if (($(<{num}) > 2)); then sort {lines} > {out}; else tail -n 1 {lines} > {out}; fi")
bash("array-glob", 'F=({dir}/*); echo "${#F[@]} ${F[0]}" > {out}')
bash("nullglob", "(shopt -s nullglob; F=({dir}/*.zz); echo ${#F[@]} > {out}; cat {word} >> {out})")
bash("globstar", "(shopt -s globstar; cat {dir}/**/f1 > {out})")
bash("extglob", "(shopt -s extglob\ncat {dir}/f[!9] > {out})")
bash("brace", "cat {dir}/f{1,2} > {out}")
bash("pipestatus", 'cat {lines} | grep -q yes {flag}; echo "${PIPESTATUS[1]}" > {out}')
bash(
    "pipefail",
    "(set -o pipefail; grep yes {flag} | cat > {out}.f && echo ok > {out} || echo bad > {out})",
    flags="fails",
)
bash(
    "set-e-pipefail",
    '(set -eo pipefail; grep yes {flag} | sort > {out}; cat {lines} > {out}.2); echo "$?" > {out}.rc',
    flags="fails",
)
bash("trap-err", "(trap 'echo trapped > {out}' ERR; grep -q yes {flag}; cat {word} > {out}.2)", flags="fails")
bash("trap-debug-exit", "(trap 'cat {lines} > {out}' EXIT; exit $(cat {num}))", flags="fails")
bash("coproc", 'coproc C{id} { cat {num}; }; read -r n <&"${C{id}[0]}"; wait; head -n "$n" {lines} > {out}')
bash("fd-var", "exec {fd}< {lines}; read -r x <&$fd; cat <&$fd > {out}; exec {fd}<&-")
bash("fd-var-count", "exec {fd}< {list}; while read -r -u $fd n; do head -n $n {lines}; done > {out}; exec {fd}<&-")
bash("wait-n", "(grep -q yes {flag}) & wait -n; echo $? > {out}")
bash("lastpipe", "(shopt -s lastpipe; cat {num} | read -r n; head -n $n {lines} > {out})")
bash("case-modify", 'w=$(<{word}); echo "${w^^} ${w/a/o}" > {out}')
bash("assoc", 'declare -A M; while IFS== read -r k v; do M[$k]=$v; done < {config}; echo "${M[alpha]}" > {out}')
bash("printf-v", "printf -v x '%s-' $(cat {list}); /bin/echo \"$x\" > {out}")
bash("function-export", 'f{id}() { head -n "$1" {lines}; }; export -f f{id}; bash -c "f{id} $(cat {num})" > {out}')
bash("select-command", 'declare -a C=(cat {lines}); [[ -e {maybe} ]] && C=(sort -r {lines}); "${C[@]}" > {out}')
bash("bash-env", "BASH_ENV=./{code} bash -c 'echo \"$V\"' > {out}")
bash(
    "local-status",
    'f{id}() { local r; r=$(grep yes {flag}) || return 3; echo "$r"; }; f{id} > {out}; echo $? > {out}.rc',
    flags="fails",
)
bash("readarray-find", "readarray -d '' -t F < <(find {dir} -type f -print0 | sort -z); wc -l < \"${F[0]}\" > {out}")
bash("read-timeout", 'if read -r -t 2 x < {word}; then echo "got $x" > {out}; fi')
bash("subshell-var", "n=$(cat {num}); (( n > 1 )) && (n=$((n - 1)); head -n $n {lines}) > {out}")
bash("test-v", "source {code}; [[ -v V ]] && cat {lines} > {out} || echo unset > {out}")
bash("exec-redirect-all", "{ exec 6>&1; exec > {out}; cat {lines}; echo tail; exec >&6 6>&-; }")
bash(
    "tee-proc",
    "cat {lines} | tee >(wc -l > {out}.n) > {out}; while [ ! -s {out}.n ]; do sleep 0.01; done",
    flags="slow",
)
