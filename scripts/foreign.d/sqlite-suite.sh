# what: SQLite's own tests, from Debian's sources: 29 files about locks, links, shared memory, temporary files, failing system calls
# source: sqlite3/built/testfixture
# compare: tests
# limit: 290
# A test prints `name... Ok`, or its expected and its actual result. Each file has its directory.
for file in syscall oserror symlink symlink2 lock lock2 lock3 lock4 lock5 sharedlock shmlock nolock superlock unixexcl exclusive exclusive2 shared \
    attach backup delete_db tempdb multiplex quota sync walro walro2 walshared walpersist wal5; do
    mkdir "$HOME/$file" && cd "$HOME/$file" || exit
    "$FOREIGN_SOURCES"/sqlite3/built/testfixture "$FOREIGN_SOURCES/sqlite3/test/$file.test" 2>&1 |
        sed -nE "s/^([a-z_0-9]+[-.][^ ]*)\.\.\. *(Ok|Omitted)$/RESULT $file \1: \2/p; s/^! ([^ ]+) expected:.*/RESULT $file \1: failed/p"
done
