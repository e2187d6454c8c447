# what: podman runs a container, with its conmon and runc, from a directory
# needs: podman runc busybox
# user: root
# limit: 150
# of: rootfs/made rootfs/in
mkdir -p rootfs/{bin,proc,dev,sys,etc,tmp,run}; cp "$(command -v busybox)" rootfs/bin/busybox; ln -s busybox rootfs/bin/sh; echo data >rootfs/in
# The present limits are kept, because podman cannot raise them to its own without privilege.
printf '[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=%s:%s"]\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n' \
    1024 1024 500 500 >"$HOME/containers.conf"
export CONTAINERS_CONF=$HOME/containers.conf
in_podman() { timeout $((100 * FOREIGN_PATIENCE)) podman --root "$HOME/storage" --runroot "$HOME/run" --storage-driver vfs "$@" 2>"$HOME/why"; }
in_podman run --rm --network none --rootfs "$PWD/rootfs" /bin/sh -c 'busybox cat /in >/made; echo inside; busybox id -u; exit 3' </dev/null; echo $?
cat rootfs/made; in_podman ps -aq; rm -rf rootfs/bin rootfs/etc rootfs/run
