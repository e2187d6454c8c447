# what: valgrind and qemu-x86_64 run programs in a processor of their own
# needs: valgrind qemu-x86_64 gcc
# limit: 120
# modes: on off strict
# of: c a.c
printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *p = malloc(3); FILE *f = fopen("a.c", "r"), *g = fopen("c", "w"); int x; while ((x = getc(f)) != EOF) putc(x, g); fclose(g); system("echo child"); p[3] = 1; puts("done"); return 3; }\n' >a.c
gcc -g -o a a.c 2>/dev/null; valgrind -q --error-exitcode=9 ./a 2>&1 | sed 's/==[0-9]*==//'; echo "${PIPESTATUS[0]}"
qemu-x86_64 ./a; echo $?
rm a
