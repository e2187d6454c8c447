# what: other address layouts: not random, legacy, below 3 GB, no bound on the stack, readable means executable, low addresses reserved as wine does
# needs: gcc setarch python3
# limit: 120
# of: copied in
echo laid out >in
cat >low.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    /* What wine keeps for Windows programs: 64 KB to 2 GB, and the last 2 MB below where user space ends. */
    unsigned long got = 0, at, step = 16ul << 20;
    for (at = 0x10000; at < 0x80000000ul; at = at < step ? step : at + step) {
        unsigned long to = at < step ? step : at + step;
        void *p = mmap((void *)at, to - at, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == (void *)at) got++;
    }
    int top = mmap((void *)0x7ffffe000000ul, 0x1f0000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    /* Memory of one's own there, used by system calls. */
    char *low = mmap((void *)0x10000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    int in = open("in", O_RDONLY), out = open("copied", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    long n = read(in, low, 4096);
    printf("%d %d %ld\n", got > 100, top, (long)write(out, low, n));
    fflush(stdout);
    if (!fork()) { execlp("cat", "cat", "copied", (char *)0); _exit(9); }
    int status;
    wait(&status);
    return status != 0 || system("exit 3") >> 8 != 3;
}
C
gcc -o pie low.c && gcc -no-pie -o fixed low.c && gcc -static -o static low.c && gcc -no-pie -Wl,-Ttext-segment=0x7d400000 -o high low.c || exit
for how in "" -R -L "-R -L" -X; do
    for program in ./pie ./fixed ./static ./high "python3 -c 'print(open(0).read())'" "sh -c 'cat; true'"; do
        # shellcheck disable=SC2086
        eval setarch x86_64 $how $program <in; echo "$how $program: $?"
    done
done 2>&1 | sed "s#'##g"
for how in -3 -B; do setarch x86_64 $how sh -c 'cat in; cat <in >copied'; echo "$how: $?"; done
(ulimit -s unlimited; ./pie; ./fixed; sh -c 'cat in'; python3 -c 'import sqlite3, ctypes; print("python")'; echo $?)
rm -f pie fixed static high
