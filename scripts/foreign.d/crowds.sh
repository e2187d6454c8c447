# what: 1,000 threads in one program, 1,500 processes at the same time, deep chains of programs
# needs: python3 gcc
# limit: 90
printf '#include <pthread.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <stdio.h>\nstatic pthread_barrier_t b; static int bad; static void *f(void *a) { char n[20]; snprintf(n, 20, "t%%ld", (long)a); pthread_barrier_wait(&b); int d = open(n, O_CREAT | O_WRONLY, 0600); if (d < 0 || write(d, n, 3) != 3) bad = 1; close(d); pthread_barrier_wait(&b); unlink(n); return 0; }\nint main(void) { enum { N = 1000 }; static pthread_t t[N]; pthread_barrier_init(&b, 0, N); pthread_attr_t at; pthread_attr_init(&at); pthread_attr_setstacksize(&at, 65536); for (long i = 0; i < N; i++) if (pthread_create(t + i, &at, f, (void *)i)) return 2; for (int i = 0; i < N; i++) pthread_join(t[i], 0); printf("bad %%d\\n", bad); return 0; }\n' >a.c; gcc -O1 -pthread -o a a.c && ./a; echo $?
/usr/bin/python3 - <<'PY'
import os
kids = []; r, w = os.pipe()
for i in range(1500):
    pid = os.fork()
    if pid == 0:
        os.close(w); open(f"p{i}", "w").close(); os.read(r, 1); os.unlink(f"p{i}"); os._exit(i % 7)
    kids.append(pid)
os.close(r); os.close(w); print(sum(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in kids))
def deep(n):
    if n == 0: os.execvp("true", ["true"])
    p = os.fork()
    if p == 0: deep(n - 1)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))
p = os.fork()
if p == 0: deep(200)
print(os.waitpid(p, 0)[1])
PY
sh -c 'n=200; x="exec true"; while [ $n -gt 0 ]; do n=$((n-1)); set -- "$@" env; done; exec "$@" true'; echo $?
rm -f a
