# what: SQLite's tests: an interpreter with SQLite in it
mkdir -p built
cd built
../configure --with-tcl=/usr/lib/tcl8.6 CFLAGS='-O0 -g0'
make testfixture
