# what: tar, cpio, gzip, xz, rsync, cp -a, dd, find, split: the trees they make
# needs: tar cpio rsync gzip
# quick: yes
# of: u/d/3 d/3
mkdir -p d/e/{1,2,3}; for i in $(seq 200); do echo $i >d/$i; done; ln -s 3 d/link; ln d/3 d/hard; mkfifo d/fifo; chmod 751 d/5
tar cf a.tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner d && mkdir u && tar xf a.tar -C u
(cd d && find . -depth | sort | cpio --quiet -o -H newc 2>/dev/null >/dev/null); mkdir v; (cd d && find . | cpio --quiet -pdm ../v)
tar czf b.tgz --mtime=@0 d; tar cJf c.txz d; tar tzf b.tgz | wc -l; rm *.tgz *.txz
rsync -a d/ r/; rsync -a --delete --link-dest="$PWD/d" d/ s/; rm d/7; touch -d @1000000000 d r; rsync -ai --delete d/ r/
cp -a d x; cp -al d y; cp --reflink=auto -r d/e z; diff -r d x && echo same
dd if=/dev/zero of=big bs=1M count=8 conv=fsync status=none; split -b 1M big part.; cat part.* | cmp - big && rm part.*
truncate -s 100M sparse; cp --sparse=always sparse sparse2; du -k sparse2 | cut -f1; rm sparse*
find . -name '1*' | sort | head; find d -type f -print0 | xargs -0 -P4 -n10 cat | sort -n | md5sum
rm a.tar
