# what: fsx: random reads, writes, mappings, truncations, holes and copies in one file, each read verified
# source: fsx/bin/fsx
# compare: tests
# modes: on mount mount-passthrough mount-contents
# limit: 200
cat >"$HOME/fsx.toml" <<'END'
[weights]
close_open = 2
invalidate = 1
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 1
fdatasync = 1
posix_fallocate = 1
punch_hole = 1
sendfile = 1
posix_fadvise = 1
copy_file_range = 5
END
for seed in 1 2 3 4 5 6 7 8; do
    if "$FOREIGN_SOURCES/fsx/bin/fsx" -f "$HOME/fsx.toml" -N 3000 -S "$seed" -P "$HOME" "file$seed" >"$HOME/fsx.log" 2>&1; then
        echo "RESULT seed $seed: ok"
    else
        echo "RESULT seed $seed: failed"
        tail -n 20 "$HOME/fsx.log" >&2
    fi
done
