# what: make -j with a jobserver, recursive, with a failing target
# needs: make gcc
# quick: yes
# of: prog f3.c
for i in $(seq 20); do echo "int f$i(void) { return $i; }" >f$i.c; done; echo 'int f3(void); int main(void) { return f3(); }' >main.c
cat >Makefile <<'M'
all: prog sub
prog: $(patsubst %.c,%.o,$(wildcard *.c))
	@gcc -o $@ $^ && ./prog; echo status $$?
%.o: %.c
	@gcc -c -o $@ $<
sub:
	@+$(MAKE) --no-print-directory -C d
fail:
	false
.PHONY: sub fail
M
mkdir d; printf 'all: a b c\na b c:\n\t@sleep 0.1; touch $@\n' >d/Makefile
make -j8; echo $?; make -j4 2>&1; make -k -j2 fail 2>&1; echo $?; touch f3.c; make -q prog; echo $?; rm -f *.o
