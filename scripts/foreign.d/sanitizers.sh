# what: programs with the address, undefined behaviour, thread, leak and memory sanitizers, of gcc and clang
# needs: gcc
# limit: 240
# modes: on off strict
# of: out in
echo data >in
printf '#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\nstatic int n; static void *f(void *a) { for (int i = 0; i < 1000; i++) __atomic_fetch_add(&n, 1, 0); FILE *x = fopen("in", "r"); fclose(x); return a; }\nint main(int c, char **v) { pthread_t t[8]; for (int i = 0; i < 8; i++) pthread_create(t + i, 0, f, 0); for (int i = 0; i < 8; i++) pthread_join(t[i], 0); FILE *i = fopen("in", "r"), *o = fopen("out", "w"); fputc(fgetc(i), o); fclose(o); fclose(i); printf("%%d\\n", n); char *p = malloc(4); volatile int r = c > 1 ? p[4] : 0; free(p); return r & 0; }\n' >a.c
for s in address undefined thread leak; do
    gcc -g -pthread -fsanitize=$s -o a a.c 2>/dev/null || { echo no $s; continue; }
    ./a; echo "$s $?"; ./a x 2>&1 | grep -oE 'heap-buffer-overflow' | head -1; echo "${PIPESTATUS[0]}"
done
# Each case reports, and is suppressed, by the function that makes an intercepted call.
cat >b.c <<'EOF'
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int ends[2], value;
static void *nothing(void *a) { return a; }
static void *sends(void *a) { value = 42; return write(ends[1], "x", 1) == 1 ? a : 0; }
__attribute__((noinline)) void spawn(void) { pthread_t t; pthread_create(&t, 0, nothing, 0); usleep(20000); }
__attribute__((noinline)) void order(void) {
    pthread_t t; char c;
    if (pipe(ends) || pthread_create(&t, 0, sends, 0) || read(ends[0], &c, 1) != 1) exit(9);
    printf("%d\n", value); pthread_join(t, 0);
}
__attribute__((noinline)) void overrun(void) {
    char *b = malloc(4); int f = open("in", O_RDONLY);
    printf("%zd\n", read(f, b, 5)); close(f); free(b);
}
__attribute__((noinline)) void leak(void) { if (!opendir(".")) exit(9); }
__attribute__((noinline)) void forget(void) { volatile char s[4096]; memset((char *)s, 0, sizeof s); }
int main(int c, char **v) {
    switch (c > 1 ? *v[1] : 0) {
    case 's': spawn(); break;
    case 'p': order(); break;
    case 'o': overrun(); break;
    case 'l': leak(); forget(); break;
    }
    return 0;
}
EOF
echo 'thread:^spawn$' >thread.supp; echo 'interceptor_via_fun:^overrun$' >address.supp; echo 'leak:^leak$' >leak.supp
options() { # SUPPRESSED?
    export TSAN_OPTIONS=${1:+suppressions=$PWD/thread.supp} ASAN_OPTIONS=detect_leaks=0${1:+:suppressions=$PWD/address.supp}
    export LSAN_OPTIONS=fast_unwind_on_malloc=0${1:+:suppressions=$PWD/leak.supp}
}
for compiler in gcc clang; do
    for s in address thread leak memory; do
        command -v $compiler >/dev/null && $compiler -g -O0 -pthread -fsanitize=$s -o b b.c 2>/dev/null || { echo no $compiler $s; continue; }
        for case in spawn pipe overrun leak; do
            for suppressed in '' yes; do
                options $suppressed
                ./b $case 2>&1 | grep -oE '^[0-9]+$|(WARNING|ERROR|SUMMARY): [A-Za-z]+Sanitizer: [a-z -]*| in (spawn|order|overrun|leak) '
                echo "$compiler $s $case $suppressed ${PIPESTATUS[0]}"
            done
        done
    done
done
rm -f a b
