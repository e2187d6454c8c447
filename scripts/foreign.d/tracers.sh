# what: gdb, strace -f and ltrace trace programs that are recorded
# needs: gdb strace gcc
# limit: 90
# modes: on off strict
echo 'int f(int x) { return x + 1; } int main(int c, char **v) { return f(c) + 40; }' >a.c; gcc -g -O0 -o a a.c
gdb -q -batch -ex 'break f' -ex run -ex bt -ex finish -ex continue ./a 2>&1 | grep -vE 'debuginfod|libthread_db|warning|^$'
strace -f -qq -e trace=execve -e signal=none -o s sh -c 'true; /bin/true; /bin/false'; echo $?; grep -c execve s
strace -f -c -o /dev/null sh -c 'ls / >/dev/null; echo ok'
strace -f -e trace=none -o /dev/null bash -c 'kill -TERM $$'; echo $?
timeout $((20 * FOREIGN_PATIENCE)) strace -f -o /dev/null -e inject=openat:error=EACCES:when=3 true >/dev/null 2>&1; echo injected
rm -f s a
