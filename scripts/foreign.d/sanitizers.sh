# what: programs with the address, undefined behaviour and thread sanitizers
# needs: gcc
# limit: 120
# modes: on off strict
# of: out in
echo data >in
printf '#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\nstatic int n; static void *f(void *a) { for (int i = 0; i < 1000; i++) __atomic_fetch_add(&n, 1, 0); FILE *x = fopen("in", "r"); fclose(x); return a; }\nint main(int c, char **v) { pthread_t t[8]; for (int i = 0; i < 8; i++) pthread_create(t + i, 0, f, 0); for (int i = 0; i < 8; i++) pthread_join(t[i], 0); FILE *i = fopen("in", "r"), *o = fopen("out", "w"); fputc(fgetc(i), o); fclose(o); fclose(i); printf("%%d\\n", n); char *p = malloc(4); volatile int r = c > 1 ? p[4] : 0; free(p); return r & 0; }\n' >a.c
for s in address undefined thread leak; do
    gcc -g -pthread -fsanitize=$s -o a a.c 2>/dev/null || { echo no $s; continue; }
    ./a; echo "$s $?"; ./a x 2>&1 | grep -oE 'heap-buffer-overflow' | head -1; echo "${PIPESTATUS[0]}"
done
rm -f a
