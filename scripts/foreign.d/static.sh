# what: static programs: busybox's shell under signals, musl, static-pie
# needs: busybox gcc musl-gcc
# limit: 90
# of: out in
echo data >in
busybox sh -c 'for i in $(busybox seq 50); do busybox cat in >>acc; done; busybox wc -l acc; busybox cp in out; busybox find . -type f | busybox sort'
busybox sh -c 'trap "n=\$((n+1))" USR1; p=$$; (i=0; while [ $i -lt 200 ]; do kill -USR1 $p; i=$((i+1)); done) & j=0; while [ $j -lt 100 ]; do busybox true; read l <in; j=$((j+1)); done; while kill -0 $! 2>/dev/null; do wait $!; done; echo finished'
printf '#include <stdio.h>\n#include <unistd.h>\n#include <sys/wait.h>\nint main(void) { FILE *f = fopen("in", "r"), *g = fopen("o2", "w"); int c; while ((c = getc(f)) != EOF) putc(c, g); fclose(g); if (!fork()) { execlp("echo", "echo", "from a child", NULL); _exit(1); } int s; wait(&s); printf("%%d\\n", s); return 3; }\n' >a.c
for cc in 'musl-gcc -static' 'musl-gcc' 'gcc -static' 'gcc -static-pie'; do $cc -o a a.c && ./a; echo "$cc $?"; done
rm a
