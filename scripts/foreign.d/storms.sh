# what: programs under storms of signals, static, dynamic and interpreted: none loses a call that it would have made
# needs: busybox gcc python3
# limit: 120
# of: copied in
seq 1000 >in
cat >storm.c <<'C'
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int ticks;
static void tick(int n) { (void)n; ticks++; }
int main(void) {
    /* As most programs install their handlers. */
    struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval t = {{0, 300}, {0, 300}};
    int bad = 0;
    sigaction(SIGALRM, &a, 0); setitimer(ITIMER_REAL, &t, 0);
    for (int i = 0; i < 3000; i++) { int f = open(i % 2 ? "in" : "absent", O_RDONLY); if (f >= 0) close(f); else if (errno != ENOENT) bad++; }
    printf("%d went wrong\n", bad);
    return 0;
}
C
gcc -O1 -o dynamic storm.c; gcc -O1 -static -o static storm.c; ./dynamic; ./static
python3 - <<'PY'
import os, signal, shutil
hits = 0
def tick(*_):
    global hits
    hits += 1
signal.signal(signal.SIGALRM, tick); signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for i in range(300):
    shutil.copyfile("in", "copied")
signal.setitimer(signal.ITIMER_REAL, 0)
print(os.path.getsize("copied"), hits > 0)
PY
bash -c 'trap "n=\$((n+1))" USR1; p=$$; (i=0; while [ $i -lt 300 ]; do kill -USR1 $p; i=$((i+1)); done) & for i in $(seq 60); do cat in >/dev/null; read -r l <in; : >made; done; wait; while kill -0 $! 2>/dev/null; do wait $!; done; echo bash done'
rm -f dynamic static storm.c made
