# what: bash: coprocesses, process substitution, traps; xargs -P, parallel, timeout, nice, nohup; dash and signals
# needs: bash dash xargs timeout
# limit: 120
# quick: yes
coproc C { while read -r x; do echo "co $x"; done; }; for i in 1 2 3; do echo $i >&"${C[1]}"; read -r a <&"${C[0]}"; echo "$a"; done; eval "exec ${C[1]}>&-"; wait
diff <(seq 5) <(seq 2 6); tee >(cat >t1) >(wc -l >t2) < <(seq 10) >/dev/null; for i in $(seq 50); do [ -s t1 ] && [ -s t2 ] && break; sleep 0.1; done; cat t2
n=0; trap 'n=$((n+1))' USR1; for i in $(seq 100); do kill -USR1 $$; done; echo $n; trap 'echo exit trap' EXIT
(trap 'echo term; exit 9' TERM; kill -TERM $BASHPID; sleep 5); echo $?
seq 100 | xargs -P8 -n1 sh -c 'echo $0 >x$0'; ls x* | wc -l; cat x* | sort -n | md5sum; rm x*
timeout 0.3 sleep 10; echo $?; timeout -s KILL 0.3 sleep 10; echo $?; nice -n 5 nice; nohup true 2>/dev/null; echo $?
bash -c 'kill -SEGV $$'; echo $?; sh -c 'ulimit -c 0; kill -ABRT $$'; echo $?; (ulimit -f 1; dd if=/dev/zero of=fl bs=1k count=5 2>/dev/null); echo $?; rm -f fl
dash -c 'trap "c=\$((c+1))" USR1; p=$$; (i=0; while [ $i -lt 300 ]; do kill -USR1 $p; i=$((i+1)); done) & for i in 1 2 3 4 5 6 7 8 9 10; do cat /dev/null; : >/dev/null; read l </etc/hostname; done; while kill -0 $! 2>/dev/null; do wait $!; done; echo done'
exec 3>&1; (exec 3>&-; echo closed); sh -c 'exec <&- >&- 2>&-; echo x; exit 4'; echo $?; command -v nothing; nothing 2>/dev/null; echo $?; /etc/passwd 2>/dev/null; echo $?
yes | head -1; set -o pipefail; yes 2>/dev/null | head -1; echo $?; seq 3 | while read -r l; do (exit "$l"); echo $?; done
