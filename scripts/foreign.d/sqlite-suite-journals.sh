# what: SQLite's own tests, from Debian's sources: 18 files about journals, write-ahead logs, crashes, mappings
# source: sqlite3/built/testfixture
# compare: tests
# limit: 290
# A test prints `name... Ok`, or its expected and its actual result. Each file has its directory.
for file in journal1 journal2 journal3 rollback savepoint trans vacuum snapshot wal wal2 wal3 walmode walcrash crash crash8 mmap1 mmap2 e_walckpt; do
    mkdir "$HOME/$file" && cd "$HOME/$file" || exit
    "$FOREIGN_SOURCES"/sqlite3/built/testfixture "$FOREIGN_SOURCES/sqlite3/test/$file.test" 2>&1 |
        sed -nE "s/^([a-z_0-9]+[-.][^ ]*)\.\.\. *(Ok|Omitted)$/RESULT $file \1: \2/p; s/^! ([^ ]+) expected:.*/RESULT $file \1: failed/p"
done
