# what: perf counts, samples and traces programs (events of software; tracing as root)
# needs: perf gcc
# limit: 90
# of: copied in
seq 20000 >in
printf 'int main(void) { volatile unsigned long n = 0; while (n < 300000000) n++; return 3; }\n' >spin.c; gcc -O1 -o spin spin.c
perf stat -e task-clock,context-switches,page-faults -x, -o counts sh -c 'cat in >copied; exit 4'; echo "stat $?"; grep -c , counts
perf record -q --no-buildid-cache -e cpu-clock -F 500 -o samples ./spin; echo "record $?"
perf report -i samples --stdio --sort symbol 2>/dev/null | awk '$2 == "[.]" && $3 == "main" { print ($1 + 0 > 50) ? "main is hot" : "main is not hot" }'
perf script -i samples -F comm 2>/dev/null | sort -u
if [ "$(id -u)" = 0 ]; then perf trace -e openat -o traced sh -c 'cat in >/dev/null' 2>/dev/null; echo "trace $?"; grep -q openat traced && echo traced; fi
rm -f spin counts samples traced samples.old
