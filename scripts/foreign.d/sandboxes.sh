# what: bubblewrap, unshare, chroot: other namespaces and roots
# needs: bwrap unshare
# limit: 60
# quick: yes
# of: out in
echo inside >in
bwrap --ro-bind / / --bind "$PWD" "$PWD" --dev /dev --proc /proc --unshare-all sh -c 'cat in >out; id -u; echo $$; ls /proc | grep -c "^[0-9]"'; echo $?
bwrap --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --tmpfs /tmp --bind "$PWD" /w --chdir /w --unshare-pid sh -c 'cat in; ls /; echo x >from-bwrap'
unshare -Urmpf --mount-proc sh -c 'id -u; mount -t tmpfs none /mnt && echo hidden >/mnt/x && cat /mnt/x; exec ps -o comm= -p 1' 2>&1; echo $?
if [ "$(id -u)" = 0 ]; then mkdir -p r/bin; cp /bin/busybox r/bin/sh 2>/dev/null && chroot r /bin/sh -c 'echo in a chroot >/file; echo $?'; rm -r r/bin; fi
